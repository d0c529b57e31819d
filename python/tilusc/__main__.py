"""python -m tilusc doctor: says what there is, and whether it works together."""
from __future__ import annotations

import importlib
import sys

_COMMANDS = {"doctor": "says what this machine has: libraries, compiler, GPUs, cache; checks a small program"}


def main() -> int:
    words = sys.argv[1:]
    if not words or words[0] not in _COMMANDS:
        print("usage: python -m tilusc COMMAND\n", file=sys.stderr)
        for name, summary in _COMMANDS.items():
            print(f"  {name:10} {summary}", file=sys.stderr)
        return 0 if words in (["-h"], ["--help"]) else 2
    return importlib.import_module(f".{words[0]}", __package__).main(words[1:])


if __name__ == "__main__":
    sys.exit(main())
