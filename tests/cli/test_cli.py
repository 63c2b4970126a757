"""The command line, run as a person runs it: what it prints, and how it refuses bad input."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import metabandit
import metabandit.cli
from metabandit.policies import CATALOGUE
from metabandit.priors import PRIORS

FIRST = """evaluate | ucb1:C=0.17 | ucb1-tuned | r + 3/(n + 2) | --prior | bernoulli:alpha=1,beta=1
| --arms | 2 | --horizon | 100 | --episodes | 20000 | --seed | 1"""
SECOND = """evaluate | thompson | moss | --prior | truncated-gaussian:regret=parent | --horizon | 50
| --episodes | 2000"""


def run(command, directory):
    """Run `metabandit` with the arguments of `command`, which are set apart by `|`."""
    arguments = [item.strip() for item in command.split("|")]
    return subprocess.run(
        [sys.executable, "-m", "metabandit", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=directory,
        check=False,
    )


def answer(command, directory):
    """What a command that must succeed prints."""
    done = run(command, directory)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def rows(table):
    """The lines of a table below its rule, split into cells."""
    below = table[re.search(r"^-+\n", table, re.MULTILINE).end() :]
    return [re.split(r"\s{2,}", line) for line in below.strip().splitlines()]


def test_evaluate_prints_a_table_with_the_best_first(tmp_path):
    printed = answer(FIRST, tmp_path)
    caption = " ".join(printed.splitlines()[:2])
    for word in ("100 plays", "2 arms", "bernoulli:alpha=1,beta=1", "20,000 episodes", "seed 1"):
        assert word in caption
    assert "\x1b" not in printed, "a pipe gets plain text"
    *cells, floor = rows(printed)
    assert floor[0] == "Bayes-optimal"
    assert float(floor[1]) == pytest.approx(1.7482, abs=1e-4)
    assert {row[0] for row in cells} == {"ucb1:C=0.17", "ucb1-tuned", "r + 3/(n + 2)"}
    regrets = [float(row[1]) for row in cells]
    assert regrets == sorted(regrets)
    for row, regret in zip(cells, regrets, strict=True):
        low, high = map(float, row[2].split(" to "))
        assert low < regret < high
    assert [len(row) for row in cells] == [4, 5, 5], "only the others have a difference to the best"
    assert all(row[-1].endswith(" %") for row in cells)
    plain = rows(answer(FIRST + "| --no-floor", tmp_path))
    assert [row[:3] for row in plain] == [row[:3] for row in cells]


def test_evaluate_prints_json(tmp_path):
    printed = answer(FIRST + "| --json", tmp_path)
    result = json.loads(printed)
    assert {key: result[key] for key in ("prior", "arms", "horizon", "episodes", "seed")} == {
        "prior": "bernoulli:alpha=1,beta=1",
        "arms": 2,
        "horizon": 100,
        "episodes": 20_000,
        "seed": 1,
    }
    assert result["method"] == "monte-carlo"
    names = [policy["policy"] for policy in result["policies"]]
    assert names == ["ucb1:C=0.17", "ucb1-tuned", "r + 3/(n + 2)"], "the order is the one given"
    for policy in result["policies"]:
        assert 0 < policy["standard_error"] < policy["mean_regret"] < 100
    assert answer(FIRST + "| --json | --threads | 1", tmp_path) == printed


def test_the_second_example(tmp_path):
    result = json.loads(answer(SECOND + "| --json", tmp_path))
    assert [policy["policy"] for policy in result["policies"]] == ["thompson", "moss"]
    assert (result["arms"], result["horizon"], result["seed"]) == (2, 50, 0)
    assert "regret=parent" in result["prior"]
    printed = answer(SECOND, tmp_path)
    expected = {policy["policy"]: f"{policy['mean_regret']:.4f}" for policy in result["policies"]}
    assert {row[0]: row[1] for row in rows(printed)} == expected


def test_several_horizons_give_several_results(tmp_path):
    command = "evaluate | greedy | --horizon | 20 | --horizon | 5 | --episodes | 500"
    results = json.loads(answer(command + "| --json", tmp_path))["results"]
    assert [result["horizon"] for result in results] == [20, 5]
    printed = answer(command, tmp_path)
    assert re.findall(r"Regret after (\d+) plays", printed) == ["20", "5"]


def test_an_evaluation_can_be_written(tmp_path):
    command = (
        "evaluate | greedy | --horizon | 20 | --horizon | 5 | --episodes | 500 | --out | a.json"
    )
    printed = answer(f"{command} | --json", tmp_path)
    assert (tmp_path / "a.json").read_text("utf-8") == printed
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert "Regret after 5 plays" in answer(f"{command} | --force", tmp_path)


def test_a_policy_may_be_given_twice(tmp_path):
    printed = answer("evaluate | greedy | ucb1 | greedy | --episodes | 200", tmp_path)
    assert [row[0] for row in rows(printed)].count("greedy") == 2


def test_start_and_runs(tmp_path):
    command = "evaluate | n - r | --horizon | 1 | --episodes | 200 | --runs | 2 | --json"
    result = json.loads(answer(command + "| --start | prior-counts", tmp_path))
    assert result["runs"] == 2
    assert sum(result["policies"][0]["plays"]) == pytest.approx(1)


def test_one_episode_has_no_standard_error(tmp_path):
    result = json.loads(answer("evaluate | greedy | --episodes | 1 | --json", tmp_path))
    assert result["policies"][0]["standard_error"] is None
    assert "nan" not in answer("evaluate | greedy | uniform | --episodes | 1", tmp_path)


def test_exact_values(tmp_path):
    command = "evaluate | ucb1 | greedy | --horizon | 10"
    result = json.loads(answer(command + "| --json", tmp_path))
    assert (result["method"], result["episodes"]) == ("exact", 0)
    ucb1, greedy = result["policies"]
    assert ucb1["mean_regret"] == pytest.approx(1.06448, abs=1e-5)
    assert greedy["standard_error"] == 0
    assert result["floor"]["regret"] == pytest.approx(0.644881, abs=1e-6)
    above = greedy["mean_regret"] / result["floor"]["regret"] - 1
    assert greedy["above_floor"] == pytest.approx(above)
    printed = answer(command, tmp_path)
    assert "exact" in printed.splitlines()[1]
    assert rows(printed) == [
        ["greedy", "0.784162", "+21.60 %"],
        ["ucb1", "1.064478", "+0.2803", "+65.07 %"],
        ["Bayes-optimal", "0.644881"],
    ]
    without = json.loads(answer(command + "| --json | --no-floor", tmp_path))
    assert without["floor"] is None
    assert without["policies"][0]["mean_regret"] == ucb1["mean_regret"]


def test_optimal(tmp_path):
    result = json.loads(answer("optimal | --horizon | 60 | --json", tmp_path))
    assert result["expected_reward"] == pytest.approx(38.562343246635564, abs=1e-9)
    assert result["regret"] == pytest.approx(40 - result["expected_reward"])
    assert (result["horizon"], result["start"]) == (60, "free")
    assert result["prior"] == "bernoulli:alpha=1,beta=1"
    printed = answer("optimal | --horizon | 10 | --start | each-once", tmp_path)
    assert printed.splitlines()[-2].split() == ["5.951243", "0.715423"]
    saved = answer("optimal | --horizon | 20 | --save | best.npz | --json", tmp_path)
    played = answer("evaluate | best.npz | --horizon | 20 | --json", tmp_path)
    found = json.loads(played)["policies"][0]["mean_regret"]
    assert found == pytest.approx(json.loads(saved)["regret"], abs=1e-10)
    three = json.loads(answer("optimal | --arms | 3 | --horizon | 50 | --json", tmp_path))
    assert three["regret"] == pytest.approx(2.282659, abs=1e-6)


LEARN = "learn | --space | r + a/(n + b) | --horizon | 20 | --generations | 6"


def test_learn_prints_a_table_and_writes_a_policy(tmp_path):
    printed = answer(LEARN + "| --out | policy.json", tmp_path)
    cells = rows(printed.split("\n\n")[0])
    assert cells[0][0].startswith("r + ")
    assert cells[-1][0] == "Bayes-optimal"
    assert {"ucb1", "ucb1-tuned", "kl-ucb", "thompson"} <= {row[0] for row in cells}
    assert "6 generations" in printed
    assert "policy.json, policy.trace.jsonl" in printed
    assert "\x1b" not in printed
    again = answer("evaluate | policy.json | ucb1-tuned | --horizon | 20", tmp_path)
    assert rows(again)[0][:2] == ["policy.json", cells[0][1]]
    lines = (tmp_path / "policy.trace.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line).get("generation") for line in lines] == [None, *range(6)]
    settings = json.loads(lines[0])["settings"]
    assert settings["space"] == "r + a/(n + b)"


def test_learn_prints_json(tmp_path):
    result = json.loads(answer(LEARN + "| --json", tmp_path))
    assert result["format"] == "metabandit policy"
    assert set(result["policy"]["parameters"]) == {"a", "b"}
    assert result["learned"]["regret"]["method"] == "exact"
    assert [item["policy"] for item in result["comparison"]["policies"]][1:] == [
        "ucb1",
        "ucb1-tuned",
        "kl-ucb",
        "thompson",
    ]
    assert list(tmp_path.iterdir()) == [], "nothing is written without --out"
    wins = json.loads(
        answer(LEARN + "| --json | --objective | wins | --reference | ucb1-tuned", tmp_path)
    )
    assert 0.0 < wins["objective"] < 0.5


LONG = """learn | --space | power-1 | --horizon | 60 | --generations | 40 | --seed | 7 | --out"""


_BEGUN = []


@pytest.fixture(autouse=True)
def _nothing_goes_on():
    """What a test began ends with it."""
    yield
    while _BEGUN:
        process = _BEGUN.pop()
        process.kill()
        process.communicate()


def begin(command, directory):
    """Start a command without waiting for its end."""
    arguments = [item.strip() for item in command.split("|")]
    process = subprocess.Popen(
        [sys.executable, "-m", "metabandit", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
        # Tests that run in the background ignore SIGINT, and what they start would, too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    _BEGUN.append(process)
    return process


def wait_until(condition, process):
    """Until a condition holds, which a process is to bring about."""
    for _ in range(2400):
        if condition():
            return
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    raise AssertionError("nothing was recorded within two minutes")


def wait_for_generations(trace, count, process):
    """Until so many generations are on record."""
    wait_until(lambda: trace.exists() and trace.read_text("utf-8").count("\n") > count, process)


def test_a_killed_run_is_resumed_bit_for_bit(tmp_path):
    answer(f"{LONG} | whole.json", tmp_path)
    whole = (tmp_path / "whole.json").read_bytes()
    out = tmp_path / "killed.json"
    for attempt, threads in enumerate((2, 1)):
        command = f"{LONG} | {out.name} | --threads | {threads}"
        process = begin(command + ("| --resume" if attempt else ""), tmp_path)
        wait_for_generations(tmp_path / "killed.trace.jsonl", 5 + 12 * attempt, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not out.exists()
    refused = run(command, tmp_path)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    answer(f"{command} | --resume", tmp_path)
    assert out.read_bytes() == whole


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_writes_the_best_so_far(tmp_path, name):
    command = "learn | --space | power-1 | --horizon | 80 | --effort | 50 | --out | policy.json"
    process = begin(command, tmp_path)
    wait_for_generations(tmp_path / "policy.trace.jsonl", 3, process)
    process.send_signal(getattr(signal, name))
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "ended: interrupted" in printed
    content = json.loads((tmp_path / "policy.json").read_text("utf-8"))
    assert content["learned"]["stopped"] == "interrupted"
    assert content["learned"]["regret"]["mean"] > 1.0
    answer("evaluate | policy.json | --horizon | 80", tmp_path)


def test_formulas_counts_and_writes(tmp_path):
    printed = answer("formulas | --length | 4 | --out | four.npz", tmp_path)
    assert [row[:2] for row in rows(printed)[:5]] == [
        ["1", "9"], ["2", "45"], ["3", "711"], ["4", "8,415"], ["all", "9,180"],
    ]  # fmt: skip
    assert "written  four.npz" in printed
    counted = json.loads(answer("formulas | --length | 4 | --json", tmp_path))
    assert counted["totals"]["formulas"] == 9180
    assert counted["totals"]["classes"] == 158
    done = run("formulas | --length | 4 | --out | four.npz", tmp_path)
    assert (done.returncode, "exists" in done.stderr) == (2, True)
    own = "formulas | --length | 3 | --variables | r,n,h | --constants | 1,4 | --operators | add,divide"
    assert json.loads(answer(f"{own} | --json", tmp_path))["totals"]["formulas"] == 5 + 2 * 25
    reached = "formulas | --length | 3 | --prior | bernoulli | --horizon | 8 | --json"
    whole = json.loads(answer(reached, tmp_path))["totals"]["classes"]
    sharp = json.loads(answer(f"{reached} | --sharp", tmp_path))["totals"]["classes"]
    assert sharp < whole


def test_search_prints_a_ranking_and_writes_a_policy(tmp_path):
    command = "search | --horizon | 10 | --start | each-once | --length | 4 | --top | 5"
    printed = answer(f"{command} | --out | best.json | --plot | front.png", tmp_path)
    first = rows(printed)[0]
    assert first[1:3] == ["max(r, 1/5)", "4"]
    assert float(first[3]) == pytest.approx(0.772988, abs=1e-5)
    for words in ("exact", "Bayes-optimal", "ucb1-tuned", "written      best.json, front.png"):
        assert words in printed
    assert (tmp_path / "front.png").read_bytes()[:4] == b"\x89PNG"
    evaluated = json.loads(answer("evaluate | best.json | --horizon | 10 | --json", tmp_path))
    assert evaluated["policies"][0]["mean_regret"] == pytest.approx(0.772988, abs=1e-6)
    found = json.loads(answer(f"{command} | --json | --refine | 1", tmp_path))
    assert len(found["ranking"]) == 5
    best = found["ranking"][0]
    assert best["refined"]["regret"] <= best["regret"] + 1e-12
    assert found["strategy"] == "exact"


SEARCH = """search | --horizon | 20 | --length | 4 | --strategy | ucb1-tuned | --pulls | 2500000 | --top | 3
| --out"""


def test_a_killed_search_is_resumed(tmp_path):
    answer(f"{SEARCH} | whole.json", tmp_path)
    process = begin(f"{SEARCH} | killed.json | --threads | 1", tmp_path)
    state = tmp_path / "killed.search.npz"
    wait_until(state.exists, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed.json").exists()
    for wrong, words in (("", "--resume"), ("| --resume | --seed | 4", "another search")):
        refused = run(f"{SEARCH} | killed.json {wrong}", tmp_path)
        assert refused.returncode == 2
        assert words in refused.stderr
    answer(f"{SEARCH} | killed.json | --resume", tmp_path)
    assert (tmp_path / "killed.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert not state.exists()


def test_an_interrupted_search_writes_the_best_so_far(tmp_path):
    process = begin(SEARCH.replace("2500000", "200000000") + "| best.json", tmp_path)
    wait_until((tmp_path / "best.search.npz").exists, process)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "ended: interrupted" in printed
    content = json.loads((tmp_path / "best.json").read_text("utf-8"))
    assert content["learned"]["stopped"] == "interrupted"


def test_learn_overwrites_nothing(tmp_path):
    answer(LEARN + "| --out | policy.json", tmp_path)
    before = (tmp_path / "policy.json").read_bytes()
    done = run(LEARN + "| --seed | 5 | --out | policy.json", tmp_path)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert (tmp_path / "policy.json").read_bytes() == before
    answer(LEARN + "| --seed | 5 | --out | policy.json | --force", tmp_path)
    assert (tmp_path / "policy.json").read_bytes() != before


def test_policies(tmp_path):
    listed = json.loads(answer("policies | --json", tmp_path))
    assert [item["name"] for item in listed] == list(CATALOGUE)
    ucb1 = next(item for item in listed if item["name"] == "ucb1")
    assert ucb1["formula"] == "r + sqrt(C * ln(t)/n)"
    assert ucb1["parameters"] == [{"name": "C", "default": 2.0, "rule": "greater than 0"}]
    printed = answer("policies", tmp_path)
    for item in listed:
        line = next(line for line in printed.splitlines() if line.startswith(item["name"] + " "))
        assert item["formula"] in line
        assert item["source"] in line


def test_priors(tmp_path):
    listed = json.loads(answer("priors | --json", tmp_path))
    assert [item["name"] for item in listed] == list(PRIORS)
    assert listed[0]["parameters"] == {"alpha": 1.0, "beta": 1.0}
    printed = answer("priors", tmp_path)
    assert [row[0] for row in rows(printed)][: len(PRIORS)] == list(PRIORS)


def test_version_and_help(tmp_path):
    assert answer("--version", tmp_path).strip() == metabandit.__version__
    printed = answer("--help", tmp_path)
    assert all(command in printed for command in ("evaluate", "learn", "policies", "priors"))
    printed = answer("evaluate | --help", tmp_path)
    assert all(option in printed for option in ("--prior", "--horizon", "--episodes", "--json"))


FILES = {
    "empty-cell.csv": "0.1,0.2\n0.3,\n",
    "ragged.csv": "0.1,0.2\n0.3\n",
    "out-of-range.csv": "0.1,0.2\n0.3,1.7\n",
    "words.csv": "0.1,0.2\n0.3,high\n",
    "good.csv": "0.1,0.2,0.3\n",
    "broken.npz": "nothing",
    "broken.json": '{"format": "metabandit policy", "version": 1, "policy": {}}',
    "newer.json": '{"format": "metabandit policy", "version": 99}',
    "half.json": '{"format": "metabandit pol',
}
# Commands are `evaluate` unless they begin with another one.
BAD = [
    ("nosuch", ["unknown policy 'nosuch'"]),
    ("greedy | --prior | nosuch", ["unknown prior 'nosuch'"]),
    ("greedy | --prior | bernouli", ["'bernouli'", "did you mean bernoulli"]),
    ("ucb1:D=1", ["ucb1", "no parameter 'D'"]),
    ("greedy | --prior | bernoulli:gamma=1", ["bernoulli", "no parameter 'gamma'"]),
    ("greedy | --prior | table", ["table:path="]),
    ("greedy | --prior | bernoulli:alpha=0", ["alpha", "greater than 0"]),
    ("greedy | --prior | bernoulli:alpha=1:2:3 | --arms | 2", ["alpha", "3 values for 2 arms"]),
    ("greedy | --prior | truncated-gaussian:regret=x", ["regret", "'x'"]),
    ("ucb1:C=abc", ["C of ucb1", "'abc'"]),
    ("ucb1:C=-1", ["C of ucb1", "greater than 0", "-1"]),
    ("ucb2:alpha=2", ["alpha of ucb2", "less than 1", "2"]),
    ("greedy | --arms | 1", ["at least 2", "1"]),
    ("greedy | --arms | many", ["--arms"]),
    ("greedy | --arms | 5 | --horizon | 4", ["greedy", "at least 5, not 4"]),
    ("uniform | --horizon | 0", ["horizon", "at least 1, not 0"]),
    ("greedy | --episodes | 0", ["episodes", "at least 1, not 0"]),
    ("greedy | --episodes | 10 | --runs | 3", ["(10)", "(3)"]),
    ("greedy | --seed | -1", ["seed", "-1"]),
    ("greedy | --threads | 0", ["threads", "at least 1, not 0"]),
    ("greedy | --resume", ["--out"]),
    ("greedy | --out | result.txt", ["ends in .json", "result.txt"]),
    ("greedy | --out | half.json", ["half.json exists", "--force"]),
    ("greedy | --out | result.json | --resume", ["nothing to resume", "result.100.npz"]),
    ("greedy | --start | never", ["'never'", "each-once"]),
    ("r + 3/(n + 2", ["r + 3/(n + 2\n", "at character 13", "^"]),
    ("r + speed", ["unknown variable 'speed'", "at character 5"]),
    ("sqr(n) + r", ["unknown function 'sqr'", "did you mean sqrt"]),
    ("greedy | --prior | table:path=empty-cell.csv", ["empty-cell.csv", "line 2, column 2"]),
    ("greedy | --prior | table:path=ragged.csv", ["ragged.csv", "line 2"]),
    ("greedy | --prior | table:path=out-of-range.csv", ["out-of-range.csv", "line 2", "1.7"]),
    ("greedy | --prior | table:path=words.csv", ["words.csv", "line 2, column 2", "'high'"]),
    ("greedy | --prior | table:path=good.csv | --arms | 2", ["good.csv", "3 columns", "not 2"]),
    ("greedy | --prior | table:path=nowhere.csv", ["nowhere.csv", "does not exist"]),
    ("nowhere.json", ["nowhere.json", "does not exist"]),
    ("1/s", ["index of 1/s ", "infinite", "n=1", "r=", "t=2"]),
    ("ln(r - 2)", ["index of ln(r - 2) ", "not a number", "n=1", "r=", "t=2"]),
    ("ucb1 | r/(t - 5) | --arms | 3", ["index of r/(t - 5) ", "n=", "r=", "t=5"]),
    ("kl-ucb | --prior | gaussian", ["kl-ucb", "kl_upper", "[0, 1]"]),
    ("greedy | --method | exactly", ["'exactly'", "did you mean exact"]),
    ("greedy | --method | exact | --episodes | 9", ["episodes, runs", "monte-carlo"]),
    ("ucb2 | --method | exact", ["ucb2", "memory beyond the counts", "monte-carlo"]),
    ("greedy | --method | exact | --prior | gaussian", ["Bernoulli arms", "gaussian:"]),
    ("greedy | --method | exact | --arms | 4", ["3 arms", "not 4"]),
    ("greedy | --method | exact | --horizon | 5000", ["4096 plays", "not 5000"]),
    ("greedy | --floor | --arms | 9", ["2 or 3 arms", "not 9", "gittins"]),
    ("optimal | --arms | 3", ["2 arms", "not 3"]),
    ("gittins | --prior | gaussian", ["gittins", "[0, 1]"]),
    ("broken.npz", ["broken.npz", "no policy"]),
    ("nowhere.npz", ["nowhere.npz", "does not exist"]),
    ("broken.json", ["broken.json is damaged", "policy"]),
    ("newer.json", ["newer.json has version 99", "Update"]),
    ("half.json", ["half.json is damaged", "not valid JSON"]),
    ("> learn | --space | ucb1-tuned", ["ucb1-tuned", "no parameters", "nothing to learn"]),
    ("> learn | --space | r + 1/n", ["r + 1/n", "no free parameter", "'r + a/(n + b)'"]),
    ("> learn | --space | power1", ["'power1'", "power-1"]),
    ("> learn | --space | power-7", ["1 to 4", "'7'"]),
    ("> learn | --space | r + a/n | --initial | n=2", ["n is a variable", "plays of the arm"]),
    ("> learn | --space | r + a/n | --initial | c=2", ["no parameter 'c'", "known: a"]),
    ("> learn | --space | r + a/n | --initial | nowhere.json", ["nowhere.json", "does not exist"]),
    ("> learn | --objective | wins", ["wins", "--reference ucb1-tuned"]),
    ("> learn | --objective | best", ["'best'", "known:"]),
    ("> learn | --reference | ucb1", ["reference", "wins"]),
    ("> learn | --optimizer | sgd", ["'sgd'", "cma"]),
    ("> learn | --protocol | papers", ["'papers'", "did you mean paper"]),
    ("> learn | --start | never", ["'never'", "each-once"]),
    ("> learn | --prior | gaussian | --start | prior-counts", ["gaussian:", "plays=2,sum=1"]),
    ("> learn | --v1 | n", ["v1", "'n'"]),
    ("> learn | --time-limit | soon", ["'soon'", "5m"]),
    ("> learn | --effort | 0", ["effort", "greater than 0"]),
    ("> learn | --out | policy.txt", ["policy.txt", ".json"]),
    ("> learn | --out | nowhere/policy.json", ["nowhere", "does not exist"]),
    ("> learn | --out | broken.json", ["broken.json exists", "--force"]),
    ("> learn | --resume", ["--resume", "--out"]),
    ("> learn | --out | fresh.json | --resume", ["nothing to resume", "fresh.trace.jsonl"]),
    ("> learn | --horizon | 1 | --start | each-once", ["at least 2, not 1"]),
    ("> optimal | --arms | 4", ["2 or 3 arms", "not 4"]),
    ("> optimal | --prior | gaussian", ["Bernoulli arms", "gaussian:"]),
    ("> optimal | --prior | bernoulli:beta=-1", ["beta", "greater than 0", "-1"]),
    ("> optimal | --start | never", ["'never'", "free"]),
    ("> optimal | --start | each-once | --horizon | 1", ["at least 2, not 1"]),
    ("> optimal | --threads | 0", ["threads", "at least 1, not 0"]),
    ("> optimal | --prior | bernoulli:alpha=1e-300", ["alpha", "between 1e-9 and 1e9"]),
    ("> optimal | --horizon | 0", ["horizon", "at least 1, not 0"]),
    ("> optimal | --horizon | 100000", ["GB of memory", "GB are free", "shorter"]),
    ("> optimal | --arms | 3 | --horizon | 2000", ["GB of memory", "GB are free", "shorter"]),
    ("> optimal | --save | best.json", [".npz", "best.json"]),
    ("> optimal | --save | broken.npz", ["broken.npz", "exists already"]),
    ("> formulas | --length | 11", ["formulas up to length 11", "GB are free", "length 8 fits"]),
    ("> formulas | --length | 0", ["length of formulas", "at least 1, not 0"]),
    ("> formulas | --variables | t", ["variable of the arm"]),
    ("> formulas | --constants | one", ["constant", "'one'"]),
    ("> formulas | --operators | plus", ["unknown operator 'plus'"]),
    ("> formulas | --horizon | 10", ["--horizon", "--prior"]),
    ("> formulas | --prior | bernoulli", ["--prior needs --horizon"]),
    ("> formulas | --sharp", ["--sharp", "--prior"]),
    ("> formulas | --force", ["--out"]),
    ("> formulas | --groups | 0", ["groups", "at least 1"]),
    ("> formulas | --out | classes.json", [".npz", "classes.json"]),
    ("> formulas | --out | broken.npz", ["broken.npz", "exists"]),
    ("> search | --classes | broken.npz", ["broken.npz", "damaged"]),
    ("> search | --classes | none.npz", ["none.npz", "does not exist"]),
    ("> search | --strategy | guess", ["unknown strategy 'guess'"]),
    ("> search | --out | best.txt", [".json", "best.txt"]),
    ("> search | --resume", ["--out"]),
    ("> search | --plot | front.gif", [".svg", "front.gif"]),
    ("> search | --top | 0", ["formulas to rank", "at least 1"]),
    ("> search | --time-limit | soon", ["time limit", "'soon'"]),
    ("> search | --objective | wins", ["--reference"]),
    (
        "> search | --length | 2 | --strategy | exact | --arms | 3",
        ["two Bernoulli arms", "halving"],
    ),
    ("> search | --length | 2 | --strategy | ucb1-tuned | --pulls | 2", ["2 pulls are too few"]),
]


def act(arguments, directory, output, errors):
    """Be the command line: in a process that was forked from one that has loaded metabandit."""
    os.chdir(directory)
    for path, stream in ((output, 1), (errors, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    sys.argv = ["metabandit", *arguments]
    metabandit.cli.main()


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """Runs a bad command in a process of its own, one that need not load everything anew."""
    directory = tmp_path_factory.mktemp("files")
    for name, content in FILES.items():
        (directory / name).write_text(content)
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["pytest", "typer._adapters", "metabandit.learning", __name__])

    def refuse(command):
        full = command[2:] if command.startswith("> ") else f"evaluate | {command}"
        arguments = [item.strip() for item in f"{full} | --json".split("|")]
        said = [tmp_path_factory.mktemp("said") / name for name in ("output", "errors")]
        process = server.Process(target=act, args=(arguments, directory, *said))
        process.start()
        process.join()
        return subprocess.CompletedProcess(
            arguments, process.exitcode, *(path.read_text("utf-8") for path in said)
        )

    return refuse


@pytest.mark.parametrize(("command", "words"), BAD, ids=[command for command, _ in BAD])
def test_bad_input_is_refused_with_a_message(command, words, refused):
    done = refused(command)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert [word for word in words if word not in done.stderr] == []


@pytest.mark.parametrize("command", ["nosuch", "evaluate", "evaluate | greedy | --nosuch"])
def test_bad_commands_are_refused(command, tmp_path):
    done = run(command, tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "Usage" in done.stderr
