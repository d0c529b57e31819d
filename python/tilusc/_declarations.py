"""The C interface of libtilus_rt, libtilus_matmul, libtilus_attention and libtilus_compiler for ctypes.

Made by scripts/python_declarations.py; not to be edited."""
import ctypes
from ctypes import (c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_longlong, c_size_t, c_ubyte, c_uint, c_uint32,
                    c_uint64, c_void_p)

TILUS_ARG_BF16 = 5
TILUS_ARG_F16 = 4
TILUS_ARG_F32 = 6
TILUS_ARG_I32 = 1
TILUS_ARG_I64 = 3
TILUS_ARG_POINTER = 0
TILUS_ARG_U32 = 2
TILUS_ARTEFACT_MAX = 268435456
TILUS_ARTEFACT_VERSION = 6
TILUS_ATTENTION_ADDED = 1
TILUS_ATTENTION_AUTO = 0
TILUS_ATTENTION_BLOCKS = 2
TILUS_ATTENTION_BOOLEAN = 2
TILUS_ATTENTION_DECODE = 1
TILUS_ATTENTION_FOLDED = 3
TILUS_ATTENTION_FORWARD = 0
TILUS_ATTENTION_LATENT = 2
TILUS_ATTENTION_QUEUES = 1
TILUS_ATTENTION_UNMASKED = 0
TILUS_BIGINT_AUTO = 0
TILUS_BIGINT_BATCH_MAX = 1048576
TILUS_BIGINT_BYTES_MAX = 67108864
TILUS_BIGINT_SCHOOLBOOK = 1
TILUS_BIGINT_TRANSFORM = 2
TILUS_CHANGED_DIFF = 2
TILUS_CHANGED_MODULE = 1
TILUS_CHANGED_NONE = 0
TILUS_CODE_ARGUMENT = 1
TILUS_CODE_CONSTANT = 0
TILUS_CODE_OPERATOR = 2
TILUS_DRAWING_SVG = 1
TILUS_DRAWING_TEXT = 0
TILUS_EFFECT_ALLOCATES = 1
TILUS_EFFECT_BARRIER = 4
TILUS_EFFECT_CONTROL = 6
TILUS_EFFECT_EXITS = 5
TILUS_EFFECT_PURE = 0
TILUS_EFFECT_READS = 2
TILUS_EFFECT_WRITES = 3
TILUS_EPILOGUE_GELU = 2
TILUS_EPILOGUE_NONE = 0
TILUS_EPILOGUE_SILU = 1
TILUS_ERROR_ARGUMENT = 1
TILUS_ERROR_ARTEFACT = 8
TILUS_ERROR_CHILD = 14
TILUS_ERROR_DEVICE_MEMORY = 9
TILUS_ERROR_DRIVER = 6
TILUS_ERROR_INTERNAL = 12
TILUS_ERROR_LOST = 10
TILUS_ERROR_MEMORY = 3
TILUS_ERROR_NO_DEVICE = 5
TILUS_ERROR_NO_DRIVER = 4
TILUS_ERROR_NO_KERNEL = 13
TILUS_ERROR_PROGRAM = 2
TILUS_ERROR_STATE = 11
TILUS_ERROR_UNSUPPORTED = 7
TILUS_KIND_GLOBAL = 4
TILUS_KIND_MBARRIER = 5
TILUS_KIND_POINTER = 1
TILUS_KIND_REGISTER = 2
TILUS_KIND_SCALAR = 0
TILUS_KIND_SHARED = 3
TILUS_MAP_ALIGN = 16
TILUS_MAP_BF16 = 9
TILUS_MAP_BOX_MAX = 256
TILUS_MAP_BYTES = 128
TILUS_MAP_EXTENT_MAX = 2147483392
TILUS_MAP_F16 = 6
TILUS_MAP_F32 = 7
TILUS_MAP_F64 = 8
TILUS_MAP_I32 = 3
TILUS_MAP_I64 = 5
TILUS_MAP_RANK = 5
TILUS_MAP_U16 = 1
TILUS_MAP_U32 = 2
TILUS_MAP_U64 = 4
TILUS_MAP_U8 = 0
TILUS_MATMUL_IDENTITY = 256
TILUS_MATMUL_SEMAPHORES = 262144
TILUS_OK = 0
TILUS_OUTPUT_LLVM_IR = 1
TILUS_OUTPUT_PTX = 0
TILUS_PROLOGUE_NONE = 0
TILUS_PROLOGUE_RMS_NORM = 1
TILUS_RANGE_ABSMAX = 1
TILUS_RANGE_MINMAX = 0
TILUS_SEQUENCE_KERNELS = 5
TILUS_SEVERITY_ERROR = 0
TILUS_SEVERITY_NOTE = 2
TILUS_SEVERITY_WARNING = 1
TILUS_TABLE_JSON = 2
TILUS_TABLE_NONE = 0
TILUS_TABLE_TEXT = 1
TILUS_WORKSPACE_ALIGN = 256
TILUS_ZEROS_FLOAT = 2
TILUS_ZEROS_INTEGER = 1
TILUS_ZEROS_NONE = 0


class tilus_arg_info(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("kind", c_int),
        ("dtype", c_char_p),
        ("divisible", c_int64),
        ("min", c_int64),
        ("max", c_int64),
        ("align", c_int64),
    ]


class tilus_artefact(ctypes.Structure):
    _fields_ = [
        ("info", c_void_p),
        ("target", c_char_p),
        ("ptx_version", c_uint),
        ("ptx", c_char_p),
        ("cubin", c_void_p),
        ("cubin_size", c_size_t),
        ("source", c_char_p),
        ("parameters", c_char_p),
        ("compiler", c_char_p),
    ]


class tilus_artefact_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("parameters", c_char_p),
        ("assemble", c_void_p),
        ("assembler", c_void_p),
    ]


class tilus_attention_call(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("shape", c_void_p),
        ("q", c_uint64),
        ("k", c_uint64),
        ("v", c_uint64),
        ("o", c_uint64),
        ("lse", c_uint64),
        ("sinks", c_uint64),
        ("mask", c_uint64),
        ("q_starts", c_uint64),
        ("k_starts", c_uint64),
        ("scales", c_uint64),
        ("table", c_uint64),
        ("lengths", c_uint64),
        ("workspace", c_uint64),
        ("workspace_size", c_size_t),
    ]


class tilus_attention_gradients(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("shape", c_void_p),
        ("q", c_uint64),
        ("k", c_uint64),
        ("v", c_uint64),
        ("o", c_uint64),
        ("lse", c_uint64),
        ("d_o", c_uint64),
        ("dq", c_uint64),
        ("dk", c_uint64),
        ("dv", c_uint64),
        ("q_starts", c_uint64),
        ("k_starts", c_uint64),
        ("workspace", c_uint64),
        ("workspace_size", c_size_t),
    ]


class tilus_attention_kernel(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("bytes", c_void_p),
        ("size", c_size_t),
    ]


class tilus_attention_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kernels", c_void_p),
        ("kernel_count", c_size_t),
        ("directory", c_char_p),
        ("compile", c_void_p),
        ("compile_data", c_void_p),
    ]


class tilus_attention_problem(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", c_int),
        ("mask", c_int),
        ("type", c_char_p),
        ("heads", c_int64),
        ("kv_heads", c_int64),
        ("dim", c_int64),
        ("value_dim", c_int64),
        ("scale", c_double),
        ("cap", c_double),
        ("left", c_int64),
        ("right", c_int64),
        ("cache", c_char_p),
        ("page", c_int64),
        ("groups", c_int64),
        ("causal", c_bool),
        ("window", c_bool),
        ("sinks", c_bool),
        ("lse", c_bool),
        ("ragged", c_bool),
        ("tokens_first", c_bool),
        ("plain", c_bool),
        ("finite", c_bool),
        ("gradients", c_bool),
        ("reserved", c_ubyte * 7),
        ("out_type", c_char_p),
    ]


class tilus_attention_shape(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("batch", c_int64),
        ("queries", c_int64),
        ("tokens", c_int64),
        ("longest", c_int64),
        ("masks", c_int64),
        ("pages", c_int64),
        ("columns", c_int64),
        ("splits", c_int64),
        ("longest_tokens", c_int64),
        ("schedule", c_int),
        ("reserved", c_ubyte * 4),
    ]


class tilus_attention_tokens(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("tokens", c_int64),
        ("pages", c_int64),
        ("new_k", c_uint64),
        ("new_v", c_uint64),
        ("slots", c_uint64),
        ("k", c_uint64),
        ("v", c_uint64),
        ("scales", c_uint64),
    ]


class tilus_bigint_call(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("a", c_uint64),
        ("b", c_uint64),
        ("c", c_uint64),
        ("workspace", c_uint64),
        ("workspace_size", c_size_t),
    ]


class tilus_bigint_kernel(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("bytes", c_void_p),
        ("size", c_size_t),
    ]


class tilus_bigint_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kernels", c_void_p),
        ("kernel_count", c_size_t),
        ("directory", c_char_p),
        ("compile", c_void_p),
        ("compile_data", c_void_p),
    ]


class tilus_bigint_problem(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("a_bytes", c_int64),
        ("b_bytes", c_int64),
        ("batch", c_int64),
        ("square", c_bool),
        ("method", c_int),
    ]


class tilus_buffer(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("size", c_size_t),
    ]


class tilus_cache_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("directory", c_char_p),
        ("size", c_uint64),
        ("warn", c_void_p),
        ("user", c_void_p),
    ]


class tilus_cache_stats(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("directory", c_char_p),
        ("writable", c_bool),
        ("entries", c_size_t),
        ("bytes", c_uint64),
        ("size", c_uint64),
        ("hits", c_uint64),
        ("misses", c_uint64),
        ("stored", c_uint64),
        ("dropped", c_uint64),
        ("evicted", c_uint64),
    ]


class tilus_child_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("compiler", c_char_p),
        ("milliseconds", c_uint64),
        ("cache_directory", c_char_p),
    ]


class tilus_child_source(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("text", c_char_p),
        ("text_size", c_size_t),
        ("file", c_char_p),
        ("import_paths", c_void_p),
        ("import_path_count", c_size_t),
        ("program", c_char_p),
        ("parameters", c_char_p),
        ("target", c_char_p),
    ]


class tilus_code(ctypes.Structure):
    _fields_ = [
        ("kind", c_int),
        ("value", c_int64),
    ]


class tilus_compile_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("cpu", c_char_p),
        ("program", c_char_p),
        ("opt_level", c_uint),
        ("output", c_int),
        ("features", c_char_p),
        ("debug_lines", c_bool),
    ]


class tilus_compile_times(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("llvm_seconds", c_double),
        ("ptx_seconds", c_double),
    ]


class tilus_cpu_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("cpu", c_char_p),
        ("opt_level", c_uint),
        ("host_threads", c_uint),
        ("print", c_void_p),
        ("printer", c_void_p),
        ("progress", c_void_p),
        ("watcher", c_void_p),
        ("check_races", c_bool),
    ]


class tilus_cpu_times(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("compile_seconds", c_double),
        ("run_seconds", c_double),
    ]


class tilus_define(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("value", c_char_p),
    ]


class tilus_device_description(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("key", c_char_p),
        ("name", c_char_p),
        ("capability", c_int),
        ("multiprocessors", c_int),
        ("memory", c_size_t),
        ("shared_memory", c_size_t),
    ]


class tilus_engine(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("data", c_void_p),
        ("load", c_void_p),
        ("run", c_void_p),
        ("unload", c_void_p),
    ]


class tilus_engine_launch(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("args", c_void_p),
        ("arg_count", c_size_t),
        ("grid", c_int64 * 3),
        ("memory", c_void_p),
        ("memory_count", c_size_t),
        ("workspace_size", c_size_t),
        ("workspace_zeroed", c_size_t),
    ]


class tilus_interpret_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("print", c_void_p),
        ("printer", c_void_p),
        ("progress", c_void_p),
        ("watcher", c_void_p),
        ("profile", c_void_p),
        ("profiler", c_void_p),
    ]


class tilus_jit_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("target", c_char_p),
        ("capability", c_int),
        ("opt_level", c_uint),
        ("program", c_char_p),
        ("defines", c_void_p),
        ("define_count", c_size_t),
        ("cache", c_void_p),
        ("file", c_char_p),
        ("import_paths", c_void_p),
        ("import_path_count", c_size_t),
        ("features", c_char_p),
        ("debug_lines", c_bool),
    ]


class tilus_kernel_info(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("arg_count", c_size_t),
        ("args", c_void_p),
        ("grid_rank", c_uint),
        ("grid_length", c_size_t * 3),
        ("grid", c_void_p * 3),
        ("threads", c_uint),
        ("shared_bytes", c_size_t),
        ("workspace_count", c_size_t),
        ("workspace", c_void_p),
        ("overlaps", c_bool),
        ("cooperative", c_bool),
        ("map_count", c_size_t),
        ("maps", c_void_p),
        ("cluster", c_uint * 3),
    ]


class tilus_limit(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("what", c_char_p),
        ("value", c_longlong),
        ("most", c_longlong),
    ]


class tilus_line_profile(ctypes.Structure):
    _fields_ = [
        ("line", c_uint),
        ("ops", c_uint64),
        ("global_read", c_uint64),
        ("global_written", c_uint64),
        ("shared_read", c_uint64),
        ("shared_written", c_uint64),
    ]


class tilus_matmul_call(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("m", c_int64),
        ("a", c_uint64),
        ("a_stride", c_int64),
        ("weights", c_uint64),
        ("bias", c_uint64),
        ("residual", c_uint64),
        ("c", c_uint64),
        ("workspace", c_uint64),
        ("workspace_size", c_size_t),
        ("weights_identity", c_uint64),
        ("offsets", c_uint64),
        ("ids", c_uint64),
        ("route", c_uint64),
        ("a_scales", c_uint64),
        ("norm", c_uint64),
    ]


class tilus_matmul_kernel(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("bytes", c_void_p),
        ("size", c_size_t),
    ]


class tilus_matmul_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kernels", c_void_p),
        ("kernel_count", c_size_t),
        ("directory", c_char_p),
        ("compile", c_void_p),
        ("compile_data", c_void_p),
        ("tunings", c_char_p),
    ]


class tilus_matmul_packed(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("identity", c_uint64),
        ("form", c_uint64),
        ("size", c_size_t),
        ("n", c_int64),
        ("k", c_int64),
        ("group", c_int64),
        ("n_tile", c_int64),
        ("version", c_int),
        ("zeros", c_int),
        ("weights", c_char * 16),
        ("product", c_char * 16),
        ("scales", c_char * 16),
        ("gated", c_bool),
    ]


class tilus_matmul_problem(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("weights", c_char_p),
        ("activations", c_char_p),
        ("scales", c_char_p),
        ("result", c_char_p),
        ("n", c_int64),
        ("k", c_int64),
        ("group", c_int64),
        ("zeros", c_int),
        ("function", c_int),
        ("bias", c_bool),
        ("residual", c_bool),
        ("n_tile", c_int64),
        ("a_stride", c_int64),
        ("experts", c_int64),
        ("top", c_int64),
        ("gather", c_bool),
        ("scatter", c_bool),
        ("combine", c_bool),
        ("multiply", c_bool),
        ("batch_invariant", c_bool),
        ("wide_range", c_bool),
        ("gated", c_bool),
        ("reserved", c_ubyte * 1),
        ("product", c_char_p),
        ("prologue", c_int),
        ("eps", c_double),
        ("early_routing", c_bool),
    ]


class tilus_matmul_sort(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("m", c_int64),
        ("chosen", c_uint64),
        ("chosen_stride", c_int64),
        ("offsets", c_uint64),
        ("ids", c_uint64),
        ("workspace", c_uint64),
        ("workspace_size", c_size_t),
    ]


class tilus_matmul_weights(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("codes", c_void_p),
        ("scales", c_void_p),
        ("zeros", c_void_p),
        ("transposed", c_bool),
        ("threads", c_uint64),
        ("factor", c_void_p),
    ]


class tilus_memory(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("size", c_size_t),
    ]


class tilus_packing(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("type", c_char_p),
        ("order", c_char_p),
        ("layout", c_char_p),
        ("k", c_int64),
        ("n", c_int64),
        ("transposed", c_bool),
    ]


class tilus_pass_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("target", c_char_p),
        ("skip", c_char_p),
        ("verify_each", c_bool),
        ("print_before_all", c_bool),
        ("print_after_all", c_bool),
        ("opt_bisect", c_bool),
        ("opt_bisect_limit", c_int),
        ("print_changed", c_int),
        ("stats", c_int),
        ("time_passes", c_int),
        ("print_before", c_char_p),
        ("print_after", c_char_p),
        ("write", c_void_p),
        ("write_data", c_void_p),
        ("remarks_passed", c_char_p),
        ("remarks_missed", c_char_p),
        ("remarks", c_void_p),
        ("remarks_data", c_void_p),
        ("remark", c_void_p),
        ("remark_data", c_void_p),
        ("remarks_format", c_int),
        ("observe", c_void_p),
        ("observer", c_void_p),
    ]


class tilus_quantization(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("values", c_char_p),
        ("weights", c_char_p),
        ("scales", c_char_p),
        ("n", c_int64),
        ("k", c_int64),
        ("group", c_int64),
        ("zeros", c_int),
        ("range", c_int),
        ("clip_least", c_double),
        ("clip_steps", c_uint),
        ("threads", c_uint),
        ("transposed", c_int64),
    ]


class tilus_quantized(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("codes", c_void_p),
        ("codes_size", c_size_t),
        ("scales", c_void_p),
        ("scales_size", c_size_t),
        ("zeros", c_void_p),
        ("zeros_size", c_size_t),
    ]


class tilus_rt_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("library", c_char_p),
        ("log", c_void_p),
        ("log_data", c_void_p),
        ("devices", c_void_p),
        ("device_count", c_size_t),
        ("engine", c_void_p),
    ]


class tilus_sequence_launch(ctypes.Structure):
    _fields_ = [
        ("args", c_void_p),
        ("count", c_size_t),
    ]


class tilus_tensor_map(ctypes.Structure):
    _fields_ = [
        ("argument", c_uint),
        ("type", c_int),
        ("rank", c_uint),
        ("extent_length", c_void_p),
        ("extents", c_void_p),
        ("stride_length", c_void_p),
        ("strides", c_void_p),
        ("box", c_uint * 5),
        ("swizzle", c_uint),
        ("promotion", c_uint),
    ]


class tilus_warning(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("what", c_char_p),
        ("on", c_bool),
    ]


class tilus_workspace_tensor(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("bits", c_uint),
        ("zeroed", c_bool),
        ("rank", c_uint),
        ("extent_length", c_void_p),
        ("extents", c_void_p),
    ]


class tilus_arg(ctypes.Union):
    _fields_ = [
        ("integer", c_int64),
        ("pointer", c_uint64),
        ("real", c_double),
    ]


# Name, compute capability, and whether no other device runs its code.
TARGETS = [
    ("sm_80", 80, False),
    ("sm_86", 86, False),
    ("sm_89", 89, False),
    ("sm_90", 90, False),
    ("sm_90a", 90, True),
    ("sm_100a", 100, True),
    ("sm_120a", 120, True),
]


# Result and arguments.
RT = {
    "tilus_kernel_cooperative": (c_bool, [c_void_p]),
    "tilus_kernel_overlaps": (c_bool, [c_void_p]),
    "tilus_type_is_float": (c_bool, [c_char_p]),
    "tilus_artefact_compiler": (c_char_p, [c_void_p]),
    "tilus_artefact_parameters": (c_char_p, [c_void_p]),
    "tilus_artefact_ptx": (c_char_p, [c_void_p]),
    "tilus_artefact_source": (c_char_p, [c_void_p]),
    "tilus_artefact_target": (c_char_p, [c_void_p]),
    "tilus_kernel_arg_name": (c_char_p, [c_void_p, c_size_t]),
    "tilus_kernel_arg_type": (c_char_p, [c_void_p, c_size_t]),
    "tilus_kernel_name": (c_char_p, [c_void_p]),
    "tilus_rt_device_name": (c_char_p, [c_void_p, c_int]),
    "tilus_rt_error": (c_char_p, []),
    "tilus_rt_version": (c_char_p, []),
    "tilus_status_name": (c_char_p, [c_int]),
    "tilus_type_name": (c_char_p, [c_size_t]),
    "tilus_kernel_artefact": (c_void_p, [c_void_p]),
    "tilus_find_device": (c_void_p, [c_char_p]),
    "tilus_known_device": (c_void_p, [c_size_t]),
    "tilus_artefact_kernel": (c_void_p, [c_void_p]),
    "tilus_artefact_cubin": (c_void_p, [c_void_p, c_void_p]),
    "tilus_decode": (c_double, [c_char_p, c_uint64]),
    "tilus_type_max": (c_double, [c_char_p]),
    "tilus_type_min": (c_double, [c_char_p]),
    "tilus_kernel_local_bytes": (c_int, [c_void_p, c_int]),
    "tilus_kernel_registers": (c_int, [c_void_p, c_int]),
    "tilus_rt_compute_capability": (c_int, [c_void_p, c_int]),
    "tilus_rt_device_count": (c_int, [c_void_p]),
    "tilus_rt_driver_version": (c_int, [c_void_p]),
    "tilus_rt_multiprocessors": (c_int, [c_void_p, c_int]),
    "tilus_kernel_arg_align": (c_int64, [c_void_p, c_size_t]),
    "tilus_kernel_arg_divisible": (c_int64, [c_void_p, c_size_t]),
    "tilus_kernel_arg_count": (c_size_t, [c_void_p]),
    "tilus_kernel_shared_bytes": (c_size_t, [c_void_p]),
    "tilus_packed_bytes": (c_size_t, [c_char_p, c_size_t]),
    "tilus_rt_device_memory": (c_size_t, [c_void_p, c_int]),
    "tilus_rt_shared_memory": (c_size_t, [c_void_p, c_int]),
    "tilus_kernel_arg_kind": (c_int, [c_void_p, c_size_t]),
    "tilus_artefact_read": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_size_t]),
    "tilus_artefact_write": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_attention_compile_in_child": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_void_p, c_void_p, c_void_p, c_size_t]),
    "tilus_child_compile": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "tilus_compile_in_child": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_void_p, c_void_p, c_void_p, c_size_t]),
    "tilus_decode_array": (c_int, [c_char_p, c_void_p, c_size_t, c_size_t, c_char_p, c_void_p, c_uint, c_void_p, c_size_t]),
    "tilus_encode_array": (c_int, [c_char_p, c_char_p, c_void_p, c_size_t, c_void_p, c_size_t, c_uint, c_void_p, c_size_t]),
    "tilus_kernel_check": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t]),
    "tilus_kernel_create": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_kernel_load": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "tilus_kernel_prepare": (c_int, [c_void_p, c_int]),
    "tilus_kernel_workspace_size": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t]),
    "tilus_launch": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_uint64, c_size_t]),
    "tilus_quantize": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t]),
    "tilus_quantized_sizes": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t]),
    "tilus_rt_allocate": (c_int, [c_void_p, c_int, c_size_t, c_void_p]),
    "tilus_rt_download": (c_int, [c_void_p, c_int, c_void_p, c_uint64, c_size_t]),
    "tilus_rt_enqueue_upload": (c_int, [c_void_p, c_int, c_void_p, c_uint64, c_void_p, c_size_t]),
    "tilus_rt_enter": (c_int, [c_void_p, c_int, c_void_p]),
    "tilus_rt_fail": (c_int, [c_int, c_char_p]),
    "tilus_rt_fill": (c_int, [c_void_p, c_int, c_uint64, c_ubyte, c_size_t]),
    "tilus_rt_leave": (c_int, [c_void_p, c_int, c_bool]),
    "tilus_rt_open": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t]),
    "tilus_rt_release": (c_int, [c_void_p, c_int, c_uint64]),
    "tilus_rt_synchronize": (c_int, [c_void_p, c_int]),
    "tilus_rt_upload": (c_int, [c_void_p, c_int, c_uint64, c_void_p, c_size_t]),
    "tilus_sequence_create": (c_int, [c_void_p, c_size_t, c_void_p]),
    "tilus_sequence_run": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_workspace_size": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "tilus_encode": (c_uint64, [c_char_p, c_double]),
    "tilus_get_bits": (c_uint64, [c_void_p, c_size_t, c_uint]),
    "tilus_artefact_ptx_version": (c_uint, [c_void_p]),
    "tilus_kernel_grid_rank": (c_uint, [c_void_p]),
    "tilus_kernel_threads": (c_uint, [c_void_p]),
    "tilus_type_bits": (c_uint, [c_char_p]),
    "tilus_free": (None, [c_void_p]),
    "tilus_kernel_arg_range": (None, [c_void_p, c_size_t, c_void_p, c_void_p]),
    "tilus_kernel_cluster": (None, [c_void_p, c_void_p]),
    "tilus_kernel_unload": (None, [c_void_p]),
    "tilus_rt_close": (None, [c_void_p]),
    "tilus_sequence_free": (None, [c_void_p]),
    "tilus_set_bits": (None, [c_void_p, c_size_t, c_uint, c_uint64]),
}


# Result and arguments.
MATMUL = {
    "tilus_matmul_describe": (c_void_p, [c_void_p, c_int64]),
    "tilus_matmul_kernels": (c_void_p, [c_void_p, c_int64]),
    "tilus_matmul_version": (c_char_p, []),
    "tilus_matmul_packed_size": (c_size_t, [c_void_p]),
    "tilus_matmul_workspace_size": (c_size_t, [c_void_p, c_int64]),
    "tilus_matmul_open": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_matmul_pack": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_matmul_pack_device": (c_int, [c_void_p, c_void_p, c_void_p, c_uint64]),
    "tilus_matmul_packed_check": (c_int, [c_void_p, c_void_p, c_size_t]),
    "tilus_matmul_packed_describe": (c_int, [c_void_p, c_size_t, c_void_p]),
    "tilus_matmul_plan_create": (c_int, [c_void_p, c_void_p, c_int, c_void_p]),
    "tilus_matmul_prepare": (c_int, [c_void_p, c_int64]),
    "tilus_matmul_run": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_matmul_shard": (c_int, [c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_void_p]),
    "tilus_matmul_sort_rows": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_matmul_unpack_device": (c_int, [c_void_p, c_void_p, c_uint64, c_int64, c_int64, c_char_p, c_uint64]),
    "tilus_matmul_packed_identity": (c_uint64, [c_void_p]),
    "tilus_matmul_close": (None, [c_void_p]),
    "tilus_matmul_plan_free": (None, [c_void_p]),
    "tilus_matmul_tile": (None, [c_void_p, c_void_p, c_void_p]),
}


# Result and arguments.
ATTENTION = {
    "tilus_attention_describe": (c_void_p, [c_void_p, c_void_p]),
    "tilus_attention_kernels": (c_void_p, [c_void_p, c_void_p]),
    "tilus_attention_version": (c_char_p, []),
    "tilus_attention_append": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_attention_backward": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_attention_backward_workspace_size": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_attention_open": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_attention_plan_create": (c_int, [c_void_p, c_void_p, c_int, c_void_p]),
    "tilus_attention_prepare": (c_int, [c_void_p, c_void_p]),
    "tilus_attention_run": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_attention_workspace_size": (c_int, [c_void_p, c_void_p, c_void_p]),
    "tilus_attention_close": (None, [c_void_p]),
    "tilus_attention_plan_free": (None, [c_void_p]),
}


# Result and arguments.
COMPILER = {
    "tilus_add_import_path": (c_bool, [c_void_p, c_char_p]),
    "tilus_cache_get_stats": (c_bool, [c_void_p, c_void_p]),
    "tilus_check_passes": (c_bool, [c_char_p, c_void_p, c_size_t]),
    "tilus_limit_at": (c_bool, [c_size_t, c_void_p]),
    "tilus_pack_weights": (c_bool, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t]),
    "tilus_report_spills": (c_bool, [c_void_p, c_char_p]),
    "tilus_run_passes": (c_bool, [c_void_p, c_char_p, c_void_p]),
    "tilus_set_limit": (c_bool, [c_void_p, c_char_p, c_longlong]),
    "tilus_set_warning": (c_bool, [c_void_p, c_char_p]),
    "tilus_unpack_weights": (c_bool, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t]),
    "tilus_verify": (c_bool, [c_void_p]),
    "tilus_warning_at": (c_bool, [c_size_t, c_void_p]),
    "tilus_all_cast_plans": (c_void_p, [c_void_p, c_char_p, c_bool]),
    "tilus_cast_plans": (c_void_p, [c_void_p, c_char_p, c_bool]),
    "tilus_compile": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "tilus_diag_format": (c_void_p, [c_void_p]),
    "tilus_print": (c_void_p, [c_void_p]),
    "tilus_text_layout_draw": (c_void_p, [c_void_p, c_char_p, c_char_p, c_size_t, c_void_p, c_size_t, c_char_p, c_int]),
    "tilus_default_pipeline": (c_char_p, []),
    "tilus_diag_file": (c_char_p, [c_void_p, c_size_t]),
    "tilus_diag_group": (c_char_p, [c_void_p, c_size_t]),
    "tilus_diag_text": (c_char_p, [c_void_p, c_size_t]),
    "tilus_git_revision": (c_char_p, []),
    "tilus_llvm_version": (c_char_p, []),
    "tilus_program_name": (c_char_p, [c_void_p, c_size_t]),
    "tilus_target_for": (c_char_p, [c_int]),
    "tilus_target_name": (c_char_p, [c_size_t]),
    "tilus_template_text": (c_char_p, [c_char_p, c_void_p]),
    "tilus_version": (c_char_p, []),
    "tilus_cpu_engine": (c_void_p, []),
    "tilus_module_kernel_info": (c_void_p, [c_void_p, c_char_p]),
    "tilus_diag_count": (c_size_t, [c_void_p]),
    "tilus_diag_errors": (c_size_t, [c_void_p]),
    "tilus_diag_warnings": (c_size_t, [c_void_p]),
    "tilus_packed_size": (c_size_t, [c_void_p, c_void_p]),
    "tilus_program_count": (c_size_t, [c_void_p]),
    "tilus_cache_open": (c_void_p, [c_void_p]),
    "tilus_diag_new": (c_void_p, []),
    "tilus_parse": (c_void_p, [c_void_p, c_char_p, c_char_p, c_size_t, c_uint, c_void_p, c_size_t]),
    "tilus_diag_severity": (c_int, [c_void_p, c_size_t]),
    "tilus_attention_compile": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_void_p, c_void_p, c_void_p, c_size_t]),
    "tilus_bigint_compile": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_void_p, c_void_p, c_void_p, c_size_t]),
    "tilus_compile_artefact": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "tilus_interpret": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p]),
    "tilus_jit": (c_int, [c_void_p, c_char_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "tilus_matmul_compile": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_void_p, c_void_p, c_void_p, c_size_t]),
    "tilus_run_on_cpu": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]),
    "tilus_diag_column": (c_uint, [c_void_p, c_size_t]),
    "tilus_diag_line": (c_uint, [c_void_p, c_size_t]),
    "tilus_cache_close": (None, [c_void_p]),
    "tilus_diag_free": (None, [c_void_p]),
    "tilus_diag_write": (None, [c_void_p, c_void_p, c_void_p]),
    "tilus_module_free": (None, [c_void_p]),
    "tilus_print_llvm_passes": (None, [c_bool, c_bool]),
}
