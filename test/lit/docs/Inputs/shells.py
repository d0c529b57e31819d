"""shells.py SOURCE TEST ...: prints the documents with ```sh blocks that no TEST gives to
run_blocks.py, and blocks marked as another shell. Fails when there is one."""
import re
import sys
from pathlib import Path

FENCE = re.compile(r"^```(sh|bash|shell|console)\b *([^\n]*)$", re.MULTILINE)

source = Path(sys.argv[1])
tests = "".join(Path(name).read_text() for name in sys.argv[2:])
tested = set(re.findall(r"%source_dir/(\S+\.md)", tests))
faults = []
for path in [*source.glob("*.md"), *source.glob("docs/*.md"), *source.glob("bench/*.md"), *source.glob("examples/*.md")]:
    name = path.relative_to(source).as_posix()
    for shell, place in FENCE.findall(path.read_text()):
        if shell != "sh" or place not in ("", "gpu", "elsewhere"):
            faults.append(f"{name}: a block of {shell} {place}")
        elif not place and name not in tested:
            faults.append(f"{name}: its commands are not run")
print("\n".join(faults))
sys.exit(1 if faults or not tested else 0)
