"""A training run in pandas: losses by task and step, and what a step took.

usage: python3 training_run.py RUN   (the folder that `braid train --out` wrote)"""

import sys
from pathlib import Path

import pandas

lines = pandas.read_json(Path(sys.argv[1]) / "metrics.jsonl", lines=True)
steps = lines[lines.loss.notna()]
print(steps.pivot(index="step", columns="task", values="loss").round(4))
print((steps.groupby("task").tokens.sum() / steps.groupby("task").seconds.sum()).rename("data tokens a second").round(0))
if "eval_loss" in lines:
    evaluated = lines[lines.eval_loss.notna()]
    print(evaluated.loc[evaluated.groupby("task").eval_loss.idxmin(), ["task", "step", "eval_loss"]])
