"""Optimizers of PyTorch side by side: test loss after one epoch, and what a step costs.

Three networks that a laptop trains in seconds: a dense one (784-256-256-10) and a convolutional one on MNIST, a
small character transformer on the text of Python's own documentation topics; and a regression whose two sides are
ill-conditioned. Every method has the same number of learning rates to choose from, by the loss on held-out rows
with seed 0; the table is of other seeds. Times are processor time per step, forward and backward included.

    python benchmarks/torch_optimizers.py --data ../shared/data [--seeds 3] [--only mlp cnn transformer regression]
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1]))

from experiments.ada.idx import read_mnist

from sketchnewton.torch import AdaFD, AdaGP, RadaGrad, SketchyShampoo, auto_groups

Batch = tuple[torch.Tensor, torch.Tensor]
RATES = (0.25, 0.5, 1.0, 2.0, 4.0)  # times a method's usual one


class Task(NamedTuple):
    model: Callable[[], nn.Module]
    train: Batch
    held_out: Batch
    test: Batch
    batch: int
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def muon(model: nn.Module, lr: float) -> list[torch.optim.Optimizer]:
    """Muon is for matrices; what is none has AdamW."""
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    return [
        torch.optim.Muon(matrices, lr=lr, adjust_lr_fn="match_rms_adamw", weight_decay=0.0),
        torch.optim.AdamW(others, lr=lr),
    ]


# Each with the learning rate around which its grid lies: its default, where it has one that works.
METHODS: dict[str, tuple[float, Callable[[nn.Module, float], list[Any]]]] = {
    "SGD, momentum .9": (0.05, lambda m, lr: [torch.optim.SGD(m.parameters(), lr=lr, momentum=0.9)]),
    "Adagrad": (0.01, lambda m, lr: [torch.optim.Adagrad(m.parameters(), lr=lr)]),
    "Adam": (0.001, lambda m, lr: [torch.optim.Adam(m.parameters(), lr=lr)]),
    "AdamW": (0.001, lambda m, lr: [torch.optim.AdamW(m.parameters(), lr=lr)]),
    "Muon": (0.002, muon),
    "SketchyShampoo": (0.002, lambda m, lr: [SketchyShampoo(m.parameters(), lr=lr)]),
    "AdaGP": (0.002, lambda m, lr: [AdaGP(m.parameters(), lr=lr)]),
    "AdaGP, automatic groups": (0.002, lambda m, lr: [AdaGP(auto_groups(m), lr=lr)]),
    "AdaFD": (0.002, lambda m, lr: [AdaFD(m.parameters(), lr=lr)]),
    "RadaGrad": (0.002, lambda m, lr: [RadaGrad(m.parameters(), lr=lr)]),
}
if not hasattr(torch.optim, "Muon"):
    del METHODS["Muon"]


def train(
    task: Task, make: Callable[[nn.Module, float], list[Any]], lr: float, seed: int
) -> dict[str, float]:
    """One epoch: loss on held-out and on test rows, and processor milliseconds per step."""
    torch.manual_seed(seed)
    model = task.model()
    optimizers = make(model, lr)
    inputs, targets = task.train
    batches = torch.randperm(len(inputs)).split(task.batch)
    start = time.process_time()
    for batch in batches:
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = task.loss(model(inputs[batch]), targets[batch])
        if not math.isfinite(loss.item()):
            return {"held_out": math.inf, "test": math.inf, "ms": math.nan}
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    milliseconds = 1000 * (time.process_time() - start) / len(batches)
    return {
        "held_out": evaluate(task, model, task.held_out),
        "test": evaluate(task, model, task.test),
        "ms": milliseconds,
    }


@torch.no_grad()
def evaluate(task: Task, model: nn.Module, data: Batch) -> float:
    model.eval()
    inputs, targets = data
    parts = [
        task.loss(model(x), y) * len(x) for x, y in zip(inputs.split(500), targets.split(500), strict=True)
    ]
    return float(sum(parts)) / len(inputs)


# -- tasks


def mnist(folder: str, rows: int, model: Callable[[], nn.Module]) -> Task:
    images, labels = (torch.from_numpy(array) for array in read_mnist(Path(folder) / "mnist", "train"))
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(images)))
    test = [torch.from_numpy(array[:5000]) for array in read_mnist(Path(folder) / "mnist", "t10k")]

    def scaled(images: torch.Tensor, labels: torch.Tensor) -> Batch:
        return images[:, None].float() / 255, labels.long()

    chosen, held_out = order[:rows], order[-2000:]
    return Task(
        model,
        scaled(images[chosen], labels[chosen]),
        scaled(images[held_out], labels[held_out]),
        scaled(*test),
        64,
        nn.functional.cross_entropy,
    )


def dense_network() -> nn.Module:
    sizes = (nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    return nn.Sequential(nn.Flatten(), *sizes)


def convolutional_network() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(800, 64), nn.ReLU(), nn.Linear(64, 10)),
    )


class Transformer(nn.Module):
    """Two layers that look back; the next character of each of 64."""

    width, length = 64, 64

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(characters, self.width)
        self.places = nn.Parameter(0.02 * torch.randn(self.length, self.width))
        layer = nn.TransformerEncoderLayer(
            self.width, 4, 4 * self.width, 0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(self.width, characters)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(self.length))

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        hidden = self.layers(self.characters(text) + self.places, mask=self.mask, is_causal=True)
        return self.out(hidden).flatten(0, 1)


def characters(rows: int) -> Task:
    topics = importlib.import_module("pydoc_data.topics").topics
    text = "".join(topics[name] for name in sorted(topics))
    alphabet = sorted(set(text))
    codes = torch.tensor([alphabet.index(c) for c in text])
    windows = codes[: len(codes) // 65 * 65].view(-1, 65)
    windows = windows[torch.from_numpy(np.random.default_rng(0).permutation(len(windows)))]

    def pairs(part: torch.Tensor) -> Batch:
        return part[:, :-1], part[:, 1:]

    return Task(
        lambda: Transformer(len(alphabet)),
        pairs(windows[:rows]),
        pairs(windows[-1000:-500]),
        pairs(windows[-500:]),
        32,
        lambda scores, targets: nn.functional.cross_entropy(scores, targets.flatten()),
    )


def regression(rows: int) -> Task:
    """y = Wx with correlated x and outputs of unlike scales."""
    random = torch.Generator().manual_seed(0)
    mix = torch.linalg.qr(torch.randn(50, 50, generator=random))[0] * torch.logspace(0, -2, 50)
    W = torch.randn(20, 50, generator=random) @ torch.linalg.inv(mix) * torch.logspace(0, -2, 20)[:, None]
    X = torch.randn(rows + 4000, 50, generator=random) @ mix.T
    Y = X @ W.T + 0.01 * torch.randn(len(X), 20, generator=random)
    parts = [(X[a:b], Y[a:b]) for a, b in ((0, rows), (rows, rows + 2000), (rows + 2000, rows + 4000))]
    return Task(lambda: nn.Linear(50, 20), *parts, 32, nn.functional.mse_loss)


def tasks(folder: str, rows: int) -> dict[str, Callable[[], Task]]:
    return {
        "mlp": lambda: mnist(folder, rows, dense_network),
        "cnn": lambda: mnist(folder, rows, convolutional_network),
        "transformer": lambda: characters(rows // 2),
        "regression": lambda: regression(rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", default="../shared/data", help="folder that holds mnist/ with its idx files"
    )
    parser.add_argument("--rows", type=int, default=12800)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="tasks (default: all)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--json", help="file for the figures")
    args = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for name, prepare in tasks(args.data, args.rows).items():
        if args.only and name not in args.only:
            continue
        task = prepare()
        print(
            f"\n{name}: test loss with the default rate; best of {len(RATES)} rates; ms per step", flush=True
        )
        for method in args.methods:
            usual, make = METHODS[method]
            tried = {rate: train(task, make, usual * rate, 0)["held_out"] for rate in RATES}
            best = min(tried, key=lambda rate: tried[rate])
            # The same seeds for both, none of which chose the rate.
            plain = [train(task, make, usual, seed) for seed in range(1, args.seeds + 1)]
            tuned = (
                plain if best == 1 else [train(task, make, usual * best, s) for s in range(1, args.seeds + 1)]
            )
            row = {
                "default": [run["test"] for run in plain],
                "rate": usual * best,
                "best": [run["test"] for run in tuned],
                "ms": min(run["ms"] for run in plain),
            }
            found.setdefault(name, {})[method] = row
            shown = [f"{np.mean(row[key]):.4f} ± {np.std(row[key]):.4f}" for key in ("default", "best")]
            print(
                f"  {method:24} {shown[0]}   {shown[1]} at {row['rate']:<8.3g} {row['ms']:6.1f}", flush=True
            )
            if args.json:
                Path(args.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
