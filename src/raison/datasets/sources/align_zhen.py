"""Chinese-English sentences with word alignments."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from raison.core.errors import InputError
from raison.core.parameters import check_integer
from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.character_spans import Places
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.parallel import parallel_example, parse_alignment_links, zip_parallel_rows
from raison.datasets.text_files import find_file, read_lines


@dataset("align_zhen")
@dataclass(frozen=True)
class AlignZhEn(Dataset):
    """Chinese news sentences, cut into words, with English translations and gold word alignments, sure and possible."""

    task = "seq2seq"
    splits = ("test",)
    folder = "align_zhen"
    source = "https://github.com/neulab/awesome-align"
    paper = "Liu and Sun 2015, Contrastive Unsupervised Word Alignment; collected by Dou and Neubig 2021"

    spaces: bool = True  # False: Chinese without spaces between its words, as it is printed
    # sentences at the start to leave out: they test a model that was trained on the rest
    skip: int = 0

    def __post_init__(self) -> None:
        check_integer("skip", self.skip, 0)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        sentences = read_lines(find_file(place, "zhen.src-tgt"))
        links = read_lines(find_file(place, "zhen.gold"))
        rows = islice(zip_parallel_rows(sentences, links), self.skip, None)
        return map_rows(rows, self.example_with_links)

    def example_with_links(self, row: Row[tuple[str, ...]]) -> Example:
        """The example of a line with both sentences, and one with their links."""
        sentences, written = row.value
        source, between, target = sentences.partition("|||")
        if not between:
            raise InputError("no ||| stands between the two sentences.")

        text, words = join_chinese(source.split(), spaces=self.spaces)
        links = parse_alignment_links(written, 1)
        return parallel_example(
            text,
            target.strip(),
            links,
            id=str(row.line),
            source_words=words,
        )


def join_chinese(words: list[str], *, spaces: bool) -> tuple[str, Places]:
    """The words as a text, and the characters of each; Latin letters and digits are kept apart in any case."""
    text = ""
    places: Places = []
    for word in words:
        if text and (
            spaces or (is_latin_beside_chinese(text[-1]) and is_latin_beside_chinese(word[0]))
        ):
            text += " "
        start = len(text)
        text += word
        places.append((start, len(text)))
    return text, places


def is_latin_beside_chinese(character: str) -> bool:
    """Whether a character is a Latin letter or a digit."""
    return character.isascii() and character.isalnum()
