"""Claims about the exact checks that no verdict shows."""

from pyverno.lang.pattern.checks import compile_labels, compile_scalar, element_check
from pyverno.lang.pattern.steps import Ledger


def test_a_scalar_judges_every_element_of_a_list() -> None:
    """An empty list satisfies any scalar; a list inside the list satisfies none."""
    matches = compile_scalar("a*")
    assert [matches([]), matches(["a", "ab"]), matches(["a", "b"]), matches([["a"]])] == [True, True, False, False]


def test_condition_and_existence_keys_are_booked() -> None:
    """A key counts as seen once any map had it; negation, equality and global keys are not booked."""
    ledger = Ledger()
    check = element_check([{"(a)": "1", "^(b)": [], "=(c)": "", "X(d)": "", "<(e)": ""}])
    check([{"a": "1"}, {}], (), ledger)
    assert ledger == {"(a)": True, "^(b)": False}


def test_labels_book_the_keys_that_they_became() -> None:
    """Wildcards are resolved before keys are booked."""
    ledger = Ledger()
    compile_labels({"(a*)": "x"}, float_numbers=False).check({"ab": "x"}, (), ledger)
    assert ledger == {"(ab)": True}
