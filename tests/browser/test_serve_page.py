"""The page of `skn serve` in a real browser, while a real client sends rows to a real server."""

from __future__ import annotations

import base64
import itertools
import json
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sketchnewton.client import Client
from tests.browser.devtools import Browser

CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("needs chromium: make test-report", allow_module_level=True)
pytest.importorskip("httptools", reason="needs the extra serve")

from tests.serve.running import Server, serving  # noqa: E402

pytestmark = pytest.mark.slow

SIZES = [(1360, 900), (390, 844)]
SCHEMES = ["light", "dark"]
HOSTILE = "<img src=x onerror=alert(1)>\u202e<script>alert(2)</script>"

TEXT = "document.getElementById('{}').textContent"
# Of each canvas: how many of its pixels are drawn.
DRAWN = """[...document.querySelectorAll('canvas')].map(canvas => {
  const picture = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return new Uint32Array(picture.data.buffer).filter(pixel => pixel !== 0).length;
})"""
# Of all text that can be seen: the least contrast with what is behind it, as WCAG 2 defines it.
CONTRAST = """(() => {
  const read = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = read(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [...document.querySelectorAll('body *')]
    .filter(e => e.checkVisibility() && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
    .map(e => {
      const style = getComputedStyle(e);
      const [a, b] = [light(read(e.ownerSVGElement ? style.fill : style.color)), light(behind(e))];
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 80)];
    });
  return [found.length, ...found.reduce((least, one) => one[0] < least[0] ? one : least)];
})()"""


def impressions(count: int, seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Records, and labels that depend on them."""
    draw = random.Random(seed)
    records: list[dict[str, Any]] = []
    labels = []
    for _ in range(count):
        record = {
            "user": f"u{draw.randrange(20)}",
            "ad": draw.choice(["piano", "boots"]),
            "price": draw.random(),
        }
        chance = 0.7 if record["ad"] == "piano" else 0.2
        records.append(record)
        labels.append("yes" if draw.random() < chance else "no")
    return records, labels


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = ["--classes", "no,yes", "--loss", "logistic"]
    with serving(tmp_path_factory.mktemp("state"), *options) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with Client(address(server)) as client:
        yield client


@pytest.fixture(scope="module")
def only_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert CHROMIUM is not None
    with Browser(CHROMIUM, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(only_browser: Browser) -> Browser:
    only_browser.evaluate("window.stop()")
    only_browser.events.clear()
    return only_browser


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}/"


def until(
    browser: Browser, script: str, wanted: Callable[[Any], bool], during: Callable[[], object] = int
) -> Any:
    """The value of an expression on the page, once it is as wanted; `during` is done meanwhile."""
    end = time.monotonic() + 30
    while True:
        during()
        value = browser.evaluate(script)
        if wanted(value):
            return value
        assert time.monotonic() < end, f"{script} is still {value!r}: {browser.complaints()}"
        time.sleep(0.1)


def watch(browser: Browser, server: Server, size: tuple[int, int] = SIZES[0], scheme: str = "light") -> None:
    """Open the page and wait for its first figures."""
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(address(server), *size)
    until(browser, TEXT.format("state"), lambda text: text == "Live")
    until(browser, TEXT.format("rows"), lambda text: text != "–")


def press(browser: Browser, key: str, modifiers: int = 0, code: int = 0) -> None:
    for kind in ("rawKeyDown", "keyUp"):
        browser.call(
            "Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers, windowsVirtualKeyCode=code
        )


def rows_of(text: str) -> int:
    return int(text.replace(",", ""))


def test_figures_move_while_rows_arrive(browser: Browser, server: Server, client: Client) -> None:
    client.learn(*impressions(200, 0))
    watch(browser, server)
    names = ["rows", "loss", "metric", "speed", "latency", "pending"]
    script = (
        f"Object.fromEntries({json.dumps(names)}.map(id => [id, document.getElementById(id).textContent]))"
    )
    before = browser.evaluate(script)
    start = rows_of(before["rows"])
    sent = 0

    def send() -> None:
        nonlocal sent
        sent += 1
        records, labels = impressions(20, sent)
        client.learn(records, labels)
        answers = client.predict(records, remember=True)
        late = [{"id": one["id"], "label": label} for one, label in zip(answers[:10], labels, strict=False)]
        client.feedback_all(late)

    seen = set()
    end = time.monotonic() + 30
    while len(seen) < 4:  # figures come once a second
        send()
        seen.add(browser.evaluate(script)["rows"])
        assert time.monotonic() < end, seen
        time.sleep(0.05)
    after = until(browser, script, lambda found: rows_of(found["rows"]) == start + 30 * sent)
    assert rows_of(after["pending"]) == 10 * sent
    for name in names:
        assert after[name] not in ("–", before[name]), name
    drawn = browser.evaluate(DRAWN)
    assert len(drawn) == 5
    assert min(drawn) > 500
    assert browser.evaluate("document.querySelectorAll('#experts li').length") >= 2
    assert browser.evaluate("document.querySelectorAll('#spectrum rect').length") >= 1
    assert browser.evaluate("document.querySelectorAll('#calibration circle').length") >= 2
    assert "ad=piano" in browser.evaluate(TEXT.format("largest"))
    assert browser.evaluate("document.querySelectorAll('#fastest li').length") >= 1
    assert browser.complaints() == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_looks(
    browser: Browser, server: Server, client: Client, tmp_path: Path, size: tuple[int, int], scheme: str
) -> None:
    client.learn(*impressions(50, 99))
    watch(browser, server, size, scheme)
    until(browser, "document.querySelectorAll('canvas').length", lambda charts: charts == 5)
    browser.evaluate("document.querySelector('#form button').click()")
    until(browser, "document.querySelectorAll('#result li').length", lambda bars: bars > 2)
    assert browser.evaluate("document.documentElement.scrollWidth") <= size[0]
    texts, contrast, where = browser.evaluate(CONTRAST)
    assert texts > 60
    assert contrast >= 4.5, where
    background = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(244, 246, 249)", "dark": "rgb(12, 17, 23)"}[scheme]
    picture = base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"])
    (tmp_path / f"{size[0]}-{scheme}.png").write_bytes(picture)
    assert len(picture) > 20_000  # an empty page has a tenth
    assert browser.complaints() == []


def test_no_request_leaves_the_host(browser: Browser, server: Server) -> None:
    watch(browser, server)
    asked = [
        event["params"]["request"]["url"]
        for event in browser.events
        if event.get("method") == "Network.requestWillBeSent"
    ]
    assert len(asked) > 10
    assert all(url.startswith(address(server)) for url in asked), asked
    # And none could: the browser itself refuses it.
    browser.evaluate(
        "fetch('http://127.0.0.2:1/').catch(() => 0); new Image().src = 'http://127.0.0.2:1/x.png'"
    )
    refused = until(
        browser, "1", lambda _: sum("Content Security Policy" in line for line in browser.complaints()) >= 2
    )
    assert refused


def test_names_and_messages_are_text(browser: Browser, server: Server, client: Client) -> None:
    watch(browser, server)
    pictures = browser.evaluate("document.querySelectorAll('img').length")
    # Names of weights, while nothing else moves; then of contributions.
    shown = TEXT.format("largest") + " + " + TEXT.format("fastest")
    labels = itertools.cycle(["yes", "yes", "no"])
    until(
        browser,
        shown,
        lambda text: "<img src=x" in text,
        during=lambda: client.learn({HOSTILE: 1.0, "ad": HOSTILE}, next(labels)),
    )
    browser.evaluate(f"document.getElementById('record').value = {json.dumps(json.dumps({HOSTILE: 1.0}))}")
    browser.evaluate("document.querySelector('#form button').click()")
    shown = until(browser, TEXT.format("result"), lambda text: "<img src=x" in text)
    assert "\\u202e" in shown  # by its code: it would turn the text that follows
    assert browser.evaluate("document.querySelectorAll('img').length") == pictures
    assert browser.evaluate("document.querySelectorAll('#result script, main script').length") == 0
    assert browser.complaints() == []


def test_the_form(browser: Browser, server: Server) -> None:
    watch(browser, server)
    record = "document.getElementById('record').value"
    suggested = json.loads(until(browser, record, lambda text: "price" in text))
    assert {"user", "ad", "price"} <= suggested.keys()
    browser.evaluate("document.getElementById('record').focus()")
    press(browser, "Enter", modifiers=2, code=13)
    until(browser, TEXT.format("result"), lambda text: "Contributions" in text)
    names = browser.evaluate("[...document.querySelectorAll('#result .name')].map(e => e.textContent)")
    assert {"yes", "no", "intercept"} <= set(names)
    for wrong, words in [
        ("{", "Not a record"),
        ("[1]", "a record is an object"),
        ('{"price": [[1]]}', "price"),
    ]:
        browser.evaluate(f"{record} = {json.dumps(wrong)}")
        browser.evaluate("document.querySelector('#form button').click()")
        until(browser, TEXT.format("record-error"), lambda text, words=words: words in text)


def test_errors_are_listed(browser: Browser, server: Server, client: Client) -> None:
    watch(browser, server)
    with pytest.raises(Exception, match="unknown"):
        client.feedback("nobody", "yes")
    until(browser, TEXT.format("errors"), lambda text: "unknown_id" in text)


def test_pause_and_time_by_keyboard(browser: Browser, server: Server, client: Client) -> None:
    watch(browser, server)
    reached = []
    for _ in range(14):
        press(browser, "Tab", code=9)
        reached.append(browser.evaluate("document.activeElement.id || document.activeElement.textContent"))
        if reached[-1] == "pause":
            press(browser, " ", code=32)
    order = ["Skip to the prediction form", "5 min", "1 h", "All", "pause", "record", "Predict", "errors"]
    assert [name for name in reached if name in order][: len(order)] == order
    until(browser, TEXT.format("state"), lambda text: text == "Paused")
    rows = browser.evaluate(TEXT.format("rows"))
    client.learn(*impressions(10, 5))
    time.sleep(2.5)
    assert browser.evaluate(TEXT.format("rows")) == rows
    browser.evaluate("document.getElementById('pause').click()")
    until(browser, TEXT.format("rows"), lambda text: rows_of(text) >= rows_of(rows) + 10)


def test_a_token_is_asked_for_and_kept(browser: Browser, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("a-token-of-some-length\n")
    with serving(tmp_path / "state", "--token-file", str(tokens)) as server:
        browser.open(address(server), *SIZES[0])
        asked = "document.getElementById('ask').open"
        type_in = "document.getElementById('token').value = {}; document.querySelector('#ask button').click()"
        until(browser, asked, bool)
        browser.evaluate(type_in.format("'not-the-right-token'"))
        until(browser, TEXT.format("ask-why"), lambda text: "refused" in text)
        until(browser, asked, bool)
        browser.evaluate(type_in.format("'a-token-of-some-length'"))
        until(browser, TEXT.format("state"), lambda text: text == "Live")
        browser.open(address(server), *SIZES[0])  # kept in this tab
        until(browser, TEXT.format("state"), lambda text: text == "Live")
        assert not browser.evaluate(asked)
