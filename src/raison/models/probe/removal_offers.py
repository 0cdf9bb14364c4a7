"""The removals that a model offers: which really hide, where `delete` holds beyond and across spans; whether
prefixes may be shared.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import torch

from raison.core.records import Encoding, Example, Target
from raison.models.probe.probe_text import (
    attention_spans,
    first_target,
    probe_encoding_with_other_words,
)
from raison.models.probe.view_differences import error_in_one_line, tolerated_difference_of_dtype
from raison.models.protocol import REMOVALS, Question
from raison.models.runner.score_cache import Memory
from raison.models.transformers_model import TransformersModel

__all__ = ["prefixes_can_be_shared", "working_removals"]

log = logging.getLogger("raison")
COUNTING = "one two three four five six seven eight nine ten"


def working_removals(
    model: TransformersModel, encoding: Encoding, target: Target, plain: np.ndarray
) -> list[str]:
    """What absence may mean here: whatever runs and really hides; `delete` first, where it equals `mask`.

    `plain` [1 m] is the logit that the untapped model gives the whole text.
    """
    question = probe_question(encoding, target)
    model.runner.removals = tuple(REMOVALS)
    values: dict[str, np.ndarray] = {}
    for name in REMOVALS:
        found = values_under_removal(model, question, name, plain)
        if found is not None:
            values[name] = found

    deleted = values.get("delete")
    masked = values.get("mask")
    if deleted is not None:
        agree = masked is not None and removals_give_same_values(model, deleted, masked)
        holds = agree and delete_holds_beyond_wide_spans(model, len(encoding))
        if not holds:
            del values["delete"]
    return list(values)


def probe_question(encoding: Encoding, target: Target) -> Question:
    """The logit of a target, on several parts of its text."""
    of_logit = replace(target, output="logit")
    keep = probe_sets(encoding, target)
    return Question(encoding, of_logit, keep)


def probe_sets(encoding: Encoding, target: Target) -> np.ndarray:
    """[5 t] what to keep of a text to see how it copes; the last row keeps everything."""
    free = np.flatnonzero(target.free(encoding))
    every_second = free[::2]
    all_but_first = free[1:]
    half = len(free) // 2
    first_half = free[:half]

    size = len(encoding)
    keep = np.ones((5, size), bool)
    keep[0, every_second] = False
    keep[1, all_but_first] = False
    keep[2, first_half] = False
    keep[3, free] = False  # and with it the whole source of an encoder-decoder
    return keep


def values_under_removal(
    model: TransformersModel, question: Question, removal: str, plain: np.ndarray
) -> np.ndarray | None:
    """The values of a question under a removal.

    None where it can't run or does not hide what it removes, or where a row that keeps everything is not answered as
    the `plain` model [1 m] answers it.
    """
    if not removal_is_possible(model, removal):
        return None
    disguises = []
    for row in question.keep[:-1]:
        disguised = probe_encoding_with_other_words(question.encoding, row)
        disguises.append(Question(disguised, question.target, row[None]))
    try:
        (found,) = model.score([question], removal=removal)
        others = model.score(disguises, removal=removal)
    except Exception as error:  # the code of any model runs here
        reason = error_in_one_line(error)
        log.info("%s: can't remove by %s (%s)", model.name, removal, reason)
        return None

    values = found.value
    if not np.isfinite(values).all():
        return None
    expected = [scored.value for scored in others]
    expected.append(plain)
    if not removals_give_same_values(model, values, np.concatenate(expected)):
        return None
    return values


def removal_is_possible(model: TransformersModel, removal: str) -> bool:
    """Whether model and tokenizer have what a removal needs."""
    if removal == "delete":
        return model.runner.loaded.family.positions != "none"
    if removal == "pad_token":
        return model.codec.has_pad
    if removal == "mask_token":
        return model.codec.mask_id is not None
    return True


def removals_give_same_values(model: TransformersModel, one: np.ndarray, other: np.ndarray) -> bool:
    """Equal up to rounding, measured by how much removing changes anything at all."""
    dtype = model.runner.loaded.dtype
    eps = torch.finfo(dtype).eps
    largest = float(np.abs(one).max())
    noise = 50 * eps * max(1.0, largest)
    spread = largest_range(one) + largest_range(other)
    tolerance = tolerated_difference_of_dtype(dtype) * spread + noise

    difference = np.abs(one - other).max()
    return bool(difference <= tolerance)


def largest_range(values: np.ndarray) -> float:
    """How far the rows [n m] are apart, in the column in which they are furthest apart."""
    ranges = np.ptp(values, axis=0)
    return float(ranges.max())


# -- beyond windows and chunks -------------------------------------------------------------------------------


def delete_holds_beyond_wide_spans(model: TransformersModel, length: int) -> bool:
    """Whether `delete` is right beyond the spans that are too wide for a real text of this length."""
    wide = [span for span in attention_spans(model) if span >= length]
    family = model.runner.loaded.family
    reach = family.reach(model.hf.config)
    if reach in wide:
        return False  # it counts tokens, not positions: no short text tells
    try:
        return all(delete_holds_across_border(model, span) for span in wide)
    except Exception as error:  # the code of any model runs here
        reason = error_in_one_line(error)
        log.info("%s: can't look beyond its windows (%s)", model.name, reason)
        return False


def delete_holds_across_border(model: TransformersModel, span: int) -> bool:
    """A few tokens on both sides of a border: deleting equals masking, and no windowed layer looks across."""
    encoding = model.encode([Example(COUNTING)])[0]
    size = len(encoding)
    before = np.arange(2)
    start = span - size // 2
    around = start + np.arange(size - len(before))
    longest = model.max_tokens
    if longest is not None and around[-1] >= longest:
        return True  # no text is that long
    positions = np.concatenate([before, around])
    encoding = replace(encoding, positions=positions)
    _, target = first_target(model, encoding)
    target = replace(target, output="logit")

    keep = np.ones((4, size), bool)
    keep[0, before] = False
    keep[1, positions < span] = False
    keep[2, ::2] = False
    question = Question(encoding, target, keep)
    (deleted,) = model.score([question], removal="delete")
    (masked,) = model.score([question], removal="mask")
    if not removals_give_same_values(model, deleted.value, masked.value):
        return False
    return none_looks_across(model, encoding, target, span)


def none_looks_across(
    model: TransformersModel, encoding: Encoding, target: Target, span: int
) -> bool:
    """Whether layers with a window or chunk of `span` give no attention from behind the border to the first tokens."""
    want = frozenset({"attention"})
    ((_, trace),) = model.trace([encoding], [target], want=want)
    kinds = model.runner.loaded.setting("layer_types")
    if not kinds:
        kinds = ["sliding_attention"] * len(trace.maps)
    for kind, seen in zip(kinds, trace.maps, strict=False):
        if kind in ("sliding_attention", "chunked_attention"):
            positions = encoding.positions[seen.rows]
            behind = seen.weights[:, positions > span]
            across = behind[:, :, :2]
            if bool(across.any()):
                return False
    return True


# -- prefixes ------------------------------------------------------------------------------------------------


def prefixes_can_be_shared(model: TransformersModel, encoding: Encoding, target: Target) -> bool:
    """Whether prefixes can be shared: packed nodes give the literal answers, also from parents of an earlier call."""
    question = probe_question(encoding, target)
    first_sets = question.keep[:2]
    memory = Memory()
    model.runner.shares_prefixes = True
    try:
        model.score([replace(question, keep=first_sets)], memory=memory)
        (packed,) = model.score([question], memory=memory)
    except Exception as error:  # the code of any model runs here
        reason = error_in_one_line(error)
        log.info("%s: prefixes can't be shared (%s)", model.name, reason)
        return False
    (literal,) = model.score([question], removal="delete")
    return removals_give_same_values(model, literal.value, packed.value)
