"""`raison serve`: the page in the browser."""

from __future__ import annotations

import secrets
import socket
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from raison.cli import options
from raison.core.errors import InputError, MissingExtra

DEFAULT_MODELS = ("sentiment", "smollm2")


def serve(
    model: Annotated[
        Optional[list[str]],
        typer.Option(
            "--model",
            "-m",
            help="A model that may be asked; repeat it for several. Default: sentiment and smollm2.",
        ),
    ] = None,
    device: options.Device = None,
    allow_pickle: options.AllowPickle = False,
    trust_remote_code: options.RemoteCode = False,
    run: Annotated[
        Optional[list[Path]],
        typer.Option("--run", help="A folder of `raison run` to look at; repeat it for several."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen at; any other than 127.0.0.1 needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8765,
    token: Annotated[
        Optional[str],
        typer.Option(
            envvar="RAISON_TOKEN", help="A secret that a client must know; `auto` makes one up."
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            help="Requests of one client that are answered at once; another gets one more."
        ),
    ] = 2,
    waiting: Annotated[int, typer.Option(help="Requests that may wait; more get 429.")] = 16,
    seconds: Annotated[float, typer.Option(help="The longest that one request may take.")] = 300.0,
    characters: Annotated[int, typer.Option(help="The longest text.")] = 20_000,
) -> None:
    """Serve a page on which texts are explained, at http://127.0.0.1:8765."""
    try:
        import uvicorn

        from raison.web.server import application
        from raison.web.timeouts import http_protocol_with_timeouts
    except ImportError as error:
        raise MissingExtra(error.name or "fastapi", "web", "The page") from None
    from raison import load
    from raison.cli.progress import quiet
    from raison.cli.progress import waiting as wait
    from raison.web.runs import RunFolders
    from raison.web.server_limits import ServerSettings

    if host not in ("127.0.0.1", "localhost", "::1") and token is None:
        raise InputError(
            f"At {host} others can reach the page: give it a secret with --token auto."
        )
    secret = secrets.token_urlsafe(18) if token == "auto" else token
    settings = ServerSettings(
        host, port, secret, characters=characters, seconds=seconds, workers=workers, waiting=waiting
    )
    listening = bound(host, port)
    quiet()
    runs = RunFolders(named(run or []))
    models: dict[str, Any] = {}
    with wait("loading") as step:
        for each in model or DEFAULT_MODELS:
            step(f"loading {each}")
            if not sys.stderr.isatty():  # no bar there, and it takes a while
                typer.echo(f"loading {each} …", err=True)
            opened = load(
                each, device=device, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
            )
            models[opened.name] = opened
    address = f"http://{host if ':' not in host else f'[{host}]'}:{listening.getsockname()[1]}/"
    typer.echo(
        f"raison is at {address}{f'?token={secret}' if secret else ''}  (Ctrl-C ends it)", err=True
    )
    http = http_protocol_with_timeouts(settings.patience, settings.connections)
    config = uvicorn.Config(
        application(models, settings, runs), http=http, ws="none",
        log_level="warning", access_log=False, server_header=False, timeout_keep_alive=10, timeout_graceful_shutdown=3,
        proxy_headers=False,  # anybody can write an address there
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listening])


def bound(host: str, port: int) -> socket.socket:
    """A socket at this address, before models are loaded in vain."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except (OSError, OverflowError, TypeError, UnicodeError) as error:
        found.close()
        place = f"{host[:80]}:{port}"
        raise InputError(
            f"Nothing can listen at {place} ({error}): choose another --port or --host."
        ) from None
    found.listen(128)
    return found


def named(runs: list[Path]) -> dict[str, str]:
    """Run folders by their last name; of two with one name the second gets a number."""
    found: dict[str, str] = {}
    for path in runs:
        name, number = path.resolve().name, 1
        while name in found:
            number += 1
            name = f"{path.resolve().name}-{number}"
        found[name] = str(path)
    return found
