"""What the search loses by laying out only the layouts that are best by Eq. 3: layouts.txt."""

from .. import Braid, Report


def make(braid: Braid, report: Report) -> None:
    report.text("layouts.txt", braid.study("layout_study"))
