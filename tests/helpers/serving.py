"""A server on a port of its own, in a thread of the test."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager

import httpx
import uvicorn

from raison.web.runs import RunFolders
from raison.web.server import application
from raison.web.server_limits import ServerSettings
from raison.web.timeouts import http_protocol_with_timeouts

__all__ = ["served"]


@contextmanager
def served(models, runs=None, **changes):
    """A real server on a port of its own, in a thread."""
    settings = ServerSettings(port=0, **changes)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
    app = application(models, settings, runs or RunFolders())
    config = uvicorn.Config(
        app,
        http=http_protocol_with_timeouts(settings.patience, settings.connections),
        ws="none",
        log_level="error",
        access_log=False,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    for _ in range(200):
        if server.started:
            break
        time.sleep(0.02)
    try:
        with httpx.Client(base_url=address, timeout=300) as client:
            client.workers = app.app.state.workers
            client.connections = server.server_state.connections
            yield client
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
