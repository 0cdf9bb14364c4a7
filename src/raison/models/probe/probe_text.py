"""The text and target that a model is tried on, and the attention spans at which it may begin to attend otherwise."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from raison.core.records import Encoding, Example, Target
from raison.models.protocol import InspectableModel
from raison.models.tasks.continuation import extended_encoding

__all__ = [
    "attention_spans",
    "first_target",
    "probe_encoding_with_other_words",
    "probe_text_and_target",
]

SENTENCE = "The old town lies on a hill above the river, and nobody knows who built it first."
QUESTION = "Where does the town lie?"
AFFORDABLE = 760  # tokens: a window up to this size is crossed with a real text
BEYOND = 8  # tokens behind a border
# settings that may name a border
SPAN = re.compile(r"(window|chunk|radius|block_size|local_att)(?!.*layers)")


def probe_text_and_target(model: InspectableModel) -> tuple[Encoding, Target]:
    """A text to try, longer than every attention window or chunk for which that is affordable."""
    affordable = min(model.max_tokens or AFFORDABLE, AFFORDABLE)
    length = 0
    for span in attention_spans(model):
        if span + BEYOND <= affordable:
            length = max(length, span + BEYOND)
    text = SENTENCE
    while len(model.codec(text).ids) < length:
        text += " " + SENTENCE
    example = Example(text)
    if model.task == "qa":
        example = Example(QUESTION, text)
    (encoding,) = model.encode([example], truncate=True)
    return first_target(model, encoding)


def first_target(model: InspectableModel, encoding: Encoding) -> tuple[Encoding, Target]:
    """A target of a text: of a writer the next token, cheaper than a whole text.

    An encoder-decoder has written two tokens already.
    """
    if not model.generates:
        return model.resolve_targets(encoding)[0]
    if "source" in encoding.segments:
        (token,) = model.predict([encoding])[0].target.ids
        encoding = extended_encoding(encoding, [token, token], model.codec)
    return encoding, model.predict([encoding])[0].target


def attention_spans(model: InspectableModel) -> list[int]:
    """Every length at which the model may begin to attend in another way: windows, chunks, blocks of its config."""
    config = model.hf.config
    found = {model.runner.loaded.family.reach(config)}
    for part in (config, config.get_text_config()):
        for name, value in vars(part).items():
            if SPAN.search(name):
                found |= set(integers_of_span_setting(value))
    limit = model.max_tokens or math.inf
    return sorted(size for size in found if 1 < size < limit)


def integers_of_span_setting(value: object) -> Iterator[int]:
    """The whole numbers of a setting, which may be a list."""
    values = value if isinstance(value, (list, tuple)) else [value]
    for each in values:
        if isinstance(each, int) and not isinstance(each, bool):
            yield each


def probe_encoding_with_other_words(encoding: Encoding, keep: np.ndarray) -> Encoding:
    """Other words where `keep` is False: a removal that hides can't tell the difference."""
    words = ~encoding.fixed & (encoding.start >= 0)  # no padding: some count positions by it
    ordinary = np.unique(encoding.ids[words])
    first, last = ordinary[0], ordinary[-1]
    other = np.where(encoding.ids == first, last, first)
    return replace(encoding, ids=np.where(keep, encoding.ids, other))
