"""Odd command lines and damaged files, drawn at random: what the tests of robustness attack with.

A command line is mostly what a person would write, with a few odd values in it: most nonsense is refused
by the first check that it meets, and never reaches the others.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zipfile
from pathlib import Path
from random import Random

import metabandit as mb
from metabandit.policies import CATALOGUE

# The paper's experiments, as `reproduce` records them.
RECORDS = Path(__file__).parent.parent / "docs" / "reproduction" / "records.jsonl"

# What is odd as a whole number, as another number, as what is none, as a file's name, and as anything.
WHOLE = [
    "0",
    "-1",
    "1",
    "300",
    "1000",
    "5000",
    "100000",
    "16777216",
    "16777217",
    "1000000000000",
    "1000000000000000",
    "2147483648",
    "340282366920938463463374607431768211456",
]
REAL = [
    "0",
    "-1",
    "-0",
    "1e300",
    "-1e300",
    "1e-300",
    "nan",
    "inf",
    "-inf",
    "1e9",
    "1e5",
    "1e-9",
    "0.5",
    "1",
    "2.5",
    "1e400",
]
NEITHER = ["", " 3 ", "9" * 5000, "1" + "0" * 400, "0x10", "1_0", "x", "１", "2.5", "nan"]
NAMES = [
    "", ".", "/", "-", "~", "dir", "none.json", "empty", "/dev/null", "/dev/full", "policy.json/x",
    "/nosuch/x.json", "a" * 300 + ".json", "\udcff.json", "sub/o.json", "o.json", "o.npz", "o.txt",
]  # fmt: skip
FILES = [
    "policy.json", "evaluated.json", "best.npz", "classes.npz", "player.json", "log.csv", "means.csv",
    "history.csv", "trial.json", "store.db", "plays.jsonl", "bad.json", "deep.json", "list.json",
    "bad.npz", "zip.npz", "records.jsonl", "bad.csv", "wide.csv",
]  # fmt: skip
TEXTS = ["", ":", "x", "x:y=1", "regret:q=1", "é", "a\0b", "\udcff", "x" * 3000, "[bold]", "{0}%s"]

POLICIES = [
    *CATALOGUE, "ucb1:C=0.17", "ucb-v:c=1,zeta=2", "r+3/(n+2)", "r+sqrt(ln(t)/n)", "r+h/(n*t)",
]  # fmt: skip
PRIORS = [
    "bernoulli", "bernoulli", "bernoulli:alpha=2,beta=3", "bernoulli:alpha=1:2,beta=1:3", "gaussian",
    "truncated-gaussian", "beta", "gaussian:mean=10,spread=0.1,noise=0.1", "bernoulli:mean=0.05,sd=0.02",
    "bernoulli:low=0.02,high=0.06", "hierarchical", "counts", "revenue", "table:path=means.csv",
    "empirical:path=rewards.csv,factor=0.2",
]  # fmt: skip
# The parameters of each.
SETTINGS = {
    "bernoulli": "alpha beta mean sd low high",
    "gaussian": "mean spread noise low high",
    "truncated-gaussian": "low high mean_low mean_high deviation_low deviation_high",
    "beta": "alpha beta mean sd concentration",
    "hierarchical": "mean between within noise family",
    "counts": "shape rate mean sd",
    "revenue": "alpha beta value value_sd spread shape",
    "table": "noise concentration family",
    "empirical": "factor shift",
}
KEYS = [
    "alpha",
    "beta",
    "mean",
    "spread",
    "noise",
    "concentration",
    "low",
    "high",
    "regret",
    "C",
    "c",
    "d",
    "zeta",
    "rho",
    "q",
]
LEAVES = ["r", "s", "n", "t", "h", "K", "w", "1", "2", "0", "0.5", "1e308", "1e-308", "3.5"]
CALLS = ["sqrt", "ln", "exp", "abs", "min", "max", "kl_upper", "beta_quantile", "nosuch"]


def _number(random: Random) -> str:
    return random.choice(NEITHER if random.random() < 0.1 else WHOLE)


def _real(random: Random) -> str:
    return random.choice(NEITHER if random.random() < 0.1 else REAL)


def _expression(random: Random, depth: int = 3) -> str:
    kind = random.random()
    if depth == 0 or kind < 0.2:
        return random.choice(LEAVES)
    if kind < 0.6:
        left, right = (_expression(random, depth - 1) for _ in range(2))
        return f"{left} {random.choice('+-*/^')} {right}"
    if kind < 0.9:
        inside = (_expression(random, depth - 1) for _ in range(random.choice([1, 1, 2, 3])))
        return f"{random.choice(CALLS)}({', '.join(inside)})"
    return f"({_expression(random, depth - 1)})"


def _long(random: Random) -> str:
    """Long and deep expressions."""
    times = random.choice([3, 30, 49, 199, 300, 3000, 20_000])
    return random.choice(
        [
            "(" * times + "r" + ")" * times,
            "+".join(["r"] * times),
            "/".join(["r"] * times),
            "sqrt(" * times + "r" + ")" * times,
            "(" * times + "r" + ")^2" * times,
            "max(" * times + "r" + ", n)" * times,
            "-" * times + "r",
            "r" + "^2" * times,
            "r - " + "9" * times,
            "r + " + "n" * times,
        ]
    )


def _settings(random: Random, names: list[str]) -> str:
    items = (f"{random.choice(KEYS)}={_real(random)}" for _ in range(random.choice([1, 1, 2])))
    return f"{random.choice(names).partition(':')[0]}:{','.join(items)}"


def _policy(random: Random) -> str:
    return random.choice(
        [
            lambda: _expression(random),
            lambda: _expression(random),
            lambda: _long(random),
            lambda: _settings(random, POLICIES),
            lambda: random.choice(FILES),
            lambda: random.choice(NAMES),
            lambda: random.choice(TEXTS),
        ]
    )()


def _prior(random: Random) -> str:
    named, keys = random.choice(list(SETTINGS.items()))
    chosen = random.sample(keys.split(), random.choice([1, 2, 2]))
    own = [f"{key}={_real(random)}" for key in chosen]
    if named in ("table", "empirical"):
        own.append("path=" + random.choice(["means.csv", "rewards.csv", *FILES, *NAMES]))
    return random.choice([f"{named}:{','.join(own)}"] * 3 + [_settings(random, PRIORS), *TEXTS[:3]])


def _words(text: str):
    return lambda random: random.choice(text.split())


# Of each option, what a person would write, and what is odd; nothing for flags.
_FEEDBACK = {
    "--batch": (_words("1 2 5 5,5 geometric:growth=1.5"), _words(
        "0 -3 100000000000 16777216 geometric geometric:growth=1.0000001 geometric:growth=1e300 x "
        "geometric:growth=nan 1,,2 " + ",".join(["1"] * 3000))),
    "--delay": (_words("0 1 3 geometric:mean=2"), _words(
        "-1 1000000000000 16777215 geometric:mean=1e9 geometric:mean=1e-300 geometric:mean=0 x")),
    "--min-share": (_words("0 0.1 0.3"), _real),
    "--pending": (_words("count ignore"), _words("no Count")),
}  # fmt: skip
_PRIOR = {"--prior": (_words(" ".join(PRIORS)), _prior), "--arms": (_words("2 2 2 3 5"), _number)}
_SEED = {"--seed": (_words("0 1 7"), _number)}
_HORIZON = {"--horizon": (_words("1 2 5 10 10 20"), _number)}
_START = {
    "--start": (_words("each-once prior-counts prior-counts:plays=2,sum=1"), _words(
        "free prior-counts:learn prior-counts:plays=1e300,sum=1 prior-counts:plays=-1,sum=1 x "
        "prior-counts:plays=0,sum=0 prior-counts:plays=2:3,sum=1:1 prior-counts:plays=nan,sum=1")),
}  # fmt: skip
_OUT = {"--out": (lambda random: "new.json", lambda random: random.choice(NAMES + FILES))}
_FLOOR = {"--floor-effort": (_words("0.01 0.1"), _real)}
_SHOW = {"--show": (_words("successes"), lambda random: random.choice(TEXTS))}
# Real workers are other processes, which the tests of clusters start and kill.
_CLUSTER = {
    "--workers": ((), _words("0 -1 x 2.5")),
    "--cluster": ((), _words("x tcp:// x://y tcp://[ none.json")),
}
_THREADS = {"--threads": (_words("1 2"), _number)}
_JSON, _FORCE, _RESUME = {"--json": ()}, {"--force": ()}, {"--resume": ()}
_PICTURE = {"--plot": (_words("new.svg"), lambda random: random.choice(NAMES + FILES))}
_EFFORT = {"--effort": (_words("0.001 0.01"), _real)}
_GRAMMAR = {
    "--constants": (_words("1,2 1 2,3,5"), lambda random: random.choice(
        ["", ",", "nan", "1,1", "1e308,1e-308", "0,-1", "x", ",".join(map(str, range(1, 400)))])),
    "--operators": (_words("add,divide sqrt,ln add,power,exp kl_upper,add"), _words("x add,add , ")),
    "--variables": (_words("r r,n r,s,n,t,h,K"), _words("x r,r w ,")),
}  # fmt: skip
_LIMIT = {"--time-limit": (_words("0.2s 1s"), _words("0 x 1e5 -1s nan 1h " + "9" * 400))}
_HISTORY = {
    "--per-arm": (), "--hierarchical": (),
    "--columns": (_words("plays=sent,successes=clicks problem=test"), lambda random: random.choice(
        ["plays", "plays=nosuch", "x=y", "plays=sent,plays=sent", "mean=arm", "=", *TEXTS])),
}  # fmt: skip
_RUN = {
    **_PRIOR, **_SEED, **_FEEDBACK, **_HORIZON, **_START, **_EFFORT, **_FORCE, **_RESUME,
    **_OUT, **_THREADS, **_JSON, **_FLOOR, **_SHOW, **_CLUSTER, "--floor": (), "--no-floor": (),
    "--objective": (_words("regret simple worst quantile:q=0.9 wins"), lambda random: random.choice(
        ["quantile", "quantile:q=2", "quantile:q=nan", *TEXTS])),
    "--reference": (_words("ucb1 greedy"), _policy),
    **_LIMIT,
}  # fmt: skip
OPTIONS = {
    "evaluate": {
        **_PRIOR, **_SEED, **_FEEDBACK, **_HORIZON, **_START, **_FORCE, **_RESUME, **_OUT,
        **_THREADS, **_JSON, **_FLOOR, **_SHOW, **_CLUSTER, "--floor": (), "--no-floor": (),
        "--method": (_words("auto exact monte-carlo"), lambda random: random.choice(TEXTS)),
        "--episodes": (_words("1 10 512"), _number), "--runs": (_words("1 2"), _number),
    },
    "learn": {
        **_RUN,
        "--space": (lambda random: random.choice(["power-1", "ucb1", "r + a/(n + b)"]), lambda random:
            random.choice(["power-1000", "power-", "r", "1/a", "ln(a)*n", _policy(random)])),
        "--v1": (_words("h t"), _words("x")), "--v4": (_words("h t"), _words("x")),
        "--initial": (_words("a=1 a=1,b=0.5"), lambda random: random.choice(
            ["a=nan", "a=1e308,b=1e308", "a", "x=1", *FILES, *NAMES])),
        "--optimizer": (_words("cma eda"), _words(
            "cma:population=1 cma:population=1e12 eda:population=1000000000000 cma:x=1 x")),
        "--protocol": (_words("default paper:problems=5,runs=2"), _words(
            "paper:problems=1000000000000 paper:runs=0 paper:runs=nan x")),
        "--generations": (_words("1 2"), _number),
    },
    "search": {
        **_RUN, **_GRAMMAR,
        "--length": (_words("2 3"), _number),
        "--classes": (_words("classes.npz"), lambda random: random.choice(NAMES + FILES)),
        "--strategy": (_words("auto exact halving ucb1-tuned"), lambda random: random.choice(TEXTS)),
        "--pulls": (_words("10000 100"), _number), "--top": (_words("1 5"), _number),
        "--refine": (_words("0 1"), _number),
        **_PICTURE,
    },
    "advise": {
        **_PRIOR, **_SEED, **_FEEDBACK, **_HORIZON, **_EFFORT, **_OUT, **_FORCE, **_THREADS, **_JSON,
        **_FLOOR, **_LIMIT, **_HISTORY,
        "--today": (_words("split thompson ab-test"), _policy), "--value": (_words("0.5 2"), _real),
        "--unit": (_words("clicks"), lambda random: random.choice(TEXTS)),
        "--show": (_words("regret"), lambda random: random.choice(TEXTS)),
        "--history": (_words("history.csv"), lambda random: random.choice(NAMES + FILES)),
    },
    "optimal": {
        **_PRIOR, **_FEEDBACK, **_HORIZON, **_THREADS, **_JSON, **_FLOOR,
        "--start": (_words("free each-once"), _words("x prior-counts")),
        "--save": (_words("new.npz"), lambda random: random.choice(NAMES + FILES)),
    },
    "export": {
        **_HORIZON, **_START, **_FORCE,
        "--to": (_words("python javascript c sql latex"), lambda random: random.choice(TEXTS)),
        "--dialect": (_words("postgresql sqlite duckdb bigquery snowflake mysql"), _words("x SQL")),
        "--batch": (_words("1 10"), _number),
        "--out": (_words("new.py new.c"), lambda random: random.choice(NAMES + FILES)),
    },
    "formulas": {
        **_GRAMMAR, **_PRIOR, **_HORIZON, **_START, **_SEED, **_FORCE, **_THREADS, **_JSON,
        "--sharp": (), "--length": (_words("1 2 3"), _number), "--groups": (_words("16"), _number),
        "--tolerance": (_words("0 1e-12"), _real),
        "--out": (_words("new.npz"), lambda random: random.choice(NAMES + FILES)),
    },
    "replay": {
        **_FEEDBACK, **_HORIZON, **_SEED, **_JSON, "--policy": (_words(" ".join(POLICIES)), _policy),
        "--least": (_words("0.01 0.1"), _real), "--shares": (_words("a=0.5,b=0.5"), _words("a=1 a=nan x = a=2,b=-1")),
    },
    "report": {
        **_FORCE,
        "--out": (_words("new.html new.md"), lambda random: random.choice(NAMES + FILES)),
        "--tables": (_words("t"), lambda random: random.choice(NAMES + FILES)),
        "--figures": (_words("t"), lambda random: random.choice(NAMES + FILES)),
        "--format": (_words("svg"), lambda random: random.choice(TEXTS)),
    },
    "fit": {
        **_FORCE, **_JSON, **_PICTURE, **_HISTORY,
    },
    "trial": {
        **_HORIZON, **_PRIOR, **_FEEDBACK, **_SEED, **_THREADS, **_FORCE, **_JSON, **_PICTURE,
        "--at": (_words("0.3,0.5 0.4,0.4 prior"), _words("0.3 1.5,0.5 nan,nan x , 0.1,0.2,0.3 0,1 1e-300,1")),
        "--grid": (_words("0.1:0.9:0.4 0.2:0.4:0.2"), _words("0:1 0.1:0.9:1e-9 0.1:0.9:0 0.9:0.1:0.1 x a:b:c ::")),
        "--test": (
            _words("fisher z-pooled z-unpooled chi-squared barnard boschloo bayes:c=0.9 exact none"
                   " exact-conditional fisher:alternative=greater"),
            _words("x bayes bayes:c=2 fisher:alternative=x exact:x=1 bayes:c=nan")),
        "--level": (_words("0.05 0.1"), _real), "--imbalance": (_words("0.1 0.3"), _real),
        "--minimum": (_words("0 2"), _number), "--look-every": (_words("2 5"), _number),
        "--boundary": (_words("obrien-fleming pocock"), _words("x 0.001 0.01,nan 2,2 , 0,0")),
        "--fewer-than": (_words("2 5"), _number), "--episodes": (_words("10 200"), _number),
        "--method": (_words("auto exact monte-carlo"), lambda random: random.choice(TEXTS)),
        "--details": (),
        "--csv": (_words("new.csv"), lambda random: random.choice(NAMES + FILES)),
    },
    "store": {
        **_FORCE, "--experiment": (_words("e"), lambda random: random.choice(TEXTS)),
        "--out": (_words("new.csv"), lambda random: random.choice(NAMES + FILES)),
    },
    "reproduce": {
        **_SEED, **_THREADS, **_JSON, **_CLUSTER, "--scale": (_words("quick paper"), _words("x")),
        "--out": (_words("new"), lambda random: random.choice(NAMES + FILES)),
    },
    "policies": _JSON,
    "priors": _JSON,
}  # fmt: skip
_OFTEN = {"evaluate": 30, "learn": 9, "search": 7, "advise": 2, "optimal": 9, "export": 10,
          "formulas": 7, "replay": 9, "report": 8, "fit": 8, "trial": 10, "store": 2, "reproduce": 1,
          "policies": 1, "priors": 1}  # fmt: skip
# Without these a command takes long.
_NEEDED = {
    "evaluate": ["--horizon", "--episodes"],
    "learn": ["--space", "--generations", "--effort", "--horizon"],
    "search": ["--length", "--effort", "--horizon"],
    "advise": ["--effort", "--horizon"],
    "optimal": ["--horizon"],
    "formulas": ["--length"],
    "replay": ["--policy", "--horizon"],
    "trial": ["--horizon"],
    "reproduce": ["--out"],
}
_ARGUMENTS = {
    "evaluate": [(_words(" ".join(POLICIES)), _policy)],
    "export": [(_words(" ".join(POLICIES)), _policy)],
    "report": [(_words("evaluated.json trial.json records.jsonl"), lambda random: random.choice(NAMES + FILES))],
    "replay": [(_words("log.csv"), lambda random: random.choice(NAMES + FILES))],
    "fit": [(_words("history.csv log.csv"), lambda random: random.choice(NAMES + FILES))],
    "trial": [(_words("equal crdp crdp:degree=0.9,minimum=2 " + " ".join(POLICIES)), _policy)],
    "store": [
        (_words("init list log"), lambda random: random.choice(TEXTS)),
        (_words("sqlite:///store.db sqlite:///new.db"), lambda random: random.choice(
            [f"sqlite:///{name}" for name in NAMES + FILES if name != "empty"] + [
                "", "x", "sqlite:", "://", "nosuch://x", "postgresql+psycopg://127.0.0.1:1/x", *TEXTS])),
    ],
    "reproduce": [(_words("table1 table2 classes curves times all"), lambda random: random.choice(TEXTS))],
}  # fmt: skip
# Which of them may be given several times.
_SEVERAL = ("evaluate", "report", "trial")


def command_line(random: Random) -> list[str]:
    """A command with its options, of which none, one or a few are odd."""
    command = random.choices(list(_OFTEN), list(_OFTEN.values()))[0]
    options = OPTIONS[command]
    chosen = random.sample(list(options), min(len(options), random.choice([0, 1, 2, 3, 4])))
    chosen += [name for name in _NEEDED.get(command, []) if name not in chosen]
    if {"--force", "--resume"} & set(chosen):
        chosen += [name for name in ("--out", "--plot") if name in options and name not in chosen][
            :1
        ]
    values = [(name, options[name]) for name in chosen]
    for kinds in _ARGUMENTS.get(command, []):
        values += [("", kinds)] * (random.choice([1, 1, 2]) if command in _SEVERAL else 1)
    odd = set(
        random.sample(range(len(values)), min(len(values), random.choice([0, 0, 1, 1, 1, 2])))
    )
    line, arguments = [command], []
    for place, (name, kinds) in enumerate(values):
        if not kinds:
            line.append(name)
            continue
        draw = kinds[place in odd] or kinds[1]
        if name:
            line += [name, draw(random)]
        else:
            arguments.append(draw(random))
    # A policy may begin with a minus.
    return [*line, "--", *arguments] if arguments else line


def make_files(folder: Path, call) -> None:
    """The files that command lines name: good ones, and some that are not."""
    learn = "learn | --space | r + a/(n + b) | --horizon | 10 | --generations | 2"
    for line in (
        f"{learn} | --out | policy.json",
        f"{learn} | --out | half.json",
        "evaluate | ucb1 | greedy | --horizon | 10 | --out | evaluated.json",
        "optimal | --horizon | 10 | --save | best.npz",
        "formulas | --length | 3 | --out | classes.npz",
        "store | init | sqlite:///store.db",
    ):
        assert call(line, folder).returncode == 0
    for name, line in (
        ("learned.json", f"{learn} | --json"),
        ("found.json", "search | --length | 2 | --horizon | 5 | --json"),
        ("trial.json", "trial | equal | ucb1 | --at | 0.3,0.5 | --horizon | 20 | --json"),
    ):
        (folder / name).write_text(call(line, folder).stdout)
    for name in ("policy.trace.jsonl", "half.json"):
        (folder / name).unlink()
    _stop_runs(folder)
    _play(folder)
    random = Random(1)
    plays = "".join(f"{random.choice('ab')},{random.choice([0, 1])}\n" for _ in range(1000))
    history = "".join(
        f"test {place // 2},{'ab'[place % 2]},1000,{random.randrange(20, 60)}\n"
        for place in range(20)
    )
    records = RECORDS.read_text("utf-8").splitlines(keepends=True)
    contents = {
        "log.csv": f"arm,reward\n{plays}",
        "means.csv": "0.1,0.2\n0.5,0.4\n",
        "rewards.csv": "reward\n0\n0\n1.5\n2\n",
        "history.csv": f"test,variant,sent,clicks\n{history}",
        "records.jsonl": "".join(records[:40]),
        "bad.json": (folder / "policy.json").read_text()[:200],
        "deep.json": "[" * 100_000,
        "list.json": "[1, 2, 3]",
        "bad.csv": "arm,reward\na,x\n",
        "wide.csv": ",".join(["0.5"] * 20_000) + "\n",
        "empty": "",
    }
    for name, content in contents.items():
        (folder / name).write_text(content)
    (folder / "bad.npz").write_bytes((folder / "best.npz").read_bytes()[:300])
    with zipfile.ZipFile(folder / "zip.npz", "w") as file:
        file.writestr("a.npy", b"x" * 100)
    (folder / "dir").mkdir()


def _stop_runs(folder: Path) -> None:
    """What runs leave that are stopped on their way."""

    def stop(share: float, doing: str) -> None:
        if doing.startswith("round 2"):
            raise KeyboardInterrupt

    prior = mb.Bernoulli(arms=2)
    with contextlib.suppress(KeyboardInterrupt):
        mb.search(
            prior, 10,
            length=3, strategy="halving", measured=False, progress=stop, out=folder / "half.json",
        )  # fmt: skip
    mb.evaluate(
        ["ucb1", "greedy"], prior, 10,
        method="monte-carlo", episodes=64, floor=False, keep=folder / "half.10.npz",
    )  # fmt: skip


def _play(folder: Path) -> None:
    """A player, its journal, and one in a database."""
    player = mb.policy("ucb2").player(2, seed=1, journal=folder / "plays.jsonl")
    for reward in (0.0, 1.0, 1.0, 0.0, 1.0):
        player.update(player.select(), reward)
    player.save(folder / "player.json")
    player.close()
    shared = mb.policy("ucb1").player(2, store=f"sqlite:///{folder}/store.db", experiment="e")
    for reward in (0.0, 1.0, 1.0):
        shared.update(shared.select(), reward)
    shared.close()
    # Nothing of it is left for later to the database's own log.
    with contextlib.closing(sqlite3.connect(folder / "store.db")) as database:
        database.execute("pragma wal_checkpoint(truncate)")


def damage(content: bytes, random: Random) -> bytes:
    """A file with something wrong: bits, cuts, copies or, of JSON, another value somewhere."""
    kind = random.randrange(6)
    place = random.randrange(len(content))
    if kind == 0:
        changed = bytearray(content)
        changed[place] ^= 1 << random.randrange(8)
        return bytes(changed)
    if kind == 1:
        return content[:place]
    if kind == 2:
        other = random.randrange(len(content))
        return content[:place] + content[other : other + random.randrange(100)] + content[place:]
    if kind == 3:
        return content[:place] + content[place + random.randrange(1, 40) :]
    try:
        lines = content.decode().strip().split("\n")
        line = random.randrange(len(lines))
        whole = [json.loads(text) for text in lines] if len(lines) > 1 else [json.loads(content)]
    except ValueError:
        try:
            whole, line = [json.loads(content)], 0
        except ValueError:
            return damage(content[:place] + b"\0" + content[place:], random)
    whole[line % len(whole)] = _spoil(whole[line % len(whole)], random)
    return "\n".join(json.dumps(value) for value in whole).encode() + b"\n"


_VALUES = [None, True, -1, 0, 1e308, float("nan"), float("inf"), 10**400, "", "x", "\ud800", [], {},
           [[]], "<script>", "javascript:alert(1)", "x" * 5000, 1.5]  # fmt: skip


def _spoil(value, random: Random):
    """Plain data with one of its values replaced, removed or doubled."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        changed = {**value, key: _spoil(value[key], random)}
        if random.random() < 0.1:
            del changed[key]
        return changed
    if isinstance(value, list) and value and random.random() < 0.9:
        place = random.randrange(len(value))
        return [*value[:place], _spoil(value[place], random), *value[place + 1 :]]
    return random.choice(_VALUES)
