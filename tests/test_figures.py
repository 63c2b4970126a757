"""The figures of version 0.1, command by command: what must not change unless it was wrong.

`reference/figures.json` holds parts of what `--json` printed. Exact figures are compared to 1e-12,
simulated ones and what a search ends with to 1e-9, on every processor that multiplies and adds in
one step (x86 since 2013): kernels compiled for such processors, with vectors of 256 or 512 bits,
give the same figures. Without that step float32 rounds differently, so that a few plays in thousands
of episodes may differ: simulated means are then compared to 1e-3, and what a search on simulated
plays ends with is not compared.

CMA-ES with many weights goes another way with another library of linear algebra. The covariance
begins as the identity, so many of its eigenvalues stay equal for some generations; any basis of their
space is right, and rounding picks one. OpenBLAS has other code for processors with AVX-512, so these
entries hold figures of both (`blas`). With yet another library, what does not depend on the way is
compared, which is what both have in common.
"""

import json
import random
from pathlib import Path

import llvmlite.binding as llvm
import pytest
import threadpoolctl

from tests.commands import answer

REFERENCE = json.loads((Path(__file__).parent / "reference" / "figures.json").read_text("utf-8"))
FUSED = bool(llvm.get_host_cpu_features().get("fma"))
# The relative tolerance by how figures were found: with fused multiplication and addition, and without.
TOLERANCES = {
    "exact": (1e-12, 1e-12),
    "exact search": (1e-9, 1e-6),
    "simulated": (1e-9, 1e-3),
    "simulated search": (1e-9, None),
}
# OpenBLAS calls the same code by these names, too.
SAME_CODE = {"Zen": "Haswell"}


def linear_algebra():
    """The name that NumPy's OpenBLAS gives its code for this processor, or None."""
    names = {
        library.get("architecture")
        for library in threadpoolctl.threadpool_info()
        if library["internal_api"] == "openblas" and "numpy" in library["filepath"]
    }
    name = names.pop() if len(names) == 1 else None
    return SAME_CODE.get(name, name)


def in_common(one, other):
    """What two results agree on; the rest is left out."""
    if isinstance(one, dict):
        return {key: in_common(one[key], other[key]) for key in one if alike(one[key], other[key])}
    if isinstance(one, list):
        return [in_common(*pair) for pair in zip(one, other, strict=True)]
    return one


def alike(one, other):
    if isinstance(one, float):
        return one == pytest.approx(other, rel=1e-12, abs=0.0)
    return isinstance(one, dict | list) or one == other


def expected_of(entry):
    """The figures of an entry that this machine must find."""
    if "figures" in entry:
        return entry["figures"]
    found = entry["blas"].get(linear_algebra())
    return in_common(*entry["blas"].values()) if found is None else found


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
    tolerance = TOLERANCES[entry["how"]][0 if FUSED else 1]
    if tolerance is None:
        pytest.skip("simulated plays differ where multiplication and addition are not fused")
    found = json.loads(answer(entry["command"], folder))
    assert list(differences(expected_of(entry), found, tolerance)) == []


@pytest.mark.parametrize("blas", ["SkylakeX", "Haswell"])
def test_learned_policies_are_worth_what_was_found_on_any_machine(blas, folder):
    """However a search went: its policy has the regret that is pinned with it."""
    entry = next(entry for entry in REFERENCE["entries"] if entry["name"] == "learn-p1")
    pinned = entry["blas"][blas]
    path = folder / f"{blas}.json"
    answer(f"learn|--horizon|50|--generations|1|--out|{path}", folder)
    file = json.loads(path.read_text("utf-8"))
    assert file["policy"]["start"] == pinned["policy"]["start"]
    file["policy"]["weights"] = pinned["policy"]["weights"]
    path.write_text(json.dumps(file), "utf-8")
    command = ["evaluate", path, "--horizon", "50", "--method", "exact", "--no-floor", "--json"]
    found = json.loads(answer(command, folder))["policies"][0]["mean_regret"]
    assert found == pytest.approx(pinned["objective"], rel=1e-12)
