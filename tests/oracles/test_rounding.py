"""Rounding decides nothing: Oja-SON and the exact Newton learners against arithmetic of many digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sketchnewton import FullNewton, InvariantNewton, SketchedNewton
from sketchnewton.learners.newton.schedule import checked_curvature, checked_curvature_weight
from sketchnewton.losses import get_loss
from tests.contract.learners import Floats
from tests.oracles.exact.newton import full_newton, oja_newton
from tests.oracles.exact.streams import STREAMS, Stream, perturbed

LOSSES = ("squared", "hinge", "absolute", "quantile:0.3", "squared_hinge", "logistic", "huber:0.3", "poisson")
SMOOTH = 2.0  # the bound of the losses that need no ±1


def stream(kind: str, seed: int, loss: str, n: int, signs: bool = True) -> Stream:
    """A stream of labels that the loss takes; those of ±1 are where the projection puts scores."""
    made = STREAMS[kind](seed, n=n, signs=signs or get_loss(loss).sign_labels)
    return made._replace(y=np.round(3 * np.abs(made.y))) if loss == "poisson" else made


def clip_of(loss: str) -> float:
    return SMOOTH if loss == "logistic" else 1.0


def problem(loss: str) -> dict[str, Any]:
    """The loss, C, σ and η as the learners have them."""
    C, known = clip_of(loss), get_loss(loss)
    sigma = checked_curvature(None, known, C)
    schedule = checked_curvature_weight(None, known, C, sigma)
    eta = "1/sqrt(t)" if schedule.first == 1 and schedule.power == 0.5 else None
    return {"loss": loss, "clip": C, "sigma": sigma, "eta": eta}


def furthest(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).max())


def draw(kind: str, seed: int) -> tuple[dict[str, Any], str]:
    """Parameters of Oja's sketch and a loss, at random."""
    r = np.random.default_rng([seed, *map(ord, kind)])
    rate: str | float = "adaptive" if r.random() < 0.5 else float(r.choice([0.5, 1.0, 3.0]))
    m, alpha = int(r.choice([1, 2, 3, 5, 10])), float(r.choice([1e-3, 0.1, 1.0, 10.0]))
    options = {"m": m, "alpha": alpha, "rate": rate, "diagonal": bool(r.random() < 0.3)}
    return options, LOSSES[int(r.integers(len(LOSSES)))]


def oja(options: dict[str, Any], loss: str, dtype: str) -> SketchedNewton:
    m, rate = options["m"], options["rate"]
    return SketchedNewton(
        "oja",
        m,
        alpha=options["alpha"],
        oja_rate=rate,
        diagonal=options["diagonal"],
        loss=loss,
        clip=clip_of(loss),
        dtype=dtype,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", STREAMS)
def test_oja_is_exact_where_a_dense_algorithm_in_floats_is(kind: str) -> None:
    """Within 1e-6 where 16 digits are enough; and on rows changed by 1e-9 within 1e-4 of itself, if that is."""
    for seed in range(4):
        options, loss = draw(kind, seed)
        rows = stream(kind, seed, loss, 40, signs=seed % 2 == 0)
        near = perturbed(rows, 1e-9)

        def exact(s: Stream, digits: int = 60, o: Any = options, loss: str = loss) -> Floats:
            return oja_newton(s.X, s.y, **o, **problem(loss), digits=digits).predictions

        try:
            expected, in_floats = exact(rows), exact(rows, 16)
        except (ArithmeticError, TypeError):  # long rows and Γ = 1/t leave nothing of V (SON, footnote 4)
            continue
        if furthest(in_floats, expected) > 1e-6:
            continue
        predicted = oja(options, loss, "float64").learn(*rows)
        assert furthest(predicted, expected) < 1e-6, (seed, options, loss)
        if furthest(exact(near), expected) < 1e-4:
            changed = oja(options, loss, "float64").learn(*near)
            assert furthest(changed, predicted) < 1e-4, (seed, options, loss)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "hinge", "absolute"])
@pytest.mark.parametrize("kind", ["repeated", "repeated_often", "returning"])
def test_a_row_met_again_has_no_gradient_of_rounding(kind: str, loss: str) -> None:
    """It would open a direction and take one of the m places, and with a kink its step would be a whole one."""
    for seed in range(3):
        options = {"m": 10, "alpha": (0.1, 1.0, 10.0)[seed], "rate": (1.0, "adaptive", 0.5)[seed]}
        options["diagonal"] = seed == 2
        rows = stream(kind, seed, loss, 40)
        expected = oja_newton(*rows, **options, **problem(loss), digits=40).predictions
        for dtype, tolerance in (("float64", 1e-9), ("float32", 1e-3)):
            assert furthest(oja(options, loss, dtype).learn(*rows), expected) < tolerance


def test_rounds_without_a_gradient_count() -> None:
    """t of Γ_t = c/t is the number of the round; zero rows have no gradient. Blocks are of rounds, too."""
    rows = STREAMS["zero_rows"](3, n=60)
    expected = oja_newton(*rows, m=3, alpha=1.0, rate=0.5, digits=40).predictions
    learner = SketchedNewton("oja", 3, alpha=1.0, oja_rate=0.5, dtype="float64")
    assert furthest(learner.learn(*rows), expected) < 1e-9
    zero, one = np.zeros((1, 4)), np.ones((1, 4))
    for gap in range(3):
        learner = SketchedNewton("oja", 2, block=3, dtype="float64")
        learner.learn(np.vstack([one, *[zero] * gap]), np.ones(1 + gap))
        assert len(learner.spectrum) == 1
        assert (learner.spectrum[0] > 0) == (gap == 2)


@pytest.mark.parametrize("loss", ["hinge", "absolute", "squared"])
@pytest.mark.parametrize("kind", ["repeated", "repeated_often", "returning"])
def test_full_newton_has_its_kink_where_exact_arithmetic_has_it(kind: str, loss: str) -> None:
    for seed in range(3):
        rows, alpha = stream(kind, seed, loss, 40), (1e-3, 0.1, 1.0)[seed]
        expected = full_newton(*rows, alpha=alpha, **problem(loss), digits=40).predictions
        learner = FullNewton(alpha=alpha, loss=loss, clip=clip_of(loss))
        assert furthest(learner.learn(*rows), expected) < 1e-6


# Streams that a change of coordinates in float64 does not change: not those whose rows differ by 1e-7, whose
# features are 1e7 times as large as others, or whose first rows span the space only just.
WELL_CONDITIONED = (
    "gaussian",
    "repeated",
    "repeated_often",
    "returning",
    "rank_deficient",
    "row_scales",
    "one_large_feature",
    "single_feature",
    "zero_rows",
)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", WELL_CONDITIONED)
def test_coordinates_do_not_decide_at_a_kink(kind: str, loss: str) -> None:
    for seed in range(6):
        rows = stream(kind, seed, loss, 100)
        r, d = np.random.default_rng([seed, 7]), rows.X.shape[1]
        M = r.standard_normal((d, d))
        while np.linalg.cond(M) > 100:
            M = r.standard_normal((d, d))
        plain, mapped = (
            InvariantNewton(loss=loss, clip=clip_of(loss)).learn(X, rows.y) for X in (rows.X, rows.X @ M)
        )
        assert furthest(plain, mapped) < 1e-6
