"""A hook of the documentation site: a page for each public module, with all that it exports."""

from __future__ import annotations

import functools
from pathlib import Path

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SOURCES = Path(__file__).parents[1] / "src"
MODULES = {
    "sketchnewton": "What most people need, at the top level.",
    "sketchnewton.learners": "Learners: one row at a time.",
    "sketchnewton.losses": "What a wrong prediction costs.",
    "sketchnewton.model": "Records in, answers out: a learner with its features and targets.",
    "sketchnewton.features": "How records become features.",
    "sketchnewton.streams": "Rows from files of any format.",
    "sketchnewton.evaluation": "Progressive scores, metrics, regret.",
    "sketchnewton.sketches": "Sketches of streams of rows, with certified errors.",
    "sketchnewton.sklearn": "Estimators with scikit-learn's interface.",
    "sketchnewton.river": "Estimators with River's interface.",
    "sketchnewton.torch": "Optimizers for PyTorch.",
    "sketchnewton.dask": "Estimators for Dask's collections.",
    "sketchnewton.spark": "Estimators for Spark's DataFrames.",
    "sketchnewton.eigen": "Online learning of eigenvectors.",
    "sketchnewton.client": "Predictions and labels over HTTP, of `skn serve`.",
    "sketchnewton.testing": "Contract tests for learners, sketches, losses and readers written elsewhere.",
}
"""The public modules, and what each is for."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    lines = ["# Python", "", "| module | what it is for |", "| --- | --- |"]
    for module, summary in MODULES.items():
        page = f"{module.rpartition('.')[2]}.md"
        lines.append(f"| [`{module}`]({page}) | {summary} |")
        names = exported(module)
        table = "\n".join(
            f"| [`{name}`][{module}.{name}] | {first_sentence(module, name)} |" for name in names
        )
        items = "\n\n".join(f"::: {module}.{name}" for name in names)
        text = f"# `{module}`\n\n{summary}\n\n| name | |\n| --- | --- |\n{table}\n\n{items}\n"
        files.append(File.generated(config, f"reference/{page}", content=text))
    files.append(File.generated(config, "reference/index.md", content="\n".join(lines) + "\n"))
    return files


def exported(module: str) -> list[str]:
    """The public names of a module, as its source or its stub has them: extras need not be installed."""
    package = _package()
    found = package if module == package.path else package[module.removeprefix(f"{package.path}.")]
    names = [str(name) for name in found.exports or ()]
    if not names:  # a stub has no __all__: what it imports is what the module has
        members = found.members.items()
        names = [
            name
            for name, member in members
            if member.is_alias and member.target_path.startswith(package.path)
        ]
    if not names:
        raise ValueError(f"{module} exports nothing")
    return sorted(name for name in names if not name.startswith("__") and not _is_table(f"{module}.{name}"))


def first_sentence(module: str, name: str) -> str:
    """What a docstring begins with, for the table at the top of a page."""
    path = f"{module}.{name}".removeprefix(f"{_package().path}.")
    found = _package()[path]
    docstring = found.docstring
    text = "" if docstring is None else docstring.value.partition("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


def _is_table(path: str) -> bool:
    """Whether a name is that of a table behind lazy imports, which no reader needs."""
    found = _package()[path.removeprefix("sketchnewton.")]
    return found.is_alias and found.target_path.startswith("sketchnewton.core.names.")


@functools.cache
def _package() -> griffe.Module:
    loaded = griffe.load("sketchnewton", search_paths=[SOURCES], resolve_aliases=True)
    assert isinstance(loaded, griffe.Module)
    return loaded
