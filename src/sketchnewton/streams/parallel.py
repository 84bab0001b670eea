"""Chunks of text parsed by several threads, their results in the order of the text."""

from __future__ import annotations

import collections
import os
import queue
import threading
from collections.abc import Callable, Iterator

from sketchnewton.core.batch import Batch
from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.streams.source import Cancelled, Source

if TYPE_CHECKING:
    from sketchnewton.streams.lines import Parsed, ParseText


_PATIENCE = 0.1  # seconds

Prepare = Callable[[Batch], object]


class _Task:
    """A chunk, and what became of it."""

    __slots__ = ("_error", "_parsed", "_running", "text")

    def __init__(self, text: memoryview) -> None:
        self.text = text
        self._running = threading.Lock()  # until it is done
        self._running.acquire()
        self._parsed: Parsed | None = None
        self._error: BaseException | None = None

    def run(self, parse: ParseText, prepare: Prepare | None) -> None:
        try:
            self._parsed = parse(self.text, 1)
            batch = self._parsed[0]
            _ = batch.rows  # learners ask for them
            batch.prepared = None if prepare is None else prepare(batch)
        except Exception as error:  # it belongs to the thread that waits for the rows
            self._error = error
        except BaseException as error:  # an interrupt belongs to this thread, whatever there is already
            self._parsed, self._error = None, error
            raise
        finally:
            self._running.release()

    @property
    def done(self) -> bool:
        return not self._running.locked()

    def result(self, source: Source) -> Parsed:
        # Whoever is interrupted just after taking a chunk never gives it back.
        while not self._running.acquire(timeout=_PATIENCE):
            if source.cancelled:
                raise Cancelled
        parsed, self._parsed = self._parsed, None  # whoever has the batch may be done with it before this
        if parsed is None:
            raise self._error or RuntimeError("a parser ended without a result")
        return parsed


class _Work:
    """Chunks that wait for a thread that parses them."""

    def __init__(self, parse: ParseText, prepare: Prepare | None) -> None:
        self._parse = parse
        self._prepare = prepare
        self._waiting: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()

    def add(self, task: _Task) -> None:
        self._waiting.put(task)

    def help(self) -> bool:
        """Parse the one that has waited longest; False if there is none."""
        task = self._next()
        if task is not None:
            task.run(self._parse, self._prepare)
        return task is not None

    def _next(self) -> _Task | None:
        try:
            task = self._waiting.get_nowait()
        except queue.Empty:
            return None
        if task is None:  # the end, of which a thread that waits for it has to be told
            self._waiting.put(None)
        return task

    def parse_all(self) -> None:
        """Parse whatever comes, until the end."""
        while (task := self._waiting.get()) is not None:
            task.run(self._parse, self._prepare)

    def end(self, workers: list[threading.Thread]) -> None:
        """Let these threads know, and wait for them; nobody waits for what has not begun."""
        while self._next() is not None:
            pass
        for worker in workers:
            while worker.is_alive():  # an interrupt may have lost what was put there before
                self._waiting.put(None)
                worker.join(_PATIENCE)


def parse_in_parallel(
    source: Source,
    chunks: Iterator[memoryview],
    parse: ParseText,
    threads: int,
    prepare: Prepare | None = None,
) -> Iterator[tuple[memoryview, Parsed]]:
    """Each chunk and what ``parse`` makes of it, as if its first line were line 1.

    Chunks must have memory of their own. What ``prepare`` makes of a batch is kept with it.

    Who asks for the chunks parses, too, and so does, through ``source.help``, whoever waits for their rows: both
    are then as busy as they can be, whichever of the two has more to do. There are other threads only where there
    are processors for them, as many chunks under way as there are of these, and two more. What is there is not
    held back while a slow producer, at the other end of a pipe, makes the next.
    """
    work = _Work(parse, prepare)
    others = max(0, min(threads - 1, _processors() - 2))
    workers = [threading.Thread(target=work.parse_all, name="skn-parser", daemon=True) for _ in range(others)]
    for worker in workers:
        worker.start()
    source.help = work.help
    pending: collections.deque[_Task] = collections.deque()

    def first() -> tuple[memoryview, Parsed]:
        task = pending.popleft()
        while not task.done and work.help():
            pass
        return task.text, task.result(source)

    failure: Exception | None = None
    try:
        while failure is None:
            while pending and (len(pending) > others + 1 or not source.ready(0.0)):
                yield first()
            try:
                text = next(chunks, None)
            except Exception as error:  # comes after the rows before it
                failure = error
                break
            if text is None:
                break
            pending.append(_Task(text))
            work.add(pending[-1])
        while pending:
            yield first()
        if failure is not None:
            raise failure
    finally:
        work.end(workers)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
