"""A server with tiny models and a run, for all tests of the web."""

from __future__ import annotations

import copy
import time

import pytest

import raison
from raison.runs.driver import run
from raison.runs.run_spec import RunSpec
from raison.testing import tiny_hf
from raison.web.runs import RunFolders
from tests.helpers.serving import served
from tests.helpers.web_client import SCRIPT


@pytest.fixture(scope="package")
def models():
    found = {}
    kinds = {
        "bert": ("bert", "classification"),
        "gpt2": ("gpt2", "causal"),
        "qa": ("bert", "qa"),
        "llama": ("llama", "causal"),
    }
    for name, (family, task) in kinds.items():
        hf, tokenizer = tiny_hf(family, task)
        if name == "llama":  # rotary: it reads as far as it is told
            hf = copy.deepcopy(hf)
            hf.config.max_position_embeddings = 512
        model = raison.load(hf, tokenizer)
        model.name = name
        found[name] = model
    found["slow"] = raison.load(slowly, labels=["no", "yes"])
    found["slow"].name = "slow"
    return found


def slowly(texts):
    time.sleep(0.003 * len(texts))
    return [[len(text), 1.0] for text in texts]


@pytest.fixture(scope="package")
def client(models, tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.save_pretrained(place / "model")
    tokenizer.save_pretrained(place / "model")
    rows = [f"{'a lovely film ' * (n % 3 + 1)}{n}" for n in range(8)] + [SCRIPT]
    (place / "data.csv").write_text("text,label\n" + "\n".join(f"{row},0" for row in rows))
    spec = RunSpec(
        str(place / "model"),
        str(place / "data.csv"),
        ("leave_one_out", "random"),
        ("comprehensiveness",),
    )
    run(place / "done", spec)
    with served(models, RunFolders({"done": str(place / "done")}), waiting=64) as found:
        yield found
