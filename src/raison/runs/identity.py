"""What makes a piece of work the same: the model's weights, the method, the target rule, absence, units and the text.

A key is `v1:` and the hash of all of them, so that a later change of what counts can be told from an earlier one.
"""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from raison import __version__
from raison.core.errors import InputError
from raison.core.fingerprint import sha256_of_file
from raison.core.records import Example
from raison.core.registry import methods
from raison.core.spec import Spec
from raison.models.weight_fingerprint import bytes_of_weights
from raison.runs.lines import SCHEMA
from raison.runs.spec import RunSpec

__all__ = ["environment", "key_of", "method_identity", "methods_identity", "model_identity"]

VERSION = "v1"
# settings of a tokenizer that say where it was found
PLACES = ("name_or_path", "is_local", "local_files_only", "files_loaded", "tokenizer_object")


def model_identity(model: Any) -> str:
    """A hash of a model's weights, config and tokenizer, wherever it lies and whatever it is called there; of a
    function, its name."""
    made = hashlib.blake2b(digest_size=16)
    hf = getattr(model, "hf", None)
    name = model.name if hf is None else ""
    made.update(f"{type(model).__name__}|{name}|{','.join(getattr(model, 'labels', ()))}|".encode())
    if hf is None:
        return made.hexdigest()
    config = {key: value for key, value in hf.config.to_dict().items() if not key.startswith("_")}
    config.pop("transformers_version", None)
    made.update(json.dumps(config, sort_keys=True, default=str).encode())
    for piece in bytes_of_weights(hf.state_dict().items()):
        made.update(piece)
    for part in tokenizer_parts(model.tokenizer):
        made.update(part)
    return made.hexdigest()


def tokenizer_parts(tokenizer: Any) -> Iterator[bytes]:
    """All that decides how a text becomes tokens: the vocabulary, the settings, and the rules or files."""
    vocabulary: dict[str, int] = getattr(tokenizer, "get_vocab", dict)()
    yield json.dumps(sorted(vocabulary.items())).encode("utf-8", "surrogatepass")

    given = getattr(tokenizer, "init_kwargs", {})
    places = {*PLACES, *getattr(tokenizer, "vocab_files_names", ())}
    settings = {name: value for name, value in given.items() if name not in places}
    yield json.dumps(settings, sort_keys=True, default=str).encode("utf-8", "surrogatepass")

    if (fast := getattr(tokenizer, "backend_tokenizer", None)) is not None:
        rules = json.loads(fast.to_str())
        for name in ("truncation", "padding"):  # how the last texts were asked for
            rules.pop(name, None)
        yield json.dumps(rules, sort_keys=True).encode("utf-8", "surrogatepass")
    elif hasattr(tokenizer, "save_vocabulary"):
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save_vocabulary(folder)
            for path in sorted(Path(folder).iterdir()):
                yield path.name.encode()
                yield path.read_bytes()


def method_identity(method: Any) -> list[Any]:
    """The spec of a method, with the content of every file that it names in the place of its path."""
    spec = method.spec()
    files = {each.name for each in fields(method) if each.metadata.get("file")}
    made = []
    for name, value in sorted(spec.params.items()):
        if name in files and value:
            value = f"sha256:{digest_of(Path(value), spec.name)}"
        elif isinstance(value, Spec) and value.name in methods:  # an order by another method
            value = json.dumps(method_identity(methods.build(value)))
        made.append([name, str(value)])
    return [spec.name, made]


def digest_of(path: Path, whose: str) -> str:
    try:
        return sha256_of_file(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{str(path)!r}, which {whose} names, can't be read ({reason}): check the path.") from None


def methods_identity(chosen: Sequence[Any]) -> dict[str, list[Any]]:
    """Method by method, as a run keeps it: a file that changes, or lies somewhere else later, is noticed."""
    return {str(each.spec()): method_identity(each) for each in chosen}


def key_of(identity: str, spec: RunSpec, method: list[Any], example: Example) -> str:
    """The key of one text explained by one method."""
    content = {
        "schema": SCHEMA,
        "model": identity,
        "method": method,
        "target": spec.target,
        "removal": spec.removal,
        "units": spec.units,
        "metrics": sorted(spec.metrics),
        "seed": spec.seed,
        "example": [example.text, example.pair, example.target, example.label],
        "gold": [[s.start, s.end, s.segment] for s in example.gold],
        "slots": [[s.name, s.start, s.end] for s in example.slots],
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return f"{VERSION}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def environment(identity: str | None, threads: int, chosen: Sequence[Any]) -> dict[str, Any]:
    """What numbers may depend on besides the spec."""
    from importlib.metadata import version

    return {
        "raison": __version__,
        "schema": SCHEMA,
        "model": identity,
        "torch": version("torch"),
        "transformers": version("transformers"),
        "numpy": version("numpy"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": threads,
        "methods": methods_identity(chosen),
    }
