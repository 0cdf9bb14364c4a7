"""Whether a model behaves on parts of its context: numbers against literal ones, and words repeated."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raison.core.errors import InputError, Unsupported
from raison.core.records import Example
from raison.metrics.statistics import mean_interval
from raison.studies import marginalised
from raison.studies.check_compatibility import WORDS, check_compatibility, check_repetition
from raison.studies.context_blocks import encode_blocks
from raison.studies.random_parts import loss_of_token_frequencies, random_targets
from raison.studies.word_repetition import frequent_words
from raison.testing.tiny import tiny_model

TEXTS = [Example(text) for text in (
    "the small cat sat on the old mat and the dog ran to the house of the old man by the sea",
    "a dog and a cat ran in the old house and the man sat on the small mat by the old sea wall",
)]  # fmt: skip


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def writer(request):
    return tiny_model(request.param, "causal")


@pytest.fixture(scope="module")
def found(writer):
    return check_compatibility(writer, TEXTS, length=20, targets=3, truths=2, sizes=(1, 2, 5))


def test_contexts_are_what_the_plain_model_reads(writer, found):
    """Every row against Hugging Face's own logits: the kept tokens alone, at the positions where they stood."""
    losses: dict[int | None, list[float]] = {1: [], 2: [], 5: [], None: []}
    for number, encoding in enumerate(encode_blocks(writer, TEXTS, 20)):
        ids = torch.from_numpy(encoding.ids.copy())[None]
        with torch.inference_mode():
            log_prob = writer.hf(input_ids=ids).logits[0].log_softmax(-1)
        draw = np.random.default_rng([0, number])
        for target in random_targets(writer, encoding, 3, draw):
            place = target.positions[0]
            losses[None].append(-float(log_prob[place - 1, encoding.ids[place]]))
            free = np.flatnonzero(target.free(encoding))
            for size in (1, 2, 5):
                drawn = draw.choice(free, size - 1, replace=False)  # as the study draws
                kept = torch.tensor(
                    sorted({*drawn.tolist(), place - 1, *np.flatnonzero(encoding.fixed[:place])})
                )
                with torch.inference_mode():
                    told = (
                        writer.hf(input_ids=ids[:, kept], position_ids=kept[None])
                        .logits[0, -1]
                        .log_softmax(-1)
                    )
                losses[size].append(-float(told[encoding.ids[place]]))
    for row in found.subsets:
        assert row.perplexity == pytest.approx(np.exp(np.mean(losses[row.size])), rel=1e-6), (
            row.size
        )
        sure = mean_interval(losses[row.size], seed=0)
        assert (row.low, row.high) == pytest.approx((np.exp(sure.low), np.exp(sure.high)), rel=1e-5)
        assert row.count == len(losses[None])
    for number, told in enumerate(found.truth):
        encoding = encode_blocks(writer, TEXTS, 20)[number // 2]
        place = np.flatnonzero(~encoding.fixed)[:4]
        likeliest = int(
            marginalised.marginalise_second_token(writer, encoding, place).distribution.argmax()
        )
        token = {"likeliest": likeliest, "actual": int(encoding.ids[place[3]])}[told.kind]
        kept = torch.tensor(
            sorted({int(place[0]), int(place[2]), *np.flatnonzero(encoding.fixed[: place[2]])})
        )
        with torch.inference_mode():
            ids = torch.from_numpy(encoding.ids.copy())[None, kept]
            shares = writer.hf(input_ids=ids, position_ids=kept[None]).logits[0, -1].softmax(-1)
        assert told.masked == pytest.approx(float(shares[token]), rel=1e-5)


def test_a_missing_token_is_marginalised_over_the_vocabulary(writer, monkeypatch):
    """With all tokens of the vocabulary: Σ_k, written out."""
    monkeypatch.setattr(marginalised, "LIKELY", 10**6)
    encoding = encode_blocks(writer, TEXTS, 20)[0]
    place = np.flatnonzero(~encoding.fixed)[:4]
    truth = marginalised.marginalise_second_token(writer, encoding, place)
    true = truth.distribution
    assert truth.covered == pytest.approx(1.0)
    assert float(true.sum()) == pytest.approx(1.0)
    ids = torch.from_numpy(encoding.ids[: place[2] + 1].copy())
    above, below = torch.zeros(len(true), dtype=torch.float64), 0.0
    with torch.inference_mode():
        first = writer.hf(input_ids=ids[None, : place[1]]).logits[0, -1].double().softmax(-1)
        for k in range(len(first)):
            row = ids.clone()
            row[place[1]] = k
            shares = writer.hf(input_ids=row[None]).logits[0].double().softmax(-1)
            weight = first[k] * shares[place[1], ids[place[2]]]
            above += weight * shares[place[2]]
            below += float(weight)
    torch.testing.assert_close(true, above / below, rtol=1e-8, atol=1e-10)


def test_a_word_alone_is_asked_about_at_every_position(writer):
    """Against Hugging Face's own logits for the one word, at that position."""
    encodings = encode_blocks(writer, TEXTS, 20)
    rows = check_repetition(writer, encodings, 12)
    words = frequent_words(writer, [each.texts[-1] for each in encodings], WORDS)
    if writer.hf.config.model_type == "llama":  # a tokenizer that knows too few of these words
        assert rows == [] and len(words) < 2
        return
    assert [row.position for row in rows] == list(range(1, 12))
    alone = np.array([row.alone for row in rows])
    assert alone.std() > 0 and words[0] == " the"
    values = []
    for word in words:
        (token,) = set(writer.encode([Example(word * 12)])[0].ids.tolist())
        with torch.inference_mode():
            places = [torch.tensor([[k]]) for k in range(len(rows))]
            out = [
                writer.hf(input_ids=torch.tensor([[token]]), position_ids=place).logits
                for place in places
            ]
        values.append([float(each[0, 0].softmax(-1)[token]) for each in out])
    np.testing.assert_allclose(alone, np.mean(values, axis=0), rtol=1e-6)


def test_with_rotary_positions_a_word_alone_is_the_same_everywhere():
    model = tiny_model("qwen", "causal")
    encodings = encode_blocks(model, TEXTS, 20)
    assert not encodings[0].fixed.any()
    alone = [row.alone for row in check_repetition(model, encodings, 12)]
    np.testing.assert_allclose(alone, alone[0], rtol=1e-6)


def test_frequencies_are_counted_without_the_place_itself(writer):
    encodings = encode_blocks(writer, TEXTS, 20)
    loss = loss_of_token_frequencies(writer, encodings)
    written = np.concatenate([each.ids[~each.fixed] for each in encodings])
    size = writer.hf.get_input_embeddings().num_embeddings
    values, counts = np.unique(written, return_counts=True)
    common, rare = values[counts.argmax()], values[counts.argmin()]
    total = len(written) - 1
    assert loss(int(common)) == pytest.approx(np.log((total + len(values)) / (counts.max() - 1)))
    if counts.min() == 1:
        known = len(values) - 1
        assert loss(int(rare)) == pytest.approx(np.log((total + known) / (known / (size - known))))


def test_it_is_the_same_again_and_lossless(writer, found):
    again = check_compatibility(writer, TEXTS, length=20, targets=3, truths=2, sizes=(1, 2, 5))
    assert again == found
    assert type(found).from_json(found.to_json()) == found


def test_encoder_decoders_are_measured_on_pairs():
    model = tiny_model("marian", "seq2seq")
    pairs = [
        Example("the small cat sat on the mat", label="the dog ran to the old house by the sea")
    ]
    found = check_compatibility(model, pairs, targets=2, sizes=(1, 2))
    assert [row.size for row in found.subsets] == [1, 2, None]
    assert not found.repetition and not found.truth


def test_bad_wishes_get_one_sentence(sentiment, writer):
    with pytest.raises(Unsupported, match="language model"):
        check_compatibility(sentiment, TEXTS)
    with pytest.raises(InputError, match="translations"):
        check_compatibility(tiny_model("marian", "seq2seq"), TEXTS)
    with pytest.raises(InputError, match="smaller --length"):
        check_compatibility(writer, TEXTS, length=60)
