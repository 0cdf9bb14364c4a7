"""Pages in a real browser without a window."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

__all__ = ["BROWSER", "browse", "browsing"]

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
browsing = pytest.mark.skipif(
    BROWSER is None, reason="no chromium here: the page is checked as text only"
)


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
        [
            BROWSER,
            *flags.split(),
            f"--user-data-dir={folder / 'profile'}",
            (folder / "frame.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return json.loads(
        html.unescape(re.search(r'<pre id="report">(.*?)</pre>', run.stdout, re.DOTALL)[1])
    )
