"""A click stream with late labels, served end to end.

The log of yesterday, whose labels are known, is learned first. Then impressions arrive; each is predicted at once
and remembered by its id. A click comes later, as feedback. No click never comes: when the server has waited long
enough, it learns `no` (`--assume-label`).

    python examples/click_stream.py              starts `skn serve` with a directory that goes away afterwards
    python examples/click_stream.py --crash      kills it with SIGKILL half-way: nothing acknowledged is lost
    python examples/click_stream.py --url http://127.0.0.1:8080       a server of your own, which was started with
        skn serve --classes no,yes --loss logistic --feedback-ttl 1 --assume-label no

Open the address that is printed in a browser, or run `skn top` on it, while the rows arrive.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import math
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from sketchnewton.client import Client

WAIT = 1.0  # seconds until no click is a label
BATCH = 10  # impressions in a request

CHOICES = {
    "user": [f"user{n}" for n in range(200)],
    "ad": ["sneakers", "flights", "piano", "bank", "garden", "chess", "opera", "boots"],
    "site": ["news", "weather", "recipes", "sports", "maps"],
    "device": ["phone", "laptop", "tablet"],
}


class Audience:
    """Who clicks: a logistic model that the server does not know."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        spread = {"user": 0.8, "ad": 1.0, "site": 0.6, "device": 0.4}
        self._effect = {
            (name, value): self._random.gauss(0, spread[name]) for name in CHOICES for value in CHOICES[name]
        }

    def impression(self) -> tuple[dict[str, Any], float, bool]:
        """A record, the probability of a click, and whether there will be one."""
        record: dict[str, Any] = {name: self._random.choice(values) for name, values in CHOICES.items()}
        record["hour"] = self._random.randrange(24)
        score = -1.5 + sum(self._effect[name, record[name]] for name in CHOICES)
        chance = 1 / (1 + math.exp(-score - 0.5 * math.cos(math.tau * (record["hour"] - 20) / 24)))
        return record, chance, self._random.random() < chance

    def delay(self) -> float:
        """Seconds until a click is reported; now and then later than the server waits."""
        return self._random.expovariate(6.0)


class Server:
    """`skn serve` as a process of its own, on a port that was free."""

    def __init__(self, state: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [
            sys.executable,
            "-m",
            "sketchnewton",
            "serve",
            "--classes",
            "no,yes",
            "--loss",
            "logistic",
            "--quiet",
        ]
        self._command += ["--state", state, "--port", str(self.port)]
        self._command += ["--feedback-ttl", str(WAIT), "--assume-label", "no"]
        self.process = subprocess.Popen(self._command)

    def crash(self) -> None:
        """End it as a power cut would, and start it again."""
        self.process.kill()
        self.process.wait()
        self.process = subprocess.Popen(self._command)

    def close(self) -> None:
        """End it in peace."""
        self.process.terminate()
        self.process.wait(60)


@contextlib.contextmanager
def running(url: str | None) -> Iterator[tuple[str, Server | None]]:
    """The address of a server: the given one, or one that is ended afterwards."""
    if url is not None:
        yield url, None
        return
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            yield server.url, server
        finally:
            server.close()


def stream(
    client: Client, impressions: int, rate: float, seed: int, crash: Callable[[], None] | None = None
) -> dict[str, float]:
    """Show impressions, report clicks as they come, and measure what was predicted at the time."""
    audience = Audience(seed)
    yesterday = [audience.impression() for _ in range(impressions // 4)]
    for start in range(0, len(yesterday), 500):
        rows = yesterday[start : start + 500]
        client.learn([record for record, _, _ in rows], ["yes" if click else "no" for _, _, click in rows])
    clicks: list[tuple[float, str]] = []  # when, of which id
    loss = truth = late = 0.0
    shown = clicked = reported = said_at = 0
    start = time.monotonic()
    while shown < impressions or clicks:
        if shown < impressions and time.monotonic() >= start + shown / rate:
            batch = [audience.impression() for _ in range(min(BATCH, impressions - shown))]
            answers = client.predict([record for record, _, _ in batch], remember=True)
            for (_, chance, click), answer in zip(batch, answers, strict=True):
                said = answer["probabilities"]["yes"]
                loss -= math.log(max(1e-9, said if click else 1 - said))
                truth -= math.log(chance if click else 1 - chance)
                clicked += click
                if click:
                    heapq.heappush(clicks, (time.monotonic() + audience.delay(), answer["id"]))
            before, shown = shown, shown + len(batch)
            if before * 2 < impressions <= shown * 2 and crash is not None:
                print("half-way: kill -9, and start again")
                crash()
        else:
            time.sleep(0.005)
        now = time.monotonic()
        due = []
        while clicks and clicks[0][0] <= now:
            due.append({"id": heapq.heappop(clicks)[1], "label": "yes"})
        if due:
            results = client.feedback_all(due)
            late += sum("error" in result for result in results)
            reported += len(results)
        if shown >= said_at + 1000:
            said_at = shown
            print(f"{shown:,} shown, {reported:,} clicks reported, loss so far {loss / shown:.4f}")
    share = clicked / shown
    constant = -(share * math.log(share) + (1 - share) * math.log(1 - share)) if 0 < share < 1 else 0.0
    return {
        "known": len(yesterday),
        "shown": shown,
        "clicks": clicked,
        "late": late,
        "loss": loss / shown,
        "constant": constant,
        "truth": truth / shown,
    }


def settled(client: Client) -> dict[str, Any]:
    """The server's figures once no record waits for its label."""
    end = time.monotonic() + WAIT + 30
    while time.monotonic() < end:
        stats = client.stats()
        if stats["pending"] == 0:
            return stats
        time.sleep(0.2)
    raise SystemExit("records still wait for their labels: was the server started with --assume-label no?")


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Run the stream and print what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--impressions", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=200.0, help="impressions in a second")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--url", help="a running server; default: one is started")
    parser.add_argument("--token-file", help="file with the token of a running server")
    parser.add_argument("--crash", action="store_true", help="kill the server half-way and start it again")
    args = parser.parse_args(arguments)
    token = None
    if args.token_file:
        with open(args.token_file, encoding="utf-8") as file:
            token = file.readline().strip()
    with running(args.url) as (url, server):
        print(f"open {url}/ or run: skn top {url}")
        with Client(url, token, retries=12) as client:  # enough to outlast a restart
            crash = server.crash if args.crash and server is not None else None
            found = stream(client, args.impressions, args.rate, args.seed, crash)
            stats = settled(client)
    found["learned"] = stats["version"]
    print(f"{found['shown']:,} shown, {found['clicks']:,} clicked; {found['late']:.0f} clicks came too late")
    print(f"rows learned: {found['learned']:,}, of which {found['known']:,} of yesterday")
    print(f"loss of predictions made before any label: {found['loss']:.4f}")
    print(f"  always the overall rate {found['constant']:.4f}, the true probabilities {found['truth']:.4f}")
    return found


if __name__ == "__main__":
    main()
