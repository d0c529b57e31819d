"""The parts of the benchmark: which problems each measures, and for which m."""
import collections

# B[k, n] of `weights`; `group` of k has one scale, and a zero point if `zeros` is not "none".
Problem = collections.namedtuple("Problem", "weights activations k n group zeros")
Case = collections.namedtuple("Case", "problem sizes")
Part = collections.namedtuple("Part", "name summary cases options", defaults=[()])

# One layer's products of a model, by name, (k, n); and how many such layers there are.
Model = collections.namedtuple("Model", "name layers shapes")

SHAPES = [(8192, 8192), (28672, 8192), (8192, 57344)]
LARGE = (8192, 57344)

# Types of the papers' figure, and those that peers have; zero points where a peer has them.
TYPES = [("u8", "none"), ("f8e4m3", "none"), ("u6", "none"), ("f6e3m2", "none"), ("u5", "none"),
         ("f5e2m2", "none"), ("u4", "none"), ("u4", "integer"), ("i4", "none"),
         ("f4e2m1", "none"), ("u3", "none"), ("f3e1m1", "none"), ("u2", "none"),
         ("u1", "none")]

FLOATS = {8: "f8e4m3", 7: "f7e3m3", 6: "f6e3m2", 5: "f5e2m2", 4: "f4e2m1", 3: "f3e1m1"}

# n and k of the operator shapes of TileLang's benchmark.
TILELANG = [(16384, 16384), (43008, 14336), (14336, 14336), (57344, 14336), (14336, 57344),
            (9216, 9216), (36864, 9216), (9216, 36864)]
TILELANG_TYPES = [("i4", "f16"), ("i2", "f16"), ("i2", "i8")]

# Parts that are summed over the layers of models: types of their weights, and m of their steps.
Steps = collections.namedtuple("Steps", "types sizes")
STEPS = {"models": Steps(["u8", "f6e3m2", "u4", "u2", "u1"], [1, 16]),
         "model-batches": Steps(["u8", "u4"], [1, 16, 64, 256, 4096])}


def model(name, layers, hidden, heads, kv_heads, head, intermediate):
    """From the numbers of a model's public configuration."""
    return Model(name, layers, {"qkv": (hidden, (heads + 2 * kv_heads) * head),
                                "o": (heads * head, hidden),
                                "gate_up": (hidden, 2 * intermediate),
                                "down": (intermediate, hidden)})


MODELS = [model("Gemma-2-9B", 42, 3584, 16, 8, 256, 14336),
          model("Qwen2.5-32B", 64, 5120, 40, 8, 128, 27648),
          model("Llama-3.3-70B", 80, 8192, 64, 8, 128, 28672)]


def problem(weights, shape, zeros="none", activations="f16", group=128):
    k, n = shape
    return Problem(weights, activations, k, n, group, zeros)


def types_shapes():
    return [Case(problem(weights, shape, zeros), [1, 8, 16])
            for shape in SHAPES for weights, zeros in TYPES]


def zero_points():
    return [Case(problem(weights, LARGE, zeros), [1, 8, 16])
            for weights in ("u8", "u4", "u3", "u2", "u1")
            for zeros in ("none", "integer", "float")]


def spectrum():
    names = ([f"u{bits}" for bits in range(1, 9)] + [f"i{bits}" for bits in range(2, 9)] +
             [FLOATS[bits] for bits in range(3, 9)])
    return [Case(problem(name, LARGE), [16]) for name in names]


def batch():
    return [Case(problem("u4", LARGE), [2 ** power for power in range(13)])]


def loaded():
    cases = [("u8", "none", 16), ("u4", "none", 256), ("u4", "integer", 16), ("u3", "none", 16),
             ("u2", "none", 16), ("u1", "none", 16)]
    return [Case(problem(weights, LARGE, zeros), [m for m in (1, 16, 64, 256) if m <= most])
            for weights, zeros, most in cases]


def tilelang():
    return [Case(problem(weights, (k, n), activations=activations), [1])
            for n, k in TILELANG for weights, activations in TILELANG_TYPES]


def layers(steps):
    shapes = dict.fromkeys(shape for each in MODELS for shape in each.shapes.values())
    return [Case(problem(weights, shape), steps.sizes) for weights in steps.types for shape in shapes]


PARTS = {part.name: part for part in [
    Part("types-shapes", "types and shapes at m = 1, 8 and 16, beside peers", types_shapes()),
    Part("spectrum", "u1-u8, i2-i8, f3-f8 at m = 16, k x n = 8192 x 57344", spectrum()),
    Part("zeros", "what zero points cost, at m = 1, 8 and 16, k x n = 8192 x 57344", zero_points()),
    Part("batch", "u4 at m = 1 to 4096, k x n = 8192 x 57344", batch()),
    Part("loaded", "the same under load, at the device's power limit", loaded(), ["--loaded"]),
    Part("tilelang", "TileLang's shapes V0 to V7, m = 1", tilelang()),
    Part("models", "the layers of three models, m = 1 and 16, summed per step", layers(STEPS["models"])),
    Part("model-batches", "the same of u8 and u4, m = 1 to 4096", layers(STEPS["model-batches"])),
    Part("compile", "200 configurations of the template to PTX, on this machine's processor", []),
]}


def rows(part):
    """The keys of all rows of a part, in order."""
    return [(case.problem, m) for case in part.cases for m in case.sizes]


def label(problem):
    """Its weights and zero points, as plots and tables call them."""
    return problem.weights + {"none": "", "integer": "+z", "float": "+fz"}[problem.zeros]


def column(row, name):
    """A row's value; None where there is no row."""
    return row[name] if row else None


def step_sum(model, rows, weights, m, name):
    """Milliseconds of all layers of a model; None when a product lacks."""
    each = [column(rows.get((problem(weights, shape), m)), name)
            for shape in model.shapes.values()]
    return None if None in each else sum(each) * model.layers / 1000
