"""Bad input ends a command with exit code 2 and a message that says what to do."""

import inspect

import pytest
from typer.main import get_command

from metabandit.cli import app
from tests.commands import answer, call, refused

FILES = {
    "empty-cell.csv": "0.1,0.2\n0.3,\n",
    "ragged.csv": "0.1,0.2\n0.3\n",
    "out-of-range.csv": "0.1,0.2\n0.3,1.7\n",
    "words.csv": "0.1,0.2\n0.3,high\n",
    "good.csv": "0.1,0.2,0.3\n",
    "broken.npz": "nothing",
    "broken.json": '{"format": "metabandit policy", "version": 1, "policy": {}}',
    "newer.json": '{"format": "metabandit policy", "version": 99}',
    "sure.csv": "arm,reward,probability\na,1,1\nb,0,1\n",
    "sure-or-not.csv": "arm,reward,probability\na,1,1\nb,0,0\n",
    "even.csv": "arm,reward,probability\na,1,0.5\nb,0,0.5\n",
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
    ("greedy | --out | result.txt", ["must end in .json", "result.txt"]),
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
    (
        "> replay | sure.csv | --policy | ucb1 | --horizon | 1",
        ["sure.csv cannot be used", "probability 1", "--min-share"],
    ),
    (
        "> replay | sure-or-not.csv | --policy | ucb1 | --horizon | 1",
        ["sure-or-not.csv, play 2", "sure choices cannot be used", "--min-share"],
    ),
    (
        "> trial | equal | --at | 0.3,0.5 | --test | fisher | --test | exact",
        ["--test was given 2 times", "once for each"],
    ),
    ("greedy | --seed | 1 | --seed=2", ["--seed was given 2 times"]),
    ("greedy | --batch | 0", ["plays of a batch", "at least 1, not 0"]),
    ("greedy | --batch | ten", ["'ten'", "whole number of plays", "geometric"]),
    ("greedy | --batch | 200", ["batch of 200", "horizon of 100", "at most 100"]),
    ("greedy | --batch | 50,40", ["90 plays together", "horizon is 100", "add up"]),
    ("greedy | --batch | geometric:growth=1", ["growth", "greater than 1"]),
    ("greedy | --delay | -1", ["delay", "at least 0, not -1"]),
    ("greedy | --delay | 100", ["delay of 100", "horizon of 100", "below"]),
    ("greedy | --delay | geometric:mean=-3", ["mean of delays", "greater than 0"]),
    ("greedy | --min-share | 0.6", ["2 arms", "0.6", "1.2", "at most 1/2"]),
    ("greedy | --min-share | -0.1", ["minimum share", "between 0 and 1"]),
    ("greedy | --pending | maybe", ["'maybe'", "count"]),
    ("greedy | --delay | 5 | --method | exact", ["delays are simulated", "monte-carlo"]),
    ("optimal | --batch | 5", ["optimal", "known at once"]),
    ("ucb2 | --batch | 5 | --pending | ignore", ["ucb2", "epochs count all plays"]),
    ("> optimal | --delay | 5 | --prior | beta", ["no floor", "beta:", "2 or 3", "gaussian"]),
    ("> optimal | --batch | 101", ["batch of 101 plays", "horizon of 100"]),
    ("> optimal | --batch | 10 | --save | x.npz", ["saved for immediate feedback only"]),
    ("> learn | --batch | 101", ["batch of 101", "horizon of 100"]),
    ("> search | --variables | r,w", ["variable w", "batches or a delay"]),
    ("greedy | --method | exactly", ["'exactly'", "did you mean exact"]),
    (
        "greedy | --method | exact | --episodes | 9 | --runs | 3",
        ["no episodes and no runs", "monte-carlo"],
    ),
    ("ucb2 | --method | exact", ["ucb2", "memory beyond the counts", "monte-carlo"]),
    ("greedy | --method | exact | --prior | gaussian", ["Bernoulli arms", "gaussian:"]),
    ("greedy | --method | exact | --arms | 4", ["3 arms", "not 4"]),
    ("greedy | --method | exact | --horizon | 5000", ["4096 plays", "not 5000"]),
    ("greedy | --floor | --prior | beta", ["no floor", "beta:", "2 or 3", "gaussian"]),
    ("> learn | --floor | --prior | beta", ["--floor", "no floor", "beta:", "gaussian"]),
    ("> search | --floor | --prior | beta", ["--floor", "no floor", "beta:", "gaussian"]),
    ("optimal | --arms | 4", ["2 or 3 arms", "not 4"]),
    ("gittins | --prior | truncated-gaussian:low=-1", ["gittins", "[0, 1]", "gaussian"]),
    ("gittins:discount=1.5", ["discount of gittins", "at most 1", "1.5"]),
    ("broken.npz", ["broken.npz", "not a policy"]),
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
    ("> optimal | --arms | 4 | --save | four.npz", ["2 or 3 arms", "not 4"]),
    ("> optimal | --prior | truncated-gaussian", ["no floor", "truncated-gaussian:"]),
    ("> optimal | --arms | 4 | --floor-effort | 0", ["effort", "greater than 0"]),
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
    ("> search | --length | 2 | --pulls | 1000", ["--pulls", "strategy ucb1-tuned, not auto"]),
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


# A command and the option that its message names, as the library does not.
NAMED = [
    "evaluate | greedy | --horizon | 0",
    "evaluate | greedy | --runs | 3 | --episodes | 10",
    "evaluate | greedy | --runs | 0",
    "evaluate | greedy | --min-share | 0.6",
    "evaluate | greedy | --pending | maybe",
    "evaluate | greedy | --method | guess",
    "evaluate | greedy | --method | exact | --prior | gaussian",
    "evaluate | greedy | --start | never",
    "evaluate | greedy | --prior | nosuch",
    "evaluate | greedy | --batch | 0",
    "evaluate | greedy | --delay | -1",
    "evaluate | greedy | --seed | -1",
    "evaluate | greedy | --threads=0",
    "evaluate | greedy | --workers | 0",
    "evaluate | greedy | --cluster | here",
    "evaluate | greedy | --show | all",
    "learn | --effort | 0",
    "learn | --time-limit | soon",
    "learn | --space | nosuch",
    "learn | --objective | nosuch",
    "learn | --reference | ucb1",
    "learn | --optimizer | nosuch",
    "learn | --protocol | nosuch",
    "learn | --generations | 0",
    "learn | --initial | q=1",
    "learn | --v1 | z",
    "learn | --v4 | z",
    "search | --length | 0",
    "search | --top | 0",
    "search | --refine | -1",
    "search | --strategy | nosuch",
    "search | --constants | x",
    "formulas | --groups | 0",
    "formulas | --tolerance | 1",
    "advise | --today | nosuch",
    "advise | --unit | ",
    "optimal | --start | nosuch",
    "optimal | --arms | 10 | --floor-effort | 0",
    "trial | equal | --at | 0.1,2",
    "trial | equal | --at | 0.1,0.2 | --level | 2",
    "trial | equal | --at | 0.1,0.2 | --look-every | 0",
    "trial | equal | --at | 0.1,0.2 | --look-every | 20 | --boundary | nosuch",
    "trial | equal | --at | 0.1,0.2 | --fewer-than | 0",
    "trial | equal | --at | 0.1,0.2 | --imbalance | 3",
    "trial | equal | --at | 0.1,0.2 | --minimum | -1",
    "trial | equal | --at | 0.1,0.2 | --test | nosuch",
    "trial | equal | --grid | 0.1",
    "export | ucb1 | --to | cobol",
    "export | ucb1 | --to | sql | --dialect | nosuch",
    "export | ucb1 | --batch | 3",
    "fit | good.csv | --plot | fit.txt",
    "replay | sure.csv | --policy | ucb1 | --horizon | 0",
    "reproduce | --scale | huge",
    "search | --length | 3 | --classes | none.npz",
    "search | --operators | nosuch",
    "search | --variables | nosuch",
    "search | --length | 2 | --strategy | ucb1-tuned | --pulls | 0",
    "advise | --value | -1",
    "replay | even.csv | --policy | ucb1 | --horizon | 1 | --least | 3",
    "replay | even.csv | --shares | a=2",
]


@pytest.mark.parametrize("command", NAMED)
def test_a_message_names_the_option(command, tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    *_, option = (word for word in command.replace("=", " | ").split(" | ") if word[:2] == "--")
    if command.endswith("gaussian"):
        option = "--method"
    refused(command, tmp_path, option)


# What a command needs before its options are looked at.
NEEDED = {
    "evaluate": "greedy",
    "export": "ucb1",
    "fit": "good.csv",
    "optimal": "--arms 10",
    "replay": "even.csv --policy ucb1 --horizon 1",
    "report": "result.json --figures pictures",
    "serve": "--store sqlite:///bandit.db --experiment one --policy ucb1 --arms a,b",
    "trial": "equal --at 0.1,0.2",
}
# Words that mean nothing, by the type of the option.
NONSENSE = {"int": "-7", "float": "nan", "str": "no such,\nthing"}
# What can be nearly any word.
FREE = {"--arms", "--experiment"}


def _given():
    """All commands with each of their options that takes a number or a word."""
    for made in app.registered_commands:
        types = inspect.signature(made.callback).parameters
        for item in get_command(app).commands[made.name].params:
            option = item.opts[0]
            if item.param_type_name == "option" and item.name in types:
                text = str(types[item.name].annotation.__origin__)
                for nonsense in [word for kind, word in NONSENSE.items() if kind in text]:
                    if option not in FREE or nonsense == NONSENSE["int"]:
                        yield made.name, option, nonsense


@pytest.fixture(scope="module")
def results(folder):
    """The folder with files that are as they should be, too."""
    answer("store | init | sqlite:///bandit.db", folder)
    found = answer("evaluate | greedy | --horizon | 3 | --json", folder)
    (folder / "result.json").write_text(found)
    return folder


@pytest.mark.parametrize(("command", "option", "nonsense"), list(_given()))
def test_a_message_names_the_option_whatever_it_is(command, option, nonsense, results):
    needed = NEEDED.get(command, "").split()
    if option in needed:
        del needed[needed.index(option) :][:2]
    done = call([command, *needed, f"{option}={nonsense}"], results)
    assert done.returncode == 2
    assert option in done.stderr
    assert "-" not in option[2:] or option[2:].replace("-", "_") not in done.stderr


def test_a_message_names_no_option_that_was_not_given(tmp_path):
    done = call("evaluate | ucb1:start=never", tmp_path)
    assert "unknown start" in done.stderr
    assert "--start" not in done.stderr
