"""Vowpal Wabbit's own parser, as the judge of ours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import vowpalwabbit

NO_LABEL = float(np.finfo(np.float32).max)  # what Vowpal Wabbit takes for the lack of one


class Row(NamedTuple):
    """One row: label, importance, base, tag, and the features as a sorted list of (index, value)."""

    label: float | None
    importance: float
    base: float
    tag: str
    features: list[tuple[int, float]]


class Judge:
    """Parses lines one by one; `options` are Vowpal Wabbit's."""

    def __init__(self, options: str = "", bits: int = 18) -> None:
        self.mask = (1 << bits) - 1
        self._workspace = vowpalwabbit.Workspace(f"--quiet --noconstant -b {bits} {options}")

    def row(self, line: str) -> Row:
        # Not `Workspace.parse`, which strips the line of all that Python takes for white space.
        (parsed,) = self._workspace._parse(line)
        example = vowpalwabbit.Example(self._workspace, parsed)
        example.setup_done = True
        try:
            features = [
                (example.feature(space, k) & self.mask, example.feature_weight(space, k))
                for space in range(example.num_namespaces())
                for k in range(example.num_features_in(space))
            ]
            label = example.get_simplelabel_label()
            return Row(
                None if label == NO_LABEL else label,
                example.get_simplelabel_weight(),
                example.get_simplelabel_initial(),
                example.get_tag(),
                sorted(features),
            )
        finally:
            self._workspace.finish_example(example)


def audited(line: str, options: str, capture) -> list[tuple[int, float]]:  # type: ignore[no-untyped-def]
    """The features that Vowpal Wabbit's learner sees, n-grams and interactions included, from its audit."""
    workspace = vowpalwabbit.Workspace(f"--audit --quiet --noconstant -b 18 {options}")
    capture.readouterr()
    example = workspace.parse(line)
    workspace.predict(example)
    workspace.finish_example(example)
    workspace.finish()
    shown = capture.readouterr().out
    cells = [cell.rsplit(":", 3) for cell in shown.replace("\n", "\t").split("\t") if cell.count(":") >= 3]
    return sorted((int(index), float(value)) for _, index, value, _ in cells)
