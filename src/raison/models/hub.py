"""The model hub: whether it is reachable, and loading steps whose errors become one sentence."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import lru_cache
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from raison.core.errors import ModelError
from raison.core.registry import suggest_name
from raison.models.panics import is_panic, no_lines_of_rust, reason_of_library_failure

__all__ = ["hub_is_reachable", "run_loading_step"]

T = TypeVar("T")
PATIENCE = 3.0  # seconds
PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


@lru_cache(maxsize=1)
def hub_is_reachable() -> bool:
    """Whether the hub answers within three seconds; asked once per process."""
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return False
    answer: list[bool] = []

    def knock() -> None:
        try:
            socket.create_connection(hub_host_and_port(), timeout=PATIENCE).close()
            answer.append(True)
        except (OSError, ValueError, OverflowError):  # no answer, or an address that is none
            answer.append(False)

    # name look-ups have no time limit of their own: a thread that is left behind does
    thread = threading.Thread(target=knock, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return bool(answer and answer[0])


def hub_host_and_port() -> tuple[str, int]:
    """The host and port through which downloads go: the hub's, or those of the proxy in front of it."""
    address = split_hub_address(hub_address())
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if proxy is not None and not proxy_bypass(address.netloc.rpartition("@")[2]):
        address = split_hub_address(proxy)
    if not address.hostname:
        raise ValueError("an address without a host")
    return address.hostname, address.port or PORTS.get(address.scheme, 443)


def hub_address() -> str:
    """The hub's address."""
    return os.environ.get("HF_ENDPOINT") or "https://huggingface.co"


def split_hub_address(address: str) -> SplitResult:
    """An address in parts; what names no scheme is taken for https."""
    if "://" not in address:
        address = f"https://{address}"
    return urlsplit(address)


def run_loading_step(action: Callable[[], T], name: str, what: str) -> T:
    """Run a loading step of transformers; its many exceptions become one `ModelError`."""
    try:
        with no_lines_of_rust() if what == "tokenizer" else nullcontext():
            return action()
    except BaseException as error:  # a damaged file can break a parser in any way
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        reason = reason_of_library_failure(error)
        if "ignore_mismatched_sizes" in reason:  # transformers prints a table, and points to it
            reason = "its weights have other shapes than its config.json says: take both files from one model"
        if isinstance(error, OSError) and not hub_is_reachable() and not os.path.exists(name):
            from raison.models import catalog

            hint = suggest_name(name, list(catalog.catalog_entries()))
            hub = "the hub"
            if "HF_ENDPOINT" in os.environ:
                hub = f"the hub at {hub_address()!r}"
            raise ModelError(
                f"There is no model {name!r} here and {hub} can't be reached.{hint} "
                "Name a local folder or one of `raison ls models`."
            ) from error
        raise ModelError(f"The {what} of {name!r} can't be read ({reason}).") from error
