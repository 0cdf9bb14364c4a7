"""Exact match and F1 of answers, as SQuAD counts them: without case, punctuation and articles."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

__all__ = ["answer_f1", "exact_match", "normalise_answer_to_match"]

WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_answer_to_match(text: str) -> str:
    """Lower case, without punctuation and articles, single spaces."""
    words = text.lower().translate(WITHOUT_PUNCTUATION)
    without_articles = re.sub(r"\b(a|an|the)\b", " ", words)
    return " ".join(without_articles.split())


def exact_match(answer: str, gold: Sequence[str]) -> float:
    """1 where the answer is one of the right ones, else 0."""
    right_answers = {normalise_answer_to_match(each) for each in gold}
    return float(normalise_answer_to_match(answer) in right_answers)


def answer_f1(answer: str, gold: Sequence[str]) -> float:
    """2 P R / (P + R) over the words that both have, with the right answer that it agrees with most."""
    words = normalise_answer_to_match(answer).split()
    best = 0.0
    for each in gold:
        right_words = normalise_answer_to_match(each).split()
        best = max(best, f1_of_words(words, right_words))
    return best


def f1_of_words(answer: list[str], right_answer: list[str]) -> float:
    """F1 of two lists of words; of an empty one 1 if the other is empty too, else 0."""
    if not answer or not right_answer:
        return float(answer == right_answer)
    common = Counter(answer) & Counter(right_answer)
    words = len(answer) + len(right_answer)
    return 2 * common.total() / words
