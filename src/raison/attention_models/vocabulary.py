"""Words as tokens: a vocabulary from the training texts, and where its vectors come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError

__all__ = ["SPECIAL", "glove_vectors", "pretrained_vectors", "random_vectors", "vocabulary_of", "words_tokenizer"]

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# words as the Penn Treebank has them (do n't, film 's), so that text that is cut already stays as it is
WORD = r"\w+(?=n['’]t\b)|n['’]t\b|['’]\w+|\w+|[^\w\s]"


def words_tokenizer(texts: Iterable[str], *, least: int = 1, most: int | None = None) -> Any:
    """A tokenizer whose tokens are lower-case words, numbers being all alike; rarer words than `least` are [UNK].

    Texts become [CLS] words [SEP], pairs [CLS] words [SEP] words [SEP].
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    cut = pre_tokenizers.Split(Regex(WORD), behavior="removed", invert=True)
    plain = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\d+"), "qqq")]
    )
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word for word, _ in cut.pre_tokenize_str(plain.normalize_str(text)))
    # by count, then by spelling: the same texts in another order give the same numbers
    known = sorted((word for word, count in counts.items() if count >= least), key=lambda word: (-counts[word], word))
    if not known:
        raise InputError(f"No word stands {least} times in the texts: give more text, or lower the least count.")
    names = [*SPECIAL, *known[:most]]
    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(names)}, unk_token="[UNK]"))
    inner.normalizer = plain
    inner.pre_tokenizer = cut
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, names.index(name)) for name in ("[CLS]", "[SEP]")],
    )
    roles = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=inner, **roles)


def vocabulary_of(tokenizer: Any) -> list[str]:
    known = tokenizer.get_vocab()
    return sorted(known, key=known.__getitem__)


def random_vectors(count: int, width: int, generator: torch.Generator) -> torch.Tensor:
    """[count, width] small vectors; that of padding is zero."""
    made = torch.randn(count, width, generator=generator) * 0.1
    made[SPECIAL.index("[PAD]")] = 0
    return made


def glove_vectors(
    path: Path, tokenizer: Any, generator: torch.Generator, width: int | None = None
) -> tuple[torch.Tensor, int]:
    """[v, d] vectors of a GloVe file (a word and its numbers in each line, or a folder with glove.npy and words.txt),
    and how many words it has; the others are drawn with the spread of the file's."""
    names = vocabulary_of(tokenizer)
    found = from_folder(path, set(names)) if path.is_dir() else from_lines(path, set(names), width)
    if not found:
        raise InputError(f"None of the words of the texts is in {path.name}: is it a file of word vectors?")
    size = len(next(iter(found.values())))
    if width is not None and size != width:
        raise InputError(
            f"{path.name} has vectors of {size} numbers, and the model wants {width}: set width to {size}."
        )
    spread = float(np.std(np.stack(list(found.values()))))
    made = torch.randn(len(names), size, generator=generator) * spread
    for number, name in enumerate(names):
        if name in found:
            made[number] = torch.from_numpy(np.asarray(found[name], np.float32))
    made[SPECIAL.index("[PAD]")] = 0
    return made, len(found)


def from_folder(path: Path, wanted: set[str]) -> dict[str, np.ndarray]:
    try:
        words = (path / "words.txt").read_text(encoding="utf-8").split("\n")
        vectors = np.load(path / "glove.npy", mmap_mode="r")
    except OSError:
        raise InputError(
            f"{path.name} holds no glove.npy with words.txt: name a GloVe file or such a folder."
        ) from None
    return {word: np.array(vectors[number]) for number, word in enumerate(words[: len(vectors)]) if word in wanted}


def from_lines(path: Path, wanted: set[str], width: int | None) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise InputError(f"There is no file of word vectors {str(path)!r}: check the path.")
    found: dict[str, np.ndarray] = {}
    size = None
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            # some words of published files hold spaces: numbers are counted from the end
            word, *values = line.rstrip().rsplit(" ", size) if size else line.rstrip().split(" ")
            if number == 1 and len(values) == 1:
                continue  # word2vec's first line: how many, how wide
            size = len(values) if size is None else size
            if width is not None and len(values) != width:
                raise InputError(
                    f"{path.name} has vectors of {len(values)} numbers, and the model wants {width}: set width to "
                    f"{len(values)}."
                )
            if len(values) != size:
                raise InputError(f"Line {number} of {path.name} has {len(values)} numbers instead of {size}.")
            if word in wanted:
                try:
                    found[word] = np.array(values, np.float32)
                except ValueError:
                    raise InputError(f"Line {number} of {path.name} is not a word with its numbers.") from None
                if not np.isfinite(found[word]).all():
                    raise InputError(f"Line {number} of {path.name} holds NaN or infinite numbers: use an intact file.")
    return found


def pretrained_vectors(model: Any, pieces: Any, tokenizer: Any) -> torch.Tensor:
    """[v, d] word embeddings of a pretrained encoder, whose tokenizer is `pieces`; a word of several has their mean."""
    table = model.get_input_embeddings().weight.detach().float()
    roles = dict(zip(SPECIAL, ("pad", "unk", "cls", "sep", "mask"), strict=True))

    def vector(name: str) -> torch.Tensor:
        own = getattr(pieces, f"{roles[name]}_token_id", None) if name in roles else None
        row = [own] if own is not None else [] if name in roles else pieces(name, add_special_tokens=False)["input_ids"]
        return table[row].mean(0) if row else torch.zeros(table.shape[1])

    made = torch.stack([vector(name) for name in vocabulary_of(tokenizer)])
    made[SPECIAL.index("[PAD]")] = 0
    return made
