"""LobRA's figures; claims.csv has them in this order."""

FIGURES = ["fig7", "fig8", "table2", "scaling", "planning", "varied"]
# Those that take seconds.
QUICK = ["fig8"]
