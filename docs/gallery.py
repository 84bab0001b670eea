"""A hook of the documentation site: the examples of `examples/gallery` with their output and pictures."""

from __future__ import annotations

import ast
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

EXAMPLES = Path(__file__).parents[1] / "examples" / "gallery"
OUTPUT = Path(__file__).parent / "gallery"
ORDER = ["drift", "text", "sensors", "sparse_pca", "shards", "torch_net", "wild_targets", "explain"]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, "gallery.md", content=page()))
    return files


def page() -> str:
    """The examples in their order: what each is about, its picture, its output, its source."""
    names = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    if names != sorted(ORDER):
        raise ValueError(f"examples/gallery has {names}, docs/gallery.py lists {sorted(ORDER)}")
    parts = [
        "# Gallery\n\n"
        "Short programs that run as they are, `python examples/gallery/drift.py`; tests run them, too.\n"
    ]
    for name in ORDER:
        source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        title, _, about = (ast.get_docstring(ast.parse(source)) or "").partition(": ")
        output = (OUTPUT / f"{name}.txt").read_text(encoding="utf-8")
        code = source.partition('"""\n')[2].strip("\n")
        parts.append(
            f"## {title}\n\n{about[:1].upper()}{about[1:]}\n\n![{title}](gallery/{name}.png)\n\n"
            f"```text\n{output}```\n\n"
            f'??? note "Source: examples/gallery/{name}.py"\n'
            + "".join(f"    {line}\n" for line in ["```python", *code.splitlines(), "```"])
        )
    return "\n".join(parts)
