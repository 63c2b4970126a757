"""Options that commands share: a group is declared once and reaches a command as one value."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from metabandit.cli import options
from metabandit.errors import InputError
from metabandit.settings import read_seconds


def _read_pair(first: Annotated[int, "The first.", "one"] = 1, second: Annotated[int, "2"] = 2):
    return first, second


def _read_outer(pair: Annotated[tuple, _read_pair], third: Annotated[bool, "A flag."] = False):
    return {"pair": pair, "third": third}


def _command(
    *,
    name: Annotated[str, typer.Argument(help="A name.")],
    outer: Annotated[dict, _read_outer],
    own: Annotated[float, "Of this command alone."] = 0.5,
    as_json: options.Json = False,
):
    """What it does."""
    typer.echo(sorted(options.arguments(locals()).items()))


def _run(*given):
    app = typer.Typer()
    app.command()(options.with_groups(_command))
    return CliRunner().invoke(app, given)


def test_a_group_is_one_value_and_its_options_are_the_commands():
    plain = [("name", "x"), ("own", 0.5), ("pair", (1, 2)), ("third", False)]
    assert _run("x").output.strip() == str(plain)
    given = [("name", "x"), ("own", 3.0), ("pair", (1, 5)), ("third", True)]
    assert _run("--second", "5", "x", "--third", "--own", "3", "--json").output.strip() == str(
        given
    )


def test_help_shows_the_options_in_their_places():
    shown = _run("--help").output
    words = ("What it does.", "--first", "(one)", "--second", "--third", "--own", "--json")
    places = [shown.index(word) for word in words]
    assert places == sorted(places)
    assert "--no-third" not in shown


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), (" 1.5 h", 5400), (".5m", 30)])
def test_times_are_read_as_people_write_them(text, seconds):
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1s", "1d", "h"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(InputError, match="90s, 5m or 1h"):
        read_seconds(text)
