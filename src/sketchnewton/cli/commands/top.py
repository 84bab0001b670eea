"""`skn top`: how a server does, in a terminal."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Iterable, Mapping

from sketchnewton.cli.io.console import amount, number, printable, terminal_width
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.io.signals import GracefulStop, Stopped
from sketchnewton.cli.options.parser import Parser
from sketchnewton.core.hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sketchnewton.client import Client

__all__ = ["EXAMPLES", "SUMMARY", "USAGE", "add_options", "page", "run"]

USAGE = "skn top URL [--once] [--interval SECONDS] [--token-file FILE]"
SUMMARY = "Show what a server (skn serve) is doing: rows, loss, latency, late labels, weights, errors."
EXAMPLES = """\
examples:
  skn top http://127.0.0.1:8080
  skn top https://clicks.example.com --token-file read.token --once

Ctrl-C exits. Without a terminal, pages are printed one after the other.
"""

Stats = Mapping[str, Any]

_BARS = " ▁▂▃▄▅▆▇█"
_TOP = 8  # weights of each kind
_HOME, _TO_END, _BOLD, _PLAIN = "\x1b[H", "\x1b[J", "\x1b[1m", "\x1b[0m"
_TO_LINE_END, _OTHER_SCREEN, _BACK = "\x1b[K", "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def add_options(parser: Parser) -> None:
    """Define the options."""
    parser.add_argument("url", metavar="URL", help="URL of the server, such as http://127.0.0.1:8080.")
    parser.add_argument("--once", action="store_true", help="Print one page and exit.")
    parser.add_argument(
        "--interval", metavar="SECONDS", type=float, default=1.0, help="Time between two pages (1)."
    )
    parser.add_argument("--token-file", metavar="FILE", help="File with a bearer token.")


def run(args: argparse.Namespace) -> int:
    """Show pages until told to stop."""
    from sketchnewton.client import Client, ClientError

    if not args.interval >= 0.1:
        raise usage_error(f"--interval {args.interval} is invalid: must be at least 0.1")
    try:
        client = Client(args.url, _token(args.token_file), timeout=10.0, retries=0)
    except ValueError as error:
        raise usage_error(str(error)) from None
    with client:
        try:
            title, past = _title(client.model()), _past(client)
            first = page(title, client.stats(), past, terminal_width(sys.stdout))
        except ClientError as error:  # the first time, it is a mistake
            raise CommandError(str(error)) from None
        except (KeyError, TypeError, AttributeError):
            raise CommandError(f"{args.url} does not answer as skn serve does") from None
        if args.once:
            _print(first)
            return 0
        return _watch(client, title, past, args.interval)


def _token(path: str | None) -> str | None:
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        token = file.readline().strip()
    if not token:
        raise CommandError(f"{path}: holds no token")
    return token


def _past(client: Client) -> list[float]:
    """Losses of before, for the curve."""
    history = client.history()
    return [loss for loss in (point.get("loss_recent") for point in history) if loss is not None]


def _watch(client: Client, title: str, past: list[float], interval: float) -> int:
    """A page at each interval; a server that goes away is waited for. Ctrl-C is how this ends."""
    from sketchnewton.client import ClientError

    screen = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    with GracefulStop() as stop:
        if screen:
            sys.stdout.write(_OTHER_SCREEN)
        try:
            while True:
                width = terminal_width(sys.stdout)
                try:
                    stats = stop.wait(client.stats)
                    if stats.get("loss_recent") is not None:
                        past.append(stats["loss_recent"])
                        del past[:-1000]
                    lines = page(title, stats, past, width)
                except ClientError as error:
                    lines = [printable(f"{title}   {error}; trying again")[:width]]
                if screen:
                    _paint(lines)
                else:
                    _print([*lines, ""])
                stop.wait(time.sleep, interval)
        except Stopped:
            return 0
        finally:
            if screen:
                sys.stdout.write(_BACK)
                sys.stdout.flush()


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def _paint(lines: list[str]) -> None:
    """Over the last page, so that nothing flickers; the first line and headings are bold."""
    height = os.get_terminal_size(sys.stdout.fileno()).lines or 24
    bold = (lambda line: f"{_BOLD}{line}{_PLAIN}") if "NO_COLOR" not in os.environ else str
    heading = [True, *(not before and bool(line) for before, line in itertools.pairwise(lines))]
    shown = [bold(line) if big else line for line, big in zip(lines, heading, strict=True)][: height - 1]
    sys.stdout.write(_HOME + "".join(f"{line}{_TO_LINE_END}\r\n" for line in shown) + _TO_END)
    sys.stdout.flush()


# -- the page


def page(title: str, stats: Stats, past: list[float], width: int) -> list[str]:
    """All there is to see, as lines of at most `width` characters, none of which can steer a terminal."""
    clock = time.strftime("%H:%M:%S", time.localtime(stats["time"]))
    lines = [_ends(title, clock, width), "", *_figures(stats)]
    if len(past) > 1:
        lines.append(f"{'':16}{_curve(past, max(10, width - 16))}")
    lines += ["", *_weights(stats, width)]
    if stats.get("experts"):
        lines += ["", "Expert weights"]
        ranked = sorted(stats["experts"], key=lambda expert: -expert["weight"])
        lines += [
            _bar(one["name"], one["weight"], 1.0, width, f"{one['weight']:.1%}") for one in ranked[:_TOP]
        ]
    spectrum = [value for value in stats.get("spectrum") or () if value > 0]
    if spectrum:
        lines += ["", f"Sketch spectrum {'  '.join(f'{value:.3g}' for value in spectrum[:12])}"]
    lines += ["", *_errors(stats)]
    return [_cut(printable(line), width).rstrip() for line in lines]


def _title(model: Stats) -> str:
    parts = [model.get("name"), model["title"], f"{model['loss']} loss"]
    return " · ".join(str(part) for part in parts if part)


def _figures(stats: Stats) -> list[str]:
    metric = stats.get("metric") or {}
    latency = stats.get("latency_ms") or {}
    delay = stats.get("label_delay_s") or {}
    queue = f", {amount(stats['queue'])} in the queue" if stats.get("queue") else ""
    rows = {
        "rows learned": f"{amount(stats['version'])}{queue}",
        "throughput": f"{_short(stats['rows_per_second'])} rows/s   {_short(stats['requests_per_second'])}"
        " requests/s",
        "latency": "   ".join(
            f"{name} {_quantiles(latency[name], 'ms')}" for name in latency if latency[name]
        ),
        "late labels": f"{amount(stats['pending'])} waiting   {_quantiles(delay, 's') if delay else ''}",
    }
    if metric.get("value") is not None:
        rows[metric["name"]] = number(metric["value"])
    if stats.get("loss") is not None:
        recent = stats.get("loss_recent")
        rows["loss"] = f"{_short(recent)} recent   {_short(stats['loss'])} since the start"
    return [f"{name[:14]:<16}{text or '-'}" for name, text in rows.items()]


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _quantiles(quantiles: Stats, unit: str) -> str:
    return " ".join(f"{name} {_short(value)} {unit}" for name, value in quantiles.items())


def _curve(values: list[float], width: int) -> str:
    """The values as blocks, each the mean of as many as fall on it."""
    cells = min(width, len(values))
    bounds = [len(values) * cell // cells for cell in range(cells + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(bounds)]
    low, high = min(means), max(means)
    scale = (len(_BARS) - 2) / (high - low) if high > low else 0.0
    return "".join(_BARS[1 + round((value - low) * scale)] for value in means)


def _weights(stats: Stats, width: int) -> list[str]:
    """The largest and the fastest-moving, side by side where there is room."""
    weights = stats.get("weights") or []
    columns = []
    half = width if width < 80 else (width - 3) // 2
    for heading, key in (("Largest weights", "weight"), ("Fastest-moving weights", "change")):
        moved = [one for one in weights if one.get(key)]
        ranked = sorted(moved, key=lambda one: -abs(one[key]))[:_TOP]
        most = abs(ranked[0][key]) if ranked else 1.0
        column = [_bar(one["name"], one[key], most, half, f"{one[key]:+.4g}") for one in ranked]
        columns.append([heading, *(column or ["none yet"])])
    if half == width:
        return [*columns[0], "", *columns[1]]
    longest = max(map(len, columns))
    left, right = ([*column, *[""] * (longest - len(column))] for column in columns)
    return [f"{_pad(a, half)}   {b}" for a, b in zip(left, right, strict=True)]


def _bar(name: str, value: float, most: float, width: int, text: str) -> str:
    room = max(8, min(32, width // 2))
    cells = max(0, width - room - 12)
    full = round(cells * min(1.0, abs(value) / most)) if most else 0
    return f"{_pad(_cut(printable(str(name)), room), room)} {text:>10} {'█' * full}"


def _errors(stats: Stats) -> list[str]:
    errors = sorted(stats.get("errors") or (), key=lambda error: -error["time"])
    lines = ["Last errors"]
    for error in errors[:5]:
        clock = time.strftime("%H:%M:%S", time.localtime(error["time"]))
        lines.append(f"{clock} {error['status']} {error['code']}: {error['message']}")
    return lines if errors else ["No errors"]


# -- text of a given width


def _columns(character: str) -> int:
    """How many columns of a terminal a character takes."""
    import unicodedata

    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cut(text: str, width: int) -> str:
    if text.isascii():
        return text if len(text) <= width else text[: width - 1] + "…"
    taken = 0
    for place, character in enumerate(text):
        taken += _columns(character)
        if taken > width:
            return text[: max(0, place - 1)] + "…"
    return text


def _pad(text: str, width: int) -> str:
    taken = len(text) if text.isascii() else sum(map(_columns, text))
    return text + " " * (width - taken)


def _ends(left: str, right: str, width: int) -> str:
    return f"{_pad(_cut(printable(left), max(8, width - len(right) - 1)), width - len(right))}{right}"
