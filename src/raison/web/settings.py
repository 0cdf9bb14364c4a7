"""What the server allows: every limit in one place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from raison.core.errors import InputError
from raison.core.from_settings import setting
from raison.core.spec import between, whole

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Limits are for one request; who needs more has the library and `raison run`."""

    host: str = setting(
        "127.0.0.1", "The address to listen at; any other than 127.0.0.1 needs a token."
    )
    port: int = setting(8765, "The port; 0 takes a free one.")
    token: str | None = setting(  # who knows it may ask; None: everybody who can reach the port
        None,
        "A secret that a client must know; `auto` makes one up.",
        envvar="RAISON_TOKEN",
    )
    # of a client; the models are shared
    workers: int = setting(
        2, "Requests of one client that are answered at once; another gets one more."
    )
    # of one client; of several, twice as many
    waiting: int = setting(16, "Requests that may wait; more get 429.")
    # of work, from its start on
    seconds: float = setting(300.0, "The longest that one request may take.")
    characters: int = setting(20_000, "The longest text.")  # of all texts of a request
    steps: int = 2_000  # of any number in a method, such as steps=, samples= or budget=
    methods: int = 8
    body: int = 2**21  # bytes; records that come back to be exported are larger than texts
    # seconds for a client to send its request, and to go on reading the answer
    patience: float = 10.0
    connections: int = 256

    def __post_init__(self) -> None:
        for name in ("characters", "steps", "methods", "body", "workers", "connections"):
            whole(name, getattr(self, name), 1)
        whole("port", self.port, 0)
        if self.token is not None and not re.fullmatch(r"[A-Za-z0-9._~-]+", self.token):
            raise InputError(
                "A token is made of letters, digits and . _ ~ -: choose another, or `auto`."
            )
        whole("waiting", self.waiting, 0)
        between("seconds", self.seconds, 0)
        between("patience", self.patience, 0)
