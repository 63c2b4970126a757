"""Exported programs, run by the real interpreters: many programs and many states a process.

States and answers go through pipes as float64, so that nothing is lost. A row of `index` is
r, s, n, t, h, K, w; a case of `choose` is program, u, arms, then plays, sums and squares of the arms. A
case of `choose-waiting`, for programs that take them, has the waiting plays of the arms, too.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.databases import open_database

_PYTHON = """
import array, importlib, sys
modules = [importlib.import_module(f"p{i}") for i in range(int(sys.argv[2]))]
data = array.array("d", sys.stdin.buffer.read()).tolist()
answers = array.array("d")
if sys.argv[1] == "index":
    for module in modules:
        taken = module.index.__code__.co_argcount
        for place in range(0, len(data), 7):
            answers.append(module.index(*data[place : place + taken]))
else:
    count = 4 if sys.argv[1] == "choose-waiting" else 3
    place = 0
    while place < len(data):
        which, u, arms = data[place : place + 3]
        rows = [data[place + 3 + row * int(arms) :][: int(arms)] for row in range(count)]
        place += 3 + count * int(arms)
        try:
            answers.append(modules[int(which)].choose(*rows, u))
        except ValueError:
            answers.append(-1)
sys.stdout.buffer.write(answers.tobytes())
"""

_JAVASCRIPT = """
import { readFileSync, writeSync } from "node:fs";
const [, , kind, count] = process.argv;
const modules = [];
for (let i = 0; i < Number(count); i++) modules.push(await import(`./p${i}.mjs`));
const bytes = readFileSync(0);
const data = new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
const answers = [];
if (kind === "index") {
  for (const module of modules)
    for (let place = 0; place < data.length; place += 7)
      answers.push(module.index(...data.subarray(place, place + 7)));
} else {
  const waiting = kind === "choose-waiting";
  for (let place = 0; place < data.length; ) {
    const [which, u, arms] = data.subarray(place, place + 3);
    const row = (i) => data.subarray(place + 3 + i * arms, place + 3 + (i + 1) * arms);
    try {
      const given = [row(0), row(1), row(2), ...(waiting ? [row(3)] : []), u];
      answers.push(modules[which].choose(...given));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      answers.push(-1);
    }
    place += 3 + (waiting ? 4 : 3) * arms;
  }
}
const out = new Uint8Array(Float64Array.from(answers).buffer);
for (let sent = 0; sent < out.length; ) {
  try {
    sent += writeSync(1, out, sent);
  } catch (error) {
    if (error.code !== "EAGAIN") throw error;
  }
}
"""

_C = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef double (*index_t)(const double *);
typedef int (*choose_t)(int, const double *, double);
%(wrappers)s
static const index_t indices[] = {%(indices)s};
static const choose_t choices[] = {%(choices)s};
int main(int argc, char **argv) {
  static double data[1 << 21];
  const size_t size = fread(data, sizeof(double), 1 << 21, stdin);
  if (argc < 2) return 1;
  if (!strcmp(argv[1], "index")) {
    for (size_t which = 0; which < sizeof indices / sizeof *indices; which++)
      for (const double *d = data; d < data + size; d += 7) {
        const double value = indices[which](d);
        fwrite(&value, sizeof value, 1, stdout);
      }
  } else {
    for (const double *d = data; d < data + size;) {
      const int arms = (int)d[2];
      const double arm = choices[(int)d[0]](arms, d + 3, d[1]);
      fwrite(&arm, sizeof arm, 1, stdout);
      d += 3 + (strcmp(argv[1], "choose-waiting") ? 3 : 4) * arms;
    }
  }
  return 0;
}
"""


# Called alike, whether a program takes waiting plays or not.
_WRAPPERS = """
static double row_%(place)d(const double *d) {
  return arm_index_%(place)d(d[0], d[1], d[2], d[3], d[4], d[5]%(w)s);
}
static int case_%(place)d(int arms, const double *d, double u) {
  return choose_%(place)d(arms, d, d + arms, d + 2 * arms%(waiting)s, u);
}
"""


def _need(command):
    if shutil.which(command) is None:
        pytest.skip(f"{command} is not installed")


def _command(language, texts, folder: Path) -> list[str]:
    """Write the programs and what runs them; the command to start."""
    if language == "python":
        for place, text in enumerate(texts):
            (folder / f"p{place}.py").write_text(text, "utf-8")
        (folder / "run.py").write_text(_PYTHON)
        return [sys.executable, "run.py"]
    if language == "javascript":
        _need("node")
        for place, text in enumerate(texts):
            (folder / f"p{place}.mjs").write_text(text, "utf-8")
        (folder / "run.mjs").write_text(_JAVASCRIPT)
        return ["node", "run.mjs"]
    _need("gcc")
    parts = []
    for place, text in enumerate(texts):
        # One compilation for all programs: what they define gets the number of the program.
        names = set(re.findall(r"^(?:static )?(?:const )?(?:double|int) (\w+)[ (\[]", text, re.M))
        names |= {"arm_index", "choose"}
        parts += [f"#define {name} {name}_{place}" for name in sorted(names)]
        parts.append(re.sub(r"\A/\*.*?\*/", "", text, count=1, flags=re.S))
        parts += [f"#undef {name}" for name in sorted(names)]
    numbers = range(len(texts))
    wrappers = [
        _WRAPPERS
        % {
            "place": place,
            "w": ", d[6]" if "double K, double w)" in text else "",
            "waiting": ", d + 3 * arms" if "const double *waiting, double u)" in text else "",
        }
        for place, text in enumerate(texts)
    ]
    main = _C % {
        "wrappers": "".join(wrappers),
        "indices": ", ".join(f"row_{place}" for place in numbers),
        "choices": ", ".join(f"case_{place}" for place in numbers),
    }
    (folder / "all.c").write_text("\n".join([*parts, main]), "utf-8")
    _finish(["gcc", *FLAGS, "all.c", "-lm", "-o", "all"], folder)
    return [str(folder / "all")]


FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]


def _finish(command, folder, data=b""):
    done = subprocess.run(command, cwd=folder, input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def run(language, texts, folder, kind, data):
    """What the programs answer, one after another, as float64."""
    command = _command(language, texts, folder)
    sent = np.ascontiguousarray(data, dtype=np.float64).tobytes()
    return np.frombuffer(_finish([*command, kind, str(len(texts))], folder, sent))


def run_sql(text, tables, chances=None):
    """The rows of an exported query in SQLite, for tables of arms 0, 1, ... without waiting plays: best first.

    `chances` has the random number :u of each table.
    """
    with open_database("sqlite") as database:
        answers = []
        for place, table in enumerate(tables):
            rows = [(arm, *map(float, row), 0.0) for arm, row in enumerate(table)]
            u = None if chances is None else float(chances[place])
            answers.append(database.run(text, rows, u=u))
        return answers
