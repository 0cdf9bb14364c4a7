"""Results in a notebook."""

from __future__ import annotations

import pytest

from raison.show.notebook import show_in_notebooks


class Shell:
    """As much of IPython as a formatter meets."""

    class Formatter:
        def __init__(self):
            self.by_name, self.by_type = {}, {}

        def for_type_by_name(self, module, name, made):
            self.by_name[module, name] = made

        def for_type(self, kind, made):
            self.by_type[kind] = made

    def __init__(self):
        self.display_formatter = self
        self.formatters = {"text/html": Shell.Formatter()}


def test_a_notebook_shows_results(explanations, evaluation):
    shell = Shell()
    show_in_notebooks(shell)
    made = shell.formatters["text/html"]
    for shown in (
        made.by_name["raison.core.records", "Explanation"](explanations[0]),
        made.by_name["raison.core.evaluation", "Evaluation"](evaluation),
        made.by_type[list](explanations),
    ):
        assert (
            shown.startswith('<iframe sandbox="allow-scripts allow-downloads"')
            and "allow-same-origin" not in shown
        )
        assert (
            ("<script" not in shown and "&lt;script" in shown)
            or "report" in shown
            or "&lt;main" in shown
        )
    assert made.by_type[list]([1, 2]) is None and made.by_type[list]([]) is None


def test_ipython_shows_results(explanations):
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        show_in_notebooks(shell)
        data, _ = shell.display_formatter.format(explanations[0])
        assert data["text/html"].startswith("<iframe") and "text/plain" in data
        assert "text/html" not in shell.display_formatter.format([1, 2])[0]
    finally:
        InteractiveShell.clear_instance()
