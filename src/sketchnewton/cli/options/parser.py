"""argparse with one-line errors that suggest what was meant."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable

from sketchnewton.cli.io.console import terminal_width
from sketchnewton.cli.io.errors import usage_error
from sketchnewton.core.hints import TYPE_CHECKING, Any, NoReturn
from sketchnewton.core.spelling import closest

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

__all__ = ["Parser", "add_if_given", "nearest"]

_INVALID_CHOICE = r"argument (?P<where>.+?): invalid choice: (?P<quote>['\"])(?P<value>.*?)(?P=quote) \("


def nearest(word: str, words: Iterable[str]) -> str:
    """`": did you mean …?"` for the closest of `words`, or nothing."""
    found = closest(word, words)
    return "" if found is None else f": did you mean {found}?"


def add_if_given(group: argparse._ActionsContainer, name: str, **settings: Any) -> None:
    """Define an option that the arguments have only if it was typed: else the learner or the model decides."""
    group.add_argument(name, default=argparse.SUPPRESS, **settings)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Knows its width, which argparse would import `shutil` to find out, for every option again."""

    def __init__(self, prog: str, **settings: Any) -> None:
        super().__init__(prog, **{"width": terminal_width(sys.stdout) - 2, **settings})


class Parser(argparse.ArgumentParser):
    """A parser whose errors are `CommandError`s."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": _Formatter, "allow_abbrev": False, **settings})

    def options(self) -> list[str]:
        """All option strings of this parser."""
        return [text for action in self._actions for text in action.option_strings if text.startswith("--")]

    def reject(self, extras: list[str]) -> NoReturn:
        """Raise the error for arguments that no option took."""
        option = next((text for text in extras if text.startswith("-") and text != "-"), None)
        if option is None:
            self.error(f"unexpected argument {extras[0]!r}")
        name = option.partition("=")[0]
        self.error(f"unknown option {name}{nearest(name, self.options())}")

    def error(self, message: str) -> NoReturn:
        """Raise the usage error `message`, reworded where argparse's own words do not help."""
        if choice := re.match(_INVALID_CHOICE, message):
            message = self._wrong_choice(choice["where"], choice["value"])
        message = message.removeprefix("argument ").replace(
            "the following arguments are required:", "missing"
        )
        raise usage_error(f"{message} (see {self.prog} --help)")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        (file or sys.stdout).write(message)  # argparse would ignore that it cannot be written

    def _wrong_choice(self, where: str, value: str) -> str:
        choices: list[str] = []
        for action in self._actions:
            names = [*action.option_strings, action.metavar, action.dest]
            if action.choices is not None and where in (*names, "/".join(action.option_strings)):
                choices = [str(choice) for choice in action.choices]
        hint = nearest(value, choices) or f": choose from {', '.join(choices)}"
        what = "unknown command" if where == "COMMAND" else f"{where}: unknown value"
        return f"{what} {value!r}{hint}"
