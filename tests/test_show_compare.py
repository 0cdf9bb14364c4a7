"""Several methods side by side: how far they agree and where they differ; in the terminal, on pages, as pictures."""

import html
import io
import re
import shutil
import xml.dom.minidom
from dataclasses import replace
from importlib.util import find_spec
from itertools import combinations
from math import comb

import numpy as np
import pytest
from rich.console import Console

from raison.core.errors import InputError
from raison.core.records import Explanation, Target
from raison.show import render_many, scale, to_figure, to_html
from raison.show.agreement import (
    Agreement,
    agreement,
    agreements,
    alike,
    apart,
    by_chance,
    close,
    comparable,
    constant,
    inversions,
    overlap,
    pearson,
    ranks,
    spearman,
    tau_b,
    top,
)
from raison.show.consensus import footnotes, listed, statement, titles
from raison.show.difference import difference, differences
from raison.show.figure.explanation_sheet import ExplanationSheet
from raison.show.latex import latex
from raison.show.terminal.compare import folded
from raison.show.wording import measured
from tests.helpers.command_line import one_sentence, raison
from tests.test_show import MOVIE, NASTY, bare, coloured, explain, selection_of_a_rationalizer, show
from tests.test_show_rationales import browse, court, rows, size_of

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
drawing = pytest.mark.skipif(find_spec("matplotlib") is None, reason="pictures need matplotlib")
browsing = pytest.mark.skipif(BROWSER is None, reason="no chromium here: the page is checked as text only")

LOO = [0, 2.5, 0.01, 1.25, 0.05, 0, -0.3, 0, 0.05, 0, -1.5, 0]
NEAR = [0.1, 2.4, 0.02, 1.0, 0.3, 0.01, -0.2, 0, 0.04, 0.03, -1.1, -0.01]
SIZES = [0.1, 0.9, 0, 0.3, 0.2, 0.1, 0.5, 0.05, 0.4, 0.1, 0.7, 0]
NOISE = [0.3, 0.1, 0.8, 0.2, 0.9, 0.7, 0.1, 0.6, 0.05, 0.75, 0.2, 0.5]


def methods(*scores, text=MOVIE, **fields):
    """One text, explained by a method for each list of scores."""
    names = ["leave_one_out", "lime(samples=64)", "gradient_norm", "random", *(f"method_{i}" for i in range(9))]
    return [explain(text, scores=each, method=name, **fields) for name, each in zip(names, scores, strict=False)]


def four(**fields):
    return methods(LOO, NEAR, SIZES, NOISE, **fields)


def twelve(text=MOVIE):
    size = len(explain(text).scores)
    signs = np.where(np.arange(12) % 3, 1, -1)[:, None]
    noise = np.random.default_rng(3).normal(size=(12, size))
    return methods(*np.where(signs > 0, np.abs(noise), noise), text=text)


# -- numbers ----------------------------------------------------------------------------------------------


def literal_tau(a, b):
    """Every pair of units, one after the other: the definition."""
    surplus = in_a = in_b = 0
    for i, j in combinations(range(len(a)), 2):
        x, y = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
        surplus, in_a, in_b = surplus + x * y, in_a + x * x, in_b + y * y
    return surplus / np.sqrt(in_a * in_b)


def literal_ranks(a):
    return [1 + sum(y < x for y in a) + (sum(y == x for y in a) - 1) / 2 for x in a]


def vectors(count=200):
    """Pairs of vectors of 2 to 40 scores, half of them full of ties, some with one value only."""
    random = np.random.default_rng(0)
    for case in range(count):
        size = int(random.integers(2, 41))
        few = int(random.integers(1, 5))
        one, other = random.normal(size=(2, size))
        if case % 2:
            one, other = random.integers(-few, few + 1, size) / 3, random.integers(0, few + 1, size) * 1e-9
        yield one, other


def test_measures_are_what_their_definitions_say():
    tried = 0
    for a, b in vectors():
        if constant(a) or constant(b):
            assert tau_b(a, b) is spearman(a, b) is pearson(a, b) is None
            continue
        tried += 1
        assert ranks(a).tolist() == literal_ranks(a)
        assert tau_b(a, b) == pytest.approx(literal_tau(a, b), abs=1e-12)
        assert spearman(a, b) == pytest.approx(np.corrcoef(literal_ranks(a), literal_ranks(b))[0, 1], abs=1e-12)
        assert pearson(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-12)
        assert tau_b(a, a) == pytest.approx(1) and tau_b(a, -a) == pytest.approx(-1) and tau_b(b, a) == tau_b(a, b)
    assert tried > 150


def test_measures_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    for a, b in vectors(400):
        if not constant(a) and not constant(b):
            assert tau_b(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12)
            assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
            assert pearson(a, b) == pytest.approx(stats.pearsonr(a, b).statistic, abs=1e-12)


def test_inversions_are_counted():
    random = np.random.default_rng(1)
    for size in (1, 2, 3, 17, 100):
        places = random.integers(0, size, size)
        assert inversions(places) == sum(places[i] > places[j] for i, j in combinations(range(size), 2))


def test_measures_of_very_large_and_very_small_scores():
    one, other = np.array([1.0, 2.0, 4.0, -3.0]), np.array([1.0, 3.0, 2.0, -1.0])
    for factor in (1e-200, 1e-12, 1e200):
        assert agreement(one * factor, other).r == pytest.approx(agreement(one, other).r)
        assert agreement(one * factor, other).shared == agreement(one, other).shared == 1
    assert agreement(np.zeros(4), other) == Agreement(None, None, None, None, True)
    assert agreement(np.ones(1), np.ones(1)).tau is None


def test_signs_count_where_both_have_them():
    a, b = np.array([3.0, -2.0, 0.5, 0.1]), np.array([3.0, 2.0, 0.5, 0.1])
    assert agreement(a, b) == Agreement(2, 1, 1, 1, True)  # by size they are the same
    assert [each.tolist() for each in comparable(a, b)] == [b.tolist(), b.tolist()]
    turned = agreement(a, np.array([3.0, 2.0, 0.5, -0.1]))
    assert not turned.by_size and turned.shared == 1 and turned.tau == pytest.approx((4 - 2) / 6)


def test_the_strongest_are_few_and_not_zero():
    assert [top(size) for size in (1, 2, 4, 5, 6, 12, 16, 30, 100)] == [1, 1, 2, 2, 3, 3, 4, 6, 20]
    assert overlap(np.array([0, 0, 5.0, 0]), np.array([0, 0, 1.0, 0]), 3) == 1  # zeros are not strong together
    assert overlap(np.array([1.0, -1, 0, 0]), np.array([1.0, 1, 0, 0]), 2) == 1


def test_what_is_shared_by_chance():
    for size in (2, 5, 11, 18, 40):
        k = top(size)
        ways = [comb(k, x) * comb(size - k, k - x) for x in range(k + 1)]
        for shared in range(k + 1):
            assert by_chance(shared, size) == pytest.approx(sum(ways[shared:]) / comb(size, k))
    assert by_chance(0, 50_000) == pytest.approx(1) and by_chance(10_000, 50_000) < 1e-12


def test_who_is_close_and_who_is_apart():
    pairs = {(0, 1): (1, 0.7), (0, 2): (3, 0.2), (1, 2): (0, 0.1), (0, 3): (1, -0.1), (1, 3): (0, 0), (2, 3): (2, 0.2)}
    found = {pair: Agreement(shared, tau, tau, tau, False) for pair, (shared, tau) in pairs.items()}
    found |= {(place, 4): Agreement(None, None, None, None, False) for place in range(4)}
    assert close(found, 12) == [(0, 1), (0, 2)]  # alike in order; the same strongest
    assert apart(found, 12) == [3]  # and what is constant is neither


def test_chance_is_rarely_called_alike():
    random = np.random.default_rng(2)
    for size in (8, 20, 60):
        reached = [tau_b(*random.random((2, size))) >= alike(size) for _ in range(600)]
        assert sum(reached) <= 0.02 * 600
    assert alike(1) == np.inf and alike(4) > 1 and alike(500) == 0.3


# -- words ------------------------------------------------------------------------------------------------


def said(*scores, **fields):
    found = methods(*scores, **fields)
    return statement(found, agreements([each.scores for each in found]))


def test_who_agrees_and_who_stands_apart():
    assert said(LOO, NEAR, SIZES, NOISE) == (
        "leave_one_out and lime order the words most alike (tau-b 0.81) and agree on the 3 strongest words; random "
        "stands apart."
    )
    assert said(LOO, NEAR) == "leave_one_out and lime agree on the 3 strongest words and order the words alike."
    none = "leave_one_out and lime agree on none of the 3 strongest words"
    assert said(LOO, NOISE) == f"{none} and do not order the words alike."
    assert said(SIZES, [5 if u == 1 else noise for u, noise in enumerate(NOISE)]) == (
        "leave_one_out and lime agree on 1 of the 3 strongest words but do not order the words alike."
    )
    assert said(LOO, -np.array(NEAR)) == f"{none} and order the words in reverse."
    assert said(LOO, LOO, NEAR).startswith(
        "All methods order the words alike; leave_one_out and lime order the words most alike (tau-b 1.00) and agree on"
    )
    assert said(NOISE, SIZES, np.roll(NOISE, 5)).startswith("No two methods agree more than chance would; ")
    chain = said(*([*range(at, 12), *range(at)] for at in (0, 1, 2, 3)))
    assert chain.startswith("leave_one_out and lime order the words most alike (tau-b 0.67) and share 2 of the 3 ")
    assert chain.endswith("strongest; every method is close to at least one other.")


def test_the_pair_that_is_called_most_alike_is_so_in_the_table():
    """Its order is named before its strongest words, which may be few."""
    numbers = {
        (0, 1): Agreement(1, 0.65, 0.8, 0.8, False),
        (0, 2): Agreement(2, 0.1, 0.1, 0.1, False),
        (1, 2): Agreement(2, 0.1, 0.1, 0.1, False),
    }
    assert statement(methods(LOO, NEAR, NOISE), numbers) == (
        "leave_one_out and lime order the words most alike (tau-b 0.65) but share only 1 of the 3 strongest; "
        "gradient_norm stands apart."
    )
    random = np.random.default_rng(5)
    for _ in range(100):
        found = methods(*random.normal(size=(4, 12)))
        tables = agreements([each.scores for each in found])
        first, _, rest = statement(found, tables).rpartition("; ")[0].rpartition("; ")[2].partition(" order the words ")
        if rest.startswith("most alike"):
            names = titles(found)
            pair = max(tables, key=lambda at: tables[at].tau)
            assert first == f"{names[pair[0]]} and {names[pair[1]]}"
            assert f"(tau-b {tables[pair].tau:.2f})" in rest


def test_methods_that_are_close_by_their_strongest_words_alone_are_said_to_be():
    numbers = {
        (0, 1): Agreement(3, 0.1, 0.1, 0.1, False),
        (0, 2): Agreement(0, 0.2, 0.1, 0.1, False),
        (1, 2): Agreement(0, 0.1, 0.1, 0.1, False),
    }
    assert statement(methods(LOO, NEAR, NOISE), numbers) == (
        "leave_one_out and lime share the most of the strongest words (3 of 3) but order the words no more alike than "
        "chance would (tau-b 0.10); gradient_norm stands apart."
    )


def test_what_cannot_be_compared():
    assert said([1], [2], text="Superb") == "There is only one word: nothing to compare."
    assert said(np.zeros(12), LOO) == "leave_one_out gives every word the same score. There is nothing to compare."
    assert said(np.ones(12), LOO, NEAR).endswith(
        " alike; lime and gradient_norm order the words most alike (tau-b 0.81) and agree on the 3 strongest "
        "words. leave_one_out gives every word the same score."
    )
    assert said([1, 2], [2, 1], text="good film").endswith("; 2 words are too few to tell orders from chance.")
    assert "differ in the strongest word" in said([1, 2], [2, 1], text="good film")


def test_what_the_numbers_mean_is_said():
    found = four()
    notes = footnotes(found, agreements([each.scores for each in found]))
    assert notes[0].startswith(f"Alike: tau-b of {alike(12):.3f} or more") and "12 words" in notes[0]
    assert notes[1].startswith("Apart: alike to none, ")
    assert notes[2].startswith("gradient_norm and random have no negative scores and are compared with the others by")
    same = methods(LOO, NEAR)
    assert len(footnotes(same, agreements([each.scores for each in same]))) == 1


def test_methods_get_names_that_differ():
    one, two, three, four = (explain(MOVIE, scores=LOO, method=m) for m in ("a(x=1)", "b", "a(x=2)", "a(x=1)"))
    assert titles([one, two]) == ["a", "b"] and titles([one, two, three]) == ["a(x=1)", "b", "a(x=2)"]
    assert titles([one, replace(four, removal="delete")]) == ["a(x=1), mask", "a(x=1), delete"]
    assert titles([one, four]) == ["a(x=1), mask #1", "a(x=1), mask #2"]
    assert listed("abcdefg") == "a, b, c and 4 more" and listed(["a"]) == "a" and listed("ab") == "a and b"
    assert folded("integrated_gradients(steps=64)") == "integrated_\ngradients(\nsteps=64)"


def test_telling_diagnostics_are_shown_in_one_line():
    gaps = {"completeness_gap": {"absolute": 0.25, "relative": 0.01234}, "evaluations": 2048, "sampling_error": 0.5}
    extra = {"value": 3.0, "gaping": 1, "error": float("nan"), "converged": True}
    told = four(diagnostics={**gaps, **extra}, notes=("Raise the steps.",))[0]
    assert measured(told) == [
        "completeness gap absolute 0.25",
        "completeness gap relative 0.0123",
        "sampling error 0.5",
        "evaluations 2048",
    ]
    output = show([told, *four()[1:]], many=True)
    assert output.count("completeness gap absolute 0.25 · completeness gap") == 1 and "Raise the steps." in output
    assert measured(four()[0]) == [] and measured(court()) == []
    assert measured(four(diagnostics={"evaluations": 9})[0]) == []


# -- differences ------------------------------------------------------------------------------------------


def test_a_difference_is_of_shares():
    one, two = methods([4, -2, 0, 1], [1, 1, 0, -2], text="a b c d")
    found = difference(one, two, ("a", "b"))
    assert found.values.tolist() == [0.5, -1, 0, 1.25] and found.weights.tolist() == [0.5, -1, 0, 1]
    assert not found.by_size and found.meaning().endswith(", with their signs")
    assert found.strongest(9) == [3, 1, 0] and found.strongest(9, 1) == [3, 0] and found.strongest(1, -1) == [1]
    sized = difference(one, methods([1, 1, 0, 2], text="a b c d")[0], ("a", "b"))
    assert sized.values.tolist() == [0.5, 0, 0, -0.75] and sized.meaning().endswith(", without signs")
    zero = difference(one, methods([0, 0, 0, 0], text="a b c d")[0], ("a", "b"))
    assert zero.one.tolist() == [1, 0.5, 0, 0.25] and not zero.other.any()


def test_terminal_shows_the_difference_with_signs():
    output = show_difference(four())
    assert output.count("difference leave_one_out − ") == 3
    part = output[output.index("difference leave_one_out − gradient_norm") :]
    assert "[-A] great, [+moving] [-film]; [-only] the [-ending] is [-dull]." in part
    assert "[+] leave_one_out gives more   [-] gradient_norm gives more" in part
    assert re.search(r"only +\+0\.120 +\+0\.556 +-0\.436 +█+", part)
    same = show_difference(methods(LOO, np.array(LOO) * 7))
    assert "The two methods say the same." in same and "[+" not in same.partition("difference")[2].replace("[+] ", "")
    assert "difference" not in show(four(), many=True)


def show_difference(found, width=100, **options):
    console = Console(file=io.StringIO(), width=width, _environ={}, **options)
    render_many(found, console, difference=True, paper="dark")
    return console.file.getvalue()


def test_terminal_shows_the_difference_in_green_and_red():
    output = show_difference(
        methods([1, 0, 0.5], [0, 1, 0.5], text="a b c"), force_terminal=True, color_system="truecolor"
    )
    part = output.partition("difference")[2]
    green, red = (";".join(map(str, hue)) for hue in scale.DIFFERENCES)
    assert re.search(rf"\x1b\[4;38;2;0;0;0;48;2;{green}ma\x1b", part)  # underlined as well
    assert re.search(rf"\x1b\[38;2;255;255;255;48;2;{red}mb\x1b", part)
    assert "[+" not in bare(part) and "green, underlined" in part


# -- terminal ---------------------------------------------------------------------------------------------


def test_agreement_follows_the_table():
    output = show(four(), many=True)
    places = [output.index(part) for part in ("unit ", "random stands apart.", "agreement ", "Alike: ")]
    assert places == sorted(places)
    lines = [line.split() for line in output[places[2] :].splitlines()[1:7]]
    found = agreements([each.scores for each in four()])
    names = titles(four())
    expected = sorted(found, key=lambda pair: -found[pair].tau)
    assert [line[:2] for line in lines] == [[names[i], names[j]] for i, j in expected]
    for line, pair in zip(lines, expected, strict=True):
        each = found[pair]
        assert line[2:] == [str(each.shared), "of", "3", *(f"{value:+.2f}" for value in (each.tau, each.rho, each.r))]


def test_constant_scores_have_no_number():
    output = show(methods(LOO, np.zeros(12), NEAR), many=True)
    assert re.search(r"leave_one_out +lime +- +- +- +-\n", re.sub(" +\n", "\n", output)) and "nan" not in output
    assert "lime gives every word the same score." in output
    assert "agreement" not in show(methods(LOO, np.zeros(12)), many=True)


def test_many_methods_make_squares():
    found = twelve()
    output = show(found, many=True, width=120)
    assert output.count("below the diagonal") == 2
    square = output[output.index("Kendall tau-b below") :].splitlines()[2:14]
    numbers = agreements([each.scores for each in found])
    for row, line in enumerate(square):
        cells = line.split()[2:]
        assert cells[row] == "·" and len(cells) == 12
        for place, cell in enumerate(cells):
            each = numbers.get((min(row, place), max(row, place)))
            if place < row:
                assert float(cell) == pytest.approx(each.tau, abs=0.0051)
            elif place > row:
                assert int(cell) == each.shared


def test_rationales_of_two_searches_are_compared_as_before():
    two = [court(), replace(court(), method="greedy")]
    output = show(two, many=True)
    assert re.search(r"refined +greedy", output) and "agree" not in output and "difference" not in show_difference(two)


def test_narrow_and_poor_terminals():
    for found in (four(), twelve(), methods(LOO, LOO), methods(*np.ones((3, 12)))):
        for width in (24, 40, 60, 80):
            assert all(len(line) <= width for line in show_difference(found, width=width).splitlines())
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")  # refuses what it can't carry
        render_many(found, Console(file=stream, width=80, _environ={}), difference=True)
        stream.flush()


def test_colours_change_no_word_and_nothing_commands_the_terminal():
    found = methods(*np.random.default_rng(0).normal(size=(3, len(explain(NASTY).scores))), text=NASTY)
    found = [replace(each, method=f"{each.method}\x1b[31m") for each in found]
    plain, bright = show(found, many=True), coloured(found, many=True)
    assert not set(plain) & set("\x1b\x9b\u202e") and "\x1b[31m" not in bright
    ends = [output.partition("agreement ")[2].split() for output in (plain, bare(bright))]
    assert ends[0] == ends[1] and len(ends[0]) > 20


# -- page -------------------------------------------------------------------------------------------------


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
    more = [(LOO, LOO, NEAR), (NOISE, SIZES, np.roll(NOISE, 5)), [np.roll(np.arange(12), at) for at in range(4)]]
    strong, weak = [20, 18, 16], np.arange(9)
    more += [([*strong, *weak], [*strong, *weak[::-1]], NOISE), (LOO, [*LOO[6:], *LOO[:6]], NOISE)]
    cases = [four(), twelve(), methods([1, 2], [2, 1], text="good film"), *(methods(*each) for each in pairs + more)]
    other = explain("Between two groups")  # else they would be one
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
        numbers = agreements([each.scores for each in case])
        assert seen["said"] == statement(case, numbers)
        assert seen["names"] == titles(case) and seen["notes"] == footnotes(case, numbers)
        for (i, j), each in numbers.items():
            for measure, table in seen["measures"].items():
                value = getattr(each, measure)
                text = "–" if value is None else f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")
                text = str(value) if measure == "shared" and value is not None else text
                assert table[i][j] == table[j][i] == text, (measure, i, j)


def test_a_selection_beside_scores_is_in_or_out():
    output = show([selection_of_a_rationalizer(), *methods(LOO)], many=True)
    table = [line.split() for line in output.splitlines() if line.split()[:1] in (["great"], ["only"], ["film"])]
    assert table == [["great", "selected", "+2.500"], ["film", "+0.050"], ["only", "-0.300"]]


@browsing
def test_a_browser_shows_a_selection_as_in_or_out(tmp_path):
    """Alone and beside scores: underlined, without colours of evidence, without numbers."""
    own = selection_of_a_rationalizer()
    seen = browse(
        tmp_path,
        to_html([own, explain("Between two groups"), own, *methods(LOO)]),
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
    assert seen["tinted"][:2] == [[], []] and len(seen["tinted"][2]) == 4 and seen["ramps"] == [0, 0, 1]
    assert seen["cells"] == [["", "+0.000"], ["selected", "+2.500"]]


@drawing
def test_a_selection_in_latex_and_in_pictures_has_no_colours_of_evidence():
    own = selection_of_a_rationalizer()
    written = latex([own])
    assert written.count("217,218,222") == 3 and written.count("colorbox") == 3
    sheet = ExplanationSheet()
    sheet.add_texts(own)
    assert [box.colour for box in sheet.boxes] == [scale.SELECTED] * 3


@browsing
def test_a_browser_shows_methods_in_rows_and_their_difference(tmp_path):
    chosen = [u == 1 for u in range(12)]
    found = four(notes=("A </b> note.",), diagnostics={"completeness_gap": 0.0125, "aggregation": "sum"})
    found[1] = replace(found[1], selected=chosen)
    seen = browse(
        tmp_path,
        to_html([*found, explain("Alone")]),
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
    colour = scale.background(1, scale.PAPERS["light"])
    assert seen["colour"] == f"rgb({' '.join(map(str, colour))})"
    assert seen["label"] == "gradient_norm, great: +0.9, for, rank 1 of 12"
    assert seen["tip"] == [
        ["leave_one_out", "+2.5", "rank 1"],
        ["lime", "+2.4", "rank 1, selected"],
        ["gradient_norm", "+0.9", "rank 1"],
        ["random", "+0.1", "rank 10"],
    ]
    assert seen["shown"] and seen["twins"] == ["great"] * 4 and seen["stops"] == 1 and seen["walked"]
    one, two, sizes, _ = differences([found[0], found[1]]), differences([found[1], found[0]]), differences(found)[1], 0
    for look, each in ((seen["first"], one[0]), (seen["swapped"], two[0]), (seen["sizes"], sizes)):
        names = found[0].units.names
        assert look["more"] == [names[u] for u in sorted(each.strongest(12, 1))]
        assert look["less"] == [names[u] for u in sorted(each.strongest(12, -1))]
        assert look["picked"] == [each.first, each.second]
        assert look["legend"][0] == f"green, line below {each.first} gives more" and look["legend"][2] == each.meaning()
        rows = [[names[u], each.one[u], each.other[u], each.values[u]] for u in each.strongest(8)]
        assert look["gaps"] == [[n, *(f"{v:+.3f}".replace("-", "−") for v in values)] for n, *values in rows]
    assert seen["equal"]["same"] == ["The two methods say the same."] and seen["equal"]["more"] == []
    assert seen["table"][0] == ["unit", *titles(found)] and seen["table"][2] == [
        "great",
        "+2.500",
        "+2.400",
        "+0.9000",
        "+0.1000",
    ]
    assert seen["facts"] == ["model", "units", "value"] and seen["alone"] == ["raison compare", "raison"]


@browsing
def test_a_browser_keeps_many_methods_on_the_page(tmp_path):
    text = " ".join(f"word{i}" for i in range(80))
    plain = replace(court(), method="lime", certificate=None, steps=(), selected=None, order=None)
    seen = browse(
        tmp_path,
        to_html([*twelve(text), *rows(), court(), replace(court(), method="greedy"), plain]),
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
    assert seen["articles"] == ["raison compare", "raison sheet", *["raison"] * 3]  # rationales are as before


def test_page_of_methods_is_safe_and_holds_every_record():
    found = methods(*np.random.default_rng(0).normal(size=(3, len(explain(NASTY).scores))), text=NASTY)
    page = to_html(found)
    assert page.count("<script") == page.count("</script") == 2 and "import {" not in page and "\x1b" not in page
    policy = re.search(r'content="(default-src[^"]*)"', page)[1]
    assert "unsafe" not in policy and policy.count("sha256-") == 2


# -- pictures ---------------------------------------------------------------------------------------------


@drawing
def test_picture_of_methods_and_of_differences(tmp_path):
    to_figure(four(), tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text("utf-8")
    texts = [html.unescape(text.strip()) for text in re.findall(r"<!-- (.*?) -->", svg, re.DOTALL)]
    assert texts.count("great") == 4 and {"leave_one_out", "lime", "gradient_norm", "random", "against"} <= set(texts)
    more, less = (scale.hexadecimal(hue) for hue in scale.DIFFERENCES)
    assert more not in svg and less not in svg and svg.count("fill: #ec7a16") == 4 + 1  # full colour, and the key
    found = methods([1, 0, 0.5], [0, 1, 0.5], text="one two three")
    to_figure(found, tmp_path / "b.svg", difference=True)
    svg = (tmp_path / "b.svg").read_text("utf-8")
    assert svg.count(f"fill: {more}") == svg.count(f"fill: {less}") == 2  # a word, and the key
    assert "<!-- − -->" in svg and svg.count("<!-- two -->") == 2
    xml.dom.minidom.parse(str(tmp_path / "b.svg"))


@drawing
def test_pictures_of_methods_are_the_same_twice_and_grow_with_them(tmp_path):
    one, two, more = tmp_path / "a.png", tmp_path / "b.png", tmp_path / "c.png"
    for path, found in ((one, four()[:2]), (two, four()[:2]), (more, four())):
        to_figure(found, path, difference=path == more)
    assert one.read_bytes() == two.read_bytes() and size_of(more)[1] > size_of(one)[1]


@drawing
def test_long_texts_are_drawn_whole(tmp_path):
    long = " ".join(f"{'x' * 30}{i}" for i in range(140))
    to_figure(explain(long), tmp_path / "a.svg")
    assert f"<!-- {'x' * 30}70 -->" in (tmp_path / "a.svg").read_text("utf-8")


def test_pictures_that_cannot_be(tmp_path):
    for found in ([explain(MOVIE), explain("Other text")], [court(), replace(court(), method="greedy")]):
        with pytest.raises(InputError, match="several methods about one target"):
            to_figure(found, tmp_path / "a.png")
    for found in (explain(MOVIE), rows()):
        with pytest.raises(InputError, match="two methods"):
            to_figure(found, tmp_path / "a.png", difference=True)
    assert not list(tmp_path.iterdir())


# -- real models and the command --------------------------------------------------------------------------


def test_every_task_can_be_compared(tmp_path):
    import raison as library
    from raison.testing import tiny_model

    cases = {
        "pair": (tiny_model("bert", "classification"), ("A man sleeps.", "Nobody is awake here.")),
        "qa": (tiny_model("bert", "qa"), ("Who built it?", "Ada Lund built the tower.")),
        "writer": (tiny_model("llama", "causal"), "The old town lies on a hill"),
    }
    for model, text in cases.values():
        found = [library.explain(model, text, name) for name in ("leave_one_out", "gradient_norm", "attention_mean")]
        found = [each for each in found if isinstance(each, Explanation)]
        output = show_difference(found)
        numbers = agreements([each.scores for each in found])
        assert len(found) == 3 and " ".join(statement(found, numbers).split()) in " ".join(output.split())
        assert output.count("difference leave_one_out − ") == 2


def test_command_compares_methods(tmp_path):
    pytest.importorskip("matplotlib")
    from raison.testing import tiny_hf

    model, tokenizer = tiny_hf("bert", "classification", double=False)
    model.save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    page, picture = tmp_path / "a.html", tmp_path / "a.svg"
    result = raison(
        *["explain", "The film is lovely and the ending is dull.", "-m", str(tmp_path / "tiny")],
        *["-M", "leave_one_out", "-M", "gradient_norm", "-M", "random", "--difference"],
        *["--html", str(page), "--figure", str(picture)],
    )
    assert result.returncode == 0, result.stderr
    assert "agreement " in result.stdout and result.stdout.count("difference leave_one_out − ") == 2
    assert "renderComparison" in page.read_text("utf-8") and "random" in picture.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--difference"], "two methods"),
        (["--difference", "-M", "leave_one_out"], "two methods"),
        (["--difference", "-M", "leave_one_out", "-M", "random", "--json"], "--json"),
        (["--figure", "a.jpg"], ".png, .svg or .pdf"),
    ],
)
def test_bad_wishes_get_one_sentence(arguments, words):
    assert words in one_sentence(raison("explain", "A film.", *arguments), 2)


def test_target_kinds_do_not_mix():
    """Two targets of one text are no comparison."""
    other = explain(MOVIE, scores=LOO, target=Target("label", (0,), text="negative"), method="lime")
    assert "agreement" not in show([four()[0], other], many=True)
