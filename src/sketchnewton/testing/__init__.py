"""Contract tests for those who write a learner, a sketch, a loss or a format: what our own have to pass.

Each check raises AssertionError that names the promise which was broken. None of them needs a test framework;
with one, the tables of promises give a test for each:

    @pytest.mark.parametrize("promise", LEARNER_PROMISES)
    def test_my_learner(promise):
        check_learner(MyLearner, only=[promise])
"""

from sketchnewton.testing.learners import LEARNER_PROMISES, check_learner
from sketchnewton.testing.losses import LOSS_PROMISES, check_loss
from sketchnewton.testing.readers import READER_PROMISES, check_reader
from sketchnewton.testing.sketches import SKETCH_PROMISES, Theory, check_sketch

__all__ = [
    "LEARNER_PROMISES",
    "LOSS_PROMISES",
    "READER_PROMISES",
    "SKETCH_PROMISES",
    "Theory",
    "check_learner",
    "check_loss",
    "check_reader",
    "check_sketch",
]
