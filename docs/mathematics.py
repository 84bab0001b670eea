"""A hook of the documentation site: mathematics in TeX becomes MathML, which browsers show without a script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

BLOCK = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, **_: object) -> str:
    """The page with its blocks of mathematics converted."""
    return BLOCK.sub(lambda block: f'<div class="math">{mathml(block[1])}</div>', markdown)


def mathml(tex: str) -> str:
    """One formula; a command that cannot be converted is an error, not text on the page."""
    converted = convert(" ".join(tex.split()), display="block")
    unknown = re.findall(r"\\[A-Za-z]+", converted)
    if unknown:
        raise ValueError(f"cannot show {', '.join(unknown)} of {tex!r}")
    return converted
