"""The progress bar stays below the table and leaves nothing behind."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from sketchnewton.cli.io import console
from sketchnewton.cli.io.console import Console, amount, number, percent, printable
from sketchnewton.cli.main import main
from tests.cli.support import write_rows


class Terminal(io.StringIO):
    """A terminal as a program sees it."""

    def isatty(self) -> bool:
        return True

    def shown(self) -> list[str]:
        """The lines on the screen after all carriage returns and erasures."""
        lines = []
        for line in self.getvalue().split("\n"):
            screen = ""
            for piece in line.split("\r"):
                text, erased, rest = piece.partition("\x1b[K")
                screen = text + rest if erased else piece + screen[len(piece) :]
            lines.append(screen)
        return lines


def attached(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make stderr a terminal. Not a fixture: pytest changes stderr between set-up and test."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(console, "_BAR_EVERY", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return screen


def test_lines_replace_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attached(monkeypatch)
    view = Console()
    view.line("first")
    view.progress(0.25, "100 rows")
    assert " 25%  100 rows" in terminal.shown()[1]
    assert len(terminal.shown()[1]) < 80
    view.line("second")
    view.progress(None, "200 rows")
    assert terminal.shown() == ["first", "second", "200 rows"]
    view.clear()
    assert terminal.shown() == ["first", "second", ""]


def test_training_leaves_a_clean_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attached(monkeypatch)
    data = write_rows(tmp_path / "rows.svm")
    assert main(["train", str(data), "--passes", "2"]) == 0
    assert "100%" in terminal.getvalue()
    assert not any(mark in line for line in terminal.shown() for mark in "━╌\x1b")


@pytest.mark.parametrize("quiet", [True, False])
def test_no_bar_when_quiet_or_dumb(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attached(monkeypatch)
    if not quiet:
        monkeypatch.setenv("TERM", "dumb")
    Console(quiet).progress(0.5, "rows")
    assert terminal.getvalue() == ""


EVIL = "a\x1b[2J\x1b]0;owned\x07\x9b31m\r\n\x7f\u202e\u2028b"


def steers(text: str) -> bool:
    """Whether something in `text` could do more to a terminal than show characters."""
    return any(not char.isprintable() for line in text.split("\n") for char in line)


def test_control_characters_are_escaped() -> None:
    assert printable(EVIL) == r"a\x1b[2J\x1b]0;owned\x07\x9b31m\r\n\x7f\u202e\u2028b"
    assert printable("caf\udce9") == r"caf\xe9"
    assert printable("\ufefflabel") == r"\ufefflabel"
    for text in ("", "plain", "naïve\tمی‌خواهم 👩‍💻 日本"):
        assert printable(text) == text


def test_names_and_paths_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path(EVIL.replace("\n", ""))
    folder.mkdir()
    data, model = folder / "rows.jsonl", folder / "m.skn"
    data.write_text("".join(f'{{"label": {i % 2}, {json.dumps(EVIL)}: {i}}}\n' for i in range(9)))
    rest = ["--exact-names", "--model", str(model)]
    commands = [
        ["train", str(data), *rest],
        ["train", str(data), *rest, "--dry-run"],
        ["inspect", str(model)],
        ["predict", str(model), str(data), "--output", str(folder / "p")],
        ["sketch", str(data), "-o", str(folder / "s.skn")],
        ["inspect", str(folder / "s.skn")],
        ["bench", str(data), "--learners", "adagrad"],
        ["convert", str(data), str(folder / "copy.jsonl")],
        ["merge", str(folder / "s.skn"), str(folder / "s.skn"), "-o", str(folder / "both.skn")],
        ["train", str(folder / "none")],
        ["train", str(data), f"--{EVIL}"],
        ["predict", str(data), str(data)],
        [EVIL],
    ]
    for command in commands:
        code = main(command)
        out, err = capsys.readouterr()
        assert not steers(out)
        assert not steers(err)
        assert r"\x1b[2J" in out + err
        assert (code != 0) == (commands.index(command) >= 9)


def test_tags_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "rows.jsonl", tmp_path / "m.skn"
    data.write_text(json.dumps({"label": 1, "x": 2, "id": EVIL}) + "\n")
    assert (
        main(["train", str(data), "--tag", "id", "--model", str(model), "--predictions", "-", "--quiet"]) == 0
    )
    assert capsys.readouterr().out.endswith(f" {printable(EVIL)}\n")


def test_numbers_are_readable() -> None:
    values = (0.0, 0.123456, 12.34567, 12345.67, 1.23456e9)
    assert [number(value) for value in values] == ["0.0000", "0.12346", "12.346", "12346", "1.2346e+09"]
    assert amount(1234567.0) == "1,234,567"
    assert [percent(0.0254), percent(None)] == ["2.54%", "-"]
