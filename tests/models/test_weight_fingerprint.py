"""Weights are known by their names, shapes, kinds and bytes."""

from __future__ import annotations

import pytest
import torch

from raison.models.weight_fingerprint import (
    bytes_of_tensor,
    fingerprint_of_model,
    fingerprint_of_weights,
)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool]
)
def test_one_changed_number_changes_the_fingerprint(dtype):
    weight = torch.tensor([[1, 0], [1, 1]]).to(dtype)
    other = weight.clone()
    other[0, 1] = 1
    assert fingerprint_of_weights([("w", weight)]) == fingerprint_of_weights(
        [("w", weight.clone())]
    )
    assert fingerprint_of_weights([("w", weight)]) != fingerprint_of_weights([("w", other)])


def test_names_shapes_and_kinds_count_and_order_does_not():
    weight, bias = torch.arange(6.0), torch.zeros(2)
    whole = fingerprint_of_weights([("w", weight), ("b", bias)])
    assert whole == fingerprint_of_weights([("b", bias), ("w", weight)])
    for changed in ([("v", weight), ("b", bias)], [("w", weight.view(2, 3)), ("b", bias)]):
        assert whole != fingerprint_of_weights(changed)
    assert fingerprint_of_weights([("b", bias)]) != fingerprint_of_weights([("b", bias.int())])


def test_where_a_tensor_lies_does_not_matter():
    table = torch.arange(12.0).view(3, 4)
    assert bytes(bytes_of_tensor(table.T)) == bytes(bytes_of_tensor(table.T.clone()))


def test_a_name_stands_for_itself_and_a_folder_for_its_files(tmp_path):
    assert fingerprint_of_model("sentiment") == ""
    (tmp_path / "model.safetensors").write_bytes(b"one")
    first = fingerprint_of_model(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"other")
    assert "" != first != fingerprint_of_model(tmp_path)
    layer = torch.nn.Linear(2, 2)
    assert fingerprint_of_model(layer) == fingerprint_of_weights(layer.named_parameters())
