"""The graph protocol of matmul_bench (bench/README.md) on torch's CUDA graphs."""
import math
import statistics
import time

import torch

REST_S, BURST_S, REPLAYS, LONG_REPLAYS = 0.1, 0.02, 50, 10
GRAPH_US = 1000


class Timer:
    """One per process: a stream to capture on, and a pair of events."""

    def __init__(self):
        self.stream = torch.cuda.Stream()
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def capture(self, launch, count):
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.stream(self.stream):
            graph.capture_begin()
            try:
                for i in range(count):
                    launch(i)
            finally:
                graph.capture_end()
        torch.cuda.synchronize()
        return graph

    def replay(self, graph):
        self.start.record()
        graph.replay()
        self.end.record()
        self.end.synchronize()
        return 1e3 * self.start.elapsed_time(self.end)

    def estimate(self, launch, copies):
        """Microseconds of a launch, not from rest: to choose, never to publish."""
        count = min(copies, 4)
        graph = self.capture(launch, count)
        self.replay(graph)
        return min(self.replay(graph) for _ in range(3)) / count

    def rested(self, launch, copies):
        """The median of replays in bursts after rests, in microseconds a launch: 50, or of graphs
        that take twice as long as they should 10."""
        rounds = max(1, math.ceil(GRAPH_US / self.estimate(launch, copies) / copies))
        count = rounds * copies
        graph = self.capture(lambda i: launch(i % copies), count)
        replays = REPLAYS if self.replay(graph) < 2 * GRAPH_US else LONG_REPLAYS
        times = []
        while len(times) < replays:
            time.sleep(REST_S)
            end = time.monotonic() + BURST_S
            self.replay(graph)
            while True:
                times.append(self.replay(graph) / count)
                if len(times) == replays or time.monotonic() >= end:
                    break
        return statistics.median(times)

    def chained(self, launch, copies, a):
        """The same behind a kernel that rewrites A, less that kernel alone."""
        def neighbor(_):
            a.mul_(1.0)
        def pair(i):
            neighbor(i)
            launch(i)
        return self.rested(pair, copies) - self.rested(neighbor, 1)
