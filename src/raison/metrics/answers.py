"""Exact match and F1 of answers, as SQuAD counts them: without case, punctuation and articles."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

__all__ = ["answer_f1", "exact_match", "plain_answer"]


def plain_answer(text: str) -> str:
    """Lower case, without punctuation and articles, single spaces."""
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def exact_match(said: str, gold: Sequence[str]) -> float:
    """1 where the answer is one of the right ones."""
    return float(any(plain_answer(said) == plain_answer(each) for each in gold))


def answer_f1(said: str, gold: Sequence[str]) -> float:
    """2 P R / (P + R) over the words that both have, with the right answer that it agrees with most."""
    return max(_f1(plain_answer(said).split(), plain_answer(each).split()) for each in gold)


def _f1(ours: list[str], theirs: list[str]) -> float:
    if not ours or not theirs:
        return float(ours == theirs)
    return 2 * sum((Counter(ours) & Counter(theirs)).values()) / (len(ours) + len(theirs))
