"""Interquartile means, intervals, profiles and probabilities of improvement."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from quicgym.agents.evaluation.statistics import (
    Bootstrap,
    interquartile_mean,
    mean_difference,
    performance_profiles,
)

SCORES = st.tuples(st.integers(2, 3), st.integers(1, 4), st.integers(2, 5)).flatmap(
    lambda shape: arrays(float, shape, elements=st.integers(-50, 50).map(lambda n: n / 8))
)
few = settings(max_examples=40, deadline=None)


def quick(scores, resamples=120):
    return Bootstrap(scores, resamples)


def test_the_interquartile_mean_leaves_out_a_quarter_at_either_end():
    assert interquartile_mean(np.array([100.0, 1, 2, 3, 4, 5, 6, -100])) == pytest.approx(3.5)
    assert interquartile_mean(np.array([7.0])) == 7
    assert interquartile_mean(np.array([0.0, 3, 9])) == 4  # a quarter of three is none


def test_an_unstratified_interval_is_scipy_s():
    scores = np.random.default_rng(3).gamma(2, size=40)
    ours = Bootstrap(np.stack([scores, scores + 1])[:, None], 4000).interquartile_mean(0)
    theirs = stats.bootstrap(
        (scores,),
        lambda x, axis: stats.trim_mean(x, 0.25, axis),
        n_resamples=4000,
        method="percentile",
        random_state=np.random.default_rng(1),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.value == stats.trim_mean(scores, 0.25)
    assert ours.low == pytest.approx(theirs.low, abs=0.05 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.05 * width)


def test_other_resamples_come_from_another_seed():
    scores = np.random.default_rng(3).normal(size=(1, 3, 8))
    first, again, other = (Bootstrap(scores, 200, seed).interquartile_mean(0) for seed in (1, 1, 2))
    assert first == again and first.value == other.value
    assert (first.low, first.high) != (other.low, other.high)


def test_seeds_are_drawn_within_their_scenario():
    # Two scenarios far apart: drawing across them would move the mean by tens.
    rng = np.random.default_rng(0)
    scores = np.array([0.0, 100.0])[None, :, None] + rng.normal(size=(1, 2, 10))
    estimate = Bootstrap(scores).interquartile_mean(0)
    assert estimate.high - estimate.low < 5
    assert (
        stats.bootstrap(
            (scores.ravel(),), np.mean, random_state=np.random.default_rng(1)
        ).confidence_interval.low
        < 35
    )  # which the unstratified one does


def test_an_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(5)
    offsets = np.linspace(-1, 1, 8)[:, None]
    truth = stats.trim_mean((offsets + rng.normal(size=(8, 40_000))).ravel(), 0.25)
    hits = 0
    for _ in range(120):
        estimate = quick((offsets + rng.normal(size=(8, 20)))[None], 200).interquartile_mean(0)
        hits += estimate.low <= truth <= estimate.high
    assert 0.87 <= hits / 120 <= 1


@few
@given(SCORES)
def test_intervals_lie_within_the_scores_and_repeat(scores):
    bootstrap, again = quick(scores), quick(scores)
    for policy, own in enumerate(scores):
        estimate = bootstrap.interquartile_mean(policy)
        assert own.min() - 1e-9 <= estimate.low <= estimate.high <= own.max() + 1e-9
        assert estimate == again.interquartile_mean(policy)


@few
@given(SCORES, st.integers(-8, 8), st.sampled_from([0.5, 1, 4]))
def test_shift_and_scale(scores, shift, scale):
    plain = quick(scores).interquartile_mean(0)
    moved = quick(scores * scale + shift).interquartile_mean(0)
    for name in ("value", "low", "high"):
        assert getattr(moved, name) == pytest.approx(getattr(plain, name) * scale + shift)


@few
@given(SCORES)
def test_a_policy_s_interval_does_not_depend_on_the_others(scores):
    assert quick(scores).interquartile_mean(1) == quick(scores[1:]).interquartile_mean(0)


@few
@given(SCORES, st.integers(-8, 8))
def test_differences_are_paired(scores, shift):
    bootstrap = quick(np.concatenate([scores, scores[:1] + shift]))
    certain = bootstrap.difference(len(scores), 0)
    assert (certain.value, certain.low, certain.high) == pytest.approx((shift,) * 3)
    there, back = bootstrap.difference(0, 1), bootstrap.difference(1, 0)
    assert (there.value, there.low, there.high) == pytest.approx(
        (-back.value, -back.high, -back.low)
    )


@few
@given(SCORES)
def test_probabilities_of_improvement_add_up_to_one(scores):
    bootstrap = quick(scores)
    there, back = (bootstrap.probability_of_improvement(*pair) for pair in ((0, 1), (1, 0)))
    assert there.value + back.value == pytest.approx(1)
    assert (there.low, there.high) == pytest.approx((1 - back.high, 1 - back.low))
    x, y = scores[:2]
    assert there.value == pytest.approx(((x > y) + 0.5 * (x == y)).mean())
    # Against resamples that are compared seed by seed.
    drawn = np.concatenate(list(bootstrap.draws()))
    rows = np.arange(scores.shape[1])[:, None]
    x, y = x[rows, drawn], y[rows, drawn]
    direct = ((x > y) + 0.5 * (x == y)).mean(axis=(1, 2))
    assert (there.low, there.high) == pytest.approx(tuple(np.percentile(direct, [2.5, 97.5])))


def test_a_probability_of_improvement_compares_two_policies_on_the_same_path():
    paths = 10 * np.random.default_rng(2).normal(size=(1, 300))
    scores = np.stack([paths + 0.1, paths])
    scores[0, 0, :60] -= 1  # the first is ahead on 240 of 300 paths
    estimate = Bootstrap(scores).probability_of_improvement(0, 1)
    assert estimate.value == 0.8
    assert 0.74 < estimate.low < 0.8 < estimate.high < 0.86


def test_deterministic_scenarios_add_no_width():
    fixed = np.repeat(np.array([0.1, 0.7, 0.3])[None, :, None], 7, axis=2)
    scores = np.concatenate([fixed, fixed + 0.1])
    estimate = Bootstrap(scores).interquartile_mean(0)
    assert estimate.low == estimate.value == estimate.high
    probability = Bootstrap(scores).probability_of_improvement(1, 0)
    assert (probability.low, probability.value, probability.high) == (1, 1, 1)
    assert Bootstrap(np.concatenate([fixed, fixed])).probability_of_improvement(0, 1).value == 0.5


def test_one_seed_has_no_interval():
    bootstrap = Bootstrap(np.array([[[1.0], [2.0]], [[0.0], [1.0]]]))
    for estimate in (bootstrap.interquartile_mean(0), bootstrap.difference(0, 1)):
        assert estimate.low is None and estimate.high is None
    assert bootstrap.difference(0, 1).value == 1


@few
@given(SCORES)
def test_profiles_are_shares_above_a_threshold(scores):
    thresholds = np.linspace(-7, 7, 29)  # which many scores equal
    profiles = performance_profiles(scores, thresholds)
    for policy, profile in zip(scores, profiles, strict=True):
        assert profile == pytest.approx([np.mean(policy > tau) for tau in thresholds])


@pytest.mark.parametrize("seeds", [2, 10, 300])
def test_a_paired_difference_s_interval_is_student_s_t_of_the_differences(seeds):
    rng = np.random.default_rng(2)
    paths = 10 * rng.normal(size=seeds)  # which both have, and which takes no part
    first, second = paths + rng.normal(0.2, 1, seeds), paths + rng.normal(0, 1, seeds)
    ours = mean_difference(first[None], second[None])
    theirs = stats.ttest_rel(first, second).confidence_interval()
    assert ours.value == pytest.approx((first - second).mean())
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


def test_the_interval_over_two_scenarios_is_welch_s():
    rng = np.random.default_rng(5)
    first, second = rng.normal(0.2, 1, 12), rng.normal(0, 5, 12)
    ours = mean_difference(np.stack([first, -second]), np.zeros((2, 12)))
    theirs = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    assert (ours.low, ours.high) == pytest.approx((theirs.low / 2, theirs.high / 2))


def test_differences_between_scenarios_add_no_width():
    offsets = np.array([[0.0], [50.0]])
    noise = np.random.default_rng(0).normal(size=(2, 2, 30))
    estimate = mean_difference(offsets + noise[0], noise[1])
    assert estimate.value == pytest.approx(25, abs=0.5)
    assert estimate.high - estimate.low < 2
    alone = mean_difference(offsets, 0 * offsets)
    assert (alone.value, alone.low, alone.high) == (25, None, None)  # one seed says nothing
    with pytest.raises(ValueError, match="not finite"):
        mean_difference(np.array([[np.nan, 1]]), np.zeros((1, 2)))
