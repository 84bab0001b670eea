"""What was acknowledged survives `kill -9`: learned once, in order, to the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.kills import Ledger, final_check, one_life


@pytest.mark.slow
def test_killed_under_load(tmp_path: Path) -> None:
    ledger = Ledger()
    for seed in range(3):
        one_life(tmp_path / "state", ledger, seed)
    assert final_check(tmp_path / "state", ledger) > 0
    assert ledger.learned
    assert ledger.labelled
