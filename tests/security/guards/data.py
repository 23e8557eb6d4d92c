# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards that keep data inert (I10), and out of errors (I4)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["INERT", "SILENT"]

_ENGINE: Final = "engine/engine.py"
_TEMPLATE: Final = "lang/template/template.py"
_FUNCTION: Final = "lang/jmespath/function.py"

INERT: Final = (
    guard(
        "I10", "values are never scanned again",
        "inert_data::test_text_of_an_object_is_inserted_as_it_is inert_data::test_text_of_an_answer_is_inserted_as_it_is"
        " inert_data::test_a_mutation_copies_text_without_reading_it",
        (_TEMPLATE, "    rescan: bool = False,\n    within:", "    rescan: bool = True,\n    within:"),
    ),
    guard(
        "I10", "a nested variable fills a placeholder", "inert_data::test_a_nested_variable_is_a_name_not_syntax",
        ("lang/template/slot.py",
         "return query.evaluate(scope, runtime, tuple([values[each] for each in self.placeholders]), prefix + self.path)",
         "filled = [values[each] for each in self.placeholders]\n"
         "        query = compile_query(_filled(query.text, filled)) if filled else query\n"
         "        return query.evaluate(scope, runtime, (), prefix + self.path)"),
    ),
    guard(
        "I10", "wildcards stand in patterns only", "inert_data::test_an_objects_wildcards_match_only_themselves",
        (_ENGINE, "course = _Course(request,", "course = _Course(_widened(request),"),
        (_ENGINE, "def _passes(check:",
         "def _widened(request: Request) -> Request:\n"
         '    data = {key: "exact" if "*" in value else value for key, value in request.object["data"].items()}\n'
         '    return request.with_object({**request.object, "data": data})\n\n\n'
         "def _passes(check:"),
    ),
    guard(
        "I10", "a request names no pattern of signers",
        "tests/unit/engine/actions/test_verify_images.py::test_a_request_names_a_signer_and_no_pattern_of_signers",
        ("images/verification/attestors.py", "return exact(text) if isinstance(text, Literal) else TextMatch(text, Rule.WILDCARD, compile_wildcard(text))",
         "return TextMatch(text, Rule.WILDCARD, compile_wildcard(text))"),
        ("images/verification/attestors.py", "    if isinstance(text, Literal):\n        return exact(text)\n", ""),
    ),
    guard(
        "I10", "a wildcard in a statement meets no condition",
        "tests/unit/engine/actions/test_verify_images.py::test_a_wildcard_in_a_statement_meets_no_condition",
        ("compiler/rules/imageverification.py", "blocks=True, excuse=True", "blocks=True"),
    ),
    guard(
        "I10", "keys of a request direct no patch", "inert_data::test_keys_of_a_request_direct_no_patch",
        ("lang/pattern/anchors.py", "if isinstance(key, str) and (directive := _directive(key)) and directive != _directive(own):", "if False:"),
    ),
    guard(
        "I10", "no directive is put together of texts of a request", "inert_data::test_pieces_of_a_request_direct_no_patch",
        (_TEMPLATE, 'return mark.key(text, "".join(own))', "return text"),
    ),
    guard(
        "I10", "twin: an anchor of the policy around a name is an anchor",
        "inert_data::test_anchors_of_a_policy_around_data_keep_their_meaning",
        ("lang/pattern/anchors.py", " and directive != _directive(own)", ""),
    ),
    guard(
        "I10", "text of a request is no pattern",
        "inert_data::test_text_of_a_request_is_no_pattern inert_data::test_keys_of_a_request_are_no_anchors",
        ("lang/template/template.py", "_marked(render, self.mark, in_key=in_key) if self.mark is not None and parsed.whole in data else render", "render"),
    ),
    guard(
        "I10", "twin: text of a policy around data is a pattern, data in it is none",
        "inert_data::test_text_of_a_policy_around_it_is_a_pattern",
        ("lang/template/template.py", "if mark is None or not data:\n            return text", "return text"),
    ),
    guard(
        "I10", "what an expression makes of a text of a request is data",
        "inert_data::test_text_of_a_policy_around_it_is_a_pattern",
        ("lang/jmespath/origins.py", "return any(self.of(node, current) is not False for node in nodes)", "return False"),
    ),
    guard(
        "I10", "a text with a variable inside is data", "inert_data::test_text_of_a_policy_around_it_is_a_pattern",
        ("lang/jmespath/origins.py", "return self.filled and ", "return False and "),
    ),
    guard(
        "I10", "wildcards of a request select no targets", "inert_data::test_a_requester_does_not_add_targets",
        ("engine/actions/mutate.py", "if self.most_wildcards is not None and count_wildcards(text) > self.most_wildcards:", "if False:"),
    ),
    guard(
        "I10", "a text of a request that is empty selects no targets",
        "inert_data::test_an_empty_text_of_a_request_selects_no_targets",
        ("engine/actions/mutate.py", "return not text and self.most_wildcards is not None", "return False"),
    ),
    guard(
        "I10", "a text of a request that is empty clones nothing", "inert_data::test_an_empty_text_of_a_request_clones_nothing",
        ("engine/actions/generate.py", 'if not namespace and self.document.document["cloneList"]["namespace"]:', "if False:"),
    ),
    guard(
        "I10", "twin: kinds outside of namespaces have none", "inert_data::test_an_object_without_namespace_is_found_by_its_name",
        ("engine/actions/mutate.py", "self.namespace.selects_all(namespace) and not is_in_no_namespace", "self.namespace.selects_all(namespace)"),
    ),
    guard(
        "I10", "tags of YAML make no objects", "inert_data::test_yaml_tags_make_no_objects",
        ("kube/yaml/scalars.py", "if accepts is None:\n        return text", "if accepts is None:\n        return object()"),
    ),
    guard(
        "I10", "what is shown is quoted", "inert_data::test_denials_quote_what_they_show",
        ("kube/yaml/writer.py", "return text if _is_plain(text) else _single_quoted(text)", "return text"),
    ),
    guard(
        "I10", "what the context takes from the request is data",
        "inert_data::test_an_objects_wildcards_excuse_nothing_through_a_variable",
        ("compiler/rules/context.py", "            known |= {entry.name}\n", "            pass\n"),
    ),
)  # fmt: skip

SILENT: Final = (
    guard(
        "I4", "errors of functions describe their arguments",
        "error_texts::test_no_function_shows_an_argument_in_its_error"
        " error_texts::test_no_result_of_a_rule_shows_what_a_context_entry_holds",
        (_FUNCTION, "text = f\"JMESPath function '{name}': argument #{number} ({describe(argument)}) is not {what}\"", "text = detailed or what"),
    ),
    guard(
        "I4", "keys that come out of values are not shown",
        "error_texts::test_no_operator_and_no_nested_variable_shows_a_value_in_its_error"
        " error_texts::test_no_template_shows_a_value_in_its_error",
        ("errors.py", 'shown = f"Unknown key ({len(key)} characters of a nested variable) in path" if is_data else text', "shown = text"),
    ),
    guard(
        "I4", "the text of a patch is not shown",
        "error_texts::test_no_patch_shows_a_value_in_its_error",
        ("lang/template/patchtext.py", 'problem = f"patchesJson6902 is not JSON ({len(rendered)} characters)"', 'problem = f"patchesJson6902 is not JSON: {rendered}"'),
    ),
    guard(
        "I4", "the whole text of an error is kept apart",
        "error_texts::test_who_supplied_the_values_sees_them",
        (_FUNCTION, 'detailed=prefix + detailed if detailed else ""', 'detailed=""'),
    ),
)  # fmt: skip
