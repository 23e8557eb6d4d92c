"""The reading of plain command lines agrees with click, for the flags of the commands that have it."""

from __future__ import annotations

from pyverno.cli.apply.command import apply
from pyverno.cli.apply.flags import FLAGS
from pyverno.cli.args.flags import parse_fast
from tests.property import inputs as st
from tests.property.inputs import law

NAMES = [name for flag in FLAGS for name in flag.names]
WORDS = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from(
        ["a.yaml", "b,c", ",", "", "yaml", "json", "text", "sarif", "3", "0x3", "-1", "1h", "²", "a b", "é"]
    ),
    st.sampled_from(
        ["-", "--", "--help", "--resource=a", "-r=a", "-ra", "-pt", '"a,b"', "--v=4", "-v", "--table=false"]
    ),
)
PAIRS = st.tuples(
    st.sampled_from([name for flag in FLAGS if flag.kind != "switch" for name in flag.names]),
    st.sampled_from(["a", "b,c", "json", "7", "2h30m"]),
)
LINES = st.lists(st.one_of(WORDS.map(lambda word: (word,)), PAIRS), max_size=6).map(
    lambda parts: [word for part in parts for word in part]
)


@law(LINES, few=400)
def test_the_fast_parser_agrees_with_click(words: list[str]) -> None:
    """Arguments and values are equal in type and value; a command line that click refuses is never accepted."""
    found = parse_fast(FLAGS, words)
    if found is not None:
        expected = dict(apply.make_context("apply", list(words)).params)
        assert expected.pop("policies") == found[0]
        assert repr(sorted(expected.items())) == repr(sorted(found[1].items()))
