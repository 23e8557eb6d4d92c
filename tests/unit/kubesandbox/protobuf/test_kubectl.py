"""The protobuf that kubectl sends equals the JSON that it prints, for each of its generators."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubesandbox.protobuf import MEDIA_TYPE, decode
from pyverno.kube.json import JSON
from tests.unit.kubesandbox.protobuf.recorder import Recorder

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on this machine")

GENERATORS = (
    "create clusterrole a --verb=get,list --resource=pods,deployments.apps,pods/log --resource-name=x",
    "create clusterrole a --verb=get --non-resource-url=/healthz",
    "create clusterrole a --aggregation-rule=x=y",
    "create clusterrolebinding a --clusterrole=view --user=u --group=g --serviceaccount=n:s",
    "create configmap a --from-literal=k=v --from-literal=e=",
    "create configmap a --from-file={folder}/bytes",
    "create cronjob a --image=i --schedule=@hourly -- sleep 1",
    "create deployment a --image=i --image=j --replicas=0",
    "create deployment a --image=i --port=80 -- sleep 1",
    "create ingress a --class=c --rule=a.b/x*=s:80,tls=t --default-backend=d:90 --annotation=k=v",
    "create job a --image=i -- sleep 1",
    "create namespace a",
    "create poddisruptionbudget a --selector=a=b --min-available=50%",
    "create poddisruptionbudget a --selector=a=b --max-unavailable=0",
    "create priorityclass a --value=0 --description=d --preemption-policy=Never",
    "create priorityclass a --value=-5 --global-default",
    "create quota a --hard=cpu=1,memory=2Gi,pods=0 --scopes=BestEffort",
    "create role a --verb=* --resource=pods",
    "create rolebinding a --role=r --user=u --serviceaccount=n:s",
    "create secret docker-registry a --docker-username=u --docker-password=p --docker-server=s",
    "create secret generic a --from-literal=k=v --type=t",
    "create secret generic a --from-file={folder}/bytes",
    "create secret tls a --cert={folder}/cert --key={folder}/key",
    "create service clusterip a --tcp=80:8080",
    "create service clusterip a --clusterip=None",
    "create service externalname a --external-name=x.y",
    "create service loadbalancer a --tcp=80:web",
    "create service nodeport a --tcp=80:8080 --node-port=30000",
    "create serviceaccount a",
    "autoscale deployment web --min=1 --max=3 --cpu-percent=50 --name=a",
)


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    """Run the server once."""
    with Recorder() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the files that generators read."""
    made = tmp_path_factory.mktemp("kubectl")
    (made / "bytes").write_bytes(bytes(range(256)))
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    day = datetime(2026, 1, 1, tzinfo=UTC)
    unsigned = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    unsigned = unsigned.serial_number(1).not_valid_before(day).not_valid_after(day + timedelta(days=3650))
    pem = serialization.Encoding.PEM
    (made / "cert").write_bytes(unsigned.sign(key, hashes.SHA256()).public_bytes(pem))
    form, secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (made / "key").write_bytes(key.private_bytes(pem, form, secret))
    return made


def kubectl(recorder: Recorder, folder: Path, line: str) -> bytes:
    """Run a command against the server."""
    assert KUBECTL is not None
    words = line.format(folder=folder).split()
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "KUBECONFIG": "/dev/null"}
    place = words.index("--") if "--" in words else len(words)
    command = [KUBECTL, *words[:place], f"--server={recorder.url}", "--namespace=default", *words[place:]]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=300, check=False)
    assert 0 == done.returncode, done.stderr.decode()
    return done.stdout


def without_nulls(value: JSON) -> JSON:
    """Leave out the nulls that Go writes for a time or a list that was never set."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def sent(recorder: Recorder, folder: Path, line: str) -> JSON:
    """Run a command and return what it sent last."""
    recorder.bodies.clear()
    kubectl(recorder, folder, line)
    _, kind, data = recorder.bodies[-1]
    if kind != MEDIA_TYPE:
        pytest.skip("this kubectl sends JSON (before 1.32)")
    return decode(data)


@pytest.mark.parametrize("line", GENERATORS)
def test_a_generator_sends_what_it_shows(recorder: Recorder, folder: Path, line: str) -> None:
    """The client-side dry run in JSON, and the request in protobuf."""
    head, dashes, tail = line.partition(" -- ")
    shown = orjson.loads(kubectl(recorder, folder, f"{head} --dry-run=client -o json{dashes}{tail}"))
    assert without_nulls(shown) == without_nulls(sent(recorder, folder, line))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "create token default --duration=10m --audience=a --bound-object-kind=Pod --bound-object-name=p",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {
                    "audiences": ["a"],
                    "expirationSeconds": 600,
                    "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"},
                },
            },
        ),
        (
            "auth can-i create deployments.apps --subresource=scale",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {
                    "resourceAttributes": {
                        "namespace": "default",
                        "verb": "create",
                        "group": "apps",
                        "resource": "deployments",
                        "subresource": "scale",
                    }
                },
            },
        ),
        (
            "auth can-i --list",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectRulesReview",
                "spec": {"namespace": "default"},
            },
        ),
        ("auth whoami", {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}),
    ],
)
def test_questions_are_read(recorder: Recorder, folder: Path, line: str, expected: JSON) -> None:
    """Reviews and token requests; kubectl may not like the answer, which is its own question."""
    recorder.bodies.clear()
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "KUBECONFIG": "/dev/null"}
    command = [str(KUBECTL), *line.split(), f"--server={recorder.url}", "--namespace=default"]
    subprocess.run(command, capture_output=True, env=environment, timeout=300, check=False)
    _, kind, data = recorder.bodies[-1]
    if kind != MEDIA_TYPE:
        pytest.skip("this kubectl sends JSON (before 1.32)")
    found = without_nulls(decode(data))
    assert expected == {key: value for key, value in found.items() if key in expected}
