"""A dictionary and named arrays in one file that is either whole and unchanged or refused.

The file is a safetensors file, so other tools can look into it: eight bytes with the length of a JSON text,
the text (names, dtypes, shapes and our metadata), the bytes of the arrays, little-endian. It is written and
read here, not by the safetensors library, so that every byte passes the checksum on its way to or from its
array: no second copy in memory, no memory map of a file that may change, nothing allocated that the file is
too short for, and errors of the disk arrive as OSError. Nothing is pickled.

>>> import tempfile
>>> from pathlib import Path
>>> path = Path(tempfile.mkdtemp()) / "model.skn"
>>> write(path, {"rows": 3}, {"weights": np.array([0.5, -1.0])})
>>> header, arrays = read(path)
>>> header, arrays["weights"].tolist()
({'rows': 3}, [0.5, -1.0])
>>> decode(encode(header, arrays))[0]
{'rows': 3}
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from io import BufferedReader, BufferedWriter, BytesIO

from sketchnewton import _native
from sketchnewton.core.hints import TYPE_CHECKING, Any
from sketchnewton.core.types import Array, ArrayLike, Arrays, Header, Path, np

if TYPE_CHECKING:
    from sketchnewton.core.state import Buffers

__all__ = [
    "FORMAT_VERSION",
    "ModelFileError",
    "decode",
    "decode_buffers",
    "encode",
    "read",
    "read_buffers",
    "write",
]

FORMAT_VERSION = 2

_DTYPES = {
    **{"F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "|b1"},
    **{"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1"},
    **{"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1"},
}
_NAMES = {code[1:]: name for name, code in _DTYPES.items()}  # whatever the byte order
_FORMATS = {("d", 8): "F64", ("f", 4): "F32", ("l", 8): "I64", ("q", 8): "I64"}  # of memoryviews
_NATIVE = {"<f8": "float64", "<f4": "float32", "<i8": "int64"}  # what `_native.zeros` knows
_START = b'{"__metadata__":{"format":"sketchnewton",'
_LONGEST_TEXT = 100_000_000  # that of the safetensors library

# The checksum is the SHA-256 of the whole file with these zeros in its own place, so it covers every byte.
_NO_CHECKSUM = "0" * 64


class ModelFileError(ValueError):
    """A file is not a whole, unchanged archive that this version can read."""


def prepare() -> None:
    """Import what `write` needs, for whoever has time for that before."""
    for module in ("hashlib", "json"):
        import_module(module)


def write(path: Path, header: Mapping[str, object], arrays: Mapping[str, ArrayLike]) -> None:
    """Put `header`, which `json` must be able to hold, and `arrays` into the file `path`, all or nothing.

    The new content is complete on the disk before it takes the name of the old, so a crash, a full disk or an
    interrupt leaves the old file as it was. Arrays of booleans, integers and floats up to 64 bits keep their
    exact values; they come back contiguous, in the machine's byte order. Equal content gives equal files.
    """
    content = _Content(header, arrays)
    target = os.path.realpath(path)
    with _explained(path), replacement_of(target) as file:
        content.write(file)
    sync_directory(os.path.dirname(target))


def encode(header: Mapping[str, object], arrays: Mapping[str, ArrayLike]) -> bytes:
    """The bytes of the file that `write` would make."""
    file = BytesIO()
    _Content(header, arrays).write(file)
    return file.getvalue()


def read(path: Path) -> tuple[Header, Arrays]:
    """The header and arrays of the file `path`; the arrays are writable and own their memory.

    Raises FileNotFoundError where there is no file and ModelFileError where it is damaged, edited or foreign.
    """
    header, arrays = _read_file(path, native=False)
    return header, arrays


def read_buffers(path: Path) -> tuple[Header, Buffers]:
    """The same, but float32, float64 and int64 numbers are memoryviews of native memory, without NumPy."""
    return _read_file(path, native=True)


def _read_file(path: Path, *, native: bool) -> tuple[Header, Header]:
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "there is no such model file", os.fspath(path)) from None
    with file:
        try:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError("not a regular file; give the path of a model file")
            return _read(file, status.st_size, native=native)
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(path)}: {error}") from None


def decode(data: bytes) -> tuple[Header, Arrays]:
    """What `read` returns for a file of these bytes."""
    return _read(BytesIO(data), len(data), native=False)


def decode_buffers(data: bytes) -> tuple[Header, Buffers]:
    """What `read_buffers` returns for a file of these bytes."""
    return _read(BytesIO(data), len(data), native=True)


class _Content:
    """The start of a file and the arrays that follow it, ready to be written."""

    def __init__(self, header: Mapping[str, object], arrays: Mapping[str, ArrayLike]) -> None:
        content: Header = {
            name: array if _is_plain(array) else np.asarray(array) for name, array in arrays.items()
        }
        # Wide types first keeps every array aligned.
        order = sorted(content, key=lambda name: (-content[name].itemsize, name))
        self._arrays = {name: content[name] for name in order}
        self._start = _start_of_file(header, self._arrays)

    def write(self, file: BufferedWriter | BytesIO) -> None:
        """Write everything, then the checksum into its place."""
        import hashlib  # loads OpenSSL: not for those who never save, as json below

        digest = hashlib.sha256(self._start)
        file.write(self._start)
        for array in self._arrays.values():
            data = _bytes_of(array)
            digest.update(data)
            file.write(data)
        file.seek(self._start.index(_NO_CHECKSUM.encode()))
        file.write(digest.hexdigest().encode())


def _start_of_file(header: Mapping[str, object], arrays: Arrays) -> bytes:
    """Length and JSON text, with zeros for the checksum."""
    import json

    # The version is taken from the running package: importing it here would tie this layer to those above.
    text: Header = {
        "__metadata__": {
            "format": "sketchnewton",  # first: `_START` recognises a file by it
            "format_version": str(FORMAT_VERSION),
            "package_version": sys.modules["sketchnewton"].__version__,
            "checksum": _NO_CHECKSUM,
            "header": json.dumps(dict(header)),
        }
    }
    end = 0
    for name, array in arrays.items():
        dtype = _name_of(array)
        if dtype is None:
            raise TypeError(f"array {name!r} has dtype {array.dtype}, which a model file cannot hold")
        if name in text:
            raise ValueError(f"array name {name!r} is reserved")
        begin, end = end, end + array.nbytes
        text[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, end]}
    encoded = json.dumps(text, separators=(",", ":")).encode("ascii")
    encoded += b" " * (-len(encoded) % 8)
    if len(encoded) > _LONGEST_TEXT:
        raise ValueError(f"the header has {len(encoded)} bytes, a model file holds {_LONGEST_TEXT}")
    return len(encoded).to_bytes(8, "little") + encoded


def _is_plain(array: object) -> bool:
    """Is it a memoryview that can be written as it is, without NumPy?"""
    return (
        isinstance(array, memoryview)
        and (array.format, array.itemsize) in _FORMATS
        and array.c_contiguous
        and sys.byteorder == "little"
    )


def _name_of(array: Array | memoryview) -> str | None:
    """What safetensors calls its type."""
    if isinstance(array, memoryview):
        return _FORMATS[array.format, array.itemsize]
    return _NAMES.get(array.dtype.str[1:])


def _bytes_of(array: Array | memoryview) -> memoryview:
    """The array's bytes in C order and little-endian: a view where possible, else one copy."""
    if isinstance(array, memoryview):
        return array.cast("B") if array.nbytes else memoryview(b"")
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8).data


def _read(file: BufferedReader | BytesIO, size: int, *, native: bool) -> tuple[Header, Header]:
    import hashlib

    start, text = _read_text(file, size)
    ours = _own_metadata(text)
    shapes = _layout(text, size - len(start))
    digest = hashlib.sha256(start.replace(ours["checksum"].encode(), _NO_CHECKSUM.encode(), 1))
    arrays: Header = {}
    for name, (code, shape) in shapes.items():
        array: Any
        try:
            if native and code in _NATIVE and _is_usual(shape):
                array = _native.zeros(shape, _NATIVE[code])
            else:
                array = np.empty(shape, code)
        except ValueError:  # more dimensions, or larger ones beside a zero, than NumPy has
            raise _damaged(f"array {name!r} has an impossible shape") from None
        data = _bytes_of(array)  # of a new array always a view, so this fills it
        if len(data) and file.readinto(data) != len(data):
            raise _damaged("it became shorter while being read")
        digest.update(data)
        if not isinstance(array, memoryview):
            array = array.astype(array.dtype.newbyteorder("="), copy=False)
        arrays[name] = array
    if digest.hexdigest() != ours["checksum"]:
        raise _damaged("the checksum does not match")
    return _parsed_header(ours["header"]), arrays


def _is_usual(shape: tuple[int, ...]) -> bool:
    """Are there one to three dimensions, none of which is hidden behind a zero?"""
    return sys.byteorder == "little" and 1 <= len(shape) <= 3 and math.prod(n or 1 for n in shape) < 2**40


def _read_text(file: BufferedReader | BytesIO, size: int) -> tuple[bytes, Header]:
    """The bytes before the arrays, and the JSON in them."""
    import json

    foreign = ModelFileError("not a sketchnewton model file; give a file that sketchnewton saved")
    if size == 0:
        raise ModelFileError("the file is empty, not a model; save the model again or use another copy")
    prefix = file.read(8)
    length = int.from_bytes(prefix, "little")
    if length > min(size - 8, _LONGEST_TEXT):
        if file.read(len(_START)) == _START:
            raise _damaged("it ends too early")
        raise foreign
    encoded = file.read(length)
    try:
        text = json.loads(encoded.decode("utf-8"))
    except (ValueError, RecursionError):
        raise _damaged("its description is not readable") if encoded.startswith(_START) else foreign from None
    if not isinstance(text, dict):
        raise foreign
    return prefix + encoded, text


def _own_metadata(text: Header) -> dict[str, str]:
    ours = text.get("__metadata__")
    if not isinstance(ours, dict) or ours.get("format") != "sketchnewton":
        raise ModelFileError(
            "a safetensors file, but not a sketchnewton model; give a file that sketchnewton saved"
        )
    if ours.get("format_version") != str(FORMAT_VERSION):
        raise ModelFileError(
            f"format version {ours.get('format_version')!r}, written by sketchnewton "
            f"{ours.get('package_version')!r}, is not the {FORMAT_VERSION} known here; "
            + ("train the model again" if ours.get("format_version") == "1" else "upgrade sketchnewton")
        )
    checksum, header = ours.get("checksum"), ours.get("header")
    if not isinstance(checksum, str) or not isinstance(header, str):
        raise _damaged("its metadata is incomplete")
    if len(checksum) != len(_NO_CHECKSUM) or not checksum.isascii():
        raise _damaged("its metadata is incomplete")
    return {"checksum": checksum, "header": header}


def _parsed_header(encoded: str) -> Header:
    import json

    try:
        header = json.loads(encoded)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise _damaged("its header is not readable")
    return header


def _layout(text: Header, available: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Code of the dtype and shape of every array, once it is sure that they fill the rest of the file exactly."""
    layout = {}
    position = 0
    for name, entry in text.items():
        if name == "__metadata__":
            continue
        try:
            code, shape = _DTYPES[entry["dtype"]], tuple(entry["shape"])
            begin, end = entry["data_offsets"]
        except (KeyError, TypeError, ValueError):
            raise _damaged(f"the description of array {name!r} is not readable") from None
        if any(type(number) is not int or number < 0 for number in (*shape, begin, end)):
            raise _damaged(f"the description of array {name!r} is not readable")
        if begin != position or end - begin != math.prod(shape) * int(code[2:]):
            raise _damaged(f"the place of array {name!r} does not fit its shape")
        layout[name] = (code, shape)
        position = end
    if position > available:
        raise _damaged("it ends too early")
    if position < available:
        raise _damaged("it has extra bytes after its end")
    return layout


def _damaged(how: str) -> ModelFileError:
    return ModelFileError(f"damaged or edited: {how}; use another copy or save the model again")


@contextlib.contextmanager
def replacement_of(target: str) -> Iterator[BufferedWriter]:
    """A new file beside `target` that takes its place when the block ends, or vanishes when it fails."""
    mode = mode_of(target)
    temporary = temporary_beside(target)
    file = created(temporary, mode)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:  # of a write
            error.filename = target
        raise


def created(path: str, mode: int | None) -> BufferedWriter:
    """A new file with these permissions, which it never exceeds; None: those of any new file."""
    # Mode 0o666 is narrowed by the umask; the `tempfile` module would make the file private.
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | _BINARY
    file = open(os.open(path, flags, 0o666 if mode is None else mode & 0o600), "wb")  # noqa: SIM115 - the caller closes it
    if mode is not None and hasattr(os, "fchmod"):  # Windows has no such bits
        os.fchmod(file.fileno(), mode)
    return file


# Windows inherits no descriptors, and translates line ends unless told not to.
_BINARY = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def temporary_beside(target: str) -> str:
    """A new name beside `target` for what is to take its place; what killed processes left there is removed."""
    directory, name = os.path.split(target)
    start = f".{name[:40]}.{_MACHINE}."
    with contextlib.suppress(OSError):
        for other in os.listdir(directory):
            left = re.fullmatch(_TEMPORARY, other[len(start) :]) if other.startswith(start) else None
            if left is not None and not _is_running(int(left[1]), left[2]):
                os.unlink(os.path.join(directory, other))
    return os.path.join(directory, f"{start}{os.getpid()}.{_PROCESS}{os.urandom(4).hex()}.tmp")


# Processes of another machine or container that shares the directory cannot be asked whether they run.
_MACHINE = "".join(c for c in os.uname().nodename if c.isalnum())[:40] if hasattr(os, "uname") else ""
_CAN_ASK = hasattr(os, "fork")  # on Windows, os.kill(number, 0) would interrupt that process
_PROCESS = os.urandom(4).hex()  # tells this process from one that had its number before
_TEMPORARY = r"(\d+)\.([0-9a-f]{8})[0-9a-f]{8}\.tmp"


def _is_running(number: int, process: str) -> bool:
    if number == os.getpid():
        return process == _PROCESS
    if not _CAN_ASK:
        return True
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # it belongs to somebody else
    return True


def mode_of(target: str) -> int | None:
    """The permission bits of the file that will be replaced, None where there is none yet."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    if not stat.S_ISREG(mode):  # replacing /dev/null would break the machine
        raise OSError(errno.EINVAL, "it is not a regular file")
    if not os.access(target, os.W_OK):  # a rename would succeed, but the owner said no
        raise PermissionError(errno.EACCES, "the file is write-protected")
    return stat.S_IMODE(mode)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn any OSError into one of the same kind that names the file the user asked for."""
    try:
        yield
    except OSError as error:
        why = f"cannot save the model, nothing was changed: {error.strerror or error}"
        raise OSError(error.errno, why, os.fspath(path)) from error


def sync_directory(directory: str) -> None:
    """Make the names in a directory survive a power cut. Some file systems cannot; files are safe either way."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
