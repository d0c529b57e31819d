"""The tables of README.md and docs/gallery.md, between their markers, from bench/results and peers.csv."""
from . import gemm, kernels, machine, parts, peers, results, show

README = machine.ROOT / "README.md"


def newest(name, options):
    return results.newest(parts.PARTS[name], options.results / f"{name}.csv", options.partial)


def time(value):
    return "" if value is None else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def short_name(peer):
    """Its first word; of the Tilus papers' own program another one, as ours is called so, too."""
    word = peer["peer"].split()[0]
    return "upstream" if word == "Tilus" else word


def peer_cell(peer):
    return f"{time(peer['us'])} {short_name(peer)}" if peer else "–"


def lead(peer, row):
    """Of the chain, where both have it, as overlap is not in it."""
    if not peer:
        return "–"
    theirs, ours = (peer["us_chain"], row["us_chain"]) if peer["us_chain"] and row["us_chain"] \
        else (peer["us"], row["us"])
    return f"{theirs / ours:.2f}"


def type_cells(rows, known, weights, zeros):
    problem = parts.problem(weights, parts.LARGE, zeros)
    yield weights + {"none": "", "integer": ", zero points"}[zeros]
    for m in (1, 16):
        row, peer = rows[problem, m], peers.best_row(known, problem, m)
        yield from (time(row["us"]), time(row["us_chain"]), time(row["floor_us"]),
                    peer_cell(peer), lead(peer, row))


def types_table(options, known):
    name, rows = newest("types-shapes", options)
    columns = ["", "in a chain", "floor", "best peer", "lead"]
    head = ["weights"] + [f"m = {m}" if not column else column
                          for m in (1, 16) for column in columns]
    return name, list(show.table(head, [list(type_cells(rows, known, weights, zeros))
                                        for weights, zeros in parts.TYPES]))


def batch_table(options, known):
    name, rows = newest("batch", options)
    lines = []
    for problem, m in parts.rows(parts.PARTS["batch"]):
        row, peer = rows[problem, m], peers.best_row(known, problem, m)
        lines.append([str(m), time(row["us"]), time(row["floor_us"]), peer_cell(peer),
                      time(row["cublas_us"]), lead(peer, row)])
    return name, list(show.table(["m", "Tilus", "floor", "best peer", "cuBLAS f16", "lead"], lines))


def replace(text, label, lines):
    """The text with what stands between the markers of `label` replaced."""
    begin, end = f"<!-- {label}:begin -->\n", f"<!-- {label}:end -->"
    if begin not in text or end not in text:
        raise machine.Failure(f"no markers of {label}")
    head, rest = text.split(begin, 1)
    return head + begin + "\n".join(lines) + "\n" + end + rest.split(end, 1)[1]


def update(path, wanted, options):
    """Writes a document; with --check only compares."""
    if options.check and wanted != path.read_text():
        raise machine.Failure(f"{path.name}'s tables are not what the results say: bench/run readme")
    path.write_text(wanted)


def run(options):
    """Writes the tables. Returns true when they stand there now."""
    known, wanted = peers.read(), README.read_text()
    for label, table in (("types", types_table), ("batch", batch_table)):
        name, lines = table(options, known)
        wanted = replace(wanted, label, [*lines, "", f"{name.device}, driver {name.driver}, "
                                         f"revision {name.revision}."])
    update(README, wanted, options)
    gallery = replace(kernels.DOCUMENT.read_text(), "kernels", kernels.table(options))
    update(kernels.DOCUMENT, replace(gallery, "gemm", gemm.document_lines(options)), options)
    return True
