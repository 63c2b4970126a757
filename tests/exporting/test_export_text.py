"""What exported programs look like, the command that writes them, and what it refuses."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import metabandit as mb
from metabandit.exporting import TARGETS
from metabandit.policies import IndexPolicy
from metabandit.policies.file import FORMAT, VERSION
from tests import exported
from tests.commands import answer, call
from tests.exporting.test_export import EACH, HORIZON, POLICIES, PROGRAMS, STARTS, catalogue, power


def test_python_is_as_ruff_has_it(tmp_path):
    for place, policy in enumerate(
        [*catalogue(), *(power(degree, "h", 1) for degree in (1, 2, 4))]
    ):
        (tmp_path / f"p{place}.py").write_text(mb.export(policy, horizon=HORIZON), "utf-8")
    for place, start in enumerate([*STARTS, EACH]):
        (tmp_path / f"s{place}.py").write_text(mb.export("ucb1-tuned", start=start), "utf-8")
    for command in (["check"], ["format", "--check", "--diff", "--line-length", "100"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", "--target-version", "py38", "."],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_power_has_a_term_a_line_and_names_for_its_values():
    written = mb.export(power(1, "h", 1), horizon=100)
    assert "    v1 = math.sqrt(math.log(h + 1))\n    v2 = 1 / math.sqrt(n)\n" in written
    assert re.search(r"\n        [+-] [\d.]+ \* v1 \* v2 \* r \* s\n    \)\n", written)


def test_only_helpers_that_are_used_are_written():
    assert mb.export("ucb1").count("def ") == 2
    assert "return r + math.sqrt(2 * math.log(t) / n)\n" in mb.export("ucb1")
    assert mb.export("ucb1", "c").count("static") == 1
    assert mb.export("kl-ucb", "javascript").count("function ") == 3


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name[:30])
def test_latex_is_a_whole_document(policy):
    written = mb.export(policy, "latex")
    plain = re.sub(r"\\[{}\\]", "", written)
    depth = 0
    for letter in plain:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0
    assert written.count("$") % 2 == 0
    assert written.count(r"\left") == written.count(r"\right")
    begun = re.findall(r"\\(begin|end)\{([\w*]+)\}", written)
    open_ones = []
    for what, name in begun:
        if what == "begin":
            open_ones.append(name)
        else:
            assert open_ones.pop() == name
    assert not open_ones
    assert written.startswith(r"\documentclass{article}")


REFUSED = [
    ("ucb1", "rust", {}, "no export to 'rust'.*python"),
    ("thompson", "python", {}, "not an index policy.*Play it from Python"),
    ("ucb2", "c", {}, "not an index policy"),
    ("moss", "javascript", {}, "reads h.*--horizon"),
    ("moss", "python", {"horizon": 0}, "horizon must be at least 1"),
    ("ucb1", "python", {"start": "prior-counts"}, "give them.*prior-counts:plays="),
    ("ucb1-tuned", "c", {"start": "prior-counts:plays=2,sum=1"}, "needs squares"),
    ("bayes-ucb", "sql", {}, "beta_quantile.*python"),
    ("nobody", "python", {}, "unknown policy"),
    ("missing.json", "python", {}, "does not exist"),
    (3, "python", {}, "a policy is a text"),
]


@pytest.mark.parametrize(("policy", "to", "options", "message"), REFUSED)
def test_what_cannot_be_exported_is_refused_with_the_remedy(policy, to, options, message):
    with pytest.raises(mb.InputError, match=message):
        mb.export(policy, to, **options)


@pytest.mark.parametrize("to", TARGETS)
def test_names_cannot_break_out_of_comments(to, tmp_path):
    policy = IndexPolicy("r + s", name="a*/ /* \"\"\" \\ '''\n; DROP -- \r\u2028 %s {0} -- $ ` \\")
    written = mb.export(policy, to)
    if to in PROGRAMS:
        assert exported.run(to, [written], tmp_path, "index", [[0.5, 0.25, 1, 1, 1, 2]]) == [0.75]
    elif to == "sql":
        assert len(exported.run_sql(written, [[[1, 1, 1], [2, 1, 1]]])[0]) == 2


REGRET = 0.9044166550663757  # exact, by mb.evaluate


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A policy file as learning writes it."""
    origin = {
        "space": "r + a*sqrt(ln(h + 1))/(n + b) - s/8",
        "prior": "bernoulli:alpha=1,beta=1",
        "arms": 2,
        "horizon": 20,
        "objective": "regret",
        "protocol": "default",
        "optimizer": "cma",
        "seed": 0,
        "stopped": "converged",
        "generations": 1,
        "evaluations": 1,
        "versions": {},
    }
    origin["regret"] = {
        "mean": REGRET,
        "standard_error": 0.0,
        "interval": [REGRET, REGRET],
        "method": "exact",
        "episodes": 0,
    }
    policy = {
        "kind": "expression",
        "expression": origin["space"],
        "parameters": {"a": 0.5, "b": 1.5},
        "start": {"kind": "prior-counts", "plays": 2.0, "sum": 1.0, "squares": 1.0},
    }
    path = tmp_path_factory.mktemp("learned") / "policy.json"
    content = {"format": FORMAT, "version": VERSION, "policy": policy, "learned": origin}
    path.write_text(json.dumps(content), "utf-8")
    return path


def test_a_learned_policy_says_what_for_and_plays_as_well(learned):
    written = mb.export(str(learned))
    head = " ".join(written.split('"""')[1].split())
    origin = f"learned for 2 arms, 20 plays and the prior bernoulli:alpha=1,beta=1, with a mean regret of {REGRET:.6g} (exact)"
    assert origin in head
    assert "as if each arm began with 2 plays, rewards of 1 in sum, their squares 1" in head
    assert "HORIZON = 20\n" in written
    assert "HORIZON = 30\n" in mb.export(str(learned), horizon=30)
    program = {}
    exec(compile(written, "policy.py", "exec"), program)
    rng = np.random.default_rng(7)
    regrets = []
    for _ in range(3000):
        means = rng.uniform(size=2)
        plays, sums = [0, 0], [0.0, 0.0]
        for _ in range(20):
            arm = program["choose"](plays, sums, sums, rng.uniform())
            plays[arm] += 1
            sums[arm] += float(rng.uniform() < means[arm])
        regrets.append(np.dot(plays, means.max() - means))
    error = np.std(regrets) / np.sqrt(len(regrets))
    assert abs(np.mean(regrets) - REGRET) < 4 * error


@pytest.mark.parametrize("to", TARGETS)
def test_the_command_writes_what_the_function_returns(to, learned, tmp_path):
    assert answer(f"export | {learned} | --to | {to}", tmp_path) == mb.export(str(learned), to)


def test_the_command_writes_a_file_once(tmp_path):
    done = call("export | ucb1:C=0.17 | --to | c | --out | policy.c", tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "written to policy.c\n"
    path = tmp_path / "policy.c"
    assert path.read_text("utf-8") == mb.export("ucb1:C=0.17", "c")
    done = call("export | r | --to | c | --out | policy.c", tmp_path)
    assert done.returncode == 2
    assert "exists; choose another name, or overwrite it with --force" in done.stderr
    assert "0.17" in path.read_text("utf-8")
    answer("export | r | --to | c | --out | policy.c | --force", tmp_path)
    assert "0.17" not in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("ucb1 | --to | fortran", "no export to 'fortran'"),
        ("thompson", "not an index policy"),
        ("moss", "give it with --horizon"),
        ("ucb1 | --out | policy.txt", "must end in .py"),
        ("ucb1 | --out | nowhere/policy.py", "does not exist; make it first"),
    ],
)
def test_the_command_refuses_with_exit_code_2(command, message, tmp_path):
    done = call(f"export | {command}", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_policy_file_has_its_own_start(learned):
    with pytest.raises(mb.InputError, match="has its own start"):
        mb.export(str(learned), start="each-once")


def test_a_pipe_gets_what_it_reads(tmp_path):
    done = subprocess.run(
        f"{sys.executable} -m metabandit export 'r + 3/(n + 2)' | head -1",
        capture_output=True,
        text=True,
        shell=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout.startswith('"""The bandit policy r + 3/(n + 2), exported by metabandit')
    assert done.stderr == ""


def test_the_outputs_in_the_docs_are_real():
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text("utf-8")
    shown = re.findall(r"```sh\nmetabandit export ([^\n]*)\n```\n\n```\w+\n(.*?)```", page, re.S)
    assert {to for to in TARGETS if any(f"--to {to}" in command for command, _ in shown)} >= {
        "python",
        "c",
        "sql",
        "latex",
    }
    for command, output in shown:
        policy, *options = shlex.split(command)
        given = dict(zip(options[::2], options[1::2], strict=True))
        horizon = int(given["--horizon"]) if "--horizon" in given else None
        batch = int(given["--batch"]) if "--batch" in given else None
        written = mb.export(
            policy,
            given["--to"],
            horizon=horizon,
            start=given.get("--start"),
            dialect=given.get("--dialect"),
            batch=batch,
        )
        assert written == output
