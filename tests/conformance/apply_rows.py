"""Bucket `apply`: counts of `kyverno apply`, through the code of `pyverno apply` up to its summary.

The rows are in `tables/cli_apply.json`; their paths lead to files below `apply/kyverno`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyverno.cli.apply.judge import judge
from pyverno.cli.apply.load import load_inputs, open_session
from pyverno.cli.apply.options import ApplyOptions, check_options
from pyverno.report.summary import Summary
from tests.conformance.outcome import Case, Claim, NotRun
from tests.conformance.policies import refusal
from tests.conformance.table_rows import read_rows

__all__ = ["claim", "find"]

_STDIN = "-"
_PATH_LISTS = {
    "PolicyPaths": "policies",
    "ResourcePaths": "resources",
    "TargetResourcePaths": "target_resources",
    "ParameterResourcePaths": "parameter_resources",
    "Exception": "exceptions",
    "CRDPaths": "crd_paths",
    "JSONPaths": "json_payloads",
    "HTTPPayloadPaths": "http_payloads",
    "EnvoyPayloadPaths": "envoy_payloads",
}
_PATHS = {"ValuesFile": "values_file", "UserInfoPath": "user_info", "ContextPath": "context_file"}
_PLAIN = {
    "exceptionsWithinPolicies": "exceptions_within_policies",
    "exceptionsWithinResources": "exceptions_with_resources",
    "PolicyReport": "policy_report",
    "AuditWarn": "audit_warn",
    "warnExitCode": "warn_exit_code",
    "warnNoPassed": "warn_no_pass",
    "ContinueOnFail": "continue_on_fail",
    "Variables": "variables",
}
_COUNTS = ("pass", "fail", "skip", "error", "warn")


def find(root: Path) -> Iterator[Case]:
    """Yield the rows."""
    if (root / "tables" / "cli_apply.json").is_file():
        for identity, row in read_rows(root, "cli_apply"):
            yield Case("apply", "cli_apply", identity.replace("tables/cli_apply", "apply"), row)


def claim(case: Case, root: Path) -> Claim:
    """Apply with the row's inputs and compare the counts of all results with those of the row."""
    row = case.data
    if row.get("network"):
        raise NotRun(f"needs the network: {', '.join(row['network'])}")
    options = _options(row["config"], root / "apply" / "kyverno")
    stdin = (root / "apply" / "kyverno" / row["stdinFile"]).read_bytes() if row.get("stdinFile") else None
    inputs = load_inputs(options, stdin=stdin)
    session = open_session(inputs)
    reason = refusal(session.compilation.items)
    if reason:
        raise NotRun(reason)
    check_options(options)
    problems = [str(error) for error in (*inputs.errors, *session.errors)]
    results = [
        result
        for judged in judge(inputs, session, continue_on_fail=options.continue_on_fail)
        for result in judged.results
    ]
    counts = Summary.of(results, audit_warn=options.audit_warn).to_json()
    if "summaries" in row:
        expected = _total(row["summaries"])
        return Claim({**expected, "problems": []}, {**{name: counts[name] for name in _COUNTS}, "problems": problems})
    expected = {"pass": row["wantPass"], "fail": row["wantFail"], "rules": row["wantRules"], "problems": []}
    return Claim(
        expected, {"pass": counts["pass"], "fail": counts["fail"], "rules": len(results), "problems": problems}
    )


def _total(summaries: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for summary in summaries:
        total.update(summary)
    return {name: total[name] for name in _COUNTS}


def _options(config: dict[str, Any], folder: Path) -> ApplyOptions:
    flags: dict[str, Any] = {}
    for name, value in config.items():
        if name in _PATH_LISTS:
            flags[_PATH_LISTS[name]] = tuple(path if path == _STDIN else str(folder / path) for path in value)
        elif name in _PATHS:
            flags[_PATHS[name]] = str(folder / value)
        elif name in _PLAIN:
            flags[_PLAIN[name]] = tuple(value) if isinstance(value, list) else value
        else:
            raise NotRun(f"the row sets `{name}`, which this adapter does not know")
    return ApplyOptions(**flags, compat="kyverno")
