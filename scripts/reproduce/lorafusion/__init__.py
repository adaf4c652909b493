"""LoRAFusion's figures; claims.csv has them in this order. Those of operators (section 3.1, figures 17 to 19) are in
results/costmodel/papers.txt."""

FIGURES = ["fig14", "fig15", "fig16", "fig20", "section6_5", "fig22", "varied"]
# Those that take seconds.
QUICK = ["fig20", "fig22"]
