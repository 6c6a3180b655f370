# %% [markdown]
r"""
# Anatomy of a gradient

Training a network means asking, for each of its numbers, how the loss would
change if that number were nudged. This file builds the machine that answers,
out of numpy, puts it on trial, and uses it to untangle two spirals with four
optimizers.

Nothing is asserted that is not measured: what you read is a program, and the
numbers below its cells are what it printed. Read it from top to bottom, run
it, break it.

The notation, each symbol with an example:

    x, y     arrays                         x of shape (3,), y = x + 1
    W, b     the parameters of a layer      x @ W + b
    N D H    points, inputs, hidden units   (N, D) @ (D, H) -> (N, H)
    f, L     a function, a loss             L = f(W) is one number
    g        a cotangent: the slope of L    g has the shape of y
             along each entry of y
    v        a tangent: how fast each       v has the shape of x
             entry of x is moving
    h        the size of a nudge            (f(x + h) - f(x)) / h
    lr       a learning rate                W <- W - lr g

And three ways to run it:

    python anatomy.py all               the whole story
    python anatomy.py nudge spiral      some chapters
    python anatomy.py all --out DIR     keep the pictures and the tables
"""

# %% tags=["fold"]
# /// script
# requires-python = ">=3.10"
# dependencies = ["numpy>=1.26", "matplotlib>=3.8"]
# ///
import argparse
import html
import io
import os
import re
import signal
import sys
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import prod
from pathlib import Path

import numpy as np

CHAPTERS = {
    "nudge": "a slope by trying: two evaluations for every number",
    "engine": "a Tensor that remembers what it was made from",
    "unbroadcast": "what is copied forward is summed backward",
    "rules": "the vocabulary, and a loss that survives",
    "gradcheck": "the trial: every slope against a nudge",
    "optimizers": "one formula, four optimizers",
    "spiral": "two spirals, untangled",
}
NOTEBOOK = hasattr(sys, "ps1") or "ipykernel" in sys.modules


def command_line(arguments):
    """The chapters to run and the folder for pictures and tables, or None."""
    parser = argparse.ArgumentParser(
        prog="anatomy.py", usage="python anatomy.py NAME... [--out DIR]",
        description="Builds a gradient engine, tries it, trains with it.",
        epilog="\n".join(f"  {k:12} {v}" for k, v in CHAPTERS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="'all', or chapters from the list below")
    parser.add_argument("--out", metavar="DIR", type=Path,
                        help="save pictures (SVG) and tables (Markdown) here")
    asked = parser.parse_args(arguments)
    unknown = [k for k in asked.names if k not in {"all", *CHAPTERS}]
    if unknown:
        parser.exit(2, f"anatomy.py: there is no chapter {unknown[0]!r}; "
                       f"there are all, {', '.join(CHAPTERS)}\n")
    if not asked.names:
        parser.print_help()
    try:
        if asked.out:
            asked.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.exit(2, f"anatomy.py: --out {asked.out}: {error.strerror}\n")
    return CHAPTERS if "all" in asked.names else asked.names, asked.out


ASKED, OUT, told = CHAPTERS, None, set()
if __name__ == "__main__" and not NOTEBOOK:
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    ASKED, OUT = command_line(sys.argv[1:])


def wanted(chapter):
    """Is this chapter asked for? A notebook asks for all of them."""
    if chapter in ASKED and chapter not in told and not NOTEBOOK:
        told.add(chapter)
        print(f"\n--- {chapter}: {CHAPTERS[chapter]} ---\n")
    return chapter in ASKED


def write(name, text):
    """Write a whole file into the folder --out, or none."""
    part = OUT / f"{name}.{os.getpid()}"
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(OUT / name)
    except OSError as error:
        sys.exit(f"anatomy.py: --out {OUT}: {error.strerror}")
    finally:
        part.unlink(missing_ok=True)


def table(name, head, *rows):
    """Print rows under a head, in columns, and keep them if --out is given."""
    lines = [[str(cell) for cell in row] for row in (head, *rows)]
    wide = [max(map(len, column)) for column in zip(*lines)]
    for first, *rest in lines:
        cells = [first.ljust(wide[0]), *map(str.rjust, rest, wide[1:])]
        print("  ".join(cells).rstrip())
    if OUT:
        lines.insert(1, ["---"] + ["---:"] * (len(head) - 1))
        write(f"{name}.md", "".join(f"| {' | '.join(x)} |\n" for x in lines))


BLUE, ORANGE, GREEN, PURPLE = "#2b7bba", "#d9730d", "#2a9d6b", "#b0569d"
COLORS = {"SGD": BLUE, "Momentum": ORANGE, "RMSProp": GREEN, "Adam": PURPLE}
LINES = {"SGD": ":", "Momentum": "--", "RMSProp": "-.", "Adam": "-"}
INK = "#010203"        # replaced by the colour of the text around the picture
STYLE = {"font.size": 9, "svg.fonttype": "path", "axes.spines.top": False,
         "axes.spines.right": False, "lines.linewidth": 1.6, **dict.fromkeys(
             ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color",
              "ytick.color", "lines.color", "patch.edgecolor"), INK)}
DARK = ("<style>svg{color:#222}@media(prefers-color-scheme:dark)"
        "{svg{color:#ddd}}</style>")


def picture(name, alt, draw, *data, size=(6.4, 3.2), grid=(1, 1)):
    """Draw data where a picture can be seen: in a notebook or under --out."""
    if not (OUT or "IPython" in sys.modules):
        return
    try:
        from matplotlib import style
        from matplotlib.figure import Figure
    except ImportError:
        return print(f"[no matplotlib, so no picture: {alt}]")
    file = io.StringIO()
    with style.context(["default", {**STYLE, "svg.hashsalt": name}]):
        figure = Figure(size, layout="constrained")
        draw(figure.subplots(*grid), *data)
        figure.savefig(file, format="svg", transparent=True, metadata=dict.
                       fromkeys(("Creator", "Date", "Format", "Type")))
    svg = re.sub("(?s)<!--.*?-->|<style.*?</style>|<metadata.*?</metadata>",
                 "", file.getvalue()[file.getvalue().index("<svg"):])
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="'
                      f'{html.escape(alt)}" stroke-linejoin="round" ', 1)
    svg = svg.replace(INK, "currentColor")
    if OUT:
        write(f"{name}.svg", svg.replace(">", f">{DARK}", 1))
    else:
        from IPython.display import HTML, display
        display(HTML(svg))


def progress(steps, label):
    """The steps one by one, counted on stderr if someone is watching there."""
    watched = sys.stderr is not None and sys.stderr.isatty()
    for i, step in enumerate(steps):
        if watched and i % 100 == 0:
            sys.stderr.write(f"\r{label}: {i} of {len(steps)}   ")
        yield step
    if watched:
        sys.stderr.write("\r" + " " * (len(label) + 20) + "\r")


# %% [markdown]
# The folded cell above is plumbing, and the story needs four names from it.
# `wanted(name)` says whether a chapter was asked for; `table(...)` prints
# columns; `picture(...)` shows what a drawing function draws; `progress(...)`
# counts for the impatient. A cell under `if __name__ == "__main__"` is a
# demonstration: it runs in a script and in a notebook, not on import.

# %% [markdown]
# ## 1. A slope by trying
#
# How does the value of a function change when one of its inputs moves a
# little? We can move it and look. Looking both ways is better than one way,
# because the two errors, equal and opposite at first order, cancel:
#
#     df/dx = (f(x + h) - f(x - h)) / 2h,    nearly
#
# An array has a slope for each of its numbers, so each is nudged in turn:

# %%
def numerical_grad(f, x, h=1e-5):
    """The slope of the number f(x) along each entry of x, by central nudges.

    x: an array or a number. Returns an array of x's shape. f is called twice
    for each entry, with an array of x's shape. A ValueError if h is not > 0.
    """
    if not h > 0:
        raise ValueError(f"the nudge h must be positive, not {h}")
    x = np.array(x, dtype=float)
    slopes = np.empty(x.shape)
    for i in np.ndindex(x.shape):
        kept = x[i]
        x[i] = kept + h
        above = float(f(x))
        x[i] = kept - h
        slopes[i] = (above - float(f(x))) / (2 * h)
        x[i] = kept
    return slopes


# %% [markdown]
# The slope of the sum of the cubes of x is 3 x^2 along each entry, and
# nudging finds it,

# %%
if __name__ == "__main__" and wanted("nudge"):
    x = np.array([1.0, 2.0, 3.0])
    nudged = numerical_grad(lambda x: np.sum(x**3), x)
    print("nudged", nudged.round(6), "   exact", 3 * x**2)
    assert np.allclose(nudged, 3 * x**2, rtol=1e-9)

# %% [markdown]
# to nine digits, and no more. Two errors pull in opposite directions. The
# curve of f bends within the step: that error grows with h, like h for a
# one-sided nudge, like h^2 for a central one. And a computer's numbers have
# 16 digits, so the difference of two nearly equal values keeps few of them:
# that error grows like 1/h. The best h lies where they meet. We measure it on
#
#     f(x) = exp(x) / sqrt(sin(x)^3 + cos(x)^3)
#
# and not on x^2, whose central difference has no bending error at all. Squire
# and Trapp ("Using complex variables to estimate derivatives of real
# functions", SIAM Review 40, 1998) chose this f to show a third way. Step in
# the imaginary direction and read off f(x + ih).imag / h: no difference is
# taken, so nothing cancels, and h can be as small as we like.

# %%
def bent(x):
    return np.exp(x) / np.sqrt(np.sin(x)**3 + np.cos(x)**3)


def bent_slope(x):
    s, c = np.sin(x), np.cos(x)
    return bent(x) * (1 - 1.5 * (s*s*c - c*c*s) / (s**3 + c**3))


def nudge_errors(steps):
    """Worst relative error of three nudges over 101 points, for each step."""
    x = np.linspace(0.2, 1.4, 101)
    ways = {
        "forward": lambda h: (bent(x + h) - bent(x)) / h,
        "central": lambda h: (bent(x + h) - bent(x - h)) / (2 * h),
        "complex": lambda h: bent(x + 1j * h).imag / h,
    }
    return {name: np.array([abs(way(h) / bent_slope(x) - 1).max()
                            for h in steps]) for name, way in ways.items()}


# %% tags=["fold"]
def draw_errors(ax, steps, errors):
    ax.loglog(steps, errors["forward"], ":", color=ORANGE)
    ax.loglog(steps, errors["central"], "-", color=BLUE)
    ax.loglog(steps, errors["complex"], "--", color=GREEN)
    ax.set(xlabel="step h", ylabel="worst relative error", ylim=(1e-17, 30),
           xticks=10.0 ** np.arange(-16, 0, 3))
    ax.text(3e-4, 3e-3, "forward", color=ORANGE, ha="right")
    ax.text(2e-3, 2e-8, "central", color=BLUE)
    ax.text(1e-12, 2e-15, "complex step", color=GREEN)
    ax.text(2e-14, 2e-3, "cancellation,\nslope -1", ha="right", va="top")
    ax.text(0.1, 2e-6, "bending,\nslope 2", ha="left")


# %%
if __name__ == "__main__" and wanted("nudge"):
    steps = 10.0 ** -np.arange(1, 17)
    errors = nudge_errors(steps)
    best = {way: steps[e.argmin()] for way, e in errors.items()}
    table("nudge", ("way", "best h", "error below"), *(
        (way, f"{best[way]:.0e}" if way != "complex" else "any small",
         f"1e{int(np.ceil(np.log10(e.min())))}")
        for way, e in errors.items()))
    assert best["central"] == 1e-5 and best["forward"] == 1e-8
    assert errors["complex"][steps <= 1e-8].max() < 1e-15

    digits = np.log10(errors["central"])
    bending = np.polyfit([-1, -2, -3, -4], digits[:4], 1)[0]
    cancelling = np.polyfit(np.log10(steps[6:14]), digits[6:14], 1)[0]
    print(f"\ncentral: error grows like h^{bending:.0f} above the best h, "
          f"like h^{cancelling:.0f} below it")
    assert abs(bending - 2) < 0.05 and abs(cancelling + 1) < 0.15
    picture("nudge", "Worst relative error against step size, both on "
            "logarithmic axes. The central nudge makes a V with its lowest "
            "point near h = 1e-5; the forward nudge a shallower V near 1e-8; "
            "the complex step falls to 1e-16 and stays there.",
            draw_errors, steps, errors)

# %% [markdown]
# A central nudge is right to about nine digits, near h = 1e-5, and this is
# what we judge everything by from now on. What it cannot do is scale. It pays
# two evaluations for each number, and the small network at the end of this
# file has 2*64 + 64 + 64 + 1 = 257 of them,

# %%
if __name__ == "__main__" and wanted("nudge"):
    calls = count()
    numerical_grad(lambda w: next(calls) * 0.0, np.zeros(257))
    bill = next(calls)
    print(f"\n257 numbers: {bill} evaluations for one gradient")
    assert bill == 514

# %% [markdown]
# so one step of training would cost 514 evaluations of the whole network, and
# 2000 steps over a million. Yet each evaluation repeats almost all of the
# arithmetic of the one before. If the numbers remembered how they were made,
# one pass backward over that memory would give all 257 slopes at once. But
# numbers forget.

# %% [markdown]
# ## 2. A tensor that remembers
#
# A program makes each value from others, say y from a and b by y = a * b. Let
# L be the one number at the end, and suppose we know g, the slope of L along
# y. Then the slopes along a and b follow from the product alone, whatever
# came before it and whatever comes after:
#
#     y = a * b        g  ->  g * b   for a
#                      g  ->  g * a   for b
#
# We call g the *cotangent* of y. A *rule* turns the cotangent of a result
# into that of one operand; the field calls it a vector-Jacobian product, VJP.
# If every value remembers its operands with a rule for each, the rules of a
# whole program chain up by themselves. An operand with its rule is an *edge*;
# a value that nobody computed has no edges, and is a *leaf*. Leaves are what
# we want slopes for, and only they get a `.grad`.
#
# Numbers and arrays may take part as constants. They are not tracked:

# %%
def value(x):
    """The number or float64 array in x, a Tensor, a number or an array."""
    if isinstance(x, Tensor):
        return x.data
    if type(x) in (float, int):
        return x
    array = np.asarray(x)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"real numbers are wanted here, not {x!r:.60}")
    return array.astype(float, copy=False)


# %% [markdown]
# `backward` is bookkeeping. A ledger holds the sum of what has been reported
# to each node so far, and a node may pass its sum on only when every use of
# it has reported; before that it would pass on half a sum. Which node is
# ready? Every operand is older than what was made from it. So the newest node
# in the ledger has no use left that could still report, and a queue that
# hands out the newest first settles every node exactly once.
#
# One line looks ahead. A report whose shape is not its operand's is taken
# through `unbroadcast`, the subject of chapter 3. In this chapter all shapes
# agree and that line never runs.

# %%
class Tensor:
    """A float64 array that remembers what it was made from.

    Tensor(data) copies data and is a leaf. `.data` and `.shape` are numpy's;
    `.grad` is None until `backward` arrives, then an array of data's shape.
    A TypeError for what is not real numbers, a ValueError for ragged lists.
    """
    __slots__ = "data", "edges", "born", "grad", "__weakref__"
    __array_ufunc__ = None            # in array * tensor the tensor is asked
    births = count()

    def __init__(self, data, *edges):
        self.data = data if edges else np.array(value(data), dtype=float)
        self.edges = edges                      # of pairs (operand, rule)
        self.born = next(Tensor.births)         # larger is younger
        self.grad = None

    def backward(self, seed=None):
        """Add to the `.grad` of every leaf the slope of sum(seed * self).

        seed: an array of self's shape; may be left out if self is one number.
        A ValueError if it is left out otherwise, or has another shape.
        """
        if seed is None and self.data.size != 1:
            raise ValueError("backward from one number, or with a seed of "
                             f"shape {self.shape}: which slope is asked for?")
        seed = np.ones(self.shape) if seed is None else np.array(value(seed))
        if seed.shape != self.shape:
            raise ValueError(f"the seed has shape {seed.shape}, not "
                             f"{self.shape} like the tensor")
        ledger, queue = {self: seed[()]}, []
        if self.edges:
            queue = [(-self.born, self)]
        while queue:
            node = heappop(queue)[1]
            g = ledger.pop(node)
            for operand, rule in node.edges:
                if isinstance(operand, Tensor):
                    part = rule(g)
                    if part.shape != operand.data.shape:
                        part = unbroadcast(part, operand.data.shape)
                    if operand in ledger:
                        ledger[operand] = ledger[operand] + part
                    else:
                        ledger[operand] = part
                        if operand.edges:
                            heappush(queue, (-operand.born, operand))
        for leaf, g in ledger.items():          # only leaves are left
            leaf.grad = np.array(g if leaf.grad is None else leaf.grad + g)

    def __add__(a, b):
        return Tensor(a.data + value(b), (a, lambda g: g), (b, lambda g: g))

    def __sub__(a, b):
        return Tensor(a.data - value(b), (a, lambda g: g), (b, lambda g: -g))

    def __rsub__(a, b):
        return Tensor(value(b) - a.data, (a, lambda g: -g))

    def __neg__(a):
        return Tensor(-a.data, (a, lambda g: -g))

    def __mul__(a, b):
        x, y = a.data, value(b)
        return Tensor(x * y, (a, lambda g: g * y), (b, lambda g: g * x))

    __radd__, __rmul__ = __add__, __mul__
    shape = property(lambda self: self.data.shape)

    def __repr__(self):
        return f"Tensor({self.data})"


# %% [markdown]
# That is the whole engine; later chapters only add words to its vocabulary.
# In x * x the operand is used twice, and both uses report 3. They add up, and
# the nudge agrees,

# %%
if __name__ == "__main__" and wanted("engine"):
    x = Tensor(3.0)
    (x * x).backward()
    print(f"x * x at 3: {x.grad:.0f}, nudged",
          f"{numerical_grad(lambda x: x * x, 3.0):.6f}")
    assert x.grad == 6 and abs(numerical_grad(lambda x: x * x, 3.0) - 6) < 1e-9

# %% [markdown]
# as they do wherever paths part and meet again. Here a and b both reach L
# through their sum and through their product. To look inside, we settle the
# same ledger with the textbook's order: depth first, each node listed after
# its operands, then read backward,

# %%
def post_order(root):
    """The nodes that root is made of, each after its operands; root last."""
    order, seen, stack = [], set(), [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(operand, False) for operand, _ in node.edges
                      if isinstance(operand, Tensor)]
    return order


def settle(order, seed=1.0):
    """The cotangent of every node if each passes on its sum in this order."""
    ledger = {node: 0.0 for node in order}
    ledger[order[0]] = seed
    for node in order:
        for operand, rule in node.edges:
            if isinstance(operand, Tensor):
                ledger[operand] = ledger[operand] + rule(ledger[node])
    return ledger


def diamond():
    """L = (a + b)(ab) at a = 2, b = 3, as a dict of its five nodes."""
    a, b = Tensor(2.0), Tensor(3.0)
    c, d = a + b, a * b
    return {"a": a, "b": b, "c = a + b": c, "d = a b": d, "L = c d": c * d}


# %% tags=["fold"]
def draw_graph(ax, nodes, cotangents):
    ax.set(xlim=(-0.6, 4.7), ylim=(-0.75, 1.6))
    ax.axis("off")
    spots = [(0, 1), (0, 0), (2, 1), (2, 0), (4, 0.5)]
    places = dict(zip(nodes.values(), spots))
    for name, node in nodes.items():
        x, y = places[node]
        for operand, _ in node.edges:
            ax.annotate("", (x - 0.1, y), places[operand], arrowprops=dict(
                arrowstyle="->", color=INK, alpha=0.5, shrinkA=28, shrinkB=26))
        ax.text(x, y + 0.2, name, ha="center", weight="bold")
        ax.text(x, y, f"{node.data:.0f}", ha="center", va="center", color=BLUE)
        ax.text(x, y - 0.3, f"{cotangents[node]:.0f}", ha="center",
                color=ORANGE)
    ax.text(1, -0.7, "values, forward", color=BLUE, ha="center")
    ax.text(3, -0.7, "cotangents, backward", color=ORANGE, ha="center")


# %%
if __name__ == "__main__" and wanted("engine"):
    nodes = diamond()
    a, b, c, d, L = nodes.values()
    L.backward()
    cotangents = settle(post_order(L)[::-1])
    table("engine", ("node", "value", "cotangent"), *(
        (k, f"{t.data:.0f}", f"{cotangents[t]:.0f}")
        for k, t in nodes.items()))
    assert a.grad == cotangents[a] == 6 * 1 + 5 * 3 == 21
    assert b.grad == cotangents[b] == 6 * 1 + 5 * 2 == 16
    assert c.grad is None and d.grad is None
    picture("engine", "The graph of L = c d with c = a + b and d = a b: "
            "values 2, 3, 5, 6, 30 run forward; cotangents 1, 6, 5, 21, 16 "
            "run backward.",
            draw_graph, nodes, cotangents)

# %% [markdown]
# with the same result, since both orders have every use before its operand.
# The textbook writes that search as a function that calls itself for each
# operand, and Python stops such a function when it is as deep as its
# recursion limit, 1000 by default. Deep networks and long sequences get
# there. `post_order` keeps its own stack, and `backward` a queue, and neither
# has a limit,

# %%
def recursive_order(node, seen, order):
    """The textbook's post_order."""
    if node not in seen:
        seen.add(node)
        for operand, _ in node.edges:
            if isinstance(operand, Tensor):
                recursive_order(operand, seen, order)
        order.append(node)
    return order


def survives(order, length):
    """Does this way of ordering survive a chain of so many additions?"""
    y = Tensor(0.0)
    for _ in range(length):
        y = y + 1.0
    try:
        return len(order(y)) == length + 1
    except RecursionError:
        return False


# %%
if __name__ == "__main__" and wanted("engine"):
    def textbook(node):
        return recursive_order(node, set(), [])

    limit = sys.getrecursionlimit()
    print()
    table("depth", ("survives a chain of", "half the limit", "the limit"), *(
        (name, survives(order, limit // 2), survives(order, limit))
        for name, order in (("recursion", textbook), ("stack", post_order))))
    assert survives(textbook, limit // 2) and not survives(textbook, limit)
    assert survives(post_order, 20 * limit)
    x = y = Tensor(1.0)
    for _ in range(20 * limit):
        y = y + x
    y.backward()
    assert x.grad == 20 * limit + 1

# %% [markdown]
# and each of the x added in the last lines reported to the same leaf.
#
# Two sums live here, and they are not the same. Within a pass the *uses* of a
# node add up: that is the chain rule. Between passes the *calls* of
# `backward` add up in the leaves: that is a convention, PyTorch's, handy for
# summing the gradients of several batches, and the reason why training loops
# clear `.grad`. Nothing else survives a pass, so a second call doubles the
# leaf exactly, however deep the graph, and two losses can share a trunk,

# %%
if __name__ == "__main__" and wanted("engine"):
    for depth in range(1, 7):
        x = y = Tensor(1.1)
        for _ in range(depth):
            y = y * y
        y.backward()
        once = x.grad
        y.backward()
        assert x.grad == 2 * once

    x = Tensor(3.0)
    trunk = x * x
    (trunk + trunk).backward()
    (trunk * trunk).backward()
    print(f"\n2x^2 and x^4 at 3, one trunk: {x.grad:.0f} = 12 + 108")
    assert x.grad == 4 * 3 + 4 * 3**3

# %% [markdown]
# A last question. If the output is a vector, which slope is *the* slope? For
# n outputs and m inputs there are n * m of them, the Jacobian, and `backward`
# never builds it. It answers one question, chosen by a seed: how does
# sum(seed * output) move? The seed e0 asks for the first output alone, e1 for
# the second, and ones for their sum. The answer is linear in the question,

# %%
def three_seeds():
    """Gradients of y = a * b + a, two entries each, for seeds e0, e1, ones."""
    a, b = Tensor([2.0, 5.0]), Tensor([3.0, 7.0])
    y = a * b + a
    answers = {}
    for name, seed in ("e0", [1, 0]), ("e1", [0, 1]), ("ones", [1, 1]):
        a.grad = b.grad = None
        y.backward(seed)
        answers[name] = a.grad, b.grad
    return answers


# %%
if __name__ == "__main__" and wanted("engine"):
    answers = three_seeds()
    print()
    table("seeds", ("seed", "for a", "for b"), *(
        (name, *pair) for name, pair in answers.items()))
    for e0, e1, ones in zip(*answers.values()):
        assert np.array_equal(e0 + e1, ones)
    try:
        (Tensor([1.0, 2.0]) * 2.0).backward()
    except ValueError as refusal:
        print(f"\nno seed: {refusal}")
    else:
        raise AssertionError("a vector output without a seed was accepted")

# %% [markdown]
# and without a seed a vector output is refused, since there is no question.
#
# So one pass backward gives the slopes of one number along everything it was
# made from, for the price of one visit to each node. All shapes agreed so
# far. But `x * 2.0` already multiplied an array by a number, and numpy will
# happily add a row to a matrix. What is the cotangent of a row that was
# copied?

# %% [markdown]
# ## 3. What is copied comes back summed
#
# A gradient has the shape of the thing it belongs to. That hides a debt. In
# `X + b` numpy copies a b of shape (3,) down both rows of an X of shape
# (2, 3), and the cotangent that comes back has shape (2, 3). An entry of b was
# used twice, so its slope is the sum of two slopes:
#
#     forward     (3,)  -- copy -->  (2, 3)
#     backward    (3,)  <-- sum  --  (2, 3)
#
# Numpy stretches an array in two ways: it adds axes in front until the number
# of axes agrees, and it repeats along axes of length 1. Both are undone by a
# sum, and the axis of length 1 is kept:

# %%
def unbroadcast(grad, shape):
    """Sum grad over what numpy stretched to take an array of shape to it.

    grad: an array; a complex one keeps its real part, since what it belongs
    to is real. Returns an array of that shape. A ValueError if broadcasting
    cannot have led from shape to grad's shape.
    """
    grad = np.asarray(grad)
    added = grad.ndim - len(shape)
    if added < 0 or any(n not in (1, m)
                        for n, m in zip(shape, grad.shape[added:])):
        raise ValueError(f"numpy does not broadcast {tuple(shape)} to "
                         f"{grad.shape}")
    grad = grad.sum(axis=tuple(range(added)))
    stretched = tuple(i for i, n in enumerate(shape) if n < grad.shape[i])
    return grad.sum(axis=stretched, keepdims=True).real


# %% [markdown]
# The two stages, one state to a line. Stopping after the first is asking for
# the shape that the trailing axes have, so the function can show its own
# stages:

# %%
def stages(grad, shape):
    """What unbroadcast makes of grad, as rows (stage, shape, values)."""
    first = unbroadcast(grad, grad.shape[grad.ndim - len(shape):])
    last = unbroadcast(first, shape)
    return [(stage, str(g.shape), str(g).replace("\n", "")) for stage, g in (
        ("arrives", grad), ("added axes summed", first),
        ("stretched axes summed", last))]


# %%
if __name__ == "__main__" and wanted("unbroadcast"):
    for title, grad, shape in (
            ("() was copied to (3,)", np.ones(3), ()),
            ("(3,) was copied to (2, 3)", np.ones((2, 3)), (3,)),
            ("(1, 3) was copied to (2, 3)", np.ones((2, 3)), (1, 3))):
        print(title)
        table(f"stages{len(shape)}", ("", "shape", "cotangent"),
              *stages(grad, shape))
        print()
    assert unbroadcast(np.ones(3), ()).shape == ()
    assert unbroadcast(np.ones(3), ()) == 3.0
    assert (unbroadcast(np.ones((2, 3)), (3,)) == [2, 2, 2]).all()
    assert (unbroadcast(np.ones((2, 3)), (1, 3)) == [[2, 2, 2]]).all()

    row, X = Tensor([[10.0, 20.0, 30.0]]), np.arange(6.0).reshape(2, 3)
    (X + row).backward([[1, 2, 3], [4, 5, 6]])
    print("X + row under the seed [[1 2 3] [4 5 6]]:", row.grad)
    assert row.grad.shape == (1, 3) and (row.grad == [[5, 7, 9]]).all()

# %% [markdown]
# In the last table axis 0 was repeated and axis 1 was not: the sum runs over
# axis 0 only, and `keepdims` leaves its length at 1.
#
# Is a sum what the mathematics says, or only what repairs the shape? A mean
# would repair it too. Broadcasting is a linear map: written as a matrix B, it
# has a row for each entry of the result, with a single 1 in the column of the
# entry it copies. If y = B v then L moves by <g, B v> = <B' g, v>, so the
# cotangent of v is B' g, with B' the transpose. We build B in full, and ask,

# %%
def copy_matrix(shape, stretched):
    """Broadcasting from shape to stretched as a matrix of zeros and ones."""
    units = np.eye(int(np.prod(shape)))
    return np.stack([np.broadcast_to(e.reshape(shape), stretched).ravel()
                     for e in units], axis=1)


def broadcast_pairs(most=3):
    """All (shape, stretched) for two operands, up to 3 axes of 1 to most."""
    sizes = range(1, most + 1)
    shapes = [s for k in range(4) for s in np.ndindex((most,) * k)]
    shapes = [tuple(sizes[i] for i in s) for s in shapes]
    pairs = []
    for one in shapes:
        for other in shapes:
            try:
                pairs.append((one, np.broadcast_shapes(one, other)))
            except ValueError:
                continue
    return pairs


def adjoint_gaps(reduce=unbroadcast):
    """|<g, B v> - <reduce(g), v>| relative to its terms, for all pairs."""
    rng, gaps = np.random.default_rng(0), []
    for shape, stretched in broadcast_pairs():
        v, g = rng.standard_normal(shape), rng.standard_normal(stretched)
        terms = g * np.broadcast_to(v, stretched)
        gap = abs(np.sum(terms) - np.sum(reduce(g, shape) * v))
        gaps.append(gap / np.sum(abs(terms)))
    return np.array(gaps)


# %%
if __name__ == "__main__" and wanted("unbroadcast"):
    B = copy_matrix((3,), (2, 3))
    g = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    print("\nB, from (3,) to (2, 3):", *B.astype(int), sep="\n  ")
    print("B' g =", B.T @ g.ravel(), "  unbroadcast:", unbroadcast(g, (3,)))
    assert (B.T @ g.ravel() == unbroadcast(g, (3,))).all()

    pairs, gaps = broadcast_pairs(), adjoint_gaps()
    real = sum(shape != stretched for shape, stretched in pairs)
    print(f"\n{len(pairs)} pairs of shapes, {real} of them stretched: "
          "every gap below 1e-14")
    assert len(pairs) == 940 and real == 610 and gaps.max() < 1e-14

# %% [markdown]
# for every ordered pair of shapes that numpy will broadcast, with up to three
# axes of length 1, 2 or 3. Those 940 pairs hold every combination of added,
# stretched and untouched axes. A mean or a first copy would have the right
# shape and fail the identity, and we will see both train a network.
#
# The same B read in the two directions gives the two modes of automatic
# differentiation. Forward mode, the JVP, sends a tangent v along with the
# value, and the tangent is broadcast: B v. Reverse mode sends a cotangent
# back, and it is summed: B' g. Summing is itself a linear map, all of whose
# entries go to one place; its transpose is a broadcast. Each is the other's
# backward pass:

# %% tags=["fold"]
def draw_copies(axes, b, g):
    for ax, top, rows, title, tone, arrow in zip(
            axes, (b, unbroadcast(g, b.shape)), (b + 0 * g, g),
            ("forward: each entry copied", "backward: its slopes summed"),
            (BLUE, ORANGE), ("->", "<-")):
        ax.set(xlim=(-0.5, 2.5), ylim=(-0.1, 2.6), title=title)
        ax.axis("off")
        for (i, j), number in np.ndenumerate(rows):
            x = j + 0.44 * i - 0.22
            ax.text(j, 2.1, f"{top[j]:.0f}", ha="center", color=tone)
            ax.text(x, 0.6, f"{number:.0f}", ha="center", color=tone)
            ax.text(x, 0.1, f"row {i}", ha="center", size=7)
            ax.annotate("", (x, 0.95), (j, 2.0), arrowprops=dict(
                arrowstyle=arrow, color=tone))


# %%
if __name__ == "__main__" and wanted("unbroadcast"):
    v = np.array([1.0, 0.0, -1.0])
    print(f"\n<g, B v> = {np.sum(g * (np.zeros((2, 3)) + v)):.0f}"
          f"   <B' g, v> = {unbroadcast(g, (3,)) @ v:.0f}")
    assert np.sum(g * (np.zeros((2, 3)) + v)) == unbroadcast(g, (3,)) @ v == -4
    print("complex [1+2j, 3-1j] for a real number:",
          unbroadcast([1 + 2j, 3 - 1j], ()))
    assert unbroadcast([1 + 2j, 3 - 1j], ()) == 4.0
    picture("unbroadcast", "Two panels. Forward, the row 10 20 30 is copied "
            "into two rows. Backward, the rows 1 2 3 and 4 5 6 are summed "
            "into 5 7 9.", draw_copies, np.array([10.0, 20.0, 30.0]), g,
            size=(6.4, 2.4), grid=(1, 2))

# %% [markdown]
# (A cotangent can be complex where a program passes through complex numbers.
# A real operand only moves along the real axis, so the real part is its own.)
#
# Two sums again, and they are not one. The ledger adds over *edges*: several
# uses of one node. `unbroadcast` adds inside *one* edge: several copies made
# by a single use. The first belongs to the engine, whatever the operation. The
# second needs the operand's shape, which only the forward pass knew.
#
# > **Three homes.** HIPS autograd calls its `unbroadcast` in every rule
# > (`autograd/numpy/numpy_vjps.py`): the rules are exact, and each of them
# > mentions shapes. PyTorch does it in the engine, as here
# > (`reduce_grad` in `torch/csrc/autograd/input_metadata.cpp`): the rules stay
# > clean, and a rule by itself may return the wrong shape. JAX makes
# > broadcasting an explicit operation with a transpose of its own
# > (`_broadcast_in_dim_transpose_rule` in `jax/_src/lax/lax.py`): nothing is
# > hidden, and the program grows by an operation that nobody wrote.
#
# With shapes settled once, a rule of calculus is one short expression. We
# have three of them, for +, - and *. A network wants a dozen.

# %% [markdown]
# ## 4. The vocabulary, and a loss that survives
#
# A new word for the engine is its value and a rule for each operand. Where a
# function acts on each entry by itself, the rule multiplies the cotangent by
# the slope at that entry, which is often cheapest to say with the result y:

# %%
def elementwise(function, slope):
    """A method with value y = function(x) and rule g -> g * slope(x, y)."""
    def method(self):
        x = self.data
        y = function(x)
        return Tensor(y, (self, lambda g: g * slope(x, y)))
    return method


def softplus(x):
    """log(1 + exp(x)), without overflow for any x."""
    return np.logaddexp(0.0, x)


def logistic(x):
    """1 / (1 + exp(-x)), without overflow for any x."""
    return np.exp(-softplus(-x))


def positive(x):
    return np.maximum(x, 0.0)


#                            y of x    slope of y along x
Tensor.exp     = elementwise(np.exp,   lambda x, y: y)
Tensor.log     = elementwise(np.log,   lambda x, y: 1 / x)
Tensor.tanh    = elementwise(np.tanh,  lambda x, y: 1 - y * y)
Tensor.relu    = elementwise(positive, lambda x, y: np.sign(y))
Tensor.sigmoid = elementwise(logistic, lambda x, y: y * (1 - y))

# %% [markdown]
# Two operands, two rules. In the power, exponent 0 and base 0 are put right:
# x^0 has slope 0 at 0, not 0 times infinity.

# %%
def divide(a, b):
    x, y = value(a), value(b)
    z = x / y
    return Tensor(z, (a, lambda g: g / y), (b, lambda g: -g * z / y))


def power(a, b):
    x, y = value(a), value(b)
    z = x ** y
    return Tensor(z,
                  (a, lambda g: g * y * x ** np.where(y == 0, 1.0, y - 1.0)),
                  (b, lambda g: g * z * np.log(np.where(x == 0, 1.0, x))))


# %% [markdown]
# The transposes in the rule of the matrix product need no matching of shapes
# by eye. Write one entry, and ask where X[i,k] is used: in Z[i,j] for every j,
# each time with the factor W[k,j]:
#
#     Z[i,j] = sum over k of X[i,k] W[k,j]
#     slope along X[i,k] = sum over j of g[i,j] W[k,j]  =  (g W')[i,k]
#     slope along W[k,j] = sum over i of X[i,k] g[i,j]  =  (X' g)[k,j]
#
# Numpy's product also takes stacks of matrices, whose stretched axes are
# `unbroadcast`'s business, and single vectors: on the left a vector is a row,
# on the right a column, and the axis that makes it one is dropped again.

# %%
def matmul(a, b):
    x, y = value(a), value(b)
    if np.ndim(y) == 1:
        return matmul(a, reshape(b, -1, 1))[..., 0]
    if np.ndim(x) == 1:
        return matmul(reshape(a, 1, -1), b)[..., 0, :]
    return Tensor(x @ y, (a, lambda g: g @ y.swapaxes(-1, -2)),
                         (b, lambda g: x.swapaxes(-1, -2) @ g))


# %% [markdown]
# The last words only move numbers about: their rules move the cotangents
# back. A sum is undone by a copy, as chapter 3 promised. An entry that is
# picked twice by an index collects two reports, hence `np.add.at`: plain
# assignment would keep the last one.

# %%
def sum_(a, axis=None, keepdims=False):
    x = value(a)

    def copy(g):
        lost = axis is not None and not keepdims
        return np.full(x.shape, np.expand_dims(g, axis) if lost else g)
    return Tensor(x.sum(axis, keepdims=keepdims), (a, copy))


def mean(a, axis=None, keepdims=False):
    total = sum_(a, axis, keepdims)
    return total / (value(a).size // max(total.data.size, 1))


def reshape(a, *shape):
    x = value(a)
    return Tensor(x.reshape(*shape), (a, lambda g: g.reshape(x.shape)))


def transpose(a, *axes):
    x = value(a)
    back = np.argsort(np.empty(range(x.ndim)).transpose(*axes).shape)
    return Tensor(x.transpose(*axes), (a, lambda g: g.transpose(back)))


def pick(a, index):
    x = value(a)

    def put(g):
        places = np.zeros(x.shape)
        np.add.at(places, index, g)
        return places
    return Tensor(x[index], (a, put))


def rows(a):
    return (a[i] for i in range(len(a.data)))


# %% [markdown]
# (An array of shape (0, 1, 2, ...) shows, once transposed, where its axes
# went; the sorting permutation brings them back.) Binding these functions to
# the class completes it. Where the left operand is a constant, Python asks
# the right one, with the operands exchanged:

# %%
def swapped(operation):
    return lambda b, a: operation(a, b)


Tensor.__truediv__, Tensor.__rtruediv__ = divide, swapped(divide)
Tensor.__pow__,     Tensor.__rpow__     = power,  swapped(power)
Tensor.__matmul__,  Tensor.__rmatmul__  = matmul, swapped(matmul)
Tensor.__getitem__, Tensor.__iter__     = pick,   rows
Tensor.sum,         Tensor.mean         = sum_,   mean
Tensor.reshape,     Tensor.transpose    = reshape, transpose
Tensor.T = property(transpose)


# %%
if __name__ == "__main__" and wanted("rules"):
    X, W = Tensor(np.arange(6.0).reshape(2, 3)), Tensor(np.ones((3, 4)))
    (X @ W).backward(np.arange(8.0).reshape(2, 4))
    nudged = numerical_grad(lambda w: np.sum(
        (X.data @ w) * np.arange(8.0).reshape(2, 4)), W.data)
    print("slopes along W:", *W.grad.astype(int), sep="\n  ")
    assert np.allclose(W.grad, nudged, rtol=1e-8)

# %% [markdown]
# Shapes alone would not have told us: with square matrices a missing
# transpose goes unnoticed. We check every word against nudges in chapter 5,
# where there is a tool for it. First, three surprises.
#
# *The slope of x - mean(x).* A reader expects 1 - 1/4 = 0.75 for each of four
# numbers. But the seed ones asks how the *sum* of all the differences moves,
# and that sum is always 0. The seed e0 asks the question the reader had in
# mind:

# %%
def centred_slopes(seed):
    """Slopes of sum(seed * (x - mean(x))) along four numbers x."""
    x = Tensor([1.0, 2.0, 3.0, 4.0])
    (x - x.mean()).backward(seed)
    return x.grad


# %%
if __name__ == "__main__" and wanted("rules"):
    print("\nx - mean(x), seed ones:", centred_slopes([1, 1, 1, 1]))
    print("x - mean(x), seed e0:  ", centred_slopes([1, 0, 0, 0]))
    assert (centred_slopes([1, 1, 1, 1]) == 0).all()
    assert (centred_slopes([1, 0, 0, 0]) == [0.75, -0.25, -0.25, -0.25]).all()

# %% [markdown]
# *The slope of relu at 0.* There is none: it is 0 on the left, 1 on the right,
# and every number between them is a subgradient. An engine has to choose. We
# choose 0, as `torch.relu` and `jax.nn.relu` do; the maximum of x and 0 splits
# the tie and takes 1/2 in `torch.maximum`, `jnp.maximum` and HIPS autograd.
# A central nudge says 1/2 at 0 for every h, so near a kink it is no judge:

# %%
def slopes_at_kink():
    """The slope of max(x, 0) at 0, three ways."""
    x, y = Tensor(0.0), Tensor(0.0)
    x.relu().backward()
    (y * (y.data >= 0)).backward()
    return {"relu": float(x.grad), "x * (x >= 0)": float(y.grad),
            "nudged": float(numerical_grad(positive, 0.0))}


# %%
if __name__ == "__main__" and wanted("rules"):
    print("\nslope of max(x, 0) at 0:", slopes_at_kink())
    assert list(slopes_at_kink().values()) == [0.0, 1.0, 0.5]

# %% [markdown]
# *The logarithm of 0.* A network that sorts points into two classes ends in a
# number z, the *logit*; p = sigmoid(z) is its probability of class 1, and the
# loss of a point with label y is
#
#     -log(p)  if y = 1,    -log(1 - p)  if y = 0
#
# Let p round to 1 while y = 0, and this is infinite. A popular patch adds
# 1e-8 inside the logarithm. It keeps the number finite, and it does more. Its
# slope along z, which should be p, is p (1 - p) / (1 - p + 1e-8): half of
# that at z = 18.42, where 1 - p = 1e-8, and exactly 0 from between 37 and 38
# on, where 1 - p rounds to 0. The points that are most wrong teach nothing,
# and their loss stops at a ceiling of -log(1e-8) = 18.42.
#
# The other way is to never form p. Substitute it, and both cases become
#
#     L = log(1 + exp(z)) - y z        slope along z:  p - y
#
# in which nothing overflows and nothing vanishes:

# %%
def patched_bce(z, y):
    """The cross-entropy of each point with the patch log(p + 1e-8)."""
    p = z.sigmoid()
    return -(y * (p + 1e-8).log() + (1 - y) * (1 - p + 1e-8).log())


def bce_with_logits(z, y):
    """The mean binary cross-entropy of labels y from logits z, as one number.

    z, y: one shape, any shape; y from 0 to 1. A ValueError if their shapes
    differ: (N, 1) against (N,) would broadcast to (N, N) without a word.
    """
    x, labels = value(z), value(y)
    if np.shape(x) != np.shape(labels):
        raise ValueError(f"logits of shape {np.shape(x)} and labels of shape "
                         f"{np.shape(labels)}: reshape the labels")
    s, n = softplus(x), max(np.size(x), 1)
    return Tensor((s - labels * x).sum() / n,
                  (z, lambda g: (np.exp(x - s) - labels) * (g / n)),
                  (y, lambda g: x * (-g / n)))


def loss_slopes(z):
    """Loss and slope at logits z for label 0: (patched, from the logit)."""
    a, b, zero = Tensor(z), Tensor(z), np.zeros(len(z))
    losses = patched_bce(a, zero), softplus(b.data)
    losses[0].sum().backward()
    bce_with_logits(b, zero).backward(len(z))
    return (losses[0].data, a.grad), (losses[1], b.grad)


# %% tags=["fold"]
def draw_losses(axes, z, patched, exact):
    for ax, what, k in zip(axes, ("loss of one point, y = 0",
                                  "its slope along z"), (0, 1)):
        ax.plot(z, exact[k], color=BLUE)
        ax.plot(z, patched[k], "--", color=ORANGE)
        ax.set(xlabel="logit z", title=what, xticks=range(-10, 51, 10))
    axes[0].text(31, 34, "from the logit", color=BLUE, ha="right")
    axes[0].text(50, 15, "log(1 - p + 1e-8)", color=ORANGE, ha="right")
    axes[1].text(50, 1.03, "from the logit", color=BLUE, ha="right")
    axes[1].text(24, 0.1, "log(1 - p + 1e-8)", color=ORANGE)


# %%
if __name__ == "__main__" and wanted("rules"):
    z = np.array([-5.0, 0.0, 10.0, 18.42, 25.0, 38.0, 50.0])
    (patched, its_slope), (exact, true_slope) = loss_slopes(z)
    print()
    table("losses", ("z", "log(1-p+1e-8)", "slope", "from the logit", "slope"),
          *([f"{v:.{k}f}" for v, k in zip(row, (2, 2, 4, 2, 4))]
            for row in zip(z, patched, its_slope, exact, true_slope)))
    assert abs(its_slope[3] - 0.5) < 1e-3 and (its_slope[-2:] == 0).all()
    assert abs(patched[-1] + np.log(1e-8)) < 1e-6
    assert np.allclose(true_slope, logistic(z), rtol=1e-12)
    curve = np.linspace(-10, 50, 241)
    picture("losses", "Two panels against the logit z for a point of class 0. "
            "The loss from the logit rises without bound and its slope stays "
            "1; the patched loss stops at 18.42 and its slope falls to 0.",
            draw_losses, curve, *loss_slopes(curve), grid=(1, 2))

# %% [markdown]
# and the loss from the logit is what we train with. It is also one node
# instead of a dozen.
#
# A dozen rules and a loss, each derived with care. So is every wrong
# derivation. Who checks them?

# %% [markdown]
# ## 5. The trial
#
# The nudge is slow and knows no calculus, so it is an honest judge. For each
# entry of each parameter we compare the engine's slope a with the nudged
# slope n by the relative error
#
#     |a - n| / max(|a|, |n|, floor)
#
# The floor is for slopes too small to judge. The nudge itself carries a noise
# of about eps |f| / h, with eps = 2.2e-16; a slope below noise / tol is held
# against that value, or rounding would condemn it. A verdict must also not be
# empty. No parameters, a slope that is not a number, a parameter that f
# ignores: none of these is a success, and an f that answers differently when
# asked twice is not judged at all.

# %%
@dataclass
class Report:
    """The verdict of gradcheck: rows of (shape, absolute, relative, note)."""
    rows: list
    tol: float

    @property
    def ok(self):
        return bool(self.rows) and all(
            relative <= self.tol for _, _, relative, _ in self.rows)

    def __bool__(self):
        return self.ok

    def cells(self):
        return [(f"{i} {shape}", f"{absolute:.0e}", f"{relative:.0e}",
                 note or ("ok" if relative <= self.tol else "WRONG"))
                for i, (shape, absolute, relative, note)
                in enumerate(self.rows)]

    def __str__(self):
        return "\n".join("  ".join(row) for row in self.cells())


def gradcheck(f, params, h=1e-5, tol=1e-4):
    """Hold the slopes that backward finds against nudged ones.

    f: called as f(*params), returns a Tensor; a vector is reduced with a
    fixed seed that is not uniform. params: leaf Tensors; their data and grad
    are put back, whatever happens. Returns a Report, true if every relative
    error is at most tol. A TypeError for what is not a Tensor, a ValueError
    if f is not a function of its parameters alone.
    """
    params = list(params)
    if not all(isinstance(p, Tensor) for p in params):
        raise TypeError("gradcheck wants a list of Tensors as params")
    kept = [(p, p.data, p.grad) for p in params]
    try:
        for p in params:
            p.grad = None
        y = f(*params)
        if not isinstance(y, Tensor):
            raise TypeError(f"f must return a Tensor, not {type(y).__name__}")
        if not np.array_equal(y.data, f(*params).data, equal_nan=True):
            raise ValueError("f gives two answers for the same parameters")
        seed = 1 + 0.5 * np.sin(np.arange(y.data.size)).reshape(y.shape)
        y.backward(seed)
        scale = np.sum(abs(y.data) * seed)
        floor = np.finfo(float).eps * scale / (h * tol)
        return Report([judge(f, params, p, seed, h, floor)
                       for p in params], tol)
    finally:
        for p, data, grad in kept:
            p.data, p.grad = data, grad


def judge(f, params, p, seed, h, floor):
    """One row of a Report: p's slopes against nudged ones."""
    def along(x):
        p.data = x
        return np.sum(f(*params).data * seed)

    data, found = p.data, p.grad
    nudged = numerical_grad(along, data, h)
    p.data = data
    if found is None:
        return data.shape, np.nan, np.nan, "not reached by backward"
    if not (found.any() or nudged.any()):
        return data.shape, np.nan, np.nan, "no slope to compare"
    gap = abs(found - nudged)
    size = np.maximum(np.maximum(abs(found), abs(nudged)), floor)
    return data.shape, gap.max(), np.max(gap / size), ""


# %% [markdown]
# The defendant is a small network, 3 inputs, 5 hidden units, 2 outputs, with
# the patched loss. Its recipe is complete, so anyone can repeat it. A
# published check of this network, by another engine, gives the loss 0.952288
# and errors from 2e-10 to 8e-9. Ours gives,

# %%
def small_network(seed=0):
    """A 3-5-2 network with labels: (loss as a function, its parameters)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4, 3))
    Y = rng.integers(0, 2, (4, 2)).astype(float)
    params = [Tensor(rng.standard_normal(s)) for s in
              ((3, 5), (5,), (5, 2), (2,))]

    def loss(W1, b1, W2, b2):
        return patched_bce((X @ W1 + b1).relu() @ W2 + b2, Y).mean()
    return loss, params


# %%
if __name__ == "__main__" and wanted("gradcheck"):
    loss, params = small_network()
    report = gradcheck(loss, params)
    print(f"loss {loss(*params).data:.6f}")
    table("gradcheck", ("parameter", "relative error below", "verdict"), *(
        (f"{name} {shape}", "1e-7", "ok" if relative < 1e-7 else "WRONG")
        for name, (shape, _, relative, _)
        in zip(("W1", "b1", "W2", "b2"), report.rows)))
    worst = max(relative for _, _, relative, _ in report.rows)
    assert f"{loss(*params).data:.6f}" == "0.952288"
    assert report.ok and 1e-9 < worst < 2e-8

# %% [markdown]
# the same loss to its last printed digit. We do not print the errors: a few
# times 1e-9 for the worst of them is all that travels, the rest is rounding
# noise of the machine at hand. Nor does agreement mean machine precision. It
# means that two methods that share no formula agree to the eight digits that
# the weaker one has.
#
# A judge that has never convicted anyone proves little, so here is a liar: a
# tanh whose rule says 1 - y instead of 1 - y^2. It is caught,

# %%
def convict():
    """The report on a tanh with a wrong rule."""
    lie = elementwise(np.tanh, lambda x, y: 1 - y)
    return gradcheck(lambda w: lie(w).sum(), [Tensor([0.3, -1.0, 2.0])])


# %%
if __name__ == "__main__" and wanted("gradcheck"):
    print("\na lying tanh:", *convict().cells()[0])
    assert not convict() and 0.1 < convict().rows[0][2] < 2

# %% [markdown]
# and it would have trained. There is also what this judge cannot see. Where
# a step crosses a kink of relu, the nudge is the one that is wrong. A rule
# that no expression exercises is not checked at all. And if the *program* is
# wrong, say with labels of the wrong shape, its slopes are exactly right.
#
# The slopes can be trusted now. The next question is what to do with them.

# %% [markdown]
# ## 6. One formula, four optimizers
#
# A slope says which way is up. Stochastic gradient descent, SGD, steps the
# other way, W <- W - lr g, and forgets. The other three remember, all with
# one formula, the exponentially weighted average:
#
#     v <- beta v + (1 - beta) x
#
# An x from k steps ago still counts with weight (1 - beta) beta^k, so it has
# lost half its weight after log(1/2) / log(beta) steps: 6.6 for beta = 0.9,
# 693 for 0.999. The weights of the first t steps sum to 1 - beta^t and not to
# 1, because v starts from 0. That sum is the same average, fed with ones:

# %%
class Average:
    """v <- beta v + (1 - beta) x from v = 0, and its weight, the v of x = 1.

    share is 1, or an array of 1 and 0 for the entries that take part. The
    weight starts a hair above 0, so that value / weight is 0 and not 0 / 0.
    """

    def __init__(self, beta):
        if not 0 <= beta < 1:
            raise ValueError(f"a beta lies in [0, 1), which {beta} does not")
        self.beta, self.value, self.weight = beta, 0.0, np.finfo(float).tiny

    def add(self, x, share=1.0):
        rate = (1 - self.beta) * share
        self.value = self.value + rate * (x - self.value)
        self.weight = self.weight + rate * (1 - self.weight)
        return self.value


# %% [markdown]
# The optimizers differ in what they feed to it. Momentum averages g. RMSProp
# averages g^2 and divides by the root. Adam does both, and divides each
# average by its weight (Kingma and Ba, "Adam", ICLR 2015):
#
#     SGD        g
#     Momentum   m              m averages g
#     RMSProp    g / (root of v + eps)            v averages g^2
#     Adam       m_hat / (root of v_hat + eps)    both, over their weights
#
# One base class turns such a direction into a step. It sees all parameters as
# one long vector. A step makes new arrays and leaves the old ones alone, so
# a graph that was built before it stays true to its values.

# %%
class Optimizer:
    """What all optimizers share: params move by -lr * direction.

    params: distinct leaf Tensors; one whose grad is None sits the step out.
    lr: a number >= 0, or an array (..., 1) whose other axes, like the leading
    axes of each parameter, run over networks. TypeError or ValueError else.
    """

    def __init__(self, params, lr):
        self.params = [] if isinstance(params, Tensor) else list(params)
        if not all(isinstance(p, Tensor) and not p.edges for p in self.params):
            raise TypeError("an optimizer's parameters are leaf Tensors")
        if not self.params or len(set(self.params)) < len(self.params):
            raise ValueError("an optimizer wants a list of parameters, at "
                             "least one and none of them twice")
        if not np.all(value(lr) >= 0):
            raise ValueError(f"a learning rate is at least 0, unlike {lr}")
        self.lr, self.axes = lr, max(np.ndim(lr) - 1, 0)

    def zero_grad(self):
        """Forget the gradients of all parameters."""
        for p in self.params:
            p.grad = None

    def flat(self, arrays):
        return np.concatenate([a.reshape(a.shape[:self.axes] + (-1,))
                               for a in arrays], axis=-1)

    def step(self):
        """Move every parameter that has a gradient by -lr * direction."""
        here = [p.grad is not None for p in self.params]
        grads = [p.grad if on else np.zeros(p.shape)
                 for p, on in zip(self.params, here)]
        for p, g in zip(self.params, grads):
            if p.data.shape != g.shape:
                raise ValueError(f"a gradient of shape {g.shape} for a "
                                 f"parameter of shape {p.shape}")
        share = 1.0 if all(here) else self.flat(
            [np.full(p.shape, float(on)) for p, on in zip(self.params, here)])
        move = self.lr * self.direction(self.flat(grads), share)
        end = 0
        for p, on in zip(self.params, here):
            start, end = end, end + prod(p.data.shape[self.axes:])
            if on:
                p.data = p.data - move[..., start:end].reshape(p.data.shape)


class SGD(Optimizer):
    def direction(self, g, share):
        return g


class Momentum(Optimizer):
    def __init__(self, params, lr, beta=0.9):
        super().__init__(params, lr)
        self.m = Average(beta)

    def direction(self, g, share):
        return self.m.add(g, share)


class RMSProp(Optimizer):
    def __init__(self, params, lr, beta=0.99, eps=1e-8):
        super().__init__(params, lr)
        self.v, self.eps = Average(beta), eps

    def direction(self, g, share):
        return g / (np.sqrt(self.v.add(g * g, share)) + self.eps)


class Adam(Optimizer):
    def __init__(self, params, lr, beta1=0.9, beta2=0.999, eps=1e-8,
                 bias_correction=True):
        super().__init__(params, lr)
        self.m, self.v, self.eps = Average(beta1), Average(beta2), eps
        self.bias_correction = bias_correction

    def direction(self, g, share):
        m, v = self.m.add(g, share), self.v.add(g * g, share)
        if self.bias_correction:
            m, v = m / self.m.weight, v / self.v.weight
        return m / (np.sqrt(v) + self.eps)


OPTIMIZERS = {"SGD": SGD, "Momentum": Momentum, "RMSProp": RMSProp,
              "Adam": Adam}


# %% [markdown]
# Adam's division by the weights is known as *bias correction*, and is often
# said to matter for the first few steps. Let g stay constant. Without the
# correction the direction is r(t) = (1 - beta1^t) / sqrt(1 - beta2^t) times
# what it is with it. We feed ones to two averages and watch r,

# %%
def excess(steps, beta1=0.9, beta2=0.999):
    """How much too long steps 1, 2, ... are without bias correction."""
    m, v = Average(beta1), Average(beta2)
    return np.array([m.add(1.0) / np.sqrt(v.add(1.0)) for _ in range(steps)])


# %%
if __name__ == "__main__" and wanted("optimizers"):
    r = excess(2000)
    table("excess", ("t", "r(t)"), *(
        (t, f"{r[t-1]:.2f}") for t in (1, 12, 50, 200, 1000, 2000)))
    assert abs(r[0] - 0.1 / np.sqrt(0.001)) < 1e-9 and f"{r[0]:.3f}" == "3.162"
    assert r.argmax() + 1 == 12 and f"{r.max():.2f}" == "6.57"
    assert f"{r[999]:.2f}" == "1.26"
    below = [int(np.argmax(r[1:] < bound)) + 2 for bound in (2, 1.1)]
    print(f"below 2 from step {below[0]} on, below 1.1 from {below[1]} on")
    assert below == [288, 1751]
    first = excess(1, beta1=0.0, beta2=0.99)[0]
    print(f"RMSProp, which has no correction: first step {first:.1f} lr")
    assert abs(first - 10) < 1e-9

# %% [markdown]
# and find that the first step is 3.16 times too long, that this is not the
# worst of them, and that it takes nearly two thousand steps to be forgotten.
# With beta2 = 0.95, as in recipes for language models, r starts at 0.447: the
# steps are too short. (r is exact for a constant g; for one that changes, the
# paper has a remainder.)
#
# Momentum comes in two forms. Ours is an average. PyTorch's is a sum,
# u <- mu u + g, which for one slope settles at 1 / (1 - mu) times ours: with
# mu = 0.9, ten times the step for the same lr. The two trace one path if the
# rates differ by that factor. Whether averaging helps at all is a matter of
# the landscape. In a bowl 100 times steeper along one axis than along the
# other, each method at its own best rate (Polyak, 1964):

# %%
STEEP = np.array([1.0, 100.0])


def bowl_path(optimizer, steps, **settings):
    """Positions in the bowl (w0^2 + 100 w1^2) / 2, from (1, 1)."""
    w = Tensor([1.0, 1.0])
    rule, path = optimizer([w], **settings), [w.data]
    for _ in range(steps):
        rule.zero_grad()
        (w * w * STEEP / 2).sum().backward()
        rule.step()
        path.append(w.data)
    return np.array(path)


def summed_momentum(lr, mu, steps):
    """The same with PyTorch's form, u <- mu u + g, written out."""
    w, u, path = np.ones(2), np.zeros(2), [np.ones(2)]
    for _ in range(steps):
        u = mu * u + STEEP * w
        w = w - lr * u
        path.append(w)
    return np.array(path)


def steps_to(path, part=1e-6):
    """Steps until the distance to the bottom stays below this part of it."""
    distance = np.hypot(*path.T)
    return int(np.flatnonzero(distance > part * distance[0])[-1]) + 1


# %% tags=["fold"]
def draw_optimizers(axes, r, plain, averaged):
    axes[0].semilogx(np.arange(1, len(r) + 1), r, color=COLORS["Adam"])
    axes[0].axhline(1, color=INK, lw=0.7)
    axes[0].set(xlabel="step t", title="excess without bias correction")
    for t in (1, 12, 1000):
        axes[0].plot(t, r[t-1], "o", color=COLORS["Adam"])
        axes[0].text(t * 1.3, r[t-1] + 0.1, f"{r[t-1]:.2f}")
    for name, path, place in (("SGD", plain, (0.55, 0.8)),
                              ("Momentum", averaged, (0.1, -0.9))):
        axes[1].plot(*path[:40].T, ".-", color=COLORS[name], lw=1)
        axes[1].text(*place, name, color=COLORS[name])
    axes[1].set(xlabel="gentle axis", ylabel="steep axis",
                title="40 steps in a bowl")


# %%
if __name__ == "__main__" and wanted("optimizers"):
    mu = ((np.sqrt(100) - 1) / (np.sqrt(100) + 1)) ** 2
    rate = (2 / (np.sqrt(100) + 1)) ** 2
    plain = bowl_path(SGD, 1000, lr=2 / 101)
    averaged = bowl_path(Momentum, 1000, lr=rate / (1 - mu), beta=mu)
    summed = summed_momentum(rate, mu, 1000)
    print(f"\nPyTorch's form at lr, ours at lr / (1 - mu): one path")
    assert abs(averaged - summed).max() < 1e-12
    print(f"steps to come a million times closer: SGD {steps_to(plain)}, "
          f"Momentum {steps_to(averaged)}")
    assert steps_to(plain) == 691 and steps_to(averaged) < 691 / 7
    picture("optimizers", "Left: the excess of Adam's steps without bias "
            "correction, 3.16 at step 1, 6.57 at step 12, 1.26 at step 1000. "
            "Right: in a steep bowl SGD zigzags, Momentum swings in and "
            "arrives.", draw_optimizers, r, plain, averaged, grid=(1, 2))

# %% [markdown]
# it gets there in less than a seventh of the steps. What is left of that on
# the spirals, where gradients are noisy, we will see.
#
# Four optimizers, and nothing to optimize yet.

# %% [markdown]
# ## 7. Two spirals
#
# Two arms of 150 points each wind once and a half around each other. No line
# separates them, and no single bend does. The recipe is complete: the data,
# the initial weights and the batches have streams of random numbers of their
# own, one set for each seed.

# %%
def spiral(seed=1):
    """Two noisy arms: X of shape (300, 2), labels y of shape (300, 1)."""
    u = np.linspace(0, 1, 150)
    theta, r = 2.9 * np.pi * u, 2 * u
    arm = np.stack([r * np.cos(theta), r * np.sin(theta)], axis=1)
    noise = np.random.default_rng([seed, 0]).standard_normal((300, 2))
    X = np.concatenate([arm, -arm]) + 0.05 * noise
    return X, np.repeat([[0.0], [1.0]], 150, axis=0)


def weights(seed=1, hidden=64):
    """Two weight matrices, scaled by sqrt(2 / inputs) as relu likes them."""
    rng = np.random.default_rng([seed, 1])
    return (rng.standard_normal((2, hidden)) * np.sqrt(2 / 2),
            rng.standard_normal((hidden, 1)) * np.sqrt(2 / hidden))


def batches(seed, steps, size=32):
    return np.random.default_rng([seed, 2]).integers(0, 300, (steps, size))


# %% [markdown]
# The network has 2 inputs, 64 hidden units with relu, and 1 logit. We will
# want many networks, with several seeds and rates, so arrays may have leading
# axes that run over networks. Nothing in the engine needs to change for that:
# `@` and `+` and every rule broadcast.

# %%
class MLP:
    """X (..., N, 2) -> logits (..., N, 1) through relu(X W1 + b1) W2 + b2."""

    def __init__(self, W1, W2):
        self.W1, self.W2 = Tensor(W1), Tensor(W2)
        self.b1 = Tensor(np.zeros(W1.shape[:-2] + (1, W1.shape[-1])))
        self.b2 = Tensor(np.zeros(W2.shape[:-2] + (1, W2.shape[-1])))
        self.params = [self.W1, self.b1, self.W2, self.b2]

    def hidden(self, X):
        return (X @ self.W1 + self.b1).relu()

    def __call__(self, X):
        return self.hidden(X) @ self.W2 + self.b2


def score(model, X, y):
    """Loss and accuracy on X, for each network of the model."""
    z = model(X).data
    return np.array([(softplus(z) - y * z).mean(axis=(-2, -1)),
                     ((z > 0) == (y > 0.5)).mean(axis=(-2, -1))])


@dataclass
class Run:
    """A training run: the model, its data, and what was seen on the way."""
    model: MLP
    data: tuple
    losses: np.ndarray   # (steps,) loss of each batch, mean over networks
    watched: dict        # step -> (loss, accuracy) on all points

    def final(self):
        """Median of loss and accuracy over the watched last 200 steps."""
        late = [v for k, v in self.watched.items() if k > len(self.losses)-200]
        return np.median(late, axis=0)


def train(optimizer, seeds=1, lr=0.1, steps=2000, watch=(), data=spiral,
          **settings):
    """Train a network for each seed and rate, all of them in one graph.

    optimizer: a class of chapter 6. seeds: an int or an array of ints. lr: a
    number or an array (..., 1) that broadcasts against seeds. watch: steps
    after which to score, besides every tenth of the last 200. Returns a Run.
    """
    seeds = np.asarray(seeds)
    nets = np.broadcast_shapes(seeds.shape, np.shape(lr)[:-1])

    def each(draw, *extra):
        drawn = [draw(seed, *extra) for seed in seeds.ravel()]
        return np.reshape(drawn, seeds.shape + np.shape(drawn[0]))
    X, y = (each(lambda seed: data(seed)[k]) for k in (0, 1))
    W1, W2 = (each(lambda seed: weights(seed)[k]) for k in (0, 1))
    model = MLP(*(np.broadcast_to(W, nets + W.shape[-2:]) for W in (W1, W2)))
    picks = np.moveaxis(each(batches, steps), -2, 0)[..., None]
    rule, losses, watched = optimizer(model.params, lr, **settings), [], {}
    watch = {*watch, *range(steps - 190, steps + 1, 10)}
    for t, pick in enumerate(progress(picks, optimizer.__name__), 1):
        z = model(np.take_along_axis(X, pick, -2))
        labels = np.take_along_axis(y, pick, -2)
        loss = bce_with_logits(z, np.broadcast_to(labels, z.shape))
        rule.zero_grad()
        loss.backward(prod(nets))       # the sum of the networks' own means
        rule.step()
        losses.append(loss.data)
        if t in watch:
            watched[t] = score(model, X, y)
    return Run(model, (X, y), np.array(losses), watched)


# %% [markdown]
# Before a long run, three checks that take no time. A network that knows
# nothing pays about log 2 = 0.69 a point; four points are learned by heart;
# and there are as many parameters as we think,

# %%
def four_points(seed):
    """Four points of the spiral, 75 times each."""
    return [np.repeat(a[[40, 120, 190, 270]], 75, axis=0)
            for a in spiral(seed)]


# %%
if __name__ == "__main__" and wanted("spiral"):
    fresh = MLP(*weights())
    start = score(fresh, *spiral())[0]
    size = sum(p.data.size for p in fresh.params)
    by_heart = train(Adam, steps=200, data=four_points).final()[0]
    print(f"{size} parameters, loss at the start {start:.2f}, "
          f"on four points {by_heart:.0e}")
    assert size == 257 and 0.5 < start < 1.2 and by_heart < 0.01

# %% [markdown]
# so the race can start: four optimizers, the same initial weights, the same
# batches, lr 0.1, 2000 steps of 32 points. One number at the last step would
# be a matter of luck, as the loss of the fast ones still jumps; we report the
# median over the last 200 steps.

# %% tags=["fold"]
def draw_regions(axes, runs):
    side = np.linspace(-2.4, 2.4, 120)
    plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    for ax, (name, run) in zip(axes, runs.items()):
        z = run.model(plane).data.reshape(120, 120)
        ax.contourf(side, side, z > 0, levels=[-1, 0.5, 2], alpha=0.25,
                    colors=[BLUE, ORANGE])
        for arm, color in zip(np.split(run.data[0], 2), (BLUE, ORANGE)):
            ax.plot(*arm.T, ".", ms=2, color=color)
        ax.set(title=f"{name}, {run.final()[1]:.0%}", aspect="equal",
               xticks=[], yticks=[])


def draw_curves(axes, runs):
    for name, run in runs.items():
        mean = Average(0.98)
        smooth = [mean.add(x) / mean.weight for x in run.losses]
        for ax, y in zip(axes, (run.losses, smooth)):
            ax.semilogy(y, color=COLORS[name], lw=0.8, ls=LINES[name])
        axes[1].text(2030, smooth[-1], name, color=COLORS[name], va={
            "SGD": "top", "RMSProp": "bottom"}.get(name, "center"))
    axes[0].set(title="loss of each batch", xlabel="step")
    axes[1].set(title="smoothed, beta 0.98", xlabel="step", xlim=(0, 2750),
                xticks=[0, 1000, 2000], ylim=axes[0].get_ylim())


# %%
if __name__ == "__main__" and wanted("spiral"):
    runs = {name: train(rule) for name, rule in OPTIMIZERS.items()}
    print()
    table("spiral", ("optimizer", "loss", "accuracy"), *(
        (name, f"{run.final()[0]:.2f}", f"{run.final()[1]:.0%}")
        for name, run in runs.items()))
    accuracy = {name: run.final()[1] for name, run in runs.items()}
    assert max(accuracy["SGD"], accuracy["Momentum"]) < 0.75
    assert min(accuracy["RMSProp"], accuracy["Adam"]) > 0.95
    picture("spiral", "The two spirals and the regions that each optimizer's "
            "network assigns to them: straight cuts for SGD and Momentum, "
            "spiral bands for RMSProp and Adam.", draw_regions, runs,
            size=(6.4, 1.9), grid=(1, 4))
    picture("curves", "Loss against step for the four optimizers, each batch "
            "and smoothed. SGD and Momentum creep down together; RMSProp "
            "jumps high at first and stays rough; Adam is lowest.",
            draw_curves, runs, grid=(1, 2))

# %% [markdown]
# From one start, two optimizers untangle the arms and two cut the plane in
# halves. The smoothed curves are chapter 6's average of the raw ones. RMSProp
# begins with a jump, which is its first step of 10 lr. SGD and Momentum lie on
# one another, since an average of g is about as long as g. And they are not
# unable, they are slow:

# %%
if __name__ == "__main__" and wanted("spiral"):
    spike = {name: runs[name].losses[:50].max() for name in runs}
    print("\nhighest loss of a batch in the first 50 steps:",
          *(f"{name} {spike[name]:.0f}," for name in ("RMSProp", "Adam")))
    assert spike["RMSProp"] > 7 and spike["Adam"] < 2.5
    patient = train(SGD, steps=12000).final()
    print(f"SGD after 12000 steps: loss {patient[0]:.2f}, "
          f"accuracy {patient[1]:.0%}")
    assert patient[1] > 0.95

# %% [markdown]
# Last, bias correction, in a real run. With it each coordinate of Adam's
# first step is lr * g / |g|, so the step has length lr * sqrt(257) = 1.6031.
# Without it the step is 3.16 times longer, less what eps takes:

# %%
def corrected_or_not(seeds=1, steps=200):
    """Adam with and without bias correction: {label: (first step, Run)}."""
    found = {}
    for label, on in ("with", True), ("without", False):
        run = train(Adam, seeds, bias_correction=on, steps=1)
        start = MLP(*weights(seeds)).params
        first = np.sqrt(sum(np.sum((p.data - q.data) ** 2)
                            for p, q in zip(run.model.params, start)))
        found[label] = first, train(Adam, seeds, bias_correction=on,
                                    steps=steps, watch=range(1, 201))
    return found


# %% tags=["fold"]
def draw_correction(ax, found):
    for (label, (_, run)), style in zip(found.items(), ("-", ":")):
        losses = [run.watched[t][0] for t in range(1, 51)]
        ax.plot(range(1, 51), losses, style, color=COLORS["Adam"])
        ax.text(1.8, losses[0], f"{label} correction", color=COLORS["Adam"],
                va="bottom" if style == "-" else "center")
    ax.set(xlabel="step", ylabel="loss on all points")


# %%
if __name__ == "__main__" and wanted("spiral"):
    found = corrected_or_not()
    print()
    table("correction", ("bias correction", "first step", *(
        f"loss at {t}" for t in (1, 10, 50, 200))), *(
        (label, f"{first:.2f}", *(f"{run.watched[t][0]:.3f}"
                                  for t in (1, 10, 50, 200)))
        for label, (first, run) in found.items()))
    (one, on), (three, off) = found.values()
    assert abs(one - 0.1 * np.sqrt(257)) < 1e-3 and 3.1 < three / one < 3.163
    assert off.watched[1][0] > 2 * on.watched[1][0]
    assert off.watched[50][0] < on.watched[50][0]
    assert off.watched[200][0] > on.watched[200][0]
    picture("correction", "Loss on all points over the first 50 steps of Adam, "
            "with and without bias correction. Without, it starts at twice "
            "the loss and is ahead by step 50.", draw_correction, found,
            size=(6.4, 2.6))

# %% [markdown]
# The long first step more than doubles the loss; by step 50 the uncorrected
# run is *ahead*, and by step 200 behind again. Correction keeps the promise
# that a step has length lr. It does not buy speed.
#
# All this from one seed, at one rate. Was it luck? Is the gap between the
# optimizers theirs, or the rate's?
