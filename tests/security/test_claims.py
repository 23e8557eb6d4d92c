"""I18: every place that reads an annotation or label of ours names who may write it, and why nothing follows from that.

The places are found in the source: each text with one of our prefixes, outside of docstrings. A new one without a row
fails, and so does a row that nothing reads any more.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import pyverno

_ROOT: Final = Path(pyverno.__file__).parent
_CLAIM: Final = re.compile(
    r"(?:[a-z-]+\.)*(?:kyverno|pyverno)\.io/[\w.-]*"
    r"|app\.kubernetes\.io/(?:managed-by|part-of)"
    r"|kubectl\.kubernetes\.io/last-applied-configuration"
)
_VERSION: Final = re.compile(r"/v\d\w*$")


class Settled(Enum):
    """Why a claim that somebody else wrote changes nothing."""

    BOUND = "it counts with a seal of a key of the installation only"
    DERIVED = "what follows from it is read or evaluated again before anything is done"
    OWN = "it is read where only the controllers may write: in their namespace, or cluster-wide objects of theirs"
    AUTHOR = "its writer is the author of the policy or object, and says nothing about what others wrote"
    SHOWN = "it is only written or shown: no controller decides by it"
    NAME = "it is no claim: a group of APIs, a kind, a page, or a text for people"


class Claim(NamedTuple):
    """A text, who may write it, how it is settled, and the modules that hold it."""

    text: str
    writer: str
    settled: Settled
    why: str
    modules: str


_B: Final = "controllers/background/"
_G: Final = "controllers/background/generating/"

CLAIMS: Final = (
    # ----------------------------------------------------------------------------------------------- bound by a seal
    Claim(
        "kyverno.io/verify-images-scoped",
        "who may write the object",
        Settled.BOUND,
        "`annotations.read_record`; foreign ones are removed by `webhook.admission`",
        "engine/imageverification/annotations.py",
    ),
    Claim(
        "kyverno.io/verify-images",
        "who may write the object",
        Settled.SHOWN,
        "nothing reads statuses from it; `without_foreign` removes what no record of ours supports",
        "engine/imageverification/annotations.py",
    ),
    Claim("pyverno.io/seal", "who may write reports", Settled.BOUND, "`ReportSeals.holds`", "report/seals.py"),
    Claim(
        "pyverno.io/object",
        "who may write ephemeral reports",
        Settled.BOUND,
        "the seal covers it; results count only for an object that fits it",
        "report/objectmark.py",
    ),
    Claim(
        "pyverno.io/author",
        "who may write policies of a namespace",
        Settled.DERIVED,
        "the policy webhook writes it from `userInfo`, and refuses any other value (`is_forged`)",
        "webhook/authors.py",
    ),
    *(
        Claim(text, "the controllers, and admins of their namespace", Settled.OWN, why, "policy/updaterequest.py")
        for text, why in (
            ("pyverno.io/revision", "a version at which the history is read, which holds the object or not"),
            ("pyverno.io/kept-object", "says that a Secret of the request's name is read, if the request owns it"),
            ("pyverno.io/deleted-object", "the type of these Secrets"),
            ("pyverno.io/unchanged", "no later version is waited for; objects are the live ones"),
        )
    ),
    Claim(
        "audit.kyverno.io/resource.",
        "who may write ephemeral reports",
        Settled.BOUND,
        "the seal covers object and results",
        "report/seals.py",
    ),
    Claim(
        "audit.kyverno.io/",
        "who may write ephemeral reports",
        Settled.BOUND,
        "`Ephemerals.find` returns sealed reports only",
        "controllers/reports/ephemerals.py report/ephemeral.py",
    ),
    # ------------------------------------------------------------------------------------------------------ derived
    Claim(
        "audit.kyverno.io/source",
        "who may write ephemeral reports",
        Settled.DERIVED,
        "a selector that counts reports against the limit of the breaker",
        "controllers/admission/reports.py controllers/background/resultreports.py",
    ),
    Claim(
        "generate.kyverno.io/",
        "who may write the object",
        Settled.DERIVED,
        "policy, rule and trigger are read again; others fall only with the trigger that they name themselves",
        f"engine/origin.py {_G}downstreams.py cli/test/diff.py compiler/equivalence/outcome.py",
    ),
    Claim(
        "pyverno.io/last-change",
        "who may write the object",
        Settled.DERIVED,
        "it wakes a rule, which is evaluated again; it deletes the object that has it, and no other; writing it on a "
        "policy changes no author",
        "controllers/applier.py webhook/authors.py",
    ),
    Claim(
        "app.kubernetes.io/managed-by",
        "who may write the object",
        Settled.DERIVED,
        "a selector: reports need a seal, generated objects a rule and trigger, admission policies an owner and a name "
        "of ours; `protectManagedResources` makes such objects harder to change, never easier",
        "engine/origin.py controllers/admissionpolicies/reconciler.py controllers/admissionpolicies/translation.py "
        "controllers/cleanup/protection.py controllers/cleanup/ttlwatches.py controllers/reports/reconciler.py "
        "controllers/reports/reportindex.py controllers/webhooks/release.py report/ephemeral.py "
        "report/objectreport.py webhook/admission.py cli/test/diff.py compiler/equivalence/outcome.py",
    ),
    # ------------------------------------------------------------------------------------------------- our own objects
    Claim(
        "app.kubernetes.io/part-of",
        "the controllers and whoever installs them",
        Settled.OWN,
        "it counts in the namespace of the controllers only; elsewhere it is written",
        "controllers/cleanup/protection.py controllers/cleanup/ttlwatches.py controllers/state/recordkeys.py "
        "controllers/webhooks/release.py install/component.py install/definitions.py install/manifests.py "
        "install/reportdefinitions.py install/workdefinitions.py",
    ),
    Claim(
        "cert.kyverno.io/managed-by",
        "who may write Secrets of the controllers",
        Settled.OWN,
        "Secrets with names of ours in the namespace of the controllers",
        "controllers/certificates/secrets.py controllers/webhooks/release.py",
    ),
    Claim(
        "webhook.kyverno.io/managed-by",
        "who may write webhook configurations",
        Settled.OWN,
        "cluster-wide objects; the authority is written into webhooks that call our own server only",
        "controllers/webhooks/configurations.py controllers/webhooks/fixed.py controllers/webhooks/writer.py",
    ),
    Claim(
        "kyverno.io/last-request-time",
        "who may write the lease",
        Settled.OWN,
        "the heartbeat lease in the namespace of the controllers",
        "webhook/heartbeat.py",
    ),
    Claim(
        "pyverno.io/requested-by",
        "who may write the leases",
        Settled.OWN,
        "leases in the namespace of the controllers",
        f"{_B}shards.py",
    ),
    Claim(
        "pyverno.io/written",
        "who may write UpdateRequests of the controllers",
        Settled.OWN,
        "UpdateRequests are read in the namespace of the controllers only",
        f"{_B}mutating/evaluation.py",
    ),
    Claim(
        "pyverno.io/held", "the same", Settled.OWN, "a label that counts waiting requests", "policy/updaterequest.py"
    ),
    Claim(
        "generate.kyverno.io/policy-name",
        "the same",
        Settled.OWN,
        "a label of UpdateRequests",
        "policy/updaterequest.py",
    ),
    Claim(
        "mutate.updaterequest.kyverno.io/",
        "the same",
        Settled.OWN,
        "labels of UpdateRequests",
        "policy/updaterequest.py",
    ),
    # ---------------------------------------------------------------------------------------------- authors' settings
    Claim(
        "cleanup.kyverno.io/ttl",
        "who may write the object",
        Settled.AUTHOR,
        "the object itself goes, and no other; what is of the system or of the controllers is kept",
        "webhook/cleanupreviews.py report/exceptions.py cli/ui/inspector.py",
    ),
    Claim(
        "cleanup.kyverno.io/propagation-policy",
        "who may write the object",
        Settled.AUTHOR,
        "how the object itself goes",
        "controllers/cleanup/ttlwatches.py",
    ),
    Claim(
        "cache.kyverno.io/enabled",
        "who may write the ConfigMap",
        Settled.AUTHOR,
        "the ConfigMap is answered from memory instead of being requested: the answer is the same",
        "controllers/state/hosts.py",
    ),
    Claim(
        "pyverno.io/confirmed-deletions",
        "the author of the policy",
        Settled.AUTHOR,
        "it raises the limit of the same policy",
        "controllers/cleanup/run.py cli/controller/cleanupflags.py",
    ),
    Claim(
        "pyverno.io/permissions",
        "the author of the policy",
        Settled.AUTHOR,
        "it only narrows what the policy may write",
        f"{_B}requester.py",
    ),
    Claim(
        "pod-policies.kyverno.io/autogen-controllers",
        "the author of the policy",
        Settled.AUTHOR,
        "a setting of the policy",
        "compiler/autogen/patterns.py compiler/migration/frame.py",
    ),
    Claim(
        "polex.kyverno.io/priority",
        "the author of the exception",
        Settled.AUTHOR,
        "the order of exceptions",
        "policy/cel/exception.py",
    ),
    Claim(
        "policies.kyverno.io/scored",
        "the author of the policy",
        Settled.AUTHOR,
        "how a report counts the policy",
        "engine/rule.py",
    ),
    Claim(
        "policies.kyverno.io/severity",
        "the author of the policy",
        Settled.AUTHOR,
        "shown in results of the policy",
        "report/policyreport.py cli/apply/adoption.py",
    ),
    Claim(
        "policies.kyverno.io/category",
        "the author of the policy",
        Settled.AUTHOR,
        "shown in results of the policy",
        "report/policyreport.py",
    ),
    Claim(
        "reports.kyverno.io/disabled",
        "the author of the policy",
        Settled.AUTHOR,
        "the policy is not reported on",
        "controllers/admission/reports.py controllers/admissionpolicies/translation.py "
        f"{_B}resultreports.py controllers/state/scannedkinds.py",
    ),
    Claim(
        "reports.kyverno.io/enabled",
        "the author of the admission policy",
        Settled.AUTHOR,
        "the admission policy is reported on",
        "controllers/reports/plan.py cli/controller/reportsflags.py",
    ),
    Claim(
        "pyverno.io/ignore",
        "the author of the judged file",
        Settled.AUTHOR,
        "a suppression, which offline commands count and show",
        "offline/adoption/suppressions.py cli/apply/run.py",
    ),
    Claim(
        "policies.pyverno.io/standards",
        "the authors of the library that comes with the package",
        Settled.AUTHOR,
        "the index of the library",
        "offline/policylibrary.py",
    ),
    # ------------------------------------------------------------------------------------------ only written or shown
    Claim(
        "policies.pyverno.io/certificate",
        "the command that migrates",
        Settled.SHOWN,
        "the files are compared again",
        "cli/migrate/certificate.py",
    ),
    Claim(
        "policies.pyverno.io/migrated-from",
        "the command that migrates",
        Settled.SHOWN,
        "written only",
        "compiler/migration/policy.py",
    ),
    Claim(
        "policies.pyverno.io/source-digest",
        "the command that migrates",
        Settled.SHOWN,
        "written only",
        "compiler/migration/policy.py",
    ),
    Claim(
        "kubectl.kubernetes.io/last-applied-configuration",
        "who may write the object",
        Settled.SHOWN,
        "left out, redacted, or kept as kubectl does; server-side apply reads it of the object that it changes",
        "cli/ui/inspector.py compiler/migration/frame.py images/manifests/compare.py kube/apply/serverside.py "
        "telemetry/redaction.py",
    ),
    # ---------------------------------------------------------------------------------------------------- no claims
    Claim(
        "policies.kyverno.io/",
        "",
        Settled.NAME,
        "a group, or the prefix of annotations of policies that results show",
        f"cli/ui/inspector.py compiler/equivalence/outcome.py {_G}downstreams.py {_G}handlers.py "
        f"{_B}policyconditions.py controllers/cleanup/scheduled.py controllers/runtime/events.py "
        "controllers/webhooks/release.py engine/result.py offline/policylibrary.py report/finding.py",
    ),
    Claim(
        "kyverno.io/",
        "",
        Settled.NAME,
        "a group, or the prefix of annotations that tests and comparisons leave out",
        "cli/fix/policy.py cli/test/suite.py compiler/equivalence/outcome.py compiler/validation/rules.py "
        f"{_G}handlers.py {_G}writer.py {_B}policyconditions.py controllers/runtime/events.py "
        "controllers/webhooks/release.py",
    ),
    *(
        Claim(f"{group}/{kind}", "", Settled.NAME, "a kind", modules)
        for group, kind, modules in (
            ("kyverno.io", "ClusterPolicy", f"{_G}downstreams.py {_G}generator.py {_G}policies.py"),
            ("kyverno.io", "Policy", f"{_G}downstreams.py {_G}generator.py {_G}policies.py"),
            ("policies.kyverno.io", "GeneratingPolicy", f"{_G}generator.py {_G}policies.py"),
            ("policies.kyverno.io", "NamespacedGeneratingPolicy", f"{_G}generator.py {_G}policies.py"),
        )
    ),
    Claim("kyverno.io/docs", "", Settled.NAME, "a page", "compiler/validation/lints.py"),
    Claim("cache.kyverno.io/enabled.", "", Settled.NAME, "the help of a flag", "cli/controller/groups.py"),
    Claim(
        "rbac.kyverno.io/aggregate-to-",
        "who may write ClusterRoles",
        Settled.NAME,
        "the API server aggregates roles by it",
        "cli/create/files.py install/component.py",
    ),
    Claim("policyreporter.kyverno.io/", "", Settled.NAME, "a group", "ui/notifications/settings.py"),
    Claim("ui.policyreporter.kyverno.io/", "", Settled.NAME, "a group", "ui/views.py"),
)


def _docstrings(tree: ast.AST) -> set[int]:
    return {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _claims(text: str) -> Iterator[str]:
    """Yield the claims that a module's source names, outside of docstrings."""
    tree = ast.parse(text)
    docstrings = _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield from (found for found in _CLAIM.findall(node.value) if not _VERSION.search(found))


def _places() -> set[tuple[str, str]]:
    return {
        (claim, path.relative_to(_ROOT).as_posix())
        for path in _ROOT.rglob("*.py")
        for claim in _claims(path.read_text())
    }


def test_every_place_that_reads_a_claim_of_ours_has_a_row() -> None:
    """A new reader of an annotation states who may write it, and how it is checked."""
    rows = {(row.text, module) for row in CLAIMS for module in row.modules.split()}
    assert (set(), set()) == (_places() - rows, rows - _places())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('X = "kyverno.io/new-claim"', ["kyverno.io/new-claim"]),
        ('X = f"pyverno.io/{name}"', ["pyverno.io/"]),
        (
            'X = "generate.kyverno.io/a,app.kubernetes.io/part-of"',
            ["generate.kyverno.io/a", "app.kubernetes.io/part-of"],
        ),
        ('"""About kyverno.io/claims."""', []),
        ('X = "kyverno.io/v1"', []),
    ],
)
def test_a_claim_is_found_in_any_text(text: str, expected: list[str]) -> None:
    """Names, prefixes and selectors are; versions of APIs and docstrings are no claims."""
    assert expected == list(_claims(text))


def test_every_row_says_who_and_why() -> None:
    """A claim without a writer is none."""
    silent = (Settled.NAME, Settled.SHOWN)
    assert [] == [row.text for row in CLAIMS if not row.why or (not row.writer and row.settled not in silent)]
