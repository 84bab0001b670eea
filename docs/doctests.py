"""An extension of the documentation site: examples in docstrings are shown as code."""

from __future__ import annotations

import re
from typing import Any

import griffe

# From a prompt to the next blank line; further examples may follow at once.
_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts a fence around each example."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(found: re.Match[str]) -> str:
    indent = found[1]
    return f"\n{indent}```pycon\n{found[0]}\n{indent}```\n"
