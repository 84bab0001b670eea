"""`Model`: what turns records into predictions, whole, behind every door."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from sketchnewton.core.archive import ModelFileError
from sketchnewton.core.batch import Batch
from sketchnewton.core.hints import TYPE_CHECKING, Self, overload
from sketchnewton.core.persistence import Persistent, class_named, load, part
from sketchnewton.core.state import Buffers, View
from sketchnewton.core.types import Array, ArrayLike, Arrays, Floats, Header, Path, np
from sketchnewton.evaluation import ProgressiveScore, score_for
from sketchnewton.features.columns import Columns
from sketchnewton.features.names import Names
from sketchnewton.features.options import Features
from sketchnewton.learners import Learner
from sketchnewton.model.file import archived, parts_around, rebuilt_learner, restore
from sketchnewton.model.label_watch import LabelWatch
from sketchnewton.model.record_reader import RecordReader, listed
from sketchnewton.model.target import Target, target_of

if TYPE_CHECKING:
    from sketchnewton.evaluation.metrics import Answers
    from sketchnewton.model.target import Labels

__all__ = ["Model", "open_model"]


class Model(RecordReader, Persistent):
    """A trainable model for records: turns them into features, labels into targets, and scores into predictions.

    A model trained by `skn train` is the same thing as one made here: both are saved whole, and
    `sketchnewton.load` opens both. Records are a dict, a list of dicts, a pandas, polars or pyarrow table, lines
    of VW text, a 2-D array or CSR matrix of numbered features, or the path of anything that
    `streams.open_stream` reads.

    * `learner`: default `NewtonBank()`, which needs no tuning.
    * `target`: what labels mean; default: what the first records to learn tell. Numbers are learned as they are,
      or are the classes of a learner of several; texts, true and false are classes, all of which must be there.
    * `features`: how features are named, hashed, joined and multiplied (`features.Features`).
    * `columns`: which column of a table is the label, the weight, the tag, a category (`features.Columns`).
    * `exact_names`: number the names of features in a dictionary instead of hashing them.

    >>> model = Model()
    >>> rows = [{"y": 1, "city": "Rome", "price": 2.5}, {"y": -1, "city": "Oslo", "price": 1.0}]
    >>> for _ in range(10):
    ...     before = model.learn(rows)
    >>> (model.predict({"city": "Rome", "price": 2.0}) > 0).tolist()
    [True]
    """

    learner: Learner
    target: Target
    features: Features
    columns: Columns
    names: Names | None
    """The names of features, where the model keeps them."""
    run: Header | None
    """Of an unfinished run of `skn train`: how far it had come."""
    notes: dict[str, int | str]
    """What those who train it want to find again in its file, such as the number of the last batch."""
    best: Learner | None
    """Of an unfinished run: the learner after the best pass so far, where the best is to be kept."""
    _takes_views = True
    _undecided: Learner | None = None
    """The learner, as long as nobody knows what labels are."""

    def __init__(
        self,
        learner: Learner | None = None,
        *,
        target: Target | None = None,
        features: Features | None = None,
        columns: Columns | None = None,
        exact_names: bool = False,
    ) -> None:
        super().__init__(features, columns, Names(exact=True) if exact_names else None)
        if learner is None:
            from sketchnewton.learners import NewtonBank

            learner = NewtonBank()
        if not isinstance(learner, Learner):
            raise ValueError(f"learner={learner!r} is invalid: must be a learner, such as NewtonBank()")
        self.learner = learner
        self.target = target_of(learner) if target is None else target
        self.target.check(learner)
        if target is None and not learner.rows_seen:
            self._undecided = learner
        self.run = None
        self.best = None
        self.notes = {}

    # -- for users

    def learn(self, records: object, labels: object = None, weights: ArrayLike | None = None) -> Array:
        """Predict each record, then learn its label; return the predictions, as `predict` gives them.

        Labels and weights are those of the records (columns `label` and `_weight`, or what `columns` names) unless
        they are given. Records in memory are checked before anything is learned; those of files batch by batch.
        They are learned in order; a warning says so if they are sorted by class.
        """
        watch, learned = LabelWatch(), []
        for batch, scores in self.learning(records, labels, weights):
            if len(batch) > 1:  # single records are a stream, of which this is no part to judge
                watch.follow(batch.views.labels)
            learned.append(scores)
        if (runs := watch.runs(numbers=self.target.kind == "numbers")) is not None:
            import warnings

            warnings.warn(f"{runs}: shuffle them first", stacklevel=2)
        return self.answer(self._joined(learned))

    def learning(
        self,
        records: object,
        labels: object = None,
        weights: ArrayLike | None = None,
        *,
        rows: int | None = None,
        check: Callable[[Sequence[Batch]], None] | None = None,
    ) -> Iterator[tuple[Batch, Floats]]:
        """`learn` step by step: rows whose labels are targets, and their scores before each was learned.

        A step has at most so many `rows`. Records in memory are checked before the first step, by `check` too, if
        there is one: what is refused leaves no trace.
        """
        kept = self.columns, self.learner, self.target
        try:
            target, batches = self._lesson(records, listed(labels), weights, check)
        except BaseException:
            self.columns, self.learner, self.target = kept
            raise
        for batch in batches:
            self.target, self.run, self.best, self._undecided = target, None, None, None
            size = rows or len(batch)
            for begin in range(0, len(batch), size):
                part = batch if size >= len(batch) else batch[begin : begin + size]
                yield part, np.asarray(self.learner.learn_batch(part))

    def _lesson(
        self,
        records: object,
        labels: Labels | None,
        weights: ArrayLike | None,
        check: Callable[[Sequence[Batch]], None] | None,
    ) -> tuple[Target, Iterable[Batch]]:
        """The batches to learn, those of records in memory checked, and the target after them."""
        if self._undecided is None:
            target = self.target.copy()  # learns from rows, even from those that are refused
            plain = self._plain_lesson(records, labels, weights, target)
            if plain is not None:  # hashes fit: nothing is to be reserved
                if check is not None:
                    check(plain)
                return target, plain
        from sketchnewton.streams.records import names_files

        in_memory = not names_files(records)
        if self._undecided is not None:
            from sketchnewton.model.deciding import decided

            self.learner, self.target = decided(self._undecided, records, labels, self.columns)
        if self.names is not None and in_memory and not isinstance(records, Iterator):
            # Reading adds to exact names: try it on a copy of them.
            names = self._names_for_reading()
            trial = list(self._labelled(records, labels, weights, self.target.copy(), names, remember=False))
            if check is not None:
                check(trial)
        target = self.target.copy()
        if not in_memory:
            return target, self._labelled(records, labels, weights, target)
        batches = list(self._labelled(records, labels, weights, target))
        if check is not None:
            check(batches)
        for batch in sorted(batches, key=lambda batch: -batch.rows.scan()[0]):  # the largest index first
            self.learner.reserve(batch.rows)
        return target, batches

    @overload
    def predict(self, records: object) -> Array: ...
    @overload
    def predict(self, records: object, interval: float | Sequence[float]) -> tuple[Array, Floats]: ...
    def predict(
        self, records: object, interval: float | Sequence[float] | None = None
    ) -> Array | tuple[Array, Floats]:
        """The prediction for each record: a number, or the label of the most probable class.

        With `interval`, a coverage such as 0.9: the predictions, and for each its lower and its upper bound, an
        array of rows × 2; of several coverages rows × 2 × coverages. Both are on the scale of the labels
        (docs/intervals.md has what is promised).
        """
        if interval is None:
            return self.answer(self.decision_function(records))
        wanted = [
            (self.linked(scores), self.interval(scores, interval, batch))
            for batch, scores in self._scored(records)
        ]
        if not wanted:
            return self._joined([]), self.interval(np.zeros(0), interval)
        predictions, bounds = zip(*wanted, strict=True)
        return np.concatenate(predictions), np.concatenate(bounds)

    def predict_quantiles(self, records: object, levels: Sequence[float]) -> Floats:
        """Quantiles of the label of each record, rows × levels, which must rise; quantiles never cross."""
        self._check_numbers()
        found = [
            self.learner.quantiles(scores, levels, batch.rows) for batch, scores in self._scored(records)
        ]
        return np.concatenate(found) if found else np.zeros((0, len(levels)))

    def interval(
        self, scores: Floats, coverage: float | Sequence[float], batch: Batch | None = None
    ) -> Floats:
        """Lower and upper bounds of the labels of the rows of a batch with these scores, as `predict` has them."""
        self._check_numbers()
        return self.learner.interval(scores, coverage, None if batch is None else batch.rows)

    def _scored(self, records: object) -> Iterator[tuple[Batch, Floats]]:
        return ((batch, self.scores(batch)) for batch in self.rows_of(records))

    def _check_numbers(self) -> None:
        if self.has_classes:
            raise ValueError("the model predicts classes, which have probabilities and no intervals")

    def predict_proba(self, records: object) -> Floats:
        """The probability of each class, a column per class in the order of `classes`: else of −1 and +1."""
        if not self.has_classes:
            raise ValueError(
                "the model predicts a number and has no probabilities: give it a target of classes"
            )
        return self.probabilities(self.decision_function(records))

    def decision_function(self, records: object) -> Floats:
        """The learner's scores: one per record, or one per record and class."""
        return self._joined([self.scores(batch) for batch in self.rows_of(records)])

    def test(
        self, records: object, labels: object = None, weights: ArrayLike | None = None
    ) -> dict[str, float]:
        """Mean loss and all metrics that apply to records whose labels are known; nothing is learned."""
        from sketchnewton.evaluation.metrics import measure

        score, answers = self.answers(records, labels, weights)
        return {"rows": score.rows, "loss": score.mean_loss, **measure(answers)}

    def answers(
        self, records: object, labels: object = None, weights: ArrayLike | None = None
    ) -> tuple[ProgressiveScore, Answers]:
        """What `test` measures: the score, and predictions with what was right."""
        names = self._names_for_reading()
        target = self.target.copy()
        return self.tested(
            self._labelled(records, labels, weights, target, names, remember=False, judged=True)
        )

    def merge(self, *others: Model, base: Model | None = None) -> Self:
        """Merge `others`, trained on other records, into this model. Returns it; the others are not changed.

        All must turn records into features and labels into targets in the same way. `base` is the model that all
        of them began with, where they did not begin with nothing (`NewtonBank`, the default learner, takes one).
        """
        for other in (*others, *([] if base is None else [base])):
            if not isinstance(other, Model):
                raise ValueError(f"cannot merge a {type(other).__name__} into a Model")
        taught = [other for other in others if other.learner.rows_seen]
        if not taught:
            return self
        models: list[Model] = [self, *taught] if self.learner.rows_seen else taught
        first, *rest = models
        target, columns = first.target.copy(), first.columns
        for other in rest:
            target = target.merged(other.target)
            first.check_mergeable(other)
            columns = columns.with_kinds({**dict(other.columns.kinds), **dict(columns.kinds)})
        begun = base if base is not None and base.learner.rows_seen else None
        if begun is not None:
            first.check_mergeable(begun)
        from sketchnewton.model.joint_names import renumbered

        names, learners, start = renumbered(models, begun)
        self.learner.merge(*learners[int(first is self) :], base=start)
        self.features, self.columns, self.names = first.features, columns, names
        self.target, self.run, self.best, self._undecided = target, None, None, None
        return self

    @property
    def classes(self) -> list[Hashable] | None:
        """The labels of the columns of `predict_proba`; None if the model predicts a number."""
        return self.target.classes

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes, so that there are probabilities of them."""
        return self.target.kind != "numbers" or self.learner.loss.sign_labels

    # -- for doors: what a prediction is, batch by batch

    def scores(self, batch: Batch) -> Floats:
        """The learner's scores for the rows of a batch, with what the rows themselves add to them."""
        return np.asarray(self.native_scores(batch))

    def native_scores(self, batch: Batch, learner: Learner | None = None) -> View | Floats:
        """The same, as a native buffer if rows add nothing; `learner` is the model's own, or a reader of it."""
        scores = (learner or self.learner).predict_batch(batch)
        if batch.base is None:
            return scores
        added = np.asarray(scores)
        return added + (batch.base if added.ndim == 1 else batch.base[:, None])

    def scorer(self) -> Callable[[Batch], View | Floats | None] | None:
        """`native_scores` for several threads at once, None for a batch with rows that cannot be predicted.

        None if the learner is one for a single thread. Nobody may learn meanwhile.
        """
        if self.learner.reader() is None:
            return None
        own = threading.local()

        def score(batch: Batch) -> View | Floats | None:
            if batch.rows.scan()[2] >= 0:  # the first bad row
                return None
            if not hasattr(own, "reader"):
                own.reader = self.learner.reader()
            return self.native_scores(batch, own.reader)

        return score

    def answer(self, scores: Floats) -> Array:
        """Scores as what was asked for: the label of the best class, or the number itself."""
        return self.target.answer(scores)

    def probabilities(self, scores: Floats) -> Floats:
        """The probability of each class."""
        return self.target.ordered(self.learner.probabilities(scores))

    def linked(self, scores: Floats) -> Floats:
        """Scores on the scale of the answer: probabilities of the logistic loss, rates of the Poisson loss."""
        loss = self.learner.loss
        if loss.link_kind != "logistic":
            return self.ordered(loss.link(scores))
        found = self.probabilities(scores)
        return found[:, 1] if scores.ndim == 1 else found

    def ordered(self, columns: Floats) -> Floats:
        """Columns of the learner's classes in the order of `classes`; a single one stays."""
        return self.target.ordered(columns)

    def tested(self, batches: Iterable[Batch]) -> tuple[ProgressiveScore, Answers]:
        """The score of batches whose labels are targets, and all that metrics need; nothing is learned."""
        score = self.new_score()
        scores, wanted, importance = [], [], []
        for batch in batches:
            scores.append(self.scores(batch))
            wanted.append(batch.labels)
            importance.append(np.ones(len(batch)) if batch.weights is None else batch.weights)
            score.update(scores[-1], batch.labels, batch.weights)
        if not scores:
            raise ValueError("no records to test")
        predictions = self._joined(scores)
        signs = score.error_rate is not None
        return score, self.judged(
            predictions, np.concatenate(wanted), np.concatenate(importance), signs=signs
        )

    def judged(self, scores: Floats, targets: Floats, weights: Floats, *, signs: bool) -> Answers:
        """What metrics need of rows with these scores and targets; `signs` says that all targets are −1 or +1."""
        from sketchnewton.evaluation.metrics import Answers

        kind = self._kind(signs)
        known = None if kind == "numbers" else self.learner.probabilities(scores)
        if kind == "numbers":
            scores = self.learner.loss.link(scores)
        return Answers(scores, targets, weights, kind, known)

    def new_score(self) -> ProgressiveScore:
        """A new score, of the kind that fits the learner."""
        return score_for(self.learner)

    def facts(self, top: int = 10) -> Header:
        """Description of the model for JSON: parameters, spectrum, the `top` largest weights."""
        from sketchnewton.model.facts import facts_of

        return facts_of(self, top)

    def __repr__(self) -> str:
        return f"Model({self.learner!r}, target={self.target!r})"

    # -- files

    def to_archive(self) -> tuple[Header, Buffers]:
        """What a file holds: the learner's own, and beside it what surrounds the learner."""
        return archived(self)

    @classmethod
    def like(cls, header: Mapping[str, object]) -> Self:
        """A model as this header describes it that has learned nothing; raises what a damaged header leads to."""
        inner = part(header, "learner")
        return cls(**parts_around(class_named(inner["class"])(**inner["parameters"]), header))

    @classmethod
    def _rebuilt(cls, header: Mapping[str, object], arrays: Arrays) -> Self:
        model = cls(**parts_around(rebuilt_learner(part(header, "learner"), arrays), header))
        restore(model, header, arrays)
        return model

    def _all_arrays(self) -> Buffers:
        return self.to_archive()[1]

    def _restore(self, arrays: Arrays) -> None:
        raise AssertionError("a model is rebuilt with its parts")

    def _exclusive(self) -> AbstractContextManager[object]:
        return self.learner._exclusive()

    def _savable(self) -> tuple[Header, Buffers]:
        """Refuse what no loader would take: it must not replace a file that is good."""
        class_named(type(self.learner).__name__)
        return super()._savable()

    def _joined(self, parts: list[Floats]) -> Floats:
        if parts:
            return np.concatenate(parts)
        return np.zeros((0,) if self.learner.classes is None else (0, self.learner.classes))

    def _kind(self, signs: bool) -> str:
        """What labels are, for metrics."""
        if self.learner.classes is not None:
            return "classes"
        return "signs" if signs else "numbers"

    def check_mergeable(self, other: Model) -> None:
        """Raise ValueError for a model with different features, target or learner."""
        self.target.merged(other.target)
        self.learner._check_mergeable(other.learner)
        if other.features != self.features or not self.columns.agree(other.columns):
            raise ValueError("cannot merge models that make features in different ways")
        if (self.names is None) != (other.names is None):
            raise ValueError("cannot merge exact names and hashed ones")


def open_model(path: Path) -> Model:
    """The model at `path`; a learner that was saved alone predicts numbered features and numeric labels."""
    found = load(path)
    if isinstance(found, Model):
        return found
    if isinstance(found, Learner):
        return Model(found)
    raise ModelFileError(f"{os.fspath(path)}: holds a {type(found).__name__}, not a model")
