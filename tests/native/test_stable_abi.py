"""The bindings look inside Python's objects in one header alone, which has another way for the stable ABI.

Wheels from Python 3.12 on are built for the stable ABI, where these macros do not exist; a build for one version
would not notice.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BINDINGS = Path(__file__).parents[2] / "native" / "bindings"
# CPython's naming: macros that read or write fields, none of which is in the stable ABI.
INSIDE = re.compile(
    r"\bPy[A-Za-z]+_(?:GET|SET|AS|READ|WRITE|IS|DATA|KIND|MAX)(?:_[A-Z_]+)?\b|\bPyASCIIObject\b"
)


def uses(source: str) -> set[str]:
    return set(INSIDE.findall(re.sub(r"//.*", "", source)))


@pytest.mark.parametrize(
    "path",
    [p for p in sorted(BINDINGS.iterdir()) if p.name != "python_api.hpp"],
    ids=lambda path: path.name,
)
def test_no_look_inside_objects(path: Path) -> None:
    assert uses(path.read_text(encoding="utf-8")) == set()


def test_the_header_has_both_ways() -> None:
    source = (BINDINGS / "python_api.hpp").read_text(encoding="utf-8")
    stable, _, direct = source.partition("#else")
    assert uses(stable) == set()
    assert uses(direct)
    functions = re.compile(r"^inline [^(=]*?(\w+)\(", re.MULTILINE)
    assert set(functions.findall(stable)) == set(functions.findall(direct))
