"""What a server has learned, read from its directory, even while it runs: to learn it again, or to export it."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator

from sketchnewton.core.types import Json
from sketchnewton.model import Model, open_model
from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.log import LOAD, Event, LogError, checked_events
from sketchnewton.serve.replaying import lesson_of
from sketchnewton.serve.state import LOG_NAME, ORIGIN_NAME
from sketchnewton.streams.encoded import Encoded

__all__ = ["Past", "is_log"]

_MAGIC = b"SQLite format 3\0"


def is_log(path: str) -> bool:
    """Whether a path is the directory of a server, or the log in it."""
    file = os.path.join(path, LOG_NAME) if os.path.isdir(path) else path
    try:
        with open(file, "rb") as opened:
            return opened.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


class Past:
    """The events of a server, in order."""

    def __init__(self, path: str) -> None:
        if not is_log(path):
            raise ValueError(f"{path}: neither the directory of a server nor its log")
        self.folder = path if os.path.isdir(path) else os.path.dirname(path) or "."
        self.path = os.path.join(path, LOG_NAME) if os.path.isdir(path) else path

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self.path, isolation_level=None)
            connection.execute("PRAGMA query_only=ON")
            with contextlib.closing(connection):
                yield connection
        except sqlite3.Error as error:
            raise LogError(f"{self.path}: cannot read the log: {error}") from None

    def begin(self) -> tuple[Model, int]:
        """The earliest model whose later events are all there, and the last event that it has learned."""
        with self._opened() as log:
            gone = log.execute("SELECT value FROM facts WHERE name = 'compacted'").fetchone()
            known = log.execute("SELECT seq, file FROM snapshots ORDER BY seq").fetchall()
        first = 0 if gone is None else int(gone[0])
        if first == 0:
            return open_model(os.path.join(self.folder, ORIGIN_NAME)), 0
        for seq, file in known:
            if seq >= first:
                return open_model(os.path.join(self.folder, str(file))), int(seq)
        raise LogError(f"{self.path}: there is no snapshot to begin with")

    def first(self) -> int:
        """The number of the last event that is gone; 0 if all are there."""
        with self._opened() as log:
            gone = log.execute("SELECT value FROM facts WHERE name = 'compacted'").fetchone()
        return 0 if gone is None else int(gone[0])

    def events(self, after: int) -> Iterator[Event]:
        """The events behind number `after`."""
        with self._opened() as log:
            yield from checked_events(log, self.path, after)

    def objects(self) -> Iterator[dict[str, Json]]:
        """Each record that was learned as an object of JSON, with its label and weight in it."""
        columns = open_model(os.path.join(self.folder, ORIGIN_NAME)).columns
        for event in self.events(self.first()):
            if event.kind == LOAD:
                continue
            try:
                records, labels, weights = lesson_of(event)
            except ApiError as error:
                raise LogError(f"{self.path}: event {event.seq}: {error.message}") from None
            if isinstance(records, Encoded):
                if records.format != "jsonl":
                    raise LogError(f"{self.path}: event {event.seq} is {records.format}, which is no JSON")
                records = [json.loads(line) for line in records.data.splitlines() if line.strip()]
            listed = [records] if isinstance(records, dict) else records
            for at, record in enumerate(listed):
                made = dict(record)
                if labels is not None:
                    made[columns.label_among(made) or columns.usual_label] = labels[at]
                if weights is not None:
                    made[columns.weight_among(made) or columns.weight or "_weight"] = weights[at]
                yield made
