"""The objects of a comparison, in the order in which they find differences: given ones, systematic ones, random ones.

Kinds that neither side matches soon make room for the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from pyverno.compiler.equivalence.case import DEFAULT_NAMESPACE
from pyverno.compiler.equivalence.objects import ObjectMaker
from pyverno.compiler.equivalence.systematic import systematic_objects
from pyverno.compiler.equivalence.vocabulary import Vocabulary
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo

__all__ = ["ObjectSupply"]

_TRIES: Final = 12
"""Requests of a kind without a match after which the kind comes up seldom."""
_SELDOM: Final = 16


class ObjectSupply:
    """Yields objects while the comparison reports which kinds are matched."""

    def __init__(self, maker: ObjectMaker, vocabulary: Vocabulary, seeds: Sequence[JSONObject], count: int) -> None:
        """Take the objects to begin with; `count` more are made, up to half of them systematic.

        `made` counts the objects so far: given, systematic, varied, random.
        """
        self._maker, self._vocabulary, self._seeds, self._count = maker, vocabulary, seeds, count
        self._moved = 0
        self._judged: Counter[str] = Counter()
        self._matched: set[str] = set()
        self.made: Counter[str] = Counter()

    def note(self, kind: str, *, is_matched: bool) -> None:
        """Remember whether a request for `apiVersion/kind` was matched by a side."""
        self._judged[kind] += 1
        if is_matched:
            self._matched.add(kind)

    def __iter__(self) -> Iterator[JSONObject]:
        self.made["given"] += len(self._seeds)
        yield from self._seeds
        made = [*self._seeds]
        number = 0
        for body in self._systematic():
            if number >= self._count // 2:
                break
            number += 1
            made.append(body)
            self.made["systematic"] += 1
            yield body
        kinds = self._vocabulary.kinds
        for turn in range(self._count - number):
            if made and turn % 3:
                body = made[(turn * 7919) % len(made)]
                if not self._is_quiet(f"{body.get('apiVersion')}/{body.get('kind')}", turn):
                    self.made["varied"] += 1
                    yield self._maker.vary(body)
                    continue
            fresh = self._fresh(kinds, turn)
            if fresh is not None:
                made.append(fresh)
                self.made["random"] += 1
                yield fresh

    def _systematic(self) -> Iterator[JSONObject]:
        """Yield the systematic objects of all kinds, one of each in turn."""
        waiting = [
            (info, systematic_objects(self._vocabulary, info, self._maker.schemas)) for info in self._vocabulary.kinds
        ]
        turn = 0
        while waiting:
            turn += 1
            left = []
            for info, objects in waiting:
                if self._is_quiet(f"{info.api_version}/{info.kind}", turn):
                    left.append((info, objects))
                    continue
                body = next(objects, None)
                if body is not None:
                    left.append((info, objects))
                    yield self._at_home(body)
            waiting = left
            if turn > self._count and all(self._is_quiet(f"{i.api_version}/{i.kind}", 1) for i, _ in waiting):
                return

    def _fresh(self, kinds: Sequence[KindInfo], turn: int) -> JSONObject | None:
        lively = [info for info in kinds if not self._is_quiet(f"{info.api_version}/{info.kind}", turn)]
        chosen = lively or kinds
        made = self._maker.make(chosen[(turn // 3) % len(chosen)]) if chosen else None
        return None if made is None else self._at_home(made)

    def _at_home(self, body: JSONObject) -> JSONObject:
        """Move an object from namespace `default` to that of a policy, if policies judge only the objects of theirs."""
        homes = self._vocabulary.homes
        metadata = body.get("metadata") or {}
        if not homes or metadata.get("namespace") != DEFAULT_NAMESPACE:
            return body
        self._moved += 1
        return {**body, "metadata": {**metadata, "namespace": homes[self._moved % len(homes)]}}

    def _is_quiet(self, kind: str, turn: int) -> bool:
        """Return whether a kind was never matched although it was tried, and this is not one of its seldom turns."""
        is_idle = self._judged[kind] >= _TRIES and kind not in self._matched
        return is_idle and turn % _SELDOM != 0
