"""A real server in a process of its own, and a plain client."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

JSON = "application/json"


class Answer(NamedTuple):
    status: int
    data: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def code(self) -> str:
        """Of an error, whose shape is checked on the way."""
        assert self.headers["content-type"] == JSON
        assert set(self.json) == {"error"}
        assert set(self.json["error"]) == {"code", "message"}
        assert "Traceback" not in self.json["error"]["message"]
        assert "\n" not in self.json["error"]["message"]
        return str(self.json["error"]["code"])


class Client:
    """One connection, opened again when the server has closed it."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.port = port
        self.token = token
        self._connection: http.client.HTTPConnection | None = None

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        sent = dict(headers or {})
        if content_type is not None:
            sent["Content-Type"] = content_type
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            self._connection.request(method, path, body, sent)
            response = self._connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if response.getheader("connection") == "close":
            self.close()
        return Answer(response.status, data, {k.lower(): v for k, v in response.getheaders()})

    def post(self, path: str, value: Any, **headers: str) -> Answer:
        names = {name.replace("_", "-"): text for name, text in headers.items()}
        return self.ask("POST", path, json.dumps(value).encode(), JSON, names)

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Server:
    """`skn serve` with these options, at a port that is free."""

    def __init__(
        self, state: Path, *options: str, expect_start: bool = True, env: dict[str, str] | None = None
    ) -> None:
        self.state = state
        command = [os.path.join(os.path.dirname(sys.executable), "skn"), "serve", *options]
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--state", str(state)],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **(env or {})},
        )
        self.lines: list[str] = []
        self._clients: list[Client] = []
        self._ports: queue.Queue[int | None] = queue.Queue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self.port = self._ports.get(timeout=60) or 0
        if expect_start:
            assert self.port, self.lines

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            found = re.search(r"serving at https?://\S+:(\d+)/", line)
            if found:
                self._ports.put(int(found[1]))
        self._ports.put(None)

    def client(self, token: str | None = None) -> Client:
        """A connection that is closed with the server."""
        self._clients.append(Client(self.port, token))
        return self._clients[-1]

    def kill(self) -> None:
        self.process.kill()
        self._ended()

    def stop(self) -> int:
        """End it as an operator does."""
        self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def _ended(self) -> int:
        code = self.process.wait(timeout=60)
        for client in self._clients:
            client.close()
        self._thread.join(timeout=10)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


@contextlib.contextmanager
def serving(state: Path, *options: str, **settings: Any) -> Iterator[Server]:
    server = Server(state, *options, **settings)
    try:
        yield server
    finally:
        if server.process.returncode is None:
            server.kill()
