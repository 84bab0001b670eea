"""Housekeeping: snapshots, labels that have not come, and a log that does not grow for ever."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from sketchnewton.model import Model
from sketchnewton.serve import log as events
from sketchnewton.serve.engine import Engine
from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.log import Operation
from sketchnewton.serve.state import KEPT_SNAPSHOTS, State, compacted_row, snapshot_row

__all__ = ["Keeper", "KeeperOptions"]

_DELETED_AT_A_TIME = 5000
_FREED_PAGES = 2000


@dataclass(frozen=True)
class KeeperOptions:
    """How often the model is saved, and how much of the past stays."""

    snapshot_events: int = 10_000
    snapshot_seconds: float = 300.0
    keep_events: int = 1_000_000


class Keeper:
    """Looks after the directory of a server while it runs."""

    def __init__(self, engine: Engine, state: State, options: KeeperOptions, first: int) -> None:
        self.engine = engine
        self.state = state
        self.options = options
        self.snapshot_seq = first
        """The event of the last snapshot."""
        self.failure: str | None = None
        """Why the last snapshot could not be written."""
        self._since = time.monotonic()
        self._saving = asyncio.Lock()

    async def run(self) -> None:
        """Look after things once a second, and after late labels more often, until cancelled.

        Labels that are assumed are learned in small portions: an online learner would follow a burst of them.
        """
        pause = min(1.0, max(0.02, self.engine.options.feedback_ttl / 50))
        waited = 0.0
        while True:
            await asyncio.sleep(pause)
            waited += pause
            try:
                while await self.engine.expire():
                    await asyncio.sleep(0)
                if waited >= 1.0:
                    waited = 0.0
                    await self.tick()
            except (ApiError, OSError, ValueError) as error:  # a full disk: later again
                self.failure = str(error)

    async def tick(self) -> None:
        """What is due now."""
        behind = self.engine.seq - self.snapshot_seq
        late = time.monotonic() - self._since > self.options.snapshot_seconds
        if behind >= self.options.snapshot_events or (behind and late):
            await self.save()
        await self._forget()

    async def save(self) -> int:
        """Write a snapshot of what the log has; returns its event."""
        engine = self.engine
        async with self._saving:
            self._since = time.monotonic()
            async with engine.lock:
                engine.check_writable()
                header, arrays = engine.model.__getstate__()  # copies
                score, seq = engine.model.new_score(), engine.seq
                score.state = engine.score.state
                done = engine.append([])  # all before it are on the disk, or the copy is not to be used
            await engine.durable(done)
            if seq == self.snapshot_seq:
                return seq
            model = await asyncio.to_thread(Model.from_archive, header, arrays)
            name = await asyncio.to_thread(self.state.save_snapshot, model, seq)
            kept = engine.log.snapshots()[: KEPT_SNAPSHOTS - 1]
            oldest = min((event for event, _, _ in kept), default=seq)
            drop: Operation = ("DELETE FROM snapshots WHERE seq < ?", (oldest,))
            await engine.written([snapshot_row(seq, name, score), drop])
            self.state.remove_snapshots({name, *(file for _, file, _ in kept)})
            self.snapshot_seq = seq
            self.failure = None
            return seq

    async def _forget(self) -> None:
        """Remove some of the events that are too many, and answers that nobody will ask for again."""
        engine, log = self.engine, self.engine.log
        if engine.problem is not None:
            return
        operations: list[Operation] = []
        first, oldest = log.first_event(), min((seq for seq, _, _ in log.snapshots()), default=0)
        last = min(engine.seq - self.options.keep_events, oldest)
        if first is not None and first <= last:
            last = min(last, first + _DELETED_AT_A_TIME - 1)
            operations += [("DELETE FROM events WHERE seq <= ?", (last,)), compacted_row(last)]
        old = time.time() - max(engine.options.feedback_ttl, 3600.0)
        for table, state in (("ids", f"state <> {events.PENDING} AND "), ("keys", "")):
            name = "id" if table == "ids" else "key"
            where = f"SELECT {name} FROM {table} WHERE {state}time < ? LIMIT {_DELETED_AT_A_TIME}"
            if log.any(where, old):
                operations.append((f"DELETE FROM {table} WHERE {name} IN ({where})", (old,)))
        if operations or log.free_pages() > _FREED_PAGES:
            operations.append((f"PRAGMA incremental_vacuum({_FREED_PAGES})", ()))
            await engine.written(operations)
