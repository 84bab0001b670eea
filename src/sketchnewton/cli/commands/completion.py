"""`skn completion`: scripts that complete commands and options, made from the options themselves."""

from __future__ import annotations

import argparse

from sketchnewton.cli.commands import COMMANDS
from sketchnewton.cli.io.standard_streams import open_stdout
from sketchnewton.cli.options.parser import Parser

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "run"]

USAGE = "skn completion bash|zsh|fish"
SUMMARY = "Print a script that completes commands and options in your shell."
EXAMPLES = """\
examples:
  skn completion bash > ~/.local/share/bash-completion/completions/skn
  skn completion zsh > "${fpath[1]}/_skn"
  skn completion fish > ~/.config/fish/completions/skn.fish
"""


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="Your shell.")


def run(args: argparse.Namespace) -> int:
    """Print the script for the shell."""
    with open_stdout() as stdout:
        stdout.write({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell]() + "\n")
    return 0


def _parsers() -> dict[str, Parser]:
    from sketchnewton.cli.options.command_line import parser_of

    return {name: parser_of(name) for name in COMMANDS}


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.help is not argparse.SUPPRESS]


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """All options, and the choices of the operands."""
    words = [name for action in _actions(parser) for name in action.option_strings if name.startswith("--")]
    for action in _actions(parser):
        if not action.option_strings and action.choices is not None:
            words += [str(choice) for choice in action.choices]
    return words


def _choices(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """The choices of each option that has some."""
    return {
        name: [str(choice) for choice in action.choices]
        for action in _actions(parser)
        for name in action.option_strings
        if action.choices is not None
    }


def _bash() -> str:
    commands = _parsers()
    lines = [
        "# completion of skn for bash",
        "_skn() {",
        '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" words=""',
        "  if [ $COMP_CWORD -eq 1 ]; then",
        f'    words="{" ".join([*commands, "--help", "--version"])}"',
        "  else",
        '    case "${COMP_WORDS[1]} $previous" in',
    ]
    for command, parser in commands.items():
        for option, choices in _choices(parser).items():
            lines.append(f'      "{command} {option}") words="{" ".join(choices)}" ;;')
    lines += ["      *)", '        case "${COMP_WORDS[1]}" in']
    for command, parser in commands.items():
        lines.append(f'          {command}) words="{" ".join(_words(parser))}" ;;')
    lines += [
        "        esac ;;",
        "    esac",
        "  fi",
        '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        "complete -o default -F _skn skn",
    ]
    return "\n".join(lines)


def _zsh() -> str:
    commands = _parsers()
    lines = ["#compdef skn", "# completion of skn for zsh", "if (( CURRENT == 2 )); then"]
    lines += [f"  compadd -- {' '.join(commands)}", "else"]
    lines.append('  case "${words[2]} ${words[CURRENT-1]}" in')
    for command, parser in commands.items():
        for option, choices in _choices(parser).items():
            lines.append(f"    '{command} {option}') compadd -- {' '.join(choices)}; return ;;")
    lines += ["  esac", "  case ${words[2]} in"]
    for command, parser in commands.items():
        lines.append(f"    {command}) compadd -- {' '.join(_words(parser))}; _files ;;")
    lines += ["  esac", "fi"]
    return "\n".join(lines)


def _fish() -> str:
    commands = _parsers()
    lines = ["# completion of skn for fish"]
    for command, parser in commands.items():
        about = (parser.description or "").split(".")[0].replace("\n", " ").replace("'", "")
        lines.append(f"complete -c skn -n __fish_use_subcommand -a {command} -d '{about}'")
        for action in _actions(parser):
            for name in action.option_strings:
                if name.startswith("--"):
                    line = f"complete -c skn -n '__fish_seen_subcommand_from {command}' -l {name[2:]}"
                    if action.choices is not None:
                        line += f" -xa '{' '.join(map(str, action.choices))}'"
                    lines.append(line)
    return "\n".join(lines)
