"""An index policy as a C99 file that needs math.h only."""

from __future__ import annotations

from ..language.source import Language, real
from .layout import block_comment, functions, needed, statement
from .program import Program, body, simple, value_names

LANGUAGE = Language(
    {
        "sqrt": "sqrt({0})",
        "ln": "log({0})",
        "exp": "exp({0})",
        "abs": "fabs({0})",
        "min": "minimum({0}, {1})",
        "max": "maximum({0}, {1})",
        "power": "power({0}, {1})",
        "kl_upper": "kl_upper({0}, {1})",
        "beta_quantile": "beta_quantile({0}, {1}, {2})",
    },
    number=real,
)
_INDENT = "  "

_CHOOSE = """\
/*
 * The number of the arm to play next, from 0; -1 if an index is not a number.{other_arms}
 * The arrays have the plays, the sum of the rewards and the sum of the squared rewards of
 * each arm; u, uniform in [0, 1), decides between equals.{no_squares}
 */
int choose(int arms, const double *plays, const double *sums, const double *squares, double u) {{
"""
_TIES = """\
  double best = -INFINITY;
  for (int arm = 0; arm < arms; arm++) {
    const double value = index_of(arm, arms, t, h, plays, sums, squares);
    if (value != value) return -1;
    if (value > best) best = value;
  }
  const double least = best - 1e-9 * fabs(best);
  int ties = 0;
  for (int arm = 0; arm < arms; arm++) {
    const double value = index_of(arm, arms, t, h, plays, sums, squares);
    if (value >= least || value == best) ties++;
  }
  int skipped = (int)(u * ties);
  for (int arm = 0; arm < arms; arm++) {
    const double value = index_of(arm, arms, t, h, plays, sums, squares);
    if ((value >= least || value == best) && skipped-- == 0) return arm;
  }
  return -1;
}"""


def _index(program: Program) -> str:
    known = value_names(program.tree)
    assignments, text = body(simple(program.tree), LANGUAGE, known=known)
    lines = [
        "/*",
        " * The index of an arm with mean reward r, standard deviation s and n plays; t plays",
    ]
    lines += [" * were made, h are left with the next one, and there are K arms.", " */"]
    lines.append("double arm_index(double r, double s, double n, double t, double h, double K) {")
    lines += [f"  (void){name};" for name in "rsnthK" if not program.reads(name)]
    for item in assignments:
        lines += statement(f"const double {item.name} = ", item.text, ";", indent=_INDENT)
    lines += statement("return ", text, ";", indent=_INDENT, brackets=("(", ")"))
    return "\n".join([*lines, "}"])


def _settings(program: Program) -> str:
    lines = []
    if program.reads("h"):
        lines.append(f"static const double horizon = {program.horizon}.0;")
    names = ("start_plays", "start_sum", "start_squares")
    for name, row in zip(names, program.counts or (), strict=False):
        if name != "start_squares" or program.reads("s"):
            numbers = ", ".join(map(real, row))
            if program.arms is None:
                lines.append(f"static const double {name} = {numbers};")
            else:
                lines.append(f"static const double {name}[{program.arms}] = {{{numbers}}};")
    return "\n".join(lines)


def _index_of(program: Program) -> str:
    each = "" if program.arms is None else "[arm]"
    lines = ["static double index_of(int arm, int arms, double t, double h, const double *plays,"]
    lines.append("                       const double *sums, const double *squares) {")
    if program.counts is not None:
        lines.append(f"  const double n = plays[arm] + start_plays{each};")
        lines.append(f"  const double r = (sums[arm] + start_sum{each}) / n;")
        squared = f"(squares[arm] + start_squares{each})"
    else:
        lines += ["  const double n = plays[arm];", "  const double r = sums[arm] / n;"]
        squared = "squares[arm]"
    if program.reads("s"):
        lines.append(f"  const double variance = {squared} / n - r * r;")
        lines.append("  const double s = variance < 0.0 ? 0.0 : sqrt(variance);")
    else:
        lines.append("  (void)squares;")
    s = "s" if program.reads("s") else "0.0"
    return "\n".join([*lines, f"  return arm_index(r, {s}, n, t, h, arms);", "}"])


def _choose(program: Program) -> str:
    each = "" if program.arms is None else "[arm]"
    head = _CHOOSE.format(
        other_arms="" if program.arms is None else f"\n * There must be {program.arms} arms.",
        no_squares="" if program.reads("s") else " This index reads no squares.",
    )
    lines = []
    if program.arms is not None:
        lines.append(f"  if (arms != {program.arms}) return -1;")
    lines += ["  double made = 0.0;", "  double t = 0.0;"]
    lines.append("  for (int arm = 0; arm < arms; arm++) {")
    if program.counts is None:
        lines.append("    if (plays[arm] == 0.0) return arm;")
    lines.append("    made += plays[arm];")
    pseudo = "" if program.counts is None else f" + start_plays{each}"
    lines += [f"    t += plays[arm]{pseudo};", "  }"]
    if program.reads("h"):
        lines.append("  const double h = made < horizon - 1.0 ? horizon - made : 1.0;")
    else:
        lines = [line for line in lines if "made" not in line]
        lines.append("  const double h = 1.0;")
    return head + "\n".join([*lines, _TIES])


def write(program: Program) -> str:
    """The file as text."""
    notes = program.notes(
        "C99; link with -lm. Keep for each arm its plays, the sum of its rewards and the sum of",
        "their squares; then",
        "",
        "    int choose(int, const double *, const double *, const double *, double);",
        "    arm = choose(arms, plays, sums, squares, rand() / (RAND_MAX + 1.0));",
    )
    index = _index(program)
    helpers = functions("helpers.c")
    used = [helpers[name].rstrip() for name in needed(index, helpers)]
    parts = ["\n".join(block_comment(notes)), "#include <math.h>", _settings(program), *used, index]
    parts += [_index_of(program), _choose(program)]
    return "\n\n".join(part for part in parts if part) + "\n"
