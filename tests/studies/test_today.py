"""The study of today's policies: its plan, its records, and the report that is made from them."""

import pytest

import metabandit as mb
from metabandit.report import load_report
from metabandit.studies.records import Records
from metabandit.studies.run import RECORDS, Runner, reproduce
from metabandit.studies.today import SCALES, SETTINGS, policies_of, steps, today_report

pytestmark = pytest.mark.usefixtures("short_reports")

TINY = {"episodes": 60, "fewer": 4, "effort": 0.002, "floor": 0.02, "longest": 10, "most": 5}


def test_every_policy_can_play_its_settings():
    for _, _, known in SETTINGS.values():
        prior = mb.prior(known["prior"], arms=known["arms"])
        for text in policies_of(known).values():
            mb.policy(text).check(prior, known["horizon"])


def test_steps_have_names_of_their_own_and_come_after_what_they_need():
    for scale in SCALES.values():
        known = []
        for step in steps("today", scale, 0):
            assert step.id not in known
            assert set(step.needs) <= set(known)
            known.append(step.id)
    assert (
        len([step for step in steps("today", SCALES["paper"], 0) if step.id.startswith("learn")])
        == 11
    )


def test_a_run_is_kept_and_shown(tmp_path, monkeypatch):
    monkeypatch.setitem(SCALES, "tiny", TINY)
    records = reproduce("today", scale="tiny", out=tmp_path)
    report = load_report([tmp_path])
    table = report.sections[0].tables[0]
    names = [cells[0].text for cells in table.rows]
    assert names[0] == "floor"
    assert {"IDS", "KG*", "OGI", "Gittins", "Lagrangian index"} <= set(names)
    assert any(name.startswith("learned: ") for name in names)
    regret = [cells[1].value for cells in table.rows[1:]]
    assert regret == sorted(regret)
    assert all(cells[2].value is not None for cells in table.rows[1:])
    # All is done: nothing is done again.
    monkeypatch.setattr(Runner, "do", None)
    again = reproduce("today", scale="tiny", out=tmp_path)
    assert again == records
    assert today_report(Records.read(tmp_path / RECORDS, "today")).sections[0].tables


def test_records_of_the_paper_are_another_study(tmp_path):
    (tmp_path / RECORDS).write_text('{"format": "metabandit reproduction", "version": 1}\n')
    with pytest.raises(mb.InputError, match="records of this study"):
        reproduce("today", out=tmp_path)


def test_unknown_scales_are_refused():
    with pytest.raises(mb.InputError, match="unknown scale"):
        reproduce("today", scale="large")
