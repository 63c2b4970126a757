"""Index policies compiled to native code of their own, for runs that are long enough to pay for it.

The machine (machine.py) makes one pass over a row of lanes per instruction. Here a program becomes the
text of two functions, which are compiled into loops over lanes without rows in between:

    values(n, r, s)     what depends on the arm alone: computed when the arm is played, and kept
    index(values, c)    the rest, with the numbers c of the step: computed for every arm at each step

All arms are written out, so that every choice between them is a mask and every loop is vectorised.
Numbers of a program (learned weights among them) are data: all candidates of a space share their code.

The code makes the same operations in the same order as the machine, so that its plays are those of the
simulator, bit for bit: whether a run is fused is a matter of time only. What it has no text for
(`source` then says None) the simulator plays: float64 lanes, feedback that waits, random or needed
plays, rows of special functions, operators of one's own.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

from . import opcodes as op
from .jit import FUSED, exact_lane, lane, stamp
from .rows import SLOT, STRIDE

# More arms than this would take minutes to compile and overflow the cache while they are played.
MOST_ARMS = 16

# What an operation computes, of the operands {0}, {1} and {2}.
_TEXT = {
    op.COPY: "{0}",
    op.ADD: "{0} + {1}",
    op.SUBTRACT: "{0} - {1}",
    op.MULTIPLY: "{0} * {1}",
    op.DIVIDE: "{0} / {1}",
    op.MIN: "least({0}, {1})",
    op.MAX: "largest({0}, {1})",
    op.SQRT: "np.sqrt({0})",
    op.LN: "ln({0})",
    op.ABS: "abs({0})",
    op.NEGATE: "-{0}",
    op.INVERT: "f32(1) / {0}",
    op.INVERT_SQRT: "f32(1) / np.sqrt({0})",
    op.EXP: "exp({0})",
    op.POWER: "power({0}, {1}, f32(1))",
}
_OPERANDS = {
    op.ADD: 2,
    op.SUBTRACT: 2,
    op.MULTIPLY: 2,
    op.DIVIDE: 2,
    op.MIN: 2,
    op.MAX: 2,
    op.POWER: 2,
}

_HEAD = '''"""Written by metabandit/kernels/fused.py."""

import numpy as np

from metabandit.kernels.best import _fold, _tied
from metabandit.kernels.fused import least, largest, spread_of
from metabandit.kernels.jit import exact_lane, jit, part
from metabandit.kernels.machine import polynomial_1, polynomial_2, power, run_step
from metabandit.kernels.random import TIE_STREAM, WEYL, below, draw_bits, noise_bits, unit
from metabandit.kernels.rows import STRIDE, all_between, blend, f32, i32, u32
from metabandit.kernels.simulator import (
    DONE, INDEX_NOT_FINITE, REWARD_NOT_POSSIBLE, _add_up, _begin, _finish, _write,
)
from metabandit.kernels.special import exp, ln

INFINITE = f32(np.inf)
NOTHING = f32(0)
'''


@exact_lane
def least(p, q):
    """As the machine: an operand that is not a number makes a result that is none."""
    return q if q < p or q != q else p


@exact_lane
def largest(p, q):
    return q if q > p or q != q else p


@lane
def spread_of(r):
    """The standard deviation of rewards of 0 and 1."""
    return np.sqrt(max(r - r * r, np.float32(0)))


def _split(program: Any) -> tuple[list[str], list[str], list[str], str, list[str]] | None:
    """The lines of `values` and of `index`, the names that are kept, the index, and the numbers c."""
    name: dict[int, str] = dict(enumerate(("n", "r", "s", "NOTHING")))
    by_step: dict[str, bool] = dict.fromkeys(name.values(), False)
    numbers = [f"scalars[{place}]" for place in program.spread]
    for j in range(len(numbers)):
        name[SLOT + j] = f"c[{j}]"
        by_step[f"c[{j}]"] = program.varies and j >= program.constants
    own: list[str] = []
    rest: list[str] = []
    kept: list[str] = []
    result = ""
    by_mean = {"r"}  # what depends on the mean
    for j, (operation, target, a, b, c, first, degree) in enumerate(program.lane_code.tolist()):
        if operation == op.POLYNOMIAL and degree in (1, 2):
            used = [name[a], name[b], name[c]]
            product = False
            count = (degree + 1) ** 3
            weights = ", ".join(f"c[{len(numbers) + k}]" for k in range(count))
            numbers += [f"scalars[{first + k}]" for k in range(count)]
            text = f"polynomial_{degree}(({weights}), {', '.join(used)})"
            varies = program.varies
        elif operation in _TEXT:
            used = [name[place] for place in (a, b)[: _OPERANDS.get(operation, 1)]]
            text = _TEXT[operation].format(*used)
            varies = any(by_step[item] for item in used)
            product = operation == op.MULTIPLY and by_mean.issuperset(used)
        else:
            return None
        if product and program.uses_s:
            # The deviation has r * r, too, which the compiler would compute once, and round otherwise.
            return None
        result = f"x{j}"
        if by_mean.intersection(used):
            by_mean.add(result)
        by_step[result] = varies
        (rest if varies else own).append(f"{result} = {text}")
        if varies:
            kept += [x for x in used if not by_step[x] and x not in kept and not x.startswith("c[")]
        name[target] = result
    if not by_step[result]:
        kept = [result]
    return own, rest, [x for x in kept if x != "NOTHING"], result, numbers


class _Rows:
    """Where the rows of the arms lie in the workspace, as the text of a place in them.

    All of them, random words included, lie in one array, a constant stride apart: the compiler then sees
    that they do not overlap, however many there are.
    """

    SHARED = ("key", "arm", "tie")  # one row for all arms
    OWN = ("word", "sum", "chance")  # one row per arm, then those that are kept
    BITS = ("key", "arm", "tie", "word")

    def __init__(self, arms: int, kept: list[str]) -> None:
        self.arms = arms
        self.own = (*self.OWN, *(item for item in kept if item not in ("n", "r", "s")))
        self.first = SLOT * (arms + 1) + arms + 1

    @property
    def count(self) -> int:
        return len(self.SHARED) + self.arms * len(self.own)

    def __call__(self, item: str, arm: int = 0) -> str:
        if item in ("n", "r", "s"):
            row = SLOT * arm + ("n", "r", "s").index(item)
        elif item in self.SHARED:
            row = self.first + self.SHARED.index(item)
        else:
            row = self.first + len(self.SHARED) + arm * len(self.own) + self.own.index(item)
        return f"{'bits' if item in self.BITS else 'rows'}[{row * STRIDE} + i]"

    def read(self, kept: list[str], arm: int) -> str:
        """The index of an arm."""
        return f"index({', '.join([*(self(item, arm) for item in kept), 'c'])})"


def lanes(arms: int) -> int:
    """Episodes in step: a number that the compiler knows, such that the rows of all arms stay in its first cache."""
    return 512 if arms == 2 else 256 if arms <= 4 else 128


def registers(program: Any, arms: int) -> int:
    """Register rows that hold the rows of a fused program; 0 if it has no text."""
    split = _split(program)
    return 0 if split is None else _Rows(arms, split[2]).count


def _choice_of_two(rows: _Rows, kept: list[str]) -> list[str]:
    return [
        f"key = {rows('key')}",
        f"x = {rows.read(kept, 0)}",
        f"y = {rows.read(kept, 1)}",
        "better = u32(1) if y > x else u32(0)",
        "coin = u32(noise_bits(key, step, TIE_STREAM) >> u32(31))",
        "arm = u32(u32((coin if _tied(x, y) else better) & free) | fixed)",
        "wrong = u32(wrong | u32((u32(0) if abs(y - x) < INFINITE else u32(1)) & free))",
    ]


def _choice(rows: _Rows, kept: list[str]) -> list[str]:
    """The best and the second best arm of all, one after the other."""
    lines = ["best, second, arm, check = -INFINITE, -INFINITE, u32(0), NOTHING"]
    for k in range(rows.arms):
        lines += [
            f"x = {rows.read(kept, k)}",
            f"best, second, arm = _fold(x, u32({k}), best, second, arm)",
            "check += x * NOTHING",
        ]
    return [
        *lines,
        "tie = u32(1) if _tied(best, second) else u32(0)",
        "wrong = u32(wrong | (u32(0) if check == NOTHING else u32(1)))",
        f"{rows('tie')} = tie",
        f"{rows('arm')} = arm",
        "found = u32(found | tie)",
    ]


def _random_choice(rows: _Rows, kept: list[str]) -> list[str]:
    """One of the arms that tie for the best."""
    arms = range(rows.arms)
    lines = [f"x{k} = {rows.read(kept, k)}" for k in arms]
    lines += ["best = x0", *(f"best = max(best, x{k})" for k in arms[1:]), "ties = 0"]
    lines += [f"ties += 1 if _tied(x{k}, best) else 0" for k in arms]
    lines += [f"wanted = below(noise_bits({rows('key')}, step, TIE_STREAM), ties)"]
    for k in arms:
        lines += [
            f"if _tied(x{k}, best):",
            "    if wanted == 0:",
            f"        {rows('arm')} = u32({k})",
            "    wanted -= 1",
        ]
    return lines


def _play(rows: _Rows, kept: list[str], *, uses_s: bool) -> list[str]:
    """One play of Bernoulli arms: the reward, and what is then known of the arm.

    Everything is read before anything is chosen, and chosen by masks: a condition around a read or a
    write would keep the loop from being vectorised.
    """
    arms = range(rows.arms)
    places = {"n": "n", "sum": "total"} | {
        item: f"new[{j}]" for j, item in enumerate(kept) if item != "n"
    }
    lines = []
    for k in arms:
        lines += [
            f"is{k} = u32(u32(0) - (u32(1) if arm == u32({k}) else u32(0)))",
            *(f"{item}{k} = {rows(item, k)}" for item in ("word", "chance", *places)),
        ]

    def picked(item: str) -> list[str]:
        return [
            f"{item} = {item}0",
            *(f"{item} = blend({item}, {item}{k}, is{k})" for k in arms[1:]),
        ]

    lines += [
        "word = u32(0)",
        *(f"word = u32(word | u32(word{k} & is{k}))" for k in arms),
        *picked("chance"),
        "reward = f32(1) if unit(draw_bits(word, key)) < chance else NOTHING",
        *picked("n"),
        *picked("sum"),
        "n = n + f32(1)",
        "total = sum + reward",
        "r = total / n",
        f"s = {'spread_of(r)' if uses_s else 'NOTHING'}",
        "new = values(n, r, s, c)",
    ]
    for k in arms:
        lines += [f"{rows('word', k)} = u32(word{k} + u32(WEYL & is{k}))"]
        lines += [
            f"{rows(item, k)} = blend({item}{k}, {value}, is{k})" for item, value in places.items()
        ]
    return lines


def _indented(lines: list[str], depth: int) -> str:
    return "\n".join(4 * depth * " " + line for line in lines)


def _step_of_two(rows: _Rows, kept: list[str], play: list[str]) -> str:
    """`play_step` for two arms: one loop, in which an arm is chosen and played."""
    return f"""
@part
def play_step(rows, step, free, fixed, c):
    bits = rows.view(u32)
    wrong = u32(0)
    for i in range(LANES):
{_indented(_choice_of_two(rows, kept), 2)}
{_indented(play, 2)}
    return wrong
"""


def _step_of_many(rows: _Rows, kept: list[str], play: list[str]) -> str:
    """`play_step` for more arms: loops that choose, break ties where there are any, and play."""
    return f"""
@part
def choose(rows, c):
    bits = rows.view(u32)
    wrong, found = u32(0), u32(0)
    for i in range(LANES):
{_indented(_choice(rows, kept), 2)}
    return wrong, found


@part
def break_ties(rows, step, c):
    bits = rows.view(u32)
    for i in range(LANES):
        if {rows("tie")} != u32(0):
{_indented(_random_choice(rows, kept), 3)}


@part
def set_arm(rows, fixed):
    bits = rows.view(u32)
    for i in range(LANES):
        {rows("arm")} = fixed


@part
def play(rows, c):
    bits = rows.view(u32)
    for i in range(LANES):
        arm, key = {rows("arm")}, {rows("key")}
{_indented(play, 2)}


@part
def play_step(rows, step, free, fixed, c):
    wrong = u32(0)
    if free == u32(0):
        set_arm(rows, fixed)
    else:
        wrong, found = choose(rows, c)
        if found != u32(0):
            break_ties(rows, step, c)
    play(rows, c)
    return wrong
"""


def _beginning(rows: _Rows, kept: list[str]) -> list[str]:
    """What a lane reads before the first step."""
    lines = [f"{rows('key')} = keys[i]"]
    for k in range(rows.arms):
        lines += [
            f"{rows('word', k)} = words[{k * STRIDE} + i]",
            f"{rows('sum', k)} = sums[{2 * k * STRIDE} + i]",
            f"{rows('chance', k)} = parameters[{k * STRIDE} + i]",
            f"new = values({rows('n', k)}, {rows('r', k)}, {rows('s', k)}, c)",
            *(f"{rows(item, k)} = new[{j}]" for j, item in enumerate(kept) if item in rows.own),
        ]
    return lines


def _ending(rows: _Rows) -> list[str]:
    """What a lane writes after the last step."""
    lines = []
    for k in range(rows.arms):
        lines += [
            f"n, total = {rows('n', k)}, {rows('sum', k)}",
            f"{rows('r', k)} = total / n if n > NOTHING else NOTHING",
            f"sums[{2 * k * STRIDE} + i] = total",
        ]
    return lines


def _simulation(program: Any, arms: int, c: str) -> str:
    """`simulate`: all episodes, LANES at a time; `c` is the text of the numbers of a step."""
    return f"""
@jit
def simulate(run, problems, behaviour, program, work, outcome):
    rows, scalars = work.rows, work.scalars
    pseudo_plays = 0.0
    for arm in range({arms}):
        pseudo_plays += behaviour.counts[0, arm]
    for first in range(0, outcome.regret.shape[1], LANES):
        _begin(run, problems, behaviour, first, work)
        scalars[0], scalars[1], scalars[2] = pseudo_plays, run.horizon, {arms}
        run_step(program.step_code, scalars)
        c = ({c})
        begin(rows, work.keys, work.words, work.sums, work.parameters, c)
        checkpoint = 0
        for step in range(run.horizon):
            forced = behaviour.each_once and step < {arms}
            free = u32(0) if forced else u32(0xFFFFFFFF)
            fixed = u32(step) if forced else u32(0)
            if {program.varies} and not forced:
                scalars[0], scalars[1] = pseudo_plays + step, run.horizon - step
                run_step(program.step_code, scalars)
                c = ({c})
            if play_step(rows, step, free, fixed, c) != u32(0):
                return INDEX_NOT_FINITE
            if step + 1 == outcome.checkpoints[checkpoint]:
                _add_up(behaviour, work)
                _write(work.lost, outcome.regret[checkpoint], first)
                checkpoint += 1
        end(rows, work.sums)
        _finish(behaviour, work, outcome, first)
    return DONE
"""


def source(program: Any, arms: int) -> str | None:
    """The text of a module whose `simulate` plays a program on Bernoulli arms; None if there is none."""
    split = _split(program)
    if split is None or not 2 <= arms <= MOST_ARMS:
        return None
    own, rest, kept, result, numbers = split
    rows = _Rows(arms, kept)
    play = _play(rows, kept, uses_s=program.uses_s)
    returned = "".join(f"{item}, " for item in kept) or "n, "
    c = "".join(f"f32({item}), " for item in numbers) or "NOTHING, "
    step = _step_of_two(rows, kept, play) if arms == 2 else _step_of_many(rows, kept, play)
    return f"""{_HEAD}LANES = {lanes(arms)}


@exact_lane
def values(n, r, s, c):
{_indented([*own, f"return ({returned})"], 1)}


@exact_lane
def index({", ".join([*kept, "c"])}):
{_indented([*rest, f"return {result}"], 1)}

{step}

@part
def begin(rows, keys, words, sums, parameters, c):
    bits = rows.view(u32)
    for i in range(LANES):
{_indented(_beginning(rows, kept), 2)}


@part
def end(rows, sums):
    for i in range(LANES):
{_indented(_ending(rows), 2)}

{_simulation(program, arms, c)}"""


# When a program is compiled ----------------------------------------------------------------------

# Seconds that the machine has played a program before it is compiled: about as long as that takes, so
# that nobody waits more than twice as long as was needed.
_PATIENCE = 6.0

_found: dict[bytes, Any] = {}  # the code of programs; None: there is none
_spent: dict[bytes, float] = {}
_one = threading.Lock()


def _key(program: Any, arms: int) -> bytes:
    parts = (program.lane_code, program.spread)
    rest = (program.constants, program.uses_s, program.varies, arms)
    return b"".join(part.tobytes() for part in parts) + repr(rest).encode()


def _path(text: str) -> Path:
    """Where the code of a text is kept, beside that of the kernels which it calls."""
    name = hashlib.sha256((stamp() + text).encode()).hexdigest()[:24]
    return Path(__file__).parent / "__pycache__" / FUSED / f"fused_{name}.py"


def _load(path: Path) -> Any:
    """The kernel in a file; numba finds its compiled code beside it, or puts it there."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None, "it ends in .py"
    assert spec.loader is not None, "it is a file"
    module = importlib.util.module_from_spec(spec)
    # numba looks for the module by its name, when it keeps compiled code and when it reads it again.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.simulate


def find(program: Any, arms: int) -> Any:
    """The code of a program that Bernoulli arms are played with, or None.

    It is compiled when the machine has played the program long enough (`spend`), or read from disk.
    Another thread that compiles is not waited for.
    """
    key = _key(program, arms)
    if key in _found:
        return _found[key]
    if 0.0 < _spent.get(key, 0.0) < _PATIENCE:
        return None  # it was looked for on disk before the machine played it
    if not _one.acquire(blocking=False):
        return None
    try:
        text = source(program, arms)
        if text is None:
            _found[key] = None
            return None
        path = _path(text)
        known = path.exists() and any(path.parent.glob(f"__pycache__/{path.stem}.simulate-*.nbi"))
        if not known and _spent.get(key, 0.0) < _PATIENCE:
            return None
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_file() or path.read_text(errors="replace") != text:  # damaged, perhaps
                partial = path.with_name(f"{path.stem}-{os.getpid()}.part")
                partial.write_text(text)
                partial.replace(path)
        # A folder that cannot be written keeps no code: the machine plays there.
        _found[key] = _load(path) if path.is_file() else None
        return _found[key]
    finally:
        _one.release()


def spend(program: Any, arms: int, seconds: float) -> None:
    """Note how long the machine has played a program."""
    key = _key(program, arms)
    _spent[key] = _spent.get(key, 0.0) + seconds
