#!/usr/bin/env python3
"""Prints what measure.py found: a line for each plan, and what they come to.

usage: report.py ROWS.jsonl
"""

import itertools
import json
import statistics
import sys

# Policies whose steps are measured this close are of one rank: runs of one plan differ by as much.
ALIKE = 0.03


def measured_step(row, error):
    return row["step_seconds"] / (1 + row[error])


def ordered(rows, error):
    """Of a workload's pairs of policies that are not measured alike: how many compare puts in order, and how many not."""
    agree = disagree = 0
    for one, other in itertools.combinations(rows, 2):
        measured = measured_step(one, error) / measured_step(other, error) - 1
        if abs(measured) < ALIKE:
            continue
        if measured * (one["compared_step_seconds"] - other["compared_step_seconds"]) > 0:
            agree += 1
        else:
            disagree += 1
    return agree, disagree


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        rows = [json.loads(line) for line in file]
    print(f"{'workload':17} {'ranks':>5} {'policy':23} {'predicted_ms':>12} {'measured_ms':>11} {'error':>7} {'pace':>7} "
          f"{'at_pace':>7} {'memory':>7} {'plan_s':>6} {'valid_s':>7}")
    for row in rows:
        memory = max(row["memory"], key=abs)
        print(f"{row['workload']:17} {row['ranks']:>5} {row['policy']:23} {1e3 * row['step_seconds']:12.1f} "
              f"{1e3 * measured_step(row, 'error'):11.1f} {row['error']:+7.1%} {row['pace']:+7.1%} {row['at_pace']:+7.1%} "
              f"{memory:+7.1%} {row['plan_seconds']:6.1f} {row['validate_seconds']:7.1f}")
    print()
    for ranks in sorted({row["ranks"] for row in rows}):
        mine = [row for row in rows if row["ranks"] == ranks]
        by_clock, at_pace = ([abs(row[kind]) for row in mine] for kind in ("error", "at_pace"))
        memory = [max(map(abs, row["memory"])) for row in mine]
        groups = [[row for row in mine if row["workload"] == name and "compared_step_seconds" in row]
                  for name in dict.fromkeys(row["workload"] for row in mine)]
        agree, disagree = map(sum, zip(*(ordered(group, "at_pace") for group in groups if group), (0, 0)))
        first = [row["first_plan_seconds"] for row in mine]
        print(f"{ranks} rank{'s' if ranks > 1 else ''}: steps by the clock {statistics.mean(by_clock):.1%} mean, "
              f"{max(by_clock):.1%} worst; at the profile's pace {statistics.mean(at_pace):.1%}, {max(at_pace):.1%}; "
              f"peak memory {statistics.mean(memory):.1%}, {max(memory):.1%}")
        if agree + disagree > 0:
            print(f"        Kendall's tau of {len(groups)} workloads' policies: {(agree - disagree) / (agree + disagree):.2f} "
                  f"({agree} of {agree + disagree} pairs in order; those measured within {ALIKE:.0%} left out)")
        print(f"        first plan from an empty cache: {statistics.median(first):.0f} s median, {max(first):.0f} s at most")


if __name__ == "__main__":
    main()
