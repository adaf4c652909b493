"""MuxTune's cluster study and a wider one of schedulers; claims.csv has them in this order."""

FIGURES = ["fig21b", "fig21a", "policies", "varied", "schedulers", "instances", "placements", "recorded", "failures", "growth"]
# None of them takes seconds alone.
QUICK: list[str] = []
