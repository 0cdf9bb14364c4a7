"""Explanations for people's eyes: in the terminal, and as one HTML file that opens without a network.

Everything here reads the `Explanation` record and nothing else: no model is needed to look at a result.
"""

from __future__ import annotations

from raison.show.html import to_html
from raison.show.terminal import render, render_many

__all__ = ["render", "render_many", "to_html"]
