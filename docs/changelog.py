"""A hook of the documentation site: the project's changelog as a page."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    text = CHANGELOG.read_text(encoding="utf-8")
    pages = {file.src_uri for file in files}
    text = re.sub(r"\(?\bdocs/([a-z-]+\.md)\)?", lambda link: _link(link, pages), text)
    files.append(File.generated(config, "changelog.md", content=text))
    return files


def _link(link: re.Match[str], pages: set[str]) -> str:
    """`docs/page.md`, in parentheses or not, as a link within the site."""
    if link[1] not in pages:
        raise ValueError(f"CHANGELOG.md names docs/{link[1]}, which is not there")
    linked = f"[{link[1].removesuffix('.md')}]({link[1]})"
    return f"({linked})" if link[0].startswith("(") else linked
