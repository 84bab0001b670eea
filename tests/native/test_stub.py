"""`_native.pyi`, which type checkers read, declares what the compiled core has: names, parameters, defaults."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

from sketchnewton import _native

STUB = Path(__file__).parents[2] / "src" / "sketchnewton" / "_native.pyi"
# What every object has, and what the stub need not say.
GENERIC = {*dir(object), *dir(type), "__buffer__", "__release_buffer__"}


def parameters(arguments: ast.arguments) -> list[tuple[str, bool]]:
    """Names, and whether there is a default. What can be passed by position alone needs no name."""
    names = [str(at) for at in range(len(arguments.posonlyargs))] + [
        argument.arg for argument in arguments.args
    ]
    required = len(names) - len(arguments.defaults)
    ordinary = [(name, at >= required) for at, name in enumerate(names)]
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return ordinary + [(argument.arg, default is not None) for argument, default in keyword]


def declared(body: list[ast.stmt]) -> dict[str, Any]:
    """Functions by their parameters, classes by their members, everything else by name alone."""
    found: dict[str, Any] = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = declared(node.body)
        elif isinstance(node, ast.FunctionDef):
            plain = any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list)
            found[node.name] = None if plain else parameters(node.args)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = None
    return found


def signature_parameters(text: str) -> list[tuple[str, bool]]:
    """Those of nanobind's text, in which only types of arrays and defaults are not Python."""
    bare = re.sub(r"ndarray\[[^\]]*\]", "ndarray", text).replace("\\", "")
    (node,) = ast.parse(bare + ": ...").body
    assert isinstance(node, ast.FunctionDef)
    return parameters(node.args)


def compiled(owner: Any) -> dict[str, Any]:
    """The same of the compiled core, whose functions carry their own signature."""
    found: dict[str, Any] = {}
    for name, item in vars(owner).items():
        signatures = getattr(item, "__nb_signature__", None)
        if inspect.isclass(item):
            found[name] = compiled(item)
        elif signatures is not None:
            # Overloads are for types of numbers alone.
            versions = [signature_parameters(text) for text, *_ in signatures]
            assert all(version == versions[0] for version in versions), name
            found[name] = versions[0]
        elif not name.startswith("__") or name == "__len__":
            found[name] = None
    return found


def without_generic(members: dict[str, Any]) -> dict[str, Any]:
    return {
        name: without_generic(what) if isinstance(what, dict) else what
        for name, what in members.items()
        if name == "__init__" or name not in GENERIC
    }


def test_the_stub_is_that_of_the_core() -> None:
    stub = without_generic(declared(ast.parse(STUB.read_text(encoding="utf-8")).body))
    core = without_generic(compiled(_native))
    assert sorted(stub) == sorted(core)
    assert {name: (stub[name], core[name]) for name in core if stub[name] != core[name]} == {}
