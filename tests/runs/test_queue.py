"""What the deaths of workers teach."""

from __future__ import annotations

from raison.runs.driver import run
from raison.runs.executor import Death
from raison.runs.queue import ShardQueue
from raison.runs.storage import place_of
from tests.helpers.runs import spec_of


def test_what_deaths_teach(tmp_path, folder):
    run(tmp_path / "r", spec_of(folder, limit=20))
    place, queue = place_of(tmp_path / "r"), ShardQueue([])
    own = Death(0, 1, -1, "it ended with code 3", outside=False)
    assert "done again" in queue.learn(own, place) and "one by one" in queue.learn(own, place)
    assert queue.careful[0].single == {1} and queue.shards == [0, 0]
    single = Death(0, 1, 2, "it ended with code 3", outside=False)
    queue.learn(single, place)
    assert (
        "is given up after 2 tries" in queue.learn(single, place) and 2 in queue.careful[0].poison
    )
    other = ShardQueue([])
    for _ in range(4):  # somebody kills workers: that is not the text's fault
        other.learn(Death(0, 1, -1, "it was ended by SIGKILL", outside=True), place)
    assert not other.careful[0].single
