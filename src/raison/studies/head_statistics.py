"""Statistics of attention heads over a corpus: which look at a syntactic relation, or at a fixed position (P4).

For every head, with j* = argmax_j A_ij the token that query i looks at most:

    positional   α_r = share of queries i with j* − i = r
    syntactic    α_k = share of the pairs of relation k in which j* of the query word is a token of the key word
    baseline     λ_k = distribution of the distance between the two words, in words; max λ_k is what a head would reach
                 that looked at one fixed relative position, whatever the words

A head is syntactic where α_k > max λ_k + 0.1 for some k, positional where max_r α_r > 0.8 (methods/head_masks.py reads
both off the file that is written here). Song et al. 2024 (Mask-LRP, P4) section 4.2, after Voita et al. 2019.

Words are matched to tokens through their characters, never by what they spell: a token belongs to the word in which it
starts. Pairs whose words have no token of their own ("cannot" as one token) are left out and counted.

Which word looks at which. Where attention goes both ways the dependent looks at its head word, from its first token,
as in P4. A causal model can't look ahead, and in English a subject or an adjective stands before its head word: asked
that way, most pairs could never be found. Each pair has one allowed direction there, and it is the one that is counted:
the later word looks at the earlier one, from its last token, the first at which the model has read the whole word. A
fixed position then reaches a pair whichever of the two words comes first, so λ_k is of |id − head|. Causal models give
their first token what no other token gets (an attention sink), so pairs whose earlier word holds the very first token
are left out: a head that always looks there would find every subject that begins a sentence.

Deviations from P4: its text excludes r = 0 and its code does not, and its code counts special tokens as queries; here
both are left out (`specials=True` counts them as the code does). Its code matches words by string equality. Queries
that can see nothing but themselves are no evidence and not counted. In encoder-decoders only the encoder reads a text
that has a tree; the decoder and its cross-attention are measured for positions alone, over what the model writes (in
cross-attention r = 0 is the same place of the other text, and counts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

import numpy as np

from raison.core import progress
from raison.core.artifact import Artifact
from raison.core.errors import InputError, Unsupported
from raison.core.records import Encoding, Example, Target
from raison.datasets.conllu import Sentence
from raison.methods.head_masks import head_masks
from raison.models.protocol import Model
from raison.studies.head_counts import HeadCounts
from raison.studies.head_pairs import sentence_tokens_of_pairs

__all__ = ["RELATIONS", "head_statistics"]

RELATIONS = ("nsubj", "obj", "amod", "advmod")
QUESTION = "What is said?"  # a QA model needs one; the sentence is its context
THRESHOLDS = {"syntactic": 0.1, "positional": 0.8}


@dataclass(frozen=True)
class ReadSentence:
    """A sentence with its tree, ready to run."""

    sentence: Sentence
    encoding: Encoding
    target: Target


def head_statistics(
    model: Model,
    sentences: Sequence[Sentence],
    *,
    relations: Sequence[str] = RELATIONS,
    subtypes: bool = True,
    specials: bool = False,
    corpus: str = "",
) -> Artifact:
    """Count what every attention head looks at, over sentences with trees.

    `subtypes` counts nsubj:pass as nsubj. `specials` counts special tokens as queries and r = 0 as a position, as P4's
    released code does. `corpus` is the name that the file and its pictures give to the sentences.
    """
    if "attention" not in model.offers:
        raise Unsupported(
            f"{model.name} shows no attention, so its heads can't be told apart: use another model."
        )
    if not sentences or not relations:
        raise InputError(
            "Heads are counted over sentences and relations: give at least one of each."
        )
    texts = read_sentences_for_heads(model, sentences)
    counts = count_heads_over_corpus(model, texts, relations, subtypes=subtypes, specials=specials)
    if not counts.pairs.any():
        raise InputError(
            f"No sentence has a countable pair of {', '.join(relations)}: give more, or other relations."
        )

    artifact = Artifact("heads", counts.data(), model.name)
    syntactic, positional = head_masks(
        artifact, syntactic=THRESHOLDS["syntactic"], positional=THRESHOLDS["positional"]
    )
    # for readers of the file; methods make their own
    masks = {"synt": syntactic.astype(int), "pos": positional.astype(int)}
    versions = {}
    for name in ("raison", "torch", "transformers"):
        versions[name] = version(name)
    about = {
        "corpus": corpus,
        "sentences": counts.texts,
        "tokens": counts.tokens,
        "pairs left out": dict(counts.finder.skipped),
        "texts cut": counts.cut,
        "subtypes": subtypes,
        "specials": specials,
        "texts left out": len(sentences) - len(texts),
        "versions": versions,
    }
    return replace(
        artifact, data={**artifact.data, "thresholds": THRESHOLDS, "masks": masks}, about=about
    )


def count_heads_over_corpus(
    model: Model,
    texts: Sequence[ReadSentence],
    relations: Sequence[str],
    *,
    subtypes: bool,
    specials: bool,
) -> HeadCounts:
    """Run the model over all texts, and count where its heads look."""
    want = frozenset({"attention"})
    longest = max(texts, key=lambda text: len(text.encoding))
    ((_, first),) = model.trace([longest.encoding], [longest.target], want=want)
    counts = HeadCounts(first, tuple(relations), subtypes=subtypes, specials=specials)
    traces = model.trace(
        [text.encoding for text in texts], [text.target for text in texts], want=want
    )
    for done, (index, trace) in enumerate(traces, 1):
        counts.add(trace, texts[index].sentence)
        progress.report(done, len(texts), "texts")
    return counts


def read_sentences_for_heads(model: Model, sentences: Sequence[Sentence]) -> list[ReadSentence]:
    """The sentences that the model can read, ready to run; one that becomes no token does not end a corpus."""
    texts: list[ReadSentence] = []
    for number, sentence in enumerate(sentences, 1):
        try:
            texts.append(read_sentence_for_heads(model, sentence))
        except InputError:
            if number == len(sentences) and not texts:
                raise
        progress.report(number, len(sentences), "encoding")  # an encoder-decoder writes meanwhile
    return texts


def read_sentence_for_heads(model: Model, sentence: Sentence) -> ReadSentence:
    """The axis of a sentence, and a target that lets all of it run; which one, attention does not depend on."""
    example = Example(QUESTION, sentence.text) if model.task == "qa" else Example(sentence.text)
    (encoding,) = model.encode([example], truncate=True)
    first_row = int(np.flatnonzero(sentence_tokens_of_pairs(encoding))[0])
    simple_targets = {
        "classification": Target("label", (0,)),
        "tagging": Target("tag", (0,), (first_row,)),
        "qa": Target("span", (first_row, first_row), (first_row, first_row)),
        "causal": Target("token", (0,), (len(encoding),), output="log_prob"),
    }
    target = simple_targets.get(model.task)
    if target is None:
        encoding, target = model.resolve_targets(encoding)[0]
    return ReadSentence(sentence, encoding, target)
