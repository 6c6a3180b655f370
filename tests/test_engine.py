"""Chapter 2: a tensor that remembers."""
import gc
import sys
import tracemalloc

import numpy as np
import pytest

from anatomy import Adam, Tensor, post_order, train
from judges import agrees, numbers, same, slopes

NOT_REAL = [None, "a", b"a", 1j, [1j], [None], ["a"], object(), {1.0},
            np.array([1, None]), np.datetime64("2020"), lambda: 0]


# A leaf

@pytest.mark.parametrize("data, shape", [
    (3, ()), (3.5, ()), (True, ()), (np.float32(1.5), ()), (np.int8(-1), ()),
    ([1, 2], (2,)), ([[1.0], [2.0]], (2, 1)), ((1, 2), (2,)), (range(3), (3,)),
    ([], (0,)), (np.zeros((0, 3)), (0, 3)), (np.uint8([255]), (1,)),
    (np.float16([1.5]), (1,)), (np.array([True, False]), (2,)),
    (np.arange(6)[::2], (3,)), (np.arange(6.0).reshape(2, 3).T, (3, 2)),
    (np.ma.array([1, 2]), (2,)), (Tensor([1.0, 2.0]), (2,))], ids=repr)
def test_a_leaf_is_a_plain_float64_copy(data, shape):
    """Whatever real numbers come in, a plain float64 array of its own."""
    t = Tensor(data)
    assert type(t.data) is np.ndarray and t.data.dtype == np.float64
    assert t.shape == t.data.shape == shape and t.grad is None
    array = data.data if isinstance(data, Tensor) else np.asarray(data)
    assert np.array_equal(t.data, array) and not np.shares_memory(t.data, array)


def test_editing_the_source_changes_nothing():
    """Tensor(data) copies, and takes what is read-only."""
    source = np.array([1.0, 2.0])
    t = Tensor(source)
    source[:] = 9
    assert np.array_equal(t.data, [1, 2])
    source.flags.writeable = False
    Tensor(source).data[0] = 5
    assert source[0] == 9


@pytest.mark.parametrize("data", NOT_REAL, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("use", [
    Tensor, lambda x: Tensor(1.0) + x, lambda x: Tensor(1.0) - x,
    lambda x: x * Tensor(1.0), lambda x: x - Tensor(1.0),
    lambda x: Tensor(1.0) / x, lambda x: x / Tensor(1.0),
    lambda x: Tensor(2.0) ** x, lambda x: x ** Tensor(2.0),
    lambda x: Tensor([1.0]) @ x, lambda x: x @ Tensor([1.0])])
def test_not_real_numbers(use, data):
    """What is not real is refused at every door, by its own repr."""
    with pytest.raises(TypeError, match="real numbers are wanted"):
        use(data)


@pytest.mark.parametrize("use", [
    np.asarray, np.zeros_like, lambda x: np.dot(np.eye(2), x), np.eye(2).dot, lambda x: np.stack([x, x]),
    lambda x: np.where([True, False], x, 0.0), lambda x: np.array([x, x]), lambda x: Tensor([x, x])])
def test_numpy_makes_no_array_of_tensors(use):
    """A function of numpy would lose the edges, and compute with the Tensor entry by entry."""
    for t in Tensor([1.0, 2.0]), Tensor(1.0):
        with pytest.raises(TypeError, match="numpy cannot take a Tensor"):
            use(t)


@pytest.mark.parametrize("use", [Tensor, lambda x: Tensor(1.0) * x])
@pytest.mark.parametrize("data, error, words", [
    ([1, [2]], ValueError, "inhomogeneous"), ([[1, 2], [3]], ValueError, "inhomogeneous"),
    (10 ** 400, OverflowError, "too large"), ([10 ** 400], TypeError, "real numbers are wanted")],
    ids=["ragged", "ragged rows", "large", "large in a list"])
def test_ragged_or_beyond_float64(use, data, error, words):
    """A ragged list has no shape, 10^400 no float64: Python's float says so itself, but of a list."""
    with pytest.raises(error, match=words):
        use(data)


def test_hash_by_identity():
    """Equal values are different nodes, and can be keys."""
    a, b = Tensor([1.0]), Tensor([1.0])
    assert a != b and a == a and len({a, b, a}) == 2


@pytest.mark.parametrize("t", [Tensor(1.0), Tensor(1.0) * 2])
def test_a_number_is_not_iterated(t):
    """A 0-d Tensor is not a sequence."""
    with pytest.raises(TypeError):
        iter(t)


def test_iterating_gives_tracked_rows():
    """A loop over a matrix sees its rows, and each row's slopes come back."""
    x = Tensor(np.arange(6.0).reshape(2, 3))
    first, second = x
    (first * 2 + second * 3).sum().backward()
    same(x.grad, [[2, 2, 2], [3, 3, 3]])


def test_repr_shows_the_numbers():
    """What a reader sees at a prompt."""
    assert repr(Tensor([1.0, 2.5])) == "Tensor([1.  2.5])"


# Operators and constants

OPERATORS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b,
             "*": lambda a, b: a * b, "/": lambda a, b: a / b,
             "**": lambda a, b: a ** b, "@": lambda a, b: a @ b}
CONSTANTS = [2, 2.0, True, np.float64(2.0), np.float32(2.0), np.int64(2),
             np.array(2.0), np.array([2.0, 3.0]), np.array([2, 3]), [2.0, 3.0],
             np.array([[2.0, 3.0], [4.0, 5.0]]), np.array([[2.0], [3.0]])]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("c", CONSTANTS, ids=repr)
def test_constants_on_either_side(name, c):
    """Numbers, arrays, lists and numpy scalars, left and right, uncounted."""
    op, x = OPERATORS[name], np.array([1.5, 0.5])
    if name == "@" and np.ndim(c) == 0:
        for product in (lambda t: t @ c), (lambda t: c @ t):
            with pytest.raises(ValueError):
                product(Tensor(x))
        return
    array = np.asarray(c, dtype=float)
    agrees(lambda t: op(t, c), lambda t: op(t, array), x)
    if not (name == "@" and np.shape(c) == (2, 1)):
        agrees(lambda t: op(c, t), lambda t: op(array, t), x)


def test_a_constant_is_no_node():
    """One Tensor, one edge; a constant has none, nor what an operation makes of it."""
    for y in Tensor(np.eye(2)) @ np.ones(2), np.ones(2) @ Tensor(np.eye(2)):
        assert sum(not node.edges for node in post_order(y, [])) == 1
    x, c = Tensor([1.0, 2.0]), np.array([3.0, 4.0])
    for y in x * c, c * x, x + 1, x - c, 1 - x, c / x, x ** 2, 2 ** x:
        assert [operand for operand, _, _ in y.edges] == [x]
        assert isinstance(y, Tensor) and y.shape == (2,)


def test_constant_exponent_does_no_logarithm():
    """(-2)^2 is asked for its base only, so no log of -2 is taken."""
    with np.errstate(all="raise"):
        _, (g,) = slopes(lambda x: (x ** 2).sum(), [-2.0, 3.0])
    same(g, [-4.0, 6.0])


def test_assignment_operators_leave_others_alone():
    """y += 1 makes a new Tensor."""
    x = y = Tensor([1.0])
    y += 1
    y *= 3
    y.backward()
    assert x.data == 1 and y.data == 6 and x.grad == 3


def test_builtin_sum():
    """sum() starts from 0, on the left."""
    ts = [Tensor(1.0), Tensor(2.0), Tensor(3.0)]
    sum(ts).backward()
    assert [t.grad for t in ts] == [1, 1, 1]


# The order of settling

@pytest.mark.parametrize("f, x, slope", [
    (lambda x: x * x, 3.0, 6), (lambda x: x + x, 3.0, 2), (lambda x: x - x, 3.0, 0),
    (lambda x: x * x * x, 2.0, 12), (lambda x: (x + x) + (x + x), 1.0, 4),
    (lambda x: x * 2 + x * 5, 2.0, 7), (lambda x: -x, 1.0, -1), (lambda x: x / x, 3.0, 0),
    (lambda x: (x * x) * (x * x), 2.0, 32), (lambda x: (x * x) * x - x * (x * x), 2.0, 0),
    (lambda x: x ** x, 2.0, 4 * (1 + np.log(2)))])
def test_uses_add_up(f, x, slope):
    """Every use of x reports before x is settled."""
    _, (g,) = slopes(f, x)
    same(g, slope, atol=1e-14)


def test_the_diamond():
    """(a + b)(ab) by hand: slopes ab + (a + b) b and ab + (a + b) a."""
    a, b = Tensor(2.0), Tensor(3.0)
    c, d = a + b, a * b
    L = c * d
    L.backward()
    assert (L.data, a.grad, b.grad, c.grad, d.grad) == (30, 21, 16, None, None)
    order = post_order(L, [])
    assert order[-1] is L and {*order} == {a, b, c, d, L}
    assert all(order.index(x) < order.index(node) for node in order for x, _, _ in node.edges)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs(seed):
    """Graphs in which most nodes are used several times, against nudges."""
    rng = np.random.default_rng(seed)
    plan = [(rng.integers(3), *rng.integers(0, k + 2, 2)) for k in range(12)]

    def program(a, b):
        made = [a, b]
        for op, i, j in plan:
            made.append((made[i] + made[j], made[i] - made[j] * 0.5,
                         made[i] * made[j] * 0.3)[op])
        return sum(made)
    agrees(program, program, numbers(2, seed=seed), numbers(2, seed=seed + 50), rtol=1e-9)


def test_sixty_doublings_take_sixty_steps():
    """A shared node is settled once, not once for each path."""
    x = y = Tensor(1.0)
    for _ in range(60):
        y = y + y
    y.backward()
    assert x.grad == 2.0 ** 60


def test_a_node_is_settled_once():
    """Newest first: a rule is asked once a pass, with the whole sum."""
    asked, x = [], Tensor(1.0)
    y = Tensor(np.float64(1.0), (x, lambda g: asked.append(g) or g))
    a, b = y, y * 1.0
    for _ in range(12):                     # Fibonacci: many paths of all lengths
        a, b = b, a + b
    b.backward()
    assert asked == [377] and x.grad == asked[0]


def test_deep_chains():
    """A queue has no recursion limit, and freeing a chain has none either."""
    x = Tensor(1.0)
    y = sum([x] * 50 * sys.getrecursionlimit())
    y.backward()
    assert x.grad == 50 * sys.getrecursionlimit()
    del y
    y = sum([x] * sys.getrecursionlimit())
    with pytest.raises(RecursionError):
        post_order(y, [])


def test_eight_thousand_uses():
    """One x, many uses, in a balanced tree."""
    x = Tensor(1.0)
    layer = [x * k for k in range(2 ** 13)]
    while len(layer) > 1:
        layer = [a + b for a, b in zip(layer[::2], layer[1::2])]
    layer[0].backward()
    assert x.grad == sum(range(2 ** 13))


# grad

@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0,), (2, 0), (1, 1, 2)])
@pytest.mark.parametrize("f", [
    lambda x: x.sum(), lambda x: (x + 1).sum(), lambda x: (x * x).sum(),
    lambda x: x.mean() if x.data.size else x.sum(), lambda x: (x + x.T.T).sum(),
    lambda x: x.reshape(-1).sum()])
def test_a_grad_is_an_array_of_its_own(shape, f):
    """Of exactly data's shape, dense, writable, owned by nobody else."""
    x = Tensor(np.ones(shape))
    f(x).backward()
    g = x.grad
    assert type(g) is np.ndarray and g.dtype == np.float64 and g.shape == shape
    assert g.flags.writeable and g.flags.owndata and 0 not in g.strides[:g.size]
    g[...] = 7
    assert (x.data == 1).all()


def test_grads_are_not_shared():
    """Not between leaves, not with the seed, not with the data."""
    a, b, seed = Tensor([1.0, 2.0]), Tensor([3.0, 4.0]), np.array([1.0, 10.0])
    (a + b).backward(seed)
    a.grad[:] = seed[:] = 99
    same(b.grad, [1.0, 10.0])
    a = Tensor([1.0, 2.0])
    a.backward([1.0, 1.0])
    a.grad[0] = 5
    assert a.data[0] == 1


def test_accumulating_replaces_the_array():
    """A grad that was handed out does not change later."""
    x = Tensor([1.0])
    (x * 2).backward()
    kept = x.grad
    (x * 3).backward()
    assert kept == 2 and x.grad == 5


def test_none_until_reached():
    """Unreached leaves keep None, a reached zero is an array of zeros."""
    a, b, c = Tensor([1.0]), Tensor([1.0]), Tensor([1.0])
    (a * 0 + b * 1).backward()
    assert a.grad == 0 and b.grad == 1 and c.grad is None


# Calling backward

@pytest.mark.parametrize("depth", [1, 2, 5, 9])
def test_calls_add_up_in_leaves_only(depth):
    """Twice is exactly double, thrice triple, at any depth."""
    x = y = Tensor(1.01)
    for _ in range(depth):
        y = y * y
    y.backward()
    once = x.grad.copy()
    same(once, 2 ** depth * 1.01 ** (2 ** depth - 1))
    y.backward()
    assert x.grad == 2 * once
    y.backward()
    assert x.grad == 2 * once + once and y.grad is None


def test_two_losses_share_a_trunk():
    """In either order: 2 x^2 and x^4 at 3."""
    for flip in False, True:
        x = Tensor(3.0)
        trunk = x * x
        losses = [trunk + trunk, trunk * trunk]
        for loss in losses[::-1] if flip else losses:
            loss.backward()
        assert x.grad == 12 + 108


def test_backward_in_the_middle():
    """Asking an inner node is a question of its own, and disturbs nothing."""
    x = Tensor(3.0)
    y = x * x
    z = y * 2
    y.backward()
    z.backward()
    assert x.grad == 6 + 12


def test_a_leaf_asked_about_itself():
    """Its slope along itself is the seed."""
    x = Tensor(2.0)
    x.backward()
    x.backward(3.0)
    assert x.grad == 4 and type(x.grad) is np.ndarray


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_number_needs_no_seed(shape):
    """1 is the seed of a single number, whatever its axes."""
    for f, slope in (lambda x: x * x, 6.0), (lambda x: x + x, 2.0), (lambda x: -x, -1.0):
        x = Tensor(np.full(shape, 3.0))
        f(x).backward()
        same(x.grad, np.full(shape, slope))


@pytest.mark.parametrize("shape, seed", [
    ((2,), None), ((0,), None), ((2,), 1.0), ((2,), [1.0]), ((2,), [[1.0, 1.0]]),
    ((2,), [1.0, 2.0, 3.0]), ((), [1.0]), ((1,), 1.0), ((2, 3), np.ones((3, 2))),
    ((3,), np.ones((3, 0)))], ids=repr)
def test_seeds_of_another_shape(shape, seed):
    """A ValueError that names both, and no grad moves."""
    x = Tensor(np.ones(shape))
    x.grad = kept = np.ones(shape)
    with pytest.raises(ValueError) as refusal:
        (x * 2).backward(seed)
    assert x.grad is kept
    assert f"a seed of shape {shape}" in str(refusal.value)
    assert seed is None or str(np.shape(seed)) in str(refusal.value)


def test_a_ragged_seed():
    """It has no shape that could be named, and no grad moves."""
    x = Tensor(np.ones(2))
    x.grad = kept = np.ones(2)
    with pytest.raises(ValueError):
        (x * 2).backward([1, [2]])
    assert x.grad is kept


@pytest.mark.parametrize("seed", ["a", 1j, np.array(1j), np.array("a"), np.array(None)], ids=repr)
def test_seeds_that_are_not_real(seed):
    """A TypeError, and no grad moves."""
    x = Tensor(1.0)
    with pytest.raises(TypeError):
        (x * 2).backward(seed)
    assert x.grad is None


@pytest.mark.parametrize("seed", [
    [1, 2], (1, 2), np.array([1, 2]), np.float32([1, 2]), Tensor([1.0, 2.0]),
    np.array([1, 0, 2])[::2], [True, 2]], ids=repr)
def test_seeds_that_are_welcome(seed):
    """Anything real of the right shape."""
    _, (g,) = slopes(lambda x: x * 3, [1.0, 1.0], seed=seed)
    same(g, [3.0, 6.0])


def test_three_seeds_are_linear():
    """e0 and e1 are rows of the Jacobian, ones is their sum."""
    rows = {name: slopes(lambda a, b: a * b + a, [2.0, 5.0], [3.0, 7.0], seed=seed)[1]
            for name, seed in (("e0", [1, 0]), ("e1", [0, 1]), ("ones", [1, 1]))}
    same(rows["e0"][0], [4.0, 0.0])          # y = a b + a: dy/da = b + 1
    same(rows["e1"][0], [0.0, 8.0])
    same(rows["e0"][1], [2.0, 0.0])          # dy/db = a
    same(rows["e1"][1], [0.0, 5.0])
    for k in 0, 1:
        same(rows["ones"][k], rows["e0"][k] + rows["e1"][k])


def test_a_failed_backward_leaves_every_grad():
    """A rule that raises in the middle of a pass moves nothing."""
    def broken(g):
        raise ZeroDivisionError
    a, b, c = Tensor(1.0), Tensor(2.0), Tensor(3.0)
    (a * 2).backward()
    kept = a.grad
    y = Tensor(np.float64(5.0), (c, broken)) + a + b
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert a.grad is kept and kept == 2 and b.grad is None and c.grad is None


@pytest.mark.parametrize("grad", [0, 0.0, 1, [1, 1, 1], np.float32(1), np.ones(3, int), np.ones(1)], ids=repr)
def test_a_grad_that_something_can_be_added_to(grad):
    """A number is a grad of equal entries; what comes back is a float64 array."""
    x = Tensor(np.ones(3))
    x.grad = grad
    (x * 2).backward(np.ones(3))
    same(x.grad, np.asarray(grad) + np.full(3, 2.0))


@pytest.mark.parametrize("old, new", [((2, 3), (3,)), ((3,), ()), ((3,), (1,)), ((2, 3), (1, 3)), ((2, 3), (2, 1)),
                                      ((4, 1), ()), ((3,), (2, 3)), ((3,), (4,))])
def test_data_of_another_shape_between_the_passes(old, new):
    """The slope is that of the program that ran, in its shape; the next program has its own."""
    x = Tensor(np.ones(old))
    y = x * 2
    x.data = np.ones(new)
    y.backward(np.ones(old))
    same(x.grad, np.full(old, 2.0))
    x.grad = None
    (x * 3).backward(np.ones(new))
    same(x.grad, np.full(new, 3.0))


def test_what_was_stretched_comes_back_in_the_shape_it_had():
    """A row that became a column while its sum waited."""
    row = Tensor([1.0, 2.0, 3.0])
    y = row + np.zeros((2, 3))
    row.data = np.ones((3, 1))
    y.backward(np.ones((2, 3)))
    same(row.grad, [2.0, 2.0, 2.0])


def test_a_rule_of_a_wrong_shape_is_convicted():
    """A cotangent that broadcasting cannot explain is a ValueError."""
    x = Tensor([1.0, 2.0, 3.0])
    y = Tensor(np.ones(2), (x, lambda g: g))
    with pytest.raises(ValueError, match=r"\(3,\).*\(2,\)"):
        y.backward([1.0, 1.0])
    assert x.grad is None


def test_nan_and_infinity_pass_through():
    """Nothing is clamped behind the reader's back."""
    with np.errstate(all="ignore"):
        _, (g,) = slopes(lambda x: x * np.array([np.nan, np.inf, 1.0]), np.ones(3),
                         seed=np.ones(3))
        y, (z,) = slopes(lambda x: (x * x).sum(), [np.inf, 1.0])
    assert np.isnan(g[0]) and g[1] == np.inf and g[2] == 1
    assert y == np.inf and z[0] == np.inf and z[1] == 2


def test_an_old_graph_stays_true():
    """Reassigning data after the forward pass does not change its slopes."""
    x, w = Tensor([2.0]), Tensor([3.0])
    y = x * w
    x.data, w.data = np.array([10.0]), np.array([20.0])
    y.backward()
    assert x.grad == 3 and w.grad == 2


# Memory

def test_a_graph_is_freed_at_once():
    """No cycles: the last reference gone, a rule's arrays are gone."""
    array, x = np.ones(1000), Tensor(np.ones(1000))
    gc.disable()
    try:
        before = sys.getrefcount(array)
        y = ((x * array).tanh() @ array).sigmoid().reshape(1)[0]
        y.backward()
        assert sys.getrefcount(array) > before
        del y
        assert sys.getrefcount(array) == before
    finally:
        gc.enable()


def test_nothing_for_the_garbage_collector():
    """200 steps of training with the collector off leave it no work."""
    train(Adam, steps=2)
    gc.collect()
    gc.disable()
    try:
        train(Adam, steps=200)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_memory_is_flat():
    """What 20 passes keep is less than a hundredth of what one makes."""
    def one():
        x = Tensor(np.ones(50_000))
        ((x * 2.0).tanh() + x[::1]).sigmoid().reshape(50_000).sum().backward()
    one()
    gc.disable()
    tracemalloc.start()
    try:
        one()
        base = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            one()
        assert tracemalloc.get_traced_memory()[0] - base < 20_000
    finally:
        tracemalloc.stop()
        gc.enable()


def test_a_misspelt_name_is_an_error():
    x = Tensor(1.0)
    with pytest.raises(AttributeError, match="gard"):
        x.gard = 1.0


def test_several_numbers_without_a_seed_are_told_what_is_missing():
    with pytest.raises(ValueError) as refusal:
        Tensor([1.0, 2.0]).backward()
    assert str(refusal.value) == "several numbers want a seed of shape (2,)"
