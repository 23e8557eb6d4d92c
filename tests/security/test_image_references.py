"""I20, I21: every image is judged, in every spelling, wherever a policy selects images or leaves them out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

import pyverno
from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.phases import ADMISSION, MUTATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import RuleResult, Status
from pyverno.images import find_images
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.lang.cel.libraries.kyverno.images import parse_image as parse_cel_image
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.runtime import Runtime
from pyverno.offline.host import OfflineHost
from pyverno.registry.credentials import Credential, CredentialSource, credentials_for
from tests.support.images import ImageStage, image_stage

SOURCE: Final = Path(pyverno.__file__).parent
DIGEST: Final = "sha256:" + "0123456789abcdef" * 4
FORMS: Final = (
    "ghcr.io/org/app",
    "ghcr.io/org/app:latest",
    "ghcr.io/org/app:v1",
    f"ghcr.io/org/app@{DIGEST}",
    f"ghcr.io/org/app:v1@{DIGEST}",
    "GHCR.IO/org/app",
    "GhCr.Io/org/app:v1",
    f"GHCR.IO/org/app@{DIGEST}",
    "ghcr.io:443/org/app",
    "ghcr.io:443/org/app:v1",
    f"ghcr.io:443/org/app@{DIGEST}",
    f"ghcr.io:0443/org/app:v1@{DIGEST}",
    "GHCR.IO:443/org/app:v1",
    f"GHCR.IO:443/org/app:v1@{DIGEST}",
)
"""Fourteen texts that name images of one repository."""
HUB: Final = (
    "nginx",
    "nginx:latest",
    "library/nginx",
    "docker.io/nginx",
    "docker.io/library/nginx:1.27",
    "index.docker.io/nginx",
    "index.docker.io/library/nginx",
    "registry-1.docker.io/library/nginx",
    "DOCKER.IO/nginx",
    "Index.Docker.IO:443/library/nginx",
    "docker.io:443/nginx:1.27",
    f"nginx@{DIGEST}",
    f"docker.io/library/nginx:1.27@{DIGEST}",
    f"registry-1.docker.io:443/library/nginx@{DIGEST}",
)
"""The same for an official image of Docker Hub."""
STRANGERS: Final = (
    "ghcr.io.example.com/org/app",
    "example.com/ghcr.io/org/app",
    "ghcr.io:8443/org/app",
    "ghcr.io/organisation/app",
    "nginx.example.com/org/app",
    "nginx/app",
    "library.example.com/nginx",
)
"""Images of others, which resemble those above."""
PATTERNS: Final = ("ghcr.io/org/*", "GHCR.IO/org/*", "ghcr.io:443/org/app:*", "ghcr.io/org/app*", "*/org/app:*", "*")
HUB_PATTERNS: Final = ("nginx*", "nginx:*", "docker.io/nginx:*", "index.docker.io/library/*", "library/nginx*", "*")

PODS: Final = {"any": [{"resources": {"kinds": ["Pod"]}}]}


# ------------------------------------------------------------------------------------------------- selectors of images


def _review(objects: list[JSONObject], resource: JSONObject) -> list[RuleResult]:
    compiled = compile_documents(load_documents("\n---\n".join(yaml.safe_dump(each) for each in objects)))
    for error in compiled.errors:
        raise error
    engine = Engine(PolicySet(compiled.policies, compiled.exceptions), OfflineHost())
    return list(engine.review(Request.from_manifest(resource), ADMISSION).results)


def _pod(image: str, **container: Any) -> JSONObject:
    containers = [{"name": "app", "image": image, **container}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "team"},
        "spec": {"containers": containers},
    }


def _rule_policy(**rule: Any) -> JSONObject:
    spec = {"validationFailureAction": "Enforce", "rules": [{"name": "r", "match": PODS, **rule}]}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": spec}


def _verify_policy(**entry: Any) -> JSONObject:
    attestor = {
        "entries": [
            {"keyless": {"issuer": "https://i.example.com", "subject": "s", "rekor": {"url": "https://r.example.com"}}}
        ]
    }
    return _rule_policy(verifyImages=[{"attestors": [attestor], "mutateDigest": False, "verifyDigest": False, **entry}])


def _image_policy(**spec: Any) -> JSONObject:
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    expression = "size(images.containers) + size(images.imageVolumes) == 0"
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ImageValidatingPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [pods]},
            "validationConfigurations": {"verifyDigest": False, "mutateDigest": False, "required": False},
            "attestors": [{"name": "key", "cosign": {"key": {"data": "-"}}}],
            "validations": [{"expression": expression}],
            **spec,
        },
    }


def _of_references(pattern: str, resource: JSONObject) -> bool:
    return bool(_review([_verify_policy(imageReferences=[pattern])], resource))


def _of_image(pattern: str, resource: JSONObject) -> bool:
    return bool(_review([_verify_policy(image=pattern)], resource))


def _of_skipped(pattern: str, resource: JSONObject) -> bool:
    policy = _verify_policy(imageReferences=["*"], skipImageReferences=[pattern])
    return {Status.SKIP} == {each.status for each in _review([policy], resource)}


def _of_glob(pattern: str, resource: JSONObject) -> bool:
    policy = _image_policy(matchImageReferences=[{"glob": pattern}])
    return [Status.FAIL] == [each.status for each in _review([policy], resource)]


def _of_expression(pattern: str, resource: JSONObject) -> bool:
    start = {"g": "ghcr.io/org/", "G": "ghcr.io/org/"}.get(
        pattern[0], "docker.io/library/nginx" if "nginx" in pattern else ""
    )
    policy = _image_policy(matchImageReferences=[{"expression": f"ref.startsWith('{start}')"}])
    return [Status.FAIL] == [each.status for each in _review([policy], resource)]


def _privileged(resource: JSONObject) -> JSONObject:
    found: JSONObject = yaml.safe_load(yaml.safe_dump(resource))
    for each in found["spec"]["containers"]:
        each["securityContext"] = {"privileged": True}
    return found


def _of_exclude(pattern: str, resource: JSONObject) -> bool:
    exclude = [{"controlName": "Privileged Containers", "images": [pattern]}]
    policy = _rule_policy(validate={"podSecurity": {"level": "baseline", "exclude": exclude}})
    return [Status.PASS] == [each.status for each in _review([policy], _privileged(resource))]


def _of_exception(pattern: str, resource: JSONObject) -> bool:
    policy = _rule_policy(validate={"podSecurity": {"level": "baseline"}})
    exception = {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "team"},
        "spec": {
            "match": PODS,
            "exceptions": [{"policyName": "p", "ruleNames": ["r"]}],
            "podSecurity": [{"controlName": "Privileged Containers", "images": [pattern]}],
        },
    }
    return [Status.SKIP] == [each.status for each in _review([policy, exception], _privileged(resource))]


ENFORCING: Final[dict[str, Callable[[str, JSONObject], bool]]] = {
    "imageReferences": _of_references,
    "image": _of_image,
    "matchImageReferences: glob": _of_glob,
}
EXEMPTING: Final[dict[str, Callable[[str, JSONObject], bool]]] = {
    "skipImageReferences": _of_skipped,
    "podSecurity: exclude": _of_exclude,
    "PolicyException: podSecurity": _of_exception,
}
COMPILED: Final = {
    ("compiler/rules/imageverification.py", "selecting"): ("imageReferences", "image"),
    ("compiler/rules/imageverification.py", "exempting"): ("skipImageReferences",),
    ("compiler/cel/images.py", "selecting"): ("matchImageReferences: glob",),
    ("podsecurity/excludes.py", "exempting_text"): ("podSecurity: exclude", "PolicyException: podSecurity"),
}
"""Where a glob over images is compiled, and the selectors of the tables above that it becomes."""
OTHERS: Final = {
    "image_extractors": "names fields",
    "image_registry": "names one image, which a registry reads",
    "image_registry_credentials": "names Secrets: see the credentials below",
    "images": "expressions that yield images; of an exception: a list that expressions read, and excludes above",
    "image": "of verifyImages above; of a context entry one image",
    "verify_images": "the list of entries",
}
"""Other fields of policies about images, each with what it is instead of a glob."""


def _calls() -> Iterator[tuple[str, str, str]]:
    """Yield module, function and arguments of every call of a function that compiles or matches a glob."""
    for path in sorted(SOURCE.rglob("*.py")):
        module = str(path.relative_to(SOURCE))
        if module.startswith("kube/imageref/"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                for each in (node.func, *node.args):
                    name = (
                        each.id if isinstance(each, ast.Name) else each.attr if isinstance(each, ast.Attribute) else ""
                    )
                    yield module, name, ast.unparse(node)


def _imports_globs(module: str) -> bool:
    return "pyverno.kube.imageref.globs" in (SOURCE / module).read_text(encoding="utf-8")


def test_every_selector_of_images_is_in_the_table() -> None:
    """A glob over images that is compiled elsewhere, or matched as plain text, needs a row and so the tests below."""
    own = ("selecting", "exempting", "exempting_text")
    found = {(module, name) for module, name, _ in _calls() if name in own and _imports_globs(module)}
    assert COMPILED.keys() == found
    assert {*ENFORCING, *EXEMPTING} == {each for names in COMPILED.values() for each in names}
    plain = {
        (module, text)
        for module, name, text in _calls()
        if name in ("compile_wildcard", "match") and ("image" in text.lower() or "references" in text)
    }
    assert set() == plain


def test_every_field_of_policies_about_images_is_known() -> None:
    """A new field that selects images needs a selector above."""
    names: set[str] = set()
    for path in sorted((SOURCE / "policy").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Field":
                name = ast.unparse(node.args[0]).strip("'")
                names |= {name} if "image" in name else set()
    globs = {"image_references", "skip_image_references", "match_image_references"}
    assert names <= {*OTHERS, *globs}
    assert globs <= names


@pytest.mark.parametrize("selector", ENFORCING)
def test_a_selector_that_enforces_finds_every_spelling(selector: str) -> None:
    """An image that is spelled otherwise does not escape, whatever the policy spells it like."""
    selects = ENFORCING[selector]
    missed = [
        (pattern, image)
        for patterns, images in ((PATTERNS, FORMS), (HUB_PATTERNS, HUB))
        for pattern in patterns
        for image in images
        if not selects(pattern, _pod(image))
    ]
    assert [] == missed


def test_an_expression_that_selects_images_finds_every_spelling() -> None:
    """It sees the text as it is written, and the normal form."""
    missed = [image for image in FORMS if not _of_expression("ghcr.io/org/*", _pod(image))]
    assert [] == missed + [image for image in HUB if not _of_expression("nginx*", _pod(image))]
    assert not _of_expression("ghcr.io/org/*", _pod("ghcr.io.example.com/org/app"))


@pytest.mark.parametrize("selector", ENFORCING)
@pytest.mark.parametrize("image", ["[::ffff:a00:1]:5000/app", "[::FFFF:0a00:0001]:05000/app", "10.0.0.1:5000/app"])
def test_an_address_in_the_form_of_another_protocol_is_the_same_host(selector: str, image: str) -> None:
    """An IPv4 address that is written as one of IPv6 is dialled as IPv4, and certificates are valid for both."""
    assert ENFORCING[selector]("10.0.0.1:5000/*", _pod(image))
    assert not ENFORCING[selector]("10.0.0.1:5000/*", _pod("[::ffff:a00:2]:5000/app"))


@pytest.mark.parametrize("start", ["docker.io/nginx:", "docker.io/library/nginx:", "index.docker.io/"])
def test_an_expression_sees_official_images_by_each_name_as_written(start: str) -> None:
    """`docker.io/nginx` and `docker.io/library/nginx` are one image, whichever of them an expression names."""
    policy = _image_policy(matchImageReferences=[{"expression": f"ref.startsWith('{start}')"}])
    tagged = [image for image in HUB if "@" not in image or ":1.27" in image]
    assert [] == [image for image in tagged if _review([policy], _pod(image))[0].status is not Status.FAIL]


def test_a_digest_does_not_hide_a_tag_from_an_expression() -> None:
    """As for globs: the tag beside a digest is one that the author of the image chose."""
    policy = _image_policy(matchImageReferences=[{"expression": "ref.endsWith(':v1')"}])
    images = ("ghcr.io/org/app:v1", f"ghcr.io/org/app:v1@{DIGEST}", f"ghcr.io/org/app:v2@{DIGEST}")
    assert [True, True, False] == [bool(_review([policy], _pod(image))[0].status is Status.FAIL) for image in images]


@pytest.mark.parametrize("selector", EXEMPTING)
def test_a_host_that_exempts_is_no_name(selector: str) -> None:
    """An image that is called like a host, or lies in a folder called like one, is in another registry."""
    pairs = (("ghcr.io/*", "ghcr.io"), ("localhost/*", "localhost"), ("Registry/*", "registry/app"))
    assert [] == [image for pattern, image in pairs if EXEMPTING[selector](pattern, _pod(image))]
    twins = (("Registry/*", "registry:443/app"), ("localhost/*", "localhost/app"), ("ghcr.io", "ghcr.io"))
    assert [] == [image for pattern, image in twins if not EXEMPTING[selector](pattern, _pod(image))]


@pytest.mark.parametrize("selector", ENFORCING)
def test_a_selector_that_enforces_leaves_others_alone(selector: str) -> None:
    """Twins: what a glob does not name is not judged."""
    selects = ENFORCING[selector]
    assert not any(selects("ghcr.io/org/*", _pod(image)) for image in (*HUB, *STRANGERS[:4]))
    assert not any(selects("docker.io/library/nginx:*", _pod(image)) for image in (*FORMS, *STRANGERS))
    assert not selects("ghcr.io/org/app:v2", _pod(f"ghcr.io/org/app:v1@{DIGEST}"))


@pytest.mark.parametrize("selector", EXEMPTING)
def test_a_selector_that_exempts_reaches_no_further_than_it_names(selector: str) -> None:
    """A wildcard in a host or name is no other host, and a tag beside a digest proves nothing."""
    exempts = EXEMPTING[selector]
    patterns = (
        "ghcr.io*/org/app",
        "ghcr.io/org/*",
        "GHCR.IO*/org/*",
        "nginx*",
        "library*",
        "*.io/org/*",
        "docker.io/library/*",
    )
    assert [] == [(pattern, image) for pattern in patterns for image in STRANGERS if exempts(pattern, _pod(image))]
    assert not exempts("ghcr.io*", _pod("ghcr.io.example.com/org/app"))
    assert not exempts("ghcr.io/org/app:v1", _pod(f"ghcr.io/org/app:v1@{DIGEST}"))
    assert not exempts("ghcr.io/org/app:v1*", _pod(f"ghcr.io/org/app:v1@{DIGEST}"))
    assert not exempts("ghcr.io/org/app@sha256:1*", _pod(f"ghcr.io/org/app:v1@{DIGEST}"))


@pytest.mark.parametrize("selector", EXEMPTING)
def test_a_selector_that_exempts_exempts_the_same_image(selector: str) -> None:
    """Twins: all spellings of what it names."""
    exempts = EXEMPTING[selector]
    for patterns, images in ((PATTERNS, FORMS), (HUB_PATTERNS, HUB)):
        assert [] == [(pattern, image) for pattern in patterns for image in images if not exempts(pattern, _pod(image))]


@pytest.mark.parametrize("selector", EXEMPTING)
def test_a_text_that_is_no_reference_is_not_exempt(selector: str) -> None:
    """Whoever writes it does not choose what is exempt."""
    texts = ("ghcr.io/org/App", "docker://ghcr.io/org/app", "ghcr.io/org/app:", "ghcr.io./org/app", " ghcr.io/org/app")
    assert [] == [text for text in texts if EXEMPTING[selector]("ghcr.io/org/*", _pod(text))]


@pytest.mark.parametrize("selector", ENFORCING)
@pytest.mark.parametrize(
    "text",
    [
        "oci://ghcr.io/org/app",
        "docker://ghcr.io/org/app",
        "ghcr.io/org/App",
        "ghcr.io/org/app:",
        "ghcr.io/org/app@",
        "ghcr.io./org/app",
        "ghcr.io/org/app@md5:" + "0" * 32,
        " ghcr.io/org/app",
        "ghcr.io/org//app",
        "gհcr.io/org/app",
        "a/" * 3000 + "a",
        7,
        ["ghcr.io/org/app"],
    ],
)
def test_a_text_that_is_no_reference_is_an_error(selector: str, text: Any) -> None:
    """I5: it is not an object without images."""
    pattern = "ghcr.io/org/*"
    policies = {
        "imageReferences": _verify_policy(imageReferences=[pattern]),
        "image": _verify_policy(image=pattern),
        "matchImageReferences: glob": _image_policy(matchImageReferences=[{"glob": pattern}]),
    }
    statuses = {each.status for each in _review([policies[selector]], _pod(text))}
    assert {Status.ERROR} == statuses


# ------------------------------------------------------------------------------------------------ one name for a host


@pytest.mark.parametrize("image", FORMS)
def test_expressions_and_credentials_see_one_registry(image: str) -> None:
    """JMESPath, CEL, the variable `images`, and what chooses credentials."""
    quoted = compile_expression(f"image_normalize('{image}')").evaluate(None, Runtime())
    shown = find_images(_pod(image))["containers"]["app"].to_entry()
    source = CredentialSource("s", (("GHCR.IO:443", Credential("user", "word")),))
    assert quoted.startswith("ghcr.io/org/app")
    assert ("ghcr.io", "org/app") == (shown["registry"], shown["path"])
    assert "ghcr.io" == parse_cel_image(image).registry
    assert [1, 0] == [
        len(credentials_for(each, "org/app", [source])) for each in (shown["registry"], "ghcr.io.example.com")
    ]


# ------------------------------------------------------------------------------------------------------- all of many

VOLUMES: Final = [
    {"name": "v", "image": {"reference": "ghcr.io/org/app"}},
    {"name": "other", "emptyDir": {}},
]
WRAPPED: Final[dict[str, Callable[[JSONObject], JSONObject]]] = {
    "Pod": lambda spec: spec,
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
        lambda spec: {"template": {"spec": spec}},
    ),
    "CronJob": lambda spec: {"jobTemplate": {"spec": {"template": {"spec": spec}}}},
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_an_image_volume_is_an_image(kind: str) -> None:
    """In pods and in every kind that holds a template of pods."""
    spec = {"containers": [{"name": "app", "image": "nginx"}], "volumes": VOLUMES}
    found = find_images({"kind": kind, "spec": WRAPPED[kind](spec)})
    assert ["containers", "imageVolumes"] == list(found)
    assert "ghcr.io/org/app:latest" == found["imageVolumes"]["v"].reference
    assert found["imageVolumes"]["v"].pointer.endswith("/volumes/0/image/reference")


@pytest.mark.parametrize("selector", ENFORCING)
def test_an_image_volume_does_not_escape(selector: str) -> None:
    """It is verified as the images of containers are."""
    pod = _pod("nginx")
    pod["spec"]["volumes"] = VOLUMES
    assert ENFORCING[selector]("ghcr.io/org/*", pod)


@pytest.fixture
def stage() -> Iterator[ImageStage]:
    """A registry with signed images."""
    with image_stage() as made:
        yield made


def _extracting(stage: ImageStage, *entries: JSONObject) -> JSONObject:
    entry = stage.policy()["spec"]["rules"][0]["verifyImages"][0]
    return stage.policy_of([entry], imageExtractors={"Pod": list(entries)})


ENTRIES: Final = {
    "one name": (
        {"path": "/spec/containers/*", "value": "image", "key": "name"},
        {"path": "/spec/initContainers/*", "value": "image", "key": "name"},
    ),
    "one group": (
        {"path": "/spec/containers/*/image", "name": "a"},
        {"path": "/spec/initContainers/*/image", "name": "a"},
    ),
    "one key": ({"path": "/spec/*/*", "value": "image", "key": "name"},),
}


@pytest.mark.parametrize("entries", ENTRIES)
@pytest.mark.parametrize("unsigned", [0, 1])
def test_every_entry_of_extractors_counts(stage: ImageStage, entries: str, unsigned: int) -> None:
    """Equal names hide no image, in any order; each of them gets its digest."""
    images = [stage.image("v1"), stage.image("v1")]
    stage.sign(stage.push("v1"))
    pod = stage.pod(images[0])
    pod["spec"] = {
        "containers": [{"name": "x", "image": images[0]}],
        "initContainers": [{"name": "x", "image": images[1]}],
    }
    policy = _extracting(stage, *ENTRIES[entries])
    review = stage.review(policy, pod=pod)
    assert {"pass"} == {each.status.value for each in review.results}
    pinned = [review.resource["spec"][each][0]["image"] for each in ("containers", "initContainers")]
    assert [True, True] == ["@sha256:" in each for each in pinned]
    stage.push("v2")
    pod["spec"][("containers", "initContainers")[unsigned]][0]["image"] = stage.image("v2")
    assert "fail" in {each.status.value for each in stage.review(policy, pod=pod).results}


def test_an_image_that_cannot_be_read_hides_no_other(stage: ImageStage) -> None:
    """Where errors are ignored, the others are still judged."""
    stage.push()
    pod = stage.pod("docker://nginx", stage.image())
    for policy in (stage.policy(), _image_policy(validations=[{"expression": "size(images.containers) == 0"}])):
        statuses = [each.status.value for each in stage.review(policy, pod=pod).results]
        assert "fail" in statuses
    assert {"error", "fail"} == {
        each.status.value for each in stage.review(stage.policy(), pod=pod, phases=MUTATING).results
    }


@pytest.mark.parametrize("value", ["*", ""])
def test_an_extractor_names_the_field_of_the_image(value: str) -> None:
    """A wildcard as the field would find nothing, and verify nothing."""
    entry = {"path": "/spec/images/*", **({"value": value} if value else {})}
    policy = _verify_policy(imageReferences=["*"])
    policy["spec"]["rules"][0]["imageExtractors"] = {"Pod": [entry]}
    compiled = compile_documents(load_documents(yaml.safe_dump(policy)))
    assert ["the value of an image extractor"] == [each.message[:31] for each in compiled.errors]


def test_a_name_with_a_slash_is_no_path(stage: ImageStage) -> None:
    """Each digest is written where its image is, although both places have one JSON pointer."""
    digests = [stage.push(tag) for tag in ("v1", "v2")]
    for each in digests:
        stage.sign(each)
    pod = stage.pod()
    pod["spec"] = {"x": {"a/b": {"image": stage.image("v1")}, "a": {"b": {"image": stage.image("v2")}}}}
    policy = _extracting(stage, {"path": "/spec/x/*/image"}, {"path": "/spec/x/a/b/image"})
    x = stage.review(policy, pod=pod).resource["spec"]["x"]
    assert [f"{stage.image(tag)}@{digest}" for tag, digest in zip(("v1", "v2"), digests, strict=True)] == [
        x["a/b"]["image"],
        x["a"]["b"]["image"],
    ]
