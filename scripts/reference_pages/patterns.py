"""The page of patterns: anchors and the operators of leaves, with examples that run while the page is made."""

from __future__ import annotations

import json
import re

from pyverno.kube.json import JSON
from pyverno.lang.pattern import anchors
from pyverno.lang.pattern.anchors import Modifier
from pyverno.lang.pattern.leaf import Operator, compile_leaf
from pyverno.lang.pattern.mutate import compile_overlay
from pyverno.lang.pattern.validate import compile_pattern
from scripts.reference_pages.markdown import cell, code, page, table

__all__ = ["patterns"]

_LINE = re.compile(r"^ {4}(\S*\(k\)) {2,}(.+?) {2,}(.+)$", re.MULTILINE)

_VALIDATE: tuple[tuple[JSON, JSON], ...] = (
    ({"(image)": "*:latest", "imagePullPolicy": "Always"}, {"image": "a:latest", "imagePullPolicy": "IfNotPresent"}),
    ({"(image)": "*:latest", "imagePullPolicy": "Always"}, {"image": "a:1", "imagePullPolicy": "IfNotPresent"}),
    ({"=(hostPID)": False}, {}),
    ({"=(hostPID)": False}, {"hostPID": True}),
    ({"hostPID": False}, {}),
    ({"^(ports)": [{"port": 443}]}, {"ports": [{"port": 80}, {"port": 443}]}),
    ({"ports": [{"port": 443}]}, {"ports": [{"port": 80}, {"port": 443}]}),
    ({"X(hostPath)": "null"}, {"hostPath": {"path": "/"}}),
    ({"<(kind)": "Pod", "spec": {"hostPID": False}}, {"kind": "Job", "spec": {"hostPID": True}}),
    ({"app*": "?*"}, {"app": "x"}),
)
_MUTATE: tuple[tuple[JSON, JSON], ...] = (
    ({"labels": {"+(team)": "none"}}, {"labels": {}}),
    ({"labels": {"+(team)": "none"}}, {"labels": {"team": "bravo"}}),
    ({"containers": [{"(image)": "*:latest", "pull": "Always"}]}, {"containers": [{"name": "c", "image": "a:latest"}]}),
    ({"<(kind)": "Pod", "spec": {"a": 1}}, {"kind": "Job", "spec": {}}),
)
_LEAVES: tuple[tuple[JSON, tuple[JSON, ...]], ...] = (
    ("nginx*", ("nginx-1", "apache")),
    ("?*", ("x", "")),
    ("*", ("", None)),
    (">5", (6, 5, "6")),
    (">=1Gi", ("1024Mi", "512Mi")),
    ("<1h", ("59m", "60m")),
    ("!latest", ("1.25", "latest")),
    ("1-10", (10, 11)),
    ("1!-10", (10, 11)),
    ("a | b", ("a", "b", "c")),
    (">1 & <5", (3, 7)),
    (5, (5, 5.0, "5")),
    (True, (True, "true")),
    (None, (None, 0, "", False)),
)


def patterns() -> str:
    """Return the anchors, what they do in validate and mutate, and the small language of leaves."""
    rows = _LINE.findall(anchors.__doc__ or "")
    known = {f"{modifier.value}(k)" for modifier in Modifier}
    if {spelling for spelling, _, _ in rows} != known:
        raise ValueError("the docstring of pyverno.lang.pattern.anchors does not list every anchor")
    spelled = table(("anchor", "name", "meaning"), ((code(a), cell(b), cell(c)) for a, b, c in rows))
    leaves = (
        (code(_json(leaf)), code(_json(value)), "fits" if compile_leaf(leaf)(value) else "-")
        for leaf, values in _LEAVES
        for value in values
    )
    return page(
        "Patterns",
        "A pattern has the shape of the resource. Maps match when all their keys match, lists when every element of "
        "the resource matches the one element of the pattern, scalars as told below. Anchors are parenthesised keys.",
        "## Anchors",
        spelled,
        "## Anchors in validate",
        table(("pattern", "resource", "verdict"), map(_verdict, _VALIDATE)),
        "## Anchors in mutate",
        "What is left of the overlay when its anchors are decided against the resource; this is then merged.",
        table(("overlay", "resource", "patch"), map(_patch, _MUTATE)),
        "## Scalars",
        "Before or between the operands of a text: "
        + ", ".join(code(each.value) for each in Operator if each.value)
        + "; `|` is or, `&` is and. Operands are tried as durations, then as quantities, then as text with the "
        "wildcards `*` (any text) and `?` (one character).",
        table(("pattern", "value", ""), leaves),
    )


def _json(value: JSON) -> str:
    return json.dumps(value)


def _verdict(trial: tuple[JSON, JSON]) -> tuple[str, str, str]:
    pattern, resource = trial
    outcome = compile_pattern(pattern).match(resource)
    where = f" at {code(outcome.path)}" if outcome.path else ""
    return code(_json(pattern)), code(_json(resource)), f"{outcome.status.value}{where}"


def _patch(trial: tuple[JSON, JSON]) -> tuple[str, str, str]:
    overlay, resource = trial
    patch = compile_overlay(overlay).resolve(resource)
    return code(_json(overlay)), code(_json(resource)), "not applied" if patch is None else code(_json(patch))
