"""Rationales of translated words beside gold alignments (P0, Table 4)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import Column, EvaluatedText, Evaluation
from raison.core.records import Encoding, Example
from raison.datasets.open import open_dataset
from raison.metrics.alignment import (
    aer,
    aer_per_word,
    link_scores,
    mean_link_iou,
    top_1_of_subwords,
    top_1_of_words,
)
from raison.metrics.base import Share
from raison.models.protocol import Model, TargetSpec
from raison.studies.reproduce.experiment import Number, Trial, experiment, found
from raison.studies.reproduce.experiments.lambada import own_tokens, pieces_of
from raison.studies.reproduce.experiments.searched import Aim, Rationale, check_task, searched, setting, summed

__all__ = ["Sentence", "aligned", "alignments", "owners", "touched"]

COLUMNS = (
    Column("length", "tokens of a rationale, the previous one counted", False, True),
    Column("aer", "alignment error rate of the corpus (Och & Ney 2000)", False, True),
    Column("aer_paper", "P0's error rate of a word, without sure links among the possible; the mean", False, True),
    Column("iou", "of found and gold source words, the mean over target words", True, True),
    Column("f1", "of found and gold links, pooled", True, True),
    Column("top_1", "the first source word is linked to the target word", True, True),
    Column("top_1_paper", "likewise, an entry for each subword, which stays hit (P0)", True, True),
)
FIRST = 6  # tokens after which a ranking should have met the source; P0's own goes on to the second source token
NONE = -1  # no source word
Links = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Sentence:
    """A sentence with a given translation, and an aim for each token of the target words that are explained."""

    example: Example
    aims: tuple[Aim, ...]
    words: tuple[int, ...]  # the target word of each aim
    source: Mapping[int, tuple[int, ...]]  # token -> source words
    own: tuple[int, int]  # target tokens that are the model's first choice, of all
    linked: int  # target words with gold links

    @property
    def explained(self) -> set[int]:
        return set(self.words)

    def gold(self, kind: str) -> Links:
        """Links of the words that are explained."""
        return [(i, j) for i, j in self.example.meta[kind] if j in self.explained]

    def first(self, rationale: Rationale) -> int:
        """The source word that comes first in a ranking; special tokens are none."""
        return next((self.source[t][0] for t in rationale.ranking if self.source.get(t)), NONE)

    def numbers(self, rationales: Sequence[Rationale]) -> dict[str, Number]:
        sure, possible = self.gold("sure"), self.gold("possible")
        every = [*sure, *possible]
        links: set[tuple[int, int]] = set()
        tops: dict[int, list[int]] = {}
        for word, rationale in zip(self.words, rationales, strict=True):
            links |= {(source, word) for t in rationale.kept for source in self.source.get(t, ())}
            tops.setdefault(word, []).append(self.first(rationale))
        per_word = aer_per_word(links, sure, possible)
        first = {word: next((source for source in each if source != NONE), NONE) for word, each in tops.items()}
        return {
            "length": Share(sum(len(each.order) for each in rationales), len(rationales)),
            "aer": aer(links, sure, possible),
            "aer_paper": Share(sum(per_word), len(per_word)),
            "iou": mean_link_iou(links, every),
            "f1": link_scores(links, sure, possible)["f1"],
            "top_1": top_1_of_words(first, every),
            "top_1_paper": top_1_of_subwords(tops, every),
        }


@experiment("alignments")
def alignments(trial: Trial) -> Evaluation:
    """Which source words are in the rationale of a translated word, beside the words that people linked to it.

    Explained are words of the given translation that have gold links and are, token by token, the model's own first
    choice; of each sentence at most the setting `words` (0: all), drawn by the seed. Links are the union over the
    tokens of a target word; source tokens belong to the words that they touch, and the source's end to none.
    """
    check_task(trial, "seq2seq", "an encoder-decoder")
    read = open_dataset(trial.run.data, split=trial.run.split, data=trial.data_dir).examples
    most = setting(trial, "words", 4)
    sentences: list[Sentence] = []
    unfit = seen_tokens = own = linked = 0
    for number, example in enumerate(read):
        if len(sentences) == trial.count:
            break
        trial.step(f"{trial.run.name}: {len(sentences)} of {trial.count} sentences")
        sentence = aligned(trial.model, example, most, np.random.default_rng([trial.seed, number]))
        if sentence is None:
            unfit += 1
            continue
        own, seen_tokens, linked = own + sentence.own[0], seen_tokens + sentence.own[1], linked + sentence.linked
        if sentence.aims:
            sentences.append(sentence)
    if not sentences:
        raise InputError(f"{trial.model.name} would write no word of these translations: nothing can be explained.")
    aims = [aim for sentence in sentences for aim in sentence.aims]
    numbers, costs = {}, {}
    for title, spec in trial.methods.items():
        made, spent = searched(trial, title, spec, aims, first=FIRST)
        rest = iter(made)
        numbers[title] = [sentence.numbers([next(rest) for _ in sentence.aims]) for sentence in sentences]
        costs[title] = summed(spent, len(aims))
    words = sum(len(sentence.explained) for sentence in sentences)
    told = [
        f"{own} of {seen_tokens} tokens ({own / seen_tokens:.0%}) of the given translations are the model's first "
        f"choice; {words} of {linked} words with gold links are explained ({len(aims)} tokens)."
    ]
    if unfit:
        told.append(f"{unfit} sentences were left out, whose translation the tokenizer can't write as it is.")
    evaluation = found(trial, COLUMNS, numbers, data=trial.run.data, about=told)
    seen = tuple(EvaluatedText(each.example.id, each.example.text, label=each.example.label) for each in sentences)
    return replace(evaluation, costs=costs, texts=seen)


def aligned(model: Model, example: Example, most: int, rng: np.random.Generator) -> Sentence | None:
    """What of a sentence is to be explained; None where its translation can't be written by the model's tokenizer."""
    (encoding,) = model.encode([example])
    try:
        ((longer, target),) = model.resolve_targets(encoding, TargetSpec(target=example.label, output="log_prob"))
    except InputError:  # a character that is not in the vocabulary
        return None
    words = owners(longer, target.positions, str(example.label), example.meta["target_words"])
    if words is None:
        return None
    own = own_tokens(model, longer, target)
    linked = sorted({j for kind in ("sure", "possible") for _, j in example.meta[kind]})
    drawn = [linked[k] for k in rng.permutation(len(linked))]  # first of all, so that other models get the same words
    able = [word for word in drawn if word in words and all(own[k] for k, of in enumerate(words) if of == word)]
    chosen = set(able[: most or len(able)])
    pieces = pieces_of(target, longer)
    picked = [k for k, word in enumerate(words) if word in chosen]
    return Sentence(
        example,
        tuple(Aim(longer, pieces[k]) for k in picked),
        tuple(words[k] for k in picked),
        touched(longer, example.meta["source_words"]),
        (int(own.sum()), len(own)),
        len(linked),
    )


def touched(encoding: Encoding, words: Sequence[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    """Source words that each source token shares a character with; special tokens have none."""
    return {
        int(t): tuple(k for k, (start, end) in enumerate(words) if start < encoding.end[t] and encoding.start[t] < end)
        for t in np.flatnonzero((encoding.segment == 0) & (encoding.start >= 0))
    }


def owners(
    encoding: Encoding, positions: Sequence[int], text: str, words: Sequence[tuple[int, int]]
) -> list[int] | None:
    """[m] the target word of each token; None where the tokens do not spell the text.

    Tokenizers differ in spaces, so tokens and words meet by counting the other characters. A token that is nothing but
    space belongs to the word behind it.
    """
    written = encoding.texts[int(encoding.segment[positions[0]])]
    if squeezed(written) != squeezed(text) and squeezed(written) != squeezed(unicodedata.normalize("NFKC", text)):
        return None
    if len(squeezed(written)) != len(squeezed(text)):
        return None
    word_at = [k for k, (start, end) in enumerate(words) for _ in squeezed(text[start:end])]
    found = []
    for position in positions:
        before = len(squeezed(written[: encoding.start[position]]))
        found.append(word_at[min(before, len(word_at) - 1)])
    return found


def squeezed(text: str) -> str:
    return "".join(text.split())
