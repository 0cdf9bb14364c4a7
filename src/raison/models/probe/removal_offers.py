"""The removals that a model offers: which really hide, where `delete` holds beyond and across spans; whether
prefixes may be shared.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import torch

from raison.core.records import Encoding, Example, Target
from raison.models.probe.probe_text import attention_spans, encoding_with_other_words, first_target
from raison.models.probe.view_differences import dtype_tolerance, error_in_one_line
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
    question = Question(encoding, replace(target, output="logit"), probe_sets(encoding, target))
    model.runner.removals = tuple(REMOVALS)
    values: dict[str, np.ndarray] = {}
    for name in REMOVALS:
        found = values_if_hidden(model, question, name, plain)
        if found is not None:
            values[name] = found
    if "delete" in values:
        agree = "mask" in values and same_values(model, values["delete"], values["mask"])
        if not agree or not delete_holds_beyond_wide_spans(model, len(encoding)):
            del values["delete"]
    return list(values)


def probe_sets(encoding: Encoding, target: Target) -> np.ndarray:
    """[5 t] what to keep of a text to see how it copes; the last row keeps everything."""
    free = np.flatnonzero(target.free(encoding))
    keep = np.ones((5, len(encoding)), bool)
    keep[0, free[::2]] = False
    keep[1, free[1:]] = False
    keep[2, free[: len(free) // 2]] = False
    keep[3, free] = False  # and with it the whole source of an encoder-decoder
    return keep


def values_if_hidden(
    model: TransformersModel, question: Question, removal: str, plain: np.ndarray
) -> np.ndarray | None:
    """The values of a question under a removal.

    None where it can't run or does not hide what it removes, or where a row that keeps everything is not answered as
    the `plain` model [1 m] answers it.
    """
    if not is_possible(model, removal):
        return None
    disguises = []
    for row in question.keep[:-1]:
        disguises.append(
            Question(encoding_with_other_words(question.encoding, row), question.target, row[None])
        )
    try:
        (found,) = model.score([question], removal=removal)
        others = [scored.value for scored in model.score(disguises, removal=removal)]
    except Exception as error:  # the code of any model runs here
        log.info("%s: can't remove by %s (%s)", model.name, removal, error_in_one_line(error))
        return None
    if not np.isfinite(found.value).all():
        return None
    expected = np.concatenate([*others, plain])
    if not same_values(model, found.value, expected):
        return None
    return found.value


def is_possible(model: TransformersModel, removal: str) -> bool:
    """Whether model and tokenizer have what a removal needs."""
    if removal == "delete":
        return model.runner.loaded.family.positions != "none"
    if removal == "pad_token":
        return model.codec.has_pad
    if removal == "mask_token":
        return model.codec.mask_id is not None
    return True


def same_values(model: TransformersModel, one: np.ndarray, other: np.ndarray) -> bool:
    """Equal up to rounding, measured by how much removing changes anything at all."""
    dtype = model.runner.loaded.dtype
    spread = float(np.ptp(one, axis=0).max()) + float(np.ptp(other, axis=0).max())
    largest = float(np.abs(one).max())
    noise = 50 * torch.finfo(dtype).eps * max(1.0, largest)
    difference = np.abs(one - other).max()
    return bool(difference <= dtype_tolerance(dtype) * spread + noise)


# -- beyond windows and chunks -------------------------------------------------------------------------------


def delete_holds_beyond_wide_spans(model: TransformersModel, length: int) -> bool:
    """Whether `delete` is right beyond the spans that are too wide for a real text of this length."""
    wide = [span for span in attention_spans(model) if span >= length]
    if model.runner.loaded.family.reach(model.hf.config) in wide:
        return False  # it counts tokens, not positions: no short text tells
    try:
        return all(delete_holds_across_border(model, span) for span in wide)
    except Exception as error:  # the code of any model runs here
        log.info("%s: can't look beyond its windows (%s)", model.name, error_in_one_line(error))
        return False


def delete_holds_across_border(model: TransformersModel, span: int) -> bool:
    """A few tokens on both sides of a border: deleting equals masking, and no windowed layer looks across."""
    encoding = model.encode([Example(COUNTING)])[0]
    size = len(encoding)
    before = np.arange(2)
    around = np.arange(size - len(before)) + span - size // 2
    if model.max_tokens is not None and around[-1] >= model.max_tokens:
        return True  # no text is that long
    encoding = replace(encoding, positions=np.concatenate([before, around]))
    _, target = first_target(model, encoding)
    target = replace(target, output="logit")

    question = Question(encoding, target, np.ones((4, size), bool))
    question.keep[0, before] = False
    question.keep[1, encoding.positions < span] = False
    question.keep[2, ::2] = False
    (deleted,) = model.score([question], removal="delete")
    (masked,) = model.score([question], removal="mask")
    return same_values(model, deleted.value, masked.value) and none_looks_across(
        model, encoding, target, span
    )


def none_looks_across(
    model: TransformersModel, encoding: Encoding, target: Target, span: int
) -> bool:
    """Whether layers with a window or chunk of `span` give no attention from behind the border to the first tokens."""
    ((_, trace),) = model.trace([encoding], [target], want=frozenset({"attention"}))
    kinds = model.runner.loaded.setting("layer_types") or ["sliding_attention"] * len(trace.maps)
    for kind, seen in zip(kinds, trace.maps, strict=False):
        across = seen.weights[:, encoding.positions[seen.rows] > span][:, :, :2]
        if kind in ("sliding_attention", "chunked_attention") and bool(across.any()):
            return False
    return True


# -- prefixes ------------------------------------------------------------------------------------------------


def prefixes_can_be_shared(model: TransformersModel, encoding: Encoding, target: Target) -> bool:
    """Whether prefixes can be shared: packed nodes give the literal answers, also from parents of an earlier call."""
    question = Question(encoding, replace(target, output="logit"), probe_sets(encoding, target))
    memory = Memory()
    model.runner.shares_prefixes = True
    try:
        model.score([replace(question, keep=question.keep[:2])], memory=memory)
        (packed,) = model.score([question], memory=memory)
    except Exception as error:  # the code of any model runs here
        log.info("%s: prefixes can't be shared (%s)", model.name, error_in_one_line(error))
        return False
    (literal,) = model.score([question], removal="delete")
    return same_values(model, literal.value, packed.value)
