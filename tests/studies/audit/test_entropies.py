"""Which texts are measured facet by facet."""

from __future__ import annotations

from raison.studies.audit.entropies import texts_for_entropy_facets


def test_facets_are_of_texts_that_do_not_take_minutes():
    assert texts_for_entropy_facets([*range(10, 50)]) == list(range(10, 18))  # not the shortest
    assert texts_for_entropy_facets([200, 30, 200, 64, 65]) == [1, 3] and texts_for_entropy_facets(
        [202, 190, 202]
    ) == [1]
    assert (
        texts_for_entropy_facets([20] * 10 + [200] * 90) == list(range(2, 10))
        and texts_for_entropy_facets([]) == []
    )
