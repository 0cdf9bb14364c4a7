"""What the server allows: its settings, with every limit, and the checks of a request's texts and specs."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass

from raison.core.errors import InputError
from raison.core.from_settings import setting
from raison.core.parameters import check_in_range, check_integer
from raison.core.registry import methods, rules, searches
from raison.core.spec import Spec

__all__ = ["ServerSettings", "check_texts_against_limits", "checked_spec"]


@dataclass(frozen=True)
class ServerSettings:
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
            check_integer(name, getattr(self, name), 1)
        check_integer("port", self.port, 0)
        if self.token is not None and not re.fullmatch(r"[A-Za-z0-9._~-]+", self.token):
            raise InputError(
                "A token is made of letters, digits and . _ ~ -: choose another, or `auto`."
            )
        check_integer("waiting", self.waiting, 0)
        check_in_range("seconds", self.seconds, 0)
        check_in_range("patience", self.patience, 0)


def check_texts_against_limits(settings: ServerSettings, *texts: str | None) -> None:
    """Refuse texts that together are longer than the server reads."""
    size = sum(len(text) for text in texts if text is not None)
    if size > settings.characters:
        raise InputError(
            f"The text has {size} characters, and the server reads {settings.characters}: give a shorter one."
        )


def checked_spec(settings: ServerSettings, text: str) -> str:
    """A spec whose numbers are within the limits, and that reads no files of this machine."""
    spec = Spec.parse(text)
    check_value_against_limits(settings, spec)
    return str(spec)


def check_value_against_limits(settings: ServerSettings, value: object) -> None:
    """Refuse a number that is too large, and a file, however deep they stand in a spec."""
    if isinstance(value, Spec):
        check_spec(settings, value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            check_value_against_limits(settings, item)
    elif isinstance(value, str):
        check_written_spec(settings, value)
    elif isinstance(value, (int, float)) and abs(value) > settings.steps:
        raise InputError(
            f"{value} is more than the {settings.steps} that the server allows: take fewer."
        )


def check_spec(settings: ServerSettings, spec: Spec) -> None:
    """Refuse a setting that names a file, and numbers that are too large."""
    file_settings = settings_that_name_files(spec.name)
    for key, value in spec.params.items():
        if key in file_settings:
            raise InputError(
                f"{key} names a file, and the server reads none for a request: use the library."
            )
        check_value_against_limits(settings, value)


def check_written_spec(settings: ServerSettings, text: str) -> None:
    """A method inside a search may be written as text; any other text is none."""
    try:
        spec = Spec.parse(text)
    except InputError:
        return
    if spec.params:
        check_value_against_limits(settings, spec)


def settings_that_name_files(name: str) -> set[str]:
    """The settings of a method, search or rule that are read from files."""
    for registry in (methods, searches, rules):
        if name in registry and is_dataclass(registry[name]):
            return {field.name for field in fields(registry[name]) if field.metadata.get("file")}
    return set()
