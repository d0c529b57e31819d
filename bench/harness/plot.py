"""Plots of the newest complete sets, by gnuplot: PART.svg and PART.png beside PART.csv."""
import collections
import functools
import pathlib
import shutil
import tempfile

from . import machine, parts, peers, results

SIZES = {"types-shapes": (1500, 900), "spectrum": (1000, 560), "batch": (1000, 620),
         "tilelang": (1100, 560), "models": (1200, 560), "model-batches": (1500, 860), "gemm": (1500, 860)}


def cell(number):
    """As gnuplot reads it: what was not measured leaves a gap."""
    return "NaN" if number is None else f"{number:.6g}"


def ratio(a, b):
    return a / b if a and b else None


def speedups(row):
    """Over cuBLAS: of the product, and of the floor."""
    return (ratio(parts.column(row, "cublas_us"), parts.column(row, "us")),
            ratio(parts.column(row, "cublas_us"), parts.column(row, "floor_us")))


def write(path, lines):
    path.write_text("".join(" ".join(line) + "\n" for line in lines))


def quoted(text):
    """A string of gnuplot, in data and scripts; \\n in it begins a line."""
    return '"' + text.replace("\\", "").replace('"', "").replace("\n", "\\n") + '"'


# ---- data of each plot: files in a folder, and variables of the script ----------------

def prepare_types_shapes(rows, folder):
    known, titles, number, letters = peers.read(), [], 0, {}
    for m in (1, 16):
        for k, n in parts.SHAPES:
            number += 1
            lines = []
            for place, (weights, zeros) in enumerate(parts.TYPES):
                problem = parts.problem(weights, (k, n), zeros)
                row, peer = rows.get((problem, m)), peers.best_row(known, problem, m)
                letter = letters.setdefault(peer["peer"], chr(ord("a") + len(letters))) \
                    if peer else ""
                lines.append([str(place), quoted(parts.label(problem)), cell(parts.column(row, "us")),
                              cell(parts.column(row, "floor_us")),
                              cell(parts.column(peer, "us")),
                              cell(parts.column(row, "cublas_us")), quoted(letter)])
            write(folder / f"panel{number}", lines)
            titles.append(f"k x n = {k} x {n}, m = {m}")
    legend = ", ".join(f"{letter}: {name}" for name, letter in letters.items())
    return {"data": str(folder / "panel%d"), "titles": ";".join(titles),
            "summary": "types and shapes at m = 1 and 16",
            "footnote": f"best peer: {legend}"}


def prepare_spectrum(rows, folder):
    lines = []
    for bits in range(1, 9):
        line = [str(bits)]
        for name in (f"u{bits}", f"i{bits}", parts.FLOATS.get(bits)):
            row = rows.get((parts.problem(name, parts.LARGE), 16))
            line += [cell(number) for number in speedups(row)]
        lines.append(line)
    write(folder / "data", lines)
    return {"data": str(folder / "data")}


def prepare_batch(rows, folder):
    problem = parts.PARTS["batch"].cases[0].problem
    lines = [[str(m), cell(row["us"]), cell(row["floor_us"]), cell(row["cublas_us"])]
             for (which, m), row in sorted(rows.items(), key=lambda item: item[0][1])
             if which == problem]
    write(folder / "data", lines)
    blocks = collections.defaultdict(list)
    for p in peers.read():
        if (p["peer"] != "cuBLAS" and p["weights"] in ("u4", "i4") and p["zeros"] == "none"
                and p["group"] == 128 and (p["k"], p["n"]) == parts.LARGE):
            blocks[f"{p['peer']}, {p['weights']}"].append([str(p["m"]), cell(p["us"])])
    (folder / "peers").write_text("\n\n".join(
        quoted(name) + "\n" + "".join(" ".join(line) + "\n" for line in lines)
        for name, lines in blocks.items()))
    return {"data": str(folder / "data"), "peers": str(folder / "peers"),
            "peer_count": len(blocks)}


def prepare_tilelang(rows, folder):
    lines = []
    for number, (n, k) in enumerate(parts.TILELANG):
        line = [str(number), quoted(f"V{number}\n{k} x {n}")]
        for weights, activations in parts.TILELANG_TYPES:
            row = rows.get((parts.problem(weights, (k, n), activations=activations), 1))
            line += [cell(number) for number in speedups(row)]
        lines.append(line)
    write(folder / "data", lines)
    names = ";".join(f"{w} x {a}" for w, a in parts.TILELANG_TYPES)
    return {"data": str(folder / "data"), "names": names,
            "summary": "shapes V0 to V7 of TileLang's paper, m = 1 (TileLang itself was not measured)"}


def prepare_models(steps, rows, folder):
    for panel, m in enumerate(steps.sizes, 1):
        lines = []
        for number, model in enumerate(parts.MODELS):
            library = [parts.step_sum(model, rows, weights, m, "cublas_us")
                       for weights in steps.types]
            known = sorted(ms for ms in library if ms is not None)
            line = [str(number), quoted(model.name),
                    cell(known[len(known) // 2] if known else None)]
            for weights in steps.types:
                line += [cell(parts.step_sum(model, rows, weights, m, "us")),
                         cell(parts.step_sum(model, rows, weights, m, "floor_us"))]
            lines.append(line)
        write(folder / f"panel{panel}", lines)
    return {"data": str(folder / "panel%d"), "names": ";".join(steps.types), "series": len(steps.types),
            "titles": ";".join(f"m = {m}" for m in steps.sizes), "panels": len(steps.sizes),
            "summary": "the layers of three models, beside cuBLAS alone"}


PREPARE = {"types-shapes": prepare_types_shapes, "spectrum": prepare_spectrum,
           "batch": prepare_batch, "tilelang": prepare_tilelang,
           **{name: functools.partial(prepare_models, steps) for name, steps in parts.STEPS.items()}}
SCRIPTS = {"model-batches": "models"}       # of other names than the part


# ---- gnuplot ---------------------------------------------------------------------------

def draw(name, variables, out, kind):
    wide, high = SIZES[name]
    settings = variables | {"kind": kind, "out": str(out), "wide": wide, "high": high,
                            "plots": str(machine.BENCH / "plots")}
    words = ["gnuplot"]
    for variable, value in settings.items():
        words += ["-e", f"{variable}={value if isinstance(value, int) else quoted(value)}"]
    machine.command(words + [machine.BENCH / "plots" / f"{SCRIPTS.get(name, name)}.gp"])


def draw_both(name, variables, options):
    """NAME.svg and NAME.png, beside the rows."""
    if not shutil.which("gnuplot"):
        raise machine.Failure("no gnuplot (Debian: gnuplot-nox)")
    for kind in ("svg", "png"):
        draw(name, variables, options.results / f"{name}.{kind}", kind)


def heading(part, name, rows, summary, footnote):
    lacking = len([each for each in parts.rows(part) if each not in rows])
    partial = f"; {lacking} of {len(parts.rows(part))} rows lack" if lacking else ""
    return (f"{summary}\n{name.device}, driver {name.driver}, revision {name.revision}, "
            f"{max(row['date'] for row in rows.values())[:10]}{partial}" + (f"\n{footnote}" if footnote else ""))


def run(part, options):
    if part.name not in PREPARE:
        return True
    name, rows = results.newest(part, options.results / f"{part.name}.csv", options.partial)
    with tempfile.TemporaryDirectory() as folder:
        variables = PREPARE[part.name](rows, pathlib.Path(folder))
        variables["heading"] = heading(part, name, rows,
                                       variables.pop("summary", part.summary),
                                       variables.pop("footnote", None))
        draw_both(part.name, variables, options)
    print(f"{part.name}: drawn from {len(rows)} rows of {name.revision} on {name.device}")
    return True
