"""`skn serve` against River in FastAPI and Vowpal Wabbit in Starlette: same client, same machine, alternating.

Needs `wrk` (Debian's package of that name), fastapi, uvicorn, river and vowpalwabbit. Prints requests per second,
p50 and p99, and processor time of the server per request, as medians of the rounds; fails if a promise is broken:
one-row predict and durable one-row learn at least twice as fast as River's, p99 of predict under learning within
twice that without.

    python benchmarks/serve.py [--rounds 3] [--seconds 4] [--connections 64] [--part all|throughput|latency]

On a machine that others use, requests per second say little; processor time per request of the server still does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BATCH = 100


def records(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Clicks: three categories, ten numbers, a label that depends on them."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        record: dict[str, Any] = {
            "user": f"u{draw.randrange(1000)}",
            "city": draw.choice(["Rome", "Oslo", "Lima", "Bern"]),
            "device": draw.choice(["phone", "desk"]),
            **{f"x{i}": round(draw.gauss(0, 1), 4) for i in range(10)},
        }
        record["label"] = int(record["x0"] + (record["city"] == "Rome") + draw.gauss(0, 1) > 0.5)
        made.append(record)
    return made


def vw_line(record: dict[str, Any], *, label: bool) -> str:
    numbers = " ".join(f"{name}:{value}" for name, value in record.items() if name.startswith("x"))
    texts = " ".join(f"{name}={record[name]}" for name in ("user", "city", "device"))
    return f"{(1 if record['label'] else -1) if label else ''} | {texts} {numbers}"


def without_label(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "label"}


def bodies(name: str, task: str) -> list[str]:
    learn, many = task.startswith("learn"), task.endswith("many")
    rows = records(500)
    if name == "vw":
        lines = [vw_line(row, label=learn) for row in rows]
        return ["\n".join(lines[i : i + BATCH]) for i in range(0, 500, BATCH)] if many else lines
    rows = rows if learn else [without_label(row) for row in rows]
    if many:
        return [json.dumps(rows[i : i + BATCH]) for i in range(0, 500, BATCH)]
    return [json.dumps(row) for row in rows]


def script(folder: Path, name: str, path: str, task: str) -> Path:
    """What wrk sends: the bodies in turn."""
    kind = "text/vw" if name == "vw" else "application/json"
    quoted = ",\n".join("[==[" + body + "]==]" for body in bodies(name, task))
    lua = f"""
local bodies = {{{quoted}}}
local n, i = #bodies, math.random(1, #bodies)
wrk.method = "POST"
wrk.headers["Content-Type"] = "{kind}"
function request() i = i % n + 1; return wrk.format(nil, "{path}", nil, bodies[i]) end
"""
    file = folder / f"{name}-{task}.lua"
    file.write_text(lua)
    return file


class Service:
    """A server in a process of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, str(HERE / "serve_rivals.py"), name, str(self.port)]
        if name.startswith("skn"):
            command = [
                str(Path(sys.executable).with_name("skn")),
                "serve",
                "--port",
                str(self.port),
                "--quiet",
            ]
            command += ["--state", str(folder / f"{name}.state"), "--loss", "logistic", "--positive", "1"]
        self.process = subprocess.Popen(command, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{name} did not start")

    def path(self, task: str) -> str:
        if self.name.startswith("skn"):
            return "/v1/" + task.removesuffix("_many")
        return "/" + task

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def teach(self) -> None:
        """So that predictions are those of a model that knows something."""
        for body in bodies(self.name, "learn_many"):
            kind = "text/vw" if self.name == "vw" else "application/json"
            url = f"http://127.0.0.1:{self.port}{self.path('learn_many')}"
            request = urllib.request.Request(url, body.encode(), {"Content-Type": kind})
            urllib.request.urlopen(request).read()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)


_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


def measured(service: Service, task: str, folder: Path, seconds: int, connections: int) -> dict[str, float]:
    """Requests per second, p50 and p99 in ms, and the server's processor time per request in µs."""
    lua = script(folder, service.name, service.path(task), task)
    before = service.cpu()
    open_at_once = 8 if task.endswith("many") else connections
    command = [
        "wrk",
        "-t1",
        "--timeout",
        "30s",
        f"-c{open_at_once}",
        f"-d{seconds}s",
        "--latency",
        "-s",
        str(lua),
    ]
    command.append(f"http://127.0.0.1:{service.port}")
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in output or "Socket errors" in output:
        raise SystemExit(f"{service.name} {task}: {output}")
    rate = re.search(r"Requests/sec:\s*([\d.]+)", output)
    total = re.search(r"(\d+) requests in", output)
    assert rate is not None
    assert total is not None

    def level(percent: str) -> float:
        found = re.search(rf"{percent}%\s+([\d.]+)(us|ms|s|m)\b", output)
        assert found is not None, output
        return float(found[1]) * _UNITS[found[2]]

    return {
        "rate": float(rate[1]),
        "p50": level("50"),
        "p99": level("99"),
        "cpu": 1e6 * (service.cpu() - before) / max(1, int(total[1])),
    }


async def paced(port: int, path: str, sent: list[str], rate: float, seconds: float) -> list[float]:
    """Times of requests in ms, sent one after another at a fixed rate, each timed from when it was due."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    start, times = time.perf_counter(), []
    for number in range(int(rate * seconds)):
        due = start + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        body = sent[number % len(sent)].encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"Content-Length: (\d+)", answer)
        assert found is not None
        assert b" 200 " in answer, answer
        await reader.readexactly(int(found[1]))
        times.append(1000 * (time.perf_counter() - due))
    writer.close()
    return times


async def under_learning(service: Service, seconds: float) -> tuple[float, float]:
    """p99 of predict at 200 requests a second, alone and beside 200 durable learns a second."""
    predict, learn = bodies("skn", "predict"), bodies("skn", "learn")

    def p99(times: list[float]) -> float:
        return sorted(times)[int(0.99 * len(times))]

    alone = await paced(service.port, "/v1/predict", predict, 200, seconds)
    both = await asyncio.gather(
        paced(service.port, "/v1/predict", predict, 200, seconds),
        *(paced(service.port, "/v1/learn", learn, 25, seconds) for _ in range(8)),
    )
    return p99(alone), p99(both[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--part", choices=("all", "throughput", "latency"), default="all")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is needed: apt-get install wrk")
    tasks = ("predict", "learn", "predict_many", "learn_many")
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    waits: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = ("skn", "river", "vw", "empty", "starlette")
        services = [Service(each, folder) for each in (names if options.part != "latency" else names[:1])]
        try:
            for service in services[:3]:
                service.teach()
            for _ in range(options.rounds):
                for task in tasks if options.part != "latency" else ():
                    for service in services:
                        if service.name in ("empty", "starlette") and task != "predict":
                            continue
                        figures = measured(service, task, folder, options.seconds, options.connections)
                        found.setdefault((task, service.name), []).append(figures)
                if options.part != "throughput":
                    waits.append(asyncio.run(under_learning(services[0], options.seconds)))
        finally:
            for service in services:
                service.stop()
    return report(found, waits)


def report(
    found: dict[tuple[str, str], list[dict[str, float]]],
    waits: list[tuple[float, float]],
) -> int:
    broken = [*report_throughput(found), *report_latency(waits)]
    for line in broken:
        print("BROKEN:", line)
    return 1 if broken else 0


def report_throughput(found: dict[tuple[str, str], list[dict[str, float]]]) -> list[str]:
    """Print what was measured; returns the promises that are broken."""
    if not found:
        return []

    def median(task: str, name: str, figure: str) -> float:
        return statistics.median(one[figure] for one in found[task, name])

    def against_river(task: str, name: str) -> str:
        rate = median(task, name, "rate") / median(task, "river", "rate")
        cost = median(task, "river", "cpu") / median(task, name, "cpu")
        return f"{rate:5.2f}x {cost:5.2f}x"

    print(f"{'':14}{'':11}{'req/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'cpu us':>9}  against River: req/s, cpu")
    for task, name in found:
        values = {figure: median(task, name, figure) for figure in ("rate", "p50", "p99", "cpu")}
        times = "".join(f"{values[figure]:9.2f}" for figure in ("p50", "p99"))
        print(
            f"{task:14}{name:11}{values['rate']:9.0f}{times}{values['cpu']:9.0f}  {against_river(task, name)}"
        )
    overhead = median("predict", "skn", "cpu") - median("predict", "empty", "cpu")
    print(f"predict costs {overhead:.0f} us of processor time more than an empty handler of the same server")
    ratios = {
        task: median(task, "skn", "rate") / median(task, "river", "rate") for task in ("predict", "learn")
    }
    return [f"{task}: {ratio:.2f}x River, promised 2x" for task, ratio in ratios.items() if ratio < 2.0]


def report_latency(waits: list[tuple[float, float]]) -> list[str]:
    """The same for predictions beside learning."""
    if not waits:
        return []
    alone, beside = (statistics.median(column) for column in zip(*waits, strict=True))
    ratio = f"{beside / alone:.2f}x"
    print(f"p99 of predict at 200/s: {alone:.2f} ms alone, {beside:.2f} ms beside learning ({ratio})")
    return [] if beside <= 2.0 * alone else [f"p99 of predict beside learning is {ratio}, promised 2x"]


if __name__ == "__main__":
    sys.exit(main())
