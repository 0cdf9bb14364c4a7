"""Prompts that ask language models questions, the answers they write, and how often these are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from raison.core.errors import InputError
from raison.core.records import Example, Span
from raison.metrics.answer_match import answer_f1, exact_match
from raison.models.protocol import Model
from raison.models.transformers_model import TransformersWriter

__all__ = ["prompt_with_written_answer", "quality_of_prompted_answers", "question_prompt"]

LONGEST = 24  # tokens of a written answer


def question_prompt(example: Example, template: str) -> Example:
    """A question and its context as a prompt; the gold span moves with the context, and only these two may be removed.

    What the model answers is not known yet: see `prompt_with_written_answer`.
    """
    if example.pair is None:
        raise InputError(f"The question {example.text[:40]!r} has no context: a prompt needs both.")
    prompt = Example.from_template(template, question=example.text, context=example.pair)
    begin = next(slot.start for slot in prompt.slots if slot.name == "context")
    gold = []
    for span in example.gold:
        gold.append(Span(span.start + begin, span.end + begin))
    meta = example.meta | {"context": example.pair}
    return replace(prompt, id=example.id, label=example.label, gold=tuple(gold), meta=meta)


def prompt_with_written_answer(model: Model, example: Example) -> Example:
    """The example with what a language model writes behind it as target: greedily, up to the end of the line."""
    if not isinstance(model, TransformersWriter):
        raise InputError(f"{model.name} does not write answers: use a language model.")
    encoding = model.encode([example])[0]
    ids = torch.from_numpy(encoding.ids.copy()).to(model.device)
    ids = ids[None]
    hf: Any = model.hf  # of a class that writes
    with torch.inference_mode():
        output = hf.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=LONGEST,
            do_sample=False,
        )
    new_ids = output[0, ids.shape[1] :]
    written = str(model.tokenizer.decode(new_ids, skip_special_tokens=True))
    first_line, *_ = written.lstrip("\n").split("\n")
    line = first_line.rstrip()
    return replace(example, target=line or None)


def quality_of_prompted_answers(answers: Sequence[str], examples: Sequence[Example]) -> str:
    """Exact match and F1 of the answers to these questions, in per cent."""
    gold = [gold_answers_to_prompt(example) for example in examples]
    exact = mean_answer_score_per_cent(exact_match, answers, gold)
    near = mean_answer_score_per_cent(answer_f1, answers, gold)
    return f"Its answers to these questions: exact match {exact:.1f} %, F1 {near:.1f} %."


def gold_answers_to_prompt(example: Example) -> list[str]:
    """The marked answers, or else the label."""
    context = str(example.meta.get("context", example.pair))
    spans = []
    for start, end in example.meta.get("answers", []):
        spans.append(context[start:end])
    return spans or [str(example.label)]


def mean_answer_score_per_cent(
    score: Callable[[str, Sequence[str]], float],
    answers: Sequence[str],
    gold: Sequence[Sequence[str]],
) -> float:
    return 100 * sum(map(score, answers, gold)) / len(gold)
