"""The newest sets as tables of Markdown."""
from . import parts, peers, results

HEAD = ["weights", "k x n", "m", "us", "of the floor", "x cuBLAS f16", "x best peer"]


def number(value, format_):
    return "" if value is None else format(value, format_)


def table(head, lines):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for line in lines:
        yield "| " + " | ".join(line) + " |"


def row_cells(problem, m, row, known):
    best = peers.best(known, problem, m)
    activations = "" if problem.activations == "f16" else f" x {problem.activations}"
    return [parts.label(problem) + activations, f"{problem.k} x {problem.n}", str(m),
            f"{row['us']:.1f}", number(row["fraction"], ".3f"), number(row["speedup"], ".2f"),
            number(best / row["us"] if best else None, ".2f")]


def model_cells(steps, rows):
    """Milliseconds of all products of a step: ours, and of cuBLAS."""
    for model in parts.MODELS:
        for m in steps.sizes:
            for weights in steps.types:
                ours, floor, library = (parts.step_sum(model, rows, weights, m, name)
                                        for name in ("us", "floor_us", "cublas_us"))
                yield [model.name, str(m), weights, number(ours, ".2f"), number(floor, ".2f"),
                       number(library, ".2f")]


def show_compile(path):
    rows = results.read(path, tuple(results.COMPILE_COLUMNS))
    print("\n".join(table(results.COMPILE_COLUMNS,
                          [[str(value) for value in row.values()] for row in rows])))
    return True


def run(part, options):
    path = options.results / f"{part.name}.csv"
    if part.name == "compile":
        return show_compile(path)
    name, rows = results.newest(part, path, options.partial)
    known = peers.read()
    print(f"{part.summary}; {name.device}, driver {name.driver}, revision {name.revision}\n")
    print("\n".join(table(HEAD, [row_cells(*key, rows[key], known)
                                 for key in parts.rows(part) if key in rows])))
    if part.name in parts.STEPS:
        head = ["model", "m", "weights", "ms a step", "floor", "cuBLAS f16"]
        print("\n" + "\n".join(table(head, model_cells(parts.STEPS[part.name], rows))))
    return True
