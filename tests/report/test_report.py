"""Reports: verdicts, tables as text, pictures, the page, and the page in a real browser."""

from __future__ import annotations

import json
import re
import sys
import types
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import metabandit as mb
from metabandit import load_report, write_report
from metabandit.drawing import COLOURS, INK, curves, dots
from metabandit.report import runs
from metabandit.report.content import (
    Cell,
    Figure,
    Report,
    ReportTable,
    Section,
    percent,
    significant,
)
from metabandit.report.maps import indices
from metabandit.report.writing import as_markdown, check_picture, latex, markdown, svg
from metabandit.studies.maes2012 import PARTS, SCALES, findings, paper
from metabandit.studies.maes2012.findings import judge
from metabandit.studies.maes2012.plan import steps, studied_policies
from metabandit.studies.maes2012.report import reproduction_report
from metabandit.studies.records import Records
from tests.commands import call
from tests.report.pages import VIEWS, opened

pytestmark = pytest.mark.usefixtures("short_reports")

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "docs" / "reproduction" / "records.jsonl"


@pytest.fixture(scope="module")
def reproduction():
    return load_report([RECORDS])


@pytest.fixture(scope="module")
def page(reproduction, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(reproduction, path)
    return path


def metabandit(*arguments, folder):
    return call(arguments, folder)


# What is said of a figure -----------------------------------------------------------------------


def studied(name):
    return next(item for item in studied_policies() if item.id == name)


@pytest.mark.parametrize(
    ("name", "family", "horizon", "factor", "half", "verdict"),
    [
        ("printed/ucb1-tuned", "bernoulli", 100, 1.02, 0.01, "agrees"),
        ("printed/ucb1-tuned", "bernoulli", 100, 1.05, 0.10, "noise"),
        ("printed/ucb1-tuned", "bernoulli", 100, 1.05, 0.01, "open"),
        ("printed/ucb1-tuned", "bernoulli", 100, 0.95, 0.01, "open"),
        ("printed/r + 1/(n + 1/2)", "bernoulli", 100, 1.04, 0.01, "open"),
        ("printed/kl-ucb:c=-1.82", "gaussian", 100, 0.95, 0.01, "known"),
        ("found/power-1/100", "bernoulli", 100, 0.95, 0.01, "better"),
        ("found/power-1/100", "bernoulli", 100, 0.95, 0.10, "noise"),
        ("found/power-1/100", "bernoulli", 100, 1.02, 0.01, "agrees"),
        ("found/power-1/100", "bernoulli", 100, 1.06, 0.01, "open"),
        ("found/power-1/100", "bernoulli", 1000, 1.50, 0.01, ""),
    ],
)
def test_verdicts(name, family, horizon, factor, half, verdict):
    item = studied(name)
    theirs = item.paper[family, horizon]
    found, note = judge(item, family, horizon, factor * theirs, half, 10_000)
    assert found == verdict
    assert bool(note) == (verdict in ("known", "open"))


def test_rows_of_the_same_problems_are_off_alike(reproduction):
    """As the notes on KL-UCB with c < 0 have it."""
    common = next(table for table in reproduction.tables() if table.id == "common")
    rows = {row[0].text: row[1:] for row in common.rows}
    assert len(rows) == 6
    for column in ("Gaussian, T = 10", "Gaussian, T = 100"):
        count, low, _, high, far = rows[column]
        assert count.value == 29
        assert high.value - low.value < 0.015
        for c in ("-1.21", "-1.82", "-1.84"):
            assert f"KL-UCB c={c}" in far.text
    assert "UCB2 alpha=0.000749" in rows["Gaussian, T = 10"][-1].text
    assert rows["Gaussian, T = 1000"][2].value < -0.015
    assert not rows["Gaussian, T = 1000"][-1].text


def test_every_cell_of_the_tables_is_there(reproduction):
    tables = {table.id: table for table in reproduction.tables()}
    for family in paper.FAMILIES:
        overview = tables[f"table1-{family}"]
        for row in paper.table1():
            training = str(row.training or "")
            shown = [
                cells
                for cells in overview.rows
                if cells[0].text.partition(",")[0] == row.label and cells[1].text == training
            ]
            assert shown, row
            for column, horizon in enumerate(paper.HORIZONS, 2):
                wanted = f"({row.paper[family, horizon]:g})"
                assert any(wanted in cells[column].text for cells in shown), (row, horizon)
    wins = tables["table2-wins"]
    for (policy, horizon), share in paper.table2().items():
        column = wins.columns.index(f"T = {horizon}") + 1
        shown = [row for row in wins.rows if row[0].text.startswith(f"{policy},")]
        assert shown
        assert {row[column].text for row in shown} == {f"{share:.1f} %"}


def test_figures_of_the_report_are_those_of_the_records(reproduction):
    records = Records.read(RECORDS)
    table = next(item for item in reproduction.tables() if item.id == "detail-bernoulli-100")
    values = {row[0].text + row[-1].text: row[2].value for row in table.rows}
    found = records.result("test/printed/ucb1-tuned/bernoulli/100")
    assert values["UCB1-Tuned"] == found["regret"]
    item = studied("ours/power-1/100")
    above = records.result("exact/ours/power-1/100/100")["regret"]
    assert (
        findings.above_floor(records, item, 100)
        == above / records.result("floor/free/100")["regret"] - 1
    )


def test_the_docs_say_what_the_records_say(reproduction):
    """docs/reproduction.md is made by `make reproduction`."""
    links = {figure.id: f"reproduction/{figure.id}.svg" for figure in reproduction.figures()}
    written = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert written == as_markdown(reproduction, links)
    assert all((ROOT / "docs" / link).exists() for link in links.values())


# Text -------------------------------------------------------------------------------------------

SMALL = ReportTable(
    "small",
    "A | table & more",
    ("policy", "100 %"),
    ((Cell("r_1 * {a}|b"), Cell("1.5 ± 0.1", 1.5)), (Cell("x < y"), Cell("", None))),
)


def test_markdown_and_latex():
    assert markdown(SMALL).splitlines() == [
        "| policy | 100 % |",
        "| --- | ---: |",
        r"| r\_1 \* {a}\|b | 1.5 ± 0.1 |",
        r"| x \< y |  |",
    ]
    text = latex(SMALL)
    assert r"\begin{tabular}{lr}" in text
    assert r"r\_1 * \{a\}$|$b & 1.5 $\pm$ 0.1 \\" in text
    assert r"\caption{A $|$ table \& more}" in text
    assert "100 \\%" in text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(1.23456, 4, "1.235"), (0.00123, 2, "0.0012"), (66.71, 3, "66.7"), (1234.5, 2, "1234"), (0, 3, "0")],
)  # fmt: skip
def test_significant_digits(value, digits, text):
    assert significant(value, digits) == text


def test_percentages():
    assert percent(0.1234).text == "+12.3 %"
    assert percent(-0.00001).text == "+0.0 %"
    assert percent(0.5, sign=False).text == "50.0 %"
    assert percent(None).text == ""


def test_latex_of_all_tables_has_all_cells(reproduction):
    """Every row has as many cells as there are columns, and nothing is left that LaTeX cannot read."""
    for table in reproduction.tables():
        for row in table.rows:
            assert len(row) == len(table.columns), table.id
        assert latex(table).isascii() or not set(latex(table)) - set("é") - set(
            map(chr, range(128))
        )


def test_a_report_of_what_is_not_finished():
    whole = Records.read(RECORDS)
    some = Records(whole.scale, whole.seed)
    for name in list(whole)[:5]:
        some[name] = whole[name]
    assert "none is complete yet (5 of" in dict(reproduction_report(some).facts)["parts"]


@pytest.mark.parametrize("part", PARTS)
def test_a_report_of_each_part(part, tmp_path):
    """What was not done is left out, and nothing is empty."""
    whole = Records.read(RECORDS)
    some = Records(whole.scale, whole.seed)
    for step in steps(part, SCALES[whole.scale], whole.seed):
        some[step.id] = whole[step.id]
    report = reproduction_report(some)
    done = dict(report.facts)["parts"]
    assert part in done.split(" (")[0].split(", ")
    assert f"({len(some):,} of {len(whole):,} steps)" in done
    for table in report.tables():
        assert table.rows
        assert any(cell.value is not None for row in table.rows for cell in row[1:]), table.id
    assert as_markdown(report).startswith("# Reproduction")
    if part == "table2":
        assert not any("gaussian" in table.id for table in report.tables())


# Pictures ---------------------------------------------------------------------------------------


def test_colours_differ_without_colour_vision():
    """As people see who lack one kind of cone (Machado et al. 2009), the first six stay apart."""
    lacks = {
        "red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        "blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    }  # fmt: skip
    rgb = np.array([[int(item[k : k + 2], 16) / 255 for k in (1, 3, 5)] for item in COLOURS[:6]])
    for matrix in lacks.values():
        seen = np.clip(rgb @ np.array(matrix).T, 0.0, 1.0)
        apart = np.linalg.norm(seen[:, None] - seen[None], axis=2)
        assert apart[~np.eye(len(seen), dtype=bool)].min() > 0.12


@pytest.mark.slow
def test_pictures_in_all_formats(reproduction, tmp_path):
    some = tuple(
        figure for figure in reproduction.figures() if figure.id in ("curves-100", "map-choices")
    )
    report = Report("some", (), (), (Section("s", "S", (), (), some),))
    begins = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    written = write_report(report, figures=tmp_path, formats=list(begins))
    assert len(written) == 6
    for path in written:
        assert path.stem in ("curves-100", "map-choices")
        assert path.read_bytes().startswith(begins[path.suffix[1:]])
    again = write_report(report, figures=tmp_path / "again", formats=["svg", "pdf"])
    for path in again:
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


@pytest.mark.parametrize(("low", "high"), [(1.1, 1.3), (3.0, 40.0), (0.01, 900.0)])
def test_logarithmic_axes_have_numbers(low, high):
    rows = [("a", "", [low]), ("b", "", [high])]
    text = svg(Figure("f", "F", "c", partial(dots, rows, ["T"], x="x")))
    assert "mathdefault" not in text
    labels = re.findall(r"<!-- ([\d.]+) % -->", text)
    assert len(labels) >= 2, labels


def test_what_cannot_be_written_by_a_program_is_refused(reproduction, tmp_path):
    for arguments, options, message in (
        ((reproduction,), {}, "nothing is to be written"),
        ((reproduction,), {"figures": tmp_path, "formats": []}, "no format"),
        (("x", tmp_path / "x.html"), {}, "what load_report gives"),
    ):
        with pytest.raises(mb.InputError, match=message):
            write_report(*arguments, **options)
    assert load_report(RECORDS).title == reproduction.title


@pytest.mark.parametrize("name", ["picture.gif", "none/picture.svg"])
def test_pictures_that_cannot_be_drawn_are_refused(name, tmp_path):
    with pytest.raises(mb.InputError, match=r"must end in|does not exist"):
        check_picture(tmp_path / name, force=False)


def test_index_maps_show_the_index_that_is_played():
    """Against the definition, one state at a time, with pseudo-observations."""
    made = mb.policy("r + sqrt(ln(t)/n) + s*h", start="prior-counts")
    prior = mb.Bernoulli(arms=2)
    found = indices(made, prior, 20, np.array([[3.0], [5.0]]), np.array([[1.0], [5.0]]))
    for arm, (plays, wins) in enumerate(((3, 1), (5, 5))):
        n, total = plays + 2, wins + 1
        mean = total / n
        pseudo = prior.counts()
        squares = wins + np.asarray(pseudo)[2][arm]
        spread = np.sqrt(squares / n - mean**2)
        expected = mean + np.sqrt(np.log(8 + 4) / n) + spread * 12
        assert found[arm, 0] == pytest.approx(expected)


# The page ---------------------------------------------------------------------------------------


def test_the_page_stands_alone(page, reproduction):
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    elsewhere = re.findall(r"""(?:src|href)\s*=\s*["'](?!#|data:)([^"']*)""", text)
    assert elsewhere == []
    assert not re.findall(r"url\((?!#)|@import", text)
    for part in [*reproduction.tables(), *reproduction.figures(), *reproduction.sections]:
        assert f'id="{part.id}"' in text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert INK not in text
    assert len(text) < 4_000_000


def test_what_is_written_is_escaped(tmp_path):
    nasty = "<script>alert(1)</script>"
    table = ReportTable("t", nasty, (nasty,), ((Cell(nasty, nasty, note='"' + nasty),),))
    lines = [(nasty + "$x_{$", [1, 2], [1, 2], None), ("_hidden", [1, 2], [2, 3], None)]
    figure = Figure("f", nasty, nasty, partial(curves, lines, x=nasty, y=nasty, title=nasty))
    section = Section("s", nasty, (nasty,), (table,), (figure,))
    report = Report(nasty, (nasty,), ((nasty, nasty),), (section,))
    write_report(report, tmp_path / "x.html")
    assert nasty not in (tmp_path / "x.html").read_text()
    assert nasty not in as_markdown(report).replace("\\<", "")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.browser
def test_the_page_in_a_browser(browser, page, view):
    """It loads from the file alone, without a complaint; tables sort; nothing is cut off."""
    with opened(browser, page, view) as seen:
        # A column of numbers, up and down.
        column = "#table1-bernoulli tbody tr td:nth-child(4)"
        head = seen.locator("#table1-bernoulli th").nth(3)

        def values():
            read = seen.locator(column).evaluate_all(
                "cells => cells.map(cell => cell.dataset.value)"
            )
            return [float(value) for value in read if value is not None]

        printed = values()
        assert printed != sorted(printed)
        head.locator("button").click()
        assert values() == sorted(printed)
        assert head.get_attribute("aria-sort") == "ascending"
        head.locator("button").press("Enter")
        assert values() == sorted(printed, reverse=True)
        # A column of text.
        seen.locator("#table1-bernoulli th button").first.click()
        names = seen.locator("#table1-bernoulli tbody tr td:first-child").all_text_contents()
        assert names == seen.evaluate(
            "names => [...names].sort((a, b) => a.localeCompare(b))", names
        )
        # Nothing is wider than the window; wide tables scroll in their own box.
        assert seen.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for figure in seen.locator("figure svg").all():
            box = figure.bounding_box()
            assert box["width"] > 250
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= VIEWS[view]["viewport"]["width"]
        colours = seen.evaluate(
            "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
        )
        light = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours]
        assert (light[0] > light[1]) == (view == "dark")


@pytest.mark.browser
def test_the_page_in_print(browser, page, tmp_path):
    """Folded tables are unfolded, and everything is on paper."""
    context = browser.new_context()
    seen = context.new_page()
    seen.goto(page.as_uri())
    assert seen.locator("details[open]").count() == 0
    path = tmp_path / "report.pdf"
    seen.pdf(path=path, format="A4")
    assert path.stat().st_size > 100_000
    seen.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert seen.locator("details:not([open])").count() == 0
    context.close()


# Single runs ------------------------------------------------------------------------------------

TWO = mb.Bernoulli(arms=2)
RUNS = {
    "exact": (
        lambda: mb.evaluate(["ucb1", "ucb1-tuned", "thompson"], TWO, 30),
        {"run1-policies", "run1-curves", "run1-floor"},
    ),
    "gaussian": (
        lambda: mb.evaluate(["ucb1", "greedy"], mb.Gaussian(arms=2), 30, episodes=2000),
        {"run1-policies", "run1-curves"},
    ),
    "power": (
        lambda: mb.learn("power-1", TWO, 30, generations=6),
        {"run1-policies", "run1-learning", "run1-index-0", "run1-index-1", "run1-choices"},
    ),
    "wins": (
        lambda: mb.learn("ucb1", TWO, 20, objective="wins", reference="greedy", generations=2),
        {"run1-policies", "run1-learning"},
    ),
    "tuned": (
        lambda: mb.learn(
            "ucb1", mb.Gaussian(arms=3), 20, generations=3, episodes=2000, floor_effort=0.02
        ),
        {"run1-policies", "run1-learning"},
    ),
    "search": (
        lambda: mb.search(TWO, 20, length=4, top=5, refine=1),
        {"run1-ranking", "run1-lengths", "run1-index-0", "run1-choices"},
    ),
    "short": (lambda: mb.search(TWO, 3, length=2), {"run1-ranking", "run1-lengths"}),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in ("power", "tuned", "wins") else [])
        for name in RUNS
    ],
)
def test_a_report_of_any_run(name, tmp_path):
    run, wanted = RUNS[name]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run().to_dict()))
    report = load_report([path])
    assert wanted <= {part.id for part in [*report.tables(), *report.figures()]}
    write_report(report, tmp_path / "r.html", tables=tmp_path / "t")
    text = (tmp_path / "r.html").read_text()
    assert text.count("<svg") == len(report.figures())
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert all((tmp_path / "t" / f"{table.id}.tex").exists() for table in report.tables())


def test_from_a_run_to_its_report_on_the_command_line(tmp_path):
    words = ["evaluate", "ucb1", "greedy", "--horizon", "20", "--horizon", "30", "--json"]
    done = metabandit(*words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "run.json").write_text(done.stdout)
    made = metabandit("report", "run.json", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert made.stdout == "written      report.html\n"
    text = (tmp_path / "report.html").read_text()
    for result in json.loads(done.stdout)["results"]:
        for item in result["policies"]:
            assert significant(item["mean_regret"], 6) in text
    # Nothing is overwritten.
    again = metabandit("report", "run.json", folder=tmp_path)
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert (tmp_path / "report.html").read_text() == text


def test_several_runs_in_one_report(tmp_path):
    for place, policy in enumerate(("ucb1", "greedy")):
        found = mb.evaluate(policy, mb.Bernoulli(arms=2), 10).to_dict()
        (tmp_path / f"{place}.json").write_text(json.dumps(found))
    shown = load_report([tmp_path / "0.json", tmp_path / "1.json"])
    assert [section.id for section in shown.sections] == ["run1-evaluation", "run2-evaluation"]
    assert [section.title for section in shown.sections] == [
        "0: Regret after 10 plays",
        "1: Regret after 10 plays",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist"),
        ("nonsense", "neither JSON"),
        ("[1]", "not the result of a run"),
        ('{"a": 1}', "not the result of a run"),
        ('{"results": 5}', "not the result of a run"),
        ('{"ranking": []}', "not the result of a run"),
        ('{"policies": [], "horizon": 5}', "not the result of a run"),
        ('{"format": "metabandit policy", "learned": {}, "policy": {}}', "not the run"),
    ],
)
def test_what_is_no_record_is_refused(content, message, tmp_path):
    path = tmp_path / "x.json"
    if content is not None:
        path.write_text(content)
    done = metabandit("report", str(path), folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "x.json" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "report.txt"], ".html or .md"),
        (["--out", "none/report.html"], "does not exist"),
        (["--format", "png"], "--figures"),
        (["--figures", "f", "--format", "gif"], "svg, png, pdf"),
        (["--tables", "file"], "not a folder"),
    ],
)
def test_what_cannot_be_written_is_refused(options, message, tmp_path):
    (tmp_path / "file").write_text("")
    done = metabandit("report", str(RECORDS), *options, folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_figures_without_a_draw_are_no_part_of_the_text():
    report = Report(
        "x", (), (), (Section("s", "S", (), (), (Figure("f", "F", "c", lambda: None),)),)
    )
    assert "F" not in as_markdown(report)


def test_a_study_makes_the_report_of_its_own_records(tmp_path, monkeypatch):
    """Reports know no study: it registers the format of its records, and formulas that it published."""
    own = types.ModuleType("own_study")
    own.read_report = lambda path: Report(f"my study of {path.name}")
    own.published_formulas = lambda learned: (
        "mine",
        [{"formula": "r", "length": 1, "regret": 2.0}],
    )
    monkeypatch.setitem(sys.modules, "own_study", own)
    monkeypatch.setattr(runs, "_MODULES", {})
    path = tmp_path / "records.jsonl"
    path.write_text('{"format": "my records"}\n{"id": 1}\n')
    with pytest.raises(mb.InputError, match="neither JSON"):
        load_report(path)
    runs.register_study("my records", "own_study")
    assert load_report(tmp_path).title == "my study of records.jsonl"
    with pytest.raises(mb.InputError, match="a report of its own"):
        load_report([path, path])
    with pytest.raises(mb.InputError, match="neither JSON"):
        load_report(RECORDS)
    assert list(runs.published_formulas({})) == ["mine"]
