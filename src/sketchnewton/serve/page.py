"""The files of the page at `/`, read once: no request ever names a file."""

from __future__ import annotations

import os
from importlib import resources

from sketchnewton.serve.messages import Response

__all__ = ["pages"]

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"  # noqa: E501
_HEADERS = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-cache"),
)


def pages() -> dict[str, Response]:
    """The responses by their paths."""
    found: dict[str, Response] = {}
    folder = resources.files("sketchnewton.serve").joinpath("static")
    for entry in folder.iterdir() if folder.is_dir() else ():
        kind = _TYPES.get(os.path.splitext(entry.name)[1])
        if kind is not None:
            path = "/" if entry.name == "index.html" else f"/{entry.name}"
            found[path] = Response(entry.read_bytes(), content_type=kind, headers=_HEADERS)
    return found
