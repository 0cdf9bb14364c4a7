"""The page in a real browser: every view, on real models, wide and narrow."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

import raison
from raison.runs.driver import run
from raison.runs.run_spec import RunSpec
from raison.web.runs import RunFolders
from tests.helpers.page import (
    BREAKS,
    NARROW,
    REVIEW,
    STORY,
    WIDE,
    WIDTHS,
    at_home,
    axe,
    choose,
    looks_as_before,
    whole,
)
from tests.helpers.real_models import load_or_skip
from tests.helpers.serving import served

playwright = pytest.importorskip("playwright.sync_api")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_scores_and_trust(address, opening, width):
    page = at_home(opening(width), address)
    page.fill("textarea[data-name=text]", REVIEW)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("article.raison")
    expected = raison.explain(raison.load("sentiment"), REVIEW)
    labels = page.eval_on_selector_all(
        "article .unit", "all => all.map((each) => each.getAttribute('aria-label'))"
    )
    assert len(labels) == len(expected.units)
    told = {
        label.split(":")[0]: float(label.split(": ")[1].split(",")[0].replace("−", "-"))
        for label in labels
    }
    for name, score in zip(expected.units.names, expected.scores, strict=True):
        if expected.units.names.count(name) == 1:
            assert told[name] == pytest.approx(score, rel=1e-5)
    page.hover("article .unit >> text=wonderful")
    assert "wonderful" in page.inner_text("article .tip")
    page.click("text=Can I trust this?")
    page.wait_for_selector(".trust .curve")
    assert "order" in page.inner_text(".trust .statement")
    assert page.locator(".trust figure").count() == 2
    whole(page)
    looks_as_before(page, "trust")
    for rule in BREAKS:
        page.evaluate("(rule) => document.styleSheets[0].insertRule(rule, 0)", rule)
        with pytest.raises(AssertionError):
            looks_as_before(page, "trust")
        page.evaluate("() => document.styleSheets[0].deleteRule(0)")
    axe(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_several_methods_and_their_agreement(address, opening, width):
    page = at_home(opening(width, color_scheme="dark"), address)
    page.select_option(".chooser select", "gradient_norm")
    page.select_option(".chooser select", "lime")
    page.locator(".chip").nth(2).locator("summary").click()
    page.locator(".chip").nth(2).locator("label", has_text="samples").locator("input").fill("50")
    page.keyboard.press("Tab")
    assert page.locator(".chip .code").nth(2).inner_text() == "lime(samples=50)"
    page.click("button.go")
    page.wait_for_selector("article.compare")
    assert page.locator("article.compare .row").count() == 3
    assert page.locator(".accord td[data-pair]").count() >= 3
    whole(page)
    looks_as_before(page, "compare")
    axe(page)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_rationale_step_by_step_and_what_if(address, opening, width):
    page = at_home(opening(width), address)
    choose(page, "rationale", "stories15m", STORY)
    page.select_option("[aria-label=search]", "greedy")
    page.click("button.choice >> text=doll")
    page.click("button.go")
    page.wait_for_selector(".stepper")
    slider = page.locator(".stepper input")
    last = int(slider.get_attribute("max"))
    kept = page.locator("article > .passages .kept").count()
    assert kept == last > 1 and "enough" in page.inner_text(".stepper output")
    slider.focus()
    page.keyboard.press("Home")
    assert page.locator("article > .passages .kept").count() == 0
    page.keyboard.press("ArrowRight")
    assert page.locator(
        "article > .passages .kept"
    ).count() == 1 and "step 1 of" in page.inner_text(".stepper output")
    page.keyboard.press("End")
    assert "sufficient" in page.inner_text(".verdict")
    page.check(".whatif input")
    page.click("article > .passages .unit >> text=play")
    page.wait_for_selector(".whatif strong")
    assert "→" in page.inner_text(".whatif strong") and page.locator(".gone").count() == 1
    page.click("text=Put everything back")
    assert page.locator(".gone").count() == 0
    whole(page)
    looks_as_before(page, "rationale")
    axe(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_token_as_a_matrix(address, opening, width):
    page = at_home(opening(width), address)
    choose(page, "rationale", "stories15m", STORY)
    page.click("text=every token")
    page.click("button.go")
    page.wait_for_selector(".sheet .cells")
    rows = page.locator(".cells tbody tr")
    assert rows.count() == 19
    rows.nth(7).locator("button").click()
    assert page.locator(".cells .current button").inner_text().startswith("little")
    assert page.locator(".above .target").inner_text().strip() == "little"
    page.keyboard.press("ArrowDown")
    assert page.locator(".above .target").inner_text().strip() == "girl"
    whole(page)
    looks_as_before(page, "matrix")
    axe(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_heads_can_be_switched_off(address, opening, width):
    page = at_home(opening(width), address)
    choose(page, "heads", "sentiment", REVIEW)
    page.click("button.go")
    page.wait_for_selector(".heads")
    assert page.locator(".heads button").count() == 72 and "EWT" in page.inner_text(".headmap")
    assert page.locator(".heads button", has_text="P").count() > 0
    page.click("[data-head='3.0']")
    page.wait_for_selector("article.compare")
    assert page.locator("[data-head='3.0']").get_attribute("aria-pressed") == "true"
    assert "With this head off" in page.inner_text(".statement")
    before, after = (
        float(part) for part in page.inner_text(".box > .statement").split(": ")[1].split(" → ")
    )
    assert before != after
    whole(page)
    looks_as_before(page, "heads")
    axe(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_an_answer_over_passages(address, opening, width):
    page = at_home(opening(width), address)
    page.click("#tab-answer")
    page.fill("[data-name=question]", "Who lived in the forest?")
    page.fill("[data-passage='0']", "A bear lived in the forest.")
    page.click("text=Another passage")
    page.fill("[data-passage='1']", "The sea is blue.")
    page.click("button.go")
    page.wait_for_selector("article .asked")
    assert page.locator("article .passage").count() == 2 and "passage 1" in page.inner_text(
        "article"
    )
    whole(page)
    axe(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_runs(address, opening, width):
    page = at_home(opening(width), address)
    page.click("#tab-runs")
    page.wait_for_selector(".runs .link")
    assert page.locator(".runs tbody tr").count() == 8
    page.select_option("[aria-label=method]", "leave_one_out")
    playwright.expect(page.locator(".runs tbody tr")).to_have_count(4)
    page.select_option("[aria-label='sort by']", "comprehensiveness")
    figures = page.locator(".runs tbody tr td:nth-child(6)")
    playwright.expect(figures).to_have_text(sorted(figures.all_inner_texts(), key=float))
    page.fill("[aria-label='words in the text']", "script")
    playwright.expect(page.locator(".runs tbody tr")).to_have_count(1)
    page.click(".runs .link")
    page.wait_for_selector("article.compare")
    assert (
        "<script>window.hacked" in page.inner_text("article.compare")
        and page.evaluate("window.hacked") is None
    )
    whole(page)
    looks_as_before(page, "runs")
    axe(page)


def test_a_run_of_every_token_is_a_matrix(opening, tmp_path):
    (tmp_path / "data.jsonl").write_text(json.dumps({"text": "Once upon a time"}))
    spec = RunSpec(
        "stories15m", str(tmp_path / "data.jsonl"), ("greedy",), target="all", units="token"
    )
    run(tmp_path / "run", spec)
    with served(
        {"stories15m": load_or_skip("stories15m")}, RunFolders({"tokens": str(tmp_path / "run")})
    ) as client:
        page = at_home(opening(WIDE), str(client.base_url))
        page.click("#tab-runs")
        page.click(".runs .link")
        page.wait_for_selector(".matrix")
        with page.expect_download() as saved:
            page.click(".share-bar >> text=HTML")
        assert "matrix" in Path(saved.value.path()).read_text(encoding="utf-8")
        code = base64.urlsafe_b64encode(
            json.dumps({"view": "toString", "text": "Once"}).encode()
        ).decode()
        page.goto(f"{client.base_url}/#{code.rstrip('=')}")
        page.wait_for_selector("#tab-scores[aria-selected=true]")
