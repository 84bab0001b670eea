"""A model file is whole and unchanged, or it is refused with one line; a failed save changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import sketchnewton
from sketchnewton.cli.io.files import open_output
from sketchnewton.core import archive
from sketchnewton.core.archive import ModelFileError, read, temporary_beside, write
from sketchnewton.streams import open_writer
from sketchnewton.streams.cache import CacheWriter

HEADER = {"class": "SketchedNewton", "parameters": {"alpha": 1.5, "curvature_weight": None}, "name": 'ü\n"'}
ARRAYS = {
    "weights": np.array([[1.5, -0.0, np.nan], [np.inf, 5e-324, 2.0]]),
    "table": np.arange(5, dtype=np.float32),
    "counts": np.array([-(2**63), 2**63 - 1]),
    "flags": np.array([True, False, True]),
    "empty": np.zeros((0, 3)),
    "scalar": np.array(7, np.int32),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skn"


def rechecked(start: dict, data: bytes = b"", length: int | None = None) -> bytes:
    """A file with this JSON text and a checksum that is right, as a careful forger would write it."""
    text = json.dumps(start, separators=(",", ":")).encode()
    text = text.replace(start["__metadata__"]["checksum"].encode(), b"0" * 64)
    prefix = (len(text) if length is None else length).to_bytes(8, "little")
    digest = hashlib.sha256(prefix + text + data).hexdigest()
    return prefix + text.replace(b"0" * 64, digest.encode(), 1) + data


def text_of(content: bytes) -> dict:
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])


def refusal(path) -> str:
    with pytest.raises(ModelFileError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_header_and_arrays_come_back_exactly(path):
    write(path, HEADER, ARRAYS)
    header, arrays = read(path)
    assert header == HEADER
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert arrays[name].tobytes() == array.tobytes()
        assert arrays[name].flags.writeable
        assert arrays[name].flags.owndata
        assert arrays[name].flags.c_contiguous


@given(
    array=hnp.arrays(
        st.one_of(
            hnp.boolean_dtypes(),
            hnp.integer_dtypes(endianness="?"),
            hnp.unsigned_integer_dtypes(endianness="?"),
            hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
        ),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
    ),
    step=st.sampled_from([1, 2, -1]),
)
def test_any_array_comes_back_exactly(tmp_path_factory, array, step):
    path = tmp_path_factory.mktemp("archive") / "a.skn"
    view = array[::step].T if array.ndim else array
    write(path, {}, {"a": view})
    _, arrays = read(path)
    native = view.astype(view.dtype.newbyteorder("="))
    assert arrays["a"].dtype == native.dtype
    assert arrays["a"].shape == native.shape
    assert arrays["a"].tobytes() == native.tobytes()


def test_nothing_at_all_comes_back(path):
    write(path, {}, {})
    assert read(path) == ({}, {})


def test_it_is_a_safetensors_file(path):
    write(path, HEADER, ARRAYS)
    loaded = safetensors.numpy.load_file(path)
    assert loaded.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert loaded[name].tobytes() == array.tobytes()
    with safetensors.safe_open(path, "np") as file:
        metadata = file.metadata()
    assert metadata["format"] == "sketchnewton"
    assert metadata["format_version"] == "2"
    assert metadata["package_version"] == sketchnewton.__version__
    assert json.loads(metadata["header"]) == HEADER


def test_equal_content_gives_equal_files(tmp_path):
    write(tmp_path / "a", HEADER, ARRAYS)
    write(tmp_path / "b", HEADER, dict(reversed(ARRAYS.items())))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_every_changed_byte_is_refused(path):
    write(path, {"rows": 3}, {"w": np.array([1.0, -2.0]), "n": np.array([4, 5], np.int16)})
    content = path.read_bytes()
    for at in range(len(content)):
        for flip in (0x01, 0x20, 0x29, 0xFF):  # 0x29 turns the padding's spaces into tabs
            changed = bytearray(content)
            changed[at] ^= flip
            path.write_bytes(changed)
            refusal(path)


def test_every_shorter_or_longer_file_is_refused(path):
    write(path, {"rows": 3}, {"w": np.array([1.0, -2.0])})
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        message = refusal(path)
        if length > 60:
            assert "ends too early" in message
    path.write_bytes(content + b"\0")
    assert "has extra bytes after its end" in refusal(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"1 |f a:1 b:2\n" * 50, "not a sketchnewton model file"),
        (b"\x80\x04\x95" + bytes(100), "not a sketchnewton model file"),
        (bytes(4096), "not a sketchnewton model file"),
        (b"\xff" * 4096, "not a sketchnewton model file"),
        ((5000).to_bytes(8, "little") + b"[" * 5000, "not a sketchnewton model file"),
        ((2).to_bytes(8, "little") + b"[]", "not a sketchnewton model file"),
    ],
)
def test_foreign_files_are_refused(path, content, words):
    path.write_bytes(content)
    assert words in refusal(path)


def test_other_safetensors_files_are_refused(path):
    safetensors.numpy.save_file({"w": np.ones(3)}, path)
    assert "a safetensors file, but not a sketchnewton model" in refusal(path)


def test_a_newer_format_asks_for_an_upgrade(path):
    write(path, {}, {})
    start = text_of(path.read_bytes())
    start["__metadata__"] |= {"format_version": "3", "package_version": "9.9"}
    path.write_bytes(rechecked(start))
    message = refusal(path)
    assert "'3'" in message
    assert "'9.9'" in message
    assert "upgrade sketchnewton" in message


def entry(**changes):
    return {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]} | changes


@pytest.mark.parametrize(
    "w",
    [
        entry(dtype="F128"),
        entry(dtype=["F64"]),
        entry(shape=[3]),
        entry(shape=[-2]),
        entry(shape=[2.0]),
        entry(shape=[True, 2]),
        entry(shape=[10**15], data_offsets=[0, 8 * 10**15]),
        entry(shape=[1] * 100 + [2]),
        entry(shape="2"),
        entry(shape=2),
        entry(data_offsets=[8, 24]),
        entry(data_offsets=[0]),
        entry(data_offsets=[0, 16, 32]),
        "F64",
        None,
        {},
    ],
)
def test_descriptions_that_cannot_be_are_refused_even_with_the_right_checksum(path, w):
    write(path, {}, {"w": np.ones(2)})
    start = text_of(path.read_bytes())
    path.write_bytes(rechecked(start, np.ones(2).tobytes()))
    assert read(path)[1]["w"].tolist() == [1.0, 1.0]  # the forger's tool works
    start["w"] = w
    path.write_bytes(rechecked(start, np.ones(2).tobytes()))
    assert "damaged or edited" in refusal(path)


def test_arrays_that_changed_places_are_refused(path):
    write(path, {}, {"a": np.zeros(2), "b": np.ones(2)})
    start = text_of(path.read_bytes())
    start["a"], start["b"] = start["b"], start["a"]
    path.write_bytes(rechecked(start, np.array([0.0, 0.0, 1.0, 1.0]).tobytes()))
    assert "the place of array 'a' does not fit" in refusal(path)


@pytest.mark.parametrize("header", ["", "[]", "{", "[" * 100_000, None, 3])
def test_headers_that_are_no_dictionary_are_refused(path, header):
    write(path, {}, {})
    start = text_of(path.read_bytes())
    start["__metadata__"]["header"] = header
    path.write_bytes(rechecked(start))
    assert "damaged or edited" in refusal(path)


@pytest.mark.parametrize("checksum", ["", "0" * 63, "ü" * 64, "\ud800" * 64, None, 0])
def test_checksums_that_are_none_are_refused(path, checksum):
    write(path, {}, {})
    start = text_of(path.read_bytes())
    start["__metadata__"]["checksum"] = checksum
    text = json.dumps(start).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    assert "its metadata is incomplete" in refusal(path)


def test_a_damaged_length_allocates_nothing(path):
    write(path, {}, {"w": np.ones(2)})
    content = path.read_bytes()
    tracemalloc.start()
    try:
        for length in (2**63, 2**40, 90_000_000):
            path.write_bytes(length.to_bytes(8, "little") + content[8:])
            refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_saving_and_loading_make_no_needless_copy(path):
    big = np.ones(4_000_000)
    tracemalloc.start()
    try:
        write(path, {}, {"big": big})
        assert tracemalloc.get_traced_memory()[1] < 0.1 * big.nbytes
        tracemalloc.reset_peak()
        read(path)
        assert tracemalloc.get_traced_memory()[1] < 1.1 * big.nbytes
    finally:
        tracemalloc.stop()


def test_a_missing_file_is_named(path):
    with pytest.raises(FileNotFoundError, match=r"there is no such model file: .*model\.skn"):
        read(path)


def test_a_pipe_is_no_model_file(path):
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)  # or opening it for reading would wait
    try:
        assert "not a regular file" in refusal(path)
    finally:
        os.close(writer)


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.array([None]), np.ones(2, complex), np.ones(2, "f8,i4")]
)
def test_arrays_that_do_not_fit_are_refused(path, array):
    with pytest.raises(TypeError, match=r"array 'bad' has dtype .*, which a model file cannot hold"):
        write(path, {}, {"bad": array})
    assert not list(path.parent.iterdir())


def test_reserved_names_and_unfit_headers_are_refused(path):
    with pytest.raises(ValueError, match="'__metadata__' is reserved"):
        write(path, {}, {"__metadata__": np.ones(1)})
    with pytest.raises(TypeError, match="JSON"):
        write(path, {"x": object()}, {})
    assert not list(path.parent.iterdir())


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_permission_bits(path):
    write(path, {}, {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o640  # as the umask says for a new file
    path.chmod(0o604)
    write(path, {}, {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o604  # as the owner of the old file chose


def test_a_symbolic_link_stays_and_its_target_changes(tmp_path):
    (tmp_path / "models").mkdir()
    link = tmp_path / "current.skn"
    link.symlink_to("models/today.skn")
    for rows in (1, 2):  # first the target does not exist yet
        write(link, {"rows": rows}, {})
        assert link.is_symlink()
        assert read(tmp_path / "models" / "today.skn")[0] == {"rows": rows}


def saved_before_and_alone(path) -> bool:
    return read(path)[0] == {"rows": 1} and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_crash_before_the_rename_leaves_the_old_file(path, monkeypatch, step, error):
    def crash(*_):
        raise error

    write(path, {"rows": 1}, {})
    monkeypatch.setattr(os, step, crash)
    with pytest.raises(type(error)):
        write(path, {"rows": 2}, {})
    monkeypatch.undo()
    assert saved_before_and_alone(path)


def test_the_content_is_complete_on_disk_before_the_rename(path, monkeypatch):
    events = []
    fsync, replace = os.fsync, os.replace

    def seen_fsync(descriptor):
        events.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def seen_replace(source, target):
        assert read(source)[0] == {"rows": 2}
        events.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "replace", seen_replace)
    write(path, {"rows": 2}, {})
    assert events == ["file", "rename", "directory"]


def test_a_full_disk_leaves_the_old_file(path):
    write(path, {"rows": 1}, {})
    script = """
import resource, sys
import numpy as np
from sketchnewton.core.archive import write
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write(sys.argv[1], {"rows": 2}, {"big": np.ones(100_000)})
except OSError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    assert done.stdout == f"[Errno 27] cannot save the model, nothing was changed: File too large: '{path}'\n"
    assert done.stderr == ""
    assert saved_before_and_alone(path)


def test_a_directory_that_cannot_be_written_is_one_clear_error(path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "some temporary name")

    write(path, {"rows": 1}, {})
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match=r"cannot save the model, .*Permission denied: '.*model\.skn'$"):
        write(path, {"rows": 2}, {})
    monkeypatch.undo()
    assert saved_before_and_alone(path)


def test_places_that_are_no_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot save .*No such file or directory: '.*m\.skn'$"):
        write(tmp_path / "missing" / "m.skn", {}, {})
    with pytest.raises(IsADirectoryError, match=r"cannot save .*it is a directory"):
        write(tmp_path, {}, {})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"cannot save .*not a regular file"):
        write(tmp_path / "pipe", {}, {})
    assert list(tmp_path.iterdir()) == [tmp_path / "pipe"]


def test_a_write_protected_file_is_kept(path, monkeypatch):
    write(path, {"rows": 1}, {})
    monkeypatch.setattr(os, "access", lambda *_: False)  # for root every file is writable
    with pytest.raises(PermissionError, match="write-protected"):
        write(path, {"rows": 2}, {})
    assert saved_before_and_alone(path)


def test_long_and_bare_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("n" * 255, "ü" * 127, "model.skn"):
        write(name, {"name": name}, {})
        assert read(name)[0] == {"name": name}


def save_model(path):
    write(path, HEADER, ARRAYS)


def save_cache(path):
    CacheWriter(str(path), {}).commit()


def save_text(path):
    with open_output(str(path)) as file:
        file.write("1")


def save_rows(path):
    with open_writer(path, format="svmlight"):
        pass


@pytest.mark.parametrize("save", [save_model, save_cache, save_text, save_rows])
def test_what_killed_processes_left_is_removed(save, tmp_path):
    hex16, here = "0123456789abcdef", temporary_beside("m.skn").split(".")[3]
    stays = {
        f".m.skn.{here}.{os.getppid()}.{hex16}.tmp",  # of a process that is alive
        f".m.skn.7.{here}.999999999.{hex16}.tmp",  # of m.skn.7
        f".other.{here}.999999999.{hex16}.tmp",
        f".m.skn.elsewhere.999999999.{hex16}.tmp",  # of another machine
        ".m.skn.999999999.tmp",  # of somebody else
        temporary_beside(str(tmp_path / "m.skn")),  # of another thread
    }
    goes = {
        f".m.skn.{here}.999999999.{hex16}.tmp",
        f".m.skn.{here}.{os.getpid()}.{hex16}.tmp",  # our number, before us
    }
    for name in stays | goes:
        (tmp_path / name).touch()
    save(tmp_path / "m.skn")
    assert {path.name for path in tmp_path.iterdir()} == {"m.skn", *map(os.path.basename, stays)}


def test_a_killed_save_leaves_what_the_next_one_removes(path):
    script = """
import os, signal, sys
from sketchnewton.core import archive
with archive.replacement_of(sys.argv[1]):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert [other.suffix for other in path.parent.iterdir()] == [".tmp"]
    write(path, HEADER, ARRAYS)
    assert list(path.parent.iterdir()) == [path]


def test_a_file_of_an_earlier_version_is_refused(tmp_path, monkeypatch):
    """Its learner would load, but what turned records into features would be lost."""
    path = tmp_path / "m.skn"
    with monkeypatch.context() as earlier:
        earlier.setattr(archive, "FORMAT_VERSION", 1)
        sketchnewton.AdaGrad().save(path)
    with pytest.raises(ModelFileError, match=r"format version '1'.*train the model again$"):
        sketchnewton.load(path)
