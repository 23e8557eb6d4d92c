"""The flags of the reports controller: Kyverno's, and what they do."""

from __future__ import annotations

import pytest

from pyverno.cli.args.records import command_of, ineffective
from pyverno.cli.controller.reports import reports_settings
from pyverno.cli.controller.reportsflags import ReportsFlags
from pyverno.controllers.reports.settings import ReportsSettings
from pyverno.errors import UsageError

KYVERNO: dict[str, dict[str, object]] = {
    "--backgroundScan=true": {},
    "--backgroundScan=false": {"scans": False},
    "--aggregateReports=false": {"aggregates": False},
    "--aggregationWorkers=3": {"workers": 3},
    "--policyReports=false": {"stores": False},
    "--openreportsEnabled": {"uses_openreports": True},
    "--validatingAdmissionPolicyReports=false": {"validating": False},
    "--mutatingAdmissionPolicyReports": {"mutating": True},
    "--skipResourceFilters=false": {"skips_filters": False},
    "--reportsCRDsSanityChecks=false": {"checks_definitions": False},
}
"""Flags of Kyverno, and what each changes."""
_FIELDS = ("scans", "aggregates", "workers", "stores", "uses_openreports", "validating", "mutating", "skips_filters")


def read(*words: str) -> ReportsFlags:
    """Return the flags of a command line."""
    seen: list[ReportsFlags] = []
    command_of("probe", "Probe.", ReportsFlags, seen.append).main(list(words), standalone_mode=False)
    return seen[0]


def settings(*words: str) -> ReportsSettings:
    """Return the settings of a command line."""
    return reports_settings(read(*words), {"KYVERNO_NAMESPACE": "policy"})


@pytest.mark.parametrize("word", KYVERNO)
def test_a_flag_changes_what_it_names(word: str) -> None:
    """The flag changes the one setting that it names."""
    usual, found = settings(), settings(word)
    names = (*_FIELDS, "checks_definitions")
    changed = {name: getattr(found, name) for name in names if getattr(found, name) != getattr(usual, name)}
    assert KYVERNO[word] == changed


def test_the_defaults_are_those_of_kyverno() -> None:
    """Rates are higher than those of other controllers; scans come back after an hour."""
    found = settings()
    assert (300, 300, "policy", 10) == (found.qps, found.burst, found.namespace, found.workers)
    assert (2, 3600, 256 * 2**20) == (found.scan.workers, found.scan.interval_seconds, found.scan.memory_bytes)
    assert () == ineffective(read())


def test_what_reports_show_is_chosen_by_flags() -> None:
    """By status and by kind of rule."""
    shown = settings("--allowedResults=fail,error", "--enableReporting=validate").scan.shown
    assert (frozenset({"fail", "error"}), frozenset({"validate"})) == (shown.statuses, shown.types)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("--allowedResults=maybe", "--allowedResults"),
        ("--enableReporting=all", "--enableReporting"),
        ("--scanMemory=much", "--scanMemory"),
        ("--backgroundScanInterval=0s", "--backgroundScanInterval"),
    ],
)
def test_a_bad_value_is_refused_with_its_flag(word: str, text: str) -> None:
    """Before anything runs."""
    with pytest.raises(UsageError, match=text):
        settings(word)
