"""The inputs of the benchmarks: admission reviews of a pod in two states, and folders with ten thousand pods.

Everything is made here, the same on every run and of the sizes that the definitions name; nothing is read but our own
policy library. This module must never measure.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import yaml

from pyverno.compiler import compile_documents
from pyverno.engine.rule import CompiledPolicy
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document, load_documents

__all__ = [
    "CEL_POD_SECURITY",
    "POD_SECURITY",
    "cel_policy_files",
    "compiled_cel_policies",
    "compiled_policies",
    "enforced_policies",
    "failing_review",
    "generated_documents",
    "generated_policies",
    "mutated_pods",
    "passing_review",
    "policy_documents",
    "policy_files",
    "privileged_review",
    "scattered_policies",
    "small_pod",
    "small_review",
    "write_pods",
]

POD_SECURITY = Path(__file__).resolve().parents[2] / "policies" / "pod-security"
CEL_POD_SECURITY = POD_SECURITY.parent / "cel" / "pod-security"
_WHOLE_LEVELS = frozenset({"pod-security-baseline", "pod-security-restricted"})

PASSING_BYTES = 8140
SMALL_BYTES = 4730
FAILING_BYTES = 8398
_SIZE_KEY = "example.com/build-record"


def policy_files() -> list[Path]:
    """Return the files of our per-control Pod Security policies; those of whole levels are another kind of rule."""
    found = sorted(POD_SECURITY.glob("*/*/clusterpolicy.yaml"))
    return [path for path in found if path.parent.name not in _WHOLE_LEVELS]


def policy_documents() -> list[Document]:
    """Return these policies as documents."""
    return [document for path in policy_files() for document in load_documents(path.read_bytes(), file=str(path))]


def compiled_policies() -> tuple[CompiledPolicy, ...]:
    """Return these policies compiled; fails when one of them does not compile."""
    compilation = compile_documents(policy_documents())
    assert not compilation.errors, compilation.errors
    return compilation.policies


def enforced_policies() -> tuple[CompiledPolicy, ...]:
    """Return the same policies, set to deny failing objects."""
    documents = policy_documents()
    for document in documents:
        for rule in document.value["spec"]["rules"]:
            rule["validate"]["failureAction"] = "Enforce"
    return compile_documents(documents).policies


def cel_policy_files() -> list[Path]:
    """Return the files of the ValidatingPolicies of all controls of both levels, of which there are eighteen."""
    return sorted(CEL_POD_SECURITY.glob("*/*/validatingpolicy.yaml"))


def compiled_cel_policies(*actions: str) -> tuple[CompiledPolicy, ...]:
    """Return these policies with other `validationActions`, compiled."""
    files = cel_policy_files()
    documents = [document for path in files for document in load_documents(path.read_bytes(), file=str(path))]
    for document in documents:
        document.value["spec"]["validationActions"] = list(actions)
    return compile_documents(documents).policies


def generated_documents(count: int) -> Iterator[Document]:
    """Yield `count` policies that match every pod: those of the library, repeated under other names."""
    documents = [document for document in policy_documents() if len(document.value["spec"]["rules"]) == 1]
    return (_renamed(documents[number % len(documents)], number) for number in range(count))


def generated_policies(count: int) -> tuple[CompiledPolicy, ...]:
    """Return the same compiled."""
    return compile_documents(generated_documents(count)).policies


def scattered_policies(count: int) -> tuple[CompiledPolicy, ...]:
    """Return that many policies, of which five match a given pod and the others match other kinds or namespaces."""
    documents = [document for document in policy_documents() if len(document.value["spec"]["rules"]) == 1]
    written = []
    for number in range(count):
        document = _renamed(documents[number % len(documents)], number)
        if number >= 5:
            resources = document.value["spec"]["rules"][0]["match"]["any"][0]["resources"]
            if number % 5 < 2:
                resources["namespaces"] = [f"elsewhere-{number}", f"prefix-{number}-*"]
            else:
                resources["kinds"] = [("Service", "ConfigMap", "apps/v1/Deployment", "Ingress")[number % 4]]
        written.append(document)
    return compile_documents(written).policies


def _renamed(document: Document, number: int) -> Document:
    value = copy.deepcopy(document.value)
    value["metadata"]["name"] = f"policy-{number:05d}"
    value["metadata"].setdefault("annotations", {})["pod-policies.kyverno.io/autogen-controllers"] = "none"
    return replace(document, value=value)


def passing_review() -> bytes:
    """Return the body of an AdmissionReview about a pod of three containers that every policy lets pass (P8)."""
    return _sized(_review(_pod(containers=3)), PASSING_BYTES)


def small_review() -> bytes:
    """Return the body of an AdmissionReview about a pod of one container that every policy lets pass (P4)."""
    return _sized(_review(_pod(containers=1)), SMALL_BYTES)


def privileged_review() -> bytes:
    """Return the body of a review about such a pod whose container is privileged, which two policies deny."""
    pod = _pod(containers=1)
    pod["spec"]["containers"][0]["securityContext"]["privileged"] = True
    return _sized(_review(pod), SMALL_BYTES)


def failing_review() -> bytes:
    """Return the same with a pod that fails every rule of every policy (F8)."""
    return _sized(_review(_failing(_pod(containers=3))), FAILING_BYTES)


def small_pod(number: int = 0) -> JSONObject:
    """Return one of many pods with one container, 3.9 KB as JSON and 4.3 KB as YAML."""
    pod = _pod(containers=1)
    identity = _identity(number)
    pod["metadata"]["name"], pod["metadata"]["uid"], pod["metadata"]["namespace"], pod["spec"]["nodeName"] = identity
    return pod


def write_pods(folder: Path, count: int) -> tuple[Path, Path]:
    """Write so many pods as one stream of YAML documents and as one JSON List; return both paths."""
    sample = yaml.dump(small_pod(), Dumper=yaml.CSafeDumper, sort_keys=False)
    as_yaml, as_json = folder / "pods.yaml", folder / "pods.json"
    with as_yaml.open("w") as stream:
        for number in range(count):
            text = sample
            for old, new in zip(_identity(0), _identity(number), strict=True):
                text = text.replace(f": {old}\n", f": {new}\n")
            stream.write("---\n" + text)
    items = [small_pod(number) for number in range(count)]
    as_json.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}))
    return as_yaml, as_json


def _identity(number: int) -> tuple[str, str, str, str]:
    """Return the fields that differ between the pods: name, uid, namespace, node."""
    uid = f"5c1d7a52-0000-4000-8000-{number:012d}"
    return f"shop-checkout-{number:05d}", uid, f"team-{number % 20:02d}", f"node-{number % 97:03d}.internal"


def mutated_pods(seed: int, count: int) -> list[JSONObject]:
    """Return pods made from the passing and the failing one by random changes."""
    chance = random.Random(seed)  # noqa: S311 - the same pods on every run
    passing, failing = (orjson.loads(body)["request"]["object"] for body in (passing_review(), failing_review()))
    parts = _parts(passing, failing)
    pods = []
    for _ in range(count):
        pod = copy.deepcopy(chance.choice((passing, passing, failing)))
        for _ in range(chance.choice((0, 1, 1, 2, 3, 5, 8))):
            _change(pod, chance, parts)
        pods.append(pod)
    return pods


# --- random changes ------------------------------------------------------------------------------------------------

_ODD: tuple[JSON, ...] = (
    None,
    True,
    False,
    0,
    1,
    1000,
    1.5,
    "",
    "true",
    "false",
    "0",
    "*",
    "null",
    [],
    {},
    [None],
    [[]],
)


def _change(pod: JSONObject, chance: random.Random, parts: dict[str, list[JSON]]) -> None:
    """Remove, replace, add or repeat one field somewhere in the pod."""
    holder = chance.choice(_holders(pod))
    if isinstance(holder, list):
        match chance.randrange(3):
            case 0 if holder:
                holder.pop(chance.randrange(len(holder)))
            case 1 if holder:
                holder.append(copy.deepcopy(chance.choice(holder)))
            case _:
                holder.append(copy.deepcopy(chance.choice(_ODD)))
        return
    key = chance.choice([*holder, *_INTERESTING]) if chance.random() < 0.8 else chance.choice([*parts])
    match chance.randrange(5):
        case 0:
            holder.pop(key, None)
        case 1:
            holder[key] = copy.deepcopy(chance.choice(_ODD))
        case _:
            holder[key] = copy.deepcopy(chance.choice(parts.get(key) or _ODD))


def _holders(value: JSON) -> list[JSON]:
    """Return all maps and lists below a value, those that policies look at more often than the others."""
    found: list[JSON] = []
    ahead = [(value, 1)]
    while ahead:
        item, weight = ahead.pop()
        found.extend([item] * weight)
        pairs = item.items() if isinstance(item, dict) else ((None, child) for child in item)
        for key, child in pairs:
            if isinstance(child, (dict, list)):
                ahead.append((child, 4 if key in _INTERESTING else weight if key is None else 1))
    return found


def _parts(*values: JSON) -> dict[str, list[JSON]]:
    """Return all values that are under each key anywhere in these documents, and a few that policies ask about."""
    found: dict[str, list[JSON]] = {key: list(items) for key, items in _INTERESTING.items()}
    for holder in (holder for value in values for holder in _holders(value)):
        if isinstance(holder, dict):
            for key, child in holder.items():
                found.setdefault(key, []).append(child)
    return found


_PROFILES: tuple[JSON, ...] = tuple({"type": name} for name in ("RuntimeDefault", "Localhost", "Unconfined", ""))
_INTERESTING: dict[str, tuple[JSON, ...]] = {
    "spec": (),
    "metadata": (),
    "containers": (),
    "initContainers": ([], [{"name": "a"}], [{"name": "a", "securityContext": {"privileged": True}}]),
    "ephemeralContainers": ([], [{"name": "b"}], [{"name": "b", "securityContext": {"runAsNonRoot": False}}]),
    "securityContext": ({}, {"runAsNonRoot": True}, {"seccompProfile": {"type": "Localhost"}}),
    "capabilities": ({"drop": ["ALL"]}, {"add": ["NET_BIND_SERVICE"], "drop": ["ALL", "CHOWN"]}, {"add": "CHOWN"}),
    "add": (["CHOWN", "KILL"], ["SYS_*"], ["NET_BIND_SERVICE"], "ALL"),
    "drop": (["ALL"], ["all"], ["A*"], "ALL"),
    "seccompProfile": _PROFILES,
    "appArmorProfile": _PROFILES,
    "seLinuxOptions": ({"type": "container_t"}, {"role": "x"}, {"user": ""}),
    "windowsOptions": ({"hostProcess": False}, {"hostProcess": "false"}),
    "volumes": ([], [{"name": "v", "nfs": {}}], [{"name": "v"}]),
    "annotations": (
        {"container.apparmor.security.beta.kubernetes.io/app": "localhost/x"},
        {"container.apparmor.security.beta.kubernetes.io/a": "runtime/default", "b": "c"},
    ),
    "runAsUser": (0, 1, -1, "0", "1000", 1.5),
    "hostPort": (0, 0.0, "0", 80),
    "hostPID": (True, False, "true", "false"),
    "procMount": ("Default", "default", "Unmasked"),
    "allowPrivilegeEscalation": (True, False, "false"),
    "sysctls": ([{"name": "net.ipv4.tcp_rmem", "value": "1"}], [{"value": "1"}], [{"name": "*", "value": "1"}]),
}


# --- the pods ------------------------------------------------------------------------------------------------------


def _pod(containers: int) -> JSONObject:
    labels = {
        "app.kubernetes.io/name": "checkout",
        "app.kubernetes.io/part-of": "shop",
        "app.kubernetes.io/version": "2.14.3",
        "pod-template-hash": "6d5f8c7b9f",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "shop-checkout-6d5f8c7b9f-x2x7k",
            "generateName": "shop-checkout-6d5f8c7b9f-",
            "namespace": "team-00",
            "uid": "5c1d7a52-0000-4000-8000-000000000000",
            "creationTimestamp": "2026-01-05T09:30:00Z",
            "labels": labels,
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9102",
                "example.com/owner": "team-payments",
                "checksum/config": "6f1ed002ab5595859014ebf0951522d9f2a2c1c7a5e5dd13b4b0d1ccf1f2c1aa",
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "shop-checkout-6d5f8c7b9f",
                    "uid": "8f0b1c3e-6a4f-4b77-9d6e-0d0c3f1a9b11",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                {
                    "manager": "kube-controller-manager",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": "2026-01-05T09:30:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {
                        "f:metadata": {"f:annotations": {".": {}, "f:example.com/owner": {}}, "f:generateName": {}},
                        "f:spec": {"f:containers": {}, "f:dnsPolicy": {}, "f:securityContext": {}, "f:volumes": {}},
                    },
                }
            ],
        },
        "spec": {
            "serviceAccountName": "checkout",
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "runAsGroup": 10001,
                "fsGroup": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                _container(name, index) for index, name in enumerate(("app", "proxy", "metrics")[:containers])
            ],
            "volumes": [
                {"name": "config", "configMap": {"name": "checkout-config", "defaultMode": 420}},
                {"name": "scratch", "emptyDir": {"sizeLimit": "256Mi"}},
                {"name": "credentials", "secret": {"secretName": "checkout-credentials", "defaultMode": 256}},
                {
                    "name": "kube-api-access-7xk2p",
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                        ],
                        "defaultMode": 420,
                    },
                },
            ],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{reason}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for reason in ("not-ready", "unreachable")
            ],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "checkout"}},
                }
            ],
        },
    }


def _container(name: str, index: int) -> JSONObject:
    port = 8080 + index
    probe = {"periodSeconds": 10, "timeoutSeconds": 2, "successThreshold": 1, "failureThreshold": 3}
    return {
        "name": name,
        "image": f"registry.example.com/shop/{name}:2.14.{index}",
        "imagePullPolicy": "IfNotPresent",
        "args": ["--listen", f"0.0.0.0:{port}", "--log-format=json"],
        "ports": [{"name": f"http-{index}", "containerPort": port, "protocol": "TCP"}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "UPSTREAM", "value": f"http://upstream-{index}.team-00.svc.cluster.local:8080"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "checkout-credentials", "key": "token"}}},
        ],
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"cpu": "500m", "memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": port, "scheme": "HTTP"}, **probe},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": port, "scheme": "HTTP"}, **probe},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/checkout", "readOnly": True},
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 - a mount of a pod
            {
                "name": "kube-api-access-7xk2p",
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                "readOnly": True,
            },
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


def _failing(pod: JSONObject) -> JSONObject:
    """Change the pod so that it fails every rule, in its last container where a rule checks containers."""
    pod["metadata"]["annotations"]["container.apparmor.security.beta.kubernetes.io/app"] = "unconfined"
    spec = pod["spec"]
    spec["hostNetwork"] = True
    spec["volumes"].append({"name": "host", "hostPath": {"path": "/var/run"}})
    spec["securityContext"] = {
        "runAsUser": 10001,
        "fsGroup": 10001,
        "sysctls": [{"name": "kernel.msgmax", "value": "65536"}],
    }
    last = spec["containers"][-1]
    last["ports"][0]["hostPort"] = 8082
    last["livenessProbe"]["httpGet"]["host"] = "10.0.0.1"
    last["securityContext"] = {
        "allowPrivilegeEscalation": True,
        "privileged": True,
        "runAsNonRoot": False,
        "runAsUser": 0,
        "procMount": "Unmasked",
        "capabilities": {"add": ["SYS_ADMIN"]},
        "seccompProfile": {"type": "Unconfined"},
        "appArmorProfile": {"type": "Unconfined"},
        "seLinuxOptions": {"type": "spc_t", "user": "root"},
        "windowsOptions": {"hostProcess": True},
    }
    return pod


def _review(pod: JSONObject) -> JSONObject:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "2b1f1c3e-3a4f-4b77-9d6e-1d0c3f1a9b22",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": pod["metadata"]["name"],
            "namespace": pod["metadata"]["namespace"],
            "operation": "CREATE",
            "userInfo": {
                "username": "system:serviceaccount:kube-system:replicaset-controller",
                "uid": "7a6b5c4d-1111-4222-8333-944455556666",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
            },
            "object": pod,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }


def _sized(review: JSONObject, size: int) -> bytes:
    """Bring the body to its size with one more annotation."""
    annotations = review["request"]["object"]["metadata"]["annotations"]
    annotations[_SIZE_KEY] = ""
    missing = size - len(orjson.dumps(review))
    assert missing >= 0, f"the body is {-missing} bytes too large"
    annotations[_SIZE_KEY] = "x" * missing
    return orjson.dumps(review)
