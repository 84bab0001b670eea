"""What surrounds the code is as it should be: workflows run make targets that exist, links lead somewhere."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import sketchnewton

ROOT = Path(__file__).parents[2]
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[bi]*.yml"))
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = ["SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "README.md", "CHANGELOG.md"]


@pytest.mark.parametrize(
    ("schema", "paths"), [("github-workflows", WORKFLOWS), ("github-issue-forms", FORMS)]
)
def test_files_fit_their_schema(schema: str, paths: list[Path]) -> None:
    assert paths
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        f"vendor.{schema}",
        *map(str, paths),
    ]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_make_targets(path: Path) -> None:
    workflow = YAML(typ="safe").load(path)
    assert workflow["permissions"], "a workflow has only the rights that it needs"
    for name, job in workflow["jobs"].items():
        if "uses" in job:  # a workflow of our own, checked by itself
            assert (ROOT / job["uses"]).exists(), name
            continue
        assert job["timeout-minutes"] <= 120, name
        assert any("run" in step or "uses" in step for step in job["steps"]), name
        commands = [step["run"] for step in job["steps"] if "run" in step]
        for command in commands:
            called = re.fullmatch(
                r"(?:sudo )?make((?: [a-z-]+)+)(?: [A-Z_]+=(?:[0-9]+|\$\{\{ github\.ref_name \}\}))*", command
            )
            assert called, f"{name}: {command!r} calls no make target"
            assert set(called[1].split()) <= TARGETS


def test_a_release_needs_no_password_and_the_right_tag() -> None:
    jobs = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    publish = jobs["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert "password" not in str(publish)
    assert publish["needs"] == "wheels"
    assert jobs["wheels"]["needs"] == "version"
    for tag, code in ((f"v{sketchnewton.__version__}", 0), ("v99.0.0", 2)):
        done = subprocess.run(["make", "check-tag", f"TAG={tag}"], cwd=ROOT, capture_output=True, check=False)
        assert done.returncode == code


def test_the_version_has_one_source() -> None:
    assert sketchnewton.__version__ == importlib.metadata.version("sketchnewton")
    assert re.search(
        rf"^version: {sketchnewton.__version__}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE
    )


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[bi]*.yml")), ids=lambda p: p.stem
)
def test_templates_are_forms(path: Path) -> None:
    form = YAML(typ="safe").load(path)
    assert form["name"]
    assert form["description"]
    identities = [part["id"] for part in form["body"]]
    assert len(set(identities)) == len(identities)


@pytest.mark.parametrize(
    "name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "README.md", "CHANGELOG.md"]
)
def test_pages_name_files_and_targets_that_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (ROOT / link).exists(), link
    for target in re.findall(r"`make ([a-z-]+)`", text):
        assert target in TARGETS, target


def annotations(tree: ast.Module) -> Iterator[ast.expr]:
    """Those of all parameters and of what is returned."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            found = [argument.annotation for argument in every if argument is not None]
            yield from (annotation for annotation in [*found, node.returns] if annotation is not None)


def anys(code: str) -> int:
    """How often signatures say `Any`, in quotes too, or an alias of the module that is nothing else."""
    tree = ast.parse(code)
    names = {"Any"}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if ast.unparse(node.value).strip("'").rpartition(".")[2] == "Any":
                names.update(target.id for target in targets if isinstance(target, ast.Name))
    total = 0
    for annotation in annotations(tree):
        for part in ast.walk(annotation):
            quoted = isinstance(part, ast.Constant) and isinstance(part.value, str)
            words = (
                re.findall(r"\w+", part.value) if quoted else [getattr(part, "id", getattr(part, "attr", ""))]
            )
            total += sum(word in names for word in words)
    return total


def test_the_count_of_any() -> None:
    code = "def f(a: Json, *b: list[Any], c: 'Any' = 1, **d: typing.Any) -> dict[str, Any] | Anyone: x: Any"
    assert anys(code) == 4
    assert anys(f"Json = Any\n{code}") == 5


def test_signatures_say_what_they_take() -> None:
    """412 said `Any` once; half of that is the most there may be."""
    found = Counter({str(path.relative_to(ROOT)): anys(path.read_text()) for path in SOURCES})
    assert found.total() <= 206, found.most_common(10)


def test_suppressions_are_few() -> None:
    found = Counter(
        {
            str(path.relative_to(ROOT)): len(re.findall(r"#\s*(?:noqa\b|type:\s*ignore\b)", path.read_text()))
            for path in SOURCES
        }
    )
    assert SOURCES
    assert found.total() <= 25, found.most_common(10)
