"""Several methods on the page, in a real browser."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from raison.show import colour_scale, to_html
from raison.show.agreement_measures import agreement_of_pairs
from raison.show.agreement_sentences import (
    agreement_footnotes,
    method_titles,
    statement_of_agreement,
)
from raison.show.method_difference import differences_from_first_method
from tests.helpers.browser import browse, browsing
from tests.helpers.rationales import (
    court_rationale,
    rationales_of_tokens,
)
from tests.helpers.scored_explanations import (
    LOO,
    MOVIE,
    NEAR,
    NOISE,
    SIZES,
    explained_by_methods,
    four_methods,
    scored,
    selection_of_rationalizer,
    twelve_methods,
)

READ = """
  const all = (root, what) => [...root.querySelectorAll(what)].map((e) => e.textContent);
  const article = page.querySelector(".compare");
  const cells = () => [...article.querySelector(".accord").tBodies[0].rows].map((r) => all(r, "td"));
  const pick = (name) => article.querySelector(`input[value=${name}]`).click();
  const tinted = (root, kind) => all(root, `.text .${kind}`);
"""


@browsing
def test_a_browser_says_what_the_terminal_says(tmp_path):
    pairs = [(LOO, np.zeros(12)), (LOO, NOISE), (LOO, -np.array(NEAR))]
    more = [
        (LOO, LOO, NEAR),
        (NOISE, SIZES, np.roll(NOISE, 5)),
        [np.roll(np.arange(12), at) for at in range(4)],
    ]
    strong, weak = [20, 18, 16], np.arange(9)
    more += [([*strong, *weak], [*strong, *weak[::-1]], NOISE), (LOO, [*LOO[6:], *LOO[:6]], NOISE)]
    cases = [
        four_methods(),
        twelve_methods(),
        explained_by_methods([1, 2], [2, 1], text="good film"),
        *(explained_by_methods(*each) for each in pairs + more),
    ]
    other = scored("Between two groups")  # else they would be one
    found = browse(
        tmp_path,
        to_html([each for case in cases for each in [*case, other]]),
        READ
        + """
        found.articles = [...page.querySelectorAll(".compare")].map((article) => {
          const measures = {};
          for (const input of article.querySelectorAll("input")) {
            input.click();
            measures[input.value] = [...article.querySelector(".accord").tBodies[0].rows].map((r) => all(r, "td"));
          }
          return { said: all(article, ".said")[0], names: all(article, ".row h3"), measures,
            notes: all(article, ".agree .note").slice(1), methods: all(article, ".row .method") };
        });
        found.alone = page.querySelectorAll("article:not(.compare)").length;
        """,
    )
    assert len(found["articles"]) == len(cases) == found["alone"]
    for case, seen in zip(cases, found["articles"], strict=True):
        numbers = agreement_of_pairs([each.scores for each in case])
        assert seen["said"] == statement_of_agreement(case, numbers)
        assert seen["names"] == method_titles(case) and seen["notes"] == agreement_footnotes(
            case, numbers
        )
        for (i, j), each in numbers.items():
            for measure, table in seen["measures"].items():
                value = getattr(each, measure)
                text = "–" if value is None else f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")
                text = str(value) if measure == "shared" and value is not None else text
                assert table[i][j] == table[j][i] == text, (measure, i, j)


@browsing
def test_a_browser_shows_a_selection_as_in_or_out(tmp_path):
    """Alone and beside scores: underlined, without colours of evidence, without numbers."""
    own = selection_of_rationalizer()
    seen = browse(
        tmp_path,
        to_html([own, scored("Between two groups"), own, *explained_by_methods(LOO)]),
        """
        const all = (root, what) => [...root.querySelectorAll(what)].map((e) => e.textContent);
        const [alone, compared] = [page.querySelector("article"), page.querySelector(".compare")];
        found.alone = alone.textContent;
        found.labels = [...alone.querySelectorAll(".unit")].slice(0, 3).map((e) => e.getAttribute("aria-label"));
        const [row, other] = compared.querySelectorAll(".row");
        found.marked = [all(alone, ".text .selected"), all(row, ".text .selected"), all(other, ".text .selected")];
        found.tinted = [all(alone, ".text .tinted"), all(row, ".text .tinted"), all(other, ".text .tinted")];
        found.ramps = [alone, row, other].map((root) => root.querySelectorAll(".ramp").length);
        found.cells = [...compared.querySelectorAll(".all tbody tr")].slice(0, 2).map((tr) => all(tr, "td"));
        """,
    )
    assert seen["labels"] == ["A: not selected", "great: selected", ",: not selected"]
    assert "rationale 3 of 12 words" in seen["alone"]
    assert not re.search(r"[+−]0\.|logit|score", seen["alone"])
    assert seen["marked"] == [["great", "moving", "dull"], ["great", "moving", "dull"], []]
    assert (
        seen["tinted"][:2] == [[], []]
        and len(seen["tinted"][2]) == 4
        and seen["ramps"] == [0, 0, 1]
    )
    assert seen["cells"] == [["", "+0.000"], ["selected", "+2.500"]]


@browsing
def test_a_browser_shows_methods_in_rows_and_their_difference(tmp_path):
    chosen = [u == 1 for u in range(12)]
    found = four_methods(
        notes=("A </b> note.",), diagnostics={"completeness_gap": 0.0125, "aggregation": "sum"}
    )
    found[1] = replace(found[1], selected=chosen)
    seen = browse(
        tmp_path,
        to_html([*found, scored("Alone")]),
        READ
        + """
        const rows = [...article.querySelectorAll(".row")];
        found.texts = all(article, ".row .text");
        found.notes = all(rows[0], ".note");
        found.selected = rows.map((row) => all(row, ".text .selected"));
        const great = rows[2].querySelector('[data-units="1"]');
        found.colour = great.style.getPropertyValue("--light");
        found.label = great.getAttribute("aria-label");
        const over = (what) => what.dispatchEvent(new frame.contentWindow.MouseEvent("mouseover", { bubbles: true }));
        over(great);
        found.tip = [...article.querySelectorAll(".rows .tip tr")].map((tr) => all(tr, "td"));
        found.shown = article.querySelector(".rows .tip").classList.contains("shown");
        found.twins = all(article, ".twin");
        const key = (name) => page.activeElement.dispatchEvent(
          new frame.contentWindow.KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
        found.stops = article.querySelectorAll('.rows .unit[tabindex="0"]').length;
        article.querySelector('.rows .unit[tabindex="0"]').focus();
        key("ArrowRight"); key("ArrowDown"); key("ArrowDown");
        found.walked = page.activeElement === great;
        const look = () => ({ more: tinted(article.querySelector(".differ"), "more"),
          less: tinted(article.querySelector(".differ"), "less"), legend: all(article, ".differ .legend > span"),
          gaps: [...article.querySelector(".gaps")?.tBodies[0].rows ?? []].map((r) => all(r, "th, td")),
          picked: [...article.querySelectorAll("select")].map((s) => s.selectedOptions[0].textContent),
          same: all(article, ".differ .note") });
        found.first = look();
        article.querySelector(".differ button").click();
        found.swapped = look();
        article.querySelector('td[data-pair="0 2"]').click();
        found.sizes = look();
        const second = article.querySelectorAll("select")[1];
        second.value = "0";
        second.dispatchEvent(new Event("change"));
        found.equal = look();
        found.table = [...article.querySelector(".all").rows].map((r) => all(r, "th, td"));
        found.facts = all(article, "header dt");
        found.bold = article.querySelectorAll("b").length;
        found.alone = [...page.querySelectorAll("article")].map((each) => each.className);
        """,
    )
    assert seen["texts"] == [MOVIE] * 4 and seen["notes"] == [
        "removal: mask",
        "completeness gap 0.0125",
        "A </b> note.",
    ]
    assert seen["selected"] == [[], ["great"], [], []] and seen["bold"] == 0
    colour = colour_scale.background_colour(1, colour_scale.PAPER_COLOURS["light"])
    assert seen["colour"] == f"rgb({' '.join(map(str, colour))})"
    assert seen["label"] == "gradient_norm, great: +0.9, for, rank 1 of 12"
    assert seen["tip"] == [
        ["leave_one_out", "+2.5", "rank 1"],
        ["lime", "+2.4", "rank 1, selected"],
        ["gradient_norm", "+0.9", "rank 1"],
        ["random", "+0.1", "rank 10"],
    ]
    assert (
        seen["shown"] and seen["twins"] == ["great"] * 4 and seen["stops"] == 1 and seen["walked"]
    )
    one, two, sizes, _ = (
        differences_from_first_method([found[0], found[1]]),
        differences_from_first_method([found[1], found[0]]),
        differences_from_first_method(found)[1],
        0,
    )
    for look, each in ((seen["first"], one[0]), (seen["swapped"], two[0]), (seen["sizes"], sizes)):
        names = found[0].units.names
        assert look["more"] == [names[u] for u in sorted(each.strongest(12, 1))]
        assert look["less"] == [names[u] for u in sorted(each.strongest(12, -1))]
        assert look["picked"] == [each.first, each.second]
        assert (
            look["legend"][0] == f"green, line below {each.first} gives more"
            and look["legend"][2] == each.meaning()
        )
        rows = [[names[u], each.one[u], each.other[u], each.values[u]] for u in each.strongest(8)]
        assert look["gaps"] == [
            [n, *(f"{v:+.3f}".replace("-", "−") for v in values)] for n, *values in rows
        ]
    assert (
        seen["equal"]["same"] == ["The two methods say the same."] and seen["equal"]["more"] == []
    )
    assert seen["table"][0] == ["unit", *method_titles(found)] and seen["table"][2] == [
        "great",
        "+2.500",
        "+2.400",
        "+0.9000",
        "+0.1000",
    ]
    assert seen["facts"] == ["model", "units", "value"] and seen["alone"] == [
        "raison compare",
        "raison",
    ]


@browsing
def test_a_browser_keeps_many_methods_on_the_page(tmp_path):
    text = " ".join(f"word{i}" for i in range(80))
    plain = replace(
        court_rationale(), method="lime", certificate=None, steps=(), selected=None, order=None
    )
    seen = browse(
        tmp_path,
        to_html(
            [
                *twelve_methods(text),
                *rationales_of_tokens(),
                court_rationale(),
                replace(court_rationale(), method="greedy"),
                plain,
            ]
        ),
        READ
        + """
        for (const fold of page.querySelectorAll("details")) fold.open = true;
        found.sideways = page.documentElement.scrollWidth - page.documentElement.clientWidth;
        found.inside = ["accord", "all"].map((name) => {
          const box = article.querySelector(`.${name}`).parentElement;
          return box.scrollWidth - box.clientWidth;
        });
        const last = article.querySelectorAll(".row")[11].querySelectorAll(".unit");
        last[last.length - 1].dispatchEvent(new frame.contentWindow.MouseEvent("mouseover", { bubbles: true }));
        const tip = article.querySelector(".rows .tip").getBoundingClientRect();
        found.tip = [tip.left >= 0, tip.right <= page.documentElement.clientWidth];
        found.tall = article.querySelectorAll(".rows .tip tr").length;
        found.still = page.documentElement.scrollWidth - page.documentElement.clientWidth;
        found.articles = [...page.querySelectorAll("main > article")].map((each) => each.className);
        """,
    )  # on a screen 390 pixels wide
    assert seen["sideways"] == seen["still"] == 0 and min(seen["inside"]) > 0
    assert seen["tip"] == [True, True] and seen["tall"] == 12
    assert seen["articles"] == [
        "raison compare",
        "raison sheet",
        *["raison"] * 3,
    ]  # rationales are as before
