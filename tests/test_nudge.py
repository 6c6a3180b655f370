"""Chapter 1: a slope by trying."""
import numpy as np
import pytest

from anatomy import bent, bent_slope, nudge_errors, numerical_grad

H = 10.0 ** -np.arange(1, 17)


@pytest.fixture(scope="module")
def errors():
    return {way: np.array(found) for way, found in nudge_errors(H).items()}


@pytest.mark.parametrize("f, slope, x", [
    (np.sin, np.cos, 0.7), (np.exp, np.exp, -1.0), (np.log, lambda x: 1 / x, 3.0),
    (lambda x: x ** 3, lambda x: 3 * x * x, -2.0), (abs, np.sign, 4.0)])
def test_slopes_known_from_calculus(f, slope, x):
    """Nine digits of a slope that has a formula."""
    found = numerical_grad(f, x)
    assert found.shape == () and abs(found - slope(x)) < 1e-9 * max(1, abs(f(x)))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (2, 1, 2), (0,), (0, 3)])
def test_each_entry_in_its_own_place(shape):
    """<w, x> has slope w, entry by entry, for any shape."""
    w = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    found = numerical_grad(lambda x: np.sum(w * x), np.zeros(shape))
    assert found.shape == shape and found.dtype == float
    np.testing.assert_allclose(found, w, rtol=1e-9)


@pytest.mark.parametrize("x", [
    [1, 2], (1.0, 2.0), np.array([1, 2]), np.array([1, 2], dtype=np.float32),
    np.array([1.0, 9.0, 2.0])[::2], np.arange(1, 3, dtype=np.uint8)], ids=repr)
def test_any_real_array(x):
    """Integers do not truncate the nudge, views and lists are welcome."""
    np.testing.assert_allclose(
        numerical_grad(lambda x: np.sum(x ** 2), x), [2, 4], rtol=1e-9)


def test_x_is_left_alone_and_may_be_read_only():
    """The nudges happen to a copy."""
    x = np.array([1.0, 2.0])
    x.flags.writeable = False
    numerical_grad(np.sum, x)
    assert np.array_equal(x, [1.0, 2.0])


def test_only_one_entry_is_away_at_a_time():
    """f sees x with one entry moved by h, once up and once down, in order."""
    seen = []
    numerical_grad(lambda x: seen.append(x - [1.0, 2.0]) or 0.0, [1.0, 2.0], h=0.5)
    assert np.array_equal(seen, [[.5, 0], [-.5, 0], [0, .5], [0, -.5]])


@pytest.mark.parametrize("size", [1, 5, 257])
def test_the_bill(size):
    """Two evaluations for every number, 514 for the network."""
    calls = []
    numerical_grad(lambda x: calls.append(1) or 0.0, np.zeros(size))
    assert len(calls) == 2 * size


def test_h_is_used():
    """A cube's central difference is off by h^2 exactly."""
    assert numerical_grad(lambda x: x ** 3, 0.0, h=0.5) == 0.25
    assert abs(numerical_grad(lambda x: x ** 3, 1.0) - 3) < 1e-9


def centred(x):
    x -= x.mean()
    return (x ** 2).sum()


def doubled(x):
    x *= 2
    return x.sum()


def median(x):
    x.sort()
    return x[1]


@pytest.mark.parametrize("f, x, slopes", [
    (centred, [1.0, 2.0, 6.0], [-4, -2, 6]), (doubled, [1.0, 2.0], [2, 2]),
    (median, [3.0, 1.0, 2.0], [0, 0, 1]), (lambda x: x.clip(0, 1, out=x).sum(), [0.5, 2.0], [1, 0])])
def test_f_that_writes_into_its_argument(f, x, slopes):
    """The run is what x was nudged by, whatever f leaves in its array."""
    np.testing.assert_allclose(numerical_grad(f, x), slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("x", [1e6, 1e9, 3e10])
def test_a_nudge_that_is_rounded(x):
    """Far from 0 the nudge is not quite h; the slope is divided by what it was."""
    assert numerical_grad(lambda x: x - 1, x) == 1


@pytest.mark.parametrize("x", [1e20, -1e20, 2.0 ** 53, -2.0 ** 53])
def test_a_nudge_that_is_lost(x):
    """Both points or only one of them are x itself, as x + 1 or x - 1 is rounded to x: f is not called."""
    called = []
    assert x in (x + 1, x - 1)
    with pytest.raises(ValueError) as refusal:
        numerical_grad(called.append, [x], 1.0)
    assert not called and {"1.0", str(x)} <= set(str(refusal.value).split())


@pytest.mark.parametrize("h", [0, 0.0, -1e-5, np.nan, np.inf, -np.inf])
def test_h_that_is_no_nudge(h):
    """A nudge of nothing, or backwards, is refused by its value."""
    for x in [1.0], []:
        with pytest.raises(ValueError, match=str(h)):
            numerical_grad(np.sum, x, h)


@pytest.mark.parametrize("x", [None, "3", [None], ["a"], [1, [2]], 1j,
                               np.array([1j]), object()])
def test_x_that_is_no_real_array(x):
    """What has no place on the real line has no slope."""
    with pytest.raises((TypeError, ValueError)):
        numerical_grad(lambda x: 0.0, x)


@pytest.mark.parametrize("answer", [None, "a", 1j, [1.0, 2.0], np.ones(2)], ids=repr)
def test_f_that_does_not_answer_with_a_number(answer):
    """Only a number has a slope here."""
    with pytest.raises((TypeError, ValueError)):
        numerical_grad(lambda x: answer, [1.0])


def test_the_slope_by_hand_is_right():
    """It agrees with Squire and Trapp's complex step."""
    x = np.linspace(0, 1, 101)
    np.testing.assert_allclose(bent_slope(x), bent(x + 1e-30j).imag / 1e-30, rtol=1e-14)


def test_best_steps(errors):
    """Central is best near u^(1/3), forward near u^(1/2), where u is the rounding
    of f: eps on one processor, several eps on the next."""
    eps = np.finfo(float).eps
    for way, power in ("central", 1 / 3), ("forward", 1 / 2):
        low, high = eps ** power / 3, (10 * eps) ** power * 3
        assert low < H[errors[way].argmin()] < high, way
    assert errors["central"].min() < errors["forward"].min() / 100


@pytest.mark.parametrize("way, steps, slope", [
    ("central", slice(0, 4), 2), ("central", slice(6, 14), -1),
    ("forward", slice(0, 7), 1), ("forward", slice(9, 14), -1)])
def test_two_errors_two_slopes(errors, way, steps, slope):
    """Bending grows like a power of h, cancellation like 1/h."""
    found = np.polyfit(np.log(H[steps]), np.log(errors[way][steps]), 1)[0]
    assert abs(found - slope) < 0.2


def test_nothing_cancels_in_a_complex_step(errors):
    """It falls to rounding and stays there."""
    assert errors["complex"][7:].max() < 1e-14
    assert max(nudge_errors([1e-100])["complex"]) < 1e-14


def test_one_error_for_each_step(errors):
    """Three ways, an error for each h, the worst over the points."""
    assert set(errors) == {"forward", "central", "complex"}
    assert all(e.shape == H.shape for e in errors.values())
    assert errors["forward"][0] == max(
        abs((bent(x + .1) - bent(x)) / .1 / bent_slope(x) - 1)
        for x in np.linspace(0, 1, 101))


def test_a_square_has_no_bending_error():
    """Why the demo does not use x^2: its central error does not grow with h."""
    for h in 0.5, 0.25, 1.0:
        assert numerical_grad(lambda x: x * x, 3.0, h) == 6.0


