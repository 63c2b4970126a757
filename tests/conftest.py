"""What all tests have in common.

Continuous integration draws the same hypothesis examples each time; people draw new ones. Where slow
tests are left out, there are fewer of them (tiers.py). Formula classes are kept in a folder of the
tests' own.
"""

import os
import shutil

import pytest
from hypothesis import settings

from tests import tiers


def pytest_configure(config):
    """Tests are read after this."""
    tiers.quick = "not slow" in config.option.markexpr
    chosen = settings(max_examples=tiers.some(25, 100), derandomize=bool(os.environ.get("CI")))
    settings.register_profile("ours", chosen)
    settings.load_profile("ours")


def pytest_collection_modifyitems(items):
    """Clusters first: they wait much, which others can use, and share a scheduler. Short tests come last."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (not item.get_closest_marker("cluster"), item.path not in long))


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(autouse=True, scope="module")
def _own_operators():
    """Operators that a file of tests registers are its own."""
    from metabandit.language import OPERATORS

    before = dict(OPERATORS)
    yield
    OPERATORS.clear()
    OPERATORS.update(before)


@pytest.fixture(scope="module")
def short_reports():
    """For files that look at other things than the measurement at the end, which need not be precise there."""
    from metabandit.learning import measure

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "_MOST_EPISODES", 20_000)
        yield


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server of the tests' own."""
    from tests.databases import postgres_server

    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    """A real browser without a window."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"left out: there is no browser here ({', '.join(names)}); install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()
