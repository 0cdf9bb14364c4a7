"""Words, sentences and passages of any script."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raison.core.text_splitting import split_passages, split_sentences, split_words
from tests.helpers.token_units import anything, fuzz, split

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
        (
            "https://a.io/b?c=1",
            ["https", ":", "/", "/", "a", ".", "io", "/", "b", "?", "c", "=", "1"],
        ),
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
        (
            "mr . smith and j . r . tolkien saw me . good .",
            ["mr . smith and j . r . tolkien saw me .", "good ."],
        ),
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


pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
