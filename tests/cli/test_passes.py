"""Several passes: the later ones from a cache, with the same result; rows held out; memory that does not grow."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sketchnewton.cli.main import main
from sketchnewton.cli.train import prefetch as ahead
from tests.cli.support import SKN, skn, svmlight_lines, trained, write_rows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.svm", rows=1000)


def summary(capsys: pytest.CaptureFixture[str], *args: object) -> dict[str, object]:
    assert main(["train", *map(str, args), "--json", "--quiet"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert isinstance(result, dict)
    return result


def cache_of(data: Path) -> Path:
    return Path(f"{data}.skn-cache")


def test_passes_from_the_cache_learn_what_passes_over_the_text_learn(data: Path, tmp_path: Path) -> None:
    cached, parsed = tmp_path / "a.skn", tmp_path / "b.skn"
    for model, option in ((cached, []), (parsed, ["--no-cache"])):
        assert main(["train", str(data), "--passes", "3", "--model", str(model), "--quiet", *option]) == 0
        assert cache_of(data).exists() != bool(option)
        cache_of(data).unlink(missing_ok=True)
    assert cached.read_bytes() == parsed.read_bytes()
    assert trained(cached).rows_seen == 3000


def test_one_pass_makes_no_cache_unless_asked(data: Path, tmp_path: Path) -> None:
    assert main(["train", str(data), "--quiet"]) == 0
    assert list(tmp_path.iterdir()) == [data]
    assert main(["train", str(data), "--quiet", "--cache", str(tmp_path / "c")]) == 0
    assert (tmp_path / "c").exists()


def test_a_cache_is_used_again(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = summary(capsys, data, "--passes", 2)
    before = cache_of(data).stat()
    again = summary(capsys, data, "--passes", 2)
    assert cache_of(data).stat().st_mtime_ns == before.st_mtime_ns
    assert again["last_pass_loss"] == first["last_pass_loss"]
    assert again["cache"] == str(cache_of(data))


def test_data_that_changed_is_parsed_again(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary(capsys, data, "--passes", 2)
    status = data.stat()
    data.write_text("".join(svmlight_lines(1000, seed=5)))
    told = summary(capsys, data, "--passes", 2)
    assert told["progressive_loss"] == summary(capsys, data)["progressive_loss"]
    # The same size, but another time.
    os.utime(data, ns=(status.st_atime_ns, status.st_mtime_ns - 1))
    before = cache_of(data).stat().st_mtime_ns
    summary(capsys, data, "--passes", 2)
    assert cache_of(data).stat().st_mtime_ns != before


def test_other_options_are_parsed_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "a.vw"
    data.write_text("1 |a x y |b z\n-1 |a x |b w\n" * 10)
    summary(capsys, data, "--passes", 2)
    told = summary(capsys, data, "--passes", 2, "--interactions", "ab")
    assert told["features"] == summary(capsys, data, "--interactions", "ab")["features"]


@pytest.mark.parametrize("damage", ["truncated", "empty end"])
def test_a_broken_cache_is_built_again(damage: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = summary(capsys, data, "--passes", 2)
    whole = cache_of(data).read_bytes()
    cache_of(data).write_bytes(whole[:-20] if damage == "truncated" else whole[:-20] + bytes(20))
    told = summary(capsys, data, "--passes", 2)
    assert told["last_pass_loss"] == expected["last_pass_loss"]
    assert cache_of(data).read_bytes() == whole


def test_a_changed_cache_is_one_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary(capsys, data, "--passes", 2)
    damaged = bytearray(cache_of(data).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    cache_of(data).write_bytes(bytes(damaged))
    assert main(["train", str(data), "--passes", "2", "--quiet"]) == 1
    assert capsys.readouterr().err == (
        f"skn: {cache_of(data)}: the cache is damaged: delete it to have it built again\n"
    )


def test_a_file_that_is_no_cache_is_not_overwritten(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache_of(data).write_text("a letter to a friend")
    assert main(["train", str(data), "--passes", "2"]) == 1
    assert "not a cache of skn" in capsys.readouterr().err
    assert cache_of(data).read_text() == "a letter to a friend"


def test_a_folder_of_files_does_not_take_its_cache_for_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.svm", "b.svm"):
        write_rows(tmp_path / name, rows=50)
    for _ in range(2):
        assert summary(capsys, tmp_path, "--passes", 2)["rows"] == 200


@pytest.mark.parametrize("name", ["pipe", "pipe.svm", "pipe.vw"])
def test_a_pipe_can_be_read_only_once(name: str, data: Path, tmp_path: Path) -> None:
    pipe = tmp_path / name
    os.mkfifo(pipe)
    for paths in ([pipe], [data, pipe]):
        refused = skn("train", *paths, "--passes", 2)  # at once, although nobody writes to it
        assert refused.returncode == 2
        assert b"--passes 2 needs a file: " in refused.stderr
        assert refused.stderr.count(b"\n") == 1


def test_stdin_needs_a_place_for_its_cache(data: Path, tmp_path: Path) -> None:
    refused = skn("train", "-", "--passes", 3, stdin=data.read_bytes())
    assert refused.returncode == 2
    assert b"--passes 3 needs a file" in refused.stderr
    model, expected = tmp_path / "m.skn", tmp_path / "e.skn"
    options = ("--passes", 3, "--cache", tmp_path / "c")
    assert skn("train", "-", *options, "--model", model, stdin=data.read_bytes()).returncode == 0
    assert skn("train", data, "--passes", 3, "--model", expected).returncode == 0
    assert model.read_bytes() == expected.read_bytes()


def test_a_cache_that_cannot_be_written_is_done_without(data: Path, tmp_path: Path) -> None:
    def limit() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    command = [*SKN, "train", str(data), "--passes", "2", "--json"]
    ended = subprocess.run(command, capture_output=True, preexec_fn=limit, check=False, timeout=60)
    assert ended.returncode == 0
    assert b"cannot write the cache: File too large; continuing without it" in ended.stderr
    assert json.loads(ended.stdout)["rows"] == 2000
    assert list(tmp_path.iterdir()) == [data]


def test_rows_held_out_are_scored_but_not_learned(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = data.read_text().splitlines(keepends=True)
    kept = tmp_path / "kept.svm"
    kept.write_text("".join(line for at, line in enumerate(lines, 1) if at % 4))
    model, expected = tmp_path / "m.skn", tmp_path / "e.skn"
    predictions = tmp_path / "p"
    told = summary(capsys, data, "--holdout", 4, "--model", model, "--predictions", predictions)
    summary(capsys, kept, "--model", expected)
    assert model.read_bytes() == expected.read_bytes()
    assert (told["rows"], told["rows_seen"], told["holdout_rows"]) == (1000, 750, 250)
    held = np.loadtxt(predictions)[3::4]
    labels = np.array([float(line.split()[0]) for line in lines])[3::4]
    assert told["holdout_loss"] == pytest.approx(np.mean((held - labels) ** 2), rel=1e-6)
    assert told["holdout_error_rate"] == np.mean((held >= 0) != (labels > 0))


def test_the_best_pass_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Labels without any rule: from the second pass on, learning them by heart is worse on rows held out."""
    random = np.random.default_rng(0)
    data = tmp_path / "noise.svm"
    rows = [f"{random.choice([-1, 1])} {i + 1}:1 {random.integers(1, 300)}:1\n" for i in range(300)]
    data.write_text("".join(rows))
    model = tmp_path / "m.skn"
    assert main(["train", str(data), "--passes", "9", "--holdout", "3", "--model", str(model)]) == 0
    said = capsys.readouterr().err
    at = said.index(" is no better on the rows held out: pass ")
    kept = int(said[at:].split("pass ")[1].split()[0])
    assert kept < 9
    expected = tmp_path / "e.skn"
    options = ["--passes", str(kept), "--holdout", "3", "--quiet", "--model", str(expected)]
    assert main(["train", str(data), *options]) == 0
    assert model.read_bytes() == expected.read_bytes()


def peak_kilobytes(*args: object) -> int:
    """The peak memory of the command, measured by a small process of its own."""
    code = (
        "import os, sys\n"
        "_, status, used = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)\n"
        "assert status == 0\n"
        "print(used.ru_maxrss)"
    )
    command = [*SKN, *map(str, args)]
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, *command], capture_output=True, check=True, timeout=120
    )
    return int(ended.stdout.split()[-1])


def test_data_replaced_while_the_command_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, other = write_rows(tmp_path / "rows.svm"), tmp_path / "other"
    other.write_text("1 7:1\n-1 8:1\n")
    begin = ahead.begin

    def begin_then_replace(args: argparse.Namespace) -> ahead.Ahead | None:
        begun = begin(args)
        assert begun is not None
        other.replace(data)
        return begun

    models = [tmp_path / "1.skn", tmp_path / "2.skn"]
    with monkeypatch.context() as patch:
        patch.setattr(ahead, "begin", begin_then_replace)
        assert main(["train", str(data), "--passes", "2", "--quiet", "--model", str(models[0])]) == 0
    assert (
        main(["train", str(data), "--passes", "2", "--quiet", "--no-cache", "--model", str(models[1])]) == 0
    )
    assert models[0].read_bytes() == models[1].read_bytes()  # all of it, or nothing, is from the new file


@pytest.mark.slow
@pytest.mark.parametrize("passes", [1, 2])
def test_memory_does_not_grow_with_the_file(passes: int, tmp_path: Path) -> None:
    data = tmp_path / "rows.svm"
    lines = "".join(svmlight_lines(80_000)) * 16  # enough batches for the reader to be as far ahead as it may
    peaks = []
    for size in (1, 5):
        data.write_text(lines * size)
        # Oja makes the learner slower than the reader, which is then as far ahead as it may be; where both
        # are equally fast, that is a matter of chance. The least of three, for there is some chance in two passes.
        command = ("train", data, "--sketch", "oja", "--quiet", "--passes", passes)
        peaks.append(min(peak_kilobytes(*command) for _ in range(3)))
    data.unlink()
    cache_of(data).unlink(missing_ok=True)
    assert peaks[1] < 1.1 * peaks[0]
