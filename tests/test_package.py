"""The wheel, built from the source distribution, works in an environment that has nothing else."""

import subprocess
import sys
import venv
import zipfile
from importlib.metadata import PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def run(*command, folder):
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def needed(asking, extras=(), found=None):
    """The distributions that one needs, as they are installed here, by name with the extras asked for."""
    found = {} if found is None else found
    for wanted in map(Requirement, asking.requires or ()):
        name = canonicalize_name(wanted.name)
        marker = wanted.marker
        applies = marker is None or any(marker.evaluate({"extra": item}) for item in ("", *extras))
        if applies and not (name in found and wanted.extras <= found[name]):
            found[name] = found.get(name, set()) | wanted.extras
            needed(distribution(name), found[name], found)
    return found


def lend(distributions, folder):
    """Link installed distributions, and nothing else, into another environment's folder of packages."""
    for name in distributions:
        installed = distribution(name)
        for top in {path.parts[0] for path in installed.files} - {"..", "__pycache__"}:
            (folder / top).symlink_to(installed.locate_file(top))


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
    # What it declares to need is lent, which takes a second; pip installs, and finds nothing missing.
    (packages,) = (tmp_path / "clean" / "lib").glob("python*/site-packages")
    (about,) = (item for item in zipfile.Path(wheel).iterdir() if item.name.endswith(".dist-info"))
    lend(needed(PathDistribution(about)), packages)
    assert not (packages / "pytest").exists()
    run(*pip, "install", "--quiet", "--no-compile", "--no-index", wheel, folder=tmp_path)
    run(*pip, "check", folder=tmp_path)
    assert "ucb1-tuned" in run(programs / "metabandit", "policies", folder=tmp_path)
    code = "import metabandit as mb; print(mb.policy('ucb1').player(arms=['a', 'b']).select())"
    assert run(programs / "python", "-c", code, folder=tmp_path).strip() in ("a", "b")
