"""What a request may ask for: texts of a certain length, methods whose numbers are not too large, and no files."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from raison.core.errors import InputError
from raison.core.registry import methods, rules, searches
from raison.core.spec import Spec
from raison.web.settings import Settings

__all__ = ["check_texts", "checked_spec"]


def check_texts(settings: Settings, *texts: str | None) -> None:
    """Refuse texts that together are longer than the server reads."""
    size = sum(len(text) for text in texts if text is not None)
    if size > settings.characters:
        raise InputError(
            f"The text has {size} characters, and the server reads {settings.characters}: give a shorter one."
        )


def checked_spec(settings: Settings, text: str) -> str:
    """A spec whose numbers are within the limits, and that reads no files of this machine."""
    spec = Spec.parse(text)
    check_value(settings, spec)
    return str(spec)


def check_value(settings: Settings, value: object) -> None:
    """Refuse a number that is too large, and a file, however deep they stand in a spec."""
    if isinstance(value, Spec):
        check_spec(settings, value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            check_value(settings, item)
    elif isinstance(value, str):
        check_written_spec(settings, value)
    elif isinstance(value, (int, float)) and abs(value) > settings.steps:
        raise InputError(
            f"{value} is more than the {settings.steps} that the server allows: take fewer."
        )


def check_spec(settings: Settings, spec: Spec) -> None:
    file_settings = settings_that_name_files(spec.name)
    for key, value in spec.params.items():
        if key in file_settings:
            raise InputError(
                f"{key} names a file, and the server reads none for a request: use the library."
            )
        check_value(settings, value)


def check_written_spec(settings: Settings, text: str) -> None:
    """A method inside a search may be written as text; any other text is none."""
    try:
        spec = Spec.parse(text)
    except InputError:
        return
    if spec.params:
        check_value(settings, spec)


def settings_that_name_files(name: str) -> set[str]:
    """The settings of a method, search or rule that are read from files."""
    for registry in (methods, searches, rules):
        if name in registry and is_dataclass(registry[name]):
            return {field.name for field in fields(registry[name]) if field.metadata.get("file")}
    return set()
