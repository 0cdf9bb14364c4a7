"""Whether the hub can be reached: asked where downloads go, and never more than a yes or a no."""

from __future__ import annotations

import socket
import threading

import pytest

import raison
from raison.core.errors import ModelError
from raison.models import hub

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "HF_ENDPOINT", "HF_HUB_OFFLINE")


@pytest.fixture
def knocked(monkeypatch):
    """The doors that were knocked at; nobody opens, and the environment says nothing."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    doors = []

    def closed(address, timeout):
        doors.append(address)
        raise OSError("nobody is there")

    monkeypatch.setattr(socket, "create_connection", closed)
    hub.hub_is_reachable.cache_clear()
    yield doors
    hub.hub_is_reachable.cache_clear()


@pytest.mark.parametrize(
    ("environment", "door"),
    [
        ({}, ("huggingface.co", 443)),
        ({"HF_ENDPOINT": "http://mirror.example/hub"}, ("mirror.example", 80)),
        ({"HF_ENDPOINT": "mirror.example:8080"}, ("mirror.example", 8080)),
        ({"HF_ENDPOINT": "http://[::1]:9000"}, ("::1", 9000)),
        ({"HTTPS_PROXY": "http://me:secret@proxy.example:3128"}, ("proxy.example", 3128)),
        ({"https_proxy": "proxy.example:3128"}, ("proxy.example", 3128)),
        ({"ALL_PROXY": "socks5://proxy.example"}, ("proxy.example", 1080)),
        ({"HTTP_PROXY": "http://proxy.example:3128"}, ("huggingface.co", 443)),
        (
            {"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "localhost,.co"},
            ("huggingface.co", 443),
        ),
        ({"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "*"}, ("huggingface.co", 443)),
    ],
)
def test_the_hub_is_asked_where_downloads_go(environment, door, knocked, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert hub.hub_is_reachable() is False
    assert knocked == [door]


@pytest.mark.parametrize(
    "odd",
    [
        "http://",
        "https://host:port",
        "http://host:99999999",
        "http://[::1",
        "ftp//x",
        "a" * 300,
        "é..é",
        "//",
        " ",
    ],
)
def test_an_address_that_is_none_is_no_hub(odd, knocked, monkeypatch):
    monkeypatch.undo()  # the real connection, which refuses such names in its own ways
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", odd)
    looked_up = []
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *where: looked_up.append(where) or refused(*where)
    )
    mistakes = []
    monkeypatch.setattr(threading, "excepthook", mistakes.append)
    assert hub.hub_is_reachable() is False and not mistakes
    with pytest.raises(ModelError, match="and the hub at .* can't be reached"):
        raison.load("nobody/nothing")


def refused(host, *_):
    host.encode("idna")  # as the real one does before it asks anybody
    raise socket.gaierror("no such host")


def test_a_proxy_that_answers_is_enough(knocked, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    monkeypatch.setattr(socket, "create_connection", lambda address, timeout: socket.socket())
    assert hub.hub_is_reachable() is True
