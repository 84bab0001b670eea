"""Parses a command line. Imports the module of the subcommand that was typed, and no other."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sketchnewton import __version__
from sketchnewton.cli.commands import COMMANDS, command
from sketchnewton.cli.options.parser import Parser

__all__ = ["help_page", "parse", "parser_of"]

_HELP = """\
skn: second-order online learning at first-order cost.

{commands}
  skn COMMAND --help      all options of a command, with examples

examples:
  skn train clicks.vw.gz --model clicks.skn --test tomorrow.vw.gz
  skn predict clicks.skn today.csv > scores.txt
DATA: svmlight, VW, CSV, TSV, JSON lines, Parquet, Arrow, npz; - is stdin
compressed: .gz .bz2 .xz .zst; options: --version, -h, --help
"""


class _Main(Parser):
    """The top parser, whose help is a page written by hand."""

    def format_help(self) -> str:
        return help_page()


def help_page() -> str:
    """The page that `skn --help` prints."""
    called = {f"skn {name} {operands}": summary for name, (operands, summary) in COMMANDS.items()}
    return _HELP.format(commands="\n".join(f"  {call:<22}  {summary}" for call, summary in called.items()))


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line; `command` names the subcommand, `spelled` the options not from a file."""
    spelled = {text.partition("=")[0] for text in argv}
    main = _Main(prog="skn")
    main.add_argument("--version", action="version", version=f"skn {__version__}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    typed = next((text for text in argv if text in COMMANDS), None)
    # Unless a command comes first, there will be an error or a page about all of them: their names are enough.
    for name in [typed] if typed is not None and argv[0] == typed else COMMANDS:
        parser = commands.add_parser(name)
        if name == typed:
            _define(name, parser)
    if "--config" in argv or any(text.startswith("--config=") for text in argv):
        from sketchnewton.cli.options.config import with_config

        argv = with_config(argv, commands.choices)
    args, extras = main.parse_known_args(argv or ["--help"])
    if extras:
        chosen = commands.choices[args.command]
        chosen.reject(extras)
    args.spelled = spelled
    return args


def parser_of(name: str) -> Parser:
    """The parser of the subcommand `name`, with all its options."""
    parser = Parser(prog=f"skn {name}")
    _define(name, parser)
    return parser


def _define(name: str, parser: Parser) -> None:
    module = command(name)
    parser.usage, parser.description, parser.epilog = module.USAGE, module.SUMMARY, module.EXAMPLES
    module.add_options(parser)
