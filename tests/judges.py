"""Judges that know nothing of the engine: numpy, nudges and complex steps."""
from math import prod

import numpy as np

from anatomy import Tensor


def numbers(*shape, seed=0, low=0.5, high=2.0):
    """An array of that shape, its entries away from 0 and from each other."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)


def slopes(f, *arrays, seed=None):
    """The value of f at leaf Tensors, and the grad that reached each."""
    leaves = [Tensor(a) for a in arrays]
    y = f(*leaves)
    y.backward(seed)
    return np.asarray(y.data), [leaf.grad for leaf in leaves]


def gradients(f, *arrays, seed=None):
    """The slopes of f along leaf Tensors of these arrays."""
    return slopes(f, *arrays, seed=seed)[1]


def raised(call, *arguments, **settings):
    """The name of the error that this call raises, or nothing."""
    try:
        call(*arguments, **settings)
    except Exception as error:
        return type(error).__name__


def step(f, x, nudge):
    """The slope of the number f along each entry of x, by that nudge."""
    x = np.asarray(x, dtype=float)
    units = np.eye(x.size).reshape((x.size, *x.shape))
    return np.array([nudge(f, x, unit) for unit in units]).reshape(x.shape)


def complex_step(f, x):
    """Exact to rounding, for an f that numpy can follow into the plane."""
    return step(f, x, lambda f, x, e: f(x + 1e-30j * e).imag / 1e-30)


def central(f, x):
    """Good to nine digits, for any smooth f."""
    return step(f, x, lambda f, x, e: (f(x + 1e-5 * e) - f(x - 1e-5 * e)) / 2e-5)


def same(found, wanted, rtol=1e-12, atol=1e-13):
    """An array of the wanted shape with the wanted values."""
    assert isinstance(found, (np.ndarray, np.float64)), type(found)
    assert found.dtype == np.float64 and found.shape == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol, atol)


def agrees(ours, numpys, *arrays, rtol=1e-11):
    """Value and slopes of ours are those of numpys, asked with a seed."""
    y = numpys(*arrays)
    seed = np.cos(np.arange(prod(np.shape(y)))).reshape(np.shape(y)) + 1.5
    value, found = slopes(ours, *arrays, seed=seed)
    same(value, y)
    for i, (a, g) in enumerate(zip(arrays, found)):
        same(g, complex_step(lambda x: np.sum(seed * numpys(
            *arrays[:i], x, *arrays[i + 1:])), a), rtol, 1e-12)
