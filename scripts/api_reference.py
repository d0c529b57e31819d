#!/usr/bin/env python3
"""api_reference.py [--check | --write] [SOURCE]: the reference of the C interface, docs/api/*.md, from
include/tilus/*.h.

--write makes the pages: one a header, with the header's sections, comments and declarations, and
README.md, which lists the headers and every symbol. --check, the default, says where the pages are not
what --write would make, and which exported functions have no comment, or one that leaves out who owns
the returned pointer, when the call fails, or what a returned bool means.

A script, and not doxygen: here one comment serves several declarations, sections are comments of
dashes, and the pages are Markdown that is read on any forge and compared by a test. The headers stay
free of markup.
"""
import re
import sys
import textwrap
from pathlib import Path

WIDTH = 118
INDENT = "  "       # of lines of a comment that are shown as they stand
LIBRARIES = {
    "runtime": ("libtilus_rt", "Tilus::runtime", "tilus-rt"),
    "matmul": ("libtilus_matmul", "Tilus::matmul", "tilus-matmul"),
    "bigint": ("libtilus_bigint", "Tilus::bigint", "tilus-bigint"),
    "attention": ("libtilus_attention", "Tilus::attention", "tilus-attention"),
    "compiler": ("libtilus_compiler", "Tilus::compiler", "tilus"),
}
# The headers in reading order, and the library that exports their functions.
HEADERS = {"matmul": "matmul", "bigint": "bigint", "attention": "attention", "runtime": "runtime", "kernel": "runtime",
           "artefact": "runtime", "types": "runtime", "child": "runtime", "version": "runtime",
           "export": "runtime", "tilus": "compiler", "ir": "compiler", "pass": "compiler"}

LANGUAGE_LINKAGE = re.compile(r"^#ifdef __cplusplus\n.*?^#endif\n", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"/\* ---- (.*?) -+ \*/")
SYMBOL = re.compile(r"\b((?:tilus|TILUS)_\w*[A-Za-z0-9])\b(\(\))?")
FILE = re.compile(r"\b(docs/([\w-]+)\.md|tilus/(\w+)\.h|kernels/\w+\.tilus|examples/\w+\.\w+)")


# ---- reading -----------------------------------------------------------------

class Declaration:
    """A declaration, macro or member: its C text, and the comments that belong to it."""

    def __init__(self, code, lead, line):
        self.code, self.lead, self.line = code, lead, line
        self.trail = ""
        self.kind, self.names = classify(code)
        self.name = self.names[0] if self.names else ""

    def text(self):
        return "\n\n".join(filter(None, [self.lead, self.trail]))


def classify(code):
    """The kind of a declaration, and the names it declares."""
    flat = " ".join(strip_comments(code).split())
    if flat.startswith("#define"):
        return "macro", [re.match(r"#define (\w+)", flat).group(1)]
    if flat.startswith("enum"):
        return "constants", [name for name, _ in split_enumerators(code)]
    body = re.match(r"typedef (struct|union|enum)\b[^{;]*\{.*\} (\w+);", flat)
    if body:
        return body.group(1), [body.group(2)]
    opaque = re.match(r"typedef struct (\w+) (\w+);", flat)
    if opaque:
        return "opaque struct", [opaque.group(2)]
    callback = re.match(r"typedef .*?(?:\(\*)?(\w+)\)?\(.*\);", flat)
    if callback:
        return "function type", [callback.group(1)]
    if flat.startswith("typedef"):
        return "type", [re.search(r"(\w+);", flat).group(1)]
    function = re.match(r"(?:TILUS_API|static inline) .*?(\w+)\(", flat)
    return ("function", [function.group(1)]) if function else ("other", [])


def strip_comments(code):
    return re.sub(r"/\*.*?\*/", " ", code, flags=re.DOTALL)


def comment_text(comment):
    """The words of a comment, without its frame; indented lines stay indented."""
    lines = comment[2:-2].rstrip().split("\n")
    rest = [re.sub(r"^\s*\* ?", "", line) if re.match(r"\s*\*", line) else line for line in lines[1:]]
    if not any(re.match(r"\s*\*", line) for line in lines[1:]):
        rest = textwrap.dedent("\n".join(rest)).split("\n") if rest else []
    return "\n".join([lines[0].strip(), *rest]).strip()


def scan(text, ends):
    """Yields ("comment" | "code" | "blank", text, line, trails): `trails` tells a comment on the line
    on which the code before it ended. Code ends at one of `ends` outside of braces and parentheses."""
    at, code_line = 0, -1
    while at < len(text):
        space = re.compile(r"\s*").match(text, at)
        if space.group().count("\n") > 1:
            yield "blank", "", 0, False
        at = space.end()
        line = text.count("\n", 0, at) + 1
        if at == len(text):
            return
        if text.startswith("/*", at):
            end = text.index("*/", at) + 2
            yield "comment", text[at:end], line, line == code_line
        else:
            end = directive_end(text, at) if text[at] == "#" else code_end(text, at, ends)
            yield "code", text[at:end], line, False
            code_line = text.count("\n", 0, end) + 1
        at = end


def directive_end(text, at):
    return re.compile(r"(?:\\\n|[^\n])*").match(text, at).end()


def code_end(text, at, ends):
    depth, inline = 0, text.startswith("static inline", at)
    while at < len(text):
        if text.startswith("/*", at):
            if depth == 0 and "," in ends:      # the comment behind a last enumerator
                return at
            at = text.index("*/", at) + 2
            continue
        depth += text[at] in "({"
        depth -= text[at] in ")}"
        at += 1
        if depth == 0 and (text[at - 1] in ends or inline and text[at - 1] == "}"):
            return at
    return at


class Header:
    """A header: its first comment, and sections of groups of declarations under one comment."""

    def __init__(self, path):
        self.stem, self.sections = path.stem, [("", [])]
        text = LANGUAGE_LINKAGE.sub("\n", path.read_text())
        first = re.match(r"/\*.*?\*/", text, re.DOTALL)
        if not first:
            sys.exit(f"{path}: no comment says what it is for")
        self.intro = comment_text(first.group())
        self.offset = path.read_text().count("\n") - text.count("\n")
        self.read(" " * first.end() + text[first.end():])

    def read(self, text):
        lead, group = "", None
        for kind, part, line, trails in scan(text, ";"):
            section = SECTION.fullmatch(part) if kind == "comment" else None
            if section:
                self.sections.append((section.group(1), []))
                lead, group = "", None
            elif kind == "blank":
                if lead:
                    self.sections[-1][1].append((lead, []))
                lead, group = "", None
            elif kind == "comment" and trails and group:
                group[1][-1].trail = comment_text(part)
            elif kind == "comment":
                lead, group = comment_text(part), None
            elif part[0] != "#" or is_macro(part):
                if group is None:
                    group = (lead, [])
                    self.sections[-1][1].append(group)
                    lead = ""
                self.add(group, Declaration(part, "", line))

    def add(self, group, declaration):
        known = {name for d in self.declarations() for name in d.names}
        if declaration.kind != "other" and declaration.name not in known:
            group[1].append(declaration)

    def groups(self):
        for _, groups in self.sections:
            yield from groups

    def declarations(self):
        for _, declarations in self.groups():
            yield from declarations


def is_macro(directive):
    """Include guards and other directives are no part of the interface."""
    return directive.startswith("#define") and not re.match(r"#define \w+_H$", directive)


def inside(code):
    return code[code.index("{") + 1:code.rindex("}")]


def members(code, ends):
    """Yields (C text, comment) of the members of a struct or an enum."""
    found, lead = [], ""
    for kind, part, line, trails in scan(inside(code), ends):
        if kind == "comment" and trails and found:
            found[-1][1] = "\n\n".join(filter(None, [found[-1][1], comment_text(part)]))
        elif kind == "comment":
            lead = comment_text(part)
        elif kind == "code":
            found.append([" ".join(strip_comments(part).rstrip(ends + " \n").split()), lead])
            lead = ""
    return [(member, text) for member, text in found if member]


def split_enumerators(code):
    return [(member.split("=")[0].strip(), text) for member, text in members(code, ",")]


def enumerators(code, values):
    """Yields (name, value, comment); `values` has all constants, and gets these."""
    value = -1
    for member, text in members(code, ","):
        name, _, expression = map(str.strip, member.partition("="))
        value = evaluate(expression, values) if expression else value + 1
        values[name] = value
        yield name, value, text


def evaluate(expression, values):
    known = {"INT32_MAX": 2**31 - 1, "UINT32_MAX": 2**32 - 1, **values}
    names = re.sub(r"[A-Za-z_]\w*", lambda m: str(known[m.group()]), expression)
    if not re.fullmatch(r"[\d\s+\-*/<>()|&xXa-fA-FuUlL]*", names):
        sys.exit(f"cannot compute {expression}")
    return eval(re.sub(r"(?<=\d)[uUlL]+", "", names).replace("/", "//"))   # digits and operators only


# ---- Markdown -----------------------------------------------------------------

class Page:
    """Writes the page of a header; `where` says in which page each symbol is, and links lead to
    files that `source` has."""

    def __init__(self, header, where, values, source):
        self.header, self.where, self.values, self.source, self.lines = header, where, values, source, []

    def link(self, match, own):
        shown, symbol = match.group(), match.group(1)
        if symbol not in self.where or symbol in own:
            return f"`{shown}`"
        page = self.where[symbol]
        return f"[`{shown}`]({'' if page == self.header.stem else page + '.md'}#{symbol})"

    def link_file(self, match):
        name = match.group()
        if match.group(3):
            known = match.group(3) in HEADERS and match.group(3) != self.header.stem
            return f"[{name}]({match.group(3)}.md)" if known else name
        if not (self.source / name).exists():
            return name
        return f"[{name}](../{match.group(2)}.md)" if match.group(2) else f"[{name}](../../{name})"

    def inline(self, text, own=()):
        """One paragraph as Markdown: symbols and files are links, the rest is plain."""
        parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
        out = []
        for part in parts:
            if part.startswith("`"):
                symbol = SYMBOL.fullmatch(part[1:-1])
                out.append(self.link(symbol, own) if symbol else part)
                continue
            part = re.sub(r"([*<])|(?<!\w)(_)(?=\w)", r"\\\1\2", part).replace("](", "]\\(")
            part = FILE.sub(self.link_file, part)
            out.append(SYMBOL.sub(lambda match: self.link(match, own), part))
        return "".join(out)

    def paragraphs(self, text, own=()):
        for block in re.split(r"\n\s*\n", text):
            rest = []
            for line in block.split("\n") + [None]:
                indented = line is not None and line.startswith(INDENT)
                if rest and (line is None or indented != rest[0].startswith(INDENT)):
                    self.paragraph(rest, own)
                    rest = []
                if line:
                    rest.append(line)

    def paragraph(self, lines, own):
        if lines[0].startswith(INDENT):
            self.lines += ["```text", *textwrap.dedent("\n".join(lines)).split("\n"), "```", ""]
            return
        wrapped = textwrap.wrap(self.inline(" ".join(lines), own), WIDTH, break_long_words=False,
                                break_on_hyphens=False)
        self.lines += [re.sub(r"^([-+>|=#]|\d+\.)(?= )", r"\\\1", line) for line in wrapped] + [""]

    def row(self, *cells):
        self.lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")

    def table(self, head, rows):
        if not any(row[-1] for row in rows):
            head, rows = head[:-1], [row[:-1] for row in rows]
        self.row(*head)
        self.lines.append("|" + "---|" * len(head))
        for row in rows:
            self.row(*row)
        self.lines.append("")

    def members(self, declaration):
        own = set(declaration.names)
        if declaration.kind in ("struct", "union"):
            self.table(["field", ""], [(f"`{member}`", self.inline(text, own))
                                       for member, text in members(declaration.code, ";")])
        elif declaration.kind in ("enum", "constants"):
            self.table(["name", "value", ""],
                       [(f"`{name}`", str(value), self.inline(text, own))
                        for name, value, text in enumerators(declaration.code, self.values)])

    def group(self, lead, declarations):
        if not declarations:
            self.paragraphs(lead)
            return
        names = [name for d in declarations for name in d.names]
        own = names + [name for d in declarations if d.kind == "enum" for name, _ in split_enumerators(d.code)]
        self.lines += ["".join(f'<a id="{name}"></a>' for name in own), ""]
        self.lines += [f"### {title(declarations)}", ""]
        code = [signature(d) for d in declarations if d.kind not in ("constants", "enum", "struct", "union")]
        if code:
            self.lines += ["```c", *code, "```", ""]
        self.paragraphs("\n\n".join(filter(None, [lead, *(d.trail for d in declarations
                                                          if not code or len(declarations) == 1)])), own)
        for declaration in declarations:
            self.members(declaration)

    def write(self):
        library, target, package = LIBRARIES[HEADERS[self.header.stem]]
        self.lines = [f"# tilus/{self.header.stem}.h", "",
                      "<!-- scripts/api_reference.py --write makes this page from the header; "
                      "change the header. -->", "",
                      f"`#include <tilus/{self.header.stem}.h>` · {library} · CMake `{target}` · "
                      f"pkg-config `{package}` · [all symbols](README.md)", ""]
        self.paragraphs(self.header.intro)
        for name, groups in self.header.sections:
            if name and any(declarations for _, declarations in groups):
                self.lines += [f"## {name[0].upper()}{name[1:]}", ""]
            for lead, declarations in groups:
                if lead or declarations:
                    self.group(lead, declarations)
        return "\n".join(self.lines).rstrip() + "\n"


def title(declarations):
    """The heading of a group: the names, and what they are where that is no function."""
    names = [name for d in declarations for name in d.names]
    shown = ", ".join(names if len(names) < 4 else names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    prefix = {"struct": "struct ", "union": "union ", "enum": "enum ",
              "constants": "constants " if len(names) > 1 else "constant "}
    return prefix.get(declarations[0].kind, "") + shown + more


def signature(declaration):
    """The declaration without TILUS_API, its parameters on as few lines as 96 columns allow; and the
    comment behind it."""
    if declaration.kind == "macro":
        return declaration.code
    code = " ".join(strip_comments(declaration.code).split()).removeprefix("TILUS_API ")
    code = re.sub(r"^(static inline .*?\)) \{.*", r"\1;", code)
    comment = f"    /* {' '.join(declaration.trail.split())} */" if declaration.trail else ""
    if len(code) <= 96 or "(" not in code:
        return code + comment
    lines, indent = [""], " " * (code.index("(", code.startswith("typedef") and code.find(") (") + 1) + 1)
    for parameter in re.findall(r"[^,]+,? ?", code):
        if len(lines[-1] + parameter.rstrip()) > 96:
            lines.append(indent)
        lines[-1] += parameter
    return "\n".join(line.rstrip() for line in lines) + comment


def symbols(headers):
    """Yields (symbol, kind, header, anchor) of all that the headers declare."""
    for header in headers:
        for declaration in header.declarations():
            for name in declaration.names:
                yield name, declaration.kind.replace("constants", "constant"), header.stem
            if declaration.kind == "enum":
                for name, _ in split_enumerators(declaration.code):
                    yield name, f"of {declaration.name}", header.stem


def first_sentence(text):
    flat = " ".join(text.split())
    return re.match(r"(.*?[.:;])(?: [A-Z]|$)|(.*)", flat).group(0).rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ .:;")


def index(headers):
    lines = ["# The C interface", "",
             "<!-- scripts/api_reference.py --write makes this page from include/tilus/*.h. -->", "",
             "Made from the headers, which say the same. Users' guides are [matmul](../matmul.md), "
             "[bigint](../bigint.md), [attention](../attention.md),", "[runtime](../runtime.md) and "
             "[artefacts](../artefact.md); what to do about a status or a message stands in [errors](../errors.md).", "",
             "| header | library | |", "|---|---|---|"]
    for header in headers:
        text = first_sentence(re.split(r"\n\s*\n", header.intro)[0])
        lines.append(f"| [tilus/{header.stem}.h]({header.stem}.md) | {LIBRARIES[HEADERS[header.stem]][0]} | "
                     f"{text} |")
    lines += ["", "## Symbols", "", "| symbol | | header |", "|---|---|---|"]
    for name, kind, page in sorted(symbols(headers), key=lambda s: (s[0].lower(), s[0])):
        lines.append(f"| [`{name}`]({page}.md#{name}) | {kind} | {page}.h |")
    return "\n".join(lines) + "\n"


def pages(headers, source):
    where = {name: page for name, _, page in symbols(headers)}
    values = {}
    made = {f"{header.stem}.md": Page(header, where, values, source).write()
            for header in sorted(headers, key=lambda h: h.stem != "kernel")}
    return {**made, "README.md": index(headers)}


# ---- checks --------------------------------------------------------------------

OWNER = re.compile(r"\bfree|\bclose|\bunload|\bown|\bstatic storage|\blives?\b|\bvalid\b|\bare the \w+'s\b", re.I)
FAILURE = re.compile(r"TILUS_ERROR_|\b_[A-Z]{5,}|\bfail|\berrors?\b|\brefuse", re.I)
TRUTH = re.compile(r"\b(false|true|tells|whether|returns)\b", re.I)
# Rules for all functions of a header, in its first comment.
GENERAL_FAILURE, GENERAL_OWNER, GENERAL_TRUTH = "TILUS_ERROR_", "Handles belong to", "return false"


def complaints(header):
    """Yields what the comments of exported functions leave out."""
    intro = " ".join(header.intro.split())
    for lead, declarations in header.groups():
        for declaration in declarations:
            if declaration.kind != "function":
                continue
            flat = " ".join(strip_comments(declaration.code).split())
            result = re.match(r"(?:TILUS_API|static inline) (.*?)\w+\(", flat).group(1).strip()
            text = " ".join(f"{lead} {declaration.text()}".split())
            place = f"include/tilus/{header.stem}.h: {declaration.name}"
            if not text.strip():
                if not re.search(r"_(free|close)$", declaration.name):
                    yield f"{place}: no comment"
            elif result.endswith("*") and not (GENERAL_OWNER in intro or OWNER.search(text)):
                yield f"{place}: who owns what it returns?"
            elif result == "tilus_status" and not (GENERAL_FAILURE in intro or FAILURE.search(text)):
                yield f"{place}: when does it fail?"
            elif result == "bool" and not (GENERAL_TRUTH in intro or TRUTH.search(text)):
                yield f"{place}: what does true or false say?"


def check(folder, made, headers):
    faults = [fault for header in headers for fault in complaints(header)]
    for name, text in made.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            faults.append(f"docs/api/{name} is not what the headers say; "
                          "renew it: python3 scripts/api_reference.py --write")
    faults += [f"docs/api/{path.name}: of no header" for path in folder.glob("*.md") if path.name not in made]
    return faults


def main():
    words = sys.argv[1:]
    write = "--write" in words
    rest = [word for word in words if word not in ("--write", "--check")]
    source = Path(rest[0]) if rest else Path(__file__).resolve().parent.parent
    paths = sorted((source / "include" / "tilus").glob("*.h"))
    unknown = [path.name for path in paths if path.stem not in HEADERS]
    if unknown or not paths or len(rest) > 1:
        sys.exit(f"{', '.join(unknown) or __doc__.split(':')[0]}: say in HEADERS which library it is of")
    headers = [Header(source / "include" / "tilus" / f"{stem}.h")
               for stem in HEADERS if any(path.stem == stem for path in paths)]
    made, folder = pages(headers, source), source / "docs" / "api"
    if write:
        folder.mkdir(exist_ok=True)
        for path in folder.glob("*.md"):
            path.unlink()
        for name, text in made.items():
            (folder / name).write_text(text)
    faults = check(folder, made, headers)
    functions = sum(d.kind == "function" for header in headers for d in header.declarations())
    print("\n".join([*faults, f"{functions} functions, headers: {len(headers)}"]))
    sys.exit(bool(faults) or not functions)


main()
