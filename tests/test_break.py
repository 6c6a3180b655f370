"""Each breakage measures what its docstring claims, and repairs itself."""
import warnings

import numpy as np
import pytest

import anatomy as A
from conftest import story


def measured(name):
    return {label: np.median(found)
            for label, found, _, _ in A.BREAKAGES[name]()}


def test_there_are_twelve_and_each_asks_explains_and_names_its_check():
    assert len(A.BREAKAGES) >= 12
    for measure in A.BREAKAGES.values():
        question, reason = measure.__doc__.split("\n", 1)
        assert question.endswith("?")
        assert "aught" in reason and "epair" in reason


@pytest.mark.parametrize("name", A.BREAKAGES)
def test_break_it_prints_question_measurement_reason_and_leaves_no_trace(
        name, capsys):
    kept = {k: v for k, v in vars(A).items() if callable(v)}
    methods = dict(vars(A.Tensor)), dict(vars(A.Optimizer))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A.break_it(name)
    said = capsys.readouterr().out
    question = A.BREAKAGES[name].__doc__.split("\n")[0].strip()
    assert said.startswith(f"{name}: {question[:40]}")
    assert "Repair" in said or "repair" in said
    assert kept == {k: v for k, v in vars(A).items() if callable(v)}
    assert methods == (dict(vars(A.Tensor)), dict(vars(A.Optimizer)))


def test_break_it_is_the_same_twice(capsys):
    A.break_it("growth")
    first = capsys.readouterr().out
    A.break_it("growth")
    assert capsys.readouterr().out == first


def test_an_unknown_breakage_is_refused_with_the_names():
    with pytest.raises(ValueError) as refusal:
        A.break_it("nope")
    assert all(name in str(refusal.value) for name in ("nope", *A.BREAKAGES))


def test_a_measurement_out_of_its_range_is_reported(monkeypatch):
    def wrong():
        """Is 2 in [0, 1]?
        No."""
        yield "{}", 2, 0, 1
    monkeypatch.setitem(A.BREAKAGES, "wrong", wrong)
    with pytest.raises(AssertionError):
        A.break_it("wrong")


def test_the_plateau_is_half_the_ceiling_of_the_patch():
    found = measured("rate")
    for steps in (1, 400):
        assert found[f"RMSProp's patched loss after {steps}: {{:.4f}}"] == (
            pytest.approx(-np.log(1e-8) / 2, abs=1e-4))
    assert found["SGD at 1: {:.0%}"] > 0.9
    assert found["RMSProp at 1: under 80%"] < 0.8
    assert found["Adam at 1: under 80%"] < 0.8


def test_without_correction_worse_ahead_worse_and_more_units_die():
    start, middle, end, with_it, without = measured("correction").values()
    assert start > 2 and middle < 1 and end > 1 and without > 2 * with_it


def test_memory_is_harmless_with_correction():
    corrected, not_corrected = measured("memory").values()
    assert corrected > not_corrected + 0.1


def test_a_random_order_delivers_nothing_breadth_first_half():
    nothing, half = measured("order").values()
    assert nothing == 1 and half > 1
    f, params = A.network()
    with A.planted("backward: random order"):
        f().backward()
    assert not any(p.grad.any() for p in params)
    with A.planted("backward: breadth first"):
        f().backward()
    assert all(p.grad.any() for p in params)


def test_growth_counts():
    raised, size, learned, honest = measured("growth").values()
    real = [(a, b) for a, b in A.broadcast_pairs() if a != b]
    assert raised == len(real)
    assert size == 2 * 64 + 300 * 64 + 64 + 300
    assert learned == 1 and honest < 0.75


def test_editing_and_overwriting():
    assert [*measured("editing").values()] == [2 * 30]
    assert [*measured("overwriting").values()] == [3]
    x = A.Tensor(3.0)
    y = x * x
    x.data = x.data * 10           # a new array leaves the graph its own
    y.backward()
    assert x.grad == 2 * 3


def test_log_of_zero_and_the_check_that_catches_it():
    assert [*measured("log_zero").values()] == [1, 0]
    with np.errstate(all="ignore"):
        for loss in (lambda z: -(1 - z.sigmoid()).log(),
                     lambda z: A.patched_bce(z, 0.0)):
            assert not A.gradcheck(loss, [A.Tensor(40.0)])
    assert A.gradcheck(lambda z: A.bce_with_logits(z, 0.0), [A.Tensor(40.0)])


def test_forgetting_zero_grad_feeds_sgd_and_starves_adam():
    honest, sgd, adam = measured("zero_grad").values()
    with_it = np.median(A.train(A.Adam, A.FIVE, steps=400).final()[1])
    assert sgd > honest + 0.1 and adam < with_it - 0.1


def test_the_kink_is_arithmetic():
    nudged, closer = measured("kink").values()
    assert nudged == pytest.approx((1e-6 + 1e-5) / 2e-5)
    assert closer == pytest.approx(1, abs=1e-6)


def test_float32_and_labels():
    near, far = measured("single").values()
    assert near > 1e-3 > far
    [accuracy] = measured("labels").values()
    assert 0.4 < accuracy < 0.6
