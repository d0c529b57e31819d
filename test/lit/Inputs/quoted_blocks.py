"""quoted_blocks.py FILE.md KIND SOURCE [ALLOWED]: fails where a fenced block of this kind is not in
the source, word by word; ALLOWED of them need not be."""
import re
import sys
from pathlib import Path

text, source = (Path(sys.argv[i]).read_text() for i in (1, 3))
blocks = re.findall(r"^```%s\n(.*?)^```$" % sys.argv[2], text, re.MULTILINE | re.DOTALL)
strange = [block for block in blocks if block not in source]
if not blocks or len(strange) > int((sys.argv + [0])[4] if len(sys.argv) > 4 else 0):
    sys.exit("%d of %d blocks are not in %s:\n%s" % (len(strange), len(blocks), sys.argv[3],
                                                   "\n".join(strange)))
