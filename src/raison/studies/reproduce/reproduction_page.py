"""The page of the reproductions in Markdown: a section for each suite, with its runs, claims and tables of numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.evaluation import Cell, Column, Evaluation
from raison.studies.compare_methods import Verdict
from raison.studies.reproduce.claims_across_runs import verdicts_across
from raison.studies.reproduce.run_suite import RunOutcome
from raison.studies.reproduce.suite import Suite, SuiteClaim, SuiteRun

__all__ = [
    "ReproductionPage",
    "claim_result",
    "page_with_section",
    "read_reproduction_page",
    "suite_section",
]

HEAD = (
    "# Reproduction\n\nWhat the papers report and what raison measures, suite by suite (`raison reproduce NAME`): "
    "other models and data than the papers had, so the order of methods is what can be compared. Written by the "
    "command in each section.\n"
)
CONTRARY = "**the contrary holds**"


def suite_section(
    suite: Suite,
    outcomes: Sequence[RunOutcome],
    command: str,
    pictures: Mapping[str, str] | None = None,
) -> str:
    """The Markdown of one suite; `pictures` are files by the name of the run."""
    lines = [f"## {suite.name}: {suite.title}", "", f"{suite.paper}. `{command}`", ""]
    lines += markdown_bullet_list(suite.differs)
    lines += claims_over_runs(suite, outcomes)
    lines += claims_across_runs(suite, outcomes)
    for outcome in outcomes:
        picture = (pictures or {}).get(outcome.run.name)
        lines += page_lines_of_run(suite, outcome, picture)
    if suite.missing:
        lines += ["", "### Not run here", ""]
        lines += markdown_bullet_list(suite.missing)
    return "\n".join(lines) + "\n"


def markdown_bullet_list(sentences: Sequence[str]) -> list[str]:
    """Each sentence as an item of a Markdown list."""
    return [f"- {sentence}" for sentence in sentences]


def claims_over_runs(suite: Suite, outcomes: Sequence[RunOutcome]) -> list[str]:
    """What became of each claim, over all runs."""
    done = [outcome for outcome in outcomes if outcome.evaluation is not None]
    if not suite.claims or not done:
        return []
    lines = ["", "What was found:", ""]
    for number, claim in enumerate(suite.claims):
        runs_by_result: dict[str, list[str]] = {}
        for outcome in done:
            _, verdict = outcome.verdicts[number]
            result = claim_result(claim, verdict)
            runs_by_result.setdefault(result, []).append(outcome.run.name)
        results = []
        for result, names in runs_by_result.items():
            runs = ", ".join(names)
            results.append(f"{result} on {runs}")
        all_results = "; ".join(results)
        lines.append(f"- {claim.text} ({claim.key}): {all_results}.")
    return lines


def claims_across_runs(suite: Suite, outcomes: Sequence[RunOutcome]) -> list[str]:
    """Claims about several runs."""
    runs = {}
    for outcome in outcomes:
        if outcome.evaluation is not None:
            runs[outcome.run.name] = outcome.evaluation
    verdicts = verdicts_across(suite.across, runs)
    if not verdicts:
        return []
    lines = [
        "",
        *markdown_table_head(
            "claim about two runs", "difference, 95 % interval", "texts", "p, corrected", "here"
        ),
    ]
    for claim, verdict in verdicts:
        first = str(claim.first)
        second = str(claim.second)
        results = {first: "holds", second: CONTRARY}
        lines.append(
            markdown_table_row(
                f"{claim.text} ({first} against {second}, {claim.key})",
                format_difference_in_claim(verdict),
                str(verdict.count),
                format_p_value_of_claim(verdict.corrected),
                results.get(verdict.better, "not decided"),
            )
        )
    return lines


def page_lines_of_run(suite: Suite, outcome: RunOutcome, picture: str | None) -> list[str]:
    """The part of one run: what was measured on what, the tables, and a picture."""
    run = outcome.run
    lines = ["", f"### {run.name}", ""]
    if outcome.evaluation is None:
        return [
            *lines,
            f"Not run: it needs a model that raison does not ship. Make it with `{run.recipe}`.",
        ]
    about = experiment_of_run_in_words if suite.experiment else texts_of_run_in_words
    lines += [about(suite, outcome, outcome.evaluation), ""]
    lines += numbers_table(outcome, outcome.evaluation)
    lines += claims_table(outcome, outcome.evaluation)
    if picture is not None:
        figures = ", ".join(suite.figures)
        lines += ["", f"![{figures} on {run.name}]({picture})"]
    return lines


def experiment_of_run_in_words(suite: Suite, outcome: RunOutcome, evaluation: Evaluation) -> str:
    """What an experiment was made on, in words."""
    run = outcome.run
    count = evaluation.settings["limit"]
    what = "seeds" if suite.experiment == "audits" else "examples"
    made_by = model_and_recipe_of_run(run, evaluation)
    sentences = [f"{count} {what}; {made_by}.", *evaluation.notes, run.about]
    return " ".join(sentences).strip()


def texts_of_run_in_words(suite: Suite, outcome: RunOutcome, evaluation: Evaluation) -> str:
    """On which texts methods were measured, in words."""
    run = outcome.run
    count = evaluation.settings["limit"]
    data = run.data.replace("{model}/", "the model’s own test part, ")
    if run.split:
        data += f" ({run.split})"
    made_by = model_and_recipe_of_run(run, evaluation)
    first = (
        f"{count} texts of {data}, {run.shortest} to {run.longest} tokens, "
        f"the first of {outcome.read:,}; {made_by}."
    )
    sentences = [first]
    if outcome.right:
        sentences.append(outcome.right)
    if run.about:
        sentences.append(run.about)
    return " ".join(sentences)


def model_and_recipe_of_run(run: SuiteRun, evaluation: Evaluation) -> str:
    """The model, and the command that makes it where raison does not ship it."""
    model = f"model `{evaluation.model}`"
    if not run.recipe:
        return model
    return f"{model}, made by `{run.recipe}`"


def markdown_table_head(*names: str) -> list[str]:
    """The first two lines of a Markdown table."""
    rule = "|---" * len(names) + "|"
    return [markdown_table_row(*names), rule]


def markdown_table_row(*cells: str) -> str:
    """A line of a Markdown table."""
    joined = " | ".join(cells)
    return f"| {joined} |"


def numbers_table(outcome: RunOutcome, evaluation: Evaluation) -> list[str]:
    """The numbers beside the paper's."""
    paper = outcome.run.paper
    names = ["method"]
    for column in evaluation.columns:
        if column.key in paper:
            names += [f"{column.key}: paper", "ours, 95 % interval"]
        else:
            names.append(column.key)
    lines = markdown_table_head(*names)
    for title in evaluation.methods:
        row = [title]
        for column in evaluation.columns:
            if column.key in paper:
                in_paper = paper[column.key].get(title)
                row.append(format_number_of_paper(in_paper))
            cell = evaluation.cell(title, column.key)
            deviation = outcome.spread.get((title, column.key))
            row.append(format_number_with_interval(cell, deviation))
        lines.append(markdown_table_row(*row))
    return lines


def claims_table(outcome: RunOutcome, evaluation: Evaluation) -> list[str]:
    """The claims, tested on one run."""
    if not outcome.verdicts:
        return []
    lines = [
        "",
        *markdown_table_head("claim", "difference, 95 % interval", "n", "p, corrected", "here"),
    ]
    for claim, verdict in outcome.verdicts:
        column = evaluation.column(claim.key)
        lines.append(claim_row(claim, verdict, column))
    return lines


def claim_row(claim: SuiteClaim, verdict: Verdict, column: Column) -> str:
    """A row of the table of claims."""
    better = "more" if column.higher else "less"
    corrected = format_p_value_of_claim(verdict.corrected) if verdict.count else "–"
    return markdown_table_row(
        f"{claim.text} ({claim.key}, {better} is better)",
        format_difference_in_claim(verdict),
        str(verdict.count),
        corrected,
        claim_result(claim, verdict),
    )


def claim_result(claim: SuiteClaim, verdict: Verdict) -> str:
    """Whether a claim holds: significantly, not decided, or the contrary; where there is something to compare."""
    if not verdict.count:
        return "not measured"
    if verdict.better == claim.first:
        return "holds"
    if verdict.better == claim.second:
        return CONTRARY
    return "not decided"


def format_number_of_paper(value: float | None) -> str:
    """A number of the paper, or a dash where it has none."""
    return "–" if value is None else f"{value:.3f}"


def format_number_with_interval(cell: Cell, deviation: float | None) -> str:
    """A number with its deviation over seeds, if there are some, and its interval."""
    if cell.value is None:
        return "–"
    written = f"{cell.value:.3f}"
    if deviation is not None:
        written += f" ± {deviation:.3f}"
    if cell.low is not None:  # of one seed there is none
        written += f" ({cell.low:.3f} … {cell.high:.3f})"
    return written


def format_p_value_of_claim(p: float) -> str:
    """A corrected p value."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def format_difference_in_claim(verdict: Verdict) -> str:
    """The difference of two methods with its interval, where there is one."""
    if verdict.difference is None:
        written = "–"
    else:
        written = f"{verdict.difference:+.4f}"
    if verdict.low is not None:
        written += f" ({verdict.low:+.4f} … {verdict.high:+.4f})"
    return written


@dataclass(frozen=True)
class ReproductionPage:
    """A page of reproductions: what stands before its first section, and its sections by their names."""

    head: str
    sections: dict[str, str]


def page_with_section(page: Path, suite: Suite, written: str) -> str:
    """The page with the section of this suite put in place of an older one."""
    before = read_reproduction_page(page) if page.is_file() else ReproductionPage(HEAD, {})
    sections = {**before.sections, suite.name: written + "\n"}
    parts = [before.head.rstrip()]
    for name in sorted(sections):
        parts.append(sections[name].rstrip())
    return "\n\n".join(parts) + "\n"


def read_reproduction_page(page: Path) -> ReproductionPage:
    """The sections of a page."""
    try:
        text = page.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{str(page)!r} is no page of text: name a Markdown file.") from None
    head, *parts = re.split(r"(?m)^(?=## )", text)
    sections = {}
    for part in parts:
        sections[section_name(part)] = part
    return ReproductionPage(head, sections)


def section_name(part: str) -> str:
    """The name of the suite in a section's title."""
    title = part.split(":")[0]
    return title.removeprefix("## ").strip()
