"""Word vectors of GloVe files, whole and damaged."""

from __future__ import annotations

import numpy as np
import pytest

from raison.attention_models.train import train_classifier
from raison.attention_models.vocabulary import words_tokenizer
from raison.attention_models.word_vectors import glove_vectors
from raison.core.errors import InputError
from raison.training.seeds import seeded_generator
from tests.helpers.small_classifiers import SMALL, reviews


def test_vectors_of_a_file(tmp_path):
    tokenizer = words_tokenizer(["a lovely film"])
    file = tmp_path / "glove.txt"
    file.write_text("lovely 1 2 3\nfilm 4 5 6\nother 7 8 9\n")
    made, known = glove_vectors(file, tokenizer, seeded_generator(0))
    assert known == 2 and made[tokenizer.convert_tokens_to_ids("film")].tolist() == [4, 5, 6]
    np.save(tmp_path / "glove.npy", np.array([[1, 2], [3, 4.0]]))
    (tmp_path / "words.txt").write_text("film\nlovely\n")
    made, known = glove_vectors(tmp_path, tokenizer, seeded_generator(0))
    assert known == 2 and made[tokenizer.convert_tokens_to_ids("lovely")].tolist() == [3, 4]
    file.write_text("the 1 2 3\nlovely 1 2 3\n\nfilm 4 5 nan\n")
    with pytest.raises(InputError, match=r"Line 4 of glove.txt holds NaN"):
        glove_vectors(file, tokenizer, seeded_generator(0))
    file.write_text(
        "film 1 2 3\n. . . 1 2 3\n\nlovely 4 5 6\n"
    )  # a word with spaces, and an empty line
    assert glove_vectors(file, tokenizer, seeded_generator(0))[1] == 2
    data = reviews(60)
    with pytest.raises(
        InputError, match="vectors of 3 numbers, and the model wants 50: leave the width"
    ):
        file.write_text("film 4 5 6\n")
        train_classifier(
            data, out=tmp_path / "x", config={"width": 50}, training={"embeddings": str(file)}
        )
    report = train_classifier(
        data,
        out=tmp_path / "y",
        config={"encoder": "transformer"},
        training={**SMALL, "epochs": 1, "embeddings": str(file)},
    )
    assert (
        report.frozen_embeddings is True
        and report.config.width == 3
        and report.embeddings == "glove.txt"
    )
