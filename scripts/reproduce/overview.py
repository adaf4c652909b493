"""The one table of all papers' claims in results/README.md."""

import csv
from pathlib import Path

NAMES = {"muxtune": "MuxTune", "lobra": "LobRA", "lorafusion": "LoRAFusion", "mlora": "mLoRA", "cluster": "MuxTune, cluster"}


def claims_of(folder: Path) -> list[dict]:
    with (folder / "claims.csv").open(newline="") as stream:
        next(stream)
        return list(csv.DictReader(stream))


def number(text: str) -> str:
    return f"{float(text):.4g}" if text else "–"


def blocks(results: Path, papers: list[str]) -> dict[str, str]:
    """By name: how near each paper's claims are met, and every claim."""
    summary = ["| Paper | Claims | Within 10 % | Within 25 % | Page |", "|---|---|---|---|---|"]
    table = ["| Figure | Claim | Paper | braid | braid / paper | Page |", "|---|---|---|---|---|---|"]
    for paper in papers:
        claims = claims_of(results / paper)
        ratios = [float(claim["ours_over_paper"]) for claim in claims if claim["ours_over_paper"]]
        near = [sum(1 / (1 + most) <= ratio <= 1 + most for ratio in ratios) for most in (0.1, 0.25)]
        page = f"[{paper}]({paper}/README.md)"
        summary.append(f"| {NAMES[paper]} | {len(claims)} | {near[0]} | {near[1]} | {page} |")
        for claim in claims:
            cells = [f"{NAMES[paper]} {claim['figure']}", claim["claim"].replace("|", "/")]
            cells += [number(claim[key]) for key in ("paper", "ours", "ours_over_paper")]
            table.append("| " + " | ".join(cells) + f" | {page} |")
    return {"summary": "\n".join(summary) + "\n", "claims": "\n".join(table) + "\n"}


def marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: scripts/reproduce.sh --overview -->\n", f"<!-- end of {name} -->\n"


def replaced(text: str, results: Path, papers: list[str]) -> str:
    """With each block between its marks."""
    for name, block in blocks(results, papers).items():
        begin, end = marks(name)
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = before + begin + block + end + after
    return text


def write(results: Path, papers: list[str]) -> None:
    file = results / "README.md"
    file.write_text(replaced(file.read_text(), results, papers))


def is_current(results: Path, papers: list[str]) -> bool:
    text = (results / "README.md").read_text()
    return text == replaced(text, results, papers)
