"""What is printed: the whole story as a reader sees it, and how a table is set."""
import re
from difflib import unified_diff
from pathlib import Path

import numpy as np
import pytest

import anatomy

HOME = Path(__file__).parents[1]
GOLDEN = HOME / "tests/golden/story.txt"
COMMAND = "make golden"
ADVICE = "\nThe pictures and tables: add --out DIR to the command.\n"


def differences(wanted, told):
    """The lines that differ, each with one line around it, and what to do about them; "" if none do."""
    lines = list(unified_diff(wanted.splitlines(), told.splitlines(), "tests/golden/story.txt", "what is told now",
                              n=1, lineterm=""))
    if wanted != told:
        lines.append(f"\nIf it should be told as it is now: {COMMAND}")
    return "\n".join(lines)


# The story

def test_the_story_is_the_one_on_file(stories):
    """That of a run which keeps its pictures, so without the advice to keep them; and without the longest chapter,
    which the site's run tells, and a test of the notebooks reads."""
    run, wanted = stories["plain"], GOLDEN.read_text("utf-8")
    assert run.returncode == 0, run.stderr[-2000:]
    assert wanted.endswith(ADVICE)
    without, taken = re.subn(r"(?s)\n--- race ---\n.*?(?=\n--- )", "", wanted.removesuffix(ADVICE))
    different = differences(without, run.stdout)
    assert taken == 1 and not different, different


def test_a_difference_is_shown_by_its_lines_and_the_command():
    told = differences("one\ntwo\nthree\nfour\n", "one\ntwo\n3\nfour\n")
    assert told.splitlines()[3:7] == [" two", "-three", "+3", " four"]
    assert told.endswith(COMMAND)
    assert differences("one\n", "one").endswith(COMMAND)
    assert differences("one\n", "one\n") == ""


def test_the_command_writes_that_file_from_a_whole_run():
    """Into a file beside it first, so that a run which fails leaves the old one."""
    makefile = (HOME / "Makefile").read_text("utf-8")
    help_, recipe = re.search(r"(?m)^golden: .*## (.+)\n((?:\t.+\n)+)", makefile).groups()
    told, moved = recipe.strip().splitlines()
    assert re.fullmatch(r"\$\(PY\) anatomy\.py all > (\S+)", told)
    assert moved.split() == ["mv", told.split()[-1], GOLDEN.relative_to(HOME).as_posix()]
    assert "story" in help_ and re.search(r"(?m)^\.PHONY:.* golden\b", makefile)


# A table

AWKWARD = [["", "a", "a long head"],
           ["a wide first cell", -1.5, ""],
           [3, [1, 2], None],
           ["  b", np.int64(12345678), "x y"]]

PRINTED = """\
                          a  a long head
a wide first cell      -1.5
3                    [1, 2]         None
  b                12345678          x y
"""

KEPT = """\
|  | a | a long head |
| --- | ---: | ---: |
| a wide first cell | -1.5 |  |
| 3 | [1, 2] | None |
|   b | 12345678 | x y |
"""


@pytest.fixture
def out(monkeypatch, tmp_path):
    """A folder that is not there yet, as --out names it."""
    monkeypatch.setattr(anatomy, "OUT", tmp_path / "not yet" / "out")
    return anatomy.OUT


def test_a_table_is_set_in_columns(capsys):
    """The first to the left, the others to the right, two blanks between, none at the end of a line."""
    anatomy.table("awkward", AWKWARD)
    assert capsys.readouterr().out == PRINTED


def test_the_same_table_is_kept_as_markdown(out):
    anatomy.table("awkward", AWKWARD)
    assert [path.name for path in out.iterdir()] == ["awkward.md"]
    assert (out / "awkward.md").read_bytes().decode() == KEPT


def test_a_table_of_one_column_and_a_head_alone(capsys, out):
    anatomy.table("one", [["t"], [10]])
    anatomy.table("head", [["name", "n"]])
    assert capsys.readouterr().out == "t\n10\nname  n\n"
    assert (out / "one.md").read_text() == "| t |\n| --- |\n| 10 |\n"
    assert (out / "head.md").read_text() == "| name | n |\n| --- | ---: |\n"


def test_a_table_leaves_its_rows_alone_and_writes_nothing_unasked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(anatomy, "OUT", None)
    rows = [["a", 1], ["b", 2.5]]
    anatomy.table("plain", rows)
    assert rows == [["a", 1], ["b", 2.5]] and list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out == "a    1\nb  2.5\n"


def test_no_cell_of_the_story_would_break_its_markdown():
    """Nothing is escaped, so no cell holds a bar or a line break: whatever a row has, Markdown has as many."""
    for path in sorted((HOME / "docs/generated").glob("*.md")):
        head, rule, *rows = path.read_text("utf-8").splitlines()
        assert re.fullmatch(r"\| ---( \| ---:)* \|", rule), path.name
        assert {row.count("|") for row in [head, *rows]} == {rule.count("|")}, path.name
