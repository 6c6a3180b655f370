"""Change one thing in anatomy.py and see whether a test notices.

    python tests/mutate.py [NAME...]     mutants of these definitions, or of all

A mutant is the file with one operator, comparison, constant, sign, condition
or keyword argument changed inside a definition listed in PLACES. Each is
tried in a process of its own against the chapters' tests, its chapter's
first, until one fails. Prints the survivors, each with the reason why no test
can see it, and the score of each chapter. Exit code 1 if a survivor has no
reason.
"""
import ast
import copy
import multiprocessing
import os
import re
import signal
import sys
import types
from pathlib import Path

import numpy
import pytest

TESTS = Path(__file__).resolve().parent
TREE = ast.parse((TESTS.parent / "anatomy.py").read_text(encoding="utf-8"))
PLACES = {
    "engine": "value floats Tensor starting_cotangent backward",
    "optimizers": "Average Optimizer SGD Momentum RMSProp Adam excess",
    "unbroadcast": "unbroadcast",
    "rules": "elementwise softplus logistic positive relu_rule binary along_divisor along_base along_exponent minus "
             "over power exchanged times lend matmul sum_ mean reshape transpose pick each Tensor. logit_losses "
             "bce_with_logits patched_bce",
    "gradcheck": "Report gradcheck ask judge rows_of leaves complex_slopes", "nudge": "numerical_grad",
    "spiral": "spiral weights batches MLP score last_steps fit Run train"}
SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
         ast.MatMult: ast.Mult, ast.FloorDiv: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
         ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
         ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And}


def variants(node):
    """The ways to get this node wrong, as functions that change a copy."""
    swap = SWAPS.get(type(getattr(node, "op", None)))
    if swap:
        yield lambda n: setattr(n, "op", swap())
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield lambda n: n.ops.__setitem__(0, SWAPS[type(n.ops[0])]())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        yield lambda n: setattr(n, "op", ast.UAdd() if isinstance(n.op, ast.USub) else copy.copy(n.op)) \
            or isinstance(n.op, ast.Not) and setattr(n, "operand", ast.UnaryOp(ast.Not(), n.operand))
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield lambda n: setattr(n, "value", n.value + 1)
        yield lambda n: setattr(n, "value", -n.value if n.value else 2)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield lambda n: setattr(n, "value", not n.value)
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))
    if isinstance(node, ast.Call) and node.keywords:
        yield lambda n: n.keywords.pop()


def mutants():
    """(chapter, what was changed, source) for each mutant."""
    for chapter, names in PLACES.items():
        for number, place in enumerate(TREE.body):
            name = getattr(place, "name", "") or ast.unparse(getattr(place, "targets", [ast.Name("")])[0])
            known = name in names.split() or "Tensor." in names and name.lstrip("(").startswith("Tensor.")
            if not known or len(sys.argv) > 1 and name not in sys.argv[1:]:
                continue
            for k, node in enumerate(ast.walk(place)):
                for change in variants(node):
                    tree = copy.deepcopy(TREE)
                    wrong = list(ast.walk(tree.body[number]))[k]
                    before = ast.unparse(wrong)
                    change(wrong)
                    after = ast.unparse(ast.fix_missing_locations(wrong))
                    what = f"{name}:{getattr(node, 'lineno', 0)}  {before[:60]!r} -> {after[:60]!r}"
                    yield chapter, what, ast.unparse(tree)


def survives(mutant):
    """Does every test pass? What takes a minute is caught by the alarm."""
    chapter, what, source = mutant
    files = sorted(PLACES.keys() | {"spiral"}, key=lambda name: name != chapter)
    for out in 1, 2:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.alarm(60)
    module = sys.modules["anatomy"] = types.ModuleType("anatomy")
    try:
        exec(compile(source, "anatomy.py", "exec"), vars(module))
    except Exception:
        return chapter, what, False
    return chapter, what, 0 == pytest.main(["-qx", "-p", "no:cacheprovider", *(
        str(TESTS / f"test_{name}.py") for name in files)])


# What was changed, as it is printed but for the line's number: why no test can see it.
REASONS = {
    "backward '-self.born' -> '+self.born'": "it is alone in the queue",
    "Optimizer '0.0' -> '1.0'": "SGD and Momentum, which take the default, have no eps",
    "Optimizer '0.0' -> '2'": "SGD and Momentum, which take the default, have no eps",
    **{f"excess '1.0' -> '{x}'": "only the weights are read, and they do not depend on it" for x in ("2.0", "-1.0")},
    **{f"along_{place} '0.0' -> '{x}'": "the finite number chosen for g is multiplied by a 0"
       for place in ("base", "exponent") for x in ("1.0", "2")},
    "along_exponent '1.0' -> '2.0'": "the logarithm of the number chosen for u is multiplied by a 0",
    "times 'u.ndim == v.ndim == 2' -> 'u.ndim != v.ndim == 2'": "both spellings give the same bits",
    "times '2' -> '-2'": "both spellings give the same bits",
    "matmul '1' -> '2'": "numpy takes -2, too, for a length that is not known",
    "logit_losses 'z > 0' -> 'z >= 0'": "at 0 both formulas are the same",
    "ask 'abs(y.data) * seed' -> 'abs(y.data) / seed'": "a seed near 1, so a rounding of the same size",
    "rows_of '4' -> '5'": "an allowance of one more unit in the last place",
    "rows_of '2' -> '3'": "an allowance: half of the nudge or a third of it, twice the difference or three times",
    "rows_of '5' -> '6'": "an allowance of one more rounding",
    "complex_slopes '1e-20' -> '-1e-20'": "a step to the other side",
    "spiral '1' -> '-1'": "the last axis is axis 1",
    "weights 'rng.standard_normal((2, hidden)) * np.sqrt(2 / 2)' -> "
    "'rng.standard_normal((2, hidden)) / np.sqrt(2 / 2)'": "the root is 1",
    "score 'y > 0.5' -> 'y >= 0.5'": "no label is 0.5",
}


if __name__ == "__main__":
    seen, unexplained = {}, 0
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        assert pool.apply(survives, [("nudge", "", ast.unparse(TREE))])[2], "a test fails on anatomy.py itself"
        for chapter, what, lives in pool.imap(survives, mutants()):
            seen.setdefault(chapter, []).append(not lives)
            if lives:
                reason = REASONS.get(re.sub(r":\d+ ", "", what), "NO REASON")
                unexplained += reason == "NO REASON"
                print(f"{what}\n    {reason}", flush=True)
    for chapter, caught in {**seen, "all": sum(seen.values(), [])}.items():
        print(f"{chapter:12} {sum(caught):4} of {len(caught):4} mutants caught: {sum(caught) / len(caught):.1%}")
    sys.exit(bool(unexplained))
