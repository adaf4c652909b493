"""Validations in pandas: the error of each kind of instruction, over several files.

usage: python3 validation.py FILE...   (what `braid validate --out` wrote)"""

import json
import sys
from pathlib import Path

import pandas

kinds = pandas.concat(
    pandas.DataFrame(json.loads(Path(file).read_text())["kinds"]).assign(file=file) for file in sys.argv[1:]
)
print(kinds.pivot(index="what", columns="file", values="error").mul(100).round(1).add_suffix(": error, %"))
