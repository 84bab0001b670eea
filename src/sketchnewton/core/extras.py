"""Packages that only an extra installs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs(module: str, purpose: str, extra: str) -> Iterator[None]:
    """If `module` is missing for an import in this block, say in one line what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ModuleNotFoundError(f"{purpose}: pip install 'sketchnewton[{extra}]'", name=module) from None
