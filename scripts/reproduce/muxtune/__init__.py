"""MuxTune's figures; claims.csv has them in this order."""

FIGURES = [
    "layouts",
    "template",
    "fig9b",
    "section3_4_1",
    "fig14",
    "fig15",
    "fig16",
    "fig17",
    "fig18",
    "fig19",
    "fig20",
]
FIGURES += ["fig21a", "varied"]
# Those that take seconds.
QUICK = ["fig9b", "fig18", "fig19", "fig20", "fig21a"]
