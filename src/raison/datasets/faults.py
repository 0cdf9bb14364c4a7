"""Faults of an example that could be read: in its id, its label, its human rationale."""

from __future__ import annotations

from collections.abc import Mapping

from raison.core.records import Example

__all__ = ["SEGMENTS", "gold_fault", "id_fault", "label_fault"]

# names of the texts of an example, as the encodings of a model of that task call them
SEGMENTS: dict[str, tuple[str, ...]] = {
    "classification": ("text",),
    "pair": ("first", "second"),
    "tagging": ("text",),
    "qa": ("question", "context"),
    "causal": ("text",),
    "seq2seq": ("source",),
    "text": ("text",),
}


def id_fault(id: str, lines: Mapping[str, int]) -> str:
    """What is wrong with an id; `lines` are those of the ids before it. Nothing, mostly."""
    if not id:
        return "it has no id"
    if id in lines:
        return f"the id {id!r} stands in line {lines[id]} already"
    return ""


def label_fault(
    task: str,
    labels: tuple[str, ...],
    label: object,
    *,
    needed: bool,
) -> str:
    """What is wrong with the label of an example of a data set with these labels; nothing, mostly."""
    if label is None:
        return "it has no label" if needed else ""
    if not labels:
        return ""

    names = label if isinstance(label, (list, tuple)) and task == "tagging" else (label,)
    for name in names:
        if name not in labels:
            known = ", ".join(labels)
            return f"the label {name!r} is none of {known}"
    return ""


def gold_fault(task: str, example: Example) -> str:
    """What is wrong with a gold span: each must lie in a text of the example and mark something in it."""
    names = SEGMENTS[task]
    texts = dict(zip(names, (example.text, example.pair), strict=False))

    for span in example.gold:
        text = texts.get(span.segment or names[0])
        if text is None:
            known = ", ".join(names)
            return f"a gold span is about {span.segment!r}, but the texts are {known}"

        place = f"the gold span {span.start}..{span.end}"
        if span.end > len(text):
            return f"{place} goes beyond the text, which has {len(text)} characters"
        words = text[span.start : span.end]
        if not words.strip():
            return f"{place} marks nothing but white space"
    return ""
