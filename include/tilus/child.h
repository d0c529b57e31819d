/* Compiling in a child process, by the program tilus-llc: a fault or an abort of the compiler ends
 * the child and is a status here, and whoever compiles links no LLVM. Part of libtilus_rt.
 *
 * All functions are thread safe and return when the child has ended: no zombie stays, no file is
 * left open, and no signal is raised or handled here. A child inherits the environment and the
 * working directory, but no open file, and is a process group of its own. It may be used beside
 * a driver: posix_spawn shares nothing of it. Pointers are not NULL unless a comment says that they
 * may be. Where the place of a result, a struct, a program's name or a target is NULL nevertheless,
 * functions return TILUS_ERROR_ARGUMENT. */
#ifndef TILUS_CHILD_H
#define TILUS_CHILD_H

#include "tilus/export.h"
#include "tilus/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Options. All 0 but struct_size is the default. */
typedef struct tilus_child_options {
    size_t struct_size;             /* sizeof(tilus_child_options) */
    /* The path of tilus-llc. NULL: what the environment variable TILUS_LLC says, else the one
       beside this library (in its folder, or where an install has programs), else the first in
       PATH. */
    const char *compiler;
    uint64_t milliseconds;          /* that the child may take; 0: 10 minutes */
    const char *cache_directory;    /* of compiled programs (docs/cache.md); NULL: none */
} tilus_child_options;

/* A program, and how it is compiled. All 0 but struct_size, target and a text or a file is the
 * default. */
typedef struct tilus_child_source {
    size_t struct_size;             /* sizeof(tilus_child_source) */
    const char *text;               /* of `text_size` bytes; NULL: what is in `file` */
    size_t text_size;
    const char *file;               /* a path; beside a text its name in messages, and where its
                                       imports are looked for; NULL: "<stdin>" */
    const char *const *import_paths;    /* as of tilus_add_import_path */
    size_t import_path_count;
    const char *program;            /* without @; NULL: the only one there is */
    const char *parameters;         /* "W=u4 BK=64", as of -D; NULL: none */
    const char *target;             /* "sm_90a" */
} tilus_child_source;

/* Compiles `source` to an artefact (tilus/artefact.h) without machine code, the one that tilus_jit
 * makes: `*size` bytes that the caller frees with tilus_free. `options` may be NULL.
 * `*diagnostics`, where `diagnostics` is not NULL, is what the compiler wrote, as "file:line:col:
 * error: ..", after success its warnings, or why there is no answer; the caller frees it with
 * tilus_free; NULL when memory ran out. On failure `*bytes` is NULL:
 *
 *     TILUS_ERROR_PROGRAM     the text is wrong or cannot be read, or there is no such program,
 *                             parameter or target
 *     TILUS_ERROR_ARGUMENT    a struct, or the form of the parameters, is wrong, or `bytes` or
 *                             `size` is NULL
 *     TILUS_ERROR_CHILD       the child could not be started, crashed, was ended after its time, or
 *                             wrote no artefact; the signal or the reason is named
 *     TILUS_ERROR_MEMORY      host memory ran out here */
TILUS_API tilus_status tilus_child_compile(const tilus_child_options *options,
                                           const tilus_child_source *source, void **bytes,
                                           size_t *size, char **diagnostics);

/* A tilus_matmul_compiler (tilus/matmul.h): compiles a program of the template of matrix products
 * as tilus_matmul_compile does, with the text that tilus-llc has built in. `data` is a const
 * tilus_child_options *, or NULL, and so may `parameters` be: none. message[0..message_size), where
 * `message` is not NULL, gets the first error. */
TILUS_API tilus_status tilus_compile_in_child(void *data, const char *program,
                                              const char *parameters, const char *target,
                                              void **bytes, size_t *size, char *message,
                                              size_t message_size);

/* A tilus_attention_compiler (tilus/attention.h), which does and fails as tilus_compile_in_child
 * does. */
TILUS_API tilus_status tilus_attention_compile_in_child(void *data, const char *program,
                                                        const char *parameters,
                                                        const char *target, void **bytes,
                                                        size_t *size, char *message,
                                                        size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
