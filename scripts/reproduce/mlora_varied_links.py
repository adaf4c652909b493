"""Links varied one at a time, for results/mlora/varied.csv: against FSDP and TP, and with messages not overlapped."""

from dataclasses import replace

from mlora_pipeline import OVERLAP
from mlora_settings import (
    BACKBONES,
    FOUR_A6000,
    FOUR_A6000_STAGED,
    FSDP,
    MLORA,
    TENSOR,
    compare,
    over,
)
from planning import Planner, ratio

WIRE = {"bandwidth_gbs": 31.508, "latency_us": 5.7}  # PCIe 4 x16 by its datasheet; `pcie4` is what rings reach on it
NO_WAIT = {"bandwidth_gbs": 1e6, "latency_us": 0}
# A ring over `pcie4`: what it takes to start, and by what its bytes take longer than at the wire's rate.
RING_START_MICROSECONDS, RING_SHARE = 56.8, 1 / 1.33
GATHER_HOPS = 3
# Units of adapter matrices beside a layer's own: four modules of two matrices, each gathered for both passes and its
# gradient scattered. A plan has two gathers a layer and step to lay them on.
SMALL_COLLECTIVES = 4 * 2 * 3
STAGED_GIGABYTES = [1.5, 1.2, 0.9]


def vary_bandwidth(planner: Planner) -> list:
    rows = []
    for backbone, short in BACKBONES.items():
        for name, link in (("pcie4", "pcie4"), ("the wire's rate", WIRE), ("no time at all", NO_WAIT)):
            machine = replace(FOUR_A6000, link=link)
            sharded, tensor = compare(planner, machine, backbone, 1, [FSDP, TENSOR])
            ours = compare(planner, machine, backbone, 4, [MLORA])[0]
            for text, plan in (("FSDP", sharded), ("TP", tensor)):
                rows.append(["11", f"{short}: throughput over {text}", "link", name, *over(ours, plan)])
                step = [plan.step_seconds, plan.command]
                rows.append(["11", f"{short}: seconds a task's step, {text}", "link", name, *step])
    return rows


def vary_fsdp_units(planner: Planner) -> list:
    """Each adapter matrix gathered by itself, laid on the gathers of its layer as so much more to start them."""
    rows = []
    for rate, share in (("rings as measured", RING_SHARE), ("rings at the wire's rate", 1)):
        for backbone, short in BACKBONES.items():
            ours = compare(planner, FOUR_A6000, backbone, 4, [MLORA])[0]
            for microseconds in (0, 57, 150, 300):
                start = RING_START_MICROSECONDS + SMALL_COLLECTIVES / 2 * microseconds
                link = {
                    "bandwidth_gbs": round(WIRE["bandwidth_gbs"] * share, 3),
                    "latency_us": round(start / GATHER_HOPS, 2),
                }
                sharded = compare(planner, replace(FOUR_A6000, link=link), backbone, 1, [FSDP])[0]
                quantity = f"{short}: throughput over FSDP with a unit an adapter matrix, {rate}"
                rows.append(["11", quantity, "microseconds a small collective", microseconds, *over(ours, sharded)])
    return rows


def vary_staging(planner: Planner) -> list:
    """What overlapping gains by how far forward passes run ahead, and by the speed of the link."""
    rows = []

    def row(text: str, varied: str, value, plans: list) -> None:
        on, off = plans
        gain = ratio(on.effective, off.effective)
        rows.append(["10", f"{text}: overlap over none", varied, value, gain, f"{on.command}; {off.command}"])

    for backbone, short in BACKBONES.items():
        for mode in ("1f1b", "gpipe"):
            policies = [f"{policy}:mode={mode}" for policy in OVERLAP]
            row(f"{short}, cpu-staged", "mode", mode, compare(planner, FOUR_A6000_STAGED, backbone, 4, policies))
        for gigabytes in STAGED_GIGABYTES:
            machine = replace(FOUR_A6000, link={"bandwidth_gbs": gigabytes, "latency_us": 70})
            row(short, "GB/s a hop", gigabytes, compare(planner, machine, backbone, 4, list(OVERLAP)))
    return rows
