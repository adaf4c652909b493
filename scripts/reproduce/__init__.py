"""Figures of papers and studies of clusters, regenerated from what braid predicts: scripts/reproduce.sh.

A package a paper, a module a figure with its settings and what the paper claims; `make` of each writes the figure. What
figures are made with:"""

from .braid import ALL_LINEAR, PAPERS_COMMAND, Braid, Dataset, Link
from .pictures import Panel, Series, series_of
from .plan import Plan, commands, fastest, over, ratio, saved
from .report import Figure, Report

__all__ = ["ALL_LINEAR", "PAPERS_COMMAND", "Braid", "Dataset", "Figure", "Link", "Panel", "Plan", "Report", "Series"]
__all__ += ["commands", "fastest", "over", "ratio", "saved", "series_of"]
