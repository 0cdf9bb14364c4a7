"""Connections that keep the server waiting."""

from __future__ import annotations

import socket
import threading
import time

import httpx

from tests.helpers.serving import served
from tests.helpers.web_client import TEXT, ask, until


def unread(client, count: int, requests: int = 60) -> list[socket.socket]:
    """Connections that ask for more than fits into any buffer, and never read it."""
    found = []
    for _ in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect((client.base_url.host, client.base_url.port))
        one.sendall(b"GET /api/openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * requests)
        found.append(one)
    return found


def stuck(client) -> int:
    return sum(each.flow.write_paused for each in list(client.connections))


def test_connections_that_never_read_make_room_for_others(models):
    with served(models, connections=8, patience=60) as client:
        slow = unread(client, 20)
        until(lambda: stuck(client) >= 7)
        assert len(client.connections) <= 8
        for _ in range(3):
            with httpx.Client(base_url=client.base_url, timeout=300) as another:
                assert another.get("/api/about").status_code == 200
                assert ask(another, "predict", model="bert", text=TEXT)["text"]
        for one in slow:
            one.close()


def test_connections_that_never_read_are_closed_in_time(models):
    with served(models, patience=0.3) as client:
        slow = unread(client, 4)
        until(lambda: stuck(client) == 4)
        until(lambda: not client.connections)
        for one in slow:
            one.close()


def test_who_reads_slowly_gets_all_of_it(models):
    """Slower than the patience in all, but never without reading for so long."""
    with served(models, patience=0.6) as client:
        whole = len(client.get("/api/openapi.json").content)
        (one,) = unread(client, 1, requests=40)
        until(lambda: stuck(client) == 1)
        one.settimeout(20)
        read, begun = 0, time.monotonic()
        while read < 40 * whole:
            part = one.recv(2**16)
            assert part, f"closed behind {read} bytes"
            read += len(part)
            time.sleep(0.01)
        assert time.monotonic() - begun > 0.6
        one.close()


def test_requests_that_are_worked_on_are_not_sent_away(models):
    long = {
        "model": "slow",
        "text": " ".join(map(str, range(40))),
        "methods": ["lime(samples=150)"],
        "units": "token",
    }
    with served(models, connections=4, patience=60) as client:
        answers = []
        thread = threading.Thread(target=lambda: answers.append(ask(client, "explain", **long)))
        thread.start()
        until(lambda: client.workers.running)
        for one in unread(client, 12):
            one.close()
        thread.join()
        assert answers[0]["explanations"]


def test_slow_clients_are_sent_away(models):
    with served(models, patience=0.5) as client:
        host, port = client.base_url.host, client.base_url.port
        said = []
        for start in (
            b"",
            b"GET / HT",
            b"POST /api/predict HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 50\r\n\r\n{",
        ):
            with socket.create_connection((host, port), timeout=60) as one:
                one.sendall(start)
                said.append(one.recv(1000))  # raises where the server goes on waiting
        assert said[0] == said[1] == b"" and b" 408 " in said[2].split(b"\r\n")[0]
        assert client.get("/api/about").status_code == 200
