"""What the optimizers of PyTorch are compared on: networks that a laptop trains in seconds, and a regression."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from experiments.ada.idx import read_mnist
from torch import nn

Batch = tuple[torch.Tensor, torch.Tensor]


class Task(NamedTuple):
    model: Callable[[], nn.Module]
    train: Batch
    held_out: Batch
    test: Batch
    batch: int
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def mnist(folder: str, rows: int, model: Callable[[], nn.Module]) -> Task:
    if not (Path(folder) / "mnist").is_dir():
        raise SystemExit(
            f"{folder}/mnist is missing: put MNIST's four idx files there (train-images-idx3-ubyte.gz, …), "
            "or name another folder with --data; --only transformer regression does without"
        )
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
        "transformer": lambda: characters(3 * rows // 8),
        "regression": lambda: regression(rows // 2),
    }
