"""How short rationales are, whether they hold, and what they cost: against the published greedy algorithm and others.

    python benchmarks/rationales.py                 # all sections; writes benchmarks/results/rationales.md
    python benchmarks/rationales.py --sections 1 3  # these only; the others stay as they are in the file
    python benchmarks/rationales.py --quick         # a few minutes; prints only

One thread, CPU time, the sides interleaved: timings of a busy machine are noisy, ratios within one run are not.
Token-forwards are tokens pushed through the model's blocks. "literal" is tests/oracles/rationales.py: the published
algorithm with nothing reused, only the kept tokens run, in batches of 4,096 tokens, and all rows go through the head.

Section 4 compares with context-cite where it is installed (in an environment of its own, since it wants a lot).
"""

from __future__ import annotations

import argparse
import copy
import gzip
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import HERE, data_option, log, table, verdicts, write

import raison
from raison.models.protocol import Question
from raison.rationales import search as searching
from raison.rationales.grounding import INSTRUCTION
from raison.rationales.sufficient import rule_from_spec

sys.path.insert(0, str(HERE.parent / "tests"))

from literal import Literal, greedy_causal
from prompts import OPENINGS, PASSAGES, continued, prompts

SPELLED = 12  # prompts on which the literal algorithm, which is slow, runs in section 2
QUESTIONS = 2  # asked in section 4: context-cite takes minutes for each
AT_MOST = 4  # tokens of a rationale in section 1, the previous one included
EVERY, FIRST = (
    3_011,
    1_000,
)  # windows of real text: a stride and a start that no structure of the text shares
ABLATIONS = 64  # context-cite's own default


@dataclass
class Run:
    """One search: what it found and what it cost."""

    length: int  # tokens, the given last one included, as P0 counts
    sufficient: bool
    tokens: int  # token-forwards of the search
    seconds: float  # CPU, of the whole call
    found: Any = None
    check_tokens: int = 0


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = action()
    return found, time.process_time() - start


def ours(model: Any, text: str, search: str) -> Run:
    found, seconds = timed(lambda: raison.rationalize(model, text, search))
    told = found.certificate
    return Run(
        told.kept_tokens, told.sufficient, told.search_tokens, seconds, found, told.check_tokens
    )


def literally(model: Any, ids: list[int]) -> Run:
    """The last of `ids` is the target."""
    sparse = dict(mode="sparse", attention="sdpa")
    found, seconds = timed(lambda: greedy_causal(model.hf, ids, len(ids) - 1, **sparse))
    return Run(len(found.order), found.reached, found.token_forwards, seconds, found)


def text_of(model: Any, ids: Sequence[int]) -> str | None:
    """The text of these tokens; None where its tokens are others."""
    text = model.codec.text(list(ids))
    return text if model.encode([raison.Example(text)])[0].ids.tolist() == list(ids) else None


def positions_of(explanation: Any, units: Sequence[int]) -> list[int]:
    return [int(np.flatnonzero(explanation.units.of == unit)[0]) for unit in units]


# -- what a section writes ---------------------------------------------------------------------------------


def notes(*sentences: str) -> list[str]:
    return ["", *sentences]


def ratio(a: float, b: float) -> str:
    return f"{a / b:.2f} ×" if b else "-"


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def row_of(prompts: str, name: str, runs: Sequence[Run], base: Sequence[Run]) -> tuple[str, ...]:
    """One line of section 2; `base` are greedy's runs on the same prompts."""
    seconds = [run.seconds for run in runs]
    tokens = sum(run.tokens for run in runs)
    return (
        prompts,
        name,
        f"{mean([run.length for run in runs]):.2f}",
        f"{100 * mean([run.sufficient for run in runs]):.0f}",
        f"{tokens / len(runs):,.0f}",
        f"{mean(seconds):.2f}",
        f"{statistics.median(seconds):.2f}",
        ratio(tokens, sum(run.tokens for run in base)),
        ratio(sum(seconds), sum(run.seconds for run in base)),
    )


# -- 1. every token of a text --------------------------------------------------------------------------------


@contextmanager
def search_alone() -> Iterator[list[float]]:
    """CPU seconds of the searches alone, without the independent check, collected while the block runs."""
    spent: list[float] = []
    whole = searching.run_side_by_side

    def run_side_by_side(*args: Any) -> None:
        start = time.process_time()
        try:
            whole(*args)
        finally:
            spent.append(time.process_time() - start)

    searching.run_side_by_side = run_side_by_side
    try:
        yield spent
    finally:
        searching.run_side_by_side = whole


def chosen_by(one: Any) -> list[int]:
    """Positions of a greedy rationale in the order they were added, also where it was cut off before it sufficed."""
    if one.certificate.sufficient and one.selected.sum() < AT_MOST:
        return positions_of(one, one.order)
    return positions_of(one, [unit for step in one.steps for unit in step.added])


def gap(one: Any, other: Literal) -> float | None:
    """None if the rationales are the same, else by how many nats their first different choices differ."""
    mine, theirs = chosen_by(one), other.order[1:]
    if set(mine) == set(theirs):
        return None
    for step, a, b in zip(other.steps[1:], mine, theirs, strict=False):
        if a != b:
            return abs(step.candidates[a] - step.candidates[b])
    return float("inf")  # one of them is the beginning of the other


def whole_text(model: Any, ids: list[int]) -> dict[str, Any] | None:
    """Both sides on all targets of one text."""
    text = text_of(model, ids)
    if text is None:
        return None
    target_spec = dict(sufficient="argmax", target="all")
    spec = f"greedy(largest={AT_MOST - 1})"  # the previous token is given and is no unit
    with search_alone() as alone:
        found, seconds = timed(lambda: raison.rationalize(model, text, spec, **target_spec))

    def one_by_one() -> list[Literal]:
        settings = dict(mode="sparse", attention="sdpa", max_steps=AT_MOST)
        return [greedy_causal(model.hf, ids, t, **settings) for t in range(1, len(ids))]

    literal, literal_seconds = timed(one_by_one)
    told = [one.certificate for one in found]
    gaps = [gap(one, other) for one, other in zip(found, literal, strict=True)]
    return {
        "targets": len(found),
        "own": sum(c["own"] for c in told),
        "length": [len(other.order) for other in literal],
        "our_length": [1 + len(chosen_by(one)) for one in found],
        "reached": [other.reached for other in literal],
        "our_reached": [
            c["sufficient"] and one.selected.sum() < AT_MOST
            for one, c in zip(found, told, strict=True)
        ],
        "tokens": sum(c["tokens"] for c in told),
        "check_tokens": sum(c["check_tokens"] for c in told),
        "literal_tokens": sum(other.token_forwards for other in literal),
        "seconds": seconds,
        "alone": sum(alone),
        "literal_seconds": literal_seconds,
        "gaps": [g for g in gaps if g is not None],
    }


def section_1(model: Any, args: argparse.Namespace) -> list[str]:
    head = (
        "text",
        "algorithm",
        "mean length",
        "sufficient %",
        "token-forwards",
        "CPU s",
        "literal / ours",
    )
    rows, told, checks = [], [], []
    kinds = [(length, words) for words in (4, None) for length in (32, 48)]
    for length, words in kinds[:1] if args.quick else kinds:
        begun = [
            " ".join(opening.split()[:words]) for opening in OPENINGS[: 1 if args.quick else 6]
        ]
        texts = [continued(model, beginning, length) for beginning in begun]
        what = f"{length} tokens, {'openings' if words is None else 'four words'} continued"
        runs = []
        for ids in texts:
            if len(ids) == length and (run := whole_text(model, ids)) is not None:
                runs.append(run)
                log(f"1. {what}: {run['seconds']:.2f} s, literal {run['literal_seconds']:.2f} s")
        middle = lambda key, runs=runs: statistics.median(run[key] for run in runs)  # noqa: E731
        merged = lambda key, runs=runs: [x for run in runs for x in run[key]]  # noqa: E731
        ratios = [run["literal_seconds"] / run["seconds"] for run in runs]
        alone = statistics.median(run["literal_seconds"] / run["alone"] for run in runs)
        tokens = statistics.median(run["literal_tokens"] / run["tokens"] for run in runs)
        least = [mean(merged(key)) for key in ("length", "our_length", "reached", "our_reached")]
        rows += [
            (
                f"{what}, {length - 1} targets",
                "literal, one target at a time",
                f"{least[0]:.2f}",
                f"{100 * least[2]:.0f}",
                f"{middle('literal_tokens'):,.0f}",
                f"{middle('literal_seconds'):.2f}",
                "",
            ),
            (
                "",
                "ours, the search alone",
                f"{least[1]:.2f}",
                f"{100 * least[3]:.0f}",
                f"{middle('tokens'):,.0f}",
                f"{middle('alone'):.2f}",
                f"{alone:.1f} × CPU, {tokens:.1f} × token-forwards",
            ),
            (
                "",
                "ours, the whole call with its checks",
                f"{least[1]:.2f}",
                f"{100 * least[3]:.0f}",
                f"{middle('tokens'):,.0f} + {middle('check_tokens'):,.0f}",
                f"{middle('seconds'):.2f}",
                f"{statistics.median(ratios):.1f} × CPU",
            ),
        ]
        targets, gaps = sum(run["targets"] for run in runs), merged("gaps")
        wide = f", at most {max(gaps):.1e} nats apart at the first different choice" if gaps else ""
        told.append(
            f"- {what}: {len(runs)} texts, {targets} targets, of which {sum(run['own'] for run in runs)} are "
            f"the model's own predictions; {targets - len(gaps)} rationales are the same as the literal ones, "
            f"{len(gaps)} differ{wide}. CPU ratios from {min(ratios):.1f} to {max(ratios):.1f}."
        )
        if (
            length == 32
        ):  # the published algorithm certifies nothing, so search is compared with search
            checks.append(
                (
                    f"the search takes at least 3 × less CPU time, {what}",
                    f"{alone:.2f} ×",
                    alone >= 3,
                )
            )
    return [
        "## 1. Every token of a text, greedily, at most 4 tokens each",
        "",
        *table(head, rows),
        *notes(
            "Medians over texts, which are continued by the model itself from an opening or its first four words, so "
            "that more of the targets",
            "are its own predictions; other targets are mostly not reached with 4 tokens. Lengths count the given "
            "previous token.",
            "The first number of ours includes the whole-context scores of all targets (which literal does not make); "
            "the second is",
            "the independent check of every rationale at full length and the weight of each of its tokens.",
            "",
            *told,
        ),
        *verdicts(checks),
    ]


# -- 2. one target ---------------------------------------------------------------------------------------------

SHORT: list[
    tuple[list[int], str, Run, Run]
] = []  # prompts of 30 to 42 tokens with their greedy and refined runs


def short_prompts(model: Any, args: argparse.Namespace) -> list[tuple[list[int], str, Run, Run]]:
    """Prompts whose greedy rationale has at least 4 tokens; made once for sections 2 and 3."""
    if not SHORT:
        for ids in prompts(model, (30, 34, 38, 42)):
            if (text := text_of(model, ids[:-1])) is None:
                continue
            greedy = ours(model, text, "greedy")
            if greedy.length < 4 or greedy.found.target.ids != (ids[-1],):
                continue
            SHORT.append((ids, text, greedy, ours(model, text, "refined")))
            if len(SHORT) % 10 == 0:
                log(f"2. {len(SHORT)} prompts of 30 to 42 tokens")
            if args.quick and len(SHORT) == 10:
                break
    return SHORT


def windows(model: Any, data: Path, length: int, count: int) -> list[str]:
    """Pieces of wikitext2, the first `length` tokens of each window."""
    with gzip.open(data / "wikitext2" / "valid.txt.gz", "rt", encoding="utf-8") as file:
        raw = file.read().replace(" @-@ ", "-").replace(" @,@ ", ",").replace(" @.@ ", ".")
    ids = model.codec(raw).ids.tolist()
    pieces = (ids[start : start + length] for start in range(FIRST, len(ids) - length, EVERY))
    texts = (text for piece in pieces if (text := text_of(model, piece)) is not None)
    return [text for _, text in zip(range(count), texts, strict=False)]


def agreement(pairs: Sequence[tuple[Run, Run]]) -> str:
    """How many literal rationales greedy finds too."""
    same = sum(
        set(positions_of(a.found, np.flatnonzero(a.found.selected))) == set(b.found.order[1:])
        for a, b in pairs
    )
    return f"{same} of {len(pairs)}"


def section_2(model: Any, args: argparse.Namespace) -> list[str]:
    head = (
        "prompts",
        "search",
        "mean length",
        "sufficient %",
        "token-forwards",
        "CPU s, mean",
        "CPU s, median",
        "token-forwards / greedy",
        "CPU / greedy",
    )
    short = short_prompts(model, args)
    greedy, refined = [run for *_, run, _ in short], [run for *_, run in short]
    literal = [literally(model, ids) for ids, *_ in short[:SPELLED]]
    log(f"2. literal, {len(literal)} prompts")
    rows = [
        row_of(
            f"30 to 42 tokens, first {len(literal)} prompts", "literal", literal, greedy[:SPELLED]
        ),
        row_of("", "greedy", greedy[:SPELLED], greedy[:SPELLED]),
        row_of(f"30 to 42 tokens, {len(short)} prompts", "greedy", greedy, greedy),
        row_of("", "refined", refined, greedy),
    ]
    shorter = mean([run.length for run in refined]) / mean([run.length for run in greedy])
    price = sum(run.tokens for run in refined) / sum(run.tokens for run in greedy)
    told = [
        f"- 30 to 42 tokens: greedy and literal agree on {agreement(list(zip(greedy, literal, strict=False)))}."
    ]
    checks = [
        ("at least 60 prompts of 30 to 42 tokens", str(len(short)), len(short) >= 60),
        ("refined's mean length at most 0.68 of greedy's", f"{shorter:.3f}", shorter <= 0.68),
        ("at no more than 1.25 × its token-forwards", f"{price:.3f} ×", price <= 1.25),
    ]
    if not (args.data / "wikitext2" / "valid.txt.gz").is_file():
        told.append(
            "- 128 and 512 tokens are left out: the data folder with wikitext2 is not there."
        )
        return section_2_text(head, rows, told, checks)
    for length, count, spelled in (
        ((128, 4, 1), (512, 2, 0)) if args.quick else ((128, 20, 3), (512, 24, 0))
    ):
        runs: list[tuple[Run, Run]] = []
        for text in windows(model, args.data, length, count):
            runs.append((ours(model, text, "greedy"), ours(model, text, "refined")))
            a, b = runs[-1]
            log(
                f"2. {length} tokens, {len(runs)} of {count}: greedy {a.length} tokens for {a.tokens:,} in "
                f"{a.seconds:.1f} s, refined {b.length} for {b.tokens:,} in {b.seconds:.1f} s"
            )
        greedy, refined = [a for a, _ in runs], [b for _, b in runs]
        if spelled:
            literal = []
            for run in greedy[:spelled]:
                literal.append(
                    literally(model, [*run.found.encoding.ids.tolist(), *run.found.target.ids])
                )
                log(f"2. literal {literal[-1].length} tokens in {literal[-1].seconds:.1f} s")
            rows += [
                row_of(
                    f"{length} tokens, first {spelled} prompts",
                    "literal",
                    literal,
                    greedy[:spelled],
                ),
                row_of("", "greedy", greedy[:spelled], greedy[:spelled]),
            ]
            pairs = list(zip(greedy[:spelled], literal, strict=True))
            told.append(f"- {length} tokens: greedy and literal agree on {agreement(pairs)}.")
        rows += [
            row_of(f"{length} tokens, {len(runs)} prompts", "greedy", greedy, greedy),
            row_of("", "refined", refined, greedy),
        ]
        hard = [(a, b) for a, b in runs if a.length >= 9]
        if hard:
            rows += [
                row_of(
                    f"{length} tokens, greedy ≥ 9, {len(hard)} prompts",
                    "greedy",
                    [a for a, _ in hard],
                    [a for a, _ in hard],
                ),
                row_of("", "refined", [b for _, b in hard], [a for a, _ in hard]),
            ]
        if length == 512:

            def less(pairs):
                return sum(a.tokens for a, _ in pairs) / max(1, sum(b.tokens for _, b in pairs))

            long, brief = (
                mean([run.length for run in greedy]),
                mean([run.length for run in refined]),
            )
            checks += [
                ("at least 20 prompts of 512 tokens", str(len(runs)), len(runs) >= 20),
                (
                    "512: refined needs at least 4 × fewer token-forwards",
                    f"{less(runs):.1f} ×",
                    less(runs) >= 4,
                ),
                (
                    "512, where greedy needs ≥ 9 tokens: at least 10 × fewer",
                    f"{less(hard):.1f} ×",
                    less(hard) >= 10,
                ),
                (
                    "512: refined's mean length is at most greedy's",
                    f"{brief:.2f} against {long:.2f}",
                    brief <= long,
                ),
            ]
    return section_2_text(head, rows, told, checks)


def section_2_text(head: Sequence[str], rows: list, told: list[str], checks: list) -> list[str]:
    return [
        "## 2. One target, the model's own next token",
        "",
        *table(head, rows),
        *notes(
            "Token-forwards and CPU seconds are per prompt; token-forwards are those of the search: the prediction "
            "from the whole",
            "context is made by all and counted by none, and the independent check of ours is not counted (but its "
            "CPU time is).",
            "Prompts of 30 to 42 tokens are openings continued by the model, kept where greedy needs at least 4 "
            "tokens; longer ones",
            f"are windows of wikitext2, one every {EVERY:,} tokens, all kept. Ratios are of sums. Lengths count the "
            "given last token.",
            "",
            *told,
        ),
        *verdicts(checks),
    ]


# -- 3. the smallest ---------------------------------------------------------------------------------------------


def section_3(model: Any, args: argparse.Namespace) -> list[str]:
    some = [prompt for prompt in short_prompts(model, args) if prompt[-1].length <= 5]
    runs: list[tuple[Run, Run, Run]] = []
    for number, (_, text, greedy, refined) in enumerate(some[: 5 if args.quick else None]):
        exact = ours(model, text, "exact(evaluations=20000)")
        proved = exact.found.certificate.optimal
        log(
            f"3. {number + 1} of {len(some)}: {greedy.length} {refined.length} {exact.length} proved {proved}"
        )
        runs.append((greedy, refined, exact))
    proved = [run for run in runs if run[-1].found.certificate.optimal]
    rows = []
    for index, name in enumerate(("greedy", "refined", "exact")):
        one = [run[index] for run in proved]
        rows.append(
            (
                name,
                f"{mean([run.length for run in one]):.2f}",
                f"{100 * mean([run.sufficient for run in one]):.0f}",
                f"{mean([run.tokens for run in one]):,.0f}",
                f"{mean([run.seconds for run in one]):.2f}",
                f"{mean([run[index].length / run[-1].length for run in proved]):.3f}",
                f"{100 * mean([run[index].length == run[-1].length for run in proved]):.0f}",
            )
        )
    excess = mean([b.length / c.length for _, b, c in proved])
    return [
        "## 3. Against the proved minimum",
        "",
        *table(
            (
                "search",
                "mean length",
                "sufficient %",
                "token-forwards",
                "CPU s",
                "length / minimum",
                "minimal %",
            ),
            rows,
        ),
        *notes(
            "Prompts of section 2 of 30 to 42 tokens whose refined rationale has at most 5 tokens, so that a proof is "
            "affordable:",
            f"{len(runs)} tried, {len(proved)} proved by exact(evaluations=20000). Means over the proved ones.",
        ),
        *verdicts(
            [
                ("at least 40 proved", str(len(proved)), len(proved) >= 40),
                (
                    "refined's length at most 1.08 of the minimum, on average",
                    f"{excess:.3f}",
                    excess <= 1.08,
                ),
            ]
        ),
    ]


# -- 4. passages ---------------------------------------------------------------------------------------------


@dataclass
class Grounded:
    """Which parts of ten passages an answer is said to rest on."""

    keep: np.ndarray  # [t] tokens of the prompt
    units: list[int]  # sentences, or passages
    calls: int
    tokens: int
    seconds: float


@contextmanager
def counted(model: Any) -> Iterator[list[tuple[int, int]]]:
    """(rows, tokens) of everything that is scored while the block runs."""
    spent: list[tuple[int, int]] = []
    whole = model.score

    def score(*args: Any, **kwargs: Any) -> Any:
        answers = whole(*args, **kwargs)
        spent.extend((scored.forwards, scored.tokens) for scored in answers)
        return answers

    model.score = score
    try:
        yield spent
    finally:
        del model.score


def grounded(
    model: Any, question: str, passages: dict[str, str], units: str
) -> tuple[Any, Grounded]:
    with counted(model) as spent:
        found, seconds = timed(lambda: raison.ground(model, question, passages, units=units))
    keep = found.units.keep(found.selected) | found.target.given(found.encoding)
    chosen = np.flatnonzero(found.selected).tolist()
    return found, Grounded(
        keep, chosen, sum(r for r, _ in spent), sum(t for _, t in spent), seconds
    )


def cited(
    model: Any, question: str, found: Any, citer: Any, partitioner: Any
) -> tuple[np.ndarray, int, int, float]:
    """context-cite's attributions of the same answer to the same units, and what they cost."""
    text, units = found.encoding.texts[0], found.units
    first, last = units.spans[0][1], units.spans[-1][2]
    parts = partitioner(text[first:last])
    starts, ends = zip(*[span[1:] for span in units.spans], strict=True)
    between = [text[a:b] for a, b in zip(ends, starts[1:], strict=False)]
    parts._cache.update(
        parts=[text[a:b] for a, b in zip(starts, ends, strict=True)], separators=["", *between]
    )
    spent: list[int] = []
    words = copy.deepcopy(model.codec.own)

    def count(module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        spent.append(kwargs["input_ids"].numel())

    def cite() -> np.ndarray:
        cites = citer(
            model.hf,
            words,
            text[first:last],
            question,
            generate_kwargs={"max_new_tokens": 48, "do_sample": False},
            num_ablations=ABLATIONS,
            prompt_template=f"{INSTRUCTION}\n\n{{context}}\n\nQuestion: {{query}}",
            partitioner=parts,
        )
        answer = found.target.text
        if not cites.response.startswith(answer):
            raise ValueError(f"context-cite generates {cites.response!r}, not {answer!r}")
        hook = model.hf.register_forward_pre_hook(
            count, with_kwargs=True
        )  # writing the answer is not counted
        try:
            return cites.get_attributions(0, len(answer), verbose=False)
        finally:
            hook.remove()

    scores, seconds = timed(cite)
    return scores, len(spent), sum(spent), seconds


def holds(model: Any, found: Any, keep: np.ndarray) -> bool:
    """The answer is every token's first choice when all that is not kept is masked, at full length."""
    rule = rule_from_spec("argmax")
    question = Question(found.encoding, found.target, np.stack([keep, np.ones_like(keep)]))
    (scored,) = model.score([question], removal="mask")
    return bool(rule.enough(scored, scored)[0])


def cut_out(model: Any, found: Any, units: Sequence[int], question: str) -> bool:
    """The model writes the same answer to a prompt that has nothing but these units."""
    text = found.encoding.texts[0]
    body = " ".join(
        text[found.units.spans[unit][1] : found.units.spans[unit][2]] for unit in sorted(units)
    )
    prompt = model.codec.chat(f"{INSTRUCTION}\n\n{body}\n\nQuestion: {question}")
    encoding = model.encode([raison.Example(prompt)])[0]
    return tuple(model.write(encoding, 48)) == found.target.ids


def passages_of(found: Any, units: Sequence[int]) -> set[str]:
    """Names of the passages in which units stand."""
    spans = [found.units.spans[unit][1:] for unit in units]
    return {
        slot.name
        for slot in found.encoding.slots
        for a, b in spans
        if slot.start < b and a < slot.end
    }


def section_4(model: Any, args: argparse.Namespace) -> list[str]:
    try:
        from context_cite import ContextCiter
        from context_cite.context_partitioner import SimpleContextPartitioner
    except ImportError as error:
        ContextCiter, why = None, f"context-cite is left out: it is not installed here ({error})."
    passages = {name: passage for name, (passage, _, _) in PASSAGES.items()}
    seen: dict[str, list[tuple[set[str], str, Grounded, bool, bool]]] = {}
    right, sizes, lengths = (
        set(),
        [],
        [],
    )  # right: the passages whose question the model answers well

    def note(name: str, found: Any, one: Grounded, where: str, question: str) -> None:
        here = passages_of(found, one.units)
        hold, same = holds(model, found, one.keep), cut_out(model, found, one.units, question)
        seen.setdefault(name, []).append((here, where, one, hold, same))
        log(
            f"4. {where}, {name}: {sorted(here)} {len(one.units)} units, holds {hold}, cut out {same}, "
            f"{one.seconds:.0f} s"
        )

    for where, (_, question, answer) in list(PASSAGES.items())[: 1 if args.quick else QUESTIONS]:
        for units, level in (("sentence", "sentences"), ("slot", "passages")):
            found, one = grounded(model, question, passages, units)
            note(f"raison.ground, {level}", found, one, where, question)
            if units == "sentence":
                right |= {where} if answer.lower() in found.target.text.lower() else set()
                log(f"4. {question} {found.target.text!r} ({answer})")
                lengths.append(len(found.encoding))
                sizes.append(len(found.units))
            if ContextCiter is None:
                continue
            scores, calls, tokens, seconds = cited(
                model, question, found, ContextCiter, SimpleContextPartitioner
            )
            ranked = np.argsort(-scores, kind="stable")
            for name, chosen in (
                ("all weights above 0", np.flatnonzero(scores > 0)),
                ("as many as raison", ranked[: max(1, len(one.units))]),
            ):
                keep = found.units.keep(
                    np.isin(np.arange(len(found.units)), chosen)
                ) | found.target.given(found.encoding)
                cost = Grounded(keep, chosen.tolist(), calls, tokens, seconds)
                note(f"context-cite, {level}, {name}", found, cost, where, question)
    base = sum(one.seconds for _, _, one, *_ in seen["raison.ground, sentences"])
    rows = []
    for name, all_of in sorted(
        seen.items(), key=lambda item: (" passages" in item[0], "raison" not in item[0])
    ):
        rows.append(
            (
                name,
                f"{sum(where in here & right for here, where, *_ in all_of)} of {len(right)}",
                f"{mean([len(here) for here, *_ in all_of]):.1f}",
                f"{mean([len(one.units) for _, _, one, *_ in all_of]):.1f}",
                f"{100 * mean([hold for *_, hold, _ in all_of]):.0f}",
                f"{100 * mean([same for *_, same in all_of]):.0f}",
                f"{mean([one.calls for _, _, one, *_ in all_of]):,.0f}",
                f"{mean([one.tokens for _, _, one, *_ in all_of]):,.0f}",
                f"{mean([one.seconds for _, _, one, *_ in all_of]):.1f}",
                ratio(sum(one.seconds for _, _, one, *_ in all_of), base),
            )
        )
    head = (
        "what finds the source",
        "right passage found",
        "passages named",
        "units",
        "sufficient %, masked",
        "same answer %, cut out",
        "model calls",
        "token-forwards",
        "CPU s",
        "CPU / ours",
    )
    long = [len(model.encode([raison.Example(text)])[0]) for text in passages.values()]
    told = [
        f"Ten passages of {min(long)} to {max(long)} tokens, {len(lengths)} questions, one on each passage; prompts of "
        f"{min(lengths)} to {max(lengths)} tokens, {mean(sizes):.0f} sentences. The model's answer contains the right "
        f"one in {len(right)} of {len(lengths)}, and only these can have a right passage.",
        "Means per question. CPU time is that of the whole call, writing the answer included; token-forwards and calls "
        "are without writing.",
        "Sufficient: each token of the answer stays the first choice, checked at full length with everything else "
        "masked; cut out: the model",
        "writes the same answer to a prompt that has only these units, which is how context-cite removes.",
        why
        if ContextCiter is None
        else f"context-cite {version('context-cite')}: {ABLATIONS} ablations, one at a time, its defaults; it gets our "
        "prompt and our sentences. It gives weights, not a set: all above 0, and the best as many as ours.",
    ]
    return [
        "## 4. Ten passages, one of which holds the answer",
        "",
        *table(head, rows),
        *notes(*told),
    ]


# -- all ---------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_option(parser)
    parser.add_argument(
        "--sections", type=int, nargs="*", choices=(1, 2, 3, 4), default=(1, 2, 3, 4)
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few examples of each; prints and writes no file"
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = raison.load("smollm2")
    raison.rationalize(model, "The cat sat on the mat because it was", "refined")  # warm up
    for number in args.sections:
        section = {1: section_1, 2: section_2, 3: section_3, 4: section_4}[number]
        lines, seconds = timed(lambda section=section: section(model, args))
        log(f"section {number}: {seconds:,.0f} CPU seconds")
        print("\n".join(lines), end="\n\n", flush=True)
        if not args.quick:
            title, about = (
                "Rationales: how short, how sure, at what price",
                "on the `smollm2` model; one thread, CPU seconds.",
            )
            write("rationales", title, about, number, lines)


if __name__ == "__main__":
    main()
