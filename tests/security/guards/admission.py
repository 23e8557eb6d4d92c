# ruff: noqa: E501 - texts of the source stand here as they are there
"""The guards of the webhook and of its reviews: namespaces, paths, ciphers, Pod Security Standards."""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["ADMISSION"]


ADMISSION: Final = (
    guard(
        "I5", "a namespace that cannot be read is no namespace without labels",
        "namespace_object::test_a_namespace_that_cannot_be_read_admits_nothing",
        ("webhook/admission.py",
         "    known = cluster.namespace(admission_request.namespace)\n"
         '    found = known if known is not None else host.get_object("v1", "Namespace", "", admission_request.namespace)\n',
         "    try:\n        found = cluster.namespace(admission_request.namespace) or {}\n"
         "    except HostError:\n        found = {}\n"),
    ),
    guard(
        "I5", "conditions see the namespace", "namespace_object::test_conditions_see_the_namespace_of_the_request",
        ("engine/cel/session.py", '"namespaceObject": _namespace_object(request),', '"namespaceObject": None,'),
    ),
    guard(
        "1F", "only the API server is answered", "admission::test_only_the_api_server_is_answered_with_the_flag",
        ("webhook/tls.py", "return self._clients.admit(certificate)", "return True"),
    ),
    guard(
        "I15", "every kind has its path", "admission::test_every_kind_of_policy_that_is_watched_has_its_path",
        ("webhook/routes.py", '    route = CEL_ROUTES.get("/" + "/".join(parts[:width]))', "    route = None"),
    ),
    guard(
        "PSS", "ephemeral containers are containers",
        "pod_security::test_a_violation_in_any_kind_of_container_is_denied",
        ("podsecurity/pod.py", '*_containers(reader, spec, "ephemeralContainers", "v1.EphemeralContainer"),', ""),
    ),
    guard(
        "PSS", "a check is asked at every version", "pod_security::test_restricted_holds_at_every_version",
        ("podsecurity/control.py", "        return chosen\n",
         "        return chosen if version.latest or version.minor > 21 else Variant(chosen.since, lambda _: None)\n"),
    ),
    guard(
        "PSS", "namespaces of the host are denied", "pod_security::test_host_namespaces_are_denied",
        ("podsecurity/controls/host_namespaces.py", "if not pod.host_namespaces:", "if True:"),
    ),
    guard(
        "TLS", "old protocols and ciphers are refused",
        "tests/unit/webhook/test_server.py::test_old_protocols_and_ciphers_are_refused"
        " tls::test_no_suite_but_the_six_is_spoken",
        ("webhook/tls.py", "context.set_ciphers(_CIPHERS)", 'context.set_ciphers("ALL:@SECLEVEL=0")'),
    ),
    guard(
        "I14", "a cache that does not follow says so",
        "tests/unit/cluster/test_informer.py::test_a_cache_is_stale_while_it_has_no_watch_and_recovers_without_an_event",
        ("cluster/informer.py", "            self._broken_since = self._heard if now - self._heard >= self._idle_seconds else now",
         "            pass"),
    ),
    guard(
        "I14", "a watch without a word is no proof",
        "tests/unit/cluster/test_informer.py::test_a_silent_watch_leads_to_another_list",
        ("cluster/informer.py", "        self._is_silent = True", "        self._is_silent = False"),
    ),
    guard(
        "I14", "bytes that are no events are no proof",
        "tests/unit/cluster/test_informer.py::test_bytes_that_are_no_events_keep_no_cache_fresh",
        ("cluster/client.py", "                    async with asyncio.timeout(idle_seconds):\n",
         "                    async with asyncio.timeout(None):\n"),
        may_hang=True,
    ),
    guard(
        "I14", "entries that cannot be followed are errors",
        "tests/unit/controllers/state/test_staleentries.py::test_objects_that_cannot_be_followed_are_an_error_within_the_bound",
        ("controllers/state/globalentries.py", "        if self._informer.is_stale:", "        if False:"),
    ),
    guard(
        "I14", "a replica whose caches do not follow is not ready",
        "tests/unit/controllers/state/test_stalecaches.py::test_a_replica_that_cannot_follow_a_resource_is_not_ready",
        ("controllers/state/clusterstate.py", "            problem = informer.problem()", '            problem = ""'),
        may_hang=True,
    ),
    guard(
        "I14", "a leaf names the address that serves",
        "tests/unit/controllers/certificates/test_secrets.py::test_a_leaf_without_the_configured_names_is_not_good",
        ("controllers/certificates/secrets.py", "        if is_ours and not set(_alternatives(settings)) <= set(names):", "        if False:"),
    ),
    guard(
        "I14", "work ends before the lease does",
        "tests/unit/cluster/test_leases.py::test_work_ends_before_the_lease_does_when_the_server_is_away",
        ("cluster/leases.py", "            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)",
         "            await asyncio.wait((working,))"),
    ),
)  # fmt: skip
