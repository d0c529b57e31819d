/* Exact products of non-negative integers of 1 byte to 64 MB, one or a batch of them, on tensor
 * cores or by number-theoretic transforms. Templates of the kernels are kernels/bigint.tilus and
 * kernels/bigint_ntt.tilus; this library chooses among them by size, finds the compiled ones and
 * launches them. It links the runtime and no LLVM.
 *
 *     tilus_bigint_open ─▶ tilus_bigint_plan_create ─▶ tilus_bigint_prepare ─▶ tilus_bigint_mul, ..
 *
 * Numbers are bytes in device memory, the lowest first, so words of any size as the machine
 * keeps them; those of a batch follow each other without gaps. Kernels are artefacts
 * (tilus/artefact.h), found by their names (tilus_bigint_kernels): in memory, in a directory, or
 * made by a callback, as tilus_bigint_compile of the compiler library is one (tilus/tilus.h).
 * docs/bigint.md is for users.
 *
 * Functions that fail return a status, and tilus_rt_error() (tilus/runtime.h) says why;
 * TILUS_ERROR_MEMORY is host memory that ran out. Functions of one plan may be called by several
 * threads at once.
 *
 * Pointers are not NULL unless a comment says that they may be. Where a handle, a struct or the
 * place of a result is NULL nevertheless, nothing happens: functions with a status name it
 * (TILUS_ERROR_ARGUMENT), others return 0 or NULL. */
#ifndef TILUS_BIGINT_H
#define TILUS_BIGINT_H

#include "tilus/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the version of this library, "0.2.0"; static storage. Thread safe. */
TILUS_API const char *tilus_bigint_version(void);

typedef struct tilus_bigint tilus_bigint;               /* where kernels come from */
typedef struct tilus_bigint_plan tilus_bigint_plan;     /* products of one size on one device */

enum {
    TILUS_BIGINT_BYTES_MAX = 64 << 20,      /* of a factor */
    TILUS_BIGINT_BATCH_MAX = 1 << 20
};

typedef enum tilus_bigint_method {
    TILUS_BIGINT_AUTO,
    TILUS_BIGINT_SCHOOLBOOK,    /* by tensor cores; the shorter factor has at most 65536 bytes */
    TILUS_BIGINT_TRANSFORM      /* number-theoretic transforms modulo 2^64 - 2^32 + 1 */
} tilus_bigint_method;

/* c = a * b for each pair of a batch. All zero but struct_size and the sizes is the default. */
typedef struct tilus_bigint_problem {
    size_t struct_size;         /* sizeof(tilus_bigint_problem) */
    int64_t a_bytes, b_bytes;   /* 1 to TILUS_BIGINT_BYTES_MAX; c has as many as both. Multiples
                                   of 16 are faster */
    int64_t batch;              /* pairs, 1 to TILUS_BIGINT_BATCH_MAX; 0: 1 */
    bool square;                /* b is a, and b_bytes is a_bytes or 0 */
    tilus_bigint_method method;
} tilus_bigint_problem;

/* ---- where kernels come from --------------------------------------------------- */

/* An artefact in memory, under its name. */
typedef struct tilus_bigint_kernel {
    const char *name;
    const void *bytes;
    size_t size;
} tilus_bigint_kernel;

/* Makes the artefact of the program `program` of the templates for `target` ("sm_90a"), with
 * `parameters`: "M=16 B=64 ..", values of -D. *bytes are freed with free(), as tilus_free does.
 * On failure message[0..message_size) says why. Called by any thread that prepares a plan,
 * several at once. */
typedef tilus_status tilus_bigint_compiler(void *data, const char *program, const char *parameters,
                                           const char *target, void **bytes, size_t *size,
                                           char *message, size_t message_size);

typedef struct tilus_bigint_options {
    size_t struct_size;                 /* sizeof(tilus_bigint_options) */
    const tilus_bigint_kernel *kernels; /* that are looked at first; they outlive the library */
    size_t kernel_count;
    const char *directory;              /* of NAME.tilusk files; looked at next */
    tilus_bigint_compiler *compile;     /* asked last; NULL: a miss is TILUS_ERROR_NO_KERNEL */
    void *compile_data;
} tilus_bigint_options;

/* Opens the library. `options` may be NULL; its texts are copied, except `kernels`. On failure
 * *out is NULL: TILUS_ERROR_ARGUMENT, TILUS_ERROR_MEMORY. The caller closes the result after its
 * plans, and before `rt`. */
TILUS_API tilus_status tilus_bigint_open(tilus_rt *rt, const tilus_bigint_options *options,
                                         tilus_bigint **out);

/* Unloads the kernels, and frees what the library has on devices; NULL is ignored. Nothing that
 * its plans launched runs. */
TILUS_API void tilus_bigint_close(tilus_bigint *bigint);

/* Lists the artefacts that the plan needs, or for NULL all there are, a line each: NAME, a tab,
 * program, a tab, parameters. A name ends with the target, "_sm_90a" for devices of compute
 * capability 9.0, "_sm_80" for others. The caller frees the text with tilus_free(); NULL: out of
 * memory. Thread safe. */
TILUS_API char *tilus_bigint_kernels(const tilus_bigint_plan *plan);

/* ---- plans -------------------------------------------------------------------- */

/* Chooses how the problem is computed on the device, by its sizes alone. Loads no kernel yet. On
 * failure *out is NULL: TILUS_ERROR_ARGUMENT names the field of the problem that is wrong, with
 * its value; TILUS_ERROR_NO_DEVICE; TILUS_ERROR_UNSUPPORTED: the device is older than sm_80. The
 * caller frees the plan when nothing that it launched runs any more. */
TILUS_API tilus_status tilus_bigint_plan_create(tilus_bigint *bigint,
                                                const tilus_bigint_problem *problem, int device,
                                                tilus_bigint_plan **out);

/* Frees a plan; NULL is ignored. */
TILUS_API void tilus_bigint_plan_free(tilus_bigint_plan *plan);

/* Describes the choice as text; the caller frees it with tilus_free(). NULL: out of memory. */
TILUS_API char *tilus_bigint_describe(const tilus_bigint_plan *plan);

/* Returns the bytes of device memory that products of the plan need beside the numbers. */
TILUS_API size_t tilus_bigint_workspace_size(const tilus_bigint_plan *plan);

/* Loads and prepares the kernels, so that tilus_bigint_mul only launches; the first plan of a
 * device that transforms also uploads roots of unity, 128 KiB, which the library keeps. May wait
 * for the device. To be called before tilus_bigint_mul. TILUS_ERROR_NO_KERNEL names the artefact
 * that is nowhere, and its parameters; TILUS_ERROR_ARTEFACT: one is of another version;
 * TILUS_ERROR_DEVICE_MEMORY. */
TILUS_API tilus_status tilus_bigint_prepare(tilus_bigint_plan *plan);

/* ---- products ------------------------------------------------------------------ */

/* Addresses of the device; that of the workspace is a multiple of 256, the others of 16. c
 * overlaps nothing else. */
typedef struct tilus_bigint_call {
    size_t struct_size;         /* sizeof(tilus_bigint_call) */
    uint64_t a;                 /* [batch, a_bytes] */
    uint64_t b;                 /* [batch, b_bytes]; of squares 0 or a */
    uint64_t c;                 /* [batch, a_bytes + b_bytes], all written */
    uint64_t workspace;         /* its contents do not matter */
    size_t workspace_size;      /* at least tilus_bigint_workspace_size */
} tilus_bigint_call;

/* Enqueues the products: no waiting, no allocation, no lock. It may be captured into a graph.
 * Products that may overlap need a workspace each. `stream` is of the plan's device; NULL and
 * the driver's special streams (1 legacy, 2 per thread) are those of its primary context.
 * TILUS_ERROR_ARGUMENT names the field that is wrong; TILUS_ERROR_STATE: the plan was not
 * prepared. */
TILUS_API tilus_status tilus_bigint_mul(tilus_bigint_plan *plan, tilus_stream stream,
                                        const tilus_bigint_call *call);

#ifdef __cplusplus
}
#endif

#endif
