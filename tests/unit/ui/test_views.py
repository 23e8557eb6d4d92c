"""Filters with names, out of files of our own form and out of boards of Policy Reporter."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from pyverno.errors import UsageError
from pyverno.kube.yaml.documents import load_documents
from pyverno.ui.access.identity import Admission
from pyverno.ui.views import View, read_views


def views(text: str) -> list[View]:
    """Return the views of a text."""
    return read_views(load_documents(text, file="views.yaml"))


def test_own_views_hold_filters_as_addresses_do() -> None:
    """Lists are alternatives; the grammar is that of the pages."""
    (found,) = views("views: [{name: Failing, filter: {status: [fail, error], namespace: prod-*}}]")
    assert ("Failing", "status=fail%2Cerror&namespace=prod-%2A") == (found.name, found.query)


BOARD = """
apiVersion: ui.policyreporter.kyverno.io/v1alpha1
kind: CustomBoard
metadata: {name: infra}
spec:
  title: Infrastructure
  namespaces: {list: [kube-system, monitoring]}
  clusterScope: {enabled: true}
  sources: {list: [kyverno]}
  policyReports: {selector: {matchLabels: {team: blue}}}
  filter:
    include: {results: [fail, warn]}
    exclude: {namespaceKinds: [ReplicaSet]}
"""


def test_a_board_of_policy_reporter_becomes_a_filter() -> None:
    """Namespaces with cluster-scoped objects, sources, labels of reports, and its filter."""
    (found,) = views(BOARD)
    assert "Infrastructure" == found.name
    assert [
        ("namespace", "kube-system,monitoring,-"),
        ("source", "kyverno"),
        ("label.team", "blue"),
        ("status", "fail,warn"),
        ("kind", "!ReplicaSet"),
    ] == parse_qsl(found.query)
    assert () == found.notes


def test_a_board_of_a_namespace_shows_this_namespace() -> None:
    """Its filter cannot select other namespaces."""
    text = BOARD.replace("kind: CustomBoard", "kind: NamespaceCustomBoard").replace(
        "{name: infra}", "{name: infra, namespace: team}"
    )
    (found,) = views(text)
    assert [("namespace", "team")] == [each for each in parse_qsl(found.query) if each[0] == "namespace"]


def test_what_a_board_has_and_a_filter_has_not_is_a_note() -> None:
    """Nothing is left out without a word."""
    text = """
    customBoards:
    - name: a
      namespaces: {selector: {team: [blue, red]}}
      filter: {include: {resources: [pods.v1]}}
      unknown: 1
    """
    (found,) = views(text)
    assert ["unknown", "namespaces.selector", "filter.include.resources"] == [
        note.split("`")[1] for note in found.notes
    ]


def test_a_board_selects_namespaces_by_labels_and_persons_by_groups() -> None:
    """Both forms of a selector; the namespaces are those that have the labels when the view is shown."""
    (found,) = views(
        "customBoards: [{name: a, namespaces: {list: [x], selector: {matchLabels: {team: blue}}}, "
        "accessControl: {emails: [ann@example.org], groups: [admins]}}]"
    )
    assert ({"team": "blue"}, Admission(("ann@example.org",), ("admins",))) == (found.labels, found.admission)
    assert "namespace=x%2Ca%2Cb" == found.within(["b", "a"]).query
    (alone,) = views("customBoards: [{name: a, namespaces: {selector: {team: blue}}, sources: {list: [kyverno]}}]")
    assert [("namespace", "!*"), ("source", "kyverno")] == parse_qsl(alone.within([]).query)


CONFIGURATION = """
clusters:
- {name: prod, host: 'http://policy-reporter:8080', skipTLS: true, secretRef: login, basicAuth: {username: u},
   plugins: [{name: kyverno, host: 'http://kyverno-plugin:8080/api'}], accessControl: {groups: [a]}}
sources:
- {name: kyverno, type: status, exceptions: true, excludes: {namespaceKinds: [ReplicaSet], results: [pass]}}
customBoards:
- {name: System, namespaces: {list: [kube-system]}, sources: {list: [kyverno]}, clusterScope: {enabled: true},
   display: results, renderOptions: {dashboardMode: compact, resultView: results}}
- {name: Team, namespaces: {selector: {team: blue}}, accessControl: {emails: [ann@example.org]}}
ui: {banner: Prod, logo: {path: '', disabled: false}, displayMode: dark}
openIDConnect: {enabled: true, discoveryUrl: 'https://login.example', clientId: c, groupClaim: groups}
server: {port: 8080, cors: true, sessions: {storage: filesystem}}
"""


def test_a_configuration_of_policy_reporters_ui_loads() -> None:
    """Its boards become views; flags of this server stand for the rest."""
    system, team = views(CONFIGURATION)
    assert ("System", [("namespace", "kube-system,-"), ("source", "kyverno")], ()) == (
        system.name,
        parse_qsl(system.query),
        system.notes,
    )
    assert ("Team", {"team": "blue"}, ()) == (team.name, team.labels, team.notes)


def test_a_board_of_resources_leads_to_resources() -> None:
    """`renderOptions` or `display` selects the resources page; the default is the results page."""
    boards = views(
        "customBoards: [{name: a, renderOptions: {resultView: resources}}, {name: b, display: resources}, {name: c}]"
    )
    assert ["resources", "resources", "results"] == [each.page for each in boards]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1", "views.yaml:1:1: expected `views`"),
        ("views: [{filter: {status: fail}}]", "a view has no name"),
        ("views: [{name: a, filter: {staus: fail}}]", "view `a`: unknown parameter `staus`"),
        ("views: [{name: a, filter: {status: bad}}]", "view `a`: unknown status `bad`"),
        ("views: {name: a}", "`views` must be a list"),
        ("views: [{name: a, filter: [fail]}]", "`filter` must be a mapping"),
        ("customBoards: [{name: a, sources: [kyverno]}]", "`sources` must be a mapping"),
    ],
)
def test_a_wrong_view_is_one_error(text: str, reason: str) -> None:
    """With its place and its name: a view that selects everything by mistake would hide what it is for."""
    with pytest.raises(UsageError) as caught:
        views(text)
    assert reason in str(caught.value)
