"""Chapter 8: the race over learning rates."""
import math
from fractions import Fraction

import numpy as np
import pytest

from anatomy import OPTIMIZERS, RATES, SGD, Adam, race, race_table, room, spread, train, train_many


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_together_is_alone_bit_for_bit(name):
    """Losses, what was kept and the end of every network in a stack."""
    rule, rates = OPTIMIZERS[name], np.array([0.01, 0.1, 1.0, 3.0])
    both = train_many(rule, [4, 7], rates.reshape(-1, 1, 1, 1), steps=120, keep=[3])
    mean = np.zeros(120)
    for i, rate in enumerate(rates):
        for j, seed in enumerate((4, 7)):
            one = train(rule, seed, rate, steps=120, keep=[3])
            mean += one.losses / 8
            assert np.array_equal(both.final()[:, i, j], one.final())
            assert np.array_equal(both.at(3)[:, i, j], one.at(3))
            for p, q in zip(both.model.params, one.model.params):
                assert np.array_equal(p.data[i, j], q.data)
    np.testing.assert_allclose(both.losses, mean, rtol=1e-12)


def test_a_stack_has_an_axis_for_seeds_and_those_of_the_rates():
    row = train_many(SGD, [3], steps=5)
    one = train(SGD, 3, steps=5)
    for p, q in zip(one.model.params, row.model.params):
        assert q.shape == (1, *p.shape) and np.array_equal(p.data, q.data[0])
    grid = train_many(SGD, [3, 4], np.reshape([0.1, 0.2], (2, 1, 1, 1)), steps=5)
    assert grid.final().shape == (2, 2, 2) and grid.losses.shape == (5,)


def test_race_is_the_single_runs_and_repeats_itself():
    found = race(seeds=2, steps=30)
    assert found.shape == (2, 4, len(RATES), 2)
    assert np.array_equal(found, race(seeds=2, steps=30))
    for k, rule in enumerate(OPTIMIZERS.values()):
        one = train(rule, 1, RATES[3], steps=30)
        assert np.array_equal(found[:, k, 3, 1], one.final())


@pytest.fixture(scope="module")
def finals():
    """Accuracy of two further seeds: (optimizers, rates .1 and 1, seeds)."""
    rates = np.array([0.1, 1.0]).reshape(-1, 1, 1, 1)
    return np.array([train_many(rule, [20, 21], rates).final()[1]
                     for rule in OPTIMIZERS.values()])


def test_at_a_tenth_two_are_stuck_and_two_are_not(finals):
    assert finals[:2, 0].max() < 0.75 and finals[2:, 0].min() > 0.95


def test_at_one_it_is_the_reverse(finals):
    assert finals[:2, 1].min() > 0.95 and np.median(finals[2:, 1]) < 0.75


def test_first_step_of_rmsprop_is_adams_at_ten_times_the_rate():
    one, ten = (train(rule, 3, lr, steps=1).at(1)[0]
                for rule, lr in ((OPTIMIZERS["RMSProp"], 0.1), (Adam, 1.0)))
    assert one == pytest.approx(ten, rel=1e-3) and one > 5


def test_the_average_of_g_brings_down_adams_loss_and_its_jumps():
    without, averaged = (train(Adam, 5, steps=500, beta1=beta).losses for beta in (0.0, 0.9))
    assert abs(np.diff(without)).mean() > 1.4 * abs(np.diff(averaged)).mean()
    assert without.mean() > 1.3 * averaged.mean()


@pytest.mark.parametrize("steps", [0, -1])
def test_no_step(steps):
    with pytest.raises(ValueError, match=f"at least one step, not {steps}"):
        train_many(SGD, [1, 2], steps=steps)


def test_room_is_the_way_to_the_nearest_line():
    """Lines at 5%, 10%, ..., 95%: from 0.62 it is 2 points, from 0.94 to the next above 1."""
    assert room([0.62, 0.77]) == pytest.approx(0.02)
    assert room([0.82, 0.94]) == pytest.approx(0.01)
    assert room([0.98, 1.0]) == pytest.approx(0.03)


def test_spread_says_median_and_range():
    assert spread([0.5, 0.25, 1.0]) == "50% (25% to 100%)"


def test_the_range_is_rounded_outward():
    """Where processors disagree about a point, both are within."""
    assert spread([588 / 600, 592 / 600, 594 / 600]) == "99% (95% to 100%)"
    assert spread([586 / 600, 592 / 600, 593 / 600]) == "99% (95% to 100%)"
    assert spread([0.6401, 0.69, 0.7299]) == "69% (60% to 75%)"


@pytest.mark.parametrize("points", [100, 300, 600])
def test_a_share_on_the_grid_is_its_own_bound(points):
    """Though 100 * 0.57 is less than 57 and 100 * 0.55 more than 55."""
    for k in range(points + 1):
        exact = Fraction(100 * k, points)
        low, high = 5 * math.floor(exact / 5), 5 * math.ceil(exact / 5)
        assert spread([k / points]).endswith(f" ({low}% to {high}%)")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_no_rate_overflows(name):
    with np.errstate(all="raise", under="ignore"):
        train_many(OPTIMIZERS[name], [1], RATES.reshape(7, 1, 1, 1), steps=50)


def test_a_row_of_the_table_has_the_rate_the_median_loss_and_the_range(capsys):
    """The mean of these losses is 10.34."""
    losses = np.zeros((4, 7, 10)) + [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9, 1.0, 100.0]
    shares = np.full((4, 7, 10), 0.93)
    race_table("made", [0, 3, 5, 6], losses, shares)
    head, *rows = capsys.readouterr().out.splitlines()[:5]
    rates = ["0.001", "0.1", "1", "3"]
    assert [row.split()[:3] for row in rows] == [[name, rate, "0.45"] for name, rate in zip(OPTIMIZERS, rates)]
    assert all(row.endswith("  93% (90% to 95%)") for row in rows)
