"""Progress of long calls: who hears what they report and tell, and who may check on them and stop them; one
listener per context.

Models and methods say `report(done, total)`; the command line and the server listen. Without a
listener a report costs one dictionary lookup. The context variables keep two threads apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["check", "hear", "listen", "report", "silence", "stoppable", "tell"]

Listener = Callable[[int, int, str], None]
_listener: ContextVar[Listener | None] = ContextVar("raison_progress", default=None)
_hearer: ContextVar[Callable[[str], None] | None] = ContextVar("raison_hearer", default=None)
_check: ContextVar[Callable[[], None] | None] = ContextVar("raison_check", default=None)


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
    check()
    listener = _listener.get()
    if listener is not None:
        listener(done, total, what)


@contextmanager
def hear(hearer: Callable[[str], None]) -> Iterator[None]:
    """Send every sentence that is told inside the block to `hearer`."""
    token = _hearer.set(hearer)
    try:
        yield
    finally:
        _hearer.reset(token)


def tell(sentence: str) -> None:
    """Tell whoever hears it what a call has found out on its way, such as what it took a file for."""
    hearer = _hearer.get()
    if hearer is not None:
        hearer(sentence)


@contextmanager
def stoppable(check: Callable[[], None]) -> Iterator[None]:
    """Have `check()` called before every batch that a model runs inside the block; what it raises ends the work."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def check() -> None:
    """Go on, unless whoever waits for this work has left."""
    wanted = _check.get()
    if wanted is not None:
        wanted()
