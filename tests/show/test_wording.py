"""What is said about an explanation."""

from __future__ import annotations

from raison.show.wording import telling_diagnostics
from tests.helpers.rationales import (
    court_rationale,
)
from tests.helpers.scored_explanations import (
    four_methods,
)
from tests.helpers.terminal import show


def test_telling_diagnostics_are_shown_in_one_line():
    gaps = {"completeness_gap": {"absolute": 0.25, "relative": 0.01234}, "evaluations": 2048, "sampling_error": 0.5}
    extra = {"value": 3.0, "gaping": 1, "error": float("nan"), "converged": True}
    told = four_methods(diagnostics={**gaps, **extra}, notes=("Raise the steps.",))[0]
    assert telling_diagnostics(told) == [
        "completeness gap absolute 0.25",
        "completeness gap relative 0.0123",
        "sampling error 0.5",
        "evaluations 2048",
    ]
    output = show([told, *four_methods()[1:]])
    assert output.count("completeness gap absolute 0.25 · completeness gap") == 1 and "Raise the steps." in output
    assert telling_diagnostics(four_methods()[0]) == [] and telling_diagnostics(court_rationale()) == []
    assert telling_diagnostics(four_methods(diagnostics={"evaluations": 9})[0]) == []
