"""links.py SOURCE: prints each relative link in the Markdown files of SOURCE that leads to no file,
or to a heading that the file lacks, and how many links hold. Fails when one does not."""
import re
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)")
ANCHOR = re.compile(r'<a id="([^"]+)">')
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z]+:")


def documents(source):
    for top in sorted(source.iterdir()):
        if top.suffix == ".md":
            yield top
        elif top.is_dir() and top.name not in ("build", "dist") and not top.name.startswith("."):
            yield from sorted(top.rglob("*.md"))


def anchor(heading):
    """The name that GitHub gives a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(path):
    text = FENCE.sub("", path.read_text())
    found = ANCHOR.findall(text)
    for heading in HEADING.findall(text):
        name, again = anchor(heading), found.count(anchor(heading))
        found.append(f"{name}-{again}" if again else name)
    return found


def broken(document, target):
    """Why the link does not hold, or None."""
    name, _, heading = unquote(target).partition("#")
    path = document.parent / name if name else document
    if not path.exists():
        return "no such file"
    if heading and (path.suffix != ".md" or heading not in anchors(path)):
        return "no such heading"
    return None


def main():
    source, links, faults = Path(sys.argv[1]), 0, 0
    for document in documents(source):
        for target in LINK.findall(FENCE.sub("", document.read_text())):
            if not ELSEWHERE.match(target):
                reason, links = broken(document, target), links + 1
                if reason:
                    print(f"{document.relative_to(source)}: {target}: {reason}")
                    faults += 1
    print(f"{links - faults} links hold")
    sys.exit(1 if faults or not links else 0)


main()
