"""How much do shards lose that are merged? The default learner, merged, against one pass over all rows.

    python benchmarks/merging.py [--half choosing|confirming] [--sets NAME ...] [--rows N] [--orders N]
                                 [--output PNG] [--json FILE] [--read FILE ...]

Rows are shuffled; a third is held out, the rest is cut into k shards, which learn apart and are merged once, or
sixteen times with the merged learner as the next base (eight of them also in 2, 4 and 8 rounds). Squared loss and
0/1 error on the held-out rows, means of eight orders (elevation: squared loss in units of its variance): from one
order to the next the ratio of a set to one pass varies by up to .04. Beside it: one pass over all rows, the mean
of the shards alone, four shards of which one has random labels, and Vowpal Wabbit with its own merge of the same
shards; and how many errors the ratios of 0/1 errors are made of. Sets are in two halves (`untuned_data.py`); the
first chose the rule.

Needs the extra `bench`. The exit code is 1 if a promise is broken: sixteen rounds of eight shards within 3% of one
pass in squared loss on 90% of the sets of 5,000 rows or more, and within 1% in 0/1 error on average; one round
never worse than the mean shard; a shard with random labels among four costs at most 15% of error; in 90% of all
sets and numbers of shards not worse than Vowpal Wabbit's merge.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from untuned_data import DATA, SETS

from sketchnewton import NewtonBank
from sketchnewton.model.shards import warm_up_rows

Floats = NDArray[np.float64]
Rows = tuple[csr_array, Floats]
Score = tuple[float, float]  # squared loss, 0/1 error
SHARDS, ROUNDS, MIDDLE = (2, 4, 8, 16), 16, (2, 4, 8)
LARGE = 5000
CHOOSING = (
    *("a9a", "splice", "w1a", "cod-rna", "cod-rna, scaled", "mnist 4/9", "census"),
    *("rcv1, shuffled", "basehock, shuffled", "20news/1, shuffled", "20news/5, shuffled", "20news, 1 to 10"),
)
CONFIRMING = (
    *("mushrooms", "covtype, shuffled", "magic04", "magic04, scaled", "adult", "usps, even digits"),
    *("farm-ads, shuffled", "relathe, shuffled", "pcmac, shuffled"),
    *("20news/3, shuffled", "20news/7, shuffled", "20news, odd"),
)
ELEVATION = "elevation"


def names(half: str | None) -> list[str]:
    chosen, confirmed = list(CHOOSING), [*CONFIRMING, ELEVATION]
    return {"choosing": chosen, "confirming": confirmed}.get(half or "", chosen + confirmed)


def load(name: str, most: int) -> Rows:
    """Rows in random order, and their labels; not more than so many."""
    X, y = elevation() if name == ELEVATION else replace(SETS[name], shuffled=True).load()
    return X[:most], y[:most]


def elevation() -> Rows:
    """The first column of covtype from the others."""
    X, _ = SETS["covtype, shuffled"].load()
    first = X[:, [1]].toarray().ravel()  # svmlight counts from 1
    return csr_array(X[:, 2:]), (first - first.mean()) / first.std()


def score(predictions: Floats, y: Floats) -> Score:
    return float(np.mean((predictions - y) ** 2)), float(np.mean((predictions >= 0) != (y > 0)))


def cuts(rows: int, parts: int) -> list[slice]:
    edges = np.linspace(0, rows, parts + 1).astype(int)
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def learned(base: NewtonBank, rows: Rows) -> NewtonBank:
    learner = copy.deepcopy(base)
    if len(rows[1]):
        learner.learn(*rows)
    return learner


def shards_of(rows: Rows, k: int) -> list[Rows]:
    return [(rows[0][part], rows[1][part]) for part in cuts(len(rows[1]), k)]


def merged(shards: Sequence[NewtonBank], base: NewtonBank) -> NewtonBank:
    first, *others = shards
    return copy.deepcopy(first).merge(*others, base=base)


def in_rounds(rows: Rows, k: int, rounds: int) -> NewtonBank:
    """As `skn train --shards`, Dask and Spark do: first rows of all shards are learned before the first round."""
    base = NewtonBank()
    first = warm_up_rows(base, k, rounds)
    for turn, part in enumerate(shards_of(rows, rounds)):
        parts = shards_of(part, k)
        if turn == 0:
            for X, y in parts:
                base = learned(base, (X[:first], y[:first]))
            parts = [(X[first:], y[first:]) for X, y in parts]
        apart = [learned(base, shard) for shard in parts if len(shard[1])]
        base = merged(apart, base) if apart else base
    return base


def measure(X: csr_array, y: Floats, order: int) -> Iterator[tuple[str, Score]]:
    """What each way of learning gives on the held-out third."""
    at = np.random.default_rng(order).permutation(len(y))
    X, y = X[at], y[at]
    training = 2 * len(y) // 3
    train, (held, answers) = (X[:training], y[:training]), (X[training:], y[training:])

    def tested(learner: NewtonBank) -> Score:
        return score(learner.predict(held), answers)

    fresh = NewtonBank()
    yield "serial", tested(learned(fresh, train))
    for k in SHARDS:
        apart = [learned(fresh, shard) for shard in shards_of(train, k)]
        alone = np.mean([tested(shard) for shard in apart], axis=0)
        yield f"shard {k}", (float(alone[0]), float(alone[1]))
        yield f"once {k}", tested(merged(apart, fresh))
        yield f"rounds {k}", tested(in_rounds(train, k, ROUNDS))
        if k == 4:
            noise = train[1].copy()
            first = cuts(training, 4)[0]
            noise[first] = np.random.default_rng(order).permutation(noise[first])
            bad = learned(fresh, (train[0][first], noise[first]))
            yield "noise 4", tested(merged([bad, *apart[1:]], fresh))
    for rounds in MIDDLE:
        yield f"8 in {rounds}", tested(in_rounds(train, 8, rounds))
    yield from with_vw(train, held, answers)


def with_vw(train: Rows, held: csr_array, answers: Floats) -> Iterator[tuple[str, Score]]:
    from vowpalwabbit import Workspace, merge_models

    texts, test = vw_rows(*train), vw_rows(held, None)

    def taught(rows: list[str]) -> Any:
        model = Workspace(quiet=True)
        for row in rows:
            model.learn(row)
        return model

    def tested(model: Any) -> Score:
        return score(np.array([model.predict(row) for row in test]), answers)

    yield "vw serial", tested(taught(texts))
    for k in SHARDS:
        models = [taught(texts[part]) for part in cuts(len(texts), k)]
        yield f"vw {k}", tested(merge_models(None, models))


def vw_rows(X: csr_array, y: Floats | None) -> list[str]:
    rows = []
    for r in range(X.shape[0]):
        part = slice(X.indptr[r], X.indptr[r + 1])
        features = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
        label = "" if y is None else f"{y[r]:.9g} "
        rows.append(f"{label}| {' '.join(f'{i}:{v:.9g}' for i, v in features)}")
    return rows


def mean(name: str, rows: int, orders: int) -> dict[str, Any]:
    """All scores of a set, means of the orders, and its number of rows."""
    X, y = load(name, rows)
    runs = [dict(measure(X, y, order)) for order in range(orders)]
    means = {key: np.mean([run[key] for run in runs], axis=0).tolist() for key in runs[0]}
    return {"rows": len(y), "orders": orders, **means}


def promises(sets: dict[str, dict[str, Any]]) -> Iterator[tuple[str, float, float, bool]]:
    """What is promised: its name, the number measured, the limit, whether it is kept."""
    classes = {name: its for name, its in sets.items() if name != ELEVATION}
    large = [its for its in sets.values() if its["rows"] >= LARGE]
    if large:
        close = np.mean([its["rounds 8"][0] <= 1.03 * its["serial"][0] for its in large])
        yield (
            "sets of 5,000 rows within 3% of one pass in squared loss, 16 rounds of 8",
            close,
            0.9,
            close >= 0.9,
        )
    error = excess_errors(classes)[0]
    yield "excess 0/1 error over one pass, mean, 16 rounds of 8", error, 0.01, error <= 0.01
    for number, what in enumerate(("squared loss", "0/1 error")):
        of = sets if number == 0 else classes
        worst = max(
            its[f"once {k}"][number] / max(its[f"shard {k}"][number], 1e-12)
            for its in of.values()
            for k in SHARDS
        )
        yield f"one round against the mean shard, worst, {what}", worst, 1.0, worst <= 1.0
    costs = [its["noise 4"][1] / max(its["once 4"][1], 1e-12) - 1 for its in classes.values()]
    yield (
        "cost of random labels in one of four shards, mean",
        float(np.mean(costs)),
        0.15,
        np.mean(costs) <= 0.15,
    )
    wins = np.mean([not_worse(its, name, k) for name, its in sets.items() for k in SHARDS])
    yield "sets and numbers of shards not worse than Vowpal Wabbit's merge", wins, 0.9, wins >= 0.9


def excess_errors(classes: dict[str, dict[str, Any]]) -> tuple[float, float]:
    """By how much sixteen rounds of eight shards err more than one pass: the mean of ratios, the ratio of means.

    A set with a handful of errors decides the first, those with the most errors the second.
    """
    pairs = np.array([(its["rounds 8"][1], its["serial"][1]) for its in classes.values()])
    pairs = pairs[pairs[:, 1] > 0]
    return float(np.mean(pairs[:, 0] / pairs[:, 1])) - 1, float(pairs[:, 0].sum() / pairs[:, 1].sum()) - 1


def count_errors(sets: dict[str, dict[str, Any]]) -> None:
    """How many errors these ratios are made of, fewest first."""
    classes = {name: its for name, its in sets.items() if name != ELEVATION}
    print(f"{'0/1 errors in all orders':<30}{'rows':>9}{'one pass':>10}{'rounds 8':>10}{'ratio':>8}")
    for name, its in sorted(classes.items(), key=lambda pair: errors(pair[1], "serial")):
        one, many = errors(its, "serial"), errors(its, "rounds 8")
        ratio = many / one if one else float("nan")
        print(f"{name:<30}{held_out(its):>9}{one:>10}{many:>10}{ratio:>8.3f}")
    ratios, sums = excess_errors(classes)
    print(f"excess: {100 * ratios:.2f}% as the mean of ratios, {100 * sums:.2f}% as the ratio of means")


def held_out(its: dict[str, Any]) -> int:
    rows = int(its["rows"])
    return int(its.get("orders", 1)) * (rows - 2 * rows // 3)


def errors(its: dict[str, Any], key: str) -> int:
    return round(held_out(its) * its[key][1])


def not_worse(its: dict[str, Any], name: str, k: int) -> bool:
    number = 0 if name == ELEVATION else 1
    return bool(its[f"once {k}"][number] <= its[f"vw {k}"][number])


def show(sets: dict[str, dict[str, Any]]) -> None:
    columns = ["serial", *(f"{kind} {k}" for kind in ("shard", "once", "rounds") for k in SHARDS), "noise 4"]
    columns += ["vw serial", *(f"vw {k}" for k in SHARDS)]
    for number, what in enumerate(("squared loss", "0/1 error")):
        print(
            f"{what:<20}{'rows':>6}"
            + "".join(f"{column.replace('serial', 'one pass'):>10}" for column in columns)
        )
        for name, its in sets.items():
            print(
                f"{name:<20}{its['rows']:>6}" + "".join(f"{its[column][number]:>10.4f}" for column in columns)
            )


def draw(sets: dict[str, dict[str, Any]], path: Path) -> None:
    import matplotlib  # only for the picture

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
    kinds = {
        "shard": ("0.6", "a shard alone"),
        "vw": ("C1", "Vowpal Wabbit, merged once"),
        "once": ("C0", "merged once"),
        "rounds": ("k", "merged sixteen times"),
    }
    for number, axis in enumerate(axes[:2]):
        for kind, (color, label) in kinds.items():
            curve(axis, sets, SHARDS, [f"{kind} {k}" for k in SHARDS], number, color, label)
        axis.set_xlabel("shards")
        axis.set_title(("squared loss", "0/1 error")[number] + " ÷ that of one pass", fontsize=10)
    rounds = (1, *MIDDLE, ROUNDS)
    keys = ["once 8", *(f"8 in {r}" for r in MIDDLE), "rounds 8"]
    for number, color in enumerate(("k", "C2")):
        curve(axes[2], sets, rounds, keys, number, color, ("squared loss", "0/1 error")[number])
    axes[2].set_xlabel("rounds")
    axes[2].set_title("eight shards ÷ one pass", fontsize=10)
    for axis in (axes[0], axes[2]):
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def curve(
    axis: Any,
    sets: dict[str, dict[str, Any]],
    x: Sequence[int],
    keys: Sequence[str],
    number: int,
    color: str,
    label: str,
) -> None:
    """The median of all sets, and the middle half of them."""
    of = [its for name, its in sets.items() if number == 0 or name != ELEVATION]
    of = [its for its in of if its["serial"][number] > 0]
    ratios = np.array([[its[key][number] / its["serial"][number] for key in keys] for its in of])
    axis.plot(x, np.median(ratios, axis=0), "o-", color=color, label=label)
    axis.fill_between(x, *np.quantile(ratios, (0.25, 0.75), axis=0), color=color, alpha=0.15, lw=0)
    axis.axhline(1, color="0.8", lw=1, zorder=0)
    axis.set_xscale("log", base=2)
    axis.set_xticks(x, [str(value) for value in x])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=["choosing", "confirming"], help="only these sets")
    parser.add_argument("--sets", nargs="*", help="only these")
    parser.add_argument("--rows", type=int, default=20_000, help="of a set at most (default %(default)s)")
    parser.add_argument("--orders", type=int, default=8, help="of the rows (default %(default)s)")
    parser.add_argument("--read", type=Path, nargs="*", help="take numbers from such files: measure nothing")
    parser.add_argument("--output", type=Path, help="draw a picture")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    args = parser.parse_args()
    if not DATA.is_dir() and not args.read:
        raise SystemExit(f"no data at {DATA}")
    sets: dict[str, dict[str, Any]] = {}
    for path in args.read or ():
        sets |= json.loads(path.read_text())
    for name in [] if args.read else args.sets or names(args.half):
        sets[name] = mean(name, args.rows, args.orders)
        if args.json:
            args.json.write_text(json.dumps(sets, indent=1))
    show(sets)
    count_errors(sets)
    kept = list(promises(sets))
    for what, value, limit, good in kept:
        print(f"{'kept' if good else 'BROKEN':<8}{what}: {value:.4f} (promised: {limit:g})")
    if args.output:
        draw(sets, args.output)
    return int(not all(good for *_, good in kept))


if __name__ == "__main__":
    sys.exit(main())
