"""Chapter 11: the price of a step, the optimizer's memory, warm-up, decay and Muon."""
import numpy as np
import pytest

from anatomy import (MLP, Adam, Tensor, bce_with_logits, cost_of_step, decayed, excess, gigabytes, in_a_byte, near_one,
                     numerical_grad, one_round, spiral, warmed_up, weights)


def counted(size):
    """Rule calls of one backward pass, by wrapping every rule."""
    calls = []
    X, y = (a[:size] for a in spiral())
    nodes = [bce_with_logits(MLP(*weights())(X), y)]
    for node in nodes:
        nodes += [a for a, _, _ in node.edges if a not in nodes]

    def wrapped(rule):
        return lambda g: (calls.append(rule), rule(g))[1]
    for node in nodes:
        node.edges = [(a, shape, wrapped(rule)) for a, shape, rule in node.edges]
    nodes[0].backward()
    return len(calls)


@pytest.mark.parametrize("size", (1, 32, 300))
def test_the_ledger_counts_what_backward_calls(size):
    nodes, calls, _ = cost_of_step(size)
    assert (nodes, calls) == (10, 9) and calls == counted(size)


def test_bytes_grow_with_the_batch():
    # three results of 64 numbers a point, two of one, and the loss
    for size in (1, 32, 300):
        assert cost_of_step(size)[2] == 8 * (size * (3 * 64 + 2) + 1)


class Counting(float):
    """A float that counts the operations it takes part in."""
    shape = ()
    done = {"*": 0, "+": 0}

    def __mul__(self, other):
        self.done["*"] += 1
        return Counting(float(self) * float(other))

    def __add__(self, other):
        self.done["+"] += 1
        return Counting(float(self) + float(other))


@pytest.mark.parametrize("program", [
    lambda a, b, c: a * b * c, lambda a, b, c: a * a * a * a, lambda a, b, c: a + a + a,
    lambda a, b, c: (a + b) * (b + c) * (c + a)], ids=["three", "power", "sum", "mixed"])
def test_a_gradient_costs_at_most_five_values(program):
    """By a pass over numbers that count; the ledger's first report is no addition."""
    Counting.done = {"*": 0, "+": 0}
    program(*map(Counting, (2.0, 3.0, 5.0)))
    value = dict(Counting.done)
    leaves = [Tensor(x) for x in (2.0, 3.0, 5.0)]
    for leaf in leaves:
        leaf.data = Counting(leaf.data)
    # every Tensor made from here on holds counting numbers, and so does the ledger
    Counting.done = {"*": 0, "+": 0}
    y = program(*leaves)
    order, todo, ledger = [], [y], {y: Counting(1.0)}
    while todo:
        node = max(todo, key=lambda n: n.born)
        todo.remove(node)
        order.append(node)
        for a, _, rule in node.edges:
            report = rule(ledger[node])
            ledger[a] = ledger[a] + report if a in ledger else report
            if a.edges and a not in todo:
                todo.append(a)
    both = Counting.done
    assert both["*"] <= 3 * value["*"]
    assert 0 < both["*"] + both["+"] <= 5 * (value["*"] + value["+"])
    assert [float(ledger.get(leaf, 0)) for leaf in leaves] == pytest.approx(
        numerical_grad(lambda x: program(*x), np.array([2.0, 3.0, 5.0])), abs=1e-6)


def test_memory():
    """Arithmetic, with whole bytes: 7e9 parameters, and blocks of 2048."""
    assert gigabytes(7_000_000_000, 8) == (56.0, pytest.approx(56e9 / 1024 ** 3))
    assert gigabytes(2048, 2 + 8 / 2048)[0] * 1e9 == pytest.approx(2 * 2048 + 2 * 4)
    assert f"{gigabytes(6.74e9, 8)[0]:.1f}" == "53.9"


def test_a_byte_keeps_the_largest_and_errs_by_half_a_unit():
    rng = np.random.default_rng(0)
    for size in (1, 3, 100, 2048):
        block = rng.standard_normal(size) * 10.0 ** rng.integers(-3, 3)
        kept, largest = in_a_byte(block), abs(block).max()
        assert abs(kept).max() == pytest.approx(largest)
        assert np.all(abs(kept - block) <= largest / 254 * (1 + 1e-9))


def test_a_byte_has_no_more_values():
    assert len(np.unique(in_a_byte(np.linspace(-3, 3, 10001)))) == 2 * 127 + 1 < 256


def test_a_large_number_spoils_its_block_alone():
    numbers = np.random.default_rng(1).uniform(0.1, 1, 4096)
    numbers[0] = 1000.0
    one = in_a_byte(numbers)
    blocks = np.concatenate([in_a_byte(block) for block in numbers.reshape(2, 2048)])
    assert np.sum(one == 0) == 4095
    assert np.sum(blocks == 0) == 2047


@pytest.mark.parametrize("beta2", (0.95, 0.99, 0.999))
@pytest.mark.parametrize("n", (12, 100, 2000))
def test_a_warm_up_by_its_formula(n, beta2):
    t = np.arange(1, n + 1)
    formula = t / n * (1 - 0.9 ** t) / np.sqrt(1 - beta2 ** t)
    assert warmed_up(n, beta2) == pytest.approx(formula, rel=1e-9)


def test_the_longest_step_of_a_warm_up_is_its_last():
    """With the steps after it, for which the rate stays at lr."""
    for n, longest in ((100, 3.24), (500, 1.59), (2000, 1.08)):
        whole = np.concatenate([warmed_up(n), excess(n + 3000)[n:]])
        assert np.argmax(whole) + 1 == n
        assert whole.max() == pytest.approx(longest, abs=0.005)


def test_uncorrected_steps_of_adam_in_a_warm_up():
    """The optimizer itself, fed with random slopes, takes steps of that length."""
    rng, n = np.random.default_rng(3), 30
    right, wrong = (Adam([Tensor(0.0)], 1.0, eps=0.0, bias_correction=on) for on in (True, False))
    for length, t in zip(warmed_up(n), range(1, n + 1)):
        g = rng.standard_normal()
        steps = []
        for adam in (right, wrong):
            adam.lr = t / n
            before = adam.params[0].data
            adam.params[0].grad = g
            adam.step()
            steps.append(adam.params[0].data - before)
        assert steps[1] * (t / n) == pytest.approx(steps[0] * length, rel=1e-9)


def test_both_forms_of_adamw_decay_by_their_rate():
    for steps, lr, decay in ((100, 0.1, 0.01), (7, 0.5, 0.2), (0, 1.0, 1.0)):
        _, times_lr, by_itself = decayed(steps, lr, decay)
        assert times_lr == pytest.approx((1 - lr * decay) ** steps, rel=1e-12)
        assert by_itself == pytest.approx((1 - decay) ** steps, rel=1e-12)
    assert f"{decayed(100, 0.1, 0.01)[1]:.4f}" == "0.9048"


def test_an_l2_penalty_is_divided_by_its_own_size():
    for decay in (1e-4, 1e-2, 1.0):
        for lr in (0.1, 0.01):
            assert decayed(1, lr, decay)[0] == pytest.approx(1 - lr, abs=1e-4 * lr * 1.1)


def test_adam_keeps_two_numbers_for_each_parameter():
    model = MLP(*weights())
    adam = Adam(model.params, 0.1)
    X, y = spiral()
    bce_with_logits(model(X), y).backward()
    adam.step()
    assert sum(average.value.size for memory in adam.memories for average in memory) == 2 * 257


def test_with_the_beta2_of_language_models_the_first_step_is_short():
    assert excess(1, beta2=0.95)[0] == pytest.approx(0.1 / np.sqrt(0.05))
    assert 1 < excess(500, beta2=0.95).max() < 1.1


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (4, 2), (2, 7), (40, 30)])
def test_muon_turns_no_direction_and_brings_all_lengths_near_one(shape):
    """Against numpy's own decomposition."""
    m = np.random.default_rng(5).standard_normal(shape)
    U, s, Vt = np.linalg.svd(m, full_matrices=False)
    s = s / np.linalg.norm(m)
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s ** 3 + 2.0315 * s ** 5
    assert near_one(m) == pytest.approx(U * s @ Vt, abs=1e-9)
    assert np.all((0.68 < s) & (s < 1.21))
    assert near_one(1e6 * m) == pytest.approx(near_one(m), abs=1e-9)


def test_the_lowest_and_the_highest_value_of_a_round():
    """Where its slope, a + 3 b s^2 + 5 c s^4, is 0."""
    low, high = sorted(root ** 0.5 for root in np.roots([5 * 2.0315, 3 * -4.7750, 3.4445]))
    assert one_round(low) == pytest.approx(1.2024, abs=1e-4)
    assert one_round(high) == pytest.approx(0.6818, abs=1e-4)
    assert one_round(1e-9) == pytest.approx(3.4445e-9)
