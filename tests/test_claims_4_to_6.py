"""What chapters 4 to 6 say in words and formulas, held against the machine."""
import inspect
import re
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import anatomy as A
from anatomy import Tensor
from conftest import PARTS, SOURCE
from judges import raised
from reading import flat, number, told, value

CHAPTERS = {int(re.search(r"# ## (\d+)", part)[1]): part for part in PARTS[:12]}
HERE = flat("".join(CHAPTERS[k] for k in (4, 5, 6)))
code = inspect.getsource
PLACE = {"first": 0, "second": 1, "third": 2, "last": -1}


# What a formula or a word says

def near(found, right, rtol=1e-9):
    return np.allclose(found, right, rtol=rtol, atol=1e-13)


def formula(written, times="*", **names):
    """A formula of the prose, in which |x| is a size, log u is log(u) and 2h is 2 h."""
    written = re.sub(r"\|([^|]+)\|", r"abs(\1)", written)
    written = re.sub(r"\b(log|sqrt) (\w+)", r"\1(\2)", written)
    written = re.sub(r"(?<=\d)(?=[a-df-z])", " ", written)
    return value(written, times, **{"max": lambda *sizes: np.max(np.broadcast_arrays(*sizes), axis=0)} | names)


def says(*right, rtol=1e-9, **names):
    """A judge: the formulas have these values."""
    return lambda *written: all(near(formula(one, **names), r, rtol) for one, r in zip(written, right, strict=True))


def chosen(yes, no, question):
    """A judge of one word: it is the first if the question is answered with true, and otherwise the second."""
    return lambda word: word == (yes if question() else no)


def order(text, one, other):
    return "before" if text.index(one) < text.index(other) else "after"


def side(x, of=0.0):
    return "above" if x > of else "below"


def slopes(f, *arrays, seed=None):
    """The engine's, along leaves of these arrays; without a seed those of the sum."""
    leaves = [Tensor(array) for array in arrays]
    out = f(*leaves)
    out.backward(np.ones(out.shape) if seed is None else seed)
    return [leaf.grad for leaf in leaves]


def nudged(f, x):
    """The slopes of a function of each entry."""
    return A.numerical_grad(lambda array: np.sum(f(array)), x)


def block(start, end):
    """Displayed lines between two fragments of the source."""
    return [line[6:] for line in SOURCE.split(start)[1].split(end)[0].splitlines() if line.startswith("#     ")]


def parameters(function):
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


H = 1e-3
X, Z = np.array([0.3, 1.0, 1.7, 2.6]), np.array([-3.0, -0.4, 0.5, 2.0])
U, V = np.array([6.0, 0.7, 2.0]), np.array([2.0, 1.5, -0.8])
P, Q, Q2, T = 1 / (1 + np.exp(-Z)), np.exp(-Z), np.exp(-2 * Z), np.tanh(Z)
RNG = np.random.default_rng(4)
LEFT, RIGHT, G = RNG.standard_normal((2, 3)), RNG.standard_normal((3, 4)), RNG.standard_normal((2, 4))
TANH = slopes(Tensor.tanh, Z)[0]
COST = {y: A.logit_losses(Z, float(y))[0] for y in "01"}
SURE = {"right": A.logit_losses(50.0, 1.0), "wrong": A.logit_losses(-50.0, 1.0)}


def where_0(name, rule, instead):
    return f"np.where({name} == 0, {instead}.0" in code(getattr(A, rule)).split("slope =")[0]


def lent(kind, *shapes):
    left, right, result = [eval(shape, {"n": 2, "k": 3, "m": 4}) for shape in shapes]
    return {"column": right[-1], "row": left[0]}[kind] == 1 and (np.ones(left) @ np.ones(right)).shape == result


def true_class(p, y):
    return near(COST[y], -np.log(formula(p, p=P, z=Z, sigmoid=A.logistic)))


def by_t(where, p, slope):
    z = Z[[side(x) == where for x in Z]]
    right = A.logistic(z)
    t = np.minimum(right, 1 - right)
    return near(formula(p, t=t), right) and near(formula(slope, t=t, y=0.3), right - 0.3)


def relative(found, other, noise=0.0):
    return A.judge(np.array([found]), np.array([other]), np.array([noise]), 1e-4)[1]


def relative_error(shown, floor="0", noise=0.0):
    """Of a slope and a nudged one, with a floor or without."""
    bar = formula(floor, noise=noise, tol=1e-4)
    return all(near(formula(shown, engine=a, nudged=b, floor=bar), relative(a, b, noise))
               for a, b in [(0.02, 0.01), (-3.0, 1.0), (1.0, 1.5), (0.015, 0.002)])


def verdict(f, at, **settings):
    return A.gradcheck(f, [Tensor(at)], **settings).rows[0].verdict


def chapter_with(words):
    return lambda chapter: words in CHAPTERS[int(chapter)]


def stepped(kind, g, w=1.0, lr=0.1):
    p = Tensor(w)
    optimizer = kind([p], lr)
    p.grad = np.full(p.shape, g)
    optimizer.step()
    return p.data


def goes(word, where):
    return {"down": -1, "up": 1}[word] == np.sign(stepped(A.SGD, {"above": 2.0, "below": -2.0}[where]) - 1)


def after(kind, *gs, **settings):
    """The direction that an optimizer takes last, and its averages."""
    optimizer = kind([Tensor(0.0)], 1.0, **settings)
    return [optimizer.direction(g, *optimizer.memories[0]) for g in gs][-1], optimizer.memories[0]


def averaged(step, start):
    a = A.Average(0.9)
    return a.value == float(start) and all(near(formula(step, beta=0.9, a=a.value, x=x), a.add(x)) for x in (2.0, -1.0))


def fed(*xs):
    a = A.Average(0.9)
    return [a.add(x) for x in xs], a


SHARES = np.array([fed(*np.eye(5)[4 - k])[0][-1] for k in range(5)])
FED = fed(*[7.0] * 5)[1]
PART = {"half": 1 / 2, "quarter": 1 / 4, "tenth": 0.1, "twentieth": 1 / 20, "thirtieth": 0.0316, "seventh": 1 / 7}
R, T_STEP = A.excess(2000), np.arange(1, 2001)
WEIGHTS = {"m": SimpleNamespace(weight=1 - 0.9 ** T_STEP), "v": SimpleNamespace(weight=1 - 0.999 ** T_STEP)}
MEMORY = after(A.Adam, 3.0)[1]


def first_steps(start, place):
    """RMSProp's, of one variant, for both slopes."""
    g = np.array([1.0, 1e-4])
    v = 0.99 * start + 0.01 * g * g
    return g / (np.sqrt(v + 1e-8) if place == "inside" else np.sqrt(v) + 1e-8)


def ours(start, place):
    return near(first_steps(start, place), -stepped(A.RMSProp, [1.0, 1e-4], [0.0, 0.0], 1.0), 1e-6)


ROWS = list(product((0, 1), ("outside", "inside")))
AXIS = dict(zip(("gentle", "steep"), A.STEEP))
MU = (9 / 11) ** 2
SGD = A.bowl_path(A.SGD, 1000, lr=2 / 101)
MOMENTUM = A.bowl_path(A.Momentum, 1000, lr=(2 / 11) ** 2 / (1 - MU), beta=MU)

NEURON = dict(zip("wxb", (2.0, 1.0, -1.0)))
NEURON_SLOPES = dict(zip("wxb", slopes(lambda w, x, b: (w * x + b).sigmoid(), *NEURON.values())))
XW = dict(zip("XW", slopes(lambda X, W: X @ W, [[1.0, 2], [3, 4]], [[5.0, 6], [7, 8]], seed=np.diag([1.0, 0.0]))))
FORM = {"row": (1, -1), "column": (-1, 1)}
KEPT = np.zeros(1)
KEPT[[0, 0]] = [1.0, 10.0]
LARGE, OFF = 1e7, abs(nudged(np.tanh, Z) - 1 + T * T).max()


def power(u, v):
    return slopes(lambda u, v: u ** v, np.array(u), np.array(v))


def lane(array, which, what):
    return {"row": array, "column": array.T}[what][PLACE[which]]


def in_source(pattern, chapter):
    """What a line of code says there."""
    return eval(re.search(pattern, CHAPTERS[chapter])[1])


CLAIMS = [
    # Chapter 4: words of one and of two operands
    ("**exp** is out = {}.", says(np.exp(X), x=X)),
    ("Since e^(x+h) = {}, and e^h = {} + ..., out moves by {}. The",
     says(np.exp(X + H), np.exp(H), np.exp(X + H) - np.exp(X), rtol=1e-3, x=X, h=H, out=np.exp(X))),
    ("The slope is {}. At x = 0 it is 1, and", says(*slopes(Tensor.exp, X), x=X, out=np.exp(X))),
    ("**log** is out = {}, and undoes exp: x = {}.", says(np.log(X), X, x=X, out=np.log(X))),
    ("when x moves by h, out moves by {}. The", says(np.log(X + H / 99) - np.log(X), rtol=1e-3, x=X, h=H / 99)),
    ("The slope is {}. At x = 1", says(*slopes(Tensor.log, X), x=X)),
    ("**sigmoid** is out = {} with q = {}.", says(P, Q, q=Q, x=Z)),
    ("The slope of {} along q is {}, and that of q along x is {}. The chain rule multiplies them to {}.",
     says(P, nudged(lambda q: 1 / (1 + q), Q), nudged(lambda x: np.exp(-x), Z), P - P * P, rtol=1e-6, q=Q)),
    ("two factors: {}, which is {}, and {}, which is {}. The slope is {}.",
     says(P, P, 1 - P, 1 - P, *slopes(Tensor.sigmoid, Z), q=Q, out=P)),
    ("**tanh** is out = {}. Divided above and below by {} it is {}, with q = {}.",
     says(T, np.exp(Z), T, Q2, x=Z, q=Q2)),
    ("That is {}, or {} with s for the sigmoid of {}:", says(T, T, 2 * Z, q=Q2, s=A.logistic(2 * Z), x=Z)),
    ("its slope is {}. Put in s = {} and 1 - s = {}. The slope is {} = {}. At",
     says(TANH, (1 + T) / 2, (1 - T) / 2, TANH, TANH, s=(1 + T) / 2, out=T)),
    ("**relu** is out = {}.", says(A.positive(Z), x=Z)),
    ("chooses: g where out is {} 0", lambda where: A.relu_rule(5.0, 2.0, 2.0) == 5 and where == side(2.0)),
    ('"""{}. np.logaddexp(a, b) is {},', says(A.softplus(Z), np.logaddexp(U, V), x=Z, a=U, b=V)),
    ('"""{}, as {}, which cannot overflow', says(P, P, x=Z)),
    ("**u - v** moves by {} when u moves by h, and by {} when",
     says(*[H * s for s in slopes(lambda u, v: u - v, U, V)], h=H)),
    ("When u moves by h, out moves by {}. When", says(H * slopes(lambda u, v: u / v, U, V)[0], h=H, v=V, out=U / V)),
    ("factors move it by {}, and by {} times the move of out. These cancel, so out moves by {}. The slope along v is "
     "{}, which is {}. For", says(U / V * H, V, -U / V ** 2 * H, *2 * slopes(lambda u, v: u / v, U, V)[1:],
                                  u=U, v=V, out=U / V, h=H)),
    ("u ** v, is {}. Its slope along v is {}. Its slope along u is {}, which is {}. In",
     says(U ** V, *[slopes(lambda u, v: u ** v, U, V)[k] for k in (1, 0, 0)], u=U, v=V, out=U ** V)),
    ("where {} is 0, the rule `{}` takes the exponent {},", where_0),
    ("Where {} is 0, the rule `{}` takes the logarithm of {},", where_0),
    ("for u {} 0, there is no slope", chosen("below", "above", lambda: np.isfinite(A.along_exponent(1.0, 2.0, 3.0)))),
    ("by another name: `{}` for", lambda name: getattr(Tensor, name)(Tensor(2.0), 5.0).data == 3),
    # Sums, moves, products
    ("Z[0,0] is {}. So", says(np.array([1, 2]) @ [5, 7])),
    ("exchange the {} two axes", chosen("last", "first", lambda: "swapaxes(-1, -2)" in code(A.matmul))),
    ("vector v is lent a {}: {} @ {} is {}, less", lent),
    ("vector u is lent a {}: {} @ {} is {}, less", lent),
    ("the mean with the factor {}, so", says(slopes(Tensor.mean, np.ones(4))[0][0])),
    ("asks about the {} difference", lambda which: near(A.centred_slopes([1, 0, 0, 0])[PLACE[which]], 0.75)),
    # The loss
    ("the probability {} if y is {}, and {} if y is {}.",
     lambda p, one, q, zero: true_class(p, one) and true_class(q, zero)),
    ("a point costs {} or {}, in", says(COST["1"], COST["0"], p=P)),
    ("a point with y = {} it says", lambda y: A.logit_losses(np.log(99), float(y))[0] < 0.02),
    ("A {} and sure answer costs", lambda which: SURE[which][0] < 1e-9),
    ("a {} and sure answer may", lambda which: SURE[which][0] > 9),
    ("a point with y = {} then has an infinite", lambda y: (A.logistic(40.0) == 1) == (y == "0")),
    ("the patch, {} has the slope {} along", says(COST["0"], nudged(lambda p: -np.log(1 - p), P), rtol=1e-6, p=P)),
    ("slope of p along z is {}. Their product is {}, which", says(*slopes(Tensor.sigmoid, Z), P, p=P)),
    ("nearly 1 for a point that is {}.", chosen("wrong", "right", lambda: A.logistic(30.0) > 0.9)),
    ("With the patch it becomes {}. This", says(*slopes(lambda z: A.patched_bce(z, 0.0), Z), p=P)),
    ("points that are {} wrong teach", chosen("most", "least", lambda: A.loss_slopes(np.array([2.0, 45]))[1][1] == 0)),
    ("With p = {} we have", says(P, z=Z)),
    ("For a z far {} 0, e^-z", lambda where: where == side(-1.0) and formula("e^-z", z=-700.0) > 1e300),
    ("we use that {} = {}. So {} is {}, and L is {}. With",
     says(1 + Q, 1 + Q, np.log(1 + Q), np.log(1 + Q), COST["1"], z=Z, y=1.0)),
    ("Along y it can be read off: {}.", says(nudged(lambda y: A.logit_losses(Z, y)[0], P), rtol=1e-6, z=Z)),
    ("Along z, the slope of {} is {}, and that of {} is {}, which is {}. Together that is {}.",
     says(0.7 * Z, 0.7, np.log(1 + Q), P - 1, P - 1, A.logit_losses(Z, 0.3)[1], z=Z, y=0.3, p=P)),
    ("tends to 0 only where the answer is {}. One", lambda which: abs(SURE[which][1]) < 1e-9),
    ("Let t = {}, the {} of p and 1 - p.", lambda t, which: near(
        formula(t, z=Z), {"smaller": np.minimum, "larger": np.maximum}[which](P, 1 - P))),
    ("For z {} 0, p is {}, and the slope is {}. For", by_t),
    ("t - y. For z {} 0, p is {}, and the slope is {}. def", by_t),
    ("with the patch {}.\"\"\"", says(-A.patched_bce(Tensor(Z), 1.0).data, p=P)),
    ("The {} binary", lambda mean: near(A.bce_with_logits(Tensor(Z), 0 * Z).data, getattr(np, mean)(COST["0"]))),
    ("labels {} from logits {}, one", lambda *names: list(names[::-1]) == list(parameters(A.bce_with_logits))),
    ("A {} if the shapes differ", lambda error: raised(A.bce_with_logits, Tensor([[1.0]]), np.ones(1)) == error),
    ("A point of class {} shows", lambda y: near(A.loss_slopes(Z)[2], COST[y])),
    ("for class 1 it is {}, and its slope is {}. The", says(*A.logit_losses(40.0, 1.0))),
    ("At logits z, for label {}:", lambda y: near(A.loss_slopes(Z)[2], COST[y])),
    ("The {} row is where", lambda which: A.loss_slopes(np.array([-5.0, 38.0]))[1][PLACE[which]] == 0),
    ("A shorter form, {}, is", says(A.logit_losses(Z, 0.3)[0], z=Z, y=0.3)),
    ("By the rule of exp, x moves {} times as", says(slopes(Tensor.exp, np.log(X))[0], x=X)),
    ("and far from 0 it tends to {} on both", lambda zero: near(slopes(Tensor.sigmoid, [-40.0, 40])[0], float(zero))),
    ("Its slope is {} where x is {} 0, and {} where x is {}. At", lambda a, x, b, y: [float(a), float(b)] == [
        slopes(Tensor.relu, {"above": 2.0, "below": -2.0}[where])[0] for where in (x, y)]),
    ("and otherwise {} itself, which is {} there", lambda name, zero: (
        code(A.relu_rule).endswith(f" g, {name})\n") and A.relu_rule(5.0, -3.0, 0.0) == float(zero))),
    ('"""A word out = {}, with a rule ({}) for', lambda out, rule: all(
        line in code(A.binary) for line in (f"Tensor({out},", f"rule_u({rule})", f"rule_v({rule})"))),
    ("is the number with {} = {}.", says(U, U, u=U, v=V, out=U / V)),
    ("and u stays, the product {} must", says(U, v=V, out=U / V)),
    ("Since u^0 is {} for every u, its slope along {} is {}, at", lambda one, name, zero: (
        near(U ** 0, float(one)) and near(power(U, 0 * U)["uv".index(name)], float(zero)))),
    ("Since 0^v is {} for every v {} 0, its slope along {} is {}. So", lambda zero, where, name, slope: (
        where == side(2.0) and 0 ** 2.0 == float(zero) and near(power(0.0, 2.0)["uv".index(name)], float(slope)))),
    ("Along {}, for u below 0", chosen("v", "u", lambda: np.isfinite(A.along_base(1.0, -2.0, 3.0)))),
    ("Where {} is 0 the exponent is {} and not {}, and g is {} as", lambda v, zero, no, g: all(
        f"np.where({v} == 0, {line})" in code(A.along_base) for line in (f"{zero}.0, v - 1", f"{g}.0, g")) and (
        formula("v - 1", v=0.0) == float(no))),
    ("Where {} is 0 the logarithm is that of {}, and g is {}. base", lambda u, one, g: all(
        f"np.where({u} == 0, {line})" in code(A.along_exponent) for line in (f"{one}.0, u", f"{g}.0, g"))),
    ("When the {} operand is a constant, as", chosen("left", "right", lambda: (2 - Tensor(5.0)).data == -3)),
    ("Python asks the {} one, by", chosen("right", "left", lambda: int.__sub__(2, Tensor(5.0)) is NotImplemented)),
    ("as Python asks the {} operand", chosen("right", "left", lambda: Tensor.__rsub__(Tensor(5.0), 2).data == -3)),
    ("`__rsub__` for `{}`", lambda name: getattr(Tensor, name)(Tensor(2.0), 5.0).data == -3),
    ("again, with length {}, {} it copies", lambda one, when: np.expand_dims(Z, 0).shape[0] == int(one) and (
        when == order(code(A.sum_), "expand_dims", "np.full"))),
    ("A transpose puts axis {} in place {}.", lambda axis, place: all(value(place, k=k) == k and np.ones(
        (3, 4, 5)).transpose(2, 0, 1).shape[k] == 3 + value(axis, order=[2, 0, 1], k=k) for k in range(3))),
    ("would keep the {}. def", lambda which: KEPT[0] == [1, 10][PLACE[which]]),
    ("It is used in {} for every {}, times {} each time, so its slopes add up over {}. Z", lambda z, j, w, over: near(
        np.einsum(f"{z[2]}{z[4]},{w[2]}{w[4]}->ik", *[{"Z": G, "W": RIGHT, "X": LEFT}[name[0]] for name in (z, w)]),
        slopes(lambda X, W: X @ W, LEFT, RIGHT, seed=G)[0]) and j == over == z[4]),
    ("along the {} {} of X are", lambda *at: near(lane(XW["X"], *at), XW["X"][XW["X"] != 0])),
    ("Along the {} {} of W they", lambda *at: near(lane(XW["W"], *at), XW["W"][XW["W"] != 0])),
    ("as a {} on the left or a {} on the right.", lambda left, right: near(
        X[:3].reshape(FORM[left]) @ RIGHT, X[:3] @ RIGHT) and (LEFT @ X[:3].reshape(FORM[right])).shape == (2, 1)),
    ("for b, and 0.1966 for {} 0.1966 * {} = 0.1966 for {}, and 0.1966 * {} = 0.3932 for {} If", lambda z, x, w, u, y: (
        z in "w x" and near([NEURON_SLOPES["b"] * NEURON[x], NEURON_SLOPES["b"] * NEURON[u]],
                            [NEURON_SLOPES[w], NEURON_SLOPES[y]]) and (x, u) == (y, w))),
    ("leave those {} alone", chosen("in front", "behind", lambda: "swapaxes(-1, -2)" in code(A.matmul))),
    ("stand for all the axes {}. Both", chosen("in front", "behind", lambda: np.ones((2, 3))[..., 0].shape == (2,))),
    ("undone by a reshape to the {} shape", chosen("old", "new", lambda: "g.reshape(x.shape)" in code(A.reshape))),
    ("along the axes where it is {}.", chosen("shorter", "longer", lambda: np.full((2, 3), Z[:2, None]).size == 6)),
    ("as numpy has it, the {} comes first", chosen("last", "second", lambda: np.ones((2, 3, 4)).T.shape[0] == 4)),
    ("a minus sign turns the {} into the {}. So", lambda *both: np.diff([{"largest": np.argmax, "smallest": np.argmin}[
        word](sign * P) for word, sign in zip(both, (1, -1))]) == 0),
    ("It is {} on the left and {} on the right, and", lambda *two: near(
        slopes(Tensor.relu, [-1.0, 1.0])[0], [float(slope) for slope in two])),
    ("Its probability for class {} is p = {}, and for class {} it is {}. The",
     lambda one, p, zero, q: true_class(p, one) and true_class(q, zero)),
    ("the product is {}. A", chosen("largest", "smallest", lambda: SURE["right"][0] < SURE["wrong"][0])),
    ("the product into a {}, and", lambda name: near(np.log(np.prod(P)), getattr(np, name)(np.log(P)))),
    ("at z = 18.42, where {} is", says(1e-8, rtol=1e-2, p=A.logistic(18.42))),
    ("at a ceiling of {} = 18.42", says(A.loss_slopes(np.array([45.0]))[0][0])),
    ("The small {} term remains, and numpy's `{}` finds", lambda which, name: f"np.{name}(small)" in code(
        A.logit_losses).split("losses = ")[1].split(" + ")[PLACE[which] - 1] and PLACE[which] == 2),
    ("a logit that is {} (-5) to one that is so {} that", lambda *both: list(both) == [
        "right" if loss < 0.1 else "wrong" for loss in A.loss_slopes(np.array([-5.0, 38]))[2]]),
    ("for label 0: the {} loss and", lambda name: near(
        A.loss_slopes(Z)[0], getattr(A, f"{name}_bce")(Tensor(Z), 0.0).data)),
    ("its slope is {}, so the points that are {} wrong are", lambda zero, which: (
        A.loss_slopes(np.array([2.0, 45.0]))[1][{"least": 0, "most": 1}[which]] == float(zero))),
    ("a point with y = {} and z = 40 has", lambda y: near(A.softplus(40.0), 40 * float(y))),
    ("(N, 1) against (N,) would make {}.", lambda s: (np.ones((3, 1)) + Z[:3]).shape == eval(s, {"N": 3})),
    # Chapter 5
    ("Points {}, labels {}, and", lambda *shapes: [str(a.shape) for a in A.small_numbers()[:2]] == list(shapes)),
    ("relative to the {} of them", lambda which: near(relative(2.0, 3.0), 1 / {"larger": 3, "smaller": 2}[which])),
    ("of them: relative error = {} If", relative_error),
    ("the seed is uneven, {} for entry k", says(A.ask(lambda x: x * 2.0, [Tensor(Z)])[1], k=np.arange(4))),
    ("errs as well, in chapter {}'s", chapter_with("def nudge_errors")),
    ("and the nudge says {}. The relative", says(A.numerical_grad(A.cube, 0.0, H), h=H)),
    ("a floor: relative error = {} floor = {} Where", lambda *both: relative_error(*both, noise=1e-6)),
    ("both slopes are {} the floor", lambda where: where == side(0.5, 1)),
    ("the difference times {}. So", lambda times: near(
        relative([0.5, 4], [0.25, 4], noise=2e-4), 0.25 * formula(times, tol=1e-4, noise=2e-4))),
    ("without any slope {} its floor", chosen("above", "below", lambda: np.isnan(relative(0.5, 0.5, noise=1e-4)))),
    ("two values by {}. So it may be off by r = {} For", says(0.6, 20.0, u=2.0, f=-3.0, h=0.3)),
    ("Bending grows like {}, so", says(A.numerical_grad(A.cube, 0.0, H), h=H)),
    ("`halved` has a {} of it, and with its smaller h it has {} the", lambda part, more: number(more)[0] == 2 and near(
        A.numerical_grad(A.cube, 0.0, H / 2), PART[part] * A.numerical_grad(A.cube, 0.0, H))),
    ("bendings differ by {}, and at worst the two roundings hide {} of", says(1 - 1 / 4, 1 + 2, c=1.0, r=1.0)),
    ("an f that is 0, as {} is at w = {}.", lambda f, w: formula(f, w=float(w)) == 0),
    ("Its square is {}. The other value has an {} as well, and the two drop out. What is left is {}, divided by {}: "
     "the nudge is off by {}.", says((H + 1e-9) ** 2, H * H, 2 * H * 1e-9, 2 * H, 1e-9, h=H, d=1e-9)),
    ("So we add {} to r.", lambda u: f"size / h + {u}\n" in code(A.rows_of)),
    ("`backward`, {} it has made sure", lambda when: when == order(code(A.ask), "y.backward(", "two answers")),
    ("The function `{}` nudges the parameters", lambda name: "numerical_grad(" in code(getattr(A, name))),
    ("a parameter through its `{}`, we", lambda name: f"p{name} = array" in code(A.rows_of)),
    ("parameter is nudged by {} and by {}. def", lambda *steps: all(f"start, {h})" in code(A.rows_of) for h in steps)),
    ("A {} for what is not a T", lambda error: raised(A.gradcheck, lambda w: 2.0, [Tensor(1.0)]) == error),
    ("Tensor. A {} if f, called", lambda name: raised(A.gradcheck, lambda w: w * RNG.random(), [Tensor(1.0)]) == name),
    ("whose rule says {} instead of {}.", lambda *rules: [verdict(A.elementwise(
        np.tanh, lambda g, x, out: g * formula(rule, out=out)), Z) for rule in rules] == ["WRONG", "ok"]),
    ("the complex step of chapter {},", chapter_with("the *complex step*")),
    ("Its relu looks at the {} part", lambda part: f"z.{part} > 0" in CHAPTERS[5]),
    ("subtracted in f, try a {} h", chosen("larger", "smaller", lambda: "ok" == verdict(
        lambda z: -(1.0 - z.sigmoid()).log(), 22.0, h=0.1))),
    ("beside a {} h, or", chosen("larger", "smaller", lambda: verdict(lambda w: w * w + 1e7, 1.0, h=0.1) == "ok")),
    ("2 outputs and the {} loss", lambda name: f"{name}_bce(" in code(A.small_network)),
    ("numbers in {} alone. def", lambda name: name not in re.search(r"small_loss\((.+)\)\.data", CHAPTERS[5])[1]),
    ("If one is {} of the other, this is {}; if the signs differ, it may be {}.", lambda part, this, two: near(
        [relative(PART[part], 1.0), relative(1.0, -1.0)], [float(this), float(two)])),
    ("So it is {} tol only if the difference is {} the noise", lambda one, other: all((side(relative(
        [0.5, 4], [0.5 - d, 4], 2e-4), 1e-4) == one) == (side(d, 2e-4) == other) for d in (1e-4, 3e-4))
        and side(relative([0.5, 4], [0.4, 4], 2e-4), 1e-4) == one),
    ("We take {} for {}, to", lambda more, least: (
        formula(least) < float(more) and near(formula(least), 1 / (1 - 1 / 4)))),
    ("But the nudged {} is h with", says(H, w=1 + H)),
    ("slope along the {} number is 0", lambda which: nudged(lambda w: w ** 3, [1.0, 0.0])[PLACE[which]] < 1e-9),
    ("for rounding, `{}` is 1e-10 and `{}` is 0.25e-10", lambda *both: near([A.numerical_grad(
        A.cube, 0.0, {"nudged": 1e-5, "halved": 5e-6}[one]) for one in both], [1e-10, 0.25e-10])),
    ("counts as true if {} verdicts", chosen("all", "any", lambda: not A.Report(
        [SimpleNamespace(verdict=v) for v in ("ok", "WRONG")]))),
    ("true if {} parameter was tried", chosen("every", "any", lambda: not A.gradcheck(
        lambda w, b: w * w, [Tensor(1.0), Tensor(1.0)]))),
    ("no relative error is {} tol.", chosen("above", "below", lambda: verdict(lambda w: w * w, 1.0) == "ok")),
    ("digits that the {} one has", chosen("weaker", "stronger", lambda: OFF > 1e-13)),
    ("moved off the {} axis", chosen("real", "imaginary", lambda: "+= 1j * h" in code(A.complex_slopes))),
    ("So the error was the {}'s.", chosen("nudge", "engine", lambda: abs(TANH - 1 + T * T).max() < OFF)),
    ("as in {} for p near {} f", lambda gap, one: formula(gap, p=float(one)) == 0),
    ("judged: f is {} beside", chosen("large", "small", lambda: verdict(lambda w: w * w + LARGE, 1.0) != "ok")),
    ("noise may be so {} that", chosen("large", "small", lambda: "no slope" in verdict(Tensor.relu, 4e-6))),
    # Chapter 6
    ("So W goes {} where g is {} 0", goes),
    ("0 and {} where it is {}, which is", goes),
    ("which is {} g: W", chosen("against", "along", lambda: stepped(A.SGD, 2.0) < 1)),
    ("W <- {} The", says(stepped(A.SGD, 3.0), W=1.0, lr=0.1, g=3.0)),
    ("A number of W then moves by {}, and", says(stepped(A.SGD, 3.0) - 1, lr=0.1, g=3.0)),
    ("L falls by about {} times the sum of all {}. The", lambda lr, square: near(formula(lr, lr=1e-6) * np.sum(
        formula(square, g=Z)), np.sum(Z ** 2 - stepped(A.SGD, Z, Z, 1e-6) ** 2) / 2, 1e-3)),
    ("The valley L = {} has the slope g = {}. From", lambda valley, g: near(
        formula(g, w=Z), nudged(lambda w: formula(valley, w=w), Z), 1e-6)),
    ("A step multiplies w by {} here", says(stepped(A.SGD, 1.0, 1.0, 0.3), lr=0.3)),
    ("must lie between {} and {}: lr must be {} {}. In", lambda low, high, where, bound: all(
        (float(low) < 1 - lr < float(high)) == (side(lr, float(bound)) == where) for lr in (0.1, 1.9, 2.1))),
    ("lr has to be c times {}. Real", chosen("smaller", "larger", lambda: abs(1 - 3 * 1.9) > 1 > abs(1 - 3 * 1.9 / 3))),
    ("The other {} optimizers remember", lambda many: number(many)[0] == sum(
        bool(kind([Tensor(1.0)], 0.1).memories[0]) for kind in A.OPTIMIZERS.values())),
    ("numbers x is a <- {} and it starts from a = {}. Let", averaged),
    ("has the share {} in a.", says(SHARES, beta=0.9, k=np.arange(5))),
    ("shares of t steps sum to {}. They", says(np.sum(SHARES), beta=0.9, t=5)),
    ("We call their sum the *{}*", lambda name: near(getattr(FED, name), np.sum(SHARES))),
    ("The {} divided by the {} is", lambda above, below: near(getattr(FED, above) / getattr(FED, below), 7)),
    ("A share has fallen to {} after {} steps.", lambda part, steps: near(0.9 ** formula(steps, beta=0.9), PART[part])),
    ("squared shares of our average are {}.", says(SHARES ** 2, beta=0.9, k=np.arange(5))),
    ("Their sum over all k is {} = {} That", says(*[np.sum((0.1 * 0.9 ** np.arange(2000)) ** 2)] * 2, beta=0.9)),
    ('"""a <- {} from a = {}, and its', averaged),
    ("m of {} and v of {}. A", says(MEMORY[0].value / 0.1, MEMORY[1].value / 0.001, g=3.0)),
    ("Only {} divides by the weight", lambda name: ".weight" in code(A.OPTIMIZERS[name].direction)),
    ("each of them {} its direction", chosen("against", "along", lambda: stepped(A.SGD, 2.0) < 1)),
    ("for many networks in one (chapter {})", chapter_with("def train_many")),
    ("each parameter moves by {}. params", says(stepped(A.Momentum, 3.0) - 1, lr=0.1, direction=0.1 * 3)),
    ("A {} if lr does not broadcast", lambda error: raised(A.SGD, [Tensor(1.0)], np.ones(3)) == error),
    ("gradients are looked at {} the first", lambda when: when == order(code(A.Optimizer.step), "raise", "p.data - ")),
    ("beta 0.9; {} is PyTorch's", lambda beta: float(beta) == parameters(A.RMSProp)["beta"]),
    ("m is a {} of what it should be, but sqrt(v) is only a {}.", lambda m, v: near(
        [PART[m], PART[v]], [0.1, np.sqrt(0.001)], 1e-2)),
    ("length of step t {} correction", chosen("without", "with", lambda: A.excess(1)[0] > 1)),
    ("the weights: r(t) = {} = {} The", says(R, R, **WEIGHTS, beta1=0.9, beta2=0.999, t=T_STEP)),
    ("grows by {} percent in a step", chosen("more", "less", lambda: R[11] > R[0])),
    ("and that of {} is still {} a {}.", lambda v, where, part: where == side(WEIGHTS[v].weight[43], PART[part])),
    ("From there on r is nearly {}, and", lambda tail: near(formula(tail, **WEIGHTS)[43:], R[43:], 0.01)),
    ("and {} to 1 slowly", chosen("falls", "rises", lambda: R[-1] < R[43])),
    ("the first steps are too {}. RMSProp", chosen("short", "long", lambda: A.excess(1, beta2=0.95)[0] < 1)),
    ("With beta = {} its first v", lambda beta: near(after(A.RMSProp, 1.0, beta=float(beta))[1][0].value, 0.01)),
    ("so where v starts from {}, as in ours", lambda start: ours(int(start), "outside")),
    ("All three add eps {} the root.", lambda place: ours(0, place)),
    ("`torch/optim/rmsprop.py`). {} choices make {} var", lambda *many: [number(n)[0] for n in many] == [2, len(ROWS)]),
    ("Ours is the {} row.", lambda which: ours(*ROWS[PLACE[which]])),
    ("In the {} row, ours", lambda which: ours(*ROWS[PLACE[which]])),
    ("In the {}, eps {} the root outweighs", lambda which, place: (
        ROWS[PLACE[which]][1] == place and 0.9 < first_steps(*ROWS[PLACE[which]])[1] < 1.1)),
    ("With v from {}, the last", lambda start: int(start) == ROWS[-1][0] == ROWS[-2][0]),
    ("a bowl that is {} times steeper", says(A.STEEP[1] / A.STEEP[0])),
    ("On the {} axis a large", lambda which: 1 - 0.019 * AXIS[which] < -0.8),
    ("then the {} axis takes", lambda which: 1 - 0.001 * AXIS[which] > 0.99),
    ("Momentum can take a {} lr.", chosen("larger", "smaller", lambda: (2 / 11) ** 2 / (1 - MU) > 2 / 101)),
    ("takes a sum: u <- {}. We", says(0.6, mu=0.8, u=2.0, g=-1.0)),
    ("ours with the factor {}. So the sum is {} times the average, at", says(
        after(A.Momentum, 1.0, beta=0.8)[0], 0.6 / after(A.Momentum, 2.0, -1.0, beta=0.8)[0], mu=0.8)),
    ("is therefore ours at {}, exactly", says(0.3 * 5, lr=0.3, mu=0.8)),
    ("exactly. Chapter {} runs both", chapter_with("SummedMomentum")),
    ("two coordinates by {} and {}.", says(*A.bowl_path(A.SGD, 1, lr=0.013)[1], lr=0.013)),
    ('in the bowl {}, from (1, 1)."""', lambda height: near(A.STEEP * U[:2], A.numerical_grad(
        lambda w: formula(height, w0=w[0], w1=w[1]), U[:2]), 1e-6)),
    ("even swings {} at", chosen("wider", "less", lambda: abs(MOMENTUM[:, 1]).max() > abs(SGD[:, 1]).max())),
    ("But it also goes {} along", chosen("faster", "slower", lambda: abs(MOMENTUM[20, 0]) < SGD[20, 0])),
    ("It needs less than a {} of", lambda part: A.steps_to_arrive(MOMENTUM) < PART[part] * A.steps_to_arrive(SGD)),
    ("We want L to {}. So", chosen("fall", "rise", lambda: stepped(A.SGD, 2.0) < 1)),
    ("and L by {} times that", says(nudged(lambda w: w * w / 2, 2.0), rtol=1e-6, g=2.0, lr=0.1)),
    ("the same average, fed with {}.", lambda name: near(fed(*getattr(np, name)(5))[0][-1], FED.weight)),
    ("an average whose shares sum to {}.", says(np.sum(SHARES) / FED.weight)),
    ("A number times s has {} times", says(np.var(3 * Z) / np.var(Z), s=3.0)),
    ("has n shares of {}, and the sum of their squares is {}.", says(
        slopes(Tensor.mean, Z)[0], np.sum(slopes(Tensor.mean, Z)[0] ** 2), n=4)),
    ("one number times the {} of the {} shares. A", lambda name, what: near(
        getattr(np, name)({"squared": SHARES ** 2, "plain": SHARES}[what]), SHARES @ SHARES)),
    ("and return the {} value", chosen("new", "old", lambda: A.Average(0.9).add(1.0) > 0)),
    ("an average is divided by its {}.", lambda name: f"/ m.{name}" in code(A.Adam.direction)),
    ("It has {} noise than", chosen("less", "more", lambda: SHARES @ SHARES < 1)),
    ("g / sqrt(v) is about {} or {}.", lambda *signs: near([after(A.RMSProp, *[g] * 2000)[0] for g in (3.0, -3.0)],
                                                           [float(sign) for sign in signs], 1e-6)),
    ("makes a {} array, and leaves the {} one as it was, since a graph may remember the {} one", lambda *words: (
        "p.data = p.data - " in code(A.Optimizer.step)) == (words == ("new", "old", "old"))),
    ("has the length {}, whatever g is, unless it is {}.", lambda length, zero: near(formula(length, lr=0.1), -stepped(
        A.Adam, 5.0, 0.0), 1e-6) and stepped(A.Adam, float(zero), 0.0) == 0),
    ("In step 1, {} would be 0.2 where {} is 2, and {} would be 0.063", lambda *names: near([formula(
        name, g=2.0, m=0.1 * 2, v=after(A.Adam, 2.0)[1][1].value) for name in names], [0.2, 2, 0.063], 0.01)),
    ("correction*. {} it both averages", chosen("Without", "With", lambda: MEMORY[0].value < 3)),
    ("divided by its length {} it", chosen("with", "without", lambda: A.excess(1)[0] > 1)),
    ("as long as the weight of {} grows by more percent in a step than the root of the weight of {}, which",
     lambda m, v: np.sum(np.diff(np.log(WEIGHTS[m].weight)) > np.diff(np.log(WEIGHTS[v].weight)) / 2) == R.argmax()),
    ("44 the weight of {} is within a", lambda m: WEIGHTS[m].weight[43] > 0.99 > WEIGHTS[m].weight[42]),
    ("how many times as {} as", chosen("long", "short", lambda: R[0] > 1)),
    ("belongs to step 1, and r[{}] to step t", lambda at: R[value(at, t=12)] == R.max()),
    ("< 0.005 {} 1.1 from", chosen("Below", "Above", lambda: R[1750] < 1.1)),
    ("RMSProp has an average {} and", lambda name: name in parameters(A.RMSProp.direction)),
    ("its first v is {}, so its first step is {}. That", says(
        after(A.RMSProp, 3.0)[1][0].value, -stepped(A.RMSProp, 3.0, 0.0), rtol=1e-6, g=3.0, lr=0.1)),
    ("TensorFlow adds it {}, says", lambda place: place in dict(ROWS).values() and not ours(0, place)),
    ("first step of a small slope is {}.", chosen("small", "large", lambda: first_steps(*ROWS[-1])[1] < 1)),
    ("axis a {} lr throws", chosen("large", "small", lambda: abs(1 - 0.03 * AXIS["steep"]) > 1)),
    ("So lr has to be {}, and", chosen("small", "large", lambda: abs(1 - 0.03 * AXIS["steep"]) > 1)),
    ("long run the {} of the two", chosen("slower", "faster", lambda: np.prod(A.bowl_path(A.SGD, 9, lr=0.013)[-1]) < 0
                                          < np.diff(abs(A.bowl_path(A.SGD, 9, lr=0.013)[-1][::-1]))[0])),
    ("derive it: mu = {} and, for the sum, lr = {}. There", lambda *both: near(
        [formula(one) for one in both], [in_source(rf"\n    {name} = (\(.+)", 6) for name in ("mu", "lr")])),
    ("The {} of the bowl has", chosen("root", "square", lambda: "height = np.sqrt(gentle" in CHAPTERS[6])),
    ("the distance stays {} 1e-6 of the {}.", lambda where, which: where == ("below" if A.steps_to_arrive(
        SGD) > 1 else "above") and f"* distance[{PLACE[which]}]" in code(A.steps_to_arrive)),
    ("In the {} picture a line marks r = {}. There a step {} correction", lambda panel, r, word: (
        f"axhline({r}," in code(A.draw_optimizers).split(f"axes[{['upper', 'lower'].index(panel)}]")[1]
        and word == ("without" if R[0] > 1 else "with"))),
    ("above: the {} the plane, the {} it is", lambda *words: words in [("darker", "higher"), ("lighter", "lower")]
     and "linspace(0, 0.2" in code(A.show_walks)),
    ("it is. {} walks jump across the valley with every", chosen("Both", "No", lambda: all(
        np.all(path[1:40, 1] * path[:39, 1] < 0) for path in (SGD, MOMENTUM)))),
    ("distances shrink by about {} a step, and those of SGD by {}.", says(
        *[np.linalg.norm(path[300]) / np.linalg.norm(path[299]) for path in (MOMENTUM, SGD)], rtol=0.01)),
]


@pytest.mark.parametrize("template, judge", CLAIMS, ids=[template[:60] for template, judge in CLAIMS])
def test_what_a_sentence_says_is_so(template, judge):
    found = judge(*told(template, HERE))
    assert found is None or bool(found)


# Displayed lines

def test_what_is_shown_for_exp_is_what_is_made_for_it():
    names = {"np": np, "Tensor": Tensor}
    exec("\n".join(block("What it makes for exp is the same as", "# %%")), names)
    assert near(slopes(names["exp"], Z), slopes(Tensor.exp, Z)) and near(names["exp"](Tensor(Z)).data, np.exp(Z))


def test_the_product_and_its_slopes_entry_by_entry():
    given = {"X": LEFT, "W": RIGHT, "g": G}
    right = [LEFT @ RIGHT, *slopes(lambda X, W: X @ W, LEFT, RIGHT, seed=G)]
    for name, line, array in zip("ZXW", block("up over j.", "In numbers, with a seed"), right, strict=True):
        label, summed, *short = re.split(r" += +", line)
        (found, at), (a, at_a), (b, at_b) = re.findall(r"(\w)\[(\w,\w)\]", label + summed)
        indices = f"{at_a};{at_b}->{at}".replace(",", "").replace(";", ",")
        assert found == name and summed[9] not in at and near(np.einsum(indices, given[a], given[b]), array)
        for matrix in short:
            assert matrix.endswith(f")[{at}]") and near(formula(matrix[:-5], times="@", **given), array)


def test_every_displayed_line_of_the_loss_is_an_equation():
    lines = [re.split(r"(?:^| +)= +", line) for line in block("So a point costs", "# %% tags") if "= " in line]
    assert [left.strip() for left, _ in lines] == ["L", "-log(p)", "1 - p", "-log(1 - p)", "L", "", "L"]
    for y, (left, right) in product((0.0, 1.0, 0.3), lines):
        loss = A.logit_losses(Z, y)[0]
        assert near(formula(right, y=y, z=Z, p=P), formula(left, p=P) if "p" in left else loss), right


def test_the_noise_bounds_what_bending_and_rounding_can_do():
    lines = block("Let c be the bending", "One case is left")
    (_, bent, rough), *bounds = [re.split(r"  +and |  +|^noise = ", line) for line in lines[1:]]
    c, r = 1.0, 0.1
    halved, rounded = formula(bent, c=c), formula(rough.removesuffix(" of rounding"), r=r)
    least = min(abs(c + a - halved - b) for a in (-r, r) for b in (-rounded, rounded))
    assert near([halved, rounded], [A.numerical_grad(A.cube, 0.0, 0.5), 2 * r]) and len(bounds) == 4
    given = {"c": c, "nudged": least, "halved": 0.0, "r": r}
    assert near([formula(bound, **given) for _, bound in bounds[:3]], [least, c, c + r])
    in_code = re.search(r"noise = (.+)", code(A.rows_of))[1]
    assert near(formula(bounds[3][1], **given), value(in_code, **given)) and value(in_code, **given) > c + r


def test_the_four_directions_are_those_that_are_displayed():
    shown = dict(line.split(maxsplit=1) for line in block("keeps a division by 0 away:", "# Why an average of g?"))
    assert list(shown) == list(A.OPTIMIZERS)
    for name, kind in A.OPTIMIZERS.items():
        direction, memory = after(kind, 2.0, 4.0, -1.0)
        given = {"g": -1.0, "eps": 1e-8}
        for letter, average in zip({"Momentum": "m", "RMSProp": "v"}.get(name, "mv"), memory):
            given |= {letter: average.value, f"{letter}_hat": average.value / average.weight}
        assert near(formula(shown[name], **given), direction), name
