"""Where the pipeline's GPipe mode has more bubbles than section 3.2.2's closed form: gpipe.txt."""

from .. import Braid, Report


def make(braid: Braid, report: Report) -> None:
    report.text("gpipe.txt", braid.study("lora_pipeline_study"))
