"""What was learned, in order, in an SQLite file: on the disk before it is acknowledged.

Many requests share one commit: while the thread of the log waits for the disk, what comes in gathers, and is
committed together. What is small is put into the transaction by the event loop itself, in microseconds, and the
thread does no more than commit it: two threads that run Python wait for one another at every statement. SQLite
runs with a write-ahead log and `synchronous=FULL`, so what `append` has promised survives a crash of the process
and a loss of power.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import queue
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple
from urllib.parse import quote

__all__ = ["Event", "EventLog", "LogError", "Operation", "Remembered", "check_file", "checked_events"]

FORMAT = 1

LEARN, LABEL, LOAD = "learn", "label", "load"
"""Kinds of events: a body with labels; a record that was remembered, and its label; another model."""

PENDING, LEARNED, EXPIRED = 0, 1, 2
"""What became of a record that was remembered."""

_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
  seq INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, format TEXT NOT NULL, body BLOB NOT NULL,
  label TEXT, weight REAL, rows INTEGER NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS ids (
  id TEXT PRIMARY KEY, time REAL NOT NULL, state INTEGER NOT NULL, format TEXT, body BLOB, prediction TEXT,
  answer TEXT) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ids_by_time ON ids (state, time);
CREATE TABLE IF NOT EXISTS keys (
  key TEXT PRIMARY KEY, time REAL NOT NULL, digest BLOB NOT NULL, answer TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS keys_by_time ON keys (time);
CREATE TABLE IF NOT EXISTS snapshots (
  seq INTEGER PRIMARY KEY, time REAL NOT NULL, file TEXT NOT NULL, score TEXT NOT NULL);
"""

_LIGHT = 1 << 18
"""Bytes of events that the event loop writes into the open transaction; more are left to the thread."""
_SOON = ("INSERT INTO ", "UPDATE ids ")
_PATIENCE = 30.0
"""Seconds for which another process may hold the file."""

Operation = tuple[str, tuple[str | int | float | bytes | None, ...]]
"""A statement and its values."""

Told = Callable[["LogError | None"], None]
"""Called when what was appended is on the disk, or with the reason why it is not."""

_Group = list[tuple[Sequence[Operation], Told]]


class LogError(Exception):
    """The log cannot be written or read: `full` says whether there is no room on the disk."""

    def __init__(self, message: str, *, full: bool = False) -> None:
        super().__init__(message)
        self.full = full


class Event(NamedTuple):
    """Something that changed the model."""

    seq: int
    time: float
    kind: str
    format: str
    body: bytes
    label: str | None
    """Of a record that was remembered, as JSON."""
    weight: float | None
    rows: int

    @property
    def sum(self) -> int:
        """A checksum of all that learning depends on."""
        head = f"{self.seq} {self.kind} {self.format} {self.label} {self.weight!r} ".encode()
        return zlib.crc32(self.body, zlib.crc32(head))

    def operation(self) -> Operation:
        """What writes it."""
        return "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*self, self.sum)


class Remembered(NamedTuple):
    """A record whose label is to come, or what became of it."""

    state: int
    time: float
    format: str | None
    body: bytes | None
    prediction: str | None
    answer: str | None


def checked_events(log: sqlite3.Connection, path: str, after: int) -> Iterator[Event]:
    """The events behind number `after`, in order; `LogError` where one is damaged or missing."""
    expected = after + 1
    try:
        for *fields, total in log.execute("SELECT * FROM events WHERE seq > ? ORDER BY seq", (after,)):
            event = Event(*fields)
            if event.seq != expected:
                raise LogError(f"{path}: the log is damaged: event {expected} is missing")
            if not isinstance(event.body, bytes) or event.sum != total:
                raise LogError(f"{path}: the log is damaged: event {event.seq} was changed")
            yield event
            expected += 1
    except sqlite3.Error as error:
        raise LogError(f"{path}: the log is damaged after event {expected - 1}: {error}") from None


def check_file(path: str) -> None:
    """Look the whole file over; `LogError` if it is damaged."""
    try:
        connection = sqlite3.connect(
            f"file:{quote(os.path.abspath(path))}?mode=rw", uri=True, isolation_level=None
        )
        with contextlib.closing(connection):
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise LogError(f"{path}: the log is damaged: {error}") from None
    if found is None or found[0] != "ok":
        raise LogError(f"{path}: the log is damaged: {'' if found is None else ' '.join(found[0].split())}")


def _is_light(group: _Group) -> bool:
    """Whether a group is written in no time: few bytes, and no statement that looks at many rows."""
    size = 0
    for operations, _ in group:
        for statement, values in operations:
            if not statement.startswith(_SOON):
                return False
            size += 200 + sum(len(value) for value in values if isinstance(value, bytes | str))
    return size <= _LIGHT


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _failure(error: Exception) -> LogError:
    full = isinstance(error, sqlite3.OperationalError) and "full" in str(error)
    return LogError(f"cannot write the log: {error}", full=full)


class EventLog:
    """The file, a connection that reads on the caller's thread, and a thread that writes."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._writer = self._connect()
            self._writer.executescript(_TABLES)
            self._writer.execute("INSERT OR IGNORE INTO facts VALUES ('format', ?)", (str(FORMAT),))
            self._reader = self._connect()
            found = self.fact("format")
        except sqlite3.Error as error:
            raise LogError(f"{path}: {error}") from None
        if found != str(FORMAT):
            raise LogError(f"{path}: the log has format {found}, and this version reads format {FORMAT}")
        self._waiting: _Group = []
        self._committed: _Group | None = None  # by the thread, now
        self._jobs: queue.SimpleQueue[tuple[_Group, bool] | None] = queue.SimpleQueue()
        self._failure: LogError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._settled: Callable[[int, LogError | None], None] = lambda _, __: None
        self._thread: threading.Thread | None = None
        self.commits = 0

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=_PATIENCE
        )
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only a new file takes it
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA fullfsync=ON")  # on macOS fsync alone leaves data in the cache of the disk
        connection.execute("PRAGMA journal_size_limit=67108864")
        connection.execute("PRAGMA cell_size_check=ON")
        connection.execute("PRAGMA trusted_schema=OFF")
        return connection

    # -- writing

    def start(self, settled: Callable[[int, LogError | None], None]) -> None:
        """Begin to write, for the event loop that runs now.

        `settled` is told how many calls of `append` are done, and why they failed if they did, before those who
        wait for them.
        """
        self._settled = settled
        self._loop = asyncio.get_running_loop()
        self._writer.execute("PRAGMA busy_timeout=0")  # the event loop does not wait: `_begin`
        self._thread = threading.Thread(target=self._run, name="skn-log")
        self._thread.start()

    def append(self, operations: Sequence[Operation], told: Told) -> None:
        """Write these together; `told` is called when they are on the disk. Order is that of the calls."""
        loop = self._loop
        if loop is None:
            raise RuntimeError("the log has not been started")
        self._waiting.append((operations, told))
        if len(self._waiting) == 1 and self._committed is None:
            loop.call_soon(self._write)  # with all that comes in this turn

    def resume(self) -> None:
        """Write again after a failure, when the model is that of the log again."""
        self._failure = None

    def _write(self) -> None:
        """Begin to commit what waits; on the event loop."""
        if self._committed is not None or not self._waiting:
            return
        group, self._waiting = self._waiting, []
        if self._failure is not None:
            self._tell(group, self._failure)
            return
        inserted = False
        if _is_light(group):
            try:
                self._begin(0.0)
                self._insert(group)
                inserted = True
            except sqlite3.Error as error:
                self._roll_back()
                if not _is_busy(error):
                    self._failure = _failure(error)
                    self._tell(group, self._failure)
                    return
        self._committed = group
        self._jobs.put((group, inserted))

    def _begin(self, patience: float) -> None:
        """Begin a transaction, as soon as no other process has one."""
        end = time.monotonic() + patience
        while True:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.Error as error:
                if not _is_busy(error) or time.monotonic() >= end:
                    raise
            time.sleep(0.02)

    def _insert(self, group: _Group) -> None:
        asked = (operation for operations, _ in group for operation in operations)
        for statement, alike in itertools.groupby(asked, key=itemgetter(0)):
            if statement.startswith(_SOON):
                self._writer.executemany(statement, [values for _, values in alike])
            else:
                for _, values in alike:
                    self._writer.execute(statement, values).fetchall()  # vacuum takes a step for each page

    def _roll_back(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._writer.execute("ROLLBACK")

    def _run(self) -> None:
        """The thread: commit one group after another."""
        while (job := self._jobs.get()) is not None:
            error = self._commit(*job)
            loop = self._loop
            if loop is not None:
                with contextlib.suppress(RuntimeError):  # the loop has been closed
                    loop.call_soon_threadsafe(self._settle, error)

    def _commit(self, group: _Group, inserted: bool) -> LogError | None:
        try:
            if not inserted:
                self._begin(_PATIENCE)
                self._insert(group)
            self._writer.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            self._roll_back()
            self._failure = _failure(error)
            return self._failure
        self.commits += 1
        return None

    def _settle(self, error: LogError | None) -> None:
        """Tell those whose group was committed, when the next is on its way."""
        group, self._committed = self._committed or [], None
        if error is None:
            self._write()
        try:
            self._tell(group, error)
        finally:
            if error is not None:
                self._write()  # those who came meanwhile stand on what has failed

    def _tell(self, group: _Group, error: LogError | None) -> None:
        self._settled(len(group), error)
        wrong: Exception | None = None
        for _, told in group:
            try:
                told(error)
            except Exception as mistake:  # of one client: the others have a right to know
                wrong = mistake
        if wrong is not None:
            raise wrong

    def stop(self) -> None:
        """Write what is waiting, then end the thread and close the file."""
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join()
        if self._waiting and self._failure is None:
            self._commit(self._waiting, inserted=False)
        self._waiting = []
        for connection in (self._reader, self._writer):
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def write_now(self, operations: Sequence[Operation]) -> None:
        """Write while nothing else does: before the start."""
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for statement, values in operations:
                self._writer.execute(statement, values)
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._writer.execute("ROLLBACK")
            raise _failure(error) from None

    # -- reading

    def _one(self, statement: str, *values: object) -> Any:
        try:
            return self._reader.execute(statement, values).fetchone()
        except sqlite3.Error as error:
            raise LogError(f"{self.path}: cannot read the log: {error}") from None

    def _all(self, statement: str, *values: object) -> list[Any]:
        try:
            return self._reader.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise LogError(f"{self.path}: cannot read the log: {error}") from None

    def fact(self, name: str) -> str | None:
        """A fact about the log itself."""
        row = self._one("SELECT value FROM facts WHERE name = ?", name)
        return None if row is None else str(row[0])

    def last_event(self) -> int:
        """The number of the last event that was ever written; 0 if there was none."""
        row = self._one("SELECT max(coalesce((SELECT max(seq) FROM events), 0), coalesce("
                        "(SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'compacted'), 0))")  # fmt: skip
        return int(row[0])

    def first_event(self) -> int | None:
        """The number of the first event that is still there; None if there is none."""
        found: int | None = self._one("SELECT min(seq) FROM events")[0]
        return found

    def events(self, after: int = 0) -> Iterator[Event]:
        """The events behind number `after`, in order; `LogError` where one is damaged or missing."""
        return checked_events(self._reader, self.path, after)

    def remembered(self, id: str) -> Remembered | None:
        """What is known of an id."""
        row = self._one("SELECT state, time, format, body, prediction, answer FROM ids WHERE id = ?", id)
        return None if row is None else Remembered(*row)

    def answered(self, key: str) -> tuple[bytes, str] | None:
        """The digest of the request that had this idempotency key, and its answer."""
        row = self._one("SELECT digest, answer FROM keys WHERE key = ?", key)
        return None if row is None else (bytes(row[0]), str(row[1]))

    def overdue(self, before: float, most: int) -> list[tuple[str, str, bytes]]:
        """Id, format and record of those whose label has not come in time."""
        return self._all(
            "SELECT id, format, body FROM ids WHERE state = 0 AND time < ? ORDER BY time LIMIT ?",
            before,
            most,
        )

    def pending(self) -> int:
        """How many records wait for a label."""
        return int(self._one("SELECT count(*) FROM ids WHERE state = 0")[0])

    def snapshots(self) -> list[tuple[int, str, str]]:
        """Event, file and score of each snapshot, the newest first."""
        return self._all("SELECT seq, file, score FROM snapshots ORDER BY seq DESC")

    def any(self, statement: str, *values: object) -> bool:
        """Whether a query finds anything."""
        return self._one(statement, *values) is not None

    def free_pages(self) -> int:
        """Pages of the file that hold nothing."""
        return int(self._one("PRAGMA freelist_count")[0])

    def bytes(self) -> int:
        """The size of the log on the disk."""
        paths = (self.path + ending for ending in ("", "-wal"))
        return sum(os.path.getsize(path) for path in paths if os.path.exists(path))
