"""Chunks of text parsed by several threads, their results in the order of the text."""

from __future__ import annotations

import collections
import queue
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sketchnewton.core.batch import Batch

if TYPE_CHECKING:
    from sketchnewton.streams.lines import Parsed, ParseText
    from sketchnewton.streams.source import Source


Prepare = Callable[[Batch], object]


class _Task:
    """A chunk, and what became of it."""

    def __init__(self, text: memoryview) -> None:
        self.text = text
        self._done = threading.Event()
        self._parsed: Parsed | None = None
        self._error: BaseException | None = None

    def run(self, parse: ParseText, prepare: Prepare | None) -> None:
        try:
            self._parsed = parse(self.text, 1)
            batch = self._parsed[0]
            _ = batch.rows  # learners ask for them
            batch.prepared = None if prepare is None else prepare(batch)
        except BaseException as error:  # it belongs to the thread that waits for the rows
            self._error = error
        self._done.set()

    def result(self) -> Parsed:
        self._done.wait()
        parsed, self._parsed = self._parsed, None  # whoever has the batch may be done with it before this
        if parsed is None:
            raise self._error or RuntimeError("a parser ended without a result")
        return parsed


def parse_in_parallel(
    source: Source,
    chunks: Iterator[memoryview],
    parse: ParseText,
    threads: int,
    prepare: Prepare | None = None,
) -> Iterator[tuple[memoryview, Parsed]]:
    """Each chunk and what ``parse`` makes of it, as if its first line were line 1.

    Chunks must have memory of their own. What ``prepare`` makes of a batch is kept with it.

    As many chunks are under way as there are threads, and one more. What is there is not held back while a slow
    producer, at the other end of a pipe, makes the next.
    """
    tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()

    def work() -> None:
        while (task := tasks.get()) is not None:
            task.run(parse, prepare)

    workers = [threading.Thread(target=work, name="skn-parser", daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    pending: collections.deque[_Task] = collections.deque()
    failure: Exception | None = None
    try:
        while failure is None:
            while pending and (len(pending) > threads or not source.ready(0.0)):
                task = pending.popleft()
                yield task.text, task.result()
            try:
                text = next(chunks, None)
            except Exception as error:  # comes after the rows before it
                failure = error
                break
            if text is None:
                break
            pending.append(_Task(text))
            tasks.put(pending[-1])
        for task in pending:
            yield task.text, task.result()
        if failure is not None:
            raise failure
    finally:
        while not tasks.empty():  # nobody waits for what has not begun
            tasks.get_nowait()
        for _ in workers:
            tasks.put(None)
        for worker in workers:
            worker.join()
