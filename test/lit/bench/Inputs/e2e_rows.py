"""Writes rows of bench/e2e that nobody measured: e2e_rows.py BENCH_E2E FILE."""
import csv
import importlib.util
import sys

sys.path.insert(0, sys.argv[1])
spec = importlib.util.spec_from_file_location("bench_e2e", f"{sys.argv[1]}/__main__.py")
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)
with open(sys.argv[2], "w", newline="") as file:
    writer = csv.DictWriter(file, bench.COLUMNS, restval="")
    writer.writeheader()
    about = {"device": "No device", "driver": "0.0", "revision": "made-up", "model": "Llama-3.3-70B", "tokens": 512}
    for date, kernels, weights, step, batch, us, more in (
            ("2026-02", "gallery", "u4", "decode", 1, 9000, {"fraction": "0.9133", "tokens_per_s": "111.1"}),
            ("2026-01", "gallery", "u4", "decode", 1, 99000, {"fraction": "0.0", "tokens_per_s": "1"}),
            ("2026-02", "torch", "u4", "decode", 1, 12000, {"fraction": "0.7", "tokens_per_s": "83.3"}),
            ("2026-02", "gallery", "u4", "decode", 16, 10000, {}),
            ("2026-02", "gallery", "u4", "prefill", 1, 500000, {}),
            ("2026-02", "gallery", "u8", "decode", 1, 18000, {"fraction": "0.8727", "tokens_per_s": "55.6"})):
        writer.writerow({**about, "date": date, "kernels": kernels, "weights": weights, "step": step, "batch": batch, "us": us,
                         **more})
