"""Sources with their targets."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.core.records import Example
from raison.models.load import load
from raison.testing import tiny_hf
from raison.training.train_compatibility import train_compatibility
from raison.training.translation_rows import translation_material
from tests.helpers.training import PAIRS, SMALL


def test_pairs_become_sources_and_targets_with_an_end(tmp_path):
    model = load(*tiny_hf("marian", "seq2seq"))
    examples = [Example(source, label=target) for source, target in PAIRS]
    found = translation_material(
        model, examples, length=50, held=0.1, batch=4, own=False, out=tmp_path
    )
    assert len(found.train) + len(found.held) == 40 and len(found.held) == 4
    first = found.train[0]
    assert list(first.source) == model.codec(PAIRS[0][0]).ids.tolist()
    assert first.target[-1] == 2 and model.codec.text(first.target[:-1]) == PAIRS[0][1]
    assert not {row.source for row in found.train} & {row.source for row in found.held}
    cut = translation_material(
        model, examples, length=22, held=0.1, batch=1, own=False, out=tmp_path
    )
    assert 0 < cut.counts["pairs left out, longer than length"] < 40
    with pytest.raises(InputError, match="has no translation: give pairs"):
        translation_material(
            model, [Example("A film.")], length=50, held=0.1, batch=1, own=False, out=tmp_path
        )


def test_own_targets_are_what_the_model_writes_and_are_kept(tmp_path, monkeypatch):
    model = load(*tiny_hf("marian", "seq2seq"))
    examples = [Example(source) for source, _ in PAIRS[:9]]
    found = translation_material(
        model, examples, length=50, held=0.2, batch=2, own=True, out=tmp_path
    )
    (tmp_path / "own_targets.json").write_text("{")  # half a file is written anew
    assert (
        translation_material(model, examples, length=50, held=0.2, batch=2, own=True, out=tmp_path)
        == found
    )
    written = model.write(model.encode(examples[:1])[0])
    assert list(found.train[0].target) == (written if len(written) >= 6 else [*written, 2])
    monkeypatch.setattr(type(model), "write", None)  # a run that goes on does not write again
    assert (
        translation_material(model, examples, length=50, held=0.2, batch=2, own=True, out=tmp_path)
        == found
    )


def test_a_tokenizer_without_a_target_side_is_refused(tmp_path):
    model = load(*tiny_hf("marian", "seq2seq", double=False))
    for name in ("source.spm", "target.spm"):
        (tmp_path / name).write_bytes(b"the same pieces")
    model.tokenizer.spm_files = [str(tmp_path / "source.spm"), str(tmp_path / "target.spm")]
    with pytest.raises(InputError, match="has no target side of its own.*own_targets=True"):
        train_compatibility(model, PAIRS, out=tmp_path / "o", **{**SMALL, "length": 60})
    (tmp_path / "target.spm").write_bytes(b"other pieces")
    train_compatibility(model, PAIRS, out=tmp_path / "o", **{**SMALL, "length": 60})
