"""Lowering of an ImageValidatingPolicy: which images, which attestors, and the rules that pin, judge and demand."""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.compiler.cel.environment import CelCompiler
from pyverno.compiler.cel.imageattestors import lower_attestor
from pyverno.compiler.parser import Parser
from pyverno.engine.actions.cel.images import (
    ImageReferenceMatch,
    ImageSelection,
    ImageValidatingCheck,
    PinDigests,
    RequiredImages,
)
from pyverno.engine.actions.cel.validate import CelValidation
from pyverno.engine.cel.images import ImageAttestation
from pyverno.kube.imageref.globs import selecting
from pyverno.kube.json import JSONObject
from pyverno.lang.cel import Environment, Program, types
from pyverno.lang.cel.types import Type, list_of, map_of
from pyverno.policy.cel.imagepolicy import Credentials, ImageValidatingSpec
from pyverno.value import dataclass

__all__ = ["ImageRules", "lower_images"]

_EXCEPTIONS: Mapping[str, Type] = {"exceptions": map_of(types.STRING, list_of(types.STRING))}
_NAMES: Mapping[str, Type] = {**_EXCEPTIONS, **dict.fromkeys(("images", "attestors", "attestations"), types.DYN)}


@dataclass(frozen=True, slots=True)
class ImageRules:
    """The rules that a policy becomes."""

    check: ImageValidatingCheck
    pin: PinDigests
    required: RequiredImages


def lower_images(
    spec: ImageValidatingSpec, environment: Environment, parser: Parser, *, ignores_errors: bool
) -> ImageRules:
    """Compile a policy; what does not compile is reported."""
    compiler = CelCompiler(environment, parser, names=_NAMES, request_has_objects=True)
    conditions = compiler.conditions(spec.match_conditions)
    variables = compiler.variables(spec.variables)
    by_reference = CelCompiler(
        environment, parser, names={**_EXCEPTIONS, "ref": types.STRING}, request_has_objects=True
    )
    references = []
    for each in spec.match_image_references:
        if each.expression is not None:
            program = by_reference.compile(each.expression.text, each.expression.path, expected=types.BOOL)
            references.append(ImageReferenceMatch(program=program))
        else:
            references.append(ImageReferenceMatch(glob=selecting(each.glob)))
    expressions = ((each.name, compiler.compile(each.expression, (*each.path, "expression"))) for each in spec.images)
    selection = ImageSelection(
        conditions=conditions,
        variables=variables,
        references=tuple(references),
        expressions=tuple((name, program) for name, program in expressions if program is not None),
        credentials=_credentials(spec.credentials),
        attestors=tuple(lower_attestor(each, compiler) for each in spec.attestors),
        attestations=tuple(ImageAttestation(each.name, each.intoto, each.referrer) for each in spec.attestations),
        ignores_errors=ignores_errors,
    )
    check = ImageValidatingCheck(
        selection,
        tuple(_validations(spec, compiler)),
        tuple(_annotations(spec, compiler)),
        verifies_digest=spec.validation_configurations.verify_digest,
    )
    return ImageRules(check, PinDigests(selection), RequiredImages(selection))


def _validations(spec: ImageValidatingSpec, compiler: CelCompiler) -> list[CelValidation]:
    compiled = []
    for each in spec.validations:
        program = compiler.compile(each.expression, (*each.path, "expression"), expected=types.BOOL)
        message = None
        if each.message_expression.strip():
            path = (*each.path, "messageExpression")
            message = compiler.compile(each.message_expression, path, expected=types.STRING)
        if program is not None:
            compiled.append(CelValidation(program, each.expression, each.message.strip(), message, each.reason))
    return compiled


def _annotations(spec: ImageValidatingSpec, compiler: CelCompiler) -> list[tuple[str, Program]]:
    found = []
    for each in spec.audit_annotations:
        path = (*each.path, "valueExpression")
        program = compiler.compile(each.value_expression, path, expected=(types.STRING, types.NULL))
        if program is not None:
            found.append((each.key, program))
    return found


def _credentials(written: Credentials | None) -> JSONObject | None:
    if written is None:
        return None
    return {
        "allowInsecureRegistry": written.allow_insecure_registry,
        "providers": [each.value for each in written.providers],
        "secrets": list(written.secrets),
    }
