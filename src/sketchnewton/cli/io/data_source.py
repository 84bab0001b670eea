"""Batches from files or stdin, with a progress bar and a way out when a signal comes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping

from sketchnewton.cli.io.console import Console, counted
from sketchnewton.cli.io.errors import CommandError, usage_error
from sketchnewton.cli.io.files import check_readable
from sketchnewton.cli.io.signals import GracefulStop, Stopped
from sketchnewton.cli.options.data import COLUMN_OPTIONS, DIALECT_OPTIONS, FEATURE_OPTIONS
from sketchnewton.cli.train.prefetch import Ahead, Identity, given, identity_of
from sketchnewton.core.formats import WITHOUT_COLUMNS
from sketchnewton.features.columns import absent_columns, shown_names
from sketchnewton.features.names import shown_feature
from sketchnewton.model import Model, Target
from sketchnewton.model.fitting import fit
from sketchnewton.model.target import NO_LABEL
from sketchnewton.streams import Batch, BatchReader, Columns, Features, Names, expand_paths, open_stream
from sketchnewton.streams.opening import format_of_file

__all__ = ["DataSource", "check_order", "expand_data", "shown_paths", "watched"]

_OURS = (".skn", ".skn-cache", ".skn.run")


class DataSource:
    """What a command reads, and how: the paths, their format, columns and features.

    What `model` knows of records holds unless the options say otherwise. With `readable` the names of features are
    recorded; `predicting` goes without labels, weights and other columns that only mattered to training.
    `predicting` or `testing` takes note of columns of features that the model knows and a table does not have;
    a table without any of them is refused. Rows none of whose features the model has learned get a warning.

    After reading, `skipped` counts the rows that could not be read and `unlearnable` those that no learner takes,
    which `--on-error skip` left out; `first_error` says why it left out the first.
    """

    def __init__(
        self,
        paths: list[str],
        args: argparse.Namespace,
        model: Model | None = None,
        *,
        readable: bool = False,
        predicting: bool = False,
        testing: bool = False,
    ) -> None:
        self.typed = paths
        self.format: str | None = getattr(args, "format", None)
        known = {} if model is None else model.features.to_dict()
        try:
            self.features = Features.from_dict({**known, **given(args, FEATURE_OPTIONS)})
        except ValueError as error:
            raise usage_error(str(error)) from None
        columns = Columns() if model is None else model.columns
        if predicting and columns.weight is not None and columns.weight == getattr(args, "tag", None):
            columns = columns._replace(weight=None)  # which predictions do without
        # What mattered to training only need not be there.
        optional = {"optional": columns.named} if predicting else {}
        try:
            self.columns = Columns.from_dict({**columns.to_dict(), **optional, **given(args, COLUMN_OPTIONS)})
        except ValueError as error:
            raise usage_error(str(error)) from None
        self._taken: list[str] = []  # options that leave out a column of features
        if model is not None:
            self._check_kinds(model.columns)
            if predicting or testing:
                self._taken = _taken(model.columns, args)
        # A file of options may serve data of several formats; what was typed was meant for this.
        self._column_options = _spelled(args, COLUMN_OPTIONS)
        self._dialect_options = _spelled(args, DIALECT_OPTIONS)
        self.delimiter: str | None = getattr(args, "delimiter", None)
        self.header = not getattr(args, "no_header", False)
        exact = getattr(args, "exact_names", False)
        if exact and hasattr(args, "bits"):
            raise usage_error(
                "--bits cannot be combined with --exact-names, which does not hash names: leave one out"
            )
        self.names: Names | None = None if model is None else model.names
        if self.names is None and (exact or readable):
            self.names = Names(exact=exact)
        self.on_error: str = args.on_error
        self.prefetch: bool = args.threads > 1
        self.parsers: int = args.threads
        self.kinds: dict[str, str] = {}  # of columns, as far as the data has told
        self._delimited = False  # whether there are files whose first line may be names or values
        self.skipped = 0
        self.unlearnable = 0
        self.first_error: str | None = None
        self.misfits = 0  # cells that were taken as missing
        self.first_misfit: str | None = None
        self.label_codes = None if model is None else model.target.label_codes
        self.ignore_labels = predicting
        self.absent: dict[str, None] | None = {} if predicting or testing else None  # columns
        self._model = model
        self._file: tuple[str, int] | None = None  # that the last batch is of, and the rows before it
        self._met: bool | None = None  # whether the model knows a feature of the rows; None: they have none
        self.prepare: Callable[[Batch], object] | None = None
        """What threads that parse make of a batch, as its `prepared`."""
        self._paths: list[str] | None = None
        self._ahead: Ahead | None = getattr(args, "ahead", None)

    def _check_kinds(self, learned: Columns) -> None:
        """Refuse other kinds of columns than the model learned."""
        known = learned.known_kinds()
        for name, kind in self.columns.chosen().items():
            if known.get(name, kind) != kind:
                raise usage_error(
                    f"column '{name}' cannot be {kind}: the model learned it as {known[name]}; "
                    "leave the option out"
                )

    def other(self, path: str) -> DataSource:
        """Another file to be tested on, read in the same way."""
        from copy import copy  # only for --test

        data = copy(self)
        data.typed, data._paths, data._ahead, data.columns = [path], None, None, self._typed_columns()
        data.skipped, data.unlearnable, data.first_error, data._column_options = 0, 0, None, []
        data._dialect_options, data.misfits, data.first_misfit, data.absent = [], 0, None, {}
        data._met = None
        return data

    @property
    def paths(self) -> list[str]:
        """The files, globs and directories expanded."""
        if self._paths is None:
            self._paths = expand_data(self.typed)
        return self._paths

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return shown_paths(self.typed)

    def check(self) -> None:
        """Raise at once if a file cannot be read, or has none of the columns that were typed."""
        for path in self.paths:
            check_readable(path)
            if path.endswith(_OURS):
                raise usage_error(f"{path} is a model or a part of one, not data")
        if self._column_options or self._dialect_options:
            self._check_columns({self.format or format_of_file(path) for path in self.paths})

    def _check_columns(self, formats: Collection[str | None]) -> None:
        if self._column_options and formats and WITHOUT_COLUMNS.issuperset(formats):
            raise usage_error(
                f"{self._column_options[0]} does not apply to {self.name}: "
                f"{' and '.join(sorted(filter(None, formats)))} has no columns"
            )
        if self._dialect_options and formats and not {"csv", "tsv", None} & {*formats}:
            raise usage_error(
                f"{self._dialect_options[0]} does not apply to {self.name}: "
                f"{' and '.join(sorted(filter(None, formats)))} is neither CSV nor TSV"
            )

    @property
    def without_columns(self) -> bool:
        """Whether no file has columns, as far as names and first bytes tell."""
        formats = {self.format or format_of_file(path) for path in self.paths}
        return WITHOUT_COLUMNS.issuperset(formats)

    def reads_like(self, model: Model) -> bool:
        """Whether records become the features that the model knows."""
        same = self.features == model.features and self.columns.agree(model.columns)
        return same and self._exact == (model.names is not None)

    def remember(self, model: Model) -> None:
        """Tell the model what predictions on other data need to know."""
        model.features, model.columns = self.features, self._typed_columns()
        model.names = self.names if self._exact else None

    @property
    def _exact(self) -> bool:
        return self.names is not None and self.names.exact

    def identity(self) -> Identity | None:
        """Path, size and time of each file; None if one of them is a pipe, which has none."""
        return identity_of(self.paths)

    def way(self) -> dict[str, object]:
        """How the data is read: what a cache of it must agree with."""
        return {
            "format": self.format,
            "dialect": {} if (self.delimiter, self.header) == (None, True) else [self.delimiter, self.header],
            "features": self.features.to_dict(),
            "columns": self.columns.with_kinds({}).to_dict(),
            "exact_names": self._exact,
            "labels": {} if self.label_codes is None else {str(k): v for k, v in self.label_codes.items()},
            "on_error": self.on_error,
        }

    def open(self) -> BatchReader:
        """A reader of all rows, from the first."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            if ahead.agrees(self.paths, self.features, self.columns, self.identity()):
                return ahead.reader
            ahead.reader.close()
        return open_stream(
            self.paths,
            format=self.format,
            features=self.features,
            columns=self.columns,
            names=self.names,
            on_error=self.on_error,
            prefetch=self.prefetch,
            label_codes=self.label_codes,
            ignore_labels=self.ignore_labels,
            delimiter=self.delimiter,
            header=self.header,
            threads=self.parsers,
            prepare=self.prepare,
            absent=self.absent,
        )

    def open_labels(self, codes: Mapping[bytes, float] | None, batch_bytes: int) -> BatchReader:
        """A reader of the labels alone, which those of tables are looked up in `codes`."""
        return open_stream(
            self.paths,
            format=self.format,
            columns=self.columns,
            on_error=self.on_error,
            batch_bytes=batch_bytes,
            prefetch=False,
            label_codes=codes,
            only_labels=True,
            delimiter=self.delimiter,
            header=self.header,
        )

    def read(self, console: Console, stop: GracefulStop) -> Iterator[Batch]:
        """The batches, up to the moment when a signal comes; `stop.signal` tells whether one came."""
        try:
            reader = stop.wait(self.open)
        except Stopped:
            return
        try:
            for batch in watched(reader, console, stop):
                if len(self.paths) == 1:  # a pipe has not told before
                    self._check_columns(reader.formats)
                self.kinds = dict(getattr(reader, "kinds", {}))
                if self._file is None or self._file[0] != reader.path:
                    self._file = reader.path, reader.rows - len(batch)
                self._delimited = not {"csv", "tsv"}.isdisjoint(reader.formats)
                yield batch
                del batch
        finally:
            self.skipped, self.first_error = reader.skipped, reader.first_error or self.first_error
            self.misfits, self.first_misfit = reader.misfits, reader.first_misfit

    def fitted(self, batches: Iterable[Batch], target: Target | None) -> Generator[Batch]:
        """The batches with targets for labels; a row that cannot be learned stops the run or is skipped.

        Without a `target`, one that cannot be predicted.
        """
        self.unlearnable, self._file = 0, None
        fitted = fit(batches, None if target is None else target.as_read, self._refuse, self._feature)
        return fitted if self.absent is None or self._model is None else self._judged(fitted, self._model)

    def _judged(self, batches: Iterable[Batch], model: Model) -> Generator[Batch]:
        """The batches, until the first feature that the model has learned looked at for one."""
        for batch in batches:
            views = batch.views
            entries = slice(views.indptr[0], views.indptr[len(batch)])
            if not self._met and entries.start < entries.stop:
                learner = model.learner  # one that has learned of no feature has no names to compare with
                self._met = not learner.dimension or learner.knows_any(views.indices[entries].tolist())
            yield batch
            del batch, views  # before the next is asked for: memory for one batch less

    def _feature(self, index: int) -> str:
        return shown_feature(index, self.kinds, self.features.mask, self.names)

    def _refuse(self, row: int, why: str, line: int | None) -> None:
        if why == NO_LABEL and self.columns.label is None:
            why += self._name_the_label(at_once=row == 1)
        place = self.name
        if self._file is not None:  # rows of a cache have none
            path, before = self._file
            place, row = path if line is None else f"{path}:{line}", row - before
        message = f"{place}: row {row} {why}"
        if self.on_error == "stop":
            raise CommandError(message)
        self.unlearnable += 1
        self.first_error = self.first_error or message

    def _name_the_label(self, *, at_once: bool) -> str:
        """What to do about a table none of whose columns has the usual name of a label."""
        known = list(self.kinds) if at_once else []
        if not known:
            return " (in a table, --label names its column)"
        from sketchnewton.features.kinds import encoded, looks_like_number

        values = self.header and any(looks_like_number(encoded(name)) for name in known)
        hint = " (--no-header if the first line has no names)" if values else ""
        return f": its cell is empty, or --label names its column, one of {shown_names(known)}{hint}"

    def _numbered_line(self) -> str | None:
        """A first line 0, 1, 2, … that may be a row: neither the model nor an option knows a column 0."""
        if not (self._delimited and self.header) or self.columns.kinds or "0" in self.columns.named:
            return None
        names = {*self.kinds, *self.columns.named}
        numbers = [str(number) for number in range(len(names))]
        if len(numbers) < 3 or names != set(numbers):
            return None
        return ",".join(numbers[:8]) + ",…" * (len(numbers) > 8)

    def _typed_columns(self) -> Columns:
        return self.columns.with_kinds(self.kinds) if self.kinds else self.columns

    def report_skipped(self, console: Console) -> None:
        """Say what was left out, and what was not there."""
        if (line := self._numbered_line()) is not None:
            console.line(
                f"skn: warning: {self.name}: the first line, {line}, was taken for the names of the columns "
                "(--no-header if it is a row)"
            )
        for option in self._taken:
            console.line(f"skn: warning: {option} leaves out a column that the model knows as a feature")
        if self.absent:
            place = "the table" if len(self.paths) == 1 else "some of the tables"
            console.line(f"skn: warning: {self.name}: {absent_columns(self.absent, place)}")
        if self._met is False:
            console.line(
                f"skn: warning: {self.name}: the model has learned none of the features of these rows: are their "
                "names those of the rows that it learned?"
            )
        if count := self.skipped + self.unlearnable:
            console.line(f"skn: warning: {counted(count, 'row')} skipped; the first: {self.first_error}")
        if self.misfits:
            taken = f"{counted(self.misfits, 'cell')} taken as missing"
            console.line(f"skn: warning: {taken}; the first: {self.first_misfit}")


def check_order(args: argparse.Namespace) -> None:
    """Refuse a model that stands where the data should, if only that is wrong."""
    if not args.model.endswith(_OURS) and any(path.endswith(_OURS) for path in args.data):
        raise usage_error(f"MODEL comes before DATA: skn {args.command} {args.data[0]} {args.model}")


def _taken(learned: Columns, args: argparse.Namespace) -> list[str]:
    """Options that leave out a column of features that the model knows."""
    apart = {learned.label, learned.weight, learned.tag}
    known = learned.known_kinds().keys() - apart
    roles = given(args, ("label", "weight", "tag"))
    return [f"--{role} {name}" for role, name in roles.items() if name in known]


def _spelled(args: argparse.Namespace, names: tuple[str, ...]) -> list[str]:
    """Those of the options that were typed."""
    options = [f"--{name.replace('_', '-')}" for name in names]
    return [option for option in options if option in args.spelled]


def expand_data(typed: list[str]) -> list[str]:
    """The files that paths, globs and directories mean; models and caches that lie among them are no data."""
    return [path for path in expand_paths(typed) if path in typed or not path.endswith(_OURS)]


def watched(reader: BatchReader, console: Console, stop: GracefulStop) -> Iterator[Batch]:
    """The batches of a reader, with a progress bar, up to the moment when a signal comes."""
    try:
        while True:
            try:
                batch = stop.wait(reader.__next__)
            except StopIteration:
                return
            yield batch
            del batch  # before the next is asked for: memory for one batch less
            known = reader.position / reader.size if reader.size else None
            console.progress(known, counted(reader.rows, "row"))
    except Stopped:
        return
    except ModuleNotFoundError as error:  # of an extra, which it names
        raise CommandError(str(error)) from None
    finally:
        console.clear()
        reader.close()


def shown_paths(paths: list[str]) -> str:
    """Paths as they were typed, in few words."""
    first = "<stdin>" if paths[0] == "-" else paths[0]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"
