"""A cluster study in pandas: completion by scheduler and policy, and who waited longest.

usage: python3 cluster_study.py STUDY   (the folder that `braid cluster --out` wrote)"""

import sys
from pathlib import Path

import pandas

study = Path(sys.argv[1])
jobs = pandas.read_csv(study / "jobs.csv")
jobs["completion_h"] = (jobs.finish_s - jobs.submit_s) / 3600
print(jobs.groupby(["scheduler", "policy"]).completion_h.describe(percentiles=[0.5, 0.9, 0.99]).round(2))

hours = pandas.read_csv(study / "utilization.csv")
print(hours.groupby(["scheduler", "policy"])[["gpus", "waiting"]].mean().round(2))
print(jobs.nlargest(5, "queue_s")[["job_id", "scheduler", "policy", "queue_s"]])
