"""raison rationalize: the smallest part of a text that alone makes the model say this."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from raison.cli import options
from raison.cli.explain import example_of, number_or_text, publish, read_file
from raison.cli.inputs import files_of_methods
from raison.core.errors import InputError
from raison.core.outputs import check_outputs

DEFAULT_MODEL = "smollm2"


def rationalize(
    text: Annotated[Optional[str], typer.Argument(help="The text, or - to read it from standard input.")] = None,
    model: options.Model = DEFAULT_MODEL,
    search: options.Search = None,
    sufficient: options.Sufficient = None,
    target: options.Target = None,
    contrast: options.Contrast = None,
    generate: options.Generate = 0,
    units: options.ChosenUnits = None,
    removal: options.Removal = None,
    pair: options.Pair = None,
    question: options.Question = None,
    context: options.Contexts = None,
    answer: options.Answer = None,
    truncate: options.Truncate = False,
    json: options.Json = False,
    html: options.Html = None,
    figure: options.Figure = None,
    out: options.Out = None,
    force: options.Force = False,
    device: options.Device = None,
    allow_pickle: options.AllowPickle = False,
    trust_remote_code: options.RemoteCode = False,
) -> None:
    """Find the smallest part of a text that alone makes the model say what it says, with a certificate.

    With --question and --context files the model answers the question, and the passages and sentences are found that
    its answer rests on.
    """
    inputs: list[str | Path | None] = [model, *(context or []), *files_of_methods([search] if search else [])]
    check_outputs((html, out, figure), force=force, inputs=inputs)
    contexts = {unique(path, context or []): read_file(path) for path in context or []}
    grounded = question is not None and bool(contexts)
    example = None if grounded else example_of(text, pair, question, None)
    if grounded and text is not None:
        raise InputError("Give the context once: as TEXT or with --context.")
    if contexts and question is None:
        raise InputError("--context needs a --question.")
    if grounded and (target or contrast or pair or truncate):
        raise InputError("--target, --contrast, --pair and --truncate are for texts: name an answer with --answer.")
    if figure is not None and figure.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"A figure is a .png, .svg or .pdf file, not {figure.name!r}.")
    if answer is not None and not grounded:
        raise InputError("--answer belongs to --question and --context; name other targets with --target.")
    from raison.cli.progress import waiting

    results: list[Any] = []
    with waiting("loading the libraries") as wait:
        from raison.api import DEFAULT_SEARCH, build_search, explain_until_interrupted, ground
        from raison.engine import Request
        from raison.methods.base import check_needs
        from raison.models.load import load
        from raison.rationales.search import Interrupted

        # misspelt names are cheaper to refuse before a model is loaded
        chosen = build_search(search or ("hierarchical" if grounded else DEFAULT_SEARCH), sufficient)
        request = Request(
            target=number_or_text(target),
            contrast=contrast,
            units=units,
            removal=removal,
            truncate=truncate,
            generate=generate,
        )
        wait(f"opening {model}")
        opened = load(model, device=device, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
        check_needs(chosen, opened)
        wait(f"searching ({chosen.name})")
        interrupted = False
        try:
            if example is None:
                grounding = ground(
                    opened,
                    question or "",
                    contexts,
                    chosen,
                    answer=answer,
                    units=units or "sentence",
                    generate=generate or 48,
                    removal=removal,
                )
                results.append(grounding)
            else:
                results += explain_until_interrupted(opened, [example], chosen, request)
        except Interrupted as stop:
            if not stop.partial:
                raise
            results, interrupted = results + stop.partial, True
    if results:
        publish(results, json, html, out, figure)
    if interrupted:
        print("raison: interrupted; this is the best that was found until then.", file=sys.stderr)
        raise typer.Exit(130)


def unique(path: Path, every: list[Path]) -> str:
    """What a passage is called: the name of its file, with its folder where two share a name."""
    return str(path) if sum(other.name == path.name for other in every) > 1 else path.name
