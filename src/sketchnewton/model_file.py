"""Read a model file back as what it holds: a learner or a sketch, whatever its class.

>>> import tempfile, os
>>> from sketchnewton import AdaGrad, load
>>> path = os.path.join(tempfile.mkdtemp(), "model.skn")
>>> AdaGrad().save(path)
>>> type(load(path)).__name__
'AdaGrad'
"""

from __future__ import annotations

import os

from sketchnewton import learners, sketches
from sketchnewton.core import archive

__all__ = ["load", "load_learner", "load_sketch"]

Path = str | os.PathLike[str]


def load(path: Path) -> learners.Learner | sketches.Sketch:
    """The learner or sketch saved at `path`, ready to go on as if it had never stopped.

    Raises `archive.ModelFileError` for a file that is damaged, foreign, or of a class that is not known here.
    """
    header, arrays = archive.read(path)
    name = header.get("class")
    for module, base in ((learners, learners.Learner), (sketches, sketches.Sketch)):
        kind = getattr(module, name, None) if isinstance(name, str) and name in module.__all__ else None
        if isinstance(kind, type) and issubclass(kind, base) and kind is not base:
            return kind.from_archive(header, arrays, path)
    if header.get("random") is not None:  # only learners of eigenvectors keep a generator
        raise archive.ModelFileError(
            f"{os.fspath(path)}: holds a {name}, a learner of eigenvectors: use sketchnewton.eigen.load"
        )
    raise archive.ModelFileError(f"{os.fspath(path)}: unknown learner class {name!r}")


def load_learner(path: Path) -> learners.Learner:
    """The learner saved at `path`; a sketch is refused like any other file."""
    model = load(path)
    if isinstance(model, sketches.Sketch):
        raise archive.ModelFileError(
            f"{os.fspath(path)}: holds a sketch ({type(model).__name__}), not a learner"
        )
    return model


def load_sketch(path: Path) -> sketches.Sketch:
    """The sketch saved at `path`; a learner is refused like any other file."""
    model = load(path)
    if isinstance(model, learners.Learner):
        raise archive.ModelFileError(
            f"{os.fspath(path)}: holds a learner ({type(model).__name__}), not a sketch"
        )
    return model
