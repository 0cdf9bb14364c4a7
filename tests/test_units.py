"""Words, sentences and passages of any script; units of any tokenizer; offsets that point where they say."""

from __future__ import annotations

import time
import unicodedata
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Slot
from raison.core.text_splitting import split_passages, split_sentences, split_words
from raison.core.units import LEVELS, group
from raison.models.axis import axis_of
from raison.models.codec import Codec, align
from raison.testing.tiny import TEXTS, tiny_model, tiny_tokenizer

fuzz = settings(
    max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
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


# -- words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The old town.", ["The", "old", "town", "."]),
        ("don't can’t O'Neil's rock'n'roll", ["don't", "can’t", "O'Neil's", "rock'n'roll"]),
        ("dogs' 'tis 'quoted'", ["dogs", "'", "'", "tis", "'", "quoted", "'"]),
        ("well-known state-of-the-art", ["well-known", "state-of-the-art"]),
        ("a -b c- d--e -", ["a", "-", "b", "c", "-", "d", "-", "-", "e", "-"]),
        ("3.14 and 1,000,000.50", ["3.14", "and", "1,000,000.50"]),
        ("1, 2. .5 5. 3.x", ["1", ",", "2", ".", ".", "5", "5", ".", "3", ".", "x"]),
        ("snake_case x2 _", ["snake_case", "x2", "_"]),
        ("https://a.io/b?c=1", ["https", ":", "/", "/", "a", ".", "io", "/", "b", "?", "c", "=", "1"]),
        ("me@x.org #tag $5", ["me", "@", "x", ".", "org", "#", "tag", "$", "5"]),
        ("“Wait…” (really?!)", ["“", "Wait", "…", "”", "(", "really", "?", "!", ")"]),
        ("我喜欢电影。", ["我", "喜", "欢", "电", "影", "。"]),
        ("人々〇", ["人", "々", "〇"]),
        ("カタカナとひらがな", ["カタカナとひらがな"]),
        ("東京タワーへ行く", ["東", "京", "タワーへ", "行", "く"]),
        ("ｶﾞｷﾞ", ["ｶﾞｷﾞ"]),
        ("한국어를 배워요", ["한국어를", "배워요"]),
        ("สวัสดีครับ ไทย", ["สวัสดีครับ", "ไทย"]),
        ("ไทย\u200bครับ", ["ไทย\u200b", "ครับ"]),  # the invisible space ends a word
        ("नमस्ते क्\u200dष क्\u200cष", ["नमस्ते", "क्\u200dष", "क्\u200cष"]),
        ("مرحبا بالعالم، نعم", ["مرحبا", "بالعالم", "،", "نعم"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),  # Persian writes one word with a non-joiner inside
        ("שָׁלוֹם\u200f!", ["שָׁלוֹם\u200f", "!"]),
        ("soft\u00adhyphen", ["soft\u00adhyphen"]),
        ("e\u0301cole", ["e\u0301cole"]),
        ("\u0301 a", ["\u0301", "a"]),
        ("col·lega", ["col·lega"]),
        ("a\x00b", ["a", "\x00", "b"]),
        ("", []),
        (" \t\n\u3000\u00a0", []),
        ("  two\t\ttabs\n", ["two", "tabs"]),
    ],
)
def test_words_by_hand(text, expected):
    assert split(split_words, text) == expected


@pytest.mark.parametrize(
    "emoji",
    [
        "😀", "👍🏽", "❤️", "☺︎", "👩‍🚀", "👩🏽‍🚀", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🙂‍↔️", "🇩🇪", "1️⃣", "#️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👁️‍🗨️",
    ],
)  # fmt: skip
def test_an_emoji_with_its_modifiers_is_one_word(emoji):
    assert split(split_words, emoji) == [emoji]
    assert split(split_words, emoji * 2) == [emoji, emoji]
    assert split(split_words, f"so {emoji}, yes") == ["so", emoji, ",", "yes"]


def test_neighbouring_emoji_and_flags_stay_apart():
    assert split(split_words, "😀😀👍🏽🇩🇪🇫🇷🇩") == ["😀", "😀", "👍🏽", "🇩🇪", "🇫🇷", "🇩"]


def test_a_stray_joiner_does_not_tear_the_next_word():
    assert split(split_words, "👍\u200dabc") == ["👍\u200d", "abc"]
    assert split(split_words, "👍\u200d 漢") == ["👍\u200d", "漢"]


# -- sentences and passages -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith met Mrs. Jones. They left.", ["Dr. Smith met Mrs. Jones.", "They left."]),
        ("Fruit, e.g. Apples (i.e. Pomes). Good.", ["Fruit, e.g. Apples (i.e. Pomes).", "Good."]),
        ("J. R. R. Tolkien wrote. I read.", ["J. R. R. Tolkien wrote.", "I read."]),
        ("He works at Acme Inc. in Rome. Nice.", ["He works at Acme Inc. in Rome.", "Nice."]),
        ("She said no. He left.", ["She said no.", "He left."]),
        ("See No. 5 and no. 6. Then go.", ["See No. 5 and no. 6.", "Then go."]),
        ("It costs 3.14 euros. Visit a.io now.", ["It costs 3.14 euros.", "Visit a.io now."]),
        ("Wait... what? Wait... What?", ["Wait... what?", "Wait...", "What?"]),
        ("No… yes. No… Yes.", ["No… yes.", "No…", "Yes."]),
        ("He said “Go.” Then left.", ["He said “Go.”", "Then left."]),
        ('"Stop." "Why?" (It ended.) Yes!', ['"Stop."', '"Why?"', "(It ended.)", "Yes!"]),
        ('"I left." he said. Fine.', ['"I left." he said.', "Fine."]),
        ("Really?! Yes!!! Ok", ["Really?!", "Yes!!!", "Ok"]),
        ("a film . It was good . The end", ["a film .", "It was good .", "The end"]),
        ("我来了。你好吗？「好！」他说", ["我来了。", "你好吗？", "「好！」", "他说"]),
        ("वह गया। वह सोया॥ हाँ", ["वह गया।", "वह सोया॥", "हाँ"]),
        ("كيف الحال؟ بخير. شكرا", ["كيف الحال؟", "بخير.", "شكرا"]),
        ("a title\n\nThe text\nruns on. \n \n End", ["a title", "The text\nruns on.", "End"]),
        ("  lead. Then  ", ["lead.", "Then"]),
        ("...", ["..."]),
        ("", []),
        (" \n\n ", []),
    ],
)
def test_sentences_by_hand(text, expected):
    assert split(split_sentences, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one", ["one"]),
        ("one\ntwo", ["one\ntwo"]),
        ("one\n\ntwo", ["one", "two"]),
        ("one\n \t\n\n  two\n\n", ["one", "two"]),
        ("\n\n one.\r\n\r\ntwo. Three", ["one.", "two. Three"]),
        ("", []),
    ],
)
def test_passages_by_hand(text, expected):
    assert split(split_passages, text) == expected


@pytest.mark.parametrize("splitter", [split_words, split_sentences, split_passages])
def test_long_texts_take_no_quadratic_time(splitter):
    text = "Dr. Smith went home. " * 5000 + "." * 20000 + "\n" * 20000 + "a" * 20000 + " ." * 20000
    start = time.process_time()
    splitter(text)
    assert time.process_time() - start < 2  # the literal search backwards took half a minute


FRAGMENTS = (
    "a", "Dr", "no", "é", "e\u0301", "漢", "カ", "ﾞ", "한", "ไ", "क्", "م", "5", "3.1", "ﬁ", "ﷺ", "।", "؟",
    "😀", "👍🏽", "🇩", "🏽", "\ufe0f", "\u20e3", "\U000e0067",
    "\u200d", "\u200c", "\u200b", "\u00ad", "\u0301", "\ufeff", "\u202e", "\x00", "\ud800",
    " ", "  ", "\n", "\n\n", "\t", "\u3000",
    ".", "..", "…", "!", "?", "。", "！", "」", '"', "'", "’", "-", "_", ",", "·", "(", ")",
)  # fmt: skip
anything = st.text(max_size=30) | st.lists(st.sampled_from(FRAGMENTS) | st.characters(), max_size=25).map("".join)
valid = anything.map(lambda text: "".join(c for c in text if not "\ud800" <= c <= "\udfff")).filter(str.strip)


@pytest.mark.parametrize("splitter", [split_words, split_sentences, split_passages])
def test_spans_are_ordered_disjoint_and_cover_the_text(splitter):
    @fuzz
    @given(anything)
    def check(text):
        spans = splitter(text)
        covered = [False] * len(text)
        cursor = 0
        for start, end in spans:
            assert cursor <= start < end <= len(text)
            assert not text[start].isspace() and not text[end - 1].isspace()
            covered[start:end] = [True] * (end - start)
            cursor = end
        assert all(c or char.isspace() for c, char in zip(covered, text, strict=True))
        if splitter is split_words:
            assert not any(text[i].isspace() for a, b in spans for i in range(a, b))

    check()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it was dull . she slept . good !", ["it was dull .", "she slept .", "good !"]),
        ("see . . . well . no more .", ["see . . .", "well .", "no more ."]),
        ("mr . smith and j . r . tolkien saw me . good .", ["mr . smith and j . r . tolkien saw me .", "good ."]),
        ("he is taller than i . good .", ["he is taller than i .", "good ."]),
        ("It rained... and then it stopped.", ["It rained... and then it stopped."]),
    ],
)
def test_texts_cut_into_tokens_have_sentences(text, expected):
    assert [text[a:b] for a, b in split_sentences(text)] == expected


@fuzz
@given(anything)
def test_sentences_lie_within_passages(text):
    outer = split_passages(text)
    for a, b in split_sentences(text):
        assert sum(p <= a and b <= q for p, q in outer) == 1


PLAIN = ("one", "Two", "3.14", "漢字", "can't", "😀", "e.g.", "end.", "why?", "“a”", "\n\n")


@fuzz
@given(st.lists(st.sampled_from(PLAIN), max_size=12))
def test_words_lie_within_sentences_of_ordinary_text(parts):
    text = " ".join(parts)
    outer = split_sentences(text)
    for a, b in split_words(text):
        assert sum(p <= a and b <= q for p, q in outer) == 1


# -- units of every kind of tokenizer ---------------------------------------------------------------

KINDS = {"wordpiece": "bert", "bytes": "roberta", "unigram": "albert", "fallback": "llama"}


@pytest.fixture(scope="module")
def models():
    return {kind: tiny_model(family, "classification") for kind, family in KINDS.items()}


def encode(models, kind, text, pair=None, **fields):
    return models[kind].encode([Example(text, pair, **fields)], truncate=True)[0]


def check_units(encoding, level):
    """What holds of all units, whatever the text."""
    units = group(encoding, level)
    assert units.level == level and len(units.of) == len(encoding)
    assert ((units.of >= 0) == ~encoding.fixed).all()  # each removable token has one unit, fixed ones have none
    seen = units.of[units.of >= 0].tolist()
    assert list(dict.fromkeys(seen)) == list(range(len(units)))  # numbered in reading order
    for unit, (name, (segment, start, end)) in enumerate(zip(units.names, units.spans, strict=True)):
        members = np.flatnonzero(units.of == unit)
        assert set(encoding.segment[members]) == {segment}  # never across segments
        assert name
        if start >= 0 and level != "slot" and encoding.texts[segment][start:end].strip():
            assert name == encoding.texts[segment][start:end] == name.strip()
    return units


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["token", "word", "sentence", "passage"])
def test_units_partition_what_may_be_removed(models, kind, level):
    for text in (*ORDINARY, *HARD):
        check_units(encode(models, kind, text), level)
        check_units(encode(models, kind, text, "Why is it so? 漢字 👍🏽."), level)


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_arbitrary_text(models, kind):
    @settings(fuzz, max_examples=40)
    @given(valid)
    @example("\u200b")
    @example("\x00")
    def check(text):
        try:
            encoding = encode(models, kind, text)
        except InputError as error:
            assert "makes no tokens" in str(error)
            return
        for level in ("token", "word", "sentence", "passage"):
            check_units(encoding, level)
        for t in range(len(encoding)):
            assert encoding.start[t] == -1 or 0 <= encoding.start[t] <= encoding.end[t] <= len(text)

    check()


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
                assert piece.removeprefix("##") == "".join(c for c in plain if unicodedata.category(c) != "Mn")
            elif kind == "bytes":
                spelled = tokenizer.decode([int(encoding.ids[t])])
                assert spelled == behind or ("�" in spelled and behind.startswith(spelled.replace("�", "")))
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
        covered = {i for a, b in zip(encoding.start, encoding.end, strict=True) if a >= 0 for i in range(a, b)}
        assert all(i in covered or char.isspace() for i, char in enumerate(text))


@pytest.mark.parametrize("kind", ["bytes", "fallback"])
@pytest.mark.parametrize("char", ["😀", "漢", "Ж"])
def test_bytes_of_a_character_are_one_unit(models, kind, char):
    encoding = encode(models, kind, f"so {char} it")
    place = 3
    pieces = [t for t in range(len(encoding)) if encoding.start[t] <= place < encoding.end[t]]
    assert len(pieces) >= len(char.encode())
    assert all(char in encoding.text_of(t) for t in pieces)
    units = group(encoding, "word")
    assert len({int(units.of[t]) for t in pieces}) == 1 and units.names[units.of[pieces[0]]] == char


@pytest.mark.parametrize("kind", ["bytes", "fallback"])
def test_bytes_of_a_joined_emoji_are_one_word(models, kind):
    units = check_units(encode(models, kind, "so 👩🏽‍🚀👍 go x"), "word")
    assert units.names[:4] == ("so", "👩🏽‍🚀", "👍", "go")


@pytest.mark.parametrize("kind", KINDS)
def test_word_names_read_as_the_text(models, kind):
    text = "She said it wasn't bad, 3.14 times."
    encoding = encode(models, kind, text)
    units = group(encoding, "word", np.ones(len(encoding), bool))
    expected = split(split_words, text)
    if encoding.fixed[-1] and encoding.start[-1] >= 0:  # a decoder's answer is read off the last token
        expected = expected[:-1]
    assert list(units.names) == expected


def test_a_straddling_token_joins_its_words(models):
    encoding = encode(models, "wordpiece", "so 😀👍🏽 it")  # one unknown piece for two emoji
    units = check_units(encoding, "word")
    assert units.names == ("so", "😀👍🏽", "it") and units.spans[1] == (0, 3, 6)


def by_hand(text, spans, fixed=(), segments=("text",), texts=None, segment=None, slots=()):
    size = len(spans)
    texts = texts or (text,)
    segment = segment or [0] * size
    return Encoding(
        ids=range(size),
        tokens=tuple(texts[s][a:b] if a >= 0 else "<s>" for (a, b), s in zip(spans, segment, strict=True)),
        segments=segments,
        texts=texts,
        segment=segment,
        start=[a for a, _ in spans],
        end=[b for _, b in spans],
        positions=range(size),
        fixed=[t in fixed for t in range(size)],
        slots=slots,
    )


def test_straddling_chains_join_everything_they_touch():
    text = "ab cd ef gh"
    encoding = by_hand(text, [(0, 1), (1, 4), (4, 7), (7, 8), (9, 11)])
    assert group(encoding, "word").of.tolist() == [0, 0, 0, 0, 1]
    assert group(encoding, "word").names == ("ab cd ef", "gh")


def test_a_straddling_token_at_a_sentence_end_joins_the_sentences():
    text = "It is. So what. Yes."
    encoding = by_hand(text, [(0, 5), (5, 9), (9, 15), (15, 20)])
    assert group(encoding, "sentence").names == ("It is. So what.", "Yes.")


def test_white_space_goes_with_the_next_word_and_the_last_with_the_last():
    encoding = by_hand("  a  b  ", [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6), (6, 8)])
    units = group(encoding, "word")
    assert units.of.tolist() == [0, 0, 0, 1, 1, 1] and units.names == ("a", "b")


def test_empty_pieces_go_with_the_next_word():
    encoding = by_hand("a b", [(0, 0), (0, 1), (2, 2), (2, 3)])
    assert group(encoding, "word").of.tolist() == [0, 0, 1, 1]


def test_white_space_as_a_token_is_made_visible():
    units = group(by_hand("a \n\tb", [(0, 1), (1, 4), (4, 5)]), "token")
    assert units.names == ("a", "␣⏎⇥", "b")


def test_free_special_tokens_are_units_of_their_own():
    encoding = by_hand("a b", [(-1, -1), (0, 1), (2, 3), (-1, -1), (-1, -1)], fixed=(0,))
    for level in ("word", "sentence", "passage"):
        units = group(encoding, level)
        assert units.of[0] == -1 and len({units.of[3], units.of[4], units.of[1]}) == 3
        assert units.names[-2:] == ("<s>", "<s>") and units.spans[-1] == (0, -1, -1)


def test_only_free_tokens_have_units():
    encoding = by_hand("one two three", [(0, 1), (1, 3), (4, 7), (8, 13)], fixed=(3,))
    units = group(encoding, "word", np.array([False, True, True, True]))
    assert units.of.tolist() == [-1, 0, 1, -1] and units.names == ("ne", "two")


def test_equal_words_at_a_segment_border_stay_apart():
    spans = [(0, 1), (0, 1), (-1, -1), (0, 1)]
    encoding = by_hand("", spans, segments=("a", "b", "c"), texts=("x", "x", "x"), segment=[0, 1, 1, 2])
    for level in ("word", "sentence", "passage"):
        assert group(encoding, level).of.tolist() == [0, 1, 2, 3]


def test_a_text_without_words_has_units_still():
    assert group(by_hand(" \n ", [(0, 1), (1, 3)]), "word").of.tolist() == [0, 0]
    assert len(group(by_hand("", []), "word")) == 0


def test_unknown_levels_are_named():
    with pytest.raises(InputError, match="no units called 'line': use one of token, word, sentence, passage, slot"):
        group(by_hand("a", [(0, 1)]), "line")
    assert LEVELS == ("token", "word", "sentence", "passage", "slot")


@pytest.mark.parametrize("kind", KINDS)
def test_levels_nest(models, kind):
    for text in ORDINARY:
        for pair in (None, "It is. It was."):
            encoding = encode(models, kind, text, pair)
            levels = [group(encoding, level).of for level in ("token", "word", "sentence", "passage")]
            for fine, coarse in pairwise(levels):
                for unit in range(fine.max() + 1):
                    assert len(set(coarse[fine == unit])) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_passages_and_sentences_by_blank_lines(models, kind):
    text = "Old town. It is.\n\nThe hills!\n \nNo end"
    encoding = encode(models, kind, text, None)
    whole = not (encoding.fixed[-1] and encoding.start[-1] >= 0)
    end = "No end" if whole else text[text.index("No") : int(encoding.start[-1])]
    assert group(encoding, "passage").names == ("Old town. It is.", "The hills!", end)
    assert group(encoding, "sentence").names == ("Old town.", "It is.", "The hills!", end)


# -- slots ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_slots_are_units_and_the_template_is_fixed(models, kind):
    prompt = Example.from_template("Review: {review} Rating: {stars} stars. End", review="A dull story", stars="4 or 5")
    encoding = models[kind].encode([prompt])[0]
    units = check_units(encoding, "slot")
    assert units.names == ("review", "stars")
    removable = {encoding.text_of(t).strip() for t in np.flatnonzero(~encoding.fixed)}
    assert not removable & {"Review", "Rating", "stars", "End", ":"}
    for t in np.flatnonzero(~encoding.fixed & (encoding.start >= 0)):
        place = encoding.texts[0][encoding.start[t] : encoding.end[t]]
        assert not place.strip() or any(s.start < encoding.end[t] and encoding.start[t] < s.end for s in prompt.slots)
    assert len(check_units(encoding, "word")) == 6


def test_slots_in_any_order():
    text = "aa bb cc"
    slots = (Slot("last", 6, 8), Slot("first", 0, 2))
    encoding = by_hand(text, [(0, 1), (1, 2), (3, 5), (6, 8)], fixed=(2,), slots=slots)
    units = group(encoding, "slot")
    assert units.of.tolist() == [0, 0, -1, 1] and units.names == ("first", "last")


def test_a_token_that_straddles_the_edge_of_a_slot_goes_with_it():
    text = "(Paris)"
    encoding = by_hand(text, [(0, 3), (3, 7)], slots=(Slot("city", 1, 6),))
    units = group(encoding, "slot")
    assert units.of.tolist() == [0, 0] and units.names == ("city",)


def test_a_token_over_two_slots_joins_them():
    encoding = by_hand("abcd", [(0, 1), (1, 3), (3, 4)], slots=(Slot("two", 2, 4), Slot("one", 0, 2)))
    units = group(encoding, "slot")
    assert units.of.tolist() == [0, 0, 0] and units.names == ("one + two",)


def test_slots_are_needed():
    with pytest.raises(InputError, match="no slots: build it with Example"):
        group(by_hand("a", [(0, 1)]), "slot")


# -- slow tokenizers: align -------------------------------------------------------------------------


def in_order(spans, text):
    assert all(0 <= a <= b <= len(text) for a, b in spans), spans
    assert [a for a, _ in spans] == sorted(a for a, _ in spans), spans
    assert [b for _, b in spans] == sorted(b for _, b in spans), spans


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
    spans = align(names, text, {"<unk>", "</s>"})
    assert [text[a:b] for a, b in spans] == expected


@fuzz
@given(anything, st.lists(st.sampled_from(["▁", "<unk>", "a", "▁a", "漢", "é", "...", "5", "한"]), max_size=12))
def test_align_is_in_order_whatever_the_pieces_say(text, names):
    spans = align(names, text, {"<unk>"})
    assert len(spans) == len(names)
    in_order(spans, text)


@fuzz
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=12).map("".join), st.integers(1, 4))
def test_align_finds_pieces_that_spell_the_text(text, width):
    """Cut the normalized text anywhere: each piece lies where its letters came from."""
    spelled = "".join(unicodedata.normalize("NFKC", text).split())
    names = [spelled[i : i + width] for i in range(0, len(spelled), width)]
    spans = align(names, text, set())
    in_order(spans, text)
    for name, (a, b) in zip(names, spans, strict=True):
        assert name in "".join(unicodedata.normalize("NFKC", text[a:b]).split())


# -- real tokenizers --------------------------------------------------------------------------------

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
        return catalog.entries()[name].open()[1]
    except (MissingExtra, ModelError) as error:
        pytest.skip(f"the real model {name} can't be had here: {error}")


def encoded(codec, text, pair=None):
    """The axis of a text, as an adapter without a limit makes it."""
    whole = SimpleNamespace(codec=codec, surplus=lambda size, truncate: 0)
    return axis_of(whole, Example(text, pair), ("text",) if pair is None else ("first", "second"), truncate=False)


pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("text", (*ORDINARY, *HARD, *CHINESE))
def test_real_tokenizers_keep_the_rules(real, name, text):
    codec = real(name)
    encoding = encoded(codec, text)
    seen = encoding.start >= 0
    in_order(list(zip(encoding.start[seen].tolist(), encoding.end[seen].tolist(), strict=True)), text)
    for level in ("token", "word", "sentence", "passage"):
        check_units(encoding, level)
    for t in np.flatnonzero(seen):
        spelled = unicodedata.normalize("NFKC", codec.name(int(encoding.ids[t]))).strip().strip("▁").lower()
        behind = unicodedata.normalize("NFKC", encoding.text_of(t)).strip().lower()
        if "�" in spelled or int(encoding.ids[t]) in codec.special_ids:
            assert len(behind) >= 1
        else:  # a piece within a ligature, or of letters whose accents were dropped, has more behind it
            bare = "".join(c for c in unicodedata.normalize("NFD", behind) if not unicodedata.combining(c))
            assert spelled.removeprefix("##") in behind or spelled.removeprefix("##") in bare, (spelled, behind)


@pytest.mark.parametrize("name", REAL)
def test_real_tokenizers_on_arbitrary_text(real, name):
    codec = real(name)

    @settings(fuzz, max_examples=60)
    @given(valid)
    def check(text):
        pieces = codec(text)
        seen = pieces.start >= 0
        assert (seen == ~pieces.special).all()
        in_order(list(zip(pieces.start[seen].tolist(), pieces.end[seen].tolist(), strict=True)), text)

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
    names = group(encoding, "word").names
    assert names[:4] == ("我", "用", "Python", "写") and names[-3:] == ("龘", "好", "。")


def test_marian_chinese_words_may_straddle(real):
    units = group(encoded(real("opus-mt-zh-en"), "我喜欢看电影，很好。"), "word")
    assert units.names[:4] == ("我喜欢", "看", "电影", "，")  # one token is three words here


@pytest.mark.parametrize("name", ["minilm"])
def test_pairs_of_a_real_tokenizer(real, name):
    encoding = encoded(real(name), "Who wrote it?", "Ada wrote it. Who?")
    units = check_units(encoding, "word")
    assert units.names == ("Who", "wrote", "it", "?", "Ada", "wrote", "it", ".", "Who", "?")
    assert [segment for segment, _, _ in units.spans] == [0] * 4 + [1] * 6
