"""What chapters 10 to 12 and the answers claim in words and formulas, held against the machine."""
import inspect
import re
from functools import lru_cache

import numpy as np
import pytest

import anatomy as A
import reading
from anatomy import BREAKAGES, PROGRAMS, SOLUTIONS, Tensor
from conftest import PARTS
from reading import GOLDEN, flat, read

SOURCE = "".join(PARTS[9:])
PROSE, POINTS = flat(SOURCE), np.array([0.3, -0.7, 1.1])


def told(template):
    return reading.told(template, PROSE)


def value(formula, **names):
    """With |a - b| for a size."""
    return reading.value(re.sub(r"\|([^|]+)\|", r"abs(\1)", formula), **names)


def n(written):
    return reading.number(written)[0]


def listed(text):
    """The numbers of 3, 1, 2."""
    return np.array(eval(f"[{text}]"), float)


def printed(template):
    return n(read(template, GOLDEN)[0])


def sgd_at(rate):
    return n(re.search(rf"SGD +{rate} +[\d.]+ +(\d+%)", GOLDEN)[1])


@lru_cache
def chapter(number):
    return flat(PARTS[int(number) - 1])


def tells(text):
    """A judge: has the chapter of this number this text?"""
    return lambda number: text in chapter(number)


def displayed(first):
    """The cells of the indented lines from the one that begins so."""
    block = re.search(rf"(?m)^#     {re.escape(first)}.*\n(?:#     .*\n)*", SOURCE)[0]
    return [re.split(r"\s{2,}", line[1:].strip()) for line in block.splitlines()]


def cell(row, column):
    """Of the table of names in chapter 11."""
    headings, line, *rows = displayed("ours  ")
    return {cells[0]: cells for cells in rows}[row][headings.index(column)]


source = lru_cache(inspect.getsource)


def parameters(function):
    return tuple(inspect.signature(function).parameters)


def error_of(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return type(error).__name__


def slopes(f, *arrays, seed=None):
    leaves = [Tensor(array) for array in arrays]
    f(*leaves).backward(seed)
    return [leaf.grad for leaf in leaves]


def walk(kind, *gs, **settings):
    """Where a w of 1 comes with these slopes."""
    w = Tensor(1.0)
    descent, path = kind([w], **settings), []
    for g in gs:
        w.grad = np.array(g)
        descent.step()
        path.append(w.data)
    return path


@lru_cache
def found(name):
    return [measured.found for measured in BREAKAGES[name].measure()]


def jump(name):
    """The loss after one step over the loss at the start."""
    run = A.train(A.OPTIMIZERS[name], steps=1, keep=[1])
    return run.at(1)[0] / run.at(0)[0]


def breadth_first():
    """The places of y + y * y, y, y * y and x."""
    x = Tensor(3.0)
    y = x * x
    s = y * y
    L = y + s
    order = list(dict.fromkeys(A.breadth(L)))
    return [order.index(node) for node in (L, y, s, x)]


def cost_of(word):
    """By the displayed lines: operations forward, and products and additions backward."""
    [line] = [" ".join(cells) for cells in displayed("a * b  ") if cells[0] == word]
    return [int(count) for count in re.findall(r"\d+", line.replace("nothing", "0"))]


def forms_of_decay():
    """What g becomes, and what w becomes times lr and by itself."""
    return [re.search("<- (.+?)(?:,|$)", cells[1])[1] for cells in displayed("L2 in g")]


def left(formula, steps=1, eta=1.0, lr=0.001, decay=0.001):
    """What is left of a w of 1 that is replaced by this."""
    w = 1.0
    for step in range(steps):
        w = value(formula, w=w, eta=eta, lr=lr, decay=decay)
    return w


def softmax(z):
    return np.exp(z) / np.exp(z).sum()


def cross(z, *labels):
    return A.cross_entropy(Tensor(z), np.array(labels)).data


def passes(f):
    """With the fault that solves trial.3?"""
    with A.replaced(Tensor, "transpose", A.transpose_by_order):
        return A.gradcheck(f, A.LEAVES).ok


CLAIMS = [
    # Chapter 10
    ("as `@fault` did in chapter {}.", tells("def fault(")),
    ("with chapter {}'s `train_many`", tells("def train_many(")),
    ("with chapter 8's `train_many`, and report the {} of", lambda kind: f"np.{kind}(" in source(A.five)),
    ("on the last axis but {}. highest", lambda but: f"axis={-1 - n(but):.0f})" in source(A.dead)),
    ("of lr sqrt(257). Chapter {} found", tells("lr sqrt(257)")),
    ("as a multiple of {}. Chapter", lambda length: np.isclose(value(length, lr=3.0), np.sqrt(257 * 3.0 ** 2))),
    ("257 numbers moves by {}.", lambda move: np.isclose(1 - walk(A.Adam, 70.0, lr=0.3)[0], value(move, lr=0.3))),
    ("with the patched loss of chapter {}. There", tells("def patched_bce(")),
    ("There the slope is {} for a point that is surely {}.", lambda slope, word: word == "wrong" and np.isclose(
        A.loss_slopes(np.array([40.0]))[1], float(slope))),
    ("SGD {}, as 0.1 was too {} for it", lambda *words: words == ("gains", "small") and sgd_at(1) > sgd_at(0.1)),
    ("The loss from the {} has slopes there", lambda word: word == "logit" and A.loss_slopes(POINTS + 30)[3][0] > 0.9),
    ("The {} loss has next to no slope", lambda word: word == "patched" and A.loss_slopes(POINTS + 30)[1][0] < 1e-4),
    ("loss at the start. ({} at 0.1 is", lambda name: jump(name) > 5 > jump("Adam")),
    ("each optimizer by itself, as in chapter {}.", tells("def race(")),
    ("twelfth 6.57 times, as chapter {} has", tells("def excess(")),
    ("divide the loss of the {} run by that of the {} one, and take the {} of", lambda over, under, kind: (
        (over, under) == ("uncorrected", "corrected")
        and f"at_1 = np.{kind}(wrong.at(1)[0] / right.at(1)[0])" in source(A.WithoutCorrection.measure))),
    ("overshoot, and the run is {} at once", lambda word: word == "worse" and printed("step 1: at least {} times") > 1),
    ("go far, and the run is {}. On", lambda word: word == "ahead" and printed("after step 50: at most {} times") < 1),
    ("in the end the run is {}.", lambda word: word == "behind" and printed("at the end: at least {} times") > 1),
    ("With the correction it is at {} lr", lambda bound: bound == "most" and A.first_step(
        A.train(A.Adam, steps=1, keep=[1])) <= 1),
    ("in 6931 steps, by chapter {}'s", tells("log(1/2) / log(beta)")),
    ("in 6931 steps, by chapter 6's {}. Our", lambda f: round(value(f, beta=0.9999)) == 6931),
    ("Without it the first step is {} = 10 times too {}.", lambda f, size: np.isclose(value(f), 10)
     and size == "long" and np.isclose(A.excess(1, beta2=0.9999)[0], 10)),
    ("chapter 9 has the {} loss, which", lambda loss: A.network.__defaults__[0].__name__.startswith(loss)),
    ("for its {} relative error, which must be {} 1e-4", lambda which, side: (which, side) == ("largest", "below")
     and "max(" in source(A.worst_error) and A.judge(np.ones(1), np.ones(1), 0.0, 1e-4)[2] == "ok"),
    ("that of chapter {}, y + y * y with", tells("y + y * y")),
    ("that of chapter 2, {} with y = {}, at x = {}. Its slope is {} = 114", lambda outer, inner, x, slope: (
        slopes(lambda x: value(outer, y=value(inner, x=x)), float(x)) == [value(slope)])),
    ("which is nodes {} the loss before those {} it.", lambda near, far: (near, far) == ("close to", "far from")
     and breadth_first() == [0, 1, 2, 3]),
    ("y is taken {} y * y has", lambda when: when == "before" and breadth_first()[1] < breadth_first()[2]),
    ("cover, the expression of chapter {}, in", tells("def cover(")),
    ("can stretch the {} side of += but not the {} one", lambda can, cannot: (can, cannot) == ("right", "left")
     and error_of(np.zeros((2, 3)).__iadd__, np.ones(3)) is None
     and error_of(np.zeros(3).__iadd__, np.ones((2, 3))) == "ValueError"),
    ("`second_over_first` takes {} such steps, and looks at the slope along the {} bias", lambda count, which: (
        f"range({n(count):.0f})" in source(A.second_over_first)
        and {"first": "b1", "last": "b2"}[which] + ".grad" in source(A.second_over_first))),
    ("SGD at 0.1 is too {}, and {} steps", lambda *words: words == ("slow", "longer") and sgd_at(1) > sgd_at(0.1)),
    ("We take the curve of chapter {}, e^x", tells("def bent(")),
    ("curve of chapter 1, {}, whose", lambda f: np.allclose(value(f, x=POINTS), A.bent(POINTS))),
    ("of 1e-5 leaves about {} in the", lambda digits: round(np.log10(1e-5 / np.finfo(np.float32).eps)) == n(digits)),
    ("take h = {} and a tolerance of {}.", lambda h, tol: found("single")[1] < float(tol)
     and f"error({h})" in source(A.SevenDigits.measure)),
    ("The error {}, and that of a wrong", lambda verb: verb == "shrinks" and found("single")[1] < found("single")[0]),
    ("relu at {}, nudged by {} times", lambda x, times: np.isclose(1e-5 / float(x), n(times))),
    ("reports is far {} the true one", lambda side: side == "below" and found("kink")[1] < 0.1),
    ("Ten times the rate helped {}, and", lambda name: name == re.search(r"(\w+): at least 80% of the", GOLDEN)[1]),
    ("nobody cleared the gradients, {} got", lambda name: name == re.search(r"(\w+): at least 5% of the", GOLDEN)[1]),

    # Chapter 11
    ("come with a {}, as in chapter", lambda word: word == cell("rule per operand", "JAX").split(",")[0]),
    ("with a JVP, as in chapter {}, and", tells("JVP")),
    ("through its notes from their {}, and", lambda side: side == "end"
     and cell("newest first", "JAX").startswith("last")),
    ("a node of its own, {}, adds to `{}`.", lambda node, place: cell(f"{place} adds up", "PyTorch") == node),
    ("PyTorch takes the {}. Ours does not count, since the {} of", lambda theirs, ours: (
        cell(f"{ours} first", "PyTorch").startswith(theirs))),
    ("We and PyTorch sum them in the engine, and {} sums", lambda name: told("*Three.* {} has its rules") == (name,)),
    ("sums it again, in `{}`.", lambda name: cell("unbroadcast", "JAX") == name),
    ("A {} nudges each entry. A {} nudges all", lambda each, at_once: [each, each, at_once, at_once] == [
        cell("gradcheck", name) for name in ("ours", "PyTorch", "HIPS autograd", "JAX")]),
    ("({}, {}, {}) for a batch of this size", lambda *names: [A.cost_of_step(300)[names.index(name)] for name in
     ("Tensors", "rule calls")] == [n(*told("The {} Tensors are four")), n(*told("so there are {} calls."))]),
    ("rules are two products, {} and {}, and", lambda *rules: [value(rule, g=1.0, a=2.0, b=3.0) for rule in rules]
     == slopes(lambda a, b: a * b, 2.0, 3.0)),
    ("That makes {} operations where", lambda count: n(count) == sum(cost_of("a * b"))),
    ("cost at most {} times the value", lambda count: n(count) == max(sum(cost_of("a * b")), sum(cost_of("a + b")))),
    ("Count products only, and it is at most {} times.", lambda count: n(count) == sum(cost_of("a * b")[:2])),
    ("they {} with the batch", lambda verb: verb == "grow" and A.cost_of_step(300)[2] > A.cost_of_step(32)[2]),
    ("Adam keeps {} numbers for each parameter, {} and {}.", lambda count, *names: n(count) == len(names)
     and parameters(A.Adam.direction)[2:] == names),
    ("in GB, of {} bytes, and in GiB, of {} bytes", lambda *sizes: np.allclose(
        A.gigabytes(1.0, 1), [1 / value(size) for size in sizes])),
    ("of a million numbers is {}, and the others are near {}, the unit has to be {}, and all the others become {}.",
     lambda top, rest, unit, end: float(top) == 127 * value(unit) and np.allclose(
         A.in_a_byte(np.array([float(top), float(rest)])), [float(top), float(end)])),
    ("divided by its own {} number", lambda word: A.in_a_byte(np.array([0.3, 7.0]))[1] == {"largest": 7.0}[word]),
    ("so step t has the rate {}.", lambda rate: value(rate, lr=A.excess(7)[-1], t=7, n=9) == A.warmed_up(9)[6]),
    ("with chapter {}'s r for beta2", tells("def excess(")),
    ("this one has {} times lr", lambda f: value(f, t=7, n=9, r=lambda t: A.excess(t)[-1]) == A.warmed_up(9)[6]),
    ("After the warm-up r(t) only {}, so", lambda verb: verb == "falls" and A.excess(99)[-1] < A.excess(50)[-1]),
    ("The steps {} until the warm-up", lambda verb: verb == "grow" and np.all(np.diff(A.warmed_up(500)) > 0)),
    ("the longest step is always its {}.", lambda place: np.argmax(A.warmed_up(500)) == {"last": 499}[place]),
    ("So a {} warm-up hides a missing", lambda size: A.warmed_up({"long": 2000, "short": 100}[size]).max() < 1.1),
    ("So the {} acts on the decay in both forms of AdamW, and {} acts", lambda both, one: both == "schedule" and [
        [left(f) != left(f, **{name: 0.5}) for f in forms_of_decay()[1:]] for name in ("eta", one)] == [
            [True, True], [True, False]]),
    ("So w goes {} by about {} in a step", lambda way, f: way == "down" and abs(
        1 - A.decayed(1, decay=0.1)[0] - value(f, lr=0.001, decay=0.1)) < 1e-5),
    ("With ten times {} it stops {} of that", lambda name, word: word == "short" and (
        0.1 < A.decayed(**{name: 0.01})[0] < 0.5)),
    ("act alike: w loses {} of itself", lambda f: np.isclose(1 - A.decayed(1)[1], value(f, lr=0.001, decay=0.001))),
    ("By itself, only {} acts.", lambda name: A.decayed(**{name: 0.01})[2] < 0.5),
    ("hardly changes for inputs along {}.", lambda v: np.linalg.norm(np.dot([[1, 0.99], [0.99, 1]], value(v))) < 0.1),
    ("of g, as our {} does; we", lambda name: len(A.OPTIMIZERS[name]([Tensor(0.0)], 0.1).memories[0]) == 1),
    ("half of the memory that {} takes", lambda name: len(A.OPTIMIZERS[name]([Tensor(0.0)], 0.1).memories[0]) == 2),
    ("so that a {} s {} quickly", lambda size, verb: verb == "grows" and A.one_round({"small": 1e-3}[size]) > 3e-3),
    ("not {} with the array y, but {} with the Tensor b", lambda f, other: f"lambda g: {f})" in source(Tensor.__mul__)
     and value(f, g=2, y=3) == value(other, g=2, b=3)),
    ("By hand it works: {}, the slope of {}, is", lambda slope, f: np.isclose(A.numerical_grad(lambda w: value(
        f, w=w), 1.3), value(slope, w=1.3))),
    ("as a program, and its slope {}.", lambda f: slopes(lambda w: 3 * w * w, 3.0) == [value(f, w=3.0)]),
    ("in between; chapter {} says", tells("over calls")),
    ("beside the list of chapter {}.", tells("def gradcheck(")),
    ("which we took from Polyak in chapter {}.", tells("the best from Polyak")),

    # Chapter 12
    ("`check` takes the {} of an exercise and an {}:", lambda *names: parameters(A.check) == names),
    ("An exercise is a {}, a {} and a {}.", lambda *names: A.Exercise._fields == names),
    ("`{}` becomes {}. In the table {} the", lambda f, name, table: getattr(A, table)[name].function.__name__ == f),
    ("\"\"\"{} unless the number or array", lambda error: error_of(A.match_number, 1.0, 2.0) == error),
    ("against the nudge, by chapter {}'s", tells("def gradcheck(")),
    ("Returns a {}. A {} with all names if there is none", lambda kind, error: error_of(A.check, "another", 1) == error
     and type(A.check("nudge.1", 0.5)).__name__ == kind),
    ("as `exp` in chapter {} does. A", tells("Tensor.exp =")),
    ("returns the sums {}, {}, {} and so on, of shape (n,). For {} that is {}. The",
     lambda a, b, c, x, sums: np.allclose([value(f, **dict(zip(("x0", "x1", "x2"), listed(x)))) for f in (a, b, c)],
                                          listed(sums))),
    ("for the seed 1, 1, 1 the slopes are {}. Graded", lambda found: np.allclose(slopes(
        A.cumulative_sum, POINTS, seed=np.ones(3)), listed(found))),
    ("For {} that is {}, and the slopes are {} and {}. At", lambda x, sizes, *found: np.allclose(
        [abs(listed(x)), *slopes(A.absolute, listed(x), seed=[1, 1])], [listed(sizes), list(map(float, found))])),
    ("any slope from {} to {} lies nowhere {} the", lambda low, high, side: side == "above" and all(
        np.all(float(slope) * POINTS <= abs(POINTS)) for slope in (low, high)) and float(high) - float(low) == 2),
    ("For {} and {} that is {}. The slopes are {} along the first and {} along", lambda a, b, c, *found: np.allclose(
        [np.maximum(listed(a), listed(b)), *slopes(A.maximum, listed(a), listed(b), seed=[1, 1])],
        [listed(c), *map(listed, found)])),
    ("a tie, we want {} along each", lambda half: slopes(A.maximum, 2.0, 2.0) == [value(half)] * 2),
    ("For 0, 0 it is log {} = 0.693. For {} it is {}, though", lambda two, x, large: np.allclose([A.logsumexp(Tensor(
        z)).data for z in ([0.0, 0.0], listed(x))], [np.log(n(two)), float(large)], atol=5e-4, rtol=0)),
    ("The slopes for {} are {} and {}. Graded", lambda x, *found: np.allclose(
        slopes(A.logsumexp, listed(x)), list(map(value, found)))),
    ("p[k] is {}, over the sum", lambda f: np.isclose(value(f, z=POINTS, k=2), np.exp(POINTS[2]))),
    ("A point costs {} of its own class, and the function returns the {} cost", lambda f, kind: np.isclose(
        getattr(np, kind)([value(f, p=softmax(POINTS)[k]) for k in (2, 0)]), cross([POINTS, POINTS], 2, 0))),
    ("with logits {} and the label {} it is log {}. The slopes along its logits are {} and {}.",
     lambda z, label, two, *found: np.isclose(cross([listed(z)], int(label)), np.log(n(two))) and np.allclose(slopes(
         lambda z: A.cross_entropy(z, np.array([int(label)])), [listed(z)])[0], list(map(value, found)))),
    ("with the logits {} and the labels {} and {} it is the mean of {} and {}, which is {}.",
     lambda z, own, other, *costs: [n(cost) for cost in costs] == [
         cross([listed(z)], int(own)), cross([listed(z)], int(other)), cross([listed(z)] * 2, int(own), int(other))]),
    ("K = 2, with the logits {} and {}, this", lambda *z: np.isclose(
        cross([[value(f, z=1.3) for f in z]], 1), A.bce_with_logits(Tensor(1.3), 1.0).data)),
    ("this is the loss of chapter {}. Graded", tells("def bce_with_logits(")),
    ("It is Adam of chapter {}, with", tells("class Adam(")),
    ("one more line: {} each step", lambda when: when == "before" and source(A.AdamW.step).index("p.data =") < source(
        A.AdamW.step).index("super().step()")),
    ("a w of 1 falls to {} = {}, and then by {} to {}. Graded", lambda f, once, step, end: value(f) == float(once)
     and np.allclose([float(once) - float(step), walk(A.AdamW, 2.0, lr=0.1, decay=0.5)[0]], float(end))),
    ("as chapter {} said, u <-", tells("u <- mu u + g")),
    ("m is {} and the direction {} = {}. A w of 1 falls to {}, where Momentum leaves it at {}. Graded",
     lambda m, f, direction, end, other: np.allclose([A.Average(0.9).add(1.0), value(f), walk(
         A.Nesterov, 1.0, lr=0.1, beta=0.9)[0], walk(A.Momentum, 1.0, lr=0.1, beta=0.9)[0]],
         list(map(float, (m, direction, end, other))))),
    ("there are {} = {} parameters. Graded", lambda f, total: value(f) == n(total) and f.split(" + ") == [str(
        a * b) for a, b in [(2, 64), (1, 64), (64, 64), (1, 64), (64, 1), (1, 1)]]),
    ("patience` steps old, that is, where it {} appeared at step {}.", lambda which, f: which == "first"
     and A.stopping_step([5, 3, 3, 6, 2], 2) == 3 and value(f, t=3, patience=2) == 1),
    ("A run that never stops returns its {} step", lambda which: A.stopping_step([3, 2, 1], 1) == {"last": 2}[which]),
    ("losses {} and a patience of {} the answer is {}: the lowest, {}, appeared at step {}.",
     lambda x, patience, end, lowest, step: A.stopping_step(listed(x), int(patience)) == int(end)
     and min(listed(x)[:int(end)]) == listed(x)[int(step)] == float(lowest)),
    ("slopes of an answer are between {} and {}.", lambda *ends: parameters(A.match_kink)[-2:] == ends),
    ("with those of chapter {}'s `logaddexp`", tells("np.logaddexp(")),
    ("log(sum(e^x)) is {} for every", lambda f: np.isclose(value(f, c=3, x=POINTS), np.log(sum(np.exp(POINTS))))),
    ("are small for the {}. Beside", lambda which: np.abs(A.SLOPES[{"first": 0, "second": 1}[which]]).max() <= 0.01),
    ("And chapter {}'s liar", tells("liar")),
    ("rule says {} where it should say {}: this", lambda lie, f: f"g * ({lie})" in PROSE.split("lying_tanh =")[1][:90]
     and np.isclose(slopes(Tensor.tanh, 0.4)[0], value(f, out=np.tanh(0.4)))),

    # The answers
    ("the {} entry in the last sum alone", lambda which: slopes(A.cumulative_sum, POINTS, seed=[1, 1, 1])[0][
        {"first": 0, "last": -1}[which]] == 1),
    ("by chapter {} its adjoint is", tells("adjoint")),
    ("end. The product {} is another", lambda f: np.allclose(value(f, B=np.tri(3), x=POINTS), np.cumsum(POINTS))),
    ("The *size* of x is {}. {} 0 the first term has the slope {}, {} 0 the second has {}, and",
     lambda f, above, one, below, two: (above, below) == ("Above", "below") and [[slopes(lambda x: value(
         term, x=x, relu=Tensor.relu), x)[0] for term in f.split(" + ")] for x in (0.7, -0.7)] == [
             [float(one), 0], [0, float(two)]]),
    ("*larger of two* is half of {}. At a tie |a - b| has the slope {}, and", lambda f, slope: value(f, a=2, b=5) == 10
     and slopes(lambda a, b: A.absolute(a - b), 2.0, 2.0) == [float(slope)] * 2),
    ("The sum of a and {} has the same value, but at a tie {} gets all", lambda f, who: slopes(lambda a, b: a + value(
        f, a=a, b=b, relu=Tensor.relu), 2.0, 2.0) == {"a": [1, 0], "b": [0, 1]}[who]),
    ("c is the {} entry of each row. No {} is {} 1", lambda which, f, side: (which, side) == ("largest", "above")
     and np.max(value(f, x=POINTS, c=max(POINTS))) == 1),
    ("So a Tensor with the rule {} is", lambda f: np.allclose(slopes(A.logsumexp, POINTS, seed=0.3), value(
        f, g=0.3, p=softmax(POINTS)))),
    ("*cross-entropy*, {} of the own class is that logarithm {} the", lambda f, word: word == "less" and np.isclose(
        value(f, p=softmax(POINTS)[2]), A.logsumexp(Tensor(POINTS)).data - POINTS[2])),
    ("Its slopes are p[k], less {} for the own class, over {}.", lambda one, N: np.allclose(
        slopes(lambda z: A.cross_entropy(z, np.array([2, 2])), [POINTS] * 2),
        (softmax(POINTS) - [0, 0, n(one)]) / value(N, N=2))),
    ("This is the p - y of chapter {} again", tells("p - y")),
    ("By chapter {} the sum u is", tells("u <- mu u + g")),
    ("u is {}. So {} is {}, which is our", lambda u, theirs, ours: np.isclose(value(theirs, g=2, beta=0.9, u=value(
        u, m=3, beta=0.9)), value(ours, g=2, m=3, beta=0.9)) and np.isclose(value(ours, g=2, m=3, beta=0.9), 2.9)),
    ("And the cube is {} summed up", lambda word: word == "not" and passes(lambda *x: A.wider_cover(*x).sum())
     and not passes(A.wider_cover)),
    ("a transpose uses {}, and not", lambda name: f"g.transpose({name})" in source(A.transpose_by_order))]


@pytest.mark.parametrize("template, judge", CLAIMS, ids=[template[:60] for template, judge in CLAIMS])
def test_what_a_sentence_claims_is_so(template, judge):
    verdict = judge(*told(template))
    assert verdict is None or verdict


def test_the_five_names_of_a_breakage_are_listed_as_they_stand_in_each_class():
    for breakage in BREAKAGES.values():
        assert [name for name in vars(type(breakage)) if name[0] != "_"] == [row[0] for row in displayed("question  ")]


def test_what_an_operation_costs_is_what_its_rules_compute():
    """A rule that computes reports another number than its cotangent, and each report may have to be added."""
    for word in "a * b", "a + b":
        edges = value(word, a=Tensor(2.0), b=Tensor(3.0)).edges
        assert cost_of(word) == [1, sum(rule(1.0) != 1 for _, _, rule in edges), len(edges)]


def test_the_three_ways_to_write_decay_are_those_that_run():
    in_g, times_lr, by_itself = forms_of_decay()
    assert np.allclose([left(times_lr, 100), left(by_itself, 100)], A.decayed()[1:], rtol=1e-12)
    [penalty] = told("slope of a penalty, {}, which")
    slope = A.numerical_grad(lambda w: value(penalty, decay=0.3, w=w), 0.7)
    assert np.isclose(slope, value(in_g, g=0, decay=0.3, w=0.7))
    [pytorch] = told("The {} is PyTorch's AdamW")
    [exercise] = told("of itself, w <- {} and then")
    assert left(forms_of_decay()[["first", "second", "third"].index(pytorch)]) == left(exercise)


def test_rounds_of_muon_are_those_of_near_one():
    U, D, V = np.linalg.svd(np.random.default_rng(7).standard_normal((3, 3)))
    names = {"U": U, "D": np.diag(D), "V": V.T, "m": U @ np.diag(D) @ V}

    def matrices(formula, **names):
        scaled = re.sub(r"(\d) (?=[m(])", r"\1 * ", formula.replace("(m m')^2", "(m m') (m m')"))
        return value(scaled, times="@", **names)

    [count, of_m], [of_s] = told("Then, {} times, it replaces m by {} What"), told("singular value s becomes {} The")
    m = names["m"] / np.linalg.norm(D)
    for turn in range(int(n(count))):
        m = matrices(of_m, m=m)
    assert np.allclose(m, A.near_one(names["m"])) and value(of_s, s=0.3) == pytest.approx(A.one_round(0.3))
    [svd, third, long, short] = told("With m = {}, the product {} is {}, and since V' V and U' U are 1, this is {}.")
    [fifth, last] = told("In the same way {} is {}.")
    for one, other in ("m", svd), (third, long), (third, short), (fifth, last):
        assert np.allclose(matrices(one, **names), matrices(other, **names))


def test_nesterov_s_momentum_walks_by_both_of_its_formulas():
    [average, step] = told("Written out: m <- {} as in Momentum w <- {} with")
    [sums, direction] = told("u <- {}, and takes as direction not u but {} (`torch")
    [rate] = told("PyTorch's walks at {}, with")
    slopes, m, u, ours, theirs = np.cos(np.arange(6)), 0.0, 0.0, [1.0], [1.0]
    for g in slopes:
        m, u = value(average, beta=0.9, m=m, g=g), value(sums, mu=0.9, u=u, g=g)
        ours.append(value(step, w=ours[-1], lr=0.1, beta=0.9, m=m, g=g))
        theirs.append(theirs[-1] - value(rate, beta=0.9, lr=0.1) * value(direction, mu=0.9, u=u, g=g))
    assert np.allclose(ours[1:], walk(A.Nesterov, *slopes, lr=0.1, beta=0.9)) and np.allclose(ours, theirs)
