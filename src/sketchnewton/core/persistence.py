"""Saving, loading, copying and pickling, once for everything that has a file."""

from __future__ import annotations

import contextlib
import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping

from sketchnewton.core import archive
from sketchnewton.core.checks import LARGEST_COUNT, all_finite, check_numbers, counts_fit
from sketchnewton.core.hints import TYPE_CHECKING, Any, ClassVar, Self, cast
from sketchnewton.core.names import persistent_classes
from sketchnewton.core.state import dtype_name
from sketchnewton.core.types import Array, Arrays, DTypeLike, Header, Path, np

if TYPE_CHECKING:
    from sketchnewton.core.state import Buffers

__all__ = [
    "HOMES",
    "Persistent",
    "class_named",
    "expect",
    "load",
    "part",
    "prefixed",
    "taken",
    "without_prefix",
]

HOMES = persistent_classes()
"""Every class that has a file, and its module. Names only: nothing is imported before a file asks for it."""

# What rebuilding from a file with a valid checksum but impossible content may raise.
_UNUSABLE = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class Persistent(ABC):
    """Something made of parameters and arrays, which can be saved, loaded, copied and pickled.

    A class hands what its constructor takes to `__init__`, as values that JSON can hold, and says in `_all_arrays`
    and `_restore` what else it is made of. If some of that is not an array, `_header` gives it, and `_rebuilt` is
    extended to take it back. One whose parts have files of their own extends `to_archive` and `_rebuilt`:
    `AsymmetricLearner` is the example.
    """

    noun: ClassVar[str] = "model"
    """What an error calls a thing of this kind."""
    _params: Header
    _takes_views: ClassVar[bool] = False
    """Whether `_rebuilt` also takes memoryviews, and then does without NumPy if possible."""

    def __init__(self, **parameters: object) -> None:
        self._params = parameters

    # -- for users

    @classmethod
    def defaults(cls) -> Header:
        """The constructor's arguments and their default values, `...` where there is none."""
        # What `inspect.signature` knows, but that takes a while to import.
        make: Any = cls.__init__
        code, values = make.__code__, make.__defaults__ or ()
        positional = code.co_varnames[1 : code.co_argcount]
        named = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
        given = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
        given |= make.__kwdefaults__ or {}
        return {name: given.get(name, ...) for name in (*positional, *named)}

    @property
    def params(self) -> Header:
        """The constructor's arguments: `type(x)(**x.params)` is a fresh one of the same kind."""
        return dict(self._params)

    def save(self, path: Path) -> None:
        """Write it to a `.skn` file, whole or not at all."""
        with self._exclusive():
            archive.write(path, *self._savable())

    def to_bytes(self) -> bytes:
        """The bytes of the file that `save` writes."""
        with self._exclusive():
            return archive.encode(*self._savable())

    def _savable(self) -> tuple[Header, Buffers]:
        """`to_archive`, unless no loader would take it: it must not replace a file that is good."""
        header, arrays = self.to_archive()
        for name, array in arrays.items():
            if not all_finite(array):
                raise ValueError(
                    f"cannot save a {type(self).__name__} whose {name!r} is not finite: weights of rows, labels "
                    "or values were too large for it"
                )
            if name.rpartition("/")[2].endswith(("counts", "position")) and not counts_fit(array):
                raise ValueError(
                    f"cannot save a {type(self).__name__} that has counted beyond {LARGEST_COUNT}"
                )
        return header, arrays

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read one of this class, or of a class that inherits from it; it continues bit for bit.

        Raises `archive.ModelFileError` for a file that is damaged or foreign, or holds something else.
        """
        return cls.from_archive(*archive.read_buffers(path), path)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `load` returns for a file of these bytes."""
        return cls.from_archive(*archive.decode_buffers(data))

    def to_archive(self) -> tuple[Header, Buffers]:
        """What a file holds. The arrays may be those in use: copy them before anything else is done."""
        header = {"class": type(self).__name__, "parameters": self._params, **self._header()}
        return header, self._all_arrays()

    @classmethod
    def from_archive(cls, header: Mapping[str, object], arrays: Buffers, path: Path = "model") -> Self:
        """Rebuild what `to_archive` gave. The arrays are taken over; `path` is what errors call the source."""
        name = header.get("class")
        try:
            kind = cls if cls._is_meant_by(name) else class_named(name)
        except ValueError as error:
            raise archive.ModelFileError(f"{os.fspath(path)}: {error}") from None
        if not issubclass(kind, cls):
            wanted = cls.noun if cls.__abstractmethods__ else cls.__name__
            raise archive.ModelFileError(f"{os.fspath(path)}: holds a {name}, not a {wanted}")
        try:
            return kind._rebuilt(header, taken(kind, arrays))
        except _UNUSABLE as error:
            why = _in_one_line(error)
            raise archive.ModelFileError(f"{os.fspath(path)}: not a usable {name}: {why}") from error

    def __repr__(self) -> str:
        usual = self.defaults()
        shown = [f"{name}={value!r}" for name, value in self._params.items() if usual[name] != value]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getstate__(self) -> tuple[Header, Arrays]:
        with self._exclusive():
            header, arrays = self.to_archive()
            from copy import deepcopy

            return deepcopy(header), {name: np.array(array) for name, array in arrays.items()}

    def __setstate__(self, state: tuple[Header, Arrays]) -> None:
        header, arrays = state
        # Copies: joblib hands out read-only maps of files.
        own = {name: np.array(array) for name, array in arrays.items()}
        from copy import deepcopy

        self.__dict__ = vars(self._rebuilt(deepcopy(header), own))

    # -- for those who inherit

    @abstractmethod
    def _all_arrays(self) -> Buffers:
        """The state that is arrays."""

    @abstractmethod
    def _restore(self, arrays: Arrays) -> None:
        """Take over what `_all_arrays` gave, or raise ValueError: files are not to be trusted."""

    def _header(self) -> Header:
        """The state that is no arrays, as what JSON can hold."""
        return {}

    def _exclusive(self) -> contextlib.AbstractContextManager[object]:
        """Within, no other thread changes it."""
        return contextlib.nullcontext()

    @classmethod
    def _rebuilt(cls, header: Mapping[str, object], arrays: Arrays) -> Self:
        """Make one of what `to_archive` gave; extended by classes that have a `_header`."""
        made = cls(**part(header, "parameters"))
        made._restore(arrays)
        return made

    @classmethod
    def _is_meant_by(cls, name: object) -> bool:
        """So that a class of somebody else, which `HOMES` does not have, can load its own files."""
        return name == cls.__name__ and not cls.__abstractmethods__


def load(path: Path) -> Persistent:
    """Read the model file at `path`, of any kind: a model, a learner, a sketch, or a learner of eigenvectors.

    It continues bit for bit. Raises `archive.ModelFileError` for a file that is damaged or foreign.

    >>> import os, tempfile
    >>> from sketchnewton import AdaGrad, load
    >>> path = os.path.join(tempfile.mkdtemp(), "model.skn")
    >>> AdaGrad().save(path)
    >>> load(path)
    AdaGrad()
    """
    return Persistent.load(path)


def class_named(name: object) -> type[Persistent]:
    """The class of that name in `HOMES`; ValueError if there is none."""
    if not isinstance(name, str) or name not in HOMES:
        raise ValueError(f"unknown class {name!r}")
    kind: type[Persistent] = getattr(importlib.import_module(f"sketchnewton.{HOMES[name]}"), name)
    return kind


def expect(arrays: Arrays, name: str, dtype: DTypeLike, shape: tuple[int | None, ...]) -> Array:
    """The array of that name from a file; None in `shape` fits any length. ValueError if it is another."""
    if name not in arrays:
        raise ValueError(f"array {name!r} is missing")
    array: Any = arrays[name]
    fits = array.ndim == len(shape) and all(
        want in (None, have) for want, have in zip(shape, array.shape, strict=True)
    )
    same = dtype_name(array) == dtype if isinstance(dtype, str) else array.dtype == dtype
    if not same or not fits:
        raise ValueError(f"array {name!r} has the wrong type or shape")
    if isinstance(array, memoryview) or array.dtype.kind in "fi":
        check_numbers(name, array)
    found: Array = array
    return found


def taken(kind: type[Persistent], arrays: Buffers) -> Arrays:
    """The arrays of a file as this class takes them back."""
    if kind._takes_views:
        return dict(arrays)  # type: ignore[arg-type]
    return {name: np.asarray(array) for name, array in arrays.items()}


def part(header: Mapping[str, object], name: str) -> Header:
    """What a header has by this name: a header again, as its user finds out, since files are not to be trusted."""
    return cast("Header", header[name])


def prefixed(prefix: str, arrays: Buffers) -> Buffers:
    """The arrays of a part, named so that they can stand beside those of others."""
    return {prefix + name: array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """What `prefixed` was given, of all arrays of a file."""
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


def _in_one_line(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return " ".join(str(error).split()) or type(error).__name__
