"""Holds figures that were made again against those that are committed."""

import csv
from pathlib import Path

# Predictions are the same on any machine but for the last digits of its arithmetic.
RELATIVE, ABSOLUTE = 2e-3, 1e-9
# What a command took is another time each time.
TIMED = ("planning", "seconds_to_plan")


def rows_of(file: Path) -> list[list[str]]:
    """Without the line that says who made it."""
    with file.open(newline="") as stream:
        return list(csv.reader(stream))[1:]


def alike(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        a, b = float(one), float(other)
    except ValueError:
        return False
    return abs(a - b) <= RELATIVE * max(abs(a), abs(b)) + ABSOLUTE


def differences(made: Path, committed: Path) -> list[str]:
    """Of each table in `made`, row by row; of claims.csv the rows of the figures that were made."""
    found = []
    for file in sorted(made.glob("*/*.csv")):
        name = f"{file.parent.name}/{file.name}"
        known = committed / name
        if not known.exists():
            found.append(f"{name}: is not in {committed}")
            continue
        ours, theirs = rows_of(file), rows_of(known)
        if file.name == "claims.csv":
            figures = {row[0] for row in ours[1:]}
            theirs = theirs[:1] + [row for row in theirs[1:] if row[0] in figures]
        if len(ours) != len(theirs):
            found.append(f"{name}: {len(ours) - 1} rows, committed are {len(theirs) - 1}")
            continue
        columns = ours[0]
        for row, (mine, known_row) in enumerate(zip(ours, theirs), start=3):
            for column, one, other in zip(columns, mine, known_row):
                if not alike(one, other) and not column.startswith(TIMED):
                    found.append(f"{name}:{row}: {column} is {one}, committed is {other}")
    for file in sorted(made.glob("*/*.txt")):
        known = committed / file.parent.name / file.name
        if not known.exists() or file.read_text() != known.read_text():
            found.append(f"{file.parent.name}/{file.name}: differs from what is committed")
    return found
