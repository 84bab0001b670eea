"""Pairs of all lengths, one after the other: what a parser looks at together may end anywhere in them."""

from __future__ import annotations

import itertools
import random

import pytest

from sketchnewton import _native
from sketchnewton.streams import hash_feature

LIMIT, MASK = 1 << 20, (1 << 18) - 1
FOLLOWERS = (" ", "  ", "\t", " \t ")


def numbers(draw: random.Random) -> str:
    """With one to nine digits before the point, none to eighteen behind it; some signed, some without a point."""
    whole = "".join(draw.choices("0123456789", k=draw.randint(1, 9)))
    fraction = "".join(draw.choices("0123456789", k=draw.randint(0, 18)))
    return draw.choice(("", "-")) + whole + draw.choice((".", "")) + fraction


def row(draw: random.Random, names: list[str]) -> tuple[str, list[tuple[str, float]]]:
    pairs = [(name, numbers(draw)) for name in names]
    text = "".join(draw.choice(FOLLOWERS) + f"{name}:{value}" for name, value in pairs)
    return text, [(name, float(value)) for name, value in pairs if float(value) != 0.0]


@pytest.mark.parametrize("seed", range(20))
def test_vw_text(seed: int) -> None:
    """Names of 1 to 36 bytes with values of all lengths: the blank after a pair is at each byte of a window."""
    draw = random.Random(seed)
    kinds = ["7", "f", "ab\x85"]
    lines, expected = [], []
    for _ in range(300):
        names = [
            draw.choice(kinds) + "".join(draw.choices("0123456789", k=draw.randint(0, 33))) for _ in range(6)
        ]
        text, pairs = row(draw, [name[:18] if name[0] == "7" else name for name in names])
        lines.append(f"1 |{text}\n")
        expected.append(pairs)
    indptr, indices, data, *_ = _native.parse_vw("".join(lines).encode(), LIMIT, MASK, False, False, None)
    for k, pairs in enumerate(expected):
        part = slice(int(indptr[k]), int(indptr[k + 1]))
        assert list(indices[part]) == [hash_feature(name) & MASK for name, _ in pairs]
        assert list(data[part]) == [value for _, value in pairs]


@pytest.mark.parametrize("seed", range(20))
def test_svmlight(seed: int) -> None:
    draw = random.Random(seed)
    lines, expected = [], []
    for _ in range(300):
        names = ["".join(draw.choices("0123456789", k=draw.randint(1, 18))) for _ in range(6)]
        text, _ = row(draw, names)
        lines.append(f"1{text}\n")
        expected.append([pair.split(":") for pair in text.split()])
    indptr, indices, data, *_ = _native.parse_svmlight("".join(lines).encode(), LIMIT)
    for k, pairs in enumerate(expected):
        part = slice(int(indptr[k]), int(indptr[k + 1]))
        assert list(indices[part]) == [int(name) for name, _ in pairs]
        assert list(data[part]) == [float(value) for _, value in pairs]


def plain_number(draw: random.Random) -> str:
    """With up to nine digits, of which the first is a zero or not."""
    digits = "".join(draw.choices("0123456789", k=draw.randint(1, 9)))
    point = draw.choice((0, 1, 1, 1, len(digits)))
    text = digits[:point] + "." + digits[point:] if point < len(digits) else digits
    return draw.choice(("", "-")) + draw.choice(("0", "")) * (point == 0) + text


@pytest.mark.parametrize("seed", range(20))
def test_pairs_that_look_alike(seed: int) -> None:
    """Of short names and numbers, many of the same shape, with one blank between one and the next."""
    draw = random.Random(seed)
    rows = [
        [
            (str(draw.randrange(10 ** draw.randint(1, 8))), plain_number(draw))
            for _ in range(draw.randrange(40))
        ]
        for _ in range(300)
    ]
    ends = [draw.choice(("\n", "\n", "\n", " \n", "\r\n")) for _ in rows]
    texts = [" ".join(f"{name}:{value}" for name, value in pairs) for pairs in rows]
    vw = "".join(f"1 | {text}{end}" for text, end in zip(texts, ends, strict=True))
    indptr, indices, data, *_ = _native.parse_vw(vw.encode(), LIMIT, MASK, False, False, None)
    kept = [[(int(name) & MASK, float(value)) for name, value in pairs if float(value)] for pairs in rows]
    assert list(indptr) == [0, *itertools.accumulate(map(len, kept))]
    assert list(zip(indices, data, strict=True)) == [pair for pairs in kept for pair in pairs]
    svmlight = "".join(f"1 {text}{end}" for text, end in zip(texts, ends, strict=True))
    indptr, indices, data, *_ = _native.parse_svmlight(svmlight.encode(), LIMIT)
    expected = [(int(name), float(value).hex()) for pairs in rows for name, value in pairs]  # −0 stays −0
    assert list(indptr) == [0, *itertools.accumulate(map(len, rows))]
    assert [(index, value.hex()) for index, value in zip(indices, data, strict=True)] == expected


@pytest.mark.parametrize("seed", range(20))
def test_names_without_values(seed: int) -> None:
    """Names of 1 to 36 bytes, some with a value, between blanks, tabs and bars; control characters are letters."""
    draw = random.Random(seed)
    lines, expected = [], []
    for _ in range(300):
        text, pairs = "", []
        for _ in range(12):
            name = "".join(
                draw.choices("0123456789abcdefg.-\x01\x1f\x7f\x85", k=draw.choice((1, 3, 7, 8, 12, 34)))
            )
            name = draw.choice("hij") + name + draw.choice("klm")
            value = draw.choice(("", "", "", "", ":2", ":0", ":0.25"))
            text += draw.choice((" ", " ", " ", " ", " ", "  ", "\t", " | ")) + name + value
            pairs.append((name, float(value[1:] or 1)))
        lines.append(f"1 |{text}{draw.choice(('', ' '))}\n")
        expected.append([pair for pair in pairs if pair[1] != 0.0])
    text_of_all = "".join(lines).encode()
    indptr, indices, data, *_ = _native.parse_vw(text_of_all, LIMIT, MASK, False, False, None)
    for k, pairs in enumerate(expected):
        part = slice(int(indptr[k]), int(indptr[k + 1]))
        assert list(indices[part]) == [hash_feature(name) & MASK for name, _ in pairs]
        assert list(data[part]) == [value for _, value in pairs]
