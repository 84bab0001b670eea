"""What surrounds the code is as it should be: workflows run make targets that exist, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[bi]*.yml"))
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
        assert job["timeout-minutes"] <= 120, name
        commands = [step["run"] for step in job["steps"] if "run" in step]
        assert commands, name
        for command in commands:
            called = re.fullmatch(r"(?:sudo )?make((?: [a-z-]+)+)(?: [A-Z_]+=[0-9]+)*", command)
            assert called, f"{name}: {command!r} calls no make target"
            assert set(called[1].split()) <= TARGETS


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
