"""`examine` tries our own engine with each fault in it, and small engines in the style in which such engines are
written, right ones and wrong ones."""
import sys
from collections import Counter

import numpy as np
import pytest

import anatomy as A


def verdicts(report):
    return Counter(case.verdict for case in report.rows)


def said(report, *wanted):
    """The (word, situation) of all cases with such a verdict."""
    return {(case.word, case.situation) for case in report.rows if case.verdict in wanted}


def situations(report, *wanted):
    return {situation for word, situation in said(report, *wanted)}


def kind(report):
    """The kind of the fault that the first line of in_common names, or the words at whose rules it tells to look."""
    first, *rest = A.in_common(report.rows)
    if first.startswith("fails like "):
        return A.FAULTS[first.removeprefix("fails like ").split(":")[0]].kind
    return {line.removeprefix("look at the rule of ") for line in [first, *rest]}


@pytest.fixture(autouse=True)
def chain(request, monkeypatch):
    """Most engines here are asked about a chain of ten sums; who is to show how deep it can go, about the real one."""
    if "deep" not in request.keywords:
        monkeypatch.setattr(A, "deep_chain", lambda x: sum([x] * 10, x))


# --- our own engine

@pytest.mark.deep
def test_our_engine_has_every_word():
    report = A.examine(A.Tensor)
    assert report and set(verdicts(report)) == {"ok"} and A.in_common(report.rows) == []
    assert {word for word, situation in said(report, "ok")} == {"backward", *A.PAIRS, *A.SINGLES}


MEANS = {"mean", "mean, axis", "mean, keepdims"}
RULES = {"sum_sign": {"u + v"}, "product_operand": {"u * v"}, "matmul_no_transpose": {"u @ v"},
         "matmul_wrong_transpose": {"u @ v"}, "mean_without_n": MEANS, "transpose_not_undone": {"transpose"},
         "relu_slope_always_1": {"relu"}, "sigmoid_without_slope": {"sigmoid"}, "log_of_the_result": {"log"}}


@pytest.mark.parametrize("name", A.FAULTS)
def test_each_fault_is_convicted_and_called_by_its_kind(name):
    with A.planted(name):
        report = A.examine(A.Tensor)
    if A.FAULTS[name].kind == "program":
        assert report and A.in_common(report.rows) == []
    else:
        assert not report and "WRONG" in verdicts(report)
        assert kind(report) == RULES.get(name, A.FAULTS[name].kind)


# --- engines of single numbers

class Value:
    """Closures and a topological sort, right."""
    def __init__(self, data, children=(), pass_on=None):
        self.data, self.grad, self.children, self.pass_on = data, 0.0, children, pass_on

    def receive(self, g):
        self.grad += g

    def made(self, data, *edges):
        """A result; each edge is an operand and the slope of the result along it."""
        children = [(b if isinstance(b, Value) else type(self)(b), slope) for b, slope in edges]

        def pass_on():
            for child, slope in children:
                child.receive(out.grad * slope)

        out = type(self)(data, [child for child, slope in children], pass_on)
        return out

    def __add__(self, other):
        return self.made(self.data + number(other), (self, 1.0), (other, 1.0))

    def __mul__(self, other):
        return self.made(self.data * number(other), (self, number(other)), (other, self.data))

    def __pow__(self, n):
        assert isinstance(n, (int, float))
        return self.made(self.data ** n, (self, n * self.data ** (n - 1)))

    def exp(self):
        return self.made(np.exp(self.data), (self, np.exp(self.data)))

    def tanh(self):
        return self.made(np.tanh(self.data), (self, 1 - np.tanh(self.data) ** 2))

    def relu(self):
        return self.made(max(self.data, 0.0), (self, float(self.data > 0)))

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __truediv__(self, other):
        return self * other ** -1

    def __rtruediv__(self, other):
        return self ** -1 * other

    __radd__, __rmul__ = __add__, __mul__

    def order(self):
        """Operands first: a search with a stack of its own, so no chain is too deep."""
        order, done, stack = [], set(), [(self, False)]
        while stack:
            node, finished = stack.pop()
            if finished:
                order.append(node)
            elif node not in done:
                done.add(node)
                stack.append((node, True))
                stack += [(child, False) for child in node.children]
        return order

    def clear(self, order):
        """Only leaves keep what earlier calls have brought."""
        for node in order:
            if node.children:
                node.grad = 0.0

    def backward(self):
        order = self.order()
        self.clear(order)
        self.grad = 1.0
        for node in reversed(order):
            if node.pass_on:
                node.pass_on()


def number(x):
    return x.data if isinstance(x, Value) else x


def of(engine):
    return lambda array: engine(float(array))


NUMBERS_HERE = {"u + v", "u - v", "u * v", "u / v", "u ** v", "exp", "tanh", "relu", "-x", "backward"}


@pytest.mark.deep
def test_numbers_right():
    report = A.examine(of(Value))
    assert report and set(verdicts(report)) == {"ok", "not there"} and A.in_common(report.rows) == []
    assert {word for word, situation in said(report, "ok")} == NUMBERS_HERE
    # Every situation with two Values or a constant, but a Value as an exponent.
    missing = {(word, situation) for word, situation in said(report, "not there") if word in NUMBERS_HERE}
    assert missing == {("u ** v", situation) for situation in (
        "numbers", "twice", "other uses", "2.0 on the left", "array on the left")}


def test_numbers_overwritten():
    class Overwriting(Value):
        def receive(self, g):
            self.grad = g

    report = A.examine(of(Overwriting))
    assert not report and situations(report, "WRONG") >= {"twice", "two paths", "other uses"}
    assert "overwriting" in A.in_common(report.rows)[0]
    # Both numbers are in it: x + x hears 1 and 1, and keeps one of them.
    assert "u + v, twice: WRONG 1.00, nudged 2.00" in str(report).splitlines()


@pytest.mark.deep
def test_numbers_sorted_by_recursion():
    class Recursive(Value):
        def order(self):
            order, done = [], set()

            def visit(node):
                if node not in done:
                    done.add(node)
                    for child in node.children:
                        visit(child)
                    order.append(node)

            visit(self)
            return order

    report = A.examine(of(Recursive))
    assert report and "WRONG" not in verdicts(report)
    assert [case for case in report.rows if case.verdict == "raises"] == [
        ("backward", "a deep chain", "raises", "RecursionError")]
    assert "a deep chain: raises RecursionError" in str(report)


def test_numbers_with_one_wrong_rule():
    class Tanh(Value):
        def tanh(self):
            return self.made(np.tanh(self.data), (self, 1 - np.tanh(self.data)))

    report = A.examine(of(Tanh))
    assert not report and {word for word, situation in said(report, "WRONG", "raises")} == {"tanh"}
    assert A.in_common(report.rows) == ["look at the rule of tanh"]


def test_numbers_that_start_afresh_in_each_call():
    class Afresh(Value):
        def clear(self, order):
            for node in order:
                node.grad = 0.0

    report = A.examine(of(Afresh))
    assert report and set(verdicts(report)) == {"ok", "not there"}


def test_numbers_whose_inner_sums_survive():
    """In y + y z + y at y = x z, y ends at 2 + z, and in the second call at twice that: three times the slope in all."""
    class Surviving(Value):
        def clear(self, order):
            """Nothing."""

    report = A.examine(of(Surviving))
    assert not report and said(report, "WRONG", "raises") == {("backward", "a second call")}


# --- engines of arrays

class Array:
    """Numpy, a seed, and a sum over what was copied: right."""
    __array_ufunc__ = None
    dtype = float

    def __init__(self, data, edges=()):
        self.data = np.array(data, self.dtype)
        self.grad, self.edges = None, edges

    def made(self, data, *edges):
        return type(self)(data, [(b, rule) for b, rule in edges if isinstance(b, Array)])

    def fit(self, g):
        axes = [i for i in range(-g.ndim, 0) if i < -self.data.ndim or self.data.shape[i] < g.shape[i]]
        return g.sum(axis=tuple(axes), keepdims=True).reshape(self.data.shape)

    def receive(self, g):
        g = self.fit(g)
        self.grad = g if self.grad is None else self.grad + g

    def walk(self, seed):
        for node in Value.order(self):
            if node.edges:
                node.grad = None
        self.grad = np.array(seed, self.dtype)
        for node in reversed(Value.order(self)):
            for operand, rule in node.edges:
                operand.receive(np.asarray(rule(node.grad)))

    @property
    def children(self):
        return [operand for operand, rule in self.edges]

    def backward(self, seed):
        if np.shape(seed) != self.data.shape:
            raise ValueError("the seed has another shape")
        self.walk(seed)

    def __add__(self, b):
        return self.made(self.data + array(b), (self, lambda g: g), (b, lambda g: g))

    def __mul__(self, b):
        u, v = self.data, array(b)
        return self.made(u * v, (self, lambda g: g * v), (b, lambda g: g * u))

    def __pow__(self, b):
        u, v = self.data, array(b)
        return self.made(u ** v, (self, lambda g: g * v * u ** (v - 1)), (b, lambda g: g * u ** v * np.log(u)))

    def __matmul__(self, b):
        u, v = self.data, array(b)
        if u.ndim != 2 or v.ndim != 2:
            raise ValueError("matrices only")
        return self.made(u @ v, (self, lambda g: g @ v.T), (b, lambda g: u.T @ g))

    def __sub__(self, b):
        return self + b * -1.0 if isinstance(b, Array) else self + -b

    def __rsub__(self, b):
        return self * -1.0 + b

    def __truediv__(self, b):
        return self * b ** -1.0

    def __rtruediv__(self, b):
        return self ** -1.0 * b

    def __neg__(self):
        return self * -1.0

    __radd__, __rmul__ = __add__, __mul__

    def exp(self):
        out = np.exp(self.data)
        return self.made(out, (self, lambda g: g * out))

    def tanh(self):
        out = np.tanh(self.data)
        return self.made(out, (self, lambda g: g * (1 - out ** 2)))

    def sum(self, axis=None, keepdims=False):
        def rule(g):
            back = g if axis is None or keepdims else np.expand_dims(g, axis)
            return np.broadcast_to(back, self.data.shape)
        return self.made(self.data.sum(axis=axis, keepdims=keepdims), (self, rule))

    def mean(self, axis=None, keepdims=False):
        total = self.sum(axis, keepdims)
        return total * (total.data.size / self.data.size)

    @property
    def T(self):
        return self.made(self.data.T, (self, lambda g: g.T))

    def reshape(self, *shape):
        return self.made(self.data.reshape(shape), (self, lambda g: g.reshape(self.data.shape)))

    def __getitem__(self, index):
        def rule(g):
            zeros = np.zeros(self.data.shape, self.dtype)
            np.add.at(zeros, index, g.reshape(self.data[index].shape))
            return zeros
        return self.made(self.data[index], (self, rule))


def array(x):
    return x.data if isinstance(x, Array) else np.asarray(x, float)


COPIED = {"a row", "a vector", "a column", "a number", "an entry"}


def right(report):
    """The whole of Array is there, and right."""
    words = {word for word, situation in said(report, "ok")}
    return report and set(verdicts(report)) == {"ok", "not there"} and COPIED <= situations(report, "ok") and words == (
        {"backward", *A.PAIRS, *A.SINGLES} - {"log", "sigmoid", "relu", "transpose"})


@pytest.mark.deep
def test_arrays_right():
    assert right(A.examine(Array))


class Unsummed(Array):
    """The sum over what was copied is left out."""
    def fit(self, g):
        return g


class UnsummedInPlace(Unsummed):
    def receive(self, g):
        if self.grad is None:
            self.grad = np.zeros(self.data.shape)
        self.grad += g


@pytest.mark.parametrize("engine, verdict", [(Unsummed, "WRONG"), (UnsummedInPlace, "raises")])
def test_arrays_without_the_sum_of_copies(engine, verdict):
    """A slope of the wrong shape is WRONG, and one that has no room in the right one raises."""
    report = A.examine(engine)
    copied = {(word, situation) for word in ("u + v", "u - v", "u * v", "u / v", "u ** v") for situation in COPIED}
    assert said(report, verdict) >= copied and kind(report) == "copies"
    assert verdict == "raises" or {case.detail.split(",")[0] for case in report.rows if case[:2] in copied} == {"nan"}
    # Elsewhere only where x meets a sum of itself, which is smaller.
    assert COPIED <= situations(report, "WRONG", "raises") <= COPIED | {"other uses", "a vector, array"}
    assert bool(report) == (verdict == "raises")


class Seedless(Array):
    def backward(self):
        self.walk(np.ones(self.data.shape))


class DeafToItsArgument(Array):
    def backward(self, retain_graph=False):
        self.walk(np.ones(self.data.shape))


class SeedIsAnArray(Array):
    def backward(self, seed):
        assert isinstance(seed, Array)
        self.walk(seed.data)


class SlopeIsAnArray(Array):
    """Of another class, that has it in its data."""
    @property
    def grad(self):
        return self.kept

    @grad.setter
    def grad(self, g):
        self.kept = None if g is None else g if isinstance(g, Array) else Array(g)

    def walk(self, seed):
        for node in Value.order(self):
            if node.edges:
                node.grad = None
        self.grad = seed
        for node in reversed(Value.order(self)):
            for operand, rule in node.edges:
                operand.receive(np.asarray(rule(node.grad.data)))

    def receive(self, g):
        self.grad = self.fit(g) if self.grad is None else self.grad.data + self.fit(g)


@pytest.mark.parametrize("engine", [Seedless, DeafToItsArgument, SeedIsAnArray, SlopeIsAnArray])
def test_arrays_that_want_to_be_asked_in_another_way(engine):
    assert right(A.examine(engine))


def test_arrays_whose_gradients_have_another_name():
    class Named(Array):
        @property
        def slope_along(self):
            return self.grad

    assert right(A.examine(Named, slope=lambda tensor: tensor.slope_along))
    # Where there is no gradient, it is taken to be 0, which x * x is not, and x - x is.
    report = A.examine(of(Value), slope=lambda tensor: None)
    assert not report and ("u * v", "twice") in said(report, "WRONG")
    assert ("u - v", "twice") in said(report, "ok")


@pytest.mark.parametrize("engine", [DeafToItsArgument, Seedless])
def test_arrays_that_can_not_be_asked_are_taken_for_numbers(engine):
    class Sumless(engine):
        sum = mean = None

    report = A.examine(Sumless)
    assert report and set(verdicts(report)) == {"ok", "not there"}
    assert not situations(report, "ok", "not there") & {"same shape", "a row", "a column", "not square"}
    assert ("u * v", "numbers") in said(report, "ok")


class Single(Array):
    dtype = np.float32


@pytest.mark.deep
def test_arrays_of_few_digits():
    """Right, and then with one wrong rule."""
    class Tanh(Single):
        def tanh(self):
            out = np.tanh(self.data)
            return self.made(out, (self, lambda g: g * (1 - out)))

    report = A.examine(Single)
    assert report and set(verdicts(report)) == {"ok", "not there"}
    report = A.examine(Tanh)
    assert not report and {word for word, situation in said(report, "WRONG")} == {"tanh"}


class OfTwoAxes(Array):
    """A number is an array of shape (1, 1) here, and so is its slope."""
    def __init__(self, data, edges=()):
        data = np.array(data, float)
        super().__init__(data if data.ndim else data.reshape(1, 1), edges)

    def sum(self, axis=None, keepdims=False):
        return super().sum(axis, keepdims or axis is None)


class SeedOverwritten(Array):
    """It takes the seed as its own, and sets inner sums back to 0 in place."""
    def walk(self, seed):
        for node in Value.order(self):
            if node.edges:
                node.grad = np.zeros(node.data.shape)
        self.grad = seed
        for node in reversed(Value.order(self)):
            for operand, rule in node.edges:
                operand.receive(np.array(rule(node.grad)))
            if node.edges and np.ndim(node.grad):
                node.grad[...] = 0


@pytest.mark.parametrize("engine", [OfTwoAxes, SeedOverwritten])
def test_arrays_kept_in_another_way(engine):
    assert right(A.examine(engine))


class SumsNotSpread(Array):
    """The rule of a sum leaves it to numpy along which axis the slopes are copied: right for the first axis alone."""
    def sum(self, axis=None, keepdims=False):
        out = self.data.sum(axis=axis, keepdims=keepdims)
        return self.made(out, (self, lambda g: np.broadcast_to(g, self.data.shape)))


class ConstantsNotSummed(Array):
    """The sum over copies is left out where the other operand is a constant: the slope is that of the first copy."""
    def __mul__(self, b):
        def rule(g):
            report = g * array(b)
            return report if report.shape == self.data.shape else report[0]
        return super().__mul__(b) if isinstance(b, Array) else self.made(self.data * array(b), (self, rule))

    __rmul__ = __mul__


class EdgesCountedOnce(Array):
    """A node waits for as many reports as it has uses, and x * x counts for one of its two: x waits forever."""
    def walk(self, seed):
        nodes = Value.order(self)
        waits = Counter(operand for node in nodes for operand in node.children)
        for node in nodes:
            if node.edges:
                node.grad = None
        self.grad, ready = np.array(seed), [self]
        for node in ready:
            for operand, rule in node.edges:
                operand.receive(np.asarray(rule(node.grad)))
            for operand in set(node.children):
                waits[operand] -= 1
                if not waits[operand]:
                    ready.append(operand)


class ReluOfAll(Array):
    """The slope of relu is that of the whole array, which is right if all numbers have one sign."""
    def relu(self):
        return self.made(np.maximum(self.data, 0), (self, lambda g: g * (self.data > 0).all()))


class NoVectors(Array):
    """A product with a vector has a value and no rule."""
    def __matmul__(self, b):
        if array(b).ndim == 2:
            return super().__matmul__(b)
        return self.made(self.data @ array(b), (self, lambda g: g @ array(b).T), (b, lambda g: self.data.T @ g))


# The engine: where it is WRONG, where it raises, and what its failures have in common.
SPREAD = "sum, axis", "mean, axis"
SLIPS = {SumsNotSpread: ({(word, place) for word in SPREAD for place in ("by itself", "around 0", "other uses")},
                         {(word, "not square") for word in SPREAD}, {*SPREAD}),
         ConstantsNotSummed: ({("u * v", "a vector, array"), ("u / v", "a vector, array")}, set(), "copies"),
         EdgesCountedOnce: ({(word, "other uses") for word in ("u + v", "u * v", "u ** v", "u @ v")}, set(), None),
         ReluOfAll: ({("relu", "around 0"), ("relu", "other uses")}, set(), {"relu"}),
         NoVectors: (set(), {("u @ v", "square @ vector")}, None)}


@pytest.mark.parametrize("engine", SLIPS)
def test_arrays_with_a_slip_that_shows_in_one_situation(engine):
    report = A.examine(engine)
    wrong, raises, like = SLIPS[engine]
    assert (said(report, "WRONG"), said(report, "raises")) == (wrong, raises) and bool(report) == (not wrong)
    assert (kind(report) if A.in_common(report.rows) else None) == like


@pytest.mark.deep
def test_a_high_limit_of_recursion_makes_no_chain_that_never_ends():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200_000)
    try:
        x = A.Tensor(1.0)
        y = A.deep_chain(x)
    finally:
        sys.setrecursionlimit(limit)
    y.backward()
    assert y.data == x.grad and 3000 < x.grad < 100_000


class Swapped(Array):
    """tanh computes exp, with the slopes of exp."""
    tanh = Array.exp


def test_a_word_that_computes_something_else_is_wrong():
    report = A.examine(Swapped)
    assert not report and {word for word, situation in said(report, "WRONG")} == {"tanh"}
    assert {case.detail for case in report.rows if case.verdict == "WRONG"} == {"another value"}


def test_a_slope_below_the_noise_is_not_judged():
    """A large constant hides it; where both sides are near 0, and where the engine says nan, there is a verdict."""
    peer = A.Peer(A.Tensor, A.gradient, "with a seed", 1e-5, 1e-4)
    hidden, detail = A.judged(lambda x: x * 1e-3 + 1e9, [np.array(1.5)], 0, peer, 1)
    assert hidden == "not judged" and detail.startswith("0.00, nudged ")
    assert A.judged(lambda x: x - x, [np.array(1.5)], 0, peer, 1) == ("ok", "")
    nan = A.elementwise(np.exp, lambda g, x, out: g * np.nan)
    assert A.judged(nan, [np.array(1.5)], 0, peer, 1)[0] == "WRONG"


# --- no engine at all

def no_tensor(array):
    raise RuntimeError("no tensor today")


@pytest.mark.parametrize("make", [no_tensor, lambda array: None, float, lambda array: array])
def test_what_is_no_engine_is_no_success(make):
    report = A.examine(make)
    assert not report and not set(verdicts(report)) & {"ok", "WRONG"}
    assert str(report).startswith("asked without a seed, about single numbers\n") and " ok" not in str(report)


def test_a_report_is_printed_with_a_line_for_each_error_and_the_counts():
    rows = [A.Case("exp", "by itself", "WRONG", "1.00, nudged 2.00"), A.Case("exp", "around 0", "ok", ""),
            A.Case("log", "by itself", "not there", "AttributeError"),
            A.Case("tanh", "by itself", "not judged", "0.00, nudged 0.01"),
            A.Case("tanh", "around 0", "raises", "TypeError")]
    lines = str(A.Examination(rows, "in a way")).splitlines()
    assert lines == ["asked in a way", "exp, by itself: WRONG 1.00, nudged 2.00",
                     "tanh, by itself: not judged 0.00, nudged 0.01", "tanh, around 0: raises TypeError",
                     "1 WRONG, 1 ok, 1 not there, 1 not judged, 1 raises", "not there: log (1)", "look at the rule of exp"]
    assert not A.Examination(rows, "") and A.Examination(rows[1:3], "")
    assert not A.Examination(rows[2:], "") and not A.Examination([], "")


def test_an_engine_of_few_digits_is_nudged_further():
    """As the list of chapter 5 has it for float32, with a percent of tolerance."""
    x = np.array([1.0, 2.0])
    assert A.nudge_for(lambda x: np.float32(x), x) == (5e-3, 1e-2)
    assert A.nudge_for(A.Tensor, x) == (1e-5, 1e-4)


def test_a_situation_is_named_for_its_shapes():
    places = {"a row": 0, "a vector": 1, "a column": 1, "an entry": 0, "a number": 0}
    shapes = {"a row": (1, 3), "a vector": (3,), "a column": (3, 1), "an entry": (1, 1), "a number": ()}
    for name, place in places.items():
        pair = A.SHAPES[name]
        assert pair[place] == shapes[name] and pair[1 - place] == (3, 3)
    assert A.SHAPES["same shape"] == A.MATRICES["same shape"] == [(3, 3), (3, 3)] and A.SHAPES["numbers"] == [(), ()]
    assert A.MATRICES["square @ column"][1] == (3, 1) and A.MATRICES["square @ vector"][1] == (3,)
    assert A.MATRICES["row @ square"] == [(1, 3), (3, 3)]
    (n, m), (k, l) = A.MATRICES["not square"]
    assert m == k and n != m
