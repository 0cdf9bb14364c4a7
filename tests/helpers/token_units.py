"""Texts and tokenizers that units are made of."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from raison.core.records import Example
from raison.core.units import group_tokens
from raison.testing.tiny import TEXTS

fuzz = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


ORDINARY = (
    *TEXTS,
    "Dr. Smith paid 1,000 euros, i.e. too much! Did he know?\n\nNobody's told him; the well-known price was 3.14.",
    "First passage. It has two sentences.\n\nSecond passage?  Yes.\n \n\nThird\tone, with a tab…\nand a new line.",
)


HARD = (
    "She wasn't bad 😀👍🏽 end",
    "  two  spaces  and\ta tab\n",
    "漢字とカナ mixed with 한국어 words",
    "👩🏽‍🚀🇩🇪🇫🇷 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "नमस्ते दुनिया। مرحبا بالعالم؟ สวัสดี",
    "naïve e\u0301cole ﬁne Ⅷ",
    "x",
    "???",
    "a [SEP] b [MASK] c",
)


def split(splitter, text):
    return [text[a:b] for a, b in splitter(text)]


FRAGMENTS = (
    "a", "Dr", "no", "é", "e\u0301", "漢", "カ", "ﾞ", "한", "ไ", "क्", "م", "5", "3.1", "ﬁ", "ﷺ", "।", "؟",
    "😀", "👍🏽", "🇩", "🏽", "\ufe0f", "\u20e3", "\U000e0067",
    "\u200d", "\u200c", "\u200b", "\u00ad", "\u0301", "\ufeff", "\u202e", "\x00", "\ud800",
    " ", "  ", "\n", "\n\n", "\t", "\u3000",
    ".", "..", "…", "!", "?", "。", "！", "」", '"', "'", "’", "-", "_", ",", "·", "(", ")",
)  # fmt: skip


anything = st.text(max_size=30) | st.lists(
    st.sampled_from(FRAGMENTS) | st.characters(), max_size=25
).map("".join)


valid = anything.map(lambda text: "".join(c for c in text if not "\ud800" <= c <= "\udfff")).filter(
    str.strip
)


KINDS = {"wordpiece": "bert", "bytes": "roberta", "unigram": "albert", "fallback": "llama"}


def encode(models, kind, text, pair=None, **fields):
    return models[kind].encode([Example(text, pair, **fields)], truncate=True)[0]


def check_units(encoding, level):
    """What holds of all units, whatever the text."""
    units = group_tokens(encoding, level)
    assert units.level == level and len(units.of) == len(encoding)
    assert (
        (units.of >= 0) == ~encoding.fixed
    ).all()  # each removable token has one unit, fixed ones have none
    seen = units.of[units.of >= 0].tolist()
    assert list(dict.fromkeys(seen)) == list(range(len(units)))  # numbered in reading order
    for unit, (name, (segment, start, end)) in enumerate(
        zip(units.names, units.spans, strict=True)
    ):
        members = np.flatnonzero(units.of == unit)
        assert set(encoding.segment[members]) == {segment}  # never across segments
        assert name
        if start >= 0 and level != "slot" and encoding.texts[segment][start:end].strip():
            assert name == encoding.texts[segment][start:end] == name.strip()
    return units
