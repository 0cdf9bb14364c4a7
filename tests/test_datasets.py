"""Data sets: the counts of their publishers, facts read off by other means, and what is said about broken files."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import tarfile
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from raison.core.errors import InputError, MissingExtra, RaisonError, UnknownName
from raison.core.records import Example, Span
from raison.core.registry import datasets
from raison.core.spec import Spec
from raison.datasets import Broken, Dataset, open_dataset, overlap
from raison.datasets.base import dataset
from raison.datasets.bracket_trees import parse_tree
from raison.datasets.eraser import read_eraser
from raison.datasets.faults import SEGMENTS
from raison.datasets.open import parse_data_spec
from raison.datasets.rows import Row, interleave, labels_in_turn
from raison.datasets.spans import find_tokens, spans_of_marks, true_runs
from raison.datasets.text_files import read_lines
from tests.helpers.paths import ROOT

# spec -> split -> records, as the README of the folder counts them; broken ones are counted as well
COUNTS = {
    "news_sport": {"train": 1197, "test": 796},  # baseball 597 + hockey 600, 397 + 399 (scikit-learn's by-date parts)
    "ag_news": {"train": 5000, "test": 7600},
    "align_deen_bicici": {"test": 100},
    "align_zhen": {"test": 450},
    "analogies": {"test": 19544},
    "eraser_cose": {"train": 8752, "val": 1086, "test": 1079},
    "eraser_movies": {"train": 1600, "val": 200, "test": 199},
    "imdb": {"train": 5000, "test": 5000},
    "imdb_counterfactual": {"dev": 490, "test": 976},
    "lambada_rationales": {"test": 107},
    "lambada_test": {"test": 5153},
    "majority_class_toy": {"valid": 5000, "test": 5000},
    "multi30k_deen": {
        "val": 1014, "test": 1000, "test_2017": 1000, "test_2017_mscoco": 461, "test_2018": 1071,
    },
    "reviews": {"test": 60},
    "nltk_reviews": {"all": 2000},
    "nltk_reviews(corpus=sentences)": {"all": 10662},
    "qqp": {"dev": 10000, "test": 10000},
    "sentconv_cls": {"train": 6920, "dev": 872, "test": 1821},
    "sentconv_cls(corpus=mr)": {"all": 10662},
    "sentconv_cls(corpus=subj)": {"all": 10000},
    "sentconv_cls(corpus=trec)": {"train": 5452, "test": 500},
    "sentconv_cls(corpus=cr)": {"all": 3775},
    "sentconv_cls(corpus=mpqa)": {"all": 10606},
    "sst2": {"train": 6920, "dev": 872, "test": 1821},
    "sst_trees": {"train": 6920, "dev": 872, "test": 1821},
    "sst_trees(classes=5)": {"dev": 1101, "test": 2210},
    **{
        f"textfooler_1k(corpus={name})": {"test": 1000}
        for name in "imdb yelp ag mr snli mnli mnli_matched mnli_mismatched".split()
    },
    "tinyshakespeare(level=file)": {"all": 1},
    "ud_english_ewt": {"dev": 2001, "test": 2077},
    "wikitext2(level=file)": {"valid": 1, "test": 1},
    "xquad": {"test": 1190},
    "xquad(language=de)": {"test": 1190},
}  # fmt: skip
SLOW = {
    "imdb_counterfactual": {"train": 3414},
    "majority_class_toy": {"train": 50000},
    "multi30k_deen": {"train": 29000},
    "sst_trees(classes=5)": {"train": 8544},
    "ud_english_ewt": {"train": 12544},
    "yelp_sentences": {"dev": 25278 + 38205, "test": 50278 + 76392},
    # every labelled node is an example
    "sst_trees(classes=5, phrases=True)": {"train": 318582, "dev": 41447, "test": 82600},
}
BROKEN = {"sentconv_cls(corpus=cr)": 4, "sentconv_cls(corpus=mpqa)": 3}  # a label and no text
MENDED = {
    ("qqp", "dev"): {"bytes replaced": 83},
    ("qqp", "test"): {"bytes replaced": 72},
    ("sentconv_cls(corpus=mr)", "all"): {"read as cp1252": 202},
    ("sentconv_cls(corpus=subj)", "all"): {"read as cp1252": 113},
    ("sentconv_cls(corpus=trec)", "train"): {"read as cp1252": 1},
    ("align_deen_bicici", "test"): {"links left out": 1},
    ("eraser_movies", "test"): {"empty evidence left out": 14},
}


def count(spec, split, expected, data_dir):
    found = open_dataset(spec, split, data=data_dir, skip_broken=True)
    assert len(found) + len(found.broken) == expected
    assert len(found.broken) == BROKEN.get(spec, 0)
    assert found.mended == MENDED.get((spec, split), {})
    assert found.split == split and found.task in SEGMENTS
    known = datasets.build(spec)
    assert found.labels == tuple(known.labels)
    assert found.gold == known.gold or "phrases" in spec
    if found.labels and found.task != "tagging":
        assert {example.label for example in found} == set(found.labels)
    assert len({example.id for example in found}) == len(found)
    if found.task in ("pair", "qa"):
        assert all(example.pair for example in found)
    return found


@pytest.mark.parametrize(("spec", "split"), [(spec, split) for spec, parts in COUNTS.items() for split in parts])
def test_counts_of_the_publishers(spec, split, data_dir):
    count(spec, split, COUNTS[spec][split], data_dir)


@pytest.mark.full
@pytest.mark.parametrize(("spec", "split"), [(spec, split) for spec, parts in SLOW.items() for split in parts])
def test_counts_of_large_files(spec, split, data_dir):
    count(spec, split, SLOW[spec][split], data_dir)


ABSENT = ("beer", "hotel")  # not at hand: tried on records of our own


def test_every_folder_has_a_data_set(data_dir):
    folders = {path.name for path in data_dir.iterdir() if path.is_dir()}
    assert folders <= {datasets[name].folder for name in datasets}
    counted = {spec.partition("(")[0] for spec in (*COUNTS, *SLOW)}
    assert counted == set(datasets) - set(ABSENT)


@pytest.mark.parametrize("name", list(datasets))
def test_a_data_set_says_what_it_is(name):
    made = datasets.build(name)
    assert made.name == name and isinstance(made, Dataset)
    assert made.task in SEGMENTS and made.splits
    assert made.embedded or (made.source.startswith("http") and made.paper)
    assert re.fullmatch(r"[^\n]+\.", made.__doc__.splitlines()[0])
    assert str(made.spec()) == name and datasets.build(made.spec()) == made


# facts, read off by other means


def packed(path) -> str:
    return gzip.decompress(path.read_bytes()).decode("utf-8")


def pieces(example):
    texts = {"first": example.text, "second": example.pair, "context": example.pair, "question": example.text}
    return [texts.get(span.segment, example.text)[span.start : span.end] for span in example.gold]


def test_eraser_evidence_is_the_stated_text(data_dir):
    raw = [json.loads(line) for line in packed(data_dir / "eraser_movies/val.jsonl.gz").splitlines()]
    found = {example.id: example for example in open_dataset("eraser_movies", "val", data=data_dir)}
    with tarfile.open(data_dir / "eraser_movies/docs.tar.gz") as archive:
        for record in raw[:20] + raw[-20:]:
            example = found[record["annotation_id"]]
            text = archive.extractfile(f"docs/{example.id}").read().decode()
            said = sorted((e["start_token"], e["text"]) for group in record["evidences"] for e in group)
            assert example.text == text
            assert [" ".join(piece.split()) for piece in pieces(example)] == [words for _, words in said]
            assert example.label == {"NEG": "negative", "POS": "positive"}[record["classification"]]


@pytest.mark.parametrize(("split", "spans"), [("train", 13878), ("val", 1517), ("test", 2067 - 20)])
def test_eraser_evidence_is_complete(split, spans, data_dir):
    found = open_dataset("eraser_movies", split, data=data_dir)
    assert sum(len(example.gold) for example in found) == spans  # 20 in test have no token
    assert sum(not example.gold for example in found) == (1 if split == "train" else 0)


def test_eraser_sentences(data_dir):
    spans = open_dataset("eraser_movies", "val", data=data_dir, limit=8)
    whole = open_dataset("eraser_movies(level=sentence)", "val", data=data_dir, limit=8)
    for one, other in zip(spans, whole, strict=True):
        lines_of = {line.strip() for line in one.text.split("\n")}
        assert other.gold and all({p.strip() for p in piece.split("\n")} <= lines_of for piece in pieces(other))
        for span in one.gold:
            assert any(span.start >= w.start and span.end <= w.end for w in other.gold)


def test_cose_marks_words(data_dir):
    rows = list(csv.DictReader(io.StringIO(packed(data_dir / "eraser_cose/test.csv.gz"), newline="")))
    for row, example in zip(rows, open_dataset("eraser_cose", data=data_dir), strict=True):
        words = [w for w, mark in zip(row["text"].split(), json.loads(row["rationale"]), strict=True) if mark]
        assert " ".join(pieces(example)).split() == words
        assert example.meta["choices"] == row["query"].split(" [SEP] ")
        assert f"{example.label}) " in example.pair and all(span.segment == "first" for span in example.gold)


def test_rationales_of_the_last_word(data_dir):
    raw = (data_dir / "lambada_rationales/annotated_lambada.json").read_text(encoding="utf-8").splitlines()
    found = open_dataset("lambada_rationales", data=data_dir)
    for line, example in zip(raw, found, strict=True):
        record = json.loads(line)
        assert example.id == str(record["lambadaIndex"]) and example.text + example.target == record["text"].rstrip()
        assert pieces(example) == [record["text"][a:b] for a, b in record["rationale"]]  # in their order
        assert example.target.strip() == example.label == record["text"].split()[-1]
        assert max(span.end for span in example.gold) == example.gold[0].end  # the word before the last comes first
    assert sum(len(e.gold) for e in found) / len(found) == pytest.approx(7.01, abs=0.005)


def test_lambada_is_put_together_again(data_dir):
    raw = [json.loads(line)["text"] for line in packed(data_dir / "lambada_test/lambada_test.jsonl.gz").splitlines()]
    found = open_dataset("lambada_test", data=data_dir)
    assert [example.text + example.target for example in found] == [text.rstrip() for text in raw]
    rationales = open_dataset("lambada_rationales", data=data_dir)
    assert len(overlap(rationales, found)) == 107


def test_trees_agree_with_their_brackets(data_dir):
    raw = packed(data_dir / "sst_trees/dev.txt.gz").splitlines()
    found = open_dataset("sst_trees(classes=5)", "dev", data=data_dir)
    names = ("very negative", "negative", "neutral", "positive", "very positive")
    marks = 0
    for line, example in zip(raw, found, strict=True):
        leaves = re.findall(r"\((\d) ([^()]+)\)", line)
        assert example.label == names[int(line[1])] and example.meta["score"] == int(line[1])
        far = [word for label, word in leaves if label in "04"]
        assert [p.replace("/", "\\/") for p in pieces(example)] == [word.replace("\\*", "*") for word in far]
        assert len(example.text.split(" ")) == len(leaves)
        marks += len(far)
    assert marks == 540
    near = open_dataset("sst_trees", "dev", data=data_dir, distance=1)
    assert sum(len(e.gold) for e in near) == sum(
        len(re.findall(r"\([0134] [^()]+\)", line)) for line in raw if line[1] != "2"
    )


def test_phrases_of_a_tree(tmp_path):
    folder = tmp_path / "sst_trees"
    folder.mkdir()
    (folder / "dev.txt").write_text("(3 (2 It) (4 (2 's) (4 (0 bad) (3 -LRB-))))\n")
    found = open_dataset("sst_trees(classes=5, phrases=True)", "dev", data=tmp_path)
    assert [(e.id, e.text, e.label, pieces(e)) for e in found] == [
        ("1/0", "It 's bad (", "positive", ["bad"]),
        ("1/1", "It", "neutral", []),
        ("1/2", "'s bad (", "very positive", ["bad"]),
        ("1/3", "'s", "neutral", []),
        ("1/4", "bad (", "very positive", ["bad"]),
        ("1/5", "bad", "very negative", ["bad"]),
        ("1/6", "(", "positive", []),
    ]
    two = open_dataset("sst_trees(phrases=True)", "dev", data=tmp_path)
    assert [e.label for e in two] == ["positive", "positive", "positive", "negative", "positive"]


def test_answers_stand_in_their_context(data_dir):
    for language in ("en", "de"):
        with gzip.open(data_dir / f"xquad_en/xquad.{language}.json.gz") as file:
            raw = {q["id"]: q for a in json.load(file)["data"] for p in a["paragraphs"] for q in p["qas"]}
        found = open_dataset(f"xquad(language={language})", data=data_dir)
        assert all(pieces(e) == [raw[e.id]["answers"][0]["text"]] == [e.label] for e in found)
        assert all(e.gold[0].segment == "context" and e.text == raw[e.id]["question"] for e in found)
        assert len({e.pair for e in found}) == 240


def test_alignments(data_dir):
    deen = open_dataset("align_deen_bicici", data=data_dir).examples
    assert sum(len(e.meta["sure"]) for e in deen) == 1232 and not any(e.meta["possible"] for e in deen)
    assert [(e.id, e.meta["dropped"]) for e in deen if "dropped" in e.meta] == [("63", [[12, 16]])]

    def linked(example, i, j):
        (a, b), (c, d) = example.meta["source_words"][i], example.meta["target_words"][j]
        return example.text[a:b], example.label[c:d]

    with zipfile.ZipFile(data_dir / "align_deen_bicici/German-English_WordAlignment.zip") as archive:
        names = ("test.de", "test.en", "de-en.ref.wa")
        raw = [archive.read(f"German-English_WordAlignment/{name}").decode("utf-8-sig") for name in names]
    german, english = (text.splitlines() for text in raw[:2])
    assert deen[0].text == german[0].strip()  # without the mark at the beginning of the file
    said = {tuple(map(int, line.split()[:3])) for line in raw[2].splitlines()} - {(63, 12, 16)}
    assert {(int(e.id), i, j) for e in deen for i, j in e.meta["sure"]} == said  # the other file of links agrees
    for number, i, j in said:
        assert linked(deen[number - 1], i, j) == (german[number - 1].split()[i], english[number - 1].split()[j])
    zhen = open_dataset("align_zhen", data=data_dir).examples
    assert sum(len(e.meta["sure"]) for e in zhen) == 11238 and sum(len(e.meta["possible"]) for e in zhen) == 178
    gold = packed(data_dir / "align_zhen/zhen.gold.gz").splitlines()
    for example, line in zip(zhen, gold, strict=True):
        for kind, sign in (("sure", "-"), ("possible", "p")):
            assert {f"{i + 1}{sign}{j + 1}" for i, j in example.meta[kind]} == {x for x in line.split() if sign in x}
    rest = open_dataset("align_zhen(skip=200)", data=data_dir).examples
    assert rest == zhen[200:]
    printed = open_dataset("align_zhen(spaces=False)", data=data_dir).examples
    for one, other in zip(zhen, printed, strict=True):
        assert other.text.replace(" ", "") == one.text.replace(" ", "")
        assert [other.text[a:b] for a, b in other.meta["source_words"]] == one.text.split()
    assert " " not in printed[0].text


def test_the_edited_words_are_gold(data_dir):
    found = open_dataset("imdb_counterfactual", "dev", data=data_dir)
    assert [(e.id, e.label, len(e.gold)) for e in found.examples[:2]] == [
        ("122/original", "negative", 3),
        ("122/edited", "positive", 2),
    ]
    for before, after in zip(found.examples[::2], found.examples[1::2], strict=True):
        assert before.meta["other"] == after.id and after.meta["other"] == before.id
        assert {before.label, after.label} == {"negative", "positive"}
        left = [bare(without(e)) for e in (before, after)]  # what was not edited is the same in both
        assert left[0] == left[1]


def without(example):
    text = example.text
    for span in sorted(example.gold, key=lambda s: -s.start):
        text = text[: span.start] + " " + text[span.end :]
    return text


def bare(text):
    return re.sub(r"\s+", "", text.lower())


def test_treebank(data_dir):
    found = open_dataset("ud_english_ewt", "dev", data=data_dir)
    raw = packed(data_dir / "ud_english_ewt/en_ewt-ud-dev.conllu.gz").splitlines()
    rows = [line.split("\t") for line in raw if re.match(r"[0-9]+\t", line)]
    assert [tag for e in found for tag in e.label] == [row[3] for row in rows] and len(rows) == 25147
    relations = Counter(r.partition(":")[0] for e in found for r in e.meta["relations"])
    assert relations["amod"] == 1326 and Counter(r for e in found for r in e.meta["relations"])["nsubj"] == 1958
    words = [e.text[a:b] for e in found for a, b in e.meta["words"]]
    assert sum(word == row[1] for word, row in zip(words, rows, strict=True)) > 25000  # but for "au" = "à" + "le"


def test_texts_are_complete(data_dir):
    (play,) = open_dataset("tinyshakespeare(level=file)", data=data_dir).examples
    assert len(play.text) == 1115394
    speeches = open_dataset("tinyshakespeare", data=data_dir)
    assert play.text.startswith(speeches.examples[0].text) and len(speeches) == 7222
    assert sum(len(e.text) for e in speeches) == len(re.sub(r"\n(?=\n)|\n\Z", "", play.text)) - (7222 - 1)
    for split, size in (("valid", 217646), ("test", 245569)):
        (text,) = open_dataset("wikitext2(level=file)", split, data=data_dir).examples
        assert len(text.text.split()) + text.text.count("\n") == size  # each line ends with <eos>
        paragraphs = open_dataset("wikitext2", split, data=data_dir)
        assert [e.text for e in paragraphs] == [line for line in text.text.split("\n") if line.strip()]


def test_pairs_and_numbers(data_dir):
    qqp = open_dataset("qqp", "test", data=data_dir)
    assert Counter(e.label for e in qqp) == {"duplicate": 5000, "not_duplicate": 5000}
    raw = gzip.decompress((data_dir / "qqp/test.tsv.gz").read_bytes()).decode("utf-8", "replace")
    rows = csv.reader(io.StringIO(raw, newline=""), delimiter="\t")
    assert [(e.text, e.pair, e.id) for e in qqp] == [tuple(row[1:]) for row in rows]
    german, english = (packed(data_dir / f"multi30k_deen/val.{x}.gz").splitlines() for x in ("de", "en"))
    found = open_dataset("multi30k_deen", "val", data=data_dir)
    assert [(e.text, e.label) for e in found] == [(a, b.strip()) for a, b in zip(german, english, strict=True)]
    turned = open_dataset("multi30k_deen(to=de)", "val", data=data_dir)
    assert [(e.text, e.label) for e in turned] == [(b, a.strip()) for a, b in zip(german, english, strict=True)]
    toy = open_dataset("majority_class_toy", "valid", data=data_dir)
    lines_of = packed(data_dir / "majority_class_toy/valid.tok.gz").splitlines()
    assert [e.text + e.target for e in toy] == [line.strip() for line in lines_of]
    words = open_dataset("analogies", data=data_dir)
    lines_of = [line for line in packed(data_dir / "analogies/questions-words.txt.gz").splitlines() if line[0] != ":"]
    assert [e.text + e.target for e in words] == [" ".join(line.split()) for line in lines_of]
    assert len({e.meta["relation"] for e in words}) == 14
    news = open_dataset("ag_news(topics=(World, Business))", data=data_dir)
    assert len(news) == 3800 and news.labels == ("World", "Business")
    mr = open_dataset("sentconv_cls(corpus=mr)", data=data_dir)
    assert any("…" in e.text for e in mr) and any("—" in e.text for e in mr)  # 0x85 and 0x97, which Latin-1 has not
    stars = open_dataset("imdb", "train", data=data_dir, limit=40)
    assert all((e.meta["stars"] >= 7) == (e.label == "positive") for e in stars)
    mnli, same = (open_dataset(f"textfooler_1k(corpus={c})", data=data_dir) for c in ("mnli", "mnli_mismatched"))
    assert [e.label for e in mnli] == [e.label for e in same]


@pytest.mark.parametrize(
    "spec", ["imdb", "eraser_movies", "news_sport", "nltk_reviews", "sentconv_cls(corpus=mr)", "yelp_sentences"]
)
def test_classes_come_in_turn(spec, data_dir):
    """The files hold one class after the other: a few examples must not be of a single one."""
    found = open_dataset(spec, data=data_dir, limit=10)
    assert [e.label for e in found] == list(found.labels) * 5


def test_overlaps_that_are_known(data_dir):
    sst, mr = (
        open_dataset("sentconv_cls", "test", data=data_dir),
        open_dataset("sentconv_cls(corpus=mr)", data=data_dir),
    )
    assert len(overlap(sst, mr)) == 1431
    assert len(overlap(sst, open_dataset("nltk_reviews(corpus=sentences)", data=data_dir))) == 1431
    assert len(overlap(*(open_dataset("ag_news", split, data=data_dir) for split in ("train", "test")))) == 1
    edited = open_dataset("imdb_counterfactual", "test", data=data_dir)
    train = open_dataset("imdb", "train", data=data_dir)
    found = overlap(edited, train)
    assert len(found) == 82 and all(edited.examples[i].meta["role"] == "original" for i in found)
    assert len(overlap(edited, train, letters=150)) == 97


@pytest.mark.full
def test_movies_that_are_in_both(data_dir):
    movies = [e for split in ("train", "val", "test") for e in open_dataset("eraser_movies", split, data=data_dir)]
    assert len(overlap(movies, open_dataset("nltk_reviews", data=data_dir), letters=150)) == 1997


def test_overlap():
    train = ["Good, good film!", "bad", "...", Example("a", "b"), "goodgoodfilm", "good good film, says he"]
    test = ["good good FILM", "!!!", Example("A", "c"), Example("A.", "B")]
    assert overlap(train, test) == [0, 3, 4]
    assert overlap(train, test, letters=12) == [0, 3, 4, 5]
    assert overlap([], test) == overlap(train, []) == []
    with pytest.raises(InputError, match="letters"):
        overlap(train, test, letters=0)


# where files are, and what users type


def test_where_data_is(tmp_path, monkeypatch):
    monkeypatch.delenv("RAISON_DATA", raising=False)
    with pytest.raises(InputError, match="set the variable RAISON_DATA.*'sst2'.*https://"):
        open_dataset("sst2")
    with pytest.raises(InputError, match="no folder 'sst2'.*RAISON_DATA.*https://"):
        open_dataset("sst2", data=tmp_path)
    (tmp_path / "sst2").mkdir()
    with pytest.raises(InputError, match="no file 'test.tsv'"):
        open_dataset("sst2", data=tmp_path)
    (tmp_path / "sst2" / "test.tsv").write_text("fine film\t1\nbad film\t0\n")  # plain, as the publisher has it
    monkeypatch.setenv("RAISON_DATA", str(tmp_path))
    found = open_dataset("sst2")
    assert [(e.id, e.text, e.label) for e in found] == [("1", "fine film", "positive"), ("2", "bad film", "negative")]
    assert (found.name, found.split, found.task, found.labels) == (
        "sst2", "test", "classification", ("negative", "positive"),
    )  # fmt: skip
    assert list(found) == found.examples and len(found) == 2
    assert open_dataset(datasets.build("sst2")).examples == open_dataset(Spec("sst2")).examples == found.examples


def test_names_and_splits(tmp_path):
    with pytest.raises(UnknownName, match="Did you mean 'sst2'"):
        open_dataset("sst22")
    with pytest.raises(InputError, match="no parameter 'levl'. Did you mean 'level'"):
        open_dataset("eraser_movies(levl=span)")
    with pytest.raises(InputError, match="level is span or sentence"):
        open_dataset("eraser_movies(level=words)")
    with pytest.raises(InputError, match="no split 'tset'. Did you mean 'test'"):
        open_dataset("sst2", "tset", data=tmp_path)
    with pytest.raises(InputError, match="limit is a whole number"):
        (tmp_path / "sst2").mkdir()
        (tmp_path / "sst2" / "test.tsv").write_text("fine film\t1\n")
        open_dataset("sst2", limit=0, data=tmp_path)
    with pytest.raises(InputError, match="There is no file 'none.csv'"):
        open_dataset("none.csv(text=a)")
    with pytest.raises(InputError, match="not a data set"):
        open_dataset("sst2(__import__('os'))")
    for bad in ("sst_trees(distance=3)", "sst_trees(classes=3)", "xquad(language=fr)", "ag_news(topics=(World, Cats))"):
        with pytest.raises(InputError):
            open_dataset(bad, data=tmp_path)
    made = datasets.build("eraser_movies")
    assert [made.split(name) for name in ("dev", "validation", "val", None)] == ["val", "val", "val", "test"]
    assert datasets.build("wikitext2").split("dev") == "valid" and datasets.build("imdb").split(None) == "test"
    settings = {"text": Spec("x"), "labels": (Spec("b"), Spec("c"))}
    assert parse_data_spec("a.csv(text=x, labels=(b, c))") == ("a.csv", settings)
    odd = tmp_path / "data (1).csv"
    odd.write_text("text\nfine\n")
    assert parse_data_spec(str(odd)) == (str(odd), {})
    assert parse_data_spec(f"{odd}(text=x)") == (str(odd), {"text": Spec("x")})


def test_a_data_set_in_one_file(tmp_path):
    @dataset("colours")
    @dataclass(frozen=True)
    class Colours(Dataset):
        """Names of colours."""

        task = "classification"
        splits = ("all",)
        folder = "colours"
        source = "https://example.org"
        labels = ("warm", "cold")

        size: int = 1

        def rows(self, place, split):
            for row in read_lines(place / "colours.txt"):
                yield row if isinstance(row, Broken) else Row(row.file, row.line, self.example(row), row.mended)

        def example(self, row):
            word, _, label = row.value.partition(" ")
            return Example(word * self.size, id=word, label=label or None)

    try:
        folder = tmp_path / "colours"
        folder.mkdir()
        (folder / "colours.txt").write_text("red warm\nblue cold\ngrey\npink rosy\nred warm\n")
        assert "colours" in datasets
        assert [e.text for e in open_dataset("colours(size=2)", limit=2, data=tmp_path)] == ["redred", "blueblue"]
        found = open_dataset("colours", data=tmp_path, skip_broken=True)
        assert [(b.line, b.reason) for b in found.broken] == [
            (3, "it has no label"),
            (4, "the label 'rosy' is none of warm, cold"),
            (5, "the id 'red' stands in line 1 already"),
        ]
    finally:
        del datasets._entries["colours"]


# small parts


def test_runs_and_marks():
    assert true_runs([]) == [] and true_runs([0, 1, 1, 0, 1]) == [(1, 3), (4, 5)]
    assert find_tokens(" a  bc\td ") == [(1, 2), (4, 6), (7, 8)]
    assert spans_of_marks(find_tokens("a bc d"), [0, 1, 1], "text") == (Span(2, 6, "text"),)
    with pytest.raises(InputError, match="2 marks do not fit 3 tokens"):
        spans_of_marks(find_tokens("a b c"), [0, 1], "text")


def test_turns():
    def row(label):
        return Row("f", 1, Example("x", label=label))

    rows = [row("a"), row("a"), row("a"), Broken("f", 9, "why"), row("b"), row("c"), row("a"), row("b")]
    found = list(labels_in_turn(iter(rows), ("a", "b", "c")))
    assert [r.value.label for r in found if isinstance(r, Row)] == ["a", "b", "c", "a", "b", "a", "a"]
    assert sum(isinstance(r, Broken) for r in found) == 1
    assert list(interleave(iter("abc"), iter("1"), iter(""), iter("xy"))) == list("a1xbyc")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("(3 (2 It) (4 works)", "not closed"),
        ("(3 (2 It) (4 works)))", "follows the end"),
        ("It works", "begins with"),
        ("(3 It works)", "bracket of its own"),
        ("(3 (2 It) ())", "no label"),
        ("(3 (2 It) (4))", "no word"),
        ("", "no tree"),
    ],
)
def test_trees_that_are_none(line, why):
    with pytest.raises(InputError, match=why):
        parse_tree(line)


# what is wrong: file, line and reason


def damaged(tmp_path, folder, name, content):
    """A data directory with one file in it."""
    place = tmp_path / folder
    place.mkdir(exist_ok=True)
    (place / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return place / name


PARA = {"context": "The cat sat.", "qas": [{"id": "q1", "question": "Who?", "answers": []}]}


def squad(start, text):
    qas = [{"id": "q0", "question": "What?", "answers": [{"answer_start": 4, "text": "cat"}]}]
    qas.append({"id": "q1", "question": "Who?", "answers": [{"answer_start": start, "text": text}]})
    whole = {"data": [{"title": "t", "paragraphs": [{"context": "The cat sat.", "qas": qas}]}]}
    return json.dumps(whole, indent=1).encode()


Q1 = squad(4, "cat").decode().split('"q1"')[0].count("\n") + 1
CONLLU = "# text = It works\n1\tIt\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tworks\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
CASES = {  # spec, file, content, line, reason, examples that are left
    "bad UTF-8": ("sst2", "test.tsv", b"fine\t1\nbad\xe9\t0\ndull\t0\n", 2, r"byte 4 \(0xe9\) is not UTF-8", 2),
    "missing label": ("sst2", "test.tsv.gz", b"fine\t1\ndull\t\nbad\t0\n", 2, "1 of 2 columns", 2),
    "one column": ("sst2", "test.tsv", b"fine\t1\ndull\nbad\t0\n", 2, "1 of 2 columns", 2),
    "wrong label": ("sst2", "test.tsv", b"fine\t1\ndull\t7\n", 2, "'7' is neither 0 nor 1", 1),
    "only white space": ("sst2", "test.tsv", b"fine\t1\n   \t0\n", 2, "empty", 1),
    "text missing": ("sentconv_cls", "stsa.binary.test", b"1 fine\n0 \n", 2, "1 of 2 columns", 1),
    "class beyond": ("sentconv_cls(corpus=trec)", "TREC.test.all", b"5 how far ?\n6 how ?\n", 2, "'6'", 1),
    "same id": ("qqp", "test.tsv", b"1\ta?\tb?\t7\n0\tc?\td?\t7\n", 2, "'7' stands in line 1 already", 1),
    "tree": ("sst_trees", "test.txt", b"(3 (2 It) (4 works))\n(3 (2 It) (4 works)\n", 2, "not closed", 1),
    "label of a tree": ("sst_trees", "test.txt", b"(7 (2 It) (4 works))\n", 1, "'7' is no number from 0 to 4", 0),
    "CSV quotes": ("ag_news", "test.csv", b'"3","a","b"\n"3","a"x,"b"\n"1","c","d"\n', 2, "quotes are wrong", 2),
    "CSV quote never closed": ("ag_news", "test.csv", b'"3","a","b"\n"3","a,"b\n', 2, "quotes are wrong", 1),
    "CSV columns": ("ag_news", "test.csv", b'"3","a","b"\n"3","a"\n', 2, "2 columns, not 3", 1),
    "CSV class": ("ag_news", "test.csv", b'"3","a","b"\n"5","a","b"\n', 2, "'5' is no number from 1 to 4", 1),
    "CSV bad UTF-8": ("ag_news", "test.csv", b'"3","a","b"\n"3","a\n\xff","b"\n"1","c","d"\n', 3, "character 1 is", 2),
    "marks": (
        "eraser_cose", "test.csv",
        b'id,text,classification,rationale,query\n0,a b,A,"[0, 1, 1]",a [SEP] b [SEP] c [SEP] d [SEP] e\n',
        2, "3 marks do not fit 2 tokens", 0,
    ),
    "column missing": ("eraser_cose", "test.csv", b"id,text,label,rationale,query\n0,a,A,[0],a\n", 2, "no column", 0),
    "not JSON": ("lambada_test", "lambada_test.jsonl", b'{"text": "a b"}\n{"text": "a b\n', 2, "not JSON", 1),
    "no object": ("lambada_test", "lambada_test.jsonl", b'["a b"]\n{"text": "a b"}\n', 1, "not an object", 1),
    "field missing": ("lambada_test", "lambada_test.jsonl", b'{"txt": "a b"}\n', 1, "no field 'text'; it has txt", 0),
    "one word": ("lambada_test", "lambada_test.jsonl", b'{"text": "word"}\n', 1, "single word", 0),
    "span outside": (
        "lambada_rationales", "annotated_lambada.json",
        b'{"lambadaIndex": 1, "text": "the cat sat", "rationale": [[4, 7]]}\n'
        b'{"lambadaIndex": 2, "text": "the cat sat", "rationale": [[4, 9]]}\n', 2, "4..9 is not in the text", 1,
    ),
    "empty span": (
        "lambada_rationales", "annotated_lambada.json",
        b'{"lambadaIndex": 2, "text": "the cat sat", "rationale": [[4, 4]]}\n', 1, "4..4 is not in the text", 0,
    ),
    "span of a space": (
        "lambada_rationales", "annotated_lambada.json",
        b'{"lambadaIndex": 2, "text": "the cat sat", "rationale": [[3, 4]]}\n', 1, "nothing but white space", 0,
    ),
    "wrong answer": ("xquad", "xquad.en.json", squad(5, "cat"), Q1, "holds 'at ', not 'cat' as stated", 1),
    "answer outside": ("xquad", "xquad.en.json", squad(40, "cat"), Q1, "40..43 is not in the text", 1),
    "SQuAD is no JSON": ("xquad", "xquad.en.json", b'{"data":\n [1,\n', 2, "not JSON", 0),
    "no SQuAD": ("xquad", "xquad.en.json", b'{"data": [{"paragraphs": [{"context": "c", "qas": [1]}]}]}', 1, "SQ", 0),
    "CoNLL-U": ("ud_english_ewt", "en_ewt-ud-test.conllu", (CONLLU + "1\tIt\n\n").encode(), 5, "2 columns", 1),
    "CoNLL-U bad UTF-8": (
        "ud_english_ewt", "en_ewt-ud-test.conllu",
        CONLLU.encode() + CONLLU.encode().replace(b"2\tworks", b"2\tw\xf6rks") + CONLLU.encode(), 7, "0xf6", 2,
    ),
    "link": ("align_zhen", "zhen.gold", b"1-1 2-2\n1-1 2x2\n", 2, "'2x2' is no link", 1),
    "link beyond": ("align_zhen", "zhen.gold", b"1-1\n3-1\n", 2, "link 2-0 .* goes beyond the 2 and 2 words", 1),
    "links from 0": ("align_zhen", "zhen.gold", b"1-1\n0-1\n", 2, "counts words from 0, not from 1", 1),
    "a line short": ("align_zhen", "zhen.gold", b"1-1\n", 2, "the other file ends before", 1),
    "no majority": ("majority_class_toy", "test.tok", b"1 " * 17 + b"= 0\n", 1, "most are 1", 0),
    "no relation": ("analogies", "questions-words.txt", b"a b c d\n: x\na b c d\na b c\n", 1, "no relation", 1),
    "pair without partner": (
        "imdb_counterfactual", "test_paired.tsv",
        b"Sentiment\tText\tbatch_id\nNegative\tbad\t1\nPositive\tgood\t2\nNegative\tbad\t2\n", 2, "does not follow", 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_broken_records(case, tmp_path):
    spec, name, content, line, reason, left = CASES[case]
    folder = datasets[spec.partition("(")[0]].folder
    path = damaged(tmp_path, folder, name, content)
    if folder == "align_zhen":
        damaged(tmp_path, folder, "zhen.src-tgt", "我 来 ||| i come\n他 来 ||| he comes\n".encode())
        path = path.with_name("zhen.src-tgt")  # the sentences are what is broken
    with pytest.raises(
        InputError, match=rf"^Line {line} of '{re.escape(str(path))}' is broken: .*{reason}.*skip_broken"
    ):
        open_dataset(spec, data=tmp_path)
    found = open_dataset(spec, data=tmp_path, skip_broken=True)
    assert (found.broken[0].file, found.broken[0].line) == (str(path), line) and re.search(
        reason, found.broken[0].reason
    )
    assert len(found) == left


def test_conllu_ids_may_repeat_only_once(tmp_path):
    text = "# sent_id = a\n" + CONLLU
    damaged(tmp_path, "ud_english_ewt", "en_ewt-ud-test.conllu", (text * 2).encode())
    found = open_dataset("ud_english_ewt", data=tmp_path, skip_broken=True)
    assert len(found) == 1 and found.broken[0].reason == "the id 'a' stands in line 3 already"


def test_cut_files(tmp_path):
    """A packed file that ends too early says so, wherever it was cut; what was read before is counted."""
    whole = gzip.compress(b"".join(f"sentence {n * n}\t{n % 2}\n".encode() for n in range(5000)))
    path = damaged(tmp_path, "sst2", "test.tsv", b"")
    path.unlink()
    path = path.with_name("test.tsv.gz")
    for size in (len(whole) // 2, len(whole) - 4):
        path.write_bytes(whole[:size])
        with pytest.raises(
            InputError, match=r"^Line \d+ of '.*test.tsv.gz' is broken: the file is cut or damaged here"
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


REVIEWS = {f"aclImdb/test/{kind}/{n}_9.txt": f"{kind} film {n}".encode() for n in range(3) for kind in ("neg", "pos")}


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
    with pytest.raises(InputError, match=r"^Line 2 of '.*:aclImdb/test/neg/7_1.txt' is broken: .*0xe9"):
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
        with pytest.raises(InputError, match="Line 2 of .* longer than 1 MB: write one record in each line"):
            open_dataset(str(rows))
        found = open_dataset(str(rows), skip_broken=True)
        assert [e.text for e in found] == ["a good film"] * 2 and found.broken[0].line == 2
    fits = good.rstrip(b"}\n") + b', "note": "' + b"y" * (2**20 - len(good) - 12) + b'"}\n'
    rows.write_bytes(fits + good)
    assert len(fits) <= 2**20 and len(open_dataset(str(rows))) == 2
    whole = tmp_path / "whole.json"
    whole.write_text('{"data": [\n' + ('{"title": "' + "t" * 1000 + '"},\n') * 1100 + '{"title": "t"}]}')
    with pytest.raises(InputError, match="JSON of more than 1 MB"):
        open_dataset(str(whole))


def eraser_folder(place, **changes):
    place.mkdir(exist_ok=True)
    (place / "docs").mkdir(exist_ok=True)
    (place / "docs" / "d1").write_text("a good film .\nthe plot is thin .\n")
    (place / "docs" / "d2").write_text("i  slept .")
    piece = {"docid": "d1", "start_token": 1, "end_token": 3, "text": "good film", **changes}
    other = {"docid": "d2", "start_token": 1, "end_token": 2, "text": "slept"}
    first = {"annotation_id": "r1", "classification": "POS", "evidences": [[piece]], "query": "Good ?"}
    second = {
        "annotation_id": "r2",
        "classification": "NEG",
        "evidences": [[other]],
        "docids": ["d1", "d2"],
        "query": "?",
    }
    (place / "val.jsonl").write_text("".join(json.dumps(x) + "\n" for x in (second, first)))
    return place


def test_eraser_folder_of_a_user(tmp_path):
    found = open_dataset(eraser_folder(tmp_path / "mine"))
    assert (found.split, found.task, [e.id for e in found]) == ("val", "classification", ["r2", "r1"])
    assert [(pieces(e), e.label) for e in found] == [(["slept"], "NEG"), (["good film"], "POS")]
    assert found.examples[0].text == "a good film .\nthe plot is thin .\n\n\ni  slept ."
    asked = open_dataset(f"{tmp_path / 'mine'}(query=True, level=sentence)", "val")
    assert asked.task == "pair" and [(e.text, pieces(e)) for e in asked] == [
        ("?", ["i  slept ."]), ("Good ?", ["a good film ."]),
    ]  # fmt: skip
    assert len(open_dataset(tmp_path / "mine", limit=1)) == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"end_token": 4}, "1..4 of 'd1' holds 'good film .', not 'good film' as stated"),
        ({"end_token": 99}, "1..99 is not in 'd1', which has 9 tokens"),
        ({"end_token": 1, "text": ""}, "1..1 is not in 'd1'"),
        ({"docid": "d9"}, "the document 'd9' is not in"),
        ({"start_token": "1"}, "'start_token' is str"),
    ],
)
def test_evidence_that_is_wrong(changes, reason, tmp_path):
    folder = eraser_folder(tmp_path / "mine", **changes)
    with pytest.raises(InputError, match=rf"^Line 2 of '.*val.jsonl' is broken: .*{re.escape(reason)}"):
        open_dataset(folder)
    found = open_dataset(folder, skip_broken=True)
    assert [e.id for e in found] == ["r2"] and len(found.broken) == 1


def test_empty_evidence_may_be_left_out(tmp_path):
    folder = eraser_folder(tmp_path / "mine", end_token=1, text="")
    rows = list(read_eraser(folder, "val", drop_empty=True))
    assert [(row.value.id, len(row.value.gold), row.mended) for row in rows] == [
        ("r2", 1, ()), ("r1", 0, ("empty evidence left out",)),
    ]  # fmt: skip


def test_limit_is_lazy(tmp_path):
    """Nothing behind the limit is looked at: these files are broken right after it."""
    good = b"".join(json.dumps({"text": f"text {n}"}).encode() + b"\n" for n in range(10))
    (tmp_path / "mine.jsonl").write_bytes(good + b"\xff\xfe{{{\n")
    assert len(open_dataset(tmp_path / "mine.jsonl", limit=10)) == 10
    with pytest.raises(InputError, match="Line 11"):
        open_dataset(tmp_path / "mine.jsonl", limit=11)
    asked = []

    def counted():
        for number, row in enumerate(read_lines(tmp_path / "mine.jsonl")):
            asked.append(number)
            yield row

    from raison.datasets.loading import ExampleSource, LoadedData
    from raison.datasets.rows import map_rows

    rows = map_rows(counted(), lambda row: Example(row.value, id=str(row.line)))
    found = ExampleSource(rows, lambda example: "", LoadedData("x", "all", "text", (), [])).read(3)
    assert len(found) == 3 and asked == [0, 1, 2]


# a user's own files


def test_json_lines(tmp_path):
    records = [
        {"text": "a good film", "label": "pos", "gold": [[2, 6]], "id": "x"},
        {"text": "a bad film", "gold": [0, 1, 1], "stars": 2, "meta": {"by": "me"}},
        {"text": "a film", "pair": "seen", "gold": [{"start": 0, "end": 4, "segment": "second", "text": "seen"}]},
        Example("filled in", id="y", gold=(Span(0, 6, "text"),), target="pos").to_dict(),
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    found = open_dataset(path)
    assert [(e.id, e.label, pieces(e)) for e in found] == [
        ("x", "pos", ["good"]), ("2", None, ["bad film"]), ("3", None, ["seen"]), ("y", None, ["filled"]),
    ]  # fmt: skip
    assert found.examples[1].meta == {"stars": 2, "by": "me"}
    assert found.examples[3] == Example("filled in", id="y", gold=(Span(0, 6, "text"),), target="pos")
    assert (found.task, found.split, found.labels) == ("pair", "all", ())
    mapped = tmp_path / "other.json"
    mapped.write_text('{"q": "Who sat?", "doc": "The cat sat.", "spans": [[4, 7]]}\n')
    (example,) = open_dataset(f"{mapped}(text=q, pair=doc, gold=spans, task=qa)")
    assert (example.text, example.gold) == ("Who sat?", (Span(4, 7, "context"),))
    (example,) = open_dataset(mapped, text="q", pair="doc", gold="spans", segment="second")
    assert example.gold == (Span(4, 7, "second"),)


def test_tables(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_bytes(b'\xef\xbb\xbfnr,review,stars,marks\r\n1,"a ""good"",\nfilm",1,"[0, 1, 1]"\r\n2,a bad film,0,\r\n')
    found = open_dataset(f"{path}(text=review, label=stars, id=nr, gold=marks, labels=(negative, positive))")
    assert [(e.id, e.text, e.label, pieces(e)) for e in found] == [
        ("1", 'a "good",\nfilm', "positive", ['"good",\nfilm']), ("2", "a bad film", "negative", []),
    ]  # fmt: skip
    assert (found.task, found.labels) == ("classification", ("negative", "positive"))
    assert found.name.startswith(f"{path}(gold=")
    assert open_dataset(path, text="review").examples[0].meta == {"nr": "1", "stars": "1", "marks": "[0, 1, 1]"}
    plain = tmp_path / "plain.tsv.gz"
    plain.write_bytes(gzip.compress(b"fine\t1\nbad\xe9\t0\n"))
    found = open_dataset(f"{plain}(text=0, label=1, encoding='latin-1')")
    assert [(e.text, e.label) for e in found] == [("fine", "1"), ("badé", "0")] and found.mended == {
        "read as latin-1": 1
    }
    named = tmp_path / "named.data"
    named.write_text("text,label\nfine,1\n")
    assert len(open_dataset(f"{named}(format=csv)")) == 1
    (tmp_path / "two.txt").write_text("one\n\ntwo\nthree\n")
    assert [e.text for e in open_dataset(tmp_path / "two.txt")] == ["one", "two", "three"]
    assert [e.text for e in open_dataset(f"{tmp_path / 'two.txt'}(level=passage)")] == ["one", "two\nthree"]
    (tmp_path / "few.conllu").write_text(CONLLU)
    assert open_dataset(tmp_path / "few.conllu").examples[0].label == ("PRON", "VERB")
    (tmp_path / "few.json").write_bytes(squad(4, "cat"))
    assert open_dataset(tmp_path / "few.json").task == "qa"


OWN = {  # file, spec, content, line, reason
    "label": ("a.csv", "", b"text,label\nfine,1\nbad,\n", 3, "no label"),
    "mapped label": ("a.jsonl", "(label=y)", b'{"text": "x", "y": 1}\n{"text": "z", "y": null}\n', 2, "no label"),
    "a list of labels": ("a.jsonl", "", b'{"text": "x", "label": [0.5, NaN]}\n', 1, "is no number"),
    "no text": ("a.csv", "", b"text,label\nfine,1\n,1\n", 3, "no text"),
    "names": ("a.csv", "", b"text,text\nfine,1\n", 1, "stand twice: text, text"),
    "label name": ("a.csv", "(labels=(a, b))", b"text,label\nx,a\ny,1\nz,2\n", 4, "'2' is none of a, b"),
    "span": ("a.jsonl", "", b'{"text": "fine", "gold": [[0, 5]]}\n', 1, "0..5 is not in the text, which has 4"),
    "negative span": ("a.jsonl", "", b'{"text": "fine", "gold": [[-2, 2]]}\n', 1, "-2..2 is not in the text"),
    "stated": (
        "a.jsonl", "", b'{"text": "fine", "gold": [{"start": 0, "end": 2, "text": "ne"}]}\n', 1, "holds 'fi', not 'ne'",
    ),
    "fractions": ("a.jsonl", "", b'{"text": "fine", "gold": [[0, 1.5]]}\n', 1, "two whole numbers"),
    "segment": (
        "a.jsonl", "", b'{"text": "a", "gold": [{"start": 0, "end": 1, "segment": "second"}]}\n', 1, "about 'second'",
    ),
    "no spans": ("a.jsonl", "", b'{"text": "fine", "gold": [["a"]]}\n', 1, "is no span"),
    "gold in a cell": ("a.csv", "", b'text,gold\nfine,"[0, 1"\n', 2, "no list of spans"),
    "number": ("a.jsonl", "", b'{"text": 3}\n', 1, "must be a string, not int"),
    "same id": ("a.jsonl", "", b'{"text": "a", "id": 1}\n{"text": "b", "id": "1"}\n', 2, "stands in line 1 already"),
    "UTF-8": ("a.jsonl", "", b'{"text": "a"}\n{"text": "\xe9"}\n', 2, "0xe9"),
    "JSON list": ("a.json", "", b'[{"text": "a"},\n3, {"text": "b"}]', 2, "not an object with fields but int"),
    "JSON list that is cut": ("a.json", "", b'[{"text": "a"},\n{"text": "b"', 2, "it is not JSON"),
    "JSON list without its end": ("a.json", "", b'[{"text": "a"}\n', 1, "the list of objects is cut"),
    "JSON list that goes on": ("a.jsonl", "", b'[{"text": "a"}]\n[]', 1, "goes on in a wrong way"),
    "JSON list with a comma at its end": ("a.json", "", b'[{"text": "a"},]', 2, "it is not JSON"),
    "neither encoding": ("a.csv", "(encoding=ascii)", b"text\n\xe9\n", 2, "neither UTF-8 nor ascii"),
}  # fmt: skip


@pytest.mark.parametrize("case", OWN)
def test_broken_records_of_a_user(case, tmp_path):
    name, spec, content, line, reason = OWN[case]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"(?s)^Line {line} of '{re.escape(str(path))}' is broken: .*{reason}.*skip_"):
        open_dataset(f"{path}{spec}")
    found = open_dataset(f"{path}{spec}", skip_broken=True)
    assert len(found.broken) == 1 and found.broken[0].line == line


@pytest.mark.parametrize(
    ("name", "spec", "column"), [("a.csv", "", "text"), ("a.csv", "(text=review)", "review"), ("b.tsv", "", "text")]
)
@pytest.mark.parametrize("skip", [False, True])
def test_a_table_without_the_column_is_told_how_to_name_it(name, spec, column, skip, tmp_path):
    path = tmp_path / name
    path.write_text("words,stars\nfine,1\nbad,0\n".replace(",", "\t" if name.endswith("tsv") else ","))
    with pytest.raises(RaisonError, match=f"no column '{column}' for text; its columns are words, stars. Say") as told:
        open_dataset(f"{path}{spec}", skip_broken=skip)
    assert str(told.value).endswith(f"{name}(text=words).")
    assert len(open_dataset(f"{path}(text=words, label=stars)").examples) == 2


@pytest.mark.parametrize(
    ("name", "spec", "split", "why"),
    [
        ("a.csv", "(txt=b)", None, "can't be read with 'txt'. Did you mean 'text'"),
        ("a.csv", "(task=poetry)", None, "task is classification"),
        ("a.csv", "(level=span)", None, "level means nothing for csv"),
        ("a.csv", "(encoding=klingon)", None, "no encoding 'klingon'"),
        ("a.csv", "(format=xml)", None, "format is jsonl"),
        ("a.csv", "", "test", "has no splits"),
        ("a.xyz", "", None, "does not tell its format"),
        ("a.txt", "(text=b)", None, "has no columns to map"),
    ],
)
def test_specs_that_mean_nothing(name, spec, split, why, tmp_path):
    (tmp_path / name).write_text("text\nx\n")
    with pytest.raises(InputError, match=why):
        open_dataset(f"{tmp_path / name}{spec}", split)


def test_folders_that_are_none(tmp_path):
    with pytest.raises(InputError, match="not ERASER's"):
        open_dataset(f"{tmp_path}/")
    (tmp_path / "docs").mkdir()
    with pytest.raises(InputError, match=r"no file 'test.jsonl'"):
        open_dataset(f"{tmp_path}/")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InputError, match="is empty: it needs a first line"):
        open_dataset(tmp_path / "empty.csv")


def test_extras_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtra, match=r"raison\[data\]"):
        open_dataset(tmp_path / "a.parquet")
    with pytest.raises(MissingExtra, match=r"raison\[data\]"):
        open_dataset("hf:imdb")


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "reviews.parquet"
    columns = {"review": ["fine film", "bad", "dull"], "y": [1, 0, None], "gold": [[[0, 4]], [], None]}
    parquet.write_table(pyarrow.table(columns), path)
    found = open_dataset(f"{path}(text=review, label=y, labels=(negative, positive))", skip_broken=True)
    assert [(e.text, e.label, pieces(e)) for e in found] == [
        ("fine film", "positive", ["fine"]),
        ("bad", "negative", []),
    ]
    assert [(b.line, b.reason) for b in found.broken] == [(3, "it has no label")]
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="Line 1 of .*not Parquet"):
        open_dataset(f"{path}(text=review)")


def test_hugging_face(tmp_path):
    hub = pytest.importorskip("datasets")
    features = hub.Features({"review": hub.Value("string"), "y": hub.ClassLabel(names=["negative", "positive"])})
    made = hub.Dataset.from_dict({"review": ["fine", "bad", "odd"], "y": [1, 0, -1]}, features=features)
    made.save_to_disk(str(tmp_path / "one"))
    found = open_dataset(f"hf:{tmp_path / 'one'}(text=review, label=y)", skip_broken=True)
    assert [(e.id, e.text, e.label) for e in found] == [("1", "fine", "positive"), ("2", "bad", "negative")]
    assert found.labels == ("negative", "positive") and [(b.line, b.reason) for b in found.broken] == [
        (3, "it has no label")
    ]
    both = hub.DatasetDict({"train": made.select([0]), "test": made.select([1])})
    both.save_to_disk(str(tmp_path / "both"))
    spec = f"hf:{tmp_path / 'both'}(split=train, text=review, label=y)"
    assert [e.text for e in open_dataset(spec)] == ["fine"]
    assert [e.text for e in open_dataset(spec.replace("split=train, ", ""))] == ["bad"]
    with pytest.raises(InputError, match="no split 'tset': it has train, test"):
        open_dataset(spec, "tset")
    with pytest.raises(InputError, match="no column 'text' for text; the columns are review, y"):
        open_dataset(f"hf:{tmp_path / 'one'}")
    tags = hub.Features(
        {"tokens": hub.Sequence(hub.Value("string")), "tags": hub.Sequence(hub.ClassLabel(names=["O", "B"]))}
    )
    hub.Dataset.from_dict({"tokens": [["Ann", "sat"]], "tags": [[1, 0]]}, features=tags).save_to_disk(
        str(tmp_path / "ner")
    )
    found = open_dataset(f"hf:{tmp_path / 'ner'}(text=tokens, label=tags)")
    assert (found.task, found.examples[0].text, found.examples[0].label) == ("tagging", "Ann sat", ("B", "O"))


def test_the_how_to_works_as_written(tmp_path, monkeypatch, capsys):
    page = ROOT / "docs" / "how-to" / "datasets.md"
    written = page.read_text(encoding="utf-8")
    first, *others, second = re.findall(r"```python\n(.*?)```", written, re.S)
    printed = re.findall(r"```text\n(.*?)```", written, re.S)
    monkeypatch.chdir(tmp_path)
    assert len(others) == len(printed) == 3
    for code, told in zip(others, printed, strict=True):
        exec(compile(code, "example", "exec"), {})
        assert capsys.readouterr().out == told
    Path("mine.csv").write_text("review,stars\na fine film,1\n")
    exec(compile(first, "first", "exec"), {})
    assert capsys.readouterr().out == "classification ('negative', 'positive') 1 a fine film\n"
    Path("moods").mkdir()
    Path("moods/test.tsv").write_text("glad\tsun\nsad\train\nbad\tfog\n")
    list(datasets)
    exec(compile(second, "second", "exec"), {"__name__": "moods_plugin"})
    try:
        found = open_dataset("moods", data=tmp_path, skip_broken=True)
        assert [(e.text, e.label) for e in found] == [("sun", "glad"), ("rain", "sad")]
        assert [(b.line, b.reason) for b in found.broken] == [(3, "the label 'bad' is none of sad, glad")]
    finally:
        del datasets._entries["moods"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "name of the data is empty"),
        ("list.json", r"it is neither SQuAD, nor a list of objects, nor an object in each line"),
        ("list.json(encoding=latin-1)", r'in quotes, such as \(encoding="latin-1"\)'),
    ],
)
def test_what_is_no_data_is_told_how_to_write_it(name, why, tmp_path):
    (tmp_path / "list.json").write_text('{\n "text": "a film"\n}')
    with pytest.raises(InputError, match=why):
        open_dataset(str(tmp_path / name) if name else name)


# -- formats of sets that are not at hand, on records of our own ------------------------------------------------


def test_beer_reviews_in_their_published_format(tmp_path):
    import gzip

    folder = tmp_path / "beer"
    folder.mkdir()
    rows = [
        "0.20 0.90 0.50 0.60 0.60\ta murky brown , smells great",
        "0.80 0.10 0.50 0.60 0.60\tclear gold with a firm head",
        "0.50 0.10 0.50 0.60 0.60\tneither here nor there",
        "0.60 0.10 0.50 0.60 0.60\tpours well",
        "0.40 0.10 0.50 0.60 0.60\tflat and pale",
        "1.00 0.10 0.50 0.60 0.60\tone more that is good",
    ]
    with gzip.open(folder / "reviews.aspect0.train.txt.gz", "wt") as file:
        file.write("\n".join(rows))
    (folder / "reviews.aspect1.train.txt").write_text(
        "\n".join([*rows, "0.1 0.2\tlong enough", "x 7 0 0 0\tbad score"])
    )
    record = {"x": ["a", "murky", "brown", ",", "smells", "great"], "y": [0.2, 0.9, 0.5, 0.6, 0.6]}
    marked = {**record, "0": [[0, 3]], "1": [[4, 6]], "2": []}
    (folder / "annotations.json").write_text("\n".join(json.dumps(r) for r in (marked, {**marked, "0": []})))
    found = open_dataset("beer", "train", data=tmp_path).examples
    assert [e.label for e in found] == ["negative", "positive"] * 2  # as many of both; the neutral one is left out
    assert found[1].text == "clear gold with a firm head"
    every = open_dataset("beer(balanced=False)", "train", data=tmp_path).examples
    assert [e.label for e in every] == ["negative", "positive", "positive", "negative", "positive"]
    (test,) = open_dataset("beer", "test", data=tmp_path).examples
    assert [test.text[s.start : s.end] for s in test.gold] == ["a murky brown"] and test.label == "negative"
    aroma = open_dataset("beer(aspect=aroma)", "test", data=tmp_path).examples
    assert [[e.text[s.start : s.end] for s in e.gold] for e in aroma] == [["smells great"]] * 2
    assert aroma[0].label == "positive"
    with pytest.raises(InputError, match="Line 8 .*the score '7' is no number from 0 to 1"):
        open_dataset("beer(aspect=aroma, balanced=False)", "train", data=tmp_path)
    with pytest.raises(InputError, match="aspect is appearance"):
        open_dataset("beer(aspect=taste)", "train", data=tmp_path)
    (folder / "annotations.json").write_text(json.dumps({**marked, "0": [[2, 9]]}))
    with pytest.raises(InputError, match="ends behind the 6 words"):
        open_dataset("beer", "test", data=tmp_path)


def test_hotel_reviews_in_their_published_format(tmp_path):
    oracle, target = tmp_path / "hotel" / "oracle", tmp_path / "hotel" / "target"
    oracle.mkdir(parents=True)
    target.mkdir()
    head = "task\tlabel\ttext"
    rows = ["hotel_Location\t1\tnear the station", "hotel_Location\t0\tfar from all", "hotel_Location\t1.0\tcentral"]
    (oracle / "hotel_Location.train").write_text("\n".join([head, *rows]))
    (oracle / "hotel_Location.dev").write_text("\n".join([head, *rows]))
    marks = ["hotel_Location\t1\tvery near the station\t0 1 1 1", "hotel_Location\t0\tfar from all\t0 0 0"]
    (target / "hotel_Location.train").write_text("\n".join([f"{head}\trationale", *marks]))
    assert [e.label for e in open_dataset("hotel", "train", data=tmp_path).examples] == ["negative", "positive"]
    assert len(open_dataset("hotel", "dev", data=tmp_path).examples) == 3
    (test,) = open_dataset("hotel", "test", data=tmp_path).examples  # one without a mark is left out
    assert [test.text[s.start : s.end] for s in test.gold] == ["near the station"]
    (target / "hotel_Location.train").write_text(f"{head}\trationale\nhotel_Location\t1\tvery near\t0 1 1")
    with pytest.raises(InputError, match="3 marks do not fit 2 tokens"):
        open_dataset("hotel", "test", data=tmp_path)


def test_the_embedded_reviews_need_no_folder_and_have_marked_words(monkeypatch):
    monkeypatch.delenv("RAISON_DATA", raising=False)
    found = open_dataset("reviews").examples
    assert [e.label for e in found].count("positive") == 30 == [e.label for e in found].count("negative")
    assert all(e.gold and "*" not in e.text for e in found)
    first = found[0]
    assert [first.text[span.start : span.end] for span in first.gold] == ["warm", "funny"]
