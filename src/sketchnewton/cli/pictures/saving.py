"""Where pictures go: checked before the work, written whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.io.files import check_writable, open_binary_output

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "check_picture", "save"]

PICTURES = (".png", ".svg", ".pdf")


def check_picture(option: str, path: str | None) -> None:
    """Raise at once if no picture can be drawn at `path`, which `option` gave."""
    if path is None:
        return
    if not path.lower().endswith(PICTURES):
        raise usage_error(f"{option} {path or repr(path)}: the picture can be one of {' '.join(PICTURES)}")
    check_writable(path)
    try:
        import matplotlib  # optional  # noqa: F401
    except ImportError:
        raise CommandError(f"{option} needs matplotlib: pip install 'sketchnewton[plot]'") from None


def save(figure: Figure, path: str, **options: Any) -> None:
    """Draw the figure at `path`."""
    with open_binary_output(path) as file:
        figure.savefig(file, format=os.path.splitext(path)[1][1:].lower(), **options)
