/* Attention: o = softmax(scale * q * k^T + mask) * v for each head, forward for many queries a
 * sequence, and for decoding, one query a sequence over a paged cache, also DeepSeek's latent one.
 * Templates of the kernels are kernels/attention_sm90.tilus, kernels/attention_backward.tilus,
 * kernels/attention_decode.tilus and kernels/mla.tilus; this library chooses among them and their
 * parameters by shape and device, finds the compiled ones and launches them. It links the runtime
 * and no LLVM.
 *
 *     tilus_attention_open ─▶ tilus_attention_plan_create ─▶ tilus_attention_prepare
 *                                                         ─▶ tilus_attention_run, run, ..
 *
 * Kernels are artefacts (tilus/artefact.h), found by their names (tilus_attention_kernels): in
 * memory, in a directory, or made by a callback, as tilus_attention_compile of the compiler library
 * is one (tilus/tilus.h). docs/attention.md is for users.
 *
 * Functions that fail return a status, and tilus_rt_error() (tilus/runtime.h) says why;
 * TILUS_ERROR_MEMORY is host memory that ran out. Functions of one plan may be called by several
 * threads at once.
 *
 * Pointers are not NULL unless a comment says that they may be. Where a handle, a struct or the
 * place of a result is NULL nevertheless, nothing happens: functions with a status name it
 * (TILUS_ERROR_ARGUMENT), others return NULL. */
#ifndef TILUS_ATTENTION_H
#define TILUS_ATTENTION_H

#include "tilus/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the version of this library, "0.2.0"; static storage. Thread safe. */
TILUS_API const char *tilus_attention_version(void);

typedef struct tilus_attention tilus_attention;             /* where kernels come from */
typedef struct tilus_attention_plan tilus_attention_plan;   /* one problem on one device */

/* ---- problems --------------------------------------------------------------- */

typedef enum tilus_attention_kind {
    TILUS_ATTENTION_FORWARD,    /* many queries a sequence; sm_90a */
    TILUS_ATTENTION_DECODE,     /* one query a sequence, over a paged cache; sm_80 and later */
    TILUS_ATTENTION_LATENT      /* likewise, over one latent head (DeepSeek's MLA); sm_90a */
} tilus_attention_kind;

typedef enum tilus_attention_mask {
    TILUS_ATTENTION_UNMASKED,
    TILUS_ATTENTION_ADDED,      /* a matrix of o's type is added to scale * q * k^T */
    TILUS_ATTENTION_BOOLEAN     /* a matrix of bytes: elements pass where it is not 0 */
} tilus_attention_mask;

/* A problem. All zero but struct_size and heads is forward attention of f16 and 128 columns. */
typedef struct tilus_attention_problem {
    size_t struct_size;         /* sizeof(tilus_attention_problem) */
    tilus_attention_kind kind;
    tilus_attention_mask mask;  /* forward and not ragged; else 0 */
    const char *type;           /* of q, k, v and o: "f16" (default) or "bf16". Forward also
                                   "f8e4m3", of q, k and v with scales */
    int64_t heads;              /* of q, 1 to 65535 */
    int64_t kv_heads;           /* of k and v, a divisor of heads: head h of q goes with head
                                   h * kv_heads / heads; 0: heads. Latent: 0 */
    int64_t dim;                /* columns of q and k. Forward: 64, 96, 128, 192, 256; decode: 64,
                                   128, 256; 0: 128. Latent: 576 or 0, of which 512 are also v */
    int64_t value_dim;          /* columns of v and o; 0: dim, and latent 512. Another one than dim
                                   is 128 beside 192 only */
    double scale;               /* 1e-30 to 1e30; 0: 1 / sqrt(dim) */
    double cap;                 /* forward, 1e-30 to 1e30: scores are cap * tanh(score / cap); 0: as
                                   they are */
    int64_t left, right;        /* with `window`: row i sees columns from i + d - left to
                                   i + d + right, where d = rows of k - rows of q; 0 to 2^24 */
    const char *cache;          /* decode: type of the cache: `type` (default), u2, u3, u4, u6, u8,
                                   f4e2m1, f6e3m2, f8e4m3 */
    int64_t page;               /* decode: tokens of a page, a power of two, 1 to 1024; 0: 64.
                                   Latent: 64 or 0 */
    int64_t groups;             /* decode, caches of codes: parts of a head with scales of their
                                   own, 1, 2, 4 or 8; 0: 1 */
    bool causal;                /* forward: row i sees columns up to i + d, as for `window` */
    bool window;                /* forward */
    bool sinks;                 /* forward: a score more for each head; of -inf, none */
    bool lse;                   /* forward: logarithms of the sums are stored */
    bool ragged;                /* forward: sequences of any lengths one after another, which are
                                   tokens first */
    bool tokens_first;          /* forward: tensors are [batch, tokens, heads, columns], not
                                   [batch, heads, tokens, columns]; decode: caches are
                                   [pages, page, kv_heads, dim], not [pages, kv_heads, page, dim] */
    bool plain;                 /* decode, caches of 8-bit codes: in plain order, not packed(f16) */
    bool finite;                /* decode: rows of a page after its sequence's end hold finite
                                   numbers, as in a cache that began as zeros; codes with heads
                                   first are faster then on sm_90a. Latent: true */
    bool gradients;             /* forward with `lse`, without mask and sinks, not of "f8e4m3":
                                   plans also have kernels of tilus_attention_backward */
    unsigned char reserved[7];  /* 0 */
    const char *out_type;       /* of o and of an added mask; NULL: `type`. Of "f8e4m3" it is "bf16"
                                   (default) or "f16" */
} tilus_attention_problem;

/* ---- where kernels come from --------------------------------------------------- */

/* An artefact in memory, under its name. */
typedef struct tilus_attention_kernel {
    const char *name;
    const void *bytes;
    size_t size;
} tilus_attention_kernel;

/* Makes the artefact of the program `program` of the templates for `target` ("sm_90a"), with
 * `parameters`: "T=f16 D=128 ..", values of -D. *bytes are freed with free(), as tilus_free does.
 * On failure message[0..message_size) says why. Called by any thread that prepares or runs a
 * plan, several at once. */
typedef tilus_status tilus_attention_compiler(void *data, const char *program,
                                              const char *parameters, const char *target,
                                              void **bytes, size_t *size, char *message,
                                              size_t message_size);

typedef struct tilus_attention_options {
    size_t struct_size;                     /* sizeof(tilus_attention_options) */
    const tilus_attention_kernel *kernels;  /* that are looked at first; they outlive the library */
    size_t kernel_count;
    const char *directory;                  /* of NAME.tilusk files; looked at next */
    tilus_attention_compiler *compile;      /* asked last; NULL: a miss is TILUS_ERROR_NO_KERNEL */
    void *compile_data;
} tilus_attention_options;

/* Opens the library. `options` may be NULL; its texts are copied, except `kernels`. On failure
 * *out is NULL: TILUS_ERROR_ARGUMENT, TILUS_ERROR_MEMORY. The caller closes the result after its
 * plans, and before `rt`. */
TILUS_API tilus_status tilus_attention_open(tilus_rt *rt, const tilus_attention_options *options,
                                            tilus_attention **out);

/* Unloads the kernels; NULL is ignored. Nothing that its plans launched runs. */
TILUS_API void tilus_attention_close(tilus_attention *attention);

/* ---- plans -------------------------------------------------------------------- */

/* Checks the problem, and finds the kernels that may serve it on the device; loads none yet, and
 * takes microseconds. On failure *out is NULL: TILUS_ERROR_ARGUMENT names the field of the
 * problem that is wrong, with its value; TILUS_ERROR_NO_DEVICE; TILUS_ERROR_UNSUPPORTED: the
 * device, or it has too little shared memory. The caller frees the plan when nothing that it launched runs any more. */
TILUS_API tilus_status tilus_attention_plan_create(tilus_attention *attention,
                                                   const tilus_attention_problem *problem,
                                                   int device, tilus_attention_plan **out);

/* Frees a plan; NULL is ignored. */
TILUS_API void tilus_attention_plan_free(tilus_attention_plan *plan);

/* Schedules, by which the blocks of a forward launch share rows of q, 128 for each head and
 * item. */
typedef enum tilus_attention_schedule {
    TILUS_ATTENTION_AUTO,       /* the fastest by the model */
    TILUS_ATTENTION_QUEUES,     /* a block a multiprocessor, with items one after the other; causal
                                   ones are pairs of a long and a short one */
    TILUS_ATTENTION_BLOCKS,     /* a block for each item */
    TILUS_ATTENTION_FOLDED      /* causal, neither with a window nor ragged: likewise, of 64 rows
                                   from the top and 64 from the bottom */
} tilus_attention_schedule;

/* Sizes of a call. Lengths of sequences are on the device where they differ; `longest` and `tokens`
 * are what it is planned for then. Fields that are not named for a kind are 0. */
typedef struct tilus_attention_shape {
    size_t struct_size;         /* sizeof(tilus_attention_shape) */
    int64_t batch;              /* sequences, 1 to 65535 */
    int64_t queries;            /* forward: rows of q of each sequence, ragged: of all; 1 to 2^24 */
    int64_t tokens;             /* forward: rows of k and v of each sequence, ragged: of all; 1 to
                                   2^24. Others: of the longest sequence, about; 1 to 2^30 */
    int64_t longest;            /* ragged: at least the rows of q of each sequence, 1 to 2^24; more
                                   than `queries` counts as these */
    int64_t masks;              /* with a mask: of [queries, tokens] each, 1 to 65535; head h of
                                   sequence b has number (b * heads + h) mod masks */
    int64_t pages;              /* not forward: of the cache; of less than 2^31 rows in all */
    int64_t columns;            /* not forward: of the table */
    int64_t splits;             /* not forward: blocks that share a sequence and head, 1 to 1024;
                                   0: the fastest by the model */
    int64_t longest_tokens;     /* ragged, with gradients: at least the rows of k of each sequence, up
                                   to 2^24; more than `tokens` counts as these; 0: `tokens` */
    tilus_attention_schedule schedule;      /* forward */
    unsigned char reserved[4];  /* 0 */
} tilus_attention_shape;

/* Describes the choice for a shape as text; the caller frees it with tilus_free(). NULL: out of
 * memory, or the shape is wrong, and tilus_rt_error() says so. */
TILUS_API char *tilus_attention_describe(const tilus_attention_plan *plan,
                                         const tilus_attention_shape *shape);

/* Lists the artefacts that calls of the shape need, or for NULL all that the plan may, a line each:
 * NAME, a tab, program, a tab, parameters. The caller frees the text with tilus_free(); NULL: as
 * for tilus_attention_describe. */
TILUS_API char *tilus_attention_kernels(const tilus_attention_plan *plan,
                                        const tilus_attention_shape *shape);

/* Puts the bytes of device memory that calls of the shape need beside their tensors into *out. Tiles
 * of f8e4m3 are chosen by the shape, so more tokens may need less: of many shapes take the largest.
 * TILUS_ERROR_ARGUMENT: the shape. */
TILUS_API tilus_status tilus_attention_workspace_size(const tilus_attention_plan *plan,
                                                      const tilus_attention_shape *shape,
                                                      size_t *out);

/* Loads and prepares what calls of the shape need, or for NULL all that the plan may, also
 * tilus_attention_append, so that they only launch. Call it before a stream is captured.
 * TILUS_ERROR_NO_KERNEL names the artefact that is nowhere, and its parameters;
 * TILUS_ERROR_ARTEFACT: one is of another version. */
TILUS_API tilus_status tilus_attention_prepare(tilus_attention_plan *plan,
                                               const tilus_attention_shape *shape);

/* ---- calls -------------------------------------------------------------------- */

/* Addresses of the device: of the workspace a multiple of 256, of tensors of 16, of i32 and f32 of
 * 4. Fields that the problem does not ask for are 0. */
typedef struct tilus_attention_call {
    size_t struct_size;                     /* sizeof(tilus_attention_call) */
    const tilus_attention_shape *shape;
    uint64_t q;                 /* forward: [batch, heads, queries, dim] or tokens first; ragged:
                                   [queries, heads, dim]; others: [batch, heads, dim] */
    uint64_t k, v;              /* forward: as q, of kv_heads and tokens; decode: the cache. Latent:
                                   k is the cache, [pages, 64, 576], and v is 0 */
    uint64_t o;                 /* as q, of value_dim columns; latent: 512 */
    uint64_t lse;               /* with `lse`: f32 [batch, heads, queries]; ragged: [heads, ..] */
    uint64_t sinks;             /* with `sinks`: f32 [heads] */
    uint64_t mask;              /* with a mask: [masks, queries, tokens] */
    uint64_t q_starts, k_starts;    /* ragged: i32 [batch + 1], from 0 on ascending to queries and
                                       to tokens, which nobody checks: sequence b has rows from
                                       starts[b] up to starts[b + 1] */
    uint64_t scales;            /* decode, caches of codes: f16 [rows of the cache, 2 * groups] of
                                   scales of k and of v; of u2 .. u8 [.., 4 * groups], behind them
                                   the zero points of k and of v. Forward of "f8e4m3": f32
                                   [3, kv_heads], by which q, k and v are multiplied, above 0,
                                   also of tensors of zeros (1e-12 does) */
    uint64_t table;             /* not forward: i32 [batch, columns], pages of each sequence */
    uint64_t lengths;           /* not forward: i32 [batch], tokens of each, 0 to columns * page */
    uint64_t workspace;
    size_t workspace_size;      /* at least tilus_attention_workspace_size */
} tilus_attention_call;

/* Enqueues attention: no waiting and no allocation, and no lock once tilus_attention_prepare was
 * called for such a shape. It may be captured into a graph: lengths, tables and starts are read
 * when it runs. Rows that see nothing become 0, and their logarithm that of their sink, or without
 * one -inf. What other sequences hold, also Inf and NaN, never reaches a sequence's rows, nor do
 * rows of pages after its end. Results are the same in every run of a shape. Calls that may
 * overlap need a workspace each. `stream` is of the plan's device; NULL and the driver's special
 * streams (1 legacy, 2 per thread) are those of its primary context. TILUS_ERROR_ARGUMENT names the
 * field that is wrong. */
TILUS_API tilus_status tilus_attention_run(tilus_attention_plan *plan, tilus_stream stream,
                                           const tilus_attention_call *call);

/* ---- gradients ---------------------------------------------------------------- */

/* Puts the bytes of device memory that tilus_attention_backward needs into *out, as
 * tilus_attention_workspace_size does; 0 where the problem has no gradients. */
TILUS_API tilus_status tilus_attention_backward_workspace_size(const tilus_attention_plan *plan,
                                                               const tilus_attention_shape *shape,
                                                               size_t *out);

/* Tensors of a backward pass, as in tilus_attention_call. */
typedef struct tilus_attention_gradients {
    size_t struct_size;                     /* sizeof(tilus_attention_gradients) */
    const tilus_attention_shape *shape;
    uint64_t q, k, v, o, lse;   /* o and lse as tilus_attention_run has written them */
    uint64_t d_o;               /* the gradient of o, as o */
    uint64_t dq, dk, dv;        /* are written; as q, k and v */
    uint64_t q_starts, k_starts;
    uint64_t workspace;
    size_t workspace_size;      /* at least tilus_attention_backward_workspace_size */
} tilus_attention_gradients;

/* Enqueues the gradients of q, k and v, as tilus_attention_run does attention, in three launches.
 * dk and dv are the same in every run; dq is a sum in any order, and may differ by rounding.
 * TILUS_ERROR_UNSUPPORTED: the problem has no gradients. */
TILUS_API tilus_status tilus_attention_backward(tilus_attention_plan *plan, tilus_stream stream,
                                                const tilus_attention_gradients *gradients);

/* ---- new tokens --------------------------------------------------------------- */

/* New tokens for a cache. Addresses are as in tilus_attention_call. */
typedef struct tilus_attention_tokens {
    size_t struct_size;         /* sizeof(tilus_attention_tokens) */
    int64_t tokens;             /* 0 to 2^24; with 0 nothing is launched */
    int64_t pages;              /* of the cache */
    uint64_t new_k, new_v;      /* [tokens, kv_heads, dim] */
    uint64_t slots;             /* i32 [tokens]: page * (tokens of a page) + row of each; negative:
                                   the token goes nowhere. No slot comes twice */
    uint64_t k, v, scales;      /* the cache, as in tilus_attention_call */
} tilus_attention_tokens;

/* Enqueues the quantization of new tokens into the cache of a plan for decoding, as
 * tilus_attention_run does. TILUS_ERROR_UNSUPPORTED: the plan is of another kind. */
TILUS_API tilus_status tilus_attention_append(tilus_attention_plan *plan, tilus_stream stream,
                                              const tilus_attention_tokens *tokens);

#ifdef __cplusplus
}
#endif

#endif
