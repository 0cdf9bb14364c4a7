"""What the server allows: every limit in one place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from raison.core.errors import InputError
from raison.core.parameters import check_in_range, check_integer

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Limits are for one request; who needs more has the library and `raison run`."""

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None  # who knows it may ask; None: everybody who can reach the port
    characters: int = 20_000  # of all texts of a request
    steps: int = 2_000  # of any number in a method, such as steps=, samples= or budget=
    methods: int = 8
    body: int = 2**21  # bytes; records that come back to be exported are larger than texts
    seconds: float = 300.0  # of work, from its start on
    patience: float = (
        10.0  # seconds for a client to send its request, and to go on reading the answer
    )
    workers: int = 2  # requests of one client that are answered at once, and one of another; the models are shared
    waiting: int = 16  # requests of one client that may wait; of several, twice as many
    connections: int = 256

    def __post_init__(self) -> None:
        for name in ("characters", "steps", "methods", "body", "workers", "connections"):
            check_integer(name, getattr(self, name), 1)
        check_integer("port", self.port, 0)
        if self.token is not None and not re.fullmatch(r"[A-Za-z0-9._~-]+", self.token):
            raise InputError(
                "A token is made of letters, digits and . _ ~ -: choose another, or `auto`."
            )
        check_integer("waiting", self.waiting, 0)
        check_in_range("seconds", self.seconds, 0)
        check_in_range("patience", self.patience, 0)
