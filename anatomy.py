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
        print("  ".join([first.ljust(wide[0]), *map(str.rjust, rest, wide[1:])])
              .rstrip())
    if OUT:
        lines.insert(1, ["---"] + ["---:"] * (len(head) - 1))
        write(f"{name}.md", "".join(f"| {' | '.join(x)} |\n" for x in lines))


BLUE, ORANGE, GREEN, PURPLE = "#2b7bba", "#d9730d", "#2a9d6b", "#b0569d"
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
