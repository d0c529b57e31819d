"""errors.py SOURCE: fails where docs/errors.md has a message that no output in it shows, or lacks a
status of tilus/kernel.h. Other tests check the outputs."""
import re
import sys
from pathlib import Path

source = Path(sys.argv[1])
text = (source / "docs/errors.md").read_text()
shown = "\n".join(re.findall(r"^<!-- output -->\n```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
tables = re.findall(r"^\| message \| cure \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)
messages = [re.match(r"\| ``(.*?)`` \|", row).group(1).strip()
            for table in tables for row in table.splitlines()]
header = (source / "include/tilus/kernel.h").read_text()
statuses = set(re.findall(r"^    (TILUS_(?:OK|ERROR_\w+))", header, re.MULTILINE))
listed = re.search(r"<!-- statuses:begin -->(.*?)<!-- statuses:end -->", text, re.DOTALL).group(1)
rows = re.findall(r"^\| `(\w+)`", listed, re.MULTILINE)
faults = [f"no output shows: {message}" for message in messages if message not in shown]
faults += [f"{status}: not in one of the two" for status in sorted(statuses ^ set(rows))]
print("\n".join([*faults, f"{len(messages)} messages, {len(rows)} statuses"]))
sys.exit(bool(faults) or len(messages) < 20 or len(rows) < 14)
