"""The error that ends a command with one line and an exit code."""

from __future__ import annotations

__all__ = ["CommandError", "usage_error"]


class CommandError(Exception):
    """Ends the command: `skn: message` on stderr and the exit code `code`."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def usage_error(message: str) -> CommandError:
    """An error in what was typed rather than in a file."""
    return CommandError(message, code=2)
