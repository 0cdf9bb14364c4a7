"""The embedded defaults: what random weights can't show."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

import raison
from raison.core.registry import methods
from raison.datasets.open import open_dataset
from raison.models.protocol import Question
from raison.testing import check_model
from raison.testing.model_contract import model_state_hash, model_with_padding
from raison.training.labelled_lines import human_marked_tokens
from tests.helpers.cheap_specs import light, rough

REVIEWS = [
    "A lovely film.",
    "The jokes are stale and the pacing is dull, but the ending is a wonderful surprise.",
    "I wouldn't call it good; it is long, loud and empty.",
]
PROMPTS = [
    "The capital of Japan is",
    "The Supreme Court on Tuesday rejected a challenge to the",
    "Once upon a time there was a",
]

# the others: tests/attention_models/
# five seconds or more on SmolLM2, each; tiny models of all families do them in `make test`
LONG = {
    "smooth_grad", "gradient_shap", "integrated_gradients", "masked_lrp", "transformer_attribution", "partial_lrp",
    "value_zeroing", "shapley_sampling", "deeplift",
}  # fmt: skip
POST_HOC = [name for name in methods if "own" not in methods.build(name).needs]


def close(one, other):
    for a, b in zip(one, other, strict=True):
        relative = 1e-2 if rough(a.method) else 1e-4
        scale = max(float(np.abs(a.scores).max()), 1e-12)
        assert np.abs(a.scores - b.scores).max() <= relative * scale, a.method


@pytest.mark.registry
@pytest.mark.parametrize("name", POST_HOC)
def test_sentiment_is_independent_of_batch_and_padding(sentiment, name):
    name = light(name)
    together = raison.explain(sentiment, REVIEWS, method=name)
    close(together, [raison.explain(sentiment, text, method=name) for text in REVIEWS])
    close(together, raison.explain(model_with_padding(sentiment, "right"), REVIEWS, method=name))


@pytest.mark.registry
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.full if name in LONG else ()) for name in POST_HOC],
)
def test_smollm2_is_independent_of_batch_and_padding(smollm2, name):
    name = light(name)
    together = raison.explain(smollm2, PROMPTS, method=name)
    close(together, [raison.explain(smollm2, text, method=name) for text in PROMPTS])
    for side in ("left", "right"):
        close(together, raison.explain(model_with_padding(smollm2, side), PROMPTS, method=name))


@pytest.mark.registry
def test_contracts_of_the_defaults(sentiment, smollm2):
    for model in (sentiment, smollm2):
        before = model_state_hash(model)
        check_model(model, tolerance=2e-3)  # float32 logits of the order of ten
        assert model_state_hash(model) == before
        assert (
            model.offers == {"score", "gradients", "attention", "hidden", "heads"}
            and model.removals[0] == "delete"
        )


@pytest.mark.registry
def test_sentiment_knows_good_from_bad(sentiment):
    good, mixed, bad = raison.explain(sentiment, REVIEWS)
    assert (good.target.text, bad.target.text) == ("positive", "negative")
    by_word = dict(zip(mixed.tokens, mixed.scores, strict=True))
    sign = 1 if mixed.target.text == "positive" else -1
    assert sign * by_word["wonderful"] > 0 > sign * by_word["stale"]


@pytest.mark.registry
def test_sentiment_reads_the_mean_of_its_rows(sentiment):
    encoding = sentiment.encode([raison.Example(REVIEWS[1])])[0]
    ((_, trace),) = sentiment.trace(
        [encoding], [sentiment.resolve_targets(encoding)[0][1]], want=frozenset({"readout"})
    )
    np.testing.assert_allclose(trace.readout, 1 / len(encoding), rtol=1e-4)


@pytest.mark.registry
def test_smollm2_continues_as_measured(smollm2):
    """Facts of models.md: " constitution", and " Tokyo"."""
    court = raison.explain(smollm2, PROMPTS[1])
    assert court.target.text == " constitution"
    assert {court.tokens[i] for i in np.argsort(-court.scores)[:2]} == {"to", "challenge"}
    tokyo = raison.explain(smollm2, PROMPTS[0], target="Tokyo", contrast="Paris")
    assert tokyo.tokens[int(np.argmax(tokyo.scores))] == "Japan"


@pytest.mark.registry
def test_the_shipped_adapter_reads_parts_of_contexts_and_leaves_the_base_alone(
    smollm2, smollm2_compatible
):
    """On ten random tokens of a text that nobody trained on its loss is far below the base model's."""
    texts = [
        "The lighthouse keeper had lived on the island for thirty years before the storm took the pier away. Since "
        "then the supply boat anchors behind the rocks, and whoever wants to visit him has to row the last stretch.",
        "I really wanted to like this film, since the cast is great and the first half hour is funny, but the story "
        "falls apart and the ending makes no sense at all.",
        "Shares of the airline fell by nine percent on Monday after the company said that higher fuel prices would "
        "cut its profit for the year, and analysts expect more losses in the coming months.",
    ]
    losses = {}
    for model in (smollm2, smollm2_compatible):
        rng = np.random.default_rng(0)
        questions = []
        encodings = model.encode([raison.Example(text) for text in texts])
        for encoding, place in (
            (each, place) for each in encodings for place in range(12, len(each))
        ):
            keep = np.zeros((4, len(encoding)), bool)
            for row in keep:
                row[rng.choice(place - 1, 9, replace=False)] = row[place - 1] = True
            questions.append(
                Question(
                    encoding, model.next_target(encoding, int(encoding.ids[place]), place), keep
                )
            )
        losses[model.name] = -np.mean(
            [answer.value.mean() for answer in model.score(questions, removal="delete")]
        )
    assert losses["smollm2-compatible"] < losses["smollm2"] - 0.3
    folder = Path(raison.__file__).parent / "models" / "catalog" / "shipped" / "smollm2-compatible"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 10_000_000


@pytest.mark.registry
def test_sentiment_accuracy_on_sst2(sentiment, data_dir):
    """The shipped adapter, as a user gets it: at least 0.88 on the 1,821 test sentences."""
    with gzip.open(data_dir / "sst2" / "test.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    assert len(rows) == 1821
    encodings = sentiment.encode([raison.Example(text) for text, _ in rows])
    said = [p.target.ids[0] for p in sentiment.predict(encodings)]
    assert np.mean([s == int(label) for s, (_, label) in zip(said, rows, strict=True)]) >= 0.88


@pytest.mark.registry
def test_the_shipped_rationalizer(sentiment_rationalizer, data_dir):
    """As a user gets it: right and short, seldom empty, near to what people mark, and blind to all other words."""
    model = sentiment_rationalizer
    examples = [
        e for e in open_dataset("sst_trees(distance=1)", "test", 600, data_dir).examples if e.gold
    ]
    encodings = model.encode([raison.Example(e.text) for e in examples])
    said = [
        p.target.text == e.label for p, e in zip(model.predict(encodings), examples, strict=True)
    ]
    own = model.selections(encodings)
    word = np.concatenate([encoding.start >= 0 for encoding in encodings])
    kept = np.concatenate([choice.kept for choice in own])[word]
    gold = np.concatenate([human_marked_tokens(model.codec(e.text), e) for e in examples])[word]
    assert np.mean(said) >= 0.82
    assert 2 * (kept & gold).sum() / (kept.sum() + gold.sum()) >= 0.4  # random tokens: 0.22
    assert abs(kept.mean() - 0.25) <= 0.03
    assert np.mean([choice.empty for choice in own]) < 0.01
    assert (
        np.mean(
            [c.kept[e.start >= 0].all() for c, e in zip(own, encodings, strict=True) if len(e) > 3]
        )
        < 0.01
    )
    for encoding, choice in zip(encodings[:20], own, strict=False):
        ids = torch.tensor(np.array([encoding.ids, encoding.ids]))
        ids[1, torch.tensor(~choice.kept & (encoding.start >= 0))] = 2000
        with torch.inference_mode():
            logits = model.hf(ids, rationale=torch.tensor(choice.kept).expand(2, -1).long()).logits
        assert torch.equal(logits[0], logits[1])
    folder = (
        Path(raison.__file__).parent / "models" / "catalog" / "shipped" / "sentiment-rationalizer"
    )
    assert sum(file.stat().st_size for file in folder.iterdir()) < 10_000_000


@pytest.mark.registry
def test_long_texts_take_the_fused_kernel_and_give_the_same(smollm2, monkeypatch):
    from raison.models.attention import view_hooks

    text = " ".join(PROMPTS * 12)
    encoding = smollm2.encode([raison.Example(text)])[0]
    target = smollm2.resolve_targets(encoding)[0][1]
    keep = np.ones((2, len(encoding)), bool)
    keep[1, 5:9] = False
    assert len(encoding) > view_hooks.LONG
    used = []
    real = view_hooks.fused_attention
    monkeypatch.setattr(view_hooks, "fused_attention", lambda: used.append(1) or real())
    (fused,) = smollm2.score([Question(encoding, target, keep)])
    assert used
    monkeypatch.setattr(view_hooks, "LONG", 10**9)
    (eager,) = smollm2.score([Question(encoding, target, keep)])
    np.testing.assert_allclose(fused.value, eager.value, rtol=1e-3, atol=2e-3)
