"""The documentation site in a real browser: no complaints, search finds, no request leaves the host."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.devtools import Browser

CHROMIUM = shutil.which("chromium")
SITE = Path(__file__).parents[2] / "build" / "site"
if CHROMIUM is None or not (SITE / "index.html").exists():
    pytest.skip("needs chromium and the site: make docs test-report", allow_module_level=True)

PAGES = ["index.html", "walkthrough.html", "untuned.html", "command-line.html", "reference/learners.html"]
TYPE = """(input => {
  input.value = WORDS;
  for (const event of [new Event('input', {bubbles: true}), new KeyboardEvent('keyup', {bubbles: true})])
    input.dispatchEvent(event);
})(document.querySelector('.md-search__input'))"""
HITS = "[...document.querySelectorAll('.md-search-result__link')].map(a => a.getAttribute('href'))"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the site without a word."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(CHROMIUM, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_page(browser: Browser, site: str, name: str, width: int, height: int) -> None:
    browser.open(site + name, width, height)
    assert browser.complaints() == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelector('h1').textContent.trim().length") > 0
    asked = [event["params"]["request"]["url"] for event in browser.events if is_request(event)]
    assert asked
    assert all(url.startswith((site, "data:", "blob:")) for url in asked), asked


def is_request(event: dict[str, object]) -> bool:
    return event.get("method") == "Network.requestWillBeSent"


def test_search_finds_a_class(browser: Browser, site: str) -> None:
    browser.open(site + "index.html", 1280, 900)
    browser.evaluate("document.querySelector('.md-search__input').focus()")
    browser.evaluate(TYPE.replace("WORDS", json.dumps("SketchedNewton")))
    hits: list[str] = []
    for _ in range(100):
        hits = browser.evaluate(HITS)
        if hits:
            break
        time.sleep(0.1)
    assert any("reference/" in hit for hit in hits), hits


def test_links_within_the_site_lead_somewhere(browser: Browser, site: str) -> None:
    for name in PAGES:
        browser.open(site + name, 1280, 900)
        links = browser.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.href)")
        inside = {link.removeprefix(site).partition("#")[0] for link in links if link.startswith(site)}
        assert [path for path in inside if not (SITE / path).exists()] == []
