"""A small convolutional network, one epoch, with AdaGrad and with sketches on its convolutions (ADA §4.2).

The network of the paper's Figure 3 (the MNIST example of Keras), batches of 128. The convolutions alone have the
sketch, τ = 20; the dense layers have the diagonal. The paper leaves two things open, and all readings are run:

- What a vector is: each filter with its bias, as each class is one where the paper learns several (its d is the
  number of features), or all weights of a layer at once.
- Whose η the dense layers have beside a sketch: "one" η for all, or their "own", where the dense layers keep the
  one that is best for AdaGrad and the grid is that of the convolutions.

    python -m experiments.ada.measure_cnn [--data ../shared/data] [--rows 6400] [--seeds 3]
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import Conv2d, Dropout, Flatten, Linear, MaxPool2d, Module, Parameter, ReLU, Sequential
from torch.nn.functional import conv2d, cross_entropy

from experiments.ada.idx import read_mnist
from sketchnewton.torch import AS_PUBLISHED, AdaFD, AdaGP, RadaGrad

SKETCHED = {"ADA-GP": AdaGP, "ADA-FD": AdaFD, "RADAGRAD": RadaGrad}
CASES = (
    ("AdaGrad", "", "one"),
    ("ADA-GP", "filter", "one"),
    ("ADA-GP", "filter", "own"),
    ("ADA-GP", "layer", "one"),
    ("ADA-GP", "layer", "own"),
)
GRID = [1e-4, 1e-3, 1e-2, 1e-1, 1.0]  # the paper's, of η and σ
BATCH, HELD_OUT, TEST, POINTS = 128, 1000, 2000, 5
Rows = tuple[torch.Tensor, torch.Tensor]


def compare(
    folder: str,
    method: str,
    vector: str,
    rate: str,
    etas: list[float],
    sigmas: list[float],
    rows: int,
    seeds: int,
) -> dict[str, Any]:
    """The η and σ of least loss on held-out rows with seed 0, and the runs with them, one for each seed.

    The seed draws the first weights, the order of the rows, the dropout and the projections.
    """
    torch.set_num_threads(1)
    train, held_out, test = _data(folder, rows)

    def loss(eta: float, sigma: float | None, dense: float | None) -> float:
        model, losses, _ = _train(_Setting(method, vector, eta, sigma, dense, 0), train, None)
        return _evaluate(model, held_out)[0] if math.isfinite(losses[-1]) else math.inf

    pairs: list[tuple[float, float | None]] = [(eta, sigma) for eta in etas for sigma in sigmas]
    dense = None
    if method == "AdaGrad":
        pairs = [(eta, None) for eta in etas]
    elif rate == "own":
        dense = min(etas, key=lambda eta: loss(eta, None, None))
    best = min(pairs, key=lambda pair: loss(*pair, dense))
    settings = [_Setting(method, vector, *best, dense, seed) for seed in range(seeds)]
    runs = [_train(setting, train, test) for setting in settings]
    return {
        "eta": best[0],
        "sigma": best[1],
        "losses": np.mean([losses for _, losses, _ in runs], axis=0).tolist(),
        "accuracies": np.mean([accuracies for _, _, accuracies in runs], axis=0).tolist(),
        "held_out": float(np.mean([_evaluate(model, held_out)[0] for model, _, _ in runs])),
        "spreads": [
            float(np.std([np.mean(losses) for _, losses, _ in runs])),
            float(np.std([accuracies[-1] for _, _, accuracies in runs])),
        ],
    }


def _data(folder: str, rows: int) -> tuple[Rows, Rows, Rows]:
    """Training rows and held-out rows are drawn apart."""
    mnist = Path(folder) / "mnist"
    images, labels = (torch.from_numpy(array) for array in read_mnist(mnist, "train"))
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(images)))
    test = [torch.from_numpy(array[:TEST]) for array in read_mnist(mnist, "t10k")]

    def scaled(images: torch.Tensor, labels: torch.Tensor) -> Rows:
        return images[:, None].float() / 255, labels.long()

    held_out, chosen = order[:HELD_OUT], order[HELD_OUT:][:rows]
    return scaled(images[chosen], labels[chosen]), scaled(images[held_out], labels[held_out]), scaled(*test)


class _Filters(Module):
    """A convolution whose filters are the rows of one tensor, each with its bias in front."""

    def __init__(self, layer: Conv2d) -> None:
        super().__init__()
        self.shape = layer.weight.shape
        self.filters = Parameter(torch.cat((layer.bias[:, None], layer.weight.flatten(1)), 1).detach())

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return conv2d(images, self.filters[:, 1:].view(self.shape), self.filters[:, 0])


def _network(vector: str) -> Sequential:
    model = Sequential(
        *(Conv2d(1, 32, 3), ReLU(), Conv2d(32, 64, 3), ReLU(), MaxPool2d(2), Dropout(0.25), Flatten()),
        *(Linear(9216, 128), ReLU(), Dropout(0.5), Linear(128, 10)),
    )
    for name, parameter in model.named_parameters():  # as Keras does
        if name.endswith("bias"):
            torch.nn.init.zeros_(parameter)
        else:
            torch.nn.init.xavier_uniform_(parameter)
    if vector == "filter":
        model = Sequential(*(_Filters(layer) if isinstance(layer, Conv2d) else layer for layer in model))
    return model


class _Setting(NamedTuple):
    """What a run is told: without σ it is AdaGrad, without `dense_eta` all layers have the same η."""

    method: str
    vector: str
    eta: float
    sigma: float | None
    dense_eta: float | None
    seed: int


def _optimizer(model: Sequential, setting: _Setting) -> torch.optim.Optimizer:
    method, vector, eta, sigma, dense_eta, seed = setting
    if sigma is None:
        return torch.optim.Adagrad(model.parameters(), lr=eta, eps=1e-8)
    options: dict[str, Any] = {
        **AS_PUBLISHED,
        "lr": eta,
        "sigma": sigma,
        "sketch_size": 20,
        "per_output": vector == "filter",
    }
    if method != "ADA-FD":
        options["seed"] = seed
    convolutions = [p for layer in model if isinstance(layer, Conv2d | _Filters) for p in layer.parameters()]
    dense = [p for layer in model if isinstance(layer, Linear) for p in layer.parameters()]
    lr = eta if dense_eta is None else dense_eta
    return SKETCHED[method](
        [{"params": convolutions}, {"params": dense, "diagonal": True, "lr": lr}], **options
    )


def _train(setting: _Setting, train: Rows, test: Rows | None) -> tuple[Sequential, list[float], list[float]]:
    """One epoch: the network, the loss of every batch before it was learned, accuracies on test rows along it.

    A run whose loss explodes is over: its last loss is infinite.
    """
    torch.manual_seed(setting.seed)
    model = _network(setting.vector)
    stepper = _optimizer(model, setting)
    images, labels = train
    batches = torch.randperm(len(images)).split(BATCH)
    marks = set(np.linspace(0, len(batches), POINTS + 1).astype(int)[1:].tolist())
    losses: list[float] = []
    accuracies = []
    for step, batch in enumerate(batches, 1):
        stepper.zero_grad()
        loss = cross_entropy(model(images[batch]), labels[batch])
        if not loss.item() < 100:
            return model, [*losses, math.inf], accuracies
        losses.append(loss.item())
        loss.backward()
        stepper.step()
        if test is not None and step in marks:
            accuracies.append(_evaluate(model, test)[1])
    return model, losses, accuracies


@torch.no_grad()
def _evaluate(model: Sequential, data: Rows) -> tuple[float, float]:
    """Mean loss and accuracy."""
    model.eval()
    images, labels = data
    scores = torch.cat([model(part) for part in images.split(500)])
    model.train()
    loss = cross_entropy(scores, labels).item()
    return (loss if math.isfinite(loss) else math.inf), (scores.argmax(1) == labels).float().mean().item()


def main() -> None:
    """All of the paper's grid, on as many rows as asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", default="../shared/data", help="folder that holds mnist/ with its idx files"
    )
    parser.add_argument("--rows", type=int, default=6400, help="training rows (default 6400; 59000 are all)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--etas", nargs="+", type=float, default=GRID, help="the grid of η")
    parser.add_argument("--sigmas", nargs="+", type=float, default=GRID, help="the grid of σ")
    parser.add_argument("--only", choices=("filter", "layer"), help="what a vector is (default: both)")
    parser.add_argument("--plot", help="picture to draw of the curves")
    args = parser.parse_args()
    results = {}
    for method, vector, rate in CASES:
        if args.only and vector not in ("", args.only):
            continue
        found = compare(args.data, method, vector, rate, args.etas, args.sigmas, args.rows, args.seeds)
        name = method if not vector else f"{method} of {vector}s, {rate} η"
        results[name] = found
        sigma = "" if found["sigma"] is None else f", σ={found['sigma']:g}"
        loss, accuracy = found["spreads"]
        print(
            f"{name}, η={found['eta']:g}{sigma}: "
            f"mean training loss {np.mean(found['losses']):.3f} ± {loss:.3f}, "
            f"held-out loss {found['held_out']:.3f}, "
            f"test accuracy {100 * found['accuracies'][-1]:.2f} ± {100 * accuracy:.2f} %",
            flush=True,
        )
    if args.plot:
        plot(results, args.plot)


def plot(results: dict[str, dict[str, Any]], path: str) -> None:
    """Training loss, as a running mean of five batches, and test accuracy along the epoch."""
    from matplotlib.figure import Figure  # the measurements do without

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, result in results.items():
        losses, accuracies = np.array(result["losses"]), result["accuracies"]
        count = len(losses)
        left.plot(np.arange(5, count + 1), np.convolve(losses, np.full(5, 0.2), "valid"), label=name)
        right.plot(
            np.linspace(0, count, len(accuracies) + 1)[1:], 100 * np.array(accuracies), "o-", label=name
        )
    left.set(xlabel="batches of 128", ylabel="training loss", yscale="log")
    right.set(xlabel="batches of 128", ylabel="test accuracy, %")
    right.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
