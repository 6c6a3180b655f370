"""Chapter 11: the ledger's price, decay and the optimizer's memory."""
import pytest

from anatomy import (MLP, Adam, bce_with_logits, decayed, excess,
                     cost_of_step, spiral, weights)


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
    assert cost_of_step(32)[2] == 49672


def test_adamw_decays_by_its_rate_alone():
    for steps, lr, decay in ((100, 0.1, 0.01), (7, 0.5, 0.2), (0, 1, 1)):
        kept, _ = decayed(steps, lr, decay)
        assert kept == pytest.approx((1 - lr * decay) ** steps, rel=1e-12)
    assert f"{decayed(100)[0]:.4f}" == "0.9048"


def test_an_l2_penalty_is_divided_by_its_own_size():
    for decay in (1e-4, 1e-2, 1.0):
        assert decayed(1, decay=decay)[1] == pytest.approx(0.9, abs=1e-4)


def test_adam_keeps_two_numbers_for_each_parameter():
    model = MLP(*weights())
    adam = Adam(model.params, 0.1)
    X, y = spiral()
    bce_with_logits(model(X), y).backward()
    adam.step()
    assert sum(average.value.size for memory in adam.memories for average in memory) == 2 * 257


def test_with_the_beta2_of_language_models_the_first_step_is_short():
    assert f"{excess(1, beta2=0.95)[0]:.3f}" == "0.447"
    assert 1 < excess(500, beta2=0.95).max() < 1.2
