"""Flags that several commands have, with one name, help text and default."""

from __future__ import annotations

from pyverno.cli.args.flags import Flag, number, repeated, value

__all__ = ["CLUSTER", "FIRST_OBJECTS", "KUBE_VERSION", "SEED", "output_format"]

SEED = number("--seed", help="Seed: the same one generates the same objects.", default=1, least=0, most=2**31)
KUBE_VERSION = value(
    "--kube-version", help="Kubernetes version whose schemas count.", default="1.35", metavar="VERSION"
)
FIRST_OBJECTS = repeated(
    "-r", "--resource", help="Objects to begin with: a file or a folder.", metavar="FILE", key="resources"
)
CLUSTER = (
    value("--kubeconfig", help="Kubeconfig file.", metavar="FILE"),
    value("--context", help="Context of the kubeconfig.", metavar="NAME"),
)


def output_format(*choices: str, help: str = "") -> Flag:
    """Return the flag `-o` of a command with several formats; the first one is the default."""
    text = help or f"Format: {', '.join(choices)}."
    return value("-o", "--output", help=text, default=choices[0], choices=choices, metavar="FORMAT", key="form")
