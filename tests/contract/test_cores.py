"""Where the core is built for more than one kind of processor, all builds give the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sketchnewton import _native

PROGRAM = """
import hashlib
import numpy as np
from scipy.sparse import random as random_rows
from sketchnewton import AdaGrad, ClassBank, FrequentDirections, NewtonBank, SketchedAdaGrad, SketchedNewton

rng = np.random.default_rng(0)
X = random_rows(3000, 500, 0.03, "csr", rng=rng)
y = np.sign(X @ rng.standard_normal(500) + 1e-9)
learners = [NewtonBank(), NewtonBank(loss="logistic", dtype="float64"), AdaGrad()]
for sketch in ("none", "oja", "fd", "rfd", "pfd", "rp"):
    learners.append(SketchedNewton(sketch))
    learners.append(SketchedNewton(sketch, 5, diagonal=True, loss="logistic", dtype="float64"))
learners += [SketchedAdaGrad(sketch) for sketch in ("rp", "fd", "rfd")]
for learner in learners:
    learner.learn(X, y)
    print(learner, hashlib.sha256(learner.predict(X).tobytes()).hexdigest())
for dtype in ("float32", "float64"):
    learner = ClassBank(5, dtype=dtype)
    learner.learn(X, np.digitize(X @ rng.standard_normal(500), (-2.0, -0.5, 0.5, 2.0)))
    print(learner, hashlib.sha256(learner.predict(X).tobytes()).hexdigest())
    sketch = FrequentDirections(20, dtype=dtype).update(X)
    print(sketch, hashlib.sha256(sketch.matrix.tobytes()).hexdigest())
loaded = [line.split()[-1] for line in open("/proc/self/maps") if "_native_" in line]
print(loaded[0].rsplit("/")[-1].split(".")[0])
"""

BASELINE = list(Path(_native.__file__ or "").parent.glob("_native_baseline.*"))


def bits(**environment: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return run.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(not BASELINE, reason="one build of the core serves all processors here")
def test_builds_agree_to_the_bit() -> None:
    *here, core = bits()
    *baseline, plain = bits(SKETCHNEWTON_BASELINE="1")
    assert plain == "_native_baseline"
    if core == plain:
        pytest.skip("this processor has no vectors of 256 bits")
    assert len(here) == 22
    assert here == baseline
