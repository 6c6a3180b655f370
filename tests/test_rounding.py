"""The same text and the same truths on processors that round differently."""
import ast

import numpy as np
import pytest

from conftest import SOURCE, python
from rounding import QUICK, Moved, Processor, differences


def test_the_quick_chapters_on_other_processors():
    """All assertions hold, and every printed character is the same."""
    assert differences(3, 4, QUICK) == []


FRAGILE = {
    "a power": "[y.hex() for y in 10.0 ** -np.arange(1, 9)]",
    "a digit too many": "[y.hex() for y in np.exp(np.linspace(0, 1, 5))]",
    "the order of a sum": "np.linspace(0.1, 0.9, 9).sum() == 4.5 and (np.ones((2, 3)) / 3 @ np.ones(3))[0] == 1",
    "a near tie": "np.sin(x).argmax() == 7 and np.log(x).argmax() == 7"}


def test_what_does_not_travel_is_found(tmp_path):
    """The check is shown what it has to find, and tells it of half the processors or more."""
    script = tmp_path / "fragile.py"
    lines = ["import numpy as np", "x = np.full(50, 0.3)", "x[7] = np.nextafter(0.3, 1)"]
    script.write_text("\n".join(lines + [f"print({name!r}, {text})" for name, text in FRAGILE.items()]))
    found = differences(4, 4, [], script)
    for name in FRAGILE:
        assert sum(f"+{name}" in text for text in found) >= 2, name


def test_what_travels_is_left_alone(tmp_path):
    """Exact arithmetic, whole numbers, zeros, and a function's 1."""
    script = tmp_path / "sound.py"
    script.write_text(
        "import numpy as np\nx = np.linspace(0.1, 0.9, 9)\n"
        "print([y.hex() for y in (x + 0.3) * x / 0.7 - np.sqrt(x)], (x ** 2 == x * x).all())\n"
        "print(np.arange(9).sum(), np.ones((3, 3)) @ np.ones(3), np.exp(-1e-20), np.log(np.ones(2)), np.sin(0.0))\n"
        "print(f'{np.exp(1.0):.6f} {x.mean():.6f}', np.exp(-np.inf), np.array([3.0, 4.0]) ** 2)\n")
    assert differences(3, 4, [], script) == []


def test_moved_by_at_most_so_many_ulps_and_always_the_same_way():
    """Every distance up to the bound occurs; the same question gets the same answer."""
    x = np.linspace(0.5, 20.0, 4001)
    for ulps in 1, 4:
        here = Processor(3, ulps)
        away = (here.log(x) - np.log(x)) / np.spacing(abs(np.log(x)))
        assert set(away) == set(range(-ulps, ulps + 1))
        assert np.array_equal(here.log(x), here.log(x)) and here.log(x[7]) == here.log(x)[7]
    assert np.array_equal(Processor(0, 4).log(x), np.log(x))
    assert not np.array_equal(Processor(1, 4).log(x), Processor(2, 4).log(x))


def test_all_of_the_program_is_told_by_the_other_processor():
    """numpy and both operators are replaced wherever they stand."""
    nodes = list(ast.walk(Moved().visit(ast.parse(SOURCE))))
    assert not any(isinstance(n, (ast.Pow, ast.MatMult)) for n in nodes)
    assert not any(a.name == "numpy" for n in nodes if isinstance(n, ast.Import) for a in n.names)
    called = [n.attr for n in nodes if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "_here"]
    assert set(called) == {"power", "matmul", "method"} and len(called) > 40


# Each of these assertions is one that another processor must pass. A real fault does not.

FAULTS = {
    "a forward nudge by a little less": ("nudge", "(bent(x + h) - bent(x)) / h", "(bent(x + h) - bent(x)) / (h * (1 - 1e-6))",
                                         "min(forward) < 2e-7"),
    "a central nudge one way": ("nudge", "(bent(x + h) - bent(x - h)) / (2 * h)", "(bent(x + h) - bent(x)) / h",
                                "np.argmin(central) == 4"),
    "a complex step that cancels": ("nudge", "bent(x + 1j * h).imag / h", "(bent(x + h) - bent(x - h)) / (2 * h)",
                                    'errors["complex"][7:]'),
    "no second nudge": ("gradcheck", "2 * abs(nudged - halved) + 5 * r", "r", "gradcheck(cubes"),
    "a rule off by a hundred-thousandth": ("gradcheck", "lambda g, x, out: g * out * (1 - out)", "lambda g, x, out: g * out * (1 - out) * 1.00001",
                                             "1e-6"),
    "slopes held against themselves": ("gradcheck", "judge(slopes, nudged,", "judge(slopes, slopes,", "1e-9 <"),
    "a loss that cancels": ("rules", "np.maximum(z, 0.0) - y * z + np.log1p(small)", "softplus(z) - y * z", "loss.data - tiny"),
    "a slope that cancels": ("rules", "np.where(z > 0, above, below)", "logistic(z) - y", "point.grad"),
    "a seed on a line of the grid": ("race", "loss, accuracy = race()",
                                     "loss, accuracy = np.ones((4, 7, 10)), np.full((4, 7, 10), 0.95)", "room("),
    "a seed near a line of the grid": ("race", "loss, accuracy = race()",
                                       "loss, accuracy = np.ones((4, 7, 10)), np.full((4, 7, 10), 0.95 + 1 / 300)",
                                       "room(")}


@pytest.mark.parametrize("name", FAULTS)
def test_a_real_fault_trips_what_every_processor_passes(name, tmp_path):
    """An assertion that cannot fail asserts nothing."""
    chapter, ours, fault, tripped = FAULTS[name]
    assert SOURCE.count(ours) == 1
    script = tmp_path / "faulty.py"
    script.write_text(SOURCE.replace(ours, fault), encoding="utf-8")
    run = python(script, chapter)
    assert run.returncode == 1 and run.stderr.endswith("AssertionError\n")
    assert tripped in run.stderr.split("File ")[-1], run.stderr
