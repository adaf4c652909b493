"""Links varied one at a time, against FSDP and TP and with messages not overlapped: rows of varied.csv."""

from collections.abc import Iterator
from dataclasses import replace

from .. import Braid, over
from .fig10 import OVERLAPPED_AND_APART
from .settings import BACKBONES, FOUR_A6000, FOUR_A6000_STAGED, FSDP, MLORA, TENSOR

WIRE = {"bandwidth_gbs": 31.508, "latency_us": 5.7}  # PCIe 4 x16 by its datasheet; `pcie4` is what rings reach on it
NO_WAIT = {"bandwidth_gbs": 1e6, "latency_us": 0}
LINKS = {"pcie4": "pcie4", "the wire's rate": WIRE, "no time at all": NO_WAIT}
# A ring over `pcie4`: what it takes to start, and by what its bytes take longer than at the wire's rate.
RING_START_MICROSECONDS, RING_SHARE = 56.8, 1 / 1.33
GATHER_HOPS = 3
# Units of adapter matrices beside a layer's own: four modules of two matrices, each gathered for both passes and its
# gradient scattered. A plan has two gathers a layer and step to lay them on.
SMALL_COLLECTIVES = 4 * 2 * 3
STAGED_GIGABYTES = [1.5, 1.2, 0.9]


def links(braid: Braid) -> Iterator[list]:
    for backbone, short in BACKBONES.items():
        for name, link in LINKS.items():
            machine = replace(FOUR_A6000, link=link)
            sharded, tensor = machine.compare(braid, backbone, 1, [FSDP, TENSOR])
            ours = machine.compare(braid, backbone, 4, [MLORA])[0]
            for text, plan in (("FSDP", sharded), ("TP", tensor)):
                yield ["11", f"{short}: throughput over {text}", "link", name, *over(ours, plan)]
                yield ["11", f"{short}: seconds a task's step, {text}", "link", name, plan.step_seconds, plan.command]


def fsdp_units(braid: Braid) -> Iterator[list]:
    """Each adapter matrix gathered by itself, laid on the gathers of its layer as so much more to start them."""
    for rate, share in (("rings as measured", RING_SHARE), ("rings at the wire's rate", 1)):
        for backbone, short in BACKBONES.items():
            ours = FOUR_A6000.compare(braid, backbone, 4, [MLORA])[0]
            for microseconds in (0, 57, 150, 300):
                start = RING_START_MICROSECONDS + SMALL_COLLECTIVES / 2 * microseconds
                bandwidth, latency = round(WIRE["bandwidth_gbs"] * share, 3), round(start / GATHER_HOPS, 2)
                machine = replace(FOUR_A6000, link={"bandwidth_gbs": bandwidth, "latency_us": latency})
                sharded = machine.compare(braid, backbone, 1, [FSDP])[0]
                quantity = f"{short}: throughput over FSDP with a unit an adapter matrix, {rate}"
                yield ["11", quantity, "microseconds a small collective", microseconds, *over(ours, sharded)]


def staging(braid: Braid) -> Iterator[list]:
    """What overlapping gains by how far forward passes run ahead, and by the speed of the link."""
    for backbone, short in BACKBONES.items():
        for mode in ("1f1b", "gpipe"):
            policies = [f"{policy}:mode={mode}" for policy in OVERLAPPED_AND_APART]
            pair = FOUR_A6000_STAGED.compare(braid, backbone, 4, policies)
            yield ["10", f"{short}, cpu-staged: overlap over none", "mode", mode, *over(*pair)]
        for gigabytes in STAGED_GIGABYTES:
            machine = replace(FOUR_A6000, link={"bandwidth_gbs": gigabytes, "latency_us": 70})
            pair = machine.compare(braid, backbone, 4, OVERLAPPED_AND_APART)
            yield ["10", f"{short}: overlap over none", "GB/s a hop", gigabytes, *over(*pair)]
