"""`pyverno apply`: judge, change and generate for resources with policies, without a cluster.

This module makes click's command of the flags in `apply_flags`; `apply_run` does the work.
"""

from __future__ import annotations

import click

from pyverno.cli.apply import flags as apply_flags
from pyverno.cli.args.options import LOGGING_OPTIONS, Command, option
from pyverno.cli.errors import Exit

__all__ = ["apply"]

_EXAMPLES = """\b
Examples:
  pyverno apply policy.yaml --resource pod.yaml
  pyverno apply policies/ -r manifests/ --table --detailed-results
  kustomize build overlays/prod | pyverno apply policies/ -r -
  pyverno apply mutate.yaml -r pod.yaml --stdin | kubectl apply -f -
  pyverno apply https://github.com/OWNER/REPOSITORY/main -b main -r pod.yaml --policy-report
  pyverno apply policies/ -r manifests/ --format sarif > results.sarif
"""


def _apply(policies: tuple[str, ...], **flags: object) -> None:
    raise Exit(apply_flags.apply(policies, flags))


apply = Command(
    name="apply",
    help="Apply policies on resources.\n\nPOLICIES are files, folders, git addresses, or `-` for stdin.",
    epilog=_EXAMPLES,
    callback=_apply,
    params=[
        click.Argument(["policies"], nargs=-1),
        *(option(each) for each in apply_flags.FLAGS),
        *(option() for option in LOGGING_OPTIONS),
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
)
