"""The options that say how data is read: its format, which columns mean what, how names become features."""

from __future__ import annotations

import argparse
import functools

from sketchnewton.cli.options.parser import add_if_given
from sketchnewton.cli.options.types import at_least_one, bits, columns, delimiter, names
from sketchnewton.core.formats import FORMATS

__all__ = [
    "CACHE_SUFFIX",
    "COLUMN_OPTIONS",
    "DATA_HELP",
    "DIALECT_OPTIONS",
    "FEATURE_OPTIONS",
    "add_data_options",
    "add_feature_options",
]

DATA_HELP = (
    "Files, globs or directories of svmlight, VW, CSV, TSV, JSON lines, Parquet, Arrow or .npz; - is stdin."
)

CACHE_SUFFIX = ".skn-cache"  # of the cache that several passes leave beside the first file

# Field names of `streams.Columns` and `streams.Features`.
COLUMN_OPTIONS = (
    *("label", "weight", "tag", "drop"),
    *("categorical", "numeric", "boolean", "text", "dates", "missing"),
)
DIALECT_OPTIONS = ("delimiter", "no_header")  # of CSV and TSV
FEATURE_OPTIONS = ("bits", "interactions", "ignore", "keep", "ngram", "string_values")


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """How rows are read; for every command that reads them."""
    group = parser.add_argument_group("data (format detected from name and content)")
    add = functools.partial(add_if_given, group)
    add("--format", choices=FORMATS, help=f"Format of DATA: {', '.join(FORMATS)}.")
    add("--label", metavar="COLUMN", help="Column that holds the label (default: label, y or target).")
    add("--weight", metavar="COLUMN", help="Column that holds the importance weight of the row.")
    add("--tag", metavar="COLUMN", help="Column to write after the prediction of each row.")
    add("--drop", type=columns, metavar="COLUMNS", help="Columns to ignore: a,b,c.")
    kinds = {
        "categorical": "Columns of categories, even if they look like numbers: zip,store.",
        "numeric": "Columns of numbers.",
        "boolean": "Columns of true/false, yes/no or 1/0.",
        "text": "Columns of texts, a feature per word: review; review:2 adds pairs of words.",
        "dates": "Columns of dates or times (2024-01-31T12:30): year, month, day, weekday and hour.",
    }
    for kind, help_text in kinds.items():
        add(f"--{kind}", type=columns, metavar="COLUMNS", help=help_text)
    add(
        "--missing",
        type=names,
        metavar="CELLS",
        help="More spellings of missing values, besides empty cells, NA, NaN, null and None: ?,-999.",
    )
    add(
        "--delimiter",
        type=delimiter,
        metavar="CHARACTER",
        help="Delimiter of CSV and TSV: tab, or one character (default: detected in the first line).",
    )
    add(
        "--no-header",
        action="store_true",
        help="CSV and TSV have no header line: columns are named 1, 2, 3 and so on.",
    )
    group.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="Stop at a malformed row (default), or skip it, count it and report it; a cell that does not fit its "
        "column is counted and treated as missing.",
    )
    group.add_argument(
        "--threads",
        type=at_least_one,
        default=2,
        metavar="N",
        help="1: everything in one thread. N > 1 (default: 2): read ahead; N threads parse svmlight and VW text, "
        "and predict it, N - 1 learn the classes of --multiclass. The result does not depend on N.",
    )


def add_feature_options(parser: argparse.ArgumentParser) -> None:
    """How names become features; the model remembers them."""
    group = parser.add_argument_group("features (remembered by the model)")
    add = functools.partial(add_if_given, group)
    add("--bits", type=bits, metavar="B", help="Hash names into 2^B features (default 18, at most 30).")
    add(
        "--interactions",
        action="append",
        metavar="TERM",
        help="Products of features: of columns, city,device; or of the namespaces with these first letters, ab. "
        "May be repeated.",
    )
    add("--ignore", metavar="LETTERS", help="Ignore namespaces that begin with one of these letters.")
    add("--keep", metavar="LETTERS", help="Ignore all other namespaces.")
    add(
        "--ngram",
        action="append",
        metavar="[L]N",
        help="Also use N neighbouring names as one feature, in namespace L or in all. May be repeated.",
    )
    add("--string-values", action="store_true", help="VW text: accept name:text as a feature.")
    add(
        "--exact-names",
        action="store_true",
        help="Store feature names in the model instead of hashing them.",
    )
