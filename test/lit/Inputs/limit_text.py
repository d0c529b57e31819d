"""Prints program text that reaches a limit: limit_text.py KIND N.

The text has N of something; KIND is one of COUNTED. The kinds of DEEP, which nest N
levels, are for deep_texts.py."""
import sys


def program(body, arguments="", head="", warps=1):
    return f"{head}program @p<1>({arguments}) warps({warps}) {{\n{body}\n}}\n"


def nest(opening, closing):
    return lambda n: program(opening * n + "synchronize\n" + closing * n, "%n: i32")


def nested_loops(n):
    return program("".join(f"for %i{i} in 0 .. %n {{\n" for i in range(n)) + "synchronize\n" +
                   "}" * n, "%n: i32")


def scalar(before, after):
    return lambda n: program("assert " + before * n + "%n" + after * n + ' > 0, "positive"',
                             "%n: i32")


def layout(before, after):
    return lambda n: "layout l = " + before * n + "local(1)" + after * n + "\n"


def register(layout_text, extents):
    return program(f"%r = allocate_register 0.0 : f32{extents} @ {layout_text}")


def repeated(item, n):
    return ", ".join([str(item)] * n)


def results(n):
    text = ", ".join(f"%r{i}" for i in range(n)) + " = if %c > 0 {\n"
    text += "".join(f"%x{i} = scalar %c : i32\n" for i in range(n))
    text += "yield " + ", ".join(f"%x{i}" for i in range(n))
    return program(text + f"\n}} else {{\nyield {repeated('%c', n)}\n}}", "%c: i32")


def chained_loops(n):
    """Bounds as deep as may be, each on the loop before: the facts of the innermost index
    depend on all."""
    text = "%v = view_global %g : i32[%n] global\nfor %i0 in 0 .. %n {\n"
    for i in range(1, n):
        text += f"for %i{i} in 0 .. %i{i - 1}" + " + %n" * 200 + " {\n"
    text += f"%r = load_global %v[%i{n - 1}] : i32[32] @ spatial(32)\n"
    text += f"store_global %r, %v[%i{n - 1}]\n"
    return program(text + "}" * n, "%n: i32, %g: ptr<i32>")


def chained_scalars(n):
    text = "%v = view_global %g : i32[%n] global\n%s0 = scalar %n\n"
    for i in range(1, n):
        text += f"%s{i} = scalar %s{i - 1} + %s{i - 1} - 1\n"
    text += f"%r = load_global %v[%s{n - 1}] : i32[32] @ spatial(32)\n"
    return program(text + f"store_global %r, %v[%s{n - 1}]", "%n: i32, %g: ptr<i32>")


def chained_extremes(n):
    text = "%v = view_global %g : i32[%n] global\nfor %i in 0 .. %n {\n%s0 = scalar %n + %i\n"
    for i in range(1, n):
        text += f"%s{i} = scalar max(%s{i - 1} + %i, %n) mod 77\n"
    text += f"%r = load_global %v[%s{n - 1}] : i32[32] @ spatial(32)\n"
    return program(text + "store_global %r, %v[0]\n}", "%n: i32, %g: ptr<i32>")


def split_loop(n):
    """A loop whose checks are split off, n regions deep."""
    return program("%v = view_global %g : f32[%n] global\n" + "if %n > 1 {\n" * (n - 1) +
                   "for %i in 0 .. ceil_div(%n, 32) {\n%r = load_global %v[%i * 32] : f32[32] @ "
                   "spatial(32)\nstore_global %r, %v[%i * 32]\n}\n" + "}\n" * (n - 1),
                   "%n: i32, %g: ptr<f32>")


def guarded_loop(n):
    """A pipelined loop whose copies need an `if`, n regions deep."""
    return program("%v = view_global %g : u32[%n + 1, 32] global\n"
                   "%zero = allocate_register 0 : u32[32] @ spatial(32)\n" +
                   "if %n > 1 {\n" * (n - 1) + "%s = allocate_shared : u32[32]\n"
                   "%sum = for %i in 0 .. %n pipelined(3) iter(%c = %zero) {\n"
                   "copy_async %v[%i, 0], %s[0] {shape = [32]}\ncopy_async_commit_group\n"
                   "copy_async_wait_group 0\nsynchronize\n"
                   "%r = load_shared %s[0] : u32[32] @ spatial(32)\n%next = add %c, %r\n"
                   "synchronize\nyield %next\n}\nstore_global %sum, %v[0, 0]\n" +
                   "}\n" * (n - 1), "%n: i32, %g: ptr<u32> {align = 16}")


def moved(n, cast_to):
    """Loads n elements a thread, of 3 bits, and stores them as `cast_to`."""
    count = 32 * n
    return program(f"%v = view_global %x : u3[{count}]\n%w = view_global %y : {cast_to}[{count}]\n"
                   f"%r = load_global %v[0] : u3[{count}] @ local({n}).spatial(32)\n"
                   f"%s = cast %r : {cast_to}\nstore_global %s, %w[0]",
                   f"%x: ptr<u3>, %y: ptr<{cast_to}>")


def loops(n):
    """Loops one after the other, each of which copies %x to %y."""
    text = "%v = view_global %x : f32[%n]\n%w = view_global %y : f32[%n]\n"
    for i in range(n):
        text += (f"for %i{i} in 0 .. ceil_div(%n, 32) {{\n"
                 f"%r{i} = load_global %v[%i{i} * 32] : f32[32] @ spatial(32)\n"
                 f"store_global %r{i}, %w[%i{i} * 32]\n}}\n")
    return program(text, "%x: ptr<f32>, %y: ptr<f32>, %n: i32")


def shared(n):
    """Tensors in shared memory, one used after the other."""
    text = "%v = view_global %g : f32[32]\n%r = load_global %v[0] : f32[32] @ spatial(32)\n"
    for i in range(n):
        text += f"%s{i} = allocate_shared : f32[32]\nstore_shared %r, %s{i}[0]\nsynchronize\n"
    return program(text, "%g: ptr<f32>")


def unordered(n):
    """Loads and stores of one tensor, each in a branch of its own: any two of them may race."""
    text = "%v = view_global %g : f32[%n]\n"
    for i in range(n):
        text += (f"if %n > {i} {{\n%r{i} = load_global %v[%n - {i}] : f32[32] @ spatial(32)\n"
                 f"store_global %r{i}, %v[0]\n}}\n")
    return program(text, "%g: ptr<f32>, %n: i32")


# The text, and the most levels that are legal.
DEEP = {
    "if": (nest("if %n > 1 {\n", "}"), 255),
    "else": (nest("if %n > 1 { } else {\n", "}"), 255),
    "for": (nested_loops, 255),
    "while": (nest("while %n > 1 {\n", "}"), 255),
    "group": (nest("thread_group(0, 32) {\n", "}"), 255),
    "when": (nest("when 1 {\n", "}"), 255),
    "outer-when": (lambda n: "when 1 {\n" * n + "}" * n + "\n", 256),
    "parenthesis": (scalar("(", ")"), 255),
    "minus": (scalar("- ", ""), 254),
    "not": (scalar("(not ", ")"), 127),
    "right": (scalar("1 + (", ")"), 254),
    "product": (scalar("1 * (2 + ", ")"), 127),
    "call": (scalar("min(1, ", ")"), 254),
    "ceil": (scalar("ceil_div(", ", 3)"), 254),
    "sum": (scalar("%n + ", ""), 254),
    "grid": (lambda n: "program @p<" + "(" * n + "1" + ")" * n + ">() warps(1) {\n}\n", 255),
    "extent": (lambda n: program("%v = view_global %g : i32[" + "(" * n + "1" + ")" * n +
                                 "] global", "%g: ptr<i32>"), 255),
    "layout": (layout("(", ")"), 254),
    "reduce": (layout("reduce(", ", dims = [])"), 254),
    "permute": (layout("permute(", ", [0])"), 254),
    "concat": (layout("reduce(concat(", ", local(1)), dims = [1])"), 127),
    "divide": (layout("left_divide(", ", local(1))"), 254),
    "replicate": (layout("replicate(1).", ""), 254),
}

COUNTED = {
    "arguments": lambda n: program("", ", ".join(f"%a{i}: i32" for i in range(n))),
    "results": results,
    "operands": lambda n: program(f"%r = if %c > 0 {{\nyield {repeated('%c', n)}\n}} else {{\n"
                                  "yield %c\n}", "%c: i32"),
    "types": lambda n: program("%s = scalar %c : " + repeated("i32", n), "%c: i32"),
    "carried": lambda n: program("while %c > 0 iter(" + ", ".join(
        f"%x{i} = %c" for i in range(n)) + ") {\n}", "%c: i32"),
    "name": lambda n: "param " + "A" * n + " = 1\n" + program(""),
    "value-name": lambda n: program("%" + "a" * n + " = scalar 1"),
    "bound-again": lambda n: program(f"%{'a' * n} = scalar 1\n%{'a' * n} = scalar %{'a' * n} + 1"),
    "rank": lambda n: register(f"replicate(32).local({repeated(1, n)})", str([1] * n)),
    "elements": lambda n: register(f"replicate(32).local({n})", f"[{n}]"),
    "warps": lambda n: program("", warps=n),
    "modes": lambda n: f"layout l = register_layout(shape = [1], mode_shape = [{repeated(1, n)}], "
                       f"spatial_modes = [], local_modes = {list(range(n))})\n" + program(""),
    "stages": lambda n: program(f"for %i in 0 .. 4 pipelined({n}) {{\n}}"),
    "unroll": lambda n: program(f"for %i in 0 .. 4096 unroll({n}) {{\n}}"),
    "unrolled": lambda n: program("for %i in 0 .. 100 unroll {\nsynchronize\n}\n" * n),
    "grid-x": lambda n: f"program @p<{n}>() warps(1) {{\n}}\n",
    "grid-y": lambda n: f"program @p<1, {n}>() warps(1) {{\n}}\n",
    "swizzle": lambda n: program(f"%s = allocate_shared : i32[4] shared swizzle(1, 0, {n})"),
    "scalars": lambda n: program("".join(f"%s{i} = scalar {i}\n" for i in range(n))),
    "errors": lambda n: "param ?\n" * n,
    "chained-loops": chained_loops,
    "chained-scalars": chained_scalars, "chained-extremes": chained_extremes,
    "casts": lambda n: moved(n, "f16"),
    "copies": lambda n: moved(n, "u3"),
    "loops": loops,
    "shared": shared,
    "unordered": unordered,
    "split-loop": split_loop,
    "guarded-loop": guarded_loop,
    "programs": lambda n: "".join(f"program @p{i}<1>() warps(1) {{\n}}\n" for i in range(n)),
    "adds": lambda n: program("%v = view_global %g : f32[32] global\n"
                              "%r0 = load_global %v[0] : f32[32] @ spatial(32)\n" +
                              "".join(f"%r{i + 1} = add %r{i}, %r{i}\n" for i in range(n)) +
                              f"store_global %r{n}, %v[0]", "%g: ptr<f32>"),
}


if __name__ == "__main__":
    sys.stdout.write(COUNTED[sys.argv[1]](int(sys.argv[2])))
