"""`pyverno apply --watch`: the files that a run reads, and a run that reads only those that changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NoReturn

from pyverno.cli.apply.options import ApplyOptions, check_options
from pyverno.cli.errors import report_note
from pyverno.cli.watch import watch
from pyverno.offline.files import DocumentCache

__all__ = ["watch_apply"]


def watch_apply(
    options: ApplyOptions,
    run: Callable[[ApplyOptions, DocumentCache], int],
    *,
    wait: Callable[[float], None] = time.sleep,
) -> NoReturn:
    """Run the command at every change; files that did not change are not read again. Ends with KeyboardInterrupt."""
    for text in check_options(options):
        report_note(text)  # flags that cannot be combined end it at once
    cache = DocumentCache()
    paths = _paths(options)
    watch(lambda: run(options, cache), lambda: paths, output=options.output, wait=wait)


def _paths(options: ApplyOptions) -> tuple[str, ...]:
    cli_files = (options.values_file, options.user_info, options.context_file, options.baseline, options.trust_root)
    lists = (
        *(options.policies, options.resources, options.target_resources, options.parameter_resources),
        *(options.exceptions, options.crd_paths, options.helm, options.helm_values, options.kustomize),
        *(options.json_payloads, options.http_payloads, options.envoy_payloads),
    )
    return (*(each for group in lists for each in group), *filter(None, cli_files))
