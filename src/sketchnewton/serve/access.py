"""Who may ask: bearer tokens, and where a browser's request must come from."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import NamedTuple

from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.messages import Request

__all__ = ["PUBLIC", "READ", "WRITE", "Access", "read_tokens"]

PUBLIC, READ, WRITE = 0, 1, 2
_SHORTEST = 16


class Access(NamedTuple):
    """Tokens that may read, and tokens that may do everything; without any, everybody may do everything."""

    read: Sequence[bytes] = ()
    write: Sequence[bytes] = ()
    hosts: Sequence[str] = ()
    """Names by which this server may be called where there are no tokens."""

    def check(self, request: Request, needed: int) -> None:
        """Refuse who may not."""
        origin = request.header(b"origin")
        if origin and origin.partition("://")[2] != request.header(b"host"):
            raise ApiError(403, "foreign_origin", "requests of other sites' pages are refused")
        if not self.read and not self.write:
            # A page of another site could name itself after this address: the name that it calls us by tells.
            host = request.header(b"host").rpartition(":")[0] or request.header(b"host")
            if self.hosts and host.lower() not in self.hosts:
                raise ApiError(403, "foreign_host", "this server answers to the names of this machine alone")
            return
        if needed == PUBLIC:
            return
        kind, _, token = request.header(b"authorization").partition(" ")
        given = token.strip().encode("latin-1")
        may_write = _among(given, self.write)
        may_read = _among(given, self.read)
        if kind.lower() != "bearer" or not (may_write or may_read):
            raise ApiError(401, "unauthorized", "a bearer token is needed", (("WWW-Authenticate", "Bearer"),))
        if needed == WRITE and not may_write:
            raise ApiError(403, "read_only", "this token may read and predict only")


def _among(given: bytes, tokens: Sequence[bytes]) -> bool:
    """Compare with all, each in a time that does not depend on where they differ."""
    found = False
    for token in tokens:
        found |= hmac.compare_digest(given, token)
    return found


def read_tokens(path: str) -> list[bytes]:
    """The tokens in a file, one on each line; `ValueError` for what is none."""
    with open(path, encoding="utf-8") as file:
        tokens = [line.strip() for line in file if line.strip()]
    if not tokens:
        raise ValueError(f"{path}: there is no token in the file")
    for number, token in enumerate(tokens, 1):
        if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError(
                f"{path}:{number}: a token must have {_SHORTEST} or more printable ASCII characters and no blank"
            )
    return [token.encode() for token in tokens]
