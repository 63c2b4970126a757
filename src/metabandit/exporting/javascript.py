"""An index policy as a JavaScript module that imports nothing."""

from __future__ import annotations

from ..language.source import Language
from ..settings import write_number
from .layout import block_comment, functions, needed, statement
from .program import Program, body, simple, value_names

LANGUAGE = Language(
    {
        "sqrt": "Math.sqrt({0})",
        "ln": "Math.log({0})",
        "exp": "Math.exp({0})",
        "abs": "Math.abs({0})",
        "min": "Math.min({0}, {1})",
        "max": "Math.max({0}, {1})",
        "power": "power({0}, {1})",
        "kl_upper": "klUpper({0}, {1})",
        "beta_quantile": "betaQuantile({0}, {1}, {2})",
    },
    number=write_number,
)
_INDENT = "  "

_TIES = """\
  let best = -Infinity;
  for (const value of values) if (value > best) best = value;
  const least = best - 1e-9 * Math.abs(best);
  const tied = [];
  for (let arm = 0; arm < arms; arm++) {
    if (values[arm] >= least || values[arm] === best) tied.push(arm);
  }
  return tied[Math.floor(u * tied.length)];
}"""


def _index(program: Program) -> str:
    known = value_names(program.tree)
    assignments, text = body(simple(program.tree), LANGUAGE, known=known)
    lines = [
        "// The index of an arm with mean reward r, standard deviation s and n plays; t plays were"
    ]
    lines.append("// made, h are left with the next one, and there are K arms.")
    lines.append("export function index(r, s, n, t, h, K) {")
    for item in assignments:
        lines += statement(f"const {item.name} = ", item.text, ";", indent=_INDENT)
    lines += statement("return ", text, ";", indent=_INDENT, brackets=("(", ")"))
    return "\n".join([*lines, "}"])


def _settings(program: Program) -> str:
    lines = []
    if program.reads("h"):
        lines.append(f"const HORIZON = {program.horizon};")
    names = ("START_PLAYS", "START_SUM", "START_SQUARES")
    for name, row in zip(names, program.counts or (), strict=False):
        if name != "START_SQUARES" or program.reads("s"):
            numbers = ", ".join(map(write_number, row))
            lines.append(f"const {name} = {numbers if program.arms is None else f'[{numbers}]'};")
    return "\n".join(lines)


def _choose(program: Program) -> str:
    each = "" if program.arms is None else "[arm]"
    started = program.counts is not None
    lines = [
        "// The number of the arm to play next, from 0. The arrays have the plays, the sum of the"
    ]
    lines.append(
        "// rewards and the sum of the squared rewards of each arm; u, uniform in [0, 1), decides"
    )
    lines.append(
        "// between equals." + ("" if program.reads("s") else " This index reads no squares.")
    )
    lines.append("export function choose(plays, sums, squares, u) {")
    lines.append("  const arms = plays.length;")
    if not started:
        lines.append("  for (let arm = 0; arm < arms; arm++) if (plays[arm] === 0) return arm;")
    elif program.arms is not None:
        lines.append(f"  if (arms !== {program.arms}) {{")
        lines.append(
            f"    throw new RangeError(`this policy is for {program.arms} arms, not ${{arms}}`);"
        )
        lines.append("  }")
    lines.append("  let made = 0;")
    lines.append("  let t = 0;")
    lines.append("  for (let arm = 0; arm < arms; arm++) {")
    lines.append("    made += plays[arm];")
    lines.append(f"    t += plays[arm]{f' + START_PLAYS{each}' if started else ''};")
    lines.append("  }")
    if program.reads("h"):
        lines.append("  const h = Math.max(HORIZON - made, 1);")
    else:
        lines = [line for line in lines if "made" not in line]
    lines += ["  const values = [];", "  for (let arm = 0; arm < arms; arm++) {"]
    if started:
        lines.append(f"    const n = plays[arm] + START_PLAYS{each};")
        lines.append(f"    const r = (sums[arm] + START_SUM{each}) / n;")
        squared = f"(squares[arm] + START_SQUARES{each})"
    else:
        lines += ["    const n = plays[arm];", "    const r = sums[arm] / n;"]
        squared = "squares[arm]"
    if program.reads("s"):
        lines.append(f"    const s = Math.sqrt(Math.max({squared} / n - r * r, 0));")
    h, s = "h" if program.reads("h") else "1", "s" if program.reads("s") else "0"
    lines.append(f"    const value = index(r, {s}, n, t, {h}, arms);")
    lines.append("    if (Number.isNaN(value)) {")
    lines.append("      throw new RangeError(`the index of arm ${arm} is not a number`);")
    lines += ["    }", "    values.push(value);", "  }"]
    return "\n".join([*lines, _TIES])


def write(program: Program) -> str:
    """The module as text."""
    notes = program.notes(
        "An ES module: save it as policy.mjs. Keep for each arm its plays, the sum of its rewards",
        "and the sum of their squares; then",
        "",
        '    import { choose } from "./policy.mjs";',
        "    const arm = choose(plays, sums, squares, Math.random());",
    )
    index = _index(program)
    helpers = functions("helpers.mjs")
    used = [helpers[name].rstrip() for name in needed(index, helpers)]
    parts = ["\n".join(block_comment(notes)), _settings(program), *used, index, _choose(program)]
    return "\n\n".join(part for part in parts if part) + "\n"
