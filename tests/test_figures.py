"""The figures of version 0.1, command by command: what must not change unless it was wrong.

`reference/figures.json` holds parts of what `--json` printed. Exact figures are compared to 1e-12.
Simulated ones and what a search ends with are compared to 1e-9 on the kind of processor that made
them. Elsewhere float32 rounds differently, so that a few plays in thousands of episodes may differ:
simulated means are then compared to 1e-3, and what a search on simulated plays ends with is not
compared.
"""

import json
import random
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from tests.commands import answer

REFERENCE = json.loads((Path(__file__).parent / "reference" / "figures.json").read_text("utf-8"))
SAME_PROCESSOR = llvm.get_host_cpu_name() == REFERENCE["processor"]
# The relative tolerance by how figures were found: here, and on another kind of processor.
TOLERANCES = {
    "exact": (1e-12, 1e-12),
    "exact search": (1e-9, 1e-6),
    "simulated": (1e-9, 1e-3),
    "simulated search": (1e-9, None),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Past problems and a log of random plays, as the commands name them."""
    made = tmp_path_factory.mktemp("figures")
    rng = random.Random(5)
    for name, arms in (("past.csv", "ab"), ("past3.csv", "abc")):
        rows = [",".join(f"{rng.random():.3f}" for _ in arms) for _ in range(40)]
        (made / name).write_text("\n".join([",".join(arms), *rows, ""]))
    means = {"red": 0.2, "green": 0.5, "blue": 0.6}
    arms = rng.choices(list(means), k=6000)
    plays = [f"{arm},{int(rng.random() < means[arm])}" for arm in arms]
    (made / "log.csv").write_text("\n".join(["arm,reward", *plays, ""]))
    return made


def differences(expected, found, tolerance, where=""):
    """Where a result is not as expected; it may have more keys, and longer lists."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            if key in found:
                yield from differences(value, found[key], tolerance, f"{where}/{key}")
            else:
                yield f"{where}/{key} is missing"
    elif isinstance(expected, list):
        if expected and isinstance(expected[0], dict) and "policy" in expected[0]:
            # Policies that came later may stand among them.
            names = [item["policy"] for item in expected]
            found = [item for item in found if item["policy"] in names]
        if len(found) < len(expected):
            yield f"{where} has {len(found)} items instead of {len(expected)}"
        for place, pair in enumerate(zip(expected, found, strict=False)):
            yield from differences(*pair, tolerance, f"{where}/{place}")
    elif isinstance(expected, float) and isinstance(found, float | int):
        if found != pytest.approx(expected, rel=tolerance, abs=1e-300):
            yield f"{where}: {found!r} instead of {expected!r}"
    elif found != expected:
        yield f"{where}: {found!r} instead of {expected!r}"


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(entry, id=entry["name"], marks=[pytest.mark.slow] if entry["slow"] else [])
        for entry in REFERENCE["entries"]
    ],
)
def test_figures_are_those_of_the_reference(entry, folder):
    tolerance = TOLERANCES[entry["how"]][0 if SAME_PROCESSOR else 1]
    if tolerance is None:
        pytest.skip(f"these figures are of another processor, {REFERENCE['processor']}")
    found = json.loads(answer(entry["command"], folder))
    assert list(differences(entry["figures"], found, tolerance)) == []
