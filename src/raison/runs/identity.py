"""Identities and keys: digests of a model (config, tokenizer), of methods with their files, and of texts; the
environment of a run.

A key is `v1:` and the hash of all of them, so that a later change of what counts can be told from an earlier one.
"""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import torch

from raison import __version__
from raison.core import limits
from raison.core.errors import InputError
from raison.core.fingerprint import sha256_of_file
from raison.core.records import Example
from raison.core.registry import methods
from raison.core.spec import Spec
from raison.methods.base import Method
from raison.models.protocol import Model
from raison.models.weight_fingerprint import bytes_of_weights
from raison.runs.checked_lines import SCHEMA
from raison.runs.run_spec import RunSpec
from raison.runs.storage import Place

__all__ = [
    "Environment",
    "MethodIdentity",
    "key_of_work",
    "method_identities",
    "method_identity",
    "model_identity",
    "stored_environment",
    "transformers_model_to_identify",
]

VERSION = "v1"
ENVIRONMENT = "environment.json"
# settings of a tokenizer that say where it was found
PLACES = ("name_or_path", "is_local", "local_files_only", "files_loaded", "tokenizer_object")

Tokenizer: TypeAlias = Any  # of transformers, or one with some of its attributes
MethodIdentity: TypeAlias = "list[str | list[list[str]]]"  # [name, [[parameter, value], ...]]


# -- models ---------------------------------------------------------------------------------------------------


def transformers_model_to_identify(model: Model) -> torch.nn.Module | None:
    """The transformers model inside, where there is one."""
    return getattr(model, "hf", None)


def model_identity(model: Model) -> str:
    """A hash of a model's weights, config and tokenizer, wherever it lies and whatever it is called there; of a
    function, its name."""
    digest = hashlib.blake2b(digest_size=16)
    transformer = transformers_model_to_identify(model)
    name = model.name if transformer is None else ""
    digest.update(f"{type(model).__name__}|{name}|{','.join(model.labels)}|".encode())
    if transformer is None:
        return digest.hexdigest()

    digest.update(config_bytes(transformer))
    for piece in bytes_of_weights(transformer.state_dict().items()):
        digest.update(piece)
    for part in tokenizer_parts(model.tokenizer):  # type: ignore[attr-defined]  # who has weights has one
        digest.update(part)
    return digest.hexdigest()


def config_bytes(transformer: torch.nn.Module) -> bytes:
    """The config without what says where it was found, and by which version."""
    settings: dict[str, object] = transformer.config.to_dict()  # type: ignore[operator, union-attr]
    config = {key: value for key, value in settings.items() if not key.startswith("_")}
    config.pop("transformers_version", None)
    return json.dumps(config, sort_keys=True, default=str).encode()


def tokenizer_parts(tokenizer: Tokenizer) -> Iterator[bytes]:
    """All that decides how a text becomes tokens: the vocabulary, the settings, and the rules or files."""
    vocabulary: dict[str, int] = getattr(tokenizer, "get_vocab", dict)()
    yield json.dumps(sorted(vocabulary.items())).encode("utf-8", "surrogatepass")

    places = {*PLACES, *getattr(tokenizer, "vocab_files_names", ())}
    settings = {
        name: value
        for name, value in getattr(tokenizer, "init_kwargs", {}).items()
        if name not in places
    }
    yield json.dumps(settings, sort_keys=True, default=str).encode("utf-8", "surrogatepass")

    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is not None:
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


# -- methods --------------------------------------------------------------------------------------------------


def method_identity(method: Method) -> MethodIdentity:
    """The spec of a method, with the content of every file that it names in the place of its path."""
    spec = method.spec()
    files = {item.name for item in fields(method) if item.metadata.get("file")}
    params: list[list[str]] = []
    for name, value in sorted(spec.params.items()):
        text = str(value)
        if name in files and value:
            text = f"sha256:{digest_of_named_file(Path(text), spec.name)}"
        elif isinstance(value, Spec) and value.name in methods:  # an order by another method
            text = json.dumps(method_identity(methods.build(value)))
        params.append([name, text])
    return [spec.name, params]


def digest_of_named_file(path: Path, method: str) -> str:
    try:
        return sha256_of_file(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"{str(path)!r}, which {method} names, can't be read ({reason}): check the path."
        ) from None


def method_identities(chosen: Sequence[Method]) -> dict[str, MethodIdentity]:
    """Method by method, as a run keeps it: a file that changes, or lies somewhere else later, is noticed."""
    return {str(method.spec()): method_identity(method) for method in chosen}


# -- pieces of work -------------------------------------------------------------------------------------------


def key_of_work(identity: str, spec: RunSpec, method: MethodIdentity, example: Example) -> str:
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
        "gold": [[span.start, span.end, span.segment] for span in example.gold],
        "slots": [[slot.name, slot.start, slot.end] for slot in example.slots],
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return f"{VERSION}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


@dataclass(frozen=True)
class Environment:
    """What numbers may depend on besides the spec; environment.json of a run."""

    raison: str = ""
    schema: int = SCHEMA
    model: str | None = None  # identity; None: the workers will see
    torch: str = ""
    transformers: str = ""
    numpy: str = ""
    python: str = ""
    machine: str = ""
    threads: int = 1
    methods: dict[str, MethodIdentity] = field(default_factory=dict)

    @classmethod
    def here(cls, model: str | None, threads: int, chosen: Sequence[Method]) -> Environment:
        """The environment of this process."""
        return cls(
            raison=__version__,
            schema=SCHEMA,
            model=model,
            torch=version("torch"),
            transformers=version("transformers"),
            numpy=version("numpy"),
            python=platform.python_version(),
            machine=platform.machine(),
            threads=threads,
            methods=method_identities(chosen),
        )

    def write(self, place: Place) -> None:
        place.put(ENVIRONMENT, (json.dumps(asdict(self), indent=1) + "\n").encode())


def stored_environment(place: Place) -> Environment:
    """What the run was begun with."""
    try:
        return Environment(**limits.read_json_text(place.get(ENVIRONMENT) or b"null"))
    except (ValueError, TypeError):
        raise InputError(
            f"{ENVIRONMENT} of {str(place)!r} is missing or damaged, and without it nobody can tell which model "
            "made its results: put it back, or start anew in another folder."
        ) from None
