"""`pyverno test --watch`: the files that suites read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NoReturn

from pyverno.cli.test.find import FoundSuite, find_suites
from pyverno.cli.test.options import SuiteOptions
from pyverno.cli.watch import watch
from pyverno.errors import PyvernoError, UsageError
from pyverno.offline.git.clone import is_git_url

__all__ = ["watch_tests"]


def watch_tests(
    options: SuiteOptions, run: Callable[[SuiteOptions], int], *, wait: Callable[[float], None] = time.sleep
) -> NoReturn:
    """Run the suites at every change of a file below the folders, or of one that a suite names."""
    if any(map(is_git_url, options.sources)):
        raise UsageError("--watch and a git address cannot be used together")
    if options.write:
        raise UsageError("--watch and --write cannot be used together")
    watch(lambda: run(options), lambda: (*options.sources, *_named(options)), output=options.report, wait=wait)


def _named(options: SuiteOptions) -> Iterator[str]:
    """Yield the files that suites name, some of which are in other folders."""
    for source in options.sources:
        try:
            with ExitStack() as stack:
                suites = find_suites(source, options.file_name, "", stack)
        except PyvernoError:
            continue  # the run reports it
        for suite in suites:
            yield from _files_of(suite)


def _files_of(suite: FoundSuite) -> Iterator[str]:
    test = suite.test
    if test is None:
        return
    names = (
        *(*test.policies, *test.resources, *test.target_resources, *test.param_resources, *test.exceptions),
        *(*test.json_payloads, *test.http_payloads, *test.envoy_payloads, *test.cluster_resources),
        *(test.user_info, test.variables, test.context),
    )
    for row in test.results:
        names += (row.patched_resources, row.generated_resource, *row.generated_resources, row.clone_source_resource)
    for entry in test.global_entries:
        names += entry.resource_files or ()
    yield from (str(suite.path.parent / name) for name in names if name)
