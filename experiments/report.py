"""The report: one HTML page that needs no server, and the same tables as Markdown."""

from __future__ import annotations

import html
import io
import os
import platform
import re
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import cycle
from pathlib import Path
from typing import Any

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
# Okabe and Ito's colours, which the colour-blind tell apart, and marks for those who see none.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#333333", "#8c8c8c")
MARKS = "os^Dv<>P"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 66rem; padding: 1rem; }
body { color: #1b1b1b; background: #fff; }
h1 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid #bbb; } h3 { margin-top: 2.5rem; }
a { color: #14548c; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .5rem 0 1rem; font-size: .9rem; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; vertical-align: top; }
th, td { border-bottom: 1px solid #ddd; }
th { white-space: normal; vertical-align: bottom; } th:first-child, td:first-child { text-align: left; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
td.text { white-space: normal; text-align: left; min-width: 10rem; } th.text { text-align: left; }
.ok { color: #176b2c; } .not { color: #8a4b00; }
.verdict { background: #f2f5f8; border-left: 4px solid #47749c; padding: .4rem .8rem; margin: .5rem 0; }
.note, .protocol, footer { color: #555; font-size: .9rem; } li { overflow-wrap: anywhere; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(19rem, 100%), 1fr)); gap: 1rem; }
figure { margin: 0; } svg { width: 100%; height: auto; display: block; }
@media (max-width: 40rem) { body { font-size: 15px; padding: .6rem; } }
"""


TIMES = ("time of this run", "processor time of all jobs")


def write(folder: Path, outcomes: Sequence[tuple[Experiment, Outcome]], settings: dict[str, str]) -> Path:
    """Write `report.html` and `report.md` into the folder; returns the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = {**_machine(), **settings}
    seconds = sum(outcome.seconds for _, outcome in outcomes)
    facts[TIMES[1]] = f"{seconds:.0f} s"
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
        "PyTorch, matplotlib": ", ".join(_version(name) for name in ("torch", "matplotlib")),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "written": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The model as Linux names it, or the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} ({platform.machine()})" if names else platform.machine()


def _page(outcomes: Sequence[tuple[Experiment, Outcome]], facts: dict[str, str]) -> str:
    summary = "".join(
        f"<tr><td class='text'><a href='#{e.name}'>{_text(f'{e.paper}: {e.title}')}</a></td>"
        f"<td class='text'>{_text(o.verdict)}</td><td>{o.seconds:.0f} s</td></tr>"
        for e, o in outcomes
    )
    head = "<tr><th>experiment</th><th class='text'>verdict</th><th>processor time</th></tr>"
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'><link rel='icon' href='data:,'>",
        f"<title>sketchnewton: the papers, recomputed</title><style>{_STYLE}</style></head><body>",
        "<h1>The papers, recomputed</h1>",
        "<p>Every measured number on this page was computed by this run, or taken over from an earlier one of the "
        "same code. Published numbers stand beside them.</p>",
        f"<p class='note'>{_text(_headline(facts))} <a href='#run'>All about this run</a>.</p>",
        f"<div class='wide'><table><caption>Summary</caption>{head}{summary}</table></div>",
    ]
    paper = None
    for experiment, outcome in outcomes:
        if experiment.paper != paper:
            paper = experiment.paper
            parts.append(f"<h2>{_text(paper)}</h2><p>{_text(PAPERS[paper])}</p>")
        parts.append(_section(experiment, outcome))
    rows = "".join(f"<tr><td>{_text(k)}</td><td class='text'>{_text(v)}</td></tr>" for k, v in facts.items())
    parts.append(
        f"<footer id='run'><div class='wide'><table><caption>This run</caption>{rows}</table></div></footer>"
    )
    return "".join([*parts, "</body></html>\n"])


def _headline(facts: dict[str, str]) -> str:
    said = [f"{name}: {facts[name]}" for name in ("run", "workers", *TIMES, "written") if name in facts]
    return f"{'; '.join(said)}."


def _section(experiment: Experiment, outcome: Outcome) -> str:
    parts = [f"<section id='{experiment.name}'><h3>{_text(experiment.title)}</h3>"]
    if experiment.protocol:
        parts.append(f"<p class='protocol'>{_text(experiment.protocol)}</p>")
    parts.append(f"<p class='verdict'>{_text(outcome.verdict)}</p>")
    parts += [_table(table) for table in outcome.tables if table.rows]
    figures = "".join(f"<figure>{_svg(figure)}</figure>" for figure in outcome.figures if figure.curves)
    parts.append(f"<div class='figures'>{figures}</div>" if figures else "")
    if outcome.missing:
        lines = "".join(f"<li>{_text(line)}</li>" for line in outcome.missing)
        parts.append(f"<p class='note'>Missing:</p><ul class='note'>{lines}</ul>")
    return "".join([*parts, "</section>"])


def _table(table: Table) -> str:
    verdicts = table.verdicts or [""] * len(table.rows)
    head = "".join(f"<th>{_text(name)}</th>" for name in table.columns)
    head += "<th class='text'>verdict</th>" if table.verdicts else ""
    body = ""
    for row, verdict in zip(table.rows, verdicts, strict=True):
        cells = "".join(_cell(cell) for cell in row)
        if table.verdicts:
            cells += f"<td class='text {'ok' if verdict == 'ok' else 'not'}'>{_text(verdict)}</td>"
        body += f"<tr>{cells}</tr>"
    note = f"<p class='note'>{_text(table.note)}</p>" if table.note else ""
    caption = f"<caption>{_text(table.title)}</caption>"
    whole = f"{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f"<div class='wide'><table>{whole}</table></div>{note}"


def _cell(value: object) -> str:
    """Sentences are set as text, all else like numbers."""
    return f"<td{' class=text' if len(str(value)) > 25 else ''}>{_text(value)}</td>"


def _svg(figure: Figure) -> str:
    import matplotlib  # of the extra `plot`

    matplotlib.use("Agg")
    from matplotlib import pyplot

    style = {
        "svg.fonttype": "none",
        "font.size": 9,
        "font.family": "sans-serif",
        "svg.hashsalt": figure.title,
    }
    with pyplot.rc_context(style):
        canvas, axes = pyplot.subplots(figsize=(4.2, 3.8), layout="constrained")
        if figure.bars:
            values = [ys[-1] for _, ys in figure.curves.values()]
            axes.barh([*figure.curves], values, color=COLOURS[0])
            axes.invert_yaxis()
        else:
            _lines(axes, figure)
        axes.set(xlabel=figure.x, ylabel=figure.y)
        axes.set_title(figure.title, fontsize=9.5)
        axes.set_xscale("log" if figure.log_x else "linear")
        if figure.log_x and not figure.bars:
            _ticks(axes, figure)
        if not figure.bars:
            axes.set_yscale("log" if figure.log_y else "linear")
            columns = 3 if max(len(name) for name in figure.curves) < 17 else 2
            canvas.legend(loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
        axes.grid(alpha=0.3, axis="x" if figure.bars else "both")
        text = io.StringIO()
        canvas.savefig(text, format="svg", metadata={"Date": None})
        pyplot.close(canvas)
    drawing = re.sub("<metadata>.*?</metadata>", "", text.getvalue(), flags=re.DOTALL)
    named = f"<svg role='img' aria-label='{_text(figure.title)}'"
    return drawing[drawing.index("<svg") :].replace("<svg", named, 1)


def _ticks(axes: Any, figure: Figure) -> None:
    """On a logarithmic axis: at the points if there are few, otherwise at the powers of ten alone."""
    places = sorted({x for xs, _ in figure.curves.values() for x in xs})
    if len(places) <= 5:
        axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.xaxis.set_minor_formatter("")


def _lines(axes: Any, figure: Figure) -> None:
    styles = zip(cycle(COLOURS), cycle(MARKS), strict=False)
    for (name, (xs, ys)), (colour, mark) in zip(figure.curves.items(), styles, strict=False):
        marked = mark if figure.points or len(xs) <= 12 else None
        line = "" if figure.points else "-"
        axes.plot(xs, ys, line, label=name, color=colour, marker=marked, markersize=4, linewidth=1.4)
    if figure.points:
        top = max(max(*xs, *ys) for xs, ys in figure.curves.values())
        axes.plot([0, top], [0, top], color="#999", linewidth=0.8)


def _markdown(outcomes: Sequence[tuple[Experiment, Outcome]], facts: dict[str, str]) -> str:
    lines = ["# The papers, recomputed", ""]
    for experiment, outcome in outcomes:
        lines += [
            f"## {experiment.paper}: {experiment.title}",
            "",
            outcome.verdict,
            "",
            experiment.protocol,
            "",
        ]
        for table in outcome.tables:
            if not table.rows:
                continue
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
    return html.escape(str(value), quote=True)
