"""CEL expressions about objects, with the types that their context wants."""

from __future__ import annotations

from random import Random

from pyverno.kube.json import JSON, JSONObject
from tests.differential.generate.draws import chance, some

__all__ = ["about_object", "text_about_object"]

_NUMBERS = ("0", "1", "2", "5", "80", "-1")
_TEXTS = ("'a'", "'web'", "'nginx'", "''", "'1Gi'", "'500m'", "'r1'", "'1.2.3'", "'10.0.0.1'")
_TEXT_TESTS = ("startsWith({})", "endsWith({})", "contains({})", "matches('^[a-z]+')", "matches({})")
_TEXT_FUNCTIONS = (
    "lowerAscii()", "upperAscii()", "trim()", "substring(0, 1)", "replace('a', 'b')", "split('a').join('-')",
    "charAt(0)",
)  # fmt: skip


def about_object(random: Random, sample: JSONObject, *, root: str = "object", depth: int = 3) -> str:
    """Return a boolean expression about an object like the sample."""
    return _Writer(random, root, sample).boolean(depth)


def text_about_object(random: Random, sample: JSONObject, *, root: str = "object") -> str:
    """Return an expression that is a text about an object like the sample."""
    return _Writer(random, root, sample).text(2)


class _Writer:
    """Writes expressions about one sample."""

    def __init__(self, random: Random, root: str, sample: JSON) -> None:
        self._random = random
        self._root = root
        self._sample = sample
        self._loops = 0

    def _place(self) -> tuple[str, JSON, str]:
        """Return an expression for a place of the sample, the value there, and a test for its presence."""
        written, value, guard = self._root, self._sample, "true"
        for _ in range(self._random.randint(1, 5)):
            if isinstance(value, dict) and value:
                key = self._random.choice(tuple(value))
                if chance(self._random, 0.05):
                    key = "missing"
                if key.isidentifier():
                    guard, written = f"has({written}.{key})", f"{written}.{key}"
                else:
                    guard, written = f"{key!r} in {written}", f"{written}[{key!r}]"
                value = value.get(key)
            elif isinstance(value, list) and value:
                index = self._random.randrange(len(value))
                guard, written, value = f"size({written}) > {index}", f"{written}[{index}]", value[index]
            else:
                break
        return written, value, guard

    def boolean(self, depth: int) -> str:
        """Return a boolean expression."""
        random = self._random
        roll = random.random()
        if depth > 0 and roll < 0.3:
            operator = random.choice(("&&", "||"))
            return f"({self.boolean(depth - 1)} {operator} {self.boolean(depth - 1)})"
        if depth > 0 and roll < 0.36:
            return f"!({self.boolean(depth - 1)})"
        if depth > 0 and roll < 0.42:
            return f"({self.boolean(depth - 1)} ? {self.boolean(depth - 1)} : {self.boolean(depth - 1)})"
        if roll < 0.6:
            return self._loop(depth)
        place, value, guard = self._place()
        test = self._test(place, value)
        if chance(random, 0.5):
            return f"({guard} && {test})"
        return f"({test})"

    def _test(self, place: str, value: JSON) -> str:
        random = self._random
        if chance(random, 0.1):
            return self._optional_test(place)
        if isinstance(value, bool):
            return random.choice((place, f"!{place}", f"{place} == true", f"{place} != false"))
        if isinstance(value, int | float):
            number = random.choice(_NUMBERS)
            return random.choice(
                (
                    f"{place} {random.choice(('<', '<=', '>', '>=', '==', '!='))} {number}",
                    f"{place} in [{number}, 80]",
                    f"int({place}) % 2 == 0",
                    f"{place} == {number}.0",
                    f"string({place}) == {random.choice(_TEXTS)}",
                )
            )
        if isinstance(value, str):
            return self._text_test(place)
        if isinstance(value, list):
            return random.choice(
                (
                    f"size({place}) {random.choice(('<', '>', '=='))} {random.choice(_NUMBERS)}",
                    f"{place}.size() > 1",
                    f"{place}.exists(e, e == {random.choice(_TEXTS)})",
                    f"{random.choice(_TEXTS)} in {place}",
                    f"{place}.isSorted()",
                    f"{place} == []",
                )
            )
        if isinstance(value, dict):
            return random.choice(
                (
                    f"size({place}) > 1",
                    f"{place}.all(k, k != 'a')",
                    f"{place}.exists(k, {place}[k] == 'web')",
                    f"'app' in {place}",
                    f"{place}.?app.orValue('x') == 'web'",
                    f"{place} == {{}}",
                )
            )
        return random.choice((f"{place} == null", f"has({place}.a)", f"type({place}) == null_type"))

    def _optional_test(self, place: str) -> str:
        """Return a test of an optional chain, whose start may hold null, a scalar or a list as well as a map."""
        start, _, last = place.rpartition(".")
        if start and last.isidentifier() and chance(self._random, 0.6):
            place = f"{start}.?{last}"
        chain = "".join(some(self._random, (".?a", "[?0]", ".?name", ".b", "[?'app']"), 1, 2))
        return self._random.choice((f"{place}{chain}.hasValue()", f"{place}{chain}.orValue('x') == 'x'"))

    def _text_test(self, place: str) -> str:
        random = self._random
        text = random.choice(_TEXTS)
        return random.choice(
            (
                f"{place} == {text}",
                f"{place} != {text}",
                f"{place} in [{text}, 'x']",
                f"{place}.{random.choice(_TEXT_TESTS).format(text)}",
                f"{place}.{random.choice(_TEXT_FUNCTIONS)} == {text}",
                f"size({place}) > 3",
                f"isQuantity({place}) && quantity({place}).isGreaterThan(quantity('500m'))",
                f"quantity({place}).compareTo(quantity('1')) >= 0",
                f"isSemver({place}) && semver({place}).isGreaterThan(semver('1.0.0'))",
                f"isIP({place}) || isCIDR({place})",
                f"{place} < {text}",
                f"int({place}) > 0",
                f"{place}.find('[0-9]+') == '1'",
            )
        )

    def _loop(self, depth: int) -> str:
        random = self._random
        place, value, _ = self._place()
        tries = 0
        while not (isinstance(value, list) and value and isinstance(value[0], dict)) and tries < 6:
            place, value, _ = self._place()
            tries += 1
        if not (isinstance(value, list) and value):
            return self._test(place, value)
        self._loops += 1
        inner = _Writer(random, f"e{self._loops}", value[0])
        inner._loops = self._loops
        macro = random.choice(("all", "exists", "exists_one"))
        if not isinstance(value[0], dict):
            return f"{place}.{macro}(e{self._loops}, {self._test(f'e{self._loops}', value[0])})"
        body = inner.boolean(max(depth - 2, 0))
        self._loops = inner._loops
        if chance(random, 0.2):
            return f"{place}.filter({inner._root}, {body}).size() > 0"
        return f"{place}.{macro}({inner._root}, {body})"

    def text(self, depth: int) -> str:
        """Return an expression that is a text."""
        random = self._random
        place, value, guard = self._place()
        if isinstance(value, str):
            base = f"string({place}.{random.choice(_TEXT_FUNCTIONS)})" if chance(random, 0.4) else f"string({place})"
        elif isinstance(value, bool | int | float):
            base = f"string({place})"
        elif isinstance(value, list) and value and isinstance(value[0], dict) and "name" in value[0]:
            base = f"{place}.map(e, e.name).join(', ')"
        elif isinstance(value, list | dict):
            base = f"string(size({place}))"
        else:
            base = random.choice(_TEXTS)
        base = f"({base})"
        if chance(random, 0.4):
            base = f"({guard} ? {base} : 'none')"
        if depth > 0 and chance(random, 0.4):
            return f"{base} + ' ' + {self.text(depth - 1)}"
        return base
