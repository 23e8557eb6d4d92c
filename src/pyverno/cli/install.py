"""`pyverno install`: print the manifests that install the controllers, for `kubectl apply -f -`.

This module holds the flags; `install.manifests` makes the objects.
"""

from __future__ import annotations

import re

import orjson

from pyverno.cli.args.flags import comma_list, number, switch, value
from pyverno.cli.args.sections import command
from pyverno.cli.terminal import STDOUT
from pyverno.errors import UsageError
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.lazyregex import regex

__all__ = ["install"]

_NAMESPACE = regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


def _install(
    *,
    dry_run: bool,
    crds_only: bool,
    namespace: str,
    image: str,
    replicas: int,
    argument: tuple[str, ...],
    secret: tuple[str, ...],
    api_server: tuple[str, ...],
    user_namespaces: bool,
    output: str,
) -> None:
    from pyverno.install.definitions import definitions
    from pyverno.install.manifests import InstallSettings, manifests
    from pyverno.telemetry.instruments import DEFAULT_BUCKETS

    if not dry_run:
        raise UsageError("this command only prints manifests: run `pyverno install --dry-run | kubectl apply -f -`")
    if not _NAMESPACE.fullmatch(namespace):
        raise UsageError(f"`{namespace}` cannot be the name of a namespace: up to 63 of a-z, 0-9 and `-` inside")
    for block in api_server:
        _check_block(block)
    defaults = InstallSettings()
    settings = InstallSettings(
        namespace, image or defaults.image, replicas, argument, secret, user_namespaces, DEFAULT_BUCKETS, api_server
    )
    objects = list(definitions() if crds_only else manifests(settings))
    if output == "json":
        found = {"apiVersion": "v1", "kind": "List", "items": objects}
        STDOUT.write(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() + "\n")
    elif output == "yaml":
        STDOUT.write("---\n".join(dump_yaml(each, sort_keys=False) for each in objects))
    else:
        raise UsageError(f"invalid output format: {output} (supported formats: json, yaml)")


def _check_block(text: str) -> None:
    from ipaddress import ip_network

    try:
        ip_network(text)
    except ValueError:
        raise UsageError(f"`{text}` of --api-server is no block of addresses, such as 10.0.0.10/32") from None


install = command(
    "install",
    "Print the CustomResourceDefinitions and the manifests of the controllers.",
    _install,
    {
        "Options": (
            switch(
                "--dry-run", help="Print the manifests; required, because the command cannot write to a cluster yet."
            ),
            switch("--crds-only", help="Print only the CustomResourceDefinitions."),
            value("-o", "--output", help="Format: yaml or json.", default="yaml", metavar="FORMAT"),
        ),
        "Controllers": (
            value("--namespace", help="Namespace of the controllers.", default="kyverno", metavar="NAME"),
            value("--image", help="Image of the controllers.", metavar="IMAGE"),
            number("--replicas", help="Number of replicas of each controller.", default=1, least=1),
            comma_list("--argument", help="Additional arguments of the admission controller."),
            comma_list("--secret", help="Secrets named in these arguments; the controller may read and renew them."),
            comma_list(
                "--api-server",
                help="Addresses (such as 10.0.0.10/32) that may connect to the port of the webhook; any by default.",
            ),
            switch("--user-namespaces", help="Run the pods in user namespaces; all nodes must support them."),
        ),
    },
    examples=(
        "pyverno install --dry-run | kubectl apply -f -",
        "pyverno install --dry-run --crds-only | kubectl apply -f -",
        "pyverno install --dry-run --image registry.example.org/pyverno:1 --replicas 3",
    ),
)
