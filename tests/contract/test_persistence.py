"""Everything that has a file: it comes back whole, by every way, or is refused with one line."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sketchnewton
from sketchnewton.core import archive
from sketchnewton.core.archive import ModelFileError
from sketchnewton.core.persistence import HOMES, Persistent, class_named
from sketchnewton.eigen import AsymmetricLearner, EigenLearner, FollowPerturbedLeader
from sketchnewton.features import Features
from sketchnewton.learners import AdaGrad, ClassBank, Learner, OneVsAll, SharedNewton
from sketchnewton.model import Model
from sketchnewton.sketches import FrequentDirections, Sketch

BY_PARAMETERS = [
    name for name in HOMES if name != "Model"
]  # which is made of parts: tests/contract/test_model.py
ROWS = np.random.default_rng(0).standard_normal((60, 7))


def made(name: str) -> Any:
    """One of that class, with parameters that are not all the usual ones."""
    special: dict[str, Callable[[], Persistent]] = {
        "ClassBank": lambda: ClassBank(3, 4, intercept=False),
        "OneVsAll": lambda: OneVsAll(AdaGrad, 3, {"eta": 0.5}),
        "SharedNewton": lambda: SharedNewton(3, loss="logistic"),
        "AsymmetricLearner": lambda: AsymmetricLearner(FollowPerturbedLeader(7, horizon=9), (3, 4)),
        "ExactCovariance": lambda: sketchnewton.ExactCovariance(dtype="float32"),
        "Model": lambda: Model(AdaGrad(eta=0.5), features=Features(bits=10), exact_names=True),
    }
    if name in special:
        return special[name]()
    kind = class_named(name)
    if issubclass(kind, Learner):
        return kind(loss="squared")
    return kind(4, dtype="float32") if issubclass(kind, Sketch) else kind(7, random_state=3)


def taught(name: str) -> Any:
    thing = made(name)
    advance(thing, ROWS[:30])
    return thing


def advance(thing: Any, rows: Any) -> list[Any]:
    """Let it learn more rows; what it said meanwhile."""
    if isinstance(thing, Sketch):
        return [thing.update(rows).covariance()]
    if isinstance(thing, Model):
        return [thing.learn([dict(enumerate(row)) for row in rows.tolist()], np.sign(rows[:, 0]))]
    if isinstance(thing, Learner):
        labels = np.arange(len(rows)) % 3 if hasattr(thing, "intercepts") else np.sign(rows[:, 0])
        return [thing.learn(rows, labels)]
    said = []
    for row in rows / np.linalg.norm(rows, axis=1, keepdims=True):
        said.append(np.hstack(thing.predict()))
        thing.observe(np.outer(row[:3], row[3:]) if isinstance(thing, AsymmetricLearner) else row)
    return said


def content(thing: Any) -> tuple[Any, dict[str, tuple[str, bytes]]]:
    header, arrays = thing.to_archive()
    seen = {name: np.asarray(array) for name, array in arrays.items()}
    return header, {name: (array.dtype.str, array.tobytes()) for name, array in seen.items()}


WAYS: dict[str, Callable[[Any, Path], Any]] = {
    "a file": lambda thing, path: (thing.save(path), type(thing).load(path))[1],
    "a file of any class": lambda thing, path: (thing.save(path), sketchnewton.load(path))[1],
    "bytes": lambda thing, _: type(thing).from_bytes(thing.to_bytes()),
    "pickle": lambda thing, _: pickle.loads(pickle.dumps(thing)),
    "copy": lambda thing, _: copy.copy(thing),
    "deepcopy": lambda thing, _: copy.deepcopy(thing),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HOMES)
def test_what_comes_back_goes_on_bit_for_bit(name: str, way: str, tmp_path: Path) -> None:
    thing = taught(name)
    back = WAYS[way](thing, tmp_path / "m.skn")
    assert type(back) is type(thing)
    assert content(back) == content(thing)
    assert repr(back) == repr(thing)
    before = content(thing)
    said = advance(back, ROWS[30:])
    assert content(thing) == before  # nothing is shared
    np.testing.assert_array_equal(said, advance(thing, ROWS[30:]))
    assert content(back) == content(thing)


@pytest.mark.parametrize("name", HOMES)
def test_arrays_of_a_pickle_may_be_read_only(name: str) -> None:
    """As those that joblib maps into the memory of its workers are."""
    thing = taught(name)
    header, arrays = thing.__getstate__()
    for array in arrays.values():
        array.flags.writeable = False
    back = object.__new__(type(thing))
    back.__setstate__((header, arrays))
    np.testing.assert_array_equal(advance(back, ROWS[30:]), advance(thing, ROWS[30:]))


@pytest.mark.parametrize("name", BY_PARAMETERS)
def test_a_fresh_one_of_the_same_kind(name: str) -> None:
    thing = made(name)
    again = type(thing)(**thing.params)
    assert repr(again) == repr(thing)
    assert content(again) == content(thing)
    assert set(thing.params) <= set(type(thing).defaults())


@pytest.mark.parametrize("name", HOMES)
def test_a_file_is_the_bytes_and_the_bytes_are_a_file(name: str, tmp_path: Path) -> None:
    thing = taught(name)
    thing.save(tmp_path / "m.skn")
    assert (tmp_path / "m.skn").read_bytes() == thing.to_bytes()


@pytest.mark.parametrize("name", BY_PARAMETERS)
def test_what_contradicts_itself_is_refused_with_one_line(name: str, tmp_path: Path) -> None:
    """The checksum is right, the content is not: whatever goes wrong inside, the error is one line."""
    path = tmp_path / "m.skn"
    header, arrays = taught(name).to_archive()
    parameters = header["parameters"]
    variants: list[tuple[Any, Any]] = [
        ({k: v for k, v in header.items() if k != "parameters"}, arrays),
        ({**header, "parameters": []}, arrays),
        ({**header, "parameters": {**parameters, "color": "red"}}, arrays),
        *(({**header, "parameters": {**parameters, key: "red"}}, arrays) for key in _typed(parameters)),
        *(
            ({**header, "parameters": {**parameters, key: 10**30}}, arrays)
            for key in _sizes(name, parameters)
        ),
        *((header, {k: v for k, v in arrays.items() if k != gone}) for gone in _needed(arrays)),
        *(
            (header, {**arrays, key: _longer(value)})
            for key, value in arrays.items()
            if key not in _ANY_LENGTH
        ),
        *((header, {**arrays, key: np.arange(20, dtype=np.uint8)}) for key in arrays),
    ]
    for changed, its in variants:
        archive.write(path, changed, its)
        with pytest.raises(ModelFileError) as caught:
            sketchnewton.load(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: not a usable {name}: "), message
        assert "\n" not in message


_ANY_LENGTH = ("recent", "merged")


def _typed(parameters: dict[str, Any]) -> list[str]:
    """Anything is True or False."""
    return [name for name, value in parameters.items() if not isinstance(value, bool)]


def _sizes(name: str, parameters: dict[str, Any]) -> list[str]:
    """Sizes that memory is taken for; these sketches grow with their rows."""
    grows = name == "AdaLR" or name.endswith("Directions")
    return [key for key in parameters if key in ("n", "classes", "shape", *["sketch_size"][grows:])]


def _needed(arrays: dict[str, Any]) -> list[str]:
    """Without a prediction or pair, it is drawn again."""
    return [name for name in arrays if name.rpartition(".")[2] not in ("prediction", "pair")]


def _longer(array: Any) -> Any:
    flat = np.ravel(array)
    return np.concatenate([flat, flat, np.ones(3, flat.dtype)])


@pytest.mark.parametrize("name", HOMES)
def test_damage_is_refused_by_every_loader(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.skn"
    data = taught(name).to_bytes()
    for changed in (data[:-1], data[: len(data) // 2], data + b"\0", b"", data[:99] + b"?" + data[100:]):
        path.write_bytes(changed)
        for load in (sketchnewton.load, class_named(name).load):
            with pytest.raises(ModelFileError, match=r"m\.skn: [^\n]*$"):
                load(path)
        with pytest.raises(ModelFileError, match=r"^[^\n]*$"):
            class_named(name).from_bytes(changed)


def test_the_table_of_classes_is_complete() -> None:
    for module in pkgutil.walk_packages(sketchnewton.__path__, "sketchnewton."):
        if module.name.split(".")[1] in ("learners", "sketches", "eigen"):
            importlib.import_module(module.name)
    found, left = set(), [Persistent]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        hidden = kind.__abstractmethods__ or kind.__name__.startswith("_")
        if kind.__module__.startswith("sketchnewton.") and not hidden:
            found.add((kind.__name__, kind.__module__))
    assert found == {(name, f"sketchnewton.{home}") for name, home in HOMES.items()}


def test_a_base_class_opens_what_inherits_from_it_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "m.skn"
    for name in HOMES:
        made(name).save(path)
        for base, noun in (
            (Learner, "learner"),
            (Sketch, "sketch"),
            (EigenLearner, "learner of eigenvectors"),
        ):
            if issubclass(class_named(name), base):
                assert type(base.load(path)).__name__ == name
            else:
                with pytest.raises(ModelFileError, match=f"holds a {name}, not a {noun}$"):
                    base.load(path)


def test_a_class_of_somebody_else_loads_its_own_files(tmp_path: Path) -> None:
    class Mine(FrequentDirections):
        pass

    path = tmp_path / "m.skn"
    Mine(3).update(ROWS).save(path)
    assert Mine.load(path).rows_seen == 60
    with pytest.raises(ModelFileError, match="unknown class 'Mine'"):
        sketchnewton.load(path)
