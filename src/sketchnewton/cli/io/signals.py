"""Ctrl-C, SIGTERM and SIGHUP end a run between two batches, not in the middle of one."""

from __future__ import annotations

import signal
import threading

from sketchnewton.core.hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")

__all__ = ["GracefulStop", "Stopped"]

# Windows has no SIGHUP.
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(BaseException):
    """The user or the system asked to stop: an interrupt, which no handler of errors may take for one."""


class GracefulStop:
    """While entered, a first SIGINT, SIGTERM or SIGHUP is only recorded, so that the batch is learned to its end.

    Waiting for input is different: it may last forever. A signal during `wait(function, …)`, or before it,
    raises `Stopped` there. A second signal ends the program at once.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._waiting = False
        self._previous: dict[int, Any] = {}

    @property
    def exit_code(self) -> int:
        """0, or 128 + the number of the signal that came, by the convention of shells."""
        return 0 if self.signal is None else 128 + self.signal

    def wait(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """`function(…)`, interrupted by `Stopped` when a signal comes."""
        try:
            self._waiting = True
            if self.signal is not None:
                raise Stopped
            return function(*args, **kwargs)
        finally:
            self._waiting = False

    def __enter__(self) -> GracefulStop:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python allows no handlers
            # What is ignored stays ignored: `nohup skn …` is meant to outlive its terminal.
            heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
            self._previous = {number: signal.signal(number, self._handle) for number in heard}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        if self._waiting:
            self._waiting = False
            raise Stopped
