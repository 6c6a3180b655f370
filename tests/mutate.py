"""Change or forget one thing in anatomy.py and see whether a test notices.

    python tests/mutate.py [NAME...]          exchange in these definitions, or in all
    python tests/mutate.py delete [NAME...]   delete in these chapters or definitions, or in all

An exchange is one operator, comparison, constant, sign, condition or keyword
argument changed inside a definition listed in PLACES. Each is tried in a
process of its own against the chapters' tests, its chapter's first, until one
fails.

A deletion puts `pass` in the place of one simple statement: of a function, a
class or the file, but not of what draws. At first the code is exchanged in a
copy of a process that has collected the chapter's tests, and those tests run
that enter the function. What they do not notice is tried again from the
import on, with all tests of the chapter, and the chapter is told. In a
demonstration nothing but the telling can notice; there assertions are counted
and not deleted, and what shows something is left alone.

Prints the survivors, each with the reason why no test sees it, and the score
of each chapter. Exit code 1 if a survivor has no reason, or if fewer deletions
are noticed than LEAST says.
"""
import ast
import contextlib
import copy
import gc
import io
import multiprocessing
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections import namedtuple
from pathlib import Path

import numpy
import pytest
from _pytest.runner import runtestprotocol

TESTS = Path(__file__).resolve().parent
FILE = Path(os.environ.get("ANATOMY", TESTS.parent)).resolve() / "anatomy.py"
SOURCE = FILE.read_text(encoding="utf-8")
TREE = ast.parse(SOURCE)
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


def name_of(place):
    """What a statement of the file defines."""
    return getattr(place, "name", "") or ast.unparse(getattr(place, "targets", [ast.Name("")])[0])


def mutants():
    """(chapter, what was changed, source) for each mutant."""
    for chapter, names in PLACES.items():
        for number, place in enumerate(TREE.body):
            name = name_of(place)
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


# Deletions. The tests of a chapter that can notice, and the least share of its deletions that they have to.
FILES = {"preface": "run", "nudge": "nudge gradcheck run::test_a_file_is_whole_or_absent",
         "engine": "engine unbroadcast rules gradcheck",
         "unbroadcast": "unbroadcast engine", "rules": "rules engine spiral", "gradcheck": "gradcheck",
         "optimizers": "optimizers spiral", "spiral": "spiral optimizers race", "race": "race",
         "trial": "trial examine", "break": "break", "frameworks": "frameworks", "exercises": "exercises",
         "answers": "exercises"}
LEAST = {"all": 0.90, "engine": 0.95, "rules": 0.95, "gradcheck": 0.95, "optimizers": 0.95, "train": 0.95}
DRAWS = re.compile(r"draw_\w+|picture|plain_ticks|paint|show_walks|in_cells|BLUE.*|CENTRE|STYLE|COLORS|LINES")
SHOWS = re.compile(r"(print|picture|say)\(")
ASSERTS = re.compile(r"assert |raise AssertionError")
SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Raise, ast.Assert, ast.Delete, ast.Break,
          ast.Continue, ast.Global, ast.Nonlocal)
Deletion = namedtuple("Deletion", "chapter kind name line text number k function")


def paths(chapter):
    names = [name.partition("::") for name in FILES[chapter].split()]
    return [f"{TESTS}/test_{name}.py{colons}{test}" for name, colons, test in names]


def spots(node, function=None):
    """(block, index, the function around it) for each simple statement in here, docstrings left out."""
    if isinstance(node, ast.FunctionDef):
        function = node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)])
    for field in "body", "orelse", "handlers", "finalbody":
        block = getattr(node, field, None)
        for i, statement in enumerate(block if isinstance(block, list) else []):
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if isinstance(statement, SIMPLE) and not is_text:
                yield block, i, function
            yield from spots(statement, function)


def deletions(chapters):
    heads = [i for i, line in enumerate(SOURCE.splitlines(), 1) if line.startswith("# ## ")]
    for number, place in enumerate(TREE.body):
        chapter = list(FILES)[sum(line < place.lineno for line in heads)]
        demo = isinstance(place, ast.If) and "wanted(" in ast.unparse(place.test)
        if chapters and not {chapter, name_of(place)} & set(chapters) or DRAWS.fullmatch(name_of(place)):
            continue
        for k, (block, i, function) in enumerate(spots(ast.Module([place], []))):
            text = ast.unparse(block[i])
            kind = "code"
            if demo:
                kind = "assert" if ASSERTS.match(text) else "shows" if SHOWS.match(text) else "demo"
            yield Deletion(chapter, kind, "demo" if demo else name_of(place) or "file", block[i].lineno,
                           text.splitlines()[0][:70], number, k, function)


def without(deletion):
    """The one statement of the file that is different now."""
    place = ast.Module([copy.deepcopy(TREE.body[deletion.number])], [])
    block, i, function = list(spots(place))[deletion.k]
    block[i] = ast.copy_location(ast.Pass(), block[i])
    return place


def whole(deletion, draws=True):
    tree = ast.Module(list(TREE.body), [])
    if deletion:
        tree.body[deletion.number:deletion.number + 1] = without(deletion).body
    if not draws:
        blank = ast.parse("def picture(*data, **settings): pass").body[0]
        tree.body = [blank if name_of(place) == "picture" else place for place in tree.body]
    return tree


def survivors(lives, deletions, limit):
    """Those of which `lives` is true, each asked in a process of its own, two at a time, for so many seconds."""
    running, found = {}, []

    def wait():
        pid, status = os.wait()
        deletion = running.pop(pid)
        if status == 0:
            found.append(deletion)

    for deletion in deletions:
        if len(running) == 2:
            wait()
        pid = os.fork()
        if not pid:
            code = 1
            try:
                signal.alarm(limit)
                if sys.platform == "linux":         # elsewhere this limit is refused
                    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
                os.dup2(null, 1), os.dup2(null, 2)
                code = 0 if lives(deletion) else 1
            finally:
                os._exit(code)
        running[pid] = deletion
    while running:
        wait()
    return sorted(found, key=lambda deletion: (deletion.line, deletion.k))


null = os.open(os.devnull, os.O_WRONLY)


def all_pass(items):
    for item, following in zip(items, [*items[1:], None]):
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return False
    return True


class Copies:
    """In the place of pytest's loop: the deletions that the collected tests do not notice.

    `found` has all of them; `settled` those of which nothing else can be asked from the import on, as the function is
    not entered before the tests begin.
    """
    def __init__(self, deletions):
        self.deletions, self.entered = deletions, set()
        sys.settrace(self.trace)

    def trace(self, frame, event, _):
        if frame.f_code.co_filename == str(FILE):
            self.entered.add((frame.f_code.co_name, frame.f_code.co_firstlineno))

    def pytest_runtestloop(self, session):
        sys.settrace(None)
        path, before = Path(tempfile.mkdtemp()) / "entered", self.entered
        assert survivors(lambda _: self.measure(session.items, path), self.deletions[:1], 300)
        tests, longest = {}, 0
        for item, (seconds, functions, shared) in zip(session.items, pickle.loads(path.read_bytes())):
            longest += seconds
            for function in functions:
                tests.setdefault(function, []).append((seconds, item, shared))
        # What one test has set up, others read.
        for function, some in tests.items():
            read = set().union(*(shared for seconds, item, shared in some))
            done = {item for seconds, item, shared in some}
            some += [(0, item, read) for item in session.items if item not in done and fixtures(item) & read]
        self.found = survivors(lambda deletion: self.lives(tests.get(deletion.function, []), deletion),
                               self.deletions, 20 + int(2 * longest))
        self.settled = [deletion for deletion in self.found if deletion.function not in before
                        and exchanged(deletion) and deletion.chapter != "break"]
        return True

    def measure(self, items, path):
        """How long each test takes, which functions of anatomy.py it enters, and the fixtures that it shares."""
        entered = []
        for item, following in zip(items, [*items[1:], None]):
            self.entered, begin = set(), time.perf_counter()
            sys.settrace(self.trace)
            reports = runtestprotocol(item, log=False, nextitem=following)
            sys.settrace(None)
            entered.append((time.perf_counter() - begin, self.entered, fixtures(item)))
            if any(report.failed for report in reports):
                return False
        path.write_bytes(pickle.dumps(entered))
        return True

    def lives(self, tests, deletion):
        """Exchange the code, of functions that were made by others as well."""
        new = exchanged(deletion)
        if not new or not tests:
            return True
        for f in gc.get_objects():
            if isinstance(f, types.FunctionType) and f.__code__.co_filename == str(FILE):
                f.__code__ = new.get((f.__code__.co_name, f.__code__.co_firstlineno), f.__code__)
        return all_pass([item for seconds, item, shared in sorted(tests, key=lambda test: test[0])])


def fixtures(item):
    """The names of the fixtures that this test shares with others of its file."""
    return {name for name, found in item._fixtureinfo.name2fixturedefs.items()
            if found[-1].scope != "function" and "test_" in found[-1].baseid}


def functions_of(place):
    """(name, line) -> code, for each function that is defined in here."""
    codes, found = [compile(place, str(FILE), "exec")], {}
    for code in codes:
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
        if code.co_name != "<lambda>":
            found[code.co_name, code.co_firstlineno] = code
    return found


def exchanged(deletion):
    """The function with the deletion, and those around it; nothing if they cannot stand in for what is there."""
    ours, new = functions_of(ast.Module([TREE.body[deletion.number]], [])), functions_of(without(deletion))
    if deletion.function not in ours or any(code.co_freevars != new[key].co_freevars for key, code in ours.items()):
        return {}
    return {key: code for key, code in new.items() if code != ours[key]}


def tell(deletion, chapter):
    """What is printed by a chapter that is told without its pictures, and its tables; an exception if it stops."""
    out, printed = Path(tempfile.mkdtemp()), io.StringIO()
    here = {"__name__": "__main__", "__file__": "anatomy.py"}
    argv, sys.argv = sys.argv, ["anatomy.py", chapter, "--out", str(out)]
    with contextlib.redirect_stdout(printed):
        exec(compile(whole(deletion, draws=False), str(FILE), "exec"), here)
    sys.argv = argv
    return printed.getvalue(), {path.name: path.read_text(encoding="utf-8") for path in out.glob("*.md")}


def told(deletion):
    """Is the chapter told as before? It prints what is in tests/golden, and its tables are those in docs/generated."""
    printed, tables = tell(deletion, deletion.chapter)
    golden = (TESTS / "golden/story.txt").read_text(encoding="utf-8")
    if printed not in re.split(r"(?m)^(?=\n--- \w+ ---$|\nThe pictures and tables: )", golden):
        return False
    kept = {path.name: path.read_text(encoding="utf-8") for path in (FILE.parent / "docs/generated").glob("*.md")}
    calls = re.findall(r"""\btable\(["'](\w+)["']""", "".join(
        ast.unparse(place) for place in TREE.body if f"wanted('{deletion.chapter}')" in ast.unparse(place)[:40]))
    return tables == {f"{name}.md": kept[f"{name}.md"] for name in calls}


def lives_on(deletion):
    """From the import on: do all tests of the chapter pass, and is it told as before?"""
    if deletion.chapter == "preface":
        folder = Path(tempfile.mkdtemp())
        (folder / "anatomy.py").write_text(ast.unparse(whole(deletion)), encoding="utf-8")
        run = subprocess.run([
            sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", f"{TESTS}/test_run.py",
            f"{TESTS}/test_story.py", "-k",
            "help or unknown or two_names or both_sides or kernel or import_is_silent"],
            env={**os.environ, "ANATOMY": str(folder)})
        return run.returncode == 0
    module = sys.modules["anatomy"] = types.ModuleType("anatomy")
    module.__file__ = str(FILE)
    exec(compile(whole(deletion), str(FILE), "exec"), vars(module))
    tests = paths(deletion.chapter)
    return told(deletion) and pytest.main(["-qx", "-p", "no:cacheprovider", *tests]) == 0


def ask_copies(deletions):
    """Which are left after the first tests, and which of them are settled; in a process that imports the tests."""
    path = Path(tempfile.mkdtemp()) / "found"

    def collect(_):
        copies = Copies(deletions)
        tests = paths(deletions[0].chapter)
        pytest.main(["-q", "-p", "no:cacheprovider", "--capture=sys", *tests], plugins=[copies])
        path.write_bytes(pickle.dumps((copies.found, set(copies.settled))))
        return True

    assert survivors(collect, deletions[:1], 3000), f"{deletions[0].chapter}: a test fails on anatomy.py itself"
    return pickle.loads(path.read_bytes())


# What was deleted, as it is printed but for the line's number: why no test can see it.
UNSEEN = {
    **dict.fromkeys(("demo cotangents[node] = g", "demo steps.append((node, g, dict(ledger)))",
                     "demo cotangents.update(ledger)",
                     "demo patched, patched_slope, ours, our_slope = loss_slopes(z)"),
                    "only the picture reads it"),
    **dict.fromkeys(("demo panels[f'{name}, {final[name]:.0%} right'] = landscape(run.kept[2000])",
                     "demo panels = {f'step {step}': landscape(runs['Adam'].kept[step]) for step "),
                    "only the picture reads it, of which test_pictures.py asks"),
    "demo X, y = spiral(seed)": "points of the X and y outside of the function do as well",
    "second_over_first still.step()": "at a rate of 0 a step changes nothing",
    "EditedArray kept.data = kept.data * 10": "it shows that such a write changes nothing",
    **dict.fromkeys(("demo x = Tensor(1.0)", "demo x = Tensor(3.0)"), "an x from the code before it does as well"),
    **dict.fromkeys(("broadcast_pairs continue", "way_to_ask continue"), "nothing stands behind it in the loop"),
    "demo x.data = np.ones(3)": "the demonstration shows that it changes nothing",
    "decayed times_lr.grad = by_itself.grad = 0.0": "who has no slope sits out, and a slope of 0 takes no step",
    "file print('\\nThe pictures and tables: add --out DIR to the command.')": "here each chapter is told with --out",
    "demo a.grad = b.grad = None": "nothing has come to them before, unless a cell is run twice",
}


def delete(chapters):
    """Prints what survives and the scores; returns whether that is good enough."""
    scores, unexplained, begin = {}, 0, time.perf_counter()
    everything = list(deletions(chapters))
    for chapter in FILES:
        here = [deletion for deletion in everything if deletion.chapter == chapter]
        code = [deletion for deletion in here if deletion.kind == "code"]
        demo = [deletion for deletion in here if deletion.kind == "demo"]
        left, settled = ask_copies(code) if code and chapter != "preface" else (code, set())
        only_told = settled | set(demo)
        found = set(survivors(lambda d: told(d) if d in only_told else lives_on(d), left + demo, 400))
        for deletion in code + demo:
            group = "demonstrations" if deletion.kind == "demo" else chapter
            for name in {group, "all", deletion.name} & {"demonstrations", *FILES, *LEAST}:
                scores.setdefault(name, []).append(deletion not in found)
            if deletion in found:
                reason = UNSEEN.get(f"{deletion.name} {deletion.text}", "NO REASON")
                unexplained += reason == "NO REASON"
                print(f"{chapter} {deletion.name}:{deletion.line}  {deletion.text}\n    {reason}", flush=True)
    for name in [name for name in (*FILES, "train", "demonstrations", "all") if name in scores]:
        share = sum(scores[name]) / len(scores[name])
        print(f"{name:14} {sum(scores[name]):4} of {len(scores[name]):4} deletions noticed: {share:.1%}")
    print(f"not deleted: {sum(d.kind == 'assert' for d in everything)} assertions in demonstrations, "
          f"{sum(d.kind == 'shows' for d in everything)} statements there that show something")
    print(f"{(time.perf_counter() - begin) / 60:.0f} minutes")
    low = [name for name, least in LEAST.items() if name in scores and sum(scores[name]) < least * len(scores[name])]
    return not unexplained and not low


if __name__ == "__main__":
    if sys.argv[1:2] == ["delete"]:
        sys.exit(not delete(sys.argv[2:]))
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
