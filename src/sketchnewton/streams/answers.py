"""Labels and weights that are given beside the records, and take the place of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.core.hints import NamedTuple
from sketchnewton.core.types import Array, ArrayLike, Floats, np


class Answers(NamedTuple):
    """Labels of any kind and weights, one per record."""

    labels: Array | None
    weights: Floats | None

    @classmethod
    def of(cls, labels: ArrayLike | Sequence[object] | None, weights: ArrayLike | None) -> Answers:
        """What the caller gave; ``ValueError`` for what cannot be any."""
        vector = None if labels is None else np.atleast_1d(np.asarray(labels))
        if vector is not None and vector.ndim != 1:
            raise ValueError(f"expected one label per record, got an array of shape {vector.shape}")
        return cls(vector, None if weights is None else _weights(weights))

    def given_to(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches with these instead of their own."""
        numbers = None if self.labels is None else _numbers(self.labels)
        done = 0
        try:
            for batch in batches:
                part = slice(done, done + len(batch))
                changes: dict[str, Floats | None] = {}
                if self.labels is not None:
                    _check_count("labels", self.labels, part.stop, at_least=True)
                    changes["labels"] = np.full(len(batch), np.nan) if numbers is None else numbers[part]
                if self.weights is not None:
                    _check_count("weights", self.weights, part.stop, at_least=True)
                    own = self.weights[part]
                    changes["weights"] = own if np.any(own != 1.0) else None
                yield batch.replace(**changes) if changes else batch
                done = part.stop
        except ParseError as error:
            if error.path:
                raise
            raise ParseError(f"record {done + 1}", None, None, error.message) from None
        for name, values in (("labels", self.labels), ("weights", self.weights)):
            if values is not None:
                _check_count(name, values, done)


def _numbers(labels: Array) -> Floats | None:
    """The labels as numbers, NaN for None; None if some are none."""
    kind = labels.dtype.kind
    if kind == "O" and not any(isinstance(label, str | bytes) for label in labels):
        try:
            return labels.astype(np.float64)
        except (TypeError, ValueError):
            return None
    return labels.astype(np.float64) if kind in "biuf" else None


def _weights(weights: ArrayLike) -> Floats:
    try:
        array = np.atleast_1d(np.asarray(weights, np.float64))
    except (TypeError, ValueError):
        raise ValueError("expected numbers as weights") from None
    if array.ndim != 1:
        raise ValueError(f"expected one weight per record, got an array of shape {array.shape}")
    bad = ~(np.isfinite(array) & (array >= 0.0))
    if bad.any():
        at = int(bad.argmax())
        message = f"expected a finite weight that is not negative, got '{array[at]:g}'"
        raise ParseError(f"record {at + 1}", None, None, message)
    return array


def _check_count(name: str, values: Array, records: int, *, at_least: bool = False) -> None:
    if len(values) < records or (len(values) != records and not at_least):
        more = "at least " if at_least else ""
        raise ValueError(f"{len(values)} {name} for {more}{records} records: expected one for each")
