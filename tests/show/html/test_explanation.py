"""The page of explanations: one safe file, drawn by a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from raison.core.records import Explanation
from raison.show import to_html
from raison.show.colour_scale import PAPER_COLOURS, background_colour
from raison.show.html.explanation import MODULES, json_in_script
from tests.helpers.rationales import (
    grounded_rationale,
    rationales_of_tokens,
)
from tests.helpers.scored_explanations import (
    CASES,
    MOVIE,
    NASTY,
    explained_by_methods,
    scored,
)


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
    assert "</script><b>" not in page and "<!--" not in page.partition("-->")[0].replace(
        "<!doctype", ""
    )
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
    assert (
        page.count("<script") == page.count("</script") == 2
        and "<title>&lt;b&gt;&amp;</title>" in page
    )
    assert [Explanation.from_dict(data) for data in json.loads(read.data)["explanations"]] == [
        explanation
    ]


def test_page_data_is_json_whatever_the_diagnostics():
    text = json_in_script({"a": float("nan"), "b": [float("inf")], "c": "\ud800</script>\u2028"})
    assert json.loads(text) == {"a": "nan", "b": ["inf"], "c": "\ud800</script>\u2028"}
    assert text.isascii() and "<" not in text


def test_page_modules_only_import_those_before_them():
    page, names = files("raison") / "page", []
    # the others belong to `raison serve` alone
    assert {*MODULES, "page.css", "index.html", "app.js", "app.css"} <= {
        module.name for module in page.iterdir()
    }
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
    browser = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if browser is None:
        pytest.skip("no chromium here: the page is checked as text only")
    path = tmp_path / "page.html"
    cases = [case() for case in CASES.values()]
    movies = [case for case in cases if case.encoding.texts == (MOVIE,)]
    others = [case for case in cases if case.encoding.texts != (MOVIE,)]
    # no two neighbours explain the same: those would be compared (test_show_compare.py)
    path.write_text(
        to_html([case for pair in zip(movies, others, strict=True) for case in pair]), "utf-8"
    )
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
    assert (
        "great: +2.5, for, rank 1 of 12, selected as number 1" in dom
        and "hi</b>" not in dom.partition("<script")[0]
    )
    assert re.search(
        r'aria-label="👩‍👩‍👧: [^"]*"[^>]*>👩‍👩‍👧<', dom
    )  # offsets hold beyond the 16-bit characters
    colour = background_colour(0.5, PAPER_COLOURS["light"])
    assert re.search(rf"--light: ?rgb\({' '.join(map(str, colour))}\)[^>]*>moving<", dom)


def test_page_of_methods_is_safe_and_holds_every_record():
    found = explained_by_methods(
        *np.random.default_rng(0).normal(size=(3, len(scored(NASTY).scores))), text=NASTY
    )
    page = to_html(found)
    assert (
        page.count("<script") == page.count("</script") == 2
        and "import {" not in page
        and "\x1b" not in page
    )
    policy = re.search(r'content="(default-src[^"]*)"', page)[1]
    assert "unsafe" not in policy and policy.count("sha256-") == 2


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["explanations"]


def test_page_is_safe_and_holds_a_shared_text_once():
    page = to_html([grounded_rationale(), *rationales_of_tokens("a </script><b>x</b> \x1b[31m c")])
    assert page.count("<script") == page.count("</script") == 2 and "\x1b" not in page
    data = data_of(page)
    assert [type(each["encoding"]).__name__ for each in data][:3] == ["dict", "dict", "int"]
    assert all(each["encoding"] == 1 for each in data[2:])
    back = [Explanation.from_dict({**each, "encoding": data[1]["encoding"]}) for each in data[1:]]
    assert back == rationales_of_tokens("a </script><b>x</b> \x1b[31m c")
