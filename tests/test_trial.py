"""The checks are asked about planted faults, and the faults are undone."""
from itertools import combinations, cycle
from pathlib import Path

import numpy as np
import pytest

import anatomy as A

OURS = "shapes", "adjoint", "cover"      # the checks that this file relies on
HARMLESS = {"labels_in_a_row", "grads_never_cleared"}    # every slope is right


def places():
    """Everything that a fault can replace: (home, place) -> object."""
    return {(f.home, f.place): vars(A if f.home is None else f.home)[f.place] for f in A.FAULTS.values()}


def gradients():
    f, params = A.network()
    f(*params).backward()
    leaves = [A.Tensor(p.data) for p in A.LEAVES]
    A.cover(*leaves).backward(np.arange(9.0).reshape(3, 3))
    return [p.grad for p in (*params, *leaves)]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def words(name, *checks):
    """What these checks say of the fault, or all but the one that trains."""
    with A.planted(name), np.errstate(all="ignore"):
        return {check: A.verdict(A.CHECKS[check]) for check in checks or set(A.CHECKS) - {"Adam"}}


def test_a_fault_is_the_function_of_its_name():
    for name, fault in A.FAULTS.items():
        assert getattr(A, name) is fault.function


def test_the_wrong_axis_is_summed_of_the_transposed():
    g = np.arange(9.0).reshape(3, 3)
    with A.planted("wrong_axis_summed"):
        assert np.array_equal(A.unbroadcast(g, (1, 3)), g.T.sum(axis=0, keepdims=True))


def test_every_fault_is_of_a_kind_has_a_line_and_replaces_what_is_there():
    assert len(A.FAULTS) == 23
    kinds = [f.kind for f in A.FAULTS.values()]
    assert list(dict.fromkeys(kinds)) == ["program", "copies", "rules", "order"]
    assert {name for name, f in A.FAULTS.items() if f.kind == "program"} == HARMLESS
    for name, f in A.FAULTS.items():
        line = f.function.__doc__
        assert f.function.__name__ == name and line.endswith(".") and "\n" not in line
        assert f.home in (None, A.Tensor, A.Optimizer) and callable(places()[f.home, f.place])


@pytest.mark.parametrize("name", A.FAULTS)
def test_every_fault_is_undone_and_the_engine_is_the_untouched_one(name):
    before, slopes = places(), gradients()
    changed = {(A.FAULTS[name].home, A.FAULTS[name].place)}
    with A.planted(name):
        assert {place for place, what in places().items() if what is not before[place]} == changed
    assert places() == before
    with pytest.raises(ZeroDivisionError), A.planted(name):
        1 / 0
    assert places() == before and same(slopes, gradients())


def test_an_unknown_fault_plants_nothing():
    before = places()
    for ask in A.planted, A.trial:
        with pytest.raises(ValueError) as refusal:
            ask("no_such_fault")
        assert all(name in str(refusal.value) for name in ("no_such_fault", *A.FAULTS))
        assert len(str(refusal.value).splitlines()) == 1
    with pytest.raises(KeyError), A.replaced(None, "no_such_function", print):
        pass
    assert places() == before and not hasattr(A, "no_such_function")


def test_faults_nest():
    """Also one in itself: the inner one is handed the outer one."""
    before = places()
    with A.planted("mean_without_n"), A.planted("mean_of_copies"):
        outer = places()
        with A.planted("mean_without_n"):
            assert places() != outer
        assert places() == outer
    assert places() == before
    with A.planted("mean_of_copies"), A.planted("mean_of_copies"):
        assert np.array_equal(A.unbroadcast(np.ones((4, 3)), (3,)), np.full(3, 4 / 4 ** 2))


def test_a_replacement_is_handed_ours_and_all_arguments():
    x = A.Tensor(np.arange(6.0).reshape(2, 3))

    def doubled(ours, a, axis=None, keepdims=False):
        return ours(a, axis=axis, keepdims=keepdims) * 2

    with A.replaced(A.Tensor, "sum", doubled):
        assert np.array_equal(x.sum(axis=1, keepdims=True).data, [[6], [24]])
    assert np.array_equal(x.sum(1).data, [3, 12])


def slopes_everywhere():
    """Of the network and of all programs of `examine`: their slopes, or the name of the error that they raise."""
    f, params = A.network()
    programs = [(f, params)]
    for f, arrays in A.all_programs(A.uneven((3, 3))).values():
        programs.append((f, [A.Tensor(a) for a in arrays]))
    found = []
    for f, leaves in programs:
        try:
            y = f(*leaves)
            y.backward(A.uneven(y.shape))
            found.append([p.grad for p in leaves])
        except Exception as error:
            found.append(type(error).__name__)
    return found


def differ(one, other):
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) != isinstance(other, str)
    return not all(a.shape == b.shape and np.allclose(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def test_each_fault_is_a_different_fault():
    """Only the one that forgets to clear has the right slopes, in a first pass."""
    with np.errstate(all="ignore"):
        under = {"none": slopes_everywhere()}
        for name in A.FAULTS:
            with A.planted(name):
                under[name] = slopes_everywhere()
    alike = {(one, other) for one, other in combinations(under, 2) if not any(map(differ, under[one], under[other]))}
    assert alike == {("none", "grads_never_cleared")}
    w = A.Tensor([1.0])
    w.grad = np.ones(1)
    with A.planted("grads_never_cleared"):
        A.SGD([w], 0.1).zero_grad()
        assert w.grad == 1
    A.SGD([w], 0.1).zero_grad()
    assert w.grad is None


U, V = np.array([[1.0, 2.0], [-3.0, 4.0]]), np.array([[5.0, 6.0], [7.0, 8.0]])
G = np.array([[1.0, 10.0], [100.0, 1000.0]])
WRONG = {        # a program of U and V, and what their slopes are then, for the cotangent G
    "sum_sign": (lambda u, v: u + v, G, -G),
    "product_operand": (lambda u, v: u * v, G * U, G * U),
    "matmul_no_transpose": (lambda u, v: u @ v, G @ V, U.T @ G),
    "matmul_wrong_transpose": (lambda u, v: u @ v, G @ V.T, G.T @ U),
    "mean_without_n": (lambda u, v: u + v.mean(), G, np.full((2, 2), 1111.0)),
    "transpose_not_undone": (lambda u, v: u.transpose() + v, G, G),
    "relu_slope_always_1": (lambda u, v: u.relu() + v, G, G),
    "sigmoid_without_slope": (lambda u, v: u.sigmoid() + v, G, G),
    "log_of_the_result": (lambda u, v: u + v.log(), G, G / np.log(V)),
    "one_edge_kept": (lambda u, v: u * u + v, G * U, G)}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_wrong_in_the_way_that_its_line_says(name):
    """And the value is right."""
    program, *slopes = WRONG[name]
    u, v = A.Tensor(U), A.Tensor(V)
    right = program(u, v).data
    with A.planted(name):
        y = program(u, v)
        y.backward(G)
    assert np.array_equal(y.data, right)
    for p, slope in zip((u, v), slopes, strict=True):
        np.testing.assert_allclose(p.grad, slope, rtol=1e-12)


def test_every_wrong_rule_has_its_program():
    assert {name for name, f in A.FAULTS.items() if f.kind == "rules"} == WRONG.keys() - {"one_edge_kept"}


@pytest.mark.parametrize("name", A.FAULTS)
def test_our_checks_together_convict_what_changes_a_gradient(name):
    assert (set(words(name, *OURS).values()) == {"passes"}) == (name in HARMLESS)


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_no_gradient_check_sees_a_fault_of_the_program(name):
    assert set(words(name).values()) == {"passes"}


def test_each_check_is_blind_in_its_own_way():
    left_out, mean = words("copies_not_summed", *OURS), words("mean_of_copies", *OURS)
    assert left_out["adjoint"] == "passes" and left_out["shapes"] == "caught"
    assert mean["shapes"] == "passes" and mean["adjoint"] == "caught"
    turned = words("transpose_not_undone", "ones", "cover")
    assert turned["ones"] == "passes" and turned["cover"] == "caught"
    assert words("product_operand", "network")["network"] == "passes"
    kept = words("one_edge_kept", "network", "Adam", "cover")
    assert kept["network"] == kept["Adam"] == "passes" and kept["cover"] == "caught"


def test_the_textbook_loop_in_the_right_order_is_our_engine():
    def textbook(ours, root, seed=None):
        A.visit_once(root, seed, A.post_order(root, [])[::-1])

    with_ours = gradients()
    with A.replaced(A.Tensor, "backward", textbook):
        with_textbook = gradients()
    for a, b in zip(with_ours, with_textbook, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_the_orders_are_what_their_names_say():
    """In chapter 2's y = x * x, s = y * y, L = y + s at x = 3, where the slope is (1 + 18) * 6 = 114."""
    x = A.Tensor(3.0)
    y = x * x
    s = y * y
    L = y + s
    assert A.breadth(L) == [L, y, s, x, x, y, y, x, x, x, x]
    expected = {"breadth_first": 1 * 6,                     # y passes on the 1 of L before s has reported
                "forward_order": 0,                         # x, y and s pass on before they have anything
                "every_path": 1 * 6 + 2 * 19 * 6,           # y passes on 1, and then 19 twice
                "overwriting": 9 * 3}                       # the last report to y is s's second, 1 * 9
    for name, slope in expected.items():
        with A.planted(name):
            L.backward()
        assert x.grad == slope, name


def test_wrong_gradients_train_under_adam_and_one_helps_sgd():
    for name, least in ("mean_of_copies", 0.93), ("mean_without_n", 0.93), ("first_entries", 0.85):
        assert words(name, "network")["network"] == "caught"
        with A.planted(name):
            assert A.trained(A.Adam) > least > A.trained(A.SGD, 1.0) + 0.15
    with A.planted("mean_without_n"):
        helped = A.trained(A.SGD)
    assert helped > A.trained(A.SGD) + 0.1


def test_labels_of_shape_n_ask_for_the_mean_label():
    X, y = A.spiral()
    z, w = (A.Tensor(A.MLP(*A.weights())(X).data) for _ in range(2))
    with A.planted("labels_in_a_row"):
        A.patched_bce(z, y).mean().backward()
    A.patched_bce(w, np.full(y.shape, y.mean())).mean().backward()
    np.testing.assert_allclose(z.grad, w.grad, rtol=1e-9, atol=1e-15)


def test_a_pasted_file_plants_in_its_own_names():
    here = {"__name__": "pasted"}
    exec(compile(Path(A.__file__).read_text(encoding="utf-8"), "pasted", "exec"), here)
    for name in "mean_of_copies", "product_operand":
        home, place = here["FAULTS"][name].home, here["FAULTS"][name].place
        names = here if home is None else vars(home)
        ours = names[place]
        with here["planted"](name):
            assert names[place] is not ours
            assert not here["gradcheck"](here["cover"], here["LEAVES"])
            assert A.gradcheck(A.cover, A.LEAVES)
        assert names[place] is ours
    assert here["gradcheck"](here["cover"], here["LEAVES"])


def test_the_leaves_are_left_as_they_were():
    before = [(p.data.copy(), p.grad) for p in A.LEAVES]
    words("random_order", "cover", "ones")
    for p, (data, grad) in zip(A.LEAVES, before, strict=True):
        assert np.array_equal(p.data, data) and p.grad is grad


def test_verdicts():
    assert A.verdict(lambda: True) == "passes"
    assert A.verdict(lambda: False) == "caught"
    assert A.verdict(lambda: 1 / 0) == "raises"
    with pytest.raises(KeyboardInterrupt):
        A.verdict(lambda: (_ for _ in ()).throw(KeyboardInterrupt()))


def test_a_trial_asks_every_check_and_leaves_nothing_behind():
    before, settings = places(), np.geterr()
    assert list(A.trial("sum_sign")) == list(A.CHECKS)
    assert places() == before and np.geterr() == settings
    assert A.slipped({"a": {"x": "passes"}, "b": {"x": "caught"}, "c": {"x": "raises"}}, "x") == {"a"}


# The judge is judged: each rule times 1.5, one at a time. A case is a word, the number of the operand, and the only
# situation in which the rule is wrong, if it is not wrong everywhere.
TWO = {"__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/", "__pow__": "**", "__matmul__": "@"}
REVERSED = {name.replace("__", "__r", 1) for name in TWO}
ONE = {"__neg__", "exp", "log", "tanh", "sigmoid", "relu", "sum", "mean", "reshape", "transpose", "T", "__getitem__"}
CASES = [(name, k, "") for name in TWO for k in (0, 1)]
CASES += [(name, 0, "constant") for name in [*TWO, *sorted(REVERSED)]]
CASES += [(name, 0, "") for name in sorted(ONE)]
CASES += [(name, 0, given) for name in ("sum", "mean") for given in ("whole", "an axis", "an axis, kept")]
CASES += [("__getitem__", 0, given) for given in ("(0,)", "([0, 0, 1],)", "(slice(None, 3, None),)")]
CASES += [("__matmul__", 0, "vector")]


def half_as_much_again(rule):
    return lambda g: 1.5 * rule(g)


def situation(name, operands, settings):
    """Is there a constant, a vector, an axis, and is that kept? Or else the arguments."""
    if name in ("sum", "mean"):
        axis, keepdims = (*operands[1:], *settings.values(), None, None)[:2]
        return "whole" if axis is None else "an axis, kept" if keepdims else "an axis"
    if name not in {*TWO, *REVERSED}:
        return str(operands[1:])
    if not isinstance(operands[1], A.Tensor):
        return "constant"
    return "vector" if operands[1].data.ndim == 1 else "square, row or column"


@pytest.mark.parametrize("name, k, only", CASES)
def test_cover_convicts_each_rule_that_is_half_as_much_again(monkeypatch, name, k, only):
    ours, spoiled = vars(A.Tensor)[name], []

    def word(*operands, **settings):
        out = (ours.fget if name == "T" else ours)(*operands, **settings)
        if only in ("", situation(name, operands, settings)) and len(out.edges) > k:
            operand, shape, rule = out.edges[k]
            out.edges[k] = operand, shape, half_as_much_again(rule)
            spoiled.append(out)
        return out

    monkeypatch.setattr(A.Tensor, name, property(word) if name == "T" else word)
    assert not A.gradcheck(A.cover, A.LEAVES)
    assert spoiled


IN_NUMPY = {
    "-x": np.negative, "exp": np.exp, "log": np.log, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0), "sum": np.sum, "sum, axis": lambda x: np.sum(x, 1),
    "sum, keepdims": lambda x: np.sum(x, 0, keepdims=True), "mean": np.mean, "mean, axis": lambda x: np.mean(x, 1),
    "mean, keepdims": lambda x: np.mean(x, 0, keepdims=True), "x.T": np.transpose, "transpose": np.transpose,
    "reshape, slice": lambda x: x.ravel()[:3], "x[0]": lambda x: x[0], "x[[0, 0, 1]]": lambda x: x[[0, 0, 1]]}


def test_each_word_in_the_lists_is_what_it_is_called():
    """By its value, on numbers of both signs where the word takes them."""
    assert A.SINGLES.keys() == IN_NUMPY.keys()
    for name, word in A.SINGLES.items():
        x = A.uneven((3, 4)) - (0 if name == "log" else 1)
        out = word(A.Tensor(x)).data
        assert out.shape == np.shape(IN_NUMPY[name](x)) and np.allclose(out, IN_NUMPY[name](x), rtol=1e-12), name
    u, v = A.uneven((3, 3)), A.uneven((3, 3), 4)
    for name, word in A.PAIRS.items():
        assert np.allclose(word(A.Tensor(u), A.Tensor(v)).data, eval(name, {"u": u, "v": v}), rtol=1e-12), name


def test_cover_uses_one_node_before_all_words_and_after_them():
    """The words between are found out if their report erases that of the others, in either order."""
    root = A.cover(*A.LEAVES)
    after = root.edges[1][0]
    x, twin = (operand for operand, shape, rule in after.edges)
    users = [node for node in A.post_order(root, []) if any(operand is x for operand, shape, rule in node.edges)]
    users.sort(key=lambda node: node.born)
    assert twin is x and users[-1] is after and x.edges
    assert users[0].edges[1][0] is A.LEAVES[2] and len(users) > 40


def test_those_are_all_words_of_the_engine():
    class Empty:
        """What Python itself gives to a class."""
        __slots__ = ()

    rest = {name for name in vars(A.Tensor) if not name.startswith("__")} - {"data", "edges", "born", "grad"}
    assert rest == {name for name in ONE if not name.startswith("__")} | {"shape", "backward", "births"}
    python = {name for name in vars(A.Tensor) if name.startswith("__")} - set(vars(Empty))
    assert python == {*TWO, *REVERSED, "__neg__", "__getitem__"} | {
        "__init__", "__repr__", "__iter__", "__array__", "__array_ufunc__"}


def test_cover_convicts_each_single_edge_that_is_half_as_much_again(monkeypatch):
    """Not a rule everywhere, but one edge of the expression, in the situation in which it stands there."""
    init = A.Tensor.__init__
    edges_of_cover = 0

    def counting(self, data, *edges):
        nonlocal edges_of_cover
        init(self, data, *edges)
        for k, (operand, shape, rule) in enumerate(self.edges):
            if edges_of_cover == chosen:
                self.edges[k] = operand, shape, half_as_much_again(rule)
            edges_of_cover += 1

    def with_one_spoiled(*leaves):
        nonlocal edges_of_cover
        edges_of_cover = 0
        return A.cover(*leaves)

    monkeypatch.setattr(A.Tensor, "__init__", counting)
    # The values stay as they are, so the nudges of the first run, three leaves twice, serve all others.
    nudged, ours = [], A.numerical_grad
    monkeypatch.setattr(A, "numerical_grad", lambda *args: nudged.append(ours(*args)) or nudged[-1])
    chosen, missed = -1, []
    assert A.gradcheck(with_one_spoiled, A.LEAVES) and len(nudged) == 6
    again = cycle(nudged)
    monkeypatch.setattr(A, "numerical_grad", lambda *args: next(again))
    for chosen in range(edges_of_cover):
        if A.gradcheck(with_one_spoiled, A.LEAVES):
            missed.append(chosen)
    # x - x and x / x do not move, so of their sums' edges that lead to them 1.5 times as much is as right.
    assert len(missed) == 2 and edges_of_cover > 150
