"""Generated fail paths: what they decide without the exact match."""

import pytest

from pyverno.kube.json import JSON
from pyverno.lang.pattern.fast.failpath import compile_failpath


@pytest.mark.parametrize(
    ("value", "path"),
    [(["CHOWN", "KILL"], ""), (["CHOWN", "SYS_ADMIN"], "/add/"), ("KILL", ""), ("SYS_ADMIN", "/add/"), ([], "")],
)
def test_a_list_against_alternatives_is_decided_by_its_elements(value: JSON, path: str) -> None:
    """A list cannot be looked up in a set; it must not fall to the exact match for that reason."""
    failing_path = compile_failpath({"add": ["CHOWN | KILL"]} if isinstance(value, list) else {"add": "CHOWN | KILL"})
    assert failing_path is not None
    assert failing_path({"add": value}) == path
