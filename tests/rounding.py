"""The story on processors that round differently, told without having them.

    python tests/rounding.py [CHAPTER...] [--seeds N] [--ulps N]

numpy rounds + - * / and sqrt exactly, on every processor. exp, log, sin, powers and
the like may be off by some units in the last place (ulp), sums and matrix products add
in any order. Here the results of those are moved by up to so many ulps, as a fixed
function of the result and the seed; but 0 and infinity stay, and a function's 1, as in
exp(1e-20). Seed 0 is this processor. Prints what failed and what was printed
differently; exit code 1 if anything was.
"""
import argparse
import ast
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from pathlib import Path
from types import ModuleType

import numpy as np

from conftest import SCRIPT, surroundings

QUICK = "nudge engine unbroadcast rules gradcheck optimizers frameworks exercises answers".split()
FUNCTIONS = ("exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh arcsin arccos arctan arctan2 "
             "hypot cbrt power float_power logaddexp logaddexp2").split()
SUMS = "sum mean std var prod dot matmul inner outer vdot einsum tensordot average".split()
METHODS = "sum mean std var prod dot".split()


def whole(*operands):
    """Sums and products of whole numbers are exact in any order."""
    arrays = [np.asarray(x) for x in operands if not isinstance(x, str)]
    return all(a.dtype.kind in "biu" or a.dtype.kind == "f" and np.all(a == np.floor(a)) for a in arrays)


class Processor:
    """What this one would answer, moved by some ulps; seed 0 moves nothing."""
    def __init__(self, seed, ulps):
        self.seed, self.ulps = seed, ulps
        self.salt = np.uint64(2 * int(np.random.default_rng([seed, 1]).integers(2**61)) + 1)

    def move(self, y, reach):
        if self.seed == 0 or not isinstance(y, (np.ndarray, np.generic)) or y.dtype.kind not in "fc":
            return y
        if y.dtype.kind == "c":
            return self.move(np.array(y.real), 1) + 1j * self.move(np.array(y.imag), 1)
        a = np.array(y, np.float64)
        with np.errstate(all="ignore"):
            bits = a.view(np.uint64) * self.salt
            bits ^= bits >> np.uint64(31)
            steps = (bits * self.salt >> np.uint64(11)) % np.uint64(2 * reach + 1)
            moved = a + (steps.astype(int) - reach) * np.spacing(abs(a))
        return np.where((a == 0) | ~np.isfinite(a), a, moved).astype(y.dtype)[()]

    def function(self, y):
        """What a function says, as another library says it."""
        moved = self.move(y, self.ulps)
        return moved if moved is y else np.where(y == 1, y, moved)[()]

    def power(self, a, b):
        exact = isinstance(b, int) and b in (0, 1, 2)
        return a ** b if exact else self.function(a ** b)

    def matmul(self, a, b):
        y = a @ b
        return y if not isinstance(y, np.ndarray) or whole(a, b) else self.move(y, 2)

    def method(self, name, owner, *args, **named):
        y = getattr(owner, name)(*args, **named)
        if not isinstance(owner, (np.ndarray, np.generic)) or whole(owner):
            return y
        return self.move(y, 2)

    def __getattr__(self, name):
        """As `np`: numpy, but for the functions whose last digits differ."""
        real = getattr(np, name)
        if name in FUNCTIONS:
            return lambda *args, **named: self.function(real(*args, **named))
        if name in SUMS:
            return lambda *args, **named: (real(*args, **named) if whole(args[0]) else
                                           self.move(real(*args, **named), 2))
        return real


class Moved(ast.NodeTransformer):
    """numpy and the operators ** and @ by way of `_here`, a Processor."""
    def call(self, name, *args, keywords=()):
        function = ast.Attribute(ast.Name("_here", ast.Load()), name, ast.Load())
        return ast.Call(function, list(args), list(keywords))

    def visit_Import(self, node):
        if node.names[0].name == "numpy":
            return ast.Assign([ast.Name("np", ast.Store())], ast.Name("_here", ast.Load()))
        return node

    def visit_BinOp(self, node):
        self.generic_visit(node)
        name = {ast.Pow: "power", ast.MatMult: "matmul"}.get(type(node.op))
        return self.call(name, node.left, node.right) if name else node

    def visit_Call(self, node):
        self.generic_visit(node)
        f = node.func
        if isinstance(f, ast.Attribute) and f.attr in METHODS and not (isinstance(f.value, ast.Name) and f.value.id == "np"):
            return self.call("method", ast.Constant(f.attr), f.value, *node.args, keywords=node.keywords)
        return node


def tell(script, seed, ulps):
    """Run this file on the processor of that number."""
    source = Path(script).read_text(encoding="utf-8")
    tree = ast.fix_missing_locations(Moved().visit(ast.parse(source)))
    module = sys.modules["__main__"] = ModuleType("__main__")
    vars(module).update(__file__=str(script), _here=Processor(seed, ulps))
    exec(compile(tree, script, "exec"), vars(module))


def told(seed, ulps, chapters, script=SCRIPT):
    """(what it printed, the last line of what went wrong)."""
    run = subprocess.run([sys.executable, __file__, *chapters, "--seed", str(seed), "--ulps", str(ulps), "--script",
                          str(script)], capture_output=True, text=True, env=surroundings())
    return run.stdout, run.stderr.strip()[-400:] if run.returncode else ""


def differences(seeds, ulps, chapters, script=SCRIPT):
    """A text for each processor whose story is not this one's, with what is different."""
    with ThreadPoolExecutor(2) as pool:
        (here, wrong), *others = pool.map(lambda seed: told(seed, ulps, chapters, script), range(seeds + 1))
    found = [f"here: {wrong}"] if wrong else []
    for seed, (there, wrong) in enumerate(others, 1):
        gap = [*unified_diff(here.splitlines(), there.splitlines(), "here", f"seed {seed}", n=0, lineterm="")]
        if gap or wrong:
            found.append("\n".join([*gap[:12], f"seed {seed}: {wrong}"]))
    return found


if __name__ == "__main__":
    line = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    line.add_argument("chapters", nargs="*", default=QUICK)
    line.add_argument("--seeds", type=int, default=8)
    line.add_argument("--ulps", type=int, default=4)
    line.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    line.add_argument("--script", default=str(SCRIPT), help=argparse.SUPPRESS)
    asked = line.parse_intermixed_args()
    if asked.seed is not None:
        sys.argv = [str(asked.script), *asked.chapters]
        tell(asked.script, asked.seed, asked.ulps)
        sys.exit()
    found = differences(asked.seeds, asked.ulps, asked.chapters)
    print(*found, f"{len(found)} of {asked.seeds} processors tell it differently", sep="\n")
    sys.exit(bool(found))
