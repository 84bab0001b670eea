"""Targets: how labels become what a learner learns, and back.

>>> target = Classes(names=["cat", "dog", "bird"])
>>> coded = target.code(["dog", "cow", "cat"])
>>> coded.labels.tolist(), coded.unfit
([1.0, nan, 0.0], [1])
>>> target.complaint("cow")
"has the label 'cow', but the classes are 'cat', 'dog', 'bird'"
>>> Target.from_dict(target.to_dict()).name([2, 0]).tolist()
['bird', 'cat']
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property

from sketchnewton import _native
from sketchnewton.core.batch import contiguous
from sketchnewton.core.hints import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast
from sketchnewton.core.types import Array, ArrayLike, Floats, Header, np
from sketchnewton.learners import Learner
from sketchnewton.losses import Loss, get_loss

if TYPE_CHECKING:
    from sketchnewton.model.label_watch import LabelWatch

    Labels = Sequence[object] | Array  # one per row: a list or a memoryview, or an array of numbers

__all__ = ["Classes", "Coded", "Numbers", "Signs", "Target", "shown_label", "target_of"]

NO_LABEL = "has no label, but needs one"
_MOST = 2**31  # classes that a file may ask for; a learner allows fewer
_SHOWN = 8  # names in a message


class Coded(NamedTuple):
    """Labels as the learner gets them, and the rows whose label is unfit.

    `labels` is the very array that was given if labels are learned as they are; else a memoryview, NaN where a
    label is unfit.
    """

    labels: Floats
    unfit: list[int]


class Target(ABC):
    """How labels become what a learner learns, and back. Labels are float64: a memoryview or an array.

    Where classes have names, labels are these names instead, in any sequence.
    """

    kind: ClassVar[str]
    positive: float | str | None = None
    """The label that is learned as +1, all others being −1; None where there is no such label."""
    names: tuple[Hashable, ...] | None = None
    """The label of each class, by its number; None where labels are numbers."""

    def code(self, labels: Labels) -> Coded:
        """What the learner gets for each label."""
        if self.names is not None:
            return self._code_names(labels)
        if not isinstance(labels, memoryview):
            labels = contiguous(cast("ArrayLike", labels), np.float64)  # itself, if that is what it is
        return Coded(*self._rule.code(labels))

    @abstractmethod
    def complaint(self, label: object) -> str:
        """What is wrong with an unfit label, to follow the name of its row."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What becomes of labels, in words."""

    @abstractmethod
    def to_dict(self) -> Header:
        """All that there is to know of it, as JSON can hold it."""

    @staticmethod
    def from_dict(facts: object) -> Target:
        """The target that `to_dict` described; ValueError if it is none."""
        kinds: dict[str, type[Target]] = {"numbers": Numbers, "signs": Signs, "classes": Classes}
        kind = facts.get("kind") if isinstance(facts, Mapping) else None
        if not isinstance(facts, Mapping) or not isinstance(kind, str) or kind not in kinds:
            raise ValueError(f"no target has the kind {kind!r}")
        wanted = {name: value for name, value in facts.items() if name != "kind"}
        try:
            return kinds[kind](**wanted)
        except TypeError:
            raise ValueError(
                f"a target of {kind} is not described by {', '.join(map(repr, wanted))}"
            ) from None

    def name(self, classes: ArrayLike) -> Array:
        """The label of each class, by its number."""
        if self.names is None:
            raise ValueError("the target is a number and has no classes")
        return _as_array(self.names)[np.asarray(classes, np.intp)]

    def shown(self, code: float) -> str:
        """The label that is learned as this number, for people."""
        texts = [] if self.names is None else [text for text, its in self._text_codes.items() if its == code]
        return texts[0].decode() if texts else f"{code:.4g}"

    def copy(self) -> Target:
        """One that may learn how classes are counted without this one's learning it."""
        return self

    def merged(self, other: Target) -> Target:
        """The target of two models in one; ValueError if labels mean different things to them."""
        if (self.kind, self.names, self.positive, self.outputs) != (
            other.kind,
            other.names,
            other.positive,
            other.outputs,
        ):
            raise ValueError(f"cannot merge {other.description} into {self.description}")
        return self

    def check(self, learner: Learner) -> None:
        """Refuse a learner that this is no target for."""
        if self.outputs != learner.classes:
            raise ValueError(
                f"{self.description} cannot be learned by {learner.title}, which predicts {learner.outputs} number"
                f"{'' if learner.outputs == 1 else 's'} per row"
            )

    # -- scores: one per row, or one per row and class

    outputs: int | None = None
    """How many scores a row has; None for a single number."""

    @property
    def classes(self) -> list[Hashable] | None:
        """The labels that are told apart, as probabilities list them; None if a number is predicted."""
        return None if self.names is None else list(self.names)

    def answer(self, scores: Floats) -> Array:
        """Scores as what was asked for: the label of the best class, or the number itself."""
        return scores if self.names is None else self.name(scores >= 0.0)

    def ordered(self, columns: Floats) -> Floats:
        """Columns of the learner's classes in the order of `classes`."""
        return columns

    @property
    def of_codes(self) -> Target:
        """The target for labels that `code` has coded already."""
        return self

    @property
    def label_codes(self) -> Mapping[bytes, float] | None:
        """The code of each label by its text, for readers of tables; None where labels are numbers."""
        if self.names is None:
            return None
        from sketchnewton.model.class_names import is_number  # only where there are names

        return None if all(map(is_number, self.names)) else self._text_codes

    @property
    def as_read(self) -> Target:
        """The target for labels as readers that know `label_codes` give them."""
        return self if self.label_codes is None else self.of_codes

    def hint(self, watch: LabelWatch) -> str | None:
        """What the labels of a stream, as the learner got them, suggest about the target, as a line."""
        return None

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items() if name != "kind")
        return f"{type(self).__name__}({facts})"

    # -- for targets

    _rule: _native.LabelRule
    _codes: dict[Hashable, float]  # of each name

    def _set_names(self, names: Iterable[Hashable], codes: Iterable[float]) -> None:
        self.names = tuple(map(_plain, names))
        self._codes = dict(zip(self.names, codes, strict=True))
        if len(self._codes) != len(self.names):
            raise ValueError(f"classes {_listed(self.names)} are invalid: two have the same name")

    @cached_property
    def _text_codes(self) -> dict[bytes, float]:
        from sketchnewton.model.class_names import label_text  # only where there are names

        return {label_text(name): code for name, code in self._codes.items()}

    def _code_names(self, labels: Labels) -> Coded:
        from sketchnewton.model.class_names import label_text  # only where there are names

        listed = labels.tolist() if hasattr(labels, "tolist") else list(labels)
        coded: Any = _native.zeros((len(listed),), "float64")
        unfit = []
        for row, label in enumerate(listed):
            code = self._codes.get(label) if isinstance(label, Hashable) else None
            if code is None and isinstance(label, str | bool):
                code = self._text_codes.get(label_text(label))  # "7.0" is 7, and "true" is true
            if code is None:
                unfit.append(row)
            coded[row] = math.nan if code is None else code
        return Coded(coded, unfit)

    def _complaint_about_name(self, label: object) -> str:
        if _missing(label):
            return NO_LABEL
        return f"has the label {_plain(label)!r}, but the classes are {_listed(self.names or ())}"


class Numbers(Target):
    """Labels are numbers, learned unchanged; `loss` decides which are valid."""

    kind = "numbers"

    def __init__(self, loss: str | Loss) -> None:
        try:
            self.loss = get_loss(loss)
        except TypeError as error:
            raise ValueError(str(error)) from None
        self._rule = self.loss.labels

    def complaint(self, label: Any) -> str:
        """What is wrong with an unfit label, to follow the name of its row."""
        if math.isnan(label):
            return NO_LABEL
        largest = _native.LARGEST_VALUE
        if abs(label) > largest:
            return f"has the label {label:g}, beyond ±{largest:g}: rescale the labels"
        hint = ": --positive LABEL makes them" if self.loss.sign_labels else ""
        return f"has the label {label:g}, but the {self.loss.name} loss needs {self.loss.label_rule}{hint}"

    @property
    def description(self) -> str:
        """What becomes of labels, in words."""
        return "labels as they are"

    def hint(self, watch: LabelWatch) -> str | None:
        """Two labels that are not −1 and +1 may be classes."""
        return watch.two_classes() if self.loss.name == "squared" else None

    def to_dict(self) -> Header:
        """The loss."""
        return {"kind": self.kind, "loss": self.loss.spec}


class Signs(Target):
    """One label is learned as +1 and all others as −1; or there are two classes, whose second is +1.

    `positive`: the label that is learned as +1; `names`: the two classes instead.
    """

    kind = "signs"

    def __init__(
        self, positive: float | str | None = None, *, names: Sequence[Hashable] | None = None
    ) -> None:
        if (positive is None) == (names is None):
            raise ValueError("give either the positive label or the names of two classes")
        if isinstance(positive, str):
            self.positive = positive
            self._rule = _native.LabelRule.positive(1.0)  # of what a reader made of it
        elif positive is not None:
            number = self.positive = _number("positive", positive)
            self._rule = _native.LabelRule.positive(number)
        else:
            known = _checked_names(names)
            if len(known) != 2:
                raise ValueError(f"classes {_listed(known)} are invalid: must be two")
            self._set_names(known, (-1.0, 1.0))

    def complaint(self, label: object) -> str:
        """What is wrong with an unfit label, to follow the name of its row."""
        return NO_LABEL if self.names is None else self._complaint_about_name(label)

    @property
    def description(self) -> str:
        """What becomes of labels, in words."""
        if self.names is None:
            return f"label {shown_label(self.positive)} as +1, others as -1"
        return f"label {self.names[1]!r} as +1, {self.names[0]!r} as -1"

    def check(self, learner: Learner) -> None:
        """Refuse a learner whose loss takes no label −1."""
        super().check(learner)
        if not learner.loss.takes(-1.0):
            raise ValueError(
                f"two classes need a loss of labels -1 and +1, but the {learner.loss.name} loss needs "
                f"{learner.loss.label_rule}"
            )

    @property
    def of_codes(self) -> Target:
        """The target for labels that are −1 and +1 already."""
        return Signs(1.0)

    def hint(self, watch: LabelWatch) -> str | None:
        """Labels that are all −1 may mean a positive label that was mistyped."""
        return None if self.positive is None else watch.no_positive(self.positive)

    @property
    def label_codes(self) -> Mapping[bytes, float] | None:
        """The code of each label by its text, for readers of tables; None where labels are numbers."""
        if isinstance(self.positive, str):
            from sketchnewton.model.class_names import AgainstAll, label_text

            return AgainstAll(label_text(self.positive))
        return super().label_codes

    def to_dict(self) -> Header:
        """The label that is +1, or both names."""
        if self.names is None:
            return {"kind": self.kind, "positive": self.positive}
        return {"kind": self.kind, "names": _jsonable(self.names)}


class Classes(Target):
    """Labels are classes: 1 to K or 0 to K − 1, learned as `label mod K`; or names, learned as their places.

    So 1 to K − 1 mean the same in both ways of counting; `zero` says whether the remaining class is 0 or K, and is
    None until `code` has seen one of the two.

    `count` is K; `names` are the classes instead, in the order of their places.
    """

    kind = "classes"

    def __init__(
        self,
        count: int | None = None,
        zero: bool | None = None,
        *,
        names: Sequence[Hashable] | None = None,
    ) -> None:
        if (count is None) == (names is None):
            raise ValueError("give either the number of classes or their names")
        if names is not None:
            known = _checked_names(names)
            self._set_names(known, map(float, range(len(known))))
            count = len(known)
        if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count < _MOST:
            raise ValueError(f"count={count!r} is invalid: must be at least 2")
        if zero is not None and not isinstance(zero, bool):
            raise ValueError(f"zero={zero!r} is invalid: must be true, false or none")
        self.count = self.outputs = count
        self._rule = _native.LabelRule.classes(count, zero)

    @property
    def zero(self) -> bool | None:
        """Whether classes are counted from 0; None if that is not known yet."""
        return self._rule.zero

    def name(self, classes: ArrayLike) -> Array:
        """The label of each class, by its number."""
        if self.names is not None:
            return super().name(classes)
        numbers = np.asarray(classes, np.intp)
        return numbers if self.zero else np.where(numbers == 0, self.count, numbers)

    @property
    def classes(self) -> list[Hashable]:
        """The labels of the classes, the smallest first, or their names."""
        if self.names is not None:
            return cast("list[Hashable]", self.name(np.arange(self.count)).tolist())
        return list(range(self.count) if self.zero else range(1, self.count + 1))

    def answer(self, scores: Floats) -> Array:
        """The label of each row's best class."""
        return self.name(scores.argmax(axis=1))

    def ordered(self, columns: Floats) -> Floats:
        """Columns of the learner's classes in the order of `classes`: counted from 1, class 0 is the last."""
        return columns if self.names is not None or self.zero else np.roll(columns, -1, axis=1)

    def copy(self) -> Target:
        """One that may learn how classes are counted without this one's learning it."""
        return self if self.names is not None else Classes(self.count, self.zero)

    def merged(self, other: Target) -> Target:
        """The target of two models in one, which counts classes as the one that knows."""
        super().merged(other)
        theirs = other.zero if isinstance(other, Classes) else None
        if self.zero is None or theirs is None:
            return self.copy() if theirs is None else other.copy()
        if self.zero != theirs:
            raise ValueError("cannot merge classes counted from 0 and from 1")
        return self

    @property
    def of_codes(self) -> Target:
        """The target for labels that are places already."""
        return Classes(self.count, zero=True)

    def complaint(self, label: Any) -> str:
        """What is wrong with an unfit label, to follow the name of its row."""
        if self.names is not None:
            return self._complaint_about_name(label)
        if math.isnan(label):
            return NO_LABEL
        count = self.count
        if label in (0, count):
            return (
                f"has the label {label:g}, but there was a label {count - label:g}: "
                f"classes are 1..{count} or 0..{count - 1}"
            )
        return f"has the label {label:g}, but --multiclass {count} needs 1..{count} or 0..{count - 1}"

    @property
    def description(self) -> str:
        """What becomes of labels, in words."""
        return f"labels as {self.count} classes" + ("" if self.names is None else f": {_listed(self.names)}")

    def to_dict(self) -> Header:
        """How many classes there are and how they are counted, or their names."""
        if self.names is None:
            return {"kind": self.kind, "count": self.count, "zero": self.zero}
        return {"kind": self.kind, "names": _jsonable(self.names)}


def target_of(learner: Learner) -> Target:
    """What labels mean to a learner of which nothing else is known."""
    return Numbers(learner.loss) if learner.classes is None else Classes(learner.classes)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        raise ValueError(f"{name}={value!r} is invalid: must be a number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} is invalid: the number is too large") from None
    if math.isnan(number):
        raise ValueError(f"{name}={value!r} is invalid: must be a number")
    return number


def shown_label(label: object) -> str:
    """A label in a message."""
    return f"{label:.12g}" if isinstance(label, float) else repr(label)


def _missing(label: object) -> bool:
    plain = _plain(label)
    return plain is None or (isinstance(plain, float) and math.isnan(plain))


def _checked_names(names: object) -> Sequence[Hashable]:
    if isinstance(names, str | bytes | Mapping) or not hasattr(names, "__len__"):
        raise ValueError(f"names={names!r} is invalid: must be a list of classes")
    for name in cast("Sequence[object]", names):
        if not isinstance(name, Hashable) or _missing(name):
            raise ValueError(f"{name!r} cannot be the name of a class")
    return cast("Sequence[Hashable]", names)


def _plain(name: object) -> Hashable:
    """A NumPy scalar as Python's own, which compares and hashes alike."""
    return cast("Hashable", name.item() if hasattr(name, "item") else name)


def _as_array(names: tuple[Hashable, ...]) -> Array:
    """An array that holds the names as they are: of one type if they have one, else of objects."""
    if len(set(map(type, names))) == 1 and isinstance(names[0], str | int | float):
        return np.array(names)
    made = np.empty(len(names), object)
    made[:] = names
    return made


def _jsonable(names: tuple[Hashable, ...]) -> list[str | int | float]:
    listed = []
    for name in names:
        if not isinstance(name, str | int | float):
            raise ValueError(f"the class {name!r} cannot be saved: names are text, numbers, true or false")
        listed.append(name)
    return listed


def _listed(names: Sequence[Hashable]) -> str:
    shown = ", ".join(repr(_plain(name)) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
