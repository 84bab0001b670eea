"""A process that forks while its threads learn: the child works, or says why not, and never waits for ever."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from sketchnewton.features.names import Names
from sketchnewton.learners import AdaGrad, OneVsAll, SketchedNewton
from sketchnewton.learners.base import Learner

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def in_child(work: Callable[[], object], seconds: float = 20.0) -> str:
    """What `work` gives in a child process; "hangs" if it does not end in time."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = str(work())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(into, answer.encode()[:4000])
        os._exit(0)
    os.close(into)
    until = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hangs"
        time.sleep(0.01)
    with os.fdopen(out, "rb") as file:
        return file.read().decode()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("make", [lambda: SketchedNewton("fd", 5), lambda: OneVsAll(AdaGrad, 3)])
def test_a_learner_in_use_is_refused_and_others_learn(make: Callable[[], Learner]) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 200))
    y = rng.integers(2, size=len(X)) * 1.0
    busy, free = make(), make()
    free.learn(X[:10], y[:10])
    expected = free.predict(X[:3]).tolist()
    thread = threading.Thread(target=lambda: busy.learn(X, y))
    thread.start()
    while busy.rows_seen == 0:
        time.sleep(0.001)
    answers = [in_child(lambda: busy.predict(X[:1])), in_child(lambda: free.predict(X[:3]).tolist())]
    thread.join()
    assert answers[0].startswith(
        "RuntimeError: another thread was using this learner when the process was forked"
    )
    assert answers[1] == str(expected)
    assert busy.rows_seen == len(X)
    assert in_child(lambda: busy.learn(X[:2], y[:2]).shape[0]) == "2"


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_names_are_whole_in_a_child() -> None:
    names = Names(exact=True)
    stop = threading.Event()

    def add() -> None:
        k = 0
        while not stop.is_set():
            names.indices_of([f"n{k + i}" for i in range(500)])
            k += 500

    thread = threading.Thread(target=add)
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        answers = [in_child(lambda: len(names.indices_of(["a", "b"]))) for _ in range(5)]
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(0.005)
    assert answers == ["2"] * 5
