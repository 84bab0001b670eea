"""The data of `skn demo`: streams of growing condition number, and data sets that scikit-learn ships."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sketchnewton.core.types import Floats
from sketchnewton.evaluation import ProgressiveScore
from sketchnewton.learners import Learner

__all__ = [
    "Data",
    "Floats",
    "breast_cancer",
    "digits",
    "ill_conditioned",
    "progressive_error",
    "real_data",
    "standardised",
]

Data = tuple[Floats, Floats]


def ill_conditioned(
    condition_numbers: Iterable[float], rows: int = 10_000, features: int = 100, seed: int = 0
) -> dict[float, Data]:
    """One classification problem in several scales (SON section 5.1): rows and labels by condition number κ.

    X = Z diag(λ)^½ Vᵀ, where Z is Gaussian, V a random basis, and of the spectrum λ all entries are 1 but the
    last ten, which rise linearly to κ. The labels sign(Z Vᵀ θ) come from the unscaled data, so they are the
    same for every κ: a learner that does not mind the scale of directions makes the same mistakes on all.
    """
    random = np.random.default_rng(seed)
    z = random.standard_normal((rows, features))
    basis = np.linalg.qr(random.standard_normal((features, features)))[0]
    labels = np.where(z @ (basis.T @ random.standard_normal(features)) >= 0.0, 1.0, -1.0)
    data = {}
    for condition_number in condition_numbers:
        spectrum = np.ones(features)
        spectrum[-10:] = np.linspace(1.0, condition_number, 11)[1:]
        data[condition_number] = ((z * np.sqrt(spectrum)) @ basis.T, labels)
    return data


def breast_cancer(seed: int = 0) -> Data:
    """569 biopsies, 30 measurements each, in a shuffled order; +1 is benign, −1 malignant."""
    from sklearn.datasets import load_breast_cancer  # slow to import, and only used here

    measurements, benign = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(benign))
    return measurements[order], np.where(benign[order] == 1, 1.0, -1.0)


def digits(seed: int = 0) -> Data:
    """1,797 scanned digits, 64 grey values each, in a shuffled order; +1 is even, −1 odd."""
    from sklearn.datasets import load_digits

    scans, digit = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(digit))
    return scans[order], np.where(digit[order] % 2 == 0, 1.0, -1.0)


def real_data() -> dict[str, Data]:
    """The real data sets by what the demo calls them."""
    rows, labels = breast_cancer()
    return {
        "breast cancer, as measured": (rows, labels),
        "breast cancer, standardised": (standardised(rows), labels),
        "digits, even or odd": digits(),
    }


def standardised(rows: Floats) -> Floats:
    """Each column shifted and scaled to mean 0 and variance 1, which a stream cannot know in advance."""
    return np.asarray((rows - rows.mean(axis=0)) / rows.std(axis=0))


def progressive_error(learner: Learner, rows: Floats, labels: Floats) -> float:
    """The share of wrong signs among predictions made before their rows were learned."""
    score = ProgressiveScore(learner.loss)
    score.update(learner.learn(rows, labels), labels)
    if score.error_rate is None:
        raise ValueError("labels must be -1 and +1")
    return score.error_rate
