"""Files beside the data that somebody has edited: caches, marks and notes of runs. One line, or made again."""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sketchnewton import _native
from sketchnewton.cli.main import main
from sketchnewton.model import Model, open_model
from sketchnewton.streams import cache
from tests.cli.support import write_rows


def failure(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    """The one line on stderr of a command that fails."""
    capsys.readouterr()
    assert main([*map(str, args), "--quiet"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def edited_facts(path: Path, facts: bytes) -> None:
    """The cache with other facts, and a correct checksum."""
    data = path.read_bytes()
    tail = cache._ENDING.size + len(cache._END)
    begin = cache._ENDING.unpack(data[-tail : -len(cache._END)])[0]
    ending = cache._ENDING.pack(begin, _native.checksum(facts)) + cache._END
    path.write_bytes(data[:begin] + facts + ending)


@pytest.mark.parametrize(
    "facts",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"skipped": "x", "first_error": 1, "kinds": []}',
        b"\xff",
    ],
)
def test_a_cache_with_other_facts_is_built_again(facts: bytes, tmp_path: Path) -> None:
    data, place = write_rows(tmp_path / "rows.svm"), tmp_path / "c.cache"
    args = ["train", str(data), "--cache", str(place), "--quiet", "--model"]
    assert main([*args, str(tmp_path / "a.skn")]) == 0
    edited_facts(place, facts)
    assert main([*args, str(tmp_path / "b.skn")]) == 0
    assert (tmp_path / "a.skn").read_bytes() == (tmp_path / "b.skn").read_bytes()


def edited_block(path: Path, at: int, number: int) -> None:
    """The first block with another number among the places of rows, and a correct checksum."""
    data = bytearray(path.read_bytes())
    key = cache._LENGTH.unpack_from(data, len(cache._MARK))[0]
    begin = len(cache._MARK) + cache._LENGTH.size + key
    *facts, _ = cache._BLOCK.unpack_from(data, begin)
    rows, entries, _, _, tags, flags = facts
    struct.pack_into("<q", data, begin + cache._BLOCK.size + 8 * at, number)
    sizes = [length * cache._SIZES[kind] for kind, length in cache._layout(rows, entries, flags)]
    check = _native.checksum(cache._BLOCK.pack(*facts, 0))
    start = begin + cache._BLOCK.size
    for size in [*sizes, tags]:
        check = _native.checksum(bytes(data[start : start + size]), check)
        start += size
    cache._BLOCK.pack_into(data, begin, *facts, check)
    path.write_bytes(data)


@pytest.mark.parametrize(("at", "number"), [(0, 1), (1, 2**40), (1, -1), (400, 0), (400, 2**62)])
def test_a_cache_with_other_places_of_rows(
    at: int, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, place = write_rows(tmp_path / "rows.svm"), tmp_path / "c.cache"
    assert main(["train", str(data), "--cache", str(place), "--quiet"]) == 0
    edited_block(place, at, number)
    line = failure(capsys, "train", data, "--cache", place)
    assert line == f"skn: {place}: the cache is damaged: delete it to have it built again"


CHANGES: list[tuple[str, Any]] = [
    *(("files", value) for value in (7, [7], [[]], [[7]])),
    *(("way", value) for value in (None, [], "x")),
    *(("passes", value) for value in (None, 0, -1, "2", 2**70, True, 1.5)),
    *(("pass", value) for value in (None, -1, 5, "1")),
    *(("row", value) for value in (None, -1, "x", 2**70)),
    *(("scores", value) for value in (None, {}, [1], [{}, {}, {}])),
    *(("held", value) for value in (None, [1])),
    *(("every", value) for value in (0, "x")),
    *(("best", value) for value in ("x", -1)),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_a_mark_of_a_run_that_was_edited(
    name: str, value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model = write_rows(tmp_path / "rows.svm"), tmp_path / "m.skn"
    assert main(["train", str(data), "--model", str(model), "--quiet"]) == 0
    run = {"files": None, "way": {}, "passes": 1, "holdout": None, "every": 100, "pass": 0, "best": None}
    run |= {"row": 0, "scores": [], "held": [], name: value}
    mark = tmp_path / "m.skn.run"
    mark.write_text(json.dumps({"run": run, "old": None, "fresh": None}))
    line = failure(capsys, "train", data, "--resume", model)
    assert line == f"skn: {mark}: not the mark of a run of skn train: delete it"


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_a_note_on_a_run_that_was_edited(
    name: str, value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, path = write_rows(tmp_path / "rows.svm"), tmp_path / "m.skn"
    assert main(["train", str(data), "--model", str(path), "--quiet"]) == 0
    model = open_model(path)
    assert isinstance(model, Model)
    model.run = {
        "files": None,
        "way": {},
        "passes": 1,
        "holdout": None,
        "every": 100,
        "pass": 0,
        "best": None,
    }
    model.run |= {"row": 0, "scores": [], "held": [], name: value}
    path.write_bytes(model.to_bytes())
    line = failure(capsys, "train", data, "--resume", path)
    assert line == f"skn: {path}: not a usable Model: its note on the run is damaged"


def test_what_replaces_a_private_file_is_never_readable_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model, place = write_rows(tmp_path / "rows.svm"), tmp_path / "m.skn", tmp_path / "c.cache"
    args = ["train", str(data), "--model", str(model), "--cache", str(place), "--quiet"]
    assert main(args) == 0
    model.chmod(0o600)
    place.chmod(0o600)
    made: dict[str, int] = {}
    really_open = os.open

    def watched(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        descriptor = really_open(path, flags, mode, **more)
        if flags & os.O_CREAT:
            made[os.path.basename(path)] = os.fstat(descriptor).st_mode & 0o777
        return descriptor

    monkeypatch.setattr(os, "open", watched)
    data.write_text(data.read_text() + "1 1:1\n")
    assert main(args) == 0
    assert len(made) >= 2
    assert set(made.values()) == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (model, place)} == {0o600}


@pytest.mark.parametrize("learner", ["newton", "full", "full-adagrad"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_huge_feature_index_is_located(
    learner: str, packed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import gzip

    data = tmp_path / ("rows.svm.gz" if packed else "rows.svm")
    text = "# a comment\n1 1:1\n\n-1 1:2\n1 2:0.5 1000000000000000:1 # 1000000000000000:1\n1 1:1\n"
    data.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    line = failure(capsys, "train", data, "--learner", learner)
    assert line.startswith(f"skn: {data}:5:9: feature index 1000000000000000 ")


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY,
    reason="the table is address space, of which this system allows only some",
)
@pytest.mark.parametrize(("bits", "names", "megabytes"), [(30, 2_000, 150), (24, 100_000, 200)])
def test_many_bits_take_the_memory_of_the_features_there_are(
    tmp_path: Path, bits: int, names: int, megabytes: int
) -> None:
    data, model = tmp_path / "rows.vw", tmp_path / "m.skn"
    text = "".join(f"{(k % 2) * 2 - 1} | a{k} d{k} e{k} f{k} b{k % 7} c:0.5\n" for k in range(names // 4))
    data.write_text(text)
    command = (
        f"from sketchnewton.cli.main import main; main(['train', {str(data)!r}, '--model', {str(model)!r}, "
    )
    # Not ru_maxrss, which a child inherits from the process that started it.
    command += f"'--bits', '{bits}', '--quiet']); "
    command += "print(*[line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')])"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert model.exists(), done.stderr
    assert int(done.stdout) * 1024 < megabytes * 1e6
