"""The form: what a reader of anatomy.py can rely on."""
import ast
import io
import re
import symtable
import builtins
import tokenize
from functools import lru_cache

import pytest

import anatomy
from conftest import PARTS, PREFACE, ROOT, SOURCE, is_demo, python

LINES = SOURCE.splitlines()
TREE = ast.parse(SOURCE)
CELLS = re.split(r"(?m)^(?=# %%)", SOURCE)[1:]
NAMES = list(anatomy.CHAPTERS)
# The file with every demo taken away.
BARE = ast.unparse(ast.Module([n for n in TREE.body if not is_demo(n)], []))
FLOOR = 0.9                     # prose to code in the first part, at least

ENGINE = {"value", "Tensor", "starting_cotangent", "backward", "unbroadcast", "elementwise", "relu_rule", "binary",
          "along_divisor", "along_base", "along_exponent", "exchanged", "times", "lend", "matmul", "sum_", "mean",
          "reshape", "transpose", "pick", "each"}


def docstrings(tree):
    """The line numbers of all docstrings."""
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            lines |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def code_lines():
    """The numbers of lines that hold code, docstrings and comments aside."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT,
               tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING)
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(SOURCE).readline):
        if token.type not in skipped:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return lines - docstrings(TREE)


CODE = code_lines()
PROSE = {n for n, line in enumerate(LINES, 1) if n not in CODE and line.strip(" #")
         and not line.startswith("# %%")}


def lines_of(node):
    """How many lines of code this statement has."""
    return len(CODE & set(range(node.lineno, node.end_lineno + 1)))


def functions(tree=TREE):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def references(table):
    """Every global name that a scope or a scope inside it reads."""
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
            yield symbol.get_name()
    for child in table.get_children():
        yield from references(child)


@lru_cache
def bound(source):
    """Every name bound at the top of this source."""
    table = symtable.symtable(source, "anatomy.py", "exec")
    inside = {s.get_name() for t in functions_in(table) for s in t.get_symbols()
              if s.is_declared_global() and s.is_assigned()}
    return inside | {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()
                     or s.is_namespace()}


def functions_in(table):
    for child in table.get_children():
        yield child
        yield from functions_in(child)


KNOWN = set(dir(builtins)) | {"__name__", "__file__", "__doc__", "__module__", "__qualname__"}


# Cells and chapters

def test_it_opens_with_its_title():
    """A markdown cell that is the module's docstring, and one title."""
    assert LINES[0] == "# %% [markdown]" and LINES[1].startswith(('r"""', '"""'))
    assert ast.get_docstring(TREE).startswith("# Anatomy of a gradient\n")
    assert SOURCE.count("\n# # ") == 0 and SOURCE.endswith("\n") and not SOURCE.endswith("\n\n")


def test_every_cell_is_markdown_or_code():
    """Prose cells hold comments alone, code cells no paragraphs."""
    for cell in CELLS[1:]:
        head, *body = cell.strip().splitlines()
        assert re.fullmatch(r'# %%( \[markdown\]| tags=\["(fold|answer)"\])?', head), head
        if "[markdown]" in head:
            assert body and all(line.startswith("#") for line in body), cell
        else:
            assert ast.parse(cell).body, cell


def test_no_line_of_prose_begins_like_a_list():
    """A + or a number with a dot at the start of a line would be a bullet on the page."""
    marker = re.compile(r"# ([-+*]|\d+[.)]|=+|-+)( |$)")
    prose = [line for cell in CELLS[1:] if "[markdown]" in cell for line in cell.splitlines()[1:]]
    assert [line for line in prose if marker.match(line)] == []
    assert marker.match("# + e^z") and marker.match("# 2. x") and not marker.match("# -log(p)")


def test_chapters_are_numbered_in_order():
    """A heading for each name of CHAPTERS, and its demos below it."""
    headings = [part.splitlines()[1] for part in PARTS]
    numbered = NAMES[:-1] if NAMES[-1] == "answers" else NAMES
    assert [h.split()[2] for h in headings[:len(numbered)]] == [f"{n + 1}." for n in range(len(numbered))]
    assert headings[len(numbered):] == ["# ## Answers"] * (len(NAMES) - len(numbered))
    assert not re.search(r'wanted\("', PREFACE)
    for name, part in zip(NAMES, PARTS, strict=True):
        assert set(re.findall(r'wanted\("(\w+)"\)', part)) == {name}


ASSERTING = {f.name for f in ast.walk(TREE) if isinstance(f, ast.FunctionDef)
             and any(isinstance(n, ast.Assert) for n in ast.walk(f))}


@pytest.mark.parametrize("name, part", list(zip(NAMES, PARTS)), ids=NAMES)
def test_every_chapter_proves_something(name, part):
    """Demos that assert, themselves or in what they call; nothing runs outside."""
    body = ast.parse(part).body
    inner = [n for demo in body if is_demo(demo) for n in ast.walk(demo)]
    assert name in ("exercises", "answers") or any(
        isinstance(n, ast.Assert) or isinstance(n, ast.Name) and n.id in ASSERTING for n in inner)
    for node in body:
        assert not isinstance(node, ast.Expr) or isinstance(node.value, ast.Constant), ast.unparse(node)


@pytest.mark.parametrize("name, part", list(zip(NAMES, PARTS)), ids=NAMES)
def test_a_demo_reads_no_other_chapters_demo(name, part):
    """So that each chapter runs alone."""
    demos = ast.unparse(ast.Module([n for n in ast.parse(part).body if is_demo(n)], []))
    read = set(references(symtable.symtable(demos, "", "exec")))
    assert read - bound(demos) - bound(BARE) - KNOWN == set()


def test_every_prefix_runs(stories):
    """What has been told so far is a working program, chapter by chapter."""
    run = stories["piecemeal"]
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stderr.split() == [str(n) for n in range(len(PARTS) + 1)]


def test_no_definition_reads_a_demos_name():
    """With every demo taken away, each name that is read is bound."""
    table = symtable.symtable(BARE, "anatomy.py", "exec")
    assert set(references(table)) - bound(BARE) - KNOWN == set()
    leaky = BARE + "\ndef f(): return never_bound\nif wanted('x'):\n    never_bound = 1\n"
    demo_gone = ast.unparse(ast.Module([n for n in ast.parse(leaky).body if not is_demo(n)], []))
    assert "never_bound" in set(references(symtable.symtable(demo_gone, "", "exec"))) - bound(demo_gone)


def test_no_name_comes_before_its_chapter():
    """Only unbroadcast is announced a chapter ahead, and the prose says so."""
    told, early = set(KNOWN), set()
    for part in [PREFACE, *PARTS]:
        told |= bound(part)
        early |= set(references(symtable.symtable(part, "anatomy.py", "exec"))) - told
    assert early == {"unbroadcast"}
    assert "`unbroadcast`" in PARTS[1]


def stored(nodes):
    """Every name that these statements bind."""
    return {n.id for node in nodes for n in ast.walk(node)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def test_no_demonstration_takes_a_name_of_the_engine():
    """Run such a cell twice, and 2 ** x would be dead."""
    told = [node for node in TREE.body if not is_demo(node)]
    defined = {node.name for node in told if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    defined |= stored(target for node in told if isinstance(node, ast.Assign) for target in node.targets)
    assert len(defined) > 60 and stored(node for node in TREE.body if is_demo(node)) & defined == set()
    taken = ast.parse("for power in 2, 4: print(power)\nwith open(x) as judge: pass\n(mean := 3)")
    assert stored(taken.body) & defined == {"power", "judge", "mean"}


def test_drawing_functions_never_compute():
    """A picture is handed its data, and says in words what there is to see."""
    drawn = set(re.findall(r"picture\(\s*\"[\w-]+\",\s*(?:lambda[^:]*:\s*)?(draw_\w+)", SOURCE))
    defined = {f.name: f for f in functions() if f.name.startswith("draw_")}
    assert drawn == set(defined) and len(drawn) > 5
    for name, f in defined.items():
        text = ast.get_docstring(f) or ""
        assert len(text) > 60 and text.endswith("."), name


def test_public_words_have_docstrings():
    """Classes, optimizers and what the story calls by name."""
    for name in ("Tensor", "unbroadcast", "bce_with_logits", "numerical_grad", "gradcheck", "Report",
                 "spiral", "MLP", "train", "Run", "Optimizer", "SGD", "Momentum", "RMSProp", "Adam"):
        assert (getattr(anatomy, name).__doc__ or "").strip(), name
    for f in functions():
        text = ast.get_docstring(f)
        assert text is None or text.rstrip().endswith((".", ":", "?")), f.name


# Size

def test_width():
    """79 columns, no tabs, no blanks at the end of a line."""
    for n, line in enumerate(LINES, 1):
        assert len(line) <= 79 and line == line.rstrip() and "\t" not in line, n


def test_the_engine_fits_in_a_head():
    """190 lines of code."""
    parts = [n for n in TREE.body if getattr(n, "name", "") in ENGINE
             or isinstance(n, ast.Assign) and ast.unparse(n.targets[0]).lstrip("(").startswith("Tensor.")]
    assert len({getattr(n, "name", "") for n in parts} - {""}) == len(ENGINE)
    assert sum(map(lines_of, parts)) <= 190


def test_no_function_is_long():
    """25 lines, its docstring aside."""
    assert max((lines_of(f), f.name) for f in functions()) <= (25, "~")


def test_drawing_is_a_small_part():
    """15% of the code."""
    drawing = [f for f in TREE.body if isinstance(f, ast.FunctionDef)
               and (f.name.startswith("draw_") or f.name == "picture")]
    assert sum(map(lines_of, drawing)) <= 0.15 * len(CODE)


def test_prose_to_code():
    """It is a book."""
    end = SOURCE[:SOURCE.index("# ## 8.")].count("\n")
    prose, code = (sum(n <= end for n in lines) for lines in (PROSE, CODE))
    assert prose >= FLOOR * code, prose / code


# Voice

def test_plain_characters():
    """No emoji, no dashes that a keyboard has not."""
    assert SOURCE.isascii()


def test_no_exclamation():
    """Not in prose, not in docstrings; != and f"{x!r}" are code."""
    for n in sorted(PROSE):
        assert "!" not in re.sub(r"!=|\{\w+!r", "", LINES[n - 1]), LINES[n - 1]


@pytest.mark.parametrize("word", ["simply", "just", "obviously", "clearly", "of course",
                                  "trivial", "amazing", "powerful", "elegant", "beautiful", "TODO", "FIXME"])
def test_no_word_of_praise_or_pressure(word):
    """What is obvious to one reader is not to the next."""
    prose = "\n".join(LINES[n - 1] for n in sorted(PROSE))
    assert not re.search(rf"\b{word}\b", prose), word


# Import

IMPORT = """
import os, random, signal, sys, warnings, locale
import numpy as np
np.random.seed(5); random.seed(7)
sys.argv = ["prog", "--not-an-option", "nonsense"]
def state():
    return (str(np.geterr()), str(np.get_printoptions()), sys.getrecursionlimit(), list(warnings.filters),
            os.getcwd(), dict(os.environ), list(sys.path), list(sys.argv), random.getstate(),
            np.random.get_state()[1].tolist(), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM),
            signal.getsignal(signal.SIGPIPE) if hasattr(signal, "SIGPIPE") else 0, sys.excepthook, sys.displayhook,
            locale.setlocale(locale.LC_ALL), sys.stdout, sys.getswitchinterval())
before, loaded = state(), set(sys.modules)
import anatomy
assert state() == before
new = {name.split(".")[0] for name in set(sys.modules) - loaded}
print(sorted(new - set(sys.stdlib_module_names)))
"""


def test_import_is_silent(tmp_path):
    """It prints nothing, writes nothing, changes nothing, needs numpy alone."""
    run = python("-c", IMPORT, cwd=tmp_path, flags=("-W", "error"), PYTHONPATH=str(ROOT))
    assert (run.returncode, run.stdout, run.stderr) == (0, "['anatomy']\n", "")
    assert list(tmp_path.iterdir()) == []


def test_only_numpy_at_the_top():
    """matplotlib and IPython are imported where a picture is drawn."""
    names = {alias.name for node in TREE.body if isinstance(node, (ast.Import, ast.ImportFrom))
             for alias in (node.names if isinstance(node, ast.Import) else [ast.alias(node.module)])}
    assert "numpy" in names and not {"matplotlib", "IPython", "matplotlib.pyplot"} & names
    assert "pyplot" not in SOURCE


# Layout

def test_the_top_level_shows_the_architecture():
    """The file, its pages, its tests, and what a person types."""
    top = {path.name for path in ROOT.iterdir()
           if not path.name.startswith((".", "__"))}
    assert top - {"site"} == {"anatomy.py", "docs", "tests", "mkdocs.yml", "Makefile", "README.md"}
