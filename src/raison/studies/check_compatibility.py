"""`check_compatibility`: how a language model behaves where most of the context is missing (P0).

A rationale rests on f(y_t | y_S), the model read on a part of its context, which it may never have seen in training.
Three things are measured, without any training:

    subsets       perplexity of the next token given the whole context, and given random parts of it by size (the token
                  before the target always stays, as in a search); a model that knows what it does not know gets better
                  with every token that it is given, and is never worse than the frequencies of the tokens alone
    repetition    f(y = w | w) where only w is left, by its position (P0 Figure 4), and where one other word is left as
                  well, by the distance between the two: with rotary positions the first curve is flat by construction
    truth         p(y_4 | y_1, y_3) = Σ_k f(k | y_1) f(y_3 | y_1 k) f(y_4 | y_1 k y_3) / Σ_k f(k | y_1) f(y_3 | y_1 k),
                  the model's own prediction with y_2 marginalised out, against f(y_4 | y_1, y_3) with y_2 left out; k
                  runs over the likeliest tokens, and the share of the mass that they cover is told

Vafa et al. 2021 (P0), section 4. Encoder-decoders are measured by subsets of source and prefix alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raison.core import progress
from raison.core.errors import Unsupported
from raison.core.records import Encoding, Example
from raison.models.protocol import Model
from raison.models.transformers_model import TransformersWriter
from raison.studies.compatibility_report import (
    Compatibility,
    RepeatedAtPosition,
    compatibility_verdict,
)
from raison.studies.context_blocks import encode_blocks
from raison.studies.marginalised import compare_with_marginalised
from raison.studies.random_parts import measure_random_parts
from raison.studies.word_repetition import frequent_words, repetition_of_word

__all__ = ["Compatibility", "check_compatibility", "check_repetition"]

SIZES = (1, 2, 5, 10, 20, 50)  # kept tokens, the one before the target among them
WORDS = 8  # frequent words that are repeated
FURTHEST = 40  # tokens from the start at which they are


def check_compatibility(
    model: Model,
    texts: Sequence[Example],
    *,
    length: int = 64,
    targets: int = 3,
    truths: int = 12,
    sizes: Sequence[int] = SIZES,
    seed: int = 0,
    data: str = "texts",
) -> Compatibility:
    """Measure a language model on texts: blocks of `length` tokens, `targets` places in each."""
    if not (
        isinstance(model, TransformersWriter)
        and "score" in model.offers
        and "delete" in model.removals
    ):
        raise Unsupported(
            f"{model.name} does not write text from parts of a context: name a language model."
        )
    blocks = encode_blocks(model, texts, length)
    parts = measure_random_parts(model, blocks, targets=targets, sizes=sizes, seed=seed)
    has_source = blocks[0].segments[0] == "source"
    repetition = [] if has_source else check_repetition(model, blocks, min(length, FURTHEST))
    truth = [] if has_source else compare_with_marginalised(model, blocks[:truths])

    verdict = compatibility_verdict(
        model.name, subsets=parts.subsets, guess=parts.guess, repetition=repetition, truth=truth
    )
    return Compatibility(
        model=model.name,
        data=data,
        subsets=tuple(parts.subsets),
        guess=parts.guess,
        repetition=tuple(repetition),
        truth=tuple(truth),
        verdict=verdict.sentence,
        trusted=verdict.trusted,
        settings={
            "length": length,
            "targets": targets,
            "blocks": len(blocks),
            "truths": len(truth),
            "seed": seed,
        },
    )


def check_repetition(
    model: TransformersWriter, blocks: Sequence[Encoding], furthest: int
) -> list[RepeatedAtPosition]:
    """Mean f(w | w) over frequent words, by where w stands alone and with one other word at the first position."""
    texts = [block.texts[-1] for block in blocks]
    words = frequent_words(model, texts, WORDS)
    if len(words) < 2:  # a language without spaces, or a tokenizer of letters
        return []
    others = [*words[1:], words[0]]
    by_word = []
    for number, (word, other) in enumerate(zip(words, others, strict=True)):
        progress.report(number, len(words), "words repeated")
        by_word.append(repetition_of_word(model, word, other, furthest))

    alone = np.mean([repeated.alone for repeated in by_word], axis=0).tolist()
    beside = np.mean([repeated.beside for repeated in by_word], axis=0).tolist()
    rows = [
        RepeatedAtPosition(position=1, alone=alone[0])
    ]  # beside another word it can't be the first
    for position, (value, value_beside) in enumerate(zip(alone[1:], beside, strict=True), 2):
        rows.append(RepeatedAtPosition(position=position, alone=value, beside_another=value_beside))
    return rows
