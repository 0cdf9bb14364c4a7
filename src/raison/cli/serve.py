"""raison serve: the page in the browser, its address, socket, models and runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from raison.cli import options
from raison.cli.settings_options import Chosen, FieldsOf, with_settings_options
from raison.core.errors import InputError, MissingExtra
from raison.web.server_limits import ServerSettings

if TYPE_CHECKING:
    import socket

DEFAULT_MODELS = ("sentiment", "smollm2")
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


@with_settings_options
def serve_command(
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
    *,
    limits: Annotated[Chosen, FieldsOf(ServerSettings)],
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

    settings = server_settings(limits)
    host, secret = settings.host, settings.token
    listening = bound_socket(host, settings.port)
    quiet()
    runs = RunFolders(run_folders_by_name(run or []))
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


def server_settings(limits: Chosen) -> ServerSettings:
    """What the server allows; at an address that others can reach it needs a secret."""
    import secrets

    if limits["host"] not in LOCAL_HOSTS and "token" not in limits:
        raise InputError(
            f"At {limits['host']} others can reach the page: give it a secret with --token auto."
        )
    if limits.get("token") == "auto":
        limits = {**limits, "token": secrets.token_urlsafe(18)}
    return ServerSettings(**limits)


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket at this address, before models are loaded in vain."""
    import socket

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


def run_folders_by_name(runs: list[Path]) -> dict[str, str]:
    """Run folders by their last name; of two with one name the second gets a number."""
    found: dict[str, str] = {}
    for path in runs:
        name, number = path.resolve().name, 1
        while name in found:
            number += 1
            name = f"{path.resolve().name}-{number}"
        found[name] = str(path)
    return found
