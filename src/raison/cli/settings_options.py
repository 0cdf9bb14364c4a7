"""Options of a command from the fields of the settings that it takes: name, type, default and help stand there only.

A parameter that is annotated with `FieldsOf` stands for all options of a dataclass:

    def classifier(data: LabelledData, *, config: Annotated[Chosen, FieldsOf(ClassifierConfig)]) -> None:

The command is called with what was chosen, by the names of the fields: `config={"encoder": "bilstm", …}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from functools import wraps
from inspect import Parameter, signature, unwrap
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Optional,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

import typer

from raison.core.from_settings import SETTING, Setting

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["Chosen", "FieldsOf", "options_of_command", "with_settings_options"]

Chosen: TypeAlias = dict[str, Any]  # settings by the names of their fields
# one, or several by the names of their fields
Options: TypeAlias = "Parameter | dict[str, Parameter]"


@dataclass(frozen=True)
class FieldsOf:
    """The options of a dataclass of settings: of its fields with a help text, or of some of them."""

    settings: type[DataclassInstance]
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    derived: bool = False  # what nobody chooses follows from elsewhere: no option has a default

    def options(self) -> dict[str, Parameter]:
        """The options as parameters of a command, by the names of their fields."""
        types = get_type_hints(self.settings)
        options = {}
        for item in fields(self.settings):
            wanted = item.name in self.only if self.only else item.name not in self.without
            if wanted and SETTING in item.metadata:
                options[item.name] = self.option_of(item, types[item.name])
        return options

    def option_of(self, item: Field[Any], kind: Any) -> Parameter:
        """The option of one field, which holds a value of this kind."""
        told: Setting = item.metadata[SETTING]
        names = told.option or f"--{item.name.replace('_', '-')}"
        only_name = item.name if "/" in names else names.removeprefix("--").replace("-", "_")
        default = item.default
        if get_origin(kind) is tuple:  # the option is given once for each value
            kind = list[get_args(kind)[0]]  # type: ignore[misc]
        if self.is_derived(item):
            kind, default = Optional[kind], None
        told_to_typer = typer.Option(names, help=told.help, envvar=told.envvar)
        return Parameter(
            only_name,
            Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[kind, told_to_typer],
        )

    def is_derived(self, item: Field[Any]) -> bool:
        """Whether a setting that nobody chooses follows from elsewhere."""
        told: Setting = item.metadata[SETTING]
        return self.derived or told.derived


def options_of_command(command: Callable[..., None]) -> dict[str, Options]:
    """The options of each parameter of a command: one, or those of the settings that it stands for."""
    options: dict[str, Options] = {}
    for parameter in signature(unwrap(command), eval_str=True).parameters.values():
        options[parameter.name] = parameter.replace(kind=Parameter.KEYWORD_ONLY)
        for note in get_args(parameter.annotation):
            if isinstance(note, FieldsOf):
                options[parameter.name] = note.options()
    return options


def with_settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field that its parameters stand for."""
    options = options_of_command(command)
    every_option: list[Parameter] = []
    for each in options.values():
        every_option += [each] if isinstance(each, Parameter) else each.values()

    @wraps(command)
    def run(**values: Any) -> None:
        arguments = {}
        for name, each in options.items():
            if isinstance(each, Parameter):
                arguments[name] = values[name]
            else:
                arguments[name] = chosen_settings(each, values)
        command(**arguments)

    run.__signature__ = signature(command).replace(parameters=every_option)  # type: ignore[attr-defined]
    return run


def chosen_settings(options: Mapping[str, Parameter], values: Mapping[str, Any]) -> Chosen:
    """The values of these options by the names of their fields; what nobody chose is left out."""
    chosen = {}
    for field_name, option in options.items():
        if values[option.name] is not None:
            chosen[field_name] = values[option.name]
    return chosen
