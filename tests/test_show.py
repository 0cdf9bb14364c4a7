"""What people see: the terminal with and without colours, and the page, fed with awkward texts."""

import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from itertools import product

import numpy as np
import pytest
from rich.console import Console

from raison.core.findings import Certificate, PredictionSummary
from raison.core.records import Encoding, Explanation, Target
from raison.core.text_splitting import split_words
from raison.core.units import group
from raison.show import render, render_many, scale, to_html
from raison.show.html.explanation import MODULES, json_in_script
from raison.show.scale import AGAINST, FOR, INKS, LESS, MORE, PAPERS, SILENT, background, contrast, ink, weights
from raison.show.spans import flow, selection
from raison.show.terminal.style import paper_of
from raison.show.wording import clean, signed_number

NASTY = 'He said </script><b>hi</b><!-- & left \x1b[31mred\x1b[0m\x9b2J \u202eback\u2028 "quoted"'


def encode(*texts, names=None, specials=False, **changes):
    """Every word is a token; `specials` adds a free </s> behind each text, as encoder-decoders have it."""
    rows = []
    for segment, text in enumerate(texts):
        rows += [(text[a:b], segment, a, b) for a, b in split_words(text)]
        rows += [("</s>", segment, -1, -1)] * specials
    tokens, segment, start, end = zip(*rows, strict=True)
    names = names or {1: ("text",), 2: ("first", "second")}[len(texts)]
    size = np.arange(len(rows))
    fields = {
        "ids": size,
        "tokens": tokens,
        "segments": names,
        "texts": texts,
        "segment": segment,
        "start": start,
        "end": end,
        "positions": size,
        "fixed": np.zeros(len(rows), bool),
    }
    return Encoding(**{**fields, **changes})


def explain(*texts, scores=None, target=None, level="word", encoding=None, **fields):
    encoding = encoding or encode(*texts)
    target = target or Target("label", (1,), text="positive")
    units = group(encoding, level, target.free(encoding))
    if scores is None:
        scores = np.sin(np.arange(len(units)) * 2.4) * 3
    top = (("positive", 0.987),)
    prediction = PredictionSummary("positive", is_target=target.text == "positive", probability=0.987, top=top)
    made = {
        "encoding": encoding,
        "units": units,
        "target": target,
        "scores": np.asarray(scores, float),
        "method": "occlusion(width=1)",
        "model": "tiny-sentiment",
        "removal": "mask",
        "prediction": prediction,
    }
    return Explanation(**{**made, **fields})


def show(explanation, width=100, paper=None, many=False, **options):
    console = Console(file=io.StringIO(), width=width, _environ={}, **options)
    (render_many if many else render)(explanation, console, paper=paper)
    return console.file.getvalue()


def coloured(explanation, **options):
    return show(explanation, force_terminal=True, color_system="truecolor", **options)


def bare(output):
    return re.sub(r"\x1b\[[0-9;]*m", "", output)


MOVIE = "A great, moving film; only the ending is dull."
SCORES = [0, 2.5, 0.01, 1.25, 0.05, 0, -0.3, 0, 0.05, 0, -1.5, 0]

CASES = {
    "plain": lambda: explain(MOVIE, scores=SCORES),
    "pair": lambda: explain("A man sleeps.", "Nobody is awake."),
    "cjk": lambda: explain("这部电影真的很好看 👩‍👩‍👧 とても面白い 👍🏽!"),
    "negative": lambda: explain(MOVIE, scores=-np.arange(12) / 10),
    "positive": lambda: explain(MOVIE, scores=np.arange(12) / 10),
    "zero": lambda: explain(MOVIE, scores=np.zeros(12)),
    "selected": lambda: explain(MOVIE, scores=SCORES, selected=[u in (1, 3) for u in range(12)], order=[1, 3]),
    "nasty": lambda: explain(NASTY),
    "one": lambda: explain("Superb", scores=[1.5]),
    "long": lambda: explain(" ".join(f"word{i}" for i in range(300))),
    "tiny": lambda: explain(MOVIE, scores=np.array(SCORES) * 1e-9),
    "sentences": lambda: explain("It is good. Really good! But long…", level="sentence"),
}


@pytest.fixture(params=CASES)
def explanation(request):
    return CASES[request.param]()


def test_plain_output_needs_no_colour(explanation):
    output = show(explanation)
    assert "\x1b" not in output and "\x9b" not in output
    assert "positive 98.7 %" in output and "tiny-sentiment" in output and "occlusion(width=1)" in output
    flat = re.sub(r"[\s\[\]*+-]", "", output)
    for text in explanation.encoding.texts:
        assert re.sub(r"[\s\[\]*+-]", "", clean(text)) in flat
    if explanation.scores.any():
        top = int(np.abs(explanation.scores).argmax())
        assert signed_number(explanation.scores[top], abs(explanation.scores[top])) in output


def test_colour_output_is_the_same_text_in_colours(explanation):
    output = coloured(explanation, paper="dark")
    assert ("\x1b[38;2;" in output) == bool(explanation.scores.any())
    assert "\x1b[31m" not in output and "\x9b" not in output and "\u202e" not in output
    flat = re.sub(r"\s", "", bare(output))
    for text in explanation.encoding.texts:
        assert re.sub(r"\s", "", clean(text)) in flat


def test_flow_keeps_every_character(explanation):
    passages = flow(explanation)
    assert ["".join(piece.text for piece in p.pieces) for p in passages] == list(explanation.encoding.texts)
    assert [u for p in passages for piece in p.pieces for u in piece.units] == list(range(len(explanation.units)))


def test_marks_and_numbers_without_colour():
    output = show(CASES["plain"]())
    assert "A [+great], [+moving] film" in output
    assert "[-dull]" in output and "+2.500" in output and "-1.500" in output and "█" in output
    assert show(CASES["plain"](), force_terminal=True, color_system="truecolor", no_color=True).count("[+great]") == 1
    assert "All scores are zero." in show(CASES["zero"]())


def test_selected_units_are_marked():
    assert "A *great*, *moving* film" in show(CASES["selected"]())
    assert "2 of 12 words, in the order chosen: great → moving" in show(CASES["selected"]())
    assert re.search(r"\x1b\[1;4;[0-9;]*mgreat", coloured(CASES["selected"](), paper="light"))


def selection_of_a_rationalizer():
    """As a rationalizer gives it: how sure the selection was as scores, 0 for all that was not selected."""
    sure = [0, 0.89, 0, 0.93, 0, 0, 0, 0, 0, 0, 0.88, 0]
    return explain(MOVIE, scores=sure, selected=[score > 0 for score in sure], method="own", removal=None)


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "color_system": "truecolor"}])
def test_a_selection_without_evidence_has_no_signs_values_or_bars(options):
    output = show(selection_of_a_rationalizer(), **options)
    assert "rationale 3 of 12 words" in bare(output)
    for sign in ("+", "0.9", "0.8", "█", "strongest", "against", "score", "logit", "48;2"):
        assert sign not in output
    assert "A *great*, *moving* film" in show(selection_of_a_rationalizer())
    assert re.search(r"\x1b\[1;4mgreat", coloured(selection_of_a_rationalizer(), paper="light"))
    nothing = show(explain(MOVIE, scores=np.zeros(12), selected=np.zeros(12, bool), removal=None))
    assert "rationale 0 of 12 words" in nothing and "All scores are zero." not in nothing


def test_what_is_a_selection_without_evidence():
    """By its record: nothing proved, no negative score, nothing outside of the selection."""
    own = selection_of_a_rationalizer()
    assert selection(own)
    assert not selection(replace(own, selected=None))
    assert not selection(replace(own, certificate=Certificate("argmax", sufficient=True, size=2)))
    assert not selection(replace(own, scores=-own.scores))
    assert not selection(replace(own, scores=own.scores + 0.1))  # what is not selected has scores, too
    assert not selection(CASES["selected"]())


def test_segments_are_named():
    output = show(CASES["pair"]())
    assert re.search(r"first\s.*man", output) and re.search(r"second\s.*awake", output)


def test_target_that_is_not_the_prediction_is_said_so():
    other = Target("label", (0,), text="negative", contrast=(1,), contrast_text="positive")
    output = show(explain(MOVIE, target=other))
    assert "target negative rather than positive" in output and "predicted positive 98.7 %" in output


def test_language_model_shows_its_outcome_behind_the_text():
    encoding = encode("We wrote a new")
    target = Target("token", (7,), (len(encoding),), " constitution", "log_prob")
    output = show(explain(encoding=encoding, target=target, scores=[1, 2, -1], prediction=None))
    assert 'new → " constitution"' in output


def test_target_inside_the_text_is_marked_and_the_rest_unseen():
    encoding = encode("The capital of France is Paris today")
    explanation = explain(encoding=encoding, target=Target("token", (5,), (5,), "Paris", "log_prob"), scores=[1] * 4)
    kinds = {piece.text.strip(): piece.kind for piece in flow(explanation)[0].pieces if not piece.units}
    assert kinds["Paris"] == "target" and kinds["today"] == "unseen" and kinds["is"] == "plain"
    assert "‹Paris›" in show(explanation)


def test_continuation_goes_on_behind_its_text():
    encoding = encode("Le chat dort", "", "The cat sleeps", names=("source", "prefix", "continuation"))
    explanation = explain(encoding=encoding, target=Target("text", (3, 4, 5), (3, 4, 5), "The cat sleeps", "log_prob"))
    assert [p.name for p in flow(explanation)] == ["source"]
    assert '→ "The cat sleeps"' in show(explanation)


def test_special_units_stand_where_their_token_stands():
    explanation = explain(encoding=encode("Guten Tag", "Hello", names=("source", "prefix"), specials=True))
    passages = flow(explanation)
    assert [passage.pieces[-1].kind for passage in passages] == ["special", "special"]
    assert "Tag </s>" in bare(coloured(explanation))


def test_tokens_that_share_a_character_share_a_piece():
    encoding = encode(
        "ok 🎉",
        ids=[0, 1, 2],
        tokens=("ok", "🎉", "🎉"),
        segment=[0, 0, 0],
        start=[0, 3, 3],
        end=[2, 4, 4],
        positions=[0, 1, 2],
        fixed=[False] * 3,
    )
    pieces = flow(explain(encoding=encoding, level="token"))[0].pieces
    assert [(piece.text, piece.units) for piece in pieces] == [("ok", (0,)), (" ", ()), ("🎉", (1, 2))]


def test_what_was_cut_off_is_said():
    encoding = encode(
        "one two three four",
        truncated=2,
        ids=[0, 1],
        tokens=("one", "two"),
        segment=[0, 0],
        start=[0, 4],
        end=[3, 7],
        positions=[0, 1],
        fixed=[False] * 2,
    )
    output = show(explain(encoding=encoding))
    assert "2 tokens were cut off" in output and "one [two] {three four}" in output


def test_many_are_divided_and_methods_compared():
    first, second = CASES["plain"](), explain(MOVIE, scores=np.arange(12) - 6, method="attention")
    output = show([first, second, CASES["one"]()], many=True)
    assert "─" * 20 in output and re.search(r"unit\s+occlusion\s+attention", output)
    assert re.search(r"dull\s+-1.500\s+\+4.000", output)


def test_bars_are_true_in_any_room():
    long = "Donaudampfschifffahrtsgesellschaftskapitaen"
    for width in (30, 60, 80, 100):
        bars = re.findall(r"█+", show(explain(f"{long} {long} x", scores=[4, -2, 0]), width=width))
        assert len(bars) == 2 and len(bars[0]) == 2 * len(bars[1])


def test_narrow_terminals_and_poor_streams():
    for width in (20, 40):
        assert all(len(line) <= width for line in show(CASES["plain"](), width=width).splitlines())
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    render(CASES["plain"](), Console(file=stream, width=80, _environ={}))
    stream.flush()


def test_scale_is_readable_everywhere():
    for paper, hues, weight in product(PAPERS.values(), (scale.SCORES, scale.DIFFERENCES), np.linspace(-1, 1, 201)):
        if colour := background(float(weight), paper, hues):
            assert contrast(ink(colour), colour) >= 4.5
    assert contrast(MORE, LESS) >= 2  # a light green and a dark red
    assert background(SILENT / 2, PAPERS["light"]) is None and background(1, PAPERS["dark"]) == FOR
    assert weights(np.zeros(3)).tolist() == [0, 0, 0] and weights(np.array([1, -4.0])).tolist() == [0.25, -1]
    assert [paper_of(s) for s in ("15;0", "0;15", "0;default;15", "", "x")] == ["dark", "light", "light", None, None]


def test_page_has_the_same_scale():
    script = (files("raison") / "page" / "scale.js").read_text("utf-8")
    names = "FOR|AGAINST|MORE|LESS|INKS|SILENT"
    found = {name: json.loads(value) for name, value in re.findall(rf"const ({names}) = (.*);", script)}
    colours = {"FOR": FOR, "AGAINST": AGAINST, "MORE": MORE, "LESS": LESS}
    expected = {name: list(colour) for name, colour in colours.items()}
    assert found == {**expected, "INKS": [list(i) for i in INKS], "SILENT": SILENT}
    for name, paper in PAPERS.items():
        assert f"{name}: {list(paper)}" in script
        assert f"rgb({' '.join(map(str, paper))})" in (files("raison") / "page" / "page.css").read_text("utf-8")


class Reader(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.data, self.inside = [], "", False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside = dict(attributes).get("id") == "data"

    def handle_data(self, data):
        self.data += data if self.inside else ""

    def handle_endtag(self, tag):
        self.inside = False


def test_page_is_one_safe_file_with_the_whole_record(explanation):
    page = to_html(explanation, title="<b>&")
    assert "</script><b>" not in page and "<!--" not in page.partition("-->")[0].replace("<!doctype", "")
    # the name of SVG is an address that nobody visits
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg\")|\ssrc=|\shref=|\x1b", page)
    read = Reader(page)
    assert {tag for tag, _ in read.tags} == {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "noscript",
        "script",
    }
    assert page.count("<script") == page.count("</script") == 2 and "<title>&lt;b&gt;&amp;</title>" in page
    assert [Explanation.from_dict(data) for data in json.loads(read.data)["explanations"]] == [explanation]


def test_page_data_is_json_whatever_the_diagnostics():
    text = json_in_script({"a": float("nan"), "b": [float("inf")], "c": "\ud800</script>\u2028"})
    assert json.loads(text) == {"a": "nan", "b": ["inf"], "c": "\ud800</script>\u2028"}
    assert text.isascii() and "<" not in text


def test_page_modules_only_import_those_before_them():
    page, names = files("raison") / "page", []
    # the others belong to `raison serve` alone
    assert {*MODULES, "page.css", "index.html", "app.js", "app.css"} <= {module.name for module in page.iterdir()}
    for place, module in enumerate(MODULES):
        source = (page / module).read_text("utf-8")
        assert "innerHTML" not in source and "</" not in source
        assert "http" not in source.replace('"http://www.w3.org/2000/svg"', "")
        assert set(re.findall(r'from "./(.*)"', source)) <= set(MODULES[:place])
        names += re.findall(r"^(?:export )?(?:const|let|function) (\w+)", source, re.MULTILINE)
        lists = re.findall(r"^(?:export )?const \[(.*?)\] =", source, re.MULTILINE)
        names += [name for found in lists for name in re.split(r",\s*", found)]
    assert len(names) > 60 and len(names) == len(set(names))  # one script, one scope


def test_a_browser_draws_the_page(tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium here: the page is checked as text only")
    path = tmp_path / "page.html"
    cases = [case() for case in CASES.values()]
    movies = [case for case in cases if case.encoding.texts == (MOVIE,)]
    others = [case for case in cases if case.encoding.texts != (MOVIE,)]
    # no two neighbours explain the same: those would be compared (test_show_compare.py)
    path.write_text(to_html([case for pair in zip(movies, others, strict=True) for case in pair]), "utf-8")
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
        "--disable-sync --no-first-run --virtual-time-budget=4000 --dump-dom"
    )
    run = subprocess.run(
        [browser, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    dom = run.stdout
    assert dom.count('<article class="raison"') == len(CASES)
    assert "great: +2.5, for, rank 1 of 12, selected as number 1" in dom and "hi</b>" not in dom.partition("<script")[0]
    assert re.search(r'aria-label="👩‍👩‍👧: [^"]*"[^>]*>👩‍👩‍👧<', dom)  # offsets hold beyond the 16-bit characters
    colour = background(0.5, PAPERS["light"])
    assert re.search(rf"--light: ?rgb\({' '.join(map(str, colour))}\)[^>]*>moving<", dom)
