"""Who wants to know how far a long call is: a listener per context, never a global.

Models and methods say `report(done, total)`; the command line and the server listen. Without a
listener a report costs one dictionary lookup. The context variable keeps two threads apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["listen", "report", "silence"]

Listener = Callable[[int, int, str], None]
_listener: ContextVar[Listener | None] = ContextVar("raison_progress", default=None)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Send every report made inside the block to `listener(done, total, what)`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def silence() -> Iterator[None]:
    """Nobody hears the reports made inside the block: an outer loop tells how far it is itself."""
    token = _listener.set(None)
    try:
        yield
    finally:
        _listener.reset(token)


def report(done: int, total: int, what: str = "tokens") -> None:
    """Tell the listener, if there is one, that `done` of `total` is finished."""
    listener = _listener.get()
    if listener is not None:
        listener(done, total, what)
