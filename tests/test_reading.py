"""How words, numbers and formulas are read out of a sentence."""
import numpy as np
import pytest

from reading import told, value


def test_words_and_formulas_are_read_out_of_a_sentence_or_not_at_all():
    text = "For z below 0, p is t, and the slope is t - y. It is larger here."
    assert told("For z {} 0, p is {}, and the slope is {}.", text) == ("below", "t", "t - y")
    for stale in "For x {} 0", "p is {}; and":
        with pytest.raises(AssertionError, match="nowhere"):
            told(stale, text)
    with pytest.raises(AssertionError, match="several ways"):
        told("z {} 0", "z below 0 and z above 0")


def test_a_formula_is_computed_as_it_is_written():
    g, W = np.array([[1.0, 2]]), np.array([[3.0, 4], [5, 6]])
    assert np.array_equal(value("g W'", times="@", g=g, W=W), [[11, 17]])
    assert value("3 x^2 - (1 - x) y", x=2.0, y=5.0) == 17 and value("e^-z", z=0.0) == 1
    assert value("1/2 c + sqrt(v)", c=4.0, v=9.0) == 5
