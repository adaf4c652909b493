"""The pipeline template on random pipelines, which section 3.4.1 draws: template.txt."""

from .. import Braid, Report

FILE = "template.txt"


def make(braid: Braid, report: Report) -> None:
    report.text(FILE, braid.study("template_study"))
