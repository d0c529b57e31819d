/* Inside of tilus-matmul: what its commands share. Functions that fail have said why on stderr,
 * unless they say otherwise. */
#ifndef TILUS_MATMUL_TOOL_H
#define TILUS_MATMUL_TOOL_H

#include "common/npy.h"
#include "common/options.h"
#include "tilus-matmul/safetensors.h"
#include "tilus/matmul.h"

#define TOOL "tilus-matmul"

enum { LAYOUT_NK, LAYOUT_KN };
enum { ENGINE_CPU, ENGINE_GPU };
enum { CODES_NONE, CODES_BYTES, CODES_COMPACT };
enum { SIZES_MAX = 32, MESSAGE = 512, PATH = 4096, CHECKSUM = 17 };

/* The command line. */
typedef struct Settings {
    StringList words;           /* the command, and files */
    const char *weights, *activations, *scales, *result, *product;
    unsigned n, k, group, n_tile;
    int zeros, range, function;
    int layout, codes;          /* LAYOUT_, CODES_ */
    unsigned clip_steps, threads, jobs;
    StringList tensors;
    const char *scales_suffix, *zeros_suffix;
    const char *device, *target, *tunings, *sizes, *output;
    const char *a;
    double tolerance;
    int engine;                 /* ENGINE_ */
    unsigned experts, top;
    bool gather, scatter, combine, early_routing, batch_invariant, wide_range, gated;
    bool no_cubin, list;
    int64_t m[SIZES_MAX];       /* of `sizes` */
    size_t m_count;
} Settings;

__attribute__((format(printf, 1, 2))) bool fail(const char *format, ...);

/* The largest of -m. */
int64_t most_rows(const Settings *s);

/* ---- the library (plan.c) ---------------------------------------------------- */

typedef struct Library {
    tilus_rt *rt;               /* of one software device, or of the driver */
    tilus_matmul *matmul;
    const tilus_device_description *device;     /* NULL: the driver's */
    char *tunings;
} Library;

/* Opens the library for the device that the settings name; `runs` says that products run, on
 * the settings' engine. library_close takes what was opened in part, too. */
bool library_open(Library *l, const Settings *s, bool runs);
void library_close(Library *l);

/* The problem of n x k weights by the settings; NULL after a failure. */
tilus_matmul_problem problem_of(const Settings *s, int64_t n, int64_t k);
tilus_matmul_plan *library_plan(const Library *l, const tilus_matmul_problem *problem);

/* The names of enums tilus_zeros and tilus_epilogue, NULL-terminated. */
extern const char *const zeros_names[], *const function_names[];

/* ---- files of weights (source.c) ------------------------------------------------ */

typedef struct Source {
    const char *path;
    const unsigned char *file;  /* mapped; NULL: not open */
    size_t size;
    bool is_npy;
    NpyArray npy;
    Safetensors safe;
} Source;

/* A matrix of a source, or of codes. */
typedef struct Matrix {
    const char *name;
    const char *type;           /* "f16", "bf16", "f32", of codes "u8", "i32", .. */
    int64_t extents[2];
    const unsigned char *data;
    size_t size;
} Matrix;

/* Maps a .npy or .safetensors file, by its first bytes. */
bool source_open(Source *source, const char *path);
void source_close(Source *source);

/* Lets the pages of `size` bytes at `data` go, which were read. */
void source_forget(const unsigned char *data, size_t size);

/* Finds the matrices of a source that match --tensor, all floats where there is none; at least
 * one. The caller frees *matrices. */
bool source_matrices(const Source *source, const Settings *s, Matrix **matrices, size_t *count);

/* Finds the matrix of that name; false, without a word, where there is none. */
bool source_find(const Source *source, const char *name, Matrix *matrix);

/* ---- kernels (kernels.c) -------------------------------------------------------- */

/* Artefacts, each once. */
typedef struct KernelSet {
    struct KernelItem {
        char *name, *program, *parameters;
    } *items;
    size_t count;
} KernelSet;

/* Adds the kernels that runs of up to `m` rows need. */
bool kernels_add(KernelSet *set, const tilus_matmul_plan *plan, int64_t m);
void kernels_free(KernelSet *set);

/* Compiles each to FOLDER/NAME.tilusk, in child processes. */
bool kernels_compile(const KernelSet *set, const Settings *s, const char *target,
                     const char *folder);

/* ---- packed weights (pack.c) ----------------------------------------------------- */

/* Packs matrices to a .safetensors file, and adds their kernels to `set` unless it is NULL. */
bool pack_file(Library *l, const Settings *s, const char *input, const char *output,
               KernelSet *set);

/* FNV-1a of words of 8 bytes, as 16 hexadecimal digits. */
void checksum(const unsigned char *bytes, size_t size, char text[static CHECKSUM]);

/* ---- commands: exit codes ---------------------------------------------------------- */

int command_plan(const Settings *s);
int command_kernels(const Settings *s);
int command_pack(const Settings *s);
int command_build(const Settings *s);
int command_check(const Settings *s);
int command_run(const Settings *s);

#endif
