#!/usr/bin/env python3
"""Whole models with random weights of 16 to 1 bits on a GPU: decoding and prompts.

    bench/run e2e [MODEL...]        measures, and adds rows to bench/results/e2e.csv
    bench/run e2e --dry-run         what would be measured, with floors; needs no torch
    bench/run show e2e              the newest rows as a table

A model is named by any part of its name. Every layer has weights of its own. Steps are CUDA graphs, from the embedding to
logits: `decode` adds a token to each of `batch` sequences of --context tokens, `prefill` is a prompt of --prompt tokens.
Before a model is measured, two of its layers are compared with the same products and torch between them. The floor is the
time to read weights, head and cache at 4.57 TB/s.
"""
import argparse
import csv
import datetime
import gc
import pathlib
import statistics
import subprocess
import sys
import time

import shapes

COLUMNS = ("date device driver revision model weights step batch tokens kernels layers us tokens_per_s bytes floor_us fraction"
           " tflops").split()
KERNELS = ["gallery", "torch"]


def words(text):
    return [word for word in text.split(",") if word]


def numbers(text):
    return [int(word) for word in words(text)]


def parse_line():
    parser = argparse.ArgumentParser(prog="bench/run e2e", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--types", type=words, default=shapes.TYPES, metavar="TYPE,..", help="default: all of " + ",".join(shapes.TYPES))
    parser.add_argument("--batches", type=numbers, default=shapes.BATCHES, metavar="B,..")
    parser.add_argument("--context", type=int, default=512, metavar="N", help="tokens of a sequence before a decode step")
    parser.add_argument("--prompt", type=int, default=2048, metavar="N", help="tokens of a prompt; 0: none is measured")
    parser.add_argument("--kernels", type=words, default=["gallery"], metavar=",".join(KERNELS), help="between products")
    parser.add_argument("--layers", type=int, default=0, metavar="N", help="of a smaller model, for a trial")
    parser.add_argument("--profile", action="store_true", help="kernels of each step, by their time")
    parser.add_argument("--account", action="store_true", help="no rows: each step of a decoding layer alone, and left out")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="rows are added to it; default: they are printed only")
    parser.add_argument("--revision", default="", metavar="TEXT")
    options = parser.parse_args()
    names = options.models or list(shapes.MODELS)
    options.models = [chosen for name in names for chosen in find_models(parser, name)]
    for noun, given, known in (("type", options.types, shapes.TYPES), ("kernels", options.kernels, KERNELS)):
        for word in given:
            if word not in known:
                parser.error(f"no {noun} '{word}'; there are {', '.join(known)}")
    for name, least in (("batches", 1), ("context", 0), ("prompt", 0), ("layers", 0)):
        value = getattr(options, name)
        if min(value if name == "batches" else [value], default=least) < least:
            parser.error(f"--{name} is {value}, below {least}")
    return options


def find_models(parser, name):
    found = [model for known, model in shapes.MODELS.items() if name.lower() in known.lower()]
    return found or parser.error(f"no model '{name}'; there are {', '.join(shapes.MODELS)}")


def dry_run(options):
    print("model,weights,gigabytes,batch,context,floor_ms,launches")
    for model in options.models:
        for weights in options.types:
            held = shapes.weight_bytes(model, weights) / 1e9
            for batch in options.batches:
                floor = shapes.floor_us(model, weights, batch, options.context) / 1e3
                print(f"{model.name},{weights},{held:.1f},{batch},{options.context},{floor:.3f},{shapes.launches(model, weights)}")


# ---- measuring ---------------------------------------------------------------------

def time_graph(graph, seconds=0.15):
    """Returns microseconds of a replay, the median of those of so many seconds, after 100 ms of rest."""
    import torch
    events, times = [torch.cuda.Event(enable_timing=True) for _ in "ab"], []
    torch.cuda.synchronize()
    time.sleep(0.1)
    graph.replay()
    until = time.monotonic() + seconds
    while len(times) < 3 or time.monotonic() < until:
        events[0].record()
        graph.replay()
        events[1].record()
        events[1].synchronize()
        times.append(events[0].elapsed_time(events[1]) * 1e3)
    return statistics.median(times)


def capture(step):
    import torch
    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()
    return graph, result


def profile(graph):
    """Prints the kernels of a replay by their time, which includes what they wait for each other."""
    import torch
    graph.replay()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        graph.replay()
        torch.cuda.synchronize()
    for row in sorted(seen.key_averages(), key=lambda row: -row.self_device_time_total)[:20]:
        us = row.self_device_time_total
        print(f"  {us:10.1f} us {row.count:5} x {us / row.count:7.2f} {row.key[:110]}", flush=True)


class Bench:
    def __init__(self, options):
        import torch
        self.options, self.device = options, 0
        properties = torch.cuda.get_device_properties(0)
        self.machine = {"device": properties.name, "driver": driver_version(), "revision": options.revision}

    def keep(self, **row):
        row = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), **self.machine, **row}
        print(",".join(str(row.get(name, "")) for name in COLUMNS), flush=True)
        if self.options.out:
            fresh = not self.options.out.exists()
            with self.options.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
                writer.writeheader() if fresh else None
                writer.writerow(row)

    def run(self, model, weights):
        """Measures a model with weights of a type, by all kernels."""
        import torch
        import kernels
        from model import Decoder, prepare
        begun = time.monotonic()
        ways = [{"gallery": kernels.Gallery, "torch": kernels.Torch}[name](model) for name in self.options.kernels]
        gallery = next((way for way in ways if way.name == "gallery"), None) or kernels.Gallery(model)
        prepare(model, weights, gallery, self.device, self.options.batches + [x for x in [self.options.prompt] if x])
        prepared = time.monotonic()
        decoder = Decoder(model, weights, self.device)
        torch.cuda.synchronize()
        print(f"{model.name} {weights}: kernels {prepared - begun:.1f} s, weights {time.monotonic() - prepared:.1f} s,"
              f" {torch.cuda.memory_allocated() / 1e9:.1f} GB", flush=True)
        with torch.inference_mode():
            check(decoder, gallery, kernels.Torch(model), kernels)
            if self.options.account:
                return self.account(decoder, ways)
            for way in ways:
                for batch in self.options.batches:
                    self.measure(decoder, way, "decode", batch, self.options.context)
                if self.options.prompt:
                    self.measure(decoder, way, "prefill", 1, self.options.prompt)

    def account(self, decoder, ways):
        import account
        import kernels
        import torch
        for way in ways:
            for batch in self.options.batches:
                state = kernels.State(decoder.model, batch, self.options.context + 1, torch.device("cuda", self.device))
                fill(state).decode_at(self.options.context)
                account.measure(decoder, way, state, batch, time_graph, capture)

    def measure(self, decoder, way, step, batch, tokens):
        import torch
        try:
            self._measure(decoder, way, step, batch, tokens)
        except (torch.cuda.OutOfMemoryError, MemoryError):
            print(f"{decoder.model.name} {decoder.weights} {step} {batch} x {tokens}: does not fit", flush=True)
        gc.collect()
        torch.cuda.empty_cache()

    def _measure(self, decoder, way, step, batch, tokens):
        import torch
        import kernels
        model, prompt = decoder.model, step == "prefill"
        state = kernels.State(model, batch, tokens + (0 if prompt else 1), torch.device("cuda", self.device))
        state = state.prefill(0, tokens) if prompt else fill(state).decode_at(tokens)
        given = torch.randint(0, model.vocabulary, (tokens if prompt else batch,), device=state.table.device)
        graph, logits = capture(lambda: decoder(way, given, state, prompt))
        us = time_graph(graph)
        if not logits.isfinite().all():
            raise SystemExit(f"{model.name} {decoder.weights} {step} {batch}: logits are not finite")
        if self.options.profile:
            profile(graph)
        row = dict(model=model.name, weights=decoder.weights, step=step, batch=batch, tokens=tokens, kernels=way.name,
                   layers=model.layers, us=f"{us:.1f}", tokens_per_s=f"{(tokens if prompt else batch) / us * 1e6:.1f}")
        if prompt:
            row["tflops"] = f"{shapes.prefill_flops(model, tokens) / us * 1e-6:.1f}"
        else:
            floor = shapes.floor_us(model, decoder.weights, batch, tokens)
            row |= {"bytes": round(shapes.step_bytes(model, decoder.weights, batch, tokens)), "floor_us": f"{floor:.1f}",
                    "fraction": f"{floor / us:.4f}"}
        self.keep(**row)


def fill(state):
    """Fills the cache with numbers."""
    for part in (state.keys, state.values):
        for layer in part:
            layer.normal_()
    return state


def check(decoder, gallery, reference, kernels, layers=2):
    """Compares the output of the first layers by two ways between the same products."""
    import torch
    tokens = torch.arange(200, device="cuda")
    for prompt in (True, False):
        found = []
        for way in (reference, gallery):
            state = kernels.State(decoder.model, 2, 300, "cuda")
            for sequence in (0, 1):
                h = decoder.hidden(way, tokens[sequence:199 + sequence], state.prefill(sequence, 199), True, layers)
            found.append(h if prompt else decoder.hidden(way, tokens[:2], state.decode_at(199), False, layers))
        error = ((found[0] - found[1]).float().norm() / found[0].float().norm()).item()
        print(f"  {'prompt' if prompt else 'decode'} beside torch: {error:.1e}", flush=True)
        if not error < 2e-2:
            raise SystemExit(f"{decoder.model.name} {decoder.weights}: relative error {error:.2e} of {layers} layers")


def driver_version():
    words = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[0]


def main():
    options = parse_line()
    if options.dry_run:
        return dry_run(options)
    import torch
    from model import smaller
    if not torch.cuda.is_available():
        sys.exit("bench/run e2e: error: no GPU; --dry-run needs none")
    torch.manual_seed(1)
    bench = Bench(options)
    for model in options.models:
        for weights in options.types:
            try:
                bench.run(smaller(model, options.layers) if options.layers else model, weights)
            except (torch.cuda.OutOfMemoryError, MemoryError) as error:
                print(f"{model.name} {weights}: does not fit: {str(error)[:120]}", flush=True)
            gc.collect()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
