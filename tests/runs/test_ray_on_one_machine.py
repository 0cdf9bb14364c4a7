"""A Ray of its own on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from raison.runs.storage import place_of
from raison.runs.store import done_shards
from raison.runs.verify import verify_run
from tests.helpers.runs import METHODS, actors_below, parquet_of, spec_of


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_ray_gives_the_same_bytes_and_survives_a_death(folder, done, tmp_path):
    pytest.importorskip("ray")
    place = tmp_path / "r"
    command = [
        sys.executable,
        "-m",
        "raison",
        "run",
        "--out",
        str(place),
        "--workers",
        "2",
        "--ray",
        "local",
    ]
    spec = spec_of(folder)
    flags = [
        "-m",
        spec.model,
        "-d",
        spec.data,
        "--metric",
        "comprehensiveness",
        "--shard-tokens",
        "250",
    ]
    flags += [part for name in METHODS for part in ("-M", name)]
    (tmp_path / "spec.toml").write_text("chunk_tokens = 80\n")
    command = [*command[:4], str(tmp_path / "spec.toml"), *command[4:], *flags]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_DISABLE_IMPORT_WARNING": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )
    struck = False
    while process.poll() is None:
        time.sleep(0.1)
        if not struck and len(done_shards(place_of(place))) >= 1:
            actors = actors_below(process.pid)
            if actors:
                os.kill(actors[0], signal.SIGKILL)
                struck = True
    told = process.stderr.read().decode()
    process.stderr.close()
    assert process.returncode == 0, told
    assert struck and verify_run(place_of(place)).whole
    assert parquet_of(place) == parquet_of(done)
