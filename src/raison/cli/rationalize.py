"""raison rationalize: the smallest part of a text that alone makes the model say this."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from raison.cli import options
from raison.cli.inputs import input_files_of_methods
from raison.cli.results import check_figure_ending, publish_explanations
from raison.cli.texts import example_of_text_options, read_text_file, target_of_text_option
from raison.core.errors import InputError
from raison.core.outputs import check_outputs

if TYPE_CHECKING:
    from raison.core.records import Example, Explanation
    from raison.engine import Request
    from raison.models.protocol import Model
    from raison.rationales.search import Interrupted, Search

DEFAULT_MODEL = "smollm2"


@dataclass(frozen=True)
class AskedQuestion:
    """What is to be answered from passages; without an answer the model gives one."""

    question: str
    passages: dict[str, str]  # by name
    answer: str | None


def rationalize_command(
    text: Annotated[
        Optional[str], typer.Argument(help="The text, or - to read it from standard input.")
    ] = None,
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
    files = context or []
    inputs: list[str | Path | None] = [model, *files]
    if search:
        inputs += input_files_of_methods([search])
    check_outputs((html, out, figure), force=force, inputs=inputs)
    passages = {passage_name(path, files): read_text_file(path) for path in files}
    asked, example = None, None
    if question is not None and passages:
        asked = AskedQuestion(question, passages, answer)
        check_options_of_grounding(
            text, has_text_options=bool(target or contrast or pair or truncate)
        )
    else:
        example = example_of_text_options(text, pair, question, None)
        check_options_of_rationalized_text(passages, answer)
    check_figure_ending(figure)
    from raison.cli.progress import waiting

    with waiting("loading the libraries") as wait:
        from raison.api import DEFAULT_SEARCH, build_search
        from raison.engine import Request
        from raison.methods.base import check_needs_of_method
        from raison.models.load import load

        # misspelt names are cheaper to refuse before a model is loaded
        usual = DEFAULT_SEARCH if asked is None else "hierarchical"
        chosen = build_search(search or usual, sufficient)
        request = Request(
            target=target_of_text_option(target),
            contrast=contrast,
            units=units,
            removal=removal,
            truncate=truncate,
            generate=generate,
        )
        wait(f"opening {model}")
        loaded = load(
            model, device=device, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
        )
        check_needs_of_method(chosen, loaded)
        wait(f"searching ({chosen.name})")
        if asked is not None:
            explanations, interrupted = ground_answer(loaded, asked, chosen, request)
        elif example is not None:
            explanations, interrupted = search_rationales_of_example(
                loaded, example, chosen, request
            )
    if explanations:
        publish_explanations(explanations, json=json, html=html, out=out, figure=figure)
    if interrupted:
        print("raison: interrupted; this is the best that was found until then.", file=sys.stderr)
        raise typer.Exit(130)


def check_options_of_grounding(text: str | None, *, has_text_options: bool) -> None:
    """Refuse options of a text where a question is answered from passages."""
    if text is not None:
        raise InputError("Give the context once: as TEXT or with --context.")
    if has_text_options:
        raise InputError(
            "--target, --contrast, --pair and --truncate are for texts: name an answer with --answer."
        )


def check_options_of_rationalized_text(passages: Mapping[str, str], answer: str | None) -> None:
    """Refuse options of a question that is answered from passages where there is a text."""
    if passages:
        raise InputError("--context needs a --question.")
    if answer is not None:
        raise InputError(
            "--answer belongs to --question and --context; name other targets with --target."
        )


def ground_answer(
    model: Model, asked: AskedQuestion, search: Search, request: Request
) -> tuple[list[Explanation], bool]:
    """What an answer rests on, and whether the search was interrupted."""
    from raison.api import ground
    from raison.rationales.search import Interrupted

    try:
        grounding = ground(
            model,
            asked.question,
            asked.passages,
            search,
            answer=asked.answer,
            units=request.units or "sentence",
            generate=request.generate or 48,
            removal=request.removal,
        )
    except Interrupted as stop:
        return rationales_before_interruption(stop), True
    return [grounding], False


def search_rationales_of_example(
    model: Model, example: Example, search: Search, request: Request
) -> tuple[list[Explanation], bool]:
    """Rationales of a text, and whether the search was interrupted."""
    from raison.api import explain_until_interrupted
    from raison.rationales.search import Interrupted

    try:
        return explain_until_interrupted(model, [example], search, request), False
    except Interrupted as stop:
        return rationales_before_interruption(stop), True


def rationales_before_interruption(stop: Interrupted) -> list[Explanation]:
    """What was found before an interruption; nothing is no result."""
    if not stop.partial:
        raise stop
    return list(stop.partial)


def passage_name(path: Path, every: list[Path]) -> str:
    """What a passage is called: the name of its file, with its folder where two share a name."""
    same_name = sum(other.name == path.name for other in every)
    if same_name > 1:
        return str(path)
    return path.name
