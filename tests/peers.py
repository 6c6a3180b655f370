"""Every operation beside HIPS autograd and PyTorch, to 1e-12 (run by `make peers`, not by `make test`)."""
from itertools import permutations, product

import autograd
import autograd.numpy as anp
import mygrad
import numpy as np
import pytest
import torch
from autograd.numpy.numpy_vjps import unbroadcast as hips_unbroadcast

from micrograd.engine import Value

from anatomy import (MLP, OPTIMIZERS, PAIRS, SINGLES, Tensor, bce_with_logits, examine, spiral, unbroadcast,
                     weights)
from judges import numbers, same, slopes

SHAPES = [shape for k in range(4) for shape in product(range(4), repeat=k)]
pytestmark = pytest.mark.filterwarnings("ignore:The given NumPy array is not writable", "ignore::UserWarning:torch",
                                        "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")


def torchs(f, seed, arrays):
    leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = f(*leaves)
    grads = torch.autograd.grad(y, leaves, torch.tensor(np.asarray(seed)))
    return y.detach().numpy(), [g.numpy() for g in grads]


def hips(f, seed, arrays):
    vjp, y = autograd.make_vjp(lambda arrays: f(*arrays))(tuple(arrays))
    return np.asarray(y), [np.asarray(g) for g in vjp(np.asarray(seed))]


def agree(ours, theirs, *arrays, torch_=None, seed=None):
    """Value and slopes of ours are those of theirs, an f for HIPS that may serve PyTorch too."""
    if seed is None:
        seed = np.asarray(numbers(*ours(*map(Tensor, arrays)).shape, seed=9))
    value, grads = slopes(ours, *arrays, seed=seed)
    for y, gs in hips(theirs, seed, arrays), torchs(torch_ or theirs, seed, arrays):
        for found, wanted in zip([value, *grads], [y, *gs], strict=True):
            same(np.asarray(found), wanted)


def fits(f, *shapes):
    """Does numpy take arrays of these shapes?"""
    try:
        return f(*map(np.ones, shapes)) is not None
    except ValueError:
        return False


BINARY = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
          "/": lambda a, b: a / b, "**": lambda a, b: a ** b, "@": lambda a, b: a @ b}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    """Over all pairs of shapes that numpy takes; a constant on one side changes nothing on the other."""
    f, tried = BINARY[name], 0
    for shapes in product(SHAPES, repeat=2):
        if fits(f, *shapes):
            tried += 1
            a, b = numbers(*shapes[0]), numbers(*shapes[1], seed=1)
            agree(f, f, a, b)
            value, grads = slopes(f, a, b, seed=np.ones(np.shape(f(a, b))))
            for g, one, x in (grads[0], lambda x: f(x, b), a), (grads[1], lambda x: f(a, x), b):
                again, (alone,) = slopes(one, x, seed=np.ones(value.shape))
                assert np.array_equal(again, value) and np.array_equal(alone, g)
    assert tried == (1380 if name == "@" else 2479)


UNARY = {"neg": (lambda x: -x,) * 2, "exp": (Tensor.exp, anp.exp, torch.exp), "log": (Tensor.log, anp.log, torch.log),
         "tanh": (Tensor.tanh, anp.tanh, torch.tanh), "T": (lambda x: x.T, lambda x: x.T, lambda x: x.permute(
             tuple(range(x.ndim))[::-1])), "relu": (Tensor.relu, lambda x: anp.maximum(x, 0.0), torch.relu),
         "sigmoid": (Tensor.sigmoid, lambda x: 1 / (1 + anp.exp(-x)), torch.sigmoid),
         "constants": (lambda x: 2 ** x + 2 / x - (3 - x) ** 3 * 4 + 1,) * 2}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    """Over all shapes."""
    for shape in SHAPES:
        x = numbers(*shape, low=0.1 if name == "log" else -2.0)
        agree(*UNARY[name][:2], np.asarray(x), torch_=UNARY[name][-1])


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")      # the mean of nothing is nan
def test_reductions(name):
    """Over all shapes and all sets of axes, counted from either end."""
    for shape in SHAPES:
        n = len(shape)
        axes = [None, *range(-n, n), *(p for k in range(2, n + 1) for p in permutations(range(n), k))]
        for axis, keep in product(axes, (False, True)):
            agree(lambda x: getattr(x, name)(axis, keep), lambda x: getattr(anp, name)(x, axis, keepdims=keep),
                  np.asarray(numbers(*shape)), torch_=lambda x: getattr(x, name)(axis, keepdim=keep))


def test_reshape_transpose_and_picks():
    """What only moves numbers about."""
    x, picks = numbers(2, 3, 3), [0, -1, slice(1, 3), (slice(None), 1), (Ellipsis, 0), None, (1, 2, 0), [0, 1, 0, 0],
                                  ([0, 1, 0], slice(None), [2, 2, 2]), numbers(2, 3, 3) > 1, (slice(None, None, 2),)]
    for index in picks:
        agree(lambda x: x[index], lambda x: x[index], x)
    for shape in (18,), (3, 6), (-1, 2), (2, 3, 3, 1):
        agree(lambda x: x.reshape(*shape), lambda x: x.reshape(shape), x)
    for axes in permutations(range(3)):
        agree(lambda x: x.transpose(*axes), lambda x: anp.transpose(x, axes), x, torch_=lambda x: x.permute(*axes))


def test_unbroadcast_bit_for_bit():
    """HIPS sums axis by axis, so numbers whose sums are exact in any order; the others to 1e-15."""
    for a, b in product(SHAPES, repeat=2):
        if fits(np.add, a, b):
            g = numbers(*np.broadcast_shapes(a, b))
            meta = anp.metadata(np.ones(a))
            exact = np.round(g * 2**20)
            assert np.array_equal(unbroadcast(exact, a), hips_unbroadcast(exact, meta))
            same(np.asarray(unbroadcast(g, a)), hips_unbroadcast(g, meta), rtol=1e-15, atol=0)


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_bce_with_logits(shape):
    """Slopes along labels too, and logits at which a probability rounds to 0 or 1."""
    if 0 not in shape:
        y = numbers(*shape, seed=1, low=0, high=1)
        for scale in 1, 30, 700:
            agree(bce_with_logits, lambda z, y: anp.mean(anp.logaddexp(0, z) - y * z), (numbers(*shape) - 1.2) * scale,
                  y, torch_=torch.nn.functional.binary_cross_entropy_with_logits)


MU, LR = 0.9, 0.01
PEERS = {"SGD": lambda p: torch.optim.SGD(p, LR), "Momentum": lambda p: torch.optim.SGD(p, LR, MU),
         "RMSProp": lambda p: torch.optim.RMSprop(p, LR), "Adam": lambda p: torch.optim.Adam(p, LR)}


@pytest.mark.parametrize("own, rtol", [(False, 1e-12), (True, 1e-10)], ids=["same gradients", "own gradients"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, own, rtol):
    """200 steps on the spiral: fed the same gradients, some of them None; or each with its own, set equal after each
    step. PyTorch's SGD(lr, momentum=mu) is Momentum(lr / (1 - mu), mu)."""
    model, (X, y), rng = MLP(*weights()), spiral(), np.random.default_rng(0)
    twins = [torch.tensor(p.data, requires_grad=True) for p in model.params]
    ours = OPTIMIZERS[name](model.params, LR / (1 - MU) if name == "Momentum" else LR)
    peer, (points, labels) = PEERS[name](twins), map(torch.tensor, (X, y))
    for _ in range(200):
        ours.zero_grad(), peer.zero_grad()
        bce_with_logits(model(X), y).backward()
        if own:
            W1, b1, W2, b2 = twins
            z = torch.relu(points @ W1 + b1) @ W2 + b2
            torch.nn.functional.binary_cross_entropy_with_logits(z, labels).backward()
        for p, twin in zip(model.params, twins):
            if not own:
                p.grad = None if rng.random() < 0.2 else p.grad
                twin.grad = None if p.grad is None else torch.tensor(p.grad)
        ours.step(), peer.step()
        for p, twin in zip(model.params, twins):
            same(twin.detach().numpy(), p.data, rtol, rtol)
            if own:
                twin.data = torch.tensor(p.data)


class Recorded:
    """HIPS as an engine of tensors: a function of leaves, and autograd.make_vjp of it in `backward`."""
    __array_ufunc__ = None

    def __init__(self, data, f=None, leaves=None):
        self.data, self.grad = data, None
        self.f = f or (lambda of: of[self])
        self.leaves = [self] if leaves is None else leaves

    def backward(self, seed):
        arrays = [np.asarray(leaf.data) for leaf in self.leaves]
        vjp, y = autograd.make_vjp(lambda arrays: self.f(dict(zip(self.leaves, arrays))))(arrays)
        for leaf, g in zip(self.leaves, vjp(np.asarray(seed))):
            leaf.grad = g if leaf.grad is None else leaf.grad + g


def recorded(word):
    """A word of autograd.numpy as a method of Recorded."""
    def method(*operands, **settings):
        nodes = [a for a in operands if isinstance(a, Recorded)]
        leaves = list(dict.fromkeys(leaf for node in nodes for leaf in node.leaves))

        def f(of):
            return word(*(a.f(of) if isinstance(a, Recorded) else a for a in operands), **settings)

        return Recorded(np.asarray(f({leaf: leaf.data for leaf in leaves})), f, leaves)
    return method


for name, sign in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**", "matmul": "@"}.items():
    word = BINARY[sign]
    setattr(Recorded, f"__{name}__", recorded(word))
    setattr(Recorded, f"__r{name}__", recorded(lambda b, a, word=word: word(a, b)))
Recorded.__neg__ = recorded(lambda x: -x)
Recorded.__getitem__ = recorded(lambda x, index: x[index])
Recorded.T = property(recorded(lambda x: x.T))
Recorded.sum, Recorded.mean, Recorded.transpose = recorded(anp.sum), recorded(anp.mean), recorded(anp.transpose)
Recorded.reshape = recorded(lambda x, *shape: anp.reshape(x, shape))
for name in UNARY.keys() - {"neg", "T", "constants"}:
    setattr(Recorded, name, recorded(UNARY[name][1]))


def examined(make):
    """The report, and the (word, situation) of each verdict."""
    report, cases = examine(make), {}
    for case in report.rows:
        cases.setdefault(case.verdict, set()).add((case.word, case.situation))
    return report, cases


def test_examine_finds_nothing_wrong_with_hips():
    """The recorded functions call each other along a chain, and do not come to the end of a deep one."""
    report, cases = examined(Recorded)
    assert report and cases.keys() == {"ok", "not there"}
    assert cases["not there"] == {("backward", "a deep chain")}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_examine_finds_nothing_wrong_with_pytorch(dtype):
    """It refuses a second call, and numpy's arrays; `transpose` wants two axes there."""
    report, cases = examined(lambda a: torch.tensor(a, dtype=dtype, requires_grad=True))
    assert report and "WRONG" not in cases and cases["raises"] == {("backward", "a second call")}
    assert {word for word, situation in cases["ok"]} == {"backward", *PAIRS, *SINGLES} - {"transpose"}
    # Seven digits may be too few for a chain of thousands.
    assert cases.get("not judged", set()) <= ({("backward", "a deep chain")} if dtype is torch.float32 else set())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_examine_finds_nothing_wrong_with_mygrad(dtype):
    """It has functions for exp and the like, and no methods."""
    report, cases = examined(lambda a: mygrad.tensor(a, dtype=dtype))
    assert report and not cases.keys() & {"WRONG", "raises"}
    assert {word for word, situation in cases["ok"]} == (
        {"backward", *PAIRS, *SINGLES} - {"exp", "log", "tanh", "sigmoid", "relu"})


def test_examine_finds_the_second_call_of_micrograd():
    """Its inner sums survive a call, as chapter 2 says of such engines: 3 times the slope after two calls, by hand."""
    report, cases = examined(lambda a: Value(float(a)))
    assert cases["WRONG"] == {("backward", "a second call")} and cases["raises"] == {("backward", "a deep chain")}
    assert {word for word, situation in cases["ok"]} == {
        "backward", "u + v", "u - v", "u * v", "u / v", "u ** v", "-x", "relu"}
    x = Value(3.0)
    y = x * x
    s = y * 1.0
    s.backward(), s.backward()
    assert x.grad == 6 + 2 * 6
