"""What several tests of published data sets use."""

from __future__ import annotations

import gzip
import json


# facts, read off by other means
def packed(path) -> str:
    return gzip.decompress(path.read_bytes()).decode("utf-8")


def pieces(example):
    texts = {
        "first": example.text,
        "second": example.pair,
        "context": example.pair,
        "question": example.text,
    }
    return [texts.get(span.segment, example.text)[span.start : span.end] for span in example.gold]


# what is wrong: file, line and reason
def damaged(tmp_path, folder, name, content):
    """A data directory with one file in it."""
    place = tmp_path / folder
    place.mkdir(exist_ok=True)
    (place / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return place / name


def squad(start, text):
    qas = [{"id": "q0", "question": "What?", "answers": [{"answer_start": 4, "text": "cat"}]}]
    qas.append({"id": "q1", "question": "Who?", "answers": [{"answer_start": start, "text": text}]})
    whole = {"data": [{"title": "t", "paragraphs": [{"context": "The cat sat.", "qas": qas}]}]}
    return json.dumps(whole, indent=1).encode()


CONLLU = "# text = It works\n1\tIt\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tworks\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
