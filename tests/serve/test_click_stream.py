"""The example of late labels runs, crash included: every impression is learned once, and predictions get good."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("httptools", reason="needs the extra serve")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_every_impression_is_learned_once_though_the_server_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import click_stream

    found = click_stream.main(["--impressions", "1000", "--rate", "200", "--crash", "--seed", "3"])
    assert found["learned"] == found["known"] + found["shown"]
    assert found["known"] == 250
    assert 0.05 * found["shown"] < found["clicks"] < 0.6 * found["shown"]
    assert found["truth"] < found["loss"]
    sys.modules.pop("click_stream")
