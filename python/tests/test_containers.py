"""Safetensors and GGUF as files: bounds, overlaps, shards; mutated and truncated files.

TILUS_FORMATS_MUTATIONS is how many mutated files are tried (default 2000)."""
import json
import os
import pathlib
import resource
import struct
import unittest
import warnings

import numpy as np

from helpers import Case, f32, formats, write_safetensors
from tilusc.formats.gguf import GgufFile
from tilusc.formats.safetensors import DTYPES, SafetensorsFile
import samples

try:
    import safetensors.numpy
except ImportError:
    safetensors = None

MUTATIONS = int(os.environ.get("TILUS_FORMATS_MUTATIONS", "2000"))
MEMORY = 256 << 20      # bytes that the process may grow by


class Safetensors(Case):
    def write(self, header, data=b"", length=None):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        with open(self.path("x.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text) if length is None else length) + text + data)
        return self.path("x.safetensors")

    def entry(self, dtype="U8", shape=(4,), offsets=(0, 4)):
        return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}

    def test_damaged(self):
        for what, header, data, length in (
                ("end of the bytes", b"", b"", None),
                ("length of the header", b"{}", b"", 1 << 62),
                ("no JSON", b"{", b"", None),
                ("no JSON", b"\xff{}", b"", None),
                ("no JSON", b"[" * 100000, b"", None),
                ("no JSON", b'{"a":' + b"9" * 10000 + b"}", b"", None),
                ("no JSON object", b"[]", b"", None),
                ("there twice", b'{"a":1,"a":2}', b"", None),
                ("dtype is X9", {"a": self.entry("X9")}, bytes(4), None),
                ("shape", {"a": self.entry(shape=[-4])}, bytes(4), None),
                ("shape", {"a": self.entry(shape=[True])}, bytes(4), None),
                ("data_offsets", {"a": self.entry(offsets=[0])}, bytes(4), None),
                ("bits between", {"a": self.entry("F32")}, bytes(4), None),
                ("bits between", {"a": self.entry(shape=[1 << 62, 1 << 62])}, bytes(4), None),
                ("where the tensor before", {"a": self.entry(), "b": self.entry(offsets=(2, 6))},
                 bytes(6), None),
                ("where the tensor before", {"a": self.entry(offsets=(1, 5))}, bytes(5), None),
                ("where tensors end", {"a": self.entry()}, bytes(3), None),
                ("where tensors end", {"a": self.entry()}, bytes(5), None),
                ("__metadata__", {"__metadata__": {"a": 1}}, b"", None)):
            with self.subTest(what=what, header=header[:40] if isinstance(header, bytes) else header):
                path = self.write(header, data, length)
                if length is None and header == b"":
                    open(path, "wb").close()
                self.refused(what, SafetensorsFile, path)

    def test_shards(self):
        write_safetensors(self.path("a.safetensors"), {"x.weight": f32([1, 2], [1, 2])})
        write_safetensors(self.path("b.safetensors"), {"y.weight": f32([3, 4], [2, 1])})
        index = {"weight_map": {"x.weight": "a.safetensors", "y.weight": "b.safetensors"}}
        path = self.path("model.safetensors.index.json")

        def put(value):
            with open(path, "w") as file:
                json.dump(value, file)
        put(index)
        with formats.open(self.folder) as model:
            self.assertEqual(model.names(), ["x.weight", "y.weight"])
            self.assertEqual(model.weight("y.weight").dequantize().tolist(), [[3], [4]])
            self.refused("no such matrix", model.weight, "z.weight")
        for wrong, text in (({"x.weight": "../a.safetensors"}, "a name without a path"),
                            ({"x.weight": "b.safetensors"}, "as the index says"),
                            ({"x.weight": "c.safetensors"}, "cannot be opened"), (3, "weight_map"),
                            ({"x.weight": "a\0.safetensors"}, "cannot be opened: embedded null byte"),
                            ({"x.weight": "\ud800.safetensors"}, "surrogates not allowed")):
            put({"weight_map": wrong})
            self.refused(text, formats.open, self.folder)

    def test_folders(self):
        self.refused("no .safetensors", formats.open, self.folder)
        for name in ("a.safetensors", "b.safetensors"):
            write_safetensors(self.path(name), {})
        self.refused("a.safetensors, b.safetensors, not one", formats.open, self.folder)

    def test_folders_called_as_files(self):
        os.mkdir(self.path("model.safetensors"))
        self.refused("model.safetensors: it is a folder, not a file", formats.open, self.folder)
        os.rmdir(self.path("model.safetensors"))
        write_safetensors(self.path("model.safetensors"), {})
        os.mkdir(self.path("config.json"))
        self.refused("config.json: it is a folder, not a file", formats.open, self.folder)

    def test_places(self):
        write_safetensors(self.path("model.safetensors"), {"x.weight": f32([1, 2], [1, 2])})
        for place in (self.folder, pathlib.Path(self.folder), os.fsencode(self.folder)):
            with formats.open(place) as model:
                self.assertEqual(model.names(), ["x.weight"])
            self.refused("x.weight: the file was closed", model.weight, "x.weight")

    @unittest.skipIf(safetensors is None, "no package safetensors")
    def test_against_the_package(self):
        tensors = {"a": np.arange(6, dtype="f4").reshape(2, 3), "b": np.ones((3, 2), "f2"),
                   "c": np.zeros((0, 5), "f8"), "d": np.arange(4, dtype="i8")}
        safetensors.numpy.save_file(tensors, self.path("p.safetensors"), {"who": "me"})
        self.assertEqual(SafetensorsFile(self.path("p.safetensors")).metadata, {"who": "me"})
        with formats.open(self.path("p.safetensors")) as model:
            for name in "abc":
                np.testing.assert_array_equal(model.tensor(name), tensors[name])
            self.refused("dtype", model.tensor, "d")


class Mutations(Case):
    """Each reader gives the right answer or a FormatError, whatever bytes it reads."""

    def mutate(self, data, limit):
        choice = self.random.random()
        data = bytearray(data)
        if choice < 0.2:
            return data[:self.random.randrange(len(data))]
        for _ in range(self.random.choice((1, 1, 2, 4, 16))):
            at = self.random.randrange(limit)
            if choice < 0.5:
                data[at] = self.random.randrange(256)
            elif choice < 0.7:
                data[at] ^= 1 << self.random.randrange(8)
            elif choice < 0.85:     # digits and punctuation of JSON
                data[at] = self.random.choice(b'0123456789,:[]{}" -eE.')
            else:                   # large numbers
                width = self.random.choice((4, 8))
                value = self.random.choice(((1 << 8 * width) - 1, 1 << (8 * width - 1), 1 << 31))
                data[at:at + width] = value.to_bytes(width, "little")
        return data

    def try_one(self, path):
        try:
            with formats.open(path) as model:
                for name in model.names():
                    try:
                        weight = model.weight(name, 0 if model.experts(name) else None)
                        weight.dequantize()
                        weight.to_matmul(approximate=True)
                    except formats.FormatError:
                        pass
        except formats.FormatError:
            return 1
        return 0

    def reshape(self, dtype, shape, raw):
        """Returns the tensor with other extents, and as many bytes as they take."""
        at = self.random.randrange(len(shape) + 1)
        shape = self.random.choice(([], shape[::-1], shape[:-1], shape + [1], shape[:at] + [0] + shape[at + 1:],
                                    shape[:at] + [2] + shape[at:], shape[:at] + [7] + shape[at + 1:]))
        size = DTYPES[dtype][0] // 8
        for extent in shape:
            size *= extent
        return dtype, shape, (raw * (size // max(1, len(raw)) + 1))[:size].ljust(size, b"\0")

    def test_shapes(self):
        """Reads samples whose tensors are missing, or whole but of other shapes."""
        for layer, (tensors, config) in samples.layers().items():
            folder = self.path("shapes-" + layer)
            os.mkdir(folder)
            with open(os.path.join(folder, "config.json"), "w") as file:
                json.dump({"quantization_config": config}, file)
            for _ in range(MUTATIONS // 10):
                made = dict(tensors)
                for _ in range(self.random.choice((1, 1, 2, 3))):
                    name = self.random.choice(list(tensors))
                    if self.random.random() < 0.1:
                        made.pop(name, None)
                    else:
                        made[name] = self.reshape(*tensors[name])
                write_safetensors(os.path.join(folder, "model.safetensors"), made)
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("error", RuntimeWarning)
                        self.try_one(folder)
                except Exception as error:
                    shapes = {name: (x[0], x[1]) for name, x in made.items()}
                    raise AssertionError(f"{layer} {shapes}: {type(error).__name__}: {error}") from error

    def test_mutations(self):
        files = samples.write_all(self.folder)
        count = max(1, MUTATIONS // len(files))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        refused = 0
        for path, header in files:
            self.assertEqual(self.try_one(path), 0, path)
            with open(path, "rb") as file:
                data = file.read()
            for _ in range(count):
                with open(path, "wb") as file:
                    file.write(self.mutate(data, header))
                try:
                    refused += self.try_one(path)
                except Exception as error:
                    raise AssertionError(f"{path}: {type(error).__name__}: {error}") from error
        self.assertGreater(refused, count)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(grown * 1024, MEMORY)


class Gguf(Case):
    def test_damaged(self):
        path = samples.write_gguf(self.path("x.gguf"), samples.GGUF_TENSORS)
        with open(path, "rb") as file:
            good = file.read()
        self.assertEqual(GgufFile(path).metadata["tokens"], ["a", "bc"])
        for what, at, value in (
                ("magic", 0, b"GGML"), ("version is 1", 4, struct.pack("<I", 1)),
                ("big-endian", 4, struct.pack(">I", 3)), ("count of tensors", 8, b"\xff" * 8),
                ("count of pairs", 16, b"\xff" * 8), ("header's end", 24, b"\xff" * 8)):
            with self.subTest(what=what):
                with open(path, "wb") as file:
                    file.write(good[:at] + value + good[at + len(value):])
                self.refused(what, GgufFile, path)
        for size in range(0, len(good) - 16, 7):
            with open(path, "wb") as file:
                file.write(good[:size])
            self.refused("", GgufFile, path)

    def test_parts(self):
        """A part of a model had some of its matrices, and said nothing of the others."""
        def write(parts):
            count = samples.string("split.count") + struct.pack("<IH", 2, parts)
            return samples.write_gguf(self.path("x.gguf"), samples.GGUF_TENSORS, more=[count])
        with formats.open(write(1)) as model:
            self.assertEqual(model.names(), ["a.weight", "b.weight"])
        self.refused("one of 3 parts of a model: join them", formats.open, write(3))

    def test_wrong_tensors(self):
        def write(**more):
            return samples.write_gguf(self.path("x.gguf"), samples.GGUF_TENSORS, **more)
        self.refused("alignment is 24", GgufFile, write(alignment=24))
        self.refused("another tensor ends", GgufFile, write(offsets=[0, 0]))
        self.refused("multiple of 32", GgufFile, write(offsets=[0, 40]))
        self.refused("at most the file's size", GgufFile, write(offsets=[0, 1 << 40]))
        self.assertEqual(GgufFile(write(version=2)).version, 2)
        self.assertEqual(GgufFile(write(alignment=64)).alignment, 64)


if __name__ == "__main__":
    unittest.main()
