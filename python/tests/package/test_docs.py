"""The Python lines of the documents run as printed."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def has_gpu():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


@pytest.mark.parametrize("name", ["README.md", "docs/python.md"])
def test_blocks(name):
    text, known = (ROOT / name).read_text(), {}
    blocks = list(re.finditer(r"^```python( gpu)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert blocks
    for block in blocks:
        if not block[1] or has_gpu():
            line = text[:block.start(2)].count("\n")
            exec(compile("\n" * line + block[2], name, "exec"), known)
