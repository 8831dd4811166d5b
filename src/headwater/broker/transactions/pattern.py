"""A regular expression that cannot be slow: its time is bounded by its size times that of the text.

Python's own engine backtracks, so a client could stop the broker with one pattern; Kafka uses RE2 for the
same reason. This is the part of RE2's syntax that ids need: literals, ``.``, classes, ``\\d \\w \\s`` and
their opposites, groups, ``|``, ``* + ? {m,n}``, ``^`` and ``$``. Anything else is refused with ValueError.
The whole text must match.
"""

from __future__ import annotations

from collections.abc import Callable

STATES_MAX = 1000  # a pattern is a few dozen; {1000}{1000} must not become a million
REPEAT_MAX = 1000  # RE2's
SPECIAL = frozenset("\\.[]()|*+?{}^$")

Accepts = Callable[[str], bool]
# A node: (test, targets). No test: a fork that consumes nothing.
Node = tuple[Accepts | None, list[int]]


class Pattern:
    """Compiled to a machine that is in all its possible states at once."""

    __slots__ = ("_end", "_nodes", "_start")

    def __init__(self, text: str) -> None:
        self._nodes: list[Node] = []
        self._end = self._node(None)
        self._start = self._compile(_Parser(text).parse(), self._end)

    def matches(self, text: str) -> bool:
        states = self._closure({self._start})
        for char in text:
            reached: set[int] = set()
            for state in states:
                accepts, targets = self._nodes[state]
                if accepts is not None and accepts(char):
                    reached.update(targets)
            states = self._closure(reached)
            if not states:
                return False
        return self._end in states

    def _closure(self, states: set[int]) -> set[int]:
        todo = list(states)
        while todo:
            accepts, targets = self._nodes[todo.pop()]
            if accepts is None:
                for target in targets:
                    if target not in states:
                        states.add(target)
                        todo.append(target)
        return states

    def _node(self, accepts: Accepts | None, *targets: int) -> int:
        if len(self._nodes) >= STATES_MAX:
            raise ValueError("the pattern is too large")
        self._nodes.append((accepts, list(targets)))
        return len(self._nodes) - 1

    def _compile(self, tree: Tree, after: int) -> int:
        """Built from the end: the state in which ``tree`` begins, if ``after`` follows it."""
        if tree.accepts is not None:
            return self._node(tree.accepts, after)
        if tree.choices is not None:
            return self._node(None, *[self._compile(choice, after) for choice in tree.choices])
        for part in reversed(tree.parts):
            after = self._repeat(part, after)
        return after

    def _repeat(self, part: Part, after: int) -> int:
        tree, least, most = part
        if most is None:
            loop = self._node(None, after)
            self._nodes[loop][1].append(self._compile(tree, loop))
            start = loop
        else:
            start = after
            for _ in range(most - least):
                start = self._node(None, after, self._compile(tree, start))
        for _ in range(least):
            start = self._compile(tree, start)
        return start


Part = tuple["Tree", int, int | None]  # what, at least, at most


class Tree:
    """One of: a test of one character, alternatives, a sequence of repeated parts."""

    __slots__ = ("accepts", "choices", "parts")

    def __init__(
        self,
        *,
        accepts: Accepts | None = None,
        choices: list[Tree] | None = None,
        parts: list[Part] | None = None,
    ) -> None:
        self.accepts = accepts
        self.choices = choices
        self.parts = parts or []


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0

    def parse(self) -> Tree:
        tree = self._alternatives()
        if self._position < len(self._text):
            raise ValueError("unexpected )")
        return tree

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise ValueError("the pattern ends too early")
        self._position += 1
        return char

    def _skip(self, text: str) -> bool:
        found = self._text.startswith(text, self._position)
        if found:
            self._position += len(text)
        return found

    def _alternatives(self) -> Tree:
        self._depth += 1
        if self._depth > 100:
            raise ValueError("groups are nested too deeply")
        choices = [self._sequence()]
        while self._skip("|"):
            choices.append(self._sequence())
        self._depth -= 1
        return choices[0] if len(choices) == 1 else Tree(choices=choices)

    def _sequence(self) -> Tree:
        parts: list[Part] = []
        while self._peek() not in ("", "|", ")"):
            if self._skip("^"):
                if parts:
                    raise ValueError("^ only stands at the beginning")
                continue
            if self._skip("$"):
                if self._peek() not in ("", "|", ")"):
                    raise ValueError("$ only stands at the end")
                continue
            atom = self._atom()
            parts.append((atom, *self._count()))
        return Tree(parts=parts)

    def _count(self) -> tuple[int, int | None]:
        count: tuple[int, int | None] = (1, 1)
        if self._skip("*"):
            count = (0, None)
        elif self._skip("+"):
            count = (1, None)
        elif self._skip("?"):
            count = (0, 1)
        elif self._skip("{"):
            count = self._braces()
        else:
            return count
        self._skip("?")  # lazy or greedy: the same texts match
        if self._peek() in ("*", "+", "?", "{"):
            raise ValueError("a repetition of a repetition")
        return count

    def _braces(self) -> tuple[int, int | None]:
        inner, closed, rest = self._text[self._position :].partition("}")
        least, comma, most = inner.partition(",")
        if not closed or not least.isdecimal() or (most and not most.isdecimal()):
            raise ValueError("a bad repetition count")
        self._position = len(self._text) - len(rest)
        low = int(least)
        high = low if not comma else int(most) if most else None
        if low > REPEAT_MAX or (high is not None and not low <= high <= REPEAT_MAX):
            raise ValueError("a bad repetition count")
        return low, high

    def _atom(self) -> Tree:
        char = self._take()
        if char == "(":
            if self._skip("?") and not self._skip(":"):
                raise ValueError("only (?:...) is known")
            tree = self._alternatives()
            if not self._skip(")"):
                raise ValueError("missing )")
            return tree
        if char == ".":
            return Tree(accepts=lambda c: c != "\n")
        if char == "[":
            return Tree(accepts=self._class())
        if char == "\\":
            return Tree(accepts=self._escape())
        if char in SPECIAL:
            raise ValueError(f"unexpected {char}")
        return Tree(accepts=char.__eq__)

    def _escape(self) -> Accepts:
        char = self._take()
        kind = _KINDS.get(char.lower())
        if kind is not None:
            return kind if char.islower() else lambda c: not kind(c)
        if char.isalnum():
            raise ValueError(f"unknown escape \\{char}")
        return char.__eq__

    def _class(self) -> Accepts:
        opposite = self._skip("^")
        tests: list[Accepts] = []
        first = True
        while first or self._peek() != "]":
            first = False
            low = self._take()
            if low == "\\":
                tests.append(self._escape())
            elif self._peek() == "-" and self._text[self._position + 1 : self._position + 2] not in ("", "]"):
                self._take()
                high = self._take()
                if high == "\\" or high < low:
                    raise ValueError("a bad range")
                tests.append(lambda c, low=low, high=high: low <= c <= high)  # type: ignore[misc]
            else:
                tests.append(low.__eq__)
        self._take()
        return lambda c: any(test(c) for test in tests) != opposite


_KINDS: dict[str, Accepts] = {
    "d": lambda c: "0" <= c <= "9",
    "s": lambda c: c in "\t\n\f\r ",
    "w": lambda c: c == "_" or (c.isascii() and c.isalnum()),
}
