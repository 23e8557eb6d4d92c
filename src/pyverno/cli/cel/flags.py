"""The flags of `pyverno cel` and its commands."""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.cli.args.flags import Flag, comma_list, duration, number, repeated, switch, value
from pyverno.cli.cel.environment import ENVIRONMENTS

__all__ = ["CHECK", "EVAL", "FUNCTIONS"]

_QUERY = comma_list("-q", "--query", help="Files with one expression each; - is stdin.")
_OUTPUT = value("-o", "--output", help="Format: text, json or yaml.", default="text", metavar="FORMAT")
_ENVIRONMENT = (
    value(
        *("-e", "--environment"),
        help=f"One of {', '.join(ENVIRONMENTS)}.",
        default="ValidatingPolicy",
        metavar="NAME",
    ),
    value("--kubernetes-version", help="Kubernetes version (1.27 to 1.37); the newest by default.", metavar="1.N"),
)

EVAL: Mapping[str, tuple[Flag, ...]] = {
    "Input": (
        value(
            "-i",
            "--input",
            help="A Kubernetes object (bound as `object`), an AdmissionReview, or a map of variables; - is stdin.",
            metavar="FILE",
        ),
        _QUERY,
        value("--object", help="The value of `object`.", metavar="FILE"),
        value("--old-object", help="The value of `oldObject`.", metavar="FILE"),
        value("--params", help="The value of `params`.", metavar="FILE"),
        value("--namespace-object", help="The value of `namespaceObject`.", metavar="FILE"),
        value(
            "--request",
            help="AdmissionReview or AdmissionRequest; missing fields are derived from the objects.",
            metavar="FILE",
        ),
        repeated("--var", metavar="NAME=YAML", help="The value of a variable; may be repeated."),
    ),
    "Environment": _ENVIRONMENT,
    "Limits": (
        number("--cost-limit", help="Cost limit of one expression.", default=1_000_000, metavar="N"),
        duration("--timeout", help="Time limit of one expression.", default="10s"),
    ),
    "Output": (switch("--trace", help="Show every sub-expression with its type and value."), _OUTPUT),
}
CHECK: Mapping[str, tuple[Flag, ...]] = {
    "Input": (
        _QUERY,
        value(
            "--kind",
            help="Give `object` the schema of a kind: Deployment, deploy.apps, apps/v1/Deployment.",
            metavar="KIND",
        ),
        comma_list("--crd", help="Files with the CustomResourceDefinition of the kind."),
        comma_list("--policy", help="Files or folders with policies, instead of expressions."),
        repeated("--declare", metavar="NAME=TYPE", help="Declare a variable; may be repeated."),
        repeated("--expect", metavar="TYPE", help="Refuse a result of any other type; may be repeated."),
    ),
    "Environment": _ENVIRONMENT,
    "Output": (_OUTPUT,),
}
FUNCTIONS: Mapping[str, tuple[Flag, ...]] = {"Options": (*_ENVIRONMENT, _OUTPUT)}
