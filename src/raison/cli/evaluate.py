"""raison evaluate: how good are explanations, in numbers; raison compare: is one method better than another?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from raison.cli import options
from raison.cli.explain import DEFAULT_MODEL
from raison.cli.inputs import input_files_of_data, input_files_of_methods
from raison.core.errors import InputError
from raison.core.outputs import check_outputs, replacing_output

if TYPE_CHECKING:
    from raison.core.evaluation import Evaluation
    from raison.models.protocol import Model

FORMS = (".md", ".csv", ".json", ".html")
DEFAULT_DATA = "reviews"  # embedded: the first command works on any machine

Data = Annotated[
    str,
    typer.Option(
        "-d",
        "--data",
        help="A data set (raison ls datasets), a file (reviews.csv(text=review)) or hf:NAME.",
    ),
]
MaybeData = Annotated[
    Optional[str],
    typer.Option(
        "-d",
        "--data",
        help="A data set (raison ls datasets), a file (reviews.csv(text=review)) or hf:NAME; default: reviews, or "
        "the texts of --explanations.",
    ),
]
Metrics = Annotated[
    Optional[list[str]],
    typer.Option(
        "--metric",
        help="A metric; repeat it for more (raison ls metrics); default: comprehensiveness, sufficiency, aopc, "
        "loo_correlation.",
    ),
]
Methods = Annotated[
    Optional[list[str]],
    typer.Option(
        "-M",
        "--method",
        help="A method; repeat it for more (raison ls methods); default: leave_one_out, input_x_gradient, "
        "attention_rollout, random.",
    ),
]
Gold = Annotated[
    bool, typer.Option("--gold-target", help="Explain the right label, not the predicted one.")
]
Files = Annotated[
    Optional[list[Path]],
    typer.Option("--out", help="Write the result: .md, .csv, .json or .html; repeat it for more."),
]
Made = Annotated[
    Optional[Path],
    typer.Option(
        "--explanations",
        help="Measure what was made elsewhere: ERASER JSONL, Inseq JSON, tokens + scores.",
    ),
]
Export = Annotated[
    Optional[Path],
    typer.Option(
        "--export",
        help="Write the explanations too: .jsonl (ERASER: a score for each word between spaces), or .parquet.",
    ),
]


def evaluate_command(
    data: MaybeData = None,
    model: options.Model = DEFAULT_MODEL,
    method: Methods = None,
    metric: Metrics = None,
    split: options.Split = None,
    limit: options.Limit = None,
    gold_target: Gold = False,
    units: options.Units = "word",
    removal: options.Removal = None,
    seed: options.Seed = 0,
    explanations: Made = None,
    export: Export = None,
    data_dir: options.DataDir = None,
    skip_broken: options.SkipBroken = False,
    device: options.Device = None,
    allow_pickle: options.AllowPickle = False,
    trust_remote_code: options.RemoteCode = False,
    json: options.OneJson = False,
    out: Files = None,
    force: options.Force = False,
) -> None:
    """Measure explanations on a data set: methods x metrics, with intervals, curves and cost."""
    check_endings_of_evaluation_files(out or [])
    check_limit_of_evaluation(limit)
    if method and explanations:
        raise InputError(
            "--explanations measures what was made elsewhere, so it takes no -M: leave one of them away."
        )
    if data is None and not explanations:
        data = DEFAULT_DATA
    inputs: list[str | Path | None] = [
        model,
        explanations,
        *input_files_of_data(data, data_dir),
        *input_files_of_methods(method or []),
    ]
    check_outputs([*(out or []), export], force=force, inputs=inputs)
    from raison.cli.progress import waiting

    with waiting("loading the libraries") as wait:
        from raison.studies import evaluate_methods as study
        from raison.studies.method_lists import method_list, metric_list

        chosen = None
        if not explanations:
            chosen = method_list(method or study.DEFAULT_METHODS)  # cheap to refuse now
        measures = metric_list(metric or study.DEFAULT_METRICS)
        wait(f"evaluating {model} on {data or explanations}")
        result = study.evaluate(
            model_to_evaluate_or_name(model, device, allow_pickle, trust_remote_code), data, chosen, measures,
            split=split, limit=limit, target="gold" if gold_target else "predicted", units=units, removal=removal,
            seed=seed, skip_broken=skip_broken, data_dir=data_dir, explanations=explanations, export=export,
        )  # fmt: skip
    publish_evaluation(result, json, out or [])


def model_to_evaluate_or_name(
    model: str, device: str | None, allow_pickle: bool, trust_remote_code: bool
) -> Model | str:
    """The model, or its name where nothing is said about opening it: a study may do without it."""
    if device is None and not allow_pickle and not trust_remote_code:
        return model
    from raison import load

    return load(
        model, device=device, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
    )


def compare_command(
    one: Annotated[str, typer.Argument(help="A method.")],
    other: Annotated[str, typer.Argument(help="Another one.")],
    data: Data = DEFAULT_DATA,
    model: options.Model = DEFAULT_MODEL,
    metric: Metrics = None,
    split: options.Split = None,
    limit: options.Limit = 100,
    gold_target: Gold = False,
    units: options.Units = "word",
    removal: options.Removal = None,
    seed: options.Seed = 0,
    data_dir: options.DataDir = None,
    skip_broken: options.SkipBroken = False,
    device: options.Device = None,
    allow_pickle: options.AllowPickle = False,
    trust_remote_code: options.RemoteCode = False,
    json: options.OneJson = False,
) -> None:
    """Test whether one method is better than another on the same texts: differences, p-values, effect sizes."""
    check_limit_of_evaluation(limit)
    from raison.cli.progress import waiting

    with waiting("loading the libraries") as wait:
        from raison.studies import compare_methods as testing
        from raison.studies import evaluate_methods as study
        from raison.studies.method_lists import method_list, metric_list

        chosen = method_list([one, other])
        measures = metric_list(metric or study.DEFAULT_METRICS)
        wait(f"evaluating {model} on {data}")
        result = study.evaluate(
            model_to_evaluate_or_name(model, device, allow_pickle, trust_remote_code), data, chosen, measures,
            split=split, limit=limit, target="gold" if gold_target else "predicted", units=units, removal=removal,
            seed=seed, skip_broken=skip_broken, data_dir=data_dir,
        )  # fmt: skip
        verdicts = testing.compare(result, *result.methods)
    if json:
        import json as writer

        print(writer.dumps([vars(each) for each in verdicts], ensure_ascii=False))
        return
    from raison.show.terminal.evaluation import print_evaluation, print_paired_tests
    from raison.show.terminal.style import terminal_console

    console = terminal_console(highlight=False)
    print_evaluation(result, console)
    console.print()
    print_paired_tests(verdicts, console)


def check_endings_of_evaluation_files(files: list[Path]) -> None:
    """Refuse a name whose ending tells no form of a result."""
    for path in files:
        if path.suffix.lower() not in FORMS:
            raise InputError(
                f"A result is written to a {', '.join(FORMS)} file, not to {path.name!r}."
            )


def check_limit_of_evaluation(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise InputError(f"--limit is a whole number from 1 up, not {limit}.")


def publish_evaluation(result: Evaluation, json: bool, files: list[Path]) -> None:
    """The table first, so that a full disk loses nothing; then the files."""
    from raison.show.evaluation_tables import evaluation_as_csv, evaluation_as_markdown
    from raison.show.html.evaluation import evaluation_page
    from raison.show.terminal.evaluation import print_evaluation
    from raison.show.terminal.style import terminal_console

    if json:
        print(result.to_json())
    else:
        print_evaluation(result, terminal_console(highlight=False))
    sys.stdout.flush()
    writers = {
        ".md": evaluation_as_markdown,
        ".csv": evaluation_as_csv,
        ".json": lambda r: r.to_json() + "\n",
        ".html": evaluation_page,
    }
    for path in files:
        with replacing_output(path) as half:
            half.write_text(writers[path.suffix.lower()](result), encoding="utf-8")
        print(f"wrote {path}", file=sys.stderr)
