#!/usr/bin/env python3
"""Runs what documents show, and compares what it prints.

usage: scripts/check_docs.py BRAID FILE...

A block that begins with ```console holds commands after "$ " and what they print. All commands of a file run one after
another in one empty folder. What is printed may differ in its numbers and blanks, and in as many lines as a line of
"..." stands for. A block ```FILENAME holds what that file holds from there on."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

NUMBER = re.compile(r"[-+]?\d[\d,.]*(?:e[-+]?\d+)?")
UNIT = re.compile(r"# ?(?:us|ms|s|min|h|kB|MB|GB)\b")


def plain(line: str) -> str:
    """Without what differs from run to run: numbers, and the units that they happen to be in."""
    return " ".join(UNIT.sub("#u", NUMBER.sub("#", line)).split())


def matches(expected: list[str], printed: list[str]) -> bool:
    if not expected:
        return not printed
    if expected[0].strip() == "...":
        return any(matches(expected[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and plain(expected[0]) == plain(printed[0]) and matches(expected[1:], printed[1:])


def blocks(text: str):
    """The kind of each fenced block, and its lines."""
    for kind, body in re.findall(r"^```(\S+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield kind, body.splitlines()


def commands(lines: list[str]):
    """Each command, over several lines where one ends in a backslash, and what it prints."""
    command, printed = None, []
    for line in lines:
        if command is not None and command.endswith("\\"):
            command = command[:-1] + line.strip()
        elif line.startswith("$ "):
            if command is not None:
                yield command, printed
            command, printed = line[2:], []
        else:
            printed.append(line)
    if command is not None:
        yield command, printed


def check(file: Path, environment: dict) -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind, lines in blocks(file.read_text()):
            if kind != "console":
                if "." in kind:
                    target = Path(folder) / kind
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text("\n".join(lines) + "\n")
                continue
            for command, expected in commands(lines):
                run = subprocess.run(
                    command, shell=True, cwd=folder, env=environment, text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                )
                printed = run.stdout.replace(folder, "").splitlines()
                if run.returncode != 0 or not matches(expected, printed):
                    failed += 1
                    print(f"{file}: $ {command}\nstatus {run.returncode}, printed:", *printed, "expected:", *expected, sep="\n")
    return failed


def main() -> None:
    program = Path(sys.argv[1]).resolve()
    environment = dict(os.environ, PATH=f"{program.parent}:{os.environ['PATH']}", COLUMNS="100")
    failed = sum(check(Path(file), environment) for file in sys.argv[2:])
    if failed:
        raise SystemExit(f"error: {failed} commands do not do what is shown")


if __name__ == "__main__":
    main()
