"""Results show themselves: short reprs, HTML, frames of numbers, pictures, and progress."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

import metabandit as mb
from metabandit import progress as bars
from metabandit.showing import Shown

pytestmark = pytest.mark.usefixtures("short_reports")

EXAMPLES = Path(__file__).parent.parent / "examples"
PAST = {"test": [1, 1, 2, 2, 3, 3], "sent": [1000] * 6, "clicks": [31, 52, 18, 40, 61, 29]}


@pytest.fixture(scope="module", autouse=True)
def _pictures():
    """Nothing is shown, and nothing stays open."""
    before = matplotlib.get_backend()
    matplotlib.use("agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")
    matplotlib.use(before)


def make() -> dict[str, object]:
    """One of each, as cheaply as can be."""
    compared = mb.evaluate(["ucb1", "r + 1/n"], "bernoulli", 20, episodes=200, floor=False)
    learned = mb.learn("r + a/(n + b)", "bernoulli", 6, generations=2)
    found = mb.search("bernoulli", 6, length=3, top=3)
    trial = mb.operating_characteristics(["equal", "thompson"], [(0.3, 0.5)], horizon=12)
    rng = np.random.default_rng(1)
    log = [("ab"[arm], float(rng.random() < 0.3 + 0.3 * arm)) for arm in rng.integers(0, 2, 400)]
    player = mb.policy("ucb1").player(["red", "green"])
    player.update("red", 1)
    return {
        "comparison": compared,
        "evaluation": compared[0],
        "exact": mb.evaluate("ucb1", "bernoulli", 5, method="exact"),
        "learned": learned,
        "found": found,
        "formula": found.entries[0],
        "trial": trial,
        "characteristics": trial["equal"][0],
        "replay": mb.replay(log, ["ucb1", "uniform"], horizon=20),
        "fitted": mb.fit_prior(PAST),
        "advice": mb.advise("bernoulli", 10, effort=0.01, floor_effort=0.01),
        "optimum": mb.optimal("bernoulli", 5),
        "bound": mb.optimal("bernoulli", 5, arms=8, effort=0.01),
        "player": player,
        "index": mb.policy("r + 1/n"),
        "thompson": mb.policy("thompson"),
        "file": learned.file,
        "classes": mb.make_classes(2),
        "sample": mb.general_sample(groups=4),
        "final": mb.final_states("equal", 6),
        "bernoulli": mb.Bernoulli(arms=3, alpha=3, beta=90),
        "per arm": mb.Bernoulli(alpha=list(np.linspace(1, 2, 40)), beta=1),
        "table": mb.Table([[0.04, 0.05], [0.06, 0.05], [0.03, 0.07]]),
    }


@pytest.fixture(scope="module")
def things():
    return make()


class Tables(HTMLParser):
    """Rows of cells, and whether every tag that is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_everything_public_shows_itself(things):
    for name, thing in things.items():
        text = repr(thing)
        assert len(text) < 200, name
        assert " at 0x" not in text, name
        assert type(thing).__name__ in text
        page = Tables(thing._repr_html_())
        assert not page.open, name
        if thing.rows():
            assert page.rows[0] == list(thing.rows()[0]), name
            assert len(page.rows) == 1 + len(thing.rows())
            assert thing.table().splitlines()[0].split() == " ".join(thing.rows()[0]).split()
    classes = {getattr(mb, name) for name in mb.__all__ if isinstance(getattr(mb, name), type)}
    shown = tuple(type(thing) for thing in things.values())
    # Of priors and policies there are too many kinds, and what shows them is the same for all.
    left = {each for each in classes if issubclass(each, Shown) and not issubclass(each, shown)}
    left = {each for each in left if not issubclass(each, (mb.Prior, mb.Policy))}
    assert left <= {mb.Log, mb.Records}


def test_texts_are_escaped():
    class Odd(Shown):
        def headline(self):
            return "<script>"

        def rows(self):
            return [{"<i>": "a & b"}]

        def remarks(self):
            return ["<b>"]

    page = Odd()._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "a &amp; b" in page
    assert "<i>" not in page


def test_frames_hold_numbers(things):
    numbers = {
        "comparison": ("mean_regret", "standard_error", "low", "high", "to_best", "above_floor"),
        "evaluation": ("plays", "mean_regret", "standard_error"),
        "learned": ("mean_regret", "above_floor", "plays_1"),
        "found": ("length", "regret", "above_floor", "refined_regret"),
        "trial": ("successes", "rejection", "plays_1", "plays_2"),
        "replay": ("reward", "low", "high", "episodes"),
        "fitted": ("value", "low", "high"),
        "optimum": ("regret", "expected_reward"),
        "player": ("index", "mean", "plays"),
        "bernoulli": ("mean", "sd", "low", "high"),
    }
    for name, columns in numbers.items():
        frame = things[name].to_frame()
        assert len(frame) == len(things[name].records()) > 0
        for column in columns:
            assert frame[column].dtype.kind in "fi", (name, column)
    compared = things["comparison"]
    frame = compared.to_frame().set_index("policy")
    for evaluation in compared:
        assert frame.loc[evaluation.policy, "mean_regret"] == evaluation.mean_regret
        assert tuple(frame.loc[evaluation.policy, ["low", "high"]]) == evaluation.interval


def test_a_frame_without_pandas_says_what_to_install(things, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(mb.InputError, match=r"pip install 'metabandit\[notebook\]'"):
        things["comparison"].to_frame()


def test_a_prior_shows_the_means_that_it_has():
    (first, *_) = mb.Bernoulli(arms=3, alpha=3, beta=90).records()
    from scipy.stats import beta

    # 67 thousand draws: quantiles to about one percent.
    expected = (beta.mean(3, 90), beta.std(3, 90), *beta.ppf([0.05, 0.95], 3, 90))
    found = [first[key] for key in ("mean", "sd", "low", "high")]
    assert found == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(
    "name",
    ["comparison", "evaluation", "exact", "learned", "found", "trial", "replay", "fitted", "advice", "bernoulli", "per arm", "table"],
)  # fmt: skip
def test_pictures_are_matplotlib_axes(name, things):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    own = Figure().subplots()
    assert things[name].plot(own) is own
    assert own.has_data()
    made = things[name].plot()
    assert isinstance(made, Axes)
    # A notebook shows what pyplot knows.
    from matplotlib import pyplot

    assert pyplot.fignum_exists(made.figure.number)


# Texts of the command line ---------------------------------------------------------------------


def test_functions_take_the_texts_of_the_command_line():
    text, made = "bernoulli:low=0.01,high=0.06", mb.prior("bernoulli:low=0.01,high=0.06", arms=4)
    options = {"horizon": 30, "episodes": 300, "floor": False}
    by_text = mb.evaluate(["ucb1"], text, arms=4, **options)
    assert by_text[0].mean_regret == mb.evaluate(["ucb1"], made, **options)[0].mean_regret
    assert by_text.arms == 4
    assert (
        mb.optimal("bernoulli:alpha=2", 6).regret == mb.optimal(mb.Bernoulli(2, alpha=2), 6).regret
    )
    trial = mb.operating_characteristics(
        "thompson", [(0.3, 0.5, 0.4)], horizon=6, prior="bernoulli:alpha=2", test=None
    )
    assert trial.prior == "bernoulli:alpha=2,beta=1"
    learned = mb.learn(
        "r + a/n", "bernoulli", 5, arms=3, generations=1, measured=False, time_limit="1m"
    )
    assert learned.file.learned.arms == 3
    with pytest.raises(mb.InputError, match="the prior has 4 arms, not 3; leave out arms"):
        mb.evaluate("ucb1", made, 10, arms=3)
    with pytest.raises(mb.InputError, match="unknown prior 'bernouli'"):
        mb.search("bernouli", 10)
    with pytest.raises(
        mb.InputError, match="a time limit must be a number of seconds, or such as 90s"
    ):
        mb.learn("power-1", "bernoulli", 10, time_limit="soon")


# Progress ------------------------------------------------------------------------------------


@contextlib.contextmanager
def notebook(monkeypatch, patience=0.0):
    """A kernel that keeps what is displayed."""
    shown: list[str] = []

    class Handle:
        def update(self, picture):
            shown.append(picture)

    def display(picture, *, display_id):
        assert display_id
        shown.append(picture)
        return Handle()

    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display, HTML=str))
    monkeypatch.setattr(bars, "_PATIENCE", patience)
    monkeypatch.setattr(bars, "_PAUSE", 0.0)
    yield shown


@bars.with_progress("counting")
def count(steps, *, progress=None):
    for done in range(steps):
        if progress is not None:
            progress(done, steps)
        time.sleep(0.02)
    return progress


def test_a_notebook_has_a_bar_that_goes_away(monkeypatch):
    with notebook(monkeypatch) as shown:
        count(10)
    assert re.search(r"<progress .*>.* 0 %: counting", shown[0])
    assert any(re.search(r"[1-9]0 %, about 0:00 left: counting", each) for each in shown)
    assert shown[-1] == ""


def test_no_bar_for_what_is_quick_nor_if_it_is_unwanted(monkeypatch):
    with notebook(monkeypatch, patience=60.0) as shown:
        count(3)
    assert shown == []
    with notebook(monkeypatch) as shown:
        assert count(3, progress=False) is None
        told = []
        count(3, progress=lambda done, total: told.append((done, total)))
    assert shown == []
    assert told == [(0, 3), (1, 3), (2, 3)]


def test_functions_that_call_each_other_have_one_bar(monkeypatch):
    @bars.with_progress("outer", bars.shares)
    def outer(*, progress=None):
        progress(0.5, "half way")
        count(5)
        progress(0.9, "nearly")

    with notebook(monkeypatch) as shown:
        outer()
    assert not [each for each in shown if "counting" in each]
    assert [each for each in shown if "50 %" in each or "90 %" in each]


def test_a_terminal_has_a_bar_and_a_pipe_has_none(monkeypatch, capsys):
    monkeypatch.setattr(bars, "_PATIENCE", 0.0)
    monkeypatch.setitem(sys.modules, "IPython", None)
    count(3)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    count(30)
    assert "counting" in capsys.readouterr().err


def test_a_command_writes_lines_into_a_pipe(monkeypatch):
    monkeypatch.setattr(bars, "_PATIENCE", 0.0)
    monkeypatch.setattr(bars, "_SILENCE", 0.02)
    monkeypatch.setitem(sys.modules, "IPython", None)
    lines: list[str] = []
    with bars.progress_bar("counting", tell=lines.append) as bar:
        time.sleep(0.1)
        assert lines[0] == "counting: 0 s so far ..."
        bar(1, 2)
        monkeypatch.setattr(bars, "is_compiling", lambda: True)
        lines.clear()
        time.sleep(0.1)
        told = "counting: compiling for this machine, once: 50 %, 0 s so far, about 0:00 left ..."
        assert lines[-1] == told
    lines.clear()
    time.sleep(0.05)
    assert lines == []


def test_the_bar_is_free_again_after_an_error(monkeypatch):
    @bars.with_progress("failing")
    def fail(*, progress=None):
        raise LookupError

    with notebook(monkeypatch) as shown:
        with pytest.raises(LookupError):
            fail()
        count(10)
    assert any("counting" in each for each in shown)


# Example notebooks ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_run(path):
    """Cell by cell; what a notebook would show can be shown. They are kept without outputs."""
    space: dict[str, object] = {"__name__": "__main__"}
    cells = [
        cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"
    ]
    for cell in cells:
        assert cell["outputs"] == []
        code = "".join(cell["source"])
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), path.name, "eval"), space)
            assert "object at 0x" not in repr(value)
            if isinstance(value, Shown):
                Tables(value._repr_html_())


@pytest.mark.slow
def test_a_kernel_runs_a_notebook(tmp_path):
    """In a real kernel: results are shown as HTML, pictures as pictures."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    code = (
        "%matplotlib inline\nimport metabandit as mb\nmb.evaluate('ucb1', 'bernoulli', 10, floor=False)",
        "mb.Bernoulli(arms=2).plot();",
        "mb.Bernoulli(arms=2)",
    )
    cells = [nbformat.v4.new_code_cell(each) for each in code]
    book = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(book, timeout=120).execute()
    kinds = [
        set().union(*(output.get("data", {}) for output in cell.outputs)) for cell in book.cells
    ]
    assert "text/html" in kinds[0]
    assert "image/png" in kinds[1]
    assert "text/html" in kinds[2]
    assert not [o for cell in book.cells for o in cell.outputs if o.output_type == "stream"]
