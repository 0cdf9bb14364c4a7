"""`raison explain` with several methods."""

from __future__ import annotations

import pytest

from tests.helpers.command_line import one_sentence, raison


def test_command_compares_methods(tmp_path):
    pytest.importorskip("matplotlib")
    from raison.testing import tiny_hf

    model, tokenizer = tiny_hf("bert", "classification", double=False)
    model.save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    page, picture = tmp_path / "a.html", tmp_path / "a.svg"
    result = raison(
        *["explain", "The film is lovely and the ending is dull.", "-m", str(tmp_path / "tiny")],
        *["-M", "leave_one_out", "-M", "gradient_norm", "-M", "random", "--difference"],
        *["--html", str(page), "--figure", str(picture)],
    )
    assert result.returncode == 0, result.stderr
    assert "agreement " in result.stdout and result.stdout.count("difference leave_one_out − ") == 2
    assert "renderComparison" in page.read_text("utf-8") and "random" in picture.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--difference"], "two methods"),
        (["--difference", "-M", "leave_one_out"], "two methods"),
        (["--difference", "-M", "leave_one_out", "-M", "random", "--json"], "--json"),
        (["--figure", "a.jpg"], ".png, .svg or .pdf"),
    ],
)
def test_options_that_do_not_go_together_get_one_sentence(arguments, words):
    assert words in one_sentence(raison("explain", "A film.", *arguments), 2)
