"""Experiments of P0: cases whose numbers are known, and templates that say what they should."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
import torch

from raison.api import build_search
from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Span, Target
from raison.datasets.agreement import TEMPLATES, Template, fill_templates, word_pairs
from raison.datasets.loading import LoadedData
from raison.datasets.open import open_dataset
from raison.metrics.base import Share
from raison.models.protocol import Prediction, Scored, TargetSpec
from raison.studies.compatibility import chosen
from raison.studies.evaluate import method_list
from raison.studies.reproduce.experiment import Trial, experiments, run_setting
from raison.studies.reproduce.experiments import agreement, alignments, cost, distractors, heldout, lambada
from raison.studies.reproduce.suite import Run, suites
from raison.studies.reproduce.target_rationales import Rationale, TargetInText, batch_of, find_rationales
from raison.studies.reproduce.target_tokens import is_own_token
from raison.testing import tiny_hf, tiny_model

SUITES = {name: suite for name, suite in suites().items() if suite.experiment in ("agreement", "lambada", "cost")}
SUITES |= {name: suite for name, suite in suites().items() if suite.experiment in ("distractors", "alignments")}
ROWS = {
    "agreement": agreement.AgreementRow,
    "lambada": lambada.LambadaRow,
    "cost": cost.CostRow,
    "distractors": distractors.DistractorRow,
    "alignments": alignments.AlignmentRow,
}
METHODS = {"greedy": "greedy", "refined": "refined", "all attentions": "by_order(method=attention_mean)"}


def trial_of(model, methods=METHODS, count=8, data="", **settings) -> Trial:
    return Trial(model, methods, Run("a run", "tiny", data, settings=settings), count)


def found_in(order, reached=True, optimal=False, ranking=None) -> Rationale:
    return Rationale(tuple(order), tuple(ranking or order), reached, optimal)


# -- templates ----------------------------------------------------------------------------------------------


def test_there_are_templates_for_twelve_relations(data_dir):
    from raison.datasets.open import open_dataset

    known = word_pairs(open_dataset("analogies", data=data_dir).examples)
    relations = [template.relation for template in TEMPLATES]
    assert len(set(relations)) == len(relations) >= 12
    assert set(relations) <= set(known)
    made = fill_templates(open_dataset("analogies", data=data_dir).examples)
    assert {relation: len(examples) for relation, examples in made.items()} == {r: len(known[r]) for r in relations}
    ids = [example.id for examples in made.values() for example in examples]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda each: each.relation)
def test_a_template_has_one_distractor_and_ends_before_its_answer(template):
    example = template.fill(("qqq", "zzz"))
    given, answer = ("zzz", "qqq") if template.backwards else ("qqq", "zzz")
    text = example.text
    assert example.target == f" {answer}"
    assert answer not in text
    assert text.count(given) == 1
    assert text.count("(") == text.count(")") == text.count(").") == 1
    assert re.fullmatch(r".*[\w,]", text)  # the answer is the next word, after a space
    start, end = example.meta["aside"]
    assert text[start] == "("
    assert text[end - 2 : end] == ")."
    assert text[: start - 1] + text[end:] == example.meta["without"]
    assert text[slice(example.gold[0].start, example.gold[0].end)] == given
    assert example.gold[0].end < start
    assert text[example.gold[0].start - 1] == " "  # a word with a space before it, as the answer


def test_pairs_are_taken_once():
    rows = [("a", "b", "c", "d"), ("a", "b", "e", "f"), ("c", "d", "a", "b")]
    examples = [Example("x", id=str(k), meta={"relation": "r", "words": words}) for k, words in enumerate(rows)]
    assert word_pairs(examples) == {"r": [("a", "b"), ("c", "d"), ("e", "f")]}


# -- a model that copies ------------------------------------------------------------------------------------

PAIRS = {"red": "apple", "blue": "sky", "green": "grass", "grey": "stone"}
TEMPLATE = Template("colours", "I saw {given} today .", "it was cold", "and that was a")


@cache
def words_of_the_template() -> tuple[str, ...]:
    texts = [TEMPLATE.fill(pair).text + f" {pair[1]}" for pair in PAIRS.items()]
    return tuple(dict.fromkeys(re.findall(r"\w+|[().]", " ".join(texts))))


class Copier:
    """A language model of whole words that says `apple` where it sees `red`, and `a` where it sees none of its words.

    Tokens and targets are those of a real model, whose answers are never asked for.
    """

    def __init__(self):
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import PreTrainedTokenizerFast

        import raison

        names = ["[UNK]", "[PAD]", *words_of_the_template()]
        core = Tokenizer(models.WordLevel({name: k for k, name in enumerate(names)}, unk_token="[UNK]"))
        core.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]", pad_token="[PAD]")
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
        hf, _ = tiny_hf("gpt2", "causal")
        self.inner = raison.load(hf, tokenizer)
        self.says = {names.index(color): names.index(thing) for color, thing in PAIRS.items()}
        self.other = names.index("a")
        self.asked = 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def said(self, ids) -> int:
        known = [self.says[i] for i in ids if i in self.says]
        return known[-1] if known else self.other

    def predict(self, encodings):
        found = []
        for encoding in encodings:
            token = self.said(encoding.ids.tolist())
            found.append(Prediction(Target("token", (token,), (len(encoding),), "", "log_prob"), 0.9, (("", 0.9),)))
        return found

    def score(self, questions, *, removal=None, heads=None, memory=None):
        answers = []
        for question in questions:
            self.asked += len(question.keep)
            position = question.target.positions[0]
            rows = [self.said(question.encoding.ids[:position][keep[:position]].tolist()) for keep in question.keep]
            hit = np.array([row == question.target.ids[0] for row in rows], dtype=bool).reshape(-1, 1)
            value, margin = np.where(hit, np.log(0.9), np.log(0.05)), np.where(hit, 2.0, -2.0)
            predicted = np.array(rows, dtype=np.int64).reshape(-1, 1)
            answers.append(Scored(value, (~hit).astype(int), margin, predicted, len(rows), question.keep.size))
        return answers


@pytest.fixture
def colours(monkeypatch):
    """The analogies, replaced by four pairs of words and one template."""
    lines = list(combinations(PAIRS.items(), 2))
    meta = [{"relation": "colours", "words": [*one, *other]} for one, other in lines]
    read = LoadedData("analogies", "test", "causal", (), [Example("x", id=str(k), meta=m) for k, m in enumerate(meta)])
    monkeypatch.setattr(agreement, "open_dataset", lambda name, data=None: read)
    monkeypatch.setattr(agreement, "fill_templates", lambda examples: fill_templates(examples, (TEMPLATE,)))


def test_a_model_that_copies_the_antecedent(colours):
    evaluation = experiments["agreement"](trial_of(Copier(), {"greedy": "greedy", "refined": "refined"}))
    assert len(evaluation.texts) == len(PAIRS)
    for title in ("greedy", "refined"):
        told = {column.key: evaluation.cell(title, column.key) for column in evaluation.columns}
        assert told["length"].each == (2.0,) * 4  # the previous word and the antecedent
        assert told["ratio"].each == (1.0,) * 4
        for key in ("antecedent", "no_distractor", "reached"):
            assert told[key].value == 1.0
    assert "colours 4 of 4" in evaluation.notes[0]
    assert "colours 2.0 (2.0 … 2.0, 4 examples)" in evaluation.notes[2]


def test_an_order_takes_all_that_comes_before_the_antecedent(colours):
    from raison.core.registry import methods
    from raison.methods.base import Answer, Method

    class Backwards(Method):
        """The later, the more it counts."""

        name, axis = "backwards_for_a_test", "unit"

        def __call__(self, model, batch):
            return [Answer(np.arange(len(units), dtype=float)) for units in batch.units]

    methods["random"]  # the registry is scanned before something is added to it
    methods.register("backwards_for_a_test")(Backwards)
    try:
        evaluation = experiments["agreement"](trial_of(Copier(), {"late": "by_order(method=backwards_for_a_test)"}))
    finally:
        del methods._entries["backwards_for_a_test"]
    # I saw red today . ( it was cold ). and that was a: everything but "I saw"
    tokens = len(Copier().encode([TEMPLATE.fill(("red", "apple"))])[0])
    length = evaluation.cell("late", "length")
    assert length.each == (tokens - 2.0,) * 4
    assert evaluation.cell("late", "ratio").value == (tokens - 2) / 2
    assert evaluation.cell("late", "no_distractor").value == 0.0
    assert evaluation.cell("late", "antecedent").value == 1.0


def test_ratio_is_for_the_subset_that_was_proved(colours):
    found = experiments["agreement"](trial_of(Copier(), {"greedy": "greedy"}, exact_count=3))
    assert found.cell("greedy", "ratio").count == 3
    assert "proved for 3 of 3" in found.notes[1]
    found = experiments["agreement"](trial_of(Copier(), {"greedy": "greedy"}, exact="exact(evaluations=2)"))
    assert found.cell("greedy", "ratio").value is None  # the search gave up
    assert "proved for 0 of 4" in found.notes[1]


def test_only_texts_that_the_model_gets_right(colours, monkeypatch):
    model = Copier()
    del model.says[next(iter(model.says))]
    usable = agreement.usable_examples(trial_of(model))
    assert len(usable) == 3
    assert "colours 3 of 4" in usable.sentence()
    assert len(agreement.usable_examples(trial_of(model, count=2))) == 2
    model.says = {}
    with pytest.raises(InputError, match="none of the answers"):
        agreement.usable_examples(trial_of(model))


def test_words_of_several_tokens_are_left_out():
    model = tiny_model("gpt2", "causal")
    assert agreement.find_parts(model, TEMPLATE.fill(("incomprehensible", "unbelievable"))) is None


def test_the_last_occurrence_is_the_antecedent():
    template = replace(TEMPLATE, second="and red was a")
    model = Copier()
    usable = agreement.find_parts(model, template.fill(("red", "apple")))
    ids = usable.target.encoding.ids
    same = np.flatnonzero(ids == ids[usable.antecedent])
    assert len(same) == 2
    assert usable.antecedent == same[-1]
    inside = [usable.target.encoding.tokens[t].strip() for t in sorted(usable.distractor)]
    assert inside == ["(", "it", "was", "cold", ")", "."]
    row = usable.row(found_in([13, usable.antecedent, min(usable.distractor)], reached=False), 2)
    assert row.numbers() == {"length": 3.0, "ratio": 1.5, "antecedent": 1.0, "no_distractor": 0.0, "reached": 0.0}


def test_cost_counts_what_runs(colours):
    methods = {"exhaustive": "exact", "masked": "greedy(sufficient=argmax)", "sparse": "greedy"}
    found = experiments["cost"](trial_of(Copier(), methods, removal={"masked": "mask"}))
    assert found.cell("exhaustive", "proved").value == 1.0
    assert all(value > 0 for title in methods for value in found.cell(title, "cpu_seconds").each)
    assert {found.cell(title, "length").value for title in methods} == {2.0}


def test_cost_of_a_real_model_is_that_of_its_meter():
    from raison.models.runner.meter import metered

    model = tiny_model("gpt2", "causal")
    (encoding,) = model.encode([Example("the cat sat on the mat and the dog")])
    ((longer, target),) = model.resolve_targets(encoding, TargetSpec(target=None, output="log_prob"))
    aims = [TargetInText(longer, target)]
    masked = find_rationales(trial_of(model), "masked", "greedy", aims, removal="mask", group=1)
    sparse = find_rationales(trial_of(model), "sparse", "greedy", aims, group=1)
    assert masked.rationales == sparse.rationales
    assert sparse.costs[0].tokens < masked.costs[0].tokens
    batch = batch_of(trial_of(model), aims, None)
    with metered() as meter:
        build_search("greedy")(model, batch)
    assert meter.tokens == sparse.costs[0].tokens


# -- what a search hands on ---------------------------------------------------------------------------------


def test_a_ranking_goes_on_behind_the_rationale():
    model = tiny_model("gpt2", "causal")
    texts = ["the cat sat on the mat and the dog ran", "a film about the sea is a good film"]
    aims = []
    for encoding in model.encode([Example(text) for text in texts]):
        ((longer, target),) = model.resolve_targets(encoding, TargetSpec(target=None, output="log_prob"))
        aims.append(TargetInText(longer, target))
    trial = trial_of(model)
    for title, spec in METHODS.items():
        for aim, one in zip(aims, find_rationales(trial, title, spec, aims, ranked=8).rationales, strict=True):
            assert one.reached
            assert one.order[0] == len(aim.encoding) - 1 == aim.given[0]
            assert len(set(one.ranking)) == len(one.ranking)
            if title == "greedy":
                assert len(one.ranking) >= 8
                assert one.ranking[: len(one.order)] == one.order
            if title == "all attentions":
                assert sorted(one.ranking) == list(range(len(aim.encoding)))
                assert one.ranking[: len(one.order)] == one.order


def test_greedy_is_that_of_the_library():
    import raison

    model = tiny_model("llama", "causal")
    text = "the cat sat on the mat and the dog ran"
    whole = raison.rationalize(model, text, "greedy")
    target = TargetInText(whole.encoding, whole.target)
    (one,) = find_rationales(trial_of(model), "greedy", "greedy", [target]).rationales
    kept = whole.units.keep(whole.selected) & whole.scope
    assert sorted(one.order) == np.flatnonzero(kept).tolist()
    assert len(one.order) == whole.certificate.kept_tokens


def test_settings_are_of_their_kind():
    assert run_setting(trial_of(None, words=3), "words", 4) == 3
    assert run_setting(trial_of(None), "words", 4) == 4
    with pytest.raises(InputError, match="'words'"):
        run_setting(trial_of(None, words="all"), "words", 4)


@pytest.mark.parametrize("name", ["agreement", "lambada", "cost", "distractors", "alignments"])
def test_another_kind_of_model_is_refused(name):
    with pytest.raises(InputError, match="pass another model"):
        experiments[name](trial_of(tiny_model("bert", "classification")))


# -- LAMBADA ------------------------------------------------------------------------------------------------


def passage(gold, targets=1, size=12) -> lambada.Passage:
    model = tiny_model("gpt2", "causal")
    encoding = model.encode([Example("abcdefghijklmnopqrstuvwxyz"[: 2 * size])])[0]
    aims = []
    for k in range(targets):
        aims.append(TargetInText(encoding, Target("token", (1,), (10 + k,), "x", "log_prob")))
    return lambada.Passage(Example("x", id="1"), tuple(aims), frozenset(gold))


def test_f1_is_pooled_and_iou_is_a_mean():
    one, other = passage({7, 8, 9}), passage({1, 9})
    first = one.row([found_in([9, 8])])
    second = other.row([found_in([9, 0, 2, 3, 4, 5])])
    assert (first.length, second.length) == (2.0, 6.0)
    assert first.iou == pytest.approx(2 / 3)
    assert second.iou == pytest.approx(1 / 7)
    assert first.f1 == Share(4, 5)
    assert second.f1 == Share(2, 8)
    rationales = [[found_in([9, 8])], [found_in([9, 0, 2, 3, 4, 5])]]
    ious, f1s = lambada.overlap_along_rankings([one, other], rationales)
    assert len(ious) == 20
    assert ious[0] == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert f1s[0] == pytest.approx((2 + 2) / (4 + 3))
    assert ious[1] == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert f1s[1] == pytest.approx((4 + 2) / (5 + 4))
    assert ious[19] == pytest.approx((2 / 3 + 1 / 7) / 2)  # a rationale that has ended stays


def test_a_word_of_two_tokens_has_both_rationales_but_not_itself():
    both = passage({8, 9}, targets=2)
    assert both.begins == 10
    row = both.row([found_in([9, 8]), found_in([10, 9, 3], reached=False)])
    assert row.length == 3.0  # 3, 8, 9: the word's own first token is none
    assert row.iou == pytest.approx(2 / 3)
    assert row.reached == 0.0


def test_gold_tokens_end_in_a_span():
    ends = np.array([3, 5, 9, 12])
    encoding = Encoding(
        np.arange(4), ("a",) * 4, ("text",), ("x" * 12,), np.zeros(4), ends - 2, ends, np.arange(4), np.zeros(4, bool)
    )
    example = Example("x" * 12, gold=(Span(3, 9), Span(11, 12)))
    assert lambada.gold_tokens(encoding, example) == {1, 2, 3}  # the first ends where the span begins


def lambada_read(model, own: bool) -> LoadedData:
    texts = ["the cat sat on the mat and the dog", "a good film about the sea", "we went home and the night was cold"]
    examples = []
    for k, text in enumerate(texts):
        best = model.predict(model.encode([Example(text)]))[0]
        token = best.target.ids if own else best.outcomes[1]
        examples.append(Example(text, id=str(k), target=list(token), gold=(Span(len(text) - 3, len(text)),)))
    return LoadedData("lambada_rationales", "test", "causal", (), examples)


def test_lambada_takes_the_passages_that_are_asked_for(monkeypatch):
    model = tiny_model("gpt2", "causal")
    mixed = lambada_read(model, True)
    mixed.examples[1] = lambada_read(model, False).examples[1]
    monkeypatch.setattr(lambada, "open_dataset", lambda name, data=None: mixed)
    found = experiments["lambada"](trial_of(model, own=True))
    assert [text.id for text in found.texts] == ["0", "2"]
    assert "2 of 3 passages" in found.notes[0]
    assert set(found.curves) == {"iou_at_k_curve", "f1_at_k_curve"}
    assert all(found.cell(title, "reached").value == 1.0 for title in METHODS)
    assert found.cell("refined", "length").value <= found.cell("greedy", "length").value
    rule = {"greedy": "greedy(sufficient=probability(tau=0.5), evaluations=1)"}
    others = experiments["lambada"](trial_of(model, rule, own=False))
    assert [text.id for text in others.texts] == ["1"]
    assert others.cell("greedy", "reached").value == 0.0  # the budget ends, and the whole passage is no rationale


def test_own_tokens_are_those_of_the_plain_model():
    import torch

    model = tiny_model("gpt2", "causal")
    (encoding,) = model.encode([Example("the cat sat on")])
    ((longer, target),) = model.resolve_targets(encoding, TargetSpec(target=" the mat and the dog", output="log_prob"))
    with torch.no_grad():
        logits = model.hf(torch.tensor(longer.ids[None])).logits[0]
    plain = [int(logits[p - 1].argmax()) == i for i, p in zip(target.ids, target.positions, strict=True)]
    assert is_own_token(model, longer, target).tolist() == plain


# -- translations -------------------------------------------------------------------------------------------


def marian():
    return tiny_model("marian", "seq2seq")


def test_crossovers_counted_by_hand():
    model = marian()
    first, second = Example("the cat", id="1"), Example("a dog ran", id="2")
    pair = distractors.join_sentences(model, first, second, 0, np.random.default_rng(0))
    (alone,) = model.encode([first])
    assert pair.source_break == int((alone.segment == 0).sum()) - 1  # without its end token
    written = [distractors.written_for(model, each) for each in (first, second)]
    assert pair.target_break == len(written[0])
    assert pair.tokens == len(written[0]) + len(written[1])
    encoding = pair.targets[0].encoding
    sources = int((encoding.segment == 0).sum())
    b, end = pair.source_break, sources - 1
    assert encoding.ids[sources + 1 :].tolist() == [*written[0], *written[1]]

    def aim(index):
        position = sources + 1 + index
        return TargetInText(encoding, Target("token", (int(encoding.ids[position]),), (position,), "x", "log_prob"))

    # a target of the first half: one of its own words, two of the second sentence, the end of the source
    before = pair.crossover(aim(0), found_in([sources, 0, b, b + 1, end]))
    assert (before.source, before.target) == (2, None)
    # the first of the second half: start token and previous token do not count, the first written token does
    t = pair.target_break
    after = pair.crossover(aim(t + 1), found_in([sources + t + 1, sources, sources + 1, 0, b, end]))
    assert (after.source, after.target) == (1, 1)
    assert pair.crossover(aim(t), found_in([sources + t])).target == 0  # the previous token is of the first half
    fixed = replace(pair, targets=(aim(0), aim(t + 1)))
    row = fixed.row([found_in([sources, 0, b, b + 1, end]), found_in([sources + t + 1, sources + 1, 0])])
    assert row.mean_source == Share(3, 2)
    assert row.mean_target == Share(1, 1)
    assert row.rate_source == Share(2, 2)
    assert row.length == Share(8, 2)


def test_distractors_run_and_pool(monkeypatch):
    model = tiny_model("marian", "seq2seq", seed=2)  # which goes on as it began
    texts = ["the cat sat", "a dog ran", "the sea is cold", "we went home"]
    read = LoadedData("x", "test", "seq2seq", (), [Example(text, id=str(k)) for k, text in enumerate(texts)])
    monkeypatch.setattr(distractors, "open_dataset", lambda name, split=None, data=None: read)
    found = experiments["distractors"](trial_of(model, count=2, targets=4))
    assert len(found.texts) == 2
    for cell in found.cells:
        if cell.value is not None:
            assert cell.value == pytest.approx(sum(cell.parts) / sum(cell.wholes))
    explained = sum(found.cell("greedy", "length").wholes)
    assert f"{int(explained)} of them are explained" in found.notes[0]
    assert explained <= 8
    again = experiments["distractors"](trial_of(model, count=2, targets=4))
    assert again == found
    with pytest.raises(InputError, match="need 6 sentences"):
        experiments["distractors"](trial_of(model, count=3))


def test_target_words_by_counting_letters():
    model = marian()
    (encoding,) = model.encode([Example("the cat")])
    text = "the film , the cat"
    ((longer, target),) = model.resolve_targets(encoding, TargetSpec(target=text, output="log_prob"))
    words = [(m.start(), m.end()) for m in re.finditer(r"\S+", text)]
    found = alignments.word_of_each_token(longer, target.positions, text, words)
    spelt: dict[int, str] = {}
    for word, position in zip(found, target.positions, strict=True):
        spelt[word] = spelt.get(word, "") + longer.text_of(position).strip()
    assert spelt == {0: "the", 1: "film", 2: ",", 3: "the", 4: "cat"}
    assert alignments.word_of_each_token(longer, target.positions, "the films , the cat", words) is None


def test_source_words_that_a_token_touches():
    ends = np.array([3, 7, 9, -1])
    encoding = Encoding(
        np.arange(4), ("a",) * 4, ("source",), ("x" * 9,), np.zeros(4), np.array([0, 3, 8, -1]), ends, np.arange(4),
        np.zeros(4, bool),
    )  # fmt: skip
    assert alignments.touched_words(encoding, [(0, 4), (4, 6), (8, 9)]) == {0: (0,), 1: (0, 1), 2: (2,)}


def test_alignment_numbers_by_hand():
    meta = {"sure": [[0, 0], [1, 1]], "possible": [[2, 1]], "source_words": [], "target_words": []}
    example = Example("x", id="1", label="y", meta=meta)
    source = {0: (0,), 1: (1,), 2: (1, 2), 3: (3,)}  # token 4 is the end of the source
    sentence = alignments.AlignedSentence(example, (), (0, 1, 1), source, own_tokens=3, tokens=5, linked=2)
    rationales = [
        found_in([9, 4, 0, 3]),  # word 0: source words 0 and 3
        found_in([9, 8]),  # word 1, first token: no source, but its ranking meets word 3
        found_in([9, 1]),  # word 1, second token: source word 1
    ]
    rationales[1] = replace(rationales[1], ranking=(9, 8, 4, 3))
    row = sentence.row(rationales)
    # A = {0-0, 3-0, 1-1}, S = {0-0, 1-1}, P = S and 2-1
    assert row.length == Share(8, 3)
    assert row.aer == Share(5 - 2 - 2, 5)
    assert float(row.aer_paper) == pytest.approx(((1 - 1 / 3) + (1 - 1 / 2)) / 2)
    assert float(row.iou) == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert row.f1 == Share(4, 6)
    assert row.top_1 == Share(1, 2)  # word 1 meets 3 first
    assert row.top_1_paper == Share(2, 3)  # 0; 3 misses; 1 hits


def test_alignments_explain_what_the_model_would_write(monkeypatch):
    model = marian()
    examples = []
    for k, text in enumerate(["the cat sat", "a dog ran home"]):
        (encoding,) = model.encode([Example(text)])
        ((longer, _),) = model.resolve_targets(encoding)
        label = longer.texts[-1].strip()
        words = [(m.start(), m.end()) for m in re.finditer(r"\S+", label)]
        spans = [(m.start(), m.end()) for m in re.finditer(r"\S+", text)]
        links = [[0, j] for j in range(len(words))]
        meta = {"sure": links, "possible": [], "source_words": spans, "target_words": words}
        examples.append(Example(text, id=str(k), label=label, meta=meta))
    examples.append(replace(examples[0], id="9", label="漢"))  # not in the vocabulary
    read = LoadedData("x", "test", "seq2seq", (), examples)
    monkeypatch.setattr(alignments, "open_dataset", lambda name, split=None, data=None: read)
    found = experiments["alignments"](trial_of(model, words=0))
    assert found.texts
    assert "1 sentences were left out" in found.notes[1]
    tokens = sum(found.cell("greedy", "length").wholes)
    assert f"({int(tokens)} tokens)" in found.notes[0]
    for column in found.columns:
        assert found.cell("greedy", column.key).value is not None


# -- suites -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_names_what_exists(name):
    suite = SUITES[name]
    assert suite.experiment in experiments
    assert len(method_list(list(suite.methods.values()))) == len(suite.methods)
    keys = {column.key for column in ROWS[suite.experiment].columns()}
    for claim in suite.claims:
        assert {claim.first, claim.second} <= set(suite.methods)
        assert claim.key in keys
    names = {run.name for run in suite.runs}
    for claim in suite.across:
        assert {claim.first.run, claim.second.run} <= names
        assert {claim.first.method, claim.second.method} <= set(suite.methods)
        assert claim.key in keys
    for run in suite.runs:
        assert set(run.paper) <= keys
        assert all(set(values) <= set(suite.methods) for values in run.paper.values())


def test_the_tables_of_p0_are_there():
    assert {
        "P0-table1", "P0-table2", "P0-table2-probability", "P0-table3", "P0-table4", "P0-table6",
    } <= set(SUITES)  # fmt: skip


@pytest.mark.full
def test_agreement_on_a_real_model(smollm2, data_dir, record_property):
    suite = SUITES["P0-table1"]
    chosen = {title: suite.methods[title] for title in ("greedy", "refined", "all attentions")}
    trial = Trial(smollm2, chosen, replace(suite.runs[0], settings={"exact_count": 1}), 4, 0, data_dir)
    found = experiments["agreement"](trial)
    assert found.cell("greedy", "reached").value == 1.0
    assert found.cell("refined", "length").value <= found.cell("greedy", "length").value
    record_property("length of greedy", found.cell("greedy", "length").value)


def test_losses_on_parts_are_those_of_the_plain_model(data_dir):
    suite = suites()["P0-subsets"]
    model = tiny_model("gpt2", "causal", double=False)
    run = replace(suite.runs[0], settings={"length": 24, "places": 2, "sizes": [1, 4]})
    found = experiments["subsets"](Trial(model, suite.methods, run, 3, 0, data_dir))
    assert [column.key for column in found.columns] == ["of_1", "of_4", "all"]
    (encoding,) = model.encode([Example(found.texts[1].text)])
    targets = chosen(model, encoding, 2, np.random.default_rng([0, 1]))
    with torch.no_grad():
        logs = model.hf(input_ids=torch.tensor(encoding.ids[None].copy())).logits.log_softmax(-1)[0]
    literal = [-float(logs[target.positions[0] - 1, target.ids[0]]) for target in targets]
    assert found.cell("log f", "all").each[1] == pytest.approx(np.mean(literal), abs=1e-4)
    assert f"{np.exp(found.cell('log f', 'of_4').value):,.1f} given 4 random tokens" in found.notes[0]


@pytest.mark.parametrize("family", ["gpt2", "bart"])
def test_heldout_losses_are_those_of_the_plain_model(family, data_dir):
    task = {"gpt2": "causal", "bart": "seq2seq"}[family]
    model = tiny_model(family, task, double=False)
    data = {"gpt2": "wikitext2", "bart": "multi30k_deen"}[family]
    run = Run("a run", "tiny", data, split="test", settings={"length": 24})
    got = experiments["heldout"](Trial(model, {"log f": ""}, run, 2, 0, data_dir))
    text = got.texts[1].text
    if task == "causal":
        ids = torch.tensor(model.encode([Example(text)])[0].ids[None].copy())
        given, wanted = {"input_ids": ids}, ids[0, 1:]
    else:
        source = open_dataset(data, split="test", limit=2, data=data_dir).examples[1].text
        encoding = model.resolve_targets(model.encode([Example(source)])[0], TargetSpec(target=text))[0][0]
        sides = [
            torch.tensor(encoding.ids[side][None].copy()) for side in (encoding.segment == 0, encoding.segment > 0)
        ]
        given, wanted = {"input_ids": sides[0], "decoder_input_ids": sides[1]}, sides[1][0, 1:]
    with torch.no_grad():
        logs = model.hf(**given).logits[0].log_softmax(-1)
    literal = -logs[torch.arange(len(wanted)), wanted]
    cell = got.cell("log f", "loss")
    assert cell.parts[1] == pytest.approx(float(literal.sum()), abs=1e-3)
    assert cell.wholes[1] == len(literal)
    assert any("BLEU" in note for note in got.notes) == (task == "seq2seq")


def test_bleu_is_that_of_sacrebleu():
    sacrebleu = pytest.importorskip("sacrebleu")
    said, asked = ["a cat sat on the mat today", "dogs bark at night"], ["a cat sat on the mat", "dogs bark at night"]
    found = heldout.bleu(said, asked)
    assert found.score == pytest.approx(sacrebleu.corpus_bleu(said, [asked]).score)
    assert found.low <= found.score <= found.high
