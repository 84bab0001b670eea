"""RFD Figures 1 and 2: relative spectral error of FD, its robust and its parameterised forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.data import load, missing_line, present
from experiments.runner import Experiment, Figure, Job, Outcome, Result, Table
from sketchnewton import FrequentDirections, ParameterizedFrequentDirections, RobustFrequentDirections

SETS = ("a9a", "mushrooms", "w1a", "sido0", "gisette", "real-sim")
SPECTRA = ("power law", "exponential")
BETAS = (0.2, 0.4, 0.6, 0.8)
KINDS = ("FD", "RFD", *(f"PFD {beta}" for beta in BETAS))


def matrix(folder: str, data: str) -> Any:
    """Rows in random order; a synthetic one by its spectrum."""
    random = np.random.default_rng(0)
    if data in SPECTRA:
        d = np.arange(200)
        spectrum = (d + 1.0) ** -0.7 if data == "power law" else np.exp(-d / 20)
        rotation = np.linalg.qr(random.standard_normal((200, 200)))[0]
        return (random.standard_normal((5000, 200)) * spectrum) @ rotation
    X, _ = load(data, Path(folder))
    return X[random.permutation(X.shape[0])]


def spectral_errors(folder: str, data: str, sizes: list[int]) -> dict[str, list[float]]:
    """‖AᵀA − (BᵀB + ridge·I)‖₂ / ‖AᵀA‖₂ of every kind, one for each size."""
    A = matrix(folder, data)
    exact = A.T @ A
    exact = exact if isinstance(exact, np.ndarray) else exact.toarray()
    scale = np.linalg.norm(exact, 2)

    def make(kind: str, m: int) -> Any:
        if kind == "FD":
            return FrequentDirections(m)
        return (
            RobustFrequentDirections(m)
            if kind == "RFD"
            else ParameterizedFrequentDirections(m, beta=float(kind[4:]))
        )

    return {
        kind: [float(np.linalg.norm(exact - make(kind, m).update(A).covariance(), 2) / scale) for m in sizes]
        for kind in KINDS
    }


def _jobs(folder: Path, quick: bool) -> tuple[list[Job], list[str]]:
    sizes = [10, 30, 50] if quick else [10, 20, 30, 40, 50, 60, 80, 100]
    names = [name for name in SETS if present(name, folder)]
    missing = [missing_line(name, folder) for name in SETS if name not in names]
    function = "experiments.rfd.spectral:spectral_errors"
    return [
        Job(function, {"folder": str(folder), "data": name, "sizes": sizes}) for name in (*names, *SPECTRA)
    ], missing


def _outcome(results: list[tuple[Job, Result]]) -> Outcome:
    rows, ratios, figures = [], [], []
    for job, errors in results:
        name, sizes = job.arguments["data"], job.arguments["sizes"]
        figures.append(
            Figure(
                f"Relative spectral error, {name}",
                "m",
                "error",
                {kind: (sizes, values) for kind, values in errors.items()},
                log_y=True,
            )
        )
        for m, fd, rfd in zip(sizes, errors["FD"], errors["RFD"], strict=True):
            if fd > 1e-12:
                ratios.append(rfd / fd)
                rows.append([name, m, f"{fd:.2e}", f"{rfd:.2e}", f"{rfd / fd:.2f}"])
    table = Table("RFD against FD (published: about one half)", ["matrix", "m", "FD", "RFD", "ratio"], rows)
    if not ratios:
        return Outcome([table], figures)
    within = sum(ratio <= 0.65 for ratio in ratios)
    most = f"{within} of {len(ratios)} at most 0.65; largest {max(ratios):.2f}"
    verdict = f"median ratio {np.median(ratios):.2f}; {most}"
    return Outcome([table], figures, verdict)


EXPERIMENTS = (
    Experiment(
        "rfd-figure1", "RFD", "Figures 1 and 2: spectral errors", _jobs, _outcome, "Rows in random order."
    ),
)
