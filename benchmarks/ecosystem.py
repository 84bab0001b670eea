"""What the estimators cost beside scikit-learn's and River's own linear models, and how well they do untuned.

    python benchmarks/ecosystem.py            # speed: both sides in one run, ratios
    python benchmarks/ecosystem.py --accuracy # usps (if the file is given) and digits, one pass

Exits with 1 if a promise is broken. Needs the extra `river`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import threadpoolctl
from river import linear_model, optim
from sklearn.datasets import load_digits, load_svmlight_file
from sklearn.linear_model import SGDClassifier

from sketchnewton import SketchedNewtonClassifier
from sketchnewton.river import SketchedNewtonClassifier as RiverClassifier

broken: list[str] = []


def seconds(prepare: Callable[[], Callable[[], object]], repeats: int = 5) -> float:
    """The fastest of a few runs; what `prepare` does is not timed."""
    best = float("inf")
    for _ in range(repeats):
        run = prepare()
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def in_turn(prepare: dict[str, Callable[[], Callable[[], object]]], rounds: int = 5) -> dict[str, float]:
    """The fastest run of each; they take turns, so that a slow moment of the machine does not hit one alone."""
    best = dict.fromkeys(prepare, float("inf"))
    for _ in range(rounds):
        for name, one in prepare.items():
            best[name] = min(best[name], seconds(one, 1))
    return best


def promise(text: str, ratio: float, limit: float) -> None:
    kept = ratio <= limit
    print(f"  {text:<66}{ratio:8.2f}   at most {limit:g}   {'kept' if kept else 'BROKEN'}", flush=True)
    if not kept:
        broken.append(text)


def batches(X: np.ndarray, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, len(X), size)]


def sklearn_speed(settings: Sequence[dict[str, object]]) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 50))
    y = (X @ rng.standard_normal(50) + rng.standard_normal(100_000) > 0).astype(int)
    classes = np.array([0, 1])

    def started(make: Callable[[], object]) -> object:
        return make().partial_fit(X[:10], y[:10], classes=classes)

    def whole(make: Callable[[], object]) -> float:
        def prepare() -> Callable[[], object]:
            model = started(make)
            return lambda: model.partial_fit(X, y)

        return seconds(prepare)

    def split(make: Callable[[], object], size: int, rows: int) -> float:
        def prepare() -> Callable[[], object]:
            model = started(make)

            def run() -> None:
                for part in batches(X[:rows], size):
                    model.partial_fit(X[part], y[part])

            return run

        return seconds(prepare)

    sgd = SGDClassifier  # hinge loss, the quickest of its losses
    peer, peer_one = whole(sgd), split(sgd, 1, 200) / 200
    logistic = whole(lambda: SGDClassifier(loss="log_loss"))
    print(
        f"scikit-learn, 100,000 x 50 dense: SGDClassifier {1e3 * peer:.0f} ms, log_loss {1e3 * logistic:.0f} ms"
    )
    print(f"  its call of one row: {1e6 * peer_one:.0f} us")
    for setting in settings:
        ours = lambda setting=setting: SketchedNewtonClassifier(**setting)  # noqa: E731
        name = ", ".join(f"{key}={value}" for key, value in setting.items()) or "defaults"
        one = whole(ours)
        promise(f"{name}: one batch / SGDClassifier ({1e3 * one:.0f} ms)", one / peer, 3.0)
        promise(f"{name}: 100 batches of 1,000 / one batch", split(ours, 1000, 100_000) / one, 1.5)
        single = split(ours, 1, 2000) / 2000
        promise(f"{name}: call of one row / SGDClassifier's ({1e6 * single:.0f} us)", single / peer_one, 0.2)


def shared_speed() -> None:
    """Ten classes: one sketch for all of them against one for each."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 50))
    y = (X @ rng.standard_normal((50, 10))).argmax(axis=1)

    def prepare(kind: str) -> Callable[[], object]:
        model = SketchedNewtonClassifier(learner="newton", sketch="oja", multi_class_sketch=kind)
        return lambda: model.partial_fit(X, y, classes=range(10))

    costs = in_turn({kind: partial(prepare, kind) for kind in ("separate", "shared")})
    print(f"Ten classes, 20,000 x 50 dense: {1e3 * costs['separate']:.0f} ms")
    promise("one sketch for all classes / one for each", costs["shared"] / costs["separate"], 1.0)


def river_speed(settings: Sequence[dict[str, object]]) -> None:
    rng = random.Random(0)
    label = lambda: rng.random() > 0.5  # noqa: E731
    streams = {
        "50 features": [({f"f{i}": rng.random() for i in range(50)}, label()) for _ in range(4000)],
        "75 of 20,000 names": [
            ({f"w{rng.randrange(20_000)}": rng.random() for _ in range(75)}, label()) for _ in range(4000)
        ],
    }
    for title, rows in streams.items():

        def prepare(make: Callable[[], object], rows: list = rows) -> Callable[[], object]:  # type: ignore[type-arg]
            learn = make().learn_one

            def run() -> None:
                for x, y in rows:
                    learn(x, y)

            return run

        makers: dict[str, Callable[[], object]] = {
            "LogisticRegression": linear_model.LogisticRegression,
            "with AdaGrad": lambda: linear_model.LogisticRegression(optim.AdaGrad()),
        }
        for setting in settings:
            name = ", ".join(f"{key}={value}" for key, value in setting.items()) or "defaults"
            makers[name] = partial(RiverClassifier, **setting)
        costs = in_turn({name: partial(prepare, make) for name, make in makers.items()})
        each = {name: 1e6 * cost / len(rows) for name, cost in costs.items()}
        peer, adaptive = each.pop("LogisticRegression"), each.pop("with AdaGrad")
        print(f"River learn_one, {title}: LogisticRegression {peer:.1f} us, with AdaGrad {adaptive:.1f} us")
        for name, own in each.items():
            promise(f"{name}: ours / LogisticRegression ({own:.1f} us)", own / peer, 1.0)


def accuracy(usps: tuple[str, str] | None) -> None:
    """One pass with the defaults against one epoch of SGDClassifier with its best of five learning rates."""
    X, y = load_digits(return_X_y=True)
    sets = {"digits": (X[:1200], y[:1200], X[1200:], y[1200:])}
    if usps:
        (A, a), (B, b) = (load_svmlight_file(path, n_features=256) for path in usps)
        sets["usps"] = (A.toarray(), a, B.toarray(), b)
    for name, (A, a, B, b) in sets.items():
        scores: dict[str, list[float]] = {"ours": []}
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(len(a)) if seed else np.arange(len(a))
            ours = SketchedNewtonClassifier().partial_fit(A[order], a[order], classes=np.unique(a))
            scores["ours"].append(ours.score(B, b))
            for rate in ("optimal", 0.0001, 0.001, 0.01, 0.1):
                options = {} if rate == "optimal" else {"learning_rate": "constant", "eta0": rate}
                peer = SGDClassifier(random_state=seed, **options)
                peer.partial_fit(A[order], a[order], classes=np.unique(a))
                scores.setdefault(f"SGDClassifier, {rate}", []).append(peer.score(B, b))
        means = {key: float(np.mean(values)) for key, values in scores.items()}
        best = max((value, key) for key, value in means.items() if key != "ours")
        print(f"{name}: " + ", ".join(f"{key} {value:.4f}" for key, value in means.items()))
        promise(f"{name}: best SGDClassifier ({best[1].split(', ')[1]}) / ours", best[0] / means["ours"], 1.0)


def main() -> int:
    threadpoolctl.threadpool_limits(1)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accuracy", action="store_true", help="accuracy instead of speed")
    parser.add_argument("--usps", nargs=2, metavar=("TRAIN", "TEST"), help="svmlight files of usps")
    parser.add_argument(
        "--sketch", nargs="*", default=["oja", "rfd"], help="other sketches to time than the default"
    )
    args = parser.parse_args()
    if args.accuracy:
        accuracy(args.usps)
    else:
        settings = [{}, *({"learner": "newton", "sketch": sketch} for sketch in args.sketch)]
        sklearn_speed(settings)
        shared_speed()
        river_speed([*settings, {"hashing": 18}])
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
