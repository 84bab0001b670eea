"""A model whose changes are on the disk before anybody is told of them.

If the log cannot be written, all that waits for it is refused and the model is rebuilt from the log: what was
not acknowledged is as if it had never been learned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.log import LogError, Operation
from sketchnewton.serve.predictor import Predictor, RowLimits
from sketchnewton.serve.replaying import Standing
from sketchnewton.serve.state import State
from sketchnewton.serve.window import Window

__all__ = ["Durable", "EngineOptions", "storage_error", "unavailable"]


Read = TypeVar("Read")


@dataclass(frozen=True)
class EngineOptions:
    """What the operator decides."""

    feedback_ttl: float = 86400.0
    """Seconds for which a record waits for its label, and for which an answer is kept to be given again."""
    assume_label: str | float | bool | None = None
    """The label of records whose label has not come in time; None: they are forgotten."""
    queue: int = 1000
    limits: RowLimits = field(default_factory=RowLimits)


class Durable(Predictor):
    """The model, how it has done so far, and what waits for the disk."""

    def __init__(self, state: State, standing: Standing, options: EngineOptions) -> None:
        super().__init__(standing.model, options.limits)
        self.state = state
        self.log = state.log
        self.options = options
        self.score = standing.score
        self.seq = standing.seq
        """Of the last event that the model has learned."""
        self.problem: LogError | None = None
        """Why nothing can be learned now."""
        self.window = Window()
        self.waiting = 0
        self.pending = self.log.pending()
        self.lock = asyncio.Lock()
        """Held by what learns in several steps, and by what replaces the model."""
        self._repairing: asyncio.Task[None] | None = None

    def all_or_nothing(self) -> _AllOrNothing:
        """Should something fail when a part has been learned, the model is rebuilt from the log."""
        return _AllOrNothing(self)

    def check_writable(self) -> None:
        """Refuse what cannot be kept now, or has to wait for too long."""
        if self.problem is not None:
            raise storage_error(self.problem)
        if self.waiting >= self.options.queue:
            raise ApiError(429, "busy", "too many requests wait: try again later", (("Retry-After", "1"),))

    async def written(self, operations: Sequence[Operation]) -> None:
        """Write these and wait for the disk."""
        await self.own(self.append(operations))

    def append(self, operations: Sequence[Operation]) -> asyncio.Future[None]:
        """Give these to the log, in order; the result is there when the disk has them."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def told(error: LogError | None) -> None:
            if done.done():  # its client has gone
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        self.waiting += 1
        self.log.append(operations, told)
        return done

    def settled(self, count: int, error: LogError | None) -> None:
        """So many writes are done, whether or not somebody still waits for them."""
        self.waiting -= count
        if error is not None and self._repairing is None:
            self.rebuild(error)

    def rebuild(self, problem: LogError) -> None:
        """The model is ahead of the log, for this reason: take it back."""
        self.problem = problem
        self._repairing = asyncio.get_running_loop().create_task(self._repair())

    @staticmethod
    async def own(done: asyncio.Future[None]) -> None:
        """Wait for the disk, for what nobody else waits for."""
        try:
            await done
        except LogError as error:
            raise storage_error(error) from None

    @staticmethod
    async def durable(done: asyncio.Future[None]) -> None:
        """Wait for the disk, as others may."""
        try:
            await asyncio.shield(done)
        except LogError as error:
            raise storage_error(error) from None

    def read(self, ask: Callable[[], Read]) -> Read:
        """What the log says."""
        try:
            return ask()
        except LogError as error:
            raise storage_error(error) from None

    async def _repair(self) -> None:
        """Rebuild the model from the log, then try whether there is room again, until there is."""
        rebuilt = False
        while True:  # nothing is learned before it ends: `check_writable`
            try:
                if not rebuilt:
                    await self._rebuild()
                    rebuilt = True
                self.log.resume()
                probe = ("INSERT OR REPLACE INTO facts VALUES ('probe', ?)", (str(time.time()) * 500,))
                await self.append([probe])
                break
            except LogError as error:
                self.problem = error
            except (OSError, ValueError) as error:
                self.problem = LogError(f"the model cannot be rebuilt: {error}")
            await asyncio.sleep(1.0)
        self.problem = self._repairing = None

    async def _rebuild(self) -> None:
        async with self.lock:
            while self.waiting:  # all that hangs on the failure is told of it first
                await asyncio.sleep(0.01)
            standing = await asyncio.to_thread(self.state.rebuild)
            self.model, self.score, self.seq = standing.model, standing.score, standing.seq
            self.window = Window()  # its rows may be those of a model that was not to be
            self.pending = self.log.pending()


class _AllOrNothing:
    def __init__(self, model: Durable) -> None:
        self._model = model
        self._before = model.version

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        model = self._model
        if error is not None and model.version != self._before and model.problem is None:
            model.rebuild(LogError("a request failed halfway: the model is being rebuilt"))


def storage_error(error: LogError) -> ApiError:
    """What a client is told when the log fails."""
    if error.full:
        return ApiError(
            507, "storage_full", "there is no room on the disk: nothing is learned until there is"
        )
    return unavailable("the log cannot be written or read")


def unavailable(why: str) -> ApiError:
    """Not now."""
    return ApiError(503, "unavailable", f"{why}: try again later", (("Retry-After", "1"),))
