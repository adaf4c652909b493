"""mLoRA's figures; claims.csv has them in this order."""

FIGURES = ["gpipe", "fig7", "fig11", "fig8a", "fig9", "fig10", "section3_3_2", "fig14", "fig16", "varied"]
# Those that take seconds.
QUICK = ["fig8a", "fig9", "fig10", "section3_3_2", "fig14", "fig16"]
