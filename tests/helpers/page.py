"""What tests of the page share: opening it, choosing, and looking at its layout."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.paths import ROOT

LAYOUT = ROOT / "tests" / "web" / "page" / "layout"

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

WIDTHS = [
    WIDE,
    pytest.param(NARROW, marks=pytest.mark.full),
]  # both, for all views, in `make test-full`


def at_home(page, address: str):
    page.goto(address)
    page.wait_for_selector(".choice")
    return page


def choose(page, view: str, model: str, text: str) -> None:
    page.click(f"#tab-{view}")
    page.select_option("select[data-name=model]", model)
    page.fill("textarea[data-name=text]", text)
    from playwright.sync_api import expect

    expect(page.locator(".choice").first).to_contain_text("predicted")


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
    blurred = [
        np.stack([each[max(0, k - 2) : k + 3].mean(0) for k in range(high)])
        for each in (first, second)
    ]
    assert np.abs(blurred[0] - blurred[1]).mean() < 6, (
        f"{name} looks different: compare it, or write it anew"
    )


def axe(page) -> None:
    """No serious violation of accessibility, by axe-core."""
    source = Path(sys.prefix) / "axe.min.js"
    if not source.is_file():
        pytest.skip("no axe-core here: tests/browser.sh gets it from npm")
    page.evaluate(source.read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    bad = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert not bad, [
        (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["failureSummary"])
        for each in bad
    ]
