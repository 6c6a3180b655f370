"""Ways to run: five of them, and the surroundings that people have."""
import os
import re
import runpy
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import jupytext
import numpy as np
import pytest

import anatomy
from conftest import HEAVY, NOTEBOOK, PREFACE, ROOT, SCRIPT, SOURCE, python, story, surroundings
from rounding import QUICK

NAMES = list(anatomy.CHAPTERS)
ADVICE = "\nThe pictures and tables: add --out DIR to the command.\n"
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and devices of Unix")


def fine(run):
    """It ended well and had nothing to complain about."""
    assert (run.returncode, run.stderr) == (0, ""), run.stderr[-2000:]
    return run.stdout


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def sections(text):
    """What each chapter printed below its heading."""
    _, *parts = re.split(r"(?m)^\n--- (\w+) ---\n\n", text.removesuffix(ADVICE))
    return dict(zip(parts[::2], parts[1::2]))


# What a reader is told, whichever way he takes.
WANTED = sections((Path(__file__).parent / "golden/story.txt").read_text("utf-8"))


@pytest.fixture(scope="module")
def nudge():
    """What the first chapter prints in plain surroundings."""
    return fine(story("nudge"))


@pytest.fixture(scope="module")
def usage():
    """What it says when it is asked how."""
    return fine(story("-h"))


@pytest.fixture(scope="module")
def pair():
    """Two chapters, asked backwards and one of them twice."""
    return fine(story("engine", "nudge", "engine"))


# The command line

def test_help(usage):
    """The chapters and the option, within 79 columns."""
    assert usage == fine(story("--help")) and "--out DIR" in usage
    assert all(re.search(rf"\b{name}\b", usage) for name in NAMES)
    assert max(map(len, usage.splitlines())) <= 79


def test_a_bare_call_prints_the_help(usage):
    assert fine(story()) == usage


@pytest.mark.parametrize("names", [["typo"], ["nudge", "typo"], ["typo", "--out", "o"], ["Nudge"], ["all", "typo"], [""],
                                   ["--out", "o"]])
def test_unknown_or_no_name(names, tmp_path):
    """Exit 2, a usage line, no traceback, nothing run and nothing written."""
    run = story(*names, cwd=tmp_path)
    assert run.returncode == 2 and run.stdout == "" and "Traceback" not in run.stderr
    assert run.stderr.startswith("usage: ") and (names[0] == "--out" or all(name in run.stderr for name in NAMES))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("args", [["all", "--out"], ["nudge", "--nothing"], ["-x"]])
def test_unknown_option(args):
    """Exit 2, a usage line, no traceback."""
    run = story(*args)
    assert run.returncode == 2 and "usage:" in run.stderr and "Traceback" not in run.stderr


@pytest.mark.parametrize("name", [name for name in NAMES if name not in HEAVY])
def test_each_chapter_alone(name, stories, tmp_path):
    """Under -W error: what it prints and keeps is what it does in company."""
    run = story(name, "--out", tmp_path / "o", flags=("-W", "error"))
    assert sections(fine(run)) == {name: WANTED[name]}
    fine(stories["plain"])
    files = contents(tmp_path / "o") if (tmp_path / "o").exists() else {}
    assert files.items() <= contents(stories.out).items() and bool(files) == (name not in ("exercises", "answers"))


def test_two_names_in_the_order_of_the_story(pair):
    """Asked backwards, told forwards; a name twice is told once, and each begins once."""
    assert re.findall(r"(?m)^--- (\w+) ---$", pair) == ["nudge", "engine"]
    assert sections(pair) == {name: WANTED[name] for name in ("nudge", "engine")}


def test_names_on_both_sides_of_an_option(pair, tmp_path):
    """As the usage line allows."""
    assert fine(story("engine", "--out", tmp_path / "o", "nudge")) == pair.removesuffix(ADVICE)


def test_a_run_says_once_how_to_get_the_pictures(pair, stories):
    """At its end, unless it keeps them."""
    assert pair.endswith(ADVICE) and pair.count(ADVICE) == 1
    assert ADVICE not in fine(stories["plain"]) and ADVICE not in stories["piecemeal"].stdout


# The whole story

def test_all(stories):
    """Every chapter, in order, within 80 columns, without a path or a time."""
    assert list(WANTED) == NAMES
    text = fine(stories["plain"])
    assert list(sections(text)) == [name for name in NAMES if name != "race"]
    assert max(map(len, text.splitlines())) <= 80 and text.isascii()
    assert not re.search(r"/(tmp|home|root|work|usr|var|Users)\b|0x[0-9a-f]{6}|\b20\d\d-\d\d", text)
    assert "sch\u00f6ne" not in text and str(ROOT) not in text
    assert all(sections(text).values())


def test_two_runs_are_the_same(stories):
    """Text and files, byte for byte, whatever the hash seed, the locale and a
    stranger's matplotlibrc say."""
    fine(stories["plain"])
    told = sections(stories["piecemeal"].stdout)
    assert told == {name: WANTED[name] for name in NAMES if name not in ("trial", "race", "break")}
    files = contents(stories.base / "hostile" / "out")
    assert files.items() <= contents(stories.out).items() and len(files) > 12


def test_only_out_is_written(stories):
    """Pictures and tables, whole, and nothing beside them."""
    fine(stories["plain"])
    stories["piecemeal"]
    assert {path.name for path in (stories.base / "hostile").iterdir()} == {"matplotlibrc", "out"}
    files = contents(stories.out)
    assert {name.rpartition(".")[2] for name in files} == {"svg", "md"}
    for name, data in files.items():
        text = data.decode("utf-8")
        assert "\r" not in text and text.endswith("\n")
        if name.endswith(".svg"):
            assert re.search("<title>.{40,}</title>", text) and text.rstrip().endswith("</svg>")
            assert "<dc:date>" not in text and "http://www.w3.org/2000/svg" in text


def test_every_picture_and_table_is_kept(stories):
    """A file for each name that the source mentions, and the same from a terminal as from a notebook."""
    files = {path.name: path.read_bytes() for path in stories["site"].parent.glob(".cache/site/*/*")}
    for kind, ending in ("picture", "svg"), ("table", "md"):
        names = re.findall(rf'(?m)^ +{kind}\("([\w-]+)"', SOURCE)
        assert len(names) > 9 and {f"{name}.{ending}" for name in names} <= files.keys()
    fine(stories["plain"])
    assert contents(stories.out).items() <= files.items()


# In a notebook

def told(cell):
    return "".join(out.text for out in cell.outputs if out.output_type == "stream" and out.name == "stdout")


def pictures(cells):
    return [out.data.get("image/svg+xml") or out.data["text/html"] for cell in cells for out in cell.get("outputs", ())
            if out.output_type == "display_data"]


def names_of(svgs):
    """What each picture says of itself, before and after docs/ has dressed it."""
    return [unescape(re.search('(?s)aria-label="(.*?)"|<title>(.*?)</title>', svg).expand(r"\1\2")) for svg in svgs]


def said(*without):
    """What a notebook has to say: the same, headings too."""
    return "".join(f"\n--- {name} ---\n\n{text}" for name, text in WANTED.items() if name not in without)


def site_notebook(stories, path="site/anatomy/anatomy.ipynb"):
    """The cells of the notebook of the site, one for each cell."""
    [found] = stories["site"].parent.glob(path)
    return jupytext.read(found).cells


def test_as_a_notebook(stories):
    """Cell by cell in a real kernel: the same text, the pictures in place."""
    *cells, facts = site_notebook(stories, ".cache/site/*/run.ipynb")
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert "".join(map(told, code)) == said()
    shown = pictures(code)
    assert len(shown) == sum(cell.source.count('picture("') for cell in code) > 9
    assert not any(out.get("name") == "stderr" or out.output_type in ("error", "execute_result")
                   for cell in code for out in cell.outputs)
    titles = [re.findall(r"(?m)^##? .*", cell.source) for cell in cells if cell.cell_type == "markdown"]
    assert len(titles[0]) == 1 and sum(map(len, titles)) == 1 + len(NAMES)


def test_the_notebook_of_the_site_says_the_same(stories):
    """The same text below the same code, without the lines in which a chapter begins."""
    code = [cell for cell in site_notebook(stories) if cell.cell_type == "code"]
    assert "".join(map(told, code)) == re.sub(r"\n--- \w+ ---\n\n", "", said())


def test_a_notebook_holds_nothing_of_its_run(stories):
    """No time, no random name: sources, questions, and outputs that another kernel has too."""
    cells, wanted = site_notebook(stories), jupytext.reads(SOURCE, fmt="py:percent").cells
    assert [cell.id for cell in cells] == [f"cell-{i}" for i in range(len(cells))]
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert [cell.source for cell in code] == [cell.source for cell in wanted if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(set(cell.metadata) <= {"tags", "jupyter"} for cell in cells)
    for cell in code:
        for out in cell.outputs:
            assert out.keys() == {"stream": {"output_type", "name", "text"}, "display_data": {
                "output_type", "data", "metadata"}}[out.output_type] and not out.get("metadata")

    def words(cells):
        """The prose without what is asked between it."""
        texts = [re.sub('(?m)^<div class="(question|exercise)".*$', "", cell.source) for cell in cells
                 if cell.cell_type == "markdown"]
        return " ".join(" ".join(texts).split())

    assert words(cells) == words(wanted)
    others = [cell for cell in site_notebook(stories, ".cache/site/*/run.ipynb") if not re.search(
        r'wanted\("(trial|race)"', cell.source)]
    assert names_of(pictures(others)) == names_of(pictures([stories["pasted"][1]]))


def test_pasted_whole_and_again(stories):
    """One cell, a kernel's own arguments, no __file__; again is harmless."""
    first, once, again = stories["pasted"]
    assert "-f" in told(first) and "False" in told(first)
    assert told(once) == said("trial", "race")
    assert told(again) == said(*HEAVY)
    assert len(pictures([once])) == SOURCE.count('picture("') - 2
    assert set(pictures([again])) < set(pictures([once]))
    kinds = [out.output_type for out in once.outputs]
    assert set(kinds) == {"stream", "display_data"} and kinds[0] == "stream"
    assert kinds.count("stream") > len(NAMES) / 2


# Through IPython, which sets sys.ps1, and a kernel, whose arguments are its own

RUNS = ['%run "{}" frameworks nudge', '%run "{}" nudge --out "{out}" frameworks']


@pytest.mark.parametrize("asked", RUNS)
def test_through_ipython_in_a_terminal(asked, tmp_path):
    """The arguments of %run are heard, and the prompt's signals are its own."""
    lines = [asked.format(SCRIPT, out=tmp_path / "o"), "import signal",
             "print('after', Tensor(3.0), signal.getsignal(signal.SIGINT).__name__)"]
    (tmp_path / "lines.ipy").write_text("\n".join(lines))
    run = python("-m", "IPython", "--no-banner", "--colors=NoColor", tmp_path / "lines.ipy",
                 cwd=tmp_path, IPYTHONDIR=str(tmp_path / "profile"))
    assert list(sections(run.stdout)) == ["nudge", "frameworks"], run.stdout + run.stderr
    assert "after Tensor(3.0) default_int_handler" in run.stdout
    assert (tmp_path / "o" / "nudge.svg").exists() == ("--out" in asked)


def test_in_a_kernel_that_is_asked_for_chapters(tmp_path):
    """%run hears its arguments there too; an editor that runs cells and says
    where they stand in __file__ gets them all."""
    import nbformat
    cell, path = nbformat.v4.new_code_cell, tmp_path / "asked.ipynb"
    gate = f"__file__ = {str(SCRIPT)!r}\n" + PREFACE + "\nprint(NOTEBOOK, ASKED)"
    nbformat.write(nbformat.v4.new_notebook(cells=[
        cell(f'%run "{SCRIPT}" nudge'), cell(f'%run "{SCRIPT.with_suffix("")}" frameworks'), cell(gate)]), path)
    run = python("-c", NOTEBOOK, path, cwd=tmp_path)
    assert run.returncode == 0, run.stderr[-2000:]
    first, second, third = nbformat.read(path, as_version=4).cells
    assert list(sections(told(first))) == ["nudge"] and len(pictures([first])) == 1
    assert list(sections(told(second))) == ["frameworks"]
    assert told(third) == "True ['all']\n"


# Other ways in

def test_as_a_module(nudge):
    """python -m anatomy, beside the file."""
    assert fine(python("-m", "anatomy", "nudge", cwd=ROOT)) == nudge


def test_through_runpy(nudge, tmp_path):
    """As __main__ with a path, and as a module of another name."""
    code = ("import runpy, sys; sys.argv = ['x', 'nudge']; "
            f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')")
    assert fine(python("-c", code, cwd=tmp_path)) == nudge
    names = runpy.run_path(str(SCRIPT), run_name="elsewhere")
    assert names["Tensor"]([1.0]).shape == (1,)


@POSIX
def test_through_a_symlink_from_another_folder(nudge, tmp_path):
    """It does not look for anything beside itself."""
    link = tmp_path / "a link.py"
    link.symlink_to(SCRIPT)
    assert fine(python(link.name, "nudge", cwd=tmp_path)) == nudge
    shutil.copy(SCRIPT, tmp_path / "mine.py")
    assert fine(python("mine.py", "nudge", cwd=tmp_path)) == nudge


@pytest.mark.parametrize("flags", [["-O"], ["-X", "dev"], ["-I"], ["-W", "error", "-bb"]], ids=" ".join)
def test_flags_of_python(flags, nudge):
    """Without asserts, with every check on."""
    assert fine(story("nudge", flags=flags)) == nudge


@pytest.mark.parametrize("extra", [
    dict(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"), dict(PYTHONIOENCODING="ascii:strict"),
    dict(HOME="/nowhere", XDG_CONFIG_HOME="", XDG_CACHE_HOME=""), dict(PYTHONUNBUFFERED="1"), dict(COLUMNS="20")],
    ids=lambda e: next(iter(e)))
def test_surroundings(extra, nudge):
    """Ascii, no home, no buffer, a narrow terminal."""
    assert fine(story("nudge", **extra)) == nudge


def newest_instructions():
    """The groups of instructions that this numpy uses here and could do without."""
    umath = (getattr(np, "_core", None) or np.core)._multiarray_umath
    return " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name])


def test_the_same_text_without_the_newest_instructions():
    """As numpy computes on an older processor."""
    disabled = newest_instructions()
    asked = "import numpy as np, sys; sys.path.insert(0, sys.argv[1]); import test_run; print(test_run.newest_instructions())"
    tests = str(ROOT / "tests")
    assert fine(python("-c", asked, tests, NPY_DISABLE_CPU_FEATURES=disabled)) == "\n"
    told = sections(fine(story(*QUICK, NPY_DISABLE_CPU_FEATURES=disabled)))
    assert told == {name: WANTED[name] for name in QUICK}


def test_the_examples_of_the_readme():
    """What stands in README.md behind >>> prints what stands below it."""
    run = python("-m", "doctest", ROOT / "README.md", PYTHONPATH=str(ROOT))
    assert (run.returncode, run.stdout) == (0, "") and ">>> " in (ROOT / "README.md").read_text("utf-8")


def test_a_working_folder_that_is_gone(nudge, tmp_path):
    """Nothing is looked for there."""
    code = (f"import os, runpy, sys; os.rmdir(os.getcwd()); sys.argv = ['x', 'nudge']; "
            f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')")
    gone = tmp_path / "gone"
    gone.mkdir()
    assert fine(python("-c", code, cwd=gone)) == nudge


def test_a_terminal_needs_no_matplotlib(pair, tmp_path):
    """The text is told without it; with --out Python says what is missing."""
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')\n")
    assert fine(story("nudge", "engine", PYTHONPATH=str(tmp_path))) == pair
    run = story("nudge", "--out", tmp_path / "o", PYTHONPATH=str(tmp_path))
    assert run.returncode == 1 and run.stderr.endswith("ImportError: not here\n")


# make, on a machine that lacks something

def make(folder, *args, python=None):
    """Run make in a folder that has what a clone has; python is what it calls python3."""
    shutil.copy(ROOT / "Makefile", folder)
    shutil.copytree(ROOT / "docs", folder / "docs", dirs_exist_ok=True)
    (folder / "python").write_text(f"#!/bin/sh\n{python}\n")
    (folder / "python").chmod(0o755)
    return subprocess.run(["make", *args, "PYTHON=./python"], cwd=folder, capture_output=True, text=True,
                          env=surroundings(), timeout=60)


MAKE = pytest.mark.skipif(not shutil.which("make"), reason="no make here")


@MAKE
@pytest.mark.parametrize("version", ["(3, 9, 18)", "(2, 7, 18)", "(3, 8)"])
def test_a_python_that_is_too_old(version, tmp_path):
    """One sentence, and nothing is installed."""
    old = f"""exec '{sys.executable}' -c "import sys; sys.version_info = {version}; exec(sys.argv[1])" "$2" """
    run = make(tmp_path, "run", python=old)
    assert run.returncode != 0 and run.stdout == "" and not (tmp_path / ".venv").exists()
    said, *rest = run.stderr.splitlines()
    assert said.startswith("Python 3.10 or later is needed, and this is " + ".".join(re.findall(r"\d+", version)[:2]))
    assert len(rest) == 1 and rest[0].startswith("make: ")


@MAKE
def test_a_python_that_cannot_make_environments(tmp_path):
    """Debian's without python3-venv: the advice, and no half .venv in the way of those who follow it."""
    half = (f"""case "$2" in venv) mkdir -p "$3/bin"; ln -s '{sys.executable}' "$3/bin/python"; """
            f"""echo "ensurepip is not available" >&2; exit 1;; *) exec '{sys.executable}' "$@";; esac""")
    for _ in range(2):
        run = make(tmp_path, "run", python=half)
        assert run.returncode != 0 and "apt install python3-venv" in run.stdout
        assert "ensurepip" in run.stderr and "pip install" not in run.stdout
        assert not (tmp_path / ".venv").exists()


@MAKE
def test_a_failing_run_is_short():
    """One cause makes many tests fail; a person reads a few of them."""
    run = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, env=surroundings())
    assert run.returncode == 0 and "pytest -q --maxfail=5 --tb=short tests" in run.stdout


# Where --out leads

def test_a_file_is_whole_or_absent(tmp_path, monkeypatch):
    """What fails in the middle of writing leaves no file of that name, or the one that was there."""
    monkeypatch.setattr(anatomy, "OUT", tmp_path / "o")
    anatomy.keep_file("table.md", "old")

    def half(path, text, **settings):
        path.write_bytes(text[:5].encode())
        raise OSError("no space left")
    monkeypatch.setattr(type(tmp_path), "write_text", half)
    for name in "table.md", "other.md":
        with pytest.raises(OSError, match="no space left"):
            anatomy.keep_file(name, "a new text")
    assert (tmp_path / "o/table.md").read_text() == "old" and not (tmp_path / "o/other.md").exists()


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_out_that_is_a_file(where, tmp_path):
    """Not 0, and the file as it was."""
    (tmp_path / "file").write_text("mine")
    assert story("nudge", "--out", tmp_path / where).returncode == 1
    assert contents(tmp_path) == {"file": b"mine"}

def test_two_processes_on_one_folder_again(tmp_path):
    """Files of an earlier run are replaced, each by one of theirs and whole;
    strangers' are left alone."""
    out = tmp_path / "o"
    out.mkdir()
    (out / "nudge.md").write_text("old")
    (out / "mine.txt").write_text("mine")
    runs = [subprocess.Popen([sys.executable, SCRIPT, "nudge", "--out", out], env=surroundings(),
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)]
    assert [(run.communicate()[1], run.returncode) for run in runs] == [(b"", 0)] * 2
    assert set(contents(out)) == {"nudge.md", "nudge.svg", "mine.txt"}
    assert (out / "nudge.md").read_text() != "old" and (out / "mine.txt").read_text() == "mine"


