"""Malformed and random pods."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from pyverno.errors import DocumentError
from pyverno.podsecurity import POD_KINDS, compile_pod_security

_KEYS = st.sampled_from(
    [
        *(
            "spec",
            "template",
            "jobTemplate",
            "metadata",
            "annotations",
            "containers",
            "initContainers",
            "volumes",
            "os",
        ),
        *(
            "securityContext",
            "privileged",
            "capabilities",
            "add",
            "drop",
            "ports",
            "hostPort",
            "hostPID",
            "name",
            "image",
        ),
        *("seccompProfile", "type", "lifecycle", "postStart", "httpGet", "host", "hostPath", "path", "sysctls", "x"),
    ]
)
_LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "ALL", "Unconfined", "windows"])
)
_JSON = st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4))
_CHECKS = [
    compile_pod_security(
        {
            "level": level,
            "version": version,
            "exclude": [{"controlName": "Capabilities", "images": ["*"]}, {"controlName": "Seccomp"}],
        }
    )
    for level in ("baseline", "restricted")
    for version in ("v1.0", "latest")
]


@settings(max_examples=150, deadline=None)
@given(spec=_JSON, metadata=_JSON, kind=st.sampled_from(sorted(POD_KINDS)), check=st.sampled_from(_CHECKS))
def test_any_json_is_judged_or_is_an_error_and_stays_as_it_is(spec, metadata, kind, check):
    """The package raises only its typed error and never changes its input."""
    template = {"spec": spec, "metadata": metadata}
    resource = {
        "Pod": template,
        "CronJob": {"spec": {"jobTemplate": {"metadata": metadata, "spec": {"template": template}}}},
    }.get(kind, {"spec": {"template": template}})
    before = copy.deepcopy(resource)
    try:
        outcome = check.check(resource, kind)
    except DocumentError:
        outcome = None
    # Text compares NaN with itself, which values do not.
    assert repr(resource) == repr(before)
    assert outcome is None or outcome.allowed == (not outcome.violations)
