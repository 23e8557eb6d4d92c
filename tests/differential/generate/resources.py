"""Resources: pods and what contains them, services, ConfigMaps, namespaces, and a custom kind with any content."""

from __future__ import annotations

from random import Random

from pyverno.kube.json import JSON, JSONObject
from tests.differential.generate.draws import chance, some

__all__ = ["KINDS", "NAMESPACES", "container", "pod_spec", "resource", "resources", "tree"]

KINDS = ("Pod", "Deployment", "CronJob", "Service", "ConfigMap", "Namespace", "Widget")
NAMESPACES = ("default", "team-a", "team-b", "kube-system")
IMAGES = (
    "nginx", "nginx:latest", "nginx:1.25", "ghcr.io/acme/app:v1.2.3", "registry.example.com:5000/team/tool:v2",
    "docker.io/library/busybox@sha256:" + "a" * 64, "quay.io/acme/db:10-alpine", "localhost/dev:1",
)  # fmt: skip
LABELS = ("app", "tier", "app.kubernetes.io/name", "env")
_LABEL_VALUES = ("web", "db", "prod", "dev", "1", "true", "", "web-1")
_QUANTITIES = ("100m", "1", "0.5", "2", "64Mi", "1Gi", "1024Mi", "1e3", "1500m", "128974848")
_SCALARS: tuple[JSON, ...] = (
    None, True, False, 0, 1, -1, 5, 8080, 65536, 1.5, 0.1, -2.25, "", "a", "abc", "a b", "A", "prod-1", "*", "?", "a*",
    "5", "5.0", "007", "true", "null", "1Gi", "1024Mi", "500m", "10s", "1h", "1h30m", "0s", "1.2.3", "v1.2.3",
    "10.0.0.1", "10.0.0.0/8", "2024-01-31T12:00:00Z", "é", "a|b", "!a", ">5", "1-5", "a-b",
)  # fmt: skip
_KEYS = ("a", "b", "c", "name", "value", "enabled", "size", "tags", "items", "labels", "x-y", "a.b/c")


def tree(random: Random, depth: int) -> JSON:
    """Return any JSON value of at most this depth."""
    kind = random.randrange(10)
    if depth == 0 or kind < 4:
        return random.choice(_SCALARS)
    if kind < 6:
        return [tree(random, depth - 1) for _ in range(random.randrange(4))]
    if kind == 6:
        return [mapping(random, depth - 1) for _ in range(random.randrange(4))]
    return mapping(random, depth)


def mapping(random: Random, depth: int) -> JSONObject:
    """Return a map of at most this depth."""
    return {key: tree(random, depth - 1) for key in some(random, _KEYS, 0, 4)} if depth > 0 else {}


def resources(random: Random, count: int, kinds: tuple[str, ...] = KINDS) -> list[JSONObject]:
    """Return resources with different names."""
    return [resource(random, random.choice(kinds), f"r{index}") for index in range(count)]


def resource(random: Random, kind: str, name: str) -> JSONObject:
    """Return one resource of a kind."""
    metadata: JSONObject = {"name": name}
    if kind != "Namespace":
        metadata["namespace"] = random.choice(NAMESPACES)
    for key in ("labels", "annotations"):
        if chance(random, 0.6):
            metadata[key] = labels(random)
    return {**_WRITERS[kind](random), "metadata": metadata}


def labels(random: Random) -> JSONObject:
    """Return labels or annotations."""
    return {key: random.choice(_LABEL_VALUES) for key in some(random, LABELS, 0, 3)}


def pod_spec(random: Random) -> JSONObject:
    """Return the spec of a pod."""
    spec: JSONObject = {"containers": [container(random, f"c{index}") for index in range(random.randint(1, 3))]}
    if chance(random, 0.3):
        spec["initContainers"] = [container(random, f"i{index}") for index in range(random.randint(1, 2))]
    if chance(random, 0.1):
        spec["ephemeralContainers"] = [{**container(random, "e0"), "targetContainerName": "c0"}]
    for key in ("hostNetwork", "hostPID", "hostIPC", "automountServiceAccountToken"):
        if chance(random, 0.25):
            spec[key] = chance(random, 0.5)
    if chance(random, 0.4):
        spec["volumes"] = [_volume(random, f"v{index}") for index in range(random.randint(1, 3))]
    if chance(random, 0.5):
        spec["securityContext"] = _pod_security(random)
    if chance(random, 0.3):
        spec["nodeSelector"] = {"disk": "ssd"}
    if chance(random, 0.3):
        spec["tolerations"] = [{"key": "a", "operator": "Exists"}, {"effect": "NoSchedule", "key": "b"}]
    if chance(random, 0.3):
        spec["serviceAccountName"] = random.choice(("default", "robot"))
    if chance(random, 0.2):
        spec["terminationGracePeriodSeconds"] = random.choice((0, 30, 600))
    return spec


def container(random: Random, name: str) -> JSONObject:
    """Return a container."""
    found: JSONObject = {"name": name, "image": random.choice(IMAGES)}
    if chance(random, 0.6):
        found["resources"] = {
            side: {key: random.choice(_QUANTITIES) for key in some(random, ("cpu", "memory"), 0, 2)}
            for side in some(random, ("limits", "requests"), 0, 2)
        }
    if chance(random, 0.5):
        found["ports"] = [_port(random, number) for number in some(random, (80, 8080, 443, 22), 0, 2)]
    if chance(random, 0.5):
        found["env"] = [
            {"name": f"E{index}", "value": random.choice(("1", "", "a b"))} for index in range(random.randint(0, 3))
        ]
    if chance(random, 0.6):
        found["securityContext"] = _container_security(random)
    if chance(random, 0.3):
        found["imagePullPolicy"] = random.choice(("Always", "IfNotPresent", "Never"))
    if chance(random, 0.2):
        found["args"] = ["--a", "--b=c"]
    if chance(random, 0.2):
        found["livenessProbe"] = {"httpGet": {"path": "/", "port": 80}, "periodSeconds": random.choice((0, 5, 10))}
    return found


def _port(random: Random, number: int) -> JSONObject:
    port: JSONObject = {"containerPort": number}
    if chance(random, 0.2):
        port["hostPort"] = random.choice((0, 80, 8080))
    return port


def _volume(random: Random, name: str) -> JSONObject:
    source: JSONObject = random.choice(
        (
            {"emptyDir": {}},
            {"hostPath": {"path": random.choice(("/", "/var/run/docker.sock", "/data"))}},
            {"configMap": {"name": "settings"}},
            {"secret": {"secretName": "keys", "defaultMode": random.choice((256, 420))}},
            {"nfs": {"server": "files", "path": "/"}},
        )
    )
    return {"name": name, **source}


def _pod_security(random: Random) -> JSONObject:
    choices: JSONObject = {
        "runAsNonRoot": chance(random, 0.7),
        "runAsUser": random.choice((0, 1000)),
        "fsGroup": random.choice((0, 2000)),
        "seccompProfile": {"type": random.choice(("RuntimeDefault", "Unconfined", "Localhost"))},
        "seLinuxOptions": {"type": random.choice(("container_t", "spc_t"))},
        "sysctls": [{"name": random.choice(("net.ipv4.tcp_syncookies", "kernel.msgmax")), "value": "0"}],
    }
    return {key: choices[key] for key in some(random, tuple(choices), 0, 3)}


def _container_security(random: Random) -> JSONObject:
    choices: JSONObject = {
        "privileged": chance(random, 0.3),
        "allowPrivilegeEscalation": chance(random, 0.4),
        "runAsNonRoot": chance(random, 0.7),
        "runAsUser": random.choice((0, 1000)),
        "readOnlyRootFilesystem": chance(random, 0.5),
        "capabilities": {
            key: some(random, ("ALL", "NET_ADMIN", "NET_BIND_SERVICE", "SYS_TIME", "CHOWN"), 0, 2)
            for key in some(random, ("add", "drop"), 0, 2)
        },
        "seccompProfile": {"type": random.choice(("RuntimeDefault", "Unconfined"))},
        "procMount": random.choice(("Default", "Unmasked")),
    }
    return {key: choices[key] for key in some(random, tuple(choices), 0, 5)}


def _template(random: Random) -> JSONObject:
    return {"metadata": {"labels": {"app": "web", **labels(random)}}, "spec": pod_spec(random)}


def _pod(random: Random) -> JSONObject:
    return {"apiVersion": "v1", "kind": "Pod", "spec": pod_spec(random)}


def _deployment(random: Random) -> JSONObject:
    spec: JSONObject = {"selector": {"matchLabels": {"app": "web"}}, "template": _template(random)}
    if chance(random, 0.7):
        spec["replicas"] = random.choice((0, 1, 3, 10))
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}


def _cronjob(random: Random) -> JSONObject:
    job: JSONObject = {"template": _template(random)}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}},
    }


def _service(random: Random) -> JSONObject:
    spec: JSONObject = {
        "type": random.choice(("ClusterIP", "NodePort", "LoadBalancer")),
        "ports": [{"port": port, "name": f"p{port}"} for port in some(random, (80, 443), 1, 2)],
    }
    if chance(random, 0.4):
        spec["externalIPs"] = some(random, ("10.0.0.1", "192.168.1.5"), 0, 2)
    return {"apiVersion": "v1", "kind": "Service", "spec": spec}


def _configmap(random: Random) -> JSONObject:
    texts = ("", "1", "true", "a: 1", '{"a": [1, 2]}', "a,b", "web", "10Mi")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {key: random.choice(texts) for key in some(random, ("a", "b", "config.yaml", "size"), 0, 4)},
    }


def _namespace(random: Random) -> JSONObject:
    return {"apiVersion": "v1", "kind": "Namespace"}


def _widget(random: Random) -> JSONObject:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "spec": mapping(random, 4)}


_WRITERS = {
    "Pod": _pod,
    "Deployment": _deployment,
    "CronJob": _cronjob,
    "Service": _service,
    "ConfigMap": _configmap,
    "Namespace": _namespace,
    "Widget": _widget,
}
