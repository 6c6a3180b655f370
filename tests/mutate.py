"""Change one thing in anatomy.py and see whether a test notices.

    python tests/mutate.py [NAME...]     mutants of these definitions, or of all

A mutant is the file with one operator, comparison, constant, sign, condition
or keyword argument changed inside a definition listed in PLACES. Each is
tried against the tests of the chapters, its own first, until one fails.
Prints the survivors and the score.
"""
import ast
import copy
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parent
TREE = ast.parse((TESTS.parent / "anatomy.py").read_text(encoding="utf-8"))
PLACES = {
    "nudge": "floats numerical_grad", "engine": "value Tensor starting_cotangent",
    "unbroadcast": "unbroadcast",
    "rules": "elementwise softplus logistic positive divide power matmul sum_ mean reshape transpose "
             "pick swapped Tensor. bce_with_logits patched_bce",
    "gradcheck": "Report gradcheck ask judge",
    "optimizers": "Average flat Optimizer SGD Momentum RMSProp Adam excess"}
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
    """Does every test pass? A mutant that takes a minute is caught."""
    chapter, what, source = mutant
    files = sorted(PLACES.keys() | {"spiral"}, key=lambda name: name != chapter)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "anatomy.py").write_text(source, encoding="utf-8")
        try:
            run = subprocess.run(
                [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", "--no-header",
                 *(str(TESTS / f"test_{name}.py") for name in files)], stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, timeout=90, env={**os.environ, "ANATOMY": folder})
        except subprocess.TimeoutExpired:
            return what, False
    return what, run.returncode == 0


if __name__ == "__main__":
    assert survives(("nudge", "", ast.unparse(TREE)))[1], "the tests fail on anatomy.py itself"
    with ThreadPoolExecutor(os.cpu_count() + 1) as pool:
        found = list(pool.map(survives, mutants()))
    alive = [what for what, lives in found if lives]
    print(*alive, sep="\n")
    print(f"{len(found) - len(alive)} of {len(found)} mutants caught: {1 - len(alive) / max(len(found), 1):.1%}")
