"""Tables of papers' claims: of all in results/README.md, of each paper's on its own page."""

import csv
from pathlib import Path

NAMES = {"muxtune": "MuxTune", "lobra": "LobRA", "lorafusion": "LoRAFusion", "mlora": "mLoRA", "cluster": "MuxTune, cluster"}
NEAR = (0.1, 0.25)


def claims_of(folder: Path) -> list[dict]:
    with (folder / "claims.csv").open(newline="") as stream:
        next(stream)
        return list(csv.DictReader(stream))


def number(text: str) -> str:
    return f"{float(text):.4g}" if text else "–"


def met(claims: list[dict], most: float) -> int:
    """How many come out at most so much apart, as a share, of those that come out at all."""
    ratios = [float(claim["ours_over_paper"]) for claim in claims if claim["ours_over_paper"]]
    return sum(1 / (1 + most) <= ratio <= 1 + most for ratio in ratios)


def table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("| --- ", "|---").replace("--- |", "---|")


def claim_rows(claims: list[dict], before: str = "") -> list[list[str]]:
    numbers = ("paper", "ours", "ours_over_paper")
    return [[before + one["figure"], one["claim"].replace("|", "/"), *(number(one[key]) for key in numbers)] for one in claims]


def blocks(results: Path, papers: list[str]) -> dict[Path, dict[str, str]]:
    """By page and name: how near each paper's claims are met, and every claim."""
    summary, every = [], []
    pages: dict[Path, dict[str, str]] = {}
    columns = ["Figure", "Claim", "Paper", "braid", "braid / paper"]
    for paper in papers:
        claims = claims_of(results / paper)
        page = f"[{paper}]({paper}/README.md)"
        summary.append([NAMES[paper], str(len(claims)), *(str(met(claims, most)) for most in NEAR), page])
        every += [[*row, page] for row in claim_rows(claims, f"{NAMES[paper]} ")]
        pages[results / paper / "README.md"] = {"claims": table(columns, claim_rows(claims))}
    words = ["Paper", "Claims", *(f"Within {most:.0%}".replace("%", " %") for most in NEAR), "Page"]
    pages[results / "README.md"] = {"summary": table(words, summary), "claims": table([*columns, "Page"], every)}
    return pages


def marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: scripts/reproduce.sh --overview -->\n", f"<!-- end of {name} -->\n"


def replaced(page: Path, tables: dict[str, str]) -> str:
    """The page with each table between its marks."""
    text = page.read_text()
    for name, made in tables.items():
        begin, end = marks(name)
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise SystemExit(f"error: {page} has no '{begin.strip()}' with '{end.strip()}' after it")
        text = before + begin + made + end + after
    return text


def write(results: Path, papers: list[str]) -> None:
    for page, tables in blocks(results, papers).items():
        page.write_text(replaced(page, tables))


def stale(results: Path, papers: list[str]) -> list[Path]:
    """Pages whose tables are not those of claims.csv."""
    return [page for page, tables in blocks(results, papers).items() if page.read_text() != replaced(page, tables)]
