"""VW text: the features of Vowpal Wabbit's own parser; what is refused, to the column; cuts change nothing."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from sketchnewton import _native
from sketchnewton.streams import Features, Names, ParseError, hash_feature, hash_namespace, read_vw
from tests.streams.vw_support import Judge, Row, audited

LIMIT = 1 << 20
BITS18 = (1 << 18) - 1


def parse_rows(text: bytes, bits: int = 18, string_values: bool = False) -> list[Row]:
    indptr, indices, data, labels, columns, _, error, weights, base, tags, _, _ = _native.parse_vw(
        text, LIMIT, (1 << bits) - 1, string_values, False, None
    )
    assert error is None, error
    assert columns == max(indices, default=-1) + 1
    rows = []
    for i, (a, b) in enumerate(itertools.pairwise(indptr)):
        rows.append(
            Row(
                None if math.isnan(labels[i]) else float(labels[i]),
                1.0 if weights is None else float(weights[i]),
                0.0 if base is None else float(base[i]),
                "" if tags is None else tags[i].decode(),
                sorted(zip(indices[a:b].tolist(), data[a:b].tolist(), strict=True)),
            )
        )
    return rows


def assert_same(ours: Row, theirs: Row) -> None:
    """To float32's rounding: Vowpal Wabbit reads numbers in float32 and is off by a few last places."""
    assert ours.tag == theirs.tag
    assert (ours.label is None) == (theirs.label is None)
    close = {"rel_tol": 2e-6, "abs_tol": 1e-30}
    assert math.isclose(ours.label or 0.0, theirs.label or 0.0, **close)
    assert math.isclose(ours.importance, theirs.importance, **close)
    assert math.isclose(ours.base, theirs.base, **close)
    assert [i for i, _ in ours.features] == [i for i, _ in theirs.features]
    for (_, a), (_, b) in zip(ours.features, theirs.features, strict=True):
        assert math.isclose(a, b, **close)


judge = Judge()

# --- as Vowpal Wabbit reads it

letters = st.characters(
    blacklist_characters=" \t\r\n|:\x00", blacklist_categories=("Cs",), max_codepoint=0x1F9FF
)
words = st.one_of(
    st.text(letters, min_size=1, max_size=12),
    st.from_regex(r"[a-z_]{1,8}[0-9]{0,3}", fullmatch=True),
    st.from_regex(r"[0-9]{1,25}", fullmatch=True),
    st.sampled_from(
        ["price", "ünïcode", "中文", "😀", "a^b", "x=y", "-5", "1.5", "0", "007", "'quoted", "#"]
    ),
)
numbers = st.one_of(
    st.integers(-1000, 1000).map(str),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.6f}"),
    st.floats(1e-9, 100).map(lambda x: f"{x:.3e}"),
    st.sampled_from(["0", "-0", ".5", "5.", "+3", "1e3", "1E-3", "0.0"]),
)
blanks = st.sampled_from([" ", " ", "  ", "\t"])
features = st.one_of(words, st.builds("{}:{}".format, words, numbers), st.builds(":{}".format, numbers))
spaced = st.builds("{}{}".format, blanks, features)
namespaces = st.builds(
    "|{}{}{}".format,
    st.one_of(st.just(""), words, st.builds("{}:{}".format, words, numbers)),
    st.lists(spaced, max_size=6).map("".join),
    st.sampled_from(["", " ", "  "]),
)
positive = numbers.map(lambda text: text.lstrip("-"))
label_parts = st.one_of(
    st.just(""),
    st.builds("{} ".format, numbers),
    st.builds("{} {} ".format, numbers, positive),
    st.builds("{} {} {} ".format, numbers, positive, numbers),
)
tags = st.one_of(st.just(""), words, st.builds("'{}".format, words), st.builds("'{} ".format, words))
lines = st.builds(
    "{}{}{}".format, label_parts, tags, st.lists(namespaces, min_size=1, max_size=4).map("".join)
)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lines)
@example("1 | 3:0.5 abc 007")
@example("1 2 'tag|a x:2 |b:3 x:2 y")
@example("1| a")
@example("|")
@example("1 |a x |a y |abc z")
@example("1 |a :2 :3 c |a :4")
@example("1 |12 a 5 |99999999999 b 7")
@example("1 |a \x01x\x02 \x01 |\x0b b")
@example("1 |a ü x: y".replace("x: ", ""))
def test_features_are_those_of_vowpal_wabbit(line: str) -> None:
    assume(
        not line.startswith("\ufeff")
    )  # a byte order mark is no tag; the judge sees lines without their file
    (ours,) = parse_rows(line.encode())
    assert_same(ours, judge.row(line))


ALPHABET = "abcxyz019_-.,=/^*'\"#\\üñ中😀\x01\x7f\u2028"


def random_line(source: random.Random) -> str:
    """A line that says all that a line can say."""

    def name() -> str:
        if source.random() < 0.3:
            return str(source.randrange(10 ** source.randrange(1, 25)))
        return "".join(source.choice(ALPHABET) for _ in range(source.randrange(1, 13)))

    def number() -> str:
        value = source.uniform(-1000, 1000)
        return source.choice([f"{value:.0f}", f"{value:.6f}", f"{value:.3e}", "0", ".5", "5.", "+3", "1E-3"])

    def feature() -> str:
        return source.choice([name(), f"{name()}:{number()}", f":{number()}"])

    text = "".join(f"{part} " for part in (number(), number().lstrip("-"), number())[: source.randrange(4)])
    text += source.choice(["", "", "", name(), f"'{name()}", f"'{name()} "])
    for _ in range(source.randrange(1, 5)):
        text += "|" + source.choice(["", name(), name(), f"{name()}:{number()}"])
        text += "".join(source.choice((" ", "  ", "\t")) + feature() for _ in range(source.randrange(7)))
    return text


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.integers(0, 1 << 62))
def test_ten_thousand_lines_are_read_as_by_vowpal_wabbit(seed: int) -> None:
    source = random.Random(seed)
    texts = [random_line(source) for _ in range(20)]
    ours = parse_rows("\n".join(texts).encode())
    assert len(ours) == 20
    for row, text in zip(ours, texts, strict=True):
        assert_same(row, judge.row(text))


ZEBRA = "|Says black with white stripes |OtherFeatures NumberOfLegs:4.0 HasStripes"
DOCUMENTED = (
    "0 | price:.23 sqft:.25 age:.05 2006",
    "1 2 'second_house | price:.18 sqft:.15 age:.35 1976",
    "0 1 0.5 'third_house | price:.53 sqft:.32 age:.87 1924",
    f"1 1.0 |MetricFeatures:3.28 height:1.5 length:2.0 {ZEBRA}",
    f"1 1.0 zebra|MetricFeatures:3.28 height:1.5 length:2.0 {ZEBRA}",
    "1 |a:2 b c:3",
    "| price:0.18 sqft:0.15",
    "-1 |user male age:25 |item 100 101:2 102",
    "1 'tag |f 13:3.9656971e-02 24:3.4781646e-02 69:4.6296168e-02",
)


@pytest.mark.parametrize("line", DOCUMENTED)
@pytest.mark.parametrize("bits", [1, 10, 18, 24, 30])
def test_documented_lines(line: str, bits: int) -> None:
    (ours,) = parse_rows(line.encode(), bits)
    assert_same(ours, Judge(bits=bits).row(line))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"[a-zA-Zü][a-z0-9|:ü]{0,6}", fullmatch=True), words)
def test_string_values_are_those_of_vowpal_wabbit(value: str, name: str) -> None:
    line = f"1 |ns:3 {name}:{value} b"
    if value[:3].lower() in ("nan", "inf") or value[0] in "eE":  # which it takes for numbers
        return
    (ours,) = parse_rows(line.encode(), string_values=True)
    assert_same(ours, judge.row(line))


def test_hashes_by_name() -> None:
    assert hash_namespace("a") == 1009084850
    assert hash_namespace("") == 0
    # From the reference implementation of MurmurHash3_x86_32.
    for data, seed, expected in (
        (b"", 0, 0),
        (b"", 1, 0x514E28B7),
        (b"test", 0, 0xBA6BD213),
        (b"Hello, world!", 0x9747B28C, 0x24884CBA),
        (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
    ):
        assert _native.murmur3(data, seed) == expected
    for name, space in (("price", ""), ("x", "a"), ("12", "a"), ("ü", "b")):
        ((index, _),) = judge.row(f"1 |{space} {name}").features
        assert hash_feature(name, space) == index


# --- interactions and n-grams

EXPANSIONS = {
    "-q ab": Features(interactions=("ab",)),
    "-q ba": Features(interactions=("ba",)),
    "-q aa": Features(interactions=("aa",)),
    "--cubic abc": Features(interactions=("abc",)),
    "--cubic aab": Features(interactions=("aab",)),
    "--interactions aaaa": Features(interactions=("aaaa",)),
    "--interactions abcd -q ac": Features(interactions=("abcd", "ac")),
    "-q ::": Features(interactions=("::",)),
    "-q a:": Features(interactions=("a:",)),
    "-q ba -q ab": Features(interactions=("ba", "ab")),
    "-q ba -q :: -q ca": Features(interactions=("ba", "::", "ca")),
    "--interactions aba": Features(interactions=("aba",)),
    "--interactions b:a": Features(interactions=("b:a",)),
    "--ngram 2": Features(ngram=("2",)),
    "--ngram a3": Features(ngram=("a3",)),
    "-q ab --ngram 2": Features(interactions=("ab",), ngram=("2",)),
    "--ignore a": Features(ignore="a"),
    "--keep a --keep c": Features(keep="ac"),
    "-q ab --ignore b": Features(interactions=("ab",), ignore="b"),
}


@pytest.mark.parametrize("options", EXPANSIONS)
def test_interactions_are_those_of_vowpal_wabbit(
    options: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = "1 |a x:2 y:3 17 |b z:5 w:7 v |c u:11 |d t:13 s:0.5 |a x2"
    path = tmp_path / "line.vw"
    path.write_text(line + "\n")
    (batch,) = read_vw(path, features=EXPANSIONS[options])
    ours = sorted(zip(batch.indices.tolist(), batch.data.tolist(), strict=True))
    theirs = audited(line, options, capfd)
    assert [i for i, _ in ours] == [i for i, _ in theirs]
    np.testing.assert_allclose([v for _, v in ours], [v for _, v in theirs], rtol=1e-5)


def test_any_namespace_three_times_is_each_set_of_features_once(tmp_path: Path) -> None:
    path = tmp_path / "line.vw"
    path.write_text("1 |a x:2 y:3 |b z:5 |c w:7\n")
    (batch,) = read_vw(path, features=Features(interactions=("a::", ":::", "cba", ":a:")))
    products = [math.prod(three) for three in itertools.combinations_with_replacement((2, 3, 5, 7), 3)]
    assert sorted(batch.data.tolist()) == sorted([2, 3, 5, 7, *products])


def test_a_row_that_explodes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.vw"
    path.write_text("1 | b\n1 |a " + " ".join(f"x{i}" for i in range(6000)) + "\n")
    with pytest.raises(ParseError, match=r"wide.vw:2: a row from here on has too many interactions"):
        list(read_vw(path, features=Features(interactions=("aa",)), batch_bytes=8))


# --- what is refused

MALFORMED = {
    "no bar": (b"1 2 3", 6, "expected '|' before the features, got nothing"),
    "no bar, features": (b"1 a:2 b", 8, "expected '|' before the features, got nothing"),
    "tab before the bar": (b"1\t|a x", 2, "expected blanks, not tabs, before the first '|', got nothing"),
    "too many words": (
        b"1 2 3 4 | x",
        7,
        "expected at most a label, an importance, a base and a 'tag before",
    ),
    "far too many words": (b"1 2 3 4 5 6 7 | x", 11, "expected at most a label"),
    "label: letters": (b"abc | x", 1, "expected a number as the label, got 'abc'"),
    "label: several": (
        b"1,2 | x",
        1,
        "expected one number as the label (multi-label, cost-sensitive and bandit",
    ),
    "label: bandit": (b"1:2:0.5 | x", 1, "expected one number as the label (multi-label"),
    "label: quoted": (b'"1,2" | x', 1, "expected one number as the label (multi-label"),
    "label: nan": (b"nan | x", 1, "expected a finite number as the label, got 'nan'"),
    "label: overflow": (b"1e999 | x", 1, "number out of range, got '1e999'"),
    "importance: letters": (b"1 x | y", 3, "expected a number as the importance, got 'x'"),
    "importance: negative": (b"1 -2 | y", 3, "expected a non-negative importance, got '-2'"),
    "importance: infinite": (b"1 inf | y", 3, "expected a finite number as the importance, got 'inf'"),
    "base: letters": (b"1 2 x | y", 5, "expected a number as the base, got 'x'"),
    "base: nan": (b"1 2 nan | y", 5, "expected a finite number as the base, got 'nan'"),
    "namespace: none": (b"1 |:2 x", 4, "expected a namespace or a blank after '|', got ':2'"),
    "namespace weight: letters": (
        b"1 |a:b x",
        6,
        "expected a number as the weight of the namespace, got 'b'",
    ),
    "namespace weight: nothing": (
        b"1 |a: x",
        6,
        "expected a number as the weight of the namespace, got nothing",
    ),
    "namespace weight: nan": (b"1 |a:nan x", 6, "expected a finite number as the weight of the namespace"),
    "value: letters": (b"1 |a x:abc", 8, "expected a number after ':', got 'abc'"),
    "value: trailing letters": (b"1 |a x:1x", 8, "expected a number after ':', got '1x'"),
    "value: nothing": (b"1 |a x: y", 8, "expected a number after ':', got nothing"),
    "value: two colons": (b"1 |a x:1:2", 8, "expected a number after ':', got '1:2'"),
    "value: nan": (b"1 |a x:NaN", 8, "expected a finite number after ':', got 'NaN'"),
    "value: infinite": (b"1 |a x:-inf", 8, "expected a finite number after ':', got '-inf'"),
    "value: hexadecimal": (b"1 |a x:0x10", 8, "expected a number after ':', got '0x10'"),
    "value: overflow": (b"1 |a x:1e999", 8, "number out of range, got '1e999'"),
    "value: product": (b"1 |a:1e200 x:1e200", 14, "value times weight of the namespace is out of range"),
    "carriage return": (b"1 |a x\ry", 7, "expected no carriage return within a line, got nothing"),
    "letters of the world": ("1 |ä ö:größe".encode(), 10, "expected a number after ':', got 'größe'"),
}


@pytest.mark.parametrize("kind", MALFORMED)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b""])
def test_malformed(kind: str, newline: bytes, tmp_path: Path) -> None:
    line, column, message = MALFORMED[kind]
    path = tmp_path / "clicks.vw"
    path.write_bytes(b"1 | a\n\n2 | b\n" + line + newline)
    reader = read_vw(path)
    assert next(reader).labels.tolist() == [1, 2], "the rows before the bad line are delivered"
    with pytest.raises(ParseError) as caught:
        next(reader)
    error = caught.value
    assert (error.path, error.line, error.column) == (str(path), 4, column)
    assert str(error).startswith(f"{path}:4:{column}: {message}")
    assert "\n" not in str(error)
    assert pickle.loads(pickle.dumps(error)).args == error.args


def test_values_of_zero_are_no_features() -> None:
    (row,) = parse_rows(b"1 |a:0 x:1 |b y:0 z:-0 w:1e-300")
    assert [value for _, value in row.features] == [1e-300]


def test_a_byte_order_mark_is_no_label() -> None:
    assert parse_rows(b"\xef\xbb\xbf1 | a\n") == parse_rows(b"1 | a\n")


# --- cuts change nothing


def drain(path: Path, **options: object) -> tuple[list[tuple[object, ...]], str]:
    rows: list[tuple[object, ...]] = []
    try:
        for batch in read_vw(path, **options):  # type: ignore[arg-type]
            for i, label in enumerate(batch.labels.tolist()):
                part = slice(batch.indptr[i], batch.indptr[i + 1])
                rows.append(
                    (
                        repr(label),
                        1.0 if batch.weights is None else batch.weights[i],
                        0.0 if batch.base is None else batch.base[i],
                        b"" if batch.tags is None else batch.tags[i],
                        batch.indices[part].tobytes(),
                        batch.data[part].tobytes(),
                    )
                )
    except ParseError as error:
        return rows, str(error)
    return rows, ""


bad_ends = st.sampled_from([b"", b"5 | e", b"1 |a x:y\n9 | z\n", b"abc", b"1 | a:1 b:\n"])


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(lines, max_size=5), bad_ends, st.integers(1, 60), st.booleans(), st.booleans())
def test_batch_size_changes_no_row(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    end: bytes,
    size: int,
    prefetch: bool,
    named: bool,
) -> None:
    path = tmp_path_factory.getbasetemp() / "chunks.vw"
    path.write_bytes("".join(text + "\n" for text in texts).encode() + end)
    whole = Names(exact=True) if named else None
    cut = Names(exact=True) if named else None
    how = Features(interactions=("ab", "::"), ngram=("2",)) if named else None
    assert drain(path, batch_bytes=size, prefetch=prefetch, names=cut, features=how) == drain(
        path, names=whole, features=how
    )
    if whole is not None and cut is not None:
        assert whole.readable() == cut.readable()


# --- names


@pytest.mark.slow
def test_exact_names_never_share_an_index(tmp_path: Path) -> None:
    random_names = random.Random(0)
    path = tmp_path / "names.vw"
    pairs = [(f"n{random_names.randrange(3)}", f"x{i}") for i in range(2000)]
    path.write_text("".join(f"1 |{space} {name}\n" for space, name in pairs))
    names = Names(exact=True)
    indices = np.concatenate([batch.indices for batch in read_vw(path, names=names)])
    assert indices.tolist() == list(range(2000))
    assert [names.readable()[i] for i in range(2000)] == [f"{space}^{name}" for space, name in pairs]
    hashed = np.concatenate([batch.indices for batch in read_vw(path, features=Features(bits=10))])
    assert len(set(hashed.tolist())) < 2000


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("|a^b c", "|a b^c"),
        ("| a^b", "|a b"),
        ("|a\\ b", "|a \\b"),
        ("| ^a", "|^ a"),
        ("|a 1", "|a 01"),
    ],
)
def test_exact_names_tell_apart(one: str, other: str, tmp_path: Path) -> None:
    path = tmp_path / "names.vw"
    path.write_text(f"1 {one}\n1 {other}\n")
    names = Names(exact=True)
    (batch,) = read_vw(path, names=names)
    assert batch.indices.tolist() == [0, 1]


@pytest.mark.parametrize("exact", [True, False])
def test_names_of_all_features_are_recorded(exact: bool, tmp_path: Path) -> None:
    path = tmp_path / "names.vw"
    path.write_text("1 |a x:2 y |b 5:3 |c u\n-1 |a x\n")
    names = Names(exact)
    how = Features(bits=18, interactions=("ab",), ngram=("a2",))
    (batch,) = read_vw(path, features=how, names=names)
    (plain,) = read_vw(path, features=how)
    shown = names.readable()
    row = [shown[i] for i in batch.indices[: batch.indptr[1]].tolist()]
    assert row == ["a^x", "a^y", "a^x a^y", "b^5", "c^u", "a^x*b^5", "a^y*b^5", "a^x a^y*b^5"]
    assert batch.data.tolist() == plain.data.tolist()
    if not exact:
        assert batch.indices.tolist() == plain.indices.tolist()
    again = Names.from_state(names.state(), exact)
    assert again.readable() == shown
    (resumed,) = read_vw(path, features=how, names=again)
    assert resumed.indices.tolist() == batch.indices.tolist()
    assert len(again) == len(names)
    assert pickle.loads(pickle.dumps(names)).readable() == shown


@pytest.mark.parametrize("damage", ["ends", "indices", "keys"])
def test_damaged_names_are_refused(damage: str) -> None:
    names = Names(exact=True)
    names.indices_of(["a", "b", "c"])
    state = dict(names.state())
    state[damage] = state[damage][::-1].copy()
    with pytest.raises(ValueError, match="names are damaged"):
        Names.from_state(state, exact=True)


@pytest.mark.parametrize(
    "options",
    [
        {"bits": 0},
        {"bits": 31},
        {"interactions": ("a",)},
        {"interactions": ("aü",)},
        {"ngram": ("x",)},
        {"ngram": ("1",)},
        {"ngram": ("99",)},
        {"keep": "ü"},
    ],
)
def test_options_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="is invalid: must be"):
        Features(**options)  # type: ignore[arg-type]


def test_options_survive_a_model_file() -> None:
    how = Features(bits=20, interactions=("ab", "cde"), ignore="x", ngram=("2", "a3"), string_values=True)
    assert Features.from_dict(how.to_dict()) == how
    assert Features().to_dict() == {}
