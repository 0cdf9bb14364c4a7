"""A tokenizer whose tokens are words, with a vocabulary from the training texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from raison.core.errors import InputError

__all__ = ["SPECIAL", "vocabulary_of", "words_tokenizer"]

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
# words as the Penn Treebank has them (do n't, film 's), so that text that is cut already stays as it is
WORD = r"\w+(?=n['’]t\b)|n['’]t\b|['’]\w+|\w+|[^\w\s]"


def words_tokenizer(
    texts: Iterable[str], *, least: int = 1, most: int | None = None
) -> PreTrainedTokenizerFast:
    """A tokenizer whose tokens are lower-case words, numbers being all alike; rarer words than `least` are [UNK].

    Texts become [CLS] words [SEP], pairs [CLS] words [SEP] words [SEP].
    """
    split_words = pre_tokenizers.Split(Regex(WORD), behavior="removed", invert=True)
    normalize = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\d+"), "qqq")]
    )
    counts: Counter[str] = Counter()
    for text in texts:
        pieces = split_words.pre_tokenize_str(normalize.normalize_str(text))
        counts.update(word for word, _ in pieces)

    frequent = [word for word, count in counts.items() if count >= least]
    if not frequent:
        raise InputError(
            f"No word stands {least} times in the texts: give more text, or lower the least count."
        )
    # by count, then by spelling: the same texts in another order give the same numbers
    frequent.sort(key=lambda word: (-counts[word], word))
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *frequent[:most]])}

    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalize
    tokenizer.pre_tokenizer = split_words
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **dict(zip(ROLES, SPECIAL, strict=True))
    )


def vocabulary_of(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """The words of a tokenizer, in the order of their numbers."""
    numbers = tokenizer.get_vocab()
    return sorted(numbers, key=numbers.__getitem__)
