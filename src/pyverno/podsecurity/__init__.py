"""The Pod Security Standards of Kubernetes over plain JSON.

One file per control under `controls`; `pod` reads the pod out of a resource, `evaluate` runs the checks of a level and
version, `excludes` removes the violations that a rule or an exception tolerates. A pod that cannot be read is an error,
never an allowed pod.
"""

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant
from pyverno.podsecurity.controls import CHECKS, CONTROLS
from pyverno.podsecurity.evaluate import PodSecurityCheck, PodSecurityOutcome, compile_pod_security, evaluate, message
from pyverno.podsecurity.excludes import Exclude, compile_excludes
from pyverno.podsecurity.finding import MAX_LISTED, FieldError, Finding, Violation
from pyverno.podsecurity.pod import POD_KINDS, read_pod
from pyverno.podsecurity.problems import ExcludeProblem, exclude_problems
from pyverno.podsecurity.versions import LATEST, Version, parse_version

__all__ = [
    "CHECKS",
    "CONTROLS",
    "LATEST",
    "MAX_LISTED",
    "POD_KINDS",
    "Check",
    "Control",
    "Exclude",
    "ExcludeProblem",
    "FieldError",
    "Finding",
    "Level",
    "PodSecurityCheck",
    "PodSecurityOutcome",
    "Reach",
    "Variant",
    "Version",
    "Violation",
    "compile_excludes",
    "compile_pod_security",
    "evaluate",
    "exclude_problems",
    "message",
    "parse_version",
    "read_pod",
]
