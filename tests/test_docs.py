"""The code in README and docs runs, and so do the examples."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S))
]


def run(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", BLOCKS)
def test_code_in_the_docs_runs(code, tmp_path):
    run("-c", code, folder=tmp_path)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run_and_are_short(path, tmp_path):
    assert "to the best" in run(str(path), folder=tmp_path)
    assert len(path.read_text("utf-8").splitlines()) < 40


def test_first_result_of_the_readme_is_what_comes_out(tmp_path):
    text = (ROOT / "README.md").read_text("utf-8")
    code, printed = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.S).groups()
    assert run("-c", code, folder=tmp_path) == printed


def test_links_in_the_docs_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
