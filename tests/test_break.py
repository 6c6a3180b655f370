"""Each breakage measures what it says, its catcher catches it, and it repairs itself."""
import inspect
import io
import warnings
from collections import namedtuple
from contextlib import nullcontext, redirect_stdout
from functools import lru_cache
from unittest import mock

import numpy as np
import pytest

import anatomy as A
from conftest import ROOT, python

NAMES = ("rate correction memory order overwriting growth "
         "zero_grad editing labels single kink").split()
FIELDS = "question reason caught repair".split()


def names_and_methods():
    return {k: v for k, v in vars(A).items() if callable(v)}, dict(vars(A.Tensor)), dict(vars(A.Optimizer))


Telling = namedtuple("Telling", "said found runs before after")


@lru_cache
def telling(name):
    """What break_it prints, what it has measured for that, with which settings it has trained, and the names before
    and after."""
    breakage, said, found, runs = A.BREAKAGES[name], io.StringIO(), [], []

    def measure():
        found.append(type(breakage).measure(breakage))
        return found[-1]

    def noted(train):
        def trains(*args, **settings):
            given = inspect.signature(train).bind(*args, **settings)
            given.apply_defaults()
            told = given.arguments | given.arguments.pop("settings", {})
            runs.append({key: value for key, value in told.items() if key not in ("optimizer", "bias_correction")})
            return train(*args, **settings)
        return trains

    before = names_and_methods()
    with mock.patch.multiple(A, five=noted(A.five), descend=noted(A.descend)), \
            mock.patch.object(breakage, "measure", measure), redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("error")
        A.break_it(name)
    [once] = found
    return Telling(" ".join(said.getvalue().split()), once, runs, before, names_and_methods())


def measured(name):
    return telling(name).found


def found(name, start):
    """The number that was found in the one measurement whose text starts so."""
    [number] = [m.found for m in measured(name) if m.text.startswith(start)]
    return number


def in_range(m):
    return bool(m.low <= m.found <= m.high)


def slopes(program):
    f, params = program
    return A.ask(f, params)[0]


def test_eleven_breakages_with_four_texts_each():
    assert list(A.BREAKAGES) == NAMES
    for told in A.BREAKAGES.values():
        assert told.question.endswith("?")
        for field in FIELDS:
            assert getattr(told, field).strip()


@pytest.mark.parametrize("name", NAMES)
def test_break_it_tells_in_order_and_leaves_no_trace(name):
    said = telling(name).said
    question, reason, caught, repair = (" ".join(getattr(A.BREAKAGES[name], field).split()) for field in FIELDS)
    assert said.startswith(f"{name}: {question}")
    assert said.endswith(f"Why: {reason} Caught by: {caught} Repair: {repair}")
    between = said[len(f"{name}: {question}"):said.index("Why: ")]
    places = [between.index(m.text.split("{")[0].strip()) for m in measured(name)]
    assert places == sorted(places)
    assert telling(name).before == telling(name).after


def test_a_breakage_is_an_object_of_the_class_below_its_name():
    for told in A.BREAKAGES.values():
        assert getattr(A, type(told).__name__) is type(told)


def test_break_it_is_the_same_twice(capsys):
    A.break_it("growth")
    first = capsys.readouterr().out
    A.break_it("growth")
    assert capsys.readouterr().out == first


def test_an_unknown_breakage_is_refused_with_the_names():
    with pytest.raises(ValueError) as refusal:
        A.break_it("nope")
    assert all(name in str(refusal.value) for name in ("nope", *NAMES))


@pytest.mark.parametrize("number", [1.001, -0.001, np.nan, 0.0, 1.0])
def test_a_measurement_out_of_its_range_is_reported(monkeypatch, number):
    class Wrong:
        question = reason = caught = repair = "?"

        def measure(self):
            return [A.Measurement("{found}", number, 0, 1)]

    monkeypatch.setitem(A.BREAKAGES, "wrong", Wrong())
    with nullcontext() if 0 <= number <= 1 else pytest.raises(AssertionError):
        A.break_it("wrong")


def test_without_docstrings_it_tells_the_same(capsys):
    A.break_it("editing")
    code = "import anatomy; anatomy.break_it('editing')"
    run = python("-c", code, cwd=ROOT, flags=("-OO",))
    assert run.returncode == 0, run.stderr
    assert run.stdout == capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_a_text_says_the_bounds_that_are_asserted(name):
    natural = 0, 1, 2, 64, np.inf       # of a share, an error, a count of units, of anything
    for m in measured(name):
        said = m.text.format(found=m.found, low=m.low, high=m.high)
        assert said == said.strip() and len(said) < 76
        if "{found" in m.text:          # the number is the same anywhere in the range
            ends = [m.text.format(found=end, low=m.low, high=m.high) for end in (m.low, m.high)]
            assert ends == [said, said]
        else:
            assert "{low" in m.text or m.low in natural
            assert "{high" in m.text or m.high in natural
            assert "{low" in m.text or "{high" in m.text


# What is measured of the repaired program; without arguments no fault is planted.
REPAIRED = {"rate": {"lr": 0.1}, "correction": {"bias_correction": True},
            "memory": {"bias_correction": True}, "single": {"digits": float}, "kink": {"x": 0.3},
            "order": {}, "overwriting": {}, "growth": {}, "zero_grad": {}, "labels": {}}
# What says that a mistake does not show holds without the mistake, too.
HIDDEN = {"memory": ["with correction", "its last step"], "order": ["breadth first, loss from the logit"],
          "overwriting": ["loss from the logit"], "single": ["by 5e-3"],
          "kink": ["nudged by 1e-7", "gradcheck with h = 1e-7"]}


@pytest.mark.parametrize("name", REPAIRED)
def test_the_repaired_program_is_out_of_each_range(name, monkeypatch):
    assert all(in_range(m) for m in measured(name))
    monkeypatch.setattr(A, "planted", lambda name: nullcontext())
    repaired = A.BREAKAGES[name].measure(**REPAIRED[name])
    inside = [m.text for m in repaired if in_range(m)]
    hidden = HIDDEN.get(name, [])
    assert len(inside) == len(hidden)
    for text, start in zip(inside, hidden):
        assert text.startswith(start)


def test_at_least_is_the_lower_end_and_at_most_the_upper():
    """Of what is a share no end lies outside of 0 to 1."""
    for name in NAMES:
        for m in measured(name):
            assert ("at least" in m.text) == ("{low" in m.text), m.text
            assert ("at most" in m.text or "within" in m.text) == ("{high" in m.text), m.text
            assert "%}" not in m.text or (0 <= m.low < m.high <= 1), m.text


def hidden(name, **settings):
    """What says where a mistake does not show, measured again."""
    return [m for m in A.BREAKAGES[name].measure(**settings) if any(m.text.startswith(s) for s in HIDDEN[name])]


def test_what_says_that_a_mistake_does_not_show_can_fail(monkeypatch):
    """With another mistake each of these measurements is out of its range, so each says something."""
    planted, five, excess = A.planted, A.five, A.excess
    out = hidden("single", digits=np.float16) + hidden("kink", x=1e-8)
    with monkeypatch.context() as patch:
        patch.setattr(A, "planted", lambda name: planted("random_order"))
        out += hidden("order") + hidden("overwriting")
    with monkeypatch.context() as patch:
        patch.setattr(A, "five", lambda kind, **s: five(kind, **{**s, "bias_correction": False}))
        patch.setattr(A, "excess", lambda steps, beta2: excess(steps, beta2=0.999))
        out += hidden("memory")
    assert len(out) == sum(map(len, HIDDEN.values()))
    assert [m.text for m in out if in_range(m)] == []


@pytest.mark.parametrize("name", ["correction", "memory", "zero_grad", "growth"])
def test_runs_that_are_compared_differ_in_the_mistake_alone(name):
    runs = telling(name).runs
    assert len(runs) > 1 and all(run == runs[0] for run in runs)


# What catches each mistake: the words that name it, and whether it accuses the program, broken or not.

def after_one_step(broken):
    """Has a step of Adam more than doubled the loss?"""
    run, accuracy = A.five(A.Adam, 1.0 if broken else 0.1, steps=1)
    return np.median(run.at(1)[0] / run.at(0)[0]) > 2


def first_is_long(broken, **settings):
    run, accuracy = A.five(A.Adam, steps=1, bias_correction=not broken, **settings)
    return A.first_step(run) > 1 + 1e-9


def under(fault, check):
    """Is the check against it, with the fault or without?"""
    def accuses(broken):
        with A.planted(fault) if broken else nullcontext():
            return not check()
    return accuses


def different_lengths(x):
    y = x * x
    return y + y * y


def edited_unseen(broken):
    """A write, in place or into an array that somebody has locked."""
    x = A.Tensor(3.0)
    y = x * x
    x.data.flags.writeable = not broken
    try:
        x.data *= 10
    except ValueError:
        return True
    return y.data != 9


def refused(broken):
    try:
        A.bce_with_logits(A.Tensor(np.zeros((4, 1))), np.zeros(4 if broken else (4, 1)))
    except ValueError:
        return True


def shrinks(broken):
    """Does a second, larger h find another slope, for numbers of 7 digits or of 16?"""
    digits = np.float32 if broken else float
    x = np.linspace(0.2, 1.4, 9)
    one, two = (A.numerical_grad(lambda x: A.bent(x.astype(digits)).sum(), x, h) for h in (1e-5, 5e-3))
    return np.max(abs(one / two - 1)) > 1e-3


def moves(broken):
    """Does a second, smaller h find another slope, near the kink or away from it?"""
    one, two = (A.numerical_grad(A.positive, 1e-6 if broken else 0.3, h) for h in (1e-5, 1e-7))
    return abs(one - two) > 0.1


CATCHERS = {
    "rate": [("the loss after one step", after_one_step)],
    "correction": [("the length of the first step", first_is_long)],
    "memory": [("the length of the first step", lambda broken: first_is_long(broken, beta2=0.9999))],
    "order": [("paths of different lengths end at the same inner node",
               under(fault, lambda: A.gradcheck(different_lengths, [A.Tensor(3.0)])))
              for fault in ("random_order", "breadth_first")],
    "overwriting": [("cover, the expression of chapter 9", under("overwriting", A.CHECKS["cover"]))],
    "growth": [("shapes, the first check", under("copies_not_summed", next(iter(A.CHECKS.values()))))],
    "zero_grad": [("two steps at a rate of 0", under("grads_never_cleared", lambda: A.second_over_first() == 1))],
    "editing": [("if somebody has locked the array", edited_unseen)],
    "labels": [("Our bce_with_logits looks, and refuses them", refused)],
    "single": [("a second, larger h", shrinks)],
    "kink": [("a second, smaller h", moves)]}


@pytest.mark.parametrize("name", NAMES)
def test_the_catcher_that_is_named_accuses_the_mistake_and_not_the_repaired_program(name):
    for words, accuses in CATCHERS[name]:
        assert words in " ".join(A.BREAKAGES[name].caught.split())
        assert accuses(True) and not accuses(False)


# Words that stand in one breakage alone, of its question, reason and repair.
OWN_WORDS = {
    "rate": ("a rate of 1 in place of 0.1", "a unit dies when a step makes its sum", "a search for the rate"),
    "correction": ("runs without bias correction", "they have killed hidden units",
                   "divide each average by its weight."),
    "memory": ("beta2 = 0.9999", "With the correction it is harmless", "The longer the memory"),
    "order": ("in a random order, or breadth first", "y is taken before y * y has reported to it",
              "after all its uses"),
    "overwriting": ("= in place of +=", "the second erases the first", "where reports arrive"),
    "growth": ("leaves out unbroadcast", "biases of its own and is learned by heart", "sum over the copies"),
    "zero_grad": ("Nobody clears the gradients", "a momentum that never forgets", "clear the gradients in every step"),
    "editing": ("x.data *= 10", "writes into the array that the rules have remembered", "give x.data a new array"),
    "labels": ("the labels (N,)", "the same as to meet the mean label", "reshape the labels"),
    "single": ("computes in float32", "where bending and rounding meet", "check in float64"),
    "kink": ("The slope of relu at 1e-6", "lies across the kink", "away from the kink")}


def test_question_reason_and_repair_belong_to_their_breakage():
    assert list(OWN_WORDS) == list(CATCHERS) == NAMES
    for k, field in enumerate(("question", "reason", "repair")):
        texts = {name: " ".join(getattr(told, field).split()) for name, told in A.BREAKAGES.items()}
        for name in NAMES:
            holders = [other for other in NAMES if OWN_WORDS[name][k] in texts[other]]
            shared = ["correction", "memory"] if (name, field) == ("correction", "repair") else [name]
            assert holders == shared, (name, field)


@pytest.mark.parametrize("name", ["rate", "correction", "memory", "zero_grad"])
def test_other_random_seeds_tell_the_same(name, monkeypatch):
    monkeypatch.setattr(A, "FIVE", np.arange(100, 105))
    assert all(in_range(m) for m in A.BREAKAGES[name].measure())


def test_the_loss_after_one_step_accuses_rmsprop_at_a_tenth_which_recovers():
    run, accuracy = A.five(A.RMSProp)
    assert np.median(run.at(1)[0] / run.at(0)[0]) > 5
    assert accuracy > 0.85


def test_half_of_the_points_surely_wrong_pay_half_of_the_ceiling():
    z, y = A.Tensor([60.0, 60.0]), np.array([0.0, 1.0])
    loss = A.patched_bce(z, y).mean()
    loss.backward()
    assert loss.data == pytest.approx(-np.log(1e-8) / 2)
    assert z.grad[0] == 0


def test_a_first_step_is_no_longer_than_lr_sqrt_257_when_corrected():
    for beta2 in 0.999, 0.9999:
        run, accuracy = A.five(A.Adam, steps=1, beta2=beta2)
        assert 0.98 < A.first_step(run) <= 1 + 1e-9
        run, accuracy = A.five(A.Adam, steps=1, beta2=beta2, bias_correction=False)
        assert A.first_step(run) == pytest.approx(0.1 / np.sqrt(1 - beta2), rel=0.01)


def test_what_the_reasons_say_of_long_steps():
    assert A.excess(50)[-1] == pytest.approx(4.5, abs=0.01)
    assert not 5.0499 <= A.excess(400)[-1] <= 5.0501
    assert np.mean(abs(np.concatenate(A.weights(), axis=None)) < 1) > 0.5


def test_dead_counts_units_that_are_0_on_every_point():
    run, accuracy = A.five(A.Adam, steps=1)
    W1, b1, W2, b2 = run.model.params
    run.model = A.MLP(*run.kept[0])
    assert A.dead(run) == 0                     # none is dead at the start
    b1 = run.kept[0][1].copy()
    b1[..., :7] = -100                          # now seven are, in each network
    run.model = A.MLP(run.kept[0][0], b1, *run.kept[0][2:])
    assert A.dead(run) == 7


def test_nothing_but_a_second_path_tells_breadth_first_from_the_true_order():
    ours = slopes(A.network(A.bce_with_logits))
    for fault in "breadth_first", "overwriting":
        with A.planted(fault):
            assert not A.gradcheck(*A.network())
            assert not A.gradcheck(A.cover, A.LEAVES)
            theirs = slopes(A.network(A.bce_with_logits))
        for g, right in zip(theirs, ours, strict=True):
            np.testing.assert_allclose(g, right, rtol=1e-12)


def test_a_random_order_delivers_nothing():
    with A.planted("random_order"):
        assert not A.gradcheck(*A.network())
        assert not any(g.any() for g in slopes(A.network()))


def test_the_twin_has_the_network_s_points_and_weights():
    f, params = A.network()
    twin, same = A.network(A.bce_with_logits)
    for p, q in zip(params, same, strict=True):
        assert np.array_equal(p.data, q.data)
    assert twin(*same).data == pytest.approx(f(*params).data, rel=1e-6)


def test_growth_is_refused_by_a_step_and_by_numpy():
    model = A.MLP(*A.weights())
    X, y = A.spiral()
    with A.planted("copies_not_summed"):
        A.bce_with_logits(model(X), y).backward()
    before = [p.data for p in model.params]
    with pytest.raises(ValueError, match="shape"):
        A.SGD(model.params, lr=1.0).step()
    assert all(p.data is data for p, data in zip(model.params, before))
    for shape, stretched in A.broadcast_pairs():
        grad = np.zeros(shape)
        if shape != stretched:
            with pytest.raises(ValueError):
                grad += np.ones(stretched)


def test_the_gap_of_labels_is_the_largest(monkeypatch):
    """The slopes of one point differ by 0.3, and all others are equal."""
    monkeypatch.setattr(A, "slopes_along", lambda logits, labels: 0.3 * (np.arange(3) == 1) * (labels[0] != 0.5))
    monkeypatch.setattr(A, "trained", lambda optimizer: 0.5)
    assert [m.found for m in A.LabelsInARow().measure()] == [0.5, 0.3]


def test_grown_biases_give_way_to_their_means(monkeypatch):
    """The last measurement is that of a network whose biases are the means over all points."""
    trained, means = [], []

    class Grown:
        def __init__(self):
            rng = np.random.default_rng(3)
            self.params = [A.Tensor(rng.standard_normal(shape)) for shape in ((2, 64), (300, 64), (64, 1), (300, 1))]
            trained.append(self)
            means[:] = [p.data.mean(axis=0) for p in self.params[1::2]]

    monkeypatch.setattr(A, "descend", Grown)
    monkeypatch.setattr(A, "accuracy_of", lambda grown: grown.params[1].data.ravel()[:64].sum())
    *_, fewer = A.CopiesNotSummed().measure()
    honest, grown = trained
    for p, mean in zip(grown.params[1::2], means):
        assert np.allclose(p.data, mean) and p.shape == (1, len(mean))
    assert np.isclose(fewer.found, honest.params[1].data[0].sum() - means[0].sum())


def test_growth_counts():
    assert found("growth", "numbers in the network") == 257 + 299 * (64 + 1)
    assert found("growth", "points right") == 1


def test_an_array_that_is_locked_cannot_be_edited():
    x = A.Tensor(3.0)
    y = x * x
    x.data.flags.writeable = False
    with pytest.raises(ValueError):
        x.data *= 10
    y.backward()
    assert x.grad == 6


def test_our_loss_refuses_labels_in_a_row():
    with pytest.raises(ValueError, match="reshape"):
        A.bce_with_logits(A.Tensor(np.zeros((4, 1))), np.zeros(4))


def test_labels_in_a_row_ask_for_the_mean_label():
    z, y = np.array([[0.5], [-1.0], [2.0]]), np.array([[1.0], [0.0], [0.0]])
    with A.planted("labels_in_a_row"):
        crossed = A.slopes_along(z, y)
    np.testing.assert_allclose(crossed, (1 / (1 + np.exp(-z)) - 1 / 3) / 3, rtol=1e-6)


def test_a_wrong_slope_stays_wrong_with_a_second_h():
    x = np.linspace(0.2, 1.4, 9)
    for h in 1e-5, 5e-3:
        nudged = A.numerical_grad(lambda x: A.bent(x.astype(np.float32)).sum(), x, h)
        wrong = 2 * A.bent_slope(x)
        assert np.min(abs(nudged / wrong - 1)) > 0.4
    half = A.elementwise(A.positive, lambda g, x, out: 0.5 * A.relu_rule(g, x, out))
    for h in 1e-5, 1e-7:
        assert A.gradcheck(half, [A.Tensor([1e-6, 0.5])], h).rows[0].verdict == "WRONG"
    assert A.gradcheck(A.Tensor.relu, [A.Tensor([1e-6, 0.5])]).rows[0].verdict == "WRONG"
    assert A.gradcheck(A.Tensor.relu, [A.Tensor([1e-6, 0.5])], 1e-7)


def test_the_kink_is_arithmetic():
    assert found("kink", "nudged by 1e-5") == pytest.approx((1e-6 + 1e-5) / 2e-5)
    assert found("kink", "nudged by 1e-7") == pytest.approx(1, abs=1e-6)
