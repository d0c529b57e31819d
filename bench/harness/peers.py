"""Times of other systems, from bench/peers.csv."""
from . import machine, results


def read():
    return results.read(machine.BENCH / "peers.csv", tuple(results.PEER_COLUMNS))


def best_row(known, problem, m):
    """The row of the fastest system whose results are right, cuBLAS apart; or None. Peers have A
    in f16, and any size of group."""
    if problem.activations != "f16":
        return None
    rows = [p for p in known
            if (p["weights"], p["zeros"], p["k"], p["n"], p["m"]) ==
            (problem.weights, problem.zeros, problem.k, problem.n, m)
            and p["peer"] != "cuBLAS" and "wrong" not in (p["note"] or "")]
    return min(rows, key=lambda p: p["us"], default=None)


def best(known, problem, m):
    """Its time, or None."""
    row = best_row(known, problem, m)
    return row["us"] if row else None
