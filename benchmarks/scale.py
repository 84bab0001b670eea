"""A click log of ten million rows: speed, memory and error over time, beside Vowpal Wabbit on its first rows.

    python benchmarks/scale.py [--rows 10000000] [--prefix 1000000] [--river 100000] [--repeat 3]
                               [--picture scale.png] [--json]

Needs the extra `bench`, for the picture `plot`. Rows are generated as they are needed: 40 categorical columns of
10 to 2·10⁶ names, whose popularity follows Zipf's law, hashed to 2²⁴ features; labels are drawn from a logistic
model whose weights turn slowly. So the log has no end, and none of it needs to be kept.

* The whole log goes through `skn train -` by a pipe, while the memory of that process is watched.
* The first rows are written to a file, which `skn train` and `vw` read in turns; Vowpal Wabbit with each of some
  learning rates, of which the best counts, though it was chosen after the fact. The same rows as Parquet, if
  pyarrow is there.
* If River is there, its logistic regression learns even fewer rows, with each of some optimizers. Its rows are
  dicts that are ready: only `predict_proba_one` and `learn_one` are timed.

The exit code is 1 if a promise is broken: memory grows by at most 10% in the second half, the error on the first
rows is at most that of Vowpal Wabbit at its best rate, and the default learner is at least three times as fast.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

COLUMNS, BITS, CHUNK = 40, 24, 50_000
TURN = 20_000_000  # rows in which the weights turn once
RATES = (0.25, 0.5, 1.0, 2.0)
PIECE = 5_000  # rows for River that are in memory at once
GROWTH, SPEEDUP = 1.1, 3.0
SIZES = np.geomspace(10, 2_000_000, COLUMNS).astype(np.int64)
SKN = str(Path(sysconfig.get_path("scripts")) / "skn")
_ALPHABET = np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", np.uint8)
_KNOWN = 2_000  # names of each column that decide the label


class ClickLog:
    """Rows by number: the same seed gives the same log."""

    def __init__(self, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self._seed = seed
        self._weights = random.standard_normal((2, COLUMNS, _KNOWN)) / np.sqrt(COLUMNS / 6)
        tags = np.array([[97 + c // 26, 97 + c % 26] for c in range(COLUMNS)], np.uint8)
        self._line = np.full((CHUNK, 5 + 8 * COLUMNS), ord(" "), np.uint8)
        self._line[:, 3], self._line[:, -1] = ord("|"), ord("\n")
        for column in range(COLUMNS):
            self._line[:, 5 + 8 * column : 7 + 8 * column] = tags[column]

    def ranks(self, chunk: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The names of a chunk's rows, by popularity, and which rows were clicked."""
        random = np.random.default_rng((self._seed, chunk))
        # Log-uniform numbers rounded down have Zipf's law: P(k) is about 1/k.
        ranks = np.exp(random.random((CHUNK, COLUMNS)) * np.log(SIZES)).astype(np.int64)
        angle = 2 * np.pi * chunk * CHUNK / TURN
        weights = np.cos(angle) * self._weights[0] + np.sin(angle) * self._weights[1]
        known = np.minimum(ranks, _KNOWN - 1)
        score = (weights[np.arange(COLUMNS), known] * (ranks < _KNOWN)).sum(axis=1)
        return ranks, random.random(CHUNK) < 1 / (1 + np.exp(-score))

    def text(self, chunk: int) -> tuple[bytes, npt.NDArray[np.bool_]]:
        """The chunk as VW text, and its labels."""
        ranks, clicked = self.ranks(chunk)
        self._line[:, 0] = np.where(clicked, ord(" "), ord("-"))
        self._line[:, 1] = ord("1")
        for digit in range(5):
            self._line[:, 7 + digit : -1 : 8] = _ALPHABET[(ranks >> 5 * (4 - digit)) & 31]
        return self._line.tobytes(), clicked


def stream(rows: int, log: ClickLog) -> dict[str, object]:
    """Everything through a pipe, with the memory of the process over time."""
    with tempfile.TemporaryDirectory() as folder:
        command = [SKN, "train", "-", "--format", "vw", "--bits", str(BITS), "--loss", "logistic"]
        start = time.perf_counter()
        process = subprocess.Popen(
            [*command, "--model", f"{folder}/model.skn"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stderr is not None
        told: list[bytes] = []
        listener = threading.Thread(target=told.extend, args=(process.stderr,))
        listener.start()
        memory = []
        waited = 0.0
        for chunk in range(rows // CHUNK):
            text, _ = log.text(chunk)
            begun = time.perf_counter()
            process.stdin.write(text)
            waited += time.perf_counter() - begun
            memory.append([(chunk + 1) * CHUNK, _resident(process.pid)])
        process.stdin.close()
        code = process.wait()
        listener.join()
        seconds = time.perf_counter() - start
    if code:
        raise SystemExit(b"".join(told).decode())
    return {
        "rows": rows,
        "seconds": seconds,
        "waited": waited,  # the rest was spent on making rows
        "memory": memory,
        "progress": list(_progress(told)),
    }


def _progress(told: list[bytes]) -> Iterator[list[float]]:
    """Rows and mean loss so far, from the table that `skn train` prints."""
    for line in told:
        words = line.decode().replace(",", "").split()
        if len(words) > 4 and words[0].isdigit() and words[1] != "rows":
            yield [float(words[0]), float(words[1])]


def _resident(process: int) -> float:
    """Megabytes."""
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def compare(
    rows: int, few: int, repeat: int, log: ClickLog, folder: Path
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Seconds and progressive error of each contender on the first rows, and its error on the first `few`."""
    data = folder / "log.vw"
    labels = []
    with data.open("wb") as file:
        for chunk in range(rows // CHUNK):
            text, clicked = log.text(chunk)
            file.write(text)
            labels.append(clicked)
    clicked = np.concatenate(labels)
    vw = [sys.executable, "-m", "vowpalwabbit", "--quiet", "-b", str(BITS), "--loss_function", "logistic"]
    skn = [
        SKN,
        "train",
        "--quiet",
        "--loss",
        "logistic",
        "--bits",
        str(BITS),
        "--model",
        str(folder / "model.skn"),
    ]
    contenders = {
        "skn": [*skn, str(data)],
        "skn --sketch oja": [*skn, str(data), "--sketch", "oja"],
        **{
            f"vw -l {rate:g}": [*vw, "-l", str(rate), "-d", str(data), "-f", str(folder / "m")]
            for rate in RATES
        },
    }
    if (table := _parquet(rows, log, folder)) is not None:
        contenders["skn, Parquet"] = [*skn, str(table)]
    found: dict[str, dict[str, float]] = {}
    early: dict[str, dict[str, float]] = {}
    for name, command in contenders.items():
        output = folder / "predictions"
        option = "-p" if name.startswith("vw") else "--predictions"
        subprocess.run([*command, option, str(output)], check=True)
        scores = np.loadtxt(output)
        found[name], early[name] = judged(scores, clicked), judged(scores[:few], clicked[:few])
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(repeat):
        for place in range(len(contenders)):
            name = list(contenders)[(turn + place) % len(contenders)]
            start = time.perf_counter()
            subprocess.run(contenders[name], check=True)
            seconds[name].append(time.perf_counter() - start)
    for name, times in seconds.items():
        found[name]["seconds"] = statistics.median(times)
    return found, early


def judged(scores: npt.NDArray[np.float64], clicked: npt.NDArray[np.bool_]) -> dict[str, float]:
    """Error and mean loss of scores, each made before its row was learned."""
    # Scores that leave no doubt would make the loss that of a single row.
    loss = np.logaddexp(0, np.where(clicked, -1, 1) * np.clip(scores, -50, 50)).mean()
    return {"error": float(((scores >= 0) != clicked).mean()), "loss": float(loss)}


def river(rows: int, log: ClickLog) -> dict[str, dict[str, float]]:
    """Seconds, error and loss of River's logistic regression on the first rows."""
    try:
        from river import linear_model, optim
    except ModuleNotFoundError:
        return {}
    optimizers = {
        "SGD 0.01, its default": optim.SGD(0.01),
        "SGD 0.1": optim.SGD(0.1),
        "AdaGrad 0.1": optim.AdaGrad(0.1),
        "FTRLProximal": optim.FTRLProximal(),
    }
    found = {}
    for name, optimizer in optimizers.items():
        model = linear_model.LogisticRegression(optimizer)
        seconds, scores, labels = 0.0, [], []
        for records, clicked in _records(rows, log):
            start = time.perf_counter()
            for record, label in zip(records, clicked, strict=True):
                scores.append(model.predict_proba_one(record)[True])
                model.learn_one(record, label)
            seconds += time.perf_counter() - start
            labels += clicked
        odds = np.clip(scores, 1e-15, 1 - 1e-15)
        found[f"river, {name}"] = {
            **judged(np.log(odds / (1 - odds)), np.array(labels)),
            "seconds": seconds,
        }
    return found


def _records(rows: int, log: ClickLog) -> Iterator[tuple[list[dict[str, float]], list[bool]]]:
    """The first rows as dicts, and whether they were clicked, a piece at a time."""
    for chunk in range(-(-rows // CHUNK)):
        ranks, clicked = log.ranks(chunk)
        for begin in range(0, min(CHUNK, rows - chunk * CHUNK), PIECE):
            end = min(begin + PIECE, rows - chunk * CHUNK)
            records = [
                {f"{column}:{rank}": 1.0 for column, rank in enumerate(row)}
                for row in ranks[begin:end].tolist()
            ]
            yield records, clicked[begin:end].tolist()


def _parquet(rows: int, log: ClickLog, folder: Path) -> Path | None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError:
        return None
    path, writer = folder / "log.parquet", None
    for chunk in range(rows // CHUNK):
        ranks, clicked = log.ranks(chunk)
        names = [pa.array(column).cast(pa.string()) for column in ranks.T]
        table = pa.table(
            [*names, np.where(clicked, 1.0, -1.0)], [*(f"c{c}" for c in range(COLUMNS)), "label"]
        )
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return path


def draw(whole: dict[str, object], picture: str) -> None:
    """Mean loss and memory over rows."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (loss, memory) = pyplot.subplots(2, 1, sharex=True, figsize=(7, 5), layout="constrained")
    loss.plot(*np.array(whole["progress"]).T, marker="o")
    loss.set(ylabel="mean loss so far", title="skn train - on a click log")
    memory.plot(*np.array(whole["memory"]).T)
    memory.set(ylabel="memory, MB", xlabel="rows", ylim=(0, None))
    figure.savefig(picture, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the whole log")
    parser.add_argument("--prefix", type=int, default=1_000_000, help="rows of the comparison")
    parser.add_argument("--river", type=int, default=100_000, help="rows that River learns, too")
    parser.add_argument("--repeat", type=int, default=3, help="times that each contender is run")
    parser.add_argument("--picture", metavar="FILE", help="draw error and memory over time")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    args = parser.parse_args()
    log = ClickLog()
    with tempfile.TemporaryDirectory() as folder:
        found, early = compare(args.prefix, args.river, args.repeat, log, Path(folder))
    rivals = river(args.river, log)
    whole = stream(args.rows, log)
    if args.picture:
        draw(whole, args.picture)
    sizes = [size for _, size in whole["memory"]]  # type: ignore[attr-defined]
    growth = max(sizes) / sizes[len(sizes) // 2]
    tuned = min((name for name in found if name.startswith("vw")), key=lambda name: found[name]["loss"])
    promises = [
        ("memory in the second half, relative to its beginning", growth <= GROWTH, growth, GROWTH),
        *(
            (f"{what} relative to {tuned}", ratio <= 1.0, ratio, 1.0)
            for what in ("loss", "error")
            for ratio in [found["skn"][what] / found[tuned][what]]
        ),
        (
            "speed relative to it",
            found[tuned]["seconds"] / found["skn"]["seconds"] >= SPEEDUP,
            found[tuned]["seconds"] / found["skn"]["seconds"],
            SPEEDUP,
        ),
    ]
    if args.json:
        everything = {"prefix": found, "early": early, "river": rivals, "whole": whole, "promises": promises}
        print(json.dumps(everything))
        return int(not all(kept for _, kept, *_ in promises))
    print(f"first {args.prefix:,} rows, medians of {args.repeat}")
    for name, its in found.items():
        print(f"  {name:<18}{its['seconds']:7.2f} s  loss {its['loss']:.4f}  error {its['error']:.2%}")
    print(f"first {args.river:,} rows, microseconds each; River's without making its dicts, one run")
    for name, its in (early | rivals).items():
        micros = its["seconds"] / args.river if name in rivals else found[name]["seconds"] / args.prefix
        print(f"  {name:<30}{1e6 * micros:7.2f}  loss {its['loss']:.4f}  error {its['error']:.2%}")
    rate = args.rows / float(whole["seconds"])  # type: ignore[arg-type]
    print(
        f"{args.rows:,} rows through a pipe: {rate:,.0f} rows/s, of which the pipe was full for "
        f"{whole['waited'] / whole['seconds']:.0%}; memory {sizes[-1]:,.0f} MB"
    )  # type: ignore[operator]
    for name, kept, value, limit in promises:
        print(f"{'kept' if kept else 'BROKEN':<8}{name}: {value:.2f} (promised: {limit:g})")
    return int(not all(kept for _, kept, *_ in promises))


if __name__ == "__main__":
    sys.exit(main())
