"""What labels are: numbers, or classes, whose names the options say or the data tells."""

from __future__ import annotations

import argparse
from collections.abc import Hashable, Sequence

from sketchnewton.cli.io.console import counted
from sketchnewton.cli.io.data_source import DataSource
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.core.batch import ParseError
from sketchnewton.core.types import np
from sketchnewton.features.kinds import category, encoded, looks_like_number, number_text
from sketchnewton.model import Model
from sketchnewton.model.class_names import SeenLabels, names_of

__all__ = ["check_classes", "class_names", "lone_text", "named_classes", "surveyed"]

MOST = 1000
"""Different labels that are taken for classes without being named."""
ALL = "all"

_FIRST = 1 << 16  # bytes in which labels are looked at to tell numbers from classes


def class_names(args: argparse.Namespace) -> list[Hashable] | None:
    """The names of the classes that the labels are; None if labels are numbers.

    Where the options leave it open, the labels of a table decide: texts, true and false are classes.
    """
    if args.regression:
        if args.classes is not None or args.multiclass is not None or args.positive is not None:
            raise usage_error("--regression cannot be combined with --classes, --multiclass or --positive")
        return None
    if args.classes is not None and args.classes != [ALL]:
        return named_classes(args)
    data = DataSource(args.data, args)
    wanted = args.classes is not None
    if not wanted and (isinstance(args.positive, str) or data.without_columns):
        return None
    if data.identity() is None:
        if wanted:
            raise usage_error(
                f"--classes all needs a file: {data.name} can be read only once (--classes a,b,c)"
            )
        return None
    names = surveyed(data, everything=wanted)
    if names is not None and len(names) < 2:
        raise CommandError(
            f"{data.name}: there is no other label than {names[0]!r}: name the classes (--classes a,b)"
        )
    return names


def lone_text(names: Sequence[Hashable]) -> str | None:
    """The one text among two or more numbers: rather a header that comes twice, or a slip, than a class."""
    texts = [name for name in map(str, names) if not looks_like_number(encoded(name))]
    return texts[0] if len(texts) == 1 and len(names) > 2 else None


def named_classes(args: argparse.Namespace) -> list[Hashable]:
    """The names that `--classes` gives."""
    texts = [category(encoded(text)) for text in args.classes]
    if len(texts) < 2 or len(set(texts)) < len(texts):
        raise usage_error(
            f"--classes {','.join(args.classes)} is invalid: must be two different labels or more"
        )
    return names_of(texts)


def check_classes(path: str, model: Model, args: argparse.Namespace) -> None:
    """Refuse options on labels that do not agree with the model that `path` holds."""
    held = model.target
    if args.regression and held.kind != "numbers":
        raise usage_error(
            f"--regression does not agree with {path}, which was trained with {held.description}"
        )
    if args.classes is not None and args.classes != [ALL] and list(held.names or ()) != named_classes(args):
        raise usage_error(
            f"--classes {','.join(args.classes)} does not agree with {path}, which was trained with "
            f"{held.description}"
        )


def surveyed(data: DataSource, *, everything: bool) -> list[Hashable] | None:
    """The different labels of all rows; None if they are numbers, which the first rows tell."""
    seen = SeenLabels()
    numbered = data.without_columns
    reader = data.open_labels(None if numbered else seen, _FIRST)
    first = not everything
    with reader:
        try:
            for batch in reader:
                if numbered:
                    labels = batch.labels[~np.isnan(batch.labels)]
                    seen.update(dict.fromkeys(map(number_text, np.unique(labels).tolist()), 0.0))
                if first and all(map(looks_like_number, seen)):
                    return None
                first = False
                if len(seen) > MOST:
                    raise CommandError(
                        f"{data.name}: has more than {counted(MOST, 'different label')}: name the classes "
                        "(--classes a,b,c), or the column of the label (--label)"
                    )
        except ParseError as error:
            if first:
                return None  # it will be said again, with what was learned before it
            raise CommandError(str(error)) from None
    try:
        return names_of(seen) or None
    except ValueError as error:
        raise CommandError(f"{data.name}: {error}") from None
