"""Small records by hand, and any record by chance."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from raison.core.records import Encoding, Example, Explanation, Slot, Span, Target, Units

fuzz = settings(max_examples=80, deadline=None, derandomize=True)


def encoding(size=5, **changes):
    """`[CLS] good film . [SEP]`, or as many plain tokens as wanted."""
    if size == 5:
        data = {
            "ids": [1, 10, 11, 12, 2],
            "tokens": ("[CLS]", "good", "film", ".", "[SEP]"),
            "segments": ("text",),
            "texts": ("good film.",),
            "segment": [0] * 5,
            "start": [-1, 0, 5, 9, -1],
            "end": [-1, 4, 9, 10, -1],
            "positions": range(5),
            "fixed": [True, False, False, False, True],
        }
    else:
        text = "x" * size
        data = {
            "ids": range(size),
            "tokens": tuple(text),
            "segments": ("text",),
            "texts": (text,),
            "segment": [0] * size,
            "start": range(size),
            "end": range(1, size + 1),
            "positions": range(size),
            "fixed": [False] * size,
        }
    return Encoding(**{**data, **changes})


def units(**changes):
    data = {
        "level": "word",
        "of": [-1, 0, 1, 2, -1],
        "names": ("good", "film", "."),
        "spans": ((0, 0, 4), (0, 5, 9), (0, 9, 10)),
    }
    return Units(**{**data, **changes})


def explanation(**changes):
    data = {
        "encoding": encoding(),
        "units": units(),
        "target": Target("label", (1,), text="positive"),
        "scores": [0.5, -0.25, 1e-300],
        "method": "random",
        "model": "tiny",
    }
    return Explanation(**{**data, **changes})


SMALL = {
    "Span": lambda: Span(1, 2, "pair"),
    "Slot": lambda: Slot("name", 0, 3),
    "Example": lambda: Example(
        "a text", "its pair", "7", 1, "label", (Span(0, 1),), (Slot("s", 0, 1),), {"k": [1]}
    ),
    "Encoding": lambda: encoding(types=[0] * 5, slots=(Slot("s", 0, 4),), truncated=3, id="e"),
    "Units": units,
    "Target": lambda: Target("text", (4, 5), (3, 4), "two words", "log_prob", (4, 7), "two others"),
    "Explanation": lambda: explanation(
        selected=[1, 0, 1], order=[2, 0], parts={"a": np.eye(2)}, artifacts={"h": "00"}
    ),
}


HOSTILE = (
    "👩🏽‍🚀", "🇩🇪", "1️⃣", "漢字", "かな", "한글", "ไทย", "नमस्ते", "שלום", "مرحبا", "\u0301", "\u200d", "\u202e", "\ufeff",
    "\x00", "\x1f", "\u2028", "\u2029", '"', "\\", "</script>", "\U0010ffff", "e\u0301", "ﬁ", "\n", "\r\n", "\t", " ",
)  # fmt: skip


texts = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), max_size=6).map("".join)


written = texts.map(lambda t: "x" + t)  # never empty


numbers = st.integers(-(2**62), 2**62)


spans = st.tuples(st.integers(0, 50), st.integers(1, 50), texts).map(
    lambda s: Span(s[0], s[0] + s[1], s[2])
)


@st.composite
def targets(draw):
    kind = draw(st.sampled_from(["label", "tag", "span", "token", "text"]))
    ids = draw(st.lists(numbers, min_size=1, max_size=3))
    positions = draw(st.lists(st.integers(1, 99), min_size=len(ids), max_size=len(ids)))
    rival = draw(
        st.none() | st.tuples(*(st.just(i) for i in ids[:-1]), numbers)
    )  # only the last token may differ
    output = draw(
        st.sampled_from(["logit", "log_prob", "prob"] if len(ids) == 1 else ["logit", "log_prob"])
    )
    return Target(kind, ids, positions, draw(texts), output, rival, draw(texts))
