"""Does a sketched metric train a convolutional network faster than a diagonal one? Section 4.2 of the ADA paper.

    python experiments/ada/cnn.py [--data ../shared/data/mnist] [--rows 6400 | --full] [--picture cnn.svg]

The network of the paper's Figure 3 (the MNIST example of Keras) for one epoch, batches of 128. The convolutions
alone have the sketch, τ = 20; the dense layers have the diagonal. η, and the σ of a sketch, are those of the
paper's grid {1e-4, …, 1} that give the least loss on held-out training rows with seed 0; they are then run with
every seed. The seed draws the first weights, the order of the rows, the dropout and the projections.

The paper does not say whose η the dense layers have beside a sketch. Both readings are run: "one η" for all, and
"own η", where the dense layers keep the one that is best for AdaGrad and the grid is that of the convolutions.

The default takes some minutes on two cores; --full, all 60,000 rows, takes hours.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from idx import read_mnist
from torch.nn import Conv2d, Dropout, Flatten, Linear, MaxPool2d, ReLU, Sequential
from torch.nn.functional import cross_entropy

from sketchnewton.torch import AdaFD, AdaGP, RadaGrad

SKETCHED = {"ADA-GP": AdaGP, "ADA-FD": AdaFD, "RADAGRAD": RadaGrad}
GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
BATCH = 128
HELD_OUT = 1000
CURVE_POINTS = 10
CURVE_ROWS = 1000  # of the test rows; all of them at the end


@dataclass(frozen=True)
class Job:
    method: str
    eta: float
    sigma: float | None  # None: no sketch
    seed: int
    dense_eta: float | None = None  # None: that of the convolutions
    curve: bool = False

    @property
    def name(self) -> str:
        if self.sigma is None:
            return self.method
        return f"{self.method}, {'one' if self.dense_eta is None else 'own'} η"

    def __str__(self) -> str:
        return f"{self.name}  η={self.eta:g}" + ("" if self.sigma is None else f" σ={self.sigma:g}")


@dataclass
class Result:
    job: Job
    losses: list[float] = field(default_factory=list)  # of each batch, before it was learned
    accuracies: dict[int, float] = field(default_factory=dict)  # on test rows, after so many batches
    held_out_loss: float = math.inf
    seconds: float = 0.0

    @property
    def diverged(self) -> bool:
        return not math.isfinite(self.held_out_loss)


def network() -> Sequential:
    model = Sequential(
        *(Conv2d(1, 32, 3), ReLU(), Conv2d(32, 64, 3), ReLU(), MaxPool2d(2), Dropout(0.25), Flatten()),
        *(Linear(9216, 128), ReLU(), Dropout(0.5), Linear(128, 10)),
    )
    for name, parameter in model.named_parameters():  # as Keras does
        if name.endswith("bias"):
            torch.nn.init.zeros_(parameter)
        else:
            torch.nn.init.xavier_uniform_(parameter)
    return model


def optimizer(model: Sequential, job: Job) -> torch.optim.Optimizer:
    if job.sigma is None:
        return torch.optim.Adagrad(model.parameters(), lr=job.eta, eps=1e-8)
    options = {"lr": job.eta, "sigma": job.sigma, "sketch_size": 20}
    convolutions = [p for layer in model if isinstance(layer, Conv2d) for p in layer.parameters()]
    dense = [p for layer in model if isinstance(layer, Linear) for p in layer.parameters()]
    dense_eta = job.eta if job.dense_eta is None else job.dense_eta
    groups = [{"params": convolutions}, {"params": dense, "diagonal": True, "lr": dense_eta}]
    if job.method != "ADA-FD":
        options["seed"] = job.seed
    return SKETCHED[job.method](groups, **options)


@dataclass(frozen=True)
class Data:
    train: tuple[torch.Tensor, torch.Tensor]
    held_out: tuple[torch.Tensor, torch.Tensor]
    test: tuple[torch.Tensor, torch.Tensor]

    @staticmethod
    def read(folder: str, rows: int) -> Data:
        """Training rows and held-out rows are drawn apart; the test rows are all there are."""
        images, labels = (torch.from_numpy(array) for array in read_mnist(folder, "train"))
        order = torch.from_numpy(np.random.default_rng(0).permutation(len(images)))
        held_out, chosen = order[:HELD_OUT], order[HELD_OUT:][:rows]
        test = (torch.from_numpy(array) for array in read_mnist(folder, "t10k"))
        return Data(
            _scaled(images[chosen], labels[chosen]),
            _scaled(images[held_out], labels[held_out]),
            _scaled(*test),
        )


def _scaled(images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return images[:, None].float() / 255, labels.long()


def run(job: Job) -> Result:
    """One epoch. A run whose loss explodes is over: its held-out loss stays infinite."""
    began = time.perf_counter()
    torch.manual_seed(job.seed)
    model, result = network(), Result(job)
    stepper = optimizer(model, job)
    images, labels = _DATA.train
    batches = torch.randperm(len(images)).split(BATCH)
    every = max(1, len(batches) // CURVE_POINTS)
    for step, batch in enumerate(batches):
        stepper.zero_grad()
        loss = cross_entropy(model(images[batch]), labels[batch])
        result.losses.append(loss.item())
        if not loss.item() < 100:
            return result
        loss.backward()
        stepper.step()
        if job.curve and (step + 1 == len(batches) or (step + 1) % every == 0):
            last = step + 1 == len(batches)
            result.accuracies[step + 1] = evaluate(model, _DATA.test, None if last else CURVE_ROWS)[1]
    result.held_out_loss = evaluate(model, _DATA.held_out)[0]
    result.seconds = time.perf_counter() - began
    return result


@torch.no_grad()
def evaluate(
    model: Sequential, data: tuple[torch.Tensor, torch.Tensor], rows: int | None = None
) -> tuple[float, float]:
    """Mean loss and accuracy on the first so many rows."""
    model.eval()
    images, labels = (part[:rows] for part in data)
    scores = torch.cat([model(part) for part in images.split(500)])
    model.train()
    loss = cross_entropy(scores, labels).item()
    return (loss if math.isfinite(loss) else math.inf), (scores.argmax(1) == labels).float().mean().item()


_DATA: Data


def start(folder: str, rows: int) -> None:
    """Prepare a worker: one thread, and the data."""
    global _DATA  # noqa: PLW0603
    torch.set_num_threads(1)
    _DATA = Data.read(folder, rows)


def compare(
    pool: Any, methods: list[str], etas: list[float], sigmas: list[float], seeds: int
) -> dict[str, list[Result]]:
    """Tune AdaGrad and every method in both readings, then run each with every seed."""
    pairs = [(eta, sigma) for eta in etas for sigma in sigmas]
    best = tune(pool, [Job("AdaGrad", eta, None, seed=0) for eta in etas])
    eta = best["AdaGrad"].job.eta
    best |= tune(
        pool,
        [Job(m, *pair, seed=0, dense_eta=dense) for m in methods for dense in (None, eta) for pair in pairs],
    )
    finals = [replace(each.job, seed=seed, curve=True) for each in best.values() for seed in range(seeds)]
    results = pool.map(run, finals, chunksize=1)
    return {name: [result for result in results if result.job.name == name] for name in best}


def tune(pool: Any, jobs: list[Job]) -> dict[str, Result]:
    """The best result of each name."""
    best: dict[str, Result] = {}
    for result in pool.imap_unordered(run, jobs):
        name, loss = result.job.name, result.held_out_loss
        print(f"  {result.job!s:36} held-out loss {loss:.4f}   {result.seconds:.0f} s", flush=True)
        if name not in best or loss < best[name].held_out_loss:
            best[name] = result
    return best


def report(results: dict[str, list[Result]]) -> None:
    for every in results.values():
        runs = [result for result in every if not result.diverged]
        if len(runs) < len(every):
            print(f"{every[0].job!s:36} {len(every) - len(runs)} of {len(every)} runs diverged")
        if runs:
            losses = [np.mean(result.losses) for result in runs]
            accuracies = [100 * list(result.accuracies.values())[-1] for result in runs]
            print(
                f"{runs[0].job!s:36} mean training loss {np.mean(losses):.3f} ± {np.std(losses):.3f}   "
                f"held-out loss {np.mean([result.held_out_loss for result in runs]):.3f}   "
                f"test accuracy {np.mean(accuracies):.2f} ± {np.std(accuracies):.2f} %"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="../shared/data/mnist", help="folder with MNIST's idx files")
    parser.add_argument("--rows", type=int, default=6400, help="training rows (default 6400)")
    parser.add_argument("--full", action="store_true", help="all training rows that are not held out")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--methods", nargs="+", default=["ADA-GP"], choices=list(SKETCHED), help="beside AdaGrad"
    )
    parser.add_argument("--etas", nargs="+", type=float, default=GRID, help="the grid of η")
    parser.add_argument("--sigmas", nargs="+", type=float, default=GRID, help="the grid of σ")
    parser.add_argument("--picture", help="draw the curves into this file (.svg or .png)")
    parser.add_argument("--results", type=Path, help="write every final run into this file (.json)")
    args = parser.parse_args()
    rows = 60_000 - HELD_OUT if args.full else args.rows
    with multiprocessing.get_context("spawn").Pool(args.workers, start, (args.data, rows)) as pool:
        results = compare(pool, args.methods, args.etas, args.sigmas, args.seeds)
    report(results)
    if args.results:
        args.results.write_text(
            json.dumps({name: [asdict(r) for r in runs] for name, runs in results.items()})
        )
    if args.picture:
        from cnn_picture import draw  # noqa: PLC0415 - matplotlib only to draw

        draw(args.picture, results)


if __name__ == "__main__":
    main()
