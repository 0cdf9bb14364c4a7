"""Integrals over paths: exact where they can be, fine where they must be."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from raison.methods import quadrature
from raison.testing.precision import Float64


@pytest.fixture(autouse=True)
def precise(request):
    """Float64 all the way, but for real models, which are float32."""
    with nullcontext() if request.node.get_closest_marker("registry") else Float64():
        yield


def run(rule, value, slope):
    """Drive a rule over plain functions F and G; the integral, and how often it asked."""
    asked, wanted = [], next(rule)
    while True:
        asked.append(len(wanted))
        try:
            wanted = rule.send((value(wanted), slope(wanted)))
        except StopIteration as end:
            return end.value, asked


def step(place, width):
    """A smooth step, its slope (a bell), and the rise of the step from 0 to 1."""
    value = lambda a: np.tanh((np.asarray(a) - place) / width)  # noqa: E731
    slope = lambda a: (1 - value(a) ** 2) / width  # noqa: E731
    return value, slope, float(value(1.0) - value(0.0))


@pytest.mark.parametrize("order", [2, 3, 4, 5, 6])
def test_stretches_integrate_polynomials_exactly(order):
    places = np.sort(np.concatenate([[0, 1], np.random.default_rng(0).random(9)]))
    weights = quadrature.quadrature_weights_of_stretches(places, order)
    for power in range(order):
        expected = np.diff(places ** (power + 1)) / (power + 1)
        np.testing.assert_allclose(weights @ places**power, expected, atol=1e-12)
    assert abs((weights @ places**order).sum() - 1 / (order + 1)) > 1e-9  # and no more than that


def test_equal_steps_by_definition():
    value, slope, _ = step(0.3, 0.2)
    parts = lambda a: np.stack([slope(a), np.cos(5 * a)], 1)  # noqa: E731
    found, asked = run(quadrature.midpoint_rule(10), value, parts)
    np.testing.assert_allclose(
        found.scores, sum(parts(np.array([(k + 0.5) / 10]))[0] for k in range(10)) / 10
    )
    assert (found.start, found.end, found.places, asked) == (value(0.0), value(1.0), 10, [12])
    found, asked = run(quadrature.reference_rule(10), value, parts)
    np.testing.assert_allclose(
        found.scores, sum(parts(np.array([k / 10]))[0] for k in range(11)) / 11
    )
    assert (found.places, asked) == (11, [11])


@pytest.mark.parametrize("width", [0.3, 0.1, 0.03, 0.01, 0.003])
@pytest.mark.parametrize("place", [0.0, 0.18, 0.5, 0.77])
def test_adaptive_finds_bells_wherever_they_are(place, width):
    value, slope, rise = step(place, width)
    shares = np.array([0.5, -0.2, 0.7])
    found, asked = run(quadrature.adaptive_rule(0.01), value, lambda a: slope(a)[:, None] * shares)
    assert found.settled and found.gap <= 0.01
    assert np.linalg.norm(found.scores - rise * shares) <= 0.01 * np.linalg.norm(rise * shares)
    assert found.places == sum(asked) <= 60
    if width <= 0.01:  # equal steps need many more: the bell falls between them
        coarse, _ = run(
            quadrature.midpoint_rule(found.places), value, lambda a: slope(a)[:, None] * shares
        )
        assert coarse.gap > 2 * found.gap


def test_adaptive_sees_what_the_sum_hides():
    """Two tokens whose slopes cancel at every place: F is flat and knows nothing of their bells."""
    _, slope, rise = step(0.4, 0.04)
    parts = lambda a: np.stack([1 + slope(a), 1 - slope(a)], 1)  # noqa: E731
    found, _ = run(quadrature.adaptive_rule(0.01), lambda a: 2 * np.asarray(a), parts)
    expected = np.array([1 + rise, 1 - rise])
    assert np.linalg.norm(found.scores - expected) <= 0.01 * np.linalg.norm(expected)
    blind, _ = run(quadrature.midpoint_rule(9), lambda a: 2 * np.asarray(a), parts)
    assert (
        blind.gap < 1e-12 and np.linalg.norm(blind.scores - expected) > 0.01
    )  # a small gap alone proves nothing


def test_adaptive_is_tighter_when_asked_and_admits_defeat():
    value, slope, rise = step(0.3, 0.05)
    places = []
    for tolerance in (0.1, 0.01, 1e-4, 1e-6):
        found, _ = run(quadrature.adaptive_rule(tolerance), value, lambda a: slope(a)[:, None])
        assert found.settled and abs(found.scores[0] - rise) <= tolerance * rise
        places.append(found.places)
    assert places == sorted(places) and places[0] < places[-1]
    rough = lambda a: 50 * np.cos(300 * np.asarray(a) ** 2)  # noqa: E731
    found, asked = run(
        quadrature.adaptive_rule(0.01, most=40),
        lambda a: np.asarray(a),
        lambda a: rough(a)[:, None],
    )
    assert not found.settled and sum(asked) == found.places == 40


def test_a_jump_at_the_start_is_cut_out_finely():
    """What RMSNorm does near a zero baseline: all of the change happens at once."""
    value, slope, rise = step(0.0, 1e-4)
    found, _ = run(quadrature.adaptive_rule(0.01), value, lambda a: slope(a)[:, None])
    assert found.settled and abs(found.scores[0] - rise) <= 0.01 * rise
    equal, _ = run(quadrature.midpoint_rule(500), value, lambda a: slope(a)[:, None])
    assert equal.gap > 0.9


def test_a_gap_is_measured_against_something():
    plain = quadrature.Integral(np.array([0.5, 0.49]), 0.0, 1.0, 9)
    assert plain.error == pytest.approx(0.01) and plain.gap == pytest.approx(0.01)
    cancelling = quadrature.Integral(np.array([5.0, -5.0]), 0.0, 1e-6, 9)
    assert cancelling.scale == pytest.approx(0.1) and cancelling.gap == pytest.approx(1e-5)
    nothing = quadrature.Integral(np.zeros(2), 1.0, 1.0, 9)
    assert nothing.gap == 0.0
    found, asked = run(
        quadrature.adaptive_rule(0.01), lambda a: np.ones(len(a)), lambda a: np.zeros((len(a), 3))
    )
    assert found.settled and asked == [9] and not found.scores.any()
