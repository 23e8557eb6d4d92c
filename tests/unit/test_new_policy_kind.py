"""An invented policy kind takes a handful of files, and every part of the system then serves it.

The test follows the recipe of CONTRIBUTING in a copy of the sources: `LabelPolicy` names labels that objects must have.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(__file__).parents[2] / "src"
MOST_FILES = 6

DOCUMENT = '''"""LabelPolicy: labels that objects must have."""

from __future__ import annotations

from pyverno.policy.cel.blocks import VALIDATION_ACTIONS, ValidationAction, evaluation_record
from pyverno.policy.cel.policies import COMMON_FIELDS, CelPolicy, CelSpec
from pyverno.policy.document import policy_record
from pyverno.policy.schema import Field, Record, list_of, text
from pyverno.value import dataclass

__all__ = ["LABEL_POLICY", "LabelPolicy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSpec(CelSpec):
    """The spec of a LabelPolicy."""

    labels: tuple[str, ...] = ()
    validation_actions: tuple[ValidationAction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPolicy(CelPolicy):
    """A LabelPolicy or NamespacedLabelPolicy."""

    spec: LabelSpec


LABEL_POLICY = policy_record(
    LabelPolicy,
    Record(
        LabelSpec,
        *COMMON_FIELDS,
        Field("labels", list_of(text), required=True),
        Field("validation_actions", VALIDATION_ACTIONS),
        Field("evaluation", evaluation_record("admission", "background")),
    ),
)
'''

DECODER = '''

def label_policy(_version: str) -> Shape:
    """Return the shape of LabelPolicy and its namespaced twin."""
    from pyverno.policy.cel.labelpolicy import LABEL_POLICY

    return LABEL_POLICY
'''

ROW = """    *_cel(
        "LabelPolicy",
        "lpol",
        decoders.label_policy,
        PolicyAction.VALIDATE,
        ("user",),
        routes=(("", "validate"),),
        metric="label",
    ),
"""

LOWERING = """def _labelling(policy: LabelPolicy, info: PolicyInfo, parser: Parser) -> CompiledRule:
    compiler = _compiler(policy, parser)
    validations = []
    for label in policy.spec.labels:
        text = f"{label!r} in object.metadata.?labels.orValue({{}})"
        program = compiler.compile(text, ("spec", "labels"), expected=types.BOOL)
        if program is not None:
            validations.append(CelValidation(program, text, f"label {label} is missing", None, ""))
    check = ValidatingCheck(
        validations=tuple(validations),
        conditions=compiler.conditions(policy.spec.match_conditions),
        variables=compiler.variables(policy.spec.variables),
    )
    return _rule(policy, info, parser, Stage.VALIDATE, check, failure_action=FailureAction.ENFORCE)


"""

CHECK = """        case LabelPolicy():
            if not policy.spec.labels:
                findings.error("labels", ("spec", "labels"), "must name at least 1 label")
"""

POLICIES = "from pyverno.policy.cel.policies import"
IMPORT = "from pyverno.policy.cel.labelpolicy import LabelPolicy\n"

# file, the text before which something is inserted ("" for the end of the file, or a new one), and what
EDITS: tuple[tuple[str, str, str], ...] = (
    ("policy/cel/labelpolicy.py", "", DOCUMENT),
    ("policy/decoders.py", "", DECODER),
    ("policy/kinds.py", '    *_cel(\n        "MutatingPolicy",', ROW),
    (
        "compiler/cel/policy.py",
        "from pyverno.policy.cel.policies import",
        "from pyverno.policy.cel.labelpolicy import LabelPolicy\n",
    ),
    ("compiler/cel/policy.py", "_LOWERINGS: Mapping[", LOWERING),
    ("compiler/cel/policy.py", "    MutatingPolicy: _mutating,\n", "    LabelPolicy: _labelling,\n"),
    (
        "compiler/validation/cel.py",
        "from pyverno.policy.cel.policies import",
        "from pyverno.policy.cel.labelpolicy import LabelPolicy\n",
    ),
    ("compiler/validation/cel.py", "        case GeneratingPolicy():\n            _check_generating", CHECK),
)

SCENE = """
import json

from pyverno.compiler import compile_document
from pyverno.controllers.admission.policystatus import status_of
from pyverno.controllers.webhooks.configurations import configurations
from pyverno.controllers.webhooks.sources import Sources
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.install.definitions import definitions
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.yaml.documents import Document
from pyverno.offline.host import OfflineHost
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.report.ephemeral import policy_label
from pyverno.report.policyreport import plain_result
from pyverno.telemetry.catalog import METRICS
from pyverno.webhook.routes import read_route


def compiled(**spec):
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    return compile_document(
        Document(
            {
                "apiVersion": "policies.kyverno.io/v1",
                "kind": "LabelPolicy",
                "metadata": {"name": "owned"},
                "spec": {"matchConstraints": {"resourceRules": rules}, **spec},
            }
        )
    )


item = compiled(labels=["owner"])
engine = Engine(PolicySet([item.policy]), OfflineHost())


def review(**metadata):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", **metadata}}
    return engine.review(Request.from_manifest(pod))


bad, good = review(), review(labels={"owner": "me"})
[validating, _] = configurations(Sources(cel=(item.written,), kinds=BUILTIN_KINDS))
[hook] = validating["webhooks"]
definition = next(each for each in definitions() if each["spec"]["names"]["kind"] == "LabelPolicy")
schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
print(
    json.dumps(
        {
            "errors": [str(each) for each in item.errors],
            "invalid": [each.message for each in compiled(labels=[]).errors],
            "unknown": [each.code for each in compiled(labels=["a"], label=1).errors],
            "results": [each.status.value for review in (bad, good) for each in review.results],
            "message": bad.results[0].message,
            "allowed": [bad.decision.allowed, good.decision.allowed],
            "report": plain_result(bad.results[0], 0),
            "label": policy_label(item.policy.info),
            "hook": [hook["name"], hook["clientConfig"]["service"]["path"], hook["rules"][0]["resources"]],
            "route": sorted(read_route("/lpol/owned").kinds),
            "status": status_of(item, is_configured=True, now="")["conditionStatus"]["ready"],
            "schema": schema["labels"]["type"],
            "served": any(each.gvk.kind == "LabelPolicy" for each in KNOWN_KINDS),
            "metric": "kyverno_label_policy_results" in METRICS,
        }
    )
)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answers of each part of the system for the new kind, in a copy of the sources."""
    copy = tmp_path_factory.mktemp("kind")
    shutil.copytree(SOURCES, copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name, before, text in EDITS:
        path = copy / "src" / "pyverno" / name
        known = path.read_text(encoding="utf-8") if path.exists() else ""
        assert not before or 1 == known.count(before), (name, before)
        path.write_text(known.replace(before, text + before) if before else known + text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run([sys.executable, "-c", SCENE], capture_output=True, text=True, env=environment, check=False)
    assert 0 == run.returncode, run.stderr
    told: dict[str, Any] = json.loads(run.stdout)
    return told


def test_a_new_kind_takes_at_most_six_files() -> None:
    """Its document, decoder, row, lowering and checks; everything else follows from the row."""
    assert len({name for name, _, _ in EDITS}) <= MOST_FILES


def test_a_new_kind_is_decoded_and_checked(found: dict[str, Any]) -> None:
    """It is decoded strictly, and its own checks run."""
    assert [] == found["errors"]
    assert ["must name at least 1 label"] == found["invalid"]
    assert ["unknown-field"] == found["unknown"]


def test_a_new_kind_is_judged_and_reported(found: dict[str, Any]) -> None:
    """Admission follows its results, and a report names its source and label."""
    assert ["fail", "pass"] == found["results"]
    assert "label owner is missing" == found["message"]
    assert [False, True] == found["allowed"]
    assert ("KyvernoLabelPolicy", "owned", "fail") == tuple(
        found["report"][key] for key in ("source", "policy", "result")
    )
    assert "lpol.kyverno.io/owned" == found["label"]


def test_a_new_kind_has_its_webhook_definition_status_and_metrics(found: dict[str, Any]) -> None:
    """All of them follow from its row."""
    assert ["lpol.validate.kyverno.svc-fail", "/lpol/owned", ["pods"]] == found["hook"]
    assert ["LabelPolicy"] == found["route"]
    assert (True, "array", True, True) == tuple(found[key] for key in ("status", "schema", "served", "metric"))
