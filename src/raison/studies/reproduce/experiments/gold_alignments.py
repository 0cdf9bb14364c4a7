"""Experiment: rationales of the words of a translated sentence, beside gold alignments (P0, Table 4)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import EvaluatedText, Evaluation
from raison.core.records import Encoding, Example
from raison.datasets.open import open_dataset
from raison.metrics.alignment import (
    aer,
    aer_per_word,
    link_scores,
    mean_link_iou,
    top_1_of_aligned_words,
    top_1_of_target_subwords,
)
from raison.metrics.base import Share
from raison.models.protocol import Model, TargetSpec
from raison.studies.reproduce.experiment import (
    ResultRow,
    Trial,
    check_task_of_trial,
    evaluation_of_rows,
    experiment,
    experiment_column,
    setting_of_trial,
)
from raison.studies.reproduce.target_rationales import (
    TargetInText,
    TargetRationale,
    find_rationales_of_targets,
    target_is_own_token,
    token_targets,
)

__all__ = [
    "AlignedSentence",
    "AlignmentRow",
    "align_sentence",
    "aligned_word_of_each_token",
    "gold_alignments",
    "gold_words_touched",
]

FIRST = 6  # tokens after which a ranking should have met the source; P0's own goes on to the second source token
NONE = -1  # no source word
Links = Sequence[tuple[int, int]]
Span = tuple[int, int]  # of characters


@dataclass(frozen=True)
class AlignmentRow(ResultRow):
    """The numbers of one sentence."""

    length: Share = experiment_column(
        "tokens of a rationale, the previous one counted", higher=False, pooled=True
    )
    aer: Share = experiment_column(
        "alignment error rate of the corpus (Och & Ney 2000)", higher=False, pooled=True
    )
    aer_paper: Share = experiment_column(
        "P0's error rate of a word, without sure links among the possible; the mean",
        higher=False,
        pooled=True,
    )
    iou: Share = experiment_column(
        "of found and gold source words, the mean over target words", higher=True, pooled=True
    )
    f1: Share = experiment_column("of found and gold links, pooled", higher=True, pooled=True)
    top_1: Share = experiment_column(
        "the first source word is linked to the target word", higher=True, pooled=True
    )
    top_1_paper: Share = experiment_column(
        "likewise, an entry for each subword, which stays hit (P0)", higher=True, pooled=True
    )


@dataclass(frozen=True)
class AlignedSentence:
    """A sentence with a given translation, and a target for each token of the target words that are explained."""

    example: Example
    targets: tuple[TargetInText, ...]
    words: tuple[int, ...]  # the target word of each of the targets
    source: Mapping[int, tuple[int, ...]]  # token -> source words
    own_tokens: int  # target tokens that are the model's first choice
    tokens: int  # target tokens
    linked: int  # target words with gold links

    @property
    def explained(self) -> set[int]:
        return set(self.words)

    def gold_links(self, kind: str) -> Links:
        """Links of the words that are explained."""
        explained = self.explained
        links = []
        for source, word in self.example.meta[kind]:
            if word in explained:
                links.append((source, word))
        return links

    def first_word(self, rationale: TargetRationale) -> int:
        """The source word that comes first in a ranking; special tokens are none."""
        for token in rationale.ranking:
            if self.source.get(token):
                return self.source[token][0]
        return NONE

    def links(self, rationales: Sequence[TargetRationale]) -> set[tuple[int, int]]:
        """The source words in the rationales of each target word."""
        links: set[tuple[int, int]] = set()
        for word, rationale in zip(self.words, rationales, strict=True):
            for token in rationale.kept:
                links.update((source, word) for source in self.source.get(token, ()))
        return links

    def row(self, rationales: Sequence[TargetRationale]) -> AlignmentRow:
        sure = self.gold_links("sure")
        possible = self.gold_links("possible")
        gold = [*sure, *possible]
        links = self.links(rationales)
        firsts: dict[
            int, list[int]
        ] = {}  # target word -> the first source word of each of its tokens
        for word, rationale in zip(self.words, rationales, strict=True):
            firsts.setdefault(word, []).append(self.first_word(rationale))

        error_rates = aer_per_word(links, sure, possible)
        tokens = sum(len(rationale.order) for rationale in rationales)
        first_sources = {}
        for word, sources in firsts.items():
            first_sources[word] = first_source_word_met(sources)
        return AlignmentRow(
            length=Share(tokens, len(rationales)),
            aer=aer(links, sure, possible),
            aer_paper=Share(sum(error_rates), len(error_rates)),
            iou=mean_link_iou(links, gold),
            f1=link_scores(links, sure, possible)["f1"],
            top_1=top_1_of_aligned_words(first_sources, gold),
            top_1_paper=top_1_of_target_subwords(firsts, gold),
        )


def first_source_word_met(sources: Sequence[int]) -> int:
    """The source word that the first of a word's tokens meets, of those that meet one."""
    return next((source for source in sources if source != NONE), NONE)


@dataclass
class SentenceCounts:
    """What of the given translations is explained."""

    sentences: list[AlignedSentence] = field(default_factory=list)  # with something to explain
    unfit: int = 0  # sentences whose translation can't be written by the tokenizer
    own_tokens: int = 0
    tokens: int = 0
    linked: int = 0

    def add(self, sentence: AlignedSentence | None) -> None:
        if sentence is None:
            self.unfit += 1
            return
        self.own_tokens += sentence.own_tokens
        self.tokens += sentence.tokens
        self.linked += sentence.linked
        if sentence.targets:
            self.sentences.append(sentence)

    @property
    def targets(self) -> list[TargetInText]:
        targets: list[TargetInText] = []
        for sentence in self.sentences:
            targets += sentence.targets
        return targets

    def notes(self) -> list[str]:
        words = sum(len(sentence.explained) for sentence in self.sentences)
        notes = [
            f"{self.own_tokens} of {self.tokens} tokens ({self.own_tokens / self.tokens:.0%}) of the given "
            f"translations are the model's first choice; {words} of {self.linked} words with gold links are explained "
            f"({len(self.targets)} tokens)."
        ]
        if self.unfit:
            notes.append(
                f"{self.unfit} sentences were left out, whose translation the tokenizer can't write as it is."
            )
        return notes


@experiment("alignments")
def gold_alignments(trial: Trial) -> Evaluation:
    """Which source words are in the rationale of a translated word, beside the words that people linked to it.

    Explained are words of the given translation that have gold links and are, token by token, the model's own first
    choice; of each sentence at most the setting `words` (0: all), drawn by the seed. Links are the union over the
    tokens of a target word; source tokens belong to the words that they touch, and the source's end to none.
    """
    check_task_of_trial(trial, "seq2seq", "an encoder-decoder")
    counts = align_sentences(trial)
    sentences = counts.sentences
    targets = counts.targets
    rows, costs = {}, {}
    for title, spec in trial.methods.items():
        found = find_rationales_of_targets(trial, title, spec, targets, ranked=FIRST)
        rationales = found.by_text([len(sentence.targets) for sentence in sentences])
        rows_of_method = []
        for sentence, each in zip(sentences, rationales, strict=True):
            rows_of_method.append(sentence.row(each))
        rows[title] = rows_of_method
        costs[title] = found.total_cost(len(targets))

    evaluation = evaluation_of_rows(
        trial, AlignmentRow.columns(), rows, data=trial.run.data, notes=counts.notes()
    )
    examples = [sentence.example for sentence in sentences]
    texts = []
    for example in examples:
        texts.append(EvaluatedText(example.id, example.text, label=example.label))
    return replace(evaluation, costs=costs, texts=tuple(texts))


def align_sentences(trial: Trial) -> SentenceCounts:
    """The first sentences of which something is explained."""
    examples = open_dataset(trial.run.data, split=trial.run.split, data=trial.data_dir).examples
    most = setting_of_trial(trial, "words", 4)
    counts = SentenceCounts()
    for number, example in enumerate(examples):
        if len(counts.sentences) == trial.count:
            break
        trial.step(f"{trial.run.name}: {len(counts.sentences)} of {trial.count} sentences")
        rng = np.random.default_rng([trial.seed, number])
        counts.add(align_sentence(trial.model, example, most, rng))
    if not counts.sentences:
        raise InputError(
            f"{trial.model.name} would write no word of these translations: nothing can be explained."
        )
    return counts


def align_sentence(
    model: Model, example: Example, most: int, rng: np.random.Generator
) -> AlignedSentence | None:
    """What of a sentence is to be explained; None where its translation can't be written by the model's tokenizer."""
    (encoding,) = model.encode([example])
    try:
        ((longer, target),) = model.resolve_targets(
            encoding, TargetSpec(target=example.label, output="log_prob")
        )
    except InputError:  # a character that is not in the vocabulary
        return None
    words = aligned_word_of_each_token(
        longer, target.positions, str(example.label), example.meta["target_words"]
    )
    if words is None:
        return None

    is_own = target_is_own_token(model, longer, target)
    foreign = {
        word for word, own in zip(words, is_own, strict=True) if not own
    }  # words with a token of another's
    links = [*example.meta["sure"], *example.meta["possible"]]
    linked = sorted({word for _, word in links})
    drawn = [
        linked[number] for number in rng.permutation(len(linked))
    ]  # before any choice: all models get the same
    own_words = [word for word in drawn if word in words and word not in foreign]
    chosen = set(own_words[: most or len(own_words)])

    tokens = token_targets(target, longer)
    explained = []
    for number, word in enumerate(words):
        if word in chosen:
            explained.append(number)
    targets = []
    for number in explained:
        targets.append(TargetInText(longer, tokens[number]))
    return AlignedSentence(
        example=example,
        targets=tuple(targets),
        words=tuple(words[number] for number in explained),
        source=gold_words_touched(longer, example.meta["source_words"]),
        own_tokens=int(is_own.sum()),
        tokens=len(is_own),
        linked=len(linked),
    )


def gold_words_touched(encoding: Encoding, words: Sequence[Span]) -> dict[int, tuple[int, ...]]:
    """Source words that each source token shares a character with; special tokens have none."""
    touched = {}
    for token in np.flatnonzero((encoding.segment == 0) & (encoding.start >= 0)):
        begin = encoding.start[token]
        stop = encoding.end[token]
        words_of_token = []
        for number, (start, end) in enumerate(words):
            if start < stop and begin < end:
                words_of_token.append(number)
        touched[int(token)] = tuple(words_of_token)
    return touched


def aligned_word_of_each_token(
    encoding: Encoding, positions: Sequence[int], text: str, words: Sequence[Span]
) -> list[int] | None:
    """[m] the target word of each token; None where the tokens do not spell the text.

    Tokenizers differ in spaces, so tokens and words meet by counting the other characters. A token that is nothing but
    space belongs to the word behind it.
    """
    written = encoding.texts[int(encoding.segment[positions[0]])]
    letters = words_without_spaces(written)
    spellings = (
        words_without_spaces(text),
        words_without_spaces(unicodedata.normalize("NFKC", text)),
    )
    if letters not in spellings or len(letters) != len(spellings[0]):
        return None

    word_of_letter: list[int] = []
    for number, (start, end) in enumerate(words):
        word_of_letter += [number] * len(words_without_spaces(text[start:end]))
    words_of_tokens = []
    for position in positions:
        before = len(words_without_spaces(written[: encoding.start[position]]))
        words_of_tokens.append(word_of_letter[min(before, len(word_of_letter) - 1)])
    return words_of_tokens


def words_without_spaces(text: str) -> str:
    return "".join(text.split())
