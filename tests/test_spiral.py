"""Chapter 7: two spirals."""
import numpy as np
import pytest

from anatomy import (MLP, OPTIMIZERS, SGD, Adam, Momentum, RMSProp, SummedMomentum, Tensor, batches,
                     first_200, furthest, landscape, score, smoothed, spiral, train, weights)
from judges import same

ALL = pytest.mark.parametrize("name", ["SGD", "Momentum", "RMSProp", "Adam"])


# The recipe

def test_two_arms():
    """r = 2u, theta = 2.9 pi u, the second arm opposite, noise of 0.05."""
    X, y = spiral(1)
    assert X.shape == (300, 2) and y.shape == (300, 1) and np.array_equal(X, spiral()[0])
    assert np.array_equal(y.ravel(), [0.0] * 150 + [1.0] * 150)
    u = np.arange(150) / 149
    z = 2 * u * np.exp(2.9j * np.pi * u)
    arms = np.concatenate([np.c_[z.real, z.imag], -np.c_[z.real, z.imag]])
    noise = (X - arms) / 0.05
    np.testing.assert_allclose(noise, np.random.default_rng([1, 0]).standard_normal((300, 2)), atol=1e-12)


@pytest.mark.parametrize("make, stream, shape", [
    (lambda s: spiral(s)[0], 0, (300, 2)), (lambda s: weights(s)[0], 1, (2, 64)),
    (lambda s: batches(s, 9), 2, (9, 32))])
def test_streams_of_their_own(make, stream, shape):
    """Seeded, repeatable, different for each seed, no global state."""
    state = np.random.get_state()[1].copy()
    a, b = make(3), make(4)
    assert a.shape == shape and np.array_equal(a, make(3)) and not np.array_equal(a, b)
    assert np.array_equal(np.random.get_state()[1], state)


def test_the_initial_weights():
    """Normal, scaled by the root of 2 over the inputs, one stream for both; biases of 0."""
    rng = np.random.default_rng([5, 1])
    W1, b1, W2, b2 = weights(5)
    np.testing.assert_allclose(W1, rng.standard_normal((2, 64)), rtol=1e-15)
    np.testing.assert_allclose(W2, rng.standard_normal((64, 1)) / np.sqrt(32), rtol=1e-14)
    assert not b1.any() and not b2.any()
    assert [a.shape for a in weights(5, hidden=7)] == [(2, 7), (1, 7), (7, 1), (1, 1)]


def test_the_batches():
    """With replacement, from all 300 points; a longer run begins the same."""
    order = batches(1, 500)
    assert order.min() == 0 and order.max() == 299 and batches(1, 5, size=8).shape == (5, 8)
    assert np.array_equal(order, np.random.default_rng([1, 2]).integers(0, 300, (500, 32)))
    assert np.array_equal(order[:100], batches(1, 100)) and np.array_equal(batches(), batches(1, 2000))
    assert np.unique(batches(1, 50, points=7)).tolist() == list(range(7))


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None], ids=repr)
@pytest.mark.parametrize("make", [spiral, weights, lambda s: batches(s, 1), lambda s: train(SGD, s, steps=1)])
def test_seeds_that_are_none(make, seed):
    """Seeds are whole numbers from 0 on."""
    with pytest.raises((ValueError, TypeError)):
        make(seed)


# The network

def test_the_network_in_numpy():
    """relu(X W1 + b1) W2 + b2, 257 numbers, zero biases."""
    net, (X, y) = MLP(*weights(2)), spiral(2)
    W1, b1, W2, b2 = [p.data for p in net.params]
    assert [p.shape for p in net.params] == [(2, 64), (1, 64), (64, 1), (1, 1)]
    assert sum(p.data.size for p in net.params) == 257 and not b1.any() and not b2.any()
    assert all(isinstance(p, Tensor) and not p.edges for p in net.params)
    net.params[1].data, net.params[3].data = b1 + 0.3, b2 - 0.2
    z = np.maximum(X @ W1 + 0.3, 0) @ W2 - 0.2
    same(net(X).data, z)
    same(net.hidden(X).data, np.maximum(X @ W1 + 0.3, 0))
    loss = -np.log(np.where(y == 1, 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(z)))).mean()
    same(score(net, X, y), [loss, np.mean((z > 0) == (y == 1))])


def test_score_of_several_networks():
    """One loss and one accuracy for each."""
    stack = MLP(*(np.stack(W) for W in zip(weights(1), weights(2), weights(3))))
    X, y = spiral(1)
    assert np.array_equal(score(stack, X, y),
                          np.stack([score(MLP(*weights(s)), X, y) for s in (1, 2, 3)], axis=1))


def test_score_counts_right_answers():
    """A logit above 0 says class 1; 0 says class 0."""
    class Fixed:
        def __call__(self, X):
            return Tensor(X)
    loss, right = score(Fixed(), np.array([[2.0], [-3.0], [1.0], [0.0]]), np.array([[1.0], [0], [0], [0]]))
    assert right == 0.75
    assert abs(loss - np.mean(np.log1p(np.exp([-2.0, -3.0, 1.0, 0.0])))) < 1e-15


def test_score_wants_a_column():
    """Labels (N,) would stretch (N, 1) to (N, N) without a word."""
    X, y = spiral()
    net = MLP(*weights())
    with pytest.raises(ValueError):
        score(net, X, y.ravel())


# Training

def by_hand(name, seed, steps, lr=0.1, correct=True):
    """The same training with a backward pass derived on paper."""
    X, y = spiral(seed)
    p = list(weights(seed))
    m, v, losses = [0.0] * 4, [0.0] * 4, []
    for t, picked in enumerate(batches(seed, steps), 1):
        x, labels = X[picked], y[picked]
        a = x @ p[0] + p[1]
        h = np.where(a > 0, a, 0)
        z = h @ p[2] + p[3]
        losses.append(np.mean(np.maximum(z, 0) + np.log1p(np.exp(-abs(z))) - labels * z))
        dz = (1 / (1 + np.exp(-z)) - labels) / 32
        da = dz @ p[2].T * (a > 0)
        for i, g in enumerate((x.T @ da, da.sum(0), h.T @ dz, dz.sum(0))):
            m[i] = 0.9 * m[i] + 0.1 * g
            b = 0.99 if name == "RMSProp" else 0.999
            v[i] = b * v[i] + (1 - b) * g * g
            p[i] = p[i] - lr * {
                "SGD": lambda: g, "Momentum": lambda: m[i], "RMSProp": lambda: g / (np.sqrt(v[i]) + 1e-8),
                "Adam": lambda: m[i] / (1 - correct * .9 ** t) / (np.sqrt(v[i] / (1 - correct * .999 ** t)) + 1e-8)}[name]()
    return losses, p


@ALL
def test_training_by_hand(name):
    """Sixty steps against a derivation on paper, loss by loss."""
    run = train(OPTIMIZERS[name], seed=2, steps=60)
    losses, params = by_hand(name, 2, 60)
    np.testing.assert_allclose(run.losses, losses, rtol=1e-8)
    for p, wanted in zip(run.model.params, params):
        np.testing.assert_allclose(p.data, wanted, rtol=1e-6, atol=1e-8)


def test_what_is_kept():
    """The parameters at the start, after the steps asked for, and after every tenth of the last 200."""
    run = train(SGD, steps=300, keep=(1, 7))
    assert sorted(run.kept) == [0, 1, 7, *range(110, 301, 10)] and run.losses.shape == (300,)
    assert all(map(np.array_equal, run.kept[0], weights()))
    assert all(np.array_equal(a, p.data) for a, p in zip(run.kept[300], run.model.params))
    shorter = train(SGD, steps=7)
    assert all(map(np.array_equal, run.kept[7], shorter.kept[7]))
    assert all(map(np.array_equal, run.data, spiral(1)))


def test_a_run_is_scored_where_it_was_kept():
    """On its own points, or on others."""
    run, others = train(SGD, steps=30, keep=[4]), spiral(9)
    for data in None, others:
        wanted = score(MLP(*run.kept[4]), *(data or run.data))
        assert np.array_equal(run.at(4, data), wanted)
    assert not np.array_equal(run.at(4), run.at(4, others))


def test_final_is_a_median():
    """Of every tenth of the last 200 steps, and nothing else, whatever else was kept."""
    run = train(RMSProp, steps=230, keep=[31, 40, 229])
    steps = range(40, 231, 10)
    assert np.array_equal(run.final(), np.median([run.at(step) for step in steps], axis=0))
    others = spiral(9)
    assert np.array_equal(run.final(others), np.median([run.at(step, others) for step in steps], axis=0))
    for steps in 1, 2, 3:
        run = train(SGD, steps=steps)
        assert np.array_equal(run.final(), run.at(steps))


@pytest.mark.parametrize("keep", [{3}, [3], np.array([3]), range(3, 4)], ids=str)
def test_any_steps_can_be_kept(keep):
    """A set, a list, an array; a number alone is refused at once."""
    assert sorted(train(SGD, steps=205, keep=keep).kept) == [0, 3, *range(15, 206, 10)]
    with pytest.raises(TypeError, match="int"):
        train(SGD, steps=205, keep=3)


@pytest.mark.parametrize("steps", [0, -1])
def test_no_step(steps):
    """Nothing to train is refused, with what came."""
    with pytest.raises(ValueError, match=f"at least one step, not {steps}"):
        train(SGD, steps=steps)


@pytest.mark.parametrize("size", [1, 100, 1000])
def test_data_of_any_size(size):
    """Batches are drawn from all points there are."""
    def make_data(seed):
        y = np.arange(size)[:, None] % 2.0
        return np.random.default_rng(seed).standard_normal((size, 2)) + 3 * y, y
    run = train(Adam, steps=100, make_data=make_data)
    assert run.data[0].shape == (size, 2) and run.final()[1] > 0.9


def test_scale_multiplies_the_loss():
    """Twice the loss at half the rate is the same walk for SGD."""
    one, two = train(SGD, steps=20, lr=0.5), train(SGD, steps=20, lr=0.25, scale=2.0)
    assert all(map(np.array_equal, one.kept[20], two.kept[20]))


def test_labels_that_are_no_column():
    """Refused with the shapes."""
    with pytest.raises(ValueError, match=r"\(32, 1\) but labels of shape \(32,\)"):
        train(SGD, steps=1, make_data=lambda seed: (spiral(seed)[0], spiral(seed)[1].ravel()))


def test_two_runs_are_identical():
    """No hidden state decides anything."""
    a, b = train(Adam, steps=20), train(Adam, steps=20)
    assert np.array_equal(a.losses, b.losses)
    assert all(np.array_equal(p.data, q.data) for p, q in zip(a.model.params, b.model.params))


def test_settings_reach_the_optimizer():
    """beta1 = 0 and no correction: the first step is lr sign(g) / sqrt(1 - beta2)."""
    start = [p.data for p in MLP(*weights()).params]
    run = train(Adam, steps=1, lr=0.5, beta1=0.0, beta2=0.75, eps=0.0 + 1e-30, bias_correction=False)
    moves = np.concatenate([(p.data - q).ravel() for p, q in zip(run.model.params, start)])
    np.testing.assert_allclose(abs(moves[moves != 0]), 0.5 / 0.5, rtol=1e-9)
    assert (moves != 0).sum() > 200


# What the story claims

def test_before_a_long_run():
    """The initial loss is of the size of log 2; four points are learned by heart."""
    assert np.log(2) * 0.9 < score(MLP(*weights()), *spiral())[0] < np.log(2) * 1.3
    four = [a[[40, 120, 190, 270]] for a in spiral()]
    assert len({tuple(x) for x in four[0]}) == 4 and four[1].sum() == 2
    loss, right = train(Adam, steps=200, make_data=lambda seed: four).final()
    assert loss < 1e-6 and right == 1


def test_the_table(runs):
    """SGD and Momentum stay under 75%, RMSProp and Adam pass 95%, by 20 points."""
    final = {name: run.final() for name, run in runs.items()}
    assert max(final["SGD"][1], final["Momentum"][1]) < 0.75
    assert min(final["RMSProp"][1], final["Adam"][1]) > 0.95
    assert abs(final["SGD"][0] - final["Momentum"][0]) < 0.036
    for name, loss in ("SGD", 0.59), ("Momentum", 0.60), ("RMSProp", 0.038), ("Adam", 0.02):
        assert abs(final[name][0] - loss) < 0.02, name


@pytest.mark.parametrize("seed", [1000, 1001, 1002])
def test_fresh_points_are_no_harder(runs, seed):
    """Another draw of the noise costs at most three points in a hundred."""
    for run in runs.values():
        assert abs(run.final()[1] - run.final(spiral(seed))[1]) < 0.03


def test_pytorchs_momentum_is_ours_at_ten_times_the_rate():
    """All 2000 steps of it."""
    assert furthest(train(Momentum, lr=1.0), train(SummedMomentum, lr=0.1)) < 1e-9


def test_adam_does_not_see_a_scale():
    """A loss times 1024, a power of 2, is the same walk to the last bit once eps is no part of it."""
    one, other = (train(Adam, steps=200, eps=1e-30, scale=scale) for scale in (1.0, 1024.0))
    assert furthest(one, other) == 0


def test_the_correction():
    """First steps of lr sqrt(257) and 3.16 times that; each loss is that of the run."""
    (one, on), (three, off) = first_200(True), first_200(False)
    assert abs(one - 0.1 * np.sqrt(257)) < 5e-4 and abs(three / one - np.sqrt(10)) < 0.02
    assert len(on) == len(off) == 200
    for losses, correct in (on, True), (off, False):
        for t in 1, 10, 50, 200:
            reached = MLP(*by_hand("Adam", 1, t, correct=correct)[1])
            assert losses[t - 1] == pytest.approx(score(reached, *spiral())[0], rel=1e-6)


def test_the_landscape_is_the_logit_at_each_place():
    """At the places of the plane, row by row."""
    found = landscape(weights(3))
    side = np.linspace(-2.4, 2.4, 64)
    assert found.shape == (64, 64)
    for i, j in (0, 0), (3, 60), (63, 5):
        np.testing.assert_allclose(found[i, j], MLP(*weights(3))([[side[j], side[i]]]).data[0, 0], rtol=1e-9)


def test_smoothing_divides_by_the_weight():
    """Constant losses stay as they are; a step is followed by a share of 1 - beta^k."""
    np.testing.assert_allclose(smoothed([3.0] * 50), 3.0, rtol=1e-12)
    later = smoothed([0.0] * 500 + [1.0] * 10, beta=0.9)[500:]
    np.testing.assert_allclose(later, 1 - 0.9 ** np.arange(1, 11), rtol=1e-9)


def test_all_start_from_the_same_loss(runs):
    """One initialization and one first batch for all of them."""
    assert len({run.losses[0] for run in runs.values()}) == 1


def test_the_spike(runs):
    """RMSProp's first step is 10 lr and its loss jumps; Adam's does not."""
    assert runs["RMSProp"].losses[:50].max() > 7 > 3 > runs["Adam"].losses[:50].max()
    start = [p.data for p in MLP(*weights()).params]
    after = train(RMSProp, steps=1).model.params
    length = np.sqrt(sum(((p.data - q) ** 2).sum() for p, q in zip(after, start)))
    assert 9.9 < length / (0.1 * np.sqrt(257)) <= 10
