"""The page of all commands and options, made from the options themselves.

`python -m sketchnewton.cli.reference > docs/command-line.md` writes it again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from sketchnewton.cli.commands import COMMANDS
from sketchnewton.cli.options.command_line import help_page, parser_of

__all__ = ["page"]

_START = """\
# The command line

All commands and options of `skn`, as `skn COMMAND --help` prints them. [walkthrough.md](walkthrough.md) is an
introduction.
"""


def page() -> str:
    """The page, as Markdown."""
    lines = [_START, "```text", help_page().rstrip(), "```"]
    for name in COMMANDS:
        parser = parser_of(name)
        lines += ["", f"## skn {name}", "", f"    {parser.usage}", "", (parser.description or "").strip(), ""]
        lines += list(_options(parser))
        lines += ["```text", (parser.epilog or "").rstrip(), "```"]
    return "\n".join(lines) + "\n"


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for group in parser._action_groups:
        shown = [a for a in group._group_actions if a.help != argparse.SUPPRESS and a.dest != "help"]
        if shown:
            title = {"positional arguments": "arguments", "options": "options"}.get(
                group.title or "", group.title
            )
            yield f"**{title}**"
            yield ""
            for action in shown:
                told = " ".join((action.help or "").split()).replace("%%", "%")  # as argparse prints it
                yield f"- {_spelling(action)}: {told}"
            yield ""


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    value = ""
    if action.nargs != 0:
        value = " " + (str(action.metavar) if action.metavar else "|".join(map(str, action.choices or ())))
    return ", ".join(f"`{name}{value}`" for name in action.option_strings)


if __name__ == "__main__":
    print(page(), end="")
