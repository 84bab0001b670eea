"""`skn eigen`: play the eigenvector game, compare the methods, draw the result."""

from __future__ import annotations

import argparse
import math
from types import ModuleType

from sketchnewton.cli.io.console import Console, print_page
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.options.parser import Parser
from sketchnewton.cli.options.types import at_least_one
from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.core.types import Header

if TYPE_CHECKING:
    from sketchnewton.cli.pictures.eigen_games import Growth, Score

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "run"]

USAGE = "skn eigen COMPARISON [--n N] [--rounds T] [--seeds S] [--output FILE] [--json]"
SUMMARY = "Play unit vectors against symmetric matrices with every method of online learning of eigenvectors."
EXAMPLES = """\
examples:
  skn eigen alternating                          the sequence that defeats following the leader
  skn eigen stochastic --n 40 --rounds 4000      independent matrices, larger
  skn eigen table1 --output table1.png           growth of every method's regret, as table and picture

Regret: how much more the best fixed unit vector would have gained. The picture needs matplotlib:
pip install 'sketchnewton[plot]'
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument(
        "comparison",
        metavar="COMPARISON",
        choices=("stochastic", "alternating", "rotating", "fixed", "axes", "table1"),
        help="Stochastic, alternating, rotating or fixed direction, random axes, or table1: growth in T and in n.",
    )
    parser.add_argument(
        "--n", type=at_least_one, metavar="N", help="Dimension (default 10; table1: at most N, default 32)."
    )
    parser.add_argument(
        "--rounds",
        type=at_least_one,
        metavar="T",
        help="Rounds (default 1,000; table1: at most T, default 16,000).",
    )
    parser.add_argument(
        "--seeds", type=at_least_one, metavar="S", help="Games per method (default 3; table1: 10)."
    )
    parser.add_argument("--quick", action="store_true", help="table1 with small sizes: a few seconds.")
    parser.add_argument("--output", metavar="FILE", help="Picture to write: .png, .svg or .pdf.")
    parser.add_argument("--json", action="store_true", help="Print machine-readable results on stdout.")


_PICTURES = (".png", ".svg", ".pdf")


def run(args: argparse.Namespace) -> int:
    """Play, print, draw."""
    from threadpoolctl import threadpool_limits

    draw = _drawing(args.output) if args.output else None
    console = Console(args.json)
    # The matrices are small: threads of BLAS would only wait for each other.
    with threadpool_limits(1):
        if args.comparison == "table1":
            _table_1(args, console, draw)
        else:
            _one_sequence(args, console, draw)
    if args.output and not args.json:
        print_page(["", f"picture in {args.output}"])
    return 0


def _drawing(path: str) -> ModuleType:
    from sketchnewton.cli.io.files import check_writable

    check_writable(path)
    if not path.endswith(_PICTURES):
        raise usage_error(f"--output {path}: the picture can be one of {' '.join(_PICTURES)}")
    try:
        from sketchnewton.cli.pictures import eigen as eigen_picture  # matplotlib is optional
    except ImportError as error:
        raise CommandError(
            f"the picture needs matplotlib, which is missing ({error}): pip install 'sketchnewton[plot]'"
        ) from None
    return eigen_picture


def _one_sequence(args: argparse.Namespace, console: Console, draw: ModuleType | None) -> None:
    from sketchnewton.cli.pictures.eigen_games import METHODS, compare

    n, rounds, seeds = args.n or 10, args.rounds or 1000, args.seeds or 3
    played, total = 0, len(METHODS) * seeds

    def on_game() -> None:
        nonlocal played
        played += 1
        console.progress(played / total, f"{played} of {total} games")

    scores = compare(args.comparison, n, rounds, seeds, on_game=on_game)
    console.clear()
    if args.json:
        import json

        print(
            json.dumps({"sequence": args.comparison, "n": n, "rounds": rounds, "methods": _facts(scores, n)})
        )
    else:
        print(f"{args.comparison} sequence, n={n}, {rounds:,} rounds, mean of {seeds} seeds")
        print(f"\n{'':<28}{'regret':>10}{'± s.e.':>9}{'bound':>10}{'µs/round':>10}")
        for score in scores:
            bound = score.method.bound(n, rounds)
            promised = "-" if bound is None else f"{bound:,.0f}"
            print(
                f"{score.method.name:<28}{score.regret:>10,.1f}{score.error:>9.1f}{promised:>10}"
                f"{score.microseconds:>10,.0f}"
            )
    if draw is not None:
        draw.curves(args.output, f"Regret on the {args.comparison} sequence, n = {n}", scores)


def _facts(scores: list[Score], n: int) -> list[Header]:
    return [
        {
            "name": score.method.name,
            "regret": score.regret,
            "standard_error": score.error,
            "bound": score.method.bound(n, len(score.games[0].rewards)),
            "microseconds_per_round": score.microseconds,
        }
        for score in scores
    ]


def _table_1(args: argparse.Namespace, console: Console, draw: ModuleType | None) -> None:
    from sketchnewton.cli.pictures.eigen_games import growths_of_table_1

    last = args.rounds or (2000 if args.quick else 16_000)
    if last < 64:
        raise usage_error(f"--rounds {last}: table1 needs room to grow, at least 64")
    rounds = [last // 16, last // 4, last]
    sizes = [n for n in ((4, 8, 16) if args.quick else (4, 8, 16, 32)) if args.n is None or n <= args.n]
    seeds = args.seeds or (2 if args.quick else 10)
    if len(sizes) < 2:
        raise usage_error(f"--n {args.n}: table1 needs room to grow, at least 8")
    in_rounds, in_n = growths_of_table_1(
        rounds, sizes, seeds, lambda done, total: console.progress(done / total, f"{done} of {total} games")
    )
    console.clear()
    if args.json:
        import json

        both = {"rounds": in_rounds, "n": in_n}
        print(json.dumps({by: [_growth_facts(growth) for growth in growths] for by, growths in both.items()}))
    else:
        for line in table_1_lines(in_rounds, in_n):
            print(line)
    if draw is not None:
        draw.table_1(args.output, in_rounds, in_n)


def _growth_facts(growth: Growth) -> Header:
    return {
        "name": growth.method.name,
        "sequence": growth.sequence,
        "sizes": list(growth.sizes),
        "regrets": list(growth.regrets),
        "exponent": None if math.isnan(growth.exponent) else growth.exponent,
    }


def table_1_lines(in_rounds: list[Growth], in_n: list[Growth]) -> list[str]:
    """Table 1 of the paper with measured exponents: regret ~ T^a at n = 10, ~ n^b at a middle T."""
    T, n = in_rounds[0].sizes, in_n[0].sizes
    lines = [
        f"regret ~ T^a for T = {T[0]:,} to {T[-1]:,} at n = 10; ~ n^b for n = {n[0]} to {n[-1]} at T = {T[1]:,}",
        "alternating directions, but a stochastic sequence for the epoch power method; time at the largest n",
        "",
        f"{'':<27}{'paper: regret':<16}{'cost':<11}{'a':>6}{'b':>7}{'regret':>9}{'µs/round':>10}",
    ]
    for a, b in zip(in_rounds, in_n, strict=True):
        lines.append(
            f"{a.method.name:<27}{a.method.regret:<16}{a.method.cost:<11}{a.exponent:>6.2f}{b.exponent:>7.2f}"
            f"{a.regrets[-1]:>9,.0f}{b.microseconds:>10,.0f}"
        )
    return lines
