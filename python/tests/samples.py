"""Small files of each format for mutations, and a writer of GGUF."""
import json
import os
import random
import struct

from helpers import f16, f32, halves, i32, pack_bits, write_safetensors

SEED = random.Random(5)


def raw(size):
    return bytes(SEED.randrange(256) for _ in range(size))


def words(rows, columns):
    return ("I32", [rows, columns], raw(4 * rows * columns))


def scale(rows, columns):
    return halves([[0.5 + i + j for j in range(columns)] for i in range(rows)])


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def write_gguf(path, tensors, version=3, alignment=None, offsets=None, more=()):
    """Writes tensors (name, type id, shape innermost first, bytes), and `more` pairs of metadata."""
    pairs = [string("general.name") + struct.pack("<I", 8) + string("x"),
             string("tokens") + struct.pack("<IIQ", 9, 8, 2) + string("a") + string("bc"),
             string("numbers") + struct.pack("<IIQ3f", 9, 6, 3, 1, 2, 3)]
    pairs += more
    if alignment is not None:
        pairs.append(string("general.alignment") + struct.pack("<II", 4, alignment))
    alignment = alignment or 32
    infos, data = b"", b""
    for i, (name, kind, shape, bytes_) in enumerate(tensors):
        offset = len(data) if offsets is None else offsets[i]
        infos += string(name) + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape, kind, offset)
        data += bytes_ + bytes(-len(bytes_) % alignment)
    header = struct.pack("<4sIQQ", b"GGUF", version, len(tensors), len(pairs)) + b"".join(pairs) + infos
    with open(path, "wb") as file:
        file.write(header + bytes(-len(header) % alignment) + data)
    return path


GGUF_TENSORS = [("a.weight", 2, [64, 2], b"".join(f16(0.5)[0] + raw(16) for _ in range(4))),
                ("b.weight", 0, [4, 3], struct.pack("<12f", *range(12)))]


def layers():
    """Returns tensors and configuration of a file for each safetensors format."""
    return {
        "compressed": ({"m.weight_packed": words(8, 8), "m.weight_scale": scale(8, 2),
                        "m.weight_shape": ("I64", [2], struct.pack("<2q", 8, 64)),
                        "m.weight_zero_point": words(1, 2)}, None),
        "gptq": ({"m.qweight": words(8, 8), "m.qzeros": words(2, 1), "m.scales": scale(2, 8),
                  "m.g_idx": ("I32", [64], struct.pack("<64i", *(j // 32 for j in range(64))))},
                 {"quant_method": "gptq", "bits": 4}),
        "awq": ({"m.qweight": words(64, 2), "m.qzeros": words(2, 2), "m.scales": scale(2, 16)}, None),
        "nvfp4": ({"m.weight_packed": ("U8", [8, 16], raw(128)),
                   "m.weight_scale": ("F8_E4M3", [8, 2], bytes([56] * 16)),
                   "m.weight_global_scale": f32([2.0], [1])}, None),
        "hqq": ({"m.W_q": ("U8", [4, 32], raw(128)), "m.scale": scale(8, 1), "m.zero": scale(8, 1),
                 "m.shape": ("I32", [2], struct.pack("<2i", 4, 64)),
                 "m.group_size": ("I32", [], struct.pack("<i", 32))}, None),
        "bitsandbytes": (nf4(8, 64, double=True), None),
        "mxfp4": ({"m.a_blocks": ("U8", [2, 4, 1, 16], raw(128)),
                   "m.a_scales": ("U8", [2, 4, 1], bytes([127] * 8))}, None),
        "modelopt": ({"m.weight": ("U8", [8, 16], raw(128)), "m.weight_scale_2": f32([2.0], []),
                      "m.weight_scale": ("F8_E4M3", [8, 2], bytes([56] * 16))}, None),
        "int4": ({"m.weight": ("U8", [4, 64], raw(256)), "m.weight_scale": scale(8, 2)}, None),
        "fp8": ({"m.weight": ("F8_E4M3", [8, 16], raw(128)),
                 "m.weight_scale_inv": f32([2.0], [1, 1])}, None),
        "tilus": ({"m.weight_codes": ("U8", [8, 24], raw(192)), "m.weight_scales": scale(8, 2),
                   "m.weight_shape": ("I64", [2], struct.pack("<2q", 8, 64)),
                   "m.weight_zeros": ("U8", [8, 2], bytes(range(8)) * 2)},
                  {"quant_method": "tilus", "version": 1, "weights": "u3", "group": 32}),
        "bitnet": ({"m.weight": ("U8", [2, 16], bytes([0x24] * 32)),
                    "m.weight_scale": f32([2.0], [1])}, None),
    }


def nf4(n, k, double, block=64, kind="nf4"):
    """Returns tensors of bitsandbytes with random codes; the table is 0, 1, .. 15."""
    count = -(-n * k // block)
    state = {"quant_type": kind, "blocksize": block, "dtype": "float16", "shape": [n, k]}
    tensors = {"m.weight": ("U8", [n * k // 2, 1], raw(n * k // 2)),
               "m.weight.quant_map": f32(range(16), [16])}
    if double:
        state.update(nested_blocksize=256, nested_offset=0.5, nested_dtype="float32")
        tensors["m.weight.absmax"] = ("U8", [count], raw(count))
        tensors["m.weight.nested_quant_map"] = f32([i / 64 for i in range(256)], [256])
        nested = -(-count // 256)
        tensors["m.weight.nested_absmax"] = f32([1 + i for i in range(nested)], [nested])
    else:
        tensors["m.weight.absmax"] = f32([1 + i for i in range(count)], [count])
    text = json.dumps(state).encode()
    tensors["m.weight.quant_state.bitsandbytes__" + kind] = ("U8", [len(text)], text)
    return tensors


def write_all(folder):
    """Writes the samples. Returns their paths with the bytes that mutations may touch."""
    files = []
    for name, (tensors, config) in layers().items():
        part = os.path.join(folder, name)
        os.mkdir(part)
        path = os.path.join(part, "model.safetensors")
        write_safetensors(path, tensors)
        if config is not None:
            with open(os.path.join(part, "config.json"), "w") as file:
                json.dump({"quantization_config": config}, file)
        with open(path, "rb") as file:
            files.append((path, 8 + struct.unpack("<Q", file.read(8))[0]))
    path = write_gguf(os.path.join(folder, "x.gguf"), GGUF_TENSORS)
    return files + [(path, 320)]
