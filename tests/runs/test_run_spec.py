"""What a run is asked to do."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raison.core.errors import InputError, RaisonError
from raison.runs.run_spec import Means, RunSpec, read_run_spec
from raison.runs.status import status_of_run
from raison.runs.storage import place_of
from tests.helpers.runs import spec_of

on_a_busy_machine = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # no clock decides


TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8
)


@on_a_busy_machine
@given(TEXTS, TEXTS, st.lists(TEXTS, min_size=1, max_size=3, unique=True), st.integers(1, 10**6))
def test_any_spec_comes_back_from_its_file(tmp_path_factory, model, data, methods, tokens):
    """Or is refused with a sentence; what a run is asked does not depend on how its words are spelled."""
    file = tmp_path_factory.mktemp("spec") / "run.toml"
    given = {"model": model, "data": data, "methods": methods, "shard_tokens": tokens}
    file.write_text(
        "".join(
            f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in given.items()
        ),
        encoding="utf-8",
    )
    try:
        spec = read_run_spec(file)
    except InputError as error:
        assert str(error).endswith(".") and "\n" not in str(error)
        return
    assert (spec.model, spec.data, spec.methods) == (model, data, tuple(methods))
    assert RunSpec.of(json.loads(spec.to_json()), "again") == spec


def test_specs(tmp_path, folder):
    file = tmp_path / "spec.toml"
    file.write_text('model = "sentiment"\ndata = "sst2"\nmethods = ["leave_one_out"]\nlimit = 5\n')
    assert read_run_spec(file, limit=7).limit == 7 and read_run_spec(file).methods == (
        "leave_one_out",
    )
    for text, sentence in (
        ("modle = 3", r"no setting 'modle'\. Did you mean 'model'"), ('data = "x"', "names no model"),
        ('model = ""\ndata = "x"', "needs a model"), ("model = [", "is no TOML"),
        ('model = "m"\ndata = "d"\ntarget = "best"', "target is"),
        ('model = "m"\ndata = "d"\nmethods = []', "at least one"),
        ('model = "m"\ndata = "d"\nlimit = 0', "limit"),
    ):  # fmt: skip
        file.write_text(text)
        with pytest.raises(InputError, match=sentence):
            read_run_spec(file)
    with pytest.raises(InputError, match="no file"):
        read_run_spec(tmp_path / "none.toml")
    for wrong in ({"workers": 0}, {"timeout": -1}, {"memory": 0}, {"gpus": -1}):
        with pytest.raises(InputError):
            Means(**wrong)
    with pytest.raises(InputError, match="is no run"):
        status_of_run(place_of(tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"units": "wrod"}, "units is token, word"),
        ({"units": ""}, "units is token, word"),
        ({"split": 7}, "split is a name"),
        ({"removal": ["a"]}, "removal is a name"),
    ],
)
def test_specs_that_can_not_work(folder, given, said):
    with pytest.raises(InputError, match=said):
        spec_of(folder, **given)


def test_more_that_can_not_work(tmp_path):
    for means in ({"threads": 10**10}, {"memory": 10**17}, {"workers": 10**9}):
        with pytest.raises(InputError, match="at most|up to"):
            Means(**means)
    for name in ("~nosuchuser/x", "reference://x", "data://x"):
        with pytest.raises(RaisonError):
            status_of_run(place_of(name))
    deep = tmp_path / "deep.toml"
    deep.write_text("a = " + "[" * 5000)
    with pytest.raises(InputError, match="is no TOML"):
        read_run_spec(deep)


def test_ray_has_devices_of_its_own():
    from raison.runs.run_spec import Means

    with pytest.raises(InputError, match="give gpus"):
        Means(ray="local", device="cuda")
