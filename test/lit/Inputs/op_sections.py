"""op_sections.py LANGUAGE.md: each op of the table has a section of its own
(### `op`), and each such section is of an op of the table."""
import re
import sys
from pathlib import Path

text = Path(sys.argv[1]).read_text()
table = re.search(r"<!-- ops:begin -->(.*?)<!-- ops:end -->", text, re.DOTALL).group(1)
ops = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
sections = re.findall(r"^### `(\w+)`$", text, re.MULTILINE)
if ops != sections:
    sys.exit(f"ops {sorted(set(ops) ^ set(sections))} differ, or their order does")
