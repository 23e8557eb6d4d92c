"""Flags that several commands have, with one name, help text and default."""

from __future__ import annotations

from pyverno.cli.args.flags import Flag, number, repeated, value

__all__ = ["CLUSTER", "CONFIG", "FIRST_OBJECTS", "KUBE_VERSION", "SEED", "output_format"]

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
CONFIG = (
    value(
        "--config",
        help="Configuration file, or `none`; else .pyverno.yaml or pyproject.toml, which may only select and format.",
        metavar="FILE",
        role="once",
    ),
    value(
        "--config-revision",
        help="Take the file that is found from this revision of git, not from the working tree.",
        metavar="REV",
        role="once",
    ),
)
"""For commands whose flags a file may set."""


def output_format(*choices: str, help: str = "") -> Flag:
    """Return the flag `-o` of a command with several formats; the first one is the default."""
    text = help or f"Format: {', '.join(choices)}."
    return value("-o", "--output", help=text, default=choices[0], choices=choices, metavar="FORMAT", key="form")
