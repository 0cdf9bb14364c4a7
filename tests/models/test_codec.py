"""Offsets that point where they say, of slow tokenizers and of real ones."""

from __future__ import annotations

import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.units import group_tokens
from raison.models.codec import Codec, align_pieces_with_characters
from raison.models.tasks.base import axis_of
from raison.testing.tiny import tiny_model, tiny_tokenizer
from tests.helpers.token_units import (
    FRAGMENTS,
    HARD,
    KINDS,
    ORDINARY,
    anything,
    check_units,
    encode,
    fuzz,
    valid,
)


@pytest.fixture(scope="module")
def models():
    return {kind: tiny_model(family, "classification") for kind, family in KINDS.items()}


# -- units of every kind of tokenizer ---------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_slice_the_text_to_the_surface(models, kind):
    """The characters behind a token are those that the token spells."""
    for text in ORDINARY:
        encoding = encode(models, kind, text)
        tokenizer = tiny_tokenizer(kind)
        for t in np.flatnonzero(encoding.start >= 0):
            piece = tokenizer.convert_ids_to_tokens(int(encoding.ids[t]))
            behind = encoding.text_of(t)
            assert encoding.tokens[t] == behind
            if piece == "[UNK]":
                continue
            if kind == "wordpiece":
                plain = unicodedata.normalize("NFD", behind.lower())  # the normalizer drops accents
                assert piece.removeprefix("##") == "".join(
                    c for c in plain if unicodedata.category(c) != "Mn"
                )
            elif kind == "bytes":
                spelled = tokenizer.decode([int(encoding.ids[t])])
                assert spelled == behind or (
                    "�" in spelled and behind.startswith(spelled.replace("�", ""))
                )
            elif not piece.startswith("<0x"):
                spelled = piece.replace("▁", " ")
                # the mark that the tokenizer puts before the text has no character of its own
                bare = not spelled.strip() and (behind.isspace() or encoding.start[t] == 0)
                assert bare or spelled.strip() == behind.strip()


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_cover_the_text(models, kind):
    for text in ORDINARY[:6]:
        encoding = encode(models, kind, text)
        if encoding.truncated:
            continue
        covered = {
            i
            for a, b in zip(encoding.start, encoding.end, strict=True)
            if a >= 0
            for i in range(a, b)
        }
        assert all(i in covered or char.isspace() for i, char in enumerate(text))


def in_order(spans, text):
    assert all(0 <= a <= b <= len(text) for a, b in spans), spans
    assert [a for a, _ in spans] == sorted(a for a, _ in spans), spans
    assert [b for _, b in spans] == sorted(b for _, b in spans), spans


# -- slow tokenizers: align -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        (["▁good", "▁fil", "m", "."], "good film.", ["good", "fil", "m", "."]),
        (["▁A", "B"], "ＡＢ", ["Ａ", "Ｂ"]),
        (["▁fi", "ne"], "ﬁne", ["ﬁ", "ne"]),
        (["▁f", "ine"], "ﬁne", ["ﬁ", "ﬁne"]),
        (["▁", "é", "co", "le"], "e\u0301cole", ["e", "e\u0301", "co", "le"]),
        (["▁ガ", "ス"], "ｶﾞｽ", ["ｶﾞ", "ｽ"]),
        (["▁한", "글"], "\u1112\u1161\u11ab글", ["\u1112\u1161\u11ab", "글"]),
        (["▁你", "<unk>", "好"], "你龘好", ["你", "龘", "好"]),
        (["▁a", "▁b", "<unk>"], "a b龘𠀀", ["a", "b", "龘𠀀"]),
        (["<unk>"], "龘", ["龘"]),
        (["▁a", "▁", "b"], "a b", ["a", " ", "b"]),
        (["......"], "……", ["……"]),
        ([], "", []),
    ],
)
def test_align_by_hand(names, text, expected):
    spans = align_pieces_with_characters(names, text, {"<unk>", "</s>"})
    assert [text[a:b] for a, b in spans] == expected


@fuzz
@given(
    anything,
    st.lists(st.sampled_from(["▁", "<unk>", "a", "▁a", "漢", "é", "...", "5", "한"]), max_size=12),
)
def test_align_is_in_order_whatever_the_pieces_say(text, names):
    spans = align_pieces_with_characters(names, text, {"<unk>"})
    assert len(spans) == len(names)
    in_order(spans, text)


@fuzz
@given(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=12).map("".join), st.integers(1, 4)
)
def test_align_finds_pieces_that_spell_the_text(text, width):
    """Cut the normalized text anywhere: each piece lies where its letters came from."""
    spelled = "".join(unicodedata.normalize("NFKC", text).split())
    names = [spelled[i : i + width] for i in range(0, len(spelled), width)]
    spans = align_pieces_with_characters(names, text, set())
    in_order(spans, text)
    for name, (a, b) in zip(names, spans, strict=True):
        assert name in "".join(unicodedata.normalize("NFKC", text[a:b]).split())


REAL = ("smollm2", "minilm", "stories15m", "opus-mt-zh-en")


CHINESE = (
    "我喜欢看电影，但是这部电影很无聊。",
    "龘龘𠀀你好，再见龘。",
    "ＡＢＣ１２３，全角！（括号）",
    "我用 Python 3.14 写了 code。",
    "㍿あ ｶﾞ e\u0301cole ﬁne “引号” ﷺ",
    "  前面  空格  ",
    "\u200b你\ufeff好",
    "😀👍🏽好👩🏽‍🚀",
    "…… ——",
)


@pytest.fixture(scope="module")
def real(request):
    """Tokenizers of real checkpoints by name, opened once."""
    opened = {}

    def get(name):
        if name not in opened:
            if name == "opus-mt-zh-en":
                request.getfixturevalue("opus_at_hand")
            opened[name] = Codec(tokenizer_named(name))
        return opened[name]

    return get


def tokenizer_named(name):
    """From raison's own catalog."""
    from raison.core.errors import MissingExtra, ModelError
    from raison.models import catalog

    try:
        return catalog.catalog_entries()[name].open()[1]
    except (MissingExtra, ModelError) as error:
        pytest.skip(f"the real model {name} can't be had here: {error}")


def encoded(codec, text, pair=None):
    """The axis of a text, as an adapter without a limit makes it."""
    whole = SimpleNamespace(codec=codec, surplus=lambda size, truncate: 0)
    return axis_of(
        whole,
        Example(text, pair),
        ("text",) if pair is None else ("first", "second"),
        truncate=False,
    )


pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


# -- real tokenizers --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("text", (*ORDINARY, *HARD, *CHINESE))
def test_real_tokenizers_keep_the_rules(real, name, text):
    codec = real(name)
    encoding = encoded(codec, text)
    seen = encoding.start >= 0
    in_order(
        list(zip(encoding.start[seen].tolist(), encoding.end[seen].tolist(), strict=True)), text
    )
    for level in ("token", "word", "sentence", "passage"):
        check_units(encoding, level)
    for t in np.flatnonzero(seen):
        spelled = (
            unicodedata.normalize("NFKC", codec.name(int(encoding.ids[t])))
            .strip()
            .strip("▁")
            .lower()
        )
        behind = unicodedata.normalize("NFKC", encoding.text_of(t)).strip().lower()
        if "�" in spelled or int(encoding.ids[t]) in codec.special_ids:
            assert len(behind) >= 1
        else:  # a piece within a ligature, or of letters whose accents were dropped, has more behind it
            bare = "".join(
                c for c in unicodedata.normalize("NFD", behind) if not unicodedata.combining(c)
            )
            assert spelled.removeprefix("##") in behind or spelled.removeprefix("##") in bare, (
                spelled,
                behind,
            )


@pytest.mark.parametrize("name", REAL)
def test_real_tokenizers_on_arbitrary_text(real, name):
    codec = real(name)

    @settings(fuzz, max_examples=60)
    @given(valid)
    def check(text):
        pieces = codec(text)
        seen = pieces.start >= 0
        assert (seen == ~pieces.special).all()
        in_order(
            list(zip(pieces.start[seen].tolist(), pieces.end[seen].tolist(), strict=True)), text
        )

    check()


@pytest.mark.parametrize("name", REAL)
def test_real_tokenizers_refuse_what_is_not_unicode(real, name):
    with pytest.raises(InputError, match="not valid Unicode"):
        real(name)("a \ud800 b")


def test_marian_spans_by_hand(real):
    encoding = encoded(real("opus-mt-zh-en"), "我用 Python 写ＡＢ，龘好。")
    spans = [encoding.text_of(t) for t in np.flatnonzero(encoding.start >= 0)]
    assert "".join(dict.fromkeys(spans)).replace(" ", "") == "我用Python写ＡＢ，龘好。"
    assert "龘" in spans
    names = group_tokens(encoding, "word").names
    assert names[:4] == ("我", "用", "Python", "写") and names[-3:] == ("龘", "好", "。")


def test_marian_chinese_words_may_straddle(real):
    units = group_tokens(encoded(real("opus-mt-zh-en"), "我喜欢看电影，很好。"), "word")
    assert units.names[:4] == ("我喜欢", "看", "电影", "，")  # one token is three words here


@pytest.mark.parametrize("name", ["minilm"])
def test_pairs_of_a_real_tokenizer(real, name):
    encoding = encoded(real(name), "Who wrote it?", "Ada wrote it. Who?")
    units = check_units(encoding, "word")
    assert units.names == ("Who", "wrote", "it", "?", "Ada", "wrote", "it", ".", "Who", "?")
    assert [segment for segment, _, _ in units.spans] == [0] * 4 + [1] * 6
