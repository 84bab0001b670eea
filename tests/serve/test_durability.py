"""Starting again: the same bits, or one line that says why not; a disk without room loses nothing."""

from __future__ import annotations

import resource
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from tests.serve.running import Client, Server, serving


def teach(client: Client, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        answer = client.post(
            "/v1/learn", {"price": number / 3, "city": "ROL"[number % 3], "label": number % 5}
        )
        assert answer.status == 200, answer.data


def model_of(server: Server) -> bytes:
    return server.client().get("/v1/model/file").data


def test_stopping_and_starting_changes_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(state) as server:
        teach(server.client(), 15)
        assert server.client().ask("POST", "/v1/model/save").json["event"] == 15
        teach(server.client(), 5, 15)
        whole = model_of(server)
        metrics = server.client().get("/v1/model").json["metrics"]
        assert server.stop() == 0
    with serving(state) as server:
        assert "0 events replayed" in server.lines[0]
        assert model_of(server) == whole
        server.kill()
    with serving(state) as server:
        assert model_of(server) == whole
        found = server.client().get("/v1/model").json["metrics"]
        assert (found["loss"], found["rows"]) == (metrics["loss"], metrics["rows"])


def refused(state: Path, *options: str) -> str:
    """The one line of a server that does not start."""
    server = Server(state, *options, expect_start=False)
    assert server.process.wait(timeout=60) == 1
    server._ended()
    assert len(server.lines) == 1, server.lines
    return server.lines[0]


def test_one_server_for_a_directory(tmp_path: Path) -> None:
    with serving(tmp_path / "state"):
        assert "another server uses this directory" in refused(tmp_path / "state")


def test_a_first_start_that_fails(tmp_path: Path) -> None:
    """Whether the model is missing or the disk is full: one line, and the next start begins as the first."""
    state = tmp_path / "state"
    assert "missing.skn: there is no such model file" in refused(state, str(tmp_path / "missing.skn"))
    assert not state.exists()
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, unlimited[1]))
    try:
        assert "log.sqlite" in refused(state)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    with serving(state) as server:
        teach(server.client(), 2)


@pytest.mark.slow
def test_a_damaged_snapshot(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(state) as server:
        teach(server.client(), 6)
        server.client().ask("POST", "/v1/model/save")
        teach(server.client(), 6, 6)
        whole = model_of(server)
        server.kill()
    (snapshot,) = state.glob("snapshot-*.skn")
    data = bytearray(snapshot.read_bytes())
    data[len(data) // 2] ^= 1
    snapshot.write_bytes(data)
    assert "--recover" in refused(state)
    with serving(state, "--recover") as server:  # from the first model, by all events
        assert model_of(server) == whole


@pytest.mark.slow
def test_a_damaged_log(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(state) as server:
        teach(server.client(), 6)
        server.client().ask("POST", "/v1/model/save")
        saved = model_of(server)
        teach(server.client(), 30, 6)
        assert server.client().post("/v1/predict?id=x", {"price": 1.0}).status == 200
        server.kill()
    connection = sqlite3.connect(state / "log.sqlite")
    connection.execute("UPDATE events SET body = replace(body, 'price', 'ptice') WHERE seq = 7")
    connection.commit()
    connection.close()
    line = refused(state)
    assert "event 7 was changed" in line
    assert "--recover" in line
    with serving(state, "--recover") as server:
        assert model_of(server) == saved
        assert server.client().post("/v1/feedback", {"id": "x", "label": 1.0}).status == 200
        teach(server.client(), 3)
        after = model_of(server)
        server.kill()
    assert list(state.glob("log.sqlite.damaged-*"))
    with serving(state) as server:
        assert model_of(server) == after
        server.kill()


@pytest.mark.slow
def test_a_log_damaged_twice_is_kept(tmp_path: Path) -> None:
    """A log that SQLite cannot read and, as far as it can be read, has an event that was changed."""
    state = tmp_path / "state"
    with serving(state) as server:
        teach(server.client(), 400)
        assert server.stop() == 0
    (state / "snapshot-000000000000400.skn").unlink()
    connection = sqlite3.connect(state / "log.sqlite")
    connection.execute("DELETE FROM snapshots WHERE seq > 0")
    connection.execute("UPDATE events SET body = replace(body, 'price', 'ptice') WHERE seq = 50")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    root, size = (
        connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'ids_by_time'").fetchone()[0],
        connection.execute("PRAGMA page_size").fetchone()[0],
    )
    connection.close()
    data = bytearray((state / "log.sqlite").read_bytes())
    data[size * (root - 1) : size * root] = b"\xff" * size
    (state / "log.sqlite").write_bytes(data)
    assert "--recover" in refused(state)
    with serving(state, "--recover") as server:
        assert server.client().get("/v1/model").json["version"] == 49
    aside = sorted(state.glob("log.sqlite.damaged-*"))
    assert any(path.read_bytes() == data for path in aside)


@pytest.mark.slow
def test_a_log_that_is_no_log(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(state) as server:
        teach(server.client(), 3)
        server.kill()
    (state / "log.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
    for ending in ("-wal", "-shm"):
        (state / f"log.sqlite{ending}").unlink(missing_ok=True)
    assert "--recover" in refused(state)
    with serving(state, "--recover") as server:
        assert server.client().get("/readyz").status == 200
        teach(server.client(), 2)


@pytest.mark.slow
def test_no_room_on_the_disk(tmp_path: Path) -> None:
    """The largest file of the process is limited: writing fails as it does on a full disk, until it is not."""
    state = tmp_path / "state"
    with serving(state) as server:
        client = server.client()
        teach(client, 10)
        before = model_of(server)
        limit = sum(path.stat().st_size for path in state.glob("log.sqlite-wal"))
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        failed = 0
        for number in range(40):
            answer = client.post("/v1/learn", {"price": 1.0, "city": "R", "label": number, "x": "y" * 500})
            assert answer.status in (200, 503, 507), answer.data
            failed += answer.status != 200
            if answer.status == 200:
                before = model_of(server)
        assert failed > 0
        assert client.post("/v1/predict", {"price": 1.0}).status == 200
        assert client.get("/readyz").status == 503
        wait_until(lambda: model_of(server) == before)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        wait_until(lambda: client.get("/readyz").status == 200)
        assert model_of(server) == before
        teach(client, 5)
        after = model_of(server)
        server.kill()
    with serving(state) as server:
        assert model_of(server) == after


def wait_until(happened: object, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not happened():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.slow
def test_the_log_is_compacted(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(state, "--keep-events", "20", "--snapshot-events", "10") as server:
        client = server.client()
        for part in range(6):
            teach(client, 20, 20 * part)
            time.sleep(1.2)
        whole = model_of(server)
        server.process.send_signal(signal.SIGKILL)
        server._ended()
    connection = sqlite3.connect(state / "log.sqlite")
    assert connection.execute("SELECT count(*) FROM events").fetchone()[0] < 60
    connection.close()
    assert len(list(state.glob("snapshot-*.skn"))) <= 3
    with serving(state) as server:
        assert model_of(server) == whole


def test_another_model_takes_its_place(tmp_path: Path) -> None:
    with serving(tmp_path / "a") as server:
        teach(server.client(), 8)
        other = model_of(server)
    with serving(tmp_path / "b") as server:
        teach(server.client(), 3)
        answer = server.client().ask("POST", "/v1/model/load", other, "application/octet-stream")
        assert answer.json == {"loaded": True, "version": 8}
        assert model_of(server) == other
        teach(server.client(), 2)
        after = model_of(server)
        server.kill()
    with serving(tmp_path / "b") as server:
        assert model_of(server) == after
