"""Every public name is in the reference, and its docstring describes every parameter."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import sketchnewton

ROOT = Path(__file__).parents[2]
SOURCE = ast.parse((ROOT / "docs" / "reference.py").read_text(encoding="utf-8"))
(TABLE,) = [node for node in SOURCE.body if isinstance(node, ast.Assign) and node.targets[0].id == "MODULES"]
MODULES: list[str] = list(ast.literal_eval(TABLE.value))
NEEDS = {
    "sketchnewton.torch": "torch",
    "sketchnewton.river": "river",
    "sketchnewton.dask": "dask",
    "sketchnewton.spark": "pyspark",
}


def public(name: str) -> dict[str, Any]:
    """The classes and functions that a module exports."""
    module = importlib.import_module(name)
    names = [n for n in getattr(module, "__all__", None) or dir(module) if not n.startswith("_")]
    if name == "sketchnewton":
        names = [n for n in dir(module) if not n.startswith("_")]
    objects = {n: getattr(module, n) for n in names}
    return {
        n: o
        for n, o in objects.items()
        if (inspect.isclass(o) or inspect.isfunction(o)) and o.__module__.startswith("sketchnewton")
    }


def own(kind: type) -> Iterator[type]:
    return (base for base in kind.__mro__ if base.__module__.startswith("sketchnewton"))


def described_fields(kind: type) -> set[str]:
    """Fields of a record with a docstring of their own."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    pairs = zip(node.body, node.body[1:], strict=False)
    return {
        field.target.id
        for field, text in pairs
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
    }


def listed(text: str) -> set[str]:
    """The names in a section of parameters, which are not indented; several may share one description."""
    sections = re.findall(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    heads = [
        line.partition(" :")[0]
        for section in sections
        for line in re.findall(r"^\S.*", section, re.MULTILINE)
    ]
    return {name for head in heads for name in re.findall(r"\w+", head)}


def marked(name: str, text: str) -> bool:
    """Whether prose speaks of the parameter by its name: `name`, ``name`` or `name=value`."""
    return re.search(rf"`{re.escape(name)}(=[^`]*)?`", text) is not None


def elsewhere(item: Any, text: str) -> str:
    """The docstrings that this one refers to: "Parameters are those of `SketchedNewtonClassifier`"."""
    names = re.findall(r"[Pp]arameters (?:and attributes )?(?:are |as )?(?:those of|in) `(\w+)`", text)
    module = inspect.getmodule(item)
    found = [getattr(module, name, None) or getattr(sketchnewton, name) for name in names]
    return "\n".join(inspect.getdoc(other) or "" for other in found)


def undescribed(item: Any) -> list[str]:
    """The parameters that no docstring of a function, or of a class and those it inherits from, describes."""
    if inspect.isclass(item):
        text = "\n".join(inspect.getdoc(kind) or "" for kind in own(item))
        known = set().union(*(described_fields(kind) for kind in own(item)))
    else:
        text, known = inspect.getdoc(item) or "", set()
    text += "\n" + elsewhere(item, text)
    known |= listed(text)
    try:
        parameters = inspect.signature(item).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [
        p.name
        for p in parameters
        if p.kind not in variadic and p.name not in known and not marked(p.name, text)
    ]


@pytest.mark.parametrize("name", MODULES)
def test_every_parameter_is_described(name: str) -> None:
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"needs {NEEDS[name]}")
    objects = public(name)
    assert objects
    assert not [n for n, item in objects.items() if not inspect.getdoc(item)]
    assert {n: undescribed(item) for n, item in objects.items() if undescribed(item)} == {}


def test_every_public_package_has_a_page() -> None:
    """Packages with an `__all__` of public names are in the reference, but for the layers beneath."""
    package = ROOT / "src" / "sketchnewton"
    inner = {"cli", "core", "serve"}
    folders = {path.parent.name for path in package.glob("*/__init__.py")} - inner
    assert {f"sketchnewton.{folder}" for folder in folders} <= set(MODULES)


def test_a_missing_description_would_be_seen() -> None:
    def scale(row: float, factor: float) -> float:
        """Multiplies a `row` by a factor."""
        return row * factor

    assert undescribed(scale) == ["factor"]  # mentioned, but not as a parameter
