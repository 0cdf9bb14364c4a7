"""Shared prefixes give what every set gives by itself: packed = literal, whatever is remembered, forgotten or fails."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

import raison
from raison.models.prefix import prefix_score, trie
from raison.models.prefix.trie import Packed, Trie
from raison.models.protocol import Budget, Question, TargetSpec
from raison.models.runner.runner import blocks_of_view
from raison.models.runner.score_cache import Memory
from raison.testing import FAMILIES, tiny_model
from raison.testing.model_contract import model_state_hash
from raison.testing.precision import Float64

CAUSAL = [family for family, tasks in FAMILIES.items() if "causal" in tasks]
SEQ2SEQ = [family for family, tasks in FAMILIES.items() if "seq2seq" in tasks]
EVERY = CAUSAL + SEQ2SEQ
TEXTS = ("The old town lies on a hill", "It begins in the hills")


@pytest.fixture(autouse=True)
def precisely(request):
    if "float32" in request.node.name:
        yield
        return
    with Float64():
        yield


@cache
def tiny(family: str):
    model = tiny_model(family, "causal" if family in CAUSAL else "seq2seq")
    assert model.shares_prefixes, (
        f"{family} does not share prefixes, so these tests would compare a thing with itself"
    )
    return model


def encoded(model, text: str):
    return model.encode([raison.Example(text)])[0]


def asked(
    encoding, target, generator: np.random.Generator, sets: int = 5, share: float = 0.6
) -> Question:
    """Random sets of kept tokens, everything and nothing among them."""
    keep = generator.random((sets, len(encoding))) < share
    keep[0], keep[1] = True, False
    return Question(encoding, target, keep)


@cache
def aims_of(model) -> list:
    """Two texts; next tokens, earlier tokens, texts of several tokens and contrasts; three kinds of output."""
    request = [
        TargetSpec(target=[31, 47, 23], output="log_prob"),
        TargetSpec(target=[47], contrast=[60], output="logit"),
        TargetSpec(target=[31, 47], contrast=[31, 90]),
    ]
    found = []
    for text in TEXTS:
        encoding = encoded(model, text)
        found += [
            aim for target_spec in request for aim in model.resolve_targets(encoding, target_spec)
        ]
        earlier = model.resolve_targets(encoding, TargetSpec(target="all"))
        found += [
            (longer, replace(target, output="prob")) for longer, target in (earlier[1], earlier[-1])
        ]
    return found


def questions_of(model, seed: int = 0) -> list[Question]:
    generator = np.random.default_rng(seed)
    return [asked(encoding, target, generator) for encoding, target in aims_of(model)]


def pieces(questions: list[Question], start: int, stop: int) -> list[Question]:
    return [replace(question, keep=question.keep[start:stop]) for question in questions]


def assert_same(found, expected, tolerance: float = 1e-9) -> None:
    for one, other in zip(found, expected, strict=True):
        for name in ("value", "margin"):
            np.testing.assert_allclose(
                getattr(one, name), getattr(other, name), rtol=0, atol=tolerance
            )
        for name in ("rank", "predicted"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def literally(model, questions: list[Question], removal: str = "delete"):
    """Every set by itself: without a memory nothing is shared."""
    return model.score(questions, removal=removal)


# -- the same numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", EVERY)
def test_packed_is_literal(family):
    model = tiny(family)
    questions = questions_of(model)
    expected = literally(model, questions)
    assert_same(literally(model, questions, "mask"), expected)
    assert_same(model.score(questions, memory=Memory()), expected)


@pytest.mark.parametrize("family", EVERY)
def test_a_memory_over_several_calls(family):
    """Later calls stand on nodes of earlier ones; a call that asks again gets the same and pays nothing."""
    model, memory = tiny(family), Memory()
    questions = questions_of(model, seed=1)
    expected = literally(model, questions)
    whole = sum(scored.tokens for scored in model.score(questions, memory=Memory()))
    spent = 0
    for start, stop in ((0, 1), (1, 3), (2, 4)):
        part = pieces(questions, start, stop)
        answers = model.score(part, memory=memory)
        assert_same(answers, literally(model, part))
        spent += sum(scored.tokens for scored in answers)
    again = model.score(questions, memory=memory)
    assert_same(again, expected)
    assert spent + sum(scored.tokens for scored in again) == whole
    again = model.score(questions, memory=memory)
    assert_same(again, expected)
    assert sum(scored.tokens for scored in again) == sum(scored.forwards for scored in again) == 0


@pytest.mark.parametrize("family", EVERY)
def test_prefixes_are_shared_where_answers_are_not_remembered(family):
    model, memory = tiny(family), Memory(limit=0)
    questions = questions_of(model, seed=2)
    model.score(questions, memory=memory)
    again = model.score(questions, memory=memory)
    assert_same(again, literally(model, questions))
    assert sum(scored.tokens for scored in again) == 0 < sum(scored.forwards for scored in again)


@pytest.mark.parametrize("nodes", [0, 30])
@pytest.mark.parametrize("family", EVERY)
def test_what_is_forgotten_is_computed_again(family, nodes, monkeypatch):
    """Room for so many nodes (0: one set at a time); enough is asked to fill it many times over."""
    model = tiny(family)
    memory, forgot = Memory(limit=0), []
    questions = questions_of(model, seed=3)[::2]
    model.score(pieces(questions[:1], 0, 1), memory=memory)  # now the size of a node is known
    per_node = memory.trie.bytes // len(memory.trie)
    memory.room = max(1, nodes * per_node)
    forget = Trie.forget
    monkeypatch.setattr(
        Trie, "forget", lambda trie, *args: (forgot.append(len(trie)), forget(trie, *args))[1]
    )
    spent = 0
    for part in (questions[::2], questions[1::2], questions):
        answers = model.score(part, memory=memory)
        assert_same(answers, literally(model, part))
        spent += sum(scored.tokens for scored in answers)
    assert len(forgot) > 3
    assert spent > sum(scored.tokens for scored in model.score(questions, memory=Memory()))


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_room_is_kept(family):
    """What a memory holds after a call is within its room, up to the last set."""
    model = tiny(family)
    encoding = encoded(model, " ".join(TEXTS))
    generator = np.random.default_rng(4)
    memory = Memory(limit=0)
    ((encoding, target),) = model.resolve_targets(encoding, TargetSpec(target=[30]))
    model.score([asked(encoding, target, generator, sets=2)], memory=memory)
    per_node = memory.trie.bytes // len(memory.trie)
    memory.room = 60 * per_node
    for _ in range(4):
        model.score([asked(encoding, target, generator, sets=30)], memory=memory)
        assert memory.trie.bytes <= memory.room + len(encoding) * per_node * 2


@pytest.mark.parametrize("family", EVERY)
def test_small_blocks_change_nothing(family, monkeypatch):
    """Nodes, keys and rows of the vocabulary in the smallest portions; chains from three nodes on."""
    for home, name, size in (
        (prefix_score, "NODES", 5),
        (prefix_score, "HEAD", 3),
        (trie, "FLOATS", 90),
        (trie, "CHAIN", 3),
    ):
        monkeypatch.setattr(home, name, size)
    model = tiny(family)
    questions = questions_of(model, seed=5)
    assert_same(model.score(questions, memory=Memory()), literally(model, questions))


@pytest.mark.parametrize("family", EVERY)
def test_long_chains_and_many_nodes(family):
    """Runs of nodes that are asked at once, behind known parents too, and more nodes than one call takes."""
    model, generator, memory = tiny(family), np.random.default_rng(6), Memory()
    long = raison.Example("good " * 60 if family in CAUSAL else TEXTS[0])
    (encoding,) = model.encode([long], truncate=True)
    ids = [int(i) for i in generator.integers(10, 150, 3 if family in CAUSAL else 45)]
    ((encoding, target),) = model.resolve_targets(encoding, TargetSpec(target=ids))
    free = encoding.ids.copy()
    free[~encoding.fixed] = generator.integers(10, 150, int((~encoding.fixed).sum()))
    encoding = replace(encoding, ids=free)
    question = asked(encoding, target, generator, sets=16 if family in CAUSAL else 30, share=0.93)
    assert_same(
        model.score(pieces([question], 0, 2), memory=memory),
        literally(model, pieces([question], 0, 2)),
    )
    assert_same(model.score([question], memory=memory), literally(model, [question]))
    assert len(memory.trie) > prefix_score.NODES


@pytest.mark.parametrize("family", ["mistral", "gemma", "bart"])
def test_the_budget_of_a_batch_changes_nothing(family):
    model = tiny(family)
    questions = questions_of(model, seed=7)
    expected = literally(model, questions)
    for tokens in (8, 64):
        small = tiny_model(family, model.task)
        small.budget = Budget(tokens=tokens)
        assert_same(small.score(questions, memory=Memory()), expected)


@pytest.mark.parametrize("family", ["gpt2", "qwen", "t5"])
def test_in_float32(family):
    model = tiny_model(family, "causal" if family in CAUSAL else "seq2seq", double=False)
    questions = questions_of(model, seed=8)
    for one, other in zip(
        model.score(questions, memory=Memory()), literally(model, questions), strict=True
    ):
        np.testing.assert_allclose(one.value, other.value, atol=1e-4)


def test_one_target_asked_about_twice_in_one_call():
    """Two questions about the same target, some sets in both: each answer stays with its set."""
    for model in (
        tiny("llama"),
        raison.load(lambda texts: [[len(t), t.count("o")] for t in texts]),
    ):
        encoding = encoded(model, TEXTS[0])
        ((encoding, target),) = model.resolve_targets(encoding)
        keep = np.ones((4, len(encoding)), bool)
        keep[np.arange(4), np.arange(4) + 1] = False
        memory = Memory()
        model.score([Question(encoding, target, keep[3:])], memory=memory)
        both = [Question(encoding, target, keep[:2]), Question(encoding, target, keep[1:3])]
        expected = model.score(both)
        assert_same(model.score(both, memory=memory), expected)
        assert_same(model.score(both, memory=memory), expected)


def test_a_memory_that_is_full_still_answers_right():
    model = tiny("gpt2")
    questions = questions_of(model, seed=9)
    expected = literally(model, questions)
    memory = Memory(limit=5_000)
    for _ in range(2):
        assert_same(model.score(questions, memory=memory), expected)
    assert memory.used <= 5_000


def test_one_memory_serves_two_models_in_turn():
    """Nodes belong to the weights that made them."""
    one, other, memory = tiny("llama"), tiny_model("llama", "causal", seed=1), Memory(limit=0)
    questions = questions_of(one, seed=10)
    for model in (one, other, one):
        assert_same(model.score(questions, memory=memory), literally(model, questions))


# -- the price ------------------------------------------------------------------------------------------


def prefixes(question: Question) -> tuple[list[set], dict]:
    """The distinct prefixes of every set of a question, and the source tokens that each stands on."""
    encoding, target = question.encoding, question.target
    size = len(encoding)
    sets, sources = [], {}
    for keep in question.keep:
        kept = [
            t
            for t in range(size)
            if target.inputs(size)[t] and (keep[t] or target.given(encoding)[t])
        ]
        word = {t: (int(encoding.ids[t]), int(encoding.positions[t])) for t in kept}
        is_source = encoding.segments[0] == "source"
        source = tuple(word[t] for t in kept if is_source and encoding.segment[t] == 0)
        written = [word[t] for t in kept if not (is_source and encoding.segment[t] == 0)]
        sets.append({(source, tuple(written[: n + 1])) for n in range(len(written))})
        if is_source:
            sources[source] = len(source)
    return sets, sources


@pytest.mark.parametrize("family", EVERY)
def test_tokens_are_the_new_prefixes(family):
    """Every distinct prefix is paid once, by the first question that needs it; so is every set of source tokens."""
    model, memory = tiny(family), Memory()
    questions = questions_of(model, seed=11)
    known, read = set(), {}
    for part in (pieces(questions, 0, 2), pieces(questions, 2, 5), questions):
        expected = []
        for question in part:
            sets, sources = prefixes(question)
            new = set().union(*sets) - known
            expected.append(
                len(new) + sum(n for source, n in sources.items() if source not in read)
            )
            known |= new
            read |= sources
        assert [scored.tokens for scored in model.score(part, memory=memory)] == expected
    assert known and sum(expected) == 0


def test_candidates_of_one_step_cost_less_than_their_tokens():
    model, memory = tiny("gpt2"), Memory()
    ((encoding, target),) = model.resolve_targets(encoded(model, TEXTS[0]))
    free = np.flatnonzero(target.free(encoding))
    keep = np.zeros((len(free), len(encoding)), bool)
    keep[np.arange(len(free)), free] = True
    (scored,) = model.score([Question(encoding, target, keep)], memory=memory)
    assert scored.tokens == 2 * len(free) and scored.forwards == len(
        free
    )  # the unit, and the last token behind it


# -- failures -------------------------------------------------------------------------------------------


def break_at(monkeypatch, home, name: str, turn: int, error: BaseException):
    """Let the `turn`-th call of a function fail."""
    original, calls = getattr(home, name), []

    def failing(*args, **kwargs):
        calls.append(name)
        if len(calls) == turn:
            raise error
        return original(*args, **kwargs)

    monkeypatch.setattr(home, name, failing)
    return calls


BREAKS = [
    (Packed, "attend", 1),  # the first layer
    (Packed, "attend", 2),  # half-way
    (prefix_score, "encode_sources", 1),
    (prefix_score, "logits_of_view_behind_blocks", 1),  # behind the blocks: the nodes are there
    (Trie, "write_hidden", 1),
    (Trie, "_add", 4),  # while the nodes are counted
]


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(
    ("home", "name", "turn"), BREAKS, ids=[f"{name}-{turn}" for _, name, turn in BREAKS]
)
@pytest.mark.parametrize("family", ["llama", "bart"])
def test_a_failure_leaves_no_poisoned_nodes(family, home, name, turn, warm, monkeypatch):
    model, memory = tiny(family), Memory()
    questions = questions_of(model, seed=12)[:6]
    expected = literally(model, questions)
    if warm:
        model.score(pieces(questions, 2, 4), memory=memory)
    for error in (RuntimeError("no more memory"), KeyboardInterrupt()):
        with monkeypatch.context() as patch:
            break_at(patch, home, name, turn, error)
            with pytest.raises(type(error)):
                model.score(questions, memory=memory)
    assert_same(model.score(questions, memory=memory), expected)


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_a_failing_embedding_leaves_no_poisoned_nodes(family):
    model, memory = tiny(family), Memory()
    questions = questions_of(model, seed=13)[:4]
    expected = literally(model, questions)

    def fail(module, args):
        raise RuntimeError("no such word")

    for warm in (False, True):
        handle = (
            blocks_of_view(model.runner.view).get_input_embeddings().register_forward_pre_hook(fail)
        )
        with pytest.raises(RuntimeError, match="no such word"):
            model.score(questions, memory=memory)
        handle.remove()
        part = pieces(questions, 0, 2) if not warm else questions
        assert_same(
            model.score(part, memory=memory),
            pieces_of_answers(expected, 0, 2) if not warm else expected,
        )


def pieces_of_answers(answers, start: int, stop: int):
    cut = lambda a: a[start:stop]  # noqa: E731
    return [replace(a, value=cut(a.value), rank=cut(a.rank), margin=cut(a.margin), predicted=cut(a.predicted))
            for a in answers]  # fmt: skip


@pytest.mark.parametrize("family", EVERY)
def test_the_users_model_is_as_it_was(family):
    model = tiny(family)
    before = model_state_hash(model)
    model.score(questions_of(model, seed=14), memory=Memory())
    assert model_state_hash(model) == before
    assert (
        not any(p.grad is not None for p in model.hf.parameters())
        and not torch.is_inference_mode_enabled()
    )
