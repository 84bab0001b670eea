"""`skn top`: what a server does, in lines that fit the terminal and cannot steer it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sketchnewton.cli.commands.top import page
from tests.cli.support import skn

HOSTILE = "\x1b[31mred\x1b]0;title\x07\u202e\u009b2J\r\nsecond line"


def stats(**changes: Any) -> dict[str, Any]:
    """Figures as the server sends them."""
    return {
        "time": 1_700_000_000.0,
        "version": 12345,
        "rows_per_second": 420.0,
        "requests_per_second": 901.5,
        "loss": 0.5,
        "loss_recent": 0.25,
        "metric": {"name": "error", "value": 0.125},
        "latency_ms": {"predict": {"p50": 0.2, "p99": 1.1}, "learn": {}},
        "pending": 678,
        "label_delay_s": {"p50": 12.0, "p90": 95.0},
        "queue": 0,
        "experts": [{"name": "steady 2", "weight": 0.1}, {"name": "falling 0.5", "weight": 0.9}],
        "spectrum": [100.0, 1.5, 0.0],
        "weights": [
            {"name": "user^anna", "weight": 1.5, "change": -0.25},
            {"name": "price", "weight": -0.5, "change": 0.5},
            {"name": "unused", "weight": 0.0, "change": 0.0},
        ],
        "errors": [{"time": 1_700_000_000.0, "status": 404, "code": "unknown_id", "message": "no such id"}],
        **changes,
    }


NOTHING = {"loss": None, "loss_recent": None, "metric": None, "latency_ms": {}, "label_delay_s": {}}
EMPTY = stats(**NOTHING, experts=[], spectrum=[], weights=[], errors=[], version=0, pending=0)


def test_all_figures_are_there() -> None:
    text = "\n".join(page("clicks", stats(), [0.9, 0.5, 0.25], 100))
    figures = ["12,345", "420 rows/s", "901.5 requests/s", "predict p50 0.2 ms p99 1.1 ms", "678 waiting"]
    figures += ["p50 12 s p90 95 s", "0.25 recent", "0.5 since the start", "error", "0.12500", "█▄▁"]
    figures += ["user^anna", "+1.5", "-0.25", "90.0%", "100  1.5", "404 unknown_id: no such id"]
    for figure in figures:
        assert figure in text
    assert "unused" not in text


def test_weights_are_sorted_by_size_and_by_change() -> None:
    text = "\n".join(page("clicks", stats(), [], 60))
    largest, fastest = text.split("Fastest-moving weights")
    assert largest.index("user^anna") < largest.index("price")
    assert fastest.index("price") < fastest.index("user^anna")


@pytest.mark.parametrize("width", [20, 40, 79, 80, 100, 200])
@pytest.mark.parametrize("name", ["user^anna", "日本語の名前" * 20, "x" * 500, HOSTILE])
def test_no_line_is_too_long(width: int, name: str) -> None:
    given = stats(weights=[{"name": name, "weight": 1.0, "change": 1.0}] * 3)
    for line in page(name, given, [0.1] * 500, width):
        wide = sum(2 if "\u2e80" <= character <= "\uffe6" else 1 for character in line)
        assert wide <= width


@pytest.mark.parametrize("width", [40, 120])
def test_names_and_messages_cannot_steer_the_terminal(width: int) -> None:
    error = {"time": 0.0, "status": 400, "code": HOSTILE, "message": HOSTILE}
    weights = [{"name": HOSTILE, "weight": 1.0, "change": 1.0}]
    given = stats(
        weights=weights,
        errors=[error],
        experts=[{"name": HOSTILE, "weight": 1.0}],
        metric={"name": HOSTILE, "value": 1.0},
    )
    lines = page(HOSTILE, given, [0.2, 0.1], width)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "".join(lines))
    assert any(r"\x1b[31mred" in line for line in lines)


def test_a_server_that_has_done_nothing() -> None:
    text = "\n".join(page("new", EMPTY, [], 80))
    assert "none yet" in text
    assert "No errors" in text
    assert "nan" not in text.lower().replace("unanswered", "")


def test_mistakes_are_one_line() -> None:
    for arguments, code, words in [
        (["http://127.0.0.1:1", "--once"], 1, "Connection refused"),
        (["localhost:8080"], 2, "must begin with http:// or https://"),
        (["http://localhost:1", "--interval", "0"], 2, "at least 0.1"),
        (["http://localhost:1", "--token-file", "/nowhere/token"], 1, "No such file"),
    ]:
        run = skn("top", *arguments)
        assert run.returncode == code
        assert words in run.stderr.decode()
        assert run.stderr.count(b"\n") == 1
