"""Tests of `validation.storage`."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.validation.cases import claims, errors_of, refusals

ROWS = refusals("storage")


@pytest.mark.parametrize(("body", "expected"), ROWS, ids=claims(ROWS))
def test_what_is_wrong_is_said_in_the_words_of_an_api_server(body: JSONObject, expected: list[str]) -> None:
    """Every row of the table is refused with exactly these errors."""
    assert sorted(expected) == sorted(errors_of(body))
