"""The batches of one or more inputs, parsed ahead of the learner by a thread of its own."""

from __future__ import annotations

import os
import queue
import stat
import threading
import weakref
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.core.hints import TYPE_CHECKING, NamedTuple
from sketchnewton.features.columns import Columns
from sketchnewton.features.names import Names
from sketchnewton.features.options import Features
from sketchnewton.streams.error_policy import ErrorPolicy
from sketchnewton.streams.source import Cancelled, Source, open_source

if TYPE_CHECKING:
    from sketchnewton.features.roles import Roles

BATCH_BYTES = 1 << 21
MAX_LINE_BYTES = 8 << 20
_PREFETCHED = 2  # batches waiting: one is enough to keep both threads busy, two absorb their unevenness

Parse = Callable[[Source, ErrorPolicy], Iterator[Batch]]
"""The batches of an open input, in one format or another."""


class ReadOptions(NamedTuple):
    """How inputs are read, whatever their format; ``kinds`` are found out on the way, those of tables' columns."""

    features: Features
    columns: Columns
    names: Names | None
    kinds: dict[str, str]
    batch_bytes: int = BATCH_BYTES
    max_line_bytes: int = MAX_LINE_BYTES
    label_codes: Mapping[bytes, float] | None = None
    """What becomes of the labels of tables, by their names as categories; None if labels are numbers."""
    ignore_labels: bool = False
    """Whether labels of tables are not looked at, whatever they are."""
    delimiter: str | None = None
    """Of CSV and TSV; None: what the first line has, or a tab."""
    header: bool = True
    """Whether the first record of CSV and TSV has the names of columns; else these are 1, 2, …"""
    only_labels: bool = False
    """Whether nothing else of tables is looked at."""
    threads: int = 1
    """How many parse lines of text at the same time."""
    prepare: Callable[[Batch], object] | None = None
    """What becomes the batch's ``prepared``, made by the thread that parses; not without such threads."""
    absent: dict[str, None] | None = None
    """Found out on the way: those of the columns with known kinds that a table does not have. None: not asked."""

    def known_kinds(self) -> dict[str, str]:
        """The very ``kinds``, with those that need not be found out."""
        known = self.columns.known_kinds()
        chosen = self.columns.chosen()
        self.kinds.update(
            {name: kind for name, kind in known.items() if name in chosen or name not in self.kinds}
        )
        return self.kinds

    def roles(self, names: Sequence[str]) -> Roles:
        """Which of a table's columns is what; ``ValueError`` names the first that is not there."""
        from sketchnewton.features.roles import Roles  # only for tables

        joined = () if self.ignore_labels else self.features.column_numbers
        return Roles.of(names, self.columns, joined, self.only_labels)

    def check_known(self, features: Sequence[str], *, others: bool = False) -> None:
        """Note the known columns that are not among a table's; ``ValueError`` as ``Columns.absent_from``."""
        if self.absent is not None and not self.only_labels:
            self.absent.update(dict.fromkeys(self.columns.absent_from(features, others=others)))

    def check_numbered(self, width: int) -> None:
        """The same for a dense array, whose columns are 0, 1, 2, …; those of a sparse one may be hashed names."""
        if self.absent is None or not self.columns.kinds:
            return
        try:
            self.check_known([str(number) for number in range(width)])
        except ValueError as error:
            raise ValueError(f"{error} (an array has no names: give a table)") from None


class BatchReader(Iterator[Batch]):
    """The batches of all inputs, in order; closes itself at the end, on errors and when dropped.

    ``position`` of ``size`` compressed bytes were needed for what was delivered so far; ``size`` is None
    if there is a pipe. ``rows`` counts the delivered rows, ``skipped`` the bad ones before them, of which
    ``first_error`` is the first, and ``misfits`` the cells that were not of their column's kind and taken as
    missing, of which ``first_misfit`` is the first; ``path`` is the input that the last batch came from;
    ``kinds`` are those of a table's columns, for ``Columns.with_kinds``; ``formats`` those of the inputs opened.

    ``paths`` are the inputs, ``parse`` makes batches of one of them, ``on_error`` is "stop" or "skip", and with
    ``prefetch`` a thread reads ahead.
    """

    def __init__(
        self,
        paths: Sequence[str],
        parse: Parse,
        *,
        on_error: str = "stop",
        prefetch: bool = True,
        kinds: Mapping[str, str] | None = None,
        formats: Collection[str] = (),
    ) -> None:
        policy = ErrorPolicy(on_error)
        inputs = _Inputs(paths)
        self.path = inputs.source.name
        self.size = inputs.size
        self.position = 0
        self.rows = 0
        self.skipped = 0
        self.first_error: str | None = None
        self.misfits = 0
        self.first_misfit: str | None = None
        self.kinds = {} if kinds is None else kinds
        self.formats = formats
        steps = inputs.steps(parse, policy)
        self._policy = policy
        self._steps = _Prefetched(inputs, steps) if prefetch else _Direct(inputs, steps)
        # Also runs when the interpreter exits: a thread that is still inside compiled code by then would
        # bring the process down.
        self._finalizer = weakref.finalize(self, self._steps.close)

    def __next__(self) -> Batch:
        if not self._finalizer.alive:
            raise StopIteration
        try:
            step = self._steps.next()
        except BaseException:
            self.close()
            self._count(_Counts.of(self._policy))
            raise
        self.path, self.position = step.path, step.position
        self._count(step.counts)
        self.rows += len(step.batch)
        return step.batch

    def _count(self, counts: _Counts) -> None:
        self.skipped, self.first_error, self.misfits, self.first_misfit = counts

    def close(self) -> None:
        """Stop reading and release the input; harmless when repeated."""
        self._finalizer()

    def __enter__(self) -> BatchReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Counts(NamedTuple):
    """The rows that were skipped and the cells that were taken as missing, with the first of each."""

    skipped: int
    first_error: str | None
    misfits: int
    first_misfit: str | None

    @classmethod
    def of(cls, policy: ErrorPolicy) -> _Counts:
        return cls(policy.skipped, policy.first, policy.misfits, policy.first_misfit)


class _Step(NamedTuple):
    """A batch, and how far the reader was when it was made."""

    batch: Batch
    path: str
    position: int
    counts: _Counts


class _Inputs:
    """One input after the other: the first is open, the others are known to exist."""

    def __init__(self, paths: Sequence[str]) -> None:
        sizes = [_size(path) for path in paths]
        self.source = open_source(paths[0])
        sizes[0] = self.source.size
        known = [size for size in sizes if size is not None]
        self.size = sum(known) if len(known) == len(sizes) else None
        self._later = list(paths[1:])
        self._cancelled = False
        self._lock = threading.Lock()  # between opening the next and cancelling

    def steps(self, parse: Parse, policy: ErrorPolicy) -> Generator[_Step]:
        """All batches; having none at all is an error."""
        first = self.source.name
        empty = True
        done = 0
        while True:
            source = self.source
            try:
                for batch in parse(source, policy):
                    empty = False
                    yield _Step(batch, source.name, done + source.position, _Counts.of(policy))
                    del batch  # as in `_run`
            except ParseError as error:
                if error.path:
                    raise
                raise ParseError(source.name, error.line, error.column, error.message) from None
            done += source.position
            if not self._open_next():
                break
        if empty and not policy.skipped:
            raise ParseError(first, 1, 1, "no examples")

    def _open_next(self) -> bool:
        if not self._later:
            return False
        self.source.close()
        following = open_source(self._later.pop(0))
        with self._lock:
            self.source = following
            if self._cancelled:
                following.cancel()
        return True

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            self.source.cancel()

    def close(self) -> None:
        self.source.close()


def _size(path: str) -> int | None:
    if path == "-":
        return None
    status = os.stat(path)
    return status.st_size if stat.S_ISREG(status.st_mode) else None


class _Direct:
    """Reads when asked."""

    def __init__(self, inputs: _Inputs, steps: Generator[_Step]) -> None:
        self._inputs = inputs
        self._steps = steps

    def next(self) -> _Step:
        return next(self._steps)

    def close(self) -> None:
        self._steps.close()  # a parser of archives has files of its own
        self._inputs.close()


class _Prefetched:
    """Reads ahead in a thread, which knows nothing of the reader, so that a dropped reader is collected."""

    def __init__(self, inputs: _Inputs, steps: Iterator[_Step]) -> None:
        self._inputs = inputs
        self._stop = threading.Event()
        self._queue: queue.SimpleQueue[_Step | BaseException | None] = queue.SimpleQueue()
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()  # an item for each batch that may wait
        for _ in range(_PREFETCHED):
            self._room.put(None)
        self._thread = threading.Thread(target=self._run, args=(steps,), name="skn-reader", daemon=True)
        self._thread.start()

    def _run(self, steps: Iterator[_Step]) -> None:
        last: BaseException | None = None
        try:
            for step in steps:
                _ = step.batch.rows  # learners ask for them, and this thread has the time
                self._room.get()
                self._queue.put(step)
                del step  # the learner may be done with it before the next is parsed
                if self._stop.is_set():
                    return
        except Cancelled:
            return
        except BaseException as error:  # whatever it is, it belongs to the thread that waits for rows
            last = error
        finally:
            self._inputs.close()
        self._queue.put(last)

    def next(self) -> _Step:
        item = self._waited()
        if item is None:
            raise StopIteration
        if isinstance(item, BaseException):
            raise item
        self._room.put(None)
        return item

    def _waited(self) -> _Step | BaseException | None:
        """What comes next; until then this thread helps the other one, if it can."""
        while True:
            try:
                return self._queue.get_nowait()
            except queue.Empty:
                if not self._inputs.source.help():
                    return self._queue.get()

    def close(self) -> None:
        self._stop.set()
        self._inputs.cancel()
        self._room.put(None)  # the thread may be waiting for it
        while not self._queue.empty():
            self._queue.get_nowait()
        # The garbage collector may call from any thread. A disk that does not answer must not block exit.
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5.0)
