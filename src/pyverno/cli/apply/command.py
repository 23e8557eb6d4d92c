"""`pyverno apply`: validate, mutate and generate resources with policies, without a cluster."""

from __future__ import annotations

import click

from pyverno.cli.apply import flags as apply_flags
from pyverno.cli.args.sections import command
from pyverno.cli.errors import Exit

__all__ = ["apply"]


def _apply(policies: tuple[str, ...], **flags: object) -> None:
    raise Exit(apply_flags.apply(policies, flags))


apply = command(
    "apply",
    "Apply policies on resources.\n\nPOLICIES are files, folders, git addresses, or `-` for stdin.",
    _apply,
    apply_flags.SECTIONS,
    click.Argument(["policies"], nargs=-1),
    examples=(
        "pyverno apply policy.yaml --resource pod.yaml",
        "pyverno apply policies/ -r manifests/ --table --detailed-results",
        "kustomize build overlays/prod | pyverno apply policies/ -r -",
        "pyverno apply mutate.yaml -r pod.yaml --stdin | kubectl apply -f -",
        "pyverno apply https://github.com/kyverno/policies/pod-security -b main -r pod.yaml --policy-report",
        "pyverno apply policies/ -r manifests/ --format sarif > results.sarif",
    ),
)
