"""`skn reproduce`: the tables and figures of the papers, from a source checkout."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from pathlib import Path
from types import ModuleType

from sketchnewton.cli.io.console import print_page
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.options.parser import Parser
from sketchnewton.cli.options.types import at_least_one
from sketchnewton.core.hints import Any

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "checkout", "run"]

USAGE = "skn reproduce NAME ... | --all [--quick] [--data DIR] [--output DIR] [--workers N]"
SUMMARY = "Recompute tables and figures of the papers, in a source checkout, and write a report."
EXAMPLES = """\
examples:
  skn reproduce                        the list of experiments
  skn reproduce son-figure1 --quick    one of them, small
  skn reproduce --all --output report  all of them, hours; report/report.html opens in a browser

Results are cached in OUTPUT/cache: an interrupted run continues where it stopped. Missing data sets are listed
with the place to get them. The report needs matplotlib: pip install 'sketchnewton[plot]'
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="Experiments to run; without any, list them."
    )
    parser.add_argument("--all", action="store_true", help="Run every experiment.")
    parser.add_argument("--list", action="store_true", help="List the experiments and stop.")
    parser.add_argument("--quick", action="store_true", help="Use fewer rows, seeds and parameters: minutes.")
    parser.add_argument(
        "--experiments",
        metavar="DIR",
        help="Directory with the experiments, whose code is run (default: the checkout that skn was installed "
        "from).",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="Directory with the data sets (default ../shared/data)."
    )
    parser.add_argument(
        "--output", metavar="DIR", default="report", help="Directory for the report (default report)."
    )
    parser.add_argument(
        "--workers", type=at_least_one, metavar="N", help="Number of processes (default: all cores)."
    )
    parser.add_argument("--quiet", action="store_true", help="Print no progress.")


def run(args: argparse.Namespace) -> int:
    """Run the experiments asked for and write the report."""
    root = _folder(args.experiments).parent
    sys.path.insert(0, str(root))
    catalogue = _part("catalogue").EXPERIMENTS
    if args.list or not (args.names or args.all):
        for experiment in catalogue:
            print(f"{experiment.name:<14} {experiment.paper}: {experiment.title}")
        return 0
    chosen = _chosen(args, catalogue)
    folder = (Path(args.data) if args.data else root / _part("data").DEFAULT_FOLDER).resolve()
    output = Path(args.output)
    workers = args.workers or os.cpu_count() or 1
    runner = _part("runner").Runner(output / "cache", workers, _progress(args.quiet))
    start = time.perf_counter()
    outcomes = list(zip(chosen, runner.run(chosen, folder, args.quick), strict=True))
    settings = {
        "run": "quick" if args.quick else "full",
        "data": "found" if folder.is_dir() else "no data folder: synthetic parts only",
        "workers": str(workers),
        "time of this run": f"{time.perf_counter() - start:.0f} s",
    }
    page = _part("report").write(output, outcomes, settings)
    missing: dict[str, list[str]] = {}
    for experiment, outcome in outcomes:
        print(f"{experiment.name:<14} {outcome.verdict}")
        for line in outcome.missing:
            missing.setdefault(line, []).append(experiment.name)
    for line, names in missing.items():
        print_page([f"missing for {', '.join(names)}: {line}"])
    print_page([f"report written to {page}"])
    return 1 if any(outcome.failed for _, outcome in outcomes) else 0


def _part(name: str) -> ModuleType:
    return importlib.import_module(f"experiments.{name}")


def _chosen(args: argparse.Namespace, catalogue: tuple[Any, ...]) -> list[Any]:
    if args.all:
        return list(catalogue)
    known = {experiment.name: experiment for experiment in catalogue}
    for name in args.names:
        if name not in known:
            raise usage_error(f"unknown experiment {name!r}: must be one of {', '.join(known)}")
    return [known[name] for name in args.names]


def _folder(typed: str | None) -> Path:
    """The experiments, which are code: those of this package's own checkout, or those that were asked for."""
    if typed is not None:
        folder = Path(typed).resolve()
        if folder.name != "experiments" or not (folder / "catalogue.py").is_file():
            raise CommandError(f"{typed}: must be the folder experiments of a source checkout")
        return folder
    root = checkout()
    if root is None or not (root / "experiments" / "catalogue.py").is_file():
        raise CommandError(
            "the experiments are not installed: install from a source checkout, or give --experiments DIR"
        )
    return root / "experiments"


def checkout() -> Path | None:
    """The checkout that this package runs from, or that it was installed from; never a mere parent directory."""
    import json
    from importlib import metadata
    from urllib.parse import unquote, urlsplit

    import sketchnewton

    package = Path(sketchnewton.__file__).resolve().parent
    if package.parent.name == "src":
        return package.parents[1]
    # pip's note on where it installed from, beside the package.
    for distribution in metadata.distributions(name="sketchnewton", path=[str(package.parent)]):
        if (note := distribution.read_text("direct_url.json")) is not None:
            url = urlsplit(json.loads(note)["url"])
            return Path(unquote(url.path)) if url.scheme == "file" else None
    return None


def _progress(quiet: bool) -> Any:
    def show(text: str) -> None:
        if not quiet and (sys.stderr.isatty() or not text.startswith("\r") or text.endswith("\n")):
            sys.stderr.write(text)
            sys.stderr.flush()

    return show
