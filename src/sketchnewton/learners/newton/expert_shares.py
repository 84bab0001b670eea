"""The expert weights of a bank: of two classes or numbers, or of many classes."""

from __future__ import annotations

from abc import abstractmethod

from sketchnewton.core.types import Floats
from sketchnewton.learners.table import TableLearner

__all__ = ["ExpertShares"]


class ExpertShares(TableLearner):
    """A learner whose state has the `shares` of its experts, and perhaps of some that have left."""

    @property
    @abstractmethod
    def expert_names(self) -> tuple[str, ...]:
        """The names of the experts that are there."""

    @property
    def expert_shares(self) -> Floats:
        """The weight of each expert; they sum to one."""
        with self._lock:
            return self._state["shares"][: len(self.expert_names)].copy()

    @property
    def experts(self) -> dict[str, float]:
        """The weight of each expert, by its name."""
        return dict(zip(self.expert_names, self.expert_shares.tolist(), strict=True))

    @property
    def leading_expert(self) -> str:
        """The name of the expert with the largest weight."""
        with self._lock:
            shares, names = self._state.view("shares"), self.expert_names
            return names[max(range(len(names)), key=shares.__getitem__)]
