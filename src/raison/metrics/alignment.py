"""Word alignments as rationales: links between source and target words, and rationales that cross a boundary.

A link is a pair (source word, target word). Pooled numbers are `Share`s: add them up over a corpus.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from raison.core.errors import InputError
from raison.metrics.numbers import Share

__all__ = [
    "Crossover",
    "aer",
    "aer_per_word",
    "count_crossovers_of_target",
    "crossover_rates_of_rationales",
    "link_scores",
    "mean_link_iou",
    "top_1_of_aligned_words",
    "top_1_of_target_subwords",
]

Links = Collection[tuple[int, int]]  # (source, target)


def aer(found: Links, sure: Links, possible: Links = ()) -> Share:
    """Alignment error rate: 1 − (|A∩S| + |A∩P|) / (|A| + |S|) (Och & Ney 2000); 0 is best.

    A sure link is also a possible one: P := P ∪ S, whatever the file says. The shares of all sentence pairs, added up,
    are the error rate of the corpus. A pair without found and sure links adds nothing.
    """
    a = set(found)
    s = set(sure)
    p = set(possible) | s
    total = len(a) + len(s)
    found_sure = len(a & s)
    found_possible = len(a & p)
    return Share(total - found_sure - found_possible, total)


def aer_per_word(found: Links, sure: Links, possible: Links = ()) -> list[float]:
    """The error rate of each target word as P0 computes it, where possible links exclude sure ones (P0, Table 4).

    1 − (|A∩P| + |A∩S|) / (|S| + |A|) with the links of one target word, for each target word that has gold links; P0
    reports the mean over all words of all pairs. It is not the standard error rate: a found sure link counts once
    instead of twice, so finding exactly the sure links is an error of 1/2. A word with possible links only, for which
    nothing was found, has 1, as in the released code.
    """
    only_possible = set(possible) - set(sure)
    words = target_words(sure) | target_words(possible)
    rates = []
    for word in sorted(words):
        a = source_words_linked(found, word)
        s = source_words_linked(sure, word)
        p = source_words_linked(only_possible, word)
        total = len(a) + len(s)
        if not total:
            rates.append(1.0)
            continue
        found_possible = len(a & p)
        found_sure = len(a & s)
        rates.append(1 - (found_possible + found_sure) / total)
    return rates


def target_words(links: Links) -> set[int]:
    """The target words that have a link."""
    return {target for _, target in links}


def source_words_linked(links: Links, word: int) -> set[int]:
    """The source words that are linked to a target word."""
    return {source for source, target in links if target == word}


def link_scores(found: Links, sure: Links, possible: Links = ()) -> dict[str, Share]:
    """Precision and recall of links, pooled.

    precision, recall and f1 take sure and possible links alike as gold (P0): |A∩G| / |A|, |A∩G| / |G| and
    2|A∩G| / (|A| + |G|). precision_possible = |A∩P| / |A| and recall_sure = |A∩S| / |S| are those of Och & Ney, with
    S ⊆ P, so that precision_possible = precision.
    """
    a = set(found)
    s = set(sure)
    gold = set(possible) | s
    both = len(a & gold)
    found_sure = len(a & s)
    size, gold_size = len(a), len(gold)
    return {
        "precision": Share(both, size),
        "recall": Share(both, gold_size),
        "f1": Share(2 * both, size + gold_size),
        "precision_possible": Share(both, size),
        "recall_sure": Share(found_sure, len(s)),
    }


def mean_link_iou(found: Links, gold: Links) -> Share:
    """The IOU of found and gold source words, averaged over the target words that have gold links (P0, Table 4)."""
    values = []
    for word in target_words(gold):
        found_sources = source_words_linked(found, word)
        gold_sources = source_words_linked(gold, word)
        both = found_sources & gold_sources
        union = found_sources | gold_sources
        values.append(len(both) / len(union))
    return Share(sum(values), len(values))


def top_1_of_aligned_words(first: Mapping[int, int], gold: Links) -> Share:
    """For how many of the target words with gold links the most important source word is linked to it.

    `first` gives the best source word of each target word; a word that has none is a miss.
    """
    links = set(gold)
    words = target_words(gold)
    hits = 0
    for word in words:
        hits += word in first and (first[word], word) in links
    return Share(hits, len(words))


def top_1_of_target_subwords(first: Mapping[int, Sequence[int]], gold: Links) -> Share:
    """P0's top-1: one entry for each subword of a target word, which hits if any subword up to it did.

    `first` gives for each target word the best source word of each of its subwords, in order. A target word of several
    subwords counts several times, and once it was hit it stays so; hence not below what single subwords have. P0 skips
    words without subwords in the output.
    """
    links = set(gold)
    hits = total = 0
    for word in target_words(gold):
        was_hit = False
        for source in first.get(word, ()):
            was_hit = was_hit or (source, word) in links
            hits += was_hit
            total += 1
    return Share(hits, total)


# -- crossovers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Crossover:
    """How many tokens of a rationale are on the wrong side of the boundary between two unrelated sentences."""

    source: int
    target: (
        int | None
    )  # None: not defined for a target before the boundary, which can't see what comes later


def count_crossovers_of_target(
    source: Collection[int],
    target: Collection[int],
    *,
    index: int,
    source_break: int,
    target_break: int,
    end: int | None = None,
) -> Crossover:
    """Count the crossovers of one target token in a pair of concatenated sentences (P0, Table 3).

    `source` and `target` are the positions in the rationale of target token `index`, counted from 0 on the source side,
    and on the target side with 0 for the start token, so that token i stands at i + 1. The second sentences begin at
    source token `source_break` and target token `target_break`. `end` is the position of the source's end token, which
    belongs to neither half.

    index < target_break: source positions ≥ source_break count; else source positions < source_break count, and target
    positions 1 … target_break. The start token does not, nor the token before the target, always in the rationale.
    """
    if min(index, source_break, target_break) < 0:
        raise InputError("A target index and the breaks of a pair are counted from 0 on.")

    sources = set(source) - {end}
    sources_in_second = {position for position in sources if position >= source_break}
    if index < target_break:
        return Crossover(len(sources_in_second), None)

    targets = set(target) - {0, index}
    targets_in_first = {position for position in targets if position <= target_break}
    sources_in_first = sources - sources_in_second
    return Crossover(len(sources_in_first), len(targets_in_first))


def crossover_rates_of_rationales(crossovers: Collection[Crossover]) -> dict[str, Share]:
    """Mean number of crossovers, and the share of rationales with at least one, per side (P0, Table 3).

    The source side is averaged over all target tokens, the target side over those behind the boundary.
    """
    sources = [each.source for each in crossovers]
    targets = [each.target for each in crossovers if each.target is not None]
    return {
        "mean_source": Share(sum(sources), len(sources)),
        "mean_target": Share(sum(targets), len(targets)),
        "rate_source": Share(count_positive_crossovers(sources), len(sources)),
        "rate_target": Share(count_positive_crossovers(targets), len(targets)),
    }


def count_positive_crossovers(counts: Sequence[int]) -> int:
    """How many counts are above 0."""
    return sum(count > 0 for count in counts)
