"""The plugin for pytest: test files of policies are collected as tests, and fixtures review objects.

Each row of a `kyverno-test.yaml` is one test. Tests in Python have the fixtures `policies`, `review` and `kube_api`.
The plugin is loaded in every run of pytest, so this module must never import anything of pyverno before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from kubesandbox.sandbox import Sandbox
    from pyverno.cli.test.check import Row
    from pyverno.cli.test.find import FoundSuite
    from pyverno.engine.engine import Review
    from pyverno.engine.policyset import PolicySet

__all__ = ["kube_api", "policies", "pytest_addoption", "pytest_collect_file", "review"]

_FILE = "kyverno-test.yaml"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the settings of the configuration file."""
    parser.addini("pyverno_policies", "Files and folders of the fixture `policies`.", type="paths", default=[])
    parser.addini("pyverno_test_file", "Name of the files with test suites of policies.", default=_FILE)
    parser.addini("pyverno_strict", "Fail for rows that prove nothing.", type="bool", default=True)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect files with test suites of policies."""
    if file_path.suffix not in (".yaml", ".yml") or file_path.name != parent.config.getini("pyverno_test_file"):
        return None
    collector: pytest.Collector = PolicyTestFile.from_parent(parent, path=file_path)
    return collector


class PolicyTestFile(pytest.File):
    """A file with test suites; its documents are run when it is collected, its rows are the tests."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test for each row, and one for each suite that cannot be run."""
        from contextlib import ExitStack

        from pyverno.cli.test.find import find_suites

        with ExitStack() as stack:
            roots = (self.config.rootpath,)  # guard: a collected test names files of pytest's root only
            suites = find_suites(str(self.path), self.path.name, "", stack, roots=roots)
        for number, suite in enumerate(suites):
            yield from self._of_suite(suite, f"[{number}]" if number else "")

    def _of_suite(self, suite: FoundSuite, mark: str) -> Iterator[pytest.Item]:
        from pyverno.cli.test.options import SuiteOptions
        from pyverno.cli.test.run import run_suite

        name = suite.test.name if suite.test is not None else self.path.name
        problem = suite.error or ("the test file uses a deprecated schema" if suite.is_deprecated else "")
        if problem:
            yield PolicyRow.from_parent(self, name=f"{name}{mark}", problem=problem)
            return
        outcome = run_suite(suite, SuiteOptions(strict=bool(self.config.getini("pyverno_strict"))))
        invalid = outcome.warnings if outcome.vacuous else ()
        for text in (*outcome.errors, *outcome.unread, *invalid, *outcome.vacuous):
            yield PolicyRow.from_parent(self, name=f"{name}{mark}", problem=text)
        for row in outcome.rows:
            title = "/".join(part for part in (row.policy, row.rule) if part)
            expected = f"-{row.expected.result.value}" if row.expected is not None else ""
            line = 0
            if suite.test is not None and row.expected is not None:
                line = suite.test.document.location(row.expected.path).line
            text = _failure(row, outcome.notes) if row.counts_as_failed else ""
            yield PolicyRow.from_parent(
                self, name=f"{title}[{row.resource}{expected}]{mark}", problem=text, line=line or 1
            )


class PolicyRow(pytest.Item):
    """One row for one resource; `problem` is why it fails ("" = it passes)."""

    def __init__(self, *, problem: str, line: int = 1, **more: Any) -> None:
        super().__init__(**more)
        self._problem = problem
        self._line = line

    def runtest(self) -> None:
        """Fail with the reason, if there is one."""
        if self._problem:
            pytest.fail(f"{self.path}:{self._line}: {self._problem}", pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the place of the row."""
        return self.path, self._line - 1, self.name


def _failure(row: Row, notes: Sequence[str]) -> str:
    lines = [f"{row.policy}/{row.rule}: {row.resource}: {row.reason}"]
    # a row that was not found has no message of its own
    told = notes if row.message == row.reason else row.message.splitlines()
    lines += [f"  {line}" for line in told]
    return "\n".join(lines)


@pytest.fixture(scope="session")
def policies(pytestconfig: pytest.Config) -> PolicySet:
    """The policies of `pyverno_policies` in the configuration; override this fixture for others."""
    import pyverno

    paths = pytestconfig.getini("pyverno_policies")
    if not paths:
        raise pytest.UsageError("set `pyverno_policies` in the configuration, or override the fixture `policies`")
    return pyverno.load_policies(paths)


@pytest.fixture
def review(policies: PolicySet) -> Callable[..., Review]:
    """A function that reviews an object with `policies`; it takes what `pyverno.review` takes."""
    import pyverno

    def call(resource: Any, **more: Any) -> Review:
        return pyverno.review(resource, policies, **more)

    return call


@pytest.fixture(scope="session")
def kube_api() -> Iterator[Sandbox]:
    """A running API server with its controllers, one for all tests of the session."""
    from kubesandbox.sandbox import Sandbox

    with Sandbox() as sandbox:
        yield sandbox
