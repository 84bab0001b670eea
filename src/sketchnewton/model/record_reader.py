"""Records as rows of features: the part of a model that needs no learner."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator
from functools import partial

from sketchnewton.core.batch import Batch
from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.core.types import ArrayLike, np
from sketchnewton.features.columns import Columns, absent_columns
from sketchnewton.features.names import Names, shown_feature
from sketchnewton.features.options import Features
from sketchnewton.model.fitting import LARGEST_VALUE, fit
from sketchnewton.model.target import NO_LABEL, Target

if TYPE_CHECKING:
    from sketchnewton.model.target import Labels
    from sketchnewton.streams.plain_records import PlainRecords

__all__ = ["PYTHON_ADVICE", "RecordReader", "listed"]

PYTHON_ADVICE = " (labels=…, or columns=Columns(label=…) in a table)"
"""What to do about a missing label, for those who call from Python."""

_PLAIN = (float, int, bool, str)  # labels that need no closer look


class RecordReader:
    """Turns records into rows, by names, columns and options that are kept; labels become targets on request.

    * `features`: how features are named, hashed, joined and multiplied.
    * `columns`: which column of a table is the label, the weight, the tag, a category.
    * `names`: the names of features, where they are kept.

    `target`, what labels mean, is for those who inherit to set.
    """

    features: Features
    columns: Columns
    names: Names | None
    target: Target

    def __init__(self, features: Features | None, columns: Columns | None, names: Names | None) -> None:
        super().__init__()
        self.features = Features() if features is None else features
        self.columns = Columns() if columns is None else columns
        self.names = names
        self._reading: tuple[int, Names | None] | None = None
        self._plain: tuple[Columns, Features, PlainRecords] | None = None
        self._told: frozenset[str] = frozenset()  # columns whose absence was the last warning
        self._kinds: dict[str, str] = {}  # of the columns of the records that are being read

    def rows_of(self, records: object, absent: dict[str, None] | None = None) -> Iterator[Batch]:
        """The records as rows to be predicted; the model stays as it is.

        Columns that a table lacks are noted in `absent`; without it, a warning names them.
        """
        plain = self._plain_rows(records)
        if plain is not None and plain[0].rows.scan()[2] < 0:
            return iter((plain[0],))
        # What mattered to training only need not be there.
        columns = self.columns._replace(optional=self.columns.named)
        names = self._names_for_reading()
        read = self._read(records, columns=columns, names=names, labelled=False, absent=absent, judged=True)
        return fit(read, None, _raise, self._feature)

    def _plain_rows(self, records: object) -> tuple[Batch, list[object]] | None:
        """Rows of a dict or a list of dicts, with the values of their labels, if nothing in them is unusual."""
        listed = [records] if type(records) is dict else records
        if self.names is not None or type(listed) is not list or not all(type(one) is dict for one in listed):
            return None
        known = self._plain
        if known is None or known[0] is not self.columns or known[1] is not self.features:
            from sketchnewton.streams.plain_records import PlainRecords
            from sketchnewton.streams.reader import ReadOptions

            known = (
                self.columns,
                self.features,
                PlainRecords(ReadOptions(self.features, self.columns, None, {})),
            )
            self._plain = known
        return known[2].rows(listed) if listed else None

    def _plain_lesson(
        self, records: object, labels: Labels | None, weights: object, target: Target
    ) -> list[Batch] | None:
        """The same with labels as targets, where those are plain numbers or texts; None for all else."""
        found = self._plain_rows(records)
        # Reading would note the kinds that were chosen, too.
        if found is None or self._plain is None or len(self.columns.kinds) < len(self._plain[2].kinds):
            return None
        batch, values = found
        given = values if labels is None else labels
        if type(given) is not list or len(given) != len(values):
            return None
        codes = target.label_codes
        if codes is None:
            coded = given
        else:
            from sketchnewton.model.class_names import label_text

            if not all(type(label) is str for label in given):
                return None
            coded = [codes.get(label_text(label)) for label in given]
        if not all(type(label) is float or type(label) is int for label in coded):
            return None
        importance: memoryview | None = None
        if weights is not None:
            if (
                type(weights) is not list
                or len(weights) != len(values)
                or not all(type(one) is float and 0.0 <= one <= LARGEST_VALUE for one in weights)
            ):
                return None
            if any(one != 1.0 for one in weights):
                importance = memoryview(array("d", weights))
        read, labels = target.as_read, memoryview(array("d", coded))
        targets, unfit = read.code(labels)
        made = Batch(*batch.views[:3], targets, importance)
        bad = unfit or made.rows.scan()[2] >= 0  # which row, and why?
        return list(fit((made.replace(labels=labels),), read, _raise, self._feature)) if bad else [made]

    def _labelled(
        self,
        records: object,
        labels: object,
        weights: ArrayLike | None,
        target: Target,
        names: Names | None = None,
        *,
        remember: bool = True,
        judged: bool = False,
    ) -> Iterator[Batch]:
        """The records with targets for labels; a row that cannot be learned raises ValueError."""
        given = listed(labels)
        columns = None if remember else self.columns
        read = partial(self._read, records, weights=weights, columns=columns, names=names, judged=judged)
        if target.names is None and target.label_codes is not None and given is not None:
            coded_texts = self._coded_texts(given, target)
            return fit(read(labels=coded_texts), target.of_codes, _raise, self._feature)
        if target.names is None:
            return fit(read(labels=_numbers(given)), target, _raise, self._feature)
        if given is None:
            return fit(read(), target.as_read, _raise, self._feature)
        coded = target.code(given)
        for row in coded.unfit:
            _raise(row + 1, target.complaint(given[row]))
        return fit(read(labels=coded.labels), target.of_codes, _raise, self._feature)

    @staticmethod
    def _coded_texts(labels: Labels, target: Target) -> list[float]:
        """Labels of which a text is learned as +1 and all others as −1, in any type that a table could have."""
        from sketchnewton.model.class_names import label_text

        codes = target.label_codes or {}
        listed = labels.tolist() if hasattr(labels, "tolist") else list(labels)
        for row, label in enumerate(listed, 1):
            if label is None or (isinstance(label, float) and np.isnan(label)):
                _raise(row, target.complaint(label))
        return [codes[label_text(label)] for label in listed]

    def _names_for_reading(self) -> Names | None:
        """Names that may grow without the model's own growing: what is only predicted leaves no trace."""
        if self.names is None:
            return None
        known = len(self.names)
        of, names = self._reading or (-1, None)
        if names is None or of != known or len(names) > 2 * known + 10_000:
            names = _copied(self.names)
            self._reading = (known, names)
        return names

    def _read(
        self,
        records: object,
        labels: Labels | None = None,
        weights: ArrayLike | None = None,
        columns: Columns | None = None,
        names: Names | None = None,
        *,
        labelled: bool = True,
        judged: bool = False,
        absent: dict[str, None] | None = None,
    ) -> Iterator[Batch]:
        """The records as batches. What their columns turn out to be is remembered, unless others are given.

        If they are to be `judged` by what was learned, a table must have columns that are known; those that it
        does not have are noted in `absent`, or a warning names them.
        """
        from sketchnewton.streams.records import read_records

        noted: dict[str, None] | None = {} if judged and absent is None else absent
        kinds: dict[str, str] = {}
        self._kinds = kinds
        yield from read_records(
            records,
            columns=columns or self.columns,
            features=self.features,
            names=self.names if names is None else names,
            kinds=kinds,
            labels=labels,
            weights=weights,
            label_codes=self.target.label_codes,
            ignore_labels=not labelled,
            absent=noted,
        )
        if absent is None and noted and frozenset(noted) != self._told:
            import warnings

            warnings.warn(absent_columns(noted), stacklevel=_frames_inside())
            self._told = frozenset(noted)  # tables that follow are mostly like the first
        if kinds and columns is None:
            self.columns = self.columns.with_kinds(kinds)

    def _feature(self, index: int) -> str:
        """What to call a feature of the records that are being read."""
        return shown_feature(index, self._kinds, self.features.mask, self.names)


def _copied(names: Names | None) -> Names | None:
    return None if names is None else Names.from_state(names.state(), names.exact)


def listed(labels: object) -> Labels | None:
    """Labels as they may be asked for by position: a list of anything but arrays of numbers, which stay.

    Each is what it would be in a record: a number, true or false, a text, or None if it is missing.
    """
    if labels is None or (isinstance(labels, np.ndarray) and labels.dtype.kind in "fiub"):
        return labels
    if isinstance(labels, str | bytes):
        return [_as_in_a_record(labels)]
    if hasattr(labels, "tolist"):
        labels = labels.tolist()
    return list(map(_as_in_a_record, labels if isinstance(labels, Iterable) else [labels]))


def _numbers(labels: Labels | None) -> Labels | None:
    """Labels of which texts are numbers, as in a table."""
    if not isinstance(labels, list) or not any(isinstance(label, str) for label in labels):
        return labels
    from sketchnewton.features.kinds import encoded, looks_like_number

    texts = [encoded(label) if isinstance(label, str) else None for label in labels]
    if not all(text is None or looks_like_number(text) for text in texts):
        raise ValueError("labels are text: give the model classes, such as target=Signs(names=[…])")
    return [label if text is None else float(text) for label, text in zip(labels, texts, strict=True)]


def _as_in_a_record(label: object) -> object:
    if type(label) not in _PLAIN:
        from sketchnewton.streams.records import plain_value

        label = plain_value(label)
    if not isinstance(label, str):
        return label
    from sketchnewton.features.kinds import MISSING

    return None if label.strip() in MISSING else label


def _of_this_package(names: dict[str, object]) -> bool:
    return str(names.get("__name__")).partition(".")[0] == "sketchnewton"


def _frames_inside() -> int:
    """How far up the caller of this package is: the warning points there."""
    level, frame = 0, sys._getframe(0)
    while frame.f_back is not None and _of_this_package(frame.f_globals):
        level, frame = level + 1, frame.f_back
    return level


def _raise(row: int, why: str) -> None:
    advice = PYTHON_ADVICE if why == NO_LABEL else ""
    raise ValueError(f"row {row} {why}{advice}")
