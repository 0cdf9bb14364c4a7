"""Names that can be typed are listed."""

from __future__ import annotations

import json

import pytest

from tests.helpers.command_line import one_sentence, raison


@pytest.mark.parametrize("what", ["methods", "models", "metrics", "datasets"])
def test_ls(what):
    result = raison("ls", what)
    assert result.returncode == 0 and result.stdout.strip()
    assert json.loads(raison("ls", what, "--json").stdout) is not None


def test_list_of_something_unknown():
    assert "Did you mean 'methods'" in one_sentence(raison("ls", "method"), 2)
