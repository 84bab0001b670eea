"""A hook of the documentation site: the speed of the last commits, from `benchmarks/history.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

HISTORY = Path(__file__).parents[1] / "benchmarks" / "history.json"
SHOWN = 8
INTRODUCTION = """# Speed over time

Processor time, relative to a yardstick on the same machine: for learners scikit-learn's
`SGDClassifier.partial_fit` on the same 20,000 sparse rows, for readers Python's `str.split` of the same text.
Smaller is faster; 1 is as fast as the yardstick.
`make bench-history` measures the commit that is checked out and adds it.

"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    entries = json.loads(HISTORY.read_text(encoding="utf-8"))
    files.append(File.generated(config, "benchmarks.md", content=page(entries)))
    return files


def page(entries: list[dict[str, Any]]) -> str:
    """A row per measurement, a column per commit, and a line through all of them."""
    shown = entries[-SHOWN:]
    heads = [f"{entry['date']}<br>`{entry['commit'][:7]}`" for entry in shown]
    lines = [f"| | {' | '.join(heads)} | all |", "| --- |" + " ---: |" * len(shown) + " --- |"]
    for name in dict.fromkeys(name for entry in entries for name in entry["costs"]):
        costs = [entry["costs"].get(name) for entry in shown]
        cells = ["" if cost is None else f"{cost:.2f}" for cost in costs]
        line = sparkline([entry["costs"][name] for entry in entries if name in entry["costs"]])
        lines.append(f"| {name} | {' | '.join(cells)} | {line} |")
    return INTRODUCTION + "\n".join(lines) + "\n"


def sparkline(costs: list[float], width: int = 120, height: int = 24) -> str:
    """The costs as a line from left to right, zero at the bottom."""
    top = max(costs)
    step = (width - 6) / max(len(costs) - 1, 1)
    points = [(3 + step * at, height - 3 - (height - 6) * cost / top) for at, cost in enumerate(costs)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="{len(costs)} measurements">'
        f'<polyline points="{path}" fill="none" stroke="currentColor"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="currentColor"/></svg>'
    )
