/* Describes a compiled program to its launcher: its arguments and their
 * facts, its grid, its block, its shared memory. Plain data, shared by the
 * compiler (which makes it) and the runtime (which checks launches with it).
 *
 * Pointers are not NULL unless a comment says that they may be, or are of 0 elements or bytes. */
#ifndef TILUS_KERNEL_H
#define TILUS_KERNEL_H

#include "tilus/export.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tilus_status {
    TILUS_OK = 0,
    TILUS_ERROR_ARGUMENT,       /* a launch argument breaks a fact, or the call is malformed */
    TILUS_ERROR_PROGRAM,        /* the program text is wrong; diagnostics say where */
    TILUS_ERROR_MEMORY,         /* host memory ran out */
    TILUS_ERROR_NO_DRIVER,      /* libcuda is absent, a stub, or too old */
    TILUS_ERROR_NO_DEVICE,      /* no CUDA device */
    TILUS_ERROR_DRIVER,         /* a driver call failed; the message has its name */
    TILUS_ERROR_UNSUPPORTED,    /* the target cannot do what the program needs */
    TILUS_ERROR_ARTEFACT,       /* an artefact is damaged, too new or too large */
    TILUS_ERROR_DEVICE_MEMORY,  /* device memory ran out */
    TILUS_ERROR_LOST,           /* a device's context is lost; only a new process has another */
    TILUS_ERROR_STATE,          /* not at this moment: what must come before is missing */
    TILUS_ERROR_INTERNAL,       /* a fault of this library, never of its input */
    TILUS_ERROR_NO_KERNEL,      /* a library of kernels has none for this, and no compiler */
    TILUS_ERROR_CHILD           /* a child process did not start, crashed or took too long */
} tilus_status;

/* "TILUS_ERROR_..." for a status; static storage. Thread safe. */
TILUS_API const char *tilus_status_name(tilus_status status);

/* Frees what functions of these libraries return for the caller to free; NULL is allowed.
 * Thread safe. */
TILUS_API void tilus_free(void *memory);

/* Takes text that streams: `length` bytes at `text`, which no NUL ends, in order and in pieces
 * of any length; they are there during the call only. */
typedef void tilus_write(void *data, const char *text, size_t length);

typedef enum tilus_arg_kind {
    TILUS_ARG_POINTER,  /* 64-bit address of device memory */
    TILUS_ARG_I32,
    TILUS_ARG_U32,
    TILUS_ARG_I64,
    TILUS_ARG_F16,
    TILUS_ARG_BF16,
    TILUS_ARG_F32
} tilus_arg_kind;

/* An argument and its facts. */
typedef struct tilus_arg_info {
    const char *name;       /* without % */
    tilus_arg_kind kind;
    const char *dtype;      /* element type of a pointer, else the scalar's type */
    int64_t divisible;      /* integers: the value is a multiple of this; >= 1 */
    int64_t min, max;       /* integers: inclusive */
    int64_t align;          /* pointers: bytes, a power of two */
} tilus_arg_info;

/* Grid extents as postfix code over the arguments, for a small stack machine:
 * push a constant, push argument `value`, or apply scalar operator `value`
 * (docs/artefact.md, "The signature", numbers them). */
typedef enum tilus_code_kind {
    TILUS_CODE_CONSTANT,
    TILUS_CODE_ARGUMENT,
    TILUS_CODE_OPERATOR
} tilus_code_kind;

typedef struct tilus_code {
    tilus_code_kind kind;
    int64_t value;
} tilus_code;

/* A tensor in the memory that the caller lends to each launch, its workspace,
 * for all blocks of the launch. */
typedef struct tilus_workspace_tensor {
    const char *name;               /* without %; NULL when it has none */
    unsigned bits;                  /* of an element */
    bool zeroed;                    /* it is all zero when a launch starts */
    unsigned rank;
    const size_t *extent_length;    /* codes of each extent */
    const tilus_code *const *extents;
} tilus_workspace_tensor;

/* The alignment of the workspace and of each of its tensors, bytes. */
enum { TILUS_WORKSPACE_ALIGN = 256 };

/* Types of a tensor map's elements, by CUtensorMapDataType's numbers. Each 8-bit type is a
 * U8, other 16-bit ones a U16: a copy leaves bits as they are. */
typedef enum tilus_map_type {
    TILUS_MAP_U8, TILUS_MAP_U16, TILUS_MAP_U32, TILUS_MAP_I32, TILUS_MAP_U64, TILUS_MAP_I64,
    TILUS_MAP_F16, TILUS_MAP_F32, TILUS_MAP_F64, TILUS_MAP_BF16
} tilus_map_type;

/* Limits of a tensor map; a coordinate is an i32. */
enum {
    TILUS_MAP_RANK = 5,
    TILUS_MAP_BOX_MAX = 256,
    TILUS_MAP_BYTES = 128,          /* of an encoded one, the kernel's parameter */
    TILUS_MAP_ALIGN = 16,           /* bytes, of the tensor's address and strides */
    TILUS_MAP_EXTENT_MAX = INT32_MAX - TILUS_MAP_BOX_MAX + 1
};

/* A tensor that the kernel copies boxes of, by a parameter which the launcher encodes
 * (cuTensorMapEncodeTiled) after the arguments. Dimensions are in row-major order, the
 * innermost last, whose stride is one element. */
typedef struct tilus_tensor_map {
    unsigned argument;              /* the number of the pointer */
    tilus_map_type type;
    unsigned rank;                  /* 1 .. TILUS_MAP_RANK */
    const size_t *extent_length;    /* codes of each extent */
    const tilus_code *const *extents;
    const size_t *stride_length;    /* codes of each stride, in bytes: rank - 1 of them */
    const tilus_code *const *strides;
    unsigned box[TILUS_MAP_RANK];   /* elements of a copy */
    unsigned swizzle;               /* bytes in shared memory: 0, 32, 64 or 128 */
    unsigned promotion;             /* bytes that L2 fetches at once: 0, 64, 128 or 256 */
} tilus_tensor_map;

typedef struct tilus_kernel_info {
    const char *name;               /* the PTX entry */
    size_t arg_count;
    const tilus_arg_info *args;
    unsigned grid_rank;             /* 1..3 */
    size_t grid_length[3];          /* codes of each extent */
    const tilus_code *grid[3];
    unsigned threads;               /* a block, all in dimension x */
    size_t shared_bytes;            /* dynamic shared memory a block */
    size_t workspace_count;         /* when not 0, the last PTX parameter is the workspace */
    const tilus_workspace_tensor *workspace;    /* in order, zeroed ones first */
    bool overlaps;                  /* it has wait_dependencies: compiled for sm_90 or newer, a
                                       launch may begin before earlier ones have ended */
    bool cooperative;               /* all blocks of a launch run at the same time, so no more than
                                       the device has room for */
    size_t map_count;               /* PTX parameters between the arguments and the workspace */
    const tilus_tensor_map *maps;
    unsigned cluster[3];            /* blocks of a cluster in each dimension, of which the grid is
                                       a multiple; all 0: it has none */
} tilus_kernel_info;

/* The parts of a description one by one, for callers that read no nested structs. Of argument
 * `i` (< tilus_kernel_arg_count): its name without %, its kind, its type ("f16", of a pointer
 * that of the elements), and its facts: values are multiples of tilus_kernel_arg_divisible
 * within *min .. *max, or addresses aligned to tilus_kernel_arg_align bytes, 1 of no pointer.
 * Strings are owned by the description. Thread safe. */
TILUS_API const char *tilus_kernel_name(const tilus_kernel_info *info);
TILUS_API size_t tilus_kernel_arg_count(const tilus_kernel_info *info);
TILUS_API const char *tilus_kernel_arg_name(const tilus_kernel_info *info, size_t i);
TILUS_API tilus_arg_kind tilus_kernel_arg_kind(const tilus_kernel_info *info, size_t i);
TILUS_API const char *tilus_kernel_arg_type(const tilus_kernel_info *info, size_t i);
TILUS_API int64_t tilus_kernel_arg_divisible(const tilus_kernel_info *info, size_t i);
TILUS_API void tilus_kernel_arg_range(const tilus_kernel_info *info, size_t i, int64_t *min,
                                      int64_t *max);
TILUS_API int64_t tilus_kernel_arg_align(const tilus_kernel_info *info, size_t i);

/* Threads of a block, bytes of dynamic shared memory of a block, dimensions of the grid (1 to
 * 3; its extents follow from arguments: tilus_kernel_check), blocks of a cluster in each
 * dimension (1 where there is none), whether a launch may begin before earlier ones have
 * ended, and whether all its blocks run at the same time. Thread safe. */
TILUS_API unsigned tilus_kernel_threads(const tilus_kernel_info *info);
TILUS_API size_t tilus_kernel_shared_bytes(const tilus_kernel_info *info);
TILUS_API unsigned tilus_kernel_grid_rank(const tilus_kernel_info *info);
TILUS_API void tilus_kernel_cluster(const tilus_kernel_info *info, unsigned cluster[3]);
TILUS_API bool tilus_kernel_overlaps(const tilus_kernel_info *info);
TILUS_API bool tilus_kernel_cooperative(const tilus_kernel_info *info);

/* A launch argument, 8 bytes; the kind of its arg_info says which member is read. */
typedef union tilus_arg {
    uint64_t pointer;
    int64_t integer;            /* I32, U32, I64 */
    double real;                /* F16, BF16, F32: rounded to the type, to nearest even */
} tilus_arg;

/* Checks `args` against every fact and computes the grid (unused dimensions
 * 1). On failure returns TILUS_ERROR_ARGUMENT with the broken fact named in
 * message[0..size), NUL-terminated. A grid with an extent of 0 is legal and
 * means that nothing runs. Thread safe. */
TILUS_API tilus_status tilus_kernel_check(const tilus_kernel_info *info,
                                          const tilus_arg *args, size_t count,
                                          int64_t grid[3], char *message, size_t size);

/* Bytes of workspace that a launch with these `args`, which tilus_kernel_check
 * has accepted, needs (0: none), and how many of them, from the first, must be
 * zero when it starts. On failure (a negative extent, 2^63 bits or more) both are
 * 0 and TILUS_ERROR_ARGUMENT comes with the values in message[0..message_size).
 * Thread safe. */
TILUS_API tilus_status tilus_kernel_workspace_size(const tilus_kernel_info *info,
                                                   const tilus_arg *args, size_t *size,
                                                   size_t *zeroed, char *message,
                                                   size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
