"""The rows of each batch."""

from __future__ import annotations

from raison.training.feed import BatchFeed
from raison.training.language_model_rows import TrainingRow


def test_every_row_comes_once_an_epoch():
    rows = [TrainingRow((i,) * (1 + i % 5)) for i in range(23)]
    feed = BatchFeed(rows, 4, 7)
    epochs = [
        [row.target[0] for k in range(5) for row in feed(5 * epoch + k)] for epoch in range(2)
    ]
    assert all(len(set(epoch)) == 20 for epoch in epochs) and epochs[0] != epochs[1]
    assert [row.target[0] for row in BatchFeed(rows, 4, 7)(7)] == epochs[1][
        8:12
    ]  # without what came before
    assert BatchFeed(rows, 4, 8)(0) != BatchFeed(rows, 4, 7)(0)
