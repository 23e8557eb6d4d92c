"""Laws of templates over arbitrary documents and scopes."""

from __future__ import annotations

import contextlib
import copy
import json

from pyverno.errors import PyvernoError
from pyverno.lang.runtime import Runtime
from pyverno.lang.template import compile_template
from tests.property import inputs as st
from tests.property.inputs import law

CANARY = "{{ canary }}"

pieces = st.sampled_from(
    [
        "{{",
        "}}",
        "{",
        "}",
        "\\",
        "$(",
        ")",
        " ",
        "a",
        "b.c",
        "@",
        "-",
        "'",
        '"',
        "`",
        "[0]",
        "|",
        "x",
        "/",
        "..",
        "é",
        "\ue000",
    ]
)
texts = st.one_of(st.text(max_size=20), st.lists(pieces, max_size=12).map("".join))
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), texts)
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)
names = st.sampled_from(["a", "b", "c"])
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 9), st.sampled_from(["x", "y z", "a"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)


@law(documents, st.booleans(), st.booleans(), few=300)
def test_compiling_and_rendering_raise_typed_errors_only(document, rescan, delete_request):
    """For any text the result is a value or one of our own errors, and the document stays unchanged."""
    before = copy.deepcopy(document)
    template = compile_template(document, rescan=rescan)
    scope = {"a": "{{ a }}", "b": {"c": [1, "$(x)"]}, "x": None}
    with contextlib.suppress(PyvernoError):
        template.render(scope, Runtime(), delete_request=delete_request)
    assert before == document


@law(plain, few=200)
def test_static_documents_render_to_themselves(document):
    """Rendering returns the same object, not a copy."""
    template = compile_template(document)
    assert template.is_static
    assert template.render({}, Runtime()) is document


@law(plain, names, st.booleans(), few=200)
def test_data_is_never_evaluated(value, name, embedded):
    """A canary inside data comes out as it went in, and is never resolved."""

    def with_canaries(item):
        if isinstance(item, str):
            return item + CANARY
        if isinstance(item, list):
            return [with_canaries(part) for part in item]
        if isinstance(item, dict):
            return {key + CANARY: with_canaries(part) for key, part in item.items()}
        return item

    data = with_canaries(value)
    text = f"{{{{ {name} }}}}"
    scope = {name: data, "canary": "EVALUATED"}
    result = compile_template({"k": f"<{text}> {text}" if embedded else text}).render(scope, Runtime())
    assert "EVALUATED" not in json.dumps(result)
    if not embedded:
        assert result["k"] == data
    elif isinstance(data, str):
        assert f"<{data}> {data}" == result["k"]


@law(texts, names, few=200)
def test_inner_values_are_never_syntax(value, name):
    """A nested variable selects the field of that very name, or puts that very text into a string."""
    scope = {"f": {value: "found"}, name: value}
    template = compile_template([f"{{{{ f.{{{{ {name} }}}} }}}}", f"{{{{ '{{{{ {name} }}}}' }}}}"])
    assert ["found", value] == template.render(scope, Runtime())


fragments = st.sampled_from(
    ["{{", "}}", "{{ a }}", "{{- b }}", "{{ c.b }}", "{", "}", "\\", ".", " ", "a", "c.", "b", "-", "x: ", "'"]
)


@law(st.lists(fragments, max_size=10).map("".join), few=500)
def test_one_pass_at_load_finds_what_repeated_scanning_finds(text):
    """While values are plain names that the text does not hold, both modes give the same value or both fail."""
    scope = {"a": "Q", "b": "Z", "c": {"a": "Q", "b": "Z", "Q": "Q", "Z": "Z"}, "Q": "Z", "Z": "Q"}

    def outcome(rescan):
        try:
            return compile_template(text, rescan=rescan).render(scope, Runtime())
        except PyvernoError:
            return PyvernoError

    assert outcome(True) == outcome(False)
