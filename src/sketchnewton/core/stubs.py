"""The stubs of packages whose names are imported on first use, so that type checkers know those names.

`python -m sketchnewton.core.stubs` writes them again.
"""

from __future__ import annotations

from pathlib import Path

from sketchnewton.core.names import AT_TOP_LEVEL, IN_LEARNERS, SUBPACKAGES

__all__ = ["STUBS", "stub"]

_START = "# Made from core/names.py by python -m sketchnewton.core.stubs\n"


def stub(package: str, homes: dict[str, str], subpackages: tuple[str, ...] = ()) -> str:
    """The text of a stub: each name, and the module below `package` that has it."""
    lines = sorted(
        [f"from {package} import {name} as {name}\n" for name in subpackages]
        + [f"from {package}.{home} import {name} as {name}\n" for name, home in homes.items()],
        key=lambda line: (line.split()[1], line),
    )
    return "".join([_START, "\n", *lines])


STUBS = {
    "learners/__init__.pyi": stub("sketchnewton.learners", IN_LEARNERS),
    "__init__.pyi": stub("sketchnewton", AT_TOP_LEVEL, SUBPACKAGES) + "\n__version__: str\n",
}
"""The text of each stub, by its place in the package."""

if __name__ == "__main__":
    for place, text in STUBS.items():
        (Path(__file__).parents[1] / place).write_text(text)
