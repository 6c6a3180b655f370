"""Chapter 12: every exercise takes right answers, refuses wrong ones, and says why."""
import ast
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import anatomy
from anatomy import (FAULTS, LEAVES, NUMBERS, PROGRAMS, REASONS, SOLUTIONS, Adam, AdamW, DeepMLP, Fault, Momentum,
                     Nesterov, Tensor, absolute, binary, check, cover, elementwise, logsumexp, maximum, softplus)
from conftest import ROOT, python, story, surroundings
from reading import GOLDEN, GOLDEN_LINES, number, read, told

# name: (right, wrong, wrong); worked out by hand, with the reader's mistakes
CASES = {
    "nudge.1": (0.09, 0.0, 0.3),
    "nudge.2": (2020, 1010, 2000),
    "engine.1": ((7, 2), (2, 2), (5, 2)),
    "engine.2": (12, 4, 24),
    "unbroadcast.1": (8, 24, 4),
    "unbroadcast.2": (0.8, 0.2, 4),
    "rules.1": ([0.5, 0.5, -0.5, -0.5], [0, 0, 0, 0], [0.75, 0.75, -0.25, -0.25]),
    # e^-20 is 2.06e-9, and 2.06 / (2.06 + 10) is 0.171
    "rules.2": (0.171, 1, 0),
    "gradcheck.1": (1.5, 0.5, 2),
    "gradcheck.2": (False, True, 0.5),
    "optimizers.1": (1, 3.16, 10),
    "optimizers.2": (69, 68, 50),
    "spiral.1": (41, 31, 40),
    # log(1 + e^3) is 3.0486
    "spiral.2": (1.5486, 3.0486, 0.693),
    "race.1": (0.01, 0.1, 1),
    "race.2": (1, 0.1, 0.01),
    "trial.1": ((0, 0, 0), (1, 1, 1), (0.25, 0.25, 0.25)),
    "trial.2": (1024, 32, 64),
    "break.1": (9.21, 18.42, 25),
    "break.2": (0.75, 1, 0.5),
}


# Numbers

def test_every_exercise_has_a_case():
    assert list(CASES) == list(NUMBERS)
    assert set(SOLUTIONS) == set(PROGRAMS) == set(OTHERS) == set(WRONG) and len(PROGRAMS) == 10
    chapters = [name.split(".")[0] for name in NUMBERS]
    assert list(dict.fromkeys(chapters)) == [c for c in anatomy.CHAPTERS[:-2] if c != "frameworks"]
    assert all(chapters.count(c) == 2 for c in chapters)
    for chapter in chapters:
        numbers = sorted(int(name.split(".")[1]) for name in NUMBERS | PROGRAMS if name.split(".")[0] == chapter)
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("name", CASES)
def test_right_is_right(name, capsys):
    assert check(name, CASES[name][0]) is True
    assert capsys.readouterr().out == "right\n"


@pytest.mark.parametrize("name", CASES)
def test_wrong_is_wrong_and_hinted(name, capsys):
    for wrong in CASES[name][1:]:
        assert check(name, wrong) is False
        assert capsys.readouterr().out == f"not yet. The value is wrong.\nHint: {NUMBERS[name].hint}\n"


@pytest.mark.parametrize("name", NUMBERS | PROGRAMS)
def test_a_hint_asks_and_does_not_tell(name):
    question, hint, function = (NUMBERS | PROGRAMS)[name]
    assert hint.endswith(("?", ".")) and "\n" not in hint and len(hint) <= 70
    if name in NUMBERS:
        assert question.endswith("?") or name == "gradcheck.2"
        told = [float(number) for number in re.findall(r"-?\d+\.?\d*", hint)]
        assert not set(told) & set(np.atleast_1d(np.asarray(function(), float)).round(3))


@pytest.mark.parametrize("name", NUMBERS)
def test_an_answer_is_fast(name):
    start = time.process_time()
    NUMBERS[name].function()
    assert time.process_time() - start < 0.3


@pytest.mark.parametrize("answer", (
    (7, 2), [7.0, 2.0], np.array([7, 2]), (7.001, 1.999), Tensor([7, 2]),
    (np.float32(7), np.int64(2))))
def test_answers_come_in_many_forms(answer):
    assert check("engine.1", answer)


NONSENSE = ("seven", None, [[7], [2, 1]], 7, (7, 2, 0), [[7, 2]], {}, 7j, np.nan, (np.nan, 2), (np.inf, 2), (),
            10 ** 400, object(), Tensor, len)


@pytest.mark.parametrize("answer", NONSENSE, ids=lambda answer: repr(answer)[:20])
def test_nonsense_is_not_right_and_does_not_raise(answer):
    for name in NUMBERS | PROGRAMS:
        assert check(name, answer) is False


def test_what_has_another_shape_is_told_so(capsys):
    assert not check("engine.1", 7)
    assert "An answer of shape (2,) is wanted." in capsys.readouterr().out


def test_counts_are_exact_and_measures_are_not():
    assert not check("nudge.2", 2021) and check("nudge.2", 2020.0)
    assert check("optimizers.1", 1.005) and not check("optimizers.1", 1.02)


@pytest.mark.parametrize("typo", (
    "nudge", "nudge.3", "nudge_1", "", None, 7, ["a"], {}, np.ones(2)), ids=repr)
def test_a_typo_is_told_the_names(typo):
    with pytest.raises(ValueError, match="nudge.1, nudge.2, engine.1.*race.3, trial.3"):
        check(typo, 0)


# Programs: other solutions that are as good. Those of the file use words of the
# engine where these have rules of their own, and the other way around.

def triangle(x):
    return np.tril(np.ones((x.data.size, x.data.size))) @ x


def signed(x):
    return Tensor(abs(x.data), (x, lambda g: g * np.sign(x.data)))


def chosen(a, b):
    share = (np.sign(a.data - b.data) + 1) / 2
    return Tensor(np.maximum(a.data, b.data), (a, lambda g: g * share), (b, lambda g: g * (1 - share)))


def softmax(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def softmax_rule(x):
    largest = x.data.max(axis=-1)
    out = largest + np.log(np.exp(x.data - largest[..., None]).sum(axis=-1))
    return Tensor(out, (x, lambda g: g[..., None] * softmax(x.data)))


def p_minus_y(z, labels, divide=True):
    n = len(labels)
    slopes = softmax(z.data)
    slopes[np.arange(n), labels] -= 1
    costs = softmax_rule(z).data - z.data[np.arange(n), labels]
    return Tensor(costs.mean(), (z, lambda g: g * slopes / (n if divide else 1)))


class PlainAdamW:
    """No Optimizer below it; L2 adds the decay to g, the others misplace it."""
    def __init__(self, params, lr, decay, form="right"):
        self.params, self.lr, self.decay, self.form, self.t = params, lr, decay, form, 0
        self.m, self.v = [0.0 for p in params], [0.0 for p in params]

    def step(self):
        self.t += 1
        for i, p in enumerate(self.params):
            decay, g = self.decay * p.data, p.grad
            if self.form == "L2":
                g = g + decay
            self.m[i] = 0.9 * self.m[i] + 0.1 * g
            self.v[i] = 0.999 * self.v[i] + 0.001 * g * g
            m, v = self.m[i] / (1 - 0.9 ** self.t), self.v[i] / (1 - 0.999 ** self.t)
            moved = p.data - self.lr * m / (np.sqrt(v) + 1e-8)
            shares = {"right": self.lr * decay, "L2": 0, "no lr": decay, "late": self.lr * self.decay * moved}
            p.data = moved - shares[self.form]


class PlainNesterov:
    def __init__(self, params, lr, beta, scale=True):
        self.params, self.lr, self.beta = params, lr * (1 - beta) if scale else lr, beta
        self.u = [0.0 for p in params]

    def step(self):
        for i, p in enumerate(self.params):
            self.u[i] = self.beta * self.u[i] + p.grad
            p.data = p.data - self.lr * (p.grad + self.beta * self.u[i])


def deep(*arrays, bias=True, relu=True, own=True):
    """A function with params. Without bias, b2 is among them and unused."""
    params = [Tensor(array) for array in arrays]

    def model(X):
        W1, b1, W2, b2, W3, b3 = params if own else [Tensor(p.data) for p in params]
        z = (X @ W1 + b1).relu() @ W2
        z = z + b2 if bias else z
        return (z.relu() if relu else z) @ W3 + b3

    model.params = params
    return model


def fewer(*arrays):
    """A model without a bias in its second layer."""
    model = deep(*arrays, bias=False)
    model.params = model.params[:3] + model.params[4:]
    return model


def by_windows(losses, patience):
    for t in range(patience, len(losses)):
        before, since = losses[:t - patience + 1], losses[t - patience + 1:t + 1]
        if min(since) >= min(before):
            return t
    return len(losses) - 1


def stacked_untransposed(ours, a, b):
    """A product of stacks of matrices that forgets one transpose."""
    u, v = anatomy.value(a), anatomy.value(b)
    if np.ndim(u) < 3 or np.ndim(v) < 3:
        return ours(a, b)
    return Tensor(u @ v, (a, lambda g: g @ v), (b, lambda g: u.swapaxes(-1, -2) @ g))


def cover_of_stacks(a, row, column):
    cube = a.reshape(3, 3, 1) * row
    return cover(a, row, column) + cube @ cube


OTHERS = {
    "engine.3": triangle, "rules.3": signed, "rules.4": chosen, "rules.5": softmax_rule, "rules.6": p_minus_y,
    "optimizers.3": PlainAdamW, "optimizers.4": PlainNesterov, "spiral.3": deep, "race.3": by_windows,
    "trial.3": (Fault("rules", Tensor, "__matmul__", stacked_untransposed), cover_of_stacks)}


def size_without_edge_at_0(x):
    """At 0 a constant, which backward never reaches: a slope of 0."""
    return x * np.sign(x.data) if np.any(x.data) else Tensor(abs(x.data))


def rows_one_by_one(z, labels):
    costs = [logsumexp(row) - row[int(k)] for row, k in zip(z, labels)]
    return sum(costs) / len(labels)


class DecayAfterwards(Adam):
    """The decay is that of the old w, wherever it is subtracted."""
    def __init__(self, params, *, lr, decay):
        super().__init__(params, lr)
        self.decay = decay

    def step(self):
        before = [p.data for p in self.params]
        super().step()
        for p, w in zip(self.params, before):
            p.data = p.data - self.lr * self.decay * w


def of_an_mlp(W1, b1, W2, b2, W3, b3):
    first, last = anatomy.MLP(W1, b1, W2, b2), [Tensor(W3), Tensor(b3)]

    def model(X):
        return first(X).relu() @ last[0] + last[1]

    model.params = tuple(first.params + last)
    return model


def running_argmin(losses, patience):
    for t in range(len(losses)):
        if t - np.argmin(losses[:t + 1]) == patience:
            return t
    return t


def wrong_column_sum(ours, a, axis=None, keepdims=False):
    """A sum along axis 0 that puts g along the wrong axis."""
    out = ours(a, axis, keepdims)
    if axis == 0 and not keepdims:
        return Tensor(out.data, (a, lambda g: np.full(a.shape, g[:, np.newaxis])))
    return out


def slope_of_squares(ours, a, b):
    """A power with a plain number has the wrong slope."""
    out = ours(a, b)
    return Tensor(out.data, (a, lambda g: g * out.data)) if np.ndim(anatomy.value(b)) == 0 else out


def squares_of_copies(ours, grad, shape):
    """Axes in the middle are not summed."""
    return np.zeros(shape) if grad.ndim == 3 else ours(grad, shape)


COLUMN_SUM = Fault("rules", Tensor, "sum", wrong_column_sum)
MORE = [
    ("engine.3", lambda x: x @ np.triu(np.ones((x.data.size, x.data.size)))),
    ("rules.3", size_without_edge_at_0), ("rules.3", lambda x: 2 * x.relu() - x),
    ("rules.4", lambda a, b: (a + (b - a).relu() + b + (a - b).relu()) / 2),
    ("rules.6", rows_one_by_one), ("optimizers.3", DecayAfterwards), ("spiral.3", of_an_mlp),
    ("race.3", running_argmin), ("race.3", lambda *of: np.int64(running_argmin(*of))),
    # An expression without cover, a list, other words, a copy of chapter 3, and a fault that raises.
    ("trial.3", (COLUMN_SUM, lambda a, row, column: (a * row * column).sum(axis=0))),
    ("trial.3", [COLUMN_SUM, lambda a, row, column: cover(a, row, column) + (a * column).sum(axis=0)]),
    ("trial.3", (Fault("rules", Tensor, "__pow__", slope_of_squares), lambda a, row, column: (a * row * column) ** 2)),
    ("trial.3", (Fault("copies", None, "unbroadcast", squares_of_copies),
                 lambda a, row, column: a * row * column * np.ones((2, 3, 3)))),
    ("trial.3", (SOLUTIONS["trial.3"][0], lambda a, row, column: cover(a, row, column)
                 + (a.reshape(3, 3, 1) * row[:, :2]).transpose(2, 0, 1)[0])),
]


@pytest.mark.parametrize("name, answer", MORE)
def test_more_that_is_right(name, answer, capsys):
    assert check(name, answer) is True, capsys.readouterr().out


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("table", (SOLUTIONS, OTHERS), ids=("ours", "another"))
def test_two_solutions_are_right(name, table, capsys):
    assert check(name, table[name]) is True
    assert capsys.readouterr().out == "right\n"


# Programs: plausible mistakes, each with what must be said of it.

def forward_rule(x):
    return Tensor(np.cumsum(x.data), (x, np.cumsum))


def backward_sum(x):
    return Tensor(np.cumsum(x.data[::-1])[::-1], (x, np.cumsum))


def slope_1_at_0(x):
    return Tensor(abs(x.data), (x, lambda g: np.where(x.data >= 0, g, -g)))


def whole_for_both(a, b):
    u, v = a.data, b.data
    return Tensor(np.maximum(u, v), (a, lambda g: g * (u >= v)), (b, lambda g: g * (v >= u)))


def one_winner(a, b):
    return a + (b - a).relu()


def soft(a, b):
    """A maximum that is too large where the two are close."""
    d = (a - b) * 30
    return b + elementwise(softplus, lambda g, x, out: g * anatomy.logistic(x))(d) / 30


def with_slopes(larger, share):
    return binary(larger, lambda g, u, v: g * share(u, v), lambda g, u, v: g * share(v, u))


def halves(u, v):
    return np.heaviside(u - v, 0.5)


def less(constant):
    """The logarithm of a sum, with some other number of each row for its largest."""
    def log_sum(x):
        c = constant(x.data)
        return (x - c).exp().sum(axis=-1).log() + c[..., 0]
    return log_sum


NO_LARGEST = [less(lambda data: data[..., :1]), less(lambda data: data.mean(axis=-1, keepdims=True)),
              less(lambda data: data.min(axis=-1, keepdims=True))]


def along_axis_1(x):
    if x.data.ndim == 1:
        return logsumexp(x)
    c = x.data.max(axis=1, keepdims=True)
    return ((x - c).exp().sum(axis=1) + 0).log() + c.squeeze(1)


def without_g(z, labels):
    """Right while the seed is 1."""
    out = p_minus_y(z, labels)
    [(operand, shape, rule)] = out.edges
    return Tensor(out.data, (z, lambda g: rule(1.0)))


def one_hot(z, labels):
    """It knows of as many classes as the largest label says."""
    own = np.eye(labels.max() + 1)[labels]
    return (logsumexp(z) - (z * own).sum(axis=1)).mean()


def owns(log_sum=logsumexp, shift=lambda labels: labels, count=len):
    """Cross-entropy of its parts."""
    def cross(z, labels):
        own = z[np.arange(len(labels)), shift(labels)]
        return (log_sum(z) - own).sum() / count(labels)
    return cross


class OneMemory:
    """AdamW with one t, and on request one m and v, for all parameters."""
    def __init__(self, params, lr, decay, shared=True):
        self.params, self.lr, self.decay, self.t = params, lr, decay, 0
        self.averages = {}
        self.key = (lambda p: None) if shared else (lambda p: p)

    def step(self):
        for p in self.params:
            self.t += 1
            m, v = self.averages.get(self.key(p), (0, 0))
            m, v = 0.9 * m + 0.1 * p.grad, 0.999 * v + 0.001 * p.grad ** 2
            self.averages[self.key(p)] = m, v
            m_hat, v_hat = m / (1 - 0.9 ** self.t), v / (1 - 0.999 ** self.t)
            p.data = p.data * (1 - self.lr * self.decay) - self.lr * m_hat / (np.sqrt(v_hat) + 1e-8)


class FirstOnly(AdamW):
    def step(self):
        p = self.params[0]
        p.data = p.data - self.lr * self.decay * p.data
        Adam.step(self)


class NoEps(AdamW):
    def __init__(self, params, lr, decay):
        super().__init__(params, lr, decay)
        self.eps = 0


class OneAverage(Momentum):
    def __init__(self, params, lr, beta):
        super().__init__(params, lr, beta)
        self.m = anatomy.Average(beta)

    def direction(self, g, m):
        return self.m.beta * self.m.add(g) + (1 - self.m.beta) * g


class FivePoints(DeepMLP):
    def __call__(self, X):
        W1, b1, W2, b2, W3, b3 = self.params
        ones = np.ones((5, 1))
        return ((X @ W1 + ones @ b1).relu() @ W2 + ones @ b2).relu() @ W3 + ones @ b3


def three_and_two(*arrays):
    shapes = [(2, 3), (1, 3), (3, 2), (1, 2), (2, 1), (1, 1)]
    return DeepMLP(*[np.resize(array, shape) for array, shape in zip(arrays, shapes)])


def other(change):
    """A model whose params are changed."""
    def deep(*arrays):
        model = DeepMLP(*arrays)
        model.params = change(model.params)
        return model
    return deep


def from_10(losses, patience):
    lowest, age = 10, 0
    for t, loss in enumerate(losses):
        age = 0 if loss < lowest else age + 1
        lowest = min(loss, lowest)
        if age >= patience:
            return t
    return len(losses) - 1


def plain(x):
    return x.exp().sum(axis=-1).log()


def largest_of_all(x):
    return (x - x.data.max()).exp().sum(axis=-1).log() + x.data.max()


def kept_axis(x):
    return logsumexp(x).reshape(*x.shape[:-1], 1)


def copied(x):
    return Tensor(softmax_rule(x).data, (x, lambda g: np.full(x.shape, g[..., None])))


def patched(z, labels):
    shares = (z - z.data.max(axis=1, keepdims=True)).exp()
    p = shares / shares.sum(axis=1, keepdims=True)
    return -(p[np.arange(len(labels)), labels] + 1e-8).log().mean()


def summed(z, labels):
    return p_minus_y(z, labels) * len(labels)


def behind(params, lr, beta):
    """(1 - beta) g + beta m with the m from before the step, which is Momentum."""
    return Momentum(params, lr, beta)


class TwiceAhead(Momentum):
    def direction(self, g, m):
        m.add(g)
        return m.add(g)


def equals_count(losses, patience):
    lowest, appeared = np.inf, 0
    for step, loss in enumerate(losses):
        if loss <= lowest:
            lowest, appeared = loss, step
        if step - appeared == patience:
            return step
    return len(losses) - 1


def rises_in_a_row(losses, patience):
    rises = 0
    for step in range(1, len(losses)):
        rises = rises + 1 if losses[step] >= losses[step - 1] else 0
        if rises == patience:
            return step
    return len(losses) - 1


def lowest_step(losses, patience):
    return int(np.argmin(losses[:by_windows(losses, patience) + 1]))


def hidden_by_a_sum(a, row, column):
    cube = a.reshape(3, 3, 1) * row
    return cover(a, row, column) + cube.transpose(2, 0, 1).sum()


def of_unequal_lengths(a, row, column):
    cube = a.reshape(3, 3, 1) * row[:, :2]
    return cover(a, row, column) + cube.transpose(2, 0, 1)[0]


def wrong_by_itself(a, row, column):
    return cover(a, row, column) + elementwise(np.tanh, lambda g, x, out: g)(a)


OUR_FAULT = SOLUTIONS["trial.3"][0]
SLOPE, VALUE = "The value is right, the slope is not. On ", "The value is wrong. On "
WRONG = {
    "engine.3": {SLOPE: [forward_rule], VALUE: [backward_sum, lambda x: x],
                 "ValueError": [lambda x: np.tril(np.ones((4, 4))) @ x],
                 "the shape is (), not (4,)": [lambda x: x.sum()],
                 "It returns no Tensor": [lambda x: np.cumsum(x.data)]},
    "rules.3": {SLOPE: [elementwise(np.abs, lambda g, x, out: g * out), elementwise(np.abs, lambda g, x, out: g),
                        elementwise(np.abs, lambda g, x, out: g * x / (out + 1e-5)),
                        elementwise(np.abs, lambda g, x, out: g * x / (out + 1e-6))],
                VALUE: [lambda x: x.relu(), lambda x: x * x, lambda x: x * (x * 100).tanh()],
                "the shape is (2,), not (2, 1)": [lambda x: absolute(x.reshape(-1) if x.data.ndim else x)],
                "On 0.0, at a kink, it is nan": [lambda x: (x * x) ** 0.5],
                "On [-2.0, 0.0, 1e-09], at a kink": [
                    elementwise(np.abs, lambda g, x, out: g * x / (out + 1e-8)),
                    elementwise(np.abs, lambda g, x, out: g * x / out if x.ndim else g),
                    elementwise(np.abs, lambda g, x, out: np.where(x, np.sign(x), 2) * g if x.ndim else g)],
                "It returns no Tensor": [lambda x: abs(x.data)]},
    "rules.4": {"On [2.0, 7.0, 1.0] and [2.0, 1.0, 1.000000001], at a kink": [
                    with_slopes(np.maximum, lambda u, v: np.where(np.isclose(u, v), 0.5, u > v)), whole_for_both, one_winner,
                    with_slopes(np.maximum, lambda u, v: np.where(u == v, 0.25, u > v)),
                    # Halves without g.
                    binary(np.maximum, lambda g, u, v: np.where(u == v, 0.5, g * (u > v)),
                           lambda g, u, v: np.where(u == v, 0.5, g * (v > u)))],
                "It returns no Tensor": [lambda a, b: np.maximum(a.data, b.data)],
                VALUE + "[2.0, 7.0, 1.0]": [with_slopes(lambda u, v: np.where(u == v, 99, np.maximum(u, v)), halves)],
                VALUE: [lambda a, b: -maximum(-a, -b), lambda a, b: a, soft], SLOPE: [
                    with_slopes(np.maximum, lambda u, v: np.where(abs(u - v) < 0.01, 0.5, u > v)),
                    lambda a, b: Tensor(np.maximum(a.data, b.data), (a, lambda g: g / 2), (b, lambda g: g / 2))]},
    "rules.5": {VALUE + "[1000.0": [plain], VALUE + "[[1000.0": [largest_of_all, *NO_LARGEST], SLOPE: [copied],
                VALUE + "[[[": [along_axis_1],
                "the shape is (2, 1), not (2,)": [kept_axis]},
    "rules.6": {"With the labels [2, 1]: " + SLOPE: [lambda z, labels: p_minus_y(z, labels, divide=False), without_g],
                "With the labels [2, 1]: " + VALUE: [patched, summed],
                "With the labels [0, 0, 2]: " + VALUE: [
                    *[owns(log_sum) for log_sum in NO_LARGEST], owns(count=lambda labels: 2),
                    owns(count=lambda labels: len(set(labels.tolist())))],
                "With the labels [1, 0]: ": [owns(shift=lambda labels: np.maximum(labels, 1))],
                "ValueError": [one_hot]},
    "optimizers.3": {"Step 1 ends at a wrong w, with {'lr': 0.1, 'decay': 0.5}.": [
        partial(PlainAdamW, form="L2"), partial(PlainAdamW, form="no lr"), partial(PlainAdamW, form="late"),
        lambda params, lr, decay: Adam(params, lr), OneMemory, partial(OneMemory, shared=False), FirstOnly, NoEps],
        "Step 1 ends at a wrong w, with {'lr': 0.03, 'decay': 0.2}.": [
            lambda params, lr, decay: AdamW(params, 0.1, 0.5), lambda params, lr, decay: AdamW(params, lr, 0.5),
            lambda params, lr, decay: AdamW(params, 0.1, decay),
            lambda params, lr, decay: AdamW(params, lr, 0.05 / lr)],
        "unexpected keyword argument 'lr'": [lambda params, rate, decay: AdamW(params, rate, decay)]},
    "optimizers.4": {"Step 1 ends at a wrong w, with {'lr': 0.1, 'beta': 0.9}.": [
        behind, lambda *a, **k: PlainNesterov(*a, scale=False, **k), OneAverage],
        "Step 2 ends at a wrong w, with {'lr': 0.1, 'beta': 0.9}.": [TwiceAhead],
        "Step 1 ends at a wrong w, with {'lr': 0.03, 'beta': 0.5}.": [
            lambda params, lr, beta: Nesterov(params, 0.1, 0.9), lambda params, lr, beta: Nesterov(params, lr, 0.9),
            lambda params, lr, beta: Nesterov(params, 0.1, beta)]},
    "spiral.3": {"Six Tensors are wanted": [fewer, other(lambda params: [p.data for p in params]),
                                            other(lambda params: dict(enumerate(params)))],
                 "With H = 3 and K = 2 the shapes in params are": [other(lambda params: params[::-1])],
                 "With H = 2 and K = 3 the shapes in params are": [three_and_two], "ValueError": [FivePoints],
                 VALUE: [lambda *arrays: deep(*arrays, bias=False), lambda *arrays: deep(*arrays, relu=False)],
                 SLOPE: [lambda *arrays: deep(*arrays, own=False)]},
    "race.3": {"patience of 2 it is 3, not 2": [equals_count], "it is 6, not 5": [rises_in_a_row],
               "it is 3, not 5": [lowest_step], "it is None": [lambda losses, patience: None],
               "patience of 1 it is 0, not 3": [from_10],
               "it is 1, not 3": [
                   lambda losses, patience: running_argmin(losses.round(), patience),
                   lambda losses, patience: running_argmin(losses.round(2), patience)],
               "it is [5], not 5": [lambda *of: [running_argmin(*of)]]},
    "trial.3": {"old cover catches": [(FAULTS["product_operand"], cover), (FAULTS["matmul_no_transpose"], cover),
                                      (FAULTS["copies_not_summed"], cover)],
                "Tensor has no method cumsum": [(Fault("rules", Tensor, "cumsum", lambda ours, a: a), cover)],
                "slips through the new": [(OUR_FAULT, cover), (OUR_FAULT, hidden_by_a_sum)],
                "fails without": [(OUR_FAULT, wrong_by_itself)],
                "replaces no method of Tensor": [
                    (Fault("program", None, "gradcheck", lambda ours, f, p: f is cover), cover),
                    (Fault("program", None, "judge", lambda ours, *of: ours(*of)), cover),
                    (FAULTS["labels_in_a_row"], cover), (FAULTS["grads_never_cleared"], cover)],
                "A pair is wanted, (Fault, function).": [
                    OUR_FAULT, cover, 3, (cover, OUR_FAULT), ("transpose", cover), (OUR_FAULT.function, cover),
                    (OUR_FAULT, cover, cover), (OUR_FAULT, 3)]},
}


@pytest.mark.parametrize("name, said, answer", [
    (name, said, answer) for name, table in WRONG.items() for said, answers in table.items() for answer in answers])
def test_a_plausible_mistake_is_told_what_it_is(name, said, answer, capsys):
    assert check(name, answer) is False
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("not yet. ") and said in first, first
    assert last == f"Hint: {PROGRAMS[name].hint}"


@pytest.mark.parametrize("name", ("engine.3", "rules.3", "rules.5"))
def test_a_value_alone_is_half_of_it(name, capsys):
    """A good way to begin, as the chapter says."""
    assert not check(name, lambda x: Tensor(SOLUTIONS[name](x).data))
    assert capsys.readouterr().out.startswith("not yet. " + SLOPE)


def test_any_slope_of_a_size_at_0_is_taken():
    assert check("rules.3", slope_1_at_0) and check("rules.3", absolute)


@pytest.mark.parametrize("name, answer", (
    ("optimizers.3", NoEps), ("optimizers.3", OneMemory), ("optimizers.4", behind)), ids=repr)
def test_a_wrong_step_is_told_with_digits_that_differ(name, answer, capsys):
    check(name, answer)
    step, before, g, after, right, hint = capsys.readouterr().out.splitlines()
    told = [line.split(maxsplit=2) for line in (before, after)] + [g.split(maxsplit=1), right.split(maxsplit=2)]
    assert [words[:-1] for words in told] == [["w", "before"], ["w", "after"], ["g"], ["should", "be"]]
    start, found, slopes, wanted = [np.array(ast.literal_eval(words[-1])) for words in told]
    assert found.shape == wanted.shape == start.shape == slopes.shape or answer is OneMemory
    assert not np.array_equal(found, wanted) and not np.array_equal(start, wanted)


def test_an_exercise_is_a_function_that_can_be_called_by_its_name():
    for name, exercise in [*NUMBERS.items(), *PROGRAMS.items()]:
        assert getattr(anatomy, name.replace(".", "_")) is exercise.function


def test_the_fault_of_transpose_is_the_order_itself():
    """Right for an order that is its own inverse, or for none; for another the slopes come back in the wrong order."""
    fault = OUR_FAULT.function
    x, seed = np.arange(24.0).reshape(2, 3, 4), np.arange(24.0)
    for order in (), (0, 2, 1), (1, 2, 0):
        a = Tensor(x)
        y = fault(Tensor.transpose, a, *order)
        assert np.array_equal(y.data, x.transpose(*order))
        g = seed.reshape(y.data.shape)
        [(_, _, rule)] = y.edges
        assert np.array_equal(rule(g), g.transpose(order if order else (2, 1, 0)))


def test_shapes_are_told_one_a_line(capsys):
    check("spiral.3", other(lambda params: params[::-1]))
    first, *shapes, hint = capsys.readouterr().out.splitlines()
    assert shapes == ["(1, 1)", "(2, 1)", "(1, 2)", "(3, 2)", "(1, 3)", "(2, 3)"]


def test_a_wrong_slope_names_the_parameter(capsys):
    """Both slopes of the operand that is wrong stand there."""
    def swapped(a, b):
        out = chosen(a, b)
        return Tensor(out.data, (a, lambda g: g * (a.data >= b.data)), (b, lambda g: -g * (b.data > a.data)))

    check("rules.4", swapped)
    *_, word, by, found, how, nudged, hint = capsys.readouterr().out.splitlines()
    assert (word, by, how) == ("WRONG", "by backward:", "nudged:")
    found, nudged = (np.array(line.strip("[]").split(), float) for line in (found, nudged))
    assert np.array_equal(found, -nudged) and nudged.any()


def fails(*anything, **settings):
    raise RuntimeError("as it happens")


@pytest.mark.parametrize("name", PROGRAMS)
def test_code_that_fails_is_not_right_and_check_does_not_raise(name, capsys):
    nothing, lost = (lambda *a, **k: None), (lambda: None)
    for answer in fails, nothing, lost, None, 3, "text", (fails, fails), (OUR_FAULT, fails), object:
        assert check(name, answer) is False
        assert capsys.readouterr().out.startswith("not yet. ")
    check(name, (OUR_FAULT, fails) if name == "trial.3" else fails)
    assert "not yet. RuntimeError: as it happens\n" in capsys.readouterr().out


def test_nothing_stays_planted():
    before = Tensor.transpose, dict(FAULTS), [(p.data.copy(), p.grad) for p in LEAVES]
    for answer in SOLUTIONS["trial.3"], (OUR_FAULT, fails), (OUR_FAULT, of_unequal_lengths):
        check("trial.3", answer)
    assert (Tensor.transpose, FAULTS) == before[:2]
    for p, (data, grad) in zip(LEAVES, before[2]):
        assert np.array_equal(p.data, data) and p.grad is grad


def test_the_stops_follow_from_the_rule():
    """By the definition and not by a counter, also for losses by lot."""
    for losses, patience, right in anatomy.STOPS:
        assert by_windows(losses, patience) == right
    rng = np.random.default_rng(0)
    for _ in range(300):
        losses, patience = rng.integers(0, 6, rng.integers(1, 12)), int(rng.integers(1, 5))
        assert anatomy.stopping_step(losses, patience) == by_windows(losses, patience)


def test_no_case_lies_on_a_kink():
    """The network that judges spiral.3 keeps its distance from relu's kink."""
    seen = []

    def watched(*arrays):
        W1, b1, W2, b2, W3, b3 = arrays
        assert min(abs(b2).ravel()) > 0.05

        class Watched(anatomy.DeepMLP):
            def __call__(self, X):
                first = X @ W1 + b1
                seen.extend([first, np.maximum(first, 0) @ W2 + b2])
                return super().__call__(X)
        return Watched(*arrays)

    assert check("spiral.3", watched)
    assert min(abs(z).min() for z in seen) > 1e-3
    for z in seen:      # no unit is dead, and none is a line
        assert (z > 0).any(axis=0).all() and (z < 0).any(axis=0).all()
    assert {z.shape for z in seen} == {(5, 3), (5, 2), (8, 2), (8, 3)}


# Words: what belongs together. The numbers of a question are read out of it, and lead to the answer by hand.

def mean_loss(z, patch):
    """Of a point of each class with this logit, and with the patch inside the logarithm."""
    p = 1 / (1 + np.exp(-z))
    return -(np.log(p + patch) + np.log(1 - p + patch)) / 2


def patched_slope(patch, z):
    rest = np.exp(-z) / (1 + np.exp(-z))
    return (1 - rest) * rest / (rest + patch)


BY_HAND = {
    "nudge.1": ("x^3 at {} too large, if a central nudge with h = {} finds it?",
                lambda x, h: ((x + h) ** 3 - (x - h) ** 3) / (2 * h) - 3 * x ** 2),
    "nudge.2": ("A layer has {} x {} weights and {} biases. How often", lambda n, k, b: 2 * (n * k + b)),
    "engine.1": ("L = (a + b) * a at a = {} and b = {}. Which slopes", lambda a, b: (2 * a + b, a)),
    "engine.2": ("L = y * y at x = {}. What is x.grad after {} calls", lambda x, calls: calls * 4 * x ** 3),
    "unbroadcast.1": ("g is ones of shape ({}, {}, {}). What is each entry of unbroadcast(g, ({}, {}))?",
                      lambda a, b, c, d, e: a * b * c / (d * e)),
    "unbroadcast.2": ("Of {} copies a mean comes back, not a sum.", lambda n: 1 - 1 / n),
    "rules.1": ("x - mean(x) along its four numbers, for the seed ({}, {}, {}, {})?",
                lambda *seed: np.array(seed) - np.mean(seed)),
    "rules.2": ("costs -log(1 - p + {}). Which slope has that along its logit, where the logit is {}?", patched_slope),
    "gradcheck.1": ("Where a slope is a, backward says -a/{}.", lambda k: 1 + 1 / k),
    "gradcheck.2": ("Does relu pass gradcheck on a Tensor of {}, {} and {}?", lambda *x: 0 not in x),
    "optimizers.1": ("beta1 = {}, beta2 = {}: how many times lr", lambda b1, b2: (1 - b1) / np.sqrt(1 - b2)),
    "optimizers.2": ("with beta = {} gets a {} in each step. After how many steps is its value above {} for",
                     lambda beta, x, half: np.ceil(np.log(1 - half / x) / np.log(beta))),
    "spiral.1": ("MLP with {} hidden units?", lambda h: 2 * h + h + h + 1),
    "spiral.2": ("All logits are {}, half of the labels are 1, half are 0. What is the mean cross-entropy?",
                 lambda z: mean_loss(z, 0)),
    "race.1": ("At which lr does RMSProp's first step, with beta = {}, move a parameter by {}?",
               lambda beta, move: move * np.sqrt(1 - beta)),
    "race.2": ("At which lr is Momentum's first step, with beta = {}, as long as SGD's at {}?",
               lambda beta, lr: lr / (1 - beta)),
    "trial.1": ("Which slopes has sum(x / sum(x)) along x = ({}, {}, {})?", lambda *x: np.zeros(len(x))),
    "trial.2": ("Logits ({}, 1) minus labels ({},): how many", lambda n, k: n * k),
    "break.1": ("All logits are {}, half of the labels are 1, half are 0. What is the mean of patched_bce?",
                lambda z: mean_loss(z, 1e-8)),
    "break.2": ("Which slope does a central nudge with h = {} find for relu at {}?", lambda h, x: (x + h) / (2 * h))}

# The same for the reasons; one without numbers has a word that no other has.
REASONED = {
    "nudge.1": ("h^2 is left, and for x^3 it is h^2 itself", None),
    "nudge.2": ("{} calls for each of {} * {} + {} numbers", lambda k, n, m, b: k * (n * m + b)),
    "engine.1": ("{} a + b along a, by {} paths, and a along b", lambda k, paths: (k * 2 + 3, paths)),
    "engine.2": ("{} times {} x^3; each call begins with a new ledger", lambda n, k: n * k),
    "unbroadcast.1": ("axes of {} and of {} were stretched: {} * {} copies",
                      lambda a, b, c, d: c * d if (a, b) == (c, d) else 0),
    "unbroadcast.2": ("the mean is a fifth of the sum", None),
    "rules.1": ("add up: {} - {} twice, and {} - {}", lambda a, b, c, d: (a - b, a - b, c - d, c - d)),
    "rules.2": ("p times the share of 1 - p in 1 - p + {}", lambda patch: patched_slope(patch, 20)),
    "gradcheck.1": ("the distance is {} a, and the larger", lambda k: k),
    "gradcheck.2": ("at 0 the nudge says {}, and the rule {}", lambda nudged, ruled: nudged == ruled),
    "optimizers.1": ("m is {} g, and so is the root of v", lambda m: m / np.sqrt(1 - 0.99)),
    "optimizers.2": ("{}^t falls below {} with that step", lambda beta, half: np.ceil(np.log(half) / np.log(beta))),
    "spiral.1": ("{} * {} + {} + {} * {} + {}", lambda a, b, c, d, e, f: a * b + c + d * e + f),
    "spiral.2": ("log(1 + e^{}) for class 0, and {} less for class 1",
                 lambda z, less: np.log(1 + np.exp(z)) - less / 2),
    "race.1": ("the first step is lr g / ({} g)", lambda root: 0.1 * root),
    "race.2": ("the first m is {} g", lambda m: 0.1 / m),
    "trial.1": ("the value is 1, whatever x is", None),
    "trial.2": ("numpy stretches both to ({}, {})", lambda n, k: n * k),
    "break.1": ("-log({}) for half of the points, nothing for the others", lambda patch: -np.log(patch) / 2),
    "break.2": ("a rise of relu({}) over a run of {}", lambda rise, run: rise / run)}

HINTED = {
    "nudge.1": "Taylor's series", "nudge.2": "numbers are nudged", "engine.1": "paths does a reach L",
    "engine.2": "kept between the calls", "unbroadcast.1": "axes of g were stretched",
    "unbroadcast.2": "part of the sum is the mean", "rules.1": "two seeds", "rules.2": "1 - p there, beside 1e-8",
    "gradcheck.1": "a and -a/2", "gradcheck.2": "the nudge say at each of the three",
    "optimizers.1": "weight has each of the two averages", "optimizers.2": "its value after t steps",
    "spiral.1": "W1, b1, W2 and b2", "spiral.2": "each class cost", "race.1": "times lr is RMSProp's",
    "race.2": "the first slope is in m", "trial.1": "an entry of x reach", "trial.2": "line up the two shapes",
    "break.1": "a point cost at most", "break.2": "two ends of the nudge",
    "engine.3": "which of the sums is x0 used", "rules.3": "either side of 0", "rules.4": "|a - b|",
    "rules.5": "c + log(sum(e^(x - c)))", "rules.6": "less a logit", "optimizers.3": "The decay",
    "optimizers.4": "the new m, and g once more", "spiral.3": "three layers", "race.3": "lowest loss so far",
    "trial.3": "cover use only in its simplest form"}

# Of each program: its question, and what its text begins with.
ASKED = {
    "engine.3": ("cumulative sum of a vector", "cumulative sum # # A function of a vector x of shape (n,)"),
    "rules.3": ("|x|", "size of a number # # A function of x, of any shape, returns |x|"),
    "rules.4": ("larger of a and b", "larger of two # # A function of a and b returns max(a, b)"),
    "rules.5": ("log(sum(exp(x)))", "logarithm of a sum of exponentials # # A function of x, of shape (..., n)"),
    "rules.6": ("Cross-entropy of logits", "cross-entropy for K classes # # A function of logits z of shape (N, K)"),
    "optimizers.3": ("Adam with weight decay", "AdamW # # A class is made as `AdamW("),
    "optimizers.4": ("Nesterov's momentum", "Nesterov's momentum # # A class is made as `Nesterov("),
    "spiral.3": ("two hidden layers", "second hidden layer # # A class or a function is called with six arrays"),
    "race.3": ("a run stops early", "stopping early # # A function of losses"),
    "trial.3": ("slips through cover", "fault that slips through # # No fault of chapter 9")}


def own(phrase, texts):
    """The names of those whose text has this phrase."""
    return [name for name, text in texts.items() if phrase in " ".join(text.split())]


@pytest.mark.parametrize("name", NUMBERS)
def test_the_numbers_of_a_question_lead_to_its_answer(name):
    """By hand, and the same that check wants."""
    template, by_hand = BY_HAND[name]
    asked = [number(written)[0] for written in read(template, NUMBERS[name].question)]
    answer = by_hand(*asked)
    np.testing.assert_allclose(np.asarray(NUMBERS[name].function(), float), np.asarray(answer, float), 1e-6, 1e-12)
    assert np.allclose(np.asarray(CASES[name][0], float), np.asarray(answer, float), rtol=0.01)


@pytest.mark.parametrize("name", NUMBERS)
def test_the_numbers_of_a_reason_lead_to_its_answer(name):
    template, by_hand = REASONED[name]
    told = [number(written)[0] for written in read(template, REASONS[name])]
    assert own(REASONS[name], REASONS) == [name] and bool(told) == (by_hand is not None)
    if told:
        wanted = np.asarray(NUMBERS[name].function(), float)
        np.testing.assert_allclose(np.asarray(by_hand(*told), float), wanted, 1e-6)


@pytest.mark.parametrize("name", NUMBERS | PROGRAMS)
def test_a_hint_belongs_to_its_question(name):
    assert HINTED.keys() == (NUMBERS | PROGRAMS).keys()
    hints = {other: exercise.hint for other, exercise in (NUMBERS | PROGRAMS).items()}
    assert own(HINTED[name], hints) == [name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_s_question_and_text_belong_together(name):
    question, text = ASKED[name]
    assert own(question, {other: exercise.question for other, exercise in PROGRAMS.items()}) == [name]
    stars = PROGRAMS[name].question.split()[0].count("*")
    heading = f"#### {name} ({['one star', 'two stars', 'three stars'][stars - 1]}): {text}"
    assert " ".join(heading.split()) in " ".join(anatomy.Path(anatomy.__file__).read_text("utf-8").split())


def test_the_printed_answers_are_right():
    """What the story prints as an answer, check takes."""
    answers = GOLDEN_LINES[GOLDEN_LINES.index("--- answers ---"):]
    for name in NUMBERS:
        [line] = [line for line in answers if line.startswith(name + " ")]
        words = line.removeprefix(name).strip().strip("[]").split()
        values = [ast.literal_eval(word.rstrip(".")) for word in words]
        assert check(name, values if "[" in line else values[0]), line
        assert REASONS[name] == answers[answers.index(line) + 1].strip()
    assert "10 programs are right" in " ".join(answers) and list(REASONS) == list(NUMBERS)


# Numbers in the text

def test_the_worked_numbers():
    x = Tensor([3.0, 1.0, 2.0])
    anatomy.cumulative_sum(x).backward([1, 1, 1])
    assert anatomy.cumulative_sum(x).data.tolist() == [3, 4, 6] and x.grad.tolist() == [3, 2, 1]
    half = Tensor([[0.0, 0.0]])
    anatomy.cross_entropy(half, np.array([0])).backward()
    assert np.allclose(half.grad, [[-0.5, 0.5]])
    z = Tensor([[0.0, 1.7]])
    assert np.isclose(anatomy.cross_entropy(z, np.array([1])).data, anatomy.bce_with_logits(1.7, 1.0).data)
    assert abs(logsumexp(half).data[0] - np.log(2)) < 1e-12
    assert abs(logsumexp(half + 1000).data[0] - 1000.693) < 1e-3
    assert abs(anatomy.cross_entropy(half, np.array([0])).data - np.log(2)) < 1e-12
    sure = Tensor([[1000.0, 0.0], [1000.0, 0.0]])
    assert abs(anatomy.cross_entropy(sure, np.array([0, 1])).data - 500) < 1e-9
    for optimizer, g, end in ((anatomy.AdamW, 2.0, 0.85), (anatomy.Nesterov, 1.0, 0.981)):
        w = Tensor(1.0)
        descent = optimizer([w], lr=0.1, **({"decay": 0.5} if g == 2 else {"beta": 0.9}))
        w.grad = np.array(g)
        descent.step()
        assert abs(w.data - end) < 1e-6
    ones = [np.ones(shape) for shape in [(2, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1)]]
    for bias in 1, 3, 5:
        ones[bias] = np.zeros((1, 1))
    assert anatomy.DeepMLP(*ones)(np.array([[1.0, 2.0]])).data == 3
    large = [np.zeros(shape) for shape in [(2, 64), (1, 64), (64, 64), (1, 64), (64, 1), (1, 1)]]
    assert sum(p.data.size for p in anatomy.DeepMLP(*large).params) == 4417
    assert len(anatomy.STOPS) == 11
    assert anatomy.stopping_step([5, 3, 4, 2, 4, 3, 6], 2) == 5
    a, b = Tensor([1.0, 5.0]), Tensor([3.0, 4.0])
    maximum(a, b).backward([1, 1])
    assert a.grad.tolist() == [0, 1] and b.grad.tolist() == [1, 0]


# From outside

def test_the_list_has_every_question_and_not_the_telling_answers():
    start, end = (GOLDEN_LINES.index(f"--- {name} ---") for name in ("exercises", "answers"))
    text = "\n".join(GOLDEN_LINES[start:end])
    first = [line.split()[0] for line in text.splitlines() if line and not line.startswith(" ")]
    assert [word for word in first if word in NUMBERS | PROGRAMS] == list(NUMBERS | PROGRAMS)
    questions = " ".join(text.split())
    for question, hint, function in (NUMBERS | PROGRAMS).values():
        assert " ".join(question.split()) in questions
    for tell in ("2020", "9.21", "0.17", "1024", "41", "1.54", "69", "0.09"):
        assert tell not in text
    assert max(map(len, text.splitlines())) <= 79


def test_the_list_is_there_after_an_import_and_says_where_the_rest_stands(capsys):
    anatomy.questions()
    said = capsys.readouterr().out
    assert " ".join(said.split()) in GOLDEN
    assert said.endswith("\nThe full texts of the ten programs stand in chapter 12.\n")


def test_judges_stand_below_all_texts_and_are_folded():
    text = anatomy.Path(anatomy.__file__).read_text(encoding="utf-8").split("# ## 12. ")[1].split("# ## Answers")[0]
    texts, judges = text.split("# ### The judges of the ten\n")
    assert all(f"# #### {name} (" in texts for name in PROGRAMS)
    assert "@exercise(PROGRAMS" not in texts and judges.count("@exercise(PROGRAMS") == 10
    for cell in judges.split("# %%")[1:]:
        assert "@exercise" not in cell or cell.startswith(' tags=["fold"]\n')
    stars = {f"({PROGRAMS[name].question.split()[0][1:-1]})" for name in PROGRAMS}
    assert stars == {"(*)", "(**)", "(***)"}


def test_optimized_python_asks_the_same():
    run = story("exercises", "answers", flags=("-OO",))
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == GOLDEN_LINES[GOLDEN_LINES.index("--- exercises ---") - 1:]


def test_check_is_there_after_an_import(tmp_path):
    run = python("-c", "from anatomy import *\ndef size(x): return x.relu() + (-x).relu()\ncheck('rules.3', size)",
                 cwd=tmp_path, flags=("-W", "error"), PYTHONPATH=str(anatomy.Path(anatomy.__file__).parent))
    assert (run.returncode, run.stdout, run.stderr) == (0, "right\n", "")


def test_check_is_there_in_a_shell():
    """With the command that the chapter and README.md give."""
    [command] = told("in a shell {} prints all questions")
    assert f"`{command}` asks thirty questions" in (ROOT / "README.md").read_text("utf-8")
    program, *flags, file, chapter = command.split()
    assert (program, file) == ("python", Path(anatomy.__file__).name)
    run = subprocess.run([sys.executable, "-q", *flags, anatomy.__file__, chapter], text=True, capture_output=True,
                         input='said = check("nudge.1", 0.5)\nsaid = check("nudge.1", 0.09)\n', timeout=60,
                         env=surroundings())
    assert run.returncode == 0 and "Traceback" not in run.stderr
    *before, no, hint, yes = run.stdout.splitlines()
    assert (no, hint, yes) == ("not yet. The value is wrong.", f"Hint: {NUMBERS['nudge.1'].hint}", "right")


def test_a_maximum_is_asked_with_both_operands_stretched():
    """Right where one of them has the shape of the result, and without a slope where neither has."""
    def one_stretched(a, b):
        right = maximum(a, b)
        if right.shape in (a.shape, b.shape):
            return right
        return Tensor(right.data)

    assert check("rules.4", maximum) and not check("rules.4", one_stretched)


def test_the_way_back_of_a_cumulative_sum_is_written_out():
    """Beside each line of B stands the sum of the entries of g in a column of B."""
    text = anatomy.Path(anatomy.__file__).read_text(encoding="utf-8").split("# ## Answers")[1]
    lines = re.findall(r"(?m)^#  +(?:B = )?([01] [01] [01]) +(?:B' g = )?(g.*)$", text)
    B = np.array([line.split() for line, total in lines], int)
    assert np.array_equal(B @ [3, 1, 2], np.cumsum([3, 1, 2]))
    for k, (line, total) in enumerate(lines):
        assert total == " + ".join(f"g{i}" for i in range(3) if B[i, k])
