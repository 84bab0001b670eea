"""VW text: the features of Vowpal Wabbit's own parser; what is refused, to the column; cuts change nothing."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sketchnewton import _native
from sketchnewton.streams import Features, Names, ParseError, hash_feature, hash_namespace, read_vw
from tests.vw_support import Judge, Row, audited

LIMIT = 1 << 20
BITS18 = (1 << 18) - 1


def parse_rows(text: bytes, bits: int = 18, string_values: bool = False) -> list[Row]:
    indptr, indices, data, labels, columns, lines, error, weights, base, tags, _, _ = _native.parse_vw(
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
    close = dict(rel_tol=2e-6, abs_tol=1e-30)
    assert math.isclose(ours.label or 0.0, theirs.label or 0.0, **close)
    assert math.isclose(ours.importance, theirs.importance, **close)
    assert math.isclose(ours.base, theirs.base, **close)
    assert [i for i, _ in ours.features] == [i for i, _ in theirs.features]
    # Features of one index may come in another order.
    for _, (a, b) in itertools.groupby(
        zip(ours.features, theirs.features, strict=True), key=lambda pair: pair[0][0]
    ):
        assert math.isclose(a[1], b[1], **close)
