"""The page in a real browser: every view, on real models, wide and narrow."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import raison
from raison.runs.driver import run
from raison.runs.spec import RunSpec
from raison.show import to_html
from raison.web.runs import RunFolders
from tests.helpers.real_models import load_or_skip
from tests.helpers.serving import served

playwright = pytest.importorskip("playwright.sync_api")

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here: tests/browser.sh installs it")

LAYOUT = Path(__file__).parent / "layout"
REVIEW = "The pacing is dull, but the ending is wonderful."
STORY = "Once upon a time there was a little girl named Lily. She loved to play with her"
NASTY = "a lovely <script>window.hacked = 1</script> <img src=x onerror='window.hacked=1'> film"
WIDE, NARROW = 1280, 390
BREAKS = [  # each of which a look at the layout must notice
    ".passages .unit { display: block !important }",
    ".trust figure { display: none !important }",
    "main { margin-left: 25% !important }",
    "body * { position: static !important; display: block !important }",
]
WIDTHS = [WIDE, pytest.param(NARROW, marks=pytest.mark.full)]  # both, for all views, in `make test-full`


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    models = {name: load_or_skip(name) for name in ("sentiment", "stories15m")}
    place = tmp_path_factory.mktemp("run")
    rows = [REVIEW, NASTY, "A warm and funny film.", "It is stale, long and very dull."]
    (place / "data.jsonl").write_text("\n".join(json.dumps({"text": row}) for row in rows))
    spec = RunSpec("sentiment", str(place / "data.jsonl"), ("leave_one_out", "gradient_norm"), ("comprehensiveness",))
    run(place / "reviews<b>", spec)
    with served(models, RunFolders({"reviews<b>": str(place / "reviews<b>")})) as client:
        yield str(client.base_url)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as play:
        found = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opening(browser):
    """Opens pages; at the end none of them may have complained."""
    complaints: list[str] = []
    contexts = []

    def complain(text: str) -> None:
        if "the server responded with a status of 400" not in text:  # a sentence that the page shows
            complaints.append(text)

    def opened_at(width: int, **more):
        context = browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce", **more)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complain(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield opened_at
    for context in contexts:
        context.close()
    assert complaints == []


def at_home(page, address: str):
    page.goto(address)
    page.wait_for_selector(".choice")
    return page


def choose(page, view: str, model: str, text: str) -> None:
    page.click(f"#tab-{view}")
    page.select_option("select[data-name=model]", model)
    page.fill("textarea[data-name=text]", text)
    playwright.expect(page.locator(".choice").first).to_contain_text("predicted")


def whole(page) -> None:
    """Nothing sticks out of the window sideways."""
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def looks_as_before(page, name: str) -> None:
    """A small grey copy of the page is like the committed one: what has moved or fallen apart shows even there.

    RAISON_LAYOUT=write writes the copies anew.
    """
    from PIL import Image

    page.mouse.move(0, 0)
    page.evaluate("document.activeElement?.blur()")
    shot = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("L")
    width = page.viewport_size["width"]
    small = shot.resize((width // 10, max(1, shot.height // 10)), Image.Resampling.BOX)
    path = LAYOUT / f"{name}-{width}.png"
    if os.environ.get("RAISON_LAYOUT") == "write":
        small.save(path, optimize=True)
        return
    with Image.open(path) as stored:
        known = stored.convert("L")
    assert abs(known.height - small.height) <= 0.06 * known.height + 2, (known.size, small.size)
    high = min(known.height, small.height)
    first, second = (np.asarray(each, dtype=np.float64)[:high] for each in (known, small))
    # blurred over a few rows, since another font moves lines a little
    blurred = [np.stack([each[max(0, k - 2) : k + 3].mean(0) for k in range(high)]) for each in (first, second)]
    assert np.abs(blurred[0] - blurred[1]).mean() < 6, f"{name} looks different: compare it, or write it anew"


def axe(page) -> None:
    """No serious violation of accessibility, by axe-core."""
    source = Path(sys.prefix) / "axe.min.js"
    if not source.is_file():
        pytest.skip("no axe-core here: tests/browser.sh gets it from npm")
    page.evaluate(source.read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    bad = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert not bad, [(each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["failureSummary"]) for each in bad]


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_scores_and_trust(address, opening, width):
    page = at_home(opening(width), address)
    page.fill("textarea[data-name=text]", REVIEW)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("article.raison")
    expected = raison.explain(raison.load("sentiment"), REVIEW)
    labels = page.eval_on_selector_all("article .unit", "all => all.map((each) => each.getAttribute('aria-label'))")
    assert len(labels) == len(expected.units)
    told = {label.split(":")[0]: float(label.split(": ")[1].split(",")[0].replace("−", "-")) for label in labels}
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
    assert page.locator("article > .passages .kept").count() == 1 and "step 1 of" in page.inner_text(".stepper output")
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
    before, after = (float(part) for part in page.inner_text(".box > .statement").split(": ")[1].split(" → "))
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
    assert page.locator("article .passage").count() == 2 and "passage 1" in page.inner_text("article")
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
    assert "<script>window.hacked" in page.inner_text("article.compare") and page.evaluate("window.hacked") is None
    whole(page)
    looks_as_before(page, "runs")
    axe(page)


def test_a_run_of_every_token_is_a_matrix(opening, tmp_path):
    (tmp_path / "data.jsonl").write_text(json.dumps({"text": "Once upon a time"}))
    spec = RunSpec("stories15m", str(tmp_path / "data.jsonl"), ("greedy",), target="all", units="token")
    run(tmp_path / "run", spec)
    with served({"stories15m": load_or_skip("stories15m")}, RunFolders({"tokens": str(tmp_path / "run")})) as client:
        page = at_home(opening(WIDE), str(client.base_url))
        page.click("#tab-runs")
        page.click(".runs .link")
        page.wait_for_selector(".matrix")
        with page.expect_download() as saved:
            page.click(".share-bar >> text=HTML")
        assert "matrix" in Path(saved.value.path()).read_text(encoding="utf-8")
        code = base64.urlsafe_b64encode(json.dumps({"view": "toString", "text": "Once"}).encode()).decode()
        page.goto(f"{client.base_url}/#{code.rstrip('=')}")
        page.wait_for_selector("#tab-scores[aria-selected=true]")


def test_script_is_shown_as_text(address, opening):
    page = at_home(opening(WIDE), address)
    for view, model in (("scores", "sentiment"), ("rationale", "stories15m")):
        choose(page, view, model, NASTY)
        page.click("button.go")
        page.wait_for_selector("article.raison")
        assert "<script>window.hacked" in page.inner_text("article")
    page.goto(f"{address}/#" + "x" * 50)  # a link that is none
    page.goto(f"{address}/?x={NASTY}")
    page.wait_for_selector(".choice")
    assert page.evaluate("window.hacked") is None


def test_links_files_and_python(address, opening, tmp_path):
    page = opening(WIDE, permissions=["clipboard-read", "clipboard-write"], accept_downloads=True)
    at_home(page, address)
    page.fill("textarea[data-name=text]", "A warm and funny film.")
    page.click("button.go")
    page.wait_for_selector("article.raison")
    page.click("text=Copy as Python")
    page.wait_for_selector("[data-said=copied]")
    code = page.evaluate("navigator.clipboard.readText()")
    assert "raison.explain(model, 'A warm and funny film.', 'leave_one_out'" in code
    page.click("text=Copy link")
    page.wait_for_timeout(100)
    link = page.evaluate("navigator.clipboard.readText()")
    other = opening(WIDE)
    other.goto(link)
    other.wait_for_selector("article.raison")
    read = "all => all.map((each) => each.getAttribute('aria-label'))"
    assert other.eval_on_selector_all("article .unit", read) == page.eval_on_selector_all("article .unit", read)
    for name, start in (("JSON", b"["), ("HTML", b"<!doctype"), ("SVG", b"<?xml"), ("PNG", b"\x89PNG")):
        with page.expect_download() as waiting:
            page.click(f".share-bar >> text={name}")
        path = tmp_path / f"file.{name}"
        waiting.value.save_as(path)
        assert path.read_bytes().startswith(start)


def test_long_work_shows_progress_and_can_be_cancelled(address, opening):
    page = at_home(opening(WIDE), address)
    page.fill("textarea[data-name=text]", "It is a long and dull and very stale film. " * 12)
    page.select_option(".chooser select", "shapley_sampling")
    page.click("button.go")
    page.wait_for_selector("progress")
    page.click(".cancel")
    page.wait_for_selector("text=cancelled")
    page.fill("textarea[data-name=text]", "")
    page.click("button.go")
    page.wait_for_selector("[role=alert]")
    assert "empty" in page.inner_text("[role=alert]")


def test_what_is_asked_later_is_about_what_is_shown(address, opening):
    """A text that is edited while a request runs, a link after a link, a choice that only one view has."""
    page = at_home(opening(WIDE), address)
    page.fill("textarea[data-name=text]", "A warm and funny film about a very dull town. " * 3)
    page.select_option(".chooser select", "lime")
    page.click("button.go")
    page.fill("textarea[data-name=text]", "Awful.")
    page.wait_for_selector("article.compare")
    asked = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "/api/trust" in request.url else None)
    page.click("text=Can I trust leave_one_out?")
    page.wait_for_selector(".trust")
    assert "warm and funny" in asked[0] and "Awful" not in asked[0]
    page.fill("textarea[data-name=text]", "x" * 300_000)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("[role=alert]")
    assert "characters" in page.inner_text("[role=alert]")
    state = {
        "text": "A dull film.",
        "model": "sentiment",
        "removal": "zero",
        "contrast": "negative",
        "target": "positive",
    }
    code = base64.urlsafe_b64encode(json.dumps(state).encode()).decode().rstrip("=")
    page.goto(f"{address}/#{code}")
    page.wait_for_selector("article.raison >> text=rather than")
    code = base64.urlsafe_b64encode(json.dumps({"text": "A fine film.", "model": "sentiment", "search": None}).encode())
    page.goto(f"{address}/#{code.decode().rstrip('=')}")
    page.wait_for_selector("article.raison >> text=fine")
    assert "rather than" not in page.inner_text("article.raison") and "zero" not in page.inner_text("article.raison")


def test_keyboard_alone(address, opening):
    page = at_home(opening(WIDE), address)
    page.focus("#tab-scores")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("#tab-rationale", "aria-selected") == "true"
    page.keyboard.press("ArrowLeft")
    page.focus("textarea[data-name=text]")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("article .unit")
    page.locator("article .unit").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.units") == "1" and page.locator(".tip.shown").count() == 1


def test_the_page_is_light(address, opening):
    """First paint within a second, all files within 150 kB, and hovering over 300 tokens within a frame."""
    paints, sizes = [], []
    for _ in range(3):
        page = at_home(opening(WIDE), address)
        paints.append(page.evaluate("performance.getEntriesByType('paint').at(-1).startTime"))
        files = "performance.getEntriesByType('resource').filter((e) => e.name.includes('/page/'))"
        sizes.append(page.evaluate(f"{files}.reduce((sum, e) => sum + e.decodedBodySize, 0)"))
    assert sorted(paints)[1] < 1000 and 60_000 < max(sizes) < 150_000
    page.fill("textarea[data-name=text]", "It is a long film and a very dull one . " * 30)
    page.select_option("[data-name=units]", "token") if page.is_visible("[data-name=units]") else None
    page.locator(".away").click()
    page.select_option(".chooser select", "gradient_norm")
    page.click("button.go")
    page.wait_for_selector("article .unit")
    spent = page.evaluate(
        """() => [...document.querySelectorAll("article > .passages .unit")].map((unit) => {
          const start = performance.now();
          unit.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
          return performance.now() - start;
        })"""
    )
    print(
        f"first paint {sorted(paints)[1]:.0f} ms, files {max(sizes) / 1000:.0f} kB, hover {max(spent):.2f} ms at most"
    )
    assert len(spent) >= 300 and np.quantile(spent, 0.95) < 16


@pytest.mark.parametrize("width", WIDTHS)
def test_an_exported_page_opens_from_disk_without_a_network(opening, tmp_path, width):
    model = load_or_skip("stories15m")
    review = load_or_skip("sentiment")
    texts = [
        raison.rationalize(model, STORY, "greedy", target=" doll"),
        *[raison.explain(review, REVIEW, method) for method in ("leave_one_out", "gradient_norm")],
        *raison.rationalize(model, STORY, target="all"),
    ]
    path = tmp_path / "page.html"
    path.write_text(to_html(texts), "utf-8")
    page = opening(width, offline=True)
    page.goto(path.as_uri())
    page.wait_for_selector("article.raison")
    slider = page.locator(".stepper input").first
    slider.focus()
    page.keyboard.press("Home")
    first = page.locator("article").first
    assert first.locator(":scope > .passages .kept").count() == 0
    page.keyboard.press("End")
    assert first.locator(":scope > .passages .kept").count() == int(slider.get_attribute("max")) > 1
    assert page.locator("article.compare .row").count() == 2 and page.locator(".cells tbody tr").count() == 19
    page.locator(".cells tbody tr").nth(7).locator("button").click()
    assert page.locator(".above .target").inner_text().strip() == "little"
    page.locator("article.compare .unit").first.hover()
    assert page.locator("article.compare .tip.shown").count() == 1
    whole(page)
    axe(page)
