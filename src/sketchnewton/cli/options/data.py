"""The options that say how data is read: its format, which columns mean what, how names become features."""

from __future__ import annotations

import argparse
import functools

from sketchnewton.cli.options.parser import add_if_given
from sketchnewton.cli.options.types import at_least_one, bits, names

__all__ = [
    "CACHE_SUFFIX",
    "COLUMN_OPTIONS",
    "DATA_HELP",
    "FEATURE_OPTIONS",
    "FORMATS",
    "WRITABLE",
    "add_data_options",
    "add_feature_options",
]

FORMATS = ("svmlight", "vw", "csv", "tsv", "parquet", "arrow", "jsonl", "npz")
WRITABLE = ("svmlight", "vw", "csv", "tsv", "jsonl", "npz", "parquet")
DATA_HELP = "files, globs or directories of svmlight, VW, CSV, JSON lines, Parquet or .npz; - is stdin"

CACHE_SUFFIX = ".skn-cache"  # of what several passes leave beside the first of the files

# The names that `streams.Columns` and `streams.Features` know.
COLUMN_OPTIONS = ("label", "weight", "tag", "drop", "categorical")
FEATURE_OPTIONS = ("bits", "interactions", "ignore", "keep", "ngram", "string_values")


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """How rows are read; for every command that reads them."""
    group = parser.add_argument_group("data (recognised by name and content unless --format tells)")
    add = functools.partial(add_if_given, group)
    add("--format", choices=FORMATS, help="what DATA is: " + ", ".join(FORMATS))
    add("--label", metavar="COLUMN", help="column of a table that holds the label (default: label)")
    add("--weight", metavar="COLUMN", help="column that holds the importance of the row")
    add("--tag", metavar="COLUMN", help="column that is written after the row's prediction")
    add("--drop", type=names, metavar="COLUMNS", help="columns to leave out: a,b,c")
    add("--categorical", type=names, metavar="COLUMNS", help="columns whose numbers are names: zip,store")
    group.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="a malformed row stops the run (default), or is skipped, counted and reported",
    )
    group.add_argument(
        "--threads",
        type=at_least_one,
        default=2,
        metavar="N",
        help="1: all in one thread; 2: read ahead (default); more: also share the classes of --multiclass. "
        "The result is the same",
    )


def add_feature_options(parser: argparse.ArgumentParser) -> None:
    """How names become features; the model remembers them."""
    group = parser.add_argument_group("features (the model remembers them)")
    add = functools.partial(add_if_given, group)
    add("--bits", type=bits, metavar="B", help="names are hashed into 2^B features (default 18, up to 30)")
    add(
        "--interactions",
        action="append",
        metavar="NAMESPACES",
        help="products of features of namespaces, by their first letters: ab, abc; may be repeated",
    )
    add("--ignore", metavar="LETTERS", help="leave out the namespaces that begin with one of these letters")
    add("--keep", metavar="LETTERS", help="leave out all other namespaces")
    add("--ngram", action="append", metavar="[L]N", help="also N neighbouring names as one, in namespace L")
    add("--string-values", action="store_true", help="VW text: name:text is a feature, not a mistake")
    add("--exact-names", action="store_true", help="a dictionary of names in the model instead of hashing")
