"""What the site is made of besides its pages: the API, the commands, and formulas as MathML.

MkDocs calls the functions whose names begin with `on_`. The reference pages are made from the package
itself, so that they cannot fall behind it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import latex2mathml.converter
import typer
from mkdocs.structure.files import File, Files

import metabandit
from metabandit.cli import app

_ROOT = Path(__file__).parent.parent
# Sections of the API page, and the modules whose public names they hold.
_SECTIONS = {
    "Priors and rewards": ("priors", "rewards", "feedback"),
    "Policies": ("policies", "language"),
    "Measuring": ("engine", "bayes", "replaying", "offpolicy", "logs"),
    "Trials": ("trials",),
    "Learning": ("learning",),
    "Formulas": ("formulas",),
    "Advice": ("advice",),
    "Live play and export": ("play", "exporting"),
    "Reports and studies": ("report", "studies"),
    "Other machines": ("cluster", "workers"),
    "Errors": ("errors",),
}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made here."""
    pages = {
        "api.md": _api(),
        "commands.md": _commands(),
        "contributing.md": re.sub(
            r"\]\(docs/", "](", (_ROOT / "CONTRIBUTING.md").read_text("utf-8")
        ),
    }
    for path in sorted((_ROOT / "examples").glob("*.py")):
        pages[f"examples/{path.stem}.md"] = f"# {path.name}\n\n```python\n{path.read_text()}```\n"
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to what is outside the folder of the pages lead to their pages, and read `\\<` as GitHub does."""
    markdown = markdown.replace("](../CONTRIBUTING.md)", "](contributing.md)")
    markdown = markdown.replace(r"\<", "&lt;")  # which Python-Markdown does not know
    return re.sub(r"\]\(\.\./examples/(\w+)\.py\)", r"](examples/\1.md)", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Turn what `pymdownx.arithmatex` marks as mathematics into MathML, which browsers show themselves."""
    return re.sub(
        r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', _formula, html, flags=re.S
    )


def _formula(match: re.Match[str]) -> str:
    display = "block" if match.group(2) == "[" else "inline"
    made = latex2mathml.converter.convert(html.unescape(match.group(3)), display=display)
    # What is wider than a phone scrolls by itself.
    return f'<div class="formula">{made}</div>' if display == "block" else made


def _api() -> str:
    homes: dict[str, list[str]] = {title: [] for title in _SECTIONS}
    titles = {module: title for title, modules in _SECTIONS.items() for module in modules}
    for name in metabandit.__all__:
        value = getattr(metabandit, name)
        module = getattr(value, "__module__", type(value).__module__).split(".")[1]
        homes[titles[module]].append(name)
    lines = ["# Python API", "", "All names are in `metabandit`; the examples call it `mb`.", ""]
    for title, names in homes.items():
        lines += [f"## {title}", ""]
        for name in sorted(names, key=lambda name: (not name[0].islower(), name)):
            lines += [f"::: metabandit.{name}", ""]
    return "\n".join(lines)


def _commands() -> str:
    group: Any = typer.main.get_command(app)
    lines = ["# Command line", "", group.help, ""]
    lines += [
        "Every command has `--help`. `metabandit --install-completion` sets up tab completion in your shell.",
        "",
    ]
    for name, command in group.commands.items():
        lines += [f"## {name}", "", command.help, "", f"{command.epilog}", ""]
        lines += [*_options(command), ""]
    return "\n".join(lines)


def _options(command: Any) -> Iterator[str]:
    for panel in (None, "More", "For experts"):
        options = [item for item in command.params if item.rich_help_panel == panel]
        if not options:
            continue
        yield from ("", f"| {panel or 'Daily'} | |", "| --- | --- |")
        for option in options:
            names = ", ".join(
                f'<code style="white-space: nowrap">{text}</code>'
                for text in (*option.opts, *option.secondary_opts)
            )
            default = (
                option.show_default if isinstance(option.show_default, str) else option.default
            )
            known = default not in (None, False, ()) and not callable(default)
            text = (option.help or "").replace("|", r"\|").replace("\n", " ")
            yield f"| {names} | {text}{f' *Default: {default}.*' if known else ''} |"
