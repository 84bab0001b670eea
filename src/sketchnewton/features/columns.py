"""Which column of a table, or key of a JSON object, is what."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from sketchnewton.core.hints import NamedTuple
from sketchnewton.core.spelling import closest
from sketchnewton.core.types import Header

NUMBER, BOOLEAN, CATEGORY, TEXT, DATE = KINDS = ("number", "boolean", "category", "text", "date")
"""The kinds of columns; ``features.kinds`` says what becomes of their cells."""
LABELS = ("label", "y", "target", "_label")
"""The column of the label, if none is named, is the first of these that is there."""
WEIGHT, TAG = "_weight", "_tag"
"""The columns of weights and tags, if none are named and these are there."""
MOST_WORDS = 16
"""Of neighbours in a text that are one feature."""
_SHOWN = 6  # columns of each kind
_LISTED = 8  # columns in a message
_LONGEST = 60  # name of a column there
_KIND_FIELDS = ("categorical", "numeric", "boolean", "text", "dates")
_ALL_KINDS = {*KINDS, *(f"{TEXT}:{longest}" for longest in range(2, MOST_WORDS + 1))}


class Columns(NamedTuple):
    """What the columns of CSV, Parquet and Arrow tables, and the keys of JSON lines, stand for.

    A column named ``space|name`` belongs to a namespace. All columns that are not mentioned here are features, of
    the kind that the first rows or the table's schema tell: see ``features.kinds``. A missing cell is the feature
    ``column=``.
    """

    label: str | None = None
    """None: ``label``, ``y`` or ``target``, if there is one; rows without a label have NaN."""
    weight: str | None = None
    """None: ``_weight``, if it is there; otherwise all rows weigh 1."""
    tag: str | None = None
    """None: ``_tag``, if it is there."""
    drop: tuple[str, ...] = ()
    """Columns to leave out."""
    categorical: tuple[str, ...] = ()
    """Columns of categories, whatever they look like: numbers, too."""
    numeric: tuple[str, ...] = ()
    """Columns of numbers."""
    boolean: tuple[str, ...] = ()
    """Columns of true and false, yes and no, 1 and 0."""
    text: tuple[str, ...] = ()
    """Columns of texts: a feature per word; ``column:2`` has one for each two neighbours, too."""
    dates: tuple[str, ...] = ()
    """Columns of dates and times: features for year, month, day, weekday and hour."""
    missing: tuple[str, ...] = ()
    """Cells that are missing values, besides empty ones, NA, NaN, null and None."""

    kinds: tuple[tuple[str, str], ...] = ()
    """Kinds of columns that are not to be found out again: see ``with_kinds``."""
    optional: tuple[str, ...] = ()
    """Those of the columns above that may be missing; others are taken for mistyped."""

    def with_kinds(self, kinds: Mapping[str, str]) -> Columns:
        """These columns, with the kinds that a reader found: ``reader.kinds``."""
        return self._replace(kinds=tuple(sorted(kinds.items())))

    def chosen(self) -> dict[str, str]:
        """The kinds of columns that were named; ``ValueError`` if one is to be two things, or is left out.

        What may be missing only mattered to training: the tag of rows to predict may be their label.
        """
        kinds: dict[str, str] = {}
        lists = {CATEGORY: self.categorical, NUMBER: self.numeric, BOOLEAN: self.boolean, DATE: self.dates}
        pairs = [(name, kind) for kind, names in lists.items() for name in names]
        for name, kind in pairs + [_text_column(name) for name in self.text]:
            if kinds.setdefault(name, kind) != kind:
                raise ValueError(f"column '{name}' cannot be both {kinds[name]} and {kind}")
        roles: dict[str, str] = {}
        for role, column in (("label", self.label), ("weight", self.weight), ("tag", self.tag)):
            if column is None:
                continue
            if column in roles and column not in self.optional:
                raise ValueError(f"column '{column}' cannot be both {roles[column]} and the {role}")
            roles[column] = f"the {role}"
        roles.update(kinds)
        for name in self.drop:
            if name in roles:
                raise ValueError(f"column '{name}' cannot be both {roles[name]} and dropped")
        return kinds

    def known_kinds(self) -> dict[str, str]:
        """The kinds that need not be found out: those chosen, and those found before."""
        return {**dict(self.kinds), **self.chosen()}

    def agree(self, other: Columns) -> bool:
        """Whether both make the same features from the same columns."""
        mine, theirs = self.known_kinds(), other.known_kinds()
        same = all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys())
        return same and (set(self.drop), set(self.missing)) == (set(other.drop), set(other.missing))

    def to_dict(self) -> Header:
        """The options that differ from the defaults, for JSON."""
        defaults = self._field_defaults
        return {name: _lists(value) for name, value in self._asdict().items() if value != defaults[name]}

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Columns:
        """What ``to_dict`` gave; ``ValueError`` if that was not it."""
        options: Header = {k: _tuples(v) for k, v in values.items()}
        made = cls(**options)
        lists = (made.drop, made.missing, made.optional, *(getattr(made, name) for name in _KIND_FIELDS))
        if not all(
            isinstance(names, tuple) and all(isinstance(name, str) for name in names) for names in lists
        ):
            raise ValueError("columns are damaged: must be lists of names")
        made.chosen()
        for pair in made.kinds:
            if not (
                isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(part, str) for part in pair)
            ):
                raise ValueError("columns are damaged: kinds must be pairs of a column and its kind")
            if pair[1] not in _ALL_KINDS:
                raise ValueError(f"columns are damaged: no kind is {pair[1]!r}")
        return made

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that have been named."""
        return (*filter(None, (self.label, self.weight, self.tag)), *self.drop, *self.chosen())

    def label_among(self, names: Collection[Hashable]) -> str | None:
        """The column of the label; None if there is none."""
        return next((name for name in self.labels if name in names), None)

    @property
    def labels(self) -> tuple[str, ...]:
        """What the column of the label may be called; the first that is there is it."""
        taken = {self.tag, *(() if self.label is not None else (self.weight, *self.drop))}
        return tuple(name for name in (LABELS if self.label is None else (self.label,)) if name not in taken)

    @property
    def usual_label(self) -> str:
        """What the column of the label is called where a table is made."""
        return next(iter(self.labels), LABELS[0])

    def weight_among(self, names: Collection[str]) -> str | None:
        """The column of the weight; None if there is none."""
        return _among(names, self.weight, WEIGHT, self.drop)

    def tag_among(self, names: Collection[str]) -> str | None:
        """The column of the tag; None if there is none."""
        return _among(names, self.tag, TAG, self.drop)

    def absent_from(self, features: Sequence[str], *, others: bool = False) -> list[str]:
        """The columns of features with known kinds that are not among a table's.

        `ValueError` if none is there, unless the table has `others` whose kinds are not kept: lists.
        """
        set_apart = {self.label, self.weight, self.tag, *self.drop}
        known = [name for name, _ in self.kinds if name not in set_apart]
        there = set(features).intersection(known)
        if known and not there and not others:
            raise ValueError(
                f"none of the columns that the model knows is there: it knows {shown_names(known)}; "
                f"there are {shown_names(features)}"
            )
        return [name for name in known if name not in there]


def meant(name: str, names: Iterable[str]) -> str:
    """` (did you mean …?)` for the closest of `names` to one that is not among them, or nothing."""
    found = closest(name, names)
    return "" if found is None else f" (did you mean '{found}'?)"


def shown_names(names: Sequence[str]) -> str:
    """The first names of columns, in few words and one line: they come from files.

    >>> shown_names(["age", "city\\n"])
    'age, city\\\\n'
    """
    return ", ".join(map(_shown, names[:_LISTED])) + (", …" if len(names) > _LISTED else "") or "no others"


def _shown(name: str) -> str:
    short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    return short if short.isprintable() else short.encode("unicode_escape").decode()


def absent_columns(names: Collection[str], place: str = "the table") -> str:
    """What to say of columns that a model knows and that `place` does not have.

    >>> absent_columns(["age"])
    '1 column that the model knows is missing from the table: age'
    """
    count = (
        "1 column that the model knows is"
        if len(names) == 1
        else f"{len(names):,} columns that the model knows are"
    )
    return f"{count} missing from {place}: {shown_names(list(names))}"


def described_kinds(kinds: Mapping[str, str]) -> str:
    """The kinds of columns in words.

    >>> described_kinds({"age": "number", "city": "category", "vip": "boolean", "zip": "category"})
    '1 number (age), 1 boolean (vip), 2 categories (city, zip)'
    """
    parts = []
    for kind in KINDS:
        names = [name for name, found in kinds.items() if found.partition(":")[0] == kind]
        if names:
            plural = kind if len(names) == 1 else kind[:-1] + "ies" if kind[-1] == "y" else kind + "s"
            shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
            parts.append(f"{len(names):,} {plural} ({shown})")
    return ", ".join(parts)


def _text_column(name: str) -> tuple[str, str]:
    """A column of texts and its kind: ``review:2`` is the column ``review`` with pairs of words."""
    column, colon, longest = name.rpartition(":")
    if colon and longest.isdecimal() and longest.isascii():
        if not 1 <= int(longest) <= MOST_WORDS:
            raise ValueError(
                f"text={name!r} is invalid: must be a column, or column:N with N up to {MOST_WORDS}"
            )
        return column, TEXT if int(longest) == 1 else f"{TEXT}:{int(longest)}"
    return name, TEXT


def _among(names: Collection[str], given: str | None, usual: str, dropped: Collection[str]) -> str | None:
    name = usual if given is None else given
    return name if name in names and name not in dropped else None


def _lists(value: object) -> object:
    return [_lists(item) for item in value] if isinstance(value, tuple) else value


def _tuples(value: object) -> object:
    return tuple(_tuples(item) for item in value) if isinstance(value, list | tuple) else value
