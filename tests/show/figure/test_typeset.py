"""Long names in figures."""

from __future__ import annotations


def test_a_long_name_is_broken_in_time_that_grows_with_it():
    """Every line of a long word measured all that was left of it."""
    from raison.show.figure.typeset import FARTHEST, SheetWord, TypesetSheet

    measured = []

    class Counting(TypesetSheet):
        def __init__(self):
            self.ruler = lambda text, size, weight: measured.append(len(text)) or 0.1 * len(text)

    parts = list(Counting().split_to_fit(SheetWord("x" * 20_000, "plain"), 10, 5.0))
    assert "".join(part.text for part in parts) == "x" * 20_000 and all(
        len(part.text) <= 50 for part in parts
    )
    assert max(measured) <= FARTHEST and sum(measured) < 20_000 * 12
