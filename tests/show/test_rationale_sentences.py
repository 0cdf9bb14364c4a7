"""What a certificate says in words."""

from __future__ import annotations

from raison.show import rationale_sentences as proof
from tests.helpers.rationales import (
    court_rationale,
)


def test_certificates_are_told_in_words():
    def said(**claims):
        return proof.certificate_in_words(court_rationale(**claims))

    assert said(optimal=True, irreducible=False)[1:] == [
        "something may be spared",
        "proved: none is smaller",
    ]
    assert said(irreducible=None, lower_bound=0) == [
        "sufficient (checked anew)",
        "not proved smallest",
    ]
    assert said(sufficient=False) == ["not sufficient"]
    assert said(rule="penalty(weight=0.1)") == [
        "of low cost (no threshold)",
        "nothing can be spared",
        "not proved to cost least",
    ]
    assert proof.rationale_warnings(court_rationale()) == []
