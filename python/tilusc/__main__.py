"""python -m tilusc COMMAND: doctor says what there is, quantize makes codes of floats."""
from __future__ import annotations

import importlib
import sys

# Module and summary of each command.
_COMMANDS = {"doctor": ("doctor", "says what this machine has: libraries, compiler, GPUs, cache; checks a small program"),
             "quantize": ("quantize_main", "makes a checkpoint of floats one of codes, as tilus-quantize does")}


def main() -> int:
    words = sys.argv[1:]
    if not words or words[0] not in _COMMANDS:
        print("usage: python -m tilusc COMMAND\n", file=sys.stderr)
        for name, (_, summary) in _COMMANDS.items():
            print(f"  {name:10} {summary}", file=sys.stderr)
        return 0 if words in (["-h"], ["--help"]) else 2
    return importlib.import_module(f".{_COMMANDS[words[0]][0]}", __package__).main(words[1:])


if __name__ == "__main__":
    sys.exit(main())
