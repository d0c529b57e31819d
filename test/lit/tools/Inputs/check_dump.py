"""Whether the JSON of tilus-dump (first argument) says what Inputs/launchable.tilus says of
@scale, and fits the artefact (second argument)."""
import json
import os
import sys

with open(sys.argv[1]) as file:
    dump = json.load(file)
expected = {
    "program": "scale",
    "grid": ["ceil_div(%n, 128)", "%rows"],
    "args": [
        {"name": "x", "kind": "pointer", "type": "f32", "align": 16},
        {"name": "n", "kind": "i32", "type": "i32", "divisible": 4, "min": 0, "max": 4096},
        {"name": "rows", "kind": "u32", "type": "u32", "divisible": 1, "min": 0,
         "max": 2**32 - 1},
        {"name": "offset", "kind": "i64", "type": "i64", "divisible": 1, "min": -2**63,
         "max": 2**63 - 1},
    ],
    "threads": 128,
    "shared_bytes": 0,
    "workspace": [{"name": "w", "bits": 32, "zeroed": False, "extents": ["%n", "2"]}],
    "maps": [],
    "cluster": [0, 0, 0],
    "cooperative": False,
    "overlaps": False,
    "target": "sm_90a",
    "ptx_version": 80,
    "cubin_bytes": 0,
    "parameters": "",
    "format": 6,
    "file_bytes": os.path.getsize(sys.argv[2]),
}
for key, value in expected.items():
    if dump.pop(key, None) != value:
        sys.exit(f"{key} is not {value}")
if sorted(dump) != ["compiler", "ptx_bytes", "source_bytes"]:
    sys.exit(f"more than is known: {sorted(dump)}")
