"""What Table 1 of the EIG paper compares."""

from __future__ import annotations

from sketchnewton.cli.pictures.eigen_games import METHODS, grow


def regret(method: str, n: int, rounds: int, seeds: int) -> list[float]:
    """Mean regret, and microseconds per round."""
    chosen = next(candidate for candidate in METHODS if candidate.name == method)
    sequence = "stochastic" if "stochastic" in chosen.regret else "alternating"
    growth = grow(sequence, [(n, rounds)], seeds, methods=[chosen])[0]
    return [float(growth.regrets[0]), growth.microseconds]
