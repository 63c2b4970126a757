"""`python -m metabandit` is the command line, and so is the command `metabandit`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C may come before it is there."""
    try:
        from .cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
