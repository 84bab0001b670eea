"""The owner of the model: predicts, learns in the order of the log, and knows what was promised.

The model is used on the thread of the event loop: a prediction sees it between two steps of learning, and a step
has at most `STEP` rows. What a request teaches is learned first and written second: an answer goes out when the
log has it on the disk. If the log cannot be written, all that waits for it is refused and the model is rebuilt
from the log: what was not acknowledged is as if it had never been learned.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

from sketchnewton.core.batch import Batch
from sketchnewton.core.types import Floats, np
from sketchnewton.serve import log as events
from sketchnewton.serve.answers import Answer, answers, shaped
from sketchnewton.serve.bodies import Body, Records, records_of, split
from sketchnewton.serve.durable import Durable, EngineOptions, storage_error, unavailable
from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.log import Event, Operation, Remembered
from sketchnewton.serve.predictor import refused
from sketchnewton.serve.replaying import REFUSED, Lesson, Standing, count, model_of_bytes
from sketchnewton.serve.state import State
from sketchnewton.serve.window import Window
from sketchnewton.streams.encoded import Encoded

__all__ = ["Engine", "EngineOptions", "Label", "Note", "no_note"]

STEP = 256
"""Rows learned at a time; predictions come between two steps."""
_SMALL = 1 << 13  # bytes of a body that is learned in one go
_LARGE = 1 << 16  # bytes of a body that is read beside the event loop
_LABELS_AT_A_TIME = 64  # each is looked up and learned alone
_NOTED = 32  # records that are kept for the names of their features


class Label(NamedTuple):
    """The label of a record that was remembered."""

    id: str
    label: str | float | bool
    weight: float | None


class Engine(Durable):
    """The model, what it has learned so far, and what waits for the disk."""

    def __init__(self, state: State, standing: Standing, options: EngineOptions) -> None:
        super().__init__(state, standing, options)
        self.delays: list[float] = []
        self.labels: Counter[str] = Counter()
        """Rows by how their label came, since the process began."""
        self.rows = 0
        """Learned since the process began."""
        self.noted: list[Records] = []
        """A few records, whose features have names to show."""
        self._ids: dict[str, Remembered] = {}  # not on the disk yet, as all below
        self._labels: dict[str, tuple[Answer, asyncio.Future[None]]] = {}
        self._expiring: set[str] = set()
        self._keys: dict[str, tuple[bytes, asyncio.Future[Answer]]] = {}

    async def remember(self, body: Body, ids: list[str], made: list[Answer]) -> None:
        """Keep records until their labels come; returns when that is on the disk."""
        self.check_writable()
        parts = split(body, len(made))
        for id in ids:
            if id in self._ids or id in self._labels or self._known(id) is not None:
                raise ApiError(409, "id_in_use", f"the id {id[:80]!r} is in use: an id is for one record")
        now = time.time()
        operations: list[Operation] = []
        for id, (format, data), answer in zip(ids, parts, made, strict=True):
            row = Remembered(events.PENDING, now, format, data, json.dumps(answer["prediction"]), None)
            self._ids[id] = row
            values = (id, now, events.PENDING, format, data, row.prediction, None)
            operations.append(("INSERT INTO ids VALUES (?, ?, ?, ?, ?, ?, ?)", values))
        try:
            await self.written(operations)
            self.pending += len(ids)
        finally:
            for id in ids:
                self._ids.pop(id, None)

    # -- learning

    def learns_at_once(self, data: bytes) -> bool:
        """Whether a body is small and nobody else is learning: `learn_at_once` may be called."""
        return len(data) <= _SMALL and not self.lock.locked()

    def learn_at_once(self, body: Body, data: bytes, told: Callable[[ApiError | None], None]) -> Answer:
        """Predict and learn a small body; the answer is for the client when `told` says that the disk has it."""
        self.check_writable()
        with self.all_or_nothing():
            scores = self._learned_now((body.records, body.labels, body.weights))
            answer, operations = self._learned_event(body, data, scores, no_note)
            self.waiting += 1
            self.log.append(operations, lambda error: told(None if error is None else storage_error(error)))
        return answer

    async def learn(self, body: Body, data: bytes, note: Note) -> Answer:
        """Predict and learn a body; returns when it is on the disk."""
        lesson = (body.records, body.labels, body.weights)
        async with self.lock:
            self.check_writable()
            with self.all_or_nothing():
                scores = await self._learned(lesson, len(data))
                answer, operations = self._learned_event(body, data, scores, note)
                done = self.append(operations)
        await self.own(done)
        return answer

    def _learned_event(
        self, body: Body, data: bytes, scores: Floats, note: Note
    ) -> tuple[Answer, list[Operation]]:
        answer = shaped(body, answers(self.model, scores), self.version)
        event = self._event(events.LEARN, body.format, data, None, None, len(scores))
        self.labels["direct"] += len(scores)
        return answer, [event.operation(), *note(answer)]

    def _learned_now(self, lesson: Lesson) -> Floats:
        """Learn a few records at once."""
        try:
            parts = [self._counted(*step) for step in self.model.learning(*lesson, check=self.limits.check)]
        except REFUSED as error:
            raise refused(error) from None
        self._noted(lesson)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    async def _learned(self, lesson: Lesson, size: int) -> Floats:
        """Learn records of so many bytes step by step; returns their scores before. A refusal leaves no trace."""
        steps = self.model.learning(*lesson, rows=STEP, check=self.limits.check)
        parts: list[Floats] = []
        try:
            if size > _LARGE:
                steps = _begun(await asyncio.to_thread(next, steps, None), steps)
            for batch, scores in steps:
                parts.append(self._counted(batch, scores))
                if len(batch) == STEP:
                    await asyncio.sleep(0)
        except REFUSED as error:
            raise refused(error) from None
        self._noted(lesson)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _counted(self, batch: Batch, scores: Floats) -> Floats:
        count(self.score, batch, scores)
        self.window.add(batch, scores)
        self.rows += len(batch)
        return scores

    def _noted(self, lesson: Lesson) -> None:
        """Keep a few records, and little memory: they are read again on the thread of the event loop."""
        records = lesson[0]
        if len(self.noted) >= _NOTED or (isinstance(records, Encoded) and len(records.data) > _SMALL):
            return
        self.noted.append(records[:_NOTED] if isinstance(records, list) else records)

    def _event(
        self, kind: str, format: str, data: bytes, label: str | None, weight: float | None, rows: int
    ) -> Event:
        self.seq += 1
        return Event(self.seq, time.time(), kind, format, data, label, weight, rows)

    async def copy(self) -> tuple[bytes, int]:
        """The model as a file, and its version."""
        async with self.lock:
            header, arrays = self.model.__getstate__()  # copies
            kind, version = type(self.model), self.version
        data = await asyncio.to_thread(lambda: kind.from_archive(header, arrays).to_bytes())
        return data, version

    async def load(self, data: bytes) -> Answer:
        """Replace this model, for all requests that come later."""
        self.check_writable()
        try:
            model = await asyncio.to_thread(model_of_bytes, data)
        except REFUSED as error:
            raise refused(error, "bad_model") from None
        async with self.lock:
            self.check_writable()
            self.model, self.score, self.window = model, model.new_score(), Window()
            event = self._event(events.LOAD, "skn", data, None, None, 0)
            answer: Answer = {"loaded": True, "version": self.version}
            done = self.append([event.operation()])
        await self.durable(done)
        return answer

    # -- late labels

    async def feedback(self, labels: list[Label], single: bool, note: Note) -> Answer:
        """Learn labels of records that were remembered, each once; returns when all is on the disk."""
        results: list[Answer] = []
        waits: list[asyncio.Future[None]] = []
        operations: list[Operation] = []
        learned: dict[str, tuple[Answer, float]] = {}
        async with self.lock:
            with self.all_or_nothing():
                for number, label in enumerate(labels, 1):
                    if number % _LABELS_AT_A_TIME == 0:
                        await asyncio.sleep(0)  # predictions come between
                    try:
                        results.append(self._label(label, waits, operations, learned))
                    except ApiError as error:
                        if single:
                            raise
                        why = {"code": error.code, "message": error.message}
                        results.append({"id": label.id, "error": why})
                answer = results[0] if single else {"results": results, "version": self.version}
                done = self.append([*operations, *note(answer)]) if operations else None
            if done is not None:
                self._labels.update({id: (result, done) for id, (result, _) in learned.items()})
        try:
            for wait in (*waits, *([] if done is None else [done])):
                await self.durable(wait)
            self.pending -= len(learned)
            self.labels["late"] += len(learned)
            now = time.time()
            self.delays = [*self.delays, *(now - since for _, since in learned.values())][-1000:]
        finally:
            for id in learned:
                self._labels.pop(id, None)
        return answer

    def _label(
        self,
        label: Label,
        waits: list[asyncio.Future[None]],
        operations: list[Operation],
        learned: dict[str, tuple[Answer, float]],
    ) -> Answer:
        id = label.id
        if id in learned:
            return learned[id][0]
        if id in self._labels:
            answer, wait = self._labels[id]
            waits.append(wait)
            return answer
        found = self._ids.get(id) or self._known(id)
        if found is None:
            raise ApiError(404, "unknown_id", f"the id {id[:80]!r} is unknown, or was answered long ago")
        if found.state == events.EXPIRED or id in self._expiring:
            raise ApiError(410, "expired_id", f"the id {id[:80]!r} has expired: its label came too late")
        if found.state == events.LEARNED:
            before: Answer = json.loads(found.answer or "{}")
            return before
        self.check_writable()
        format, data = found.format or "", found.body or b""
        self._learned_label(format, data, label.label, label.weight)
        prediction = json.loads(found.prediction or "null")
        answer = {"id": id, "prediction": prediction, "learned": True, "version": self.version}
        event = self._event(events.LABEL, format, data, json.dumps(label.label), label.weight, 1)
        row = "UPDATE ids SET state = ?, time = ?, format = NULL, body = NULL, answer = ? WHERE id = ?"
        operations += [event.operation(), (row, (events.LEARNED, time.time(), json.dumps(answer), id))]
        learned[id] = (answer, found.time)
        return answer

    def _learned_label(
        self, format: str, data: bytes, label: str | float | bool, weight: float | None
    ) -> None:
        records = records_of(format, data).records
        self._learned_now((records, [label], None if weight is None else [weight]))

    async def expire(self) -> int:
        """Forget records whose label has not come, or learn the label that is assumed then; returns how many."""
        if self.problem is not None:
            return 0
        before = time.time() - self.options.feedback_ttl
        operations: list[Operation] = []
        gone: list[str] = []
        assumed = 0
        async with self.lock:
            for id, format, data in self.read(lambda: self.log.overdue(before, _LABELS_AT_A_TIME)):
                if id in self._labels:
                    continue
                if self.options.assume_label is not None:
                    # Another model may have been loaded, which cannot learn it.
                    with contextlib.suppress(ApiError), self.all_or_nothing():
                        label = self.options.assume_label
                        self._learned_label(format, data, label, None)
                        event = self._event(events.LABEL, format, data, json.dumps(label), None, 1)
                        operations.append(event.operation())
                        assumed += 1
                row = "UPDATE ids SET state = ?, time = ?, format = NULL, body = NULL WHERE id = ? AND state = 0"
                operations.append((row, (events.EXPIRED, time.time(), id)))
                gone.append(id)
            if not gone or self.problem is not None:  # one was learned in part: the model is rebuilt
                return 0
            done = self.append(operations)
            self._expiring.update(gone)
        try:
            await self.durable(done)
            self.pending -= len(gone)
            self.labels["assumed"] += assumed
            self.labels["expired"] += len(gone) - assumed
        finally:
            self._expiring.difference_update(gone)
        return len(gone)

    def _known(self, id: str) -> Remembered | None:
        return self.read(lambda: self.log.remembered(id))

    # -- requests that may be repeated

    async def once(
        self, key: str, request: bytes, act: Callable[[Note], Awaitable[Answer]]
    ) -> tuple[Answer, bool]:
        """Do something at most once for each key; returns the answer, and whether it is one from before."""
        digest = hashlib.sha256(request).digest()
        started = self._keys.get(key)
        known = None if started is not None else self.read(lambda: self.log.answered(key))
        if (started or known or (digest,))[0] != digest:
            raise ApiError(422, "key_reused", "the idempotency key was used for another request")
        if started is not None:
            return await asyncio.shield(started[1]), True
        if known is not None:
            return json.loads(known[1]), True
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._keys[key] = (digest, done)

        def note(answer: Answer) -> list[Operation]:
            values = (key, time.time(), digest, json.dumps(answer))
            return [("INSERT INTO keys VALUES (?, ?, ?, ?)", values)]

        try:
            answer = await act(note)
        except BaseException as error:
            done.set_exception(error if isinstance(error, ApiError) else unavailable("it was not finished"))
            done.exception()  # whether or not somebody else waits for it
            raise
        else:
            done.set_result(answer)
            return answer, False
        finally:
            self._keys.pop(key, None)


Note = Callable[[Answer], "list[Operation]"]
"""What else is to be written together with an answer."""


def no_note(_: Answer) -> list[Operation]:
    """Nothing."""
    return []


def _begun(
    first: tuple[Batch, Floats] | None, steps: Iterator[tuple[Batch, Floats]]
) -> Iterator[tuple[Batch, Floats]]:
    if first is not None:
        yield first
        yield from steps
