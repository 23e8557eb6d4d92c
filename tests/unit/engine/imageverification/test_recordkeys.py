"""Keys of image records: what they seal, and what shows them."""

from __future__ import annotations

import pytest

from pyverno.engine.imageverification.recordkeys import NO_RECORD_KEYS, RecordKeys, Seal

NEW, OLD = RecordKeys(b"n" * 32, b"o" * 32), RecordKeys(b"o" * 32)


def test_a_seal_of_the_previous_key_still_counts() -> None:
    """A rotation ends records of keys before the previous one only."""
    seal = OLD.seal(b"text")
    assert [True, False, False] == [
        keys.holds(b"text", seal) for keys in (NEW, RecordKeys(b"n" * 32, b"m" * 32), NO_RECORD_KEYS)
    ]


@pytest.mark.parametrize(
    "seal",
    [
        None,
        Seal("", ""),
        Seal(NEW.current, ""),
        Seal(NEW.current, "é\ud800"),
        Seal(OLD.current, NEW.seal(b"text").code),  # type: ignore[union-attr]
        Seal("other", NEW.seal(b"text").code),  # type: ignore[union-attr]
    ],
)
def test_nothing_else_is_a_seal(seal: Seal | None) -> None:
    """Any text may stand in an annotation."""
    assert not NEW.holds(b"text", seal)


def test_no_key_is_shown() -> None:
    """Neither a representation nor the id of a key holds it."""
    shown = f"{NEW!r} {NEW} {NEW.seal(b'text')}"
    assert ("<RecordKeys: 2>", False) == (repr(NEW), any(text in shown for text in ("nnnn", "6e6e6e")))


def test_without_keys_nothing_is_sealed() -> None:
    """An offline command has none."""
    assert (None, False, "") == (NO_RECORD_KEYS.seal(b"text"), bool(NO_RECORD_KEYS), NO_RECORD_KEYS.current)


def test_a_short_key_is_refused() -> None:
    """It could be guessed."""
    with pytest.raises(ValueError, match="32 bytes"):
        RecordKeys(b"short")
