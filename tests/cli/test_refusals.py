"""Bad input ends a command with exit code 2 and a message that says what to do."""

import pytest

from tests.commands import refused

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with files that are not as they should be."""
    made = tmp_path_factory.mktemp("files")
    for name, content in FILES.items():
        (made / name).write_text(content)
    return made


@pytest.mark.parametrize(("command", "words"), BAD, ids=[command for command, _ in BAD])
def test_bad_input_is_refused_with_a_message(command, words, folder):
    full = command[2:] if command.startswith("> ") else f"evaluate | {command}"
    refused(f"{full} | --json", folder, *words)


@pytest.mark.parametrize("command", ["nosuch", "evaluate", "evaluate | greedy | --nosuch"])
def test_bad_commands_are_refused(command, tmp_path):
    refused(command, tmp_path, "Usage")
