"""The documentation is built with strict links, and is read and searched in a browser without a server."""

from pathlib import Path

import pytest
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config

ROOT = Path(__file__).parent.parent


def pages(tree):
    """The pages of a navigation."""
    for item in tree if isinstance(tree, list) else tree.values():
        if isinstance(item, str):
            yield item
        else:
            yield from pages(item)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder)))
    return folder


def test_every_page_is_in_the_navigation():
    class Loader(yaml.SafeLoader):
        """Settings of extensions may name Python objects, which do not matter here."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    nav = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader)["nav"]
    made = {"api.md", "commands.md", "contributing.md"}
    written = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert sorted(pages(nav)) == sorted(written | made)


@pytest.mark.browser
def test_the_site_opens_and_is_searched_without_a_server_or_a_network(site, browser):
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    wrong, asked = [], []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    for path in sorted(set(site.glob("*.html")) - {site / "404.html"}):  # a server's page
        page.goto(path.as_uri())
        assert page.inner_text("h1")
    page.click("input[name=query]")
    page.keyboard.type("gittins")
    page.wait_for_function(
        "document.querySelector('.md-search-result__meta').innerText.includes('matching')"
    )
    assert wrong == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.slow
def test_the_reference_has_every_public_name_and_command(site):
    import metabandit as mb
    from metabandit.cli import app

    api = (site / "api.html").read_text("utf-8")
    assert [name for name in mb.__all__ if f'id="metabandit.{name}"' not in api] == []
    commands = (site / "commands.html").read_text("utf-8")
    names = [command.name for command in app.registered_commands]
    assert [name for name in names if f'id="{name}"' not in commands] == []
