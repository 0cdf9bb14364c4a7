"""Statistics of heads that lie beside a model."""

from __future__ import annotations

import json


def test_heads_beside_a_model_are_its_heads(tmp_path, sentiment):
    import raison
    from raison.core.artifact import Artifact
    from raison.testing import tiny_hf

    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    hf.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert "heads" not in raison.load(str(tmp_path)).offers
    (tmp_path / "heads.json").write_text(json.dumps({"kind": "heads", "data": {}}))
    found = raison.load(str(tmp_path))
    assert "heads" in found.offers
    assert Artifact.open(found.head_statistics, "heads").kind == "heads"
