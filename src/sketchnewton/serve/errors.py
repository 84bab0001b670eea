"""What is said when a request cannot be answered: one shape for all of it."""

from __future__ import annotations

import json

__all__ = ["ApiError", "error_body"]


class ApiError(Exception):
    """A status, a code for programs and one line for people."""

    def __init__(
        self, status: int, code: str, message: str, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers


def error_body(error: ApiError) -> bytes:
    """The JSON of an error."""
    message = " ".join(error.message.split())
    return json.dumps({"error": {"code": error.code, "message": message}}).encode()
