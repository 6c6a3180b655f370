"""The tests import anatomy.py from the folder above, wherever it lies."""
import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import browser

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
    return isinstance(node, ast.If) and "wanted(" in ast.unparse(node.test)


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


LEFT_OUT = ("PYTHONUNBUFFERED", "PYTHONPATH", "PYTHONHASHSEED", "MPLBACKEND", "DISPLAY",
            "MAKEFLAGS", "MFLAGS", "MAKELEVEL")


def pytest_configure(config):
    """A warning nobody asked for is a failure."""
    config.addinivalue_line("filterwarnings", "error")
    config.addinivalue_line("markers", "deep: asks an engine about a chain of thousands of sums")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Where CI=true nothing is left out, but for what an administrator may do and others may not."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if "root" not in reason:
            report.outcome, report.longrepr = "failed", f"left out, where CI=true: {reason}"
    return report


def surroundings(**extra):
    """An environment without what this shell happens to hold."""
    kept = {k: v for k, v in os.environ.items() if k not in LEFT_OUT}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **extra}


def python(*args, cwd=None, flags=(), text=True, **extra):
    """Run python with these arguments to its end."""
    return subprocess.run([sys.executable, *flags, *map(str, args)], cwd=cwd, text=text,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=600,
                          encoding="utf-8" if text else None, env=surroundings(**extra))


def story(*args, **settings):
    """Run anatomy.py with these arguments to its end."""
    return python(SCRIPT, *args, **settings)


def load(name):
    """A module of docs/, which is no package."""
    found = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def copied(folder, changed=()):
    """What the site is built from, with these (path, text) changed, and the environment for it."""
    shutil.copytree(ROOT / "docs", folder / "docs", dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))
    for name in "anatomy.py", "mkdocs.yml":
        shutil.copy(ROOT / name, folder)
    for path, text in changed:
        (folder / path).write_text(text, encoding="utf-8")
    return {"NO_MKDOCS_2_WARNING": "1", "SITE_URL": "", "REPO_URL": ""}


# The whole story chapter by chapter: what ran so far is a program of its own.
PIECEMEAL = """
import sys
sys.path.insert(0, {tests!r})
from conftest import PREFACE, without_demos
sys.argv = ["anatomy.py", "all", "--out", {out!r}]
names = {{"__name__": "__main__", "__file__": "anatomy.py"}}
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
    """Long runs, each made once and two at a time; together they are the story
    in each way in which it is told, and the longest demo is run once."""
    def __init__(self, base):
        self.base, self.out = base, base / "not yet" / "sch\u00f6ne Bilder"
        self.pool, self.jobs = ThreadPoolExecutor(2), {}

    def begin(self, name):
        if name not in self.jobs:
            self.jobs[name] = self.pool.submit(getattr(self, name))
        return self.jobs[name]

    def __getitem__(self, name):
        return self.begin(name).result()

    def site(self):
        """The site, built where there is a space in the path; in it the story
        as a notebook, one cell for each cell. Where this very text was run
        before, by `make docs`, that run is kept."""
        (self.base / "a clone").mkdir()
        kept = load("hooks").home()
        if kept.exists():
            shutil.copytree(kept, self.base / "a clone" / kept.relative_to(ROOT))
        return self.build("a clone")

    def again(self):
        """The site from the notebook that the first one has run."""
        (self.base / "again").mkdir()
        shutil.copytree(self["site"].parent / ".cache", self.base / "again" / ".cache")
        return self.build("again")

    def build(self, name):
        folder = self.base / name
        folder.mkdir(exist_ok=True)
        run = python("-m", "mkdocs", "build", "--strict", cwd=folder, **copied(folder))
        said = run.stdout + run.stderr
        assert run.returncode == 0 and not re.search(r"^(WARNING|ERROR)", said, re.M), said
        return folder / "site"

    def plain(self):
        """From elsewhere, into a folder that is not there yet (without the
        longest demo, which is in the site's run)."""
        from anatomy import CHAPTERS
        return story(*[name for name in CHAPTERS if name != "race"], "--out", self.out,
                     cwd=self.base, flags=("-W", "error"), PYTHONHASHSEED="1")

    def piecemeal(self):
        """Chapter by chapter, with everything set against it (without the
        three longest demos)."""
        cwd = self.base / "hostile"
        cwd.mkdir()
        (cwd / "matplotlibrc").write_text(
            "axes.spines.top: True\nfigure.dpi: 20\nsvg.fonttype: none\nlines.color: red\n"
            "font.size: 30\nbackend: pdf\nsavefig.facecolor: black\naxes.grid: True\n")
        code = PIECEMEAL.format(tests=str(Path(__file__).parent), out="out")
        return python("-c", code, cwd=cwd, PYTHONHASHSEED="2", LC_ALL="C",
                      PYTHONIOENCODING="ascii:strict", PYTHONUTF8="0")

    def pasted(self):
        """The whole file in one cell (without the two longest demos), and
        again without what is heavy."""
        import nbformat
        cell, path = nbformat.v4.new_code_cell, self.base / "pasted.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=[
            cell("import sys; print(sys.argv[1:], '__file__' in globals())"),
            cell("".join([PREFACE, *without_demos("trial", "race")])),
            cell("".join([PREFACE, *without_demos(*HEAVY)]))]), path)
        run = python("-c", NOTEBOOK, path, cwd=self.base)
        assert run.returncode == 0, run.stderr[-2000:]
        return nbformat.read(path, as_version=4).cells


# The whole runs, the longest way first, and the fixtures that wait for them.
RUNS = {"site": {"site", "stories"}, "plain": {"stories"}, "pasted": {"stories"},
        "piecemeal": {"stories"}, "again": {"builds"}}


@pytest.fixture(scope="session")
def background(tmp_path_factory):
    stories = Stories(tmp_path_factory.mktemp("stories"))
    yield stories
    stories.pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def stories(background):
    return background


@pytest.fixture(scope="session")
def site(background):
    return background["site"]


@pytest.fixture(scope="session")
def builds(background, site):
    return [site, background["again"]]


@pytest.fixture(scope="session")
def looks(background, tmp_path_factory):
    """The looks of a browser at the site; they begin when it is built."""
    looks = browser.Looks(background.begin("site"), tmp_path_factory.mktemp("axe"))
    yield looks
    looks.close()


@pytest.fixture(scope="session")
def runs():
    """The four of chapter 7, from one start."""
    from anatomy import OPTIMIZERS, train
    return {name: train(kind, keep=[50, 200, 500, 1000]) for name, kind in OPTIMIZERS.items()}


def patience(item):
    """How long this test has to wait: not, for whole runs, for a browser."""
    return [name in item.fixturenames for name in ("looks", "site", "stories")]


def pytest_collection_modifyitems(items):
    """Who waits comes last; what they wait for runs meanwhile."""
    items.sort(key=patience)


@pytest.fixture(scope="session", autouse=True)
def start(request):
    """Everything that somebody will wait for."""
    wanted = {name for item in request.session.items for name in item.fixturenames}
    for run, fixtures in RUNS.items():
        if wanted & fixtures:
            request.getfixturevalue("background").begin(run)
    if "looks" in wanted:
        request.getfixturevalue("looks")
