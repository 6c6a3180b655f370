"""The checks are asked about planted faults, and the faults are undone."""
from pathlib import Path

import numpy as np
import pytest

import anatomy as A

OURS = "shapes", "cover", "adjoint"      # the checks that this file relies on
HARMLESS = {"bce_with_logits: patched", "patched_bce: labels (N,)",
            "zero_grad: forgotten"}      # they leave every gradient right


def places():
    """Everything that a fault can replace: (home, name) -> object."""
    homes = vars(A), vars(A.Tensor), vars(A.Optimizer)
    return {(i, name): home[name] for i, home in enumerate(homes)
            for name in {fault.split(":")[0] for fault in A.FAULTS}
            if name in home}


def gradients():
    f, params = A.network()
    f().backward()
    leaves = [A.Tensor(p.data) for p in A.LEAVES]
    A.cover(*leaves).backward(np.arange(9.0).reshape(3, 3))
    return [p.grad for p in (*params, *leaves)]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def words(name):
    with A.planted(name), np.errstate(all="ignore"):
        return {check: A.verdict(passes) for check, passes in A.CHECKS.items()
                if check != "Adam"}


def test_there_are_enough_faults_and_the_list_names_what_it_replaces():
    assert len(A.FAULTS) - 1 >= 20
    assert {fault.split(":")[0] for fault in A.FAULTS} == {
        name for _, name in places()}


@pytest.mark.parametrize("name", A.FAULTS)
def test_every_fault_is_undone_and_the_engine_is_the_untouched_one(name):
    before, slopes = places(), gradients()
    with A.planted(name):
        assert places() != before
    assert places() == before
    with pytest.raises(ZeroDivisionError), A.planted(name):
        1 / 0
    assert places() == before and same(slopes, gradients())


def test_an_unknown_fault_plants_nothing():
    before = places()
    for ask in (lambda: A.planted("mean: no such fault").__enter__(),
                lambda: A.trial("mean: no such fault")):
        with pytest.raises(ValueError) as refusal:
            ask()
        assert all(name in str(refusal.value)
                   for name in ("mean: no such fault", *A.FAULTS))
        assert len(str(refusal.value).splitlines()) == 1
    assert places() == before


def test_faults_nest():
    before = places()
    with A.planted("mean: no 1/n"), A.planted("unbroadcast: mean"):
        with A.planted("mean: no 1/n"):
            pass
    assert places() == before


@pytest.mark.parametrize("name", A.FAULTS)
def test_our_checks_together_convict_what_changes_a_gradient(name):
    found = words(name)
    acquitted = all(found[check] == "missed" for check in OURS)
    assert acquitted == (name in HARMLESS)


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_no_gradient_check_sees_a_fault_of_the_program(name):
    assert set(words(name).values()) == {"missed"}


def test_each_check_is_blind_in_its_own_way():
    assert words("unbroadcast: left out")["adjoint"] == "missed"
    assert words("unbroadcast: left out")["shapes"] == "caught"
    assert words("unbroadcast: mean")["shapes"] == "missed"
    assert words("unbroadcast: mean")["adjoint"] == "caught"
    turned = words("transpose: not undone")
    assert turned["ones"] == "missed" and turned["cover"] == "caught"
    assert words("__mul__: operand")["network"] == "missed"


def test_the_textbook_loop_in_the_right_order_is_our_engine():
    with_ours = gradients()
    A.FAULTS["backward: textbook"] = A.visiting
    try:
        with A.planted("backward: textbook"):
            textbook = gradients()
    finally:
        del A.FAULTS["backward: textbook"]
    for a, b in zip(with_ours, textbook, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_wrong_gradients_train_under_adam_and_one_helps_sgd():
    for name, least in (("unbroadcast: mean", 0.93), ("mean: no 1/n", 0.93),
                        ("unbroadcast: first entries", 0.85)):
        assert words(name)["network"] == "caught"
        with A.planted(name):
            assert A.trained(A.Adam) > least > A.trained(A.SGD, 1.0) + 0.15
    with A.planted("mean: no 1/n"):
        helped = A.trained(A.SGD)
    assert helped > A.trained(A.SGD) + 0.1


def test_labels_of_shape_n_ask_for_the_mean_label():
    X, y = A.spiral()
    z, w = (A.Tensor(A.MLP(*A.weights())(X).data) for _ in range(2))
    with A.planted("patched_bce: labels (N,)"):
        A.patched_bce(z, y).mean().backward()
    A.patched_bce(w, np.full(y.shape, y.mean())).mean().backward()
    np.testing.assert_allclose(z.grad, w.grad, rtol=1e-9, atol=1e-15)


def test_a_pasted_file_plants_in_its_own_names():
    here = {"__name__": "pasted"}
    exec(compile(Path(A.__file__).read_text(encoding="utf-8"), "pasted",
                 "exec"), here)
    ours = here["unbroadcast"]
    with here["planted"]("unbroadcast: mean"):
        assert here["unbroadcast"] is not ours
        assert not here["gradcheck"](here["cover"], here["LEAVES"])
        assert A.gradcheck(A.cover, A.LEAVES)
    assert here["unbroadcast"] is ours
    assert here["gradcheck"](here["cover"], here["LEAVES"])


def test_the_leaves_are_left_as_they_were():
    before = [(p.data.copy(), p.grad) for p in A.LEAVES]
    words("backward: random order")
    for p, (data, grad) in zip(A.LEAVES, before):
        assert np.array_equal(p.data, data) and p.grad is grad


def test_verdicts():
    assert A.verdict(lambda: True) == "missed"
    assert A.verdict(lambda: False) == "caught"
    assert A.verdict(lambda: 1 / 0) == "raises"
    assert A.verdict(lambda: "98%") == "98%"
    with pytest.raises(KeyboardInterrupt):
        A.verdict(lambda: (_ for _ in ()).throw(KeyboardInterrupt()))
