"""Chapter 3: what is copied comes back summed."""
from itertools import product

import numpy as np
import pytest

from anatomy import Tensor, adjoint_gaps, broadcast_pairs, numerical_grad, unbroadcast
from judges import agrees, complex_step, numbers, same, slopes

PAIRS = broadcast_pairs()
SHAPES = [s for k in range(4) for s in product((1, 2, 3), repeat=k)]


def broadcasts(a, b):
    """Does numpy take these two shapes together?"""
    try:
        return bool(np.broadcast_shapes(a, b) or True)
    except ValueError:
        return False


OPERANDS = [(a, b) for a in SHAPES for b in SHAPES if broadcasts(a, b)]
REFUSED = [(a, b) for a in SHAPES for b in SHAPES if not broadcasts(a, b)]


def test_the_pairs_are_all_there_are():
    """940 ordered pairs, as numpy itself counts them."""
    assert PAIRS == [(a, np.broadcast_shapes(a, b)) for a, b in OPERANDS]
    assert len(PAIRS) == 940 and len(REFUSED) == 40 * 40 - 940


def test_the_transpose_of_copying():
    """B' g for every pair, B built entry by entry from numpy's own copying."""
    for shape, copied in set(PAIRS):
        g = numbers(*copied)
        wanted = np.zeros(shape)
        places = np.broadcast_to(np.arange(wanted.size).reshape(shape), copied)
        np.add.at(wanted.reshape(-1), places.ravel(), g.ravel())
        same(unbroadcast(g, shape), wanted)


def test_the_adjoint_identity():
    """<g, B v> = <B' g, v> on all pairs, and two wrong ways break it wherever anything is copied."""
    gaps = adjoint_gaps()
    assert gaps.shape == (940,) and gaps.max() < 1e-14
    copies = np.array([np.prod(shape) < np.prod(copied) for shape, copied in PAIRS])
    for wrong in (lambda g, s: unbroadcast(g, s) / (g.size / max(1, np.prod(s))),
                  lambda g, s: g.ravel()[:int(np.prod(s))].reshape(s)):
        gaps = adjoint_gaps(wrong)
        assert gaps[~copies].max() < 1e-14 and gaps[copies].min() > 1e-6


@pytest.mark.parametrize("shape, copied, wanted", [
    ((), (3,), 3.0), ((3,), (2, 3), [2, 2, 2]), ((1, 3), (2, 3), [[2, 2, 2]]),
    ((2, 1), (2, 3), [[3], [3]]), ((1, 1), (2, 3), [[6]]), ((1,), (2, 3), [6]),
    ((), (), 1.0), ((2, 3), (2, 3), np.ones((2, 3))), ((1,), (1,), [1]),
    ((1,), (1, 1), [1]), ((3, 1), (2, 3, 4), [[8], [8], [8]]),
    ((1,), (0,), [0]), ((1, 3), (0, 3), [[0, 0, 0]]), ((), (2, 0), 0.0),
    ((0,), (2, 0), []), ((0, 1), (0, 3), np.zeros((0, 1)))], ids=repr)
def test_sums_of_ones_count_the_copies(shape, copied, wanted):
    """Added axes go, axes of length 1 stay; a size of 0 sums to 0."""
    same(np.asarray(unbroadcast(np.ones(copied), shape)), np.array(wanted, float))


def test_the_two_stages():
    """First the added axes, then the stretched ones: one by one, the same sum."""
    for shape, copied, halfway in (((), (3,), ()), ((3,), (2, 3), (3,)), ((1, 3), (2, 3), (2, 3)),
                                   ((2, 1), (4, 2, 3), (2, 3))):
        g = numbers(*copied)
        first = unbroadcast(g, halfway)
        same(first, np.sum(g, axis=tuple(range(len(copied) - len(shape)))))
        same(unbroadcast(first, shape), unbroadcast(g, shape))


def test_a_complex_cotangent_keeps_its_real_part():
    """What moves along the real axis only has a real slope."""
    assert unbroadcast([1 + 2j, 3 - 1j], ()) == 4
    kept = unbroadcast(np.array([[1 + 2j, 3 - 1j]]), (1, 2))
    assert kept.dtype == float and np.array_equal(kept, [[1, 3]])


def test_every_report_is_made_real():
    """The power spectrum of a power spectrum, whose rules pass through complex numbers."""
    def powers(x):
        F = np.fft.fft(x.data)
        return Tensor(abs(F) ** 2, (x, lambda g: len(F) * np.fft.ifft(2 * g * F)))
    x = Tensor([1.0, 2.0, 4.0])
    powers(powers(x) * 0.01).backward([1, -2, 3])

    def plainly(x):
        spectrum = abs(np.fft.fft(abs(np.fft.fft(x)) ** 2 * 0.01)) ** 2
        return (spectrum * [1, -2, 3]).sum()
    assert np.allclose(x.grad, numerical_grad(plainly, x.data), rtol=1e-8)


@pytest.mark.parametrize("came, shape", [
    ((3,), (2,)), ((), (1,)), ((3,), (1, 3)), ((2, 3), (3, 3)), ((2, 3), (2,)),
    ((3,), (0,)), ((2, 3), (2, 2)), ((0,), (2,)), ((3, 1), (3, 2)), ((2,), (2, 1))])
def test_shapes_that_broadcasting_cannot_explain(came, shape):
    """A ValueError that names both."""
    with pytest.raises(ValueError) as refusal:
        unbroadcast(np.ones(came), shape)
    assert str(came) in str(refusal.value) and str(shape) in str(refusal.value)


OPERATIONS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
              "/": lambda a, b: a / b, "**": lambda a, b: a ** b}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_binary_operation_over_every_pair(name):
    """All shapes of up to 3 axes on both sides, against the complex step."""
    op = OPERATIONS[name]
    for a, b in OPERANDS:
        x, y = numbers(*a), numbers(*b, seed=1)
        seed = numbers(*np.broadcast_shapes(a, b), seed=2)
        value, (gx, gy) = slopes(op, x, y, seed=seed)
        same(value, op(x, y))
        same(gx, reduced(seed * entry(op, x, y, 0), a))
        same(gy, reduced(seed * entry(op, x, y, 1), b))


@pytest.mark.parametrize("name", OPERATIONS)
def test_shapes_that_do_not_broadcast(name):
    """Numpy's own refusal, for every pair it refuses."""
    for a, b in REFUSED:
        with pytest.raises(ValueError, match="broadcast"):
            OPERATIONS[name](Tensor(np.ones(a)), Tensor(np.ones(b)))


def entry(op, x, y, which):
    """The slope of each entry of op(x, y) along the entry it was made from."""
    nudge = [0, 0]
    nudge[which] = 1e-30j
    return op(x + nudge[0], y + nudge[1]).imag / 1e-30


def reduced(g, shape):
    """g added up where numpy's own copying put each entry of shape."""
    places = np.broadcast_to(np.arange(int(np.prod(shape))).reshape(shape), g.shape)
    return np.bincount(places.ravel(), g.ravel(), int(np.prod(shape))).reshape(shape)


def test_a_bias_used_at_two_ranks():
    """Each edge is reduced before the ledger adds: 2 copies and 10."""
    agrees(lambda b: (np.ones((4, 3)) + b).sum() + (b * 10.0).sum(),
           lambda b: (np.ones((4, 3)) + b).sum() + (b * 10.0).sum(), numbers(3))
    agrees(lambda x, b: x * b + b, lambda x, b: x * b + b, numbers(2, 3), numbers(3))


def test_sum_and_copy_are_each_others_backward():
    """A sum comes back copied, a copy comes back summed."""
    _, (g,) = slopes(lambda x: x.sum(), np.zeros((2, 3)), seed=5.0)
    same(g, np.full((2, 3), 5.0))
    _, (g,) = slopes(lambda x: x + np.zeros((2, 3)), np.zeros(()), seed=np.full((2, 3), 5.0))
    same(g, 30.0)


def test_the_judge_is_right_where_a_formula_is_known():
    """The complex step finds cos for sin."""
    same(complex_step(lambda x: np.sin(x).sum(), [0.3, 1.2]), np.cos([0.3, 1.2]))
