"""The documentation site in a real browser: no complaints, search, mathematics, links; nothing leaves the host."""

from __future__ import annotations

import functools
import html.parser
import http.server
import json
import shutil
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.devtools import Browser

CHROMIUM = shutil.which("chromium")
SITE = Path(__file__).parents[2] / "build" / "site"
if CHROMIUM is None or not (SITE / "index.html").exists():
    pytest.skip("needs chromium and the site: make docs test-report", allow_module_level=True)

PAGES = [
    "index.html",
    "get-started.html",
    "gallery.html",
    "tables.html",
    "oja.html",
    "untuned.html",
    "command-line.html",
    "reference/learners.html",
    "reproduction.html",
    "benchmarks.html",
    "changelog.html",
]
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


@pytest.mark.parametrize("place", ["server", "folder"])
def test_search_finds_a_class(browser: Browser, site: str, place: str) -> None:
    browser.open((site if place == "server" else f"file://{SITE}/") + "index.html", 1280, 900)
    assert browser.evaluate("document.querySelector('.md-search__input').checkVisibility()")
    browser.evaluate("document.querySelector('.md-search__input').focus()")
    browser.evaluate(TYPE.replace("WORDS", json.dumps("SketchedNewton")))
    hits: list[str] = []
    for _ in range(100):
        hits = browser.evaluate(HITS)
        if hits:
            break
        time.sleep(0.1)
    assert any("reference/" in hit for hit in hits), hits


@pytest.mark.parametrize("page", ["newton", "oja", "frequent-directions", "adaptive"])
def test_no_formula_is_cut(browser: Browser, site: str, page: str) -> None:
    browser.open(f"{site}{page}.html", 1280, 900)
    cut = "[...document.querySelectorAll('.math')].map(m => m.scrollHeight - m.clientHeight)"
    assert max(browser.evaluate(cut)) <= 0


def test_mathematics_is_shown(browser: Browser, site: str) -> None:
    browser.open(site + "oja.html", 1280, 900)
    sizes = browser.evaluate(
        "[...document.querySelectorAll('math')].map(m => m.getBoundingClientRect().height)"
    )
    assert sizes
    assert min(sizes) > 10
    # A browser without MathML would show fractions in one line.
    fractions = browser.evaluate(
        "[...document.querySelectorAll('mfrac')].map(f => f.clientHeight || f.getBoundingClientRect().height)"
    )
    assert fractions
    assert max(fractions) > 30


class Links(html.parser.HTMLParser):
    """The links of a page, and what can be linked to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        facts = dict(attributes)
        self.places |= {facts.get("id") or "", facts.get("name") or ""}
        self.targets |= {facts.get("href") or "", facts.get("src") or ""} if tag != "use" else set()


def test_links_within_the_site_lead_somewhere() -> None:
    """Of every page, to files and to places within them."""
    pages = {page: Links(page) for page in SITE.rglob("*.html") if page.name != "404.html"}
    assert len(pages) > 40
    broken = []
    for page, links in pages.items():
        for link in links.targets:
            address = urllib.parse.urlsplit(link)
            if address.scheme or address.netloc or not link:
                continue
            path = urllib.parse.unquote(address.path)
            target = (page.parent / path).resolve() if path else page
            place = urllib.parse.unquote(address.fragment)
            if not target.exists() or (place and target in pages and place not in pages[target].places):
                broken.append(f"{page.relative_to(SITE)}: {link}")
    assert broken == []
