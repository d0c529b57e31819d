#!/usr/bin/env python3
"""Runs programs with tilus-run and checks what they compute.

On a machine with a GPU and nothing but Python, all GPU tests:

    run.py --tools DIR --kernels DIR --out DIR [--only FAMILY,...]

compares the GPU with the interpreter: the programs of test/lit/Run and what
they print, the matmul template for every type of 1 to 8 bits, the pipelined ones,
the one that dequantizes, every cast, widening ones of every code in every place from
every storage order, and the demo; and runs runtime_check, the tests of the runtime, and
matmul_check, the matmul library's products against sums in f64, in as many processes as
there are cores; with --only sanitizers, programs, kernels and some of those products under
compute-sanitizer. The last line is `N passed, M failed`; OUT/gpu-check.txt holds
all output. With --only matmul --engine cpu the products run on the CPU engine.

    run.py --tools DIR --engine interp,cpu,checked --programs FILE...

runs each `// ARGS:` line of the files on the interpreter, on the CPU engine and once
more there with its checks of accesses, as the lit tests do: an `--expect` in the line
is checked, and other engines are compared with the interpreter, which runs by itself
only where that says less.
"""
import argparse
import collections
import concurrent.futures
import ctypes.util
import importlib.util
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
RUN_PROGRAMS = HERE / "programs" if (HERE / "programs").exists() else HERE.parent / "lit" / "Run"

INTEGERS = [f"u{n}" for n in range(1, 9)] + [f"i{n}" for n in range(1, 9)]
FLOATS = [f"f{n}e{x}m{n - 1 - x}" for n in range(3, 9) for x in range(1, n)]
WIDE = ["bool", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "tf32", "f32", "f64"]
NARROW = INTEGERS + FLOATS + ["ue8m0"]
PIPELINED = ["matmul_pipelined", "matmul_pipelined_auto"]


class Case:
    """One check: a name and commands, all of which must succeed; with `same_text`, and
    write the same to standard output. Or what came of it already, (passed, output), where
    None has not run and counts as neither."""

    def __init__(self, name, *commands, same_text=False, result=None):
        self.name = name
        self.commands = commands
        self.same_text = same_text
        self.result = result


def bits(name):
    digits = name.lstrip("iubfte")
    return 8 if name in ("bool", "ue8m0") else int(digits.split("e")[0])


def exponent_bits(name):
    return 8 if name == "ue8m0" else int(name.split("e")[1].split("m")[0]) if "e" in name else 0


# ---- families ----------------------------------------------------------------

def argument_lines(path):
    """The arguments of each `// ARGS:` line of a program."""
    return [shlex.split(line.split("ARGS:", 1)[1]) for line in path.read_text().splitlines()
            if line.startswith("// ARGS:")]


def needed_engines(options, arguments):
    """The engines chosen. The CPU engine's run has the interpreter's in it, and what is bit for bit
    the interpreter's and as expected says the same of the interpreter; within a tolerance it does not."""
    engines = options.engine.split(",")
    within = [any(a.startswith(name) for a in arguments) for name in ("--expect", "--tolerance")]
    if "cpu" in engines and not all(within):
        engines = [engine for engine in engines if engine != "interp"]
    return engines


def engine_commands(options, path, arguments):
    """A run of the program on each engine; those that compile, against the interpreter."""
    engines = {"interp": ["--engine=interp"], "cpu": ["--engine=cpu", "--compare=interp"],
               "checked": ["--engine=cpu", "--check-races", "--allow-zero"],
               "gpu": ["--engine=gpu", "--require-gpu", "--compare=interp"]}
    return [[options.tilus_run, str(path), *engines[engine], *arguments]
            for engine in needed_engines(options, arguments)]


def program_cases(options, paths):
    """The `// ARGS:` lines of programs, on each engine."""
    for path in paths:
        lines = argument_lines(path)
        if not lines:
            yield Case(f"{path.name}: has no ARGS line", ["false"])
        for number, arguments in enumerate(lines, 1):
            yield Case(f"{path.stem}:{number}", *engine_commands(options, path, arguments))


def print_cases(options, paths):
    """The `// ARGS:` lines of programs that print: the GPU's text is the interpreter's."""
    for path in paths:
        if not re.search(r"^ *print ", path.read_text(), re.MULTILINE):
            continue
        for number, arguments in enumerate(argument_lines(path), 1):
            yield Case(f"print: {path.stem}:{number}",
                       *([options.tilus_run, str(path), f"--engine={engine}", *arguments]
                         for engine in ("interp", "gpu")), same_text=True)


def type_case(options, weight, scratch):
    """Packs random weights on the GPU, then multiplies; both against the interpreter."""
    m, n, k = 64, 64, 256
    wide = exponent_bits(weight) >= 5
    template = (HERE / "matmul_bf16.tilus" if wide
                else options.kernels / "matmul_f16_i6.tilus")
    defines = ["-D", f"W={weight}", "-D", "BK=32"]
    # 2^23 and its neighbours: products and sums of powers of two stay finite.
    codes = "codes(k*n, 112, 150)" if weight == "ue8m0" else "codes(k*n)"
    packed = os.path.join(scratch, weight + ".bin")
    sizes = ["--arg", f"n={n}", "--arg", f"k={k}"]
    common = ["--engine=gpu", "--require-gpu", "--compare=interp"]
    pack = [options.tilus_run, str(options.kernels / "transform_b.tilus"), *defines, *common,
            *sizes, "--arg", f"b={codes}", "--arg", f"bt=undef(k*n*{bits(weight)}/8)",
            "--out", f"bt={packed}"]
    multiply = [options.tilus_run, str(template), *defines, *common, *sizes, "--arg", f"m={m}",
                "--arg", "a=randn(m*k, 0.05)", "--arg", f"b=@{packed}", "--arg", "c=undef(m*n)",
                f"--tolerance={'1e-2' if wide else '1e-3'}"]
    return Case(f"types: {weight} x {'bf16' if wide else 'f16'}", pack, multiply)


def cast_program(source, targets):
    """One program that casts every code of `source` to each target."""
    elements = 256 if bits(source) <= 8 else 65536
    outputs = ", ".join(f"%o_{t}: ptr<{t}>" for t in targets)
    lines = ["tilus 1", f"program @casts<{elements // 256}>(%x: ptr<{source}>, {outputs}) warps(1) {{",
             "  %i = block_indices", f"  %gx = view_global %x : {source}[{elements}]",
             f"  %x0 = load_global %gx[%i * 256] : {source}[256] @ spatial(32).local(8)"]
    for t in targets:
        lines += [f"  %g_{t} = view_global %o_{t} : {t}[{elements}]",
                  f"  %c_{t} = cast %x0 : {t}", f"  store_global %c_{t}, %g_{t}[%i * 256]"]
    return "\n".join(lines + ["}"]) + "\n", elements


def cast_case(options, source, scratch):
    """Every code of narrow types, 65536 of wide ones, to every type, bit for bit."""
    targets = NARROW + WIDE
    text, elements = cast_program(source, targets)
    path = os.path.join(scratch, f"cast_{source}.tilus")
    pathlib.Path(path).write_text(text)
    narrow = bits(source) <= 16 and source not in ("bool",)
    data = f"sequence({elements})" if narrow else f"codes({elements})"
    command = [options.tilus_run, path, "--engine=gpu", "--require-gpu", "--compare=interp",
               "--allow-zero", "--arg", f"x={data}"]
    for t in targets:
        command += ["--arg", f"o_{t}=undef({elements})"]
    return Case(f"casts: {source} to {len(targets)} types", command)


# Casts of codes in every place of a thread's words.
PLAN_TARGETS = ["f16", "bf16", "f32", "tf32", "i8", "u8", "f8e4m3", "f8e5m2"]
ORDERS = ["f16", "bf16"]


def place_program(source, orders, decoded):
    """One program that casts every code of `source` in each of 32 places of a thread's
    words, from plain order and from storage orders, and decodes them from those of
    `decoded`; and the names of its results. Element (r, s) of the view has code r + s."""
    names, results, lines = [], [], []

    def store(name, target):
        names.append(f"o_{name}")
        results.append(f"%o_{name}: ptr<{target}> {{align = 16}}")
        lines.extend([f"  %g_{name} = view_global %o_{name} : {target}[256, 32]",
                      f"  store_global %{name}, %g_{name}[0, 0]"])

    for order in ["plain"] + orders:
        form = "" if order == "plain" else f" packed({order})"
        lines.append(f"  %{order}_codes = cast %codes : {source}{form}")
        for t in PLAN_TARGETS:
            lines.append(f"  %{order}_{t} = cast %{order}_codes : {t}")
            store(f"{order}_{t}", t)
        if order in decoded:
            lines += [f"  %{order}_scaled = decode %{order}_codes",
                      f"  %{order}_decoded = rescale %{order}_scaled : {order}"]
            store(f"{order}_decoded", order)
    head = ["tilus 1", f"program @places<1>(%x: ptr<{source}>, {', '.join(results)}) warps(8) {{",
            f"  %gx = view_global %x : {source}[256, 32] strides(1, 1)",
            f"  %codes = load_global %gx[0, 0] : {source}[256, 32] @ spatial(256, 1).local(1, 32)"]
    return "\n".join(head + lines + ["}"]) + "\n", names


def is_decoded(options, source, order, scratch):
    """Whether there is a decode without arithmetic, of codes that are all numbers."""
    if source in ("f8e4m3", "f8e5m2", "ue8m0"):
        return False
    path = pathlib.Path(scratch, "decodes.tilus")
    path.write_text(place_program(source, [order], [order])[0])
    return subprocess.run([str(options.tools / "tilus-opt"), str(path)],
                          capture_output=True).returncode == 0


def place_case(options, source, scratch):
    """Against the interpreter, which decodes: bit for bit."""
    decoded = [o for o in ORDERS if is_decoded(options, source, o, scratch)]
    text, names = place_program(source, ORDERS, decoded)
    path = os.path.join(scratch, f"places_{source}.tilus")
    pathlib.Path(path).write_text(text)
    command = [options.tilus_run, path, f"--engine={options.engine}", "--compare=interp",
               "--allow-zero", "--arg", "x=sequence(320)"]
    for name in names:
        command += ["--arg", f"{name}=undef(8192)"]
    return Case(f"places: {source}, {len(names)} results, decoded to "
                f"{' and '.join(decoded) or 'nothing'}", command)


def pipelined_case(options, kernel, weight, m, n, k, scratch):
    """Figure 14: packs on the GPU, then multiplies; both against the interpreter. The kernel is the one
    written by hand, or the loop that becomes it."""
    template = str(options.kernels / f"{kernel}.tilus")
    packer = str(options.kernels / "matmul_pipelined.tilus")
    common = ["-D", f"W={weight}", "--engine=gpu", "--require-gpu", "--compare=interp",
              "--arg", f"n={n}", "--arg", f"k={k}"]
    packed = os.path.join(scratch, f"{kernel}_{weight}_{n}_{k}.bin")
    words = -(-k // 256) * -(-n // 32) * 256 * bits(weight)
    pack = [options.tilus_run, packer, "--program=@pack", *common, "--arg", "b=codes(k*n)",
            "--arg", f"packed=undef({words})", "--out", f"packed={packed}"]
    multiply = [options.tilus_run, template, "--program=@matmul", *common, "--arg", f"m={m}",
                "--arg", "a=randn(m*k, 0.05)", "--arg", f"b=@{packed}", "--arg", "c=undef(m*n)",
                "--tolerance=1e-3"]
    return Case(f"{kernel}: {weight}, m = {m}, n = {n}, k = {k}", pack, multiply)


def dequantize_case(options, weight, scale, zero, target, group, columns):
    """kernels/dequantize.tilus for one choice of types and groups; k = 256, n = 128."""
    data = {"ue8m0": "codes({}, 118, 136)", "f8e4m3": "codes({}, 1, 126)"}
    count = f"k*n/{group * columns}"
    zeros = "codes({})" if zero and bits(zero) <= 8 else "uniform({}, -9, 9)"
    command = ["-D", f"W={weight}", "-D", f"S={scale}", "-D", f"T={target}", "-D", f"G={group}",
               "-D", f"H={columns}", *(["-D", f"Z={zero}"] if zero else ["-D", "ZEROS=0"]),
               "--arg", "k=256", "--arg", "n=128", "--arg", "w=codes(k*n)",
               "--arg", "s=" + data.get(scale, "uniform({}, -2, 2)").format(count),
               "--arg", "z=" + zeros.format(count), "--arg", "y=undef(k*n)"]
    return Case(f"dequantize: {weight} x {scale} - {zero or 'nothing'} to {target}, groups of "
                f"{group} x {columns}", *engine_commands(options, options.kernels /
                                                         "dequantize.tilus", command))


def dequantize_cases(options):
    """Every weight with every scale; zero points, targets and groups in turn, which meet each
    weight and each scale."""
    weights = ["u4", "i4", "u2", "u3", "u8", "i6", "f6e3m2", "f8e4m3"]
    scales = ["f16", "bf16", "f32", "f8e4m3", "ue8m0"]
    groups = [(16, 1), (32, 1), (64, 1), (128, 1), (256, 1), (256, 128), (32, 16)]
    for i, weight in enumerate(weights):
        own = weight if weight[0] in "iu" else "i4"
        zeros = [own, None, "f16", own, "f32", "u8", "bf16"]
        for j, scale in enumerate(scales):
            target = "bf16" if scale == "ue8m0" else ["f16", "bf16", "f32"][(i + j) % 3]
            yield dequantize_case(options, weight, scale, zeros[(2 * i + j) % 7], target,
                                  *groups[(i + 3 * j) % 7])


def demo_case(options, scratch):
    return Case("demo", [str(options.tools / "quantized_matmul"), "--kernels",
                         str(options.kernels), "--ptx-dir", scratch])


def device_target(options):
    """The best target for the first device; the oldest when there is no nvidia-smi to ask."""
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader", "--id=0"]
    try:
        text = subprocess.run(query, capture_output=True, text=True).stdout.strip()
    except OSError:
        text = ""
    capability = int(text.replace(".", "")) if re.fullmatch(r"\d+\.\d", text) else 80
    targets = subprocess.run([str(options.tools / "tilus-llc"), "--list-targets"],
                             capture_output=True, text=True).stdout.split()
    fitting = [(int(t[3:].rstrip("a")), t) for t in targets]
    return max((n, t) for n, t in fitting if n == capability or
               (n < capability and not t.endswith("a")))[1]


def compiled_programs(options, scratch):
    """The arguments of runtime_check: its programs for this device, as machine code, too,
    where there is ptxas."""
    target = device_target(options)
    arguments = ["--target", target]
    for kind, option in (("asm", "--ptx"), ("obj", "--cubin")):
        path = os.path.join(scratch, f"programs.{kind}")
        compile_one = [str(options.tools / "tilus-llc"), f"-mcpu={target}", f"--filetype={kind}",
                       str(HERE / "runtime_check" / "programs.tilus"), "-o", path]
        if subprocess.run(compile_one, capture_output=True).returncode == 0:
            arguments += [option, path]
    return arguments + compiled_copies(options, target, scratch)


def compiled_copies(options, target, scratch):
    """The same of the programs that need sm_90: artefacts."""
    arguments = []
    for program, option in (("copy_boxes", "--boxes"), ("copy_in_pairs", "--pairs")):
        path = os.path.join(scratch, f"{program}.tilusk")
        compile_one = [str(options.tools / "tilus-llc"), f"-mcpu={target}", "--filetype=artefact",
                       f"--program=@{program}", str(HERE / "runtime_check" / "programs_sm90.tilus"), "-o", path]
        if int(target[3:].rstrip("a")) >= 90:
            subprocess.run(compile_one, check=True)
            arguments += [option, path]
    return arguments


def runtime_cases(options, scratch):
    """One case for each verdict of runtime_check, with what it measured before it."""
    command = [str(options.tools / "runtime_check"), *compiled_programs(options, scratch)]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         errors="replace", timeout=300)
    output = ""
    for line in run.stdout.splitlines(keepends=True):
        output += line
        verdict = re.match(r"(PASS|FAIL) (\w+)", line)
        if verdict:
            yield Case(f"runtime: {verdict[2]}", result=(verdict[1] == "PASS", output))
            output = ""
    if run.returncode not in (0, 1) or "PASS" not in run.stdout:
        yield Case("runtime: runtime_check", result=(False, f"{shlex.join(command)}: exit code "
                                                            f"{run.returncode}\n{output}"))


def cublas_environment():
    """The environment, with the cuBLAS that pip has brought where the system knows none."""
    if "TILUS_LIBCUBLAS" in os.environ or ctypes.util.find_library("cublas"):
        return dict(os.environ)
    spec = importlib.util.find_spec("nvidia")
    found = [library for version in ("13", "12")
             for place in (spec.submodule_search_locations if spec else ())
             for library in sorted(pathlib.Path(place).glob(f"*/lib/libcublas.so.{version}"))]
    return os.environ | {"TILUS_LIBCUBLAS": str(found[0])} if found else dict(os.environ)


def product_verdicts(options, share):
    """(verdict, name, text) of each case of a share of matmul_check's. Where a process ends
    before its last case, the case that it was at has failed, and another one goes on behind
    it; but not for ever."""
    ends_most, environment = 8, cublas_environment()
    command = [str(options.tools / "matmul_check"), f"--engine={options.engine}",
               f"--share={share}"]
    names = subprocess.run([*command, "--list"], capture_output=True,
                           text=True).stdout.splitlines()
    found, ends = [], 0
    while len(found) < len(names) and ends < ends_most:
        run = subprocess.run([*command, f"--skip={len(found)}"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, errors="replace",
                             env=environment)
        for verdict, text in re.findall(r"^(PASS|FAIL|SKIP) (.*)$", run.stdout, re.MULTILINE):
            name = names[len(found)]
            found.append((verdict, name, text.removeprefix(name + ": ")))
        lost = run.returncode == 3      # its last case has failed for that
        if len(found) < len(names) and not lost:
            found.append(("FAIL", names[len(found)], f"the process ended with exit code "
                          f"{run.returncode}: {run.stderr.strip()[-1000:]}"))
        ends += 1
    missing = [("FAIL", name, f"was not run, as {ends} processes had ended early")
               for name in names[len(found):]]
    return found + missing


def product_summary(verdicts):
    """(passed, output): what is not right, and counts."""
    counts = collections.Counter(verdict for verdict, _, _ in verdicts)
    errors = [float(number) for verdict, _, text in verdicts if verdict == "PASS"
              for number in re.findall(r"^error ([^,]+)", text)]
    lines = [f"{verdict} {name}: {text}" for verdict, name, text in verdicts
             if verdict != "PASS"]
    most = f", relative error at most {max(errors):.2e}" if errors else ""
    lines += [f"{counts['PASS']} right, {counts['FAIL']} wrong, {counts['SKIP']} skipped{most}"]
    passed = counts["FAIL"] == 0 if counts["PASS"] or counts["FAIL"] else None
    return passed, "\n".join(lines) + "\n"


def product_kinds(verdicts):
    """How often each property of a configuration was met by a case that is right."""
    kinds = collections.Counter(
        kind for verdict, _, text in verdicts if verdict == "PASS"
        for kind in re.findall(r"stages \d+|prearranged_a \d|scale_weights \d|zeros_by_mma|register_reallocation|\w+ hand-overs|cuBLAS", text))
    return ", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items()))


def product_cases(options):
    """matmul_check: a case for each type of weights and activations, and one of all."""
    shares = options.jobs or min(16, os.cpu_count() or 1)
    with concurrent.futures.ThreadPoolExecutor(shares) as pool:
        parts = pool.map(lambda i: product_verdicts(options, f"{i}/{shares}"),
                         range(1, shares + 1))
        verdicts = [verdict for part in parts for verdict in part]
    headings = collections.defaultdict(list)
    for verdict in verdicts:
        headings[re.split("[,:]", verdict[1])[0]].append(verdict)
    for heading, own in headings.items():
        yield Case(f"matmul: {heading}", result=product_summary(own))
    passed, output = product_summary(verdicts)
    yield Case("matmul: all", result=(bool(passed), output.splitlines()[-1] + "; " +
                                      product_kinds(verdicts) + "\n"))


def sanitized_products(options):
    """Some products, of all kinds of configurations, and some of what is beside the matrix."""
    shares, command = 4, [str(options.tools / "matmul_check"), "--seconds=0"]
    for share in range(1, shares + 1):
        yield Case(f"matmul, {share} of {shares}",
                   [*command, "--every=197", f"--share={share}/{shares}"],
                   [*command, "--every=7", "--filter=: ", f"--share={share}/{shares}"])


def sanitizer_cases(options, scratch):
    """Each kernel, and the first ARGS line of each program, under compute-sanitizer; not
    under a tool of which the program says, in a MEMCHECK or RACECHECK line, what it takes
    for an error. Products of the matmul library under memcheck."""
    cases = [Case(path.stem, [options.tilus_run, str(path), "--engine=gpu", "--require-gpu",
                              *argument_lines(path)[0]])
             for path in sorted(RUN_PROGRAMS.glob("*.tilus"))]
    cases += [type_case(options, "i6", scratch)]
    cases += [pipelined_case(options, kernel, "i6", 37, 72, 600, scratch) for kernel in PIPELINED]
    for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
        misread = {path.stem for path in RUN_PROGRAMS.glob("*.tilus")
                   if f"\n// {tool.upper()}: " in path.read_text()}
        products = list(sanitized_products(options)) if tool == "memcheck" else []
        for case in cases + products:
            if case.name in misread:
                continue
            yield Case(f"{tool}: {case.name}",
                       *(["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", *command]
                         for command in case.commands))


def all_cases(options, scratch):
    families = {
        "programs": lambda: list(program_cases(options, sorted(RUN_PROGRAMS.glob("*.tilus")))),
        "prints": lambda: list(print_cases(options, sorted(RUN_PROGRAMS.glob("*.tilus")))),
        "types": lambda: [type_case(options, t, scratch) for t in NARROW],
        "pipelined": lambda: [pipelined_case(options, kernel, t, *sizes, scratch)
                              for kernel in PIPELINED
                              for t in ("u2", "u4", "i6", "f6e3m2", "f8e4m3")
                              for sizes in ((64, 64, 1024), (37, 72, 600), (1, 8, 8))],
        "dequantize": lambda: list(dequantize_cases(options)),
        "places": lambda: [place_case(options, t, scratch) for t in NARROW],
        "casts": lambda: [cast_case(options, t, scratch) for t in NARROW + WIDE],
        "demo": lambda: [demo_case(options, scratch)],
        "runtime": lambda: list(runtime_cases(options, scratch)),
        "matmul": lambda: list(product_cases(options)),
        "sanitizers": lambda: list(sanitizer_cases(options, scratch)),
    }
    chosen = options.only.split(",") if options.only else [f for f in families
                                                           if f != "sanitizers"]
    return [case for family in chosen for case in families[family]()]


# ---- running -------------------------------------------------------------------

def run_case(case):
    """(passed, output): the first command that fails decides."""
    if case.result:
        return case.result
    output, texts = "", set()
    for command in case.commands:
        errors = subprocess.PIPE if case.same_text else subprocess.STDOUT
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                                errors="replace", timeout=300)
        output += "$ " + shlex.join(command) + "\n" + (result.stderr or "") + result.stdout
        texts.add(result.stdout)
        if result.returncode != 0:
            return False, output + f"exit code {result.returncode}\n"
    if case.same_text and (len(texts) != 1 or "" in texts):
        return False, output + "the texts differ, or there is none\n"
    return True, output


def machine():
    """What the log says of where it was made."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    revision = HERE.parent.parent / "revision"
    try:
        device = subprocess.run(query, capture_output=True, text=True).stdout.strip()
    except OSError:
        device = "unknown device"
    return "; ".join(["test/gpu/run.py", time.strftime("%Y-%m-%d"), device, "revision " +
                      (revision.read_text().strip() if revision.exists() else "unknown")])


def run_cases(cases, jobs, log):
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for case, (ok, output) in zip(cases, pool.map(run_case, cases)):
            passed, failed = passed + (ok is True), failed + (ok is False)
            summary = [line for line in output.splitlines() if "relative error" in line
                       or "FAILED" in line or "error:" in line]
            numbers = re.findall(r"^NUMBER (.*)", output, re.MULTILINE)
            line = f"{'SKIP' if ok is None else 'PASS' if ok else 'FAIL'} {case.name}"
            print(line, *(summary[-1:] + numbers if ok else [output]), sep="  ", flush=True)
            log.write(f"==== {line}\n{output}\n")
    print(f"{passed} passed, {failed} failed", flush=True)
    return failed == 0 and passed > 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--kernels", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--engine", default="gpu", help="of: gpu, cpu, checked, interp; comma-separated")
    parser.add_argument("--only", help="families: programs,prints,types,pipelined,dequantize,places,casts,demo,runtime,"
                        "matmul,sanitizers")
    parser.add_argument("--programs", type=pathlib.Path, nargs="+")
    parser.add_argument("--jobs", type=int, help="cases at once; default: as many as cores, up to 8, "
                        "and 16 of matmul")
    options = parser.parse_args()
    options.tilus_run = str(options.tools / "tilus-run")
    if not options.programs and not (options.kernels and options.out):
        parser.error("--kernels and --out are needed, or --programs")
    return options


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as scratch:
        if options.programs:
            cases = list(program_cases(options, options.programs))
            return run_cases(cases, 1, open(os.devnull, "w"))
        options.out.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        with open(options.out / "gpu-check.txt", "w") as log:
            print(machine(), flush=True)
            log.write(machine() + "\n")
            ok = run_cases(all_cases(options, scratch),
                           options.jobs or min(8, os.cpu_count() or 1), log)
            log.write(f"{time.monotonic() - start:.1f} s\n")
        return ok


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
