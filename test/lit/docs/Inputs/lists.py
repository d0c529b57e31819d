"""lists.py SOURCE TOOLS: prints what the tree has and a list of a document lacks: each document stands in README.md's index,
each tool in docs/tools.md, each section of a long document in its contents, and so on. Fails when something is missing, or a
list is empty."""
import json
import re
import subprocess
import sys
from pathlib import Path


def names(source, pattern, part="name"):
    return [getattr(path, part) for path in sorted(source.glob(pattern))]


def printed(tools, tool, option, pattern):
    text = subprocess.run([tools / tool, option], check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.findall(pattern, text, re.MULTILINE)


def anchor(heading):
    """The name that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def sections(source):
    """Yields (document, anchor) of each section that the contents of its document must name."""
    for path in sorted((source / "docs").glob("*.md")):
        text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
        if "\nContents: " in text or (len(headings) >= 8 and text.count("\n") > 200):
            yield from ((path.name, anchor(heading)) for heading in headings)


def tables(source):
    """Yields (what, document, how an entry is written, entries)."""
    yield "document", "README.md", "](docs/{})", [name for name in names(source, "docs/*.md")]
    yield "example", "examples/README.md", "]({}", [name for name in names(source, "examples/*.*") if name not in
                                                    ("README.md", "CMakeLists.txt")]
    yield "tool", "docs/tools.md", "| `{}` |", names(source, "tools/tilus-*")
    for what, form, pattern in (("page", ".BR {} (1)", "tools/tilus-*"), ("library", ".B lib{}", "cmake/exports/tilus_*")):
        yield what, "tools/tilus.7.in", form, [name.replace("-", "\\-") for name in names(source, pattern, "stem")]
    yield "fuzz target", "docs/testing.md", "| `{}` |", [name[5:] for name in names(source, "test/fuzz/fuzz_*.c", "stem")]
    presets = json.loads((source / "CMakePresets.json").read_text())["configurePresets"]
    yield "preset", "docs/building.md", "| `{}` |", [preset["name"] for preset in presets if not preset.get("hidden")]
    folders = [path.relative_to(source).as_posix() for path in sorted(source.glob("lib/*")) if path.is_dir()]
    yield "folder", "docs/internals.md", "| `{}` |", folders
    yield "table", "docs/internals.md", "{}`", [path.name for top in ("lib", "runtime", "tools", "test")
                                                for path in sorted((source / top).rglob("*.def"))]
    families = re.findall(r"^FAMILY\((\w+)\)", (source / "lib/select/planners.def").read_text(), re.MULTILINE)
    planners = (source / "docs/internals.md").read_text()
    planners = planners[planners.index("| family | of | decides |"):]
    yield "family of plans", planners[:planners.index("\n\n")], "`{}`", families


def main():
    source, tools = Path(sys.argv[1]), Path(sys.argv[2])
    status = "docs/status.md"
    lists = [*tables(source), ("pass", status, "`{}`", printed(tools, "tilus-opt", "--list-passes", r"^([a-z-]+) +\S")),
             ("target", "docs/tools.md", "| `{}`", printed(tools, "tilus-llc", "--list-targets", r"^(sm_\w+)"))]
    for document, section in sections(source):
        lists.append(("section", f"docs/{document}", "](#{})", [section]))
    count, faults = 0, []
    for what, document, form, entries in lists:
        text = document if "\n" in document else (source / document).read_text()
        count += len(entries)
        faults += [f"{what} {entry}: not in {'the table of planners' if text is document else document}"
                   for entry in entries if form.format(entry) not in text]
        if not entries:
            faults.append(f"no {what}")
    print("\n".join([*faults, f"{count} entries"]))
    sys.exit(bool(faults))


main()
