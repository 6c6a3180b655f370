"""Chapter 12: every exercise takes the right answer and refuses wrong ones."""
import subprocess
import sys
import time

import numpy as np
import pytest

import anatomy
from anatomy import EXERCISES, Tensor, check, words

# name: (right, wrong, wrong); worked out by hand, with the reader's mistakes
CASES = {
    "nudge.1": (0.01, 0.0, 0.1),
    "nudge.2": (2020, 1010, 2000),
    "engine.1": ((7, 2), (2, 2), (5, 2)),
    "engine.2": (12, 4, 24),
    "unbroadcast.1": (8, 24, 4),
    "unbroadcast.2": (0.8, 0.2, 4),
    "rules.1": ([0.5, 0.5, -0.5, -0.5], [0, 0, 0, 0],
                [0.75, 0.75, -0.25, -0.25]),
    "rules.2": (0.5, 1, 0),
    "gradcheck.1": (2, 1, 0),
    "gradcheck.2": (False, True, 0.5),
    "optimizers.1": (1, 3.16, 10),
    "optimizers.2": (69, 68, 50),
    "spiral.1": (41, 31, 40),
    "spiral.2": (0.693, 0.5, 0.67),
    "trial.1": ((0, 0, 0), (1, 1, 1), (0.25, 0.25, 0.25)),
    "trial.2": (1024, 32, 64),
    "race.1": (0.01, 0.1, 1),
    "race.2": (1, 0.1, 0.01),
    "break.1": (9.21, 18.42, 25),
    "break.2": (0.75, 1, 0.5),
}


def test_every_exercise_has_a_case():
    assert list(CASES) == list(EXERCISES)
    chapters = [name.split(".")[0] for name in EXERCISES]
    assert all(2 <= chapters.count(c) <= 3 for c in chapters)


@pytest.mark.parametrize("name", CASES)
def test_right_is_right(name, capsys):
    assert check(name, CASES[name][0])
    assert capsys.readouterr().out == "right\n"


@pytest.mark.parametrize("name", CASES)
def test_wrong_is_wrong_and_hinted(name, capsys):
    for wrong in CASES[name][1:]:
        assert not check(name, wrong)
        assert capsys.readouterr().out.startswith("not yet. Hint: ")


@pytest.mark.parametrize("name", CASES)
def test_questions_are_short_and_fast(name):
    chapter, k = EXERCISES[name]
    assert len(chapter.__doc__.splitlines()) == len(chapter()) * 2 == 4
    question, hint = words(chapter, k)
    assert question.endswith("?") and len(question) <= 64
    assert hint.startswith("Hint: ") and hint.endswith(".")
    start = time.process_time()
    chapter()
    assert time.process_time() - start < 0.3


@pytest.mark.parametrize("answer", (
    (7, 2), [7.0, 2.0], np.array([7, 2]), (7.001, 1.999), Tensor([7, 2]),
    (np.float32(7), np.int64(2))))
def test_answers_come_in_many_forms(answer):
    assert check("engine.1", answer)


@pytest.mark.parametrize("answer", (
    "seven", None, [[7], [2, 1]], 7, (7, 2, 0), [[7, 2]], {}, 7j, np.nan,
    (np.nan, 2), (np.inf, 2), (), 10 ** 400), ids=lambda answer: repr(answer)[:20])
def test_nonsense_is_not_right_and_does_not_raise(answer):
    assert not check("engine.1", answer)


def test_counts_are_exact_and_measures_are_not():
    assert not check("nudge.2", 2021) and check("nudge.2", 2020.0)
    assert check("optimizers.1", 1.005) and not check("optimizers.1", 1.02)


@pytest.mark.parametrize("typo", (
    "nudge", "nudge.3", "break_.1", "", None, 7, ["a"], {}, np.ones(2)),
    ids=repr)
def test_a_typo_is_told_the_names(typo):
    with pytest.raises(ValueError, match="nudge.1, nudge.2, engine.1"):
        check(typo, 0)


def printed(*arguments):
    run = subprocess.run([sys.executable, anatomy.__file__, *arguments],
                         capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return run.stdout


def test_the_list_has_every_question_and_no_answer():
    text = printed("exercises")
    for name in EXERCISES:
        assert f"\n{name}" in text
    assert sum(line.split()[:1] == [name] for name in EXERCISES for line in text.splitlines()) == len(EXERCISES)
    for tell in ("Hint", "2020", "9.21", "0.5002", "1024", "41", "0.6931"):
        assert tell not in text


def test_the_answers_are_printed_on_request():
    text = printed("answers")
    assert all(f"\n{name}" in text for name in EXERCISES) and "9.2103" in text
