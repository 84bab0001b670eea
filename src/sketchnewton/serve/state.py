"""The directory of a server: the log, snapshots of the model, and how to begin again from them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Callable

from sketchnewton.core.archive import ModelFileError, sync_directory
from sketchnewton.evaluation import ProgressiveScore
from sketchnewton.model import Model, open_model
from sketchnewton.serve.log import EventLog, LogError, Operation, check_file
from sketchnewton.serve.replaying import Standing

__all__ = ["LOG_NAME", "ORIGIN_NAME", "Standing", "State", "StateError"]

LOG_NAME, ORIGIN_NAME = "log.sqlite", "origin.skn"
_LOCK = "lock"
KEPT_SNAPSHOTS = 2
_COPIED_AT_A_TIME = 1000


class StateError(ValueError):
    """The directory cannot be used as it is: one line that says why and what to do."""


class State:
    """One directory, which one server at a time may use."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.log_path = os.path.join(folder, LOG_NAME)
        self.log: EventLog
        if not os.path.isdir(folder):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            sync_directory(os.path.dirname(os.path.abspath(folder)))
        self._lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise StateError(f"{folder}: another server uses this directory") from None

    def path(self, file: str) -> str:
        """The path of a file in the directory."""
        return os.path.join(self.folder, file)

    def open(self, fresh: Callable[[], Model], *, recover: bool) -> Standing:
        """Begin with the last snapshot and the events behind it, or with a `fresh` model in an empty directory."""
        try:
            return self._open(fresh, recover=recover)
        except LogError as error:
            raise StateError(str(error)) from None

    def _open(self, fresh: Callable[[], Model], *, recover: bool) -> Standing:
        begun = os.path.exists(self.log_path)
        if not begun and any(name.endswith(".skn") for name in os.listdir(self.folder)):
            if not recover:
                raise StateError(
                    f"{self.log_path}: the log is missing, but there are snapshots: --recover starts from the last"
                )
            begun = True
        if begun and os.path.exists(self.log_path):
            try:
                check_file(self.log_path)
                self.log = EventLog(self.log_path)
            except LogError as error:
                if not recover:
                    raise StateError(f"{error}: --recover starts from the last good state") from None
                self._salvage()
        elif begun:
            self.log = EventLog(self.log_path)
        else:
            model = fresh()  # before there is anything to continue from
            self.log = EventLog(self.log_path)
            return self._begin(model)
        return self._continue(fresh, recover=recover)

    def _begin(self, model: Model) -> Standing:
        model.save(self.path(ORIGIN_NAME))
        score = model.new_score()
        self.log.write_now([snapshot_row(0, ORIGIN_NAME, score)])
        return Standing(model, score, 0)

    def _continue(self, fresh: Callable[[], Model], *, recover: bool) -> Standing:
        known = self.log.snapshots()
        if recover:
            known = self._with_files(known)
        if not known:  # the first start ended before its end
            if self.log.last_event():
                raise StateError(f"{self.log_path}: there are events, but no snapshot to begin with")
            return self._begin(fresh())
        trouble: Exception | None = None
        for seq, file, score in known:
            try:
                return self._from_snapshot(seq, file, score, recover=recover)
            except (ModelFileError, LogError, OSError, ValueError, KeyError) as error:
                trouble = trouble or error
                if not recover:
                    break
        raise StateError(
            f"{trouble}: no snapshot can be used"
            if recover
            else f"{trouble}: --recover starts from the last good state"
        )

    def _from_snapshot(self, seq: int, file: str, score_state: str, *, recover: bool) -> Standing:
        model = open_model(self.path(file))
        standing = Standing(model, model.new_score(), seq)
        if score_state:
            standing.score.state = json.loads(score_state)
        last = self.log.last_event()
        if seq > last:
            if not recover:
                raise LogError(
                    f"{self.log_path}: the log ends with event {last}, but the snapshot {file} has event {seq}"
                )
            self.log.write_now([compacted_row(seq), ("DELETE FROM events WHERE seq <= ?", (seq,))])
            return standing
        try:
            for event in self.log.events(seq):
                standing.learn(event)
        except LogError:
            if not recover:
                raise
            self._salvage(up_to=standing.seq)  # what cannot be read is put aside
        return standing

    def _with_files(self, known: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
        """The snapshots, with those that the log has forgotten, as their names tell."""
        found = {seq: (seq, file, score) for seq, file, score in known}
        for name in os.listdir(self.folder):
            seq = number_of(name)
            if seq is not None:
                found.setdefault(seq, (seq, name, ""))
        return [found[seq] for seq in sorted(found, reverse=True)]

    def _salvage(self, up_to: int | None = None) -> None:
        """Put a damaged log aside, and begin one with all of it that can be read."""
        with contextlib.suppress(AttributeError, sqlite3.Error):
            self.log.stop()
        aside = first = f"{self.log_path}.damaged-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
        again = 1
        while os.path.exists(aside):  # twice in one start: the first one is the original
            again += 1
            aside = f"{first}-{again}"
        for ending in ("", "-wal", "-shm"):
            if os.path.exists(self.log_path + ending):
                os.rename(self.log_path + ending, aside + ending)
        self.log = EventLog(self.log_path)
        with contextlib.suppress(sqlite3.Error):
            old = sqlite3.connect(aside, isolation_level=None)
            with contextlib.closing(old):
                for table in ("snapshots", "ids", "keys", "events"):
                    self._copy(old, table, up_to)

    def _copy(self, old: sqlite3.Connection, table: str, up_to: int | None) -> None:
        where = f" WHERE seq <= {up_to:d} ORDER BY seq" if table == "events" and up_to is not None else ""
        with contextlib.suppress(sqlite3.Error):
            rows = old.execute(f"SELECT * FROM {table}{where}")
            marks = ", ".join("?" * len(rows.description))
            insert = f"INSERT OR IGNORE INTO {table} VALUES ({marks})"  # what breaks a constraint is left out
            while group := _readable(rows, _COPIED_AT_A_TIME):
                self.log.write_now([(insert, row) for row in group])

    def rebuild(self) -> Standing:
        """The model of the log as it is now, for a server whose model is ahead of it."""
        seq, file, score = self.log.snapshots()[0]
        return self._from_snapshot(seq, file, score, recover=False)

    def save_snapshot(self, model: Model, seq: int) -> str:
        """Write a snapshot, whole or not at all; returns its name."""
        name = f"snapshot-{seq:015d}.skn"
        model.save(self.path(name))
        return name

    def remove_snapshots(self, keep: set[str]) -> None:
        """Remove the files of snapshots, but for these; the first model stays."""
        for name in os.listdir(self.folder):
            if name not in keep and name != ORIGIN_NAME and number_of(name) is not None:
                with contextlib.suppress(OSError):
                    os.unlink(self.path(name))

    def close(self) -> None:
        """Close the log and let others use the directory."""
        with contextlib.suppress(AttributeError):
            self.log.stop()
        os.close(self._lock)


def _readable(rows: sqlite3.Cursor, most: int) -> list[tuple[str | float | bytes | None, ...]]:
    """The next rows, as many as can be read."""
    found: list[tuple[str | float | bytes | None, ...]] = []
    with contextlib.suppress(sqlite3.Error):
        while len(found) < most and (row := rows.fetchone()):
            found.append(tuple(row))
    return found


def number_of(name: str) -> int | None:
    """The event of the snapshot in a file of that name."""
    if name == ORIGIN_NAME:
        return 0
    middle = name.removeprefix("snapshot-").removesuffix(".skn")
    return int(middle) if middle.isdecimal() and name == f"snapshot-{middle}.skn" else None


def snapshot_row(seq: int, file: str, score: ProgressiveScore) -> Operation:
    """What tells the log of a snapshot."""
    values = (seq, time.time(), file, json.dumps(score.state))
    return "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", values


def compacted_row(seq: int) -> Operation:
    """What tells the log that events up to this number have gone."""
    return "INSERT OR REPLACE INTO facts VALUES ('compacted', ?)", (str(seq),)
