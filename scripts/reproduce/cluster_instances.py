"""Instances of other sizes, and where elastic ones are placed."""

from cluster_metrics import cells, columns, worst_error
from cluster_schedulers import GPUS, POLICIES, SEEDS, public_traces
from cluster_studies import Studies
from report import Report

INSTANCES = ["1", "2", "4", "8"]
PLACEMENTS = ["packed", "spread", "frag"]


def instances(studies: Studies, report: Report) -> None:
    """First come first served at a load of 0.9; recorded durations stay those of a node."""
    policies = {label: POLICIES[label] for label in ("exclusive", "muxtune")}
    labels = {policy: label for label, policy in policies.items()}
    rows = []
    for trace in public_traces(studies):
        summary, command = studies.run(
            *("--trace", trace.file, "--gpus", str(GPUS), "--job-gpus", "4", "--load", "0.9", "--seeds", SEEDS),
            *("--policy", ",".join(policies.values()), "--sweep", "instance-gpus=" + ",".join(INSTANCES)),
        )
        for place, group in enumerate(summary["groups"]):
            key = group["instance-gpus"], labels[group["policy"]]
            rows.append([trace.name, *key, *cells(group), worst_error(summary, place), command])
    report.table("instances", ["trace", "instance_gpus", "policy", *columns(), "estimate_error_p99", "command"], rows)


def placements(studies: Studies, report: Report) -> None:
    """Elastic instances of one to eight GPUs: the only ones here that can leave nodes in parts."""
    rows = []
    for trace in public_traces(studies):
        summary, command = studies.run(
            *("--trace", trace.file, "--gpus", str(GPUS), "--load", "0.9", "--seeds", SEEDS),
            *("--scheduler", "goodput", "--policy", POLICIES["exclusive"], "--placement", ",".join(PLACEMENTS)),
        )
        rows += [[trace.name, group["placement"], *cells(group), command] for group in summary["groups"]]
    report.table("placements", ["trace", "placement", *columns(), "command"], rows)
