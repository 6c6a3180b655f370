"""Chapter 6: one formula, four optimizers."""
import numpy as np
import pytest

from anatomy import (OPTIMIZERS, SGD, STEEP, Adam, Average, Momentum, Optimizer,
                     RMSProp, Tensor, bowl_path, excess)
from judges import numbers, same

ALL = pytest.mark.parametrize("name", ["SGD", "Momentum", "RMSProp", "Adam"])
SHAPES = [(2, 3), (), (4,), (1, 1), (0, 2)]


def paper(name, gs, lr=0.1, beta=None, beta1=0.9, beta2=0.999, eps=1e-8, bias_correction=True):
    """The displacement of one parameter after each of its gradients, written
    out with powers of t and no running weight."""
    beta = beta if beta is not None else {"Momentum": 0.9, "RMSProp": 0.99}.get(name)
    m = v = moved = 0.0
    for t, g in enumerate(gs, 1):
        if name == "SGD":
            way = g
        elif name == "Momentum":
            way = m = beta * m + (1 - beta) * g
        elif name == "RMSProp":
            v = beta * v + (1 - beta) * g ** 2
            way = g / (np.sqrt(v) + eps)
        else:
            m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g ** 2
            m_hat, v_hat = m, v
            if bias_correction:
                m_hat, v_hat = m / (1 - beta1 ** t), v / (1 - beta2 ** t)
            way = m_hat / (np.sqrt(v_hat) + eps)
        moved = moved - lr * way
        yield moved


def tensors(*shapes):
    return [Tensor(numbers(*shape)) for shape in shapes]


def feed(rule, gs):
    """Give each parameter its gradient, or None, and step."""
    for p, g in zip(rule.params, gs):
        p.grad = None if g is None else np.array(g, dtype=float)
    rule.step()


def gradients(shapes, steps):
    return [[numbers(*shape, seed=t, low=-2, high=2) for shape in shapes] for t in range(steps)]


SETTINGS = [
    ("SGD", {}), ("SGD", dict(lr=0.5)), ("Momentum", {}), ("Momentum", dict(beta=0.0)),
    ("Momentum", dict(beta=0.5, lr=1.0)), ("RMSProp", {}), ("RMSProp", dict(beta=0.5, eps=0.1)),
    ("RMSProp", dict(beta=0.0, eps=0.0)), ("Adam", {}), ("Adam", dict(bias_correction=False)),
    ("Adam", dict(beta1=0.5, beta2=0.9, eps=0.1)), ("Adam", dict(beta1=0.0, beta2=0.0)),
    ("Adam", dict(beta1=0.8, beta2=0.5, eps=1e-3, bias_correction=False, lr=0.01))]


# Against the papers

@pytest.mark.parametrize("name, settings", SETTINGS, ids=str)
def test_two_hundred_steps(name, settings):
    """Every parameter of every shape follows the formula to 1e-12."""
    params = tensors(*SHAPES)
    start, gs = [p.data for p in params], gradients(SHAPES, 200)
    rule = OPTIMIZERS[name](params, **{"lr": 0.1, **settings})
    wanted = [list(paper(name, [g[i] for g in gs], **settings)) for i in range(len(SHAPES))]
    for t in range(200):
        feed(rule, gs[t])
        if t in (0, 1, 11, 50, 199):
            for p, p0, path in zip(params, start, wanted):
                same(p.data, p0 + path[t], atol=1e-12)


@pytest.mark.parametrize("name, settings", [s for s in SETTINGS if s[1].get("eps") != 0], ids=str)
def test_a_frozen_parameter_sits_out(name, settings):
    """grad None: no move, and its averages and its t stay where they were."""
    gs = gradients([(3,), (2,)], 12)
    for t in 0, 3, 4, 8:
        gs[t][1] = None
    a, b = params = tensors((3,), (2,))
    starts, rule = [a.data, b.data], OPTIMIZERS[name](params, **{"lr": 0.1, **settings})
    seen = [[], []]
    for g in gs:
        before = b.data.copy()
        feed(rule, g)
        assert g[1] is not None or np.array_equal(b.data, before)
        for i in 0, 1:
            if g[i] is not None:
                seen[i].append(g[i])
                same(params[i].data, starts[i] + list(paper(name, seen[i], **settings))[-1], atol=1e-12)


@ALL
def test_nobody_has_a_gradient(name):
    """A step without gradients is no step, before and after real ones."""
    p, q = tensors((3,), (3,))
    rule, twin = OPTIMIZERS[name]([p], 0.1), OPTIMIZERS[name]([q], 0.1)
    for g in [1.0, 2.0, 3.0], [-1.0, 1.0, 0.5]:
        feed(rule, [None])
        feed(rule, [g])
        feed(twin, [g])
    assert np.array_equal(p.data, q.data)


@pytest.mark.parametrize("make, wanted", [
    (lambda p: SGD(p, 0.1), -0.2), (lambda p: Momentum(p, 0.1), -0.02),
    (lambda p: RMSProp(p, 0.1), -1.0), (lambda p: Adam(p, 0.1), -0.1),
    (lambda p: Adam(p, 0.1, bias_correction=False), -0.1 * 0.1 / np.sqrt(0.001)),
    (lambda p: RMSProp(p, 1.0, eps=2.0), -2 / (0.2 + 2)),
    (lambda p: Adam(p, 1.0, eps=2.0), -2 / (2 + 2)),
    (lambda p: Adam(p, 1.0, eps=2.0, bias_correction=False), -.2 / (2 * np.sqrt(.001) + 2)),
    (lambda p: Momentum(p, 1.0, 0.75), -0.5), (lambda p: RMSProp(p, 1.0, 0.75, 1.0), -2 / (1 + 1)),
    (lambda p: Adam(p, 1.0, 0.5, 0.75, 3.0, False), -1 / (1 + 3))])
def test_the_first_step(make, wanted):
    """From 0 with g = 2, by hand: eps outside the root, defaults, order."""
    p = Tensor([0.0])
    feed(make([p]), [[2.0]])
    same(p.data, [wanted], rtol=1e-6)


def test_adams_first_step_ignores_the_scale():
    """lr g / |g|, coordinate by coordinate, and zero stays zero."""
    p = Tensor(np.zeros(5))
    feed(Adam([p], 0.01), [[1e-3, -1e-3, 1e3, -1e3, 0]])
    same(p.data, [-.01, .01, -.01, .01, 0], rtol=1e-4)


@ALL
def test_dead_units(name):
    """A gradient that is always zero gives zero, not 0/0."""
    p = Tensor([1.0, 2.0])
    rule = OPTIMIZERS[name]([p], 0.1)
    for _ in range(3):
        feed(rule, [[0.0, 1.0]])
    assert p.data[0] == 1 and p.data[1] < 2


def test_momentum_is_an_average():
    """Under a constant gradient its speed tends to lr g."""
    p, path = Tensor([0.0]), [0.0]
    rule = Momentum([p], 0.1)
    for _ in range(300):
        feed(rule, [[2.0]])
        path.append(p.data[0])
    t = np.arange(1, 301)
    np.testing.assert_allclose(np.diff(path), -0.2 * (1 - 0.9 ** t), rtol=1e-9)


@pytest.mark.parametrize("mu", [0.0, 0.5, 0.9, (9 / 11) ** 2])
def test_pytorchs_momentum_is_a_sum(mu):
    """Ours with lr / (1 - mu) is u <- mu u + g with lr, step by step."""
    averaged = bowl_path(Momentum, 300, lr=0.004 / (1 - mu), beta=mu)
    u, summed = 0.0, [np.ones(2)]
    for _ in range(300):
        u = mu * u + STEEP * summed[-1]
        summed.append(summed[-1] - 0.004 * u)
    assert abs(averaged - summed).max() < 1e-12
    np.testing.assert_allclose(averaged[:6], summed[:6], rtol=1e-12)


# The average

@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9, 0.999])
def test_the_weights_of_an_average(beta):
    """x from k steps ago counts (1 - beta) beta^k; they sum to 1 - beta^t."""
    xs, average = numbers(30), Average(beta)
    for t, x in enumerate(xs, 1):
        value = average.add(x)
        shares = (1 - beta) * beta ** np.arange(t)[::-1]
        assert value == average.value and abs(value - shares @ xs[:t]) < 1e-13
        assert abs(average.weight - (1 - beta ** t)) < 1e-15 + 1e-13 * (1 - beta ** t)
        assert abs(average.weight - shares.sum()) < 1e-13


@pytest.mark.parametrize("beta", [-0.1, 1, 1.0, 1.5, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [
    lambda b: Average(b), lambda b: Momentum(tensors((1,)), 0.1, beta=b),
    lambda b: RMSProp(tensors((1,)), 0.1, beta=b), lambda b: Adam(tensors((1,)), 0.1, beta1=b),
    lambda b: Adam(tensors((1,)), 0.1, beta2=b)])
def test_betas_that_average_nothing(make, beta):
    """A beta is in [0, 1), and the refusal names what came."""
    with pytest.raises(ValueError, match=str(beta)):
        make(beta)


@pytest.mark.parametrize("eps", [-1e-8, np.nan])
@pytest.mark.parametrize("rule", [RMSProp, Adam])
def test_eps_that_is_no_eps(rule, eps):
    """eps is at least 0."""
    with pytest.raises(ValueError, match=str(eps)):
        rule(tensors((1,)), 0.1, eps=eps)


def test_the_excess():
    """r(t) = (1 - beta1^t) / sqrt(1 - beta2^t), its peak and its end."""
    t = np.arange(1, 2001)
    r = excess(2000)
    np.testing.assert_allclose(r, (1 - 0.9 ** t) / np.sqrt(1 - 0.999 ** t), rtol=1e-9)
    assert abs(r[0] - np.sqrt(10)) < 1e-9 and r.argmax() == 11 and abs(r[11] - 6.57) < .005
    assert abs(r[999] - 1.26) < 0.005 and abs(excess(1, 0.9, 0.95)[0] - 0.447) < 5e-4
    np.testing.assert_allclose(excess(5, 0.0, 0.99), 1 / np.sqrt(1 - .99 ** t[:5]), rtol=1e-12)


def test_the_excess_is_adams():
    """With a constant gradient, Adam's two paths differ by r(t) at step t."""
    paths = []
    for on in True, False:
        p, path = Tensor([0.0]), [0.0]
        rule = Adam([p], 0.1, eps=0.0, bias_correction=on)
        for _ in range(50):
            feed(rule, [[3.0]])
            path.append(p.data[0])
        paths.append(np.diff(path))
    np.testing.assert_allclose(paths[1] / paths[0], excess(50), rtol=1e-9)
    np.testing.assert_allclose(paths[0], -0.1, rtol=1e-9)


def test_the_bowl():
    """SGD at 2/101 shrinks by 99/101 a step; momentum needs a seventh."""
    path = bowl_path(SGD, 1000, lr=2 / 101)
    t = np.arange(1001)
    np.testing.assert_allclose(path[:, 0], (99 / 101) ** t, rtol=1e-9)
    np.testing.assert_allclose(path[:, 1], (-99 / 101) ** t, rtol=1e-9)
    mu, lr = (9 / 11) ** 2, (2 / 11) ** 2
    averaged = bowl_path(Momentum, 1000, lr=lr / (1 - mu), beta=mu)
    near = [np.hypot(*p.T) <= 1e-6 * np.sqrt(2) for p in (path, averaged)]
    assert near[0].argmax() == int(np.ceil(np.log(1e-6) / np.log(99 / 101))) == 691
    assert near[1][690 // 7:].all()


# Feet moving under an optimizer

@ALL
def test_data_reassigned(name):
    """The step starts from the data of now, of whatever type and layout."""
    p, q = tensors((3, 2), (2,))
    start, rule = q.data, OPTIMIZERS[name]([p, q], 0.1)
    gs = numbers(5, 3, 2, low=-2, high=2)
    for t, new in enumerate([p.data, np.zeros((3, 2)), np.arange(6.0).reshape(2, 3).T,
                             np.arange(6).reshape(3, 2), np.float32([[1, 2], [3, 4], [5, 6]])]):
        p.data = new
        feed(rule, [gs[t], np.ones(2)])
        way = list(paper(name, gs[:t + 1]))
        same(p.data, new + way[-1] - (way[-2] if t else 0), atol=1e-12)
    same(q.data, start + list(paper(name, [np.ones(2)] * 5))[-1], atol=1e-12)


@ALL
def test_data_exchanged(name):
    """Two parameters trade their arrays, or share one for a moment."""
    p, q = tensors((3,), (3,))
    rule, gs = OPTIMIZERS[name]([p, q], 0.1), gradients([(3,), (3,)], 4)
    for t, g in enumerate(gs):
        p.data, q.data = (q.data, p.data) if t < 3 else (q.data, q.data)
        starts = p.data.copy(), q.data.copy()
        feed(rule, g)
        for i, param in enumerate((p, q)):
            way = [0.0, *paper(name, [g[i] for g in gs[:t + 1]])]
            same(param.data, starts[i] + way[-1] - way[-2], atol=1e-12)


@ALL
def test_data_edited_in_place(name):
    """Before the first step and between steps."""
    p = Tensor(np.zeros(3))
    rule, gs = OPTIMIZERS[name]([p], 0.1), numbers(3, 3)
    way = [0.0, *paper(name, gs)]
    for t in range(3):
        p.data[...] = [5.0, 6.0, 7.0]
        feed(rule, [gs[t]])
        same(p.data, np.array([5.0, 6.0, 7.0]) + way[t + 1] - way[t], atol=1e-12)


@pytest.mark.parametrize("names", [("SGD", "Momentum"), ("Adam", "RMSProp"), ("Adam", "Adam")])
def test_two_optimizers_share_parameters(names):
    """Each adds its own step to where the other has gone."""
    p, q, r = tensors((3,), (2,), (2, 2))
    first, second = OPTIMIZERS[names[0]]([p, q], 0.1), OPTIMIZERS[names[1]]([r, q], 0.1)
    start, gs = q.data, numbers(10, 2, low=-2, high=2)
    for g in gs:
        feed(first, [np.ones(3), g])
        feed(second, [np.ones((2, 2)), g])
    same(q.data, start + sum(list(paper(name, gs))[-1] for name in names), atol=1e-12)
    same(p.data, numbers(3) + list(paper(names[0], [np.ones(3)] * 10))[-1], atol=1e-12)
    same(r.data, numbers(2, 2) + list(paper(names[1], [np.ones((2, 2))] * 10))[-1], atol=1e-12)


@ALL
def test_lr_changed_between_steps(name):
    """The rate of now times the direction of now."""
    p, gs, rates = Tensor(np.zeros(3)), numbers(4, 3), [0.1, 0.0, 2.0, 0.5]
    rule = OPTIMIZERS[name]([p], 9.0)
    way = np.diff([np.zeros(3), *paper(name, gs, lr=1.0)], axis=0)
    for t, rule.lr in enumerate(rates):
        feed(rule, [gs[t]])
        same(p.data, sum(lr * w for lr, w in zip(rates, way[:t + 1])), atol=1e-12)


@ALL
@pytest.mark.parametrize("lr", [np.array([[[0.1]], [[0.2]]]), np.array(0.1), np.float64(0.3), np.full((1, 1), .5)])
def test_an_array_of_rates(name, lr):
    """It broadcasts against each parameter, (K, 1, 1) against (K, ...)."""
    params = tensors((2, 3, 4), (2, 1, 4))
    starts, rule = [p.data for p in params], OPTIMIZERS[name](params, lr)
    gs = gradients([p.shape for p in params], 3)
    for g in gs:
        feed(rule, g)
    for i, (p, start) in enumerate(zip(params, starts)):
        same(p.data, start + list(paper(name, [g[i] for g in gs], lr=lr))[-1], atol=1e-12)


@ALL
def test_a_graph_lives_until_the_step(name):
    """Asked twice before it, the same; built anew after it, true to the new data."""
    w, x = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    rule = OPTIMIZERS[name]([w, x], 0.1)
    for _ in range(3):
        y = (w * x * w).sum()
        for times in 1, 2:
            y.backward()
            same(w.grad, times * 2 * w.data * x.data)
            same(x.grad, times * w.data ** 2)
        rule.step()
        rule.zero_grad()


@ALL
def test_assigned_arrays_stay_the_callers(name):
    """An array put into p.data is read, and not written to."""
    p, mine = Tensor([1.0, 2.0]), np.array([5.0, 6.0])
    rule = OPTIMIZERS[name]([p], 0.1)
    for _ in range(2):
        p.data = mine
        feed(rule, [np.ones(2)])
        assert np.array_equal(mine, [5.0, 6.0]) and (p.data < mine).all()


@ALL
def test_a_step_leaves_the_gradient_alone(name):
    """It reads grad, and keeps no hold on it."""
    p, g = Tensor([1.0, -2.0]), np.array([3.0, -4.0])
    rule = OPTIMIZERS[name]([p], 0.1)
    p.grad = g
    rule.step()
    assert p.grad is g and np.array_equal(g, [3.0, -4.0])
    before = p.data.copy()
    g[:] = 99
    assert np.array_equal(p.data, before)


@ALL
def test_shapes_and_types_stay(name):
    """float64 of the same shape, also when data was made of integers."""
    params = [Tensor(1), Tensor([1, 2]), Tensor(np.ones((2, 2), dtype=np.int8))]
    rule = OPTIMIZERS[name](params, 0.25)
    feed(rule, [np.ones(p.shape) for p in params])
    for p, shape in zip(params, [(), (2,), (2, 2)]):
        assert isinstance(p.data, (np.ndarray, np.float64)) and p.data.dtype == float and p.data.shape == shape
        assert (p.data != np.round(p.data)).all()


def test_the_callers_array_is_left_alone():
    """Initial weights kept for a second run do not move."""
    start = np.array([1.0, 2.0])
    p = Tensor(start)
    feed(SGD([p], 0.5), [[1.0, 1.0]])
    same(p.data, [0.5, 1.5])
    same(start, [1.0, 2.0])


# zero_grad, and parameters that are none

def test_zero_grad_forgets():
    """None, so that the next backward starts afresh."""
    p, q = tensors((2,), ())
    rule = SGD([p, q], 0.1)
    for _ in range(3):
        rule.zero_grad()
        assert p.grad is None and q.grad is None
        ((p * 2).sum() + q * 3).backward()
    same(p.grad, [2.0, 2.0])
    same(q.grad, 3.0)


def test_gradients_of_several_batches_add_up():
    """Without zero_grad, one step takes their sum."""
    p = Tensor([1.0])
    rule = SGD([p], 0.1)
    for x in 1.0, 2.0, 4.0:
        (p * x).backward()
    rule.step()
    same(p.data, [0.3])


@ALL
@pytest.mark.parametrize("wrap", [list, tuple, iter, lambda ps: (p for p in ps),
                                  lambda ps: dict.fromkeys(ps), lambda ps: {0: ps[0], 1: ps[1]}.values()])
def test_any_iterable(name, wrap):
    """Read once, in its order; a generator is not used up by a step."""
    a, b = tensors((2,), (3,))
    rule = OPTIMIZERS[name](wrap([a, b]), 0.1)
    assert rule.params == [a, b]
    for _ in range(2):
        before = a.data.copy(), b.data.copy()
        feed(rule, [np.ones(2), np.ones(3)])
        assert (a.data < before[0]).all() and (b.data < before[1]).all()


P = Tensor([1.0])


@ALL
@pytest.mark.parametrize("params, error", [
    ([], ValueError), ((), ValueError), ([P, P], ValueError), ([P, Tensor(2.0), P], ValueError),
    (P, TypeError), (Tensor(1.0), TypeError), ([P * 2], TypeError), ([P, P + 1], TypeError),
    ([1.0], TypeError), ([np.ones(2)], TypeError), ([None], TypeError), (None, TypeError),
    (3, TypeError), ("ab", TypeError), ([[P]], TypeError), ({"p": P}, TypeError), (np.ones(2), TypeError)])
def test_parameters_that_are_none(name, params, error):
    """Empty, twice, not leaves, not Tensors."""
    with pytest.raises(error):
        OPTIMIZERS[name](params, 0.1)


@ALL
@pytest.mark.parametrize("lr, error", [
    (-0.1, ValueError), (np.nan, ValueError), (-np.inf, ValueError), (np.array([0.1, -1.0]), ValueError),
    (np.array([0.1, np.nan]), ValueError), (None, TypeError), ("0.1", TypeError), (1j, TypeError),
    ([1, [2]], ValueError), (object(), TypeError)])
def test_rates_that_are_none(name, lr, error):
    """Negative, NaN, not real."""
    with pytest.raises(error):
        OPTIMIZERS[name](tensors((2,)), lr)


@ALL
@pytest.mark.parametrize("lr", [[0.1, 0.2], (0.1, 0.2), Tensor([0.1, 0.2]), np.array([0.1, 0.2])], ids=lambda x: type(x).__name__)
def test_rates_in_a_row(name, lr):
    """What the constructor lets in, a step can use."""
    p = Tensor(np.zeros((3, 2)))
    feed(OPTIMIZERS[name]([p], lr), [np.full((3, 2), 2.0)])
    wanted = list(paper(name, [np.full((3, 2), 2.0)], lr=np.array([0.1, 0.2])))[0]
    same(p.data, wanted)


@ALL
@pytest.mark.parametrize("lr", [np.array([0.1, 0.2, 0.3]), np.full((1, 2), 0.1), np.full((2, 1, 1), 0.1)], ids=repr)
def test_a_rate_that_does_not_fit(name, lr):
    """An array of rates that would make a parameter larger, or fits only one of them."""
    with pytest.raises(ValueError):
        OPTIMIZERS[name](tensors((3,), (2,)), lr)


@ALL
def test_a_step_makes_a_new_array(name):
    """A graph from before keeps the old one, and stays true."""
    p = Tensor([3.0])
    y = p * p
    old = p.data
    feed(OPTIMIZERS[name]([p], 0.1), [[1.0]])
    assert p.data is not old and old[0] == 3 and p.data[0] < 3
    p.grad = None
    y.backward()
    same(p.grad, [6.0])


@ALL
def test_a_rate_of_zero(name):
    """Allowed, and moves nothing."""
    p = Tensor([1.0])
    feed(OPTIMIZERS[name]([p], 0), [[5.0]])
    same(p.data, [1.0])


def refused(rule, params, match=None):
    """step() raises, no parameter has moved, and its array is what it was."""
    before, copies = [p.data for p in params], [p.data.copy() for p in params]
    with pytest.raises((ValueError, TypeError), match=match):
        rule.step()
    assert all(p.data is array for p, array in zip(params, before))
    assert all(map(np.array_equal, before, copies))


@ALL
@pytest.mark.parametrize("when", ["at first", "later"])
@pytest.mark.parametrize("grads", [
    [np.ones(2), np.ones(2)], [np.ones(1), np.ones(2)], [np.ones(()), np.ones(2)],
    [np.ones(2), np.ones(3)], [np.ones((3, 1)), np.ones((2, 2))],
    [np.ones(3), np.ones(4)], [np.ones(3), np.float64(1.0)],
    [[1.0, 2.0], np.ones(2)], [np.ones(3), 1.0], [None, np.ones((1, 2))]],
    ids=lambda gs: " ".join(str(np.shape(g)) + type(g).__name__ for g in gs))
def test_a_refused_step_changes_nothing(name, when, grads):
    """A grad that cannot be the parameter's: no move, and no average spoiled.

    The good step that follows is the one that would have come anyway.
    """
    params, twins = tensors((3,), (2,)), tensors((3,), (2,))
    rule, twin = OPTIMIZERS[name](params, 0.1), OPTIMIZERS[name](twins, 0.1)
    good = [[1.0, -2.0, 3.0], [4.0, -5.0]]
    if when == "later":
        feed(rule, good)
        feed(twin, good)
    for p, g in zip(params, grads):
        p.grad = g
    refused(rule, params)
    feed(rule, good)
    feed(twin, good)
    for p, q in zip(params, twins):
        assert np.array_equal(p.data, q.data)


@pytest.mark.parametrize("bad", ["a", None, 1j], ids=repr)
@pytest.mark.parametrize("make", [
    Average, lambda b: SGD(tensors((1,)), b), lambda b: Momentum(tensors((1,)), 0.1, b),
    lambda b: RMSProp(tensors((1,)), 0.1, b), lambda b: Adam(tensors((1,)), 0.1, b),
    lambda b: Adam(tensors((1,)), 0.1, 0.9, b), lambda b: RMSProp(tensors((1,)), 0.1, 0.9, b),
    lambda b: Adam(tensors((1,)), 0.1, 0.9, 0.9, b)])
def test_settings_that_are_no_numbers(make, bad):
    """A TypeError at the door."""
    with pytest.raises(TypeError):
        make(bad)


def test_the_four():
    """By name, in the order of the story, one base."""
    assert list(OPTIMIZERS) == ["SGD", "Momentum", "RMSProp", "Adam"]
    assert all(issubclass(rule, Optimizer) and rule.__name__ == name
               for name, rule in OPTIMIZERS.items())
