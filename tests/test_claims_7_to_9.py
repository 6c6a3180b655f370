"""What chapters 7 to 9 claim in words, formulas and displayed lines, held against the machine."""
import inspect
import re
from functools import lru_cache, partial

import numpy as np
import pytest

import anatomy as A
from anatomy import Tensor
from conftest import PARTS, ROOT, SOURCE
from reading import GOLDEN, GOLDEN_LINES, WORDS, agree, flat, told, value

AXES = {7: "rates", 10: "seeds", 2000: "steps"}
REPORT = {"asked": "asked {", "WRONG, raises or is not judged": '("WRONG", "raises", "not judged")', "often": "{n}",
          "not there": "absent = ", "in common": "in_common("}
CHAPTERS = [flat(part) for part in PARTS]
OWN = " ".join(CHAPTERS[6:9])
ROWS = np.array([[1.0, 2, 3], [4, 5, 6]])
POSITIVE = A.uneven((3, 3))
SEED = np.random.default_rng(0).standard_normal((3, 3))


def pick(condition, yes, no):
    return yes if condition else no


def more(a, b, words="more less"):
    assert a != b
    return words.split()[int(a < b)]


def close(one, other, rtol=1e-9):
    return np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=rtol, atol=1e-12)


def shape(text, **letters):
    """A shape as it is written, with numbers for its letters; dots are left out."""
    return tuple(n for n in value(text, **letters) if n is not Ellipsis)


def shaped(arrays, **letters):
    """A judge of shapes."""
    return lambda *said: [shape(text, **letters) for text in said] == [array.shape for array in arrays()]


def code(function):
    return flat(inspect.getsource(function))


def in_order(text, *fragments):
    places = [text.find(fragment) for fragment in fragments]
    return -1 not in places and places == sorted(places)


def chapter(fragment):
    """A judge of the number of the first chapter that has this."""
    return lambda n: int(n) == 1 + next(i for i, text in enumerate(CHAPTERS) if fragment in text)


def block(start, end):
    """The displayed lines between two fragments."""
    return re.findall(r"^#     (.*)$", SOURCE[SOURCE.index(start):SOURCE.index(end)], re.M)


def generated(name):
    """A table of the story: the first cell of each row -> the others."""
    lines = (ROOT / f"docs/generated/{name}.md").read_text("utf-8").splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def slopes(f, *arrays, seed=None, fault=None):
    """The slopes of f along these arrays, with a fault or without."""
    tensors = [Tensor(array) for array in arrays]
    if fault is None:
        f(*tensors).backward(seed)
    else:
        with A.planted(fault):
            f(*tensors).backward(seed)
    return [tensor.grad for tensor in tensors]


@lru_cache
def short(name="Adam", **settings):
    return A.train(A.OPTIMIZERS[name], steps=100, keep=[0, 1], **settings)


def kept(when):
    """Is what is kept for a step the network before it or after it?"""
    start, model = short().kept[0], A.MLP(*A.weights())
    assert np.array_equal(start[0], model.params[0].data)
    return when == pick(np.array_equal(short().kept[1][0], start[0]), "before", "after")


def jumps(name):
    return abs(np.diff(short(name).losses[40:])).mean()


def slow():
    return [name for name, row in generated("spiral").items() if int(row[1].rstrip("%")) < 75]


def regions(sgd, momentum, adam, rmsprop):
    return [sgd, momentum] == slow() and (rmsprop, adam) == pick(
        jumps("RMSProp") > jumps("Adam"), ("RMSProp", "Adam"), ("Adam", "RMSProp"))


def adam_first(formula, plus, minus):
    for g in 3.0, -0.02:
        first = 0.1 * A.Adam([Tensor(0.0)], 1.0, eps=0.0).direction(g, A.Average(0.9), A.Average(0.999))
        assert close(first, value(re.sub(r"\|(\w)\|", r"abs(\1)", formula), lr=0.1, g=g))
        assert close(first, value(pick(g > 0, plus, minus), lr=0.1))


def total_of(formula, start):
    total, u = A.Total(0.8), float(start)
    for x in 3.0, 1.0, 2.0:
        u = value(formula, mu=0.8, u=u, x=x)
        assert close(total.add(x), u)


def rays(n):
    """On a circle around the middle the logit changes its sign so often."""
    t = np.linspace(0, 2 * np.pi, 2000)
    z = A.MLP(*A.weights())(np.stack([np.cos(t), np.sin(t)], axis=1)).data
    return WORDS[n] == np.count_nonzero(np.diff(z > 0, axis=0))


def walked(name, steps):
    """How far a slope of 1, and slopes of 0 after it, move a coordinate."""
    descent = A.OPTIMIZERS[name]([Tensor(0.0)], lr=1.0)
    return sum(descent.direction(float(step == 0), *descent.memories[0]) for step in range(steps))


@lru_cache
def stacked():
    """W1 and the points of the race, as `fit` gets them."""
    seen = []
    with A.replaced(None, "fit", lambda ours, *given: seen.extend(given) or ([], {})):
        A.train_many(A.SGD, range(10), A.RATES.reshape(7, 1, 1, 1))
    return seen[0].params[0].data, seen[2]


def in_front(place, *names):
    axes = [AXES.get(n) for n in stacked()[0].shape]
    return place == pick(axes[2:] == [None] * 2, "front", "the back") and list(names) in ([], axes[:2])


def axes_of_race(*said):
    return [dict(optimizer=4, rate=7, seed=2)[name.removesuffix("s")] for name in said] == [*A.race(2, 1).shape[1:]]


def summed_up(by, *ends):
    shares = np.array([0.62, 0.64, 0.83, 0.99, 0.71])
    return A.spread(shares).startswith(f"{getattr(np, by.lower())(shares):.0%}") and (
        in_order(code(A.draw_race), *[f"seen.{dict(worst='min', best='max')[end]}(" for end in ends]))


def relative_jumps():
    rows = re.findall(r"beta1 = 0 \[(.*?)\], 0.9 \[(.*?)\]", GOLDEN)
    (jumps, with_average), (high, low) = np.array([[row.split() for row in pair] for pair in rows], float)
    return jumps / with_average / (high / low)


def good_rates():
    return {name: [float(rate) for rate in row[0].split(",")] for name, row in generated("good").items()}


def wrong_product(right, wrong, again):
    """Along a, with u and v for the values 2 and 3 of a and b."""
    good, bad = (slopes(lambda a, b: a * b, 2.0, 3.0, seed=5.0, fault=fault)[0] for fault in (None, "product_operand"))
    return [value(text, g=5.0, a=2.0, b=3.0, u=2.0, v=3.0) for text in (right, wrong, again)] == [good, bad, good]


def asked_of(product):
    """Which method of a Tensor, and on which side, is asked for y * log(p), where y is an array?"""
    asked = []

    class Spy(Tensor):
        def __mul__(self, other):
            asked.append(("left", "__mul__"))

        def __rmul__(self, other):
            asked.append(("right", "__rmul__"))

    value(product, y=np.ones(2), p=np.ones(2), log=Spy)
    return asked


def operand_told(fault, f, side, said):
    """What a fault says of one operand; of the other one it is right."""
    told_, true = (slopes(f, POSITIVE, POSITIVE.T, seed=SEED, fault=name) for name in (fault, None))
    k = ["left", "right"].index(side)
    said = value(said.replace("times itself", "u"), g=SEED, u=(POSITIVE, POSITIVE.T)[k])
    return close(told_[k], said) and close(told_[1 - k], true[1 - k])


def slope_told(fault, f, wrong, right, **names):
    """What a fault says of a word with one operand x, and what is right."""
    told_, true = (slopes(f, POSITIVE, seed=SEED, fault=name)[0] for name in (fault, None))
    return close(told_, SEED * value(wrong, **names)) and close(true, SEED * value(right, x=POSITIVE, **names))


def reduced(fault, to, g=ROWS):
    with A.planted(fault):
        return A.unbroadcast(g, to)


def list_of(fault):
    """The names of the nodes in the order in which this fault visits them."""
    x, seen = Tensor(3.0), []
    y = x * x
    s = y * y
    L = y + s
    with A.replaced(None, "visit_once", lambda ours, root, seed, order, *meet: seen.extend(order)), A.planted(fault):
        L.backward()
    return [{L: "L", y: "y", s: "s", x: "x"}[node] for node in seen]


def lists_of_order(first, breadth, early, last, path):
    assert list_of(first) == breadth.split(", ") and early == pick(in_order(breadth, "y", "s"), "early", "late")
    return [name for name in A.FAULTS][-1] == last and list_of(last)[:7] == path.split(", ") + ["y"]


def erased(sign, right, which):
    """Of 2 and 5 the newer part reports first."""
    return {"last": 2.0, "first": 5.0}[which] == slopes(lambda x: x * 2 + x * 5, 1.0, fault="overwriting")[0] and (
        sign, right) == ("=", "+=")


@lru_cache
def says(check, fault):
    with A.planted(fault), np.errstate(all="ignore"):
        return A.verdict(A.CHECKS[check])


def in_common(*cases):
    return A.in_common([A.Case(word, situation, verdict, "") for word, situation, verdict in cases])


def changed(fault, cost=A.patched_mean):
    """Which slopes of a batch change with a fault."""
    X, y = (array[A.batches()[0]] for array in A.spiral())
    wrong, right = (slopes(lambda W1, b1, W2, b2: cost((X @ W1 + b1).relu() @ W2 + b2, y), *A.weights(), fault=name)
                    for name in (fault, None))
    return {name for name, one, other in zip(["weights", "biases"] * 2, wrong, right) if not close(one, other)}


def used_by_cover(*said):
    before, after = in_order(code(A.cover), "y = x *", "for word"), in_order(code(A.cover), "word(x)", "y + x * x")
    return list(said) == ["before"] * before + ["after"] * after


def asks_for(place):
    with A.replaced(Tensor, place, lambda ours, *operands: 1 / 0):
        return A.verdict(A.CHECKS["network"]) == "raises"


def reported(*read):
    """What is made of a slope that is read after each of two calls."""
    peer = A.Peer(Tensor, lambda x, read=iter(read): np.asarray(float(next(read))), "with a seed", 1e-5, 1e-4)
    return A.borrowed(lambda x: x * 4, [np.asarray(1.0)], 0, peer, 2)(Tensor(1.0)).edges[0][2](np.asarray(1.0))


def true_if(nothing, something):
    def true(*verdicts):
        return bool(A.Examination([A.Case("exp", "by itself", verdict, "") for verdict in verdicts], "by hand"))
    return true(something, "raises") and not true(something, nothing) and not true() and not true("raises")


# (fragment of the text, what judges the words and formulas in its holes)
CLAIMS = [
    # spiral
    ("things: {}, {}, and {}. Each has a stream of random numbers to itself, {}, {} or {}, so", lambda *said: all(
        f"default_rng([seed, {k}])" in code({"the noise": A.spiral, "the first weights": A.weights,
                                             "the batches": A.batches}[name]) for name, k in zip(said[:3], said[3:]))),
    ("noisy arms: X of shape {}, labels y of shape {}.", shaped(A.spiral)),
    ("In each step we {}, {}, {}, and {} the parameters", lambda *said: in_order(code(A.fit), *[
        {"clear the gradients": "zero_grad()", "compute the loss": "bce_with_logits(", "go backward": ".backward(",
         "let the optimizer move": "descent.step()"}[step] for step in said])),
    ("right if z is {} 0 and the label is {}, or", lambda side, label: side == pick(A.score(
        lambda X: Tensor([[3.0]]), None, [[float(label)]])[1] == 1, "above", "below")),
    ("what the label says: {} 0 for label {}, and", lambda side, label: side == pick(A.score(
        lambda X: Tensor([[3.0]]), None, [[float(label)]])[1] == 1, "above", "below")),
    ("A hidden unit computes {} for", lambda formula: close(10.0 + 3 * 7 + 0.5, value(
        formula, w0=2.0, x0=5.0, w1=3.0, x1=7.0, b=0.5))),
    ("a pass backward takes about {} the arithmetic of the pass {}, for", lambda times, way: (times, way) == (
        {2: "twice"}[len((Tensor(ROWS) @ Tensor(ROWS.T)).edges)], "forward")),
    ("Here it is {}, as X has no", lambda word: word == more(len((ROWS @ Tensor(ROWS.T)).edges), 2)),
    ("scale of the weights is {} (He", lambda formula: np.isclose(
        A.weights(hidden=4000)[2].std(), value(formula, inputs=4000), rtol=0.05)),
    ("the sum has {} times the mean square of one", lambda n: np.isclose(
        value(n, n=9), np.random.default_rng(0).standard_normal((99999, 9)).sum(axis=1).var(), rtol=0.05)),
    ("drawn {} replacement", lambda word: word == pick(
        any(len(set(batch)) < len(batch) for batch in A.batches()), "with", "without")),
    ("arrays W1 {}, b1 {}, W2 {} and b2 {}.", shaped(lambda: A.weights(hidden=9), H=9)),
    ("X: {}. Returns logits {}. ", shaped(lambda: (np.ones((7, 2)), A.MLP(*A.weights())(np.ones((7, 2)))), N=7)),
    ("the price of p = {}.", lambda p: close(-np.log(value(p)), A.bce_with_logits(Tensor([0.0]), [1]).data)),
    ("If it pays much {}, its", lambda word: word == more(*[
        A.score(A.MLP(*[c * a for a in A.weights()]), *A.spiral())[0] for c in (10, 1)])),
    ("judge a run by the {} over its {} steps:", lambda which, last: f"np.{which}(" in code(A.Run.final)
     and last == pick(max(A.last_steps(2000)) == 2000, "last", "first")),
    ("It keeps the parameters {} certain", kept),
    ("Step 0 is the network {} the first", lambda word: word == pick(
        np.array_equal(short().kept[0][0], A.weights()[0]), "before", "after")),
    ("arrays of the parameters {} it.", kept),
    ("keep: the steps {} which", kept),
    ("With {} and {} one bent boundary crosses the plane. With {} it winds around itself, between the arms. With {} "
     "it", regions),
    ("optimizers. {} begins with a jump", lambda name: name == max(
        A.OPTIMIZERS, key=lambda name: short(name).losses[:50].max())),
    ("Adam's curve is the {} of the fast", lambda word: word == more(
        jumps("Adam"), jumps("RMSProp"), "rougher smoother")),
    ("chapter 7 Adam's curve was {} than", lambda word: word == more(
        jumps("Adam"), jumps("RMSProp"), "rougher smoother")),
    ("The curves of {} and {} are on top", lambda *names: list(names) == slow()),
    ("u <- {}, from u = {}.", total_of),
    ("coordinate of Adam's first step is {}, which is {} or {}. If", adam_first),
    ("Both come out a little {}, because", lambda word: word == more(
        float(generated("correction")["with"][0]), 0.1 * np.sqrt(257), "longer shorter")),
    ("two classes, as in chapter {}.", chapter("def bce_with_logits")),
    ("It meets all that the first {} chapters", lambda n: chapter("def bce_with_logits")({"four": 4}[n])),
    ("through chapter {}'s average", chapter("class Average")),
    ("and chapter {} asks why", chapter("### Why is Adam's curve smooth?")),
    ("the median of five is in chapter {}.", chapter("FIVE = np.arange")),
    ("and a step {} them makes z {}, as", lambda way, size: size == more({"against": -1, "along": 1}[way] * slopes(
        lambda z: A.bce_with_logits(z, [[0.0]]), [[10.0]])[0].item(), 0, "larger smaller")),
    ("which {} the mean square, and the {} makes up", lambda word, n, x=np.linspace(-1, 1): np.allclose(
        [{"halves": 0.5, "doubles": 2}[word], 1 / value(n)], np.mean(np.maximum(x, 0) ** 2) / np.mean(x ** 2))),
    ("one pass backward, {} first unbroadcast", lambda when: when == pick(
        "heappush(queue, (-operand.born, operand))" in code(Tensor.backward), "newest", "oldest")),
    ("the boundary begins as {} straight rays,", rays),
    ("So it goes as far as {} in the end, only {}.", lambda name, when: when == more(walked(name, 1), walked(
        "Momentum", 1), "later sooner") and close(walked(name, 400), walked("Momentum", 400))),
    # race
    ("one network W1 is {} a batch is {} 70", shaped(lambda: (A.weights()[0], A.spiral()[0][A.batches()[0]]))),
    ("rates of shape {} and ten seeds have {} and {}, which makes {}. front", lambda rates, one, other, both: (
        shape(rates)[:-2], np.broadcast_shapes(shape(one), shape(other))) == (shape(one), shape(both))),
    ("we round the range {}, to", lambda way: way == pick("95%" in A.spread([0.977, 0.993]), "outward", "inward")),
    ("since {} comes out a little {} 55", lambda product, word: word == more(value(product), 55.0, "above below")),
    ("where its median loss is {}, to two decimals, and the {} one if two tie", lambda how, tie: how == pick(
        "medians.argmin(" in OWN, "lowest", "highest") and tie == pick(np.argmin([3, 1, 1]) == 1, "smaller", "larger")),
    ("So the gap of chapter 7 was one of the rate: {} suits {} of", lambda rate, n: n == {2: "two"}[
        sum(float(rate) in rates for rates in good_rates().values())]),
    ("No, but it makes the target {}.", lambda word: word == more(*[
        max(good_rates()[name]) / min(good_rates()[name]) for name in ("Adam", "Momentum")], "wider narrower")),
    ("two more ways, the {} window of v", lambda word: word == more(*[inspect.signature(kind).parameters[
        name].default for kind, name in ((A.Adam, "beta2"), (A.RMSProp, "beta"))], "longer shorter")),
    ("in the bowl of chapter {}.", chapter("def bowl_path")),
    ("The network of chapter {} works on stacks", chapter("class MLP")),
    ("Both of shape (4, 7, 10): {}, {}, {}.", axes_of_race),
    ("(loss, accuracy), by {}, {} and {}.", axes_of_race),
    ("two new axes in {}, one for the {} and one for the random {}:", in_front),
    ("as one, with more axes in {}.", in_front),
    ("the parameters stacked along axes in {}.", in_front),
    ("70 networks W1 is {} a batch is {} The", shaped(lambda: (stacked()[0], stacked()[1][0]))),
    ("arrays of points, each {}, become {}, and then {}, as `fit`", shaped(lambda: (
        A.spiral()[0][A.batches()], np.moveaxis(stacked()[1], 0, 2), stacked()[1]))),
    ("as `fit` wants the {} first.", lambda word: word == AXES[len(stacked()[1])]),
    ("after 20 steps of {}, which would notice", lambda name: f"train({name}, seed, lr, steps=20)" in OWN and (
        A.furthest(*[A.train(A.OPTIMIZERS[name], steps=5, scale=scale) for scale in (1.0, 3.0)]) > 0.01)),
    ("a run counts with its {} over", lambda by: close(short().final(), getattr(np, by.removesuffix("s"))(
        [short().at(step) for step in A.last_steps(100)], axis=0))),
    ("Of the ten seeds we keep the {}, and the range from the {} to the {}.", summed_up),
    ('"""{} and range in percent, as text;', summed_up),
    ("each optimizer: the {} of ten seeds as a line, from the {} to the {} as", summed_up),
    ("the line is the {} of ten networks, and the band reaches from the {} to the {}.", summed_up),
    ("Is it because Adam averages {}? With {} = 0", lambda what, name: f"mean, square = m.add({what})" in code(
        A.Adam.direction) and name == list(inspect.signature(A.Adam).parameters)[2]),
    ("the jumps are {} without the average for some seeds, and {} for others", lambda *said: set(said) == {
        more(ratio, 1, "larger smaller") for ratio in relative_jumps()}),
    # trial
    ("Take the product a * b, whose rule for a says {}. Let u and v be the values of a and b. By mistake the rule "
     "for a says {} here, where {} would", wrong_product),
    ("and the slope along {} is right. In x", lambda which: slopes(lambda a, b: a * b, 2.0, 3.0, fault=(
        "product_operand"))["ab".index(which)] == {"a": 3, "b": 2}[which]),
    ("In {} the fault does not show", lambda f: slopes(lambda x: value(f, x=x), 3.0, fault="product_operand") == [6]),
    ("finds this function where it looks for `{}`.", lambda place: place == A.FAULTS["product_operand"].place),
    ("stands before `{}` happens when the block begins. What stands behind `{}` happens", lambda one, other: (
        f"place, instead) try: {one} {other}: put(home, place, ours)" in code(A.replaced))),
    ("in a dictionary, which `{}` returns, and those of a class in another, which `{}` returns.", lambda *said: (
        "names = {} if home is None else {}".format(*said) in code(A.replaced))),
    ("The {} may be written into; for the {} there is `{}`.", lambda yes, no, setter: f"else: {setter}(home" in code(
        A.put) and yes != no == pick(hasattr(vars(Tensor), "__setitem__"), "first", "second")),
    ("the labels have the shape {} and the logits {}. Numpy stretches both to {}, so", shaped(lambda: A.FAULTS[
        "labels_in_a_row"].function(lambda z, y: (y, z, z * y), *np.ones((2, 7, 1))), N=7)),
    ("Numpy's `{}` takes as many entries as the shape has room for, and `{}` drops all axes of length {}.", lambda one,
     other, n: close(reduced("first_entries", (4,)), getattr(np, one)(ROWS, (4,))) and close(reduced(
         "lengths_of_1_lost", (int(n), 2, 3), ROWS[None]), getattr(np, other)(ROWS[None]))),
    ("The slope of relu is {}, {} 0 as well.", lambda slope, side: slope_told("relu_slope_always_1", lambda x: (
        x * {"below": -1, "above": 1}[side]).relu(), f"-1 * {slope}", "0")),
    ("x * x keeps {} of its {} edges.", lambda kept, of: np.divide(WORDS[kept], WORDS[of]) == np.divide(*[slopes(
        lambda x: x * x, 3.0, fault=fault)[0] for fault in ("one_edge_kept", None)])),
    ("Chapter 10 has a program for which the {} of them is right.", lambda which: not changed(fault := list(A.FAULTS)[
        ["first", "second", "third"].index(which) - 3], A.bce_with_logits) and f'planted("{fault}")' in CHAPTERS[9]),
    ("keeps all axes but the {}.", lambda word: word == pick(np.ones((2, 3))[..., 0].shape == (2,), "last", "first")),
    ("an operand of shape {} hears all of", lambda text: close(reduced("added_axes_only", shape(text)), ROWS)),
    ("\"A {} in place of the {}.\"", lambda wrong, right: close(
        reduced("mean_of_copies", (3,)), getattr(ROWS, wrong)(axis=0)) and right == "sum"),
    ("The {} entries of the cotangent, and no", lambda word: close(
        reduced("first_entries", (3,)), ROWS[{"first": 0, "last": 1}[word]])),
    ("Axes of length {} are summed, and {} kept", lambda n, word: word == pick(
        reduced("lengths_of_1_lost", (int(n), 3)).ndim == 1, "not", "")),
    ("The {} operand of + is told {}.", partial(operand_told, "sum_sign", lambda u, v: u + v)),
    ("The {} operand of * is told {}.", partial(operand_told, "product_operand", lambda u, v: u * v)),
    ("The rule of a {} is that of a {}.", lambda rule, other: close(
        slopes(lambda u: getattr(u, rule)(), POSITIVE, fault="mean_without_n"),
        slopes(lambda u: getattr(u, other)(), POSITIVE))),
    ("The factor {} is left out.", lambda factor: slope_told(
        "sigmoid_without_slope", lambda x: x.sigmoid(), "1", factor, out=A.logistic(POSITIVE))),
    ("The slope of log is {}, not {}.", partial(
        slope_told, "log_of_the_result", lambda x: x.log(), out=np.log(POSITIVE))),
    ("good list, and {} for {}: the {} report erases", erased),
    ("operands come {} their results", lambda when: when == pick(
        list_of("forward_order")[0] == "x", "before", "after")),
    ("the list of `{}` is {}: there y is taken too {}. The last one, `{}`, has the list {}, y and then",
     lists_of_order),
    ("y passes on {} at first, and later {} all of its {}, so", lambda once, times, due: value(once) + {
        "twice": 2}[times] * value(due) == 234),
    ("it should come to {} than 85%", lambda word: word == pick("> 0.85" in code(A.adam_trains), "more", "less")),
    ("a square a of shape {}, a row of shape {} and a column of shape {}.", shaped(lambda: A.LEAVES)),
    ("All numbers are {} 0, where", lambda side: side == more(
        min(leaf.data.min() for leaf in A.LEAVES), 0, "above below")),
    ("Each word with two operands gets a {}, a {}, one {} twice, and a {} on either side.", lambda u, v, x, constant: (
        f"[({x}, {u}), ({v}, {x}), ({x}, {x}), ({constant}, {x}), ({x}, {constant})]" in code(A.cover))),
    ("with other uses of its operand {} and {} it, and with", used_by_cover),
    ("And x is used {} all the words, and {} them, so", used_by_cover),
    ("Every word, on an x that is used {} them and {} them.", used_by_cover),
    ("Words with {} operand are subtracted, so that cotangents {} 0", lambda n, side: side == more(
        slopes(lambda x: 1 - x, 1.0)[0], 0, "above below") and "for word in {}.values(): y = y - word(".format(
            {"one": "SINGLES", "two": "PAIRS"}[n]) in code(A.cover)),
    ("so it comes once more, for {}. And @ gets a vector, the {} line of x.", lambda again, line: (
        f"({again}).relu() + x @ x[{ {'first': 0, 'last': -1}[line]}]" in code(A.cover))),
    ("The result of `cover` is a matrix of shape {}. The check *{}* asks", lambda text, name: A.cover(
        *A.LEAVES).shape == shape(text) and "gradcheck(cover," in code(A.CHECKS[name])),
    ("The check *{}* sums it up first", lambda name: "gradcheck(sum_of_cover" in code(A.CHECKS[name])),
    ("sees wrong {}, and no wrong {}.", lambda *said: said == pick((says("shapes", "copies_not_summed"), says(
        "shapes", "sum_sign")) == ("caught", "passes"), ("shapes", "number"), None)),
    ("The check *{}* sees `{}`, and nothing else", lambda check, place: (row := generated("trial")["rules"])[0] == row[
        1 + list(A.CHECKS).index(check)] and place == A.FAULTS["copies_not_summed"].place),
    ("have the Tensor on the {}, as in y * log(p), where Python asks for `{}`.", lambda side, name: asks_for(name) and (
        side == pick(asks_for("__mul__"), "left", "right"))),
    ("The check *{}* cannot tell a matrix", lambda check: generated("trial")["rules"][
        1 + list(A.CHECKS).index(check)] == "1"),
    ("Only *{}* catches them", lambda check: [
        name for name, n in zip(A.CHECKS, generated("trial")["program"][1:]) if n == "0"] == [check]),
    ("The other three train on slopes that *{}* convicts", lambda check: {says(check, fault) for fault in (
        "mean_of_copies", "mean_without_n", "first_entries")} == {"caught"}),
    ("so the {} learn from one point of", lambda which: changed("first_entries") == {which}),
    ("are those of the {} point of the batch", lambda which: which == pick(
        close(reduced("first_entries", (1, 3)), ROWS[:1]), "first", "last")),
    ("The slopes should be {} the seed. An engine with {} for {}, which is to be convicted later, and not here, says "
     "{}. So", lambda often, wrong, right, says: [slopes(lambda x: x + x, 1.0, seed=3.0, fault=fault)[0] for fault in (
         None, "overwriting")] == [{"twice": 6}[often], {"the seed itself": 3}[says]] and erased(wrong, right, "last")),
    ("a tensor has its numbers in `.{}`.", lambda name: A.numbers_in(A.scalar(2.0)) == getattr(A.scalar(2.0), name)),
    ("its gradient is in `.{}`, where", lambda name: A.gradient(A.scalar(2.0)) == vars(A.scalar(2.0))[name]),
    ("the slope is {} after the first call, it should be {} after the second, and the rule reports what the second has "
     "added, {}. It may also be {} again", lambda one, two, added, again: float(again) == reported(
         one, again) and float(two) - float(one) == float(added) == reported(one, two)),
    ("gets two of the {} shape; a square with a {}, a {}, a {}, a single {} or a {}; one", lambda *said: (
        "{} shape,numbers,a {},a {},a {},an {},a {}".format(*said).split(",") == list(A.SHAPES))),
    ("Four programs try the pass itself: {}, a node at the end of several paths, a {} call,", lambda one, call: {
        one.replace("one word", "one"), f"a {call} call"} <= A.pass_programs(POSITIVE).keys()),
    ("`{}` is f with 2.0 on the {}, and `{}` is f with 2.0 for v, on the {}.", lambda *said: [eval(call, {
        "partial": partial, "f": A.PAIRS["u - v"]})(5.0) == {"left": -3.0, "right": 3.0}[side]
        for call, side in zip(said[::2], said[1::2])] == [True, True]),
    ("The {} of them has other uses of its operand, {} the word and {} it, and", lambda *said: said == pick(in_order(
        code(A.among_others), "y = x + x", "word(y)"), ("second", "before", "after"), None)),
    ("both sides of 0, unless it is the {}.", lambda word: [name for name in A.SINGLES if A.single_programs(
        name, None, POSITIVE)["around 0"][1][0].min() > 0] == [{"logarithm": "log", "exponential": "exp"}[word]]),
    ("read from its {}. The {} pattern that fits", lambda *said: said == pick("copies" in in_common(
        ("exp", "twice", "WRONG"), ("exp", "a row", "WRONG"))[0], ("top", "first"), None)),
    ("Since {} and {} take part", lambda *signs: [word for word in A.PAIRS if len(in_common(
        ("exp", "a row", "WRONG"), (word, "same shape", "WRONG"))) == 1] == [f"u {sign} v" for sign in signs]),
    ("The report is true if nothing is {} and something is {}.", true_if),
    ("printed in this order: {}; {}; {}; {}; and {}. import", lambda *said: in_order(code(A.Examination.__str__), *[
        next(mark for word, mark in REPORT.items() if word in part) for part in said])),
    ("The slip is the {} in `{}`: the {} report erases the others. With {} nothing", lambda sign, line, which, cure: (
        erased(sign, cure, which) and f"{line} for" in code(A.Scalar.backward)
        and line.replace(f" {sign} ", f" {cure} ") in code(A.with_sum))),
    ("Chapter {} convicted one liar", chapter("lying_tanh =")),
    ("In chapter {}'s example g has the rows 1 2 3 and 4 5 6", chapter("def unbroadcast")),
    ("the loop of chapter {}'s function `pass_on`", chapter("def pass_on")),
    ("`gradcheck` for the network at hand. Ours is chapter {}'s", chapter("class MLP")),
    ("*adjoint* is chapter {}'s identity", chapter("def adjoint_gaps")),
    ("the patched loss of chapter {}, since", chapter("def patched_bce")),
    ("As in chapter {}, both have been multiplied", chapter("def gradcheck")),
    ("by plain recursion along each path, as in chapter {}, and", chapter("def walk_every_path")),
    ("products have the Tensor on the {}, as in {}, where Python asks for `{}`.",
     lambda side, product, method: asked_of(product) == [(side, method)]),
]


@pytest.mark.parametrize("template, judge", CLAIMS, ids=[template[:60] for template, judge in CLAIMS])
def test_what_a_sentence_claims_is_so(template, judge):
    found = judge(*told(template, OWN))
    assert found is None or found


def test_a_displayed_sum_is_right():
    sums = re.findall(r"(?<![\w.])([\d(][\d .*/+()-]*[\d)]) = ([\d.]*\d)(?![\w(])", OWN)
    assert len(sums) >= 5 and all(
        agree(result, value(formula)) for formula, result in sums if formula.count("(") == formula.count(")"))


def test_the_pass_through_the_network_is_the_displayed_one():
    X, y = (array[::43] for array in A.spiral())
    model = A.MLP(*A.weights())
    arrays = dict(zip(("W1", "b1", "W2", "b2"), (p.data for p in model.params)))
    before = X @ arrays["W1"] + arrays["b1"]
    arrays |= {"X": X, "hidden": model.hidden(X).data, "before": before, "z": model(X).data}
    forward = block("# For a batch of N points the shapes", "# A hidden unit computes")
    shapes = [shape(text, N=7) for text in re.findall(r"\([\d, N]+\)", " ".join(forward))]
    assert shapes == [arrays[name].shape for name in "X X W1 b1 before hidden hidden W2 b2 z".split()]
    A.bce_with_logits(model(X), y).backward()
    slope, g = {name: p.grad for name, p in zip(("W1", "b1", "W2", "b2"), model.params)}, None
    names = {"p": A.logistic(arrays["z"]), "y": y, "N": 7, **arrays}
    rows = block("# In each row g is the cotangent", "# The points X are a constant")
    for row, shown in (re.fullmatch(r"(.*\S) +(\(.*\))", row).groups() for row in rows):
        if found := re.search(r"its (\w+) over the points to (\w+)", row):
            result = getattr(g, found[1])(axis=0, keepdims=True)
            assert close(result, slope[found[2]])
        elif found := re.search(r"where a unit is (\w+) 0, else (\d)", row):
            g = result = np.where({"above": before > 0, "below": before < 0}[found[1]], g, float(found[2]))
        else:
            formula, to = re.search(r"(?:hands|and) (.*) to (?:the )?(\w+)", row).groups()
            result = value(formula, times="@", g=g, **names)
            assert to not in slope or close(result, slope[to])
            g = g if to in slope else result
        assert result.shape == shape(shown, N=7)
    assert len(rows) == 7


def test_the_displayed_fault_is_the_one_in_the_table():
    lines = [line.strip() for line in inspect.getsource(A.FAULTS["product_operand"].function).splitlines()]
    assert [line.strip() for line in block("# By mistake the rule", "# The product itself")] == [
        line for line in lines if not line.startswith(("@", '"""'))]


def test_the_displayed_verdicts_are_those_of_such_checks():
    checks = {"the check finds": lambda: True, "the check says": lambda: False, "the program stops": lambda: 1 / 0}
    for line in block("# There are three verdicts", "def verdict("):
        said, what = re.split("  +", line)
        assert said == A.verdict(checks[" ".join(what.split()[:3])])


def test_the_displayed_program_finds_the_gradients_of_the_engine():
    engine, asked = type("Mine", (), {"g": 5.0}), []
    exec("\n".join(block("# examined by\n#\n#     def slope", "# And we have to find out")), {
        "Mine": engine, "examine": lambda make, slope: asked.extend([make, slope(make())]), "print": print})
    assert asked == [engine, 5.0]


def test_what_is_displayed_of_a_program_is_said_of_it():
    peer = A.Peer(Tensor, A.gradient, "with a seed", 1e-5, 1e-4)
    broken = {"forward": (lambda x: 1 / 0, peer), "backward": (lambda x: x * x, peer._replace(slope=lambda t: 1 / 0))}
    told_ = dict(re.split("  +", line) for line in block("# Five things can be said", "# A detail comes with it"))
    absent, raises = (re.search(r"(?:does not run|but not) (\w+)", told_[name])[1] for name in ("not there", "raises"))
    programs = {"not there": broken[absent], "raises": broken[raises], "ok": (lambda x: x * x, peer),
                "WRONG": (lambda x: x * x, peer._replace(slope=lambda t: t.grad + 1)),
                "not judged": (lambda x: x + 1e12, peer)}
    assert told_.keys() == programs.keys()
    assert all(A.examined(f, [np.asarray(1.5)], p, 1)[0] == name for name, (f, p) in programs.items())
    nan = peer._replace(slope=lambda t: np.full((), np.nan))
    shown = dict(re.split("   +", line) for line in block("# Where `gradcheck` says that no", "def judged("))
    assert list(shown.values()) == [A.judged(f, [np.asarray(1.5)], 0, p, 1)[0] for f, p in (
        (lambda x: x - x, peer), (lambda x: x - x, nan), programs["not judged"])]


def test_the_displayed_table_of_failures_is_the_one_in_the_program():
    looks = {"forward_order": "nodes pass on before they have heard", "copies_not_summed": "copies are not summed",
             "overwriting": "reports erase each other", "one_edge_kept": "one of two edges is lost",
             "breadth_first": "a node is taken too early or too often"}
    failing = {"one word after another": ["one after another"], "a row, or a number": ["a number"],
               "two paths, and twice": ["two paths", "twice"], "twice, and not two paths": ["twice"],
               "two paths alone": ["two paths"]}
    for line in block("#     what fails", "# The table below is this one")[2:]:
        what, like = re.split("   +", line)
        [first] = in_common(*[("exp", situation, "WRONG") for situation in failing[what]])
        assert looks[first.removeprefix("fails like ").split(":")[0]] == like


def test_the_displayed_lines_of_the_report_are_printed():
    shown = [line.removesuffix("...") for line in block("# These are lines of the report", "# In x * x at x = 1.5")]
    printed = [line for line in GOLDEN_LINES if line.startswith(tuple(shown))]
    assert len(printed) == len(shown) > 3 and all(map(str.startswith, printed, shown))
