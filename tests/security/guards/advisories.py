# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards that advisories of other policy engines (1D) and of Kubernetes (1F) require."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["ADVISORIES"]

_ENGINE: Final = "engine/engine.py"

ADVISORIES: Final = (
    guard(
        "1D", "files of other machines are not read", "advisories::test_no_file_of_another_machine_is_read",
        ("offline/files.py", 'if path[:2] in ("\\\\\\\\", "//", "\\\\/", "/\\\\"):', "if False:"),
    ),
    guard(
        "1D", "what is printed is quoted", "advisories::test_a_policy_that_we_print_reads_back_the_same",
        ("kube/yaml/writer.py", "return text if _is_plain(text) else _single_quoted(text)", "return text"),
    ),
    guard(
        "1F", "documents have a depth, in every style", "advisories::test_yaml_that_goes_deep_is_refused",
        ("kube/yaml/events.py", "if len(stack) >= MAX_DEPTH:", "if False:"),
    ),
    guard(
        "1D", "expressions have a depth", "advisories::test_expressions_that_go_deep_are_refused",
        ("lang/jmespath/parser.py", "        if self.nesting > MAX_DEPTH:\n", "        if False:\n"),
        ("lang/cel/syntax/parser.py", "        if self._depth > MAX_DEPTH:\n", "        if False:\n"),
        ("lang/cel/syntax/parser.py", "    except RecursionError:\n        message", "    except ZeroDivisionError:\n        message"),
    ),
    guard(
        "1F", "a path is one of the table", "advisories::test_a_path_is_one_of_the_table_or_nothing",
        ("webhook/routes.py", "return replace(route, names=names) if route is not None and names and all(names) else None",
         "return Route(WebhookType.VALIDATE, _LEGACY_KINDS)"),
    ),
    guard(
        "1D", "reports are not for policies of a namespace", "advisories::test_no_policy_of_a_namespace_sees_reports",
        ("engine/match.py", "if self.policy_namespace and key.gvk.group in REPORT_GROUPS:", "if False:"),
        ("engine/match.py", "if self.policy_namespace and request.gvk.group in REPORT_GROUPS:", "if False:"),
        ("engine/cel/constraints.py", "return NO_REPORTS if gvr.group in REPORT_GROUPS else None", "return None"),
    ),
    guard(
        "1F", "a review touches nothing outside", "advisories::test_nothing_is_made_of_an_object",
        (_ENGINE, "course = _Course(request,", 'open("/dev/null").close()\n        course = _Course(request,'),
    ),
    guard(
        "1F", "the old object is the request's", "advisories::test_the_old_object_is_what_the_api_server_sent",
        ("engine/request.py", 'value["oldObject"] = self.old', 'value["oldObject"] = self.object'),
    ),
    guard(
        "1F", "images of ephemeral containers are images", "advisories::test_no_kind_of_container_is_forgotten",
        ("images/extractors.py", 'groups = ("initContainers", "containers", "ephemeralContainers")',
         'groups = ("initContainers", "containers")'),
    ),
    guard(
        "1F", "containers that are added later are judged",
        "advisories::test_the_subresource_that_adds_containers_is_judged_as_a_pod",
        ("engine/match.py", "if subresource in self.pod_subresources and", "if False and"),
    ),
    guard(
        "1D", "a bad regular expression is typed", "advisories::test_a_bad_regular_expression_is_an_error_of_its_rule",
        ("lang/regex/compiler.py", "    except re2.error as error:\n", "    except ZeroDivisionError as error:\n"),
    ),
    guard(
        "1D", "targets of a namespaced policy are in it",
        "advisories::test_a_policy_of_a_namespace_generates_nothing_outside_of_one",
        ("compiler/validation/generate.py",
         'if problem:\n        findings.error("generate-scope", (*path, "namespace"), f"target',
         'if False:\n        findings.error("generate-scope", (*path, "namespace"), f"target'),
    ),
    guard(
        "1D", "a policy of a namespace generates what has a namespace",
        "advisories::test_a_kind_that_a_variable_names_stays_in_the_namespace",
        ("engine/actions/generate.py", "    _confine(placed, run)\n", "    pass\n"),
        ("engine/broker.py", "        self._confine_kind(api_version, kind)\n        self._require_kind(\"get\",",
         "        self._require_kind(\"get\","),
    ),
    guard(
        "1D", "what is written for a policy of a namespace is in it",
        "tests/unit/controllers/test_applier.py::test_a_policy_of_a_namespace_writes_in_it",
        ("controllers/applier.py", "    if own and namespace != own:\n", "    if False:\n"),
    ),
    guard(
        "1D", "kinds are asked for by their plural", "advisories::test_every_kind_is_requested_by_its_plural",
        ("kube/kinds.py", "return GVR(self.group, self.version, self.plural)",
         "return GVR(self.group, self.version, self.kind.lower())"),
    ),
)  # fmt: skip
