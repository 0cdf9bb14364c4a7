"""Rationales on the page, in a real browser."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from raison.core.records import Target
from raison.show import rationale_sentences as proof
from raison.show import to_html
from raison.show.rationale_matrix import matrix_of_rationales
from raison.show.search_path_steps import path_excerpt, search_path
from raison.show.text_formats import clean_text
from tests.helpers.browser import browse, browsing
from tests.helpers.rationales import (
    PASSAGES,
    court_rationale,
    encode_spaced_words,
    grounded_rationale,
    rationale,
    rationale_of_many_steps,
    rationales_of_tokens,
)


@browsing
def test_a_browser_tells_rationales_as_the_terminal_does(tmp_path):
    nasty = encode_spaced_words("He said \x1b[31m red <b>x</b> now")
    cases = [
        court_rationale(),
        court_rationale(status="budget", irreducible=None, lower_bound=0),
        court_rationale(sufficient=False, is_prediction=False),
        court_rationale(optimal=True, rule="penalty(weight=0.1)", irreducible=False),
        grounded_rationale(),
        rationale_of_many_steps(),
        rationale(
            nasty,
            Target("token", (1,), (len(nasty),), "</script>", "log_prob"),
            [2, 3],
            likely=False,
        ),
    ]
    for number, likely in ((1, {"probability": 0.0}), (-1, {})):
        first, *others = cases[number].steps
        first = replace(first, value=-math.inf, **likely)  # JSON has no infinity
        cases[number] = replace(cases[number], steps=(first, *others))
    found = browse(
        tmp_path,
        to_html(cases),
        """
        const all = (root, what) => [...root.querySelectorAll(what)].map((e) => e.textContent);
        found.articles = [...page.querySelectorAll("article")].map((article) => ({
          kept: all(article, ".text .kept"), given: all(article, ".text .given"), warnings: all(article, ".warning"),
          verdict: all(article, ".verdict")[0], effort: all(article, ".effort")[0], line: all(article, ".found")[0],
          steps: [...article.querySelector(".path").tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent)),
          bars: [...article.querySelectorAll(".path")[0].querySelectorAll(".bar")].map((b) => b.style.cssText),
          passages: all(article, ".passage .mark"), open: all(article, "div.passage .text"),
          said: all(article, ".asked"), bold: all(article, "b").length }));
        found.sideways = page.documentElement.scrollWidth - page.documentElement.clientWidth;
        """,
    )
    assert found["sideways"] == 0
    assert len(found["articles"]) == len(cases)
    for case, seen in zip(cases, found["articles"], strict=True):
        assert seen["warnings"] == proof.rationale_warnings(case)
        assert seen["verdict"] == " · ".join(proof.certificate_in_words(case))
        assert seen["effort"] == " · ".join(proof.search_effort_in_words(case))
        steps = search_path(case)
        assert len(seen["bars"]) == sum(
            not isinstance(s, int) and s.weight is not None for s in path_excerpt(steps)
        )
        rows = [row for row in seen["steps"] if not row[1].startswith("⋮")]
        drawn = [step for step in path_excerpt(steps) if not isinstance(step, int)]
        figures = [step.figure.replace("-", "−") for step in drawn]
        assert [row[3] for row in rows] == figures and [row[2] for row in rows] == [
            str(step.size) for step in drawn
        ]
        assert [("✓" in row) for row in rows] == [step.enough for step in drawn]
        units = [case.units.names[u] for u in np.flatnonzero(case.selected)]
        assert [" ".join(text.split()) for text in seen["kept"]] == [
            " ".join(clean_text(u).split()) for u in units
        ]
        assert seen["bold"] == 0
    first, *_, answer, long, _ = found["articles"]
    assert first["given"] == ["the"] and first["line"].endswith(
        ": Court → challenge → The, and the given “the”"
    )
    assert (
        first["steps"][1][-1] == "The 12.5 %, Supreme 12.5 %" and "--size: 1" in first["bars"][-1]
    )
    both = "the answer rests on it, and its words change without it"
    assert answer["passages"] == ["the answer rests on it", "not needed", both]
    assert (
        answer["open"][0] == PASSAGES["a.txt"]
        and len(answer["open"]) == 2
        and "Oslo" in answer["said"][0]
    )
    assert any(row[1] == "⋮ 41 steps more" for row in long["steps"])


@browsing
def test_a_browser_draws_the_matrix_and_its_rows_can_be_chosen(tmp_path):
    five = rationales_of_tokens(
        " ".join(["A cat sat on the mat", *(f"word{i}" for i in range(30))]),
        p3={"is_prediction": False},
    )
    found = browse(
        tmp_path,
        to_html([*five, court_rationale()]),
        """
        const table = page.querySelector(".cells");
        found.heads = [...table.tHead.querySelectorAll("th")].map((th) => th.textContent);
        found.cells = [...table.tBodies[0].rows].map((r) => [...r.querySelectorAll("td")].map((td) => td.className));
        found.rows = [...table.querySelectorAll("button")].map((b) => b.textContent);
        const look = () => ({ pressed: [...table.querySelectorAll('[aria-pressed="true"]')].map((b) => b.textContent),
          stops: table.querySelectorAll('button[tabindex="0"]').length,
          kept: [...page.querySelectorAll(".above .kept")].map((e) => e.textContent),
          given: [...page.querySelectorAll(".above .given")].map((e) => e.textContent),
          target: page.querySelector(".above .target").textContent,
          title: page.querySelector(".details h2").textContent, articles: page.querySelectorAll("article").length,
          texts: page.querySelectorAll(".details .text").length, focused: page.activeElement.textContent });
        found.first = look();
        table.tBodies[0].rows[2].cells[2].click();
        found.clicked = look();
        const key = (name) => page.activeElement.dispatchEvent(
          new frame.contentWindow.KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
        key("ArrowDown");
        found.down = look();
        key("Home"); key("ArrowUp");
        found.home = look();
        table.tBodies[0].rows[3].cells[1].dispatchEvent(
          new frame.contentWindow.MouseEvent("mouseover", { bubbles: true }));
        found.tip = [...page.querySelector(".matrix .tip").children].map((e) => e.textContent);
        found.sideways = page.documentElement.scrollWidth - page.documentElement.clientWidth;
        const scroll = page.querySelector(".scroll");
        found.inside = scroll.scrollWidth - scroll.clientWidth;
        """,
    )
    expected = matrix_of_rationales(five)
    names = ["hidden", "spared", "given", "chosen"]
    assert found["heads"] == [column.name for column in expected.columns]
    assert found["cells"] == [[names[state] for state in row] for row in expected.cells.tolist()]
    assert found["rows"][:4] == ["cat", "sat", "on ≠", "the"]
    assert found["first"]["pressed"] == ["word29"]  # the row with the most context
    clicked = found["clicked"]
    assert clicked["pressed"] == ["on ≠"] and clicked["focused"] == "on ≠" and clicked["stops"] == 1
    assert (
        clicked["kept"] == ["A", "cat"]
        and clicked["given"] == ["sat"]
        and clicked["target"].strip() == "on"
    )
    assert clicked["title"].startswith("“ on”") and clicked["texts"] == 0
    assert (
        clicked["articles"] == 3
    )  # the sheet, the details of one row, and the explanation beside it
    assert found["down"]["pressed"] == ["the"] and found["down"]["focused"] == "the"
    assert found["home"]["pressed"] == ["cat"] and found["home"]["kept"] == []
    assert found["tip"][0] == "“the” from “A”: in the rationale"
    assert found["tip"][1] == "chosen as number 1, left out, the value drops by 1.25"
    assert found["tip"][2] == "row: 2 of 3 tokens, probability 50.0 % (80.0 % from all)"
    assert found["sideways"] == 0 and found["inside"] > 0  # only the matrix scrolls sideways
