"""A hundred `kill -9` of a server under load, with late labels and repeated ones; then a disk that is full.

    python benchmarks/serve_faults.py [--kills 100]

After each start: every acknowledged label was learned exactly once, every id that was promised is known, repeated
labels are answered as before, and the model equals an offline run over the log, byte for byte.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serve.kills import Ledger, final_check, one_life


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    options = parser.parse_args()
    ledger = Ledger()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        state = Path(name) / "state"
        for seed in range(options.kills):
            one_life(state, ledger, seed)
            if seed % 10 == 9:
                known = f"{len(ledger.learned)} records, {len(ledger.labelled)} late labels"
                print(f"{seed + 1} kills: {known}", flush=True)
        events = final_check(state, ledger)
    known = (
        f"{len(ledger.learned)} records, {len(ledger.labelled)} late labels, {ledger.repeated} repeated ones"
    )
    seconds = time.monotonic() - start
    print(f"{options.kills} kills in {seconds:.0f} s: {events} events in the log; {known} acknowledged")
    print("none lost, none learned twice; the model was that of the log after every start")
    return 0


if __name__ == "__main__":
    sys.exit(main())
