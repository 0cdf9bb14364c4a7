"""How likely is the target when only some tokens are kept: every row of every question, none of them twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from raison.core import progress
from raison.models.prefix.prefix_score import score_by_prefixes
from raison.models.protocol import Question, Scored
from raison.models.runner.answers import answers_in, blank_answers, copy_answers
from raison.models.runner.batching import Piece, pieces
from raison.models.runner.runner import Runner
from raison.models.runner.score_cache import Memory

__all__ = ["score"]

STRIDE = 16  # tokens: targets at different places of a text run together when their lengths are multiples of this


def score(
    runner: Runner,
    questions: Sequence[Question],
    *,
    removal: str | None = None,
    heads: np.ndarray | None = None,
    memory: Memory | None = None,
) -> list[Scored]:
    """Answers to all questions, batched together; with a `memory` nothing is computed twice."""
    removal = runner.removal_named(removal)
    runner.check_heads(heads)
    if memory is None:
        memory = Memory(limit=0, room=0)

    recalls = [memory.recall(question, removal, heads) for question in questions]
    unknown = [recall.question for recall in recalls]
    if runner.shares_prefixes and removal == "delete" and heads is None and memory.room:
        results = score_by_prefixes(runner, unknown, memory)
    else:
        results = score_literally(runner, unknown, removal, heads)

    answers = [recall.complete(result) for recall, result in zip(recalls, results, strict=True)]
    for recall, result in zip(recalls, results, strict=True):
        memory.store(recall, result)
    return answers


def score_literally(
    runner: Runner, questions: Sequence[Question], removal: str, heads: np.ndarray | None
) -> list[Scored]:
    """Run every row of every question, in batches of equal length."""
    results = [blank_answers(question) for question in questions]
    plan: list[Piece] = []
    for number, question in enumerate(questions):
        deletes = removal == "delete"
        plan += pieces(number, question.encoding, question.target, question.keep, deletes, STRIDE)

    done = 0
    total = sum(len(piece) * sum(piece.lengths) for piece in plan)
    for prepared in runner.prepare(plan, removal=removal, heads=heads):
        chunk = prepared.chunk
        runner.read_only_target_rows(prepared)
        with torch.inference_mode():
            output = runner.forward(prepared)
            answers = answers_in(runner.columns(output, chunk), chunk.outputs)

        row = 0
        for part in chunk.parts:
            result = results[part.owner]
            copy_answers(answers, slice(row, row + len(part)), into=result, which=part.which)
            result.forwards += len(part)
            result.tokens += len(part) * sum(part.lengths)
            row += len(part)
        done += chunk.tokens
        progress.report(done, total)
    return results
