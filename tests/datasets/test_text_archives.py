"""Archives that are cut, too large, or lead out of their folder."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest

from raison.core.errors import InputError
from raison.datasets import open_dataset
from tests.helpers.published_data import damaged


def test_cut_files(tmp_path):
    """A packed file that ends too early says so, wherever it was cut; what was read before is counted."""
    whole = gzip.compress(b"".join(f"sentence {n * n}\t{n % 2}\n".encode() for n in range(5000)))
    path = damaged(tmp_path, "sst2", "test.tsv", b"")
    path.unlink()
    path = path.with_name("test.tsv.gz")
    for size in (len(whole) // 2, len(whole) - 4):
        path.write_bytes(whole[:size])
        with pytest.raises(
            InputError,
            match=r"^Line \d+ of '.*test.tsv.gz' is broken: the file is cut or damaged here",
        ):
            open_dataset("sst2", data=tmp_path)
        found = open_dataset("sst2", data=tmp_path, skip_broken=True)
        assert len(found.broken) == 1 and found.broken[0].line == len(found) + 1
        assert 1000 < len(found) <= 5000
        assert len(open_dataset("sst2", data=tmp_path, limit=10)) == 10  # the damage is far away
    path.write_bytes(b"no gzip at all")
    with pytest.raises(InputError, match="Line 1 .*cut or damaged"):
        open_dataset("sst2", data=tmp_path)


def archive_of(files) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


REVIEWS = {
    f"aclImdb/test/{kind}/{n}_9.txt": f"{kind} film {n}".encode()
    for n in range(3)
    for kind in ("neg", "pos")
}


def test_cut_archives(tmp_path):
    folder = tmp_path / "imdb"
    folder.mkdir()
    tar = archive_of(REVIEWS)
    # inside a member, inside a header, exactly between two members
    for name, content in (
        ("aclImdb_v1.tar.gz", gzip.compress(tar)[:-20]),
        ("aclImdb_v1.tar.gz", gzip.compress(tar[: 1024 * 3 + 100])),
        ("aclImdb_v1.tar.gz", gzip.compress(tar[: 1024 * 3])),
        ("aclImdb_v1.tar.gz", gzip.compress(tar[: 1024 * 3 + 514])),
    ):
        (folder / name).write_bytes(content)
        with pytest.raises(InputError, match="is broken: the archive is cut or damaged here"):
            open_dataset("imdb", data=tmp_path)
        assert len(open_dataset("imdb", data=tmp_path, skip_broken=True).broken) == 1
    (folder / "aclImdb_v1.tar.gz").write_bytes(gzip.compress(tar))
    assert [e.id for e in open_dataset("imdb", data=tmp_path)] == [
        f"{k}/{n}_9" for n in range(3) for k in ("neg", "pos")
    ]
    bad = {**REVIEWS, "aclImdb/test/neg/7_1.txt": b"first\nsecond \xe9\n"}
    (folder / "aclImdb_v1.tar.gz").write_bytes(gzip.compress(archive_of(bad)))
    with pytest.raises(
        InputError, match=r"^Line 2 of '.*:aclImdb/test/neg/7_1.txt' is broken: .*0xe9"
    ):
        open_dataset("imdb", data=tmp_path)
    (folder / "aclImdb_v1.tar.gz").unlink()
    for name, content in REVIEWS.items():  # unpacked by hand
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    assert len(open_dataset("imdb", data=tmp_path)) == 6
    zipped = tmp_path / "nltk_reviews"
    zipped.mkdir()
    with zipfile.ZipFile(zipped / "movie_reviews.zip", "w") as archive:
        archive.writestr("movie_reviews/neg/cv0.txt", "a bad film")
    assert open_dataset("nltk_reviews", data=tmp_path).examples[0].id == "neg/cv0"
    (zipped / "movie_reviews.zip").write_bytes((zipped / "movie_reviews.zip").read_bytes()[:-30])
    with pytest.raises(InputError, match="the archive is cut or damaged"):
        open_dataset("nltk_reviews", data=tmp_path)


def test_names_that_lead_out_of_an_archive_are_refused(tmp_path):
    """Nothing is unpacked, but names become ids: one that climbs is named, the others are read."""
    (tmp_path / "imdb").mkdir()
    for name in (
        "../../etc/neg/9_9.txt",
        "/etc/neg/9_9.txt",
        "aclImdb/..\\test/neg/9_9.txt",
        "C:\\neg/9_9.txt",
    ):
        tar = archive_of({**REVIEWS, name: b"a hostile film"})
        (tmp_path / "imdb" / "aclImdb_v1.tar.gz").write_bytes(gzip.compress(tar))
        with pytest.raises(InputError, match="leads out of the archive; get it again"):
            open_dataset("imdb", data=tmp_path)
        found = open_dataset("imdb", data=tmp_path, skip_broken=True)
        assert len(found) == 6 and len(found.broken) == 1


def test_what_is_too_large_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("raison.core.limits.FILE", 2**20)
    monkeypatch.setattr("raison.core.limits.LINE", 2**20)
    (tmp_path / "imdb").mkdir()
    tar = archive_of({**REVIEWS, "aclImdb/test/neg/9_9.txt": b"x" * (2**20 + 1)})
    (tmp_path / "imdb" / "aclImdb_v1.tar.gz").write_bytes(gzip.compress(tar))
    with pytest.raises(InputError, match="neg/9_9.txt' is larger than 1 MB"):
        open_dataset("imdb", data=tmp_path)
    assert len(open_dataset("imdb", data=tmp_path, skip_broken=True)) == 6
    rows = tmp_path / "rows.jsonl"
    good = b'{"text": "a good film", "label": "yes"}\n'
    for long in (2**20, 2**20 + 1, 3 * 2**20, 3 * 2**20 + 7):
        rows.write_bytes(good + b"x" * long + b"\n" + good)
        with pytest.raises(
            InputError, match="Line 2 of .* longer than 1 MB: write one record in each line"
        ):
            open_dataset(str(rows))
        found = open_dataset(str(rows), skip_broken=True)
        assert [e.text for e in found] == ["a good film"] * 2 and found.broken[0].line == 2
    fits = good.rstrip(b"}\n") + b', "note": "' + b"y" * (2**20 - len(good) - 12) + b'"}\n'
    rows.write_bytes(fits + good)
    assert len(fits) <= 2**20 and len(open_dataset(str(rows))) == 2
    whole = tmp_path / "whole.json"
    whole.write_text(
        '{"data": [\n' + ('{"title": "' + "t" * 1000 + '"},\n') * 1100 + '{"title": "t"}]}'
    )
    with pytest.raises(InputError, match="JSON of more than 1 MB"):
        open_dataset(str(whole))
