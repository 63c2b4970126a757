"""Pages in a real browser, as tests open them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

VIEWS = {
    "desk": {"viewport": {"width": 1200, "height": 900}},
    "dark": {"viewport": {"width": 1200, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2},
}


@contextmanager
def opened(browser: Any, path: Path, view: str) -> Iterator[Any]:
    """A page that must load from its file alone, and without a complaint."""
    context = browser.new_context(**VIEWS[view])
    seen = context.new_page()
    complaints, asked = [], []
    seen.on("console", lambda message: complaints.append(message.text))
    seen.on("pageerror", lambda error: complaints.append(str(error)))
    seen.on("request", lambda request: asked.append(request.url))
    seen.goto(path.as_uri())
    yield seen
    assert complaints == []
    assert asked == [path.as_uri()]
    context.close()
