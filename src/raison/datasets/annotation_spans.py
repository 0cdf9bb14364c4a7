"""Spans of annotations: what people have marked on a text, one person or the vote of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from raison.core.errors import InputError
from raison.core.records import Span
from raison.datasets.annotations import Annotation, NumberMeaning, TokenizedText
from raison.datasets.character_spans import runs_of_true_marks, spans_of_marks
from raison.datasets.mark_placement import (
    fitting_mark_span,
    spans_of_numbers,
    spans_of_runs,
    spans_of_words,
)

__all__ = ["Texts", "spans_of_annotations", "text_of_annotation_segment"]

Texts = Mapping[str, TokenizedText | None]  # of an example, by the names of its segments


def spans_of_annotations(
    annotations: Sequence[Annotation],
    texts: Texts,
    usual: str,
    *,
    meaning: NumberMeaning,
    vote: str,
) -> tuple[Span, ...]:
    """The spans of a rationale; those of several people are put to the vote, each text by itself.

    `usual` names the text that marks are about which name none.
    """
    people: list[tuple[Span, ...]] = []
    for annotation in annotations:
        people.append(
            spans_of_annotation(
                annotation,
                texts,
                usual=usual,
                meaning=meaning,
            )
        )
    if not people:
        return ()
    if len(people) == 1:
        return people[0]

    least = votes_needed_for_mark(vote, len(people))
    by_tokens = are_tokens_marked(annotations, meaning)
    chosen: list[Span] = []
    for segment, text in texts.items():
        in_text = [spans_in_segment(spans, segment, usual) for spans in people]
        if text is not None and any(in_text):
            chosen += spans_with_votes(
                text,
                in_text,
                least,
                segment=segment,
                by_tokens=by_tokens,
            )
    return tuple(chosen)


def votes_needed_for_mark(vote: str, people: int) -> int:
    """How many must have marked something."""
    if vote == "majority":
        return people // 2 + 1
    return people if vote == "all" else 1


def spans_in_segment(spans: Sequence[Span], segment: str, usual: str) -> list[Span]:
    """The spans about one of the texts."""
    return [span for span in spans if (span.segment or usual) == segment]


def are_tokens_marked(annotations: Sequence[Annotation], meaning: NumberMeaning) -> bool:
    """Whether everybody has marked tokens, so that these are voted on and not characters."""
    for annotation in annotations:
        if annotation.words:
            return False
        if annotation.spans and meaning.spans != "tokens":
            return False
        if annotation.numbers and meaning.numbers == "characters":
            return False
    return True


def spans_with_votes(
    text: TokenizedText,
    people: Sequence[Sequence[Span]],
    least: int,
    *,
    segment: str,
    by_tokens: bool,
) -> list[Span]:
    """What at least so many have marked; neighbouring tokens make one span."""
    votes = [0] * len(text.text)
    for spans in people:
        marked: set[int] = set()
        for span in spans:
            marked.update(range(span.start, span.end))
        for index in marked:
            votes[index] += 1

    if by_tokens:
        marks = [votes[start] >= least for start, _ in text.tokens]
        return list(spans_of_marks(text.tokens, marks, segment))
    return spans_of_runs(text.text, runs_of_true_marks(vote >= least for vote in votes), segment)


# -- one person --------------------------------------------------------------------------------------------------


def spans_of_annotation(
    annotation: Annotation,
    texts: Texts,
    *,
    usual: str,
    meaning: NumberMeaning,
) -> tuple[Span, ...]:
    """The spans of one person, in the order in which they are written."""
    if annotation.is_empty:
        return ()
    if annotation.numbers:
        text = text_of_annotation_segment(texts, usual)
        return spans_of_numbers(
            text,
            annotation.numbers,
            unit=meaning.numbers,
            segment=usual,
        )

    spans = []
    for written in annotation.spans:
        segment = written.segment or usual
        unit = written.unit or meaning.spans
        text = text_of_annotation_segment(texts, segment)
        spans.append(fitting_mark_span(text, written, unit=unit, segment=segment))

    text = text_of_annotation_segment(texts, usual)
    spans += spans_of_words(text.text, annotation.words, usual)
    return tuple(spans)


def text_of_annotation_segment(texts: Texts, segment: str) -> TokenizedText:
    """The text of a name, which must be there."""
    text = texts.get(segment)
    if text is None:
        known = ", ".join(texts)
        raise InputError(f"the gold is about {segment!r}, but the texts are {known}.")
    return text
