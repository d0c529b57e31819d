"""The Python lines of the documents run as printed."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def has(what):
    """Tells whether blocks that need torch, or a GPU for it, run here."""
    try:
        import torch
    except ImportError:
        return False
    return what == "torch" or torch.cuda.is_available()


BLOCK = re.compile(r"^```python(?: (gpu|torch))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = [path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
             if BLOCK.search(path.read_text())]


def test_documents():
    assert {"README.md", "docs/python.md", "docs/quantize.md", "docs/explain.md", "docs/attention.md"} <= set(DOCUMENTS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_blocks(name):
    text, known = (ROOT / name).read_text(), {}
    for block in BLOCK.finditer(text):
        if not block[1] or has(block[1]):
            line = text[:block.start(2)].count("\n")
            exec(compile("\n" * line + block[2], name, "exec"), known)
