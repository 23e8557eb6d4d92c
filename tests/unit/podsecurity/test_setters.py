"""Messages that name the pod and the containers that set a field."""

import pytest

from pyverno.podsecurity.setters import setters


@pytest.mark.parametrize(
    ("by_pod", "names", "others", "expected"),
    [
        (True, [], (), "pod"),
        (False, ["a"], (), 'container "a"'),
        (None, ["a", "b"], (), 'containers "a", "b"'),
        (True, ["a"], ("annotation",), 'pod and container "a" and annotation'),
    ],
)
def test_setters_are_joined_by_and(by_pod, names, others, expected):
    """The pod comes first, then containers, then the rest."""
    assert setters(by_pod, names, *others) == expected
