"""Extractive question answering: the target is the span of an answer in the context, from start to end, read at two
rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Target
from raison.models.protocol import Prediction, TargetSpec
from raison.models.runner.answers import Columns
from raison.models.runner.batching import Chunk, Piece
from raison.models.runner.output_format import Output
from raison.models.runner.runner import Runner
from raison.models.tasks.base import Task, axis_of, outcomes_of_texts

__all__ = ["QATask"]

LONGEST = 30  # tokens of a predicted answer
BEST = 5  # answers that a prediction shows


class QATask(Task):
    """A span model: start and end are two columns, each decided among the tokens of the context that are there."""

    name = "qa"
    token_axis = 1  # of outcomes [2 t]

    # -- texts and targets ------------------------------------------------------------------------------

    def encode(self, example: Example, *, truncate: bool) -> Encoding:
        if example.pair is None:
            raise InputError(
                "A question needs a context: pass (question, context), or --question and --context."
            )
        encoding = axis_of(self.loaded, example, ("question", "context"), truncate=truncate)
        if not len(
            context_of(encoding)
        ):  # dropped by the tokenizer, or a question that took all the room
            raise InputError(
                "The model reads no word of the context, so it can't answer: give a context with words."
            )
        return encoding

    def resolve_targets(
        self, runner: Runner, encoding: Encoding, target_spec: TargetSpec
    ) -> list[tuple[Encoding, Target]]:
        if target_spec.contrast is not None:
            raise InputError(
                "A contrast of answer spans is not defined: explain each span by itself."
            )
        if target_spec.target is None:
            start, end = self.predicted_target(runner, encoding, target_spec).positions
        else:
            start, end = place_of_answer(encoding, str(target_spec.target))
        return [(encoding, span_target(encoding, start, end, target_spec.output))]

    # -- outcomes ---------------------------------------------------------------------------------------

    def predict(self, runner: Runner, encodings: Sequence[Encoding]) -> list[Prediction]:
        outcomes = outcomes_of_texts(runner, encodings)
        texts = zip(encodings, outcomes, strict=True)
        return [predicted_span(encoding, logits) for encoding, logits in texts]

    def columns(self, output: Output, chunk: Chunk) -> Columns:
        logits = torch.stack([output.start_logits, output.end_logits], dim=1)  # [b 2 t]
        if chunk.asked is None:
            return Columns(logits, torch.zeros(logits.shape[:2], dtype=torch.long))

        possible = [part.visible[0] & answers_can_stand(part) for part in chunk.parts]
        absent = ~torch.from_numpy(chunk.fill(0, possible, False)).to(logits.device)
        logits = logits.masked_fill(absent[:, None, :], torch.finfo(logits.dtype).min)
        places = torch.from_numpy(chunk.asked.rows).to(logits.device)
        return Columns(logits, places)


def context_of(encoding: Encoding) -> np.ndarray:
    """Axis positions of the context's tokens."""
    return np.flatnonzero((encoding.segment == 1) & (encoding.start >= 0))


def answers_can_stand(part: Piece) -> np.ndarray:
    """[n L] where an answer can stand: the question and special tokens are none."""
    return np.isin(part.index[0], context_of(part.encoding))


def span_target(encoding: Encoding, start: int, end: int, output: str | None = None) -> Target:
    """The span between two tokens of the context as a target."""
    text = encoding.texts[1][encoding.start[start] : encoding.end[end]]
    return Target(
        kind="span", ids=(start, end), positions=(start, end), text=text, output=output or "logit"
    )


def place_of_answer(encoding: Encoding, text: str) -> tuple[int, int]:
    """The first and the last token of an answer that stands in the context."""
    place = encoding.texts[1].find(text)
    if place < 0 or not text:
        raise InputError(
            f"The answer {text!r} does not stand in the context: give a part of it, letter by letter."
        )
    inside = context_of(encoding)
    touched = inside[(encoding.end[inside] > place) & (encoding.start[inside] < place + len(text))]
    if len(touched) == 0:
        raise InputError(
            f"The answer {text!r} was cut off with the end of the context: shorten the context."
        )
    return int(touched[0]), int(touched[-1])


def predicted_span(encoding: Encoding, logits: torch.Tensor) -> Prediction:
    """The best span of the context by logits [2 t] of its start and its end."""
    inside = context_of(encoding)
    size = len(inside)
    log_prob = logits[:, inside].log_softmax(-1)  # [2 c]
    pairs = log_prob[0][:, None] + log_prob[1][None, :]
    possible = torch.ones_like(pairs).bool().triu().tril(LONGEST - 1)
    pairs = pairs.masked_fill(~possible, -torch.inf)

    best = pairs.flatten().topk(min(BEST, int(torch.isfinite(pairs).sum())))
    targets = []
    for number in best.indices.tolist():
        start, end = divmod(number, size)
        targets.append(span_target(encoding, int(inside[start]), int(inside[end])))
    probabilities = best.values.exp().tolist()
    texts = [target.text for target in targets]
    return Prediction(
        target=targets[0],
        value=probabilities[0],
        top=tuple(zip(texts, probabilities, strict=True)),
        outcomes=tuple(target.ids for target in targets),
    )
