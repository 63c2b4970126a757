"""Requests per second of `metabandit serve`, and how long they take, with a store in SQLite or PostgreSQL.

    python benchmarks/service.py --json benchmarks/service.json

One server process and one client process on loopback. Each of the client's connections asks for a choice, then tells its
reward, again and again, for some seconds; every hundredth reward is told twice. At the end the counts of the
server must be what its clients were told.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.postgres import postgresql
from metabandit.play.store import Store
from metabandit.showing import text_table

TOKEN = "a token of this benchmark"
ARMS = [f"arm {number}" for number in range(10)]


@contextmanager
def service(url: str) -> Iterator[int]:
    """The port of a server process."""
    Store(url).create()
    process = subprocess.Popen(
        [sys.executable, "-m", "metabandit", "serve", "--store", url, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "METABANDIT_TOKEN": TOKEN},
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        if "http://" not in line:
            raise RuntimeError(line + process.stderr.read())
        yield int(line.split("http://", 1)[1].split("/")[0].rsplit(":", 1)[1])
    finally:
        process.terminate()
        process.wait()


class Client:
    """A connection that is kept open."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.seconds: list[float] = []

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request, with its time noted."""
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        began = time.perf_counter()
        self.writer.write(head.encode() + content)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        found = json.loads(await self.reader.readexactly(length))
        self.seconds.append(time.perf_counter() - began)
        if not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise RuntimeError(f"{answer!r} {found}")
        return found


async def _play(client: Client, path: str, until: float) -> int:
    counted = 0
    while time.perf_counter() < until:
        choice = await client.ask("POST", f"{path}/choose", {})
        told = {"id": choice["id"], "value": counted % 3 == 0}
        told["value"] = float(told["value"])
        for _ in range(2 if counted % 100 == 99 else 1):
            answer = await client.ask("POST", f"{path}/reward", told)
            counted += answer["counted"]
    return counted


async def load(port: int, policy: str, connections: int, seconds: float) -> dict[str, float]:
    """Requests per second and quantiles of their times, with so many connections."""
    path = f"/experiments/{policy}-{connections}"
    first = Client(port)
    await first.open()
    await first.ask("PUT", path, {"policy": policy, "arms": ARMS})
    counts = [{"arm": arm, "plays": 20, "total": 5, "squares": 5} for arm in ARMS]
    await first.ask("POST", f"{path}/counts", {"counts": counts})
    clients = [Client(port) for _ in range(connections)]
    for client in clients:
        await client.open()
    began = time.perf_counter()
    counted = await asyncio.gather(*(_play(item, path, began + seconds) for item in clients))
    took = time.perf_counter() - began
    state = await first.ask("GET", f"{path}/state")
    if state["rewarded"] != sum(counted) + 20 * len(ARMS) or state["open"]:
        raise RuntimeError(f"{state['rewarded']} rewards, {sum(counted)} acknowledged")
    times = sorted(item for client in clients for item in client.seconds)
    for client in [first, *clients]:
        client.writer.close()
    return {
        "requests": len(times) / took,
        "median": 1000.0 * times[len(times) // 2],
        "p99": 1000.0 * times[int(0.99 * len(times))],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast the service is.")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as folder, postgresql(fsync=True) as server:
        stores = {"SQLite": f"sqlite:///{folder}/bandit.db"} | (
            {"PostgreSQL": server.url} if server else {}
        )
        for title, url in stores.items():
            with service(url) as port:
                for policy, connections in (("ucb1", 1), ("ucb1", 32), ("thompson", 32)):
                    figures[f"{title}, {policy}, {connections} connections"] = asyncio.run(
                        load(port, policy, connections, options.seconds)
                    )
    cells = [
        [name, f"{row['requests']:,.0f}", f"{row['median']:.1f}", f"{row['p99']:.1f}"]
        for name, row in figures.items()
    ]
    titles = ["one server process", "requests per second", "median, ms", "p99, ms"]
    print(text_table(titles, cells, align="lr"))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
