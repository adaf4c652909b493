"""Every way to share, first come first served, with and without padding; one seed, as some plan each set in full."""

from .. import Braid, Panel, Report, Series
from .study import ask, cells, columns, completion_hours, groups_of, mean, worst_error
from .traces import generated

LOADS = ["0.9", "30"]  # what the cluster can serve; figure 21(b)'s
UNPADDED = ":pad_to=none"
POLICIES = ["nemo:schedule=1f1b", f"nemo:schedule=1f1b{UNPADDED}"]
POLICIES += [policy + padding for policy in ("sl-peft", "mlora", "muxtune") for padding in ("", UNPADDED)]
POLICIES += ["task-fused", "lobra", "lorafusion", "braid"]
COLUMNS = ["load", "policy", "braid_over_it", *columns(), "estimate_error_p99", "command"]
METRIC = "saturated_tokens_per_second"


def make(braid: Braid, report: Report) -> None:
    words = ["--trace", generated(braid).file, "--gpus", "128"]
    summary, command = ask(braid, *words, "--policy", ",".join(POLICIES), "--sweep", "load=" + ",".join(LOADS))
    groups = {(group["load"], group["policy"]): (group, runs) for group, runs in groups_of(summary)}
    rows = []
    for (load, policy), (group, runs) in groups.items():
        lead = completion_hours(group) / completion_hours(groups[load, "braid"][0])
        rows.append([load, policy, lead, *cells(group), worst_error(runs), command])
    figure = report.figure("policies", "policies")
    figure.table(COLUMNS, rows)
    labels = [policy.split(":")[0] + "*" * policy.endswith(UNPADDED) for policy in POLICIES]
    panels = []
    for load in LOADS:
        hours = [completion_hours(groups[load, policy][0]) for policy in POLICIES]
        panels.append(Panel(f"load {load}", "mean completion, hours", labels, [Series("mean completion", hours)]))
    tokens = [mean(groups[LOADS[-1], policy][0], METRIC) for policy in POLICIES]
    panels.append(Panel(f"load {LOADS[-1]}", "saturated billed tokens/s", labels, [Series("tokens", tokens)]))
    see = "Padding is most of the difference; braid is ahead of all that go without it"
    figure.picture("128 A40s, LLaMA7B, mixed tasks, first come first served (*: without padding)", panels, see=see)
