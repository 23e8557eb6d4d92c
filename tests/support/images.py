"""A registry with signed images beside a session, for reviews of policies on images."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import yaml

from pyverno.cluster.forwardinghost import ForwardingHost
from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine, Review
from pyverno.engine.host import Host
from pyverno.engine.imageverification.recordkeys import NO_RECORD_KEYS, RecordKeys
from pyverno.engine.phases import ADMISSION, Phase
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.errors import NotFoundError
from pyverno.images.verification.trust import read_trust_root
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.loopthread import LoopThread
from pyverno.offline.host import OfflineHost
from pyverno.registry.images import SecretCredentials
from pyverno.registry.ownimages import OwnRegistryImages
from tests.authority.registry import Registry
from tests.authority.signing import Layer, Signer, SigningServices

__all__ = ["DSSE", "SIMPLE", "ImageStage", "KeyHost", "image_stage", "signed_images"]

SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"
DSSE = "application/vnd.dsse.envelope.v1+json"
REPOSITORY = "team/app"


class KeyHost(ForwardingHost):
    """A host with the keys of an installation."""

    def __init__(self, host: Host, keys: RecordKeys) -> None:
        super().__init__(host)
        self._keys = keys

    @property
    def record_keys(self) -> RecordKeys:
        """The given keys."""
        return self._keys


class ImageStage:
    """A registry, a world of authorities, a signer with a key, and reviews of Pods."""

    def __init__(
        self,
        registry: Registry,
        images: OwnRegistryImages,
        services: SigningServices,
        keys: dict[str, str],
        secrets: dict[str, JSONObject],
    ) -> None:
        self.registry = registry
        self.services = services
        self.keys = keys
        self.secrets = secrets
        self.signer = services.keyed()
        self.record_keys = NO_RECORD_KEYS
        self.offline = OfflineHost(registries=images.source)

    @property
    def host(self) -> Host:
        """The host of reviews: the registry, and the keys of image records."""
        return KeyHost(self.offline, self.record_keys)

    def push(self, tag: str = "v1", repository: str = REPOSITORY) -> str:
        """Push an image and return its digest."""
        return self.registry.push(repository, tag, {"tag": tag, "repository": repository})

    def image(self, tag: str = "v1", repository: str = REPOSITORY) -> str:
        """Return the reference of an image."""
        return f"{self.registry.host}/{repository}:{tag}"

    def sign(self, digest: str, *layers: Layer, repository: str = REPOSITORY) -> None:
        """Store signatures of an image, by default one by the signer with the key."""
        tag = f"{digest.replace(':', '-')}.sig"
        self.registry.push_layers(repository, tag, layers or (self.signer.sign_layer(digest),), SIMPLE)

    def attest(self, digest: str, *layers: Layer) -> None:
        """Store attestations of an image."""
        self.registry.push_layers(REPOSITORY, f"{digest.replace(':', '-')}.att", layers, DSSE)

    def bundle(self, digest: str, signer: Signer | None = None, **options: Any) -> None:
        """Store a Sigstore bundle of an image."""
        body = (signer or self.signer).bundle(digest, **options)
        self.registry.attach(REPOSITORY, digest, json.dumps(body).encode())

    def policy(self, **block: Any) -> JSONObject:
        """Return a policy with one entry of verifyImages, which demands the key unless `block` says otherwise."""
        keys: Mapping[str, Any] = {"keys": {"publicKeys": self.signer.public_pem}}
        entry = {"imageReferences": ["*"], "attestors": [{"entries": [keys]}], **block}
        return self.policy_of([entry])

    def policy_of(self, blocks: list[JSONObject], **rule: Any) -> JSONObject:
        """Return a policy with these entries of verifyImages."""
        return {
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "signed"},
            "spec": {
                "validationFailureAction": "Enforce",
                "rules": [
                    {
                        "name": "check",
                        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                        "verifyImages": blocks,
                        **rule,
                    }
                ],
            },
        }

    def review(
        self,
        policies: JSONObject | list[JSONObject],
        *images: str,
        phases: tuple[Phase, ...] = ADMISSION,
        pod: JSONObject | None = None,
        old: JSONObject | None = None,
    ) -> Review:
        """Review a Pod with these images, or the given Pod; raises the errors of the policies."""
        engine = self.engine(policies)
        pod = pod or self.pod(*(images or (self.image(),)))
        operation = Operation.CREATE if old is None else Operation.UPDATE
        request = Request.from_manifest(pod, operation=operation, old=old)
        return engine.review(request, phases)

    def engine(self, policies: JSONObject | list[JSONObject]) -> Engine:
        """Return an engine with these policies and the registry; raises the errors of the policies."""
        listed = policies if isinstance(policies, list) else [policies]
        compiled = compile_documents(load_documents("\n---\n".join(yaml.safe_dump(each) for each in listed)))
        for error in compiled.errors:
            raise error
        return Engine(PolicySet(compiled.policies, compiled.exceptions), self.host)

    @staticmethod
    def pod(*images: str, **metadata: Any) -> JSONObject:
        """Return a Pod with these images."""
        containers = [{"name": f"c{index}", "image": image} for index, image in enumerate(images)]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "pod", "namespace": "default", **metadata},
            "spec": {"containers": containers},
        }


def signed_images(public_key: str) -> JSONObject:
    """Return an ImageValidatingPolicy that demands signatures with a key."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}
    expression = "images.containers.all(image, verifyImageSignatures(image, [attestors.key]) > 0)"
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ImageValidatingPolicy",
        "metadata": {"name": "signed"},
        "spec": {
            "matchConstraints": {"resourceRules": [pods]},
            "attestors": [{"name": "key", "cosign": {"key": {"data": public_key}}}],
            "validations": [{"expression": expression}],
        },
    }


@contextmanager
def image_stage(**options: Any) -> Iterator[ImageStage]:
    """Yield a stage whose registry runs on a thread of its own; `options` are those of the registry.

    Keys of the cluster go to `keys` of the stage, Secrets with credentials to `secrets` (by `namespace/name`).
    """
    services, registry, keys = SigningServices(), Registry(**options), {}
    secrets: dict[str, JSONObject] = {}
    root = read_trust_root(services.trusted_root())

    def public_key(reference: str) -> str:
        if reference not in keys:
            raise NotFoundError(f"there is no key `{reference}`")
        return keys[reference]

    async def read_secret(namespace: str, name: str) -> JSONObject:
        if f"{namespace}/{name}" not in secrets:
            raise NotFoundError(f"there is no Secret `{namespace}/{name}`")
        return secrets[f"{namespace}/{name}"]

    with (
        LoopThread("registry") as thread,
        OwnRegistryImages(
            SecretCredentials(read_secret, "kyverno"), trust_root=lambda: root, public_key=public_key
        ) as images,
    ):
        thread.ask(registry.start(), "the registry")
        try:
            yield ImageStage(registry, images, services, keys, secrets)
        finally:
            thread.ask(registry.stop(), "the registry")
