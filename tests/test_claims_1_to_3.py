"""What the preface and chapters 1 to 3 claim in words, formulas and displayed lines."""
import inspect
import re
from functools import partial

import numpy as np
import pytest

import anatomy as A
import reading
from anatomy import Tensor
from conftest import PARTS, PREFACE, ROOT, SOURCE
from judges import gradients, raised
from reading import WORDS, flat, value

near = np.allclose
told = partial(reading.told, text=flat("".join([PREFACE, *PARTS[:3]])))   # its own chapters
matrices = partial(value, times="@")
RNG = np.random.default_rng(1)
PLACE = {"first": 0, "second": 1, "last": -1}
WAYS = {"sum": np.sum, "add": np.sum, "mean": np.mean, "product": np.prod, "multiply": np.prod}
ERRORS = {way: np.array(found) for way, found in A.nudge_errors(10.0 ** -np.arange(1, 17)).items()}
GREW = ERRORS["central"][12] / ERRORS["central"][8]
NUMBERS = {"a": 2.0, "b": 3.0, "g": 5.0}
J, G = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0], [7.0]])
LINES = {"row": J, "rows": J, "column": J.T, "columns": J.T}
ROWS = np.array([[1.0, 2, 3], [4, 5, 6]])
COPIES = np.tile(np.eye(3), (2, 1))         # B, for a row of three that becomes two
MAP = {"B": RNG.normal(size=(6, 3)), "J": RNG.normal(size=(6, 3)), "g": RNG.normal(size=6), "v": RNG.normal(size=3)}
TRACE = (ROOT / "docs/generated/trace.md").read_text("utf-8").splitlines()
PLAIN = type("Plain", (), {"__add__": lambda a, b: 7, "__radd__": lambda a, b: 7})()
SIZES = {"input": MAP["v"].size, "result": MAP["g"].size}
MODES = {"forward": "J v", "reverse": "J' g"}
GAPS = {"sum": A.adjoint_gaps(), "mean": A.adjoint_gaps(A.averaged_copies)}


def count(word):
    return int(word) if word.isdigit() else WORDS[word.lower()]


def inner(written, **names):
    """<a, b> of the prose."""
    left, right = re.fullmatch(r"<(.+), (.+)>", written).groups()
    return np.sum(matrices(left, **names) * matrices(right, **names))


def block(first, last):
    """The displayed lines from this beginning to that one, without their signs of comments."""
    lines = [line.removeprefix("#").strip() for line in SOURCE.splitlines()]
    [start] = [i for i, line in enumerate(lines) if line.startswith(first)]
    return lines[start:1 + next(i for i in range(start, len(lines)) if lines[i].startswith(last))]


MOVED = {line[0]: float(line.split("= ")[-1]) for line in block("y = a * b    moves", "L            moves")}


def asked(x, h=0.1):
    """What the nudge calls f with, one call after the other."""
    points = []
    A.numerical_grad(lambda x: points.append(x.copy()) or 0.0, x, h)
    return np.array(points)


def passes(f, times):
    """The grad of x after so many calls of backward on one graph, and what y in between has."""
    x = Tensor(3.0)
    y = value(f, x=x)
    for call in range(times):
        y.backward()
    return x.grad, y.grad


def chapter(text):
    """A judge: is that the number of the only chapter with this text?"""
    return lambda number: [count(number)] == [n for n, part in enumerate(PARTS, 1) if text in part]


def before(function, one, other):
    """In which order do these lines of a function stand?"""
    places = [inspect.getsource(function).index(line) for line in (one, other)]
    return "before" if places[0] < places[1] else "after"


def slope_of(written, along, **numbers):
    """The slope of a formula along one of its names, by nudges."""
    return A.numerical_grad(lambda x: value(written, **numbers | {along: x}), numbers[along])


def series(written, **names):
    """A formula in f(x) = e^2x and its derivatives, where a number may stand right before a letter, as in 2h."""
    derivatives = {f"f{n}": lambda x, n=n: 2 ** n * np.exp(2 * x) for n in range(4)}
    written = re.sub(r"f('*)\(", lambda primes: f"f{len(primes[1])}(", written)
    return value(re.sub(r"(?<![\w.])(\d+)(?=[a-zA-Z])", r"\1 ", written), **derivatives | {"x": 0.3} | names)


def smaller_terms(power, subtrahend, line, divisor, found, error):
    """Is what the result and its error leave of the quotient of a higher power than the error?"""
    lines = {"first": "f(x + h)", "second": "f(x - h)"}
    left = [(series(lines[line], h=h) - series(lines.get(subtrahend, subtrahend), h=h)) / series(divisor, h=h)
            - series(found, h=h) - series(error, h=h) for h in (1e-2, 1e-3)]
    return 10 ** (power + 0.7) < left[0] / left[1] < 10 ** (power + 2.3)


def looks(way, start, end):
    """Is this nudge the one that looks from this point to that one?"""
    x = np.linspace(0, 1, 101)
    points = {"x": x, "the point above it": x + 0.1, "the point below x": x - 0.1}
    slope = (A.bent(points[end]) - A.bent(points[start])) / (points[end] - points[start])
    return near(np.max(abs(slope / A.bent_slope(x) - 1)), ERRORS[way][0])


def shrinks(way, law):
    """As the error does where h falls from 0.01 to 0.001?"""
    return near(value(law, h=1e-2) / value(law, h=1e-3), ERRORS[way][1] / ERRORS[way][2], rtol=0.1)


def grows(law):
    """As cancellation does where h falls from 1e-9 to 1e-13, within the bounds that the chapter asserts?"""
    return 0.2 < value(law, h=1e-13) / value(law, h=1e-9) / GREW < 5


def program(**made):
    """Tensors by name, each a leaf or made by a formula from those before it."""
    nodes = {}
    for name, what in made.items():
        nodes[name] = value(what, **nodes) if isinstance(what, str) else Tensor(what)
    return nodes


FIRST = program(a=2.0, b=3.0, c="a + b", d="a * b", L="c * d")
SECOND = program(x=3.0, y="x * x", s="y * y", L="y + s")


def data(nodes):
    return {name: float(node.data) for name, node in nodes.items()}


def operands(nodes, name):
    return [next(other for other in nodes if nodes[other] is operand) for operand, *_ in nodes[name].edges]


def steps_of(nodes, policy=max):
    """For each step: what is taken, its g, its reports with the new sums; the newest is taken, or the oldest."""
    ledger, steps = {"L": 1.0}, []
    while waiting := [name for name in ledger if nodes[name].edges]:
        taken = policy(waiting, key=lambda name: nodes[name].born)
        g = ledger.pop(taken)
        steps.append((taken, g, []))
        for name, (_, _, rule) in zip(operands(nodes, taken), nodes[taken].edges):
            ledger[name] = ledger.get(name, 0.0) + rule(g)
            steps[-1][2].append((name, rule(g), ledger[name]))
    return steps


def is_newest(word):
    """Is this the one to take, for each number of the second program to be taken once?"""
    return len(steps_of(SECOND, {"newest": max, "oldest": min}[word])) == 3


def path(by):
    """The slopes on the way from a to L by this number."""
    return [FIRST[end].edges[operands(FIRST, end).index(start)][2](1.0) for start, end in (f"a{by}", f"{by}L")]


def moves_with(seed, number="sum(seed * y)"):
    """How this number moves with x, where y is J x."""
    return A.numerical_grad(lambda x: value(number, seed=np.array(seed), y=J @ x), np.array([10.0, 20.0]))


def seeds_pick(seed, of, which, line, other_seed, other, other_line, both):
    assert value(seed) == [of == "y0", of == "y1"] and near(moves_with(value(both)), sum(J))
    return near(moves_with(value(seed)), LINES[line][PLACE[which]]) \
        and near(moves_with(value(other_seed)), LINES[other_line][PLACE[other]])


def copied_and_summed(forward, backward):
    [g] = gradients(lambda b: b + np.zeros((2, 3)), ROWS[0], seed=ROWS)
    ways = {"copied": COPIES @ ROWS[0], "summed": ROWS.sum(axis=0)}
    return np.array_equal(ways[forward].ravel(), [*ROWS[0], *ROWS[0]]) and np.array_equal(ways[backward], g)


def nudged_entry(entry, how_many, which, line, one, other, total):
    moved = np.zeros((2, 3)) + np.eye(3)[PLACE[entry]]
    assert moved.sum() == count(how_many) and {"column": moved, "row": moved.T}[line][:, PLACE[which]].all()
    return near([value(one, h=1.0), value(other, h=1.0)], ROWS[moved == 1]) and near(value(total), np.sum(ROWS * moved))


def moved_result(product, sum_, other, term):
    g, B, v = MAP["g"], MAP["B"], MAP["v"]
    double = sum(value(term, **MAP, i=i, j=j) for i in range(6) for j in range(3))
    return near(matrices(product, **MAP), B @ v) and near([inner(sum_, **MAP), inner(other, **MAP), double], g @ B @ v)


# Each fragment, and what holds the words in its holes against the machine.
CLAIMS = [
    ("spirals with {} optimizers", lambda kinds: count(kinds) == len(A.OPTIMIZERS)),
    ("matrix {} = {};", lambda *sides: near(*[matrices(side, X=ROWS, W=ROWS.T) for side in sides])),
    ("<a, b> the sum of {} <", lambda f: np.sum(value(f, a=np.array([1, 2]), b=np.array([3, 4]))) == 11),
    # chapter 1
    ("Take f(x) = {} at x = 2, where calculus says that the slope is {} =", lambda f, slope: all(
        near(A.cube(x), value(f, x=x)) and near(value(slope, x=x), slope_of(f, "x", x=x)) for x in (2.0, 0.7))),
    ("Slope is {} over {},", lambda *words: near(value(" / ".join(words), rise=A.cube(2.1) - 8, run=0.1), 12.61)),
    ("*forward* nudge looks from {} to {}. A", partial(looks, "forward")),
    ("*central* nudge looks from {} to {}. forward", partial(looks, "central")),
    ("forward nudge subtracts {} from the {} line and divides by {}. It finds {}, and with it an error of {} and",
     partial(smaller_terms, 1)),
    ("central nudge subtracts the {} line from the {} and divides by {}. Now", lambda *words: smaller_terms(
        2, *words, *told("What is left is {}, and an error of {} and"))),
    ("Now {} drops out, and so does the term with {}:", lambda constant, power: [constant, power] == [
        term for term in (constant, power) if near(*[series(term, h=h) for h in (0.1, -0.1)])] and power != "h^4"),
    ("third derivative is {}, so the error is {},", lambda third, error: near(
        A.numerical_grad(A.cube, 2.0, 0.2) - 12, [value(error, h=0.2), float(third) / 6 * 0.2 ** 2])),
    ("if x is so {} that x + h", lambda size: {"large": 1e20, "small": 0.1}[size] + 0.1 == 1e20),
    ("shape. A {} unless {}. \"\"\"", lambda error, bound: all(
        (raised(A.numerical_grad, A.cube, 2.0, h) == error) == (not value(bound, h=h)) for h in (0.1, 0.0, -1.0))),
    ("like {} for a forward nudge and like {} for a central", lambda forward, central: shrinks("forward", forward)
     and shrinks("central", central)),
    ("difference, which is {} by h. So this error {} as h {}, like {}. The", lambda way, one, other, law: grows(law)
     and (way == "divided") == near(value(law, h=0.1), 10) and (one, other) == ("grows", "shrinks")),
    ("that is where {} = {}, at 1e-8. For a central one it is where {} = {}, at", lambda a, b, c, d: near(
        value(a, h=1e-8), value(b, h=1e-8), atol=0) and near(value(c, h=4.64e-6), value(d, h=4.64e-6), 0.01, 0)),
    ("on the curve {}, at", lambda curve: near(value(curve, x=ROWS), A.bent(ROWS))),
    ("the square of {} is {}, and its cube {}. The", lambda step, square, cube: near(
        [value(square, h=0.1, i=1j), value(cube, h=0.1, i=1j)], [value(step, h=0.1, i=1j) ** n for n in (2, 3)])),
    ("The {} part is {}, but", lambda part, f: near(getattr(np.exp(0.6 + 2e-4j), part[:4]), series(f, h=1e-4), 0.01)),
    ("For a {} nudge 1e-7 and 1e-8", lambda way: np.argmin(ERRORS[way]) in (6, 7)),
    ("cancellation grows some {} times", lambda times: 0.1 < value(times) / GREW < 10),
    ("falls from the {} to its best h, and the nudges that subtract climb again on the {}.", lambda *sides: [
        {"right": 0, "left": -1}[side] for side in sides] == [np.argmax(ERRORS["complex"]), -1]),
    ("meet. A {} nudge with h = 1e-5 is right to nine", lambda way: ERRORS[way][4] < 1e-9),
    ("ask whether a number is {} 0", lambda side: gradients(Tensor.relu, {"above": 0.5, "below": -0.5}[side])[0] == 1),
    ("Chapter {} gets around", chapter("\ndef complex_slopes(")),
    ("The network of chapter {} has", chapter("\ndef weights(")),
    ("has {} layers of weights and biases, {} =", lambda layers, sizes: len(A.weights()) == 2 * count(layers)
     and [value(size) for size in sizes.split(" + ")] == [array.size for array in A.weights()]),
    ('"bending,\\nlike {}")', partial(shrinks, "central")),
    ('"cancellation,\\nlike {}", va', grows),
    # chapter 2
    ("slope of L along {} is {} = 15, which is {}. For", lambda along, *fs: near(
        [value(f, **NUMBERS) for f in fs], 5 * slope_of("a * b", along, **NUMBERS))),
    ("For the same reason the slope along {} is {} =", lambda along, f: near(
        value(f, **NUMBERS), 5 * slope_of("a * b", along, **NUMBERS))),
    ("along a path, slopes {}.", lambda way: near([WAYS[way](path(name)) for name in "cd"], [6, 15])),
    ("Over several paths, slopes {}.",
     lambda way: WAYS[way]([6, 15]) == gradients(lambda a: (a + 3) * (a * 3), 2.0)[0]),
    ("The moves add up to {} (and {},", lambda both, rest: near(
        value(both, dx=1e-3) + value(rest, dx=1e-3), 3.001 ** 2 - 9, rtol=1e-9)),
    ("The {} and the {} in these rules are the values of {} and {} at", lambda one, two, *names: [
        float(one), float(two)] == [rule(1.0) for *_, rule in FIRST["d"].edges] == [NUMBERS[name] for name in names]),
    ("a trap that chapter {} shows", chapter("a new array in place of the write")),
    ("operand is kept for chapter {}.", chapter("\ndef unbroadcast(")),
    ("below, {} and {} are the values of the two operands {} and {}.", lambda x, y, a, b:
     f"{x}, {y} = {a}.data, value({b})" in inspect.getsource(Tensor.__mul__)),
    ("and keeps hold of the {} that", lambda keeps: FIRST["d"].edges[0][2].__code__.co_freevars == (keeps,)),
    ("Python calls `{}` for {} and `{}` for {}. For", lambda one, f, two, g: all(
        getattr(3.0, name)(5.0) == value(written, a=3.0, b=5.0) for name, written in ((one, f), (two, g)))),
    ("it calls `{}` of a", lambda name: 2 + type("Own", (Tensor,), {name: lambda a, b: 7})(1.0) == 7),
    ("A {} for what is not real numbers, a {} for lists", lambda *errors: errors == (
        raised(Tensor, 1j), raised(Tensor, [[1], [1, 2]]))),
    ("program: c = {}, d = {} and L = {}, at", lambda *f: data(
        program(a=2.0, b=3.0, **dict(zip("cdL", f)))) == data(FIRST)),
    ("do the same thing {} times", lambda times: count(times) == len(steps_of(FIRST))),
    ("takes the same {} steps", lambda times: count(times) == len(steps_of(FIRST))),
    ("times on the way through {}, where the slopes 3 and 5 multiply, and 6 times on the way through {}, where they",
     lambda *names: [np.prod(path(name)) for name in names] == [15, 6]),
    ("We took {}, {} and {} in this", lambda *names: [*names] == [step[0] for step in steps_of(FIRST)]),
    ("program: y = {}, s = {} and L = {}, at", lambda y, s, L: data(program(x=3.0, y=y, s=s, L=L)) == data(SECOND)),
    ("L uses {} twice, once directly and once through {}.", lambda *names: operands(SECOND, "L") == [*names]),
    ("and s sends {} = 18", lambda f: near(value(f, y=7.0), slope_of("y * y", "y", y=7.0))),
    ("suppose that {} is taken too early, after {} and before {}.", lambda early, first, late: A.pass_on(
        [SECOND[name] for name in (first, early, late, "x")])[SECOND["x"]] == 6),
    ("+ 2^n = {} times", lambda f: [value(f, n=n) for n in (1, 2, 3)] == [2, 6, 14]),
    ("others, always take the {}.", is_newest),
    ("The {} node: nobody", is_newest),
    ("made from y, so it is {} than", lambda age: {"newer": SECOND["s"], "older": SECOND["x"]}[age] is SECOND["s"]),
    ("operands are always {} still", lambda age: {"older": min, "newer": max}[age](FIRST["c"].born, FIRST["L"].born)
     == FIRST["c"].born),
    ("Our items are ({}), so the {} item is the {} node", lambda item, which, age: {"smallest": min}[which](
        value(f"({item})", born=n, node=n) for n in range(3))[1] == {"newest": 2, "oldest": 0}[age]),
    ("subject of chapter {}: here", chapter("\ndef unbroadcast(")),
    ("with a seed the slope of {}. seed:", lambda f: near(
        gradients(partial(A.through, J), [1.0, 2.0], seed=[2.0, -1.0]),
        moves_with([2.0, -1.0], f.replace("self", "y")))),
    ("Another shape is a {};", lambda error: raised(Tensor([1.0, 2.0]).backward, np.ones(3)) == error),
    ("What was {} forward is {} backward", copied_and_summed),
    ("computed {} the first is", lambda when: when == before(A.backward, "totals[leaf] =", "leaf.grad = total")),
    ("The slope of a {} is the {} of the", lambda f, of: WAYS[f] is np.sum and near(
        A.numerical_grad(lambda w: WAYS[f]((w * ROWS) ** 2), 3.0), WAYS[of](2 * 3 * ROWS ** 2))),
    ("with the loss {}, whose slope along w is {}. w", lambda loss, slope: near(
        value(slope, w=3.0, x=2.0), slope_of(loss, "w", w=3.0, x=2.0))),
    ("lists each number {} its operands, and the list is read from its {}. It", lambda when, end: A.post_order(
        SECOND["L"], [])[{"end": -1, "beginning": 0}[end]] is SECOND["L"] and when == "after"),
    ("to the list order, {} all that", lambda when: before(A.post_order, "order.append", "post_order(operand") == when),
    ("*Jacobian*, with a {} for each result", lambda line: near(LINES[line][0], moves_with([1, 0]))),
    ("x0 is used in y{} with slope {}, and in y{} with slope {}, the", lambda *words: [
        J[int(words[i]), 0] - float(words[i + 1]) for i in (0, 2)] == [0, 0] and words[0] != words[2]),
    ("1 and 3 of the {} line are the {} *column* of J, so they are the {} row of J'", lambda line, column, row: all(
        near([1, 3], J.T[PLACE[which]]) for which in (line, column, row))),
    ("and the two lines are {}. Written as a row this is {}, a", lambda f, row: near(
        matrices(f, J=J, g=G), [[26], [38]]) and near(matrices(row, J=J, g=G), [[26, 38]])),
    ("its Jacobian along {} is {}, and the rule says {}. A", lambda along, *fs: near(
        [value(f, **NUMBERS) for f in fs], [n * slope_of("a * b", along, **NUMBERS) for n in (1, 5)])),
    ("how does the number {} move?", lambda f: near(moves_with([2.0, -1.0], f), [-1, 0])),
    ("The seed {} asks about {} alone, and the answer is the {} {} of J. The seed {} picks the {} {}, and {} adds",
     seeds_pick),
    ("entry of the seed multiplies the {} beside it, and the {} that", lambda *lines: all(
        near([2, -1] @ LINES[line], moves_with([2, -1])) for line in lines)),
    # chapter 3
    ("along b must have the shape {}.", lambda shape: A.unbroadcast(ROWS, value(shape)).shape == (3,)),
    ("g = {} 10 20 30 {} Nudge", lambda *lines: near([[float(n) for n in line.split()[-3:]] for line in lines], ROWS)),
    ("Nudge the {} entry of b by h. {} entries of Y move by h, those of the {} {}. One of them moves L by {} and the "
     "other by {}, so the slope is {} =", nudged_entry),
    ("entry of b was used {}, and", lambda times: near(A.unbroadcast(np.ones((2, 3)), (3,)), count(times))),
    ("A {} undoes both.", lambda way: GAPS[way].max() < 1e-14),
    ("It adds axes in {} until", lambda where: np.broadcast_shapes((3,), {"front": (2, 3), "back": (3, 2)}[where])),
    ("a single {}, in the {} of", lambda one, line: near(COPIES.sum({"column": 1, "row": 0}[line]), float(one))),
    ("that shape. A {} if", lambda error: raised(A.unbroadcast, ROWS, (2,)) == error),
    ("row of shape {} that is stretched to {}, B has {} lines", lambda row, to, lines: (
        count(lines), 3) == COPIES.shape == (np.prod(value(to)), np.prod(value(row)))),
    ("the result moves by {}. L moves by the sum of g times that, {}. The same number is {}, for any matrix, as both "
     "are the sum of {} over", moved_result),
    ("slopes along the operand are {}. A", lambda f: near(matrices(f, **MAP), MAP["g"] @ MAP["B"])),
    ("gaps {} 1e-14", lambda side: {"below": GAPS["sum"].max() < 1e-14}[side]),
    ("identity {} = {} on random", lambda left, right: near(inner(left, g=ROWS.ravel(), B=COPIES, v=ROWS[0]), inner(
        right, unbroadcast=lambda g: A.unbroadcast(g, (3,)), g=ROWS, v=ROWS[0]))),
    ("we try it on a {} in place of the {}.", lambda wrong, right: GAPS[wrong].max() > 1e-12 > GAPS[right].max()),
    ("What is {} 1e-12", lambda side: {"above": GAPS["mean"].max() > 1e-12}[side]),
    ("copied from entry {} of the row", lambda f: [value(f, i=i) for i in range(6)] == COPIES.argmax(axis=1).tolist()),
    ("and L by {} = 21, the slope along {}. A", lambda f, along: value(f, **data(FIRST)) == 21 and near(
        slope_of("(a + b) * (a * b)", along, **NUMBERS), 21)),
    ("so a tangent is copied: {}. For a program with the Jacobian J this is {}, the *Jac", lambda *fs: near(
        [matrices(f, **MAP) for f in fs], [MAP["B"] @ MAP["v"], MAP["J"] @ MAP["v"]])),
    ("cotangent is summed: {}. For a program with the Jacobian J this is {}, the VJP", lambda *fs: near(
        [matrices(f, **MAP) for f in fs], [MAP["g"] @ MAP["B"], MAP["g"] @ MAP["J"]])),
    ("how does the sum of {} move with", lambda f: near(
        A.numerical_grad(lambda v: np.sum(value(f, g=MAP["g"], result=MAP["J"] @ v)), MAP["v"]), MAP["g"] @ MAP["J"])),
    ("the VJP of chapter {}.", chapter("*vector-Jacobian product*")),
    ("mode answers for one direction of the {} in a pass", lambda of: {"input": 3, "result": 6}[of] == MAP["v"].size),
    ("The loss of chapter {} is", chapter("\ndef weights(")),
    ("257 passes in {} mode, one for each parameter. In {} mode", lambda *modes: [
        {"forward": 257, "reverse": 1}[mode] for mode in modes] == [*np.eye(1, 257).T.shape]),
    ("sums of chapter {} this", chapter("### Two sums")),
    ("moves by the {} part of {}, which is the {} part of {}, times", lambda part, product, same, g: near(getattr(
        value(product, g=1 - 2j, v=0.7), part), 0.7 * getattr(value(g, g=1 - 2j), same)) and part == "real"),
    ("it happens {} each rule. At", lambda when: before(A.backward, "unbroadcast(report", "report = rule(g)") == when),
    ("late, since {} = {} has no {} part", lambda f, is_, part: near(series(f, i=1j), series(is_, i=1j))
     and getattr(series(is_, i=1j), part) == 0),
    ("the slope of {} along {} g has the shape of {} '", lambda of, along, like: of == steps_of(SECOND)[0][0]
     and along == like and along in operands(SECOND, of)),
    ("The slope of {} along {} is also called the derivative of {} with respect to {}.", lambda *names: near(*[
        A.numerical_grad(*[{"f": A.cube, "x": 2.0}[name] for name in pair]) for pair in (names[:2], names[2:])])),
    ("In it {} is the slope of f, {} the", lambda *primes: near([series(f"{f}(x)") for f in primes], [
        A.numerical_grad(lambda x, f=f: series(f, x=x), 0.3) for f in ("f(x)", "f'(x)")])),
    ("nudge the numbers {} at a time", lambda n: set((asked(ROWS) != ROWS).sum(axis=(1, 2))) == {count(n)}),
    ("x as an array of {}; a {} if", lambda kind, error: A.floats([1]).dtype == kind and raised(A.floats, 1j) == error),
    ("entry of x, by {} nudges", lambda way: {"central": set(asked(2.0)) == {2.1, 1.9}}[way]),
    ("is called {} for each entry, with", lambda times: len(asked(ROWS)) == count(times) * ROWS.size),
    ("evaluates f {} for", lambda times: len(asked(ROWS)) == count(times) * ROWS.size),
    ("The run is {}, but", lambda run: near(value(run, h=0.1), np.ptp(asked(2.0)))),
    ("It {} with h, like", lambda how: {"shrinks": np.less, "grows": np.greater}[how](*ERRORS["central"][[2, 1]])),
    ("keeps only the digits in which they {}.", lambda how: {"differ": 4, "agree": 12}[how] == round(
        16 + np.log10(np.expm1(1e-12)))),
    ("moves x by {}, in the {} direction, where {} = {}.", lambda step, part, square, is_: getattr(
        value(step, h=0.1, i=1j), part[:4]) == 0.1 and value(square, i=1j) == float(is_)),
    ("in columns, the {} as a head", lambda which: TRACE[PLACE[which]].startswith("| take")),
    ("h[0] is {}, h[1] is {}, and so on to {}. h = 10.0 ** -np.arange({}) errors", lambda *words: near(
        (10.0 ** -np.arange(*value(words[3])))[[0, 1, -1]], [float(word) for word in words[:3]], atol=0)),
    ("by the {} step, which is {}?", lambda way, how: {"better": np.less, "worse": np.greater}[how](
        min(ERRORS[way]), min(ERRORS["central"]))),
    ("make y = {} from a = {} and b = {}. Later", lambda f, *ab: value(f, a=float(ab[0]), b=float(ab[1]))
     == FIRST["d"].data and [float(n) for n in ab] == [FIRST["a"].data, FIRST["b"].data]),
    ("that {} has the slope g = 5 along {}: when {} moves by a little, {} moves", lambda *names: near([
        MOVED[names[0]] / MOVED[names[1]], MOVED[names[3]] / MOVED[names[2]]], NUMBERS["g"])),
    ("nudge {} by da = {} and", lambda name, da: near(slope_of("g * a * b", name, **NUMBERS) * float(da), MOVED["L"])),
    ("In {} at x = 3, nudge", lambda f: gradients(lambda x: value(f, x=x), 3.0) == [6]),
    ("the product by {}, and the right x by another {}. The", lambda *moves: near(
        [value(f, dx=0.01) for f in moves], A.numerical_grad(lambda x: x * 3, 3.0) * 0.01)),
    ("The slope g of {} along {} is the *cotangent* of {}: a slope like any other, on its way back from {}.",
     lambda of, along, whose, start: of == start == steps_of(SECOND)[0][0] and along == whose in operands(SECOND, of)),
    ("such as the {} in {}, takes part in a value and gets {} edge", lambda n, f, some: float(n) == value(
        f, x=Tensor(1.0)).data and {"no": 1, "an": 2}[some] == len(value(f, x=Tensor(1.0)).edges)),
    ("After d = {}, with a = {} and b = {}, the", lambda f, *ab: value(f, **data(FIRST)) == FIRST["d"].data
     and [float(n) for n in ab] == [FIRST["a"].data, FIRST["b"].data]),
    ("An array on the {} would add", lambda side: isinstance({"left": ROWS + PLAIN, "right": PLAIN + ROWS}[side],
                                                             np.ndarray)),
    ("equal only if they are the {} object", lambda how: {"same": Tensor(1.0) != Tensor(1.0)}[how]),
    ("a value, and hands {} pairs", lambda n: {len(FIRST[name].edges) for name in "cd"} == {count(n)}),
    ("Tensor(data) {} data and is a", lambda how: {"copies": False, "keeps": True}[how] == np.shares_memory(
        ROWS, Tensor(ROWS).data)),
    ("for each number, the {} of what", lambda way: WAYS[way]([15, 6]) == steps_of(FIRST)[2][2][0][2]),
    ("starts with 1 for {}, since {}", lambda *names: {(name, 1) for name in names} == {steps_of(FIRST)[0][:2]}),
    ("The {} of the list is the result", lambda which: A.pass_on(order := [FIRST[n] for n in "dab"])[
        order[PLACE[which]]] == 1),
    ("number is taken {} all reports", lambda when: len(steps_of(SECOND, {"after": max, "before": min}[when])) == 3),
    ("Call the number that is taken {}, and suppose that some {} had still to report to it. Then {} was made from {}, "
     "so", lambda taken, late, made, of: late == made and taken == of in operands(SECOND | {"z": SECOND["s"]}, made)),
    ("waits to be taken is {} than y", lambda age: len(steps_of(SECOND, {"older": max, "newer": min}[age])) == 3),
    ("For the program y = {}, s = {}, L = {}, with births 0 to {}, the", lambda y, s, L, last: data(
        made := program(x=3.0, y=y, s=s, L=L)) == data(SECOND) and made["L"].born - made["x"].born == int(last)),
    ("Their totals are made {}, and written {}.", lambda *when: [PLACE[word] for word in when] == {
        "before": [0, -1], "after": [-1, 0]}[before(A.backward, "totals[leaf] =", "leaf.grad = total")]),
    ("Within a pass, the *{}* of a number add up, as in {}.", lambda what, f: passes(f, 1)[0] == 3 * {
        "uses": 2, "calls": 1}[what]),
    ("in between {} get a `.grad`", lambda often: {"never": None, "always": 1}[often] == passes("x * x", 2)[1]),
    ("once more, and {} it exactly", lambda how: {"doubles": 12, "triples": 18}[how] == passes("x * x", 2)[0]),
    ("set `.grad` back to {}. if", lambda nothing: value(nothing) is Tensor(1.0).grad),
    ("The product {}, for a constant matrix", lambda f: near(value(f, matrix=J, x=G), A.through(J, Tensor(G)).data)),
    ("the seed stands to the {} of the Jacobian", lambda side: {"left": np.less, "right": np.greater}[side](*[float(
        re.search(rf'text\((.+?), 1.9, "{word}"', PARTS[1])[1]) for word in ("seed", "Jacobian")])),
    ("A {} beside a {} is as good", lambda line, n: near(moves_with([float(n), 1]), LINES[line][1])),
    ("of both uses {} up: the slope along b is 5 7 9, the {} of the two", lambda *ways: near(
        [WAYS[way](ROWS, axis=0) for way in ways], gradients(lambda b: b + np.zeros((2, 3)), ROWS[0], seed=ROWS)[0])),
    ("then it repeats along axes of length {}.", lambda n: np.broadcast_shapes((2, int(n)), (2, 3)) == (2, 3)),
    ("(2, 3) g itself {} def", lambda what: {"nothing": np.array_equal(A.unbroadcast(ROWS, (2, 3)), ROWS)}[what]),
    ("B has a line for each entry of the {}.", lambda of: {"result": ROWS, "operand": ROWS[0]}[of].size == len(COPIES)),
    ("only entry {} of the operand, and by 1, this is entry {} of {}. And", lambda one, other, f: near(
        MAP["g"] @ MAP["B"] @ np.eye(3)[{"j": 2, "i": 5}[one]], matrices(f, **MAP)[{"j": 2, "i": 5}[other]])),
    ("|{} - {}| relative", lambda left, right: near(*[inner(f, reduce=lambda g: A.unbroadcast(
        g.reshape(2, 3), (3,)), g=ROWS.ravel(), B=COPIES, v=ROWS[0]) for f in (left, right)])),
    ("1e-12 is {} than rounding", lambda how: {"more": np.greater, "less": np.less}[how](1e-12, GAPS["sum"].max())),
    ("1 and 4 arrive, and their {} 5 is the slope along the {} number", lambda way, which: WAYS[way]([1, 4])
     == A.unbroadcast(ROWS, (3,))[PLACE[which]]),
    ("In *{} mode* the question is: if the {} moves by v, how does the {} move? It", lambda mode, *ends: [
        SIZES[end] for end in ends] == [MAP["v"].size, matrices(MODES[mode], **MAP).size]),
    ("In *{} mode* the question is: how does the sum of g * {} move with each {}?", lambda mode, *ends: [
        SIZES[end] for end in ends] == [MAP["g"].size, matrices(MODES[mode], **MAP).size]),
    ("cheaper? {} mode answers for one direction of the {} in a pass, {} mode for one question about the {}.",
     lambda one, of, other, about: [matrices(MODES[mode.lower()], **MAP).size for mode in (one, other)] == [
         SIZES[about], SIZES[of]]),
    ("c = {}, d = {} and L = {} at 2 and 3, let {} move by 1 and {} by 0. Then {} moves by 1, {} by 3,", lambda c, d, L,
     a, b, one, three: data(program(a=2.0, b=3.0, c=c, d=d, L=L)) == data(FIRST) and a != b and near([slope_of(
         {"c": c, "d": d}[name], a, **NUMBERS) for name in (one, three)], [1, 3])),
    ("at the cost of one {}. We could save the {} and", lambda *kinds: {*kinds} == {
        type(FIRST["d"].edges[0][1]).__name__}),
    ("so we {} by the distance", lambda how: A.numerical_grad(lambda x: x, 1.0, 3e-16) == {"divide": 1}[how]),
    ("1e-12 a {} nudge computes e^h = 1.000000000001000 {} =", lambda way, f: value(f, h=1e-12) == {
        "forward": np.exp(1e-12) - 1}[way]),
    ("0.001 bending {} 10 and", lambda how: {"shrinks": np.less, "grows": np.greater}[how](*ERRORS["central"][[2, 1]])),
    ("1e-13 cancellation {} some", lambda how: {"grows": GREW, "shrinks": 1 / GREW}[how] > 1),
    ("The {} picture draws the ledger, step by step. The {} shows", lambda *which: [PLACE[word] for word in which] == [
        *np.argsort([PARTS[1].index(f'picture("{name}"') for name in ("ledger", "engine")])] and (
            *told("are left. In the {} picture each"), *told("its letter. In the {} the")) == which),
    ("and the {} column is the ledger after it", lambda which: TRACE[2].strip("| ").split(" | ")[PLACE[which]] == (
        ", ".join(f"{name} {total:.0f}" for name, _, total in steps_of(FIRST)[0][2]))),
    ("and {} a and {} b stand", lambda *sides: [{"above": "2", "below": "0"}[side] for side in sides] == [
        *re.search(r"{a: \(0, (.)\), b: \(0, (.)\)", PARTS[1]).groups()]),
    ("In y = {}, z = {}, and so on, each line {} the", lambda y, z, how: gradients(lambda x: value(z, y=value(
        y, x=x)), 1.0) == [{"doubles": 4}[how]]),
    ("The program has {} edges, and one", lambda f: value(f, n=1) == len(FIRST["d"].edges)),
    ("two entries, {} for {} and {} for {}. Since", lambda *names: near(J.T @ [2, -1], A.numerical_grad(lambda x: value(
        "{} {} + {} {}".format(*names), g0=2, g1=-1, y0=J[0] @ x, y1=J[1] @ x), np.ones(2)))),
    ("and a vector is {}. The", lambda how: raised(Tensor([1.0, 2.0]).backward) == {"refused": "ValueError"}[how]),
    ("A {} report is added, and the {} one makes", lambda *reports: all(what in re.search(
        r"if operand in ledger:(.*?)else:(.*?)# Only", inspect.getsource(A.backward), re.S)[{"later": 1, "first": 2}[
            report]] for what, report in zip(("+ report", "heappush"), reports))),
    ("If {} moves by a little, {} moves 21", lambda along, of: A.numerical_grad(lambda x: data(program(
        **{"a": 2.0, "b": 3.0} | {along: x}, c="a + b", d="a * b", L="c * d"))[of], FIRST[along].data).round(6) == 21),
    ("has the shape of the {}, {}, but", lambda what, shape: value(shape) == {"result": ROWS + ROWS[0]}[what].shape),
    ("and look at `{}` when", lambda held: value(held, operand=FIRST["a"]) == FIRST["d"].edges[0][1]),
    ("the sum would take the {} shape", lambda age: (x := Tensor(ROWS), y := x * 2, setattr(x, "data", ROWS[0])) and {
        "new": ROWS[0], "old": ROWS}[age].shape == y.edges[0][0].shape),
    ("near 2, the {} moves 12 times as far as the {}", lambda far, near_: near(12, {
        "value": A.cube(2.0001) - 8, "input": 1e-4}[far] / {"input": 1e-4, "value": A.cube(2.0001) - 8}[near_], 1e-3)),
    ("keep the {} of the 101", lambda which: near({"worst": np.max, "best": np.min}[which](abs((A.bent(0.1 + (
        x := np.linspace(0, 1, 101))) - A.bent(x)) / 0.1 / A.bent_slope(x) - 1)), ERRORS["forward"][0])),
    ("but for a term with {}. We", lambda term: near((series("h f1(x)", h=0.1) - np.exp(0.6 + 0.2j).imag) / value(
        term, h=0.1), 8 * np.exp(0.6) / 6, rtol=0.01)),
    ("For a {} h, the two values of f agree in {} of their", lambda size, part: (
        {"most": 0.5}[part] < -np.log10(np.expm1({"small": 1e-12, "large": 1}[size])) / 16)),
    ("They are {}, not", lambda how: (leaf := Tensor(J), leaf.data is {"remembered": (leaf * leaf).edges[0][2]}[
        how].__closure__[0].cell_contents)[1]),
    ("Between passes, the *{}* of", lambda what: passes("x * x", {"calls": 2, "uses": 1}[what])[0] == 12),
    ("An axis of length {} is {}, as", lambda n, kept: A.unbroadcast(COPIES, (int(n), 3)).ndim == {"kept": 2}[kept]),
    ("For a matrix it is the {}, and", lambda of: near(G.T @ J, ({"transpose": J.T, "inverse": 1 / J}[of] @ G).T)),
    ("for copying it is {}. We", lambda what: GAPS[{"summing": "sum", "averaging": "mean"}[what]].max() < 1e-14),
    ("a row b of shape {} for both lines of an X of shape {}; this", lambda b, X: value(X) == ROWS.shape
     and value(b) == gradients(lambda b: b + ROWS, ROWS[0], seed=ROWS)[0].shape),
    ("The cotangent of {} is 19,", lambda of: A.pass_on([SECOND[n] for n in "Lsyx"])[SECOND[of]] == 19),
    ("how small moves of the {} move the {}.", lambda *ends: MAP["J"].shape == tuple(SIZES[end] for end in ends[::-1])),
    ("If the {} moves by v, the {}", lambda of, to: MAP["B"].shape == (SIZES[to], {"operand": MAP["v"].size}[of])),
    ("each half has to be {} by {} first", lambda how, by: near(ROWS.mean(), sum({
        "multiplied": np.multiply, "divided": np.divide}[how](half.mean(), value(by)) for half in ROWS))),
    ("wherever there was {} than one copy", lambda how: (GAPS["mean"] > 1e-12).tolist() == [{
        "more": 1, "less": -1}[how] * (np.prod(to) - np.prod(one)) > 0 for one, to in A.broadcast_pairs()]),
]


@pytest.mark.parametrize("template, judge", CLAIMS, ids=[template[:60] for template, judge in CLAIMS])
def test_a_claim_is_what_the_machine_does(template, judge):
    assert judge(*told(template))


def test_the_two_nudges_of_the_cube_are_computed_as_they_are_written():
    for line, way, ends in zip(block("forward    (9", "central    (9"), ("forward", "central"), ((2.1, 2), (2.1, 1.9))):
        name, quotient, result, wrong = re.fullmatch(r"(\w+) +(.+?) = ([\d.]+) +wrong by ([\d.]+)", line).groups()
        assert name == way and re.findall(r"\d\.\d{3}", quotient) == [f"{A.cube(x):.3f}" for x in ends]
        assert near([value(quotient), float(result) - float(wrong)], [float(result), 12])


@pytest.mark.parametrize("start", ["f(x + h) =", "f(x - h) =", "f(x + ih) ="])
def test_a_series_of_taylor_is_near_what_it_stands_for(start):
    left, right = block(start, start)[0].removesuffix(" + ...").split(" = ")
    gaps = [abs(series(left, h=h, ih=1j * h) - series(right, h=h, i=1j)) for h in (0.1, 0.01)]
    assert 3e3 < gaps[0] / gaps[1] < 3e4


def test_the_moves_of_the_chain_rule_are_those_of_a_nudge():
    for line, move in zip(block("y = a * b    moves", "L            moves"), (0.03, 5 * 0.03)):
        written = re.split(" *= *", line.split("moves by")[1].strip())
        assert near([value(f, a=2.0, b=3.0, da=0.01, g=5.0) for f in written], move)


def test_each_line_of_rules_is_the_slope_of_its_value():
    for line in block("y = a + b        rule", "y = a * b        rule"):
        y, *rules = re.fullmatch(r"y = (.+?) +rule for a: +g -> (.+?) +rule for b: +g -> (.+)", line).groups()
        assert near([value(rule, g=5.0, a=2.0, b=3.0) for rule in rules],
                    [5 * slope_of(y, name, a=2.0, b=3.0) for name in "ab"])


def test_a_tensor_holds_what_is_displayed():
    a, b = Tensor(2.0), Tensor(3.0)
    d = a * b
    held, *edges, born, grad = [re.split("  +", line)[-1] for line in block("data     6", "grad     None")]
    for line, name, (_, shape, rule) in zip(edges, "ab", d.edges):
        assert line.startswith(f"{name}, with the shape {shape} and the rule g -> ")
        assert value(line.split("-> ")[1], g=7.0) == rule(7.0)
    assert re.findall(r"\d", born) == [str(node.born - a.born) for node in (d, a, b)] and float(held) == d.data


def test_each_line_of_the_ledger_is_a_step_of_the_pass():
    for line, (taken, g, reports) in zip(block("take L, its g", "take c, its g"), steps_of(FIRST), strict=True):
        assert line.startswith(f"take {taken}, its g is {g:.0f}.")
        said = re.findall(r"(\w) hears (?:(\S+ \* \w) = )?(\d+)(?:, and has (\d+))?\.", line)
        for (name, written, report, has), found in zip(said, reports, strict=True):
            assert (name, float(report), float(has or found[2])) == found
            assert not written or value(written, **data(FIRST)) == found[1]


def test_the_queue_holds_what_its_table_shows():
    queue = ["L"]
    for line in block("(-3, L)", "(-1, y)            y"):
        queue.sort(key=lambda name: -SECOND[name].born)
        holds, taken, reports = re.split("   +", line)
        assert taken == queue[0]
        assert holds == " ".join(f"({SECOND['x'].born - SECOND[name].born}, {name})" for name in queue)
        told_to = operands(SECOND, queue.pop(0))
        entering = [name for name in told_to if SECOND[name].edges and name not in queue]
        assert re.findall(r"\b[sxyL]\b", reports) == list(dict.fromkeys(told_to))
        assert reports.count("which enters") == len(entering) and ("twice" in reports) == (told_to[0] == told_to[1])
        queue += entering


def test_the_jacobian_of_the_two_displayed_formulas():
    y = told("Take y0 = {} and y1 = {}: along")
    assert near([[slope_of(f, name, x0=1.0, x1=2.0) for name in ("x0", "x1")] for f in y], J)
    assert [line.split()[:4] for line in block("along x0   along x1", "of y1")] == [
        ["along", "x0", "along", "x1"], ["of", "y0", "1", "2"], ["of", "y1", "3", "4"]]
    for name, line, move in zip(("x0", "x1"), block("slope along x0  =", "slope along x1  ="), moves_with([5, 7])):
        assert line.split()[2] == name and near(value(line.split("= ")[1], g0=5.0, g1=7.0), move)


def test_the_slopes_of_stretched_operands_are_what_their_table_shows():
    summed = ["the axis that was added", "an axis of length 1, and kept", "the other axis, and kept", "both axes"]
    for line, shape, what in zip(block("(3,)                 5 7 9", "()                   21"),
                                 [(3,), (1, 3), (2, 1), ()], summed, strict=True):
        operand, slope, said = re.split(r"  +", line)
        assert (value(operand), said) == (shape, what)
        assert [float(n) for n in re.findall(r"\d+", slope)] == A.unbroadcast(ROWS, shape).ravel().tolist()
