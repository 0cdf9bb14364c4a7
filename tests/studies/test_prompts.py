"""Questions as prompts, and how answers are judged."""

from __future__ import annotations

import pytest

from raison.studies.prompts import quality_of_prompted_answers, question_prompt


def test_a_prompt_carries_the_gold_span():
    from raison.core.records import Example, Span

    asked = Example(
        "Who fell?",
        "Yesterday Ann fell.",
        id="7",
        label="Ann",
        gold=(Span(10, 13),),
        meta={"answers": []},
    )
    made = question_prompt(asked, "{context}\n\nQuestion: {question}\nAnswer:")
    assert made.text == "Yesterday Ann fell.\n\nQuestion: Who fell?\nAnswer:"
    (span,) = made.gold
    assert made.text[span.start : span.end] == "Ann"
    other = question_prompt(asked, "Q: {question} C: {context}").gold[0]
    assert "Q: Who fell? C: Yesterday Ann fell."[other.start : other.end] == "Ann"


def test_answers_are_marked_as_squad_does():
    from raison.core.records import Example
    from raison.metrics.answer_match import answer_f1, exact_match

    assert exact_match("The  Cat!", ["a cat"]) == 1.0
    assert exact_match("cats", ["a cat"]) == 0.0
    assert answer_f1("the black cat", ["cat", "a black dog"]) == pytest.approx(
        2 / 3
    )  # 1 of 2 and 1 of 1 words
    assert answer_f1("", ["cat"]) == 0.0
    context = "Ann and Bob fell."
    examples = [
        Example("Who?", context, label="Ann", meta={"answers": [[0, 3], [8, 11]]}),
        Example("Who?", context, label="Ann", meta={"answers": [[0, 3]]}),
    ]
    assert quality_of_prompted_answers(["Bob", "Ann Bob"], examples) == (
        "Its answers to these questions: exact match 50.0 %, F1 83.3 %."
    )


def test_a_language_model_is_asked_and_explained_by_its_answer(monkeypatch):
    import raison
    from raison.core.records import Example
    from raison.studies import prompts
    from raison.testing.tiny import tiny_model

    monkeypatch.setattr(prompts, "LONGEST", 2)  # random weights write what no tokenizer would
    model = tiny_model("llama", "causal")
    asked = prompts.prompt_with_written_answer(
        model,
        Example.from_template(
            "{context} Q: {question} A:", context="It fell down.", question="What?"
        ),
    )
    assert asked.target
    found = raison.explain(model, asked, "gradient_norm", units="token")
    written = found.target.text
    assert written.strip() == str(asked.target).strip()
    free = {name.strip() for name in found.units.names}
    assert "Q" not in free and "A" not in free  # the template stays
