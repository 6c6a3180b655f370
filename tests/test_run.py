"""Ways to run: five of them, and the surroundings that people have."""
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time

import jupytext
import pytest

import anatomy
from conftest import HEAVY, NOTEBOOK, PREFACE, ROOT, SCRIPT, SOURCE, python, story, surroundings

NAMES = list(anatomy.CHAPTERS)
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and devices of Unix")


def fine(run):
    """It ended well and had nothing to complain about."""
    assert (run.returncode, run.stderr) == (0, ""), run.stderr[-2000:]
    return run.stdout


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def sections(text):
    """What each chapter printed below its heading."""
    _, *parts = re.split(r"(?m)^\n--- (\w+): .* ---\n\n", text)
    return dict(zip(parts[::2], parts[1::2]))


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
    """A line for each chapter, and the option."""
    assert usage == fine(story("--help")) and "--out DIR" in usage
    for name, line in anatomy.CHAPTERS.items():
        assert re.search(rf"(?m)^  {name} +{re.escape(line)}$", usage)
    assert max(map(len, usage.splitlines())) <= 79


def test_no_name_prints_the_help(usage, tmp_path):
    """And runs nothing, writes nothing."""
    assert fine(story()) == usage
    assert fine(story("--out", tmp_path / "o")) == usage
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("names", [["typo"], ["nudge", "typo"], ["typo", "--out", "o"], ["Nudge"], ["all", "typo"], [""]])
def test_unknown_name(names, tmp_path):
    """Exit 2, one line that lists the names, nothing run and nothing written."""
    run = story(*names, cwd=tmp_path)
    assert run.returncode == 2 and run.stdout == "" and len(run.stderr.splitlines()) == 1
    assert repr(names[names.count("nudge") + names.count("all")]) in run.stderr
    assert all(name in run.stderr for name in ["all", *NAMES])
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
    assert sections(fine(run)) == {name: sections(stories["plain"].stdout)[name]}
    files = contents(stories.out) if not (tmp_path / "o").exists() else contents(tmp_path / "o")
    assert files.items() <= contents(stories.out).items()


def test_two_names_in_the_order_of_the_story(pair):
    """Asked backwards, told forwards; a name twice is told once."""
    assert re.findall(r"(?m)^--- (\w+): ", pair) == ["nudge", "engine"]


def test_names_on_both_sides_of_an_option(pair, tmp_path):
    """As the usage line allows."""
    assert fine(story("engine", "--out", tmp_path / "o", "nudge")) == pair


# The whole story

def test_all(stories):
    """Every chapter, in order, within 79 columns, without a path or a time."""
    text = fine(stories["plain"])
    assert re.findall(r"(?m)^--- (\w+): ", text) == NAMES
    assert max(map(len, text.splitlines())) <= 79 and text.isascii()
    assert not re.search(r"/(tmp|home|root|work|usr|var|Users)\b|0x[0-9a-f]{6}|\b20\d\d-\d\d", text)
    assert "sch\u00f6ne" not in text and str(ROOT) not in text
    assert sum(map(len, sections(text))) > 0 and all(sections(text).values())


def test_two_runs_are_the_same(stories):
    """Text and files, byte for byte, whatever the hash seed, the locale, the
    backend and a stranger's matplotlibrc say."""
    wanted = sections(fine(stories["plain"]))
    told = sections(stories["piecemeal"].stdout)
    assert told == {name: wanted[name] for name in wanted if name not in ("trial", "race", "break")}
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
            assert text.startswith("<svg role=\"img\" aria-label=\"") and text.rstrip().endswith("</svg>")
            assert "currentColor" in text and "#010203" not in text and "prefers-color-scheme" in text
            assert "<metadata" not in text and "<!--" not in text and "http://www.w3.org/2000/svg" in text
        else:
            rows = text.splitlines()
            assert len({row.count("|") for row in rows}) == 1 and set(rows[1]) <= set("| -:")


def test_every_picture_and_table_is_kept(stories):
    """A file for each name that the source mentions."""
    fine(stories["plain"])
    files = contents(stories.out)
    source = SCRIPT.read_text(encoding="utf-8")
    for kind, ending in ("picture", "svg"), ("table", "md"):
        for name in re.findall(rf"(?m)^ +{kind}\(\"([\w-]+)\"", source):
            assert f"{name}.{ending}" in files


# In a notebook

def told(cell):
    return "".join(out.text for out in cell.outputs if out.output_type == "stream" and out.name == "stdout")


def pictures(cells):
    return [out.data["text/html"] for cell in cells for out in cell.get("outputs", ())
            if out.output_type == "display_data"]


def said(stories, *without):
    """What a notebook has to say, which prints no headings."""
    wanted = sections(fine(stories["plain"]))
    return "".join(text for name, text in wanted.items() if name not in without)


def site_notebook(stories):
    """The cells of the notebook that the site has run, one for each cell."""
    return jupytext.read(stories["site"] / "anatomy/anatomy.ipynb").cells


def test_as_a_notebook(stories):
    """Cell by cell in a real kernel: the same text, the pictures in place."""
    cells = site_notebook(stories)
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert "".join(map(told, code)) == said(stories)
    shown = pictures(code)
    assert len(shown) == sum(cell.source.count('picture("') for cell in code) > 9
    assert all(html.startswith("<svg role=\"img\" aria-label=") for html in shown)
    assert not any(out.get("name") == "stderr" or out.output_type in ("error", "execute_result")
                   for cell in code for out in cell.outputs)
    titles = [re.findall(r"(?m)^##? .*", cell.source) for cell in cells if cell.cell_type == "markdown"]
    assert len(titles[0]) == 1 and sum(map(len, titles)) == 1 + len(NAMES)


def test_a_notebook_holds_nothing_of_its_run(stories):
    """No time, no random name: sources, and outputs that another kernel has too."""
    cells, wanted = site_notebook(stories), jupytext.reads(SOURCE, fmt="py:percent").cells
    for i, cell in enumerate(wanted):
        cell.id = f"cell-{i}"
    code = [cell for cell in wanted if cell.cell_type == "code"]
    for number, cell in enumerate(code, 1):
        cell.execution_count = number
        cell.outputs = cells[wanted.index(cell)].outputs
        for out in cell.outputs:
            assert out.keys() == {"stream": {"output_type", "name", "text"}, "display_data": {
                "output_type", "data", "metadata"}}[out.output_type] and not out.get("metadata")
    assert cells == wanted
    others = [cell for cell in code if not re.search(r'wanted\("(trial|race)"', cell.source)]
    assert pictures(others) == pictures([stories["pasted"][1]])


def test_pasted_whole_and_again(stories):
    """One cell, a kernel's own arguments, no __file__; again is harmless."""
    first, once, again = stories["pasted"]
    assert "-f" in told(first) and "False" in told(first)
    assert told(once) == said(stories, "trial", "race")
    assert told(again) == said(stories, *HEAVY)
    assert len(pictures([once])) == sum(file.endswith(".svg") for file in contents(stories.out)) - 2
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
    gate = f"__file__ = {str(SCRIPT)!r}\n" + PREFACE + "\nprint(NOTEBOOK, ASKED is CHAPTERS)"
    nbformat.write(nbformat.v4.new_notebook(cells=[
        cell(f'%run "{SCRIPT}" nudge'), cell(f'%run "{SCRIPT.with_suffix("")}" frameworks'), cell(gate)]), path)
    run = python("-c", NOTEBOOK, path, cwd=tmp_path)
    assert run.returncode == 0, run.stderr[-2000:]
    first, second, third = nbformat.read(path, as_version=4).cells
    assert list(sections(told(first))) == ["nudge"] and len(pictures([first])) == 1
    assert list(sections(told(second))) == ["frameworks"]
    assert told(third) == "True True\n"


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


def test_without_docstrings(nudge, tmp_path):
    """-OO takes the text that describes a picture; the picture is drawn."""
    assert fine(story("nudge", "--out", tmp_path, flags=["-OO"])) == nudge
    assert (tmp_path / "nudge.svg").read_text().startswith('<svg role="img" aria-label="nudge"')


@pytest.mark.parametrize("extra", [
    dict(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"), dict(PYTHONIOENCODING="ascii:strict"),
    dict(HOME="/nowhere", XDG_CONFIG_HOME="", XDG_CACHE_HOME=""), dict(PYTHONUNBUFFERED="1"), dict(COLUMNS="20")],
    ids=lambda e: next(iter(e)))
def test_surroundings(extra, nudge):
    """Ascii, no home, no buffer, a narrow terminal."""
    assert fine(story("nudge", **extra)) == nudge


@POSIX
def test_a_working_folder_that_is_gone(nudge, tmp_path):
    """Nothing is looked for there."""
    code = (f"import os, runpy, sys; os.rmdir(os.getcwd()); sys.argv = ['x', 'nudge']; "
            f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')")
    gone = tmp_path / "gone"
    gone.mkdir()
    assert fine(python("-c", code, cwd=gone)) == nudge


def test_without_matplotlib(pair, tmp_path):
    """The text is told; one line stands for each picture."""
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')\n")
    plain = fine(story("nudge", "engine", PYTHONPATH=str(tmp_path)))
    assert plain == pair
    text = fine(story("nudge", "engine", "--out", tmp_path / "o", PYTHONPATH=str(tmp_path)))
    lines = [line for line in text.splitlines() if line not in plain.splitlines()]
    assert len(lines) == 2 and all("matplotlib" in line for line in lines)
    assert contents(tmp_path / "o") and not list((tmp_path / "o").glob("*.svg"))


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

def one_line(run, code=1):
    """A refusal: one line, no traceback, not 0."""
    assert run.returncode == code and len(run.stderr.splitlines()) == 1, run.stderr
    assert run.stderr.startswith("anatomy.py: ")
    return run.stderr


def test_out_that_is_a_file(tmp_path):
    """One line that names it, and the file as it was."""
    (tmp_path / "file").write_text("mine")
    assert "file" in one_line(story("nudge", "--out", tmp_path / "file"))
    one_line(story("nudge", "--out", tmp_path / "file" / "below"))
    assert contents(tmp_path) == {"file": b"mine"}


@POSIX
def test_out_that_is_read_only(tmp_path):
    """One line that names it."""
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    tmp_path.chmod(0o500)
    assert str(tmp_path) in one_line(story("nudge", "--out", tmp_path / "o"))


@POSIX
def test_out_that_is_full(tmp_path):
    """A limit on file size stands in for a full disk: whole files or none."""
    run = subprocess.run(["sh", "-c", 'ulimit -f 4; exec "$0" "$@"', sys.executable, SCRIPT, "nudge",
                          "--out", tmp_path / "o"], capture_output=True, text=True, env=surroundings())
    one_line(run)
    assert set(contents(tmp_path / "o")) == {"nudge.md"}


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


# When it is stopped

@POSIX
def test_stdout_that_nobody_reads():
    """Like | head -1: it stops without a word."""
    run = subprocess.Popen([sys.executable, SCRIPT, "nudge", "engine"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=surroundings(PYTHONUNBUFFERED="1"))
    assert run.stdout.readline() and run.stdout.readline().startswith(b"---")
    run.stdout.close()
    assert run.stderr.read() == b"" and run.wait() == 128 + signal.SIGPIPE
    run.stderr.close()


@POSIX
@pytest.mark.parametrize("extra", [{}, dict(PYTHONUNBUFFERED="1")], ids=["buffered", "unbuffered"])
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_stdout_that_is_full(extra):
    """One line, and not 0."""
    with open("/dev/full", "w") as full:
        run = subprocess.run([sys.executable, SCRIPT, "nudge"], stdout=full, stderr=subprocess.PIPE,
                             text=True, env=surroundings(**extra))
    one_line(run)


@POSIX
def test_stdout_that_is_closed():
    """One line, and not 0."""
    run = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', sys.executable, SCRIPT, "nudge"],
                         capture_output=True, text=True, env=surroundings())
    one_line(run)


@POSIX
@pytest.mark.parametrize("name, code", [("SIGINT", 130), ("SIGTERM", 143)])
def test_signals(name, code, tmp_path):
    """It stops at once with the code of the signal, no traceback, no half file."""
    run = subprocess.Popen([sys.executable, "-u", SCRIPT, "spiral", "--out", tmp_path / "o"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surroundings())
    while not run.stdout.readline().startswith("---"):
        pass
    time.sleep(0.1)
    run.send_signal(getattr(signal, name))
    _, complaint = run.communicate(timeout=20)
    assert run.returncode == code and len(complaint.splitlines()) <= 1 and "Traceback" not in complaint
    assert not (tmp_path / "o").exists() or all(
        file.endswith((".svg", ".md")) for file in contents(tmp_path / "o"))


# Before numpy

def before_numpy(folder, code):
    """Surroundings in which `import numpy` runs this code."""
    (folder / "numpy.py").write_text(code)
    return dict(PYTHONPATH=str(folder))


def test_without_numpy(tmp_path):
    """One sentence that names it; the chapters can be listed all the same."""
    missing = before_numpy(tmp_path, "raise ModuleNotFoundError(\"No module named 'numpy'\")\n")
    assert "numpy" in one_line(story("nudge", **missing))
    assert fine(story("-h", **missing)) == fine(story("-h"))


@POSIX
@pytest.mark.parametrize("name, code", [("SIGINT", 130), ("SIGTERM", 143)])
def test_signals_while_numpy_is_imported(name, code, tmp_path):
    """It stops at once with the code of the signal and without a word."""
    slow = before_numpy(tmp_path, "import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    run = subprocess.Popen([sys.executable, SCRIPT, "nudge"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, env=surroundings(**slow))
    assert run.stdout.readline() == "importing\n"
    run.send_signal(getattr(signal, name))
    assert run.communicate(timeout=20) == ("", "") and run.returncode == code


def test_out_that_is_empty(tmp_path):
    """As from --out "$UNSET": refused in one line, and nothing is written here."""
    one_line(story("nudge", "--out", "", cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_help_on_a_closed_stdout():
    """One line, and not 0."""
    one_line(subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', sys.executable, SCRIPT, "-h"],
                            capture_output=True, text=True, env=surroundings()))


@POSIX
def test_out_that_is_too_long():
    """One line, though there is nothing to clean up."""
    one_line(story("nudge", "--out", "x" * 300))


def test_strangers_are_left_alone(tmp_path):
    """A failing run takes its own half files away, and nothing that ends like them."""
    (tmp_path / "nudge.svg").mkdir()
    code = ("import os, runpy, sys; open(f'log.{os.getpid()}', 'w').close(); sys.argv = ['x', 'nudge', '--out', '.']; "
            f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')")
    one_line(python("-c", code, cwd=tmp_path))
    assert sum(name.startswith("log.") for name in os.listdir(tmp_path)) == 1
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


@POSIX
def test_a_prompt_after_the_run():
    """python -i: an error is told with its traceback, and an interrupt ends a line and not the session."""
    lines = ["import nosuchmodule", "import os, signal", "os.kill(os.getpid(), signal.SIGINT)", "print('still', x.grad)"]
    run = subprocess.run([sys.executable, "-i", SCRIPT, "engine"], input="\n".join(lines), capture_output=True,
                         text=True, env=surroundings())
    assert run.returncode == 0 and "still" in run.stdout
    assert "ModuleNotFoundError" in run.stderr and "KeyboardInterrupt" in run.stderr


@POSIX
def test_what_was_told_is_kept(tmp_path):
    """A signal in the third chapter: the first two are in the file by then."""
    with open(tmp_path / "told", "w") as told:
        run = subprocess.Popen([sys.executable, SCRIPT, "nudge", "engine", "spiral"], stdout=told,
                               env=surroundings())
        while "--- spiral" not in (tmp_path / "told").read_text():
            assert run.poll() is None
            time.sleep(0.01)
        run.send_signal(signal.SIGTERM)
        assert run.wait(20) == 143
    text = (tmp_path / "told").read_text()
    assert "514 evaluations" in text and "the queue does not" in text
