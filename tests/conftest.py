"""The tests import anatomy.py from the folder above, wherever it lies."""
import ast
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("ANATOMY", Path(__file__).parents[1])).resolve()
SCRIPT = ROOT / "anatomy.py"
SOURCE = SCRIPT.read_text(encoding="utf-8")
sys.path.insert(0, str(ROOT))

# The file cut before each chapter's heading: a preface and the chapters.
CUT = "# %% [markdown]\n# ## "
PREFACE, *PARTS = SOURCE.split(CUT)
PARTS = [CUT + part for part in PARTS]

HEAVY = "spiral", "trial", "race", "break"      # chapters that take seconds


def is_demo(node):
    """Is this statement a block that an import skips?"""
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def without_demos(*names):
    """The parts, those chapters without what they run."""
    parts = []
    for part in PARTS:
        lines = part.splitlines(keepends=True)
        for node in ast.parse(part).body:
            if is_demo(node) and any(f"wanted('{name}')" in ast.unparse(node.test) for name in names):
                lines[node.lineno - 1:node.end_lineno] = ["\n"] * (node.end_lineno - node.lineno + 1)
        parts.append("".join(lines))
    return parts


LEFT_OUT = ("PYTHONUNBUFFERED", "PYTHONPATH", "PYTHONHASHSEED", "MPLBACKEND", "DISPLAY")


def pytest_configure(config):
    """A warning nobody asked for is a failure."""
    config.addinivalue_line("filterwarnings", "error")


def surroundings(**extra):
    """An environment without what this shell happens to hold."""
    kept = {k: v for k, v in os.environ.items() if k not in LEFT_OUT}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **extra}


def python(*args, cwd=None, flags=(), text=True, **extra):
    """Run python with these arguments to its end."""
    return subprocess.run([sys.executable, *flags, *map(str, args)], cwd=cwd, text=text,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=300,
                          encoding="utf-8" if text else None, env=surroundings(**extra))


def story(*args, **settings):
    """Run anatomy.py with these arguments to its end."""
    return python(SCRIPT, *args, **settings)


# The whole story chapter by chapter: what ran so far is a program of its own.
PIECEMEAL = """
import sys
sys.path.insert(0, {tests!r})
from conftest import PREFACE, without_demos
sys.argv = ["anatomy.py", "all", "--out", {out!r}]
names = {{"__name__": "__main__"}}
for number, part in enumerate([PREFACE, *without_demos("trial", "race", "break")]):
    exec(compile(part, "anatomy.py", "exec"), names)
    print(number, file=sys.stderr)
"""

NOTEBOOK = """
import sys, nbformat
from nbclient import NotebookClient
path = sys.argv[1]
book = nbformat.read(path, as_version=4)
NotebookClient(book, timeout=300, kernel_name="python3").execute()
nbformat.write(book, path)
"""


class Stories:
    """Whole runs, each made once and two at a time."""
    def __init__(self, base):
        self.base, self.out = base, base / "not yet" / "sch\u00f6ne Bilder"
        pool = ThreadPoolExecutor(2)
        self.jobs = {name: pool.submit(getattr(self, name))
                     for name in ("pasted", "plain", "piecemeal", "cells")}
        pool.shutdown(wait=False)

    def __getitem__(self, name):
        return self.jobs[name].result()

    def plain(self):
        """From elsewhere, into a folder that is not there yet."""
        return story("all", "--out", self.out,
                     cwd=self.base, flags=("-W", "error"), PYTHONHASHSEED="1")

    def piecemeal(self):
        """Chapter by chapter, with everything set against it (without the
        three longest demos, which are in the two whole runs)."""
        cwd = self.base / "hostile"
        cwd.mkdir()
        (cwd / "matplotlibrc").write_text(
            "axes.spines.top: True\nfigure.dpi: 20\nsvg.fonttype: none\nlines.color: red\n"
            "font.size: 30\nbackend: pdf\nsavefig.facecolor: black\naxes.grid: True\n")
        code = PIECEMEAL.format(tests=str(Path(__file__).parent), out="out")
        return python("-c", code, cwd=cwd, PYTHONHASHSEED="2", MPLBACKEND="nothing",
                      LC_ALL="C", PYTHONIOENCODING="ascii:strict", PYTHONUTF8="0")

    def notebook(self, name, cells):
        import nbformat
        path = self.base / f"{name}.ipynb"
        book = nbformat.v4.new_notebook(cells=cells)
        nbformat.write(book, path)
        result = python("-c", NOTEBOOK, path, cwd=self.base)
        assert result.returncode == 0, result.stderr[-2000:]
        return nbformat.read(path, as_version=4).cells

    def cells(self):
        """As a notebook, one cell for each cell; nothing heavy."""
        import jupytext
        source = "".join([PREFACE, *without_demos(*HEAVY)])
        return self.notebook("cells", jupytext.reads(source, fmt="py:percent").cells)

    def pasted(self):
        """The whole file in one cell, and again without what is heavy."""
        import nbformat
        cell = nbformat.v4.new_code_cell
        return self.notebook("pasted", [
            cell("import sys; print(sys.argv[1:], '__file__' in globals())"),
            cell(SOURCE), cell("".join([PREFACE, *without_demos(*HEAVY)]))])


@pytest.fixture(scope="session")
def stories(tmp_path_factory):
    return Stories(tmp_path_factory.mktemp("stories"))


def waits(item):
    """Does this test read a whole run?"""
    return "stories" in item.fixturenames


def pytest_collection_modifyitems(items):
    """What waits for whole runs comes last; they run meanwhile."""
    items.sort(key=waits)


@pytest.fixture(scope="session", autouse=True)
def start(request):
    """The whole runs, if anybody waits for them."""
    if any(map(waits, request.session.items)):
        request.getfixturevalue("stories")
