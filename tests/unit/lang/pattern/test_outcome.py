"""Claims about outcomes."""

from pyverno.lang.pattern.outcome import Cause, Outcome, Problem, Status, go_type, path_text


def test_paths_begin_and_end_with_a_slash() -> None:
    """The path of the root is one slash."""
    assert path_text(()) == "/"
    assert path_text(((((), "spec"), "containers"), 0)) == "/spec/containers/0/"


def test_only_what_is_made_as_a_skip_is_one() -> None:
    """A text never makes a skip."""
    text = "conditional anchor mismatch: said the resource"
    assert not Problem(Cause.MISMATCH, (), lambda: text).is_skip
    assert Problem.skip(Cause.CONDITION, (), lambda: text).is_skip


def test_outcomes_compare_by_status_and_path() -> None:
    """The message is made on demand and takes no part."""
    problem = Problem(Cause.MISMATCH, (), lambda: "why")
    outcome = Outcome(Status.FAIL, "/", problem)
    assert outcome == Outcome(Status.FAIL, "/")
    assert outcome.message == "why"
    assert Outcome(Status.PASS).message == ""


def test_types_have_their_go_names() -> None:
    """A bool is no integer."""
    names = [go_type(value) for value in ({}, [], "a", True, 1, 1.5, None)]
    expected = ["map[string]interface {}", "[]interface {}", "string", "bool", "int64", "float64", "<nil>"]
    assert names == expected
