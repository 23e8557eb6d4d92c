"""The register of advisories that apply to the project, by id, with what went wrong there.

`test_register.py` checks that each id is in the name or the docstring of a test, or in `NOT_APPLICABLE` with the
reason. This module must never import the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["NOT_APPLICABLE", "REGISTER"]

_KYVERNO: Final = {
    "CVE-2022-47633": "a registry that changes the digest between two calls",
    "CVE-2023-47630": "a registry that chooses the digest of the patch",
    "CVE-2023-42813": "manifests without end in verification",
    "CVE-2023-42814": "signatures without end in verification",
    "CVE-2023-42815": "attestations without end in verification",
    "CVE-2023-42816": "answers that come slowly without end in verification",
    "CVE-2023-33191": "seccomp of the baseline was not enforced at the version `latest`",
    "GHSA-hgv6": "TLS with 3DES",
    "CVE-2023-34091": "an object that is being deleted skipped policies",
    "CVE-2024-48921": "exceptions counted from any namespace",
    "GHSA-gg4x": "two exceptions together allowed more than either",
    "CVE-2025-29778": "regular expressions for subject and issuer were ignored",
    "CVE-2025-46342": "an error of a lister became `rule not applied`",
    "CVE-2025-47281": "an expression of nothing ended the process",
    "CVE-2026-41485": "an empty variable in a patch ended the process",
    "CVE-2026-23881": "a context that doubles itself",
    "GHSA-459x": "calls of services by policies of a namespace",
    "GHSA-qr4g": "calls of services at any address",
    "GHSA-fmqp": "the body of an answer shown in a denial",
    "CVE-2026-40868": "our token went along with calls of services",
    "GHSA-8wfp": "our token went along with calls of services",
    "CVE-2026-41323": "our token went along with calls of services",
    "CVE-2026-4789": "HTTP of expressions in policies of a namespace",
    "CVE-2026-22039": "any API path in policies of a namespace",
    "CVE-2026-41068": "any ConfigMap in policies of a namespace",
    "CVE-2026-54523": "objects generated in other namespaces from any expression",
    "CVE-2026-100703": "the global context in policies of a namespace",
    "CVE-2026-100704": "an exception forgot for which image it was",
    "CVE-2026-100705": "blocked addresses inside of IPv6 addresses",
    "CVE-2026-100706": "encoded dots in API paths: writes",
    "CVE-2026-100707": "encoded dots in API paths: reads",
    "CVE-2026-44245": "scripts in reports",
}
_HISTORY: Final = {
    "0b4d37bd": "a failed patch left an empty object",
    "8b7f4b72": "digests are enforced by policies of images",
    "d17df64e": "exceptions added up",
    "f68ce315": "policies of a namespace matched others",
    "abc05c69": "owners across namespaces",
    "5cb31abd": "verification ended at the first image that did not match",
    "d70926cd": "policies of images without constraints",
    "2be74f07": "the namespace in match conditions was null",
    "0b8c53a4": "the uid of a trigger was stale",
    "57f69eb7": "a kind of policy without paths",
    "ef64527e": "policies of a namespace that enforce were not audited",
    "eb49d4c4": "webhooks were cleared while health was unknown",
    "fcd8adf0": "a review without a request",
    "68130831": "an update request larger than etcd takes",
    "f1a96376": "intermediate certificates without number",
}
_OTHERS: Final = {
    "CVE-2021-43979": "Gatekeeper: decisions by stale data",
    "CVE-2022-23628": "OPA: a formatter that changed the meaning",
    "CVE-2022-28946": "OPA: a parser that ends the process",
    "CVE-2022-33082": "OPA: a parser that ends the process",
    "CVE-2025-46569": "OPA: the path of a request became part of a query",
    "CVE-2024-8260": "OPA: a policy file on another machine got the credentials of this one",
    "CVE-2026-26205": "OPA's Envoy plugin: paths with two slashes",
    "CVE-2025-24376": "Kubewarden: policies of a namespace for reports",
    "CVE-2025-24784": "Kubewarden: objects of other namespaces shown",
    "CVE-2026-29773": "Kubewarden: questions to the host beyond the namespace",
    "CVE-2026-42541": "Kubewarden: finding out what others may do",
    "CVE-2026-22872": "Capsule: kinds without namespace ignored the one they were forced into",
    "CVE-2026-65835": "Capsule: kinds without namespace ignored the one they were forced into",
    "CVE-2026-30963": "Capsule: a subresource that rules did not cover",
    "CVE-2026-55636": "Capsule: a rule for a kind that does not exist",
    "CVE-2026-65834": "Capsule: a bad regular expression ended every request",
    "CVE-2022-31074": "KubeEdge: a malformed payload ended the process",
    "CVE-2025-59531": "Argo CD: a malformed payload ended the process",
    "CVE-2025-59537": "Argo CD: a malformed payload ended the process",
    "CVE-2025-59538": "Argo CD: a malformed payload ended the process",
}
_KUBERNETES: Final = {
    "CVE-2025-1974": "ingress-nginx: a validator that anybody could ask ran what it generated",
    "CVE-2023-5044": "ingress-nginx: an annotation became configuration",
    "CVE-2025-1097": "ingress-nginx: an annotation became configuration",
    "CVE-2025-1098": "ingress-nginx: an annotation became configuration",
    "CVE-2025-24513": "ingress-nginx: data of a request became the name of a file",
    "CVE-2025-24514": "ingress-nginx: an annotation became configuration",
    "CVE-2026-1580": "ingress-nginx: text of an object became configuration",
    "CVE-2026-24512": "ingress-nginx: text of an object became configuration",
    "CVE-2026-24513": "ingress-nginx: text of an object became configuration",
    "CVE-2026-24514": "ingress-nginx: text of an object became configuration",
    "CVE-2026-4342": "ingress-nginx: text of an object became configuration",
    "CVE-2020-8561": "the API server follows redirects of webhooks",
    "CVE-2019-11253": "YAML that grows",
    "CVE-2019-11254": "YAML that takes long",
    "CVE-2021-25735": "webhooks saw other old fields of nodes than were stored",
    "CVE-2023-2727": "image policy did not see ephemeral containers",
    "CVE-2023-2728": "secrets policy did not see ephemeral containers",
    "CVE-2024-3177": "secrets policy did not see envFrom in all kinds of containers",
    "CVE-2020-8554": "external addresses of services",
    "CVE-2026-44247": "Volcano: a body without limit",
}
REGISTER: Final[Mapping[str, Mapping[str, str]]] = {
    "1A": _KYVERNO,
    "1B": _HISTORY,
    "1D": _OTHERS,
    "1F": _KUBERNETES,
}
"""Sections of the reference, ids, and what went wrong there."""

NOT_APPLICABLE: Final[Mapping[str, str]] = {}
"""Ids that no test can cover yet, with the reason; a row leaves this table together with what it waits for."""
