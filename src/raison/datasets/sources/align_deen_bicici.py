"""German-English sentences with word alignments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from raison.core.records import Example
from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Row, Rows, map_rows
from raison.datasets.parallel import parallel_example, parse_alignment_links, zip_parallel_rows
from raison.datasets.text_archives import read_archive_lines
from raison.datasets.text_files import find_file


@dataset("align_deen_bicici")
@dataclass(frozen=True)
class AlignDeEn(Dataset):
    """A hundred German sentences from Europarl with English translations and gold word alignments.

    All links are sure. One link of the published file goes beyond its sentences; it is left out, kept in
    `meta["dropped"]` and counted as mended.
    """

    task = "seq2seq"
    splits = ("test",)
    folder = "align_deen_bicici"
    source = "https://github.com/bicici/SMTData"
    paper = "Bicici 2011, The Regression Model of Machine Translation"

    def rows(self, place: Path, split: str) -> Rows[Example]:
        archive = find_file(
            place, "German-English_WordAlignment.zip", "German-English_WordAlignment"
        )
        files = [read_archive_lines(archive, name) for name in ("test.de", "test.en", "de-en.wa")]

        rows = zip_parallel_rows(*files)
        for row in map_rows(rows, bicici_example):
            if isinstance(row, Row) and "dropped" in row.value.meta:
                row = replace(row, mended=(*row.mended, "links left out"))
            yield row


def bicici_example(row: Row[tuple[str, ...]]) -> Example:
    """The example of both sentences and their links."""
    german, english, written = row.value
    links = parse_alignment_links(written, 0)
    return parallel_example(
        german.strip(),
        english.strip(),
        links,
        id=str(row.line),
        drop=True,
    )
