"""Lines of source text: sums with a term a line where they are long, helpers that are needed only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

from .program import WIDTH


def terms(text: str) -> list[str]:
    """A sum as its terms, each but the first with its sign in front."""
    found, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and text[place : place + 3] in (" + ", " - "):
            found.append(text[begin:place])
            begin = place + 1
    return [*found, text[begin:]]


def statement(
    head: str, text: str, end: str = "", *, indent: str, brackets: tuple[str, str] = ("", "")
) -> list[str]:
    """`head text end` on a line, or with a term of the sum a line where that is too long."""
    line = f"{indent}{head}{text}{end}"
    parts = terms(text)
    if len(line) <= WIDTH or len(parts) == 1:
        return [line]
    opened, closed = brackets
    inner = [f"{indent}{indent or '    '}{part}" for part in parts]
    if not closed:
        inner[-1] += end
        return [f"{indent}{head.rstrip()}", *inner] if head else inner
    return [f"{indent}{head}{opened}", *inner, f"{indent}{closed}{end}"]


def block_comment(notes: Iterable[str]) -> list[str]:
    """Notes as a comment of C or JavaScript; a name in them may not end it."""
    plain = (note.replace("*/", "* /").replace("/*", "/ *") for note in notes)
    return ["/*", *(f" * {note}".rstrip() for note in plain), " */"]


def functions(name: str) -> dict[str, str]:
    """The functions of a file of helpers by name: each begins a line and ends with a lone brace."""
    source = files(__package__).joinpath(name).read_text(encoding="utf-8")
    found = {}
    for block in re.findall(r"^(?:/\*[^\n]*\n)?(?:static|function) .*?^}\n", source, re.S | re.M):
        signature = re.search(r"(\w+)\([^)]*\) ?\{", block)
        assert signature is not None, block
        found[signature.group(1)] = block
    return found


def needed(text: str, helpers: Mapping[str, str]) -> list[str]:
    """The helpers that a text calls, and those that they call; what is called comes first."""
    order: list[str] = []

    def add(used: str) -> None:
        for name in helpers:
            if name not in order and re.search(rf"(?<![\w.]){name}\(", used):
                inside = helpers[name]
                # A function mentions itself; what it calls must come before it.
                add(re.sub(rf"\b{name}\(", "", inside))
                order.append(name)

    add(text)
    return order
