"""Who may ask: hosts, origins, tokens, sessions, bodies."""

from __future__ import annotations

import re

import pytest

from raison.core.errors import InputError
from raison.web.guard import Guard, cookie_value
from raison.web.runs import RunFolders
from raison.web.server_limits import ServerSettings
from tests.helpers.serving import served


def test_a_session_comes_with_the_first_answer_and_stays(models):
    with served(models, token="secret") as client:
        first = client.get("/")
        assert first.status_code == 401
        assert re.fullmatch(
            r"raison-session=[0-9a-f]{32}; HttpOnly; SameSite=Strict; Path=/",
            first.headers["set-cookie"],
        )
        assert "set-cookie" not in client.get("/").headers
        made_up = client.get("/", headers={"cookie": "raison-session=x"})
        assert "raison-session=" in made_up.headers["set-cookie"]


def test_other_pages_hosts_paths_and_bodies_are_refused(client):
    for headers, code in (
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://[evil"}, 403),
        ({"origin": "ftp://127.0.0.1"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "127.0.0.1:80@evil.example"}, 421),
        ({"host": "127.0.0.1:evil.example"}, 421),
        ({"sec-fetch-site": "cross-site"}, 403),
    ):
        assert (
            client.post(
                "/api/predict", json={"model": "bert", "text": "x"}, headers=headers
            ).status_code
            == code
        )
    fine = {"origin": str(client.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
    assert (
        client.post("/api/predict", json={"model": "bert", "text": "x"}, headers=fine).status_code
        == 200
    )
    for path in (
        "/page/../server.py",
        "/page/%2e%2e/html.py",
        "/page/..%2f..%2fweb%2fserver.py",
        "/etc/passwd",
        "/page/none.js",
    ):
        assert client.get(path).status_code == 404
    assert client.post("/api/predict", content=b"x" * (2**21 + 1)).status_code == 413
    assert client.post("/api/predict", content=iter([b"x" * 2**20] * 3)).status_code == 413
    assert client.post("/api/predict", content=b"{").status_code == 422
    assert client.get("/api/explain").status_code == 405
    assert client.get("/docs").status_code == 404


def test_every_answer_has_its_headers(client):
    for response in (
        client.get("/"),
        client.get("/page/app.js"),
        client.get("/api/about"),
        client.get("/none"),
    ):
        policy = response.headers["content-security-policy"]
        assert (
            "default-src 'none'" in policy
            and "unsafe" not in policy
            and "script-src 'self'" in policy
        )
        assert (
            response.headers["x-content-type-options"] == "nosniff"
            and response.headers["referrer-policy"] == "no-referrer"
        )
    assert "<script>" not in client.get("/").text  # no inline script


def test_tokens(models):
    with served(models, token="secret") as client:
        assert client.get("/").status_code == 401 and client.get("/api/about").status_code == 401
        assert client.get("/?token=wrong").status_code == 401
        assert (
            client.get("/api/about", headers={"authorization": "Bearer wrong"}).status_code == 401
        )
        assert (
            client.get("/api/about", headers={"authorization": "Bearer secret"}).status_code == 200
        )
        opened = client.get("/?token=secret")
        assert opened.status_code == 303 and "HttpOnly" in opened.headers["set-cookie"]
        assert (
            client.get("/").status_code == 200 and client.get("/api/about").status_code == 200
        )  # by the cookie
    for others in ('theme={"a":1}; ', "x[y]=1; ", "a b=c; ", ""):
        assert cookie_value(f"{others}raison-token=secret; z=1", "raison-token") == "secret"
    assert cookie_value("my-raison-token=secret", "raison-token") == ""
    assert cookie_value("", "raison-token") == ""


def test_settings_and_the_guard_refuse_nonsense():
    bad = [
        {"workers": 0},
        {"seconds": 0},
        {"body": -1},
        {"port": "x"},
        {"token": ""},
        {"token": "a;b é"},
    ]
    for changes in bad:
        with pytest.raises(InputError):
            ServerSettings(**changes)
    assert Guard(None, ServerSettings(host="0.0.0.0")).any_host
    with pytest.raises(InputError, match="is no run"):
        RunFolders({"x": "/nowhere"})
