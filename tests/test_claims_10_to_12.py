"""What chapters 10 to 12 and the answers claim in words and formulas, held against the machine."""
import inspect
import re
from functools import lru_cache

import numpy as np
import pytest

import anatomy as A
import reading
from anatomy import BREAKAGES, NUMBERS, PROGRAMS, SOLUTIONS, Tensor
from conftest import PARTS
from judges import gradients, raised
from reading import GOLDEN, flat, read

SOURCE = "".join(PARTS[9:])
PROSE, POINTS = flat(SOURCE), np.array([0.3, -0.7, 1.1])
# What comes back of f and x, say their documentations
RETURNED = {"HIPS autograd": ("function", "value"), "JAX": ("value", "function")}


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


def form_of(which):
    return forms_of_decay()[["first", "second", "third"].index(which)]


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


@lru_cache
def cases(name):
    """What the judge of this program hands to its solution."""
    seen, solution = [], SOLUTIONS[name]
    PROGRAMS[name].function(lambda *given, **named: seen.append((given, named)) or solution(*given, **named))
    return seen


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
        gradients(lambda x: value(outer, y=value(inner, x=x)), float(x)) == [value(slope)])),
    ("which is nodes {} the loss before those {} it.", lambda near, far: (near, far) == ("close to", "far from")
     and breadth_first() == [0, 1, 2, 3]),
    ("y is taken {} y * y has", lambda when: when == "before" and breadth_first()[1] < breadth_first()[2]),
    ("cover, the expression of chapter {}, in", tells("def cover(")),
    ("can stretch the {} side of += but not the {} one", lambda can, cannot: (can, cannot) == ("right", "left")
     and raised(np.zeros((2, 3)).__iadd__, np.ones(3)) is None
     and raised(np.zeros(3).__iadd__, np.ones((2, 3))) == "ValueError"),
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
    ("an average of {} slopes still moves it", lambda which: walk(A.Adam, *{
        "earlier": (1.0, 0.0), "later": (0.0, 1.0)}[which], lr=0.1)[1] < walk(A.Adam, 1.0, lr=0.1)[0]),
    ("are there, or not far {}.", lambda side: side == "below" and printed("pays at least {} a point") < 9.21),
    ("Adam as it is, but the averages are {} divided by", lambda word: word == "not" and walk(
        A.Adam, 2.0, lr=1.0, bias_correction=False)[0] == pytest.approx(1 - 0.2 / np.sqrt(0.004))),
    ("with {} units can bend {}: in the end", lambda size, verb: (size, verb) == ("fewer", "less")
     and printed("hidden units at the end: at least {} more") > 0 < printed("at the end: at least {} times") - 1),
    ("The {} the memory, the {} it matters", lambda size, more: more == "more" and A.excess(1, beta2={
        "longer": 0.9999, "shorter": 0.99}[size])[0] > A.excess(1)[0]),
    ("sums, one over {} and one over {}; this", lambda *sums: "over {}, and over {}".format(*sums) in chapter(2)),
    ("learned {} than it would have {} the", lambda amount, side: (amount, side) == ("less", "without")
     and printed("with averaged biases: at least {} fewer right than without") > 0),
    ("The slope along {} in a {} step at rate {}, over the {}.", lambda name, top, rate, low: (
        f"{name}.grad.item" in source(A.second_over_first) and f"lr={float(rate)}" in source(A.second_over_first)
        and "slopes[{second}] / slopes[{first}]".format(**{top: 1, low: 0}) in source(A.second_over_first))),
    ("The operator {} writes into the array", lambda sign: f"x.data {sign} 10" in source(A.EditedArray.measure)
     and found("editing")[0] != 6),
    ("has locked the array, by {}. PyTorch", lambda code: raised(
        exec, f"{code}\nx.data *= 10", {"x": Tensor([3.0])}) == "ValueError"),
    ("labels of {}, which is the {} of all", lambda half, kind: getattr(np, kind)(A.spiral()[1]) == value(half)),
    ("The loss is {} in the label", lambda word: word == "linear" and np.allclose(np.diff([A.patched_bce(Tensor(
        0.7), label).data for label in (0.0, 0.3, 0.6)], 2), 0)),
    ("a second, {} h. The error", lambda size: {"larger": 1, "smaller": -1}[size] * np.diff(found("single"))[0] < 0),
    ("a second, {} h. Both", lambda size: size == "smaller" and abs(found("kink")[2] - 1) < abs(found("kink")[0] - 1)),
    ("kink, where relu is {}: {} = 0.55", lambda word, f: word == "flat" and A.positive(-1e-5) == A.positive(-1.0)
     and np.isclose(value(f), found("kink")[0])),
    *[(template, lambda verb: verb[:6] == "refuse" and raised(lambda: walk(
        A.SGD, np.ones((2, 1)), lr=0.1)) == "ValueError") for template in (
            "Our optimizers {} a gradient of another", "step of our optimizers, which {} such")],
    ("way makes a {} array, and leaves the {} one", lambda *ages: ages == ("new", "old") and found("editing")[1] == 6),
    ("give x.data a {} array, as", lambda age: found("editing")[{"new": 1, "old": 0}[age]] == 6),
    ("rules of z remember is then the {} one", lambda age: found("editing")[1] == 2 * {"old": 3, "new": 30}[age]),

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
     == gradients(lambda a, b: a * b, 2.0, 3.0)),
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
    ("as a program, and its slope {}.", lambda f: gradients(lambda w: 3 * w * w, 3.0) == [value(f, w=3.0)]),
    ("in between; chapter {} says", tells("over calls")),
    ("beside the list of chapter {}.", tells("def gradcheck(")),
    ("which we took from Polyak in chapter {}.", tells("the best from Polyak")),
    ("PyTorch has {} rule for a node, which reports to {} of", lambda one, share: share == "all" and n(one) == 1
     and cell("rule per operand", "PyTorch").endswith("node") and cell("rule per operand", "ours") != "rule per node"),
    ("are pairs of a {} and a {}, in a {} order", lambda *words: set(words[:2]) == set(RETURNED["JAX"])
     and (words[2] == "different") == (len(set(RETURNED.values())) == 2) and all(cell(
         "y.backward(seed)", name).endswith(f"[{RETURNED[name].index('function')}]") for name in RETURNED)),
    ("We and {} sum them in the engine", lambda name: "unbroadcast(report" in source(A.backward) and cell(
        "unbroadcast", name) not in (cell("unbroadcast", "HIPS autograd"), cell("unbroadcast", "JAX"))),
    ("numbers and {} a past; ours is `{}`, which {}.", lambda side, code, verb: (side, verb) == ("without", "copies")
     and eval(code, {"Tensor": Tensor, "x": (x := Tensor([2.0]) * 3)}).edges == []
     and not np.shares_memory(x.data, eval(code, {"Tensor": Tensor, "x": x}).data)),
    ("who look for steps that are too {}. A {} one does", lambda size, warm: size == "long" and A.warmed_up(
        {"short": 100, "long": 2000}[warm]).max() > 3),
    ("and is still 6.57 times too {}. Both are {}, that", lambda size, both: A.excess(12)[-1] > 1 and size == "long"
     and A.warmed_up(2000)[11] < {"short": 0.1, "long": 0}[both]),
    ("= 0.006 lr {} correction", lambda side: np.isclose(A.warmed_up(2000)[11], {
        "with": A.excess(12)[11], "without": 1}[side] * 12 / 2000)),
    ("and {} exceeds 1.1, so no step looks too {} even", lambda often, size: (often, size) == ("never", "long")
     and A.excess(5000, beta2=0.95).max() < 1.1),
    ("The {} adds the slope of a penalty", lambda which: "g" in form_of(which).split()),
    ("acts on it in {}'s form only", lambda name: left(form_of(told(f"The {{}} is {name}'s AdamW")[0]), lr=0.5) != left(
        form_of(told(f"The {{}} is {name}'s AdamW")[0]))),
    ("w = 1 with slope 0: {}, {}, {}.\"\"\"", lambda *ways: list(ways) == [row[0] for row in displayed("L2 in g")]
     and A.decayed(lr=0.01)[0] < 0.5 > A.decayed(decay=0.01)[2]),
    ("With L2 in g, each step was about {}, whatever the {} is", lambda f, what: abs(value(f, lr=0.001) - 1 + A.decayed(
        1, **{what: 0.1})[0]) < 1e-6),
    *[(f"{way}, w has shrunk by {{}} in each", lambda f, place=place: np.isclose(1 - A.decayed(1, lr=0.2, decay=0.3)[
        place], value(f, lr=0.2, decay=0.3))) for place, way in ((1, "Times lr"), (2, "By itself"))],
    ("a decay that is ten times as {} changes {}.", lambda size, what: what == "nothing" and abs(A.decayed(
        decay={"strong": 0.01}[size])[0] - A.decayed()[0]) < 1e-4),
    ("as w comes {}, so does its slope, and v remembers the {} slopes for {} than {} does", lambda way, size, time, m: (
        way == "down" and A.decayed(50)[0] < A.decayed(1)[0] and size == "larger" and time == "longer" and m == "m"
        and A.Adam([Tensor(0.0)], 1.0).memories[0][1].beta > A.Adam([Tensor(0.0)], 1.0).memories[0][0].beta)),
    ("Times lr, {} knobs act, and they act {}:", lambda *words: words == ("both", "alike") and np.isclose(
        A.decayed(lr=0.01)[1], A.decayed(decay=0.01)[1], rtol=1e-12) and A.decayed(lr=0.01)[1] < A.decayed()[1]),
    ("tries ten times the {} with {} form tries ten times the {} as", lambda one, form, other: np.isclose(*[A.decayed(
        **{knob: 0.01})[{"PyTorch's": 1}[form]] for knob in ({"rate": "lr"}[one], other)], rtol=1e-12)),
    ("So afterwards none of them is {} 1.", lambda side: side == "above" and np.linalg.svd(
        np.tri(3) / np.linalg.norm(np.tri(3)))[1].max() <= 1),
    ("What is {} grows too, but has not", lambda size: A.one_round(A.one_round(A.one_round(A.one_round(A.one_round(
        {"smaller": 0.0005, "larger": 0.5}[size]))))) < 0.68),
    ("for the {} that comes out of a transposed {}.", lambda one, other: one == "VJP" and cell(
        "rule per operand", "JAX") == f"{other}, transposed"),
    ("adamw.py`). The {} is AdamW as", lambda which: left(form_of(which), lr=0.5) == left(form_of(which))),
    ("lr t/n. {} correction the step is r(t) times as {} as", lambda side, size: size == "long" and np.isclose(walk(
        A.Adam, 1.0, lr=1.0, bias_correction={"Without": False, "With": True}[side])[0], 1 - A.excess(1)[0])),
    ("A v of {} leaves only {} below the line", lambda v, name: float(v) == 0 and np.isclose(
        1 - walk(A.Adam, 1e-12, lr=1.0)[0], 1e-12 / getattr(A.Adam([Tensor(0.0)], 1.0), name), rtol=1e-3)),

    # Chapter 12
    ("`check` takes the {} of an exercise and an {}:", lambda *names: parameters(A.check) == names),
    ("An exercise is a {}, a {} and a {}.", lambda *names: A.Exercise._fields == names),
    ("`{}` becomes {}. In the table {} the", lambda f, name, table: getattr(A, table)[name].function.__name__ == f),
    ("\"\"\"{} unless the number or array", lambda error: raised(A.match_number, 1.0, 2.0) == error),
    ("against the nudge, by chapter {}'s", tells("def gradcheck(")),
    ("Returns a {}. A {} with all names if there is none", lambda kind, error: raised(A.check, "another", 1) == error
     and type(A.check("nudge.1", 0.5)).__name__ == kind),
    ("as `exp` in chapter {} does. A", tells("Tensor.exp =")),
    ("returns the sums {}, {}, {} and so on, of shape (n,). For {} that is {}. The",
     lambda a, b, c, x, sums: np.allclose([value(f, **dict(zip(("x0", "x1", "x2"), listed(x)))) for f in (a, b, c)],
                                          listed(sums))),
    ("for the seed 1, 1, 1 the slopes are {}. Graded", lambda found: np.allclose(gradients(
        A.cumulative_sum, POINTS, seed=np.ones(3)), listed(found))),
    ("For {} that is {}, and the slopes are {} and {}. At", lambda x, sizes, *found: np.allclose(
        [abs(listed(x)), *gradients(A.absolute, listed(x), seed=[1, 1])], [listed(sizes), list(map(float, found))])),
    ("any slope from {} to {} lies nowhere {} the", lambda low, high, side: side == "above" and all(
        np.all(float(slope) * POINTS <= abs(POINTS)) for slope in (low, high)) and float(high) - float(low) == 2),
    ("For {} and {} that is {}. The slopes are {} along the first and {} along", lambda a, b, c, *found: np.allclose(
        [np.maximum(listed(a), listed(b)), *gradients(A.maximum, listed(a), listed(b), seed=[1, 1])],
        [listed(c), *map(listed, found)])),
    ("a tie, we want {} along each", lambda half: gradients(A.maximum, 2.0, 2.0) == [value(half)] * 2),
    ("For 0, 0 it is log {} = 0.693. For {} it is {}, though", lambda two, x, large: np.allclose([A.logsumexp(Tensor(
        z)).data for z in ([0.0, 0.0], listed(x))], [np.log(n(two)), float(large)], atol=5e-4, rtol=0)),
    ("The slopes for {} are {} and {}. Graded", lambda x, *found: np.allclose(
        gradients(A.logsumexp, listed(x)), list(map(value, found)))),
    ("p[k] is {}, over the sum", lambda f: np.isclose(value(f, z=POINTS, k=2), np.exp(POINTS[2]))),
    ("A point costs {} of its own class, and the function returns the {} cost", lambda f, kind: np.isclose(
        getattr(np, kind)([value(f, p=softmax(POINTS)[k]) for k in (2, 0)]), cross([POINTS, POINTS], 2, 0))),
    ("with logits {} and the label {} it is log {}. The slopes along its logits are {} and {}.",
     lambda z, label, two, *found: np.isclose(cross([listed(z)], int(label)), np.log(n(two))) and np.allclose(gradients(
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
     and np.isclose(gradients(Tensor.tanh, 0.4)[0], value(f, out=np.tanh(0.4)))),
    ("is used in {} sum, the second in all but {}, and", lambda share, but: share == "every" and gradients(
        A.cumulative_sum, POINTS, seed=np.ones(3))[0].tolist()[:2] == [3, 3 - n(but)]),
    ("a and b returns {} entry by entry, and stretches {} to", lambda f, which: which == "both" and np.allclose(value(
        f, a=POINTS, b=-POINTS), A.maximum(Tensor(POINTS), Tensor(-POINTS)).data) and any(
            a.shape != np.broadcast_shapes(a.shape, b.shape) != b.shape for [a, b], _ in cases("rules.4"))),
    ("both slopes must add up to {}, and halves prefer {} operand", lambda total, which: which == "neither" and (
        sum(gradients(A.maximum, 2.0, 2.0)) == float(total) and np.ptp(gradients(A.maximum, 2.0, 2.0)) == 0)),
    ("(..., n), returns {} along the {} axis, of", lambda f, which: np.allclose(np.log(np.exp([POINTS] * 2).sum(
        {"last": -1}[which])), value(f.replace("...", "e^x1").replace("(n-1)", "2"), x0=0.3, x1=-0.7, x2=1.1))
     and A.logsumexp(Tensor([POINTS] * 2)).shape == (2,)),
    *[(f"is made as `{kind}(params, {{}})`", lambda given, k=k: eval(f"dict({given})") in [
        named for _, named in cases(f"optimizers.{k}")]) for kind, k in (("AdamW", 3), ("Nesterov", 4))],
    ("is the m that would come {} if the {} g came again", lambda *words: words == ("next", "same") and np.isclose(
        1 - 0.1 * (0.9 * A.Average(0.9).add(1.0) + 0.1), walk(A.Nesterov, 1.0, lr=0.1, beta=0.9)[0])),
    ("Steps are counted from {}, so", lambda start: A.stopping_step([3, 4], 1) == int(start) + 1),
    ("stops at the {} step t where the {} loss so far", lambda which, kind: (
        [3, 6][{"first": 0, "last": 1}[which]] == A.stopping_step([5, 3, 6, 6, 2, 7, 7], 2) == {
            "lowest": np.argmin, "highest": np.argmax}[kind]([5, 3, 6, 6]) + 2)),
    ("An equal loss is {} new lowest one, and one that is {} by", lambda no, side: no == "no" and A.stopping_step(
        [1, 1, 0.5], 1) == 1 and A.stopping_step([1 + {"lower": -1e-12, "higher": 1e-12}[side] * t for t in range(3)],
                                                 1) == 2),
    ("So a patience of {} stops at the {} step without a", lambda patience, which: A.stopping_step(
        [3, 2, 4, 1, 5], int(patience)) == [2, 4][{"first": 0, "last": 1}[which]]),
    ("an operand that is {} used counts as a {},", lambda no, what: no == "not" and what == "failure" and (
        not A.gradcheck(lambda a, row, column: a * row, A.LEAVES).ok)),
    ("slips through a cover {} sigmoid. Its slope says {} where at {} {} is right", lambda side, said, bound, right: (
        (side, bound) == ("without", "most") and gradients(Tensor.sigmoid, 0.0)[0] == value(right)
        and float(said) - value(right) == value(told("relative error of at least {}. But our")[0]))),
    ("at 2 too {}, if a", lambda size: {"large": 1, "small": -1}[size] * NUMBERS["nudge.1"].function() > 0),
    ("b3 of shapes {} and makes", lambda shapes: list(eval(shapes.replace(" and", ","), {"H": 3, "K": 2})) == [
        array.shape for array in cases("spiral.3")[0][0]]),
    ("any such slope is {} there; but {} is none", lambda verb, bad: verb == "taken" and [A.complaint(
        "rules.3", lambda x: Tensor(abs(x.data), (x, lambda g: g * np.where(x.data, np.sign(x.data), slope)))) == ""
        for slope in (0.3, float(bad))] == [True, False]),
    *[(template, lambda age: walk(A.Nesterov, 1.0, lr=0.1, beta=0.9)[0] == pytest.approx(1 - 0.1 * (0.9 * {
        "new": 0.1, "old": 0}[age] + 0.1))) for template in ("with the {} m So the", "direction needs the {} m, and")],
    ("every w {} a part of itself", lambda verb: verb == "loses" and walk(A.AdamW, 0.0, lr=0.1, decay=0.5)[0] < 1),

    # The answers
    ("the {} entry in the last sum alone", lambda which: gradients(A.cumulative_sum, POINTS, seed=[1, 1, 1])[0][
        {"first": 0, "last": -1}[which]] == 1),
    ("by chapter {} its adjoint is", tells("adjoint")),
    ("end. The product {} is another", lambda f: np.allclose(value(f, B=np.tri(3), x=POINTS), np.cumsum(POINTS))),
    ("The *size* of x is {}. {} 0 the first term has the slope {}, {} 0 the second has {}, and",
     lambda f, above, one, below, two: (above, below) == ("Above", "below") and [[gradients(lambda x: value(
         term, x=x, relu=Tensor.relu), x)[0] for term in f.split(" + ")] for x in (0.7, -0.7)] == [
             [float(one), 0], [0, float(two)]]),
    ("*larger of two* is half of {}. At a tie |a - b| has the slope {}, and", lambda f, slope: value(f, a=2, b=5) == 10
     and gradients(lambda a, b: A.absolute(a - b), 2.0, 2.0) == [float(slope)] * 2),
    ("The sum of a and {} has the same value, but at a tie {} gets all",
     lambda f, who: gradients(lambda a, b: a + value(
        f, a=a, b=b, relu=Tensor.relu), 2.0, 2.0) == {"a": [1, 0], "b": [0, 1]}[who]),
    ("c is the {} entry of each row. No {} is {} 1", lambda which, f, side: (which, side) == ("largest", "above")
     and np.max(value(f, x=POINTS, c=max(POINTS))) == 1),
    ("So a Tensor with the rule {} is", lambda f: np.allclose(gradients(A.logsumexp, POINTS, seed=0.3), value(
        f, g=0.3, p=softmax(POINTS)))),
    ("*cross-entropy*, {} of the own class is that logarithm {} the", lambda f, word: word == "less" and np.isclose(
        value(f, p=softmax(POINTS)[2]), A.logsumexp(Tensor(POINTS)).data - POINTS[2])),
    ("Its slopes are p[k], less {} for the own class, over {}.", lambda one, N: np.allclose(
        gradients(lambda z: A.cross_entropy(z, np.array([2, 2])), [POINTS] * 2),
        (softmax(POINTS) - [0, 0, n(one)]) / value(N, N=2))),
    ("This is the p - y of chapter {} again", tells("p - y")),
    ("By chapter {} the sum u is", tells("u <- mu u + g")),
    ("u is {}. So {} is {}, which is our", lambda u, theirs, ours: np.isclose(value(theirs, g=2, beta=0.9, u=value(
        u, m=3, beta=0.9)), value(ours, g=2, m=3, beta=0.9)) and np.isclose(value(ours, g=2, m=3, beta=0.9), 2.9)),
    ("And the cube is {} summed up", lambda word: word == "not" and passes(lambda *x: A.wider_cover(*x).sum())
     and not passes(A.wider_cover)),
    ("a transpose uses {}, and not", lambda name: f"g.transpose({name})" in source(A.transpose_by_order)),
    ("uses x0 in {} sums", lambda share: share == "all" and np.all(A.cumulative_sum(Tensor([1.0, 0, 0])).data == 1)),
    ("as well, from the {} end", lambda end: gradients(A.cumulative_sum, POINTS, seed=[1.0, 2, 4])[0].tolist() == {
        "other": [7, 6, 4], "same": [1, 3, 7]}[end]),
    ("and at {} relu's slope is {} in both", lambda x, slope: gradients(Tensor.relu, float(x)) == [float(slope)]),
    ("a gets {} of g and b {}.", lambda *words: [{"all": 1, "nothing": 0}[word] for word in words] == gradients(
        lambda a, b: a + (b - a).relu(), 2.0, 2.0)),
    ("of the average that is {} kept: the {} m, and the {} g once", lambda *words: words == ("not", "new", "same") and (
        A.Nesterov([Tensor(0.0)], 1.0).direction(1.0, m := A.Average(0.9)), m.value) == pytest.approx((0.19, 0.1))),
    ("is its own way back, so for a matrix this is {}. A rotation of three axes is {}.", lambda *words: [
        {"right": True, "not": False}[word] for word in words] == [
            np.array_equal(np.argsort(order), order) for order in ([1, 0], [2, 0, 1])]),
    ("the mean is a {} of the sum", lambda part: np.isclose(
        1 - {"fifth": 1 / 5}[part], NUMBERS["unbroadcast.2"].function())),
    ("and the {} of the two is {}\"", lambda which, f: which == "larger" and np.isclose(
        1.5 / value(f, a=1.0), NUMBERS["gradcheck.1"].function())),
    ("and so is the {} of v\"", lambda kind: {"root": np.sqrt}[kind](A.Average(0.99).add(9.0)) == pytest.approx(0.3)),
    ("0.99^t falls {} 1/2 with", lambda side: side == "below" and 0.99 ** NUMBERS["optimizers.2"].function() < 0.5),
    ("\"the first step is {}\"", lambda f: np.isclose(value(f, lr=NUMBERS["race.1"].function(), g=3.0), 0.1)),
    ("again, but with the {} m: that is the {} m, and so {}.", lambda old, new, name: (old, new) == ("old", "new")
     and np.isclose(1 - 0.1 * (0.9 * 0.0 + 0.1), walk(getattr(A, name), 1.0, lr=0.1)[0]))]


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


def test_what_is_graded_of_a_fault_is_so():
    (_, home, place, function), wider = SOLUTIONS["trial.3"]
    grades = [cells for cells in displayed("with the fault") if len(cells) == 2]
    assert len(grades) == n(told("as in chapter 5. {} things are graded")[0])
    for side, grade in grades:
        judged, verb = re.match(r"gradcheck\((\w+), LEAVES\) (?:still )?(passes|fails)", grade).groups()
        with A.replaced(home, place, function if side == "with the fault" else lambda ours, *given: ours(*given)):
            assert A.gradcheck({"cover": A.cover, "your_cover": wider}[judged], A.LEAVES).ok == (verb == "passes")
