"""The report: one HTML page that needs no server, and the same tables as Markdown."""

from __future__ import annotations

import html
import io
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy

import sketchnewton
from experiments.runner import Experiment, Figure, Outcome, Table

PAPERS = {
    "SON": "Luo, Agarwal, Cesa-Bianchi, Langford: Efficient Second Order Online Learning by Sketching",
    "RFD": "Luo, Chen, Zhang, Li, Zhang: Robust Frequent Directions with Application in Online Learning",
    "ADA": "Wan, Zhang: Accelerating adaptive online learning by matrix approximation",
    "EIG": "Garber, Hazan, Ma: Online Learning of Eigenvectors",
}
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem; color: #1b1b1b; }
h1 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid #bbb; } h3 { margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .5rem 0; }
th, td { padding: .2rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
.ok { color: #176b2c; } .not { color: #8a4b00; white-space: normal; text-align: left; }
.verdict { background: #f2f5f8; border-left: 4px solid #47749c; padding: .4rem .8rem; }
.note, .protocol, footer { color: #555; font-size: .9rem; } svg { max-width: 100%; height: auto; }
@media (max-width: 40rem) { body { font-size: 15px; padding: .6rem; } }
"""


def write(folder: Path, outcomes: Sequence[tuple[Experiment, Outcome]], settings: dict[str, str]) -> Path:
    """Write `report.html` and `report.md` into the folder; returns the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = {**_machine(), **settings}
    page = folder / "report.html"
    for path, text in ((page, _page(outcomes, facts)), (folder / "report.md", _markdown(outcomes, facts))):
        temporary = path.with_suffix(".part")
        temporary.write_text(text, encoding="utf-8")
        temporary.rename(path)
    return page


def _machine() -> dict[str, str]:
    return {
        "sketchnewton": sketchnewton.__version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "written": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def _page(outcomes: Sequence[tuple[Experiment, Outcome]], facts: dict[str, str]) -> str:
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>sketchnewton: the papers, recomputed</title><style>{_STYLE}</style></head><body>",
        "<h1>The papers, recomputed</h1>",
        "<p>Every measured number on this page was computed by this run. Published numbers stand beside them.</p>",
    ]
    summary = [
        f"<tr><td><a href='#{e.name}'>{_text(f'{e.paper}: {e.title}')}</a></td>"
        f"<td class='not'>{_text(o.verdict or 'not run')}</td><td>{o.seconds:.0f} s</td></tr>"
        for e, o in outcomes
    ]
    parts.append(f"<div class='wide'><table><caption>Summary</caption>{''.join(summary)}</table></div>")
    paper = None
    for experiment, outcome in outcomes:
        if experiment.paper != paper:
            paper = experiment.paper
            parts.append(f"<h2>{_text(paper)}</h2><p>{_text(PAPERS[paper])}</p>")
        parts.append(_section(experiment, outcome))
    rows = "".join(f"<tr><td>{_text(k)}</td><td class='not'>{_text(v)}</td></tr>" for k, v in facts.items())
    parts.append(f"<footer><div class='wide'><table><caption>This run</caption>{rows}</table></div></footer>")
    return "".join([*parts, "</body></html>\n"])


def _section(experiment: Experiment, outcome: Outcome) -> str:
    parts = [f"<section id='{experiment.name}'><h3>{_text(experiment.title)}</h3>"]
    if experiment.protocol:
        parts.append(f"<p class='protocol'>{_text(experiment.protocol)}</p>")
    if outcome.verdict:
        parts.append(f"<p class='verdict'>{_text(outcome.verdict)}</p>")
    parts += [_table(table) for table in outcome.tables if table.rows]
    parts += [f"<figure>{_svg(figure)}</figure>" for figure in outcome.figures if figure.curves]
    if outcome.missing:
        lines = "".join(f"<li>{_text(line)}</li>" for line in outcome.missing)
        parts.append(f"<p class='note'>Missing data:</p><ul class='note'>{lines}</ul>")
    return "".join([*parts, "</section>"])


def _table(table: Table) -> str:
    verdicts = table.verdicts or [""] * len(table.rows)
    head = "".join(
        f"<th>{_text(name)}</th>" for name in [*table.columns, *(["verdict"] if table.verdicts else [])]
    )
    body = ""
    for row, verdict in zip(table.rows, verdicts, strict=True):
        cells = "".join(f"<td>{_text(cell)}</td>" for cell in row)
        if table.verdicts:
            cells += f"<td class='{'ok' if verdict == 'ok' else 'not'}'>{_text(verdict)}</td>"
        body += f"<tr>{cells}</tr>"
    note = f"<p class='note'>{_text(table.note)}</p>" if table.note else ""
    caption = f"<caption>{_text(table.title)}</caption>"
    whole = f"{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f"<div class='wide'><table>{whole}</table></div>{note}"


def _svg(figure: Figure) -> str:
    import matplotlib  # noqa: PLC0415 - of the extra `plot`

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    with pyplot.rc_context({"svg.fonttype": "none", "font.size": 11}):
        canvas, axes = pyplot.subplots(figsize=(7.5, 4.5), layout="constrained")
        for name, (xs, ys) in figure.curves.items():
            axes.plot(xs, ys, label=name, marker="o" if len(xs) < 15 else None, markersize=3)
        axes.set(xlabel=figure.x, ylabel=figure.y, title=figure.title)
        if figure.log_x:
            axes.set_xscale("log")
        if figure.log_y:
            axes.set_yscale("log")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=9)
        text = io.StringIO()
        canvas.savefig(text, format="svg")
        pyplot.close(canvas)
    drawing = text.getvalue()
    return drawing[drawing.index("<svg") :]


def _markdown(outcomes: Sequence[tuple[Experiment, Outcome]], facts: dict[str, str]) -> str:
    lines = ["# The papers, recomputed", ""]
    for experiment, outcome in outcomes:
        lines += [f"## {experiment.paper}: {experiment.title}", ""]
        if outcome.verdict:
            lines += [outcome.verdict, ""]
        for table in outcome.tables:
            columns = [*table.columns, *(["verdict"] if table.verdicts else [])]
            lines += [f"**{table.title}**", "", f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
            verdicts = [[v] for v in table.verdicts] or [[] for _ in table.rows]
            for row, verdict in zip(table.rows, verdicts, strict=True):
                lines.append(f"| {' | '.join(str(cell) for cell in [*row, *verdict])} |")
            lines += ["", *([table.note, ""] if table.note else [])]
        lines += [f"- missing: {line}" for line in outcome.missing]
        lines.append("")
    return "\n".join([*lines, *(f"- {name}: {value}" for name, value in facts.items()), ""])


def _text(value: object) -> str:
    return html.escape(str(value))
