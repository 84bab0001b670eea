"""The file format of MNIST: an array with its type and shape before it, plain or compressed with gzip.

Four bytes (0, 0, type, number of dimensions), dimensions as big-endian 32-bit integers, entries row by row.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


class IdxError(ValueError):
    """A file that is not what it should be."""


def read_idx(path: str | Path) -> NDArray[np.generic]:
    """The array in the file, in the byte order of this machine."""
    data = _contents(Path(path))
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in TYPES:
        raise IdxError(f"{path}: not an idx file: it begins with {data[:4].hex() or 'nothing'}")
    dtype, dimensions = np.dtype(TYPES[data[2]]), data[3]
    start = 4 + 4 * dimensions
    if len(data) < start:
        raise IdxError(f"{path}: ends within its header")
    shape = struct.unpack(f">{dimensions}I", data[4:start])
    expected = start + dtype.itemsize * int(np.prod(shape, dtype=object))
    if len(data) != expected:
        raise IdxError(f"{path}: shape {shape} needs {expected} bytes, the file has {len(data)}")
    return np.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def read_mnist(folder: str | Path, part: str) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Images and labels of the part "train" or "t10k", from files as they are published, with or without .gz."""
    images, labels = (
        read_idx(_find(Path(folder), f"{part}-{kind}")) for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise IdxError(f"{folder}: {part} has images of shape {images.shape}, labels of shape {labels.shape}")
    return images, labels


def dimensions(folder: str, part: str) -> dict[str, float]:
    """Rows, features and classes of a part of MNIST below the folder of data sets."""
    images, labels = read_mnist(Path(folder) / "mnist", part)
    return {"rows": len(labels), "features": images[0].size, "classes": len(np.unique(labels))}


def mnist_is_in(folder: Path) -> bool:
    """Are all of MNIST's files below the folder of data sets, with or without .gz?"""
    return all(
        (folder / "mnist" / f"{part}-{kind}{ending}").is_file()
        or (folder / "mnist" / f"{part}-{kind}{ending}.gz").is_file()
        for part in ("train", "t10k")
        for kind, ending in (("images", "-idx3-ubyte"), ("labels", "-idx1-ubyte"))
    )


MISSING = "MNIST's four idx files are not in {}: http://yann.lecun.com/exdb/mnist/"


def _find(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            return path
    raise FileNotFoundError(f"{folder / name}: no such file, with or without .gz")


def _contents(path: Path) -> bytes:
    data = path.read_bytes()
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise IdxError(f"{path}: damaged gzip file: {error}") from error
