"""Buckets `cli`, `special` and `network`: suites of `kyverno test`, through the code of `pyverno test`.

A suite is found by its manifest record and judged by the rows of its test file. `special` suites state an unusual
outcome: a load error, missing files, or a suite that must not pass as it is. `network` suites read registries: a
copy of each is judged with images that are signed again.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyverno.cli.registries import RegistryAccess
from pyverno.cli.test.check import Row
from pyverno.cli.test.find import FoundSuite, find_suites
from pyverno.cli.test.options import SuiteOptions
from pyverno.cli.test.run import run_suite
from pyverno.compiler import compile_documents
from pyverno.kube.yaml.documents import expand_lists
from pyverno.offline.files import load_files
from tests.conformance.images.world import image_world
from tests.conformance.outcome import Case, Claim, NotRun
from tests.conformance.policies import refusal

__all__ = ["claim", "find"]

_LOAD_ERROR = "error:"
_MISSING_FILES = "unknown:missing-files"
_INVALID = "Invalid Policy"
_NETWORK = "network"
_STRICT = SuiteOptions(strict=True)
"""Strict mode never changes a row; it adds what the rows do not prove."""


def find(root: Path, *, bucket: str) -> Iterator[Case]:
    """Yield the suites of a bucket's manifest."""
    manifest = root / bucket / "manifest.jsonl"
    for line in manifest.read_text().splitlines() if manifest.is_file() else ():
        record = json.loads(line)
        yield Case(bucket, record["repo"], f"{bucket}/{record['id']}", record)


def claim(case: Case, root: Path) -> Claim:
    """Judge one suite by what its record states."""
    record = case.data
    path = root / case.bucket / record["repo"] / record["path"]
    replaced: set[str] = set()
    with ExitStack() as stack:
        options = _STRICT
        if case.bucket == _NETWORK:
            path = _signed_again(path, Path(stack.enter_context(tempfile.TemporaryDirectory())), replaced)
            world = image_world()
            options = replace(options, registry=RegistryAccess(world.trusted_root, world.connector))
        suites = find_suites(str(path), path.name, "", stack, roots=(root, path.parent))
        return replace(_claim(record, suites, options), replaced=tuple(sorted(replaced)))


def _signed_again(path: Path, scratch: Path, replaced: set[str]) -> Path:
    """Copy the folder of a suite, with what belongs to our images in its documents; return the suite's place."""
    copy = Path(shutil.copytree(path.parent, scratch / "suite"))
    for each in copy.rglob("*.yaml"):
        found = image_world().rewrite(each.read_text())
        each.write_text(found.text)
        replaced |= found.replaced
    return copy / path.name


def _claim(record: dict[str, Any], suites: list[FoundSuite], options: SuiteOptions) -> Claim:
    stated = record.get("expected", "pass")
    if stated.startswith(_LOAD_ERROR):
        return Claim([True], [suite.test is None for suite in suites])
    failed, vacuous, said = _judge(suites, options)
    if stated == _MISSING_FILES:
        return _missing_files(record, said)
    if stated == "fail":
        # upstream's own check of such suites is vacuous: it is enough that the suite does not pass in strict mode
        return Claim({"passes strictly": False}, {"passes strictly": not failed and not vacuous})
    return Claim([], failed, tuple(vacuous))


def _missing_files(record: dict[str, Any], said: list[str]) -> Claim:
    """A message must name a missing file; one is enough, because the first unreadable file may end the suite."""
    names = [Path(missing).name for missing in record["missing"]]
    return Claim(
        {"names a missing file": True}, {"names a missing file": any(name in text for name in names for text in said)}
    )


def _judge(suites: list[FoundSuite], options: SuiteOptions) -> tuple[list[str], list[str], list[str]]:
    """Return the checks that fail, those that prove nothing, and all messages."""
    failed: list[str] = []
    vacuous: list[str] = []
    said: list[str] = []
    for suite in suites:
        _leave_out_unsupported(suite)
        outcome = run_suite(suite, options)
        failed.extend(text for text in (*outcome.errors, *outcome.unread) if text)
        failed.extend(_shown(row) for row in outcome.rows if row.counts_as_failed or _is_refused(row))
        vacuous.extend(outcome.vacuous)
        said.extend((*outcome.errors, *outcome.lines, *outcome.unread, *(row.message for row in outcome.rows)))
    return failed, vacuous, said


def _leave_out_unsupported(suite: FoundSuite) -> None:
    """Leave out suites whose policies or exceptions the product itself refuses as not supported yet."""
    if suite.test is None:
        return
    names = [str(suite.path.parent / name) for name in (*suite.test.policies, *suite.test.exceptions)]
    reason = refusal(compile_documents(expand_lists(load_files(names).documents)).items)
    if reason:
        raise NotRun(reason)


def _is_refused(row: Row) -> bool:
    """Return whether we refused the policy of a row that expects it to be judged."""
    return row.reason == _INVALID and (row.expected is None or row.expected.result.value != "skip")


def _shown(row: Row) -> str:
    text = f"{row.policy} {row.rule} {row.resource}: {row.reason}"
    return f"{text} ({row.message})" if row.message else text
