"""`pyverno migrate`: the flags of the command."""

from __future__ import annotations

import click

from pyverno.cli.args.flags import Flag, number, repeated, switch, value
from pyverno.cli.args.sections import command
from pyverno.cli.args.shared import CLUSTER, KUBE_VERSION, SEED
from pyverno.cli.errors import Exit, report_error
from pyverno.errors import UsageError

__all__ = ["migrate"]

_HELP = """Convert policies to CEL, and show that they decide as before.

POLICIES are files, folders, or `-` for stdin, with ClusterPolicies, Policies, CleanupPolicies or PolicyExceptions. The
converted policies go to stdout, and nothing else does. The report goes to stderr, one line for each rule: converted
(tested), converted but different (only with --unsafe), or not convertible, with the field, the reason and the next
step. A rule that has no equal in CEL stays in the old policy. With --write and --in-place, suites (`kyverno-test.yaml`)
among POLICIES or in its folders are converted too, and run before and after.

Every conversion is judged beside its source on generated objects that an API server admits. What was tried becomes an
annotation, and with --write a file that `pyverno equivalent --check` and `--check` read again.

The exit code is 0 when everything was converted and tested, 1 when something was not, and 2 for unusable input.

With --resource the objects of CustomResourceDefinitions in a cluster are stored again at their storage version.
"""


def _migrate(policies: tuple[str, ...], **flags: object) -> None:
    resources = flags.pop("crds_to_store")
    cluster = {name: flags.pop(name) for name in ("kubeconfig", "context", "dry_run")}
    if bool(resources) is bool(policies):
        words = "`--resource` takes no policies" if policies else "name policies, `-` for stdin, or a definition"
        report_error(UsageError(words))
        raise Exit(2)
    if resources:
        from pyverno.cli.migrate.storage import store_again

        raise Exit(store_again(tuple(resources), **cluster))  # type: ignore[arg-type]
    from pyverno.cli.migrate.run import MigrateOptions, run_migrate

    given = {key: tuple(each) if isinstance(each, list) else each for key, each in flags.items()}
    raise Exit(run_migrate(MigrateOptions(policies=policies, **given)))  # type: ignore[arg-type]


migrate = command(
    "migrate",
    _HELP,
    _migrate,
    {
        "Conversion": (
            value(
                "--to",
                help="Kinds to convert to: Kyverno's (cel), or Kubernetes' own that validate (vap) or mutate (map).",
                default="cel",
                choices=("cel", "vap", "map"),
                metavar="KINDS",
                key="target",
            ),
            repeated("--select", help="Only rules of this name (wildcards allowed).", metavar="RULE", key="selected"),
            switch("--unsafe", help="Also write what differs, and take types from patterns where no schema has them."),
            repeated("--crd", help="File or folder with CustomResourceDefinitions.", metavar="FILE", key="crds"),
            KUBE_VERSION,
        ),
        "Test": (
            number("-n", "--objects", help="Objects to generate for each policy.", default=500, least=1, most=10**6),
            SEED,
            number("--workers", help="Processes that convert and test.", default=1, least=1, most=64),
            repeated(
                "-r", "--objects-from", help="Objects to begin with: a file or a folder.", metavar="FILE", key="seeds"
            ),
        ),
        "Output": (
            switch("--diff", help="Print the difference to the source."),
            value("--write", help="Folder for the policies and their certificates.", metavar="DIR"),
            switch("--in-place", help="Replace the policies in their files."),
            switch("--plan", help="Print the steps of the change, each with its check."),
            switch("--check", help="Only check that the folder of --write holds what these policies become."),
            value(
                "--report",
                help="Format of the report: text, json or markdown.",
                default="text",
                choices=("text", "json", "markdown"),
                metavar="FORMAT",
            ),
        ),
        "Storage versions": (
            Flag(("--resource",), "list", "Definition whose objects are stored again.", key="crds_to_store"),
            *CLUSTER,
            switch("--dry-run", help="Only count the objects."),
        ),
    },
    click.Argument(["policies"], nargs=-1),
    examples=(
        "pyverno migrate clusterpolicy.yaml > validatingpolicy.yaml",
        "pyverno migrate policies/ --write converted/ --report markdown 2> report.md",
        "pyverno migrate policies/ --write converted/ --check",
        "pyverno migrate clusterpolicy.yaml --plan",
        "pyverno migrate --resource policyexceptions.kyverno.io",
    ),
)
