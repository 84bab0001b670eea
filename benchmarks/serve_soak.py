"""An hour of `skn serve` at a steady load: memory must stay flat, no request may fail, the log must be compacted.

    python benchmarks/serve_soak.py [--seconds 3600] [--rate 100] [--every 10]

Each of `rate` rounds a second predicts a record, learns one, and every fifth remembers one and sends its label,
every twentieth of them twice; the live figures of the page are read all the time. Memory is what the server has
allocated after the first sixth of the time, when caches are full, against the mean of the last sixth: pages of
libraries, which the kernel drops when it likes, are not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from serve import records, without_label

HERE = Path(__file__).parent


class Connection:
    """One connection that keeps asking."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, value: Any) -> tuple[int, Any]:
        if self.writer is None or self.reader is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        body = json.dumps(value).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"Content-Length: (\d+)", answer)
        assert found is not None
        data = await self.reader.readexactly(int(found[1]))
        return int(answer.split(b" ", 2)[1]), json.loads(data)


class Soak:
    def __init__(self, port: int) -> None:
        self.rows = records(20_000, seed=3)
        self.failed: list[str] = []
        self.done = 0
        self.figures = 0
        self.connections = [Connection(port) for _ in range(32)]

    async def round(self, number: int, connection: Connection) -> None:
        row = self.rows[number % len(self.rows)]
        await self.check(connection, "/v1/predict", without_label(row))
        await self.check(connection, "/v1/learn", row)
        if number % 5 == 0:
            id = f"soak-{number}"
            await self.check(connection, f"/v1/predict?id={id}", without_label(row))
            for _ in range(2 if number % 100 == 0 else 1):
                await self.check(connection, "/v1/feedback", {"id": id, "label": row["label"]})

    async def check(self, connection: Connection, path: str, value: Any) -> None:
        status, answer = await connection.post(path, value)
        self.done += 1
        if status != 200:
            self.failed.append(f"{path}: {status} {answer}")

    async def follow_page(self) -> None:
        """Read the figures of the page as they come, and no more of them than one line at a time."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.connections[0].port, limit=1 << 20)
        writer.write(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while line := await reader.readline():
            self.figures += line.startswith(b"data:")

    async def run(self, rate: float, seconds: float) -> None:
        """Rounds at a fixed rate; each connection has its share."""
        start = time.monotonic()
        share = len(self.connections)

        async def worker(offset: int, connection: Connection) -> None:
            for number in range(offset, int(rate * seconds), share):
                await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
                if time.monotonic() > start + seconds + 60:  # the machine is too slow for the rate
                    return
                await self.round(number, connection)

        await asyncio.gather(*(worker(at, each) for at, each in enumerate(self.connections)))


def resident(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return 1024 * sum(int(size) for size in re.findall(r"(?:RssAnon|RssShmem):\s+(\d+) kB", text))


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--every", type=float, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        state = Path(name) / "state"
        command = [str(Path(sys.executable).with_name("skn")), "serve", "--port", "0", "--state", str(state)]
        command += [
            "--loss",
            "logistic",
            "--positive",
            "1",
            "--keep-events",
            "20000",
            "--snapshot-events",
            "5000",
        ]
        command += ["--feedback-ttl", "300"]
        server = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        assert server.stderr is not None
        port = 0
        while not port:
            found = re.search(rb"serving at http://\S+:(\d+)/", await server.stderr.readline())
            port = int(found[1]) if found else 0
        soak = Soak(port)
        samples: list[tuple[float, int, int]] = []
        start = time.monotonic()

        async def watch() -> None:
            while True:
                await asyncio.sleep(options.every)
                size = sum(path.stat().st_size for path in state.glob("log.sqlite*"))
                samples.append((time.monotonic() - start, resident(server.pid), size))
                print(
                    f"{samples[-1][0]:7.0f} s  {samples[-1][1] / 1e6:7.1f} MB  log {size / 1e6:7.1f} MB",
                    end="  ",
                )
                print(f"{soak.done} requests, {len(soak.failed)} failed, {soak.figures} updates", flush=True)

        beside = [asyncio.create_task(work) for work in (watch(), soak.follow_page())]
        await soak.run(options.rate, options.seconds)
        for task in beside:
            task.cancel()
        server.terminate()
        await server.wait()
    return report(soak, samples)


def report(soak: Soak, samples: list[tuple[float, int, int]]) -> int:
    sixth = max(1, len(samples) // 6)
    early = samples[sixth][1]
    late = sum(size for _, size, _ in samples[-sixth:]) / sixth
    largest = max(size for _, _, size in samples)
    memory = f"memory {early / 1e6:.1f} -> {late / 1e6:.1f} MB ({late / early - 1:+.1%})"
    log = f"log at most {largest / 1e6:.1f} MB, {samples[-1][2] / 1e6:.1f} MB at the end"
    print(
        f"{soak.done} requests, {len(soak.failed)} failed, {soak.figures} updates of the page; {memory}; {log}"
    )
    for line in soak.failed[:5]:
        print("failed:", line)
    return 0 if not soak.failed and soak.figures and abs(late / early - 1) <= 0.05 else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
