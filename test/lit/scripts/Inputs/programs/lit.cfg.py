# Programs that write what cmocka writes, or do not.
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
import formats

config.name = "programs"
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = lit_config.params["scratch"]
config.own_environment = dict(os.environ)
names = ["cases", "crashes", "silent", "absent"]
config.test_format = formats.Programs([f"{config.test_source_root}/{name}" for name in names],
                                      formats.run_cmocka)
