"""Numbers read out of sentences: a fragment with holes says where they stand."""
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

from conftest import SOURCE

WORDS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
         "seventeen eighteen nineteen twenty").split()
WORDS = {word: n for n, word in enumerate(WORDS)} | {
    "twice": 2, "twelfth": 12, "seventh": 7, "quarter": 4, "twenty-one": 21, "twenty-three": 23, "percent": 0.01}
NUMBER = (r"(?<![\d.])(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?:/\d+)?%?|(?i:"
          + "|".join(sorted(WORDS, key=len, reverse=True)) + r")\b)(?!\d)")


def flat(source):
    """Prose, docstrings and code on one line: without cell marks, signs of comments and line breaks."""
    lines = [line.strip() for line in source.splitlines() if not line.startswith("# %%")]
    return " ".join(" ".join(line.removeprefix("#") for line in lines).split())


TEXT = flat(SOURCE)
GOLDEN_LINES = (Path(__file__).parent / "golden/story.txt").read_text("utf-8").splitlines()
GOLDEN = " ".join(" ".join(GOLDEN_LINES).split())


def holes(template):
    """A fragment of a sentence as a pattern, with a number in each {}."""
    parts = [re.escape(part) for part in template.split("{}")]
    return re.compile(r"(?<![\w.])" * template.startswith("{}") + NUMBER.join(parts))


def everywhere(pattern, template, text):
    """What the holes hold; the same wherever the fragment stands. It is looked for around its longest part."""
    anchor = max(template.split("{}"), key=len)
    reach = len(template) + 80 * template.count("{}")
    found = set()
    for place in re.finditer(re.escape(anchor), text):
        around = text[max(0, place.start() - reach):place.end() + reach]
        found |= {match.groups() for match in pattern.finditer(around)}
    assert found, f"nowhere: {template}"
    assert len(found) == 1, f"told in several ways: {template}: {found}"
    return found.pop()


def read(template, text=TEXT):
    """The numbers in the holes of this fragment, as they are written."""
    return everywhere(holes(template), template, text)


def number(written):
    """What it says, and half of a unit in its last place."""
    if written.lower() in WORDS:
        said = float(WORDS[written.lower()])
        return said, 0.5 if said.is_integer() else said / 2
    if "/" in written:
        return float(Fraction(written)), 1e-9
    digits = Decimal(written.rstrip("%"))
    scale = 0.01 if written.endswith("%") else 1.0
    return float(digits) * scale, 0.5 * scale * 10.0 ** digits.as_tuple().exponent


def agree(told, found, near=None):
    """Does a computed number round to the one that is told? Or is it near, where the sentence says about?"""
    said, half = number(told)
    if near is not None:
        return abs(found - said) <= near * abs(said)
    return abs(found - said) <= half * (1 + 1e-6)


def told(template, text=TEXT):
    """What stands in the holes of this fragment, words or a formula."""
    parts = [re.escape(part) for part in template.split("{}")]
    start, end = not template.startswith("{}"), template.endswith("{}")
    words = r"(?<![\w.])" * start + r"(\S(?:.{0,70}?\S)??)".join(parts) + r"(?!\w)" * end
    return everywhere(re.compile(words), template, text)


NAMES = {name: getattr(np, name) for name in "exp log sqrt tanh sin cos abs sign minimum maximum".split()}
NAMES |= {"e": np.e, "pi": np.pi, "sum": np.sum, "max": np.maximum, "min": np.minimum}


def value(formula, times="*", **names):
    """The value of a formula as the prose writes it: 3 x^2, W' g, e^-z; times says what stands between neighbours."""
    written = formula.replace("^", "**")
    written = re.sub(r"(?<=[\w)\]])'", ".T", written)
    written = re.sub(r"(?<=[\w)\]]) +(?=[\w(])", f" {times} ", written)
    return eval(written, {"__builtins__": {}, **NAMES}, names)
