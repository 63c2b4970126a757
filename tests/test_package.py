"""The wheel, built from the source distribution, works in an environment that has nothing else."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*command, folder):
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment(tmp_path):
    run(sys.executable, "-m", "build", "--outdir", tmp_path, ROOT, folder=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert len(list(tmp_path.glob("*.tar.gz"))) == 1
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in names} == {"metabandit"}
    sources = ROOT / "src"
    kept = {
        path.relative_to(sources).as_posix()
        for path in (sources / "metabandit").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == kept
    venv.create(tmp_path / "clean")
    programs = tmp_path / "clean" / "bin"
    pip = (sys.executable, "-m", "pip", "--python", programs / "python")
    run(*pip, "install", "--quiet", "--no-compile", wheel, folder=tmp_path)
    assert "ucb1-tuned" in run(programs / "metabandit", "policies", folder=tmp_path)
    code = "import metabandit as mb; print(mb.policy('ucb1').player(arms=['a', 'b']).select())"
    assert run(programs / "python", "-c", code, folder=tmp_path).strip() in ("a", "b")
