"""Read a model file back as a learner, whatever its class.

>>> import tempfile, os
>>> from sketchnewton import AdaGrad, load
>>> path = os.path.join(tempfile.mkdtemp(), "model.skn")
>>> AdaGrad().save(path)
>>> type(load(path)).__name__
'AdaGrad'
"""

from __future__ import annotations

import os

from sketchnewton import archive, learners

__all__ = ["load"]


def load(path: str | os.PathLike[str]) -> learners.Learner:
    """The learner saved at `path`, ready to predict and to go on learning as if it had never stopped.

    Raises `archive.ModelFileError` for a file that is damaged, foreign, or of a class that is not known here.
    """
    header, arrays = archive.read(path)
    name = header.get("class")
    kind = getattr(learners, name, None) if isinstance(name, str) and name in learners.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, learners.Learner)) or kind is learners.Learner:
        if header.get("random") is not None:  # only learners of eigenvectors keep a generator
            raise archive.ModelFileError(
                f"{os.fspath(path)}: holds a {name}, a learner of eigenvectors: use sketchnewton.eigen.load"
            )
        raise archive.ModelFileError(f"{os.fspath(path)}: unknown learner class {name!r}")
    return kind.from_archive(header, arrays, path)
