"""What heads look at: against a literal count, and for heads whose work is known."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import raison
from raison.core.artifact import Artifact
from raison.core.errors import InputError, Unsupported
from raison.datasets.conllu import Sentence, Word
from raison.methods.head_masks import head_masks
from raison.models.protocol import Map, Trace
from raison.show.head_selection import HeadSelection, HeadStatistics
from raison.studies.head_statistics import RELATIONS, head_statistics
from raison.testing import FAMILIES, tiny_hf, tiny_model
from tests.helpers.head_statistics import printed
from tests.oracles.heads import literal


@pytest.mark.parametrize(
    ("family", "task"), [("bert", "classification"), ("roberta", "tagging"), ("gpt2", "causal")]
)
def test_statistics_by_hand(sentences, family, task):
    causal = task == "causal"
    model = tiny_model(family, task)
    found = head_statistics(model, sentences).data
    expected = literal(*tiny_hf(family, task), sentences, causal)
    assert sum(expected["pairs"].values()) > 5
    for relation in RELATIONS:
        count = expected["pairs"][relation]
        assert found["counts"][relation] == count
        for layer, head in np.ndindex(*expected["shape"]):
            alpha = expected["hits"][relation, layer, head] / max(1, count)
            assert abs(found["alpha"][relation][layer][head] - alpha) < 1e-6
        shares = {str(d): n / count for d, n in expected["distances"][relation].items()}
        assert found["lambda"][relation] == pytest.approx(shares, abs=1e-6)
        folded = Counter()
        for distance, n in expected["distances"][relation].items():
            folded[abs(distance) if causal else distance] += n
        assert found["lambda_max"][relation] == pytest.approx(
            max(folded.values()) / count, abs=1e-6
        )
    for (layer, head), share in expected["best"].items():
        assert found["positional"]["alpha"][layer][head] == pytest.approx(share, abs=1e-6)
    assert found["positional"]["counts"] == [expected["queries"]] * expected["shape"][0]


@pytest.mark.parametrize(
    ("family", "task"), [(f, t) for f, tasks in FAMILIES.items() for t in tasks]
)
def test_every_family_can_be_counted(sentences, family, task):
    model = tiny_model(family, task)
    found = head_statistics(model, sentences)
    data = found.data
    synt, pos = head_masks(found, top=1)
    assert synt.shape == pos.shape == (len(data["kinds"]), 2)
    assert data["shape"] == {kind: [2, 2] for kind in dict.fromkeys(data["kinds"])}
    if task == "seq2seq":
        assert data["kinds"] == ["encoder", "encoder", "decoder", "cross", "decoder", "cross"]
        trees = np.array([kind == "encoder" for kind in data["kinds"]])
        assert synt[trees].any(1).all() and not synt[~trees].any()  # no tree of what is written
    else:
        assert data["kinds"] == ["self", "self"] and synt.any(1).all()
    assert pos.any(1).all()
    looks_back = family in ("gpt2", "gpt_neox", "llama", "mistral", "qwen", "gemma")
    assert data["direction"] == (
        "later to the earlier word" if looks_back else "dependent to its head word"
    )
    assert Artifact.from_json(found.to_json()) == found and found.model == model.name


def test_order_and_batches_do_not_matter(sentences):
    model = tiny_model("llama", "causal")
    first, again = head_statistics(model, sentences), head_statistics(model, sentences[::-1])
    assert first == again and first.content() == again.content()


def wired(family: str):
    """A tiny model: the first head of its first block looks at the previous token, the second everywhere alike."""
    hf, tokenizer = tiny_hf(family, "causal" if family == "gpt2" else "classification")
    width, half = 16, 8
    # a position is four angles, each as (cos, sin, -cos, -sin): mean 0 and one length, so norms change nothing
    angles = (
        torch.arange(64, dtype=torch.float64)[:, None]
        * torch.tensor([1.0, 5.0, 11.0, 23.0])
        * 2
        * math.pi
        / 64
    )
    places = torch.cat(
        [torch.cos(angles), torch.sin(angles), -torch.cos(angles), -torch.sin(angles)], -1
    )
    back = torch.tensor([1.0, 5.0, 11.0, 23.0], dtype=torch.float64) * 2 * math.pi / 64
    key = torch.zeros(half, width, dtype=torch.float64)  # (cos, sin) of the four angles
    key[torch.arange(8), torch.arange(8)] = 30.0
    query = torch.zeros_like(key)  # the same, one position earlier
    for a in range(4):
        c, s = 30 * math.cos(back[a]), 30 * math.sin(back[a])
        query[a, a], query[a, 4 + a], query[4 + a, 4 + a], query[4 + a, a] = c, s, c, -s
    with torch.no_grad():
        if family == "bert":
            parts, layer = hf.bert.embeddings, hf.bert.encoder.layer[0].attention.self
            parts.word_embeddings.weight.zero_()
            parts.token_type_embeddings.weight.zero_()
            parts.position_embeddings.weight.copy_(places)
            for linear, own in ((layer.query, query), (layer.key, key)):
                linear.weight.zero_()
                linear.bias.zero_()
                linear.weight[:half] = own
        else:
            hf.transformer.wte.weight.mul_(1e-3)  # it is the output table, too
            hf.transformer.wpe.weight.copy_(places)
            hf.transformer.h[0].ln_1.weight.fill_(1)
            hf.transformer.h[0].ln_1.bias.zero_()
            packed = hf.transformer.h[0].attn.c_attn
            packed.weight[:, : 2 * width] = 0
            packed.bias[: 2 * width] = 0
            packed.weight[:, :half] = query.T
            packed.weight[:, width : width + half] = key.T
    return raison.load(hf, tokenizer)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_previous_token_head_is_positional_and_a_uniform_one_is_not(sentences, family):
    found = head_statistics(wired(family), sentences)
    place = found.data["positional"]
    assert (place["offset"][0][0], place["alpha"][0][0]) == (-1, 1.0)
    assert place["alpha"][0][1] < 0.2
    synt, pos = head_masks(found)
    assert pos[0].tolist() == [True, False] and not synt[0].any()
    assert found.data["masks"]["pos"][0] == [1, 0]
    if family == "bert":  # a fixed position finds a relation as often as words stand there
        for relation in RELATIONS:
            assert found.data["alpha"][relation][0][0] <= found.data["lambda_max"][relation] + 1e-9


@dataclass
class Planted:
    """A model of one block whose attention is written by the test: `looks(words, i)` for each head."""

    looks: tuple
    causal: bool = False
    bos: bool = False
    name: str = "planted"
    task: str = "classification"
    offers: frozenset = frozenset({"attention"})

    def encode(self, examples, *, truncate=False):
        from raison.core.records import Encoding

        (example,) = examples
        spans, place = [], 0
        for word in example.text.split(" "):
            spans.append((place, place + len(word)))
            place += len(word) + 1
        spans = [(-1, -1), *spans] if self.bos else spans
        size = len(spans)
        whole = dict(
            segments=("text",),
            texts=(example.text,),
            segment=np.zeros(size),
            positions=np.arange(size),
        )
        start, end = np.array(spans).T
        fixed = start < 0
        return [
            Encoding(
                ids=np.zeros(size), tokens=("x",) * size, start=start, end=end, fixed=fixed, **whole
            )
        ]

    def trace(self, encodings, targets, *, want):
        for number, (encoding, target) in enumerate(zip(encodings, targets, strict=True)):
            size = len(encoding)
            weights = torch.full((len(self.looks), size, size), 0.01)
            weights = weights.tril() if self.causal else weights
            for head, look in enumerate(self.looks):
                for i in range(size):
                    weights[head, i, look(i)] = 1.0
            axis = np.arange(size)
            yield number, Trace(encoding, target, 0.0, maps=[Map("self", 0, axis, axis, weights)])


# the town saw the old town ; heads: town -> saw (nsubj), old -> town, town -> saw (obj)
TOWNS = Sentence(
    "the town saw the old town",
    tuple(
        Word(start, start + len(word), head, relation)
        for word, start, head, relation in (
            ("the", 0, 1, "det"), ("town", 4, 2, "nsubj"), ("saw", 9, -1, "root"),
            ("the", 13, 5, "det"), ("old", 17, 5, "amod"), ("town", 21, 2, "obj"),
        )
    ),
)  # fmt: skip


def test_words_are_matched_by_place_not_by_spelling():
    dependents = {1: 2, 4: 5, 5: 2}  # what a head that knows the tree does
    twins = {1: 2, 4: 1, 5: 2}  # "old" looks at the other "town"
    model = Planted((lambda i: dependents.get(i, 0), lambda i: twins.get(i, 0)))
    data = head_statistics(model, [TOWNS]).data
    assert [data["alpha"][k][0] for k in ("nsubj", "amod", "obj")] == [
        [1.0, 1.0],
        [1.0, 0.0],
        [1.0, 1.0],
    ]
    assert data["counts"] == {"nsubj": 1, "obj": 1, "amod": 1, "advmod": 0}
    assert data["lambda"]["nsubj"] == {"-1": 1.0} and data["lambda"]["obj"] == {"3": 1.0}
    # the other direction is on record, too
    assert (
        data["directions"]["head"]["counts"]
        == data["directions"]["dependent"]["counts"]
        == data["counts"]
    )


def test_a_causal_model_is_asked_from_the_later_word():
    knows = {2: 1, 5: 4}  # saw -> town, town -> old; nobody may look ahead
    back = lambda i: max(0, i - 1)  # noqa: E731
    model = Planted((lambda i: knows.get(i, 0), back, lambda i: 0), causal=True)
    data = head_statistics(model, [TOWNS]).data
    assert data["direction"].startswith("later")
    assert data["counts"] == {"nsubj": 1, "obj": 1, "amod": 1, "advmod": 0}
    assert [data["alpha"][k][0] for k in ("nsubj", "amod", "obj")] == [
        [1.0, 1.0, 0.0],
        [1.0, 1.0, 0.0],
        [0.0, 0.0, 0.0],
    ]
    ways = data["directions"]
    assert ways["head"]["counts"] == {"nsubj": 1, "obj": 0, "amod": 1, "advmod": 0}
    assert ways["dependent"]["counts"] == {"nsubj": 0, "obj": 1, "amod": 0, "advmod": 0}
    assert data["positional"]["offset"][0][1] == -1 and data["positional"]["alpha"][0][1] == 1.0


def test_one_fixed_position_reaches_pairs_on_both_sides_in_a_causal_model():
    """nsubj before and behind its verb: a head that always looks back finds both, so max λ must be 1, not ½."""
    inverted = Sentence(
        "x said he", (Word(0, 1, -1, "root"), Word(2, 6, 0, "x"), Word(7, 9, 1, "nsubj"))
    )
    straight = Sentence(
        "x he said", (Word(0, 1, -1, "root"), Word(2, 4, 2, "nsubj"), Word(5, 9, 0, "x"))
    )
    back = lambda i: max(0, i - 1)  # noqa: E731
    data = head_statistics(
        Planted((back,), causal=True), [inverted, straight], relations=("nsubj",)
    ).data
    assert data["alpha"]["nsubj"] == [[1.0]] and data["lambda_max"]["nsubj"] == 1.0
    assert data["lambda"]["nsubj"] == {"-1": 0.5, "1": 0.5}
    both = head_statistics(Planted((back,)), [inverted, straight], relations=("nsubj",)).data
    assert both["alpha"]["nsubj"] == [[0.5]] and both["lambda_max"]["nsubj"] == 0.5


def test_a_text_of_one_token_says_nothing_about_looking_ahead():
    alone = Sentence("yes", (Word(0, 3, -1, "root"),))
    found = head_statistics(Planted((lambda i: 0,)), [alone, TOWNS])
    assert found.data["direction"].startswith("dependent")
    assert found.data["positional"]["counts"] == [6]  # a token that sees only itself is no evidence


def test_an_attention_sink_finds_no_subjects():
    first = Sentence(
        "he left early", (Word(0, 2, 1, "nsubj"), Word(3, 7, -1, "root"), Word(8, 13, 1, "advmod"))
    )
    sink = lambda i: 0  # noqa: E731
    found = head_statistics(Planted((sink,), causal=True), [first])
    assert found.data["counts"]["nsubj"] == 0 and found.about["pairs left out"] == {
        "at the first token": 1
    }
    assert not head_masks(found, top=1)[0][0, 0] or found.data["alpha"]["advmod"][0][0] == 0
    started = head_statistics(
        Planted((sink,), causal=True, bos=True), [first]
    )  # the sink is a token of its own
    assert started.data["counts"]["nsubj"] == 1 and started.data["alpha"]["nsubj"] == [[0.0]]


def test_subtypes_specials_and_relations(sentences):
    model = tiny_model("bert", "classification")
    strict = head_statistics(model, sentences, subtypes=False).data
    assert (
        head_statistics(model, sentences).data["counts"]["nsubj"]
        == strict["counts"]["nsubj"] + 1
        == 3
    )
    named = head_statistics(model, sentences, relations=("nsubj:pass", "det"), subtypes=False).data
    assert named["counts"] == {"nsubj:pass": 1, "det": 5}
    queries = [
        head_statistics(model, sentences, specials=s).data["positional"]["counts"][0]
        for s in (False, True)
    ]
    assert queries[1] == queries[0] + 2 * len(sentences)
    own = Planted((lambda i: i,), bos=True)  # a head that looks at itself
    assert head_statistics(own, [TOWNS]).data["positional"]["alpha"] == [[0.0]]
    released = head_statistics(own, [TOWNS], specials=True).data["positional"]
    assert released["alpha"] == [[1.0]] and released["offset"] == [[0]]


def test_a_sentence_without_tokens_is_left_out_and_long_ones_are_cut(sentences):
    model = tiny_model("bert", "classification")
    nothing = Sentence("\ufffd", (Word(0, 1, -1, "root"),))  # BERT's normalizer drops it
    found = head_statistics(model, [nothing, *sentences])
    assert found.about["texts left out"] == 1 and found.about["sentences"] == 2
    assert found.data == head_statistics(model, sentences).data
    with pytest.raises(InputError, match="becomes a token"):
        head_statistics(model, [nothing])
    words = tuple(Word(5 * k, 5 * k + 4, k - 1, "obj") for k in range(80))
    cut = head_statistics(model, [Sentence(" ".join(["town"] * 80), words), *sentences])
    size = len(model.encode([raison.Example("town")])[0]) - 2
    left = (model.max_tokens - 2) // size  # words that the model reads
    assert left < 80 and cut.about["texts cut"] == 1 and cut.data["counts"]["obj"] == 3 + left - 1
    assert "1 text was cut" in printed(HeadSelection(HeadStatistics.of(cut), *head_masks(cut)))


def test_what_can_not_be_counted(sentences):
    with pytest.raises(Unsupported, match="shows no attention"):
        head_statistics(
            raison.load(lambda texts: [[0.0, 1.0]] * len(texts), labels=["a", "b"]), sentences
        )
    model = tiny_model("bert", "classification")
    with pytest.raises(InputError, match="at least one"):
        head_statistics(model, [])
    with pytest.raises(InputError, match="No sentence has a countable pair"):
        head_statistics(model, sentences, relations=("vocative",))
