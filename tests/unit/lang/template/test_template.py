"""Compiled templates: rendering, escapes, errors and stand-ins."""

from __future__ import annotations

import copy

import pytest

from pyverno.errors import BudgetExceededError, HostError, SubstitutionError, UnknownKeyError
from pyverno.lang.runtime import Budget, Runtime
from pyverno.lang.template import compile_template

SCOPE = {
    "a": "x",
    "i": 5,
    "l": [1, "b"],
    "n": None,
    "v": "{{ a }}",
    "m": {"k": "{{ a }}"},
    "name": "key1",
    "d": {"key1": "deep", "a.b": "dotted"},
    "html": "<&>",
    "bad": "a'] || `1`",
}


def render(document, scope=None, **options):
    """Compile and render in one step."""
    return compile_template(document).render(SCOPE if scope is None else scope, Runtime(), **options)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("{{ i }}", 5),
        ("{{ n }}", None),
        ("{{ l }}", [1, "b"]),
        ("{{a}}-{{i}}", "x-5"),
        ("{{a}}{{i}}{{a}}", "x5x"),
        ("v={{ l }}", 'v=[1,"b"]'),
        ("v={{ n }}", "v=null"),
        ("v={{ html }} {{ {h: html} }}", 'v=<&> {"h":"\\u003c\\u0026\\u003e"}'),
        ("{{ d.{{name}} }}", "deep"),
        ("{{ d.{{ join('', ['key', '1']) }} }}", "deep"),
        ("p {{ d.{{name}} }} q", "p deep q"),
        ("{{ l[{{ length(l) }}] }}", None),
        ("{{ '{{a}}-{{name}}' }}", "x-key1"),
        ("{{ {x: a} }}", {"x": "x"}),
        ("{{ {x: {y: a}} }}", "{{ {x: {y: a}} }}"),
        ("\\{{ a }}", "{{ a }}"),
        ("\\{{ d.{{name}} }}", "{{ d.key1 }}"),
        ("{{ zz || 'd' }}", "d"),
        (" {{ i }}", " 5"),
        ("é{{ a }}", "éx"),
        ({"k": ["{{ i }}", {"z": "{{ a }}"}]}, {"k": [5, {"z": "x"}]}),
        ({"a{{ i }}": 1}, {"a5": 1}),
        ({"{{ a }}": "{{ i }}", "b": 2}, {"x": 5, "b": 2}),
        ({"{{ n }}": 1}, {"{{ n }}": 1}),
        ({"spec": {"c": "v", "r": "$(../c)-{{ a }}"}}, {"spec": {"c": "v", "r": "v-x"}}),
        (5, 5),
    ],
)
def test_variables_become_their_values(document, expected):
    """A whole string keeps the type of its value, other values become text."""
    assert expected == render(document)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("{{ v }}", "{{ a }}"),
        ("p {{ v }}", "p {{ a }}"),
        ("p {{- v }}", "p {{ a }}"),
        ("{{ m }}", {"k": "{{ a }}"}),
        ("{{- l }} {{ a }}", '[1,"b"] x'),
    ],
)
def test_values_are_never_scanned_again(document, expected):
    """The value of a substitution is data, even where it looks like a variable."""
    assert expected == render(document)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("{{ v }}", "{{ a }}"),
        ("p {{ v }}", "p x"),
        ("p {{- v }}", "p {{ a }}"),
        ("{{ m }}", {"k": "x"}),
        ("{{- v }} {{ v }}", "{{ a }} x"),
        ("{{ v }} {{- v }}", "{{ a }} {{ a }}"),
        ("{{ d.{{name}} }}", "deep"),
        ("\\{{ a }}", "{{ a }}"),
        ({"k{{ v }}": "{{ i }}"}, {"kx": 5}),
    ],
)
def test_rescanning_templates_read_values_as_templates(document, expected):
    """The compatibility mode does as Kyverno does."""
    assert expected == compile_template(document, rescan=True).render(SCOPE, Runtime())


def test_rescanning_ends_after_sixteen_rounds():
    """A value that holds itself does not loop."""
    for text in ("p {{ s }}", "{{ m }}"):
        with pytest.raises(BudgetExceededError):
            compile_template(text, rescan=True).render({"s": "p {{ s }}", "m": {"k": "{{ m }}"}}, Runtime())


def test_inner_values_are_names_and_texts_but_never_syntax():
    """A value with JMESPath in it stays one field name, or one string."""
    assert render("{{ d.{{key}} }}", {**SCOPE, "key": "a.b"}) == "dotted"
    assert render("{{ '{{bad}}' }}") == "a'] || `1`"
    with pytest.raises(SubstitutionError):
        render("{{ d.{{bad}} }}")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{{ zz }}", 'failed to resolve zz at path : JMESPath query failed: Unknown key "zz" in path'),
        (
            {"a/b": [{"c": "x {{ d.zz }}"}]},
            'failed to resolve d.zz at path /a\\/b/0/c: JMESPath query failed: Unknown key "zz" in path',
        ),
        (
            "{{ d.{{a}} }}",
            "failed to resolve d.{{a}} at path : JMESPath query failed: "
            "Unknown key (1 characters of a nested variable) in path",
        ),
        ("{{ }}", "failed to resolve  at path : invalid query (nil)"),
        ({"{{ i }}": 1}, 'expected string after substituting variables in key "{{ i }}"'),
        ({"{{ m }}": 1}, 'expected string after substituting variables in key "{{ m }}"'),
        ({"a": "{{ zz }}", "b": "$(/c)"}, "got nil resolved variable $(/c) at path /b: <nil>"),
    ],
)
def test_errors_have_the_texts_of_kyverno(document, message):
    """The expression, the path and the reason."""
    with pytest.raises(SubstitutionError) as raised:
        render(document)
    assert message == raised.value.message


def test_the_path_of_a_larger_document_precedes_the_own_path():
    """Both at load and at rendering."""
    template = compile_template({"x": "{{ zz }}"}, path="/spec")
    with pytest.raises(SubstitutionError, match="at path /rule/spec/x: "):
        template.render({}, Runtime(), path="/rule")


def test_an_expression_that_does_not_parse_is_known_at_load():
    """It is listed in `errors`, and rendering raises it."""
    template = compile_template({"x": "{{ a-1 }}", "y": "{{ b }}"})
    assert len(template.errors) == 1
    assert template.errors[0].message.startswith("failed to resolve a-1 at path /x: incorrect query a-1: SyntaxError")
    with pytest.raises(SubstitutionError, match="incorrect query a-1"):
        template.render({"a": 1, "b": 2}, Runtime())


def test_on_delete_the_old_object_is_meant():
    """The text `request.object` is replaced wherever it is in an expression."""
    scope = {"request": {"object": {"n": "new", "t": "n"}, "oldObject": {"n": "old", "t": "n"}}}
    assert render("{{ request.object.n }}", scope, delete_request=True) == "old"
    assert render("{{ request.object.{{ request.object.t }} }}", scope, delete_request=True) == "old"
    assert render("{{ request.object.n }}", scope) == "new"
    with pytest.raises(SubstitutionError, match=r"failed to resolve request\.oldObject\.z at path : "):
        render("{{ request.object.z }}", scope, delete_request=True)


def test_the_variable_at_means_the_same_place_of_the_object():
    """`target` comes before `request.object`; the rule's own segments are left out."""
    document = {"mutate": {"patch": {"spec": {"port": "{{ regex_match('(443)', '{{@}}') }}", "kind": "{{@}}"}}}}
    scope = {"request": {"object": {"spec": {"port": "443", "kind": "foo"}}}}
    assert render(document, scope)["mutate"]["patch"]["spec"] == {"port": True, "kind": "foo"}
    scope["target"] = {"spec": {"port": "80", "kind": "bar"}}
    assert render(document, scope)["mutate"]["patch"]["spec"] == {"port": False, "kind": "bar"}


def test_static_parts_are_shared_and_originals_untouched():
    """Rendering makes a new document around the same static objects."""
    document = {"static": {"a": [1]}, "dynamic": {"b": "{{ a }}", "same": [2]}}
    before = copy.deepcopy(document)
    result = render(document)
    assert before == document
    assert result["static"] is document["static"]
    assert result["dynamic"]["same"] is document["dynamic"]["same"]
    assert result["dynamic"]["b"] == "x"


def test_a_document_without_variables_renders_to_itself():
    """Static templates cost nothing."""
    document = {"a": ["b", 1]}
    template = compile_template(document)
    assert template.is_static
    assert template.render({}, Runtime()) is document


def test_variables_are_listed_with_their_paths():
    """Inner ones first, in document order, keys with the path of their map."""
    template = compile_template({"a": ["{{ b.{{c}} }}"], "d{{ e }}": "{{- f }} \\{{ g }}"}, path="/spec")
    assert [(item.text, item.path, item.is_shallow, item.in_key) for item in template.variables] == [
        ("c", "/spec/a/0", False, False),
        ("b.{{c}}", "/spec/a/0", False, False),
        ("e", "/spec", False, True),
        ("f", "/spec/d{{ e }}", True, False),
    ]
    assert {"b"} == template.variables[1].expression.roots


def test_a_text_that_would_grow_too_large_is_not_made():
    """The size is looked at before the text is joined."""
    runtime = Runtime(budget=Budget(text_bytes=100))
    with pytest.raises(BudgetExceededError):
        compile_template("{{ t }}{{ t }}").render({"t": "x" * 60}, runtime)


def test_an_error_of_the_world_keeps_its_text():
    """It is no failure of the query."""

    class Lazy(dict):
        def __missing__(self, name):
            raise HostError(f"no answer for {name}") if name == "cm" else UnknownKeyError(name)

    with pytest.raises(SubstitutionError) as raised:
        compile_template("{{ cm.data || 'x' }}").render(Lazy(), Runtime())
    assert raised.value.message == "failed to resolve cm.data || 'x' at path : no answer for cm"


def test_a_document_that_is_too_deep_is_a_typed_error():
    """Neither compiling nor rendering ends in a crash."""
    document: object = "{{ a }}"
    for _ in range(10_000):
        document = {"k": document}
    template = compile_template(document)
    try:
        template.render(SCOPE, Runtime())
    except SubstitutionError as error:
        assert "nested too deeply" in error.message
