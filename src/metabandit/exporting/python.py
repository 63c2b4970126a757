"""An index policy as a Python module that needs the standard library only."""

from __future__ import annotations

import inspect

from ..language.source import Language
from ..play import special
from ..settings import write_number
from .layout import needed, statement
from .program import Program, body, simple, value_names
from .ranges import guarded

LANGUAGE = Language(
    {
        "safe divide": "divide({0}, {1})",
        "safe invert": "divide(1.0, {0})",
        "safe sqrt": "sqrt({0})",
        "safe ln": "ln({0})",
        "safe exp": "exp({0})",
        "sqrt": "math.sqrt({0})",
        "ln": "math.log({0})",
        "exp": "math.exp({0})",
        "abs": "abs({0})",
        "min": "minimum({0}, {1})",
        "max": "maximum({0}, {1})",
        "power": "power({0}, {1})",
        "kl_upper": "kl_upper({0}, {1})",
        "beta_quantile": "beta_quantile({0}, {1}, {2})",
    },
    number=write_number,
)


def _helpers() -> dict[str, str]:
    functions = inspect.getmembers(special, inspect.isfunction)
    return {name: inspect.getsource(function) for name, function in functions}


def _index(program: Program) -> list[str]:
    tree = guarded(simple(program.tree), program.least_plays)
    names = {
        guarded(value, program.least_plays): name
        for value, name in value_names(program.tree).items()
    }
    assignments, text = body(tree, LANGUAGE, known=names)
    lines = ["def index(r, s, n, t, h, K):"]
    lines.append('    """The index of an arm with mean reward r, standard deviation s and n plays.')
    lines += ["", "    t plays were made, h are left with the next one, and there are K arms."]
    lines.append('    """')
    for item in assignments:
        lines += statement(f"{item.name} = ", item.text, indent="    ", brackets=("(", ")"))
    return lines + statement("return ", text, indent="    ", brackets=("(", ")"))


def _settings(program: Program) -> list[str]:
    lines = []
    if program.reads("h"):
        lines.append(f"HORIZON = {program.horizon}")
    if program.counts is not None:
        names = ("START_PLAYS", "START_SUM", "START_SQUARES")
        for name, row in zip(names, program.counts, strict=True):
            if name == "START_SQUARES" and not program.reads("s"):
                continue
            numbers = ", ".join(map(write_number, row))
            lines.append(f"{name} = {numbers if program.arms is None else f'({numbers})'}")
    return lines


def _choose(program: Program) -> list[str]:
    each = "" if program.arms is None else "[arm]"
    lines = ["def choose(plays, sums, squares, u):"]
    lines.append('    """The number of the arm to play next, from 0.')
    lines += [
        "",
        "    plays, sums and squares have the plays, the sum of the rewards and the sum of",
    ]
    lines.append(
        "    the squared rewards of each arm; u, uniform in [0, 1), decides between equals."
    )
    if not program.reads("s"):
        lines.append("    The squares are not read by this index; None will do.")
    lines.append('    """')
    lines.append("    arms = len(plays)")
    if program.counts is None:
        lines += ["    for arm in range(arms):", "        if plays[arm] == 0:"]
        lines.append("            return arm")
        lines.append("    t = sum(plays)")
        n, total, squared = "plays[arm]", "sums[arm]", "squares[arm]"
    else:
        if program.arms is not None:
            lines.append(f"    if arms != {program.arms}:")
            lines.append(
                f'        raise ValueError(f"this policy is for {program.arms} arms, not {{arms}}")'
            )
            lines.append("    t = sum(plays) + sum(START_PLAYS)")
        else:
            lines.append("    t = sum(plays) + arms * START_PLAYS")
        n, total, squared = (
            f"{one}[arm] + START_{two}{each}"
            for one, two in (("plays", "PLAYS"), ("sums", "SUM"), ("squares", "SQUARES"))
        )
    if program.reads("h"):
        lines.append("    h = max(HORIZON - sum(plays), 1)")
    lines += ["    values = []", "    for arm in range(arms):"]
    lines.append(f"        n = {n}")
    lines.append(f"        r = {total if ' ' not in total else f'({total})'} / n")
    if program.reads("s"):
        squared = squared if " " not in squared else f"({squared})"
        lines.append(f"        s = math.sqrt(max({squared} / n - r * r, 0.0))")
    h, s = "h" if program.reads("h") else "1", "s" if program.reads("s") else "0.0"
    lines.append(f"        value = index(r, {s}, n, t, {h}, arms)")
    lines.append("        if math.isnan(value):")
    lines.append('            raise ValueError(f"the index of arm {arm} is not a number")')
    lines.append("        values.append(value)")
    return lines + _TIES


_TIES = """\
    best = max(values)
    least = best - 1e-9 * abs(best)
    tied = [arm for arm in range(arms) if values[arm] >= least or values[arm] == best]
    return tied[int(u * len(tied))]""".splitlines()


def write(program: Program) -> str:
    """The module as text."""
    notes = program.notes(
        "Keep for each arm its plays, the sum of its rewards and the sum of their squares; then",
        "",
        "    arm = choose(plays, sums, squares, random.random())",
    )
    index, choose = "\n".join(_index(program)), "\n".join(_choose(program))
    helpers = _helpers()
    used = [helpers[name].rstrip() for name in needed(index, helpers)]
    functions = "\n\n\n".join([*used, index, choose]) + "\n"
    text = "\n".join(notes).replace("\\", "\\\\").replace('"""', "'''")
    parts = [f'"""{text}\n"""', "import math"]
    if settings := _settings(program):
        parts.append("\n".join(settings))
    return "\n\n".join(parts) + "\n\n\n" + functions
