"""raison explain: which parts of a text made the model say this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from raison.cli import options
from raison.cli.inputs import input_files_of_methods
from raison.cli.results import check_figure_ending, publish_explanations
from raison.cli.texts import example_of_text_options, target_of_text_option
from raison.core.errors import InputError, MethodFailed
from raison.core.outputs import check_outputs

if TYPE_CHECKING:
    from raison.core.records import Example, Explanation
    from raison.engine import Request
    from raison.methods.base import Method
    from raison.models.protocol import Model

DEFAULT_MODEL = "sentiment"


def explain_command(
    text: Annotated[
        Optional[str], typer.Argument(help="The text, or - to read it from standard input.")
    ] = None,
    model: options.Model = DEFAULT_MODEL,
    method: options.Methods = None,
    target: options.Target = None,
    contrast: options.Contrast = None,
    output: options.Output = None,
    units: options.Units = "word",
    removal: options.Removal = None,
    pair: options.Pair = None,
    question: options.Question = None,
    context: options.Context = None,
    seed: options.Seed = 0,
    truncate: options.Truncate = False,
    difference: options.Difference = False,
    json: options.Json = False,
    html: options.Html = None,
    figure: options.Figure = None,
    out: options.Out = None,
    force: options.Force = False,
    device: options.Device = None,
    allow_pickle: options.AllowPickle = False,
    trust_remote_code: options.RemoteCode = False,
) -> None:
    """Score the parts of a text by how much they made the model say what it says.

    Several methods stand side by side, with how far they agree.
    """
    example = example_of_text_options(text, pair, question, context)
    names = method or []
    inputs: list[str | Path | None] = [model, context, *input_files_of_methods(names)]
    check_outputs((html, out, figure), force=force, inputs=inputs)
    check_figure_ending(figure)
    if difference:
        check_options_of_explained_difference(names, prints_records=json, figure=figure)
    if seed < 0:
        raise InputError(f"A seed is a whole number from 0 up, not {seed}.")
    from raison.cli.progress import waiting

    with waiting("loading the libraries") as wait:
        from raison.api import build_method
        from raison.core.registry import methods
        from raison.engine import Request
        from raison.models.load import load

        # misspelt ones are cheaper to refuse before a model is loaded
        chosen = [methods.build(name) for name in names]
        wait(f"opening {model}")
        loaded = load(
            model, device=device, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
        )
        request = Request(
            target=target_of_text_option(target),
            contrast=contrast,
            output=output,
            units=units,
            removal=removal,
            seed=seed,
            truncate=truncate,
        )
        chosen = chosen or [build_method(None, loaded)]
        explanations, failures = explain_by_methods(loaded, example, chosen, request, wait)
    publish_explanations(
        explanations, json=json, html=html, out=out, figure=figure, difference=difference
    )
    if failures:
        raise MethodFailed(" ".join(map(str, failures)))


def check_options_of_explained_difference(
    methods: Sequence[str], *, prints_records: bool, figure: Path | None
) -> None:
    """Refuse a picture of a difference that there is not, or that has no place."""
    if len(methods) < 2:
        raise InputError("--difference needs two methods: name them with -M A -M B.")
    if prints_records and figure is None:
        raise InputError(
            "--difference is a picture of two records, and --json prints records: leave one of them away."
        )


def explain_by_methods(
    model: Model,
    example: Example,
    methods: Sequence[Method],
    request: Request,
    wait: Callable[[str], None],
) -> tuple[list[Explanation], list[MethodFailed]]:
    """Explanations with methods beside each other, and the methods that failed; not all may fail."""
    from raison.engine import run_methods
    from raison.methods.base import check_needs_of_method

    for method in methods:
        check_needs_of_method(method, model)
    by_method, failures = [], []
    runs = run_methods(
        model,
        [example],
        methods,
        request,
        keep_going=True,
        before_method=lambda method: wait(method.name),
    )
    for run in runs:
        if run.failure is None:
            by_method.append(run.explanations)
        else:  # the others are not lost
            failures.append(run.failure)
    if not by_method:
        raise failures[0]
    by_target = zip(*by_method, strict=True)
    return [explanation for same_target in by_target for explanation in same_target], failures
