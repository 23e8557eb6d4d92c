"""Globs of policies over images: which ones they select, and which ones they exempt.

`*` is any run of characters, `/` included, and `?` is one, as everywhere in Kyverno. What is compared is stated in the
law of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from pyverno.errors import ValueSyntaxError
from pyverno.kube.imageref.hosts import HUB_NAMES, is_docker_hub, normal_host, split_port
from pyverno.kube.imageref.reference import ImageReference, parse_reference
from pyverno.kube.names import MAX_NAME
from pyverno.kube.wildcard import compile_wildcard, has_wildcard

__all__ = ["Selector", "exempting", "exempting_text", "full_texts", "selecting"]

Selector = Callable[[ImageReference], bool]
_Test = Callable[[str], bool]


def selecting(pattern: str) -> Selector:
    """Return the test of a glob that chooses which images are judged: any spelling of an image that fits will do.

    >>> of_org = selecting("GHCR.IO/org/*")
    >>> of_org(parse_reference("ghcr.io:443/org/app@sha256:" + "0" * 64))
    True
    """
    if not pattern.strip("*"):
        return lambda _reference: bool(pattern)
    tests = tuple(map(compile_wildcard, (*_forms(pattern), *_certain_forms(pattern))))

    def selects(reference: ImageReference) -> bool:
        texts = _texts(reference, certain=False)
        return any(test(text) for text in texts for test in tests)  # guard: a glob leaves other images alone

    return selects


def exempting(pattern: str) -> Selector:
    """Return the test of a glob that leaves images out: only what it certainly names.

    >>> is_left_out = exempting("ghcr.io*")
    >>> is_left_out(parse_reference("ghcr.io/org/app")), is_left_out(parse_reference("ghcr.io.example.com/org/app"))
    (True, False)
    """
    if not pattern.strip("*"):
        return lambda _reference: bool(pattern)
    forms = _certain_forms(pattern)
    tests = tuple(map(_bounded, forms))  # guard: a wildcard that exempts stays in its part of the name

    def exempts(reference: ImageReference) -> bool:
        texts = _texts(reference, certain=True)
        return any(test(text) for text in texts for test in tests)  # guard: a glob exempts what it names

    return exempts


def exempting_text(pattern: str) -> Callable[[str], bool]:
    """Return the test of `exempting` for the text of an image field; one that does not parse is not exempt.

    >>> exempting_text("nginx*")("nginx:1.27"), exempting_text("nginx*")("nginx.example.com/app")
    (True, False)
    """
    if not pattern.strip("*"):
        return lambda _text: bool(pattern)
    exempts = exempting(pattern)

    def test(text: str) -> bool:
        try:
            return exempts(parse_reference(text))
        except ValueSyntaxError:
            return False  # guard: a text that is no image is not exempt

    return test


# ------------------------------------------------------------------------------------------------ spellings of an image


def full_texts(reference: ImageReference) -> Iterator[str]:
    """Yield the texts with a host that an expression may expect: with and without tag, digest and `library/`.

    >>> list(full_texts(parse_reference("Nginx.Example.com/app:v1")))
    ['nginx.example.com/app:v1']
    >>> list(full_texts(parse_reference("library/nginx")))[:2]
    ['docker.io/library/nginx:latest', 'docker.io/nginx:latest']
    """
    path, tag = reference.full_path, f":{reference.tag}" if reference.tag else ""
    digest = f"@{reference.digest}" if reference.digest else ""
    ends = dict.fromkeys((f"{tag}{digest}", digest or tag, tag or digest))
    is_hub = is_docker_hub(reference.full_registry)
    paths = (path, path.removeprefix("library/")) if is_hub and path.count("/") == 1 else (path,)
    for host in HUB_NAMES[:2] if is_hub else (reference.full_registry,):
        yield from (f"{host}/{each}{end}" for each in dict.fromkeys(paths) for end in ends)


def _texts(reference: ImageReference, *, certain: bool) -> Iterable[str]:
    if max(len(reference.registry), len(reference.path), len(reference.tag), len(reference.digest)) > MAX_NAME:
        return _spellings(reference, certain=certain)
    return _known(reference, certain)


@lru_cache(maxsize=256)  # an image meets the globs of many policies; of references no longer than a name
def _known(reference: ImageReference, certain: bool) -> tuple[str, ...]:
    return tuple(_spellings(reference, certain=certain))


def _spellings(reference: ImageReference, *, certain: bool) -> Iterator[str]:
    """Yield the equivalent texts of a reference; `certain` leaves out those that may be another image."""
    ends = tuple(_ends(reference, certain=certain))
    for repository in _repositories(reference, certain=certain):
        for end in ends:
            yield f"{repository}{end}"


def _ends(reference: ImageReference, *, certain: bool) -> Iterator[str]:
    tag, digest = reference.tag, reference.digest
    if digest:
        yield f"@{digest}"
        if tag and not certain:  # guard: a digest does not hide an image from a glob of tags
            yield f":{tag}@{digest}"
            yield f":{tag}"
    else:
        yield f":{tag}"
    if tag == "latest" and not (digest and certain):
        yield ""


def _repositories(reference: ImageReference, *, certain: bool) -> Iterator[str]:
    host, path = reference.full_registry, reference.full_path
    if is_docker_hub(host):
        paths = (path, path.removeprefix("library/")) if path.count("/") == 1 else (path,)
        names = dict.fromkeys((f"{each}/" for each in HUB_NAMES), None) | {f"{each}:443/": None for each in HUB_NAMES}
        yield from (f"{name}{each}" for name in names for each in dict.fromkeys(paths))
    else:
        paths = (path,)
        yield f"{host}/{path}"
        name, port = split_port(host)
        if not port:
            yield f"{host}:443/{path}"
        elif port == "80" and not certain:
            yield f"{name}/{path}"
    prefix = reference.default_registry
    own = f"{host}/{path}"
    if is_docker_hub(host) and is_docker_hub(prefix):
        yield from dict.fromkeys(paths)
    elif own.startswith(f"{prefix}/"):
        yield own.removeprefix(f"{prefix}/")


# -------------------------------------------------------------------------------------------------- spellings of a glob


def _forms(pattern: str) -> Iterable[str]:
    """Return a glob as it is written, and normalised: names in lower case, and its host in the normal form."""
    repository, end = _split_end(pattern)
    lowered = repository.lower()
    head, slash, rest = lowered.partition("/")
    forms = [pattern, lowered + end]
    if slash and not has_wildcard(head) and _is_host(repository.partition("/")[0]):
        forms.append(f"{normal_host(head)}/{rest}{end}")
    return dict.fromkeys(forms)  # guard: a glob is normalised like a reference


def _split_end(pattern: str) -> tuple[str, str]:
    """Split a glob before its tag or digest, in which case matters."""
    name, at, digest = pattern.partition("@")
    head, slash, last = name.rpartition("/")
    base, colon, tag = last.partition(":")
    return f"{head}{slash}{base}", f"{colon}{tag}{at}{digest}"


def _is_host(text: str) -> bool:
    return "." in text or ":" in text or text.lower() in ("localhost",) or text.lower() != text


def _certain_forms(pattern: str) -> Iterable[str]:
    *_, normal = _forms(pattern)
    return dict.fromkeys(_certain(normal))


def _certain(pattern: str) -> Iterator[str]:
    """Yield a glob as it is held against certain spellings: `:*` stands for digests too, and a digest for its tag."""
    repository, end = _split_end(pattern)
    _, at, digest = end.partition("@")
    yield f"{repository}@{digest}" if at else pattern
    if end.startswith(":") and not end[1:].strip("*") and end[1:]:  # guard: every tag is every digest
        yield f"{repository}@*"


def _bounded(pattern: str) -> _Test:
    """Return the test of a glob whose wildcards do not leave the first part of a name, unless that is `*` alone."""
    head, slash, rest = pattern.partition("/")
    whole = compile_wildcard(pattern)
    if not head.strip("*"):
        return whole
    if slash:
        in_rest, in_head = compile_wildcard(rest), _labels(head)

        def named(text: str) -> bool:
            first, has_path, below = text.partition("/")
            return bool(has_path) and in_rest(below) and in_head(first)  # guard: a host that exempts is no name

        return named
    start = head.rstrip("*")
    name = start.partition(":")[0]
    if "." in name or name == "localhost":
        in_host = _labels(start)
        return lambda text: whole(text) and ("/" not in text or in_host(text.partition("/")[0]))
    return whole if head.startswith("*") else lambda text: "/" not in text and whole(text)


def _labels(head: str) -> _Test:
    """Return the test of the first part of a name: label by label, and only a first `*` stands for several."""
    name, port = split_port(head)
    first, *others = (compile_wildcard(each) for each in name.split("."))
    fits_port = compile_wildcard(port)
    may_span = head.startswith("*")

    def fits(text: str) -> bool:
        host, own_port = split_port(text)
        labels = host.split(".")
        surplus = len(labels) - 1 - len(others)
        if surplus < 0 or (surplus and not may_span) or not fits_port(own_port):
            return False
        start, rest = ".".join(labels[: surplus + 1]), labels[surplus + 1 :]
        return first(start) and all(test(each) for test, each in zip(others, rest, strict=True))

    return fits
