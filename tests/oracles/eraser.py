"""What ERASER's scorer does with a file of predictions, written anew from its description and its behaviour.

It reads the documents that the predictions name, refuses what does not fit them, and compares ranges of tokens by
record and document. Wherever the released scorer ends with an exception, `score` raises Refused.
"""

from __future__ import annotations

import json
from pathlib import Path


class Refused(Exception):
    """The released scorer ends here."""


def json_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def document_tokens(folder: Path, name: str) -> list[str]:
    """The words between single spaces of the lines of a document that have any."""
    path = folder / "docs" / name
    if not path.is_file():
        raise Refused(f"no document {name}")
    words = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        for word in line.strip().split(" "):
            if word != "":
                words.append(word)
    return words


def ranges_of_people(folder: Path, split: str) -> dict[tuple[str, str], set[tuple[int, int]]]:
    """(record, document) -> ranges of tokens."""
    found: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for record in json_lines(folder / f"{split}.jsonl"):
        for group in record["evidences"]:
            for piece in group:
                key = (record["annotation_id"], piece["docid"])
                found.setdefault(key, set()).add((piece["start_token"], piece["end_token"]))
    return found


def checked(folder: Path, split: str, predictions: list[dict]) -> None:
    names = [record["annotation_id"] for record in predictions]
    if len(set(names)) < len(names):
        raise Refused("a record stands there twice")
    classes = {record["classification"] for record in json_lines(folder / f"{split}.jsonl")}
    for record in predictions:
        for rationale in record["rationales"]:
            size = len(document_tokens(folder, rationale["docid"]))
            if len(rationale["soft_rationale_predictions"]) != size:
                raise Refused(f"scores of {rationale['docid']} do not fit its {size} tokens")
            for span in rationale.get("hard_rationale_predictions", []):
                if span["end_token"] > size:
                    raise Refused(f"a range ends behind {rationale['docid']}")
        if ("classification" in record) != ("classification_scores" in record):
            raise Refused("a class without its scores, or scores without a class")
        if "classification" in record and record["classification"] not in classes:
            raise Refused(f"the data has no class {record['classification']}")


def harmonic(p: float, r: float) -> float:
    return 0.0 if p == 0 or r == 0 else 2 * p * r / (p + r)


def iou(one: tuple[int, int], other: tuple[int, int]) -> float:
    a, b = set(range(*one)), set(range(*other))
    return len(a & b) / len(a | b)


def score(
    folder: Path, split: str, predictions: list[dict], threshold: float = 0.5
) -> dict[str, float]:
    """IOU F1 (macro and micro), precision and recall, and F1 of tokens (macro), as the scorer names them."""
    checked(folder, split, predictions)
    truth = ranges_of_people(folder, split)
    chosen: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for record in predictions:
        for rationale in record["rationales"]:
            for span in rationale.get("hard_rationale_predictions", []):
                key = (record["annotation_id"], rationale["docid"])
                chosen.setdefault(key, set()).add((span["start_token"], span["end_token"]))

    hits = {}
    for key in set(truth) | set(chosen):
        hits[key] = 0
        for span in chosen.get(key, ()):
            best = 0.0
            for other in truth.get(key, ()):
                best = max(best, iou(span, other))
            hits[key] += best >= threshold
    precisions = [hits[key] / len(spans) for key, spans in chosen.items()]
    recalls = [hits[key] / len(spans) for key, spans in truth.items()]
    precision = sum(precisions) / len(precisions) if precisions else 0.0
    recall = sum(recalls) / len(recalls) if recalls else 0.0
    all_chosen = sum(len(spans) for spans in chosen.values())
    all_truth = sum(len(spans) for spans in truth.values())
    micro = [sum(hits.values()) / total if total else 0.0 for total in (all_chosen, all_truth)]
    return {
        "precision": precision,
        "recall": recall,
        "f1": harmonic(precision, recall),
        "micro_f1": harmonic(*micro),
    }
