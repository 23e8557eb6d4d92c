# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards that keep policies of a namespace in it (I1), and API paths canonical (I2)."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["CONFINEMENT"]

_BROKER: Final = "engine/broker.py"
_APIPATH: Final = "kube/apipath.py"
_MATCH: Final = "engine/match.py"
_CEL_HOST: Final = "engine/cel/brokerhost.py"

CONFINEMENT: Final = (
    guard(
        "I1", "API paths of other namespaces and of the cluster are refused",
        "confinement::test_a_namespaced_policy_calls_no_foreign_path"
        " admission::test_a_namespaced_policy_can_not_make_the_webhook_read_elsewhere",
        (_BROKER, "if path.namespace != self.namespace or path.is_namespace_object:", "if False:"),
    ),
    guard(
        "I1", "twin: the own namespace is open", "confinement::test_a_namespaced_policy_reads_its_own_namespace",
        (_BROKER, "if path.namespace != self.namespace or path.is_namespace_object:", "if True:"),
    ),
    guard(
        "I1", "policies of a namespace only read", "confinement::test_a_namespaced_policy_may_not_write",
        (_BROKER, "if method not in _READ_METHODS:", "if False:"),
    ),
    guard(
        "I1", "objects and ConfigMaps are asked for in the own namespace only",
        "confinement::test_a_namespaced_policy_reads_no_foreign_config_map"
        " confinement::test_a_namespaced_policy_clones_nothing_from_elsewhere"
        " confinement::test_a_namespaced_policy_patches_no_foreign_target",
        (_BROKER, "if self.namespace and namespace != self.namespace:", "if False:"),
        ("compiler/validation/generate.py",
         'if problem:\n        findings.error("generate-scope", (*path, "namespace"), f"target',
         'if False:\n        findings.error("generate-scope", (*path, "namespace"), f"target'),
        ("compiler/validation/generate.py", 'if clones.namespace != (policy.namespace or ""):', "if False:"),
        ("compiler/validation/spec.py", "if target.namespace and target.namespace != policy.namespace:", "if False:"),
    ),
    guard(
        "I2", "a name or namespace is one segment of a path",
        "path_segments::test_no_verb_sends_a_name_that_is_more_than_one_segment"
        " path_segments::test_the_name_of_a_config_map_leads_a_namespaced_policy_nowhere_else",
        (_APIPATH, "if text in _NO_SEGMENTS or not _FORBIDDEN.isdisjoint(text):", "if False:"),
    ),
    guard(
        "I2", "what a name may contain is escaped in paths",
        "path_segments::test_what_a_name_may_contain_arrives_as_the_name",
        (_APIPATH, 'return text if _SAFE.issuperset(text) else quote(text, safe=":@+,=~")', "return text"),
    ),
    guard(
        "I2", "a request for one object has a name",
        "path_segments::test_a_request_for_one_object_is_never_one_for_all",
        (_APIPATH, "    if not name:\n", "    if False:\n"),
    ),
    guard(
        "I1", "policies of a namespace read no cluster-scoped objects",
        "confinement::test_a_namespaced_policy_patches_no_cluster_scoped_target",
        (_BROKER,
         "if self.namespace and self.host.kinds.is_namespaced(GVK(*parse_api_version(api_version), kind)) is False:",
         "if False:"),
    ),
    guard(
        "I1", "services are not for context entries of namespaced policies",
        "confinement::test_a_namespaced_policy_calls_no_service"
        " egress::test_policies_of_a_namespace_call_services_only_where_that_is_opened",
        (_BROKER, "        if self.namespace:\n            raise EvaluationError(f\"a policy of namespace `{self.namespace}` may not call",
         "        if False:\n            raise EvaluationError(f\"a policy of namespace `{self.namespace}` may not call"),
    ),
    guard(
        "I1", "HTTP of expressions needs the flag",
        "egress::test_policies_of_a_namespace_call_services_only_where_that_is_opened"
        " cel_confinement::test_a_library_reads_nothing_beyond_the_namespace",
        (_BROKER,
         "if self.namespace and not (isinstance(self.host, NamespacedHttpHost) and self.host.allows_http_in_namespaces):",
         "if False:"),
        ("compiler/validation/cel.py", "    if policy.is_namespaced:\n", "    if False:\n"),
    ),
    guard(
        "I1", "a namespaced policy is about objects of its namespace",
        "confinement::test_a_namespaced_policy_matches_no_other_namespace",
        (_MATCH, 'if self.policy_namespace and (key.namespace != self.policy_namespace or key.gvk.kind == "Namespace"):',
         "if False:"),
        (_MATCH, "if self.policy_namespace and self.policy_namespace != namespace_of(request, resource):", "if False:"),
    ),
    guard(
        "I1", "owners do not cross namespaces", "confinement::test_clones_carry_no_owner_across_namespaces",
        ("engine/actions/generate.py", 'metadata.pop("ownerReferences", None)', "pass"),
    ),
    guard(
        "I1", "owners of copies in CEL do not cross namespaces",
        "cel_confinement::test_copies_in_another_namespace_have_no_owner",
        ("engine/actions/cel/generate.py", 'if is_copy and ref.namespace != metadata.get("namespace", ""):', "if False:"),
    ),
    guard(
        "I1", "the global context is closed to namespaced policies",
        "confinement::test_no_read_of_a_namespaced_policy_leaves_its_namespace"
        " confinement::test_no_context_entry_of_a_namespaced_policy_reads_elsewhere"
        " cel_confinement::test_a_library_reads_nothing_beyond_the_namespace",
        (_BROKER, 'if self.namespace:\n            raise EvaluationError(f"a policy of namespace '
         '`{self.namespace}` may not read the global context")', "if False:\n            pass"),
        ("compiler/validation/context.py", "if isinstance(entry, GlobalReference):", "if False:"),
        ("compiler/validation/cel.py", 'if uses_name(expression.text, "globalContext"):', "if False:"),
    ),
    guard(
        "I1", "the author of a namespaced policy learns that the global context is closed",
        "confinement::test_the_global_context_is_closed_when_a_policy_is_made",
        ("compiler/validation/context.py", "if isinstance(entry, GlobalReference):", "if False:"),
    ),
    guard(
        "I1", "credentials of registries are those of the own namespace",
        "confinement::test_no_read_of_a_namespaced_policy_leaves_its_namespace"
        " confinement::test_no_context_entry_of_a_namespaced_policy_reads_elsewhere",
        (_BROKER, "credentials = self._confine_credentials(credentials)", "pass"),
    ),
    guard(
        "I1", "a new read of the broker is named in the law",
        "confinement::test_every_read_is_confined_or_open_on_purpose",
        (_BROKER, "    def trust_root(self)", "    def another_read(self)"),
    ),
    guard(
        "I1", "CEL: generated objects stay in the namespace",
        "cel_confinement::test_nothing_is_generated_beyond_the_namespace",
        (_CEL_HOST, "if own and namespace != own:", "if False:"),
    ),
    guard(
        "I1", "CEL: kinds of the whole cluster are refused",
        "cel_confinement::test_a_library_reads_nothing_beyond_the_namespace",
        (_CEL_HOST, "if known is not None and not known.namespaced:", "if False:"),
        (_BROKER, "if path.namespace != self.namespace or path.is_namespace_object:", "if False:"),
    ),
    guard(
        "I1", "CEL: the authorizer tells nothing of other namespaces",
        "cel_confinement::test_the_authorizer_is_refused_for_other_namespaces",
        (_CEL_HOST, "self._confine_authorization(check)", "pass"),
    ),
    guard(
        "I1", "CEL: functions for other namespaces are not declared",
        "cel_confinement::test_other_namespaces_can_not_be_named",
        ("lang/cel/presets.py", "for each in (NAMESPACED_RESOURCE, NAMESPACED_GENERATOR)}",
         "for each in (NAMESPACED_GENERATOR,)}"),
    ),
    guard(
        "I1", "CEL, twin: the own namespace answers", "cel_confinement::test_a_library_answers_for_the_own_namespace",
        (_BROKER, "if path.namespace != self.namespace or path.is_namespace_object:", "if True:"),
    ),
    guard(
        "I2", "dot segments are refused",
        "confinement::test_odd_paths_are_refused_for_every_policy"
        " confinement::test_an_odd_path_that_variables_made_is_refused",
        (_APIPATH, 'if part in (".", ".."):', "if False:"),
    ),
    guard(
        "I2", "encoded and odd characters are refused", "confinement::test_odd_paths_are_refused_for_every_policy",
        (_APIPATH, "if bad is not None:", "if False:"),
    ),
    guard(
        "I2", "empty segments are refused", "confinement::test_odd_paths_are_refused_for_every_policy",
        (_APIPATH, "if not part:", "if False:"),
    ),
    guard(
        "I2", "parameters are on a list", "confinement::test_odd_paths_are_refused_for_every_policy",
        (_APIPATH, "if key not in _QUERY_KEYS:", "if False:"),
    ),
    guard(
        "I2", "the checked path is the one that is sent",
        "confinement::test_the_path_that_is_sent_is_the_one_that_was_checked",
        (_APIPATH, 'return f"{self.path}?{urlencode(self.query)}" if self.query else self.path', "return self.path"),
    ),
)  # fmt: skip
