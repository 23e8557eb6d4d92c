"""Every ClusterPolicy of the library converts; the nightly run holds both sides together on thousands of objects."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pyverno.cli.migrate.certificate import digest
from pyverno.kube.yaml.documents import load_documents
from tests.support.librarycases import (
    OBJECTS,
    POLICIES,
    certificate_path,
    control_of,
    conversions,
    converted_path,
    without_certificate,
)

VOID = {
    "networking/require-policy-types": "the API server fills in what it wants",
}
"""Policies of which no object that an API server admits shows two verdicts."""

LEAST = 200


def test_every_policy_of_the_library_becomes_what_its_case_shows() -> None:
    """No rule stays behind, those of custom kinds included; `python -m tests.cases.migration` writes the cases."""
    left: list[str] = []
    for policy in POLICIES:
        found = conversions(policy, is_tested=False)
        left += [f"{control_of(policy)}/{line.rule}" for each in found for line in each.lines if line.refused]
        made = "---\n".join(each.text for each in found)
        if made != without_certificate(converted_path(policy).read_text(encoding="utf-8")):
            left.append(f"{control_of(policy)} becomes something else")
    assert [] == left


def test_certificates_are_those_of_the_policies_and_their_conversions() -> None:
    """No difference was found on thousands of objects, and both sides refused some and allowed some."""
    records = {control_of(policy): json.loads(certificate_path(policy).read_bytes()) for policy in POLICIES}
    for policy in POLICIES:
        record = records[control_of(policy)]
        sides = [
            digest([each.value for each in load_documents(path.read_bytes())])
            for path in (policy, converted_path(policy))
        ]
        assert sides == [record["old"]["sha256"], record["new"]["sha256"]], control_of(policy)
        assert ("no difference found", OBJECTS) == (record["result"], record["objects"]), control_of(policy)
    assert VOID.keys() == {name for name, record in records.items() if record["saysNothingBecause"]}
    assert len(records) >= LEAST


@pytest.mark.skipif(not os.environ.get("PYVERNO_NIGHTLY"), reason="takes minutes")
@pytest.mark.parametrize("policy", POLICIES, ids=control_of)
def test_a_policy_of_the_library_decides_as_before(policy: Path) -> None:
    """On its cases and on 2,000 generated objects; both sides refuse some of them and allow some."""
    lines = [line for found in conversions(policy, is_tested=True) for line in found.lines]
    state = "converted, not tested" if control_of(policy) in VOID else "converted (tested)"
    assert [state] * len(lines) == [line.state for line in lines], [line.reason for line in lines]
