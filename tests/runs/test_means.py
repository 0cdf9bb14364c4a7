"""The means of a run."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError


def test_ray_has_devices_of_its_own():
    from raison.runs.spec import Means

    with pytest.raises(InputError, match="give gpus"):
        Means(ray="local", device="cuda")
