"""The client and `skn top` with a real server."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sketchnewton
from sketchnewton.client import Client, ClientError
from tests.cli.support import SKN, skn

pytest.importorskip("httptools", reason="needs the extra serve")
from tests.serve.running import Server, serving

ROWS = [{"city": city, "price": price} for price in (0.5, 1.0, 2.0) for city in ("Rome", "Oslo")]
LABELS = ["buys", "leaves"] * 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("state"), "--classes", "leaves,buys") as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(f"http://127.0.0.1:{server.port}/") as client:
        yield client


def version(client: Client) -> int:
    return int(client.model()["version"])


def test_learn_and_predict(client: Client) -> None:
    start = version(client)
    for _ in range(5):
        before = client.learn(ROWS, LABELS)
    assert [set(one) >= {"prediction", "probabilities", "score", "version"} for one in before] == [True] * 6
    assert version(client) == start + 30
    one = client.predict({"city": "Rome", "price": 1.0})
    assert one["prediction"] == "buys"
    assert "id" not in one
    assert sum(one["probabilities"].values()) == pytest.approx(1)
    several = client.predict(ROWS)
    assert [answer["prediction"] for answer in several] == LABELS
    assert {answer["version"] for answer in several} == {start + 30}
    assert version(client) == start + 30


def test_one_record_is_answered_as_one(client: Client) -> None:
    assert isinstance(client.learn(ROWS[0], LABELS[0]), dict)
    assert isinstance(client.learn(ROWS[:1], LABELS[:1], weights=[2.0]), list)
    assert isinstance(client.learn({**ROWS[0], "label": "buys"}), dict)


def test_text(client: Client) -> None:
    start = version(client)
    learned = client.learn("label,city,price\nbuys,Rome,1\nleaves,Oslo,2\n", content_type="text/csv")
    assert len(learned) == 2
    assert version(client) == start + 2
    answers = client.predict('{"city": "Rome"}\n{"city": "Oslo"}\n', content_type="application/x-ndjson")
    assert len(answers) == 2


def test_explain(client: Client) -> None:
    answer = client.predict(ROWS[0], explain=True)
    assert {one["name"] for one in answer["contributions"]} == {"city=Rome", "price"}


def test_late_labels(client: Client) -> None:
    start = version(client)
    one = client.predict(ROWS[0], remember=True)
    several = client.predict(ROWS, ids=[f"late-{number}" for number in range(6)])
    assert [answer["id"] for answer in several] == [f"late-{number}" for number in range(6)]
    assert version(client) == start
    first = client.feedback(one["id"], "buys", weight=2.0)
    assert first["learned"]
    assert first["prediction"] == one["prediction"]
    assert client.feedback(one["id"], "buys", weight=2.0) == first  # learned once
    events = [{"id": f"late-{number}", "label": label} for number, label in enumerate(LABELS)]
    results = client.feedback_all([*events, {"id": "nobody", "label": "buys"}])
    assert [result.get("learned") for result in results] == [True] * 6 + [None]
    assert results[-1]["error"]["code"] == "unknown_id"
    assert version(client) == start + 7
    with pytest.raises(ClientError) as caught:
        client.feedback("nobody", "buys")
    assert (caught.value.status, caught.value.code) == (404, "unknown_id")


def test_an_error_changes_nothing(client: Client) -> None:
    start = version(client)
    with pytest.raises(ClientError, match="maybe") as caught:
        client.learn(ROWS, [*LABELS[:-1], "maybe"])
    assert caught.value.status is not None
    assert 400 <= caught.value.status < 500
    assert version(client) == start


def test_the_model_leaves_and_comes_back(client: Client, tmp_path: Path) -> None:
    assert client.save()["version"] == version(client)
    path = tmp_path / "served.skn"
    path.write_bytes(client.model_file())
    model = sketchnewton.load(path)
    served = [answer["prediction"] for answer in client.predict(ROWS)]
    assert model.predict(ROWS).tolist() == served
    start = version(client)
    client.learn(ROWS, LABELS)
    client.load(path.read_bytes())
    assert version(client) == start
    with pytest.raises(ClientError) as caught:
        client.load(b"no model")
    assert caught.value.status == 400
    assert version(client) == start


def test_stats(client: Client) -> None:
    stats = client.stats()
    assert {"time", "version", "loss", "loss_recent", "latency_ms", "pending", "errors"} <= stats.keys()
    history = client.history()
    assert history == sorted(history, key=lambda point: point["time"])


def test_tokens(tmp_path: Path) -> None:
    (tmp_path / "write").write_text("a-token-that-may-write\n")
    (tmp_path / "read").write_text("a-token-that-may-read\n")
    files = ["--token-file", str(tmp_path / "write"), "--read-token-file", str(tmp_path / "read")]
    with serving(tmp_path / "state", *files) as server:
        url = f"http://127.0.0.1:{server.port}"
        with Client(url, "a-token-that-may-read") as reader, Client(url) as nobody:
            reader.predict({"a": 1})
            for refused, status in ((lambda: reader.learn({"a": 1}, 1), 403), (nobody.stats, 401)):
                with pytest.raises(ClientError) as caught:
                    refused()
                assert caught.value.status == status
        with Client(url, "a-token-that-may-write") as writer:
            writer.learn({"a": 1}, 1)
        run = skn("top", url, "--once", "--token-file", tmp_path / "read")
        assert run.returncode == 0
        assert skn("top", url, "--once").returncode == 1


def test_top_once(client: Client) -> None:
    client.learn(ROWS, LABELS)
    with pytest.raises(ClientError):
        client.feedback("\x1b[31mnobody", "buys")
    time.sleep(1.2)  # until the next figures
    run = skn("top", client.url, "--once")
    assert (run.returncode, run.stderr) == (0, b"")
    text = run.stdout.decode()
    assert "\x1b" not in text
    for words in ("rows learned", "latency", "Largest weights", "city=Rome", "Expert weights", "unknown_id"):
        assert words in text


def test_top_without_a_terminal_prints_pages_until_it_is_told_to_stop(client: Client) -> None:
    command = [*SKN, "top", client.url, "--interval", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        pages = 0
        while pages < 3 and (line := process.stdout.readline()):
            pages += line.startswith(b"rows learned")
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, b"")
    assert b"\x1b" not in rest


def test_top_on_a_terminal_paints_and_restores_it(client: Client) -> None:
    ours, theirs = pty.openpty()
    command = [*SKN, "top", client.url, "--interval", "0.1"]
    with subprocess.Popen(
        command, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(theirs)
        shown = b""
        while shown.count(b"\x1b[H") < 3:
            assert select.select([ours], [], [], 30)[0]
            shown += os.read(ours, 1 << 16)
        process.send_signal(signal.SIGINT)
        while process.poll() is None or select.select([ours], [], [], 0)[0]:
            try:
                shown += os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
    os.close(ours)
    assert process.returncode == 0
    assert shown.startswith(b"\x1b[?1049h\x1b[?25l")
    assert shown.rstrip().endswith(b"\x1b[?25h\x1b[?1049l")
