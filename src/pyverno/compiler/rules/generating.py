"""Lowering of `generate` blocks to actions."""

from __future__ import annotations

from pyverno.compiler.parser import Parser
from pyverno.compiler.rules.elements import lower_elements
from pyverno.engine.actions.generate import (
    CloneListSource,
    CloneSource,
    DataSource,
    GenerateElements,
    GenerateRule,
    Source,
)
from pyverno.engine.rule import Action
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.template import Surroundings
from pyverno.policy.generate import Generate, GenerateForeach, GeneratePattern

__all__ = ["lower_generate"]


def lower_generate(generate: Generate, parser: Parser, *, server_side_apply: bool) -> Action:
    """Compile what a generate rule creates."""
    entries = [_entry(each, parser) for each in generate.foreach or ()]
    return GenerateRule(
        source=None if generate.foreach is not None else _source(generate.pattern, generate.path, parser),
        entries=tuple(entry for entry in entries if entry is not None),
        synchronize=generate.synchronize,
        server_side_apply=server_side_apply,
        orphan_on_policy_delete=generate.orphan_downstream_on_policy_delete,
    )


def _source(pattern: GeneratePattern, path: Path, parser: Parser) -> Source:
    document: JSONObject = {
        "target": {
            "apiVersion": pattern.api_version,
            "kind": pattern.kind,
            "namespace": pattern.namespace,
            "name": pattern.name,
        }
    }
    # references look at the block as it is written, where the fields of the target are beside the data
    within = Surroundings({**document["target"], **document, "data": pattern.data}, "")
    if pattern.clone_list.kinds:
        document["cloneList"] = {
            "namespace": pattern.clone_list.namespace,
            "kinds": list(pattern.clone_list.kinds),
            "selector": pattern.clone_list.selector,
        }
        return CloneListSource(parser.template(document, path, within))
    if pattern.clone.name:
        document["clone"] = {"namespace": pattern.clone.namespace, "name": pattern.clone.name}
        return CloneSource(parser.template(document, path, within))
    document["data"] = pattern.data if pattern.data is not None else {}
    return DataSource(parser.template(document, path, within))


def _entry(each: GenerateForeach, parser: Parser) -> GenerateElements | None:
    elements = lower_elements(each, parser)
    if elements is None:
        return None
    return GenerateElements(elements, _source(each.pattern, each.path, parser))
