"""The functions of `kube`, `lang.pattern`, `lang.template`, `images` and `podsecurity` under the doubling law.

Every public function of these packages has a row in `TEXT_READERS`, `VALUE_READERS`, `PAIRS` or `SPECIAL`, or a reason
in `EXEMPT`. What a policy gives (patterns, templates, selectors) grows as well as what a request gives.
"""

# ruff: noqa: E501 - tables with a row each
from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from pyverno.kube.admissionreview import read_admission_review
from pyverno.kube.json import JSON, encode
from pyverno.lang.runtime import Budget, Runtime
from tests.property.growth import Call, Shape, Subject
from tests.property.growth_images import signed_documents
from tests.property.growth_inputs import VALUES, text, text_names, value_shapes

__all__ = ["EXEMPT", "kube_subjects", "listed", "public_functions"]

PACKAGES = ("kube", "lang.pattern", "lang.template", "images", "podsecurity")

TEXT_READERS = (
    "kube.apipath.format_segment", "kube.apipath.parse_api_path", "kube.time.cron.parse_cronexpr", "kube.time.cron.parse_standard", "kube.yaml.documents.load_documents",
    "kube.time.cronexpr.parse_cronexpr", "kube.time.duration.parse_duration", "kube.time.duration.try_duration",
    "kube.time.duration.quote_time", "kube.time.gotime.parse_rfc3339", "kube.gvk.parse_api_version", "kube.gvk.version_order",
    "kube.imageref.reference.parse_reference", "kube.imageref.globs.exempting", "kube.imageref.globs.exempting_text",
    "kube.imageref.globs.selecting", "kube.imageref.hosts.is_docker_hub", "kube.imageref.hosts.normal_host",
    "kube.imageref.hosts.registry_name", "kube.imageref.hosts.split_port", "kube.json.decode", "kube.patch.jsonpatch.escape_key", "kube.patch.jsonpatch.unescape_key",
    "kube.labelsyntax.label_key_problems", "kube.labelsyntax.label_value_problems", "kube.quantity.parse_quantity",
    "kube.quantity.try_quantity", "kube.selector.parse_selector_text", "kube.semver.parse_version",
    "kube.admissionreview.shortened", "kube.semver.try_version", "kube.wildcard.compile_wildcard", "kube.wildcard.has_wildcard",
    "kube.wildcard.count_wildcards",
    "kube.yaml.events.build_value", "kube.yaml.scalars.resolve_plain",
    "kube.apply.fieldset.field_step", "kube.time.golayout.chunks", "kube.gvk.parse_kind_selector", "kube.semver.parse_range",
    "lang.pattern.anchors.parse_anchor", "lang.pattern.operators.is_negated", "lang.pattern.anchors.refuse_directive",
    "lang.pattern.leaf.compile_leaf", "lang.pattern.leaf.integer_range", "lang.pattern.leaf.literal_texts",
    "lang.pattern.leaf.split_operator", "lang.pattern.metadata.compile_key",
    "lang.pattern.operators_values.duration_of", "kube.gofloat.parse_float",
    "lang.pattern.operators_values.integer_of", "lang.pattern.operators_values.quantity_of",
    "lang.template.expression_text.compile_expression_text", "lang.template.location.parse_path",
     "lang.template.location.shown_path",
    "lang.template.patchtext.compile_patch_text", "lang.template.references.find_references",
    "lang.template.slot.byte_length", "lang.template.slot.compile_query", "lang.template.syntax.is_reference",
    "lang.template.syntax.is_variable", "lang.template.syntax.parse_string", "lang.template.syntax.literal_parts",
    "lang.template.syntax.outer_variables", "lang.template.syntax.split_expression",
    "lang.template.syntax.split_variables", "images.info.parse_image", "podsecurity.versions.parse_version",
)  # fmt: skip
VALUE_READERS = (
    "kube.json.deep_copy", "kube.json.dump", "kube.json.weight", "kube.json.identity", "kube.json.encode", "kube.json.encode_indent", "kube.json.go_text", "kube.yaml.writer.dump_yaml",
    "kube.apply.fieldset.value_step",
    "lang.pattern.checks.compile_scalar", "lang.pattern.checks.element_check", "lang.pattern.fast.failpath.compile_failpath",
    "lang.pattern.leaf.number_text", "lang.pattern.leaf.plain_text", "lang.pattern.literal.as_literal", "lang.pattern.anchors.refuse_directives", "lang.pattern.literal.as_plain", "lang.pattern.mutate.compile_overlay",
    "lang.pattern.outcome.go_type", "lang.pattern.validate.compile_pattern", "lang.template.references.resolve_references",
    "lang.template.slot.text_of", "lang.template.syntax.has_variables", "lang.template.template.compile_template",
)  # fmt: skip
PAIRS = (
    "kube.json.equal", "kube.patch.jsondiff.create_patch", "kube.patch.mergepatch.apply_merge_patch",
    "kube.patch.mergepatch.create_merge_patch", "kube.patch.strategicmerge.strategic_merge", "kube.wildcard.match",
    "kube.wildcard.match_price", "lang.pattern.price.condition_price",
    "lang.pattern.operators_values.pair_durations",
)  # fmt: skip

PAIRED: Mapping[str, frozenset[str]] = {
    "kube.selector.compile_selector": frozenset({"wildcards"}),
}
"""Shapes in which the wildcards of a policy grow as well as the texts of an object: each may match each."""

BYTES_READERS = (
    "certificates.read_certificate", "keys.read_key", "merkle.leaf_hash", "notary.cbor.encode_bytes",
    "payloads.read_simple_signing",
    "signature.read_bundle", "strictjson.read_json", "strictjson.read_object", "trust.read_trust_root",
)  # fmt: skip
"""Functions of `images.verification` that read what a registry holds; and those that read texts."""
SIGNATURE_READERS = (
    "attestors.exact", "attestors.expression", "attestors.wildcard", "certificates.read_certificates", "keys.pem_blocks",
    "keys.read_keys", "logentry.read_legacy_entry", "merkle.read_checkpoint", "payloads.predicate_type_of",
    "strictjson.decode_base64", "strictjson.encode_text",
)  # fmt: skip

EXEMPT: Mapping[str, str] = {
    **dict.fromkeys(
        (
            f"images.verification.{name}"
            for name in (
                "attestors.constraints_of", "certificates.check_code_signing", "certificates.extension_value", "chain.check_chain", "counting.count_signers", "counting.signers_of",
                "certificates.extensions_of", "certificates.issuer_of", "certificates.subjects_of", "keys.format_pem", "logentry.check_entry",
                "logentry.read_log_entry", "merkle.root_of", "notary.algorithms.check_signature", "notary.verify.verify_notary", "payloads.read_envelope", "payloads.read_statement",
                "signature.read_attestation_layer", "signature.read_signature_layer", "signature.read_stored", "strictjson.text_of",
                "timestamps.check_timestamp", "transparency.check_certificate_logged", "verify.verify", "verify.verify_set",
            )
        ),
        "takes what a function with a row has read",
    ),
    **dict.fromkeys(
        (f"images.verification.notary.chain.{name}" for name in ("check_issued", "check_valid")),
        "takes the chain of an envelope: `read_notary` refuses more than 10 certificates",
    ),
    **dict.fromkeys(
        ("images.verification.revocation.check_revocation", "images.verification.revocation.current_until"),
        "takes answers of at most 4 MiB, from at most ten places for each of at most ten certificates",
    ),
    "images.verification.revocation.no_revocations": "raises an error",
    "images.verification.timestamps.verify_timestamp": "refuses a token that is larger than `_MAX_BYTES`",
    **dict.fromkeys(
        ("images.verification.notary.algorithms.algorithm_of", "images.verification.notary.chain.check_leaf"),
        "takes one key or certificate that a function with a row has read",
    ),
    "images.manifests.compare.same_object": "compares four fields",
    **dict.fromkeys(
        ("kube.yaml.documents.find_value", "kube.yaml.fieldpath.locate", "kube.yaml.fieldpath.path_text"),
        "takes one step for each part of a path",
    ),
    **dict.fromkeys(
        ("kube.apipath.object_path", "kube.apipath.resource_path"),
        "joins at most seven segments that `format_segment` writes",
    ),
    "images.manifests.compare.signature_fields": "makes seven texts of the domain that a policy wrote",
    "images.verification.attestorfields.read_items": "looks at the type of a value",
    **dict.fromkeys(
        ("kube.kinds.read_groups", "kube.schemas.descriptions", "kube.schemas.go_fields"), "reads a table of this package"
    ),
    **dict.fromkeys(
        (
            "kube.time.civil.civil_from_days", "kube.time.civil.days_before_month", "kube.time.civil.days_from_civil",
            "kube.time.civil.days_in_month", "kube.time.civil.is_leap", "kube.time.civil.weekday", "kube.time.civil.year_day",
            "kube.time.duration.duration_from_seconds", "kube.time.duration.duration_seconds", "kube.time.duration.format_duration",
            "kube.gofloat.float_text", "kube.gofloat.float_verb_text", "kube.json.float_text", "kube.json.is_number",
            "kube.time.gotime.unix_time", "lang.pattern.leaf.as_float",
            "lang.pattern.operators_values.seconds_of", "podsecurity.versions.since",
        ),
        "takes numbers of bounded size",
    ),
    **{
        f"kube.status.{name}": "writes an answer of the sandbox's API server"
        for name in (
            "already_exists", "bad_request", "conflict", "expired", "forbidden", "internal_error", "invalid",
            "not_acceptable", "not_allowed", "not_found", "path_not_found",
            "request_too_large", "resource_name", "server_timeout", "service_unavailable", "too_many_requests",
            "unauthorized", "unsupported_media_type",
        )
    },
    **dict.fromkeys(
        ("kube.gvk.join_api_version", "lang.template.location.join_path", "lang.template.location.path_expression", "lang.pattern.anchors.has_anchor_keys", "lang.template.location.place_expression",
         "lang.pattern.outcome.path_text", "kube.apply.fieldset.path_text", "kube.apply.fieldset.key_step",
         "podsecurity.finding.plural", "podsecurity.finding.quoted", "podsecurity.finding.sorted_unique",
         "podsecurity.control.container_fields", "podsecurity.setters.named_containers", "podsecurity.setters.setters",
         "kube.apply.serverside.manager_name"),
        "joins texts once",
    ),
    **dict.fromkeys(
        ("kube.patch.mergedlists.merge_lists", "kube.patch.mergedlists.merge_text", "kube.patch.mergedrows.complete_rows", "lang.pattern.steps.condition_step", "lang.pattern.steps.equality_step", "lang.pattern.steps.existence_step",
         "lang.pattern.steps.global_step", "lang.pattern.steps.negation_step", "lang.pattern.steps.plain_step",
         "lang.pattern.steps.presence_step", "lang.pattern.fast.passcheck.compile_passes",
         "lang.pattern.fast.passcheck.fuse", "lang.pattern.checks.compile_labels",
         "lang.pattern.checks.compile_metadata", "kube.imageref.globs.full_texts", "lang.pattern.operators_equality.compile_equals",
         "lang.pattern.operators_equality.compile_not_equals", "lang.pattern.operators_equality.is_mere_text",
         "lang.pattern.operators_membership.compile_in",
         "lang.pattern.operators_membership.compile_not_in", "lang.pattern.operators_order.compile_duration_order",
         "lang.pattern.operators_order.compile_order", "lang.pattern.operators.is_negated", "lang.pattern.operators.operator",
         "lang.template.slot.compile_slot", "lang.template.rescan.render_rescanning",
         "lang.template.positions.find_outer_offset", "lang.template.positions.find_steps",
         "podsecurity.excludes.compile_excludes", "podsecurity.excludes.exempt", "podsecurity.evaluate.message",
         "podsecurity.pod.read_pod", "podsecurity.evaluate.compile_pod_security", "podsecurity.problems.exclude_problems",
         "images.extractors.compile_extractors", "images.extract.find_images", "images.extract.list_images", "kube.yaml.scalars.key_text",
         "kube.yaml.scalars.resolve_tagged", "kube.time.golayout.read_fields", "kube.yaml.documents.expand_lists", "kube.yaml.events.build_positions", "kube.admissionreview.check_request", "kube.admissionreview.check_user", "kube.admissionreview.request_of"),
        "a part of a function that has a row",
    ),
    **{
        f"kube.{name}": "server-side apply: see apply_configuration and the rows of `growth_writers`"
        for name in (
            "apply.managedfields.bare", "apply.managedfields.capped", "apply.managedfields.claims_of", "apply.managedfields.claims_of_update",
            "apply.managedfields.settled", "apply.managedfields.with_claims", "apply.schematree.schema_tree_for",
            "apply.schematree.schema_tree_of", "apply.serverside.apply", "apply.serverside.reset_fields", "apply.serverside.schema_tree_for",
            "apply.serverside.schema_tree_of", "apply.serverside.track", "apply.typedvalue.compare", "apply.typedvalue.fields_of",
            "apply.typedmerge.merge", "apply.typedmerge.atomic_paths", "apply.typedvalue.taken_out", "apply.typedvalue.with_named_parents",
            "patch.strategicpatch.strategic_patch", "apply.typedcheck.problems", "apply.serverside.check_applied", "apply.serverside.not_typed",
        )
    },
}  # fmt: skip
"""Functions without a row of their own, and why."""


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every public function of the packages that requests reach, by its name below `pyverno`."""
    for package in PACKAGES:
        room = import_module(f"pyverno.{package}")
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            module = import_module(found.name)
            for name in getattr(module, "__all__", ()):
                if inspect.isfunction(value := getattr(module, name)):
                    yield f"{found.name.removeprefix('pyverno.')}.{name}", value


def listed() -> frozenset[str]:
    """Return the names of all functions that have a row."""
    return frozenset((*TEXT_READERS, *VALUE_READERS, *PAIRS, *SPECIAL))


def kube_subjects() -> Iterator[Subject]:
    """Yield all rows."""
    for name in TEXT_READERS:
        function = _function(name)
        yield Subject(name, {each: _reads(function, _text(each)) for each in text_names()})
    for name in VALUE_READERS:
        function = _function(name)
        yield Subject(name, {each: _reads(function, make) for each, make in value_shapes("any")})
    for name in PAIRS:
        function = _function(name)
        kinds = "text" if ".wildcard." in name else "any"
        shapes: dict[str, Shape] = {}
        for each, make in value_shapes(kinds):
            shapes[f"{each} and the same"] = _reads_two(function, make, make)
            shapes[f"{each} and reversed"] = _reads_two(function, make, _reversed(make))
            shapes[f"{each} and longer"] = _reads_two(function, make, _longer(make))
        if kinds == "text":
            for pattern in (
                "stars",
                "question marks",
                "question marks and star",
                "stars and letters",
                "letters and star",
            ):
                for each in ("letters", "letters and another", "question marks", "stars and letters"):
                    shapes[f"{pattern} on {each}"] = _reads_two(function, _text(pattern), _text(each))
        yield Subject(name, shapes)
    for name, made in SPECIAL.items():
        yield Subject(name, made, paired=PAIRED.get(name, frozenset()))


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.rpartition(".")
    function: Callable[..., Any] = getattr(import_module(f"pyverno.{module}"), attribute)
    return function


def _text(name: str) -> Callable[[int], str]:
    return lambda size: text(name, size)


def _reversed(make: Callable[[int], JSON]) -> Callable[[int], JSON]:
    def reverse(size: int) -> JSON:
        value = make(size)
        if isinstance(value, dict):
            return dict(reversed(value.items()))
        return value[::-1] if isinstance(value, (list, str)) else value

    return reverse


def _longer(make: Callable[[int], JSON]) -> Callable[[int], JSON]:
    def longer(size: int) -> JSON:
        value = make(size)
        if isinstance(value, dict):
            return {**value, "more": 1}
        return ["more", *value] if isinstance(value, list) else f"b{value}" if isinstance(value, str) else value

    return longer


def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Call:
    """Return a call that charges the budget where the function takes a meter or a runtime."""
    parameters = inspect.signature(function).parameters

    def run(budget: Budget) -> object:
        extra = {**named}
        if "meter" in parameters:
            extra["meter"] = budget
        if "budget" in parameters:
            extra["budget"] = budget
        if "runtime" in parameters:
            extra["runtime"] = Runtime(budget=budget)
        try:
            return function(*arguments, **extra)
        except ValueError:
            return None

    return run


def _reads(function: Callable[..., Any], make: Callable[[int], Any]) -> Shape:
    return lambda size: call(function, make(size))


def _reads_two(function: Callable[..., Any], make: Callable[[int], Any], other: Callable[[int], Any]) -> Shape:
    return lambda size: call(function, make(size // 2), other(size // 2))


def _reads_signature(function: Callable[..., Any], name: str, *, is_text: bool) -> Shape:
    more = {"what": "it"} if "what" in inspect.signature(function).parameters else {}

    def shape(size: int) -> Call:
        found = text(name, size)
        return call(function, found if is_text else found.encode("utf-8", "surrogatepass"), **more)

    return shape


def _containers(size: int, **fields: Any) -> list[JSON]:
    return [{"name": f"c{number}", "image": f"r.io/i{number}:v1", **fields} for number in range(max(1, size // 40))]


def _pod(size: int, **fields: Any) -> dict[str, Any]:
    labels = {f"l{number}": "v" for number in range(size // 40)}
    metadata = {"name": "p", "namespace": "n", "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": _containers(size, **fields)},
    }


def _labels(size: int) -> dict[str, str]:
    return {f"label{number}": f"v{number}" for number in range(size // 20)}


def _patches(kind: str) -> Shape:
    from pyverno.kube.patch.jsonpatch import apply_patch

    def operations(size: int) -> list[dict[str, Any]]:
        count = max(1, size // 40)
        match kind:
            case "adds at the end":
                return [{"op": "add", "path": "/l/-", "value": 1} for _ in range(count)]
            case "adds at the front":
                return [{"op": "add", "path": "/l/0", "value": 1} for _ in range(count)]
            case "removes at the front":
                return [{"op": "remove", "path": "/l/0"} for _ in range(count)]
            case "copies itself":
                return [{"op": "copy", "from": "/m", "path": "/m/m"} for _ in range(min(count, 24))]
            case "moves":
                return [{"op": "move", "from": "/l/0", "path": "/l/1"} for _ in range(count)]
            case "tests":
                return [{"op": "test", "path": "/l", "value": [1] * (size // 4)} for _ in range(2)]
            case "keys":
                return [{"op": "add", "path": f"/m/k{number}", "value": 1} for number in range(count)]
            case _:
                return [{"op": "replace", "path": "/l/0", "value": 1} for _ in range(count)]

    def shape(size: int) -> Call:
        document = {"l": [1] * (size // 4), "m": {"a": 1}}
        return call(apply_patch, document, operations(size))

    return shape


_SCALARS: Mapping[str, tuple[str, str, str]] = {
    "plain": ("", "a", ""),
    "plain on lines": ("", "a\n ", "b"),
    "double quotes": ('"', '\\"', '"'),
    "double quotes on lines": ('"', "a\\\n ", '"'),
    "single quotes": ("'", "''", "'"),
    "literal": ("|\n", "  a\n", ""),
    "folded": (">\n", "  a\n", ""),
    "folded paragraphs": (">\n", "  a\n\n", ""),
    "folded empty lines": (">\n  a\n", "\n", "  a\n"),
}
"""Scalars as YAML writes them: a beginning, a unit that repeats, and an end."""


def _finds_character(name: str) -> Shape:
    from pyverno.kube.yaml.characters import find_character
    from pyverno.kube.yaml.documents import load_documents

    start, unit, end = _SCALARS[name]

    def shape(size: int) -> Call:
        scalar = start + unit * (size // len(unit)) + end
        value = load_documents(f"k: {scalar}")[0].value["k"]
        return call(find_character, scalar, 0, value, len(value))

    return shape


def _edits(size: int, *, step: int) -> Call:
    from pyverno.kube.yaml.edits import TextEdit, apply_edits

    return call(apply_edits, "ab" * size, [TextEdit(start, "ab", "c") for start in range(0, size, step)][::-1])


def _rewrites(size: int, change: Callable[[int], JSON]) -> Call:
    from pyverno.kube.yaml.rewrite import rewrite

    old: dict[str, JSON] = {f"k{number}": {"a": 1} for number in range(size)}
    new = {key: change(number) if number % 2 else value for number, (key, value) in enumerate(old.items())}
    text = "".join(f"k{number}:  # {number}\n  a: 1\n" for number in range(size))
    return call(rewrite, text, [old], [{key: value for key, value in new.items() if value is not None}])


def _special() -> Mapping[str, Mapping[str, Shape]]:
    from pyverno.images.extract import extract_images
    from pyverno.images.info import parse_image_at
    from pyverno.kube.apply.schematree import schema_tree_for
    from pyverno.kube.apply.typedmerge import apply_configuration
    from pyverno.kube.gvk import GVK
    from pyverno.kube.jsonscan import has_more_values, scan, with_valid_escapes
    from pyverno.kube.patch.growth import growth
    from pyverno.kube.schemas import schema_set
    from pyverno.kube.selector import compile_selector, format_selector
    from pyverno.kube.time.gotime import parse_time
    from pyverno.kube.time.ttl import parse_ttl
    from pyverno.lang.pattern.literal import as_literal_within, as_plain_within
    from pyverno.lang.pattern.metadata import find_tag, text_entries
    from pyverno.lang.pattern.operators import OPERATORS, compile_operator
    from pyverno.lang.pattern.price import condition_price
    from pyverno.podsecurity.evaluate import evaluate

    created = parse_time("2006", "2024")
    pods = schema_tree_for(schema_set(), GVK("", "v1", "Pod"))
    operator_shapes: dict[str, Shape] = {}

    def compares(name: str, key: JSON, value: JSON, budget: Budget) -> object:
        """Compare as a condition does, which pays for pairs of wildcards and texts before."""
        budget.charge_steps(condition_price(key, value))
        check = compile_operator(name, value)
        return check and check(key)

    for name in OPERATORS:
        for each, make in value_shapes("any"):
            for mode, other in (("same", make), ("reversed", _reversed(make)), ("longer", _longer(make))):

                def compare(size: int, name: str = name, make: Any = make, other: Any = other) -> Call:
                    key, value = make(size // 2), other(size // 2)

                    def run(budget: Budget) -> object:
                        return compares(name, key, value, budget)

                    return run

                operator_shapes[f"{name}: {each} and {mode}"] = compare
        for left, right in (("stars", "texts"), ("texts", "stars"), ("questions", "long texts"), ("texts", "texts")):

            def among(size: int, name: str = name, left: str = left, right: str = right) -> Call:
                key, value = VALUES[left](size // 2), VALUES[right](size // 2)

                def run(budget: Budget) -> object:
                    return compares(name, key, value, budget)

                return run

            operator_shapes[f"{name}: {left} among {right}"] = among

    def merges(**fields: Any) -> Shape:
        return lambda size: call(
            apply_configuration, _pod(size // 2), _pod(size // 2, **fields), pods, refuses_atomics=True
        )

    levels = {
        f"{level} {name}": (
            lambda size, level=level, fields=fields: call(evaluate, _pod(size, **fields), "Pod", level=level)
        )
        for level in ("baseline", "restricted")
        for name, fields in (
            ("plain", {}),
            ("privileged", {"securityContext": {"privileged": True, "capabilities": {"add": ["X"], "drop": ["ALL"]}}}),
            ("ports", {"ports": [{"hostPort": 1}]}),
        )
    }
    signatures = {
        f"images.verification.{name}": {
            each: _reads_signature(_function(f"images.verification.{name}"), each, is_text=name in SIGNATURE_READERS)
            for each in text_names()
        }
        for name in (*BYTES_READERS, *SIGNATURE_READERS)
    }
    return {
        **signatures,
        **signed_documents(call, _pod),
        "kube.yaml.characters.find_character": {each: _finds_character(each) for each in _SCALARS},
        "kube.yaml.edits.apply_edits": {
            "edits": lambda size: _edits(size, step=2),
            "edits that overlap": lambda size: _edits(size, step=1),
        },
        "kube.yaml.rewrite.rewrite": {
            "entries that go": lambda size: _rewrites(size, lambda _: None),
            "entries that change": lambda size: _rewrites(size, lambda number: {"a": number}),
        },
        "kube.selector.format_selector": {
            "labels": lambda size: call(format_selector, {"matchLabels": _labels(size)}),
            "values": lambda size: call(
                format_selector, {"matchExpressions": [{"key": "a", "operator": "In", "values": [*_labels(size)]}]}
            ),
        },
        "images.extract.extract_images": {
            "containers": lambda size: call(extract_images, _pod(size)),
            "one long image": lambda size: call(
                extract_images, {**_pod(1), "spec": {"containers": [{"name": "c", "image": "a/" * (size // 2) + "a"}]}}
            ),
        },
        "kube.time.gotime.parse_time": {
            f"{layout} {each}": (lambda size, layout=layout, each=each: call(parse_time, layout, text(each, size)))
            for layout in ("2006-01-02T15:04:05Z07:00", "Jan _2")
            for each in text_names()
        },
        "kube.patch.growth.growth": {
            f"{each} {most}": (lambda size, make=make, most=most: call(growth, make(size // 2), make(size), most))
            for each, make in value_shapes("any")
            for most in (1, 1 << 30)
        },
        "kube.patch.jsonpatch.apply_patch": {
            kind: _patches(kind)
            for kind in (
                "adds at the end",
                "adds at the front",
                "removes at the front",
                "copies itself",
                "moves",
                "tests",
                "keys",
                "replaces",
            )
        },
        "kube.jsonscan.with_valid_escapes": {
            each: (lambda size, each=each: call(with_valid_escapes, text(each, size).encode("utf-8", "surrogatepass")))
            for each in text_names()
        },
        "kube.jsonscan.has_more_values": {
            each: (lambda size, each=each: call(has_more_values, text(each, size).encode("utf-8", "surrogatepass"), 9))
            for each in text_names()
        },
        "kube.jsonscan.scan": {
            each: (lambda size, each=each: call(scan, text(each, size).encode())) for each in text_names()
        },
        "kube.selector.compile_selector": {
            "labels": lambda size: lambda budget: compile_selector({"matchLabels": _labels(size)})(_labels(size)),
            "one of many": lambda size: (
                lambda budget: compile_selector(
                    {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": [*_labels(size)]}]}
                )(_labels(size))
            ),
            "many expressions": lambda size: (
                lambda budget: compile_selector(
                    {"matchExpressions": [{"key": key, "operator": "Exists"} for key in _labels(size)]}
                )(_labels(size))
            ),
            "wildcard": lambda size: (
                lambda budget: compile_selector({"matchLabels": {"z*": "?*"}}, wildcards=True)(_labels(size))
            ),
            "wildcards": lambda size: (
                lambda budget: compile_selector(
                    {"matchLabels": {f"*{key}": "*" for key in _labels(size // 2)}}, wildcards=True
                )(_labels(size // 2))
            ),
        },
        "kube.time.ttl.parse_ttl": {
            each: (lambda size, each=each: call(parse_ttl, text(each, size), created)) for each in text_names()
        },
        "kube.apply.typedmerge.apply_configuration": {"same": merges(), "changed": merges(imagePullPolicy="Always")},
        "lang.pattern.metadata.find_tag": {"labels": lambda size: call(find_tag, _labels(size), "labels")},
        "lang.pattern.metadata.text_entries": {"labels": lambda size: call(text_entries, _labels(size))},
        **{
            f"lang.pattern.literal.{function.__name__}": {
                each: (lambda size, each=each, function=function: call(function, text(each, size), [text(each, size)]))
                for each in text_names()
            }
            for function in (as_literal_within, as_plain_within)
        },
        "images.info.parse_image_at": {
            each: (lambda size, each=each: call(parse_image_at, "/image", text(each, size))) for each in text_names()
        },
        "lang.pattern.operators.compile_operator": operator_shapes,
        "podsecurity.evaluate.evaluate": levels,
    }


def _reviews() -> dict[str, Shape]:
    """Return reviews whose object grows: bodies as the API server sends them."""

    def shape(make: Callable[[int], JSON]) -> Shape:
        def prepare(size: int) -> Call:
            request = {"uid": "1", "operation": "CREATE", "object": {"data": make(size)}}
            body = encode({"request": request}).encode("utf-8", "surrogatepass")
            return lambda _budget: read_admission_review(body)

        return prepare

    return {each: shape(make) for each, make in value_shapes("any")}


SPECIAL = {**_special(), "kube.admissionreview.read_admission_review": _reviews()}
"""Functions whose arguments no table makes."""
