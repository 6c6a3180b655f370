"""Chapter 4: the vocabulary, and a loss that survives."""
from itertools import permutations, product

import numpy as np
import pytest

from anatomy import (Tensor, bce_with_logits, centred_slopes, logistic,
                     logit_losses, loss_slopes, numerical_grad, patched_bce, positive, softplus)
from judges import agrees, central, complex_step, numbers, same, slopes

SHAPES = [(), (1,), (4,), (2, 3), (2, 1, 3), (0,), (2, 0)]


# One operand

UNARY = {"exp": np.exp, "log": np.log, "tanh": np.tanh,
         "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "relu": lambda x: x * (x.real > 0),
         "__neg__": np.negative}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_elementwise(name, shape):
    """Value and slope of each word, for any shape."""
    x = numbers(*shape)
    if name != "log":
        x = np.asarray(x * np.where(np.arange(x.size).reshape(shape) % 2, -1, 1))
    agrees(lambda t: getattr(t, name)(), UNARY[name], x)


@pytest.mark.parametrize("name", UNARY)
def test_elementwise_with_the_input_used_before_and_after(name):
    """Reports on either side of a rule add up."""
    f = UNARY[name]
    agrees(lambda t: t * t + getattr(t, name)() * t + t,
           lambda x: x * x + f(x) * x + x, numbers(2, 3))


@pytest.mark.parametrize("name, x, y, slope", [
    ("sigmoid", [-1000, 0, 1000], [0, .5, 1], [0, .25, 0]),
    ("sigmoid", [-700, 40], [np.exp(-700), 1], [np.exp(-700), 0]),       # at 40, 1 - out is 0
    ("tanh", [-1000, 0, 1000], [-1, 0, 1], [0, 1, 0]),
    ("relu", [-np.inf, -1, -0.0, 0, 1e-300, np.inf], [0, 0, 0, 0, 1e-300, np.inf],
     [0, 0, 0, 0, 1, 1]),
    ("exp", [-1000, -np.inf], [0, 0], [0, 0]),
    ("log", [1e-300, 1e-20, 1e300], np.log([1e-300, 1e-20, 1e300]), [1e300, 1e20, 1e-300])])
def test_far_out(name, x, y, slope):
    """No warning, no clamp, no hidden epsilon, and 0 as relu's slope at 0."""
    value, (g,) = slopes(lambda t: getattr(t, name)(), x, seed=np.ones(len(x)))
    # A last digit of 700 is 1e-13, and e^700 has an error of as much; a tanh of -1 may be one by a last digit.
    same(value, y, rtol=1e-12, atol=0)
    same(g, slope, rtol=1e-12, atol=1e-15 if name == "tanh" else 0)


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "relu"])
def test_nan_passes_through(name):
    """NaN stays visible in value and slope, and only where it was."""
    with np.errstate(all="ignore"):
        value, (g,) = slopes(lambda t: getattr(t, name)(), [np.nan, 1.0], seed=[1.0, 1.0])
    assert np.isnan(value[0]) and np.isnan(g[0])
    assert np.isfinite(value[1]) and np.isfinite(g[1])


def test_overflow_and_log_of_zero_follow_numpy():
    """Infinity is an answer, with numpy's warning."""
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert Tensor(1000.0).exp().data == np.inf
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert Tensor(0.0).log().data == -np.inf
    with pytest.warns(RuntimeWarning, match="invalid"):
        assert np.isnan(Tensor(-1.0).log().data)


def test_softplus_logistic_positive():
    """Against their definitions, where those can be computed."""
    x = np.linspace(-30, 30, 61)
    np.testing.assert_allclose(softplus(x), np.log1p(np.exp(x)), rtol=1e-14)
    # exp of 30 half an ulp more is 30 half ulps more
    np.testing.assert_allclose(logistic(x), 1 / (1 + np.exp(-x)), rtol=1e-13)
    assert np.array_equal(positive(x), np.where(x > 0, x, 0))
    assert softplus(1e308) == 1e308 and softplus(-1e308) == 0


@pytest.mark.parametrize("z", [0.0, 5.0, 12.0, 40.0, 300.0, 700.0])
def test_the_two_classes_are_mirror_images(z):
    """A point that is right by z pays log(1 + e^-z), whichever its class."""
    exact, small = np.log1p(np.exp(-z)), 1 / (1 + np.exp(z))
    for logit, label, side in (z, 1.0, -1), (-z, 0.0, 1):
        value, (g,) = slopes(lambda t: bce_with_logits(t, [label]), [logit])
        same(value, exact, atol=0)
        same(g, [side * small], atol=0)
        loss, slope = logit_losses(np.array([logit]), label)
        same(loss, [exact], atol=0)
        same(slope, [side * small], atol=0)


# Two operands

@pytest.mark.parametrize("base, exponent, value, along_base, along_exponent", [
    (0, 0, 1, 0, 0), (0, 1, 0, 1, 0), (0, 2, 0, 0, 0), (0, 3, 0, 0, 0), (2, 0, 1, 0, np.log(2)),
    (2, 3, 8, 12, 8 * np.log(2)), (3, 1, 3, 1, 3 * np.log(3)), (1, 5, 1, 5, 0),
    (2, -1, .5, -.25, .5 * np.log(2)), (4, .5, 2, .25, 2 * np.log(4))])
def test_powers(base, exponent, value, along_base, along_exponent):
    """Both slopes, exponent 0 and base 0 included, without a warning."""
    y, (a, b) = slopes(lambda a, b: a ** b, base, exponent)
    same(y, value)
    same(a, along_base)
    same(b, along_exponent)
    same(slopes(lambda a: a ** exponent, base)[1][0], along_base)
    same(slopes(lambda b: base ** b, exponent)[1][0], along_exponent)


@pytest.mark.parametrize("x", [np.inf, -np.inf, np.nan, 0.0, -2.0])
def test_nothing_moves_the_zeroth_power(x):
    """Its value is 1 and its slope 0, at infinity and for NaN too."""
    for zero in 0, np.zeros(1):
        value, (g,) = slopes(lambda x: x ** zero, [x], seed=[2.0])
        same(value, [1])
        same(g, [0])


@pytest.mark.parametrize("word, x, slope", [
    (lambda x: x.relu(), [-1.0, 0.0, 4.0], [0, 0, np.inf]), (lambda x: x ** 0, [-1.0, 0.0, 4.0], [0, 0, 0]),
    (lambda x: x ** np.zeros(3), [-1.0, 0.0, 4.0], [0, 0, 0]),
    (lambda x: 0 ** x, [1.0, 2.0, 0.5], [0, 0, 0]), (lambda x: np.array([0, 2.0, 0]) ** x, [1.0, 1.0, 2.0],
                                                    [0, np.inf, 0])])
def test_a_flat_word_sends_nothing_back(word, x, slope):
    """Where nothing moves the slope is 0, even of what moves infinitely fast."""
    _, (g,) = slopes(word, x, seed=[np.inf] * 3)
    same(g, slope)


def test_the_root_of_what_relu_has_flattened():
    """sqrt(max(x, 0)) is 0 for all x below 0."""
    with np.errstate(divide="ignore"):
        _, (g,) = slopes(lambda x: x.relu() ** 0.5, [-1.0, 4.0], seed=[1.0, 1.0])
    same(g, [0.0, 0.25])


@pytest.mark.parametrize("n", [-3, -2, -1, 0, 1, 2, 3, 4])
def test_negative_bases(n):
    """An integer power of a negative number has a slope."""
    _, (g,) = slopes(lambda x: x ** n, [-2.0], seed=[1.0])
    same(g, [n * (-2.0) ** (n - 1)])


def test_the_root_at_zero():
    """Its slope is infinite, as the mathematics says."""
    with np.errstate(divide="ignore"):
        _, (g,) = slopes(lambda x: x ** 0.5, [0.0, 4.0], seed=[1.0, 1.0])
    same(g, [np.inf, 0.25])


def test_division_by_zero_follows_numpy():
    """1/0 is infinite, 0/0 is NaN, nothing raises."""
    with np.errstate(all="ignore"):
        y, (g,) = slopes(lambda x: 1 / x, [0.0, 2.0], seed=[1.0, 1.0])
        assert np.isnan((Tensor(0.0) / Tensor(0.0)).data)
        assert (3 / Tensor(0.0)).data == np.inf
    assert y[0] == np.inf and g[0] == -np.inf and g[1] == -0.25


MATRICES = [(3,), (2, 3), (3, 2), (3, 3), (1, 3), (3, 1), (4, 2, 3), (4, 3, 2), (1, 3, 3),
            (2, 1, 2, 3), (4, 3, 3), (2, 4, 3, 1), (0, 3), (3, 0), (2, 0, 3)]


@pytest.mark.parametrize("a", MATRICES, ids=str)
def test_matmul_over_all_pairs(a):
    """Vectors, matrices and stacks on both sides, or numpy's own refusal."""
    for b in MATRICES:
        x, y = numbers(*a), numbers(*b, seed=1)
        try:
            x @ y
        except ValueError:
            with pytest.raises(ValueError):
                Tensor(x) @ Tensor(y)
            continue
        agrees(lambda x, y: x @ y, lambda x, y: x @ y, x, y)
        agrees(lambda x: x @ y, lambda x: x @ y, x)
        agrees(lambda y: x @ y, lambda y: x @ y, y)


def test_matmul_by_itself():
    """Square, both operands one node, where a missing transpose would hide."""
    agrees(lambda x: x @ x, lambda x: x @ x, numbers(3, 3))
    agrees(lambda x: x @ x.T + x.T @ x, lambda x: x @ x.T + x.T @ x, numbers(2, 3)[:, :2])
    agrees(lambda v: v @ v, lambda v: v @ v, numbers(4))


# Reductions and shapes

AXES = [None, 0, 1, 2, -1, -2, -3, (0,), (0, 1), (0, 2), (1, 2), (-1, 0), (2, -3), (0, 1, 2), ()]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_reductions(name, axis, keepdims):
    """Every axis, negative and in tuples, kept and dropped."""
    agrees(lambda t: getattr(t, name)(axis=axis, keepdims=keepdims),
           lambda x: getattr(x, name)(axis=axis, keepdims=keepdims), numbers(2, 3, 4))
    agrees(lambda t: getattr(t, name)(axis, keepdims) * t,
           lambda x: getattr(x, name)(axis=axis, keepdims=True) * x
           if keepdims else getattr(x, name)(axis=axis) * x, numbers(2, 2, 2))


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("shape, axis", [((), None), ((), ()), ((3,), 0), ((3,), -1),
                                         ((1,), 0), ((1, 3), 0)], ids=str)
def test_reductions_to_a_number(name, shape, axis):
    """A 0-d answer needs no seed and stays 0-d."""
    agrees(lambda t: getattr(t, name)(axis), lambda x: getattr(x, name)(axis), numbers(*shape))


@pytest.mark.parametrize("shape, axis", [((0,), None), ((0, 3), 0), ((0, 3), 1), ((2, 0), None)], ids=str)
def test_reductions_of_nothing(shape, axis):
    """A sum of nothing is 0; its mean is what numpy says it is."""
    y, (g,) = slopes(lambda t: t.sum(axis), np.zeros(shape), seed=np.zeros(shape).sum(axis))
    same(y, np.zeros(shape).sum(axis))
    assert g.shape == shape
    with np.errstate(all="ignore"):
        mean = np.asarray(Tensor(np.zeros(shape)).mean(axis).data)
        assert mean.shape == y.shape and np.isnan(mean).all()


@pytest.mark.parametrize("axis, error", [(3, ValueError), (-4, ValueError), ((0, 0), ValueError),
                                         ("a", TypeError), (0.5, TypeError)])
def test_axes_that_are_not_there(axis, error):
    """Numpy's own refusal."""
    for t in Tensor(np.ones((2, 3, 4))), Tensor(np.ones((2, 3, 4))) * 2:
        with pytest.raises(error):
            t.sum(axis)
        with pytest.raises(error):
            t.mean(axis)


@pytest.mark.parametrize("axes", sorted({*permutations(range(3)), *product((0, -3), (1, -2), (2, -1)),
                                         (-1, 0, 1)}), ids=str)
def test_transposes(axes):
    """Every order of three axes, in numpy's spellings."""
    x = numbers(2, 3, 4)
    agrees(lambda t: t.transpose(*axes), lambda x: x.transpose(*axes), x)
    agrees(lambda t: t.transpose(axes), lambda x: x.transpose(axes), x)


@pytest.mark.parametrize("shape", SHAPES + [(2, 3, 4, 5)], ids=str)
def test_T(shape):
    """All axes reversed, for any number of them."""
    for f in lambda x: x.T, lambda x: x.transpose(), lambda x: x.transpose(None), lambda x: x.T.T + x:
        agrees(f, f, numbers(*shape))


@pytest.mark.parametrize("shape, new", [
    ((2, 3), (6,)), ((2, 3), (3, 2)), ((2, 3), (-1,)), ((2, 3), (-1, 2)), ((6,), (1, 2, 3)),
    ((1,), ()), ((), (1, 1)), ((0, 3), (3, 0)), ((2, 3), (2, 3))], ids=str)
def test_reshapes(shape, new):
    """Numbers or a tuple; the slopes come back in the old shape."""
    agrees(lambda t: t.reshape(*new) if new else t.reshape(()),
           lambda x: x.reshape(new), numbers(*shape))
    agrees(lambda t: t.reshape(new), lambda x: x.reshape(new), numbers(*shape))


@pytest.mark.parametrize("use", [
    lambda t: t.reshape(4), lambda t: t.reshape(-1, -1), lambda t: t.transpose(0),
    lambda t: t.transpose(0, 0), lambda t: t.transpose(0, 2)])
def test_shapes_that_do_not_fit(use):
    """Numpy's own refusal."""
    with pytest.raises(ValueError):
        use(Tensor(np.ones((2, 3))))


INDICES = {"int": 1, "negative": -1, "numpy int": np.int64(1), "slice": slice(1, None),
           "step": slice(None, None, -2), "none": None, "ellipsis": ..., "empty": (),
           "pair": (1, 2), "row": (slice(None), 2), "new axis": (slice(None), None, 1),
           "last": (..., -1), "list": [0, 2], "repeated": [1, 1, 1, 0],
           "array": np.array([[0, 1], [1, 1]]), "two lists": ([0, 1, 1], [2, 3, 3]),
           "broadcast": (np.array([[0], [2]]), np.array([1, 3])),
           "mask": np.arange(12).reshape(3, 4) % 2 == 0, "row mask": np.array([True, False, True]),
           "mask and list": (np.array([True, False, True]), [0, 0]),
           "slice and list": (slice(0, 2), [3, 3, 0]), "no rows": [], "empty slice": slice(2, 2),
           "mesh": np.ix_([0, 2], [1, 1, 3]), "true": True, "false": False,
           "nothing masked": np.zeros((3, 4), dtype=bool)}


@pytest.mark.parametrize("name", INDICES)
def test_indexing(name):
    """Any numpy index; entries that are picked twice collect two reports."""
    index, x = INDICES[name], numbers(3, 4)
    index = np.array([], dtype=int) if name == "no rows" else index
    seed = numbers(*x[index].shape, seed=1)
    value, (g,) = slopes(lambda t: t[index], x, seed=seed)
    same(value, x[index])
    places = np.arange(12).reshape(3, 4)[index]
    same(g, np.bincount(np.ravel(places), np.ravel(seed), 12).reshape(3, 4))
    agrees(lambda t: t[index] * 2 + t.sum(), lambda x: x[index] * 2 + x.sum(), x)


@pytest.mark.parametrize("index", [3, "a", 1.5, (0, 0, 0), [5], np.ones(2, dtype=bool)], ids=repr)
def test_indices_that_are_not_there(index):
    """Numpy's own refusal."""
    with pytest.raises(IndexError):
        Tensor(np.ones((3, 4)))[index]


# Surprises

def test_centred():
    """The Jacobian of x - mean(x) is I - 1/4, whatever is asked."""
    J = np.eye(4) - 0.25
    for seed in *np.eye(4), np.ones(4), [1, -2, 0.5, 3]:
        same(centred_slopes(seed), J @ seed)


def test_the_kink():
    """relu chooses 0, x * (x >= 0) chooses 1, the nudge says one half."""
    for f, slope in (Tensor.relu, 0), (lambda x: x * (x.data >= 0), 1):
        same(slopes(f, 0.0)[1][0], slope)
    for h in 1e-5, 0.1, 3.0:
        assert numerical_grad(positive, 0.0, h) == 0.5


# The loss

def wise(z, y):
    """The mean loss in numpy that a complex step can follow, stable for any z."""
    flip = np.where(z.real > 0, -1, 1) if np.iscomplexobj(z) else np.where(z > 0, -1, 1)
    return (z * (flip < 0) + np.log1p(np.exp(flip * z)) - y * z).mean()


@pytest.mark.parametrize("shape", [(), (1,), (5,), (5, 1), (2, 3, 1)], ids=str)
def test_the_loss_and_its_slopes(shape):
    """Along the logits p - y over N, along the labels -z over N."""
    z, y = numbers(*shape, low=-4, high=4), numbers(*shape, seed=1, low=0, high=1)
    agrees(bce_with_logits, wise, z, y)
    _, (g, h) = slopes(bce_with_logits, z, y, seed=3.0)
    same(g, 3 * (1 / (1 + np.exp(-z)) - y) / z.size)
    same(h, -3 * z / z.size)
    p = 1 / (1 + np.exp(-z))
    same(bce_with_logits(z, y).data, -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean())


@pytest.mark.parametrize("z, y, loss, slope", [
    (0, 0, np.log(2), .5), (0, 1, np.log(2), -.5), (1000, 0, 1000, 1), (1000, 1, 0, 0),
    (-1000, 1, 1000, -1), (-1000, 0, 0, 0), (1e308, 0, 1e308, 1), (-1e308, 0, 0, 0),
    (-40, 0, np.exp(-40), np.exp(-40)), (50, .5, 25, .5)])
def test_the_loss_is_stable(z, y, loss, slope):
    """Any logit, no warning, no ceiling."""
    value, (g,) = slopes(lambda t: bce_with_logits(t, np.full(1, y)), np.full(1, z))
    same(value, loss, atol=0)
    same(g, [slope], atol=0)


def test_infinite_logits():
    """log(1 + exp(z)) - y z is inf - inf there: the loss says so, and is not taken for a number."""
    with np.errstate(invalid="ignore"):
        for z, y in (np.inf, 1), (-np.inf, 0):
            assert np.isnan(bce_with_logits(Tensor([z, 2.0]), [y, 1]).data)


def test_the_loss_of_a_batch():
    """A mean: each point moves its own logit by 1/N."""
    z, y = numbers(7, 1, low=-3, high=3), np.arange(7.0).reshape(7, 1) % 2
    value, (g,) = slopes(lambda t: bce_with_logits(t, y), z)
    each = [slopes(lambda t: bce_with_logits(t, y[i:i+1]), z[i:i+1]) for i in range(7)]
    same(value, np.mean([v for v, _ in each]))
    same(g, np.concatenate([s for _, (s,) in each]) / 7)


@pytest.mark.parametrize("z, y", [((4, 1), (4,)), ((4,), (4, 1)), ((4,), ()), ((), (1,)),
                                  ((4, 1), (4, 2)), ((0,), (1,)), ((2, 3), (3, 2))], ids=str)
def test_labels_of_another_shape(z, y):
    """A ValueError that names both, before anything broadcasts."""
    with pytest.raises(ValueError) as refusal:
        bce_with_logits(Tensor(np.zeros(z)), np.zeros(y))
    assert str(z) in str(refusal.value) and str(y) in str(refusal.value)


@pytest.mark.parametrize("bad", [None, "a", 1j, [1, [2]], object()], ids=lambda x: type(x).__name__)
def test_logits_and_labels_that_are_not_numbers(bad):
    """Refused on either side."""
    for z, y in (bad, 1.0), (Tensor(1.0), bad):
        with pytest.raises((TypeError, ValueError)):
            bce_with_logits(z, y)


def test_a_loss_over_no_points():
    """The mean over nothing is 0, and no slope is invented."""
    value, (g,) = slopes(lambda t: bce_with_logits(t, np.zeros((0, 1))), np.zeros((0, 1)))
    assert value == 0 and g.shape == (0, 1)


def test_nan_stays_visible_in_the_loss():
    """One NaN among the logits spoils the mean, and its own slope."""
    with np.errstate(invalid="ignore"):
        value, (g,) = slopes(lambda t: bce_with_logits(t, [0.0, 0.0]), [np.nan, 0.0])
    assert np.isnan(value) and np.isnan(g[0])
    same(g[1], 0.25)


def test_the_patch_and_its_price():
    """Slope p (1 - p) / (1 - p + 1e-8): half at 18.42, nothing from 38 on."""
    z = np.array([-3.0, 0.0, 5.0, 18.420680743952367, 30.0, 38.0, 500.0])
    patched, slope, exact, wanted = loss_slopes(z)
    p, q = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(z))
    # the 1 - p that the program forms is off by ulps of 1, over 1e-8
    np.testing.assert_allclose(slope, p * q / (q + 1e-8), rtol=1e-7, atol=1e-7)
    assert abs(slope[3] - 0.5) < 1e-7 and not slope[-2:].any()
    np.testing.assert_allclose(patched[-2:], -np.log(1e-8), rtol=1e-9)
    np.testing.assert_allclose(wanted, p, rtol=1e-12)
    np.testing.assert_allclose(exact, np.maximum(z, 0) + np.log1p(np.exp(-abs(z))), rtol=1e-14)


def test_the_patched_loss_against_its_formula():
    """Both labels, value and slope."""
    y = np.array([0.0, 1.0, 0.25])

    def formula(z):
        p = 1 / (1 + np.exp(-z))
        return -(y * np.log(p + 1e-8) + (1 - y) * np.log(1 - p + 1e-8))
    agrees(lambda z: patched_bce(z, y), formula, np.array([-2.0, 0.5, 3.0]))


# Words together

def test_softmax_cross_entropy():
    """exp, sum, log and a repeated index in one expression."""
    rows, labels = [0, 1, 2, 0], [2, 0, 1, 2]

    def f(z):
        return ((np.exp(z) if isinstance(z, np.ndarray) else z.exp()).sum(axis=1), z)

    def ours(z):
        total, z = f(z)
        return total.log().mean() - z[rows, labels].mean()

    def numpys(z):
        total, z = f(z)
        return np.log(total).mean() - z[rows, labels].mean()
    agrees(ours, numpys, numbers(3, 3))


def test_a_network_of_every_word():
    """One deep expression that uses them all, against a complex step."""
    def net(x, w, b, exp, log, tanh, sigmoid):
        h = tanh(x @ w + b) * sigmoid(x @ w) / 2
        h = (h.T.reshape(2, -1) ** 2 + 1).transpose(1, 0) - h.mean(axis=1, keepdims=True)[:1]
        return log(exp(h).sum(axis=0)) * 3 - 2 ** h[[0, 0, 1]].mean()
    call = [lambda t: t.exp(), lambda t: t.log(), lambda t: t.tanh(), lambda t: t.sigmoid()]
    agrees(lambda *p: net(*p, *call),
           lambda *p: net(*p, np.exp, np.log, np.tanh, UNARY["sigmoid"]),
           numbers(3, 2), numbers(2, 4), numbers(4), rtol=1e-10)


def test_two_judges_agree():
    """The nudge and the complex step, on the same function."""
    x = numbers(3)
    np.testing.assert_allclose(central(lambda x: np.sum(np.tanh(x) ** 3), x),
                               complex_step(lambda x: np.sum(np.tanh(x) ** 3), x), rtol=1e-8)

