"""Chapter 5: the trial."""
import numpy as np
import pytest

from anatomy import (SGD, Adam, Momentum, Report, RMSProp, Row, Tensor, ask, complex_slopes, elementwise,
                     gradcheck, judge, small_network)
from judges import numbers, same


def cut(w):
    """The value of w in an expression that has forgotten it."""
    return w.data


def leaf(*values):
    return Tensor(np.array(values))


W = (0.5, -1.5, 2.0)


# The published check

def test_the_published_check():
    """Loss 0.952288, and errors of 7.6e-9 by another engine; rounding may make them larger."""
    loss, params = small_network()
    assert f"{loss(*params).data:.6f}" == "0.952288"
    report = gradcheck(loss, params)
    assert report.ok and [row.shape for row in report.rows] == [(3, 5), (5,), (5, 2), (2,)]
    worst = [row.relative for row in report.rows]
    np.testing.assert_array_less(worst, [1e-6, 1e-7, 1e-6, 1e-7])
    assert min(worst) > 1e-12


def test_the_small_network_in_numpy():
    """Its loss by its definition, point by point."""
    loss, params = small_network(3)
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((4, 3)), rng.integers(0, 2, (4, 2))
    shapes = (3, 5), (5,), (5, 2), (2,)
    W1, b1, W2, b2 = arrays = [rng.standard_normal(shape) for shape in shapes]
    for p, a in zip(params, arrays):
        same(p.data, a)
    p = 1 / (1 + np.exp(-(np.maximum(X @ W1 + b1, 0) @ W2 + b2)))
    chosen = np.where(Y == 1, p, 1 - p)
    same(loss(*params).data, -np.log(chosen + 1e-8).mean(), rtol=1e-12)


# Right slopes pass

RIGHT = {
    "square": (lambda w: (w * w).sum(), [W]),
    "number": (lambda s: (s * np.array([1.0, 2.0])).exp().sum(), [(0.7,)]),
    "vector": (lambda w: w * w, [W]), "matrix": (lambda w: w.reshape(3, 1) * w, [W]),
    "steep": (lambda w: (w ** 3).sum() * 1e6, [W]), "gentle": (lambda w: (w ** 3).sum() * 1e-6, [W]),
    "curved": (lambda w: (w * 8.0).exp().sum(), [(0.1, 1.0)]),
    "some zeros": (lambda w: (w[:1] ** 2).sum(), [W]),
    "near a kink": (lambda w: (w.relu() * np.array([1.0, 2.0, 3.0])).sum(), [(-0.1, 0.1, 3.0)]),
    "two": (lambda a, b: (a @ b) * a, [W, W]), "integers": (lambda w: (w * w).sum(), [(1, 2, 3)]),
    "large constant": (lambda w: (w * w).sum() + 1e3, [W])}


@pytest.mark.parametrize("name", RIGHT)
def test_right_slopes_pass(name):
    """Large, small, curved, several, some of them zero."""
    f, params = RIGHT[name]
    report = gradcheck(f, [leaf(*p) for p in params])
    assert report.ok is True and bool(report) and len(report.rows) == len(params), report


@pytest.mark.parametrize("data", [3.0, [[1.0, 2.0]], np.arange(6.0).reshape(2, 3).T + 1])
def test_parameters_of_any_shape(data):
    """0-d, rows, views: each entry is nudged where it is."""
    t = Tensor(data)
    report = gradcheck(lambda w: w ** 3 * np.arange(1.0, 1 + t.data.size).reshape(t.shape), [t])
    assert report.ok and report.rows[0].shape == t.shape


def test_any_iterable_of_parameters():
    """A generator is used once, a tuple and a list alike."""
    a, b = leaf(*W), leaf(*W)
    for params in (a, b), [a, b], (p for p in (a, b)):
        assert len(gradcheck(lambda a, b: a * b, params).rows) == 2


# Wrong slopes do not

WRONG = {
    "half": (lambda w: (w * cut(w)).sum(), [W]), "number": (lambda s: s * cut(s), [(0.7,)]),
    "small": (lambda w: (w * cut(w)).sum() * 1e-5, [W]),
    "permuted": (lambda w: w + (cut(w)[::-1] - cut(w)), [W]),
    "one entry": (lambda w: w * np.array([1.0, 1.0, 1.001]) - cut(w) * np.array([0, 0, .001]), [W]),
    "sign": (lambda w: (cut(w) * 2 - w).sum(), [W]),
    "first of three": (lambda a, b, c: (a * cut(a)).sum() + b * b + c * c, [W[:1]] * 3),
    "last of three": (lambda a, b, c: a * a + b * b + (c * cut(c)).sum(), [W[:1]] * 3),
    "zero found": (lambda w: w * 0 + cut(w), [W]), "zero nudged": (lambda w: w - cut(w), [W]),
    "forgotten": (lambda w: Tensor(cut(w)) * 2, [W]), "nan": (lambda w: w.log().sum(), [(-1.0, 2.0)]),
    "infinite": (lambda w: (w * np.inf).sum(), [W]),
    "behind a large constant": (lambda w: (w * cut(w)).sum() + 1e12, [W])}


NOT_JUDGED = "no slope that can be judged"
OTHERWISE = {"forgotten": "not reached by backward", "nan": NOT_JUDGED, "infinite": NOT_JUDGED,
             "behind a large constant": NOT_JUDGED}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_wrong_slopes_are_convicted(name):
    """Cut, scaled, permuted, missing, not a number, in one of several."""
    f, params = WRONG[name]
    report = gradcheck(f, [leaf(*p) for p in params])
    assert report.ok is False and not report, report
    assert [row.verdict for row in report.rows if row.verdict != "ok"] == [OTHERWISE.get(name, "WRONG")]


@pytest.mark.parametrize("f, params", [
    (lambda: Tensor(1.0), []), (lambda a, b: (a * a).sum(), [W, (1.0,)]),
    (lambda w: Tensor(3.0), [W]), (lambda w: (w * 0).sum(), [W]), (lambda w: w.sum(), [()])])
def test_a_verdict_is_not_empty(f, params):
    """No parameters, an ignored one, a flat function, no entries: no success."""
    report = gradcheck(f, [leaf(*p) for p in params])
    assert not report.ok and not report
    assert len(report.rows) == len(params)


def test_the_parameter_that_f_ignores_is_named():
    """Its own row says so, its neighbour is right."""
    report = gradcheck(lambda a, b: a * a, [leaf(2.0), leaf(3.0)])
    assert report.rows[0].relative < 1e-8 and np.isnan(report.rows[1].relative)
    assert "not reached" in str(report).splitlines()[1]
    assert "judged" in gradcheck(lambda a, b: a * a + b * 0, [leaf(2.0), leaf(3.0)]).rows[1].verdict


def test_convicted_for_the_right_amount():
    """The relative error of a slope that is half as long is one half."""
    (row,) = gradcheck(lambda w: (w * cut(w)).sum(), [leaf(*W)]).rows
    assert row.shape == (3,) and abs(row.absolute - 2.0) < 1e-6 and abs(row.relative - 0.5) < 1e-6
    (row,) = gradcheck(lambda w: w * 4 - cut(w) * 2, [leaf(1.0)]).rows     # 4 for 2
    assert abs(row.absolute - 2.0) < 1e-6 and abs(row.relative - 0.5) < 1e-6


def test_five_lies_about_tanh():
    """Each of these is caught on its own."""
    for name, lie in {"1 - y": lambda g, x, y: g * (1 - y), "y": lambda g, x, y: g * y,
                      "1 + y^2": lambda g, x, y: g * (1 + y * y), "g": lambda g, x, y: g,
                      "-": lambda g, x, y: g * (y * y - 1)}.items():
        tanh = elementwise(np.tanh, lie)
        assert not gradcheck(lambda w: tanh(w).sum(), [leaf(0.3, -1.0, 2.0)]), name
    assert gradcheck(lambda w: w.tanh().sum(), [leaf(0.3, -1.0, 2.0)])


@pytest.mark.parametrize("labels", [np.zeros(4), np.zeros((4, 1))])
def test_a_wrong_program_has_right_slopes(labels):
    """What the judge cannot see: (N, 1) minus (N,) is a program like any other."""
    assert gradcheck(lambda z: ((z - labels) ** 2).mean(), [Tensor(numbers(4, 1))])


# tol and h

def test_tol_is_the_bound():
    """A slope wrong by 0.1% passes at 1%, not at 0.01%."""
    def f(w):
        return (w ** 2).sum() * 0.999 + (cut(w) ** 2).sum() * 0.001
    assert gradcheck(f, [leaf(*W)], tol=1e-2)
    assert not gradcheck(f, [leaf(*W)], tol=1e-4)
    assert not gradcheck(f, [leaf(*W)], 1e-5, 1e-6)


def test_h_is_the_nudge():
    """With a large h the bending shows."""
    f = [lambda w: (w ** 4).sum(), [leaf(1.0)]]
    assert gradcheck(*f) and not gradcheck(*f, h=0.1) and not gradcheck(*f, 0.1)
    (row,) = gradcheck(lambda w: w ** 3, [leaf(1.0)], h=1e-3).rows   # 3 + h^2 nudged
    assert abs(row.absolute - 1e-6) < 1e-9 and abs(row.relative - 1e-6 / 3) < 1e-9
    (row,) = gradcheck(lambda w: w ** 3, [leaf(1.0)], h=0.1).rows    # 3.01, by h / 2 3.0025
    assert "judged" in row.verdict


@pytest.mark.parametrize("bad", [0, -1e-5, np.nan])
@pytest.mark.parametrize("name", ["h", "tol"])
def test_h_and_tol_that_judge_nothing(name, bad):
    """0, negative and NaN are refused."""
    w = leaf(*W)
    with pytest.raises(ValueError, match="^h and tol are above 0"):
        gradcheck(lambda w: (w * w).sum(), [w], **{name: bad})
    same(w.data, W)


@pytest.mark.parametrize("name", ["h", "tol"])
@pytest.mark.parametrize("bad", ["a", None, 1j])
def test_h_and_tol_that_are_no_numbers(name, bad):
    """Python's own refusal, and nothing moved."""
    w = leaf(*W)
    with pytest.raises(TypeError):
        gradcheck(lambda w: (w * w).sum(), [w], **{name: bad})
    same(w.data, W)


def test_rounding_is_not_a_crime():
    """A right slope below the noise of its nudge, over tol, is not judged at all."""
    for slope in 1e-7, 1e-3, 1.0:           # 1e8 eps / h, a noise of 2e-3, over tol
        report = gradcheck(lambda a, b: a * 1e8 + b * slope, [leaf(1.0), leaf(1.0)])
        assert report.rows[0].relative < 1e-4 and "judged" in report.rows[1].verdict and not report
    assert gradcheck(lambda a, b: a * 1e8 + b * 1e3, [leaf(1.0), leaf(1.0)])


STATIONARY = {
    "a cubic": (lambda w: (w ** 3).sum(), (1.0, 0.0)), "a vector": (lambda w: w ** 3, (1.0, 0.0, 0.5)),
    "a product": (lambda w: (w * w * w).sum(), (0.5, 0.0)),
    "tanh(w) - w": (lambda w: (w.tanh() - w).sum(), (0.0, 1.0)),
    "a double root": (lambda w: ((w - 1) ** 2 * (w + 2)).sum(), (1.0, 0.0)),
    "an optimum": (lambda w: (w.exp() - np.array([3.0, 1.0]) * w).sum(), (float(np.log(3)), 1.0))}


@pytest.mark.parametrize("name", STATIONARY)
def test_bending_is_not_a_crime(name):
    """Where the slope is 0 the nudge finds h^2 / 6 times f's third derivative: its error, not the engine's."""
    f, values = STATIONARY[name]
    report = gradcheck(f, [leaf(*values)])
    assert report and "WRONG" not in str(report), report


@pytest.mark.parametrize("power", [1.5, 2.5])
@pytest.mark.parametrize("x", [1.1e-5, 1.5e-5, 0.5])
def test_close_to_the_end_of_where_f_is_defined(x, power):
    """No nudge goes farther than h."""
    report = gradcheck(lambda w: w ** power, [leaf(x, 0.5)], h=1e-5)
    assert np.isfinite(report.rows[0].relative) and "WRONG" not in str(report)


@pytest.mark.parametrize("missing", [1e-8, 1e-3, 1.0])
def test_a_wrong_slope_at_a_stationary_entry_is(missing):
    """An entry of slope 0 that is said to have another."""
    assert not gradcheck(lambda w: (w ** 3).sum() + (w[1] - cut(w)[1]) * missing, [leaf(1.0, 0.0)])


ZERO = {
    "equals": (lambda w: w[0] - w[1], (2.0, 2.0, 5.0)), "a table of zeros": (lambda w: w[[0, 2]], (0.0,) * 4),
    "a mask on zeros": (lambda w: (w * np.array([1.0, 0.0])).sum(), (0.0, 0.0)),
    "a perfect fit": (lambda w: (w[:2] * np.array([3.0, -3.0])).sum(), (7.0, 7.0, 1.0))}


@pytest.mark.parametrize("name", ZERO)
def test_right_slopes_pass_where_f_is_zero(name):
    """Entries without a slope are no error, though 0 is all that f says."""
    f, values = ZERO[name]
    assert gradcheck(f, [leaf(*values)])


@pytest.mark.parametrize("seed", range(40))
def test_a_perfect_fit(seed):
    """Least squares that leave nothing: every slope is rounding, and none is called wrong."""
    rng = np.random.default_rng(seed)
    X, best = rng.standard_normal((5, 3)), rng.standard_normal(3)

    def loss(w):
        return ((X @ w - X @ best) ** 2).mean()
    (row,) = gradcheck(loss, [leaf(*best)]).rows
    assert "judged" in row.verdict
    (row,) = gradcheck(lambda w: loss(w) + (w - cut(w)).sum() * 1e-8, [leaf(*best)]).rows
    assert row.relative > 1e-2 and row.verdict == "WRONG"


@pytest.mark.parametrize("missing", [1e-6, 1.0])
def test_wrong_slopes_do_not_pass_where_f_is_zero(missing):
    """w[0] - w[1], with a slope along w[2] that is not there, or one in front that is cut short."""
    assert not gradcheck(lambda w: w[0] - w[1] + (w[2] - cut(w)[2]) * missing, [leaf(2.0, 2.0, 5.0)])
    assert not gradcheck(lambda w: w[0] - w[1] + (cut(w)[0] - w[0]) * (missing + 1e-3), [leaf(2.0, 2.0, 5.0)])


# What it leaves behind

@pytest.mark.parametrize("values", [[0.1, 0.7, 1e6 + 0.3], [3e-9, -1e8, 1 / 3]])
def test_data_and_grads_are_put_back(values):
    """The very same arrays, to the last bit; earlier grads do not count."""
    w, v = Tensor(values), Tensor(values)
    (w * 7.0).sum().backward()
    data, grad, copy = w.data, w.grad, w.data.copy()
    gradcheck(lambda w, v: (w * v * 1e-8).tanh().sum(), [w, v])
    assert w.data is data and w.grad is grad and v.grad is None
    assert np.array_equal(data, copy) and (grad == 7).all()


def test_f_that_clips_in_place():
    """It clips the copies that it is lent."""
    w = leaf(0.5, 3.0)

    def f(w):
        np.clip(w.data, -1, 1, out=w.data)
        return (w * w).sum()
    gradcheck(f, [w])
    same(w.data, [0.5, 3.0])


def test_f_that_clears_a_grad_in_place():
    """It meets none; the one from before is as it was."""
    w = leaf(0.5, 3.0)
    w.grad = np.ones(2)

    def f(w):
        if w.grad is not None:
            w.grad[:] = 0
        return (w * w).sum()
    assert gradcheck(f, [w])
    same(w.grad, [1.0, 1.0])


@pytest.mark.parametrize("kind", [SGD, Momentum, RMSProp, Adam])
def test_f_that_takes_a_step(kind):
    """Refused as no function of its parameters; the weights are where they were."""
    w = leaf(1.0, 2.0)
    descent = kind([w], 0.1)
    w.grad = np.ones(2)
    descent.step()
    before = w.data.copy()

    def f(w):
        w.grad = np.ones(2)
        descent.step()
        return (w * w).sum()
    with pytest.raises(ValueError, match="two answers"):
        gradcheck(f, [w])
    same(w.data, before)


@pytest.mark.parametrize("call", [1, 2, 3, 4, 7, 10])
def test_also_after_an_exception(call):
    """Whichever call of f raises, first, middle or last."""
    w, v, calls = leaf(*W), leaf(*W), []
    w.grad = grad = np.ones(3)
    data = w.data, v.data

    def f(w, v):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return w * v
    with pytest.raises(KeyboardInterrupt):
        gradcheck(f, [w, v])
    assert (w.data, v.data) == data and w.grad is grad and v.grad is None
    same(w.data, W)


def test_also_when_backward_fails():
    """A rule that raises."""
    def broken(g):
        raise ZeroDivisionError
    w = leaf(*W)
    w.grad = grad = np.ones(3)
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda w: Tensor(w.data * 2, (w, broken)), [w])
    assert w.grad is grad


def test_leaves_that_are_not_asked_about():
    """Backward adds to their grads once, as the docstring says; their data stays."""
    w, v = leaf(*W), leaf(*W)
    v.grad = np.ones(3)
    assert gradcheck(lambda w: (w * v).sum(), [w])
    same(v.data, W)
    same(v.grad, 1 + np.array(W) * 1)
    assert w.grad is None


# Bad input

@pytest.mark.parametrize("params", [[3.0], [np.ones(2)], [None], ["w"], [leaf(*W)[0]]])
def test_params_that_are_no_leaves(params):
    """Numbers, arrays, names, and what an operation has made."""
    with pytest.raises(TypeError, match="^parameters are leaf Tensors, in a list$"):
        gradcheck(lambda *w: w[0], params)


@pytest.mark.parametrize("params", [None, 3, Tensor(2.0)])
def test_params_that_are_no_list(params):
    """Python's own refusal."""
    with pytest.raises(TypeError):
        gradcheck(lambda *w: w[0], params)


@pytest.mark.parametrize("answer", [1.0, None, "a", np.ones(3), [leaf(*W)]], ids=lambda x: type(x).__name__)
def test_f_that_returns_no_tensor(answer):
    """A TypeError that names what came, and nothing moved."""
    w = leaf(*W)
    with pytest.raises(TypeError, match=type(answer).__name__):
        gradcheck(lambda w: answer, [w])
    same(w.data, W)


def test_f_that_changes_its_mind():
    """Randomness or a memory inside f: not a function of its parameters."""
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="two answers"):
        gradcheck(lambda w: w * rng.random(3), [leaf(*W)])


def test_params_that_f_does_not_take():
    """f(*params), one argument for each."""
    with pytest.raises(TypeError):
        gradcheck(lambda a: a, [leaf(1.0), leaf(2.0)])


# The report

def test_the_report_is_a_table():
    """A line for each parameter: shape, two errors, a word."""
    text = str(gradcheck(lambda a, b, c: (a * cut(a)).sum() + (b * b).sum(),
                         [leaf(*W), Tensor(np.ones((2, 2))), leaf(1.0)]))
    first, second, third = text.splitlines()
    assert "(3,)" in first and "WRONG" in first and "ok" not in first
    assert "(2, 2)" in second and "ok" in second and "WRONG" not in second
    assert "(1,)" in third and "nan" in third and "ok" not in third
    assert max(map(len, (first, second, third))) <= 79


@pytest.mark.parametrize("verdicts, ok", [([], False), (["ok"], True), (["ok", "ok"], True), (["WRONG"], False),
                                          (["ok", "WRONG"], False), (["not reached by backward", "ok"], False)])
def test_ok_is_all_of_them(verdicts, ok):
    """Every verdict is ok, and there is at least one."""
    report = Report([Row((1,), 0.0, 0.0, verdict, None, None) for verdict in verdicts])
    assert report.ok is ok and bool(report) is ok
    assert str(report).count("WRONG") == verdicts.count("WRONG")


@pytest.mark.parametrize("gap, noise, relative, verdict", [
    (0.9e-4, 0.0, 0.9e-4, "ok"), (1.1e-4, 0.0, 1.1e-4, "WRONG"), (1.0, 0.0, 1 / 2, "WRONG"),
    (1e-3, 0.9e-4, 1e-3 / 1.001, "WRONG"), (1e-3, 2e-4, np.nan, "no slope that can be judged"),
    (np.nan, 0.0, np.nan, "no slope that can be judged")])
def test_the_verdict_on_one_slope(gap, noise, relative, verdict):
    """A slope of 1 and one that is off by gap, beside a nudge with that noise and tol = 1e-4."""
    _, found, said = judge(np.array([1.0 + gap]), np.array([1.0]), np.array([noise]), 1e-4)
    assert said == verdict
    np.testing.assert_allclose(found, relative, rtol=1e-3)


def test_a_slope_that_is_nan_beside_one_that_can_be_judged_is_wrong():
    for found, nudged in ([np.nan, 1.0], [1.0, 1.0]), ([1.0, 1.0], [1.0, np.nan]):
        assert judge(np.array(found), np.array(nudged), np.zeros(2), 1e-4)[2] == "WRONG"


def test_on_the_line():
    """An error of tol passes, and a slope as large as its floor is not above it."""
    assert judge(np.array([2.0]), np.array([1.0]), np.array([0.0]), 0.5)[2] == "ok"
    assert "judged" in judge(np.array([1.0]), np.array([1.0]), np.array([0.5]), 0.5)[2]


def test_a_row_keeps_both_slopes():
    [row] = gradcheck(lambda w: (w ** 3).sum(), [Tensor([1.0, 2.0])]).rows
    same(row.found, [3, 12])
    same(row.nudged, [3, 12], rtol=1e-8)
    assert abs(row.absolute - abs(row.found - row.nudged).max()) == 0


def test_the_seed_is_uneven():
    """1 + sin(k) / 2: no two entries are the same, and none is near 0."""
    _, seed, size = ask(lambda w: w * 2, [Tensor(np.ones((3, 4)))])
    same(seed, (1 + np.sin(np.arange(12)) / 2).reshape(3, 4))
    assert len(np.unique(seed)) == 12 and seed.min() >= 0.5
    assert abs(size - 2 * seed.sum()) < 1e-12


def test_complex_steps_find_known_slopes():
    """sin of a matrix times a vector: its Jacobian is known."""
    A, x = numbers(2, 3), numbers(3)
    along_A, along_x = complex_slopes(lambda A, x: np.sin(A @ x).sum(), [A, x])
    same(along_x, A.T @ np.cos(A @ x))
    same(along_A, np.outer(np.cos(A @ x), x))
