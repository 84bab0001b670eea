"""`--config FILE`: options from a TOML file, as if they were typed before the others.

A key is the long name of an option, `sketch-size` or `sketch_size`; `data` holds the operands. `true` switches an
option on, `false` off, and a list gives several values. The options on the command line come later and win.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from sketchnewton.cli.io.errors import CommandError
from sketchnewton.cli.io.files import check_named
from sketchnewton.cli.options.parser import Parser, nearest

__all__ = ["with_config"]


def with_config(argv: Sequence[str], commands: Mapping[str, Parser]) -> list[str]:
    """`argv` with the options of its `--config` files put before the typed ones."""
    at = next((at for at, text in enumerate(argv) if text in commands), None)
    if at is None:
        return list(argv)
    parser = commands[argv[at]]
    typed = list(argv[at + 1 :])
    path = _last_config(typed)
    if path is None or "--config" not in parser.options():
        return list(argv)
    options, positionals = _arguments(path, parser)
    if positionals and _has_positionals(parser, typed):
        positionals = []
    return [*argv[: at + 1], *options, *positionals, *typed]


def _last_config(typed: list[str]) -> str | None:
    found = None
    for at, text in enumerate(typed):
        if text == "--config" and at + 1 < len(typed):
            found = typed[at + 1]
        elif text.startswith("--config="):
            found = text.partition("=")[2]
    return found


def _has_positionals(parser: Parser, typed: list[str]) -> bool:
    """Whether something is typed that is neither an option nor its value."""
    takes = {name: action for action in parser._actions for name in action.option_strings}
    at = 0
    while at < len(typed):
        text = typed[at]
        if text == "-" or not text.startswith("-"):
            return True
        action = takes.get(text)
        at += 2 if action is not None and action.nargs is None else 1
    return False


def _arguments(path: str, parser: Parser) -> tuple[list[str], list[str]]:
    import tomllib

    check_named(path)
    try:
        with open(path, "rb") as file:
            settings = tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise CommandError(f"{path}: not a TOML file: {error}", code=2) from None
    except UnicodeDecodeError:
        raise CommandError(f"{path}: not a TOML file: not UTF-8 text", code=2) from None
    except RecursionError:
        raise CommandError(f"{path}: not a file of options: nested too deeply", code=2) from None
    except ValueError as error:  # a number of thousands of digits
        raise CommandError(f"{path}: {error}", code=2) from None
    except FileNotFoundError:
        raise CommandError(f"{path}: no such file") from None
    actions = [action for action in parser._actions if action.dest not in ("help", "config")]
    spelled = {_key(name): action for action in actions for name in action.option_strings}
    unnamed = {action.dest for action in actions if not action.option_strings}
    options: list[str] = []
    positionals: list[str] = []
    for key, value in settings.items():
        if _key(key) in unnamed:
            positionals = [
                _operand(path, key, item) for item in (value if isinstance(value, list) else [value])
            ]
        elif _key(key) in spelled:
            options += _option(path, key, value, spelled[_key(key)])
        else:
            known = [word.replace("_", "-") for word in spelled]
            raise CommandError(f"{path}: unknown option {key}{nearest(key, known)}", code=2)
    return options, positionals


def _key(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _option(path: str, key: str, value: object, action: argparse.Action) -> list[str]:
    spelling = next(name for name in action.option_strings if name.startswith("--"))
    given = "--" + key.replace("_", "-")
    if action.nargs == 0:  # switches
        if not isinstance(value, bool):
            raise CommandError(f"{path}: {key} = {value!r} is invalid: must be true or false", code=2)
        if isinstance(action, argparse.BooleanOptionalAction):
            return [spelling if value else spelling.replace("--", "--no-", 1)]
        return [given] if value else []
    if isinstance(value, list):
        texts = [_text(path, key, item) for item in value]
        if isinstance(action, argparse._AppendAction):
            return [f"{spelling}={text}" for text in texts]
        return [f"{spelling}={','.join(texts)}"]
    return [f"{spelling}={_text(path, key, value)}"]


def _text(path: str, key: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise CommandError(f"{path}: {key} = {value!r} is invalid: must be text or a number", code=2)
    if "\0" in (text := str(value)):
        raise CommandError(f"{path}: {key} = {value!r} is invalid: must have no null character", code=2)
    return text


def _operand(path: str, key: str, value: object) -> str:
    text = _text(path, key, value)
    if text.startswith("-") and text != "-":  # it would be taken for an option
        raise CommandError(f"{path}: {key} = {value!r} is invalid: write ./{text}", code=2)
    return text
