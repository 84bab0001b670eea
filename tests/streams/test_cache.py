"""A cache gives back what was put in, or is built again, or says in one line what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchnewton._native import checksum
from sketchnewton.streams import Batch, ParseError, open_stream
from sketchnewton.streams.cache import CacheWriter, open_cache

KEY = {"files": [["/data/a.vw", 7, 123]], "way": {"format": None}}


def some_batch(rows: int = 5, seed: int = 0, **extra: Any) -> Batch:
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 4, rows)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    return Batch(
        indptr,
        random.integers(0, 1000, indptr[-1]),
        random.standard_normal(indptr[-1]),
        random.standard_normal(rows),
        **extra,
    )


def write(path: Path, batches: list[Batch], key: dict[str, Any] = KEY) -> Path:
    with CacheWriter(str(path), key) as writer:
        for batch in batches:
            writer.write(batch)
        writer.commit({"skipped": 2})
    return path


def read(path: Path, *, prefetch: bool = True) -> list[Batch]:
    opened = open_cache(str(path), KEY, prefetch=prefetch)
    assert opened is not None
    with opened[0] as reader:
        return list(reader)


def assert_same(a: Batch, b: Batch) -> None:
    for name in ("indptr", "indices", "data", "labels", "weights", "base"):
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None), name
        if left is not None:
            np.testing.assert_array_equal(left, right, err_msg=name)
    assert (a.tags, a.columns, a.first_line) == (b.tags, b.columns, b.first_line)


BATCHES = {
    "plain": some_batch(),
    "a part": some_batch(9, tags=[b"t%d" % i for i in range(9)], weights=np.arange(9.0))[3:7],
    "with everything": some_batch(
        3,
        weights=np.array([1.0, 0.5, 2.0]),
        base=np.zeros(3),
        tags=[b"a", b"", b"\xff"],
        columns=1000,
        first_line=9,
    ),
    "one row with an empty tag": some_batch(1, tags=[b""]),
    "rows without features": Batch(np.zeros(4, np.int64), np.empty(0, np.int64), np.empty(0), np.ones(3)),
    "large indices": Batch(np.array([0, 1]), np.array([1 << 40]), np.array([0.1]), np.array([np.nan])),
    "a weighted row without features": Batch(
        np.zeros(2, np.int64), np.empty(0, np.int64), np.empty(0), np.ones(1), weights=np.ones(1)
    ),
    "values beyond float32": Batch(
        np.array([0, 3]), np.array([0, 1, 2]), np.array([1e300, -1e-300, np.inf]), np.array([0.0])
    ),
    "missing values": Batch(np.array([0, 2]), np.array([5, 6]), np.array([np.nan, 1.0]), np.array([2.0])),
    "parts of arrays": Batch(
        np.arange(0, 8, 2), np.arange(20)[1:13:2], np.ones((6, 2))[:, 0], np.arange(6.0)[::2]
    ),
    "narrow types": Batch(
        np.array([0, 2]),
        np.array([3, 1], np.int32),
        np.array([0.1, -0.0], np.float32),
        np.array([1.0]),  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("prefetch", [True, False])
def test_all_comes_back(prefetch: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "c.skn-cache", list(BATCHES.values()))
    found = read(path, prefetch=prefetch)
    for batch, again in zip(BATCHES.values(), found, strict=True):
        assert_same(batch, again)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_values_keep_every_bit(values: list[float]) -> None:
    import tempfile

    data = np.array(values, np.float64)
    batch = Batch(np.array([0, len(data)]), np.arange(len(data)), data, np.array([1.0]))
    with tempfile.TemporaryDirectory() as folder:
        (again,) = read(write(Path(folder) / "c", [batch]))
    np.testing.assert_array_equal(again.data.astype(np.float64).view(np.int64), data.view(np.int64))


def test_small_numbers_take_little_room(tmp_path: Path) -> None:
    ones = Batch(np.array([0, 1000]), np.arange(1000), np.ones(1000), np.array([1.0]))
    assert write(tmp_path / "c", [ones]).stat().st_size < 1000 * 8 + 400


def test_streams_and_kernels_hand_over_views(tmp_path: Path) -> None:
    """What was parsed is kept, and what was kept is learned, without arrays of NumPy in between."""
    data = tmp_path / "rows.vw"
    data.write_text("1 2 tag| a:0.5 b c:-3\n-1 0.5 | d:1e-40 a:1e40\n")
    with open_stream(str(data)) as reader, CacheWriter(str(tmp_path / "c"), KEY) as writer:
        first = next(reader)
        writer.write(first)
        writer.commit()
    opened = open_cache(str(tmp_path / "c"), KEY)
    assert opened is not None
    again = next(opened[0])
    for batch in (first, again):
        assert isinstance(batch.views.indices, memoryview)
        assert isinstance(batch.views.weights, memoryview)
    assert_same(first, again)


def test_another_key_is_stale(tmp_path: Path) -> None:
    path = write(tmp_path / "c", [some_batch()])
    assert open_cache(str(path), {**KEY, "files": [["/data/a.vw", 8, 123]]}) is None


def test_no_cache_is_none(tmp_path: Path) -> None:
    assert open_cache(str(tmp_path / "none"), KEY) is None


def test_what_is_not_committed_does_not_exist(tmp_path: Path) -> None:
    with CacheWriter(str(tmp_path / "c"), KEY) as writer:
        writer.write(some_batch())
    assert list(tmp_path.iterdir()) == []


def test_every_truncation_is_noticed_before_a_row_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "c", [some_batch()])
    whole = path.read_bytes()
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        if size < 19:  # too short to tell whose it is
            with pytest.raises(ParseError, match="not a cache"):
                open_cache(str(path), KEY)
        else:
            assert open_cache(str(path), KEY) is None


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "c", [some_batch()])
    whole = path.read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        path.write_bytes(bytes(damaged))
        try:
            opened = open_cache(str(path), KEY)
            if opened is None:
                continue  # to be built again
            with opened[0] as reader:
                list(reader)
        except ParseError as error:
            assert str(path) in str(error)  # noqa: PT017 - some bytes give the one, some the other
            continue
        pytest.fail(f"the change of byte {at} was not noticed")


@pytest.mark.parametrize("tags", [[b"a\nb", b"c"], [b"\n", b""], [b"", b"\0\xff"]])
def test_tags_of_any_bytes_stay_with_their_rows(tags: list[bytes], tmp_path: Path) -> None:
    nothing = np.zeros(0)
    batch = Batch(np.zeros(3, np.int64), nothing.astype(np.int64), nothing, np.array([1.0, 2.0]), tags=tags)
    path = write(tmp_path / "c", [batch])
    opened = open_cache(str(path), KEY)
    assert opened is not None
    assert [found.tags for found in opened[0]] == [tags]


def test_an_empty_file_is_a_place_for_a_cache(tmp_path: Path) -> None:
    path = tmp_path / "tmp.Q4Xz"  # as `mktemp` makes them
    path.touch()
    assert open_cache(str(path), KEY) is None
    write(path, [some_batch()])
    assert open_cache(str(path), KEY) is not None
    with pytest.raises(ParseError, match="/dev/null: not a cache"):  # nor is a device
        open_cache("/dev/null", KEY)


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("years of work, in plain text")
    with pytest.raises(ParseError, match=r"thesis\.txt: not a cache of skn, so it is not overwritten"):
        open_cache(str(path), KEY)


@given(
    data=st.binary(min_size=1, max_size=100), seed=st.integers(-(2**63), 2**63 - 1), place=st.integers(0, 799)
)
def test_a_checksum_tells_what_was_changed(data: bytes, seed: int, place: int) -> None:
    whole = checksum(data, seed)
    flipped = bytearray(data)
    flipped[place // 8 % len(data)] ^= 1 << place % 8
    assert checksum(bytes(data), seed) == whole
    others = [(bytes(flipped), seed), (data + b"\0", seed), (data[:-1], seed), (data, seed ^ 1)]
    assert whole not in [checksum(*other) for other in others]
