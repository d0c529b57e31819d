"""Where the time of a decode step goes: each step of a layer alone, one after the other, and what leaving it out saves.

Both tell more than a trace: launches that overlap wait inside of each other, and a trace counts that twice.
"""
import statistics

import torch
from tilusc import torch_ops
from tilusc.nn import QuantizedExperts

from model import normed_product


def steps_of(layer, way, state):
    """Returns a layer's steps by name: functions of the values so far, each of which makes the value of its name."""
    steps = {
        "qkv": lambda at: normed_product(way, layer.qkv, at["x"], at["norm"]),
        "attention": lambda at: layer.attend(way, at["qkv"], state, False),
        "o": lambda at: layer.o(at["attention"], at["x"])}
    if layer.model.experts:
        its = layer.mixture.experts
        steps["route"] = lambda at: way.route(at["x"], layer.norms[0], layer.mixture.router)
        if not isinstance(its, QuantizedExperts):
            return steps | {"experts": lambda at: its.products(*at["route"], at["x"])}
        op = torch_ops.matmul_experts
        return steps | {
            "gate_up": lambda at: op(at["route"][0], its.gate_up, its.texts["gate_up"], *at["route"][1:3]),
            "down": lambda at: op(at["gate_up"], its.down, its.texts["down"], *at["route"][1:], residual=at["x"])}
    return steps | {
        "gate_up": lambda at: layer.gated(way, normed_product(way, layer.gate_up, at["x"], layer.norms[0])),
        "down": lambda at: layer.down(at["gate_up"], at["x"])}


def measure(decoder, way, state, batch, time_graph, capture):
    """Prints microseconds of each step a layer. Models with norms behind products have other steps and are refused."""
    if decoder.model.sandwich:
        raise SystemExit(f"--account: {decoder.model.name} has norms behind its products, which are not taken apart")
    x = torch.empty((batch, decoder.model.hidden), dtype=torch.float16, device=state.table.device).normal_()
    chains = [steps_of(layer, way, state) for layer in decoder.layers]
    names = list(chains[0])
    held = {"x": x, "norm": decoder.norms[0]}
    for name in names:
        held[name] = chains[0][name](held)

    def run(chosen):
        for steps in chains:
            at = dict(held)
            for name in chosen:
                at[name] = steps[name](at)

    graphs = {"": capture(lambda: run(names))[0]}
    for name in names:
        graphs[name, "alone"] = capture(lambda: run([name]))[0]
        graphs[name, "without"] = capture(lambda: run([other for other in names if other != name]))[0]
    times = {key: [] for key in graphs}
    for _ in range(3):
        for key, graph in graphs.items():
            times[key].append(time_graph(graph, 0.05) / len(chains))
    us = {key: statistics.median(found) for key, found in times.items()}
    print(f"{decoder.model.name} {decoder.weights}, batch {batch}: {us['']:.1f} us a layer")
    for name in names:
        print(f"  {name:10} alone {us[name, 'alone']:7.2f}   saves {us[''] - us[name, 'without']:7.2f}")
    print(f"  {'all':10} alone {sum(us[name, 'alone'] for name in names):7.2f}", flush=True)
