"""Tables of plain names: what choices on the command line, documentation and tests are made from.

Nothing here imports what it names.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DEFAULT_LOSS", "LOSSES", "LOSS_PARAMETERS", "SOFTMAX_LOSS"]

LOSSES: tuple[str, ...]
"""The losses that the kernels know (`native/core/losses.hpp`); `sketchnewton.losses.<name>` has the class."""

LOSS_PARAMETERS: dict[str, str]
"""The name of a loss's parameter, where it has one."""

DEFAULT_LOSS = "squared"
SOFTMAX_LOSS = "logistic"
"""What several classes are learned with by a learner that has a softmax."""


def __getattr__(name: str) -> Any:
    """What the compiled core has a table of, when it is first asked for: other names do not take the core."""
    if name not in ("LOSSES", "LOSS_PARAMETERS"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sketchnewton import _native

    globals().update(  # found without us from now on
        LOSSES=tuple(loss for loss, _ in _native.LOSSES),
        LOSS_PARAMETERS={loss: parameter for loss, parameter in _native.LOSSES if parameter},
    )
    return globals()[name]
