"""Programs with code of their own make the simulator's plays, bit for bit."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import metabandit as mb
from metabandit.engine.simulated import Sampling, Simulation
from metabandit.kernels import fused
from metabandit.learning.spaces import make_space

INDICES = [
    ("r + 3/(n + 2)", "prior-counts"),  # nothing varies with the step
    (
        "min(r, 0.9) - abs(s - r)^1.5 + exp(-n)/(h + 1) + s*sqrt(ln(t + 1)/n) + max(1/n, r - 0.2)",
        "each-once",
    ),
    ("t", "prior-counts"),  # all arms tie at every step
]


def both(
    policy: mb.Policy, prior: mb.Prior, horizon: int, monkeypatch: pytest.MonkeyPatch
) -> list[np.ndarray]:
    """Regret at two checkpoints, simple regret, plays and sums: by the machine, then by code of its own."""
    sampling = Sampling(seed=3, checkpoints=(horizon // 2, horizon))
    simulation = Simulation(prior, horizon, sampling, [policy.plan(prior, horizon)])
    problems = simulation.problems(0, 300)  # not a whole number of blocks
    found = []
    kept = fused.FUSED
    for patience in (np.inf, 0.0):
        monkeypatch.setattr(fused, "_PATIENCE", patience)
        # What an earlier call left on disk is not for the machine's turn.
        monkeypatch.setattr(fused, "FUSED", f"{kept}/nothing" if patience else kept)
        fused._found.clear()
        regret = np.zeros((3, 300))
        plays, final = np.zeros(prior.arms), np.zeros((2, prior.arms, 300), np.float32)
        simulation.play(0, problems, 0, regret, plays, final)
        assert (fused.find(simulation.played[0].program, prior.arms) is None) == (patience > 0.0)
        found.append(np.concatenate([regret.ravel(), plays, final.ravel()]))
    return found


@pytest.fixture(autouse=True)
def _own_code(monkeypatch: pytest.MonkeyPatch):
    """Code of the tests' own, kept as long as that of the kernels: it is compiled once, not in every run."""
    monkeypatch.setattr(fused, "FUSED", f"{fused.FUSED}/tests")
    monkeypatch.setattr(fused, "_found", {})
    monkeypatch.setattr(fused, "_spent", {})


@pytest.mark.parametrize(("text", "start"), INDICES)
def test_two_arms(text, start, monkeypatch):
    slow, fast = both(mb.policy(text, start=start), mb.Bernoulli(arms=2), 60, monkeypatch)
    assert np.array_equal(slow, fast)


@pytest.mark.parametrize(("text", "start"), INDICES[1:])
def test_more_arms(text, start, monkeypatch):
    prior = mb.Bernoulli(alpha=[1, 2, 3.5, 1, 1], beta=[1, 1, 2, 1, 1])
    slow, fast = both(mb.policy(text, start=start), prior, 60, monkeypatch)
    assert np.array_equal(slow, fast)


def test_learned_weights_are_numbers_of_one_code(monkeypatch):
    prior = mb.Bernoulli(arms=2)
    vectors = np.random.default_rng(1).normal(size=(2, 100))
    texts = set()
    for vector in vectors:
        made = make_space("power-2", prior)
        policy = made.policy(vector[: len(made.free)])
        slow, fast = both(policy, prior, 50, monkeypatch)
        assert np.array_equal(slow, fast)
        texts.update(fused._found)
    assert len(texts) == 1


def test_an_index_that_is_not_finite_is_reported_by_the_simulator(monkeypatch):
    monkeypatch.setattr(fused, "_PATIENCE", 0.0)
    with pytest.raises(mb.InputError, match="an index must be a finite number"):
        mb.evaluate(
            "1/(n - 3)", mb.Bernoulli(arms=2), horizon=20, method="monte-carlo", floor=False
        )


# In the last, r * r would be computed once for the index and the deviation, and rounded otherwise.
@pytest.mark.parametrize("text", ["kl-ucb", "bayes-ucb", "eps_n-greedy", "(s*s - (r - r^2))*n + r"])
def test_what_has_no_code_of_its_own_is_played_by_the_machine(text, monkeypatch):
    monkeypatch.setattr(fused, "_PATIENCE", 0.0)
    prior = mb.Bernoulli(arms=2)
    simulation = Simulation(prior, 20, Sampling(), [mb.policy(text).plan(prior, 20)])
    simulation.play(0, simulation.problems(0, 64), 0, np.zeros((2, 64)))
    assert not any(fused._found.values())


@pytest.mark.parametrize("damage", ["", "def simulate(:", "x = 1"])
def test_damaged_code_is_written_again(damage, monkeypatch, tmp_path):
    monkeypatch.setattr(fused, "_PATIENCE", 0.0)
    monkeypatch.setattr(fused, "FUSED", str(tmp_path))
    prior, policy = mb.Bernoulli(arms=2), mb.policy("r + 2/(n + 5)", start="prior-counts")
    program = Simulation(prior, 20, Sampling(), [policy.plan(prior, 20)]).played[0].program
    assert fused.find(program, 2) is not None
    path = fused._path(fused.source(program, 2))
    text = path.read_text()
    path.write_text(damage)
    fused._found.clear()
    assert fused.find(program, 2) is not None
    assert path.read_text() == text


COMPUTE = """
import sys
import metabandit as mb
from metabandit.kernels import fused
fused.FUSED, fused._PATIENCE = sys.argv[1], 0.0
found = mb.evaluate("r + 2/(n + 3)", mb.Bernoulli(arms=2), 20, method="monte-carlo", floor=False)
print(repr(found[0].mean_regret), sum(code is not None for code in fused._found.values()))
"""


@pytest.mark.slow
def test_other_processes_find_the_code_on_disk(tmp_path, monkeypatch):
    written = subprocess.run(
        [sys.executable, "-c", COMPUTE, str(tmp_path / "code")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert written.returncode == 0, written.stderr
    found = [written.stdout.split()]
    # This process compiles nothing: it reads, or the machine plays.
    monkeypatch.setattr(fused, "_PATIENCE", np.inf)
    for folder in ("code", "nothing"):
        monkeypatch.setattr(fused, "FUSED", str(tmp_path / folder))
        fused._found.clear()
        result = mb.evaluate(
            "r + 2/(n + 3)", mb.Bernoulli(arms=2), 20, method="monte-carlo", floor=False
        )
        known = sum(code is not None for code in fused._found.values())
        found.append([repr(result[0].mean_regret), str(known)])
    assert found[0][0] == found[1][0] == found[2][0]
    assert [item[1] for item in found] == ["1", "1", "0"]
