"""Optimizers of PyTorch side by side: loss after one epoch, by steps and by time, and what a step costs.

Four tasks: a dense network (784-256-256-10) and a convolutional one on MNIST, a small character transformer on
the text of Python's own documentation topics, and a regression whose two sides are ill-conditioned. Every method
has the same number of learning rates to choose from, by the loss on held-out rows with six seeds; the table is of
others. Times are processor time per step, forward and backward included; `--times` also has the time of the
optimizer alone.

    python benchmarks/torch_optimizers.py --data ../shared/data --json losses.json [--seeds 3] [--only mlp cnn …]
    python benchmarks/torch_optimizers.py --data ../shared/data --times [--only mlp cnn …]
    python benchmarks/torch_optimizers.py --plot docs/torch-optimizers.png losses.json …

torch_paired.py compares the two best on convolutions, with more seeds.

SOAP takes part if the package pytorch-optimizer is installed. Muon multiplies in bfloat16: if PyTorch says
"could not create a primitive", as it does on some processors, set ONEDNN_MAX_CPU_ISA=AVX512_CORE.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.torch_tasks import Batch, Task, tasks

from sketchnewton.torch import AS_PUBLISHED, AdaFD, AdaGP, RadaGrad, SketchyShampoo, SketchySOAP

Make = Callable[[nn.Module, float], list[Any]]


def muon(model: nn.Module, lr: float) -> list[torch.optim.Optimizer]:
    """Muon is for matrices; what is none has AdamW."""
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    return [
        torch.optim.Muon(matrices, lr=lr, adjust_lr_fn="match_rms_adamw", weight_decay=0.0),
        torch.optim.AdamW(others, lr=lr),
    ]


def soap(model: nn.Module, lr: float) -> list[Any]:
    from pytorch_optimizer import SOAP

    return [SOAP(model.parameters(), lr=lr, weight_decay=0.0)]


# Each with its usual learning rate, its default where it has one that works, and the smallest of its grid, which
# is the same for all whose steps are as long as Adam's.
METHODS: dict[str, tuple[float, float, Make]] = {
    "SGD, momentum .9": (0.05, 0.025, lambda m, lr: [torch.optim.SGD(m.parameters(), lr=lr, momentum=0.9)]),
    "Adagrad": (0.01, 0.005, lambda m, lr: [torch.optim.Adagrad(m.parameters(), lr=lr)]),
    "Adam": (0.001, 0.001, lambda m, lr: [torch.optim.Adam(m.parameters(), lr=lr)]),
    "AdamW": (0.001, 0.001, lambda m, lr: [torch.optim.AdamW(m.parameters(), lr=lr)]),
    "Muon": (0.002, 0.001, muon),
    "SOAP": (0.003, 0.001, soap),
    "SketchyShampoo": (0.002, 0.001, lambda m, lr: [SketchyShampoo(m.parameters(), lr=lr)]),
    "SketchyShampoo, 64 every 3": (
        0.002,
        0.002,
        lambda m, lr: [SketchyShampoo(m.parameters(), lr=lr, sketch_size=64, update_every=3)],
    ),
    "SketchySOAP": (0.003, 0.001, lambda m, lr: [SketchySOAP(m.parameters(), lr=lr)]),
    "SketchySOAP, 64": (
        0.003,
        0.002,
        lambda m, lr: [SketchySOAP(m.parameters(), lr=lr, sketch_size=64)],
    ),
    "SketchySOAP, 16": (
        0.003,
        0.002,
        lambda m, lr: [SketchySOAP(m.parameters(), lr=lr, sketch_size=16)],
    ),
    "AdaGP": (0.002, 0.001, lambda m, lr: [AdaGP(m.parameters(), lr=lr)]),
    "AdaGP per output": (0.002, 0.001, lambda m, lr: [AdaGP(m.parameters(), lr=lr, per_output=True)]),
    "AdaGP per output, as published": (
        0.04,
        0.04,
        lambda m, lr: [AdaGP(m.parameters(), lr=lr, per_output=True, **AS_PUBLISHED)],
    ),
    "AdaFD": (0.002, 0.001, lambda m, lr: [AdaFD(m.parameters(), lr=lr)]),
    "RadaGrad": (0.002, 0.001, lambda m, lr: [RadaGrad(m.parameters(), lr=lr)]),
}
GRID = (1, 2, 4, 8)  # times the smallest
# A rate is chosen by the mean loss on held-out rows over these seeds: with two of them, noise chose.
CHOOSING = range(1000, 1006)
FIRST = 11  # the first of the seeds that are reported; none of them chose
if not hasattr(torch.optim, "Muon"):
    del METHODS["Muon"]
if not importlib.util.find_spec("pytorch_optimizer"):
    del METHODS["SOAP"]


def learn(
    task: Task, model: nn.Module, optimizers: list[Any], batch: torch.Tensor, clock: list[float] | None = None
) -> float:
    """One step; the loss before it. The time of the optimizers is added to the `clock`."""
    inputs, targets = task.train
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss = task.loss(model(inputs[batch]), targets[batch])
    loss.backward()
    start = time.process_time()
    for optimizer in optimizers:
        optimizer.step()
    if clock is not None:
        clock[0] += time.process_time() - start
    return float(loss.detach())


def train(
    task: Task, make: Make, lr: float, seed: int, judged: tuple[str, ...] = ("held_out", "test")
) -> dict[str, Any]:
    """One epoch: loss on the `judged` rows, the loss of every batch, processor milliseconds per step."""
    torch.manual_seed(seed)
    model = task.model()
    optimizers = make(model, lr)
    batches = torch.randperm(len(task.train[0])).split(task.batch)
    losses = []
    start = time.process_time()
    for batch in batches:
        losses.append(learn(task, model, optimizers, batch))
        if not losses[-1] < 1e6:
            return {**dict.fromkeys(judged, math.inf), "ms": math.nan, "losses": losses}
    milliseconds = 1000 * (time.process_time() - start) / len(batches)
    found = {rows: evaluate(task, model, getattr(task, rows)) for rows in judged}
    return {**found, "ms": milliseconds, "losses": losses}


@torch.no_grad()
def evaluate(task: Task, model: nn.Module, data: Batch) -> float:
    model.eval()
    inputs, targets = data
    parts = [
        task.loss(model(x), y) * len(x) for x, y in zip(inputs.split(500), targets.split(500), strict=True)
    ]
    return float(sum(parts)) / len(inputs)


def compare(
    task: Task, usual: float, smallest: float, make: Make, seeds: int, untuned: bool
) -> dict[str, Any]:
    """A method with its usual rate and with its best one: the same seeds for both, none of which chose it."""
    best = usual
    if not untuned:
        rates = [smallest * factor for factor in GRID]
        tried = {
            lr: [train(task, make, lr, seed, ("held_out",))["held_out"] for seed in CHOOSING] for lr in rates
        }
        best = min(rates, key=lambda lr: sum(tried[lr]))
    plain = [train(task, make, usual, seed) for seed in range(FIRST, FIRST + seeds)]
    tuned = (
        plain if best == usual else [train(task, make, best, seed) for seed in range(FIRST, FIRST + seeds)]
    )
    return {
        "default": [run["test"] for run in plain],
        "rate": best,
        "best": [run["test"] for run in tuned],
        "ms": min(run["ms"] for run in plain + tuned),
        "losses": np.mean([run["losses"] for run in tuned], axis=0).round(5).tolist(),
    }


def step_times(task: Task, methods: list[str], rounds: int = 12) -> dict[str, tuple[float, float, float]]:
    """Processor milliseconds of a step and of the optimizer in it, and megabytes of state.

    The methods take turns; the quickest turn counts.
    """
    runs = {}
    for method in methods:
        torch.manual_seed(0)
        model = task.model()
        usual, _, make = METHODS[method]
        runs[method] = model, make(model, usual)
    batches = torch.arange(len(task.train[0])).split(task.batch)
    whole, own = dict.fromkeys(methods, math.inf), dict.fromkeys(methods, math.inf)
    for _ in range(rounds):
        for method, (model, optimizers) in runs.items():
            start, clock = time.process_time(), [0.0]
            for batch in batches[:20]:  # twice as many as share an update of the sketches
                learn(task, model, optimizers, batch, clock)
            whole[method] = min(whole[method], 50 * (time.process_time() - start))
            own[method] = min(own[method], 50 * clock[0])
    return {m: (whole[m], own[m], _megabytes(optimizers)) for m, (_, optimizers) in runs.items()}


def _megabytes(optimizers: list[Any]) -> float:
    def size(value: Any) -> int:
        if isinstance(value, list | tuple):
            return sum(map(size, value))
        return value.numel() * value.itemsize if torch.is_tensor(value) else 0

    states = (state for optimizer in optimizers for state in optimizer.state.values())
    return sum(size(value) for state in states for value in state.values()) / 1e6


def plot(found: dict[str, dict[str, dict[str, Any]]], path: str) -> None:
    """Training loss with the rate of each, by steps and by time, as a running mean of a tenth of the epoch.

    A method has the same colour everywhere. Time ends at four times that of SketchyShampoo, if not before.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure  # the measurements do without

    shades = colormaps["tab20"].colors  # dark and pale in turn
    colours = dict(zip(METHODS, shades[::2] + shades[1::2], strict=False))
    figure = Figure(figsize=(13, 3.2 * len(found)), layout="constrained")
    axes = figure.subplots(len(found), 2, squeeze=False)
    for (name, methods), (left, right) in zip(found.items(), axes, strict=True):
        for method in filter(methods.get, METHODS):
            row = methods[method]
            losses = np.array(row["losses"])
            width = len(losses) // 10
            smooth = np.convolve(losses, np.full(width, 1 / width), "valid")
            steps = np.arange(width, len(losses) + 1)
            style = {
                "linewidth": 2.5 if method == "SketchyShampoo" else 1.2,
                "label": f"{method}, {row['rate']:g}",
                "color": colours[method],
            }
            left.plot(steps, smooth, **style)
            right.plot(steps * row["ms"] / 1000, smooth, **style)
        left.set(xlabel="steps", ylabel=f"{name}: training loss", yscale="log")
        right.set(xlabel="seconds of processor time", yscale="log")
        if ours := methods.get("SketchyShampoo"):
            longest = 4 * len(ours["losses"]) * ours["ms"] / 1000
            right.set_xlim(0, min(longest, right.get_xlim()[1]))
        right.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", default="../shared/data", help="folder that holds mnist/ with its idx files"
    )
    parser.add_argument("--rows", type=int, default=12800)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--untuned", action="store_true", help="only the usual learning rates")
    parser.add_argument("--batch", type=int, help="rows per step (default: the task's own)")
    parser.add_argument("--only", nargs="+", help="tasks (default: all)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--json", help="file for the figures; what it has is not measured again")
    parser.add_argument("--times", action="store_true", help="only what a step costs, methods taking turns")
    parser.add_argument(
        "--plot", nargs="+", metavar="FILE", help="a picture to draw, of these files of --json"
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.plot:
        read: dict[str, Any] = {}
        for file in args.plot[1:]:
            for name, rows in json.loads(Path(file).read_text()).items():
                chosen = {method: row for method, row in rows.items() if method in args.methods}
                read[name] = chosen | read.get(name, {})
        plot(read, args.plot[0])
        return
    found: dict[str, Any] = {}
    if args.json and Path(args.json).exists():
        found = json.loads(Path(args.json).read_text())
    for name, prepare in tasks(args.data, args.rows).items():
        if args.only and name not in args.only:
            continue
        task = prepare()
        task = task._replace(batch=args.batch or task.batch)
        if args.times:
            print(
                f"\n{name}, batches of {task.batch}: ms per step, of the optimizer, MB of state", flush=True
            )
            for method, (ms, own, megabytes) in step_times(task, args.methods).items():
                print(f"  {method:30} {ms:7.2f} {own:7.2f} {megabytes:8.2f}", flush=True)
            continue
        print(
            f"\n{name}: test loss with the default rate; best of {len(GRID)} rates; ms per step", flush=True
        )
        for method in args.methods:
            row = found.setdefault(name, {}).get(method)
            row = row or compare(task, *METHODS[method], args.seeds, args.untuned)
            found[name][method] = row
            shown = [f"{np.mean(row[key]):.4f} ± {np.std(row[key]):.4f}" for key in ("default", "best")]
            print(
                f"  {method:30} {shown[0]}   {shown[1]} at {row['rate']:<8.3g} {row['ms']:6.1f}", flush=True
            )
            if args.json:
                Path(args.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
