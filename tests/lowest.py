"""Print a constraint for pip per dependency: the lowest version that pyproject.toml allows.

`make test-lowest` installs these, so that the lower ends of the ranges are tried and not guessed.
"""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))[
    "project"
]
extras = project["optional-dependencies"]
tools = {"dev", "bench", "docs"}
groups = [project["dependencies"], *(extras[name] for name in extras if name not in tools)]
for wanted in sorted({text for group in groups for text in group}):
    match = re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", wanted)
    if match:
        print(f"{match[1]}=={match[2]}.*" if match[2].count(".") < 2 else f"{match[1]}=={match[2]}")
