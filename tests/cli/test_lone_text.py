"""One text among labels that are numbers makes classes of all of them: it is told, as it is mostly a slip."""

from __future__ import annotations

from pathlib import Path

import pytest

from sketchnewton.cli.main import main

WARNING = "labels are numbers, but one is the text"


@pytest.mark.parametrize(
    ("labels", "options", "told"),
    [
        (
            ["1.5", "2", "label", "3"],
            [],
            "the text 'label', which makes 4 classes of them",
        ),  # a header, twice
        (["1", "-1", "1", "-1", "x"], [], "the text 'x', which makes 3 classes of them"),
        (["1", "2", "x"], ["--classes", "all"], None),
        (["1", "2", "x"], ["--classes", "1,2,x"], None),
        (["1", "2", "x", "y"], [], None),
        (["1", "x"], [], None),
        (["yes", "no"], [], None),
        (["1", "2"], [], None),
    ],
)
def test_one_text_among_numbers(
    labels: list[str],
    options: list[str],
    told: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = tmp_path / "d.csv"
    data.write_text("label,a\n" + "".join(f"{label},{row}\n" for row, label in enumerate(labels)))
    assert main(["train", str(data), *options]) == 0
    said = capsys.readouterr().err
    assert (f"skn: warning: {data}: {WARNING}" in said) is (told is not None)
    assert told is None or told in said
