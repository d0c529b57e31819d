"""shell_block.py FILE.md WORD: prints the fenced `sh` block of a Markdown file that has this word.
Fails unless exactly one has."""
import re
import sys
from pathlib import Path

blocks = [block for block in re.findall(r"^```sh\n(.*?)^```$", Path(sys.argv[1]).read_text(),
                                        re.MULTILINE | re.DOTALL) if sys.argv[2] in block]
if len(blocks) != 1:
    sys.exit(f"{len(blocks)} sh blocks have '{sys.argv[2]}'")
print("set -eu")
print(blocks[0], end="")
