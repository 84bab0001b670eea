"""The loader of MNIST's file format, which the experiments use."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from experiments.ada.idx import IdxError, read_idx, read_mnist

DATA = Path(os.environ.get("SKETCHNEWTON_DATA", "../shared/data"))


def idx(array: np.ndarray, code: int) -> bytes:
    return bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.mark.parametrize(
    ("code", "dtype"), [(8, ">u1"), (9, ">i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")]
)
@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 4), (0, 3)])
def test_every_type_and_shape_plain_and_compressed(tmp_path, code, dtype, shape):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for content in (idx(array, code), gzip.compress(idx(array, code))):
        (tmp_path / "a").write_bytes(content)
        found = read_idx(tmp_path / "a")
        np.testing.assert_array_equal(found, array)
        assert found.dtype == np.dtype(dtype).newbyteorder("=")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an idx file: it begins with nothing"),
        (b"P5 28 28", "not an idx file: it begins with 50352032"),
        (b"\0\0\x07\x01\0\0\0\0", "not an idx file"),
        (b"\0\0\x08\x03\0\0\0\x01", "ends within its header"),
        (b"\0\0\x08\x01\0\0\0\x05abcd", r"shape \(5,\) needs 13 bytes, the file has 12"),
        (b"\0\0\x08\x01\0\0\0\x03abcd", r"shape \(3,\) needs 11 bytes, the file has 12"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "needs [0-9]{29} bytes"),
        # Without the time of day, which would be part of the test's name: processes must agree on names.
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x01a" * 100, mtime=0)[:-20], "damaged gzip file"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, content, message):
    path = tmp_path / "images"
    path.write_bytes(content)
    with pytest.raises(IdxError, match=f"images: .*{message}"):
        read_idx(path)


def test_images_and_labels_belong_together(tmp_path):
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(np.zeros((3, 2, 2), np.uint8), 8))
    with pytest.raises(FileNotFoundError, match="t10k-labels-idx1-ubyte: no such file"):
        read_mnist(tmp_path, "t10k")
    labels = tmp_path / "t10k-labels-idx1-ubyte.gz"
    labels.write_bytes(gzip.compress(idx(np.arange(3, dtype=np.uint8), 8)))
    images, classes = read_mnist(tmp_path, "t10k")
    assert images.shape == (3, 2, 2)
    assert classes.tolist() == [0, 1, 2]
    labels.write_bytes(gzip.compress(idx(np.arange(4, dtype=np.uint8), 8)))
    with pytest.raises(IdxError, match=r"images of shape \(3, 2, 2\), labels of shape \(4,\)"):
        read_mnist(tmp_path, "t10k")


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "mnist").is_dir(), reason="needs MNIST's files")
def test_mnist_itself():
    images, labels = read_mnist(DATA / "mnist", "t10k")
    assert images.shape == (10_000, 28, 28)
    assert labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert np.bincount(labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
