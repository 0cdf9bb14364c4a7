"""Entropy, ranks, divergences and information, against scipy, scikit-learn and the formulas written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.metrics.annotators import cohen_kappa, fleiss_kappa
from raison.metrics.attention import (
    clusters,
    information_of_states,
    jensen_shannon,
    kendall_defined,
    kendall_tau,
    mutual_information,
    normalised_entropy,
    permuted_attention,
    pooled_logits,
    shuffled_information,
    token_logits,
    token_probability,
    total_variation,
    uniform_attention,
)


@pytest.fixture
def generator():
    return np.random.default_rng(0)


def sparse(generator, *shape):
    """Random distributions of which some weights are exactly 0."""
    weights = generator.random(shape) * (generator.random(shape) < 0.6)
    weights[..., 0] += 0.01
    return weights / weights.sum(-1, keepdims=True)


# -- entropy ------------------------------------------------------------------------------------------------


def test_entropy_of_extremes():
    assert normalised_entropy([0, 0, 1, 0]) == 0
    assert normalised_entropy([0.25] * 4) == pytest.approx(1)
    assert normalised_entropy([1.0]) == 0
    assert normalised_entropy([2.0, 2.0]) == pytest.approx(1)  # made to add up to 1
    assert math.isnan(normalised_entropy([0.0, 0.0]))  # no distribution
    with pytest.raises(InputError, match="negative"):
        normalised_entropy([0.5, -0.5])


def test_entropy_literally_and_by_scipy(generator):
    for _ in range(30):
        p = sparse(generator, int(generator.integers(2, 9)))
        expected = -sum(x * math.log(x) for x in p if x > 0) / math.log(len(p))
        assert normalised_entropy(p) == pytest.approx(expected)
        assert 0 <= normalised_entropy(p) <= 1
    stats = pytest.importorskip("scipy.stats")
    p = sparse(generator, 5, 7)
    np.testing.assert_allclose(normalised_entropy(p), stats.entropy(p, axis=-1) / np.log(7))


def test_entropy_ignores_padding(generator):
    p = sparse(generator, 5)
    padded = np.append(p, [0.3, 0.0])  # garbage on padding does not count either
    assert normalised_entropy(padded, [1] * 5 + [0, 0]) == pytest.approx(normalised_entropy(p))
    assert normalised_entropy([[0.5, 0.5], [1, 0]], [[1, 1], [1, 0]]).tolist() == [1, 0]


# -- divergences --------------------------------------------------------------------------------------------


def test_jensen_shannon_against_scipy_and_literally(generator):
    for _ in range(30):
        p, q = sparse(generator, 2, int(generator.integers(1, 8)))
        m = (p + q) / 2
        literal = sum(0.5 * a * math.log(a / c) for a, c in zip(p, m, strict=True) if a)
        literal += sum(0.5 * b * math.log(b / c) for b, c in zip(q, m, strict=True) if b)
        assert jensen_shannon(p, q) == pytest.approx(literal, abs=1e-12)
    distance = pytest.importorskip("scipy.spatial.distance")
    p, q = sparse(generator, 2, 20, 6)
    np.testing.assert_allclose(jensen_shannon(p, q), distance.jensenshannon(p, q, axis=-1) ** 2, atol=1e-12)


def test_jensen_shannon_is_symmetric_finite_and_bounded(generator):
    p, q = sparse(generator, 2, 200, 6)
    value = jensen_shannon(p, q)
    np.testing.assert_array_equal(value, jensen_shannon(q, p))
    assert np.isfinite(value).all() and (value >= 0).all() and (value <= math.log(2)).all()
    assert jensen_shannon([1, 0], [0, 1]) == pytest.approx(math.log(2))
    assert jensen_shannon(p[0], p[0]) == 0
    assert jensen_shannon(p[0], q[0]) > 0
    assert jensen_shannon([5e-324, 1], [0, 1]) == pytest.approx(0, abs=1e-300)
    assert math.isnan(jensen_shannon([0, 0], [1, 0]))
    order = generator.permutation(6)
    np.testing.assert_allclose(jensen_shannon(p[:, order], q[:, order]), value)
    assert jensen_shannon([0.5, 0.5, 9], [0.5, 0.5, 1], [1, 1, 0]) == 0
    with pytest.raises(InputError, match="same tokens"):
        jensen_shannon([0.5, 0.5], [1])


def test_total_variation(generator):
    p, q = sparse(generator, 2, 10, 4)
    expected = [max(abs(a[list(s)].sum() - b[list(s)].sum()) for s in subsets(4)) for a, b in zip(p, q, strict=True)]
    np.testing.assert_allclose(total_variation(p, q), expected)  # the largest difference of any event
    np.testing.assert_array_equal(total_variation(p, q), total_variation(q, p))
    assert total_variation([0.7, 0.3], [0.4, 0.6]) == pytest.approx(0.3)
    assert total_variation([1, 0], [0, 1]) == 1
    with pytest.raises(InputError, match="every class"):
        total_variation([0.7], [0.4])


def subsets(n):
    return [[i for i in range(n) if bits >> i & 1] for bits in range(1 << n)]


# -- ranks --------------------------------------------------------------------------------------------------


def test_kendall_literally(generator):
    for _ in range(60):
        n = int(generator.integers(2, 9))
        x, y = generator.integers(0, 4, (2, n)).tolist()
        same = other = tied_x = tied_y = 0
        for i in range(n):
            for j in range(i):
                a, b = x[i] - x[j], y[i] - y[j]
                same += a * b > 0
                other += a * b < 0
                tied_x += a == 0
                tied_y += b == 0
        pairs = n * (n - 1) // 2
        if tied_x < pairs and tied_y < pairs:
            expected = (same - other) / math.sqrt((pairs - tied_x) * (pairs - tied_y))
            assert kendall_tau(x, y) == pytest.approx(expected)


def test_kendall_is_scipys(generator):
    stats = pytest.importorskip("scipy.stats")
    for top in (2, 5, 1000):
        for n in (2, 3, 17, 400):
            x, y = generator.integers(0, top, (2, n)).astype(float)
            if kendall_defined(x, y):
                assert kendall_tau(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
            else:
                assert math.isnan(stats.kendalltau(x, y).statistic)
    x, y = generator.normal(size=(2, 2500))  # more than one piece of the table of pairs
    assert kendall_tau(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


def test_kendall_of_extremes(generator):
    x = generator.normal(size=20)
    assert kendall_tau(x, x) == pytest.approx(1) and kendall_tau(x, -x) == pytest.approx(-1)
    assert kendall_tau(x, np.exp(x)) == pytest.approx(1)  # ranks alone
    assert kendall_tau([1e308, -1e308, 0], [3, 1, 2]) == 1
    assert kendall_tau([5e-324, 0], [1, 0]) == 1


def test_kendall_of_a_constant_is_0_and_says_so():
    for x, y in (([1, 1, 1], [1, 2, 3]), ([1, 2], [0, -0.0]), ([1], [2]), ([], [])):
        assert kendall_tau(x, y) == 0
        assert not kendall_defined(x, y)
    assert kendall_defined([1, 2, 2], [3, 3, 1])
    with pytest.raises(InputError):
        kendall_tau([1, math.nan], [1, 2])
    with pytest.raises(InputError):
        kendall_tau([1, 2], [1, 2, 3])


# -- other attention ----------------------------------------------------------------------------------------


def test_uniform_attention():
    found = uniform_attention([[1, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_allclose(found, [[1 / 3, 1 / 3, 1 / 3, 0], [0, 1, 0, 0], [0, 0, 0, 0]])


def test_permuted_attention(generator):
    mask = np.array([[0, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1]], bool)
    weights = np.where(mask, generator.random((2, 8)), 0)
    found = permuted_attention(weights, mask, seed=3)
    np.testing.assert_array_equal(np.sort(found), np.sort(weights))
    assert (found[~mask] == 0).all() and (found != weights).any()
    np.testing.assert_array_equal(found, permuted_attention(weights, mask, seed=3))
    assert (found != permuted_attention(weights, mask, seed=4)).any()
    np.testing.assert_array_equal(found[0], permuted_attention(weights[0], mask[0], seed=3))
    with pytest.raises(InputError, match="lost"):
        permuted_attention(weights, mask & False)


def test_permutations_are_uniform():
    """Each of the six orders of three weights comes about equally often."""
    counts: dict[tuple, int] = {}
    for seed in range(1200):
        order = tuple(permuted_attention([1, 2, 3], seed=seed))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6 and min(counts.values()) > 150


# -- single tokens ------------------------------------------------------------------------------------------


def test_logits_of_tokens_make_the_logit_of_the_text(generator):
    states, weight, bias = generator.normal(size=(2, 7, 5)), generator.normal(size=(3, 5)), generator.normal(size=3)
    attention = sparse(generator, 2, 7)
    own = np.stack([weight @ sum(a * h for a, h in zip(attention[i], states[i], strict=True)) + bias for i in (0, 1)])
    np.testing.assert_allclose(pooled_logits(attention, token_logits(states, weight, bias)), own)
    # a binary decoder has one logit
    single = pooled_logits(attention, token_logits(states, weight[0], bias[0]))
    np.testing.assert_allclose(single, own[:, 0])
    with pytest.raises(InputError, match="add up to 1"):
        pooled_logits(2 * attention, token_logits(states, weight, bias))


def test_same_states_make_attention_indifferent(generator):
    states = np.tile(generator.normal(size=5), (7, 1))
    attention = sparse(generator, 7)
    logits = token_logits(states, generator.normal(size=5), 0.3)
    own = pooled_logits(attention, logits)
    np.testing.assert_allclose(pooled_logits(uniform_attention(np.ones(7)), logits), own)
    np.testing.assert_allclose(pooled_logits(permuted_attention(attention, seed=1), logits), own)
    assert token_probability(logits, 1) == pytest.approx(1 / (1 + math.exp(-own)))


def test_probability_of_tokens():
    logits = [0.0, 2.0, -1.0, 50.0]
    each = [1 / (1 + math.exp(-x)) for x in logits]
    assert token_probability(logits, 1) == pytest.approx(np.mean(each))
    assert token_probability(logits, 0) == pytest.approx(1 - np.mean(each))
    assert token_probability(logits, 1, [1, 1, 1, 0]) == pytest.approx(np.mean(each[:3]))
    table = np.array([[0.0, 1.0, 2.0], [3.0, -1.0, 0.0]])
    soft = np.exp(table) / np.exp(table).sum(1, keepdims=True)
    assert token_probability(table, 2) == pytest.approx(soft[:, 2].mean())
    two = np.stack([np.zeros(4), logits], 1)
    assert token_probability(two, 1) == pytest.approx(token_probability(logits, 1))
    assert token_probability([-1e4, 1e4], 1) == 0.5  # no overflow
    assert math.isnan(token_probability(logits, 1, [0, 0, 0, 0]))
    with pytest.raises(InputError, match="from 0 to 1"):
        token_probability(logits, 2)


# -- mutual information -------------------------------------------------------------------------------------


def test_information_literally(generator):
    for _ in range(20):
        a, b = generator.integers(0, 4, (2, 30)).tolist()
        expected = 0.0
        for i in set(a):
            for j in set(b):
                both = sum(1 for x, y in zip(a, b, strict=True) if (x, y) == (i, j)) / 30
                if both:
                    expected += both * math.log(both / (a.count(i) / 30 * b.count(j) / 30))
        assert mutual_information(a, b) == pytest.approx(expected)


def test_information_is_scikit_learns(generator):
    sklearn = pytest.importorskip("sklearn.metrics")
    for k in (1, 2, 10, 300):
        a, b = generator.integers(0, k, (2, 500))
        assert mutual_information(a, b) == pytest.approx(sklearn.mutual_info_score(a, b), abs=1e-12)


def test_information_of_extremes(generator):
    a = generator.integers(0, 7, 400)
    entropy = -sum(p * math.log(p) for p in np.bincount(a) / 400)
    assert mutual_information(a, a) == pytest.approx(entropy)
    assert mutual_information(a, generator.permutation(7)[a]) == pytest.approx(entropy)  # names do not matter
    b = generator.integers(0, 3, 400)
    assert mutual_information(a, b) == pytest.approx(mutual_information(b, a))
    assert mutual_information(a, b) <= math.log(3)
    assert mutual_information(a, np.zeros(400)) == 0
    assert mutual_information(["x", "y"], ["u", "v"]) == pytest.approx(math.log(2))
    assert math.isnan(mutual_information([], []))


def test_information_of_independent_labels_is_the_bias(generator):
    k, n = 20, 4000
    a, b = generator.integers(0, k, (2, n))
    bias = shuffled_information(a, b, seed=1)
    assert bias == pytest.approx((k - 1) ** 2 / (2 * n), rel=0.15)
    assert mutual_information(a, b) == pytest.approx(bias, rel=0.25)
    assert shuffled_information(a, b, seed=1) == bias
    assert shuffled_information(a, a) < 0.1 < mutual_information(a, a)


def blobs(generator, n=600, k=6, width=8):
    centres = 20 * generator.normal(size=(k, width))
    label = generator.integers(0, k, n)
    return label, centres[label] + generator.normal(size=(n, width))


@pytest.mark.parametrize("batch", [None, 64])
def test_clusters_of_clear_groups(generator, batch):
    label, data = blobs(generator)
    found = clusters(data, 6, batch=batch, seed=2)
    assert mutual_information(label, found) == pytest.approx(mutual_information(label, label))
    np.testing.assert_array_equal(found, clusters(data, 6, batch=batch, seed=2))
    moved = clusters(data + 1e10, 6, batch=batch, seed=2)  # far from 0
    assert mutual_information(found, moved) == pytest.approx(mutual_information(found, found))


def test_clusters_are_nearest_to_their_own_mean(generator):
    """What k-means converges to: every point is in the cluster whose mean is nearest."""
    data = generator.normal(size=(200, 3))
    found = clusters(data, 5, passes=1000)
    means = np.stack([data[found == c].mean(0) for c in range(5)])
    distance = ((data[:, None] - means) ** 2).sum(-1)
    np.testing.assert_array_equal(distance.argmin(1), found)


def test_clusters_of_few_points(generator):
    assert len(set(clusters(np.repeat([[1.0, 2.0], [3.0, 4.0]], 10, 0), 5).tolist())) == 2
    assert clusters([[1.0]], 3).tolist() == [0]
    with pytest.raises(InputError):
        clusters(np.zeros((0, 2)), 2)
    with pytest.raises(InputError):
        clusters([1.0, 2.0], 2)


def test_information_of_states(generator):
    """States that keep the input have the entropy of the words; states that forgot it have the bias."""
    word, inputs = blobs(generator, n=1500, k=8)
    kept = information_of_states(inputs, inputs @ generator.normal(size=(8, 3)), k=8)
    lost = information_of_states(inputs, generator.normal(size=(1500, 3)), k=8)
    assert kept.value == pytest.approx(mutual_information(word, word), rel=0.2) and kept.value > 10 * kept.bias
    assert lost.value == pytest.approx(lost.bias, rel=0.5)
    assert (kept.pairs, kept.k, kept.used) == (1500, 8, (8, 8))
    assert information_of_states(inputs, inputs).k == 1 + 17  # (k − 1)² / 2N ≤ 0.1
    with pytest.raises(InputError, match="pairs"):
        information_of_states(inputs, inputs[1:])


# -- annotators ---------------------------------------------------------------------------------------------


def test_cohen_is_scikit_learns(generator):
    sklearn = pytest.importorskip("sklearn.metrics")
    for k in (2, 3, 5):
        for _ in range(10):
            a, b = generator.integers(0, k, (2, 30))
            assert cohen_kappa(a, b) == pytest.approx(sklearn.cohen_kappa_score(a, b), abs=1e-12)


def test_cohen_by_hand():
    """20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: p_o = 35/50, p_e = ½ · 3/5 + ½ · 2/5 = ½, κ = 0.4."""
    a = ["yes"] * 25 + ["no"] * 25
    b = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert cohen_kappa(a, b) == pytest.approx(0.4)
    assert cohen_kappa(b, a) == cohen_kappa(a, b)
    other = dict(yes=7, no=3)
    assert cohen_kappa([other[x] for x in a], [other[x] for x in b]) == pytest.approx(0.4)


def test_cohen_of_extremes():
    assert cohen_kappa([0, 1, 1], [0, 1, 1]) == 1
    assert cohen_kappa([0, 1], [1, 0]) == -1
    assert cohen_kappa([0, 0, 0], [0, 0, 0]) == 1  # agreed on everything
    assert cohen_kappa([0, 0, 0], [1, 1, 1]) == 0  # disagreed on everything, as chance would
    assert cohen_kappa([0, 0, 1], [0, 0, 0]) == 0
    assert math.isnan(cohen_kappa([], []))
    with pytest.raises(InputError):
        cohen_kappa([0], [0, 1])


def test_fleiss_by_hand():
    """Four tokens, three annotators: P_t = 1, 1/3, 1/3, 1, P̄ = 2/3; 6 of 12 labels are 1, P̄_e = 1/2; κ = 1/3."""
    labels = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]]
    assert fleiss_kappa(labels) == pytest.approx(1 / 3)


def test_fleiss_literally(generator):
    for _ in range(20):
        raters, tokens, k = (int(generator.integers(2, 6)) for _ in range(3))
        labels = generator.integers(0, k, (raters, tokens))
        same = [labels[i, t] == labels[j, t] for t in range(tokens) for i in range(raters) for j in range(i)]
        chance = sum((labels == c).mean() ** 2 for c in range(k))
        if chance < 1:
            assert fleiss_kappa(labels) == pytest.approx((np.mean(same) - chance) / (1 - chance))


def test_fleiss_of_extremes():
    assert fleiss_kappa([[0, 1, 2]] * 4) == 1
    assert fleiss_kappa([[1, 1]] * 3) == 1
    assert fleiss_kappa([["a", "b"], ["b", "a"]]) == -1
    assert math.isnan(fleiss_kappa([[], []]))
    with pytest.raises(InputError, match="two annotators"):
        fleiss_kappa([[0, 1]])


def test_fleiss_published_example():
    """Ten subjects, fourteen raters, five categories: the table of Fleiss' kappa on Wikipedia gives 0.210."""
    counts = """0 0 0 0 14; 0 2 6 4 2; 0 0 3 5 6; 0 3 9 2 0; 2 2 8 1 1; 7 7 0 0 0; 3 2 6 3 0; 2 5 3 2 2; 6 5 2 1 0;
    0 2 2 3 7"""
    rows = [[int(n) for n in row.split()] for row in counts.split(";")]
    labels = np.array([np.repeat(range(5), row) for row in rows]).T
    assert round(fleiss_kappa(labels), 3) == 0.210


def test_no_words_and_a_mask_that_does_not_fit():
    assert permuted_attention([], []).shape == (0,)
    with pytest.raises(InputError, match=r"A mask of the shape \(2,\) does not fit weights of \(3,\)"):
        permuted_attention([0.2, 0.3, 0.5], [True, False])
    with pytest.raises(InputError, match="does not fit"):
        jensen_shannon([0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [True, True])
