"""Is the default, untuned, as good as its tuned peers? 0/1 error of one pass over many data sets.

    python benchmarks/untuned.py [--held-out] [--half choosing|confirming] [--output untuned.png] [--json]

Progressive error; with --held-out, the error on a random third of the rows after one pass over the others, in
their order.

`NewtonBank()` with nothing set, against Vowpal Wabbit as it comes, with the best of ten `-l` in hindsight and
with `--coin`, and against our own AdaGrad and sketched Newton learners with the best of their settings in
hindsight (`untuned_peers.py` runs them once and keeps the results). A gap is the error minus the least of *all*
these runs. Files that are grouped by class are shuffled, as the notes that come with them ask for; text sets are
also run in the order of such files, for the text promises alone. Sets are in two halves (`untuned_data.py`):
choices were made on the first, and confirmed on the second.

The exit code is 1 if a promise about progressive error is broken, on the sets of the half that is asked for
(default: both): the mean gap is at most -0.002; at least 80% / 95% of the sets of 2,000 rows or more are not worse
than all tuned runs / Vowpal Wabbit tuned, 85% / 75% of all sets not worse than Vowpal Wabbit as it comes / tuned;
text is on average within 1% of Vowpal Wabbit tuned, and never worse by more than 5%.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from untuned_data import DATA, SETS
from untuned_peers import HELD_OUT, RESULTS, run_ours, split

from sketchnewton import NewtonBank

MEAN_GAP, LARGE, LARGE_WINS, LARGE_TUNED_WINS, DEFAULT_WINS, TUNED_WINS = -0.002, 2000, 0.80, 0.95, 0.85, 0.75
TEXT_MEAN, TEXT_WORST = 0.01, 0.05


@dataclass(frozen=True)
class Row:
    """One data set: the error of the bank, and those of its peers."""

    name: str
    half: str
    text: bool
    grouped: bool
    rows: int
    bank: float
    leader: str
    peers: dict[str, float]

    def best(self, *prefixes: str) -> float:
        return min(value for name, value in self.peers.items() if name.startswith(prefixes or ("",)))

    @property
    def gap(self) -> float:
        return self.bank - self.best()

    @property
    def excess(self) -> float:
        """How much worse than Vowpal Wabbit with its best -l, as a share."""
        tuned = self.best("vw -l")
        return (self.bank - tuned) / tuned if tuned > 0 else float(self.bank > 0)


def measure(name: str, peers: dict[str, float], held_out: bool) -> Row:
    X, y = SETS[name].load()
    cut = None
    if held_out:
        X, y, cut = split(X, y)
    learner = NewtonBank()
    wrong = run_ours(learner, X, y, cut)
    data = SETS[name]
    return Row(name, data.half, data.text, data.grouped, len(y), wrong, learner.leading_expert, peers)


def share(values: Iterable[bool]) -> float:
    values = list(values)
    return sum(values) / len(values) if values else float("nan")


def promises(rows: list[Row]) -> list[tuple[str, float, float, bool]]:
    """What is promised, what was measured, the limit, whether it was kept."""
    text = [row.excess for row in rows if row.text]
    rows = [row for row in rows if not row.grouped]
    large = [row for row in rows if row.rows >= LARGE]
    at_most = [
        ("mean gap to the best tuned run", statistics.mean(row.gap for row in rows), MEAN_GAP),
        ("text: mean excess over vw tuned", statistics.mean(text), TEXT_MEAN),
        ("text: largest excess over vw tuned", max(text), TEXT_WORST),
    ]
    at_least = [
        (f"sets of {LARGE}+ rows not above any tuned run", share(row.gap <= 0 for row in large), LARGE_WINS),
        (
            "sets not above vw default",
            share(row.bank <= row.best("vw default") for row in rows),
            DEFAULT_WINS,
        ),
        ("sets not above vw tuned", share(row.bank <= row.best("vw -l") for row in rows), TUNED_WINS),
        (
            f"sets of {LARGE}+ rows not above vw tuned",
            share(row.bank <= row.best("vw -l") for row in large),
            LARGE_TUNED_WINS,
        ),
    ]
    return [(*promise, promise[1] <= promise[2]) for promise in at_most] + [
        (*promise, promise[1] >= promise[2]) for promise in at_least
    ]


def show(rows: list[Row]) -> None:
    print(
        f"{'':<22}{'rows':>7}{'bank':>9}{'vw':>9}{'vw tuned':>9}{'--coin':>9}{'adagrad':>9}{'son':>9}{'gap':>9}"
        "  leading expert"
    )
    for half in ("choosing", "confirming"):
        part = [row for row in rows if row.half == half]
        if not part:
            continue
        print(f"-- {half}")
        for row in part:
            cells = (
                row.bank,
                row.best("vw default"),
                row.best("vw -l"),
                row.best("vw --coin"),
                row.best("adagrad"),
                row.best("son"),
            )
            print(
                f"{row.name:<22}{row.rows:>7}"
                + "".join(f"{cell:>9.4f}" for cell in cells)
                + f"{row.gap:>+9.4f}  {row.leader}"
            )
        gaps = [row.gap for row in part if not row.grouped]
        print(f"   mean gap {statistics.mean(gaps):+.4f}, median {statistics.median(gaps):+.4f}")


def draw(rows: list[Row], path: Path) -> None:
    import matplotlib  # only for the picture

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 0.24 * len(rows) + 1.2), layout="constrained")
    ordered = sorted(rows, key=lambda row: (row.half, -row.bank))
    for i, row in enumerate(ordered):
        axes.plot([row.best(), max(row.peers["vw default"], row.bank)], [i, i], color="0.85", lw=4, zorder=0)
    names = {"vw default": "vw", "vw -l": "vw, best of ten -l", "": "best of all tuned runs"}
    places = range(len(ordered))
    for prefix, marker in zip(names, ("x", "+", "|"), strict=True):
        axes.scatter([row.best(prefix) for row in ordered], places, marker=marker, label=names[prefix])
    axes.scatter([row.bank for row in ordered], places, s=18, color="k", label="NewtonBank(), untuned")
    axes.set_yticks(range(len(ordered)), [row.name for row in ordered], fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel("progressive error, one pass")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=["choosing", "confirming"], help="only these sets")
    parser.add_argument("--held-out", action="store_true", help="errors on rows that are not learned")
    parser.add_argument("--output", type=Path, help="draw a picture")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    args = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}")
    peers = json.loads((HELD_OUT if args.held_out else RESULTS).read_text())
    names = [name for name, data in SETS.items() if args.half in (None, data.half) and name in peers]
    rows = [measure(name, peers[name], args.held_out) for name in names]
    kept = promises(rows)
    if args.json:
        sets = {row.name: {"bank": row.bank, "gap": row.gap, "leader": row.leader} for row in rows}
        print(json.dumps({"sets": sets, "promises": [[*promise] for promise in kept]}))
    else:
        show(rows)
        for name, value, limit, good in kept:
            promise = "" if args.held_out else f" (promised: {limit:g}; {'kept' if good else 'BROKEN'})"
            print(f"{name}: {value:.4f}{promise}")
    if args.output:
        draw(rows, args.output)
    return int(not (args.held_out or all(good for *_, good in kept)))


if __name__ == "__main__":
    sys.exit(main())
