"""The map in CONTRIBUTING.md is that of the tree, and of the layers that `lint-imports` enforces."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "sketchnewton"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def modules() -> set[str]:
    """The modules and packages at the top of the package."""
    files = {path.name.removesuffix(".py") for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return files | folders | {"_native"}


def contract() -> list[set[str]]:
    """The layers that are enforced, top first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (rule,) = settings["tool"]["importlinter"]["contracts"]
    return [set(re.findall(r"sketchnewton\.(\w+)", layer)) for layer in rule["layers"]]


def drawn() -> list[set[str]]:
    """The layers of the map, top first: the names that a line begins with, before two blanks or more."""
    block = TEXT.split("## The map")[1].split("```")[1]
    return [set(re.split(r"\s{2,}", line)[0].split()) for line in block.strip().splitlines()]


def test_the_map_has_the_layers_that_are_enforced() -> None:
    assert drawn() == contract(), "the map in CONTRIBUTING.md is not the contract in pyproject.toml"


def test_every_module_is_in_one_layer() -> None:
    names = [name for layer in contract() for name in layer]
    assert len(names) == len(set(names))
    assert set(names) == modules(), "a new module needs its layer in pyproject.toml and in CONTRIBUTING.md"


def test_paths_in_the_text_exist() -> None:
    prose = re.sub(r"^```.*?^```", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    words = [word for quoted in re.findall(r"`([^`]+)`", prose) for word in quoted.split()]
    paths = {word for word in words if re.fullmatch(r"[\w./-]+(/|\.(py|pyi|hpp|cpp|md|toml|txt))", word)}
    linked = set(re.findall(r"\]\(([^)#:]+)\)", prose))
    assert len(paths) > 30
    missing = [
        path
        for path in sorted(paths | linked)
        if not any((base / path).exists() for base in (ROOT, PACKAGE)) and not path.startswith(".venv/")
    ]
    assert not missing


def test_folders_of_tests_and_kernels_are_named() -> None:
    prose = TEXT.split("## The map")[1].split("### Where")[0]
    for room in ("tests", "native"):
        folders = {path.name for path in (ROOT / room).iterdir() if path.is_dir()} - {"__pycache__"}
        named = set(re.findall(rf"`{room}/(\w+)/`", prose))
        assert folders == named, room


def test_the_makefile_has_the_targets_that_are_named() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, flags=re.MULTILINE))
    named = set(re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", TEXT, flags=re.MULTILINE))
    assert {"quick", "test", "check"} <= {either for pair in named for either in pair if either} <= targets
