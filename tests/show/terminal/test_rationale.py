"""A rationale in the terminal: what is marked, what must be known first, answers over passages."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from raison.core.records import Target
from raison.show import rationale_sentences as proof
from raison.show import render, render_many
from tests.helpers.rationales import (
    COURT,
    court_rationale,
    encode_spaced_words,
    grounded_rationale,
    rationale,
    rationale_of_many_steps,
    rationales_of_tokens,
)
from tests.helpers.terminal import flat, show


def test_rationale_is_marked_and_told():
    output = show(court_rationale())
    assert (
        '*The* Supreme *Court* on Tuesday rejected a *challenge* to _the_ → " constitution"'
        in output
    )
    assert 'rationale 3 of 9 tokens: Court → challenge → The, and the given "the"' in output
    assert (
        "sufficient (checked anew) · nothing can be spared · not proved smallest: at least 2 needed"
        in output
    )
    assert "the model reads 4 of 10 context tokens · 120 evaluations, 560 token-forwards" in output
    assert "rule: argmax" in output and "▲" not in output and "All scores are zero" not in output


def test_rationale_is_filled_in_colour_and_what_is_given_is_quieter():
    output = show(court_rationale(), force_terminal=True, color_system="truecolor")
    fill = r"\x1b\[1;38;2;0;0;0;48;2;236;122;22m"
    assert all(re.search(fill + name, output) for name in ("The", "Court", "challenge"))
    assert len(re.findall(fill, output)) == 3
    assert re.search(r"\x1b\[4;38;2;\d+;\d+;\d+mthe\x1b", output)


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"status": "budget", "irreducible": None}, "its budget was spent"),
        ({"status": "interrupted"}, "it was interrupted"),
        (
            {"status": "impossible", "sufficient": False},
            "Not even the whole context is sufficient by argmax",
        ),
        ({"sufficient": False}, "What is marked is not sufficient by argmax"),
        ({"is_prediction": False}, "the model prefers something else: this target is not its own"),
    ],
)
def test_what_must_be_known_first_is_said_first(claims, said):
    explanation = court_rationale(**claims)
    output = flat(show(explanation))
    assert said in output and output.index(said) < output.index("Supreme")
    assert any(said in warning for warning in proof.rationale_warnings(explanation))
    assert ("sufficient (checked anew)" in output) == claims.get("sufficient", True)


def test_empty_rationale():
    encoding = encode_spaced_words(COURT)
    explanation = rationale(encoding, Target("token", (7,), (10,), " c", "log_prob"), [])
    assert 'rationale 0 of 9 tokens: only the given "the"' in show(explanation)
    label = rationale(encoding, Target("label", (1,), text="news"), [], "word")
    assert "rationale 0 of 10 words: nothing of it is needed" in show(label)


def test_labels_have_nothing_given():
    encoding = encode_spaced_words("A great film", start=(0,))
    output = show(
        rationale(encoding, Target("label", (1,), text="positive"), ["great"], "word", likely=False)
    )
    assert (
        "A *great* film" in output
        and "rationale 1 of 3 words: great" in output
        and "given" not in output
    )


def test_segments_are_named():
    encoding = encode_spaced_words(
        "Der Hund schläft", "The dog", names=("source", "prefix"), start=(1,)
    )
    target = Target("token", (1,), (len(encoding),), " sleeps", "log_prob")
    output = show(rationale(encoding, target, ["schläft", "Der"], "word"))
    assert re.search(r"source +\*Der\* Hund \*schläft\*", output)
    assert re.search(r'prefix +The _dog_ → " sleeps"', output)


def test_grounded_answer_goes_by_passage():
    output = show(grounded_rationale())
    places = [
        output.index(part)
        for part in ("Where was", "answer    Oslo", "rests on a.txt and", "● a.txt", "○ b.txt")
    ]
    assert places == sorted(places)
    assert "● a.txt · the answer rests on it\n" in re.sub(" +\n", "\n", output)
    assert "○ b.txt · not needed" in output
    assert "● c</script>.txt · the answer rests on it, and its words change without it" in output
    assert "The tower is old. *It was built by Ada Lund.* It is red." in output
    assert "*Ada Lund was born in Oslo.*" in output
    assert output.count("builders") < 4 and "…" in output  # what is not needed is cut short
    assert "Read this." not in output  # the prompt around the passages


def test_passages_are_cut_where_they_end():
    explanation = grounded_rationale()
    first, unneeded, last = explanation.grounding.passages
    first = replace(first, end=first.end - len(" Lund. It is red."))
    last = replace(last, start=last.start + len("Ada "))
    moved = replace(explanation.grounding, passages=(first, unneeded, last))
    explanation = replace(explanation, grounding=moved)
    output = show(explanation)
    assert "The tower is old. *It was built by Ada*\n" in re.sub(" +\n", "\n", output)
    assert re.search(r"^   \*Lund was born in Oslo\.\*", output, re.MULTILINE)


def test_poor_and_narrow_terminals():
    for what in (
        court_rationale(),
        grounded_rationale(),
        rationale_of_many_steps(),
        rationales_of_tokens(),
        court_rationale(status="budget", is_prediction=False),
    ):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        console = Console(file=stream, width=70, _environ={})
        (render_many if isinstance(what, list) else render)(what, console)
        stream.flush()
        for width in (24, 50):
            assert all(len(line) <= width for line in show(what, width=width).splitlines())


def test_control_characters_never_reach_the_terminal():
    nasty = encode_spaced_words("He said \x1b[31m red \x9b2J \u202e back now")
    explanation = rationale(
        nasty, Target("token", (1,), (len(nasty),), "\x1b]0;x\x07", "log_prob"), [2, 3, 7]
    )
    claims = {"rule": "\x1b[1m", "status": "impossible", "sufficient": False}
    for what in (
        explanation,
        rationale(nasty, explanation.target, [2], **claims),
        rationales_of_tokens("a \x1b[31m b \x07 c d"),
    ):
        output = show(what)
        assert not set(output) & set("\x1b\x9b\x07\u202e")
