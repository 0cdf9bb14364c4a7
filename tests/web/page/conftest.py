"""A server with real models, and a real browser."""

from __future__ import annotations

import json
import shutil

import pytest

from raison.runs.driver import run
from raison.runs.run_spec import RunSpec
from raison.web.runs import RunFolders
from tests.helpers.page import (
    NASTY,
    REVIEW,
)
from tests.helpers.real_models import load_or_skip
from tests.helpers.serving import served

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="package")
def address(browser, tmp_path_factory):
    models = {name: load_or_skip(name) for name in ("sentiment", "stories15m")}
    place = tmp_path_factory.mktemp("run")
    rows = [REVIEW, NASTY, "A warm and funny film.", "It is stale, long and very dull."]
    (place / "data.jsonl").write_text("\n".join(json.dumps({"text": row}) for row in rows))
    spec = RunSpec(
        "sentiment",
        str(place / "data.jsonl"),
        ("leave_one_out", "gradient_norm"),
        ("comprehensiveness",),
    )
    run(place / "reviews<b>", spec)
    with served(models, RunFolders({"reviews<b>": str(place / "reviews<b>")})) as client:
        yield str(client.base_url)


@pytest.fixture(scope="package")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if BROWSER is None:
        pytest.skip("no Chromium here: tests/browser.sh installs it")
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
        if (
            "the server responded with a status of 400" not in text
        ):  # a sentence that the page shows
            complaints.append(text)

    def opened_at(width: int, **more):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, reduced_motion="reduce", **more
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on(
            "console", lambda message: complain(message.text) if message.type == "error" else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield opened_at
    for context in contexts:
        context.close()
    assert complaints == []
