"""What the commands print and write."""

import json
import re

import pytest

import metabandit
import metabandit.cli
from metabandit.files import reserved
from metabandit.policies import CATALOGUE
from metabandit.priors import PRIORS
from tests.commands import answer, call, refused

pytestmark = pytest.mark.usefixtures("short_reports")

FIRST = """evaluate | ucb1:C=0.17 | ucb1-tuned | r + 3/(n + 2) | --prior | bernoulli:alpha=1,beta=1
| --arms | 2 | --horizon | 100 | --episodes | 20000 | --seed | 1"""
SECOND = """evaluate | thompson | moss | --prior | truncated-gaussian:regret=parent | --horizon | 50
| --episodes | 2000"""


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
        "r + 0/(n + 0)",  # where the search began
    ]
    assert list(tmp_path.iterdir()) == [], "nothing is written without --out"
    wins = json.loads(
        answer(LEARN + "| --json | --objective | wins | --reference | ucb1-tuned", tmp_path)
    )
    assert 0.0 < wins["objective"] < 0.5


def test_formulas_counts_and_writes(tmp_path):
    printed = answer("formulas | --length | 4 | --out | four.npz", tmp_path)
    assert [row[:2] for row in rows(printed)[:5]] == [
        ["1", "9"], ["2", "45"], ["3", "711"], ["4", "8,415"], ["all", "9,180"],
    ]  # fmt: skip
    assert "written  four.npz" in printed
    counted = json.loads(answer("formulas | --length | 4 | --json", tmp_path))
    assert counted["totals"]["formulas"] == 9180
    assert counted["totals"]["classes"] == 158
    refused("formulas | --length | 4 | --out | four.npz", tmp_path, "exists")
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
    # No formula of this length is better than a classic, which is the result then.
    assert "no formula is better than ucb1-tuned" in printed
    assert evaluated["policies"][0]["mean_regret"] == pytest.approx(0.748366, abs=1e-6)
    # From pseudo-observations formulas are better than classics, and their numbers are learned, too.
    command = "search | --horizon | 60 | --length | 5 | --top | 5 | --json | --refine | 2"
    found = json.loads(answer(command, tmp_path))
    assert len(found["ranking"]) == 5
    best = next(item for item in found["ranking"] if item["formula"] == "r + 1/n")
    assert best["refined"]["regret"] < best["regret"]
    assert found["strategy"] == "exact"


def test_learn_overwrites_nothing(tmp_path):
    answer(LEARN + "| --out | policy.json", tmp_path)
    before = (tmp_path / "policy.json").read_bytes()
    refused(LEARN + "| --seed | 5 | --out | policy.json", tmp_path, "--force")
    assert (tmp_path / "policy.json").read_bytes() == before
    answer(LEARN + "| --seed | 5 | --out | policy.json | --force", tmp_path)
    assert (tmp_path / "policy.json").read_bytes() != before


def test_policies(tmp_path):
    listed = json.loads(answer("policies | --json", tmp_path))
    assert [item["name"] for item in listed] == list(CATALOGUE)
    ucb1 = next(item for item in listed if item["name"] == "ucb1")
    assert ucb1["formula"] == "r + sqrt(C * ln(t)/n)"
    assert ucb1["parameters"] == [
        {"name": "C", "default": 2.0, "rule": "greater than 0", "of_prior": False}
    ]
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


@pytest.mark.parametrize(
    "command",
    [
        "evaluate | greedy | --horizon | 5",
        "search | --horizon | 4 | --length | 2",
        "advise | --horizon | 4",
    ],
)
def test_one_run_at_a_time_writes_to_a_file(tmp_path, command):
    with reserved(tmp_path / "a.json"):
        refused(f"{command} | --out | a.json", tmp_path, "another run is writing", "a.json.lock")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("error")
def test_a_second_interrupt_while_the_first_is_cleaned_up_after_has_no_traceback(
    tmp_path, monkeypatch
):
    def work():
        try:
            yield
        finally:
            raise KeyboardInterrupt

    def app(**_):
        working = work()
        next(working)
        del working
        return 0

    monkeypatch.setattr(metabandit.cli, "app", app)
    done = call(["policies"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
