"""Delete the coverage data that is damaged, so that the rest can be combined: tests kill processes and fill disks.

Usage: `python release/coverage_data.py build/coverage/python.*`
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path


def whole(path: str) -> bool:
    """Is it a database that was written to its end?"""
    try:
        with closing(sqlite3.connect(path)) as data:
            checked = data.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            return checked and data.execute("SELECT count(*) FROM line_bits").fetchone() is not None
    except sqlite3.DatabaseError:
        return False


def main() -> None:
    """Delete the others."""
    damaged = [path for path in sys.argv[1:] if not whole(path)]
    for path in damaged:
        Path(path).unlink()
    print(f"coverage: {len(sys.argv) - 1} processes, {len(damaged)} of them ended before all was written")


if __name__ == "__main__":
    main()
