"""The page of the reproductions: one Markdown section for each suite."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.evaluation import Cell, Column, Evaluation
from raison.studies.compare import Verdict
from raison.studies.reproduce.cross_run import verdicts_across
from raison.studies.reproduce.run import Outcome
from raison.studies.reproduce.suite import Claim, Run, Suite

__all__ = ["Page", "claim_result", "page_with", "read_page", "section"]

HEAD = (
    "# Reproduction\n\nWhat the papers report and what raison measures, suite by suite (`raison reproduce NAME`): "
    "other models and data than the papers had, so the order of methods is what can be compared. Written by the "
    "command in each section.\n"
)
CONTRARY = "**the contrary holds**"


def section(
    suite: Suite,
    outcomes: Sequence[Outcome],
    command: str,
    pictures: Mapping[str, str] | None = None,
) -> str:
    """The Markdown of one suite; `pictures` are files by the name of the run."""
    lines = [f"## {suite.name}: {suite.title}", "", f"{suite.paper}. `{command}`", ""]
    lines += [f"- {difference}" for difference in suite.differs]
    lines += claims_over_runs(suite, outcomes)
    lines += claims_across_runs(suite, outcomes)
    for outcome in outcomes:
        picture = (pictures or {}).get(outcome.run.name)
        lines += lines_of_run(suite, outcome, picture)
    if suite.missing:
        lines += ["", "### Not run here", ""]
        lines += [f"- {missing}" for missing in suite.missing]
    return "\n".join(lines) + "\n"


def claims_over_runs(suite: Suite, outcomes: Sequence[Outcome]) -> list[str]:
    """What became of each claim, over all runs."""
    done = [outcome for outcome in outcomes if outcome.evaluation is not None]
    if not suite.claims or not done:
        return []
    lines = ["", "What was found:", ""]
    for number, claim in enumerate(suite.claims):
        runs_by_result: dict[str, list[str]] = {}
        for outcome in done:
            _, verdict = outcome.verdicts[number]
            runs_by_result.setdefault(claim_result(claim, verdict), []).append(outcome.run.name)
        results = [f"{result} on {', '.join(names)}" for result, names in runs_by_result.items()]
        lines.append(f"- {claim.text} ({claim.key}): {'; '.join(results)}.")
    return lines


def claims_across_runs(suite: Suite, outcomes: Sequence[Outcome]) -> list[str]:
    """Claims about several runs."""
    runs = {
        outcome.run.name: outcome.evaluation
        for outcome in outcomes
        if outcome.evaluation is not None
    }
    verdicts = verdicts_across(suite.across, runs)
    if not verdicts:
        return []
    lines = [
        "",
        *table_head(
            "claim about two runs", "difference, 95 % interval", "texts", "p, corrected", "here"
        ),
    ]
    for claim, verdict in verdicts:
        first, second = str(claim.first), str(claim.second)
        results = {first: "holds", second: CONTRARY}
        lines.append(
            table_row(
                f"{claim.text} ({first} against {second}, {claim.key})",
                format_difference(verdict),
                str(verdict.count),
                format_p(verdict.corrected),
                results.get(verdict.better, "not decided"),
            )
        )
    return lines


def lines_of_run(suite: Suite, outcome: Outcome, picture: str | None) -> list[str]:
    """The part of one run: what was measured on what, the tables, and a picture."""
    run = outcome.run
    lines = ["", f"### {run.name}", ""]
    if outcome.evaluation is None:
        return [
            *lines,
            f"Not run: it needs a model that raison does not ship. Make it with `{run.recipe}`.",
        ]
    about = about_experiment if suite.experiment else about_texts
    lines += [about(suite, outcome, outcome.evaluation), ""]
    lines += numbers_table(outcome, outcome.evaluation)
    lines += claims_table(outcome, outcome.evaluation)
    if picture is not None:
        lines += ["", f"![{', '.join(suite.figures)} on {run.name}]({picture})"]
    return lines


def about_experiment(suite: Suite, outcome: Outcome, evaluation: Evaluation) -> str:
    """What an experiment was made on, in words."""
    what = "seeds" if suite.experiment == "audits" else "examples"
    made_by = model_and_recipe(outcome.run, evaluation)
    first = f"{evaluation.settings['limit']} {what}; {made_by}."
    return " ".join([first, *evaluation.notes, outcome.run.about]).strip()


def about_texts(suite: Suite, outcome: Outcome, evaluation: Evaluation) -> str:
    """On which texts methods were measured, in words."""
    run = outcome.run
    data = run.data.replace("{model}/", "the model’s own test part, ")
    split = f" ({run.split})" if run.split else ""
    first = (
        f"{evaluation.settings['limit']} texts of {data}{split}, {run.shortest} to {run.longest} tokens, the first of "
        f"{outcome.read:,}; {model_and_recipe(run, evaluation)}."
    )
    return " ".join(sentence for sentence in (first, outcome.right, run.about) if sentence)


def model_and_recipe(run: Run, evaluation: Evaluation) -> str:
    """The model, and the command that makes it where raison does not ship it."""
    made_by = f", made by `{run.recipe}`" if run.recipe else ""
    return f"model `{evaluation.model}`{made_by}"


def table_head(*names: str) -> list[str]:
    return [table_row(*names), "|---" * len(names) + "|"]


def table_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def numbers_table(outcome: Outcome, evaluation: Evaluation) -> list[str]:
    """The numbers beside the paper's."""
    paper = outcome.run.paper
    names = ["method"]
    for column in evaluation.columns:
        names += (
            [f"{column.key}: paper", "ours, 95 % interval"] if column.key in paper else [column.key]
        )
    lines = table_head(*names)
    for title in evaluation.methods:
        row = [title]
        for column in evaluation.columns:
            if column.key in paper:
                row.append(format_paper(paper[column.key].get(title)))
            deviation = outcome.spread.get((title, column.key))
            row.append(format_cell(evaluation.cell(title, column.key), deviation))
        lines.append(table_row(*row))
    return lines


def claims_table(outcome: Outcome, evaluation: Evaluation) -> list[str]:
    """The claims, tested on one run."""
    if not outcome.verdicts:
        return []
    columns = {column.key: column for column in evaluation.columns}
    lines = ["", *table_head("claim", "difference, 95 % interval", "n", "p, corrected", "here")]
    for claim, verdict in outcome.verdicts:
        lines.append(claim_row(claim, verdict, columns[claim.key]))
    return lines


def claim_row(claim: Claim, verdict: Verdict, column: Column) -> str:
    """A row of the table of claims."""
    better = "more" if column.higher else "less"
    return table_row(
        f"{claim.text} ({claim.key}, {better} is better)",
        format_difference(verdict),
        str(verdict.count),
        format_p(verdict.corrected) if verdict.count else "–",
        claim_result(claim, verdict),
    )


def claim_result(claim: Claim, verdict: Verdict) -> str:
    """Whether a claim holds: significantly, not decided, or the contrary; where there is something to compare."""
    if not verdict.count:
        return "not measured"
    if verdict.better == claim.first:
        return "holds"
    return CONTRARY if verdict.better == claim.second else "not decided"


def format_paper(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def format_cell(cell: Cell, deviation: float | None) -> str:
    """A number with its deviation over seeds, if there are some, and its interval."""
    if cell.value is None:
        return "–"
    seeds = "" if deviation is None else f" ± {deviation:.3f}"
    interval = (
        "" if cell.low is None else f" ({cell.low:.3f} … {cell.high:.3f})"
    )  # of one seed there is none
    return f"{cell.value:.3f}{seeds}{interval}"


def format_p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def format_difference(verdict: Verdict) -> str:
    """With its interval, where there is one."""
    gap = "–" if verdict.difference is None else f"{verdict.difference:+.4f}"
    return gap if verdict.low is None else f"{gap} ({verdict.low:+.4f} … {verdict.high:+.4f})"


@dataclass(frozen=True)
class Page:
    """A page of reproductions: what stands before its first section, and its sections by their names."""

    head: str
    sections: dict[str, str]


def page_with(page: Path, suite: Suite, written: str) -> str:
    """The page with the section of this suite put in place of an older one."""
    before = read_page(page) if page.is_file() else Page(HEAD, {})
    sections = {**before.sections, suite.name: written + "\n"}
    parts = [before.head, *(sections[name] for name in sorted(sections))]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def read_page(page: Path) -> Page:
    """The sections of a page."""
    try:
        text = page.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{str(page)!r} is no page of text: name a Markdown file.") from None
    head, *parts = re.split(r"(?m)^(?=## )", text)
    return Page(head, {section_name(part): part for part in parts})


def section_name(part: str) -> str:
    """The name of the suite in a section's title."""
    return part.split(":")[0].removeprefix("## ").strip()
