"""The report of `skn reproduce` in a real browser: no complaints, figures to be seen, fit for a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.devtools import Browser
from tests.theory.experiment_support import TOY, toy

CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("needs chromium: make test-report", allow_module_level=True)

from experiments import report, runner  # noqa: E402

BOXES = """[...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect())
  .map(b => [b.width, b.height])"""
SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll('p, td, th, li, svg text')]
  .filter(e => e.textContent.trim()).map(e => e.closest('svg') ? e.getBoundingClientRect().height
    : parseFloat(getComputedStyle(e).fontSize)))"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    experiments = [toy(name) for name in TOY]
    outcomes = runner.Runner(folder / "cache", 1, lambda text: None).run(experiments, folder, quick=True)
    assert not any(outcome.failed for outcome in outcomes)
    return report.write(folder, list(zip(experiments, outcomes, strict=True)), {"run": "toy"}).as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(CHROMIUM, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_page(browser: Browser, page: str, width: int, height: int) -> None:
    browser.open(page, width, height)
    assert browser.complaints() == []
    assert browser.evaluate("document.querySelectorAll('section').length") == len(TOY)
    boxes = browser.evaluate(BOXES)
    assert len(boxes) >= len(TOY)
    assert all(width > 200 and height > 150 for width, height in boxes)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(SMALLEST_TEXT) >= 7
    assert browser.evaluate("document.querySelectorAll('td.ok, td.not').length") > 0


def test_an_error_would_be_seen(browser: Browser, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text("<script>undefined_function()</script><img src='nowhere.png'>")
    browser.open(wrong.as_uri(), 390, 844)
    assert len(browser.complaints()) >= 2
