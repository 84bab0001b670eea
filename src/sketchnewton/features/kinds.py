"""The kinds of columns: what a cell of a table, or a value of a JSON object, becomes.

All formats come here, so that the same table gives the same features in each of them:

=========  =====================================  ==================================================
kind       a cell                                 features of the column ``c``
=========  =====================================  ==================================================
number     ``2.5``                                ``c`` with that value
boolean    ``true``, ``no``, ``1``                ``c`` with 1 or 0
category   ``Rome``, ``2024-01-31``               ``c=Rome`` with 1
text       ``Good food.``                         ``c=good``, ``c=food``; ``text:2`` also ``c=good food``
date       ``2024-01-31``, ``2024-01-31T12:30``   ``c`` in years from 2000, ``c.month=1``, ``c.day=31``,
                                                  ``c.weekday=wed``, ``c.hour=12`` unless it is midnight
any        missing                                ``c=`` with 1
=========  =====================================  ==================================================

>>> features_of("category", b"1.0"), features_of("boolean", b"Yes"), features_of("text:2", b"Good food.")
([(b'=1', 1.0)], [(b'', 1.0)], [(b'=good', 1.0), (b'=food', 1.0), (b'=good food', 1.0)])
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable

from sketchnewton.features.columns import BOOLEAN, CATEGORY, DATE, NUMBER

MISSING = ("", "NA", "NaN", "nan", "null", "NULL", "None")
"""Cells that mean that there is no value; blanks around them do not count."""
MISSING_NAME = b"="
"""What follows the column in the name of the feature that says so: no category has an empty name."""

EXPECTED = {
    NUMBER: "expected a number",
    BOOLEAN: "expected true, false, yes, no, 1 or 0",
    DATE: "expected a date such as 2024-01-31 or 2024-01-31T12:30",
}

_BOOLEANS = {b"true": 1.0, b"yes": 1.0, b"1": 1.0, b"false": 0.0, b"no": 0.0, b"0": 0.0}
_TRUTH = (b"true", b"false", b"yes", b"no")
_WHOLE = re.compile(rb"(-?(?:0|[1-9][0-9]*))\.0+")
_PADDED = re.compile(rb"\s*[-+]?0[0-9]")
_MOMENT = re.compile(
    rb"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?\s*(Z|[-+]\d\d(?::?\d\d)?)?", re.ASCII
)
_TIME = re.compile(rb"\d\d:\d\d:\d\d\.\d+", re.ASCII)
_DASH, _ZERO = b"-0"
_WORD = re.compile(r"\w+")
_YEAR = 365.2425 * 86400.0
_WEEKDAYS = (b"mon", b"tue", b"wed", b"thu", b"fri", b"sat", b"sun")
_LARGEST_WHOLE = 2.0**53

Cell = list[tuple[bytes, float]]
"""The features of a cell: what follows the column's name in theirs, and their values."""


class Misfit(ValueError):
    """A cell that is not of its column's kind; says what was expected."""


def missing_texts(others: Iterable[str] = ()) -> frozenset[bytes]:
    """The cells that mean a missing value: the usual ones and `others`."""
    texts = [encoded(text.strip()) for text in (*MISSING, *others)]
    return frozenset((*texts, *map(category, texts)))


def missing_numbers(others: Iterable[str]) -> frozenset[float]:
    """The numbers that mean one, such as -999: in formats that know numbers from texts, too."""
    texts = [encoded(text) for text in others]
    numbers = [float(text) for text in texts if looks_like_number(text)]
    return frozenset(number for number in numbers if math.isfinite(number))


def is_missing(text: bytes, missing: Collection[bytes]) -> bool:
    """Whether a cell has no value; -999.0 is -999, as a table of floats has it."""
    plain = text.strip()
    return plain in missing or (plain[-2:] in (b".0", b"00") and category(plain) in missing)


def features_of(kind: str, text: bytes) -> Cell:
    """The features of a cell that is not missing; ``Misfit`` if it is not of this kind.

    A feature of value 0 is none. Only ``text`` and ``date`` have more than one.
    """
    if kind == CATEGORY:
        return [(b"=" + category(text), 1.0)]
    if kind == NUMBER:
        return [_number(text)]
    if kind == BOOLEAN:
        return [(b"", truth(text))]
    if kind == DATE:
        return _date_parts(text)
    return _words(text, int(kind.partition(":")[2] or 1))


def parse_number(text: bytes) -> float:
    """The number that a text is, true and false being 1 and 0; NaN is missing. ``Misfit`` if it is none."""
    try:
        value = float(text)
    except ValueError:
        value = _BOOLEANS.get(text.strip().lower(), math.inf)
        if math.isinf(value):
            raise Misfit(EXPECTED[NUMBER]) from None
    if math.isinf(value):
        raise Misfit("expected a finite number")
    if b"_" in text:
        raise Misfit(EXPECTED[NUMBER])
    return value


def label_number(text: bytes) -> float:
    """The number that a label is; yes and no, true and false are classes: ``Misfit``."""
    if text.strip().lower() in _TRUTH:
        raise Misfit(EXPECTED[NUMBER])
    return parse_number(text)


def _number(text: bytes) -> tuple[bytes, float]:
    value = parse_number(text)
    return (MISSING_NAME, 1.0) if math.isnan(value) else (b"", value)


def truth(text: bytes) -> float:
    """1 or 0 for what means true or false; ``Misfit`` for all else."""
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:  # 1.0, as a table of floats has it
        value = parse_number(text) if looks_like_number(text) else math.nan
        if value not in (0.0, 1.0):
            raise Misfit(EXPECTED[BOOLEAN])
    return value


def category(text: bytes) -> bytes:
    """A category's name: what formats write in different ways is one, such as 1.0 and 1, True and true.

    >>> category(b"True"), category(b"7.0"), category(b"007"), category(b"2024-01-31 12:30:00.000")
    (b'true', b'7', b'007', b'2024-01-31T12:30:00')
    """
    length = len(text)
    if length in {4, 5}:
        lower = text.lower()
        if lower in {b"true", b"false"}:
            return lower
    elif length >= 16 and text[4] == _DASH and (found := _MOMENT.fullmatch(text)):
        return _moment_text(found) or text
    if length > 2 and text[-1] == _ZERO:
        if found := _WHOLE.fullmatch(text):
            return b"0" if found[1] == b"-0" else found[1]
        if length >= 10 and _TIME.fullmatch(text):
            return text.rstrip(b"0").rstrip(b".")
    return text


def number_text(value: float) -> bytes:
    """A number as a category."""
    whole = isinstance(value, int) or (value.is_integer() and abs(value) < _LARGEST_WHOLE)
    return b"%d" % int(value) if whole else repr(value).encode()


def kind_of(texts: Iterable[bytes]) -> str | None:
    """The kind of a column of texts, by cells that are not missing; None if there are none.

    Numbers padded with zeros, such as 00133, are categories; 1 and 0 among true and false are booleans.

    >>> kind_of([b"yes", b"0"]), kind_of([b"1", b"0"]), kind_of([b"yes", b"2"]), kind_of([])
    ('boolean', 'number', 'category', None)
    """
    some = words = others = False
    for text in texts:
        some = True
        plain = text.strip().lower()
        words |= plain in _TRUTH
        others |= plain not in _BOOLEANS
        if (words and others) or (others and not looks_like_number(text)):
            return CATEGORY
    return BOOLEAN if words else NUMBER if some else None


def looks_like_number(text: bytes) -> bool:
    """Whether a text is a number, and not one that was padded with zeros."""
    try:
        float(text)
    except ValueError:
        return False
    return b"_" not in text and _PADDED.match(text) is None


def expected_class(codes: Collection[bytes]) -> str:
    """What to say of a label that is none of the classes."""
    listed = [name.decode("utf-8", "backslashreplace") for name in codes]
    return "expected one of the classes " + ", ".join(listed[:8]) + (", …" if len(listed) > 8 else "")


def split_column(column: str) -> tuple[bytes, bytes]:
    """The namespace and the name of a column."""
    space, bar, name = encoded(column).partition(b"|")
    return (space, name) if bar else (b"", space)


def encoded(text: str) -> bytes:
    """UTF-8, of what was none before it was read, and of what JSON escapes, too."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


# --- dates


def _moment_text(found: re.Match[bytes]) -> bytes | None:
    """A date with a time in its one form: midnight without a time zone is the date; time zones become UTC."""
    import datetime  # slow to import, and few columns have dates

    day, minute, second, fraction, zone = found.groups()
    try:
        moment = datetime.datetime.fromisoformat(
            f"{day.decode()}T{minute.decode()}:{(second or b'00').decode()}"
        )
        if zone and zone != b"Z":
            digits = zone[1:].replace(b":", b"").ljust(4, b"0")
            offset = datetime.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
            moment += offset if zone[:1] == b"-" else -offset
    except (ValueError, OverflowError):
        return None
    fraction = (fraction or b"").rstrip(b"0")
    if not (zone or fraction or moment.time() != datetime.time()):
        return moment.date().isoformat().encode()
    return moment.isoformat().encode() + (b"." + fraction if fraction else b"") + (b"Z" if zone else b"")


def _date_parts(text: bytes) -> Cell:
    import datetime  # slow to import, and few columns have dates

    known = category(text.strip()).removesuffix(b"Z")
    try:
        moment = datetime.datetime.fromisoformat(known.decode()[:26]) if known[4:5] == b"-" else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is not None:
        raise Misfit(EXPECTED[DATE])
    parts = [
        (b"", (moment - datetime.datetime(2000, 1, 1)).total_seconds() / _YEAR),
        (b".month=%d" % moment.month, 1.0),
        (b".day=%d" % moment.day, 1.0),
        (b".weekday=" + _WEEKDAYS[moment.weekday()], 1.0),
    ]
    if moment.time() != datetime.time():
        parts.append((b".hour=%d" % moment.hour, 1.0))
    return parts


# --- texts


def _words(text: bytes, longest: int) -> Cell:
    # Of what formats write in different ways, 1.0 and 1, the words are those of the one form.
    words = _WORD.findall(category(text).decode("utf-8", "surrogateescape").lower())
    grams = list(words)
    for n in range(2, longest + 1):
        grams += [" ".join(words[at : at + n]) for at in range(len(words) - n + 1)]
    return [(b"=" + gram.encode("utf-8", "surrogateescape"), 1.0) for gram in grams]
