"""The page of the reproductions: one Markdown section for each suite."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from raison.core.errors import InputError
from raison.core.evaluation import Cell, Evaluation
from raison.studies.compare import Verdict
from raison.studies.reproduce.cross_run import compared
from raison.studies.reproduce.run import Outcome
from raison.studies.reproduce.suite import Claim, Run, Suite

__all__ = ["page_with", "section", "sections_of"]


def section(suite: Suite, outcomes: Sequence[Outcome], command: str, pictures: Mapping[str, str] | None = None) -> str:
    """The Markdown of one suite; `pictures` are files by the name of the run."""
    lines = [f"## {suite.name}: {suite.title}", "", f"{suite.paper}. `{command}`", ""]
    lines += [f"- {each}" for each in suite.differs]
    lines += findings(suite, outcomes)
    lines += between_runs(suite, outcomes)
    for outcome in outcomes:
        lines += ["", f"### {outcome.run.name}", ""]
        if outcome.evaluation is None:
            lines.append(f"Not run: it needs a model that raison does not ship. Make it with `{outcome.run.recipe}`.")
            continue
        lines += run_lines(suite, outcome)
        if picture := (pictures or {}).get(outcome.run.name):
            lines += ["", f"![{', '.join(suite.figures)} on {outcome.run.name}]({picture})"]
    if suite.missing:
        lines += ["", "### Not run here", "", *(f"- {each}" for each in suite.missing)]
    return "\n".join(lines) + "\n"


def findings(suite: Suite, outcomes: Sequence[Outcome]) -> list[str]:
    """What became of each claim, over all runs."""
    run = [outcome for outcome in outcomes if outcome.evaluation is not None]
    if not suite.claims or not run:
        return []
    lines = ["", "What was found:", ""]
    for number, claim in enumerate(suite.claims):
        by_verdict: dict[str, list[str]] = {}
        for outcome in run:
            by_verdict.setdefault(held(claim, outcome.verdicts[number][1]), []).append(outcome.run.name)
        told = "; ".join(f"{verdict} on {', '.join(names)}" for verdict, names in by_verdict.items())
        lines.append(f"- {claim.text} ({claim.key}): {told}.")
    return lines


def between_runs(suite: Suite, outcomes: Sequence[Outcome]) -> list[str]:
    """Claims about several runs."""
    runs = {o.run.name: o.evaluation for o in outcomes if o.evaluation is not None}
    found = compared(suite.across, runs)
    if not found:
        return []
    lines = ["", "| claim about two runs | difference, 95 % interval | texts | p, corrected | here |", "|---" * 5 + "|"]
    for claim, verdict in found:
        one, other = ": ".join(claim.first), ": ".join(claim.second)
        told = f"{claim.text} ({one} against {other}, {claim.key})"
        gap = difference(verdict)
        decided = {one: "holds", other: "**the contrary holds**"}.get(verdict.better, "not decided")
        lines.append(f"| {told} | {gap} | {verdict.count} | {probability(verdict.corrected)} | {decided} |")
    return lines


def run_lines(suite: Suite, outcome: Outcome) -> list[str]:
    evaluation, run = outcome.evaluation, outcome.run
    assert evaluation is not None
    count = evaluation.settings["limit"]
    if suite.experiment:
        what = "seeds" if suite.experiment == "audits" else "examples"
        lines = [" ".join([f"{count} {what}; {made(run, evaluation)}.", *evaluation.notes, run.about]).strip(), ""]
        return lines + tables(outcome)
    about = f"{count} texts of {run.data.replace('{model}/', 'the model’s own test part, ')}"
    about += f" ({run.split})" if run.split else ""
    about += f", {run.shortest} to {run.longest} tokens, the first of {outcome.read:,}; {made(run, evaluation)}."
    return [" ".join(each for each in (about, outcome.right, run.about) if each), "", *tables(outcome)]


def made(run: Run, evaluation: Evaluation) -> str:
    """The model, and the command that makes it where raison does not ship it."""
    return f"model `{evaluation.model}`" + (f", made by `{run.recipe}`" if run.recipe else "")


def tables(outcome: Outcome) -> list[str]:
    """The numbers beside the paper's, and the claims."""
    evaluation, run = outcome.evaluation, outcome.run
    assert evaluation is not None
    head = ["method"]
    for column in evaluation.columns:
        head += [f"{column.key}: paper", "ours, 95 % interval"] if column.key in run.paper else [column.key]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for title in evaluation.methods:
        row = [title]
        for column in evaluation.columns:
            if column.key in run.paper:
                paper = run.paper[column.key].get(title)
                row.append("–" if paper is None else f"{paper:.3f}")
            row.append(number(evaluation.cell(title, column.key), outcome.spread.get((title, column.key))))
        lines.append("| " + " | ".join(row) + " |")
    if outcome.verdicts:
        lines += ["", "| claim | difference, 95 % interval | n | p, corrected | here |", "|---" * 5 + "|"]
        for claim, verdict in outcome.verdicts:
            column = next(c for c in evaluation.columns if c.key == claim.key)
            lines.append(verdict_line(claim, verdict, bool(column.higher)))
    return lines


def number(cell: Cell, deviation: float | None) -> str:
    """A number with its deviation over seeds, if there are some, and its interval."""
    if cell.value is None:
        return "–"
    seeds = f" ± {deviation:.3f}" if deviation is not None else ""
    sure = "" if cell.low is None else f" ({cell.low:.3f} … {cell.high:.3f})"  # of one seed there is none
    return f"{cell.value:.3f}{seeds}{sure}"


def held(claim: Claim, verdict: Verdict) -> str:
    """Whether a claim holds: significantly, not decided, or the contrary; where there is something to compare."""
    if not verdict.count:
        return "not measured"
    if verdict.better == claim.first:
        return "holds"
    return "**the contrary holds**" if verdict.better == claim.second else "not decided"


def probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def difference(verdict: Verdict) -> str:
    """With its interval, where there is one."""
    gap = "–" if verdict.difference is None else f"{verdict.difference:+.4f}"
    return gap if verdict.low is None else f"{gap} ({verdict.low:+.4f} … {verdict.high:+.4f})"


def verdict_line(claim: Claim, verdict: Verdict, higher: bool) -> str:
    """A row of the table of claims."""
    told = f"{claim.text} ({claim.key}, {'more' if higher else 'less'} is better)"
    p = probability(verdict.corrected) if verdict.count else "–"
    return f"| {told} | {difference(verdict)} | {verdict.count} | {p} | {held(claim, verdict)} |"


def page_with(page: Path, suite: Suite, written: str) -> str:
    """The page with the section of this suite put in place of an older one."""
    head = (
        "# Reproduction\n\nWhat the papers report and what raison measures, suite by suite (`raison reproduce NAME`): "
        "other models and data than the papers had, so the order of methods is what can be compared. Written by the "
        "command in each section.\n"
    )
    intro, kept = sections_of(page) if page.is_file() else (head, {})
    kept[suite.name] = written + "\n"
    return intro.rstrip() + "\n\n" + "".join(kept[name].rstrip() + "\n\n" for name in sorted(kept)).rstrip() + "\n"


def sections_of(page: Path) -> tuple[str, dict[str, str]]:
    """What stands on a page before its first section, and its sections by their names."""
    try:
        text = page.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{str(page)!r} is no page of text: name a Markdown file.") from None
    parts = re.split(r"(?m)^(?=## )", text)
    return parts[0], {part.split(":")[0].removeprefix("## ").strip(): part for part in parts[1:]}
