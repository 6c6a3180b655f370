"""Numbers that the prose tells as results: each is read out of its sentence, and held against the machine."""
import inspect
import re
from functools import lru_cache, partial

import numpy as np
import pytest

import anatomy as A
from anatomy import Tensor
from conftest import SOURCE
from judges import gradients
from reading import GOLDEN, TEXT, WORDS, agree, flat, number, read


def test_a_fragment_is_found_with_its_numbers_or_not_at_all():
    text = flat("# At step 12 it\n#   is 6.57 times, -99/101 or\n    # 1e-05. Nine of 75% are TWICE so.\n# %%\n")
    assert read("At step {} it is {} times, {} or {}. {} of {} are {} so.", text) == (
        "12", "6.57", "-99/101", "1e-05", "Nine", "75%", "TWICE")
    for stale in "At step {} it was", "is 6.57 times {}", "step 1{}", "{}7 times":
        with pytest.raises(AssertionError, match="nowhere"):
            read(stale, text)
    with pytest.raises(AssertionError, match="several ways"):
        read("rate {}", "a rate 0.1 and a rate 0.2")


@pytest.mark.parametrize("told, right, wrong", [
    ("3.16", 3.1623, 3.17), ("6.57", 6.5690, 6.58), ("12", 12.0, 11), ("0.17e-4", 1.68e-5, 1.6e-5),
    ("95%", 0.95, 0.96), ("2e+00", 1.91, 1.4), ("eleven", 11, 10), ("-99/101", -99 / 101, 99 / 101),
    ("0.0", 0.04, 0.06)])
def test_a_number_is_told_to_its_last_digit(told, right, wrong):
    assert agree(told, right) and not agree(told, wrong)
    assert agree(told, right * 1.09, 0.12) and not agree(told, right * 1.5 + 1, 0.12) or number(told)[0] == 0


# What the sentences speak of

def flattened(*arrays):
    return np.concatenate([np.ravel(np.asarray(a, float)) for a in arrays])


@lru_cache
def errors():
    h = 10.0 ** -np.arange(1, 17)
    return h, A.nudge_errors(h)


def best_h(way):
    h, found = errors()
    return h[np.argmin(found[way])]


def bending():
    h, found = errors()
    return [found[way][1] / found[way][2] for way in ("forward", "central")]


def first_program():
    """Chapter 2's numbers in the order of its ledger."""
    a, b = Tensor(2.0), Tensor(3.0)
    c, d = a + b, a * b
    L = c * d
    return a, b, c, d, L


def forward_by_hand():
    return [node.data for node in first_program()[2:]]


def ledger_by_hand():
    """What each of three steps takes and reports, and the sums at the end."""
    a, b, c, d, L = first_program()
    sums, told = {L: 1.0}, []
    for node in L, d, c:
        g = sums.pop(node)
        told.append(g)
        for operand, shape, rule in node.edges:
            told.append(rule(g))
            sums[operand] = sums.get(operand, 0.0) + rule(g)
            if node is c:
                told.append(sums[operand])
    return told


def ways_to_a():
    """The slope along a, by d and by c, each with its two factors."""
    a, b, c, d, L = first_program()
    through_c, through_d = [rule(1.0) for operand, shape, rule in L.edges]
    [(_, _, d_a), _], [(_, _, c_a), _] = d.edges, c.edges
    return through_d, d_a(1.0), through_c, c_a(1.0)


def two_orders():
    x = Tensor(3.0)
    y = x * x
    s = y * y
    L = y + s
    return x, y, A.pass_on([L, s, y, x]), A.pass_on([L, y, s, x])


def of_y_and_x():
    x, y, right, early = two_orders()
    return right[y] - 1, right[y], right[y], right[x]


def too_early():
    x, y, right, early = two_orders()
    return early[x], right[y], right[x]


def kept_between_calls():
    """x * x at 3, by an engine in which y keeps its 1."""
    x = Tensor(3.0)
    y = x * x
    y.backward()
    first = x.grad
    y.backward(1 + 1)
    return 1, 1, 1 + 1, first, x.grad - first


def erased():
    with A.planted("overwriting"):
        return gradients(lambda x: x * x, 3.0)


JACOBIAN = np.array([[1.0, 2.0], [3.0, 4.0]])


def rows_of_jacobian():
    return flattened(*[gradients(partial(A.through, JACOBIAN), [10.0, 20.0], seed=seed)[0] for seed in ([1, 0], [0, 1])])


def doubled_calls():
    """2 + 4 + ... + 2^n is 2^(n+1) less how much?"""
    [less] = {2 ** (n + 1) - sum(2 ** k for k in range(1, n + 1)) for n in range(1, 12)}
    return 2, 4, less


def line_of_stretching(i, j):
    """Which entry of a row of three is copied to this entry of the result?"""
    return [np.broadcast_to(unit, (2, 3))[i, j] for unit in np.eye(3)]


ROWS = np.array([[1.0, 2, 3], [4, 5, 6]])


def summed(*shape):
    return np.ravel(A.unbroadcast(ROWS, shape))


def spoiled(fault, shape=(3,)):
    """What a faulty unbroadcast says of the rows 1 2 3 and 4 5 6."""
    with A.planted(fault):
        return np.ravel(A.unbroadcast(ROWS, shape))


def tangents():
    """How c, d and L move with a, by nudges."""
    return [A.numerical_grad(lambda a: f(a, 3.0), 2.0)
            for f in (lambda a, b: a + b, lambda a, b: a * b, lambda a, b: (a + b) * (a * b))]


def slopes_at(word, *points):
    return [gradients(word, x)[0] for x in points]


def words():
    """How many words the tables of chapter 9 have beside + and *."""
    singles = {re.split(r",|\[", name)[0].replace("x.T", "transpose") for name in A.SINGLES}
    return len(A.PAIRS) - 2 + len(singles)


def matrices():
    X, W = np.array([[1.0, 2], [3, 4]]), np.array([[5.0, 6], [7, 8]])
    seed = np.array([[1.0, 0], [0, 0]])
    along_X, along_W = gradients(lambda X, W: X @ W, X, W, seed=seed)
    Z = X @ W
    return flattened(*[row for pair in zip(Z, seed, along_X, along_W) for row in pair])


def neuron(w=2.0, x=1.0, b=-1.0):
    return 1 / (1 + np.exp(-(w * x + b)))


def neuron_backward():
    w, x, b = gradients(lambda w, x, b: (w * x + b).sigmoid(), 2.0, 1.0, -1.0)
    return b, b, b, w, x


def costs(*shares):
    p = np.array(shares)
    return A.logit_losses(np.log(p / (1 - p)), 1.0)[0]


def half_of_p():
    """The logit at which the patched loss of a point of class 0 has half of its slope, and 1 - p there."""
    low, high = 10.0, 30.0
    for turn in range(60):
        z = (low + high) / 2
        patched, slope, ours, our_slope = A.loss_slopes(np.array([z]))
        low, high = (z, high) if slope[0] > 0.5 * our_slope[0] else (low, z)
    return z, np.exp(-z)


def ceiling():
    return A.patched_bce(Tensor(50.0), 0.0).data


def one_line():
    """The last whole logit where the two losses are within the width of a line, 1/1000 of the axis."""
    z = np.arange(30.0)
    patched, slope, ours, our_slope = A.loss_slopes(z)
    return np.flatnonzero(abs(patched - ours) < 0.05)[-1]


def first_one():
    """The first whole logit whose p is 1."""
    return next(z for z in range(100) if A.logistic(float(z)) == 1)


def calls_of(x):
    """How often a nudge at x calls its function."""
    calls = []
    A.numerical_grad(lambda array: calls.append(1) or 0.0, x)
    return len(calls)


def sizes(arrays):
    return [array.size for array in arrays]


def default(function, name):
    return inspect.signature(function).parameters[name].default


def near_0():
    """Chapter 5's numbers for w^3 at (1, 0)."""
    size = A.ask(lambda w: (w ** 3).sum(), [Tensor([1.0, 0.0])])[2]
    nudged, halved = A.numerical_grad(A.cube, 0.0, 1e-5), A.numerical_grad(A.cube, 0.0, 5e-6)
    u = 4 * np.finfo(float).eps
    r = u * size / 1e-5 + u
    noise = 2 * abs(nudged - halved) + 5 * r
    floor = noise / default(A.gradcheck, "tol")
    return nudged, halved, size, r, noise, floor, nudged, floor, nudged / floor


def liar():
    tanh = A.elementwise(np.tanh, lambda g, x, out: g * (1 - out))
    return A.gradcheck(tanh, [Tensor([0.3, -1.0, 2.0])]).rows[0]


def about_the_liar():
    out, row = np.tanh(-1), liar()
    return row.relative, row.relative, 1 - out, 1 - out ** 2, 1 + np.sin(1) / 2, row.absolute


def valley(lr):
    w = Tensor(1.0)
    sgd, seen = A.SGD([w], lr), []
    for step in range(3):
        w.grad = w.data
        sgd.step()
        seen.append(w.data)
    return seen


def average_of(beta, *xs):
    average = A.Average(beta)
    return [average.add(x) for x in xs]


def half_life(beta):
    return np.log(1 / 2) / np.log(beta)


def squared_shares(beta):
    return np.sum(((1 - beta) * beta ** np.arange(100000)) ** 2)


def adam_by_hand():
    adam = A.Adam([Tensor(0.0)], lr=1.0)
    m, v = adam.memories[0]
    told = []
    for g in 2.0, 4.0:
        direction = adam.direction(g, m, v)
        hats = m.value / m.weight, v.value / v.weight
        told.append([m.value, m.weight, v.value, v.weight, *hats, direction])
    return told


def second_step_by_hand():
    m, m_weight, v, v_weight, m_hat, v_hat, direction = adam_by_hand()[1]
    return m, m_weight, v, v_weight, m_hat, v_hat, m_hat, np.sqrt(v_hat), direction


def uncorrected():
    adam = A.Adam([Tensor(0.0)], lr=1.0, bias_correction=False)
    m, v = adam.memories[0]
    direction = adam.direction(2.0, m, v)
    return m.value, np.sqrt(v.value), m.value, np.sqrt(v.value), direction, adam_by_hand()[0][-1]


def first_below(values, bound):
    """Counted from 1."""
    return 1 + np.flatnonzero(np.asarray(values) < bound)[0]


def first_of_rmsprop(g=1.0, **settings):
    v = A.RMSProp([Tensor(0.0)], 1.0, **settings)
    return v.direction(g, v.memories[0][0])


def to_and_fro():
    values = average_of(0.9, *[1.0, -1.0] * 300)
    return values[-2], values[-1], values[-2]


def best_of_sgd():
    """In a bowl with the steepnesses 1 and 100, where both factors are of one size."""
    lr = 2 / (1 + 100)
    return 1 - lr, 1 - 100 * lr, lr


def polyak(steepness=100):
    root = np.sqrt(steepness)
    return (root - 1) / (root + 1), 2 / (root + 1), root - 1, root + 1


@lru_cache
def walks():
    mu, lr, _, _ = polyak()
    return (A.bowl_path(A.Momentum, 1000, lr=lr ** 2 / (1 - mu ** 2), beta=mu ** 2),
            A.bowl_path(A.SGD, 1000, lr=best_of_sgd()[2]))


def rate_of_momentum():
    mu, lr, _, _ = polyak()
    rate = lr ** 2 / (1 - mu ** 2)
    return rate, rate / best_of_sgd()[2]


def shrinking():
    """By which factor a step brings each of the two walks closer, in the long run."""
    factors = []
    for path in walks():
        distance = np.linalg.norm(path, axis=1)
        factors.append((distance[300] / distance[100]) ** (1 / 200))
    return factors


def seven_times():
    fast, slow = map(A.steps_to_arrive, walks())
    return slow / fast


def tiny_network():
    """Chapter 7's network with one hidden unit and one point: values forward, and slopes."""
    W1, b1, W2, b2 = (Tensor(x) for x in ([[3.0], [-1.0]], [[0.0]], [[10.0]], [[0.0]]))
    z1 = np.array([[1.0, 2.0]]) @ W1 + b1
    z = z1.relu() @ W2 + b2
    A.bce_with_logits(z, np.zeros((1, 1))).backward()
    p = A.logistic(z.data)
    return [z1.data, np.maximum(z1.data, 0), z.data, p, p], [p.grad for p in (W1, b1, W2, b2)], z.data


def tiny_slopes():
    """In units of e: along the weight 10, for relu's result and for b1, and along 3 and -1."""
    forward, (W1, b1, W2, b2), z = tiny_network()
    return flattened(W2 / b2, b1 / b2, b1 / b2, W1[0] / b2, W1[1] / b2)


def correction_table():
    """The losses with and without, at the steps of the table."""
    with_, without = (read(f"{start} " + "{} " * 4 + "{}", GOLDEN)[1:] for start in ("with", "without"))
    return [(int(step), float(b) < float(a)) for step, a, b in zip((1, 10, 50, 200), with_, without)]


def ahead_and_behind():
    table = correction_table()
    return max(step for step, ahead in table if ahead), table[-1][0] if not table[-1][1] else None


def first_loss_of_guess():
    return A.bce_with_logits(Tensor(np.zeros(2)), np.array([0.0, 1.0])).data


def good(name):
    """The rates that are good with every seed, in the story."""
    after = GOLDEN.split("above 95% with every seed at ")[1]
    return [float(text) for text in re.search(rf"{name} ((?:[\d.]+, )*[\d.]+)", after).group(1).split(", ")]


def wide(name):
    return max(good(name)) / min(good(name))


def kinds(kind):
    return sum(fault.kind == kind for fault in A.FAULTS.values())


def slipped():
    """How many faults slip through each check, in the story."""
    columns = "shapes adjoint network Adam ones cover".split()
    rows = [[int(n) for n in read(kind + " {}" * 7, GOLDEN)[1:]] for kind in ("program", "copies", "rules", "order")]
    return dict(zip(columns, np.sum(rows, axis=0)))


def never_tried():
    return len(re.search(r"not_tried = \{(.*?)\}", TEXT).group(1).split(","))


def every_path():
    x = Tensor(3.0)
    y = x * x
    L = y + y * y
    with A.planted("every_path"):
        L.backward()
    return x.grad, of_y_and_x()[3]


def visits():
    """How often the list of every_path has y, and how many x stand at its end."""
    x = Tensor(3.0)
    y = x * x
    order = A.breadth(y + y * y)
    tail = 0
    while order[-1 - tail] is x:
        tail += 1
    return tail, order.count(y)


def first_slopes(fault=None):
    """All slopes of chapter 7's network for its first batch, with a fault or without."""
    X, y = A.spiral()
    batch = A.batches()[0]
    model = A.MLP(*A.weights())

    def ask():
        A.patched_mean(model(X[batch]), y[batch]).backward()
        return [p.grad for p in model.params]
    if fault is None:
        return ask()
    with A.planted(fault):
        return ask()


def smaller(fault, *which):
    """How many times too small the slopes along these parameters are."""
    ratios = [right / wrong for k, (right, wrong) in enumerate(zip(first_slopes(), first_slopes(fault))) if k in which]
    assert np.ptp(flattened(*ratios)) < 1e-6
    return ratios[0].flat[0]


def judged_network():
    logits, params = A.network(cost=lambda z, y: z)
    return params[0].shape[1], len(logits(*params).data)


def grown():
    with A.planted("copies_not_summed"):
        return [p.shape for p in A.descend(steps=1).params]


def single_digits():
    return -np.log10(np.finfo(np.float32).eps)


def float32(array):
    return Tensor(np.asarray(array, np.float32).astype(float))


def step_cost():
    tensors, calls, size = A.cost_of_step(32)
    return tensors, calls, size


def edges_of_step():
    X, y = A.spiral()
    nodes = A.post_order(A.bce_with_logits(A.MLP(*A.weights())(X), y), [])
    return [len(node.edges) for node in nodes if node.edges]


def leaves_and_results():
    return step_cost()[0], len(A.weights()), len(edges_of_step())


def eleven():
    """Products forward, and with all slopes, in the story."""
    return [float(n) for n in read("the product of 11 numbers: {} products, with its 11 slopes {}", GOLDEN)]


def bytes_of_weights():
    return sum(array.nbytes for array in A.weights())


def twelfth_in_warm_up():
    return A.warmed_up(2000)[11], 12 / 2000, A.excess(12)[11]


def of_w_in_a_step():
    lost = 1 - A.decayed(1, lr=0.001, decay=0.01)[1]
    by_itself = 1 - A.decayed(1, lr=0.001, decay=lost)[2]
    return lost, by_itself


S = np.array([[1.0, 0.99], [0.99, 1.0]])


def signs_of_muon():
    a, b, c = A.MUON
    return a, -b, c


def least_and_most():
    """Of what five rounds make of 0.002 to 1, rounded outward."""
    s = np.linspace(0.002, 1, 20000)
    for turn in range(5):
        s = A.one_round(s)
    return np.floor(100 * s.min()) / 100, np.ceil(100 * s.max()) / 100


def made_better():
    """How many breakages score higher than the repaired program, as the story prints it."""
    at_1, honest, growth, zero_grad = [int(read(line, GOLDEN)[0]) for line in (
        "SGD: at least {}% of the points right", "SGD at 0.1: {}%,", "more than without the fault: at least {}%",
        "SGD: at least {}% of the points more than with clearing")]
    return sum(gain > 0 for gain in (at_1 - honest, growth, zero_grad))


def step_of_two_parts():
    """That of 4-byte m and v, in bytes, GB and GiB."""
    return [float(n) for n in read("m and v, 4-byte numbers {} {} {}", GOLDEN)]


# (fragment of the text, the numbers in its holes by the machine, and how near they are where it says about)
COMPUTED = {
    "preface": [
        ("<[1, 2], [3, 4]> = {}", lambda: np.sum(np.array([1, 2]) * [3, 4]))],
    "nudge": [
        ("f is called {} for each entry,", lambda: calls_of(1.0)),
        ("the slope is 3 x^2 = {}.", lambda: A.numerical_grad(A.cube, 2.0)),
        ("near 2, the value moves {} times as far", lambda: A.numerical_grad(A.cube, 2.0)),
        ("f(1.9) = {} f(2.0) = {} f(2.1) = {}", lambda: A.cube(np.array([1.9, 2.0, 2.1]))),
        ("(9.261 - 8.000) / 0.1 = {} wrong by {}", lambda: np.array([0, -12]) + (A.cube(2.1) - A.cube(2.0)) / 0.1),
        ("(9.261 - 6.859) / 0.2 = {} wrong by {}", lambda: np.array([0, -12]) + A.numerical_grad(A.cube, 2.0, 0.1)),
        ("so the error is h^2, which is {}.", lambda: A.numerical_grad(A.cube, 2.0, 0.1) - 12),
        ("whose numbers have about {} digits.", lambda: -np.log10(np.finfo(float).eps)),
        ("e^h = {} e^h - e^0 = {}", lambda: (np.exp(1e-12), np.exp(1e-12) - 1)),
        ("{} digits of {} are left", lambda: (np.log10(1e-12 / np.finfo(float).eps), -np.log10(np.finfo(float).eps))),
        ("where h = 1e-16 / h, at {}. For a central one it is where h^2 = 1e-16 / h, at about {}.",
         lambda: (1e-16 ** (1 / 2), 1e-16 ** (1 / 3))),
        ('["central", "{}",', lambda: best_h("central")),
        ("bending shrinks {} and {} times.", bending, 0.2),
        ("A central nudge with h = {} is right to", lambda: best_h("central")),
        ("2*64 + 64 + 64 + 1 = {} numbers. One step of training would cost {} evaluations.",
         lambda: (sum(sizes(A.weights())), sum(calls_of(p) for p in A.weights()))),
        ("would give all {} slopes at once.", lambda: sum(sizes(A.weights())))],
    "engine": [
        ("called {} + {} + ... + 2^n = 2^(n+1) - {}", doubled_calls),
        ("y = a * b moves by b da = 3 * 0.01 = {} L moves by g b da = 5 * 3 * 0.01 = {}",
         lambda: (2.01 * 3 - 2 * 3, 5 * (2.01 * 3 - 2 * 3))),
        ("So the slope of L along a is 0.15 / 0.01 = {}, which is g * b. For the same reason the slope along b is "
         "g * a = {}.", lambda: gradients(lambda a, b: a * b, 2.0, 3.0, seed=5.0)),
        ("(and dx^2, which is tiny beside it), so the slope is {}.", lambda: gradients(lambda x: x * x, 3.0)),
        ("data {} edges a, with the shape () and the rule g -> g * {} b, with the shape () and the rule g -> g * {}",
         lambda: [first_program()[3].data] + [rule(1.0) for _, _, rule in first_program()[3].edges]),
        ("it finds c = {}, d = {} and L = {}.", forward_by_hand),
        ("take L, its g is {}. c hears 1 * d = {}. d hears 1 * c = {}. take d, its g is {}. a hears 5 * b = {}. "
         "b hears 5 * a = {}. take c, its g is {}. a hears {}, and has {}. b hears {}, and has {}.", ledger_by_hand),
        ("L moves {} times as far: {} times on the way through d,", lambda: (
            gradients(lambda a, b: (a + b) * (a * b), 2.0, 3.0)[0], np.prod(ways_to_a()[:2]))),
        ("where the slopes {} and {} multiply, and {} times on the way through c,",
         lambda: [*ways_to_a()[1::-1], np.prod(ways_to_a()[2:])]),
        ("where they are {} and {}. ### In which order", lambda: ways_to_a()[:1:-1]),
        ("and s sends 2 * y = {}. The cotangent of y is {}, and that of x is {} * 6 = {}.", of_y_and_x),
        ("It passes on 1 * 6 = {} where {} * 6 = {} was due.", too_early),
        ("If the second report erased the first, x * x at 3 would have the slope {}.", erased),
        ("y would hold {}, get {} more in the second call, and pass on {}. Then x, which has {} from the first call, "
         "gets {} more:", kept_between_calls),
        ("of y0 {} {} of y1 {} {} A cotangent", rows_of_jacobian),
        ("slope along x0 = {} g0 + {} g1 slope along x1 = {} g0 + {} g1",
         lambda: rows_of_jacobian()[[0, 2, 1, 3]]),
        ("The numbers {} and {} of the first line", lambda: rows_of_jacobian()[[0, 2]])],
    "unbroadcast": [
        *[(f"result [{i},{j}] {{}} {{}} {{}}", partial(line_of_stretching, i, j)) for i in range(2) for j in range(3)],
        ("so the slope is 1 + 4 = {}.", lambda: summed(3)[0]),
        ("the slope along b is {} {} {}, the sum", lambda: summed(3)),
        ("(3,) {} {} {} the axis that was added", lambda: summed(3)),
        ("(1, 3) [{} {} {}] an axis", lambda: summed(1, 3)),
        ("(2, 1) [{}] and [{}] the other axis", lambda: summed(2, 1)),
        ("() {} both axes", lambda: summed()),
        ("All {} shapes: (), (1,)", lambda: len({shape for shape, _ in A.broadcast_pairs()})),
        ("some of the {} * {} pairs", lambda: [len({shape for shape, _ in A.broadcast_pairs()})] * 2),
        ("{} and {} arrive, and their sum {} is", lambda: (ROWS[0, 0], ROWS[1, 0], summed(3)[0])),
        ("Then c moves by {}, d by {}, and L by 1 * d + c * 3 = {},", tangents),
        ("one number and has {} parameters. Its gradient would take {} passes in forward mode, one",
         lambda: [sum(sizes(A.weights()))] * 2)],
    "rules": [
        ("A network wants {} more words.", words),
        ("We derive the rules of {} words,", words),
        ("rules {} words and their slopes", words),
        ("The slope is out. At x = 0 it is {}, and at x = 1 it is {}.", lambda: slopes_at(Tensor.exp, 0.0, 1.0)),
        ("The slope is 1 / x. At x = 1 it is {}, and at x = 2 it is {}.", lambda: slopes_at(Tensor.log, 1.0, 2.0)),
        ("At x = 0, where out = {}, it is {}, and far",
         lambda: (A.logistic(0.0), gradients(Tensor.sigmoid, 0.0)[0])),
        ("= 1 - out^2. At x = 0 it is {}.", lambda: gradients(Tensor.tanh, 0.0)),
        ("Its slope is {} where x is above 0, and {} where x is below.", lambda: slopes_at(Tensor.relu, 0.5, -0.5)),
        ("Last, **-x** has the slope {}.", lambda: slopes_at(Tensor.__neg__, 0.7)),
        ("For 6 / 2 that is {}, and indeed 6 / 2.01 is {}.",
         lambda: (gradients(lambda u, v: u / v, 6.0, 2.0)[1], 6 / 2.01)),
        ("For the order 2, 0, 1 it is {}, {}, {}: the 0", lambda: np.argsort([2, 0, 1])),
        ("X = 1 2 W = 5 6 Z = {} {} seed = {} {} g W' = {} {} X' g = {} {} 3 4 7 8 {} {} {} {} {} {} {} {}", matrices),
        ("along the first row of X are {} and {}. Along the first column of W they are {} and {},",
         lambda: matrices()[[4, 5, 6, 14]]),
        ("give five products, of shape ({}, {}, {}).",
         lambda: (Tensor(np.ones((5, 2, 3))) @ np.ones((3, 4))).shape),
        ("forward w x = {} w x + b = {} p = 1 / (1 + e^-1) = {} backward", lambda: (2.0 * 1.0, 2.0 - 1.0, neuron())),
        ("1 for p, then 0.731 * (1 - 0.731) = {} for w x + b {} for b, and {} for w x 0.1966 * x = {} for w, and "
         "0.1966 * w = {} for x", neuron_backward),
        ("If w grows by 0.01, p grows by about {}.", lambda: neuron(2.01) - neuron(), 0.005),
        ("a slope of 1 - 1/4 = {} for each of them. But with a seed of ones the engine says {}.",
         lambda: (A.centred_slopes([1, 0, 0, 0])[0], A.centred_slopes([1, 1, 1, 1])[0])),
        ("Along the first number its slope is {}, which we had in mind, and along the others {}.",
         lambda: A.centred_slopes([1, 0, 0, 0])[:2]),
        ("It is {} on the left and {} on the right, and an engine has to choose. We choose {},",
         lambda: slopes_at(Tensor.relu, -1.0, 1.0, 0.0)),
        ("A central nudge says {} for every h,", lambda: A.numerical_grad(A.positive, 0.0)),
        ("p 0.99 0.9 0.5 0.1 0.01 0 cost {} {} {} {} {} infinite", lambda: costs(0.99, 0.9, 0.5, 0.1, 0.01)),
        ("p = 1/2 costs log 2 = {}, and a", lambda: costs(0.5)),
        ("In a computer p rounds to 1 somewhere near z = {},", first_one, 0.03),
        ("This is half of p at z = {}, where 1 - p is {}.", half_of_p),
        ("It is exactly {} where 1 - p has rounded to 0.", lambda: A.loss_slopes(np.array([38.0]))[1]),
        ("a ceiling of -log(1e-8) = {}.", ceiling),
        ("Half of p at {}, nothing at 38", lambda: half_of_p()[0]),
        ("one line up to a logit of about {}.", one_line)],
    "gradcheck": [
        ("It has {} inputs, {} hidden units with relu, {} outputs",
         lambda: (*A.small_numbers()[2][0].shape, A.small_numbers()[2][2].shape[1])),
        ("the bias b1 of shape ({},). Each of its {} slopes is computed twice: `backward` finds all of them in one "
         "pass, and the nudge evaluates the loss {} times.",
         lambda: [A.small_numbers()[2][1].size] * 2 + [calls_of(A.small_numbers()[2][1])]),
        ("If one is half of the other, this is {}; if the signs differ, it may be {}.",
         lambda: [A.judge(*map(np.array, (a, 1.0)), 0.0, 1e-4)[1] for a in (0.5, -1.0)]),
        ("has to stay below a tolerance, tol = {}.", lambda: default(A.gradcheck, "tol")),
        ("u = {} of its size, which is {} units in the last place.",
         lambda: (4 * np.finfo(float).eps, 4)),
        ("`nudged` is {} and `halved` is {}, and the size of f is {}. So r is {}, the noise is {}, and the floor is "
         "{}. The relative error is {} / {} = {}, below tol.", near_0),
        ("has the relative error {}, printed as {}: at w = -1 its rule says {}, where {} is right. (The uneven seed "
         "multiplies both by {}, so the difference is printed as {}.)", about_the_liar),
        ("numbers of {} digits (float32) h = {} (chapter 10)",
         lambda: (single_digits(), A.nudge_for(float32, A.uneven(()))[0]))],
    "optimizers": [
        ("lr = 0.1 w = 1 {} {} {} slow", lambda: valley(0.1)),
        ("lr = 1 w = 1 {} {} {} perfect,", lambda: valley(1.0)),
        ("lr = 2.1 w = 1 {} {} {} ever", lambda: valley(2.1)),
        ("step 1 a = 0.9 * 0 + 0.1 * 1 = {} step 2 a = 0.9 * {} + 0.1 * 1 = {} step 3 a = 0.9 * {} + 0.1 * 1 = {}",
         lambda: np.repeat(average_of(0.9, 1, 1, 1), [2, 2, 1])),
        ("It is {}, {} and {} after one, two and three steps,", lambda: average_of(0.9, 1, 1, 1)),
        ("That is {} steps for beta = 0.9, and {} for beta = 0.999.", lambda: [half_life(0.9), half_life(0.999)]),
        ("That is {} for beta = 0.9, and {} for beta = 0.999.", lambda: [squared_shares(0.9), squared_shares(0.999)]),
        ("as a plain mean of {}, or {}, numbers",
         lambda: [1 / squared_shares(0.9), 1 / squared_shares(0.999)]),
        ("the root of v is near {}, and the directions are near {}, {} and {}.",
         lambda: np.array([1, *np.array([100, 120, 80]) / 1e4]) * 100, 0.02),
        ("step 1 m = 0.1 * 2 = {} its weight {} v = 0.001 * 4 = {} its weight {} m_hat = {}, v_hat = {}, direction "
         "2 / sqrt(4) = {}", lambda: adam_by_hand()[0]),
        ("step 2 m = 0.9 * 0.2 + 0.1 * 4 = {} its weight {} v = 0.999 * 0.004 + 0.001 * 16 = {} its weight {} "
         "m_hat = {}, v_hat = {}, direction {} / {} = {}", second_step_by_hand),
        ("In step 1, m would be {} where g is 2, and sqrt(v) would be {}. The direction would be {} / {} = {}, and "
         "not {}:", uncorrected),
        ("At the first step it is 0.1 / sqrt(0.001) = {}.", lambda: A.excess(1)),
        ("the root of the weight of v, which is until step {}.", lambda: 1 + np.argmax(A.excess(100))),
        ("By step {} the weight of m is within a percent of 1,", lambda: first_below(0.9 ** np.arange(1, 99), 0.01)),
        ("The first step is {} times as long as it should be. That is not the worst of them: step {} is {} times as "
         "long. And r falls below 1.1 only at step {}.",
         lambda: (A.excess(1)[0], 1 + np.argmax(A.excess(100)), A.excess(100).max(),
                  first_below(A.excess(2000), 1.1))),
        ("as in recipes for language models, r starts at {}:", lambda: A.excess(1, beta2=0.95)),
        ("its first v is {} g^2, so its first step is {} lr.",
         lambda: (average_of(0.99, 1.0)[0], first_of_rmsprop())),
        ("the step of the small slope is {} lr instead of {}.",
         lambda: (1e-4 / np.sqrt(0.01 * 1e-8 + 1e-8), first_of_rmsprop(1e-4))),
        ("and so on average to {} and {} in turn, which is {},", to_and_fro),
        ("that is {} times for mu = 0.9.", lambda: 1 / (1 - 0.9)),
        ("They are {} and {} at lr = {}.", best_of_sgd),
        ("mu = ({})^2 and, for the sum, lr = ({})^2. There {} and {} are", polyak),
        ("its rate is {}, {} times that of SGD.", rate_of_momentum),
        ("shrink by about {} a step, and those of SGD by {}.", shrinking, 0.015),
        ("one average, {} directions", lambda: len(A.OPTIMIZERS))],
    "spiral": [
        ("and g W2' to the hidden units (N, {})", lambda: A.MLP(*A.weights()).params[2].shape[0]),
        ("Two arms of {} points each", lambda: np.sum(A.spiral()[1] == 0)),
        ("The {} points stand in a matrix X of shape ({}, {}), the labels in a y of shape ({}, {}).",
         lambda: (300, *A.spiral()[0].shape, *A.spiral()[1].shape)),
        ("Ours has {} inputs, {} hidden units with relu, and {} logit.",
         lambda: (*A.weights()[0].shape, A.weights()[2].shape[1])),
        ("W1 2 * 64 = {} b1 {} W2 64 * 1 = {} b2 {} all {}", lambda: sizes(A.weights()) + [sum(sizes(A.weights()))]),
        ("forward 1 * 3 - 2 * 1 = {} relu {} z = 1 * 10 = {} p = {} backward p - y = {}, call it e,",
         lambda: flattened(*tiny_network()[0])),
        ("1 e for the weight {}, and", lambda: tiny_network()[2]),
        ("{} e for the weight 10, and {} e for what relu made {} e for b1,", lambda: tiny_slopes()[:3]),
        ("1 * {} e for the weight 3, and 2 * {} e for the weight -1", lambda: tiny_slopes()[3:] / [1, 2]),
        ("All {} slopes are above 0,", lambda: np.sum(flattened(*tiny_network()[1]) > 0)),
        ("{} rules are called, {} + {} + {} + {} + {} + {} in the rows above,",
         lambda: [step_cost()[1], *edges_of_step()[::-1]]),
        ("for all {} slopes together. Here", lambda: sum(sizes(A.weights()))),
        ("A batch is {} of the {} points, drawn", lambda: (A.batches().shape[1], len(A.spiral()[0]))),
        ("In {} steps each point is drawn 2000 * 32 / 300 = {} times on average.",
         lambda: (len(A.batches()), np.mean(np.bincount(A.batches().ravel(), minlength=300)))),
        ("In each of {} steps Adam sees a batch of {} points.", lambda: A.batches().shape),
        ("is the number of parameters: {}, as", lambda: sum(sizes(A.weights()))),
        ("pays about log 2 = {} a point, the price", first_loss_of_guess),
        ("by the median over its last steps: {}, {}, ..., {}.",
         lambda: np.array(sorted(A.last_steps(2000)))[[0, 1, -1]]),
        ("with beta = {}, an effective window of {} batches.",
         lambda: (default(A.smoothed, "beta"), 1 / squared_shares(default(A.smoothed, "beta")))),
        ("each coordinate of its first step was {} lr, or", first_of_rmsprop),
        ("lr sqrt(257) = {}. Without it the step is {} times as long.",
         lambda: (0.1 * np.sqrt(sum(sizes(A.weights()))), A.excess(1)[0])),
        ("If no slope is 0, all {} coordinates move so,", lambda: sum(sizes(A.weights()))),
        ("At step {} it is *ahead*, and at step {} it is behind.", ahead_and_behind),
        ("At step {} the two dots lie close together, and the word above them says", lambda: ahead_and_behind()[0]),
        ("One row of {} point numbers for each step; X[order] is (steps, {}, {}).",
         lambda: (A.batches().shape[1], *A.spiral()[0][A.batches()].shape[1:]))],
    "race": [
        ("## 8. {} rates, {} seeds", lambda: (len(A.RATES), default(A.race, "seeds"))),
        ("Here are more of both: {} rates from {} to {}, and {} random seeds. That makes {} networks for each of the "
         "{} optimizers.", lambda: (len(A.RATES), A.RATES.min(), A.RATES.max(), default(A.race, "seeds"),
                                    len(A.RATES) * default(A.race, "seeds"), len(A.OPTIMIZERS))),
        ("would take {} times as long as one network.", lambda: len(A.RATES) * default(A.race, "seeds")),
        ("70 networks W1 is ({}, {}, {}, {}) a batch is ({}, {}, {}, {})",
         lambda: [7, 10, *A.weights()[0].shape, 7, 10, A.batches().shape[1], 2]),
        ("divides the slopes of each by {}.", lambda: len(A.RATES) * default(A.race, "seeds")),
        ("RATES[3] is {}.", lambda: A.RATES[3]),
        ("The first four rates are {} to {}, and RATES[5] is {}.", lambda: A.RATES[[0, 3, 5]]),
        ("RATES[4] is {}: from", lambda: A.RATES[4]),
        ("At {} they depend on the seed.", lambda: A.RATES[4]),
        ("At {}, the rate that Adam's paper suggests,", lambda: A.RATES[0]),
        ("Momentum was {} times as fast as SGD in the bowl", seven_times),
        ("left of it here is one more good rate, {}.", lambda: set(good("Momentum")) - set(good("SGD"))),
        ("span a factor of {} for RMSProp and Adam, and a factor of {} for Momentum, where {} is the end of our grid.",
         lambda: (wide("RMSProp"), wide("Momentum"), A.RATES.max())),
        ("span a factor of {} for RMSProp and Adam", lambda: wide("Adam")),
        ("For SGD there is {}.", lambda: len(good("SGD"))),
        ("each coordinate moves by about {} in a step, and in RMSProp's first step by {}.",
         lambda: (1.0, first_of_rmsprop()))],
    "trial": [
        ("So we plant {} faults in our own program, one at a time, and ask {} checks",
         lambda: (len(A.FAULTS), len(A.CHECKS))),
        ("the slope along a comes out as {} and not {},",
         lambda: (fault_of_product(), gradients(lambda a, b: a * b, 2.0, 3.0)[0])),
        ("There are {} kinds of faults,", lambda: len({fault.kind for fault in A.FAULTS.values()})),
        ("The first {} faults leave the engine alone,", lambda: kinds("program")),
        ("The next {} are ways to get `unbroadcast` wrong.", lambda: kinds("copies")),
        ("{} faults sit in one rule each.", lambda: kinds("rules")),
        ("The last {} are about the order of the reports,", lambda: kinds("order")),
        ("should hear their sum, {} {} {}.", lambda: summed(3)),
        ("The mean is {} {} {}, and the first entries are {} {} {}.",
         lambda: [*spoiled("mean_of_copies"), *spoiled("first_entries")]),
        ("an operand of shape (1, 3) hears {} {} {} in the shape ({},).",
         lambda: [*spoiled("lengths_of_1_lost", (1, 3)), 3]),
        ("and then x {} times. It takes y {} times.", visits),
        ("so x gets 6 + 114 + 114 = {} where {} is due.", every_path),
        ("Ours is chapter 7's, with {} hidden units, on {} of the 300 points.", judged_network),
        ("for all {} pairs of shapes. *Adam*", lambda: len(A.broadcast_pairs())),
        ("all words of the engine, {} with two operands", lambda: len(A.PAIRS)),
        ("so that all {} cotangents are 1.", lambda: A.cover(*A.LEAVES).data.size),
        ("{} faults slip through it. The other {} change a shape,",
         lambda: (slipped()["shapes"], len(A.FAULTS) - slipped()["shapes"])),
        ("{} faults slip through the check *network*: the {} of the program, to which we come, and {} others.",
         lambda: (slipped()["network"], len(A.OF_PROGRAM), slipped()["network"] - len(A.OF_PROGRAM))),
        ("Of the {} faults that change a slope, {} slip through *Adam*. {} of them touch what its program never does. "
         "The other {} train", lambda: (len(A.FAULTS) - len(A.OF_PROGRAM), slipped()["Adam"], never_tried(),
                                        slipped()["Adam"] - never_tried())),
        ("makes the slopes of the biases {} times too small.", lambda: smaller("mean_of_copies", 1, 3)),
        ("makes the slopes of all parameters {} times too large.",
         lambda: 1 / smaller("mean_without_n", 0, 1, 2, 3)),
        ("learn from one point of {}.", lambda: A.batches().shape[1]),
        ("Its rate of {} was too small, as chapter 8 found, and the fault makes it {}.",
         lambda: (default(A.train, "lr"), default(A.train, "lr") / smaller("mean_without_n", 0))),
        ("the seed of `gradcheck` is 1 + sin(0)/2 = {}.", lambda: A.ask(lambda w: w * 1, [Tensor([1.0])])[1]),
        ("For such an engine h is {}, as in the list of chapter 5, and tol is a {},",
         lambda: A.nudge_for(float32, A.uneven(()))),
        ("{} programs try the pass itself:", lambda: len(A.pass_programs(A.uneven(()))))],
    "break": [
        ("one thing at a time, {} times in all,", lambda: len(A.BREAKAGES)),
        ("A measurement has {} parts:", lambda: len(A.Measurement._fields)),
        ("{} of the {} made a score better.", lambda: (made_better(), len(A.BREAKAGES))),
        ("A guess would pay log 2 = {} a point.", first_loss_of_guess),
        ("half of its points wrong, at {} each, and pays {}; the", lambda: (ceiling(), ceiling() / 2)),
        ("moves nearly every number by {}, and RMSProp's by {}, where",
         lambda: (adam_by_hand()[0][-1], first_of_rmsprop())),
        ("with steps of {} each of the {} steps is", lambda: (1, default(A.five, "steps"))),
        ("Adam's first step is {} times as long as with it, and its twelfth {} times,",
         lambda: (A.excess(1)[0], A.excess(12)[11])),
        ("At step 50 they are still {} times too long,", lambda: A.excess(50)[-1]),
        ("g^2 falls to half in {} steps,", lambda: half_life(0.9999)),
        ("takes {} steps to forget a half.", lambda: half_life(0.9999)),
        ("(1 - 0.9) / sqrt(1 - 0.9999) = {} times too long. And since v fills so slowly, even the last step is {} "
         "times too long.", lambda: A.excess(400, beta2=0.9999)[[0, -1]]),
        ("error, which must be below {}. An error", lambda: default(A.gradcheck, "tol")),
        ("Its slope is (1 + 18) * 6 = {}.", lambda: of_y_and_x()[3]),
        ("and passes on 1 * 6 where {} * 6 was due.", lambda: of_y_and_x()[1]),
        ("x * x sends two reports of {}, and",
         lambda: [rule(1.0) for _, _, rule in (Tensor(3.0) * Tensor(3.0)).edges][0]),
        ("The network begins with {} numbers.", lambda: sum(sizes(A.weights()))),
        ("The bias b1 becomes an array of shape ({}, {}), and b2 one of shape ({}, {}).",
         lambda: [*grown()[1], *grown()[3]]),
        ("We get {} + {}, the slope of a y", lambda: [edited() / 2] * 2),
        ("a nudge of 1e-5? Is a nudge of 5e-3, {} times as large,", lambda: 5e-3 / default(A.numerical_grad, "h")),
        ("Is a nudge of {}, 500 times", lambda: A.nudge_for(float32, A.uneven(()))[0]),
        ("Of {} digits, a step of 1e-5", single_digits),
        ("which are numbers of about {} digits.", single_digits),
        ("The tolerance of gradcheck wants {},", lambda: -np.log10(default(A.gradcheck, "tol"))),
        ("h^2 = {} / h, near {}.", lambda: (np.finfo(np.float32).eps, np.finfo(np.float32).eps ** (1 / 3))),
        ("(1e-6 + 1e-5) / 2e-5 = {}.", lambda: A.numerical_grad(A.positive, 1e-6)),
        ("below the true one, {}.)", lambda: 1 - A.numerical_grad(A.positive, 1e-6)),
        ("at least {low}, where \" \"{} is allowed", lambda: default(A.gradcheck, "tol"))],
    "frameworks": [
        ("d moves by {} da + {} db:", lambda: gradients(lambda a, b: a * b, 2.0, 3.0)),
        ("of a cotangent g, a gets {} g and b gets {} g.", lambda: gradients(lambda a, b: a * b, 2.0, 3.0)),
        ("The {} Tensors are {} leaves and {} results.", leaves_and_results),
        ("and the loss, with {}, {}, {}, {}, {} and {} edges.", edges_of_step),
        ("so there are {} calls.", lambda: step_cost()[1]),
        ("A product of eleven numbers has {} products, and {} with all its slopes.", eleven),
        ("So eleven slopes cost as much as {} more evaluations, where nudges would take {}.",
         lambda: (eleven()[1] / eleven()[0] - 1, calls_of(np.zeros(11)))),
        ("For the {} slopes of chapter 7 they take {}.",
         lambda: (sum(sizes(A.weights())), sum(calls_of(p) for p in A.weights()))),
        ("In the table {} points leave {} bytes behind, and all {} parameters have {} bytes.",
         lambda: (32, step_cost()[2], sum(sizes(A.weights())), bytes_of_weights())),
        ("they take {} bytes a parameter, and 7e9 parameters make {} GB, or {} GiB", step_of_two_parts),
        ("they take {} bytes a parameter, and 7e9 parameters make {} GB, or {} GiB",
         lambda: (8, *A.gigabytes(7e9, 8))),
        ("6.74e9 parameters, and they make {} GB.", lambda: A.gigabytes(6.74e9, 8)[0]),
        ('LLaMA\'s "7B" has {} parameters', lambda: 2 * 32000 * 4096 + 32 * (4 * 4096 ** 2 + 3 * 4096 * 11008 + 2 * 4096) + 4096),
        ("One byte has {} values, say the whole numbers from {} to {},",
         lambda: (2 ** 8, *np.round(A.in_a_byte(np.array([-5.0, 0.3, 5.0])) * 127 / 5)[[0, 2]])),
        ("With 8 bits a {} of the 56 GB is left.", lambda: 56 / A.gigabytes(7e9, 2 + 8 / 2048)[0]),
        ("Without one the longest step is {} lr, and with one of {} steps it is {} lr.",
         lambda: (A.excess(2000).max(), 2000, A.warmed_up(2000).max())),
        ("with {} steps of warm-up the longest step is {} lr.", lambda: (100, A.warmed_up(100).max())),
        ("step 12 has the length {} lr where {} lr is right, and is still {} times too long.", twelfth_in_warm_up),
        ("12/2000 lr = {} lr with correction.", lambda: 12 / 2000),
        ("Then r begins at {}, as chapter 6 found,", lambda: A.excess(1, beta2=0.95)),
        ("a hundred steps of 0.01 would arrive at {}.", lambda: 1 - 100 * 0.01),
        ("takes {} of w in a step. In the paper's form the number for that is {}.", of_w_in_a_step),
        ("S (1, 1) = ({}, {}) 0.99 1.00 S (1, -1) = ({}, {})", lambda: flattened(S @ [1, 1], S @ [1, -1])),
        ("It makes the first {} times as long, and the second {} times.", lambda: np.linalg.svd(S)[1]),
        ("The factors {} and {} are the *singular values* of S.", lambda: np.linalg.svd(S)[1]),
        ("{} m - {} (m m') m + {} (m m')^2 m", signs_of_muon),
        ("{} s - {} s^3 + {} s^5", signs_of_muon),
        ("by a factor of {} in a round.", lambda: A.one_round(1e-6) / 1e-6),
        ("between 0.002 and 1 ends between {} and {}.", least_and_most),
        ("The singular values differed by a factor of {}, and",
         lambda: np.divide(*map(float, read("stretch = np.array([{}, 0.5, 0.1, {}])")))),
        ("### {} things to read", lambda: len(re.findall(r"(?m)^# \*(?:%s)\.\*$" % "|".join(WORDS).title(), SOURCE)))],
    "exercises": [
        ("{} exercises ask for a number, and {} for code.", lambda: (len(A.NUMBERS), len(A.PROGRAMS))),
        ("At -1 the liar says {} where the nudge finds {}.", lambda: (liar().found[1], liar().nudged[1]))],
}


def fault_of_product():
    with A.planted("product_operand"):
        return gradients(lambda a, b: a * b, 2.0, 3.0)[0]


def edited():
    x = Tensor(3.0)
    y = x * x
    x.data *= 10
    y.backward()
    return x.grad


# (fragment of a sentence, fragment of the code that asserts or sets the same, and by what to multiply)
ASSERTED = [
    # nudge
    ("the curve e^x sin(x), at {} points from 0 to 1.", "x = np.linspace(0, 1, {}) errors"),
    ("nothing cancels, and h may be {}.", 'assert max(nudge_errors([{}])["complex"])'),
    ('["forward", "1e-07 or 1e-08", "{}"]', "assert min(forward) < {}"),
    ('["central", "1e-05", "{}"]', "assert min(central) < {}"),
    ('["complex", "from 1e-08 down", "{}"]', 'assert max(errors["complex"][7:]) < {}'),
    # unbroadcast
    ("Rounding leaves gaps below {},", "assert adjoint_gaps().max() < {}"),
    ("What is above {} is more than rounding.", "fails = adjoint_gaps(reduce=averaged_copies) > {}"),
    # rules
    ("from a logit that is right ({}) to one that is so wrong that p rounds to 1 ({}).",
     "z = np.array([{}, 0.0, 10.0, 18.42, 25.0, {}])"),
    ("at z = {} for class 1 it is e^-40,", "for z, y in [({}, 1.0)"),
    ("for class 1 it is e^-{}, and its slope", "tiny = np.exp(-{}) assert abs(loss.data - tiny)"),
    ("A common patch adds {} inside the logarithm.", "log_p = (p + {}).log() log_rest"),
    ("A common patch adds {} inside the logarithm.", "log_rest = (1 - p + {}).log() return"),
    # gradcheck
    ('nudged[i]:.5f}", "{}"])', "assert gap < {} * abs(nudged[i])"),
    ("noise = {} |nudged - halved| + {} r", "noise = {} * abs(nudged - halved) + {} * r"),
    ("which is {} units in the last place.", "u = {} * np.finfo(float).eps r ="),
    ("The worst error of the network is below {},", "assert 1e-9 < worst < {}"),
    ("and yet it is more than {}. Agreement", "assert {} < worst < 1e-6"),
    ("by complex steps the engine is right to {} digits", "exact, rtol=1e-{}, atol=0)"),
    ("The liar's has the relative error {}, printed", "assert abs(lie.rows[0].relative - {}) < 0.01"),
    # optimizers
    ("The small number eps, {}, keeps", "beta=0.99, eps={}): super"),
    ("The small number eps, {}, keeps", "beta2=0.999, eps={}, bias_correction"),
    ("It needs less than a {} of the steps.", "assert fast < slow / {}"),
    ("(Tieleman and Hinton, 2012, with beta 0.9; {} is PyTorch's)", "def __init__(self, params, lr, beta={}, eps"),
    # spiral
    ("has the angle {} pi u and the distance {} u from the middle,", "angle, radius = {} * np.pi * u, {} * u"),
    ("Every tenth of the last {} steps.", "max(steps - {}, 0), -10)"),
    ("every tenth of the last {}. make_data:", "max(steps - {}, 0), -10)"),
    ("accuracy at the end above {}\")", "assert end[1] > {}"),
    ("learned by heart: loss below {}\")", "assert by_heart[0] < {}"),
    ("on their own, within {} percentage points:", "assert abs(final[name] - elsewhere[name]) < {}", 0.01),
    ("SGD is slow, not unable, as its {} steps show.", "patient = train(SGD, steps={}).final()"),
    ("PyTorch's momentum at lr {} should be", "theirs = train(SummedMomentum, lr={}, steps=200)"),
    ("should be ours at lr {}. And Adam", "ours = train(Momentum, lr={}, steps=200)"),
    ("So multiplying the loss by {} should", "eps=1e-30, scale={})"),
    ("should take steps that are {} times longer.", "sgd_1000 = train(SGD, steps=50, scale={})"),
    ("the loss of the uncorrected run is more than {} that", "assert uncorrected[0] > {} * corrected[0]"),
    # race
    ("each end of a range is more than {} points of the 300 away", "assert room(shares[i]) > {} / 300"),
    ("At 0.1 SGD and Momentum are below {} with every seed,",
     "assert max(sgd[:4].max(), momentum[:4].max()) < {}"),
    ("with every seed, and the other two are above {}. At 1", "with_every_seed = (shares > {}).all(axis=1)"),
    ("At 1 SGD and Momentum are above {} with every seed,", "with_every_seed = (shares > {}).all(axis=1)"),
    ("more than half of the seeds are below {}.", "np.median(adam[5])) < {}"),
    ("each of the four is above {} with every seed.", "with_every_seed = (shares > {}).all(axis=1)"),
    ('"above {} with every seed at"', "with_every_seed = (shares > {}).all(axis=1)"),
    ("RMSProp and Adam stay below {} with every seed.", "assert max(rmsprop[0].max(), adam[0].max()) < {}"),
    ("two rates and two random seeds, after {} steps of SGD,", "train_many(SGD, [3, 4], two_rates, steps={}).model"),
    ("We train three networks with each for {} steps.", "losses = train(Adam, seed, steps={}, beta1=beta1)"),
    ("the loss jumps more than {} times as far,", "assert np.all(jumps_0 > {} * jumps_9)"),
    ("the loss itself is also more than {} times as high,", "assert np.all(means_0 > {} * means_9)"),
    # trial
    ("In {} steps it should come to more than 85%", "train(optimizer, lr=lr, steps={}).final() return"),
    ('Accuracy after {} steps with the patched loss."""', "train(optimizer, lr=lr, steps={}).final() return"),
    ("it should come to more than {} of the points right,", "return trained(Adam) > {}"),
    ("by the median over the last {} steps.", "max(steps - {}, 0), -10)"),
    ("{} faults slip through it. The other", 'assert len(slipped(verdicts, "shapes")) == {}'),
    ("raised the score by more than {} percentage points.", "assert helped > honest + {}", 0.01),
    ("and a chain of {} sums, which", "for step in range({}): y = y + x"),
    # break
    ("after 1 step, after {}, and at the end of 500?", "keep=[1, {}], **settings)"),
    ("and at the end of {}?\"\"\"", "def five(optimizer, lr=0.1, steps={}, **settings)"),
    ("We train with a rate of {} in place of 0.1.", "def measure(self, lr={}):"),
    ("keeps the networks as they were after steps {} and {}.",
     "keep=[{}, {}], **settings)"),
    ("both ends of a range print alike, as {} and {} with two decimals,",
     "excess(400, beta2=0.9999)[-1], {}, {})]"),
    ("Adam runs for {} steps with beta2 = {}, whose", "run, corrected = five(Adam, steps={}, beta2={})"),
    ("Our run has {} steps.", "run, corrected = five(Adam, steps={}, beta2=0.9999)"),
    ("we take {} steps p = p - g on all", "def descend(steps={}):"),
    ("We let `descend` take {} such steps", "def descend(steps={}):"),
    ("suffer, in {} steps at a rate of 0.1?", "run, sgd = five(SGD, steps={})"),
    ("suffer, in {} steps at a rate of 0.1?", "run, adam = five(Adam, steps={})"),
    ("a tolerance of {}.\"\"\"", 'Measurement("by 5e-3: at most {high}", error(5e-3), 0.0, {})]'),
    ("SGD got at least {} of the points more,", '"clearing", sgd - honest, {}, 1.0)'),
    ("the network got at least {} more,", "by_heart - honest, {}, 1.0)"),
    ("after {} steps of RMSProp.\"\"\"", "run = train_many(RMSProp, FIVE, lr, steps={})"),
    # frameworks
    ("The blocks of the paper have {} numbers.", '"m and v, 8 bits, blocks of 2048": 1 + 1 + 8 / {},'),
    ("which is 8 / {} bytes a parameter.", '"m and v, 8 bits, blocks of 2048": 1 + 1 + 8 / {},'),
    ("has blocks of {} by now", '"m and v, 8 bits, blocks of 256": 1 + 1 + 8 / {},'),
    ("never exceeds {}, so no step", "assert excess(2000, beta2=0.95).max() < {}"),
    ("by a factor of 100, and now by less than {}.", "assert ends.max() < {} * ends.min()"),
    ("what lies between {} and {} ends between 0.68 and 1.21.", "tried = np.linspace({}, {}, 10000) for"),
    ("ends between {} and {}. What is smaller", "assert {} < tried.min() < tried.max() < {}"),
    ("stays between {} and {}. The result", "assert {} < ends.min() < ends.max() < {}"),
    ("an s between {} and {} stays", "there = one_round(np.linspace({}, {}, 10000))"),
    # exercises
    ("and everything else within {} percent.", "tolerance = {} if right", 0.01),
]

# (fragment of a sentence, fragment of what the story prints)
SHOWN = [
    ("a little better than the line, which had {}.", "a line: {} of the points on the right side"),
    ("{} ok, {} WRONG, {} raises, {} not there", "{} ok, {} WRONG, {} raises, {} not there"),
    ("u * v, twice: WRONG {}, nudged {}", "u * v, twice: WRONG {}, nudged {}"),
    ("In x * x at x = 1.5 the engine has the slope {}, and by the nudge it is {}.",
     "u * v, twice: WRONG {}, nudged {}"),
    ("{} programs are right, those with + and *", "{} ok, 6 WRONG"),
]


ROWS_OF = [(chapter, row) for chapter, rows in COMPUTED.items() for row in rows]


@pytest.mark.parametrize("chapter, row", ROWS_OF, ids=[f"{chapter}: {row[0][:60]}" for chapter, row in ROWS_OF])
def test_a_number_in_a_sentence_is_the_machine_s(chapter, row):
    template, compute, *near = row
    told = read(template)
    found = compute()
    found = np.ravel(list(found) if isinstance(found, (list, tuple, set)) else found).astype(float)
    assert len(told) == len(found)
    wrong = [(said, number) for said, number in zip(told, found) if not agree(said, number, *near)]
    assert not wrong, f"{template}: {wrong}"


def test_the_bytes_of_a_parameter_add_up():
    *parts, together = [number(told)[0] for told in read(
        "{} the parameter, as the model computes with it {} its slope {} the copy {} m and v and {} bytes together")]
    assert sum(parts) == together and parts[-1] == float(read("m and v, 4-byte numbers {} ", GOLDEN)[0])


def same(one, other, factor=1.0):
    assert len(one) == len(other) > 0
    for a, b in zip(one, other):
        assert number(a)[0] * factor == pytest.approx(number(b)[0], rel=1e-9), (a, b)


@pytest.mark.parametrize("row", ASSERTED, ids=[row[0][:60] for row in ASSERTED])
def test_a_number_in_a_sentence_is_the_one_that_is_asserted(row):
    sentence, code, *factor = row
    same(read(sentence), read(code), *factor)


@pytest.mark.parametrize("sentence, printed", SHOWN, ids=[sentence[:60] for sentence, printed in SHOWN])
def test_a_number_in_a_sentence_is_the_one_that_is_printed(sentence, printed):
    same(read(sentence), read(printed, GOLDEN))


def test_the_bounds_of_the_four_optimizers_are_close_to_what_is_printed():
    """A bound that holds far away from the accuracies in the table would say nothing about them."""
    rows = {name: float(re.search(rf"{name} +0\.[06]5 +(\d+)%", GOLDEN)[1]) / 100
            for name in ("SGD", "Momentum", "RMSProp", "Adam")}
    [high] = read('assert max(final["SGD"], final["Momentum"]) < {}', flat(SOURCE))
    [low] = read('assert min(final["RMSProp"], final["Adam"]) > {}', flat(SOURCE))
    assert 0 < float(high) - max(rows["SGD"], rows["Momentum"]) < 0.06
    assert 0 < min(rows["RMSProp"], rows["Adam"]) - float(low) < 0.06


@pytest.mark.parametrize("way, place", [("times lr", 1), ("by itself", 2)])
def test_a_formula_of_decay_leaves_what_is_left(way, place):
    """The factors between the minus and w, with the schedule at 1, in 100 steps from 1."""
    left = A.decayed()[place]
    [factors] = set(re.findall(rf"{way} +w <- w - ([a-z ]+) w,", TEXT))
    given = {"eta": 1.0, "lr": 0.001, "decay": 0.001}
    assert (1 - np.prod([given[name] for name in factors.split()])) ** 100 == pytest.approx(left, rel=1e-9)


@pytest.mark.parametrize("name", ["matmul_no_transpose", "matmul_wrong_transpose"])
def test_a_fault_of_the_product_tells_what_its_line_says(name):
    said, right = re.search(r"is told (.+?), not (.+?)\.", A.FAULTS[name].function.__doc__).groups()
    rng = np.random.default_rng(1986)
    X, W, g = rng.standard_normal((3, 2, 2))
    arrays = {"X": X, "W": W, "g": g, "X'": X.T, "W'": W.T, "g'": g.T}
    u, v = Tensor(X), Tensor(W)
    with A.planted(name):
        (u @ v).backward(g)
    operand = {"left": u, "right": v}[A.FAULTS[name].function.__doc__.split()[1]]
    a, b = said.split()
    assert np.allclose(operand.grad, arrays[a] @ arrays[b])
    a, b = right.split()
    u.grad = v.grad = None
    (u @ v).backward(g)
    assert np.allclose(operand.grad, arrays[a] @ arrays[b])
