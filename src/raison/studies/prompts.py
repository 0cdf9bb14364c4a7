"""Questions for a suite: prompts for language models, what the model answers, and how often it is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from raison.core.records import Example, Span
from raison.metrics.answers import answer_f1, exact_match
from raison.models.protocol import Model
from raison.models.transformers_model import TransformersWriter

__all__ = ["answered", "marks", "prompted"]

LONGEST = 24  # tokens of a written answer


def prompted(example: Example, template: str) -> Example:
    """A question and its context as a prompt; the gold span moves with the context, and only these two may be removed.

    What the model answers is not known yet: see `answered`.
    """
    assert example.pair is not None
    made = Example.from_template(template, question=example.text, context=example.pair)
    begin = next(slot.start for slot in made.slots if slot.name == "context")
    gold = tuple(Span(span.start + begin, span.end + begin) for span in example.gold)
    return replace(made, id=example.id, label=example.label, gold=gold, meta=example.meta | {"context": example.pair})


def answered(model: Model, example: Example) -> Example:
    """The example with what a language model writes behind it as target: greedily, up to the end of the line."""
    encoding = model.encode([example])[0]
    assert isinstance(model, TransformersWriter)
    ids = torch.from_numpy(encoding.ids.copy())[None].to(model.device)
    hf: Any = model.hf  # of a class that writes
    with torch.inference_mode():
        out = hf.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=LONGEST, do_sample=False)
    said = str(model.tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True))
    line = said.lstrip("\n").split("\n")[0].rstrip()
    return replace(example, target=line or None)


def marks(said: Sequence[str], examples: Sequence[Example]) -> str:
    """Exact match and F1 of the answers to these questions, in per cent."""
    gold = []
    for example in examples:
        context = str(example.meta.get("context", example.pair))
        spans = [context[start:end] for start, end in example.meta.get("answers", [])]
        gold.append(spans or [str(example.label)])
    exact, near = (100 * sum(map(score, said, gold)) / len(gold) for score in (exact_match, answer_f1))
    return f"Its answers to these questions: exact match {exact:.1f} %, F1 {near:.1f} %."
