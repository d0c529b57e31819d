"""bench/results/PART.csv: rows that are only ever added, in sets.

A set has the rows of one device, driver and revision. It is complete when it has every row
that its part lists; of rows with one key the last counts.
"""
import collections
import csv
import os

from . import parts

COLUMNS = ("date device driver revision weights activations k n group zeros m configuration us "
           "us_kernel_only us_flush us_chain bytes floor_us fraction cublas_us cublas_layout "
           "speedup relative_error").split()
COMPILE_COLUMNS = "date machine cores revision configurations target seconds ms_median".split()
PEER_COLUMNS = "peer weights group zeros k n m us us_chain source date note".split()

WORDS = set("date device driver machine revision weights activations zeros configuration target "
            "peer source note cublas_layout kernel problem shape torch kind case file model".split())
MAY_LACK = {"us_kernel_only", "us_chain", "cublas_layout", "floor_us", "fraction", "cublas_us", "speedup", "configuration",
            "note", "cublas_rest_us", "rest_speedup", "cublas_load_us", "load_speedup",
            "tflops", "cudnn_us", "flash_us", "mamba_ssm_us", "gate_up_torch_us", "down_torch_us", "torch_us"}
INTEGERS = {"k", "n", "m", "group", "cores", "configurations"}

Set = collections.namedtuple("Set", "device driver revision")


class Malformed(Exception):
    """A file that is not what it should be: "FILE:LINE: what"."""


def read_field(name, text):
    """A field's value; None where nothing stands and nothing need to."""
    if text == "" and name in MAY_LACK:
        return None
    if text == "":
        raise ValueError(f"column {name} is empty")
    if name in WORDS:
        return text
    try:
        number = int(text) if name in INTEGERS else float(text)
    except ValueError:
        raise ValueError(f"column {name} is '{text}', not a number") from None
    if not 0 <= number < float("inf"):
        raise ValueError(f"column {name} is {text}, out of range")
    return number


def read_row(columns, fields):
    if len(fields) != len(columns):
        raise ValueError(f"{len(fields)} fields, the header has {len(columns)}")
    return {name: read_field(name, text) for name, text in zip(columns, fields)}


def read(path, columns=tuple(COLUMNS)):
    """The rows of a file as dictionaries; of no file, none."""
    rows = []
    if not path.exists():
        return rows
    with open(path, newline="") as text:
        reader = csv.reader(text, strict=True)
        try:
            for fields in reader:
                if reader.line_num == 1:
                    if fields != list(columns):
                        raise ValueError(f"the header is not '{','.join(columns)}'")
                else:
                    rows.append(read_row(columns, fields))
        except (ValueError, csv.Error) as error:
            raise Malformed(f"{path}:{reader.line_num}: {error}") from None
    if path.stat().st_size == 0:
        raise Malformed(f"{path}:1: the header is missing")
    return rows


def append(path, lines, columns=tuple(COLUMNS)):
    """Adds lines, each at once and for good: what was measured outlives an interruption."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists() or path.stat().st_size == 0
    with open(path, "a", newline="") as file:
        if fresh:
            file.write(",".join(columns) + "\n")
        for line in lines:
            file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def repair(path):
    """Takes away an unfinished last line, which an interruption may have left."""
    if not path.exists():
        return
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        path.write_bytes(data[:data.rfind(b"\n") + 1])


def key(row):
    """The key of a measurement: a problem and its m."""
    return (parts.Problem(row["weights"], row["activations"], row["k"], row["n"],
                          row["group"], row["zeros"]), row["m"])


def sets(rows):
    """Rows by set, and in each by key; sets in the order of their last rows' dates."""
    found = {}
    for row in rows:
        name = Set(row["device"], row["driver"], row["revision"])
        found.setdefault(name, {})[key(row)] = row
    return dict(sorted(found.items(), key=lambda item: max(r["date"] for r in item[1].values())))


def sets_as_added(rows, key_of):
    """Rows by set, and in each by `key_of(row)`; the set whose row was added last comes last."""
    found = {}
    for row in rows:
        name = Set(row["device"], row["driver"], row["revision"])
        its = found.pop(name, {})
        its[key_of(row)] = row
        found[name] = its
    return found


def newest(part, path, partial=False):
    """(set, rows by key) of the newest set that is complete; `partial`: of the newest."""
    wanted = parts.rows(part)
    candidates = sets(read(path))
    if not candidates:
        raise Malformed(f"{path}: nothing was measured yet")
    for name, rows in reversed(candidates.items()):
        lacking = [each for each in wanted if each not in rows]
        if partial or not lacking:
            return name, rows
    name, rows = list(candidates.items())[-1]
    lacking = [each for each in wanted if each not in rows]
    problem, m = lacking[0]
    raise Malformed(f"{path}: no set is complete; the newest, {name.revision} on {name.device}, "
                    f"lacks {len(lacking)} of {len(wanted)} rows, first {problem.weights}, k x n "
                    f"= {problem.k} x {problem.n}, m = {m} (--partial draws what there is)")
