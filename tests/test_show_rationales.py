"""Rationales for people's eyes: terminal, page, matrix and pictures, from records made by hand."""

import html
import io
import json
import math
import re
import shutil
import subprocess
import sys
import xml.dom.minidom
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from rich.console import Console

from raison.core.errors import InputError, MissingExtra
from raison.core.findings import Certificate, Grounding, PassageFinding, SearchStep
from raison.core.records import Encoding, Explanation, Target
from raison.core.text_splitting import split_words
from raison.core.units import group
from raison.show import certificate as proof
from raison.show import render, render_many, to_figure, to_html
from raison.show.matrix import CHOSEN, GIVEN, HIDDEN, SPARED, matrix, sheets
from raison.show.search_path import excerpt, path

COURT = "The Supreme Court on Tuesday rejected a challenge to the"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def encode(*texts, names=("text",), start=(), fixed=()):
    """Every word is a token with the space before it; segments in `start` begin with a special token."""
    rows = []
    for segment, text in enumerate(texts):
        rows += [("<s>", segment, -1, -1, True)] * (segment in start)
        for a, b in split_words(text):
            a -= a > 0 and text[a - 1] == " "
            rows.append((text[a:b], segment, a, b, any(low <= a < high for low, high in fixed) and segment == 0))
    tokens, segment, first, last, kept = zip(*rows, strict=True)
    size = np.arange(len(rows))
    return Encoding(size, tokens, names, texts, segment, first, last, size, kept)


def explain(encoding, target, chosen, level="token", grounding=None, likely=True, **claims):
    """A rationale that was found by adding `chosen`, names of units, one by one."""
    units = group(encoding, level, target.free(encoding))
    order = [units.names.index(name) if isinstance(name, str) else name for name in chosen]
    selected = np.isin(np.arange(len(units)), order)
    steps = []
    for size in range(len(order) + 1):
        probability = 0.5 * (size + 1) / (len(order) + 1)
        others = [u for u in range(len(units)) if u not in order[:size]][:2]
        steps.append(
            {
                "action": "add" if size else "start",
                "added": order[size - 1 : size] if size else [],
                "removed": [],
                "size": size,
                "value": math.log(probability),
                "sufficient": size == len(order),
                "candidates": [[u, math.log(probability / 2)] for u in [order[size - 1], *others]] if size else [],
                **({"probability": probability} if likely else {}),
            }
        )
    certificate = {
        "rule": "argmax",
        "sufficient": True,
        "irreducible": True,
        "optimal": False,
        "lower_bound": 2,
        "size": len(order),
        "kept_tokens": len(order) + 1,
        "context_tokens": int(target.scope(len(encoding)).sum()),
        "is_prediction": True,
        "status": "complete",
        "value": math.log(0.5),
        "full_value": math.log(0.8),
        "evaluations": 120,
        "search_tokens": 560,
        "check_tokens": 0,
        **({"probability": 0.5, "full_probability": 0.8} if likely else {}),
        **claims,
    }
    return Explanation(
        encoding,
        units,
        target,
        np.where(selected, 1.25 + np.arange(len(units)), 0),
        "refined",
        "tiny",
        "delete",
        selected,
        np.array(order, dtype=int),
        certificate=Certificate(**certificate),
        steps=tuple(SearchStep(**step) for step in steps),
        grounding=grounding,
    )


def court(**changes):
    encoding = encode(COURT)
    target = Target("token", (7,), (len(encoding),), " constitution", "log_prob")
    return explain(encoding, target, ["Court", "challenge", "The"], **changes)


def long_path():
    encoding = encode(" ".join(f"w{i}" for i in range(60)))
    return explain(encoding, Target("token", (1,), (60,), " x", "log_prob"), list(range(50)))


def rows(text="A cat sat on the mat", start=(), **changes):
    """One rationale for each token but the first; the rationale of number p is the first token, for p > 2 also the
    second."""
    encoding = encode(text, start=start)
    first = 1 + len(start)
    found = []
    for p in range(first, len(encoding)):
        target = Target("token", (p,), (p,), encoding.tokens[p], "log_prob")
        chosen = list(range(min(int(target.free(encoding).sum()), 1 + (p > 2))))
        found.append(explain(encoding, target, chosen, **(changes.get(f"p{p}", {}))))
    return found


PASSAGES = {
    "a.txt": "The tower is old. It was built by Ada Lund. It is red.",
    "b.txt": "Tickets are cheap. " + "Nothing of this is about builders at all. " * 8,
    "c</script>.txt": "Ada Lund was born in Oslo.",
}


def grounded(**changes):
    prompt, passages = "Read this.\n\n", []
    for name, text in PASSAGES.items():
        end = len(prompt) + len(text.rstrip())
        selected, necessary = name != "b.txt", name[0] == "c"
        passages.append(PassageFinding(name, len(prompt), end, selected=selected, necessary=necessary))
        prompt += text.rstrip() + "\n\n"
    ends = [(0, passages[0].start), (len(prompt), len(prompt) + 99)]
    encoding = encode(prompt + "Where was the builder born?", fixed=ends)
    grounding = Grounding(
        question="Where was the builder born?",
        answer="Oslo",
        needs_context=True,
        statement="The answer rests on a.txt and c.txt.",
        passages=tuple(passages),
    )
    target = Target("token", (1,), (len(encoding),), " Oslo", "log_prob")
    chosen = ["It was built by Ada Lund.", "Ada Lund was born in Oslo."]
    return explain(encoding, target, chosen, "sentence", grounding, **changes)


def show(what, width=100, **options):
    console = Console(file=io.StringIO(), width=width, _environ={}, **options)
    (render_many if isinstance(what, list) else render)(what, console)
    return console.file.getvalue()


def flat(output):
    return " ".join(output.split())


# -- terminal ---------------------------------------------------------------------------------------------


def test_rationale_is_marked_and_told():
    output = show(court())
    assert '*The* Supreme *Court* on Tuesday rejected a *challenge* to _the_ → " constitution"' in output
    assert 'rationale 3 of 9 tokens: Court → challenge → The, and the given "the"' in output
    assert "sufficient (checked anew) · nothing can be spared · not proved smallest: at least 2 needed" in output
    assert "the model reads 4 of 10 context tokens · 120 evaluations, 560 token-forwards" in output
    assert "rule: argmax" in output and "▲" not in output and "All scores are zero" not in output


def test_rationale_is_filled_in_colour_and_what_is_given_is_quieter():
    output = show(court(), force_terminal=True, color_system="truecolor")
    fill = r"\x1b\[1;38;2;0;0;0;48;2;236;122;22m"
    assert all(re.search(fill + name, output) for name in ("The", "Court", "challenge"))
    assert len(re.findall(fill, output)) == 3
    assert re.search(r"\x1b\[4;38;2;\d+;\d+;\d+mthe\x1b", output)


def test_path_has_a_row_for_each_step():
    lines = show(court(), width=110).splitlines()
    table = lines[next(i for i, line in enumerate(lines) if line.startswith(" step")) :]
    assert re.match(r" +0 +start +0 +12.5 % +█+", table[1]) and "✓" not in table[1]
    assert re.match(r" +1 +\+ Court +1 +25.0 %", table[2]) and re.search(r"The 12.5 %, Supreme 12.5 %", table[2])
    assert re.match(r" +3 +\+ The +3 +50.0 % +█+[▏▎▍▌▋▊▉]? +✓", table[4])
    assert re.match(r" +the whole context +9 +80.0 % +█{12} +✓", table[5])
    bars = [line.count("█") for line in table[1:6]]
    assert bars == sorted(bars) and bars[0] < bars[-1]


def test_swaps_and_values_that_are_no_probabilities():
    plain = court(likely=False)
    swap = SearchStep(action="swap", size=3, added=(1, 2), removed=(0,), value=-7.25, sufficient=True)
    plain = replace(plain, steps=(*plain.steps, swap))
    output = show(plain)
    assert re.search(r"\+ Supreme, Court  − The +3 +-7.25 +✓", output) and "█" not in output
    assert [step.weight for step in path(plain)] == [None] * 6


def test_long_paths_are_cut_short():
    steps = path(long_path())
    shown = excerpt(steps)
    assert len(steps) == 52 and sum(s if isinstance(s, int) else 1 for s in shown) == 52 and len(shown) < 14
    assert "⋮ 41 steps more" in show(long_path()) and "rationale 50 of 59 tokens" in show(long_path())
    assert excerpt(steps[:11]) == steps[:11]


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"status": "budget", "irreducible": None}, "its budget was spent"),
        ({"status": "interrupted"}, "it was interrupted"),
        ({"status": "impossible", "sufficient": False}, "Not even the whole context is sufficient by argmax"),
        ({"sufficient": False}, "What is marked is not sufficient by argmax"),
        ({"is_prediction": False}, "the model prefers something else: this target is not its own"),
    ],
)
def test_what_must_be_known_first_is_said_first(claims, said):
    explanation = court(**claims)
    output = flat(show(explanation))
    assert said in output and output.index(said) < output.index("Supreme")
    assert any(said in warning for warning in proof.warnings(explanation))
    assert ("sufficient (checked anew)" in output) == claims.get("sufficient", True)


def test_verdicts():
    def said(**claims):
        return proof.verdict(court(**claims))

    assert said(optimal=True, irreducible=False)[1:] == ["something may be spared", "proved: none is smaller"]
    assert said(irreducible=None, lower_bound=0) == ["sufficient (checked anew)", "not proved smallest"]
    assert said(sufficient=False) == ["not sufficient"]
    assert said(rule="penalty(weight=0.1)") == [
        "of low cost (no threshold)",
        "nothing can be spared",
        "not proved to cost least",
    ]
    assert proof.warnings(court()) == []


def test_empty_rationale():
    encoding = encode(COURT)
    explanation = explain(encoding, Target("token", (7,), (10,), " c", "log_prob"), [])
    assert 'rationale 0 of 9 tokens: only the given "the"' in show(explanation)
    label = explain(encoding, Target("label", (1,), text="news"), [], "word")
    assert "rationale 0 of 10 words: nothing of it is needed" in show(label)


def test_labels_have_nothing_given():
    encoding = encode("A great film", start=(0,))
    output = show(explain(encoding, Target("label", (1,), text="positive"), ["great"], "word", likely=False))
    assert "A *great* film" in output and "rationale 1 of 3 words: great" in output and "given" not in output


def test_segments_are_named():
    encoding = encode("Der Hund schläft", "The dog", names=("source", "prefix"), start=(1,))
    target = Target("token", (1,), (len(encoding),), " sleeps", "log_prob")
    output = show(explain(encoding, target, ["schläft", "Der"], "word"))
    assert re.search(r"source +\*Der\* Hund \*schläft\*", output)
    assert re.search(r'prefix +The _dog_ → " sleeps"', output)


def test_grounded_answer_goes_by_passage():
    output = show(grounded())
    places = [
        output.index(part) for part in ("Where was", "answer    Oslo", "rests on a.txt and", "● a.txt", "○ b.txt")
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
    explanation = grounded()
    first, unneeded, last = explanation.grounding.passages
    first = replace(first, end=first.end - len(" Lund. It is red."))
    last = replace(last, start=last.start + len("Ada "))
    moved = replace(explanation.grounding, passages=(first, unneeded, last))
    explanation = replace(explanation, grounding=moved)
    output = show(explanation)
    assert "The tower is old. *It was built by Ada*\n" in re.sub(" +\n", "\n", output)
    assert re.search(r"^   \*Lund was born in Oslo\.\*", output, re.MULTILINE)


def test_poor_and_narrow_terminals():
    for what in (court(), grounded(), long_path(), rows(), court(status="budget", is_prediction=False)):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        console = Console(file=stream, width=70, _environ={})
        (render_many if isinstance(what, list) else render)(what, console)
        stream.flush()
        for width in (24, 50):
            assert all(len(line) <= width for line in show(what, width=width).splitlines())


def test_control_characters_never_reach_the_terminal():
    nasty = encode("He said \x1b[31m red \x9b2J \u202e back now")
    explanation = explain(nasty, Target("token", (1,), (len(nasty),), "\x1b]0;x\x07", "log_prob"), [2, 3, 7])
    claims = {"rule": "\x1b[1m", "status": "impossible", "sufficient": False}
    for what in (explanation, explain(nasty, explanation.target, [2], **claims), rows("a \x1b[31m b \x07 c d")):
        output = show(what)
        assert not set(output) & set("\x1b\x9b\x07\u202e")


# -- matrix -----------------------------------------------------------------------------------------------


def test_cells_stand_where_their_tokens_stand():
    found = matrix(list(reversed(rows())))
    assert [row.target.text for row in found.rows] == [" cat", " sat", " on", " the", " mat"]
    assert [column.name for column in found.columns] == ["A", "cat", "sat", "on", "the"]
    G, C, S, H = GIVEN, CHOSEN, SPARED, HIDDEN
    assert found.cells.tolist() == [
        [G, H, H, H, H],
        [C, G, H, H, H],
        [C, C, G, H, H],
        [C, C, S, G, H],
        [C, C, S, S, G],
    ]


def test_special_tokens_have_no_column_and_units_are_mapped_by_token():
    found = matrix(rows(start=(0,)))
    assert [column.name for column in found.columns] == ["A", "cat", "sat", "on", "the"]
    assert [column.tokens for column in found.columns] == [(1,), (2,), (3,), (4,), (5,)]
    assert found.cells[0].tolist() == [GIVEN] + [HIDDEN] * 4


def test_tokens_of_one_unit_share_a_column():
    encoding = encode("Heute Nacht", "so it is", names=("source", "prefix"))
    encoding = Encoding(**{**encoding.to_dict(), "start": [0, 3, 0, 2, 5], "end": [3, 11, 2, 5, 8]})
    found = []
    for p in (3, 4):
        target = Target("token", (p,), (p,), encoding.tokens[p], "log_prob")
        found.append(explain(encoding, target, [0], "word"))
    columns = matrix(found).columns
    assert [(column.name, column.tokens) for column in columns] == [("Heute Nacht", (0, 1)), ("so", (2,)), ("it", (3,))]


def test_lists_become_matrices():
    five, lone = rows(), court()
    assert [len(sheet) for sheet in sheets([lone, *five])] == [1, 5]
    other = [Explanation(**{**vars(e), "method": "greedy"}) for e in five]
    mixed = [e for pair in zip(five, other, strict=True) for e in pair]
    assert [[e.method for e in sheet] for sheet in sheets(mixed)] == [["refined"] * 5, ["greedy"] * 5]
    assert [len(sheet) for sheet in sheets(five[:2])] == [1, 1]
    assert [len(sheet) for sheet in sheets([*five, five[0]])] == [1] * 6  # one target twice is no matrix
    bare = [Explanation(**{**vars(e), "certificate": None, "steps": ()}) for e in five]
    assert [len(sheet) for sheet in sheets(bare)] == [1] * 5


def test_terminal_shows_the_matrix_instead_of_each_one():
    output = show(rows(p3={"sufficient": False, "is_prediction": False}, p4={"status": "budget"}))
    lines = [line.rstrip() for line in output.splitlines()]
    assert "5 rationales of one text" in output and "checked anew" not in output
    assert " cat    0 ░░" in lines and " sat    1 ██░░" in lines
    assert " on  !≠ 2 ████░░" in lines and " the …  2 ████· ░░" in lines and " mat    2 ████· · ░░" in lines
    heads = [line[10:] for line in lines if line.startswith(" " * 9) and line.strip()]
    columns = ["".join(line.ljust(10)[place] for line in heads).strip() for place in range(0, 10, 2)]
    assert columns == ["A", "cat", "sat", "on", "the"]
    legend = flat(output[output.index("██ in the") :])
    assert legend.startswith("██ in the rationale ░░ given · not needed ! not sufficient ≠ not the model's own")
    assert "the search ended early" in legend and "≠" not in show(rows())


def test_no_row_is_lost_and_all_rules_are_named():
    encoding = encode("A cat sat", start=(0,))
    found = []
    for p in range(1, 4):  # the first sees the special token only
        target = Target("token", (p,), (p,), encoding.tokens[p], "log_prob")
        found.append(explain(encoding, target, [], rule="argmax" if p > 1 else "probability(tau=0.9)"))
    output = show(found)
    assert "rules: probability(tau=0.9), argmax" in flat(output)
    assert [line.split() for line in output.splitlines() if line.startswith((" A ", " cat ", " sat "))] == [
        ["A", "0"],
        ["cat", "0", "░░"],
        ["sat", "0", "·", "░░"],
    ]


def test_wide_matrices_come_in_blocks():
    text = " ".join(f"w{i}" for i in range(40))
    output = show(rows(text), width=50)
    assert all(len(line) <= 50 for line in output.splitlines())
    lines = [line for line in output.splitlines() if line.startswith(" w39 ")]
    assert len(lines) > 1
    assert sum(line.count("██") for line in lines) == 2 and sum(line.count("░░") for line in lines) == 1
    assert sum(line.count("·") for line in lines) == 36
    assert sum(line.startswith(" w1 ") for line in output.splitlines()) == 1  # sees nothing of the second block


def test_two_methods_make_two_matrices():
    five = rows()
    other = [Explanation(**{**vars(e), "method": "greedy"}) for e in five]
    output = show([e for pair in zip(five, other, strict=True) for e in pair])
    assert output.count("5 rationales of one text") == 2 and "refined" in output and "greedy" in output


# -- page -------------------------------------------------------------------------------------------------


def data_of(page):
    return json.loads(re.search(r'id="explanations">(.*?)</script>', page, re.DOTALL)[1])


def test_page_is_safe_and_holds_a_shared_text_once():
    page = to_html([grounded(), *rows("a </script><b>x</b> \x1b[31m c")])
    assert page.count("<script") == page.count("</script") == 2 and "\x1b" not in page
    data = data_of(page)
    assert [type(each["encoding"]).__name__ for each in data][:3] == ["dict", "dict", "int"]
    assert all(each["encoding"] == 1 for each in data[2:])
    back = [Explanation.from_dict({**each, "encoding": data[1]["encoding"]}) for each in data[1:]]
    assert back == rows("a </script><b>x</b> \x1b[31m c")


def browse(folder, page, script=""):
    """The DOM after the page has been drawn; `script` runs beside it with the page's document as `page`, and may write
    what it finds into `report`."""
    (folder / "page.html").write_text(page, "utf-8")
    (folder / "frame.html").write_text(
        '<!doctype html><iframe id="frame" src="page.html" width="390" height="800"></iframe><pre id="report"></pre>'
        f"""<script>frame.onload = () => setTimeout(() => {{
          const page = frame.contentDocument, found = {{}};
          {script}
          report.textContent = JSON.stringify(found);
        }}, 200)</script>""",
        "utf-8",
    )
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
        "--disable-sync --no-first-run --allow-file-access-from-files --virtual-time-budget=4000 --dump-dom"
    )
    run = subprocess.run(
        [BROWSER, *flags.split(), f"--user-data-dir={folder / 'profile'}", (folder / "frame.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return json.loads(html.unescape(re.search(r'<pre id="report">(.*?)</pre>', run.stdout, re.DOTALL)[1]))


@pytest.mark.skipif(BROWSER is None, reason="no chromium here: the page is checked as text only")
def test_a_browser_tells_rationales_as_the_terminal_does(tmp_path):
    nasty = encode("He said \x1b[31m red <b>x</b> now")
    cases = [
        court(),
        court(status="budget", irreducible=None, lower_bound=0),
        court(sufficient=False, is_prediction=False),
        court(optimal=True, rule="penalty(weight=0.1)", irreducible=False),
        grounded(),
        long_path(),
        explain(nasty, Target("token", (1,), (len(nasty),), "</script>", "log_prob"), [2, 3], likely=False),
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
        assert seen["warnings"] == proof.warnings(case)
        assert seen["verdict"] == " · ".join(proof.verdict(case))
        assert seen["effort"] == " · ".join(proof.effort(case))
        steps = path(case)
        assert len(seen["bars"]) == sum(not isinstance(s, int) and s.weight is not None for s in excerpt(steps))
        rows = [row for row in seen["steps"] if not row[1].startswith("⋮")]
        drawn = [step for step in excerpt(steps) if not isinstance(step, int)]
        figures = [step.figure.replace("-", "−") for step in drawn]
        assert [row[3] for row in rows] == figures and [row[2] for row in rows] == [str(step.size) for step in drawn]
        assert [("✓" in row) for row in rows] == [step.enough for step in drawn]
        units = [case.units.names[u] for u in np.flatnonzero(case.selected)]
        assert [" ".join(text.split()) for text in seen["kept"]] == [" ".join(proof.clean(u).split()) for u in units]
        assert seen["bold"] == 0
    first, *_, answer, long, _ = found["articles"]
    assert first["given"] == ["the"] and first["line"].endswith(": Court → challenge → The, and the given “the”")
    assert first["steps"][1][-1] == "The 12.5 %, Supreme 12.5 %" and "--size: 1" in first["bars"][-1]
    both = "the answer rests on it, and its words change without it"
    assert answer["passages"] == ["the answer rests on it", "not needed", both]
    assert answer["open"][0] == PASSAGES["a.txt"] and len(answer["open"]) == 2 and "Oslo" in answer["said"][0]
    assert any(row[1] == "⋮ 41 steps more" for row in long["steps"])


@pytest.mark.skipif(BROWSER is None, reason="no chromium here: the page is checked as text only")
def test_a_browser_draws_the_matrix_and_its_rows_can_be_chosen(tmp_path):
    five = rows(" ".join(["A cat sat on the mat", *(f"word{i}" for i in range(30))]), p3={"is_prediction": False})
    found = browse(
        tmp_path,
        to_html([*five, court()]),
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
    expected = matrix(five)
    names = ["hidden", "spared", "given", "chosen"]
    assert found["heads"] == [column.name for column in expected.columns]
    assert found["cells"] == [[names[state] for state in row] for row in expected.cells.tolist()]
    assert found["rows"][:4] == ["cat", "sat", "on ≠", "the"]
    assert found["first"]["pressed"] == ["word29"]  # the row with the most context
    clicked = found["clicked"]
    assert clicked["pressed"] == ["on ≠"] and clicked["focused"] == "on ≠" and clicked["stops"] == 1
    assert clicked["kept"] == ["A", "cat"] and clicked["given"] == ["sat"] and clicked["target"].strip() == "on"
    assert clicked["title"].startswith("“ on”") and clicked["texts"] == 0
    assert clicked["articles"] == 3  # the sheet, the details of one row, and the explanation beside it
    assert found["down"]["pressed"] == ["the"] and found["down"]["focused"] == "the"
    assert found["home"]["pressed"] == ["cat"] and found["home"]["kept"] == []
    assert found["tip"][0] == "“the” from “A”: in the rationale"
    assert found["tip"][1] == "chosen as number 1, left out, the value drops by 1.25"
    assert found["tip"][2] == "row: 2 of 3 tokens, probability 50.0 % (80.0 % from all)"
    assert found["sideways"] == 0 and found["inside"] > 0  # only the matrix scrolls sideways


# -- pictures ---------------------------------------------------------------------------------------------

drawing = pytest.mark.skipif(find_spec("matplotlib") is None, reason="pictures need matplotlib")


def drawn(what, path):
    """The texts of an SVG file: matplotlib leaves each one as a comment beside its shapes."""
    to_figure(what, path)
    return [html.unescape(text.strip()) for text in re.findall(r"<!-- (.*?) -->", path.read_text("utf-8"), re.DOTALL)]


def size_of(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


@drawing
def test_picture_of_one_rationale(tmp_path):
    texts = drawn(court(is_prediction=False), tmp_path / "a.svg")
    for word in ("Supreme", "Court", "challenge", "start", "+", "✓", "probability", "12.5 %", "80.0 %"):
        assert any(word == text or word in text.split() or word in text for text in texts)
    assert "+ Court" in texts and "the whole context" in texts and "constitution" in " ".join(texts)
    assert "sufficient" in texts and "prefers" in texts
    svg = (tmp_path / "a.svg").read_text("utf-8")
    assert svg.count("fill: #ec7a16") == 3 + 4  # three units, four bars
    to_figure(court(), tmp_path / "a.png")
    assert size_of(tmp_path / "a.png")[0] == 1500


@drawing
def test_picture_of_a_matrix(tmp_path):
    texts = drawn(rows(p3={"is_prediction": False}), tmp_path / "a.svg")
    assert texts.count("cat") == 2 and "on ≠" in texts and "≠  not the model's own prediction" in texts
    svg = (tmp_path / "a.svg").read_text("utf-8")
    chosen = int((matrix(rows()).cells == CHOSEN).sum())
    assert svg.count("fill: #ec7a16") == chosen + 1 and svg.count('style="fill: url(#h') == 5 + 1  # and the legend
    narrow, wide = tmp_path / "a.png", tmp_path / "b.png"
    to_figure(rows(), narrow)
    to_figure(rows(" ".join(f"w{i}" for i in range(50))), wide)
    assert size_of(wide)[0] > size_of(narrow)[0] and size_of(wide)[1] > size_of(narrow)[1]


@drawing
def test_nothing_is_drawn_outside_the_paper(tmp_path):
    from raison.show.figure.explanation_sheet import explanation_figure
    from raison.show.figure.matrix import matrix_figure

    long = "Donaudampfschifffahrtsgesellschaftskapitänswitwe" * 4
    encoding = encode(f"{long} is a word")
    lone = explain(encoding, Target("token", (1,), (4,), " " + long, "log_prob"), [0, 1], status="budget")
    for figure in (
        explanation_figure(court()),
        explanation_figure(grounded()),
        explanation_figure(lone),
        matrix_figure(matrix(rows(f"a {long} b c d"))),
    ):
        paper = figure.bbox
        renderer = figure.canvas.get_renderer()
        for text in figure.axes[0].texts:
            box = text.get_window_extent(renderer)
            assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= paper.x1 + 1 and box.y1 <= paper.y1 + 1, text.get_text()


@drawing
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_the_same_twice(tmp_path, ending):
    one, two = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    for what in (court(), rows()):
        to_figure(what, one)
        to_figure(what, two)
        assert one.read_bytes() == two.read_bytes() and one.stat().st_size > 4000


@drawing
def test_pictures_of_strange_texts(tmp_path):
    strange = encode("这部电影 $x_1$ costs $5 \x1b[31m </svg> --> 👩‍👩‍👧 नमस्ते now")
    explanation = explain(strange, Target("token", (1,), (len(strange),), "吗\x07", "log_prob"), [0, 3, 5])
    texts = drawn(explanation, tmp_path / "a.svg")  # warnings are errors here
    assert any("$" in text for text in texts)
    assert not set((tmp_path / "a.svg").read_text("utf-8")) & set("\x1b\x07")
    xml.dom.minidom.parse(str(tmp_path / "a.svg"))
    formula = explain(encode("one two three"), Target("token", (1,), (3,), "$\\nope$", "log_prob"), [0])
    assert any("$\\nope$" in text for text in drawn(formula, tmp_path / "b.svg"))  # no formula, so no wrong one


@drawing
def test_picture_of_scores_needs_no_rationale(tmp_path):
    encoding = encode("A great film")
    units = group(encoding, "word")
    plain = Explanation(encoding, units, Target("label", (1,), text="good"), [0.1, 2, -2], "occlusion", "tiny")
    assert "great" in drawn(plain, tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text("utf-8")
    assert "fill: #ec7a16" in svg and "fill: #2472d6" in svg


def test_pictures_that_cannot_be(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"\.png, \.svg or \.pdf, not in '\.jpg'"):
        to_figure(court(), tmp_path / "a.jpg")
    with pytest.raises(InputError, match="write a file for each"):
        to_figure([court(), grounded()], tmp_path / "a.png")
    with pytest.raises(InputError, match="nothing to draw"):
        to_figure([], tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"raison\[plot\]"):
        to_figure(court(), tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


@drawing
def test_picture_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="can't be written"):
        to_figure(court(), tmp_path / "none" / "a.png")
