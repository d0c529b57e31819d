/* The compiler library: text -> module -> passes -> PTX, and the interpreter.
 *
 * Structs that begin with `struct_size` hold there the sizeof that the caller was compiled
 * with, in options and results alike; fields that the caller does not set are 0. A library
 * that is newer takes the fields it does not get to be 0, and an older one refuses a field
 * that it does not know unless it is 0. Fields are only ever added at the end.
 *
 * Objects are opaque and belong to one thread at a time; different objects may
 * be used from different threads. No function exits, aborts or prints unless
 * it says so; when memory runs out the call fails like any other. Numbers in texts have a point
 * before the fraction, whatever the process's locale is.
 *
 * Pointers are not NULL unless a comment says that they may be, or are of 0 elements or bytes.
 * Where a module, a diag, a program's name or the place of a result is NULL nevertheless,
 * functions with a status return TILUS_ERROR_ARGUMENT.
 *
 * LLVM is the exception: where its own allocations fail, it aborts the process. A server that
 * compiles text which it does not trust, or in little memory, compiles in a child process
 * (tilus/child.h). */
#ifndef TILUS_H
#define TILUS_H

#include "tilus/export.h"
#include "tilus/kernel.h"
#include "tilus/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tilus_diag tilus_diag;
typedef struct tilus_module tilus_module;

/* Version of this library, "0.2.0"; of the LLVM it is linked with, "22.1.8";
 * and the git revision it was built from ("unknown" outside a checkout).
 * Static storage. Thread safe. */
TILUS_API const char *tilus_version(void);
TILUS_API const char *tilus_llvm_version(void);
TILUS_API const char *tilus_git_revision(void);

/* ---- diagnostics ---------------------------------------------------- */

/* An error makes the call fail. A warning does not: the text is right and compiled, but a
 * part of it does not do what it seems meant to, as a loop marked `pipelined` that could not
 * be. A note belongs to the error or warning before it. A warning is of a group, which can
 * be turned off, or make it an error. */
typedef enum tilus_severity {
    TILUS_SEVERITY_ERROR,
    TILUS_SEVERITY_WARNING,
    TILUS_SEVERITY_NOTE
} tilus_severity;

/* Holds one text and its messages. NULL when memory runs out. The caller
 * frees it, after the module that was parsed with it. */
TILUS_API tilus_diag *tilus_diag_new(void);
TILUS_API void tilus_diag_free(tilus_diag *diag);

/* A limit of the compiler (docs/language.md has the table). `most` is what it can be
 * set to, 0 when it cannot be set and has no name. */
typedef struct tilus_limit {
    size_t struct_size;         /* sizeof(tilus_limit) */
    const char *name;           /* "values"; "" */
    const char *what;           /* in words */
    long long value, most;
} tilus_limit;

/* The i-th limit and what it is by default; false past the last, and where limit->struct_size
 * is no size of the struct. Thread safe. */
TILUS_API bool tilus_limit_at(size_t i, tilus_limit *limit);

/* Sets the limit called `name` for the text that `diag` will hold, and for its module;
 * to be called before tilus_parse. "milliseconds" counts from this call: past that
 * time parsing, passes and compiling give an error; they notice between ops, and in
 * LLVM before its optimizer and after it; such a module is only good for printing and
 * freeing. False, and nothing has happened, when there is no such limit or it does not
 * go up to `value`. With a `diag` of NULL returns the same and sets nothing. */
TILUS_API bool tilus_set_limit(tilus_diag *diag, const char *name, long long value);

/* Adds a directory in which `import` looks for files that are not beside the file that
 * imports them; to be called before tilus_parse. Copies the string. False when memory runs
 * out. */
TILUS_API bool tilus_add_import_path(tilus_diag *diag, const char *directory);

/* A group of warnings (docs/tools.md has the table). */
typedef struct tilus_warning {
    size_t struct_size;         /* sizeof(tilus_warning) */
    const char *name;           /* "pipeline" */
    const char *what;           /* it warns of, in words */
    bool on;                    /* without any flag */
} tilus_warning;

/* The i-th group; false past the last, and where warning->struct_size is no size of the struct.
 * Thread safe. */
TILUS_API bool tilus_warning_at(size_t i, tilus_warning *warning);

/* Sets groups of warnings for the text that `diag` will hold, and for its module, as the
 * tools' option -W does: "pipeline" turns the group on, "no-pipeline" off;
 * "error=pipeline" makes its warnings errors, "no-error=pipeline" warnings again; "error"
 * does so for all groups, and "all" is all of them. Later calls prevail. To be called before
 * tilus_parse. False, and nothing has happened, when there is no such group. With a `diag`
 * of NULL returns the same and sets nothing. */
TILUS_API bool tilus_set_warning(tilus_diag *diag, const char *flag);

/* Messages so far; errors and warnings, also past the limit of those that are kept; of
 * message `i` (< count): severity, file (that of tilus_parse, which may be NULL, or one that is
 * imported), line and column (from 1; 0 when the message belongs to no place), text, owned by
 * `diag`, and the name of its group of warnings, or NULL; an error has one, too, where warnings
 * of the group are errors. Parsing, passes and compiling add warnings, which
 * tilus_diag_format gives, too; a caller should show them after success as well. */
TILUS_API size_t tilus_diag_count(const tilus_diag *diag);
TILUS_API size_t tilus_diag_errors(const tilus_diag *diag);
TILUS_API size_t tilus_diag_warnings(const tilus_diag *diag);
TILUS_API tilus_severity tilus_diag_severity(const tilus_diag *diag, size_t i);
TILUS_API const char *tilus_diag_file(const tilus_diag *diag, size_t i);
TILUS_API unsigned tilus_diag_line(const tilus_diag *diag, size_t i);
TILUS_API unsigned tilus_diag_column(const tilus_diag *diag, size_t i);
TILUS_API const char *tilus_diag_text(const tilus_diag *diag, size_t i);
TILUS_API const char *tilus_diag_group(const tilus_diag *diag, size_t i);

/* Formats every message as file:line:col: severity: text, with the source line and a caret.
 * The text is "" where there is no message; NUL-terminated; the caller frees it with
 * tilus_free. NULL when memory runs out. */
TILUS_API char *tilus_diag_format(const tilus_diag *diag);

/* Passes the same text to `write`, with `data`, or to standard error where `write` is NULL;
 * allocates nothing. */
TILUS_API void tilus_diag_write(const tilus_diag *diag, tilus_write *write, void *data);

/* ---- modules -------------------------------------------------------- */

/* A template parameter's value (`-D NAME=VALUE`): an integer or the name of a
 * type. */
typedef struct tilus_define {
    const char *name;
    const char *value;
} tilus_define;

/* Parses, instantiates and verifies `text` (`len` bytes) into a module that
 * the caller frees. `file` is the name that messages show. `first_line` is the
 * line number of the first line of `text` in that file, usually 1. Returns
 * NULL after errors, which `diag` holds beside its own copy of `text`. A diag
 * serves one parse. */
TILUS_API tilus_module *tilus_parse(tilus_diag *diag, const char *file,
                                    const char *text, size_t len, unsigned first_line,
                                    const tilus_define *defines, size_t define_count);
TILUS_API void tilus_module_free(tilus_module *module);

/* Canonical text, NUL-terminated; the caller frees it with tilus_free. NULL when
 * memory runs out. */
TILUS_API char *tilus_print(tilus_module *module);

/* Number and names (without @; owned by the module) of its programs. */
TILUS_API size_t tilus_program_count(const tilus_module *module);
TILUS_API const char *tilus_program_name(const tilus_module *module, size_t i);

/* ---- remarks -------------------------------------------------------- */

/* Remarks: choices that passes made, and chances that they missed and why. */
typedef enum tilus_remark_kind {
    TILUS_REMARK_PASSED,
    TILUS_REMARK_MISSED
} tilus_remark_kind;

typedef enum tilus_remark_type {
    TILUS_REMARK_INTEGER,
    TILUS_REMARK_REAL,
    TILUS_REMARK_TEXT
} tilus_remark_type;

/* A value of a remark, an element of an array. */
typedef struct tilus_remark_argument {
    const char *name;           /* "BytesPerLane" */
    tilus_remark_type type;     /* says which of these it has */
    int64_t integer;
    double real;
    const char *text;
} tilus_remark_argument;

/* A remark; its texts and arguments are there during the call that gives it. */
typedef struct tilus_remark {
    size_t struct_size;         /* of the library's struct */
    tilus_remark_kind kind;
    unsigned line, column;      /* from 1; 0: of no place */
    const char *pass, *name;    /* "unroll-loops", "LoopUnrolled"; names stay as they are */
    const char *program;        /* without @ */
    const char *file;           /* "" where it has no name */
    const char *text;           /* the sentence */
    const tilus_remark_argument *arguments;
    size_t argument_count;
} tilus_remark;

/* Texts of remarks: documents of LLVM's YAML, which llvm-remarkutil reads; or an object of
 * JSON on each line. */
typedef enum tilus_remark_format {
    TILUS_REMARKS_YAML,
    TILUS_REMARKS_JSON
} tilus_remark_format;

/* Describes a remark that passes give. */
typedef struct tilus_remark_info {
    size_t struct_size;         /* sizeof(tilus_remark_info) */
    tilus_remark_kind kind;
    const char *pass, *name;
    const char *text;           /* "{int Copies} iterations .."; "{-int ..}" is in data only */
    const char *meaning;        /* a sentence */
    const char *cure;           /* an edit that may change what a missed one regrets; else NULL */
} tilus_remark_info;

/* The i-th remark in existence; false past the last, and where info->struct_size is no size of
 * the struct. Static storage. Thread safe. */
TILUS_API bool tilus_remark_at(size_t i, tilus_remark_info *info);

/* ---- passes --------------------------------------------------------- */

typedef enum tilus_pass_event_kind {
    TILUS_PASS_BEGINS,
    TILUS_PASS_FAILED,          /* it gave errors */
    TILUS_PASS_BROKE            /* it left a program that is not valid: our fault */
} tilus_pass_event_kind;

/* Tells an observer of one pass. */
typedef struct tilus_pass_event {
    size_t struct_size;         /* of the library's struct */
    tilus_pass_event_kind kind;
    unsigned runs;              /* of a pass on a program, so far */
    const char *pipeline;       /* the passes from this one on */
    const char *text;           /* TILUS_PASS_BEGINS: the module; else NULL */
} tilus_pass_event;

/* A report's form: a table to read, or one line of JSON. */
typedef enum tilus_table {
    TILUS_TABLE_NONE,
    TILUS_TABLE_TEXT,
    TILUS_TABLE_JSON            /* {"statistics": {"fold.ops": 3, ..}};
                                   {"times": [{"pass": "fold", "seconds": .., "runs": ..}, ..]} */
} tilus_table;

/* Forms of the report on a pass that changed something: the module, or the lines in which it
 * differs, as `diff -u` shows them. */
typedef enum tilus_changed {
    TILUS_CHANGED_NONE,
    TILUS_CHANGED_MODULE,
    TILUS_CHANGED_DIFF
} tilus_changed;

typedef struct tilus_pass_options {
    size_t struct_size;         /* sizeof(tilus_pass_options) */
    const char *target;         /* what the module will be compiled for, one of
                                   tilus_target_name(); NULL: passes choose only what
                                   every target has */
    const char *skip;           /* passes of the pipeline that are left out, or NULL */
    bool verify_each;           /* verify after each pass that changed something */
    bool print_before_all, print_after_all;
    bool opt_bisect;            /* number and print each run of a pass on a program ... */
    int opt_bisect_limit;       /* ... and the number to run; negative: all */
    tilus_changed print_changed;
    tilus_table stats;          /* what the passes counted, at the end */
    tilus_table time_passes;    /* times of passes, at the end */
    const char *print_before;   /* comma-separated pass names, or NULL */
    const char *print_after;
    tilus_write *write;         /* gets what the above print; NULL: it goes to stderr */
    void *write_data;
    /* Remarks are printed for passes in whose name the (extended) regular expression is found,
     * NULL: for none; `remarks`, where it is not NULL, gets all of them in `remarks_format`;
     * `remark`, where it is not NULL, is called with each, and must not call functions of this
     * module or its diag. */
    const char *remarks_passed, *remarks_missed;
    tilus_write *remarks;
    void *remarks_data;
    void (*remark)(void *remark_data, const tilus_remark *remark);
    void *remark_data;
    tilus_remark_format remarks_format;

    /* Called when something happens to a pass; NULL: nobody is. It must not
       call functions of this module or its diag. */
    void (*observe)(void *observer, const tilus_pass_event *event);
    void *observer;
} tilus_pass_options;

/* Runs the passes named in `pipeline` ("canonicalize,unroll-loops{factor=4},..", options in
 * braces with spaces between; NULL: the default pipeline of tilus-llc). `options` may be NULL:
 * only verify_each is set. False after errors, which the module's diag holds. After a pass that
 * failed, or ran out of memory, the module is only good for printing and freeing. */
TILUS_API bool tilus_run_passes(tilus_module *module, const char *pipeline,
                                const tilus_pass_options *options);

/* Returns true when tilus_run_passes takes the passes and options of `pipeline`; else
 * message[0..size) says which does not exist, and what is like it. Thread safe. */
TILUS_API bool tilus_check_passes(const char *pipeline, char *message, size_t size);

/* An option of a pass, an integer. Of a flag `least` is 0 and `most` 1; its name alone sets it. */
typedef struct tilus_pass_option {
    size_t struct_size;         /* sizeof(tilus_pass_option) */
    const char *pass, *name, *summary;
    int64_t least, most;
    int64_t value;              /* where the pipeline gives none */
} tilus_pass_option;

/* The i-th option of a pass in existence; false past the last, and where option->struct_size is
 * no size of the struct. Static storage. Thread safe. */
TILUS_API bool tilus_pass_option_at(size_t i, tilus_pass_option *option);

/* The passes that tilus-llc runs, as tilus_run_passes takes them; static
 * storage. Thread safe. */
TILUS_API const char *tilus_default_pipeline(void);

/* The passes in existence: name and one-line summary, in static storage; NULL past
 * the last. Thread safe. */
TILUS_API const char *tilus_pass_name(size_t i);
TILUS_API const char *tilus_pass_summary(size_t i);

/* The op reference as Markdown, made from ops.def; the caller frees it with tilus_free. NULL
 * when memory runs out. Thread safe. */
TILUS_API char *tilus_op_reference(void);

/* ---- layouts -------------------------------------------------------- */

typedef enum tilus_drawing {
    TILUS_DRAWING_TEXT,
    TILUS_DRAWING_SVG
} tilus_drawing;

/* Draws a layout, given as in program text ("spatial(8, 4).local(1, 2)"): the
 * thread and the slot that hold each element. NUL-terminated; the caller frees
 * it with tilus_free. NULL after errors, which `diag` holds; it serves one call. */
TILUS_API char *tilus_layout_draw(tilus_diag *diag, const char *layout, tilus_drawing kind);

/* Draws, as tilus_layout_draw, a layout that may use the parameters and layouts of a text, which
 * tilus_parse reads from line 1, with its errors; freed likewise. `layout` outlives `diag`. */
TILUS_API char *tilus_text_layout_draw(tilus_diag *diag, const char *file, const char *text,
                                       size_t len, const tilus_define *defines,
                                       size_t define_count, const char *layout,
                                       tilus_drawing kind);

/* ---- packing weights -------------------------------------------------- */

/* Cuts a matrix of codes b[k, n] into tiles that a kernel loads as words. */
typedef struct tilus_packing {
    size_t struct_size;     /* sizeof(tilus_packing) */
    const char *type;       /* of the codes, 1 to 8 bits: "u3" */
    const char *order;      /* the T of storage order packed(T), "f16"; NULL: plain order */
    const char *layout;     /* of a tile b[tile_k, tile_n], as in program text: without
                               replicas, and a thread's elements fill whole words */
    int64_t k, n;           /* at least 1 */
    bool transposed;        /* codes lie row-major as [n, k] instead of [k, n] */
} tilus_packing;

/* Bytes of the packed matrix: u32[ceil(k / tile_k), ceil(n / tile_n), threads, words of
 * a thread]. 0 after errors, which `diag` holds; it serves one call. */
TILUS_API size_t tilus_packed_size(tilus_diag *diag, const tilus_packing *packing);

/* Packs plain codes: each thread's words of a tile are what `cast` to the storage
 * order and `view` as u32 give there (docs/language.md, "Storage orders"), and what
 * kernels/pack.tilus writes on a GPU. Codes beyond the edges are 0. `codes` are
 * ceil(k * n * bits / 8) bytes, the lowest bit of the lowest byte first; `size` of
 * them and `packed_size` are checked. False after errors, and then `packed` is
 * untouched. The two do not overlap. */
TILUS_API bool tilus_pack_weights(tilus_diag *diag, const tilus_packing *packing,
                                  const void *codes, size_t size, void *packed,
                                  size_t packed_size);
/* The inverse: bits of the last byte past the last code are 0. False after errors. */
TILUS_API bool tilus_unpack_weights(tilus_diag *diag, const tilus_packing *packing,
                                    const void *packed, size_t packed_size, void *codes,
                                    size_t size);

/* ---- the interpreter ------------------------------------------------ */

/* Memory that a pointer argument gives access to. Buffers may overlap: what is written to one
 * is read from the other, but tilus_interpret finds no races between two of them. */
typedef struct tilus_buffer {
    void *data;
    size_t size;                /* bytes */
} tilus_buffer;

/* Counts the work of a line of the text, in all blocks. Elements count for each thread that
 * moves them, replicas too, but not elements outside of a global view; those of copy_async
 * count once. An atomic op reads and writes each of its elements. Semaphores are left out. */
typedef struct tilus_line_profile {
    unsigned line;              /* from 1 */
    uint64_t ops;               /* that blocks have executed */
    uint64_t global_read, global_written, shared_read, shared_written;  /* bits */
} tilus_line_profile;

typedef struct tilus_interpret_options {
    size_t struct_size;         /* sizeof(tilus_interpret_options) */
    /* Gets what the program prints; NULL: it is dropped. It must not call functions of the
       module or its diag. */
    tilus_write *print;
    void *printer;
    /* Called before the first block and after each: `done` of `total` blocks have run.
       NULL: nobody is. As above, it must not call functions of the module. */
    void (*progress)(void *watcher, int64_t done, int64_t total);
    void *watcher;
    /* Called once, after a run without an error, with the `count` lines that have ops, in
       ascending order; they are there during the call only. NULL: nothing is counted. */
    void (*profile)(void *profiler, const tilus_line_profile *lines, size_t count);
    void *profiler;
} tilus_interpret_options;

/* Runs `program` (without @) over its whole grid. args[i].integer is the value of a
 * scalar of integers, args[i].real of floats; for a pointer, args[i].pointer is an index into `buffers`.
 * Facts are checked as a launcher does (a buffer's address counts as aligned
 * to 256 bytes). Undefined behavior of the program (out-of-bounds access,
 * race, read of undefined data) is an error that names both lines. Layouts that
 * the text leaves open must be chosen before, by the pass infer-layouts.
 * `options` may be NULL. TILUS_ERROR_PROGRAM or _ARGUMENT after errors, which the
 * module's diag holds. */
TILUS_API tilus_status tilus_interpret(tilus_module *module, const char *program,
                                       const tilus_arg *args, size_t arg_count,
                                       const tilus_buffer *buffers, size_t buffer_count,
                                       const tilus_interpret_options *options);

/* ---- code generation ------------------------------------------------ */

typedef enum tilus_output_kind {
    TILUS_OUTPUT_PTX,
    TILUS_OUTPUT_LLVM_IR        /* after optimization */
} tilus_output_kind;

typedef struct tilus_compile_options {
    size_t struct_size;         /* sizeof(tilus_compile_options) */
    const char *cpu;            /* "sm_90a"; one of tilus_target_name() */
    const char *program;        /* only this one (without @), or NULL for all */
    unsigned opt_level;         /* 0..3 */
    tilus_output_kind output;
    const char *features;       /* LLVM's -mattr, "+ptx84", or NULL */
    bool debug_lines;           /* PTX says which lines of the text it is from (.loc) */
} tilus_compile_options;

typedef struct tilus_compile_times {
    size_t struct_size;         /* sizeof(tilus_compile_times) */
    double llvm_seconds;        /* building and optimizing LLVM IR */
    double ptx_seconds;         /* selecting and printing PTX */
} tilus_compile_times;

/* Compiles every program of the module, or one, into one PTX (or LLVM IR) text,
 * NUL-terminated; the caller frees it with tilus_free. NULL after errors, which
 * the module's diag holds. `times` may be NULL. Run the default pipeline
 * first. Thread safe for different modules. */
TILUS_API char *tilus_compile(tilus_module *module, const tilus_compile_options *options,
                              tilus_compile_times *times);

/* Parts of an artefact beside the compiled code; all zero is allowed. */
typedef struct tilus_artefact_options {
    size_t struct_size;         /* sizeof(tilus_artefact_options) */
    const char *parameters;     /* what template parameters were set to, "W=u4 BK=64" */
    /* Makes machine code for `cpu` of `ptx`, `*size` bytes that the library frees with
       free() (they are the caller's malloc), by ptxas as a rule; NULL when it fails.
       Without it the artefact has none. */
    void *(*assemble)(void *assembler, const char *cpu, const char *ptx, size_t *size);
    void *assembler;
} tilus_artefact_options;

/* Compiles `options->program`, or the only one of the module, to the bytes of an artefact
 * (tilus/artefact.h), which the caller frees with tilus_free. options->output does not count.
 * Run the default pipeline first. `extra` and `times` may be NULL. The artefact has the
 * program text, unless the module was changed by tilus/ir.h since. TILUS_ERROR_PROGRAM
 * after errors, which the module's diag holds (no such program is one); _UNSUPPORTED when
 * `assemble` fails; _ARGUMENT when the artefact would be too large, or the parameters are
 * not UTF-8; _MEMORY. `*bytes` is NULL then. Thread safe for different modules. */
TILUS_API tilus_status tilus_compile_artefact(tilus_module *module,
                                              const tilus_compile_options *options,
                                              const tilus_artefact_options *extra,
                                              tilus_compile_times *times, void **bytes,
                                              size_t *size);

/* Warns, in the group "spills", of each program of the module whose registers spill. `log` is
 * what ptxas -v has printed, or what the driver left in CU_JIT_INFO_LOG_BUFFER with
 * CU_JIT_LOG_VERBOSE; programs that it does not name are passed over. False when such a
 * warning is an error, and when memory runs out. */
TILUS_API bool tilus_report_spills(tilus_module *module, const char *log);

/* Lists how casts are compiled for `cpu`: a table with, for each, the family of its plan
 * (docs/casts.md) and operations an element by unit, and, if asked, the operations
 * below. The table has the casts, decodes and lookups in registers of a module, each once;
 * or all that have plans, 32 elements each. NUL-terminated; the caller frees it with tilus_free.
 * NULL after errors, which the module's diag, or `diag`, holds; `diag` serves one call. */
TILUS_API char *tilus_cast_plans(tilus_module *module, const char *cpu, bool operations);
TILUS_API char *tilus_all_cast_plans(tilus_diag *diag, const char *cpu, bool operations);

/* Makes every later compile of this process print LLVM's code, to stderr,
 * before or after each of LLVM's passes. Not to be called while another thread
 * compiles. */
TILUS_API void tilus_print_llvm_passes(bool before, bool after);

/* The targets that can be compiled for: "sm_80", ..., in static storage; NULL past the
 * last. Thread safe. */
TILUS_API const char *tilus_target_name(size_t i);

/* The best target for a device of compute capability `capability` (90 for
 * 9.0, as tilus_rt_compute_capability gives it): the device's own, else the
 * newest older one that it runs. NULL when there is none. Thread safe. */
TILUS_API const char *tilus_target_for(int capability);

/* Returns the launcher's description of `program`; owned by the module. NULL when there
 * is no such program, and after an error: its layouts are left open, and the pass
 * infer-layouts has not run. */
TILUS_API const tilus_kernel_info *tilus_module_kernel_info(tilus_module *module,
                                                            const char *program);

/* ---- the cache --------------------------------------------------------- */

/* Compiled programs on disk, for tilus_jit (docs/cache.md). Thread safe, and any number
 * of processes may share a directory; a child process opens its own after fork. */
typedef struct tilus_cache tilus_cache;

typedef struct tilus_cache_options {
    size_t struct_size;         /* sizeof(tilus_cache_options) */
    const char *directory;      /* NULL: TILUS_CACHE_DIR, $XDG_CACHE_HOME/tilus or
                                   $HOME/.cache/tilus, the first that there is */
    uint64_t size;              /* of all entries, bytes, about; 0: TILUS_CACHE_SIZE
                                   ("500M"), else 1 GiB. The least recently used go. */
    /* Told, by the thread that finds out, why there will be no cache, and once of each
       cache that something could not be stored. NULL: nobody is. */
    void (*warn)(void *user, const char *message);
    void *user;
} tilus_cache_options;

/* Opens a cache, which the caller closes; makes its directory (mode 0700) if there is
 * none. NULL stands for no cache, and every function takes it: when TILUS_CACHE is
 * "off"; and, after a warning, when the directory cannot be used, is another user's, or
 * others may write there. Without a warning, and with errno EINVAL, where `options` has a
 * struct_size of none, or fields of a newer version. `options` may be NULL. Thread safe. */
TILUS_API tilus_cache *tilus_cache_open(const tilus_cache_options *options);
TILUS_API void tilus_cache_close(tilus_cache *cache);

typedef struct tilus_cache_stats {
    size_t struct_size;         /* sizeof(tilus_cache_stats) */
    const char *directory;      /* owned by the cache */
    bool writable;
    size_t entries;             /* in the directory now ... */
    uint64_t bytes;             /* ... and how large they are */
    uint64_t size;              /* what they may have, bytes */
    uint64_t hits, misses;      /* since it was opened, by this process: found, and not */
    uint64_t stored;
    uint64_t dropped;           /* damaged ones, removed when they were met */
    uint64_t evicted;           /* removed to keep the size */
} tilus_cache_stats;

/* Reads the directory. All zero for no cache. False where stats->struct_size is no size of the
 * struct. Thread safe. */
TILUS_API bool tilus_cache_get_stats(tilus_cache *cache, tilus_cache_stats *stats);

/* ---- compiling for a device ---------------------------------------------- */

typedef struct tilus_jit_options {
    size_t struct_size;         /* sizeof(tilus_jit_options) */
    const char *target;         /* one of tilus_target_name(); NULL: the best for a device ... */
    int capability;             /* ... of this compute capability, 90 for 9.0 */
    unsigned opt_level;         /* 0..3 */
    const char *program;        /* without @; NULL: the only one of the text */
    const tilus_define *defines;
    size_t define_count;
    tilus_cache *cache;         /* NULL: none */
    const char *file;           /* the text's name in messages; NULL: "<text>" */
    const char *const *import_paths;    /* as of tilus_add_import_path */
    size_t import_path_count;
    const char *features;       /* LLVM's -mattr, "+ptx84", or NULL */
    bool debug_lines;           /* as of tilus_compile_options */
} tilus_jit_options;

/* Compiles a program of `text` (`len` bytes) to an artefact (tilus/artefact.h), without
 * machine code: `*size` bytes that the caller frees with tilus_free, and that
 * tilus_artefact_read takes. What the cache has is not compiled, and then `diag` gets no
 * warnings and keeps no text. On failure `*bytes` is NULL: TILUS_ERROR_PROGRAM, and `diag`
 * says what is wrong where; TILUS_ERROR_UNSUPPORTED, when there is no target for the
 * device, which `diag` says, too; TILUS_ERROR_MEMORY. `diag` serves one call. Thread safe
 * for different diags. */
TILUS_API tilus_status tilus_jit(tilus_diag *diag, const char *text, size_t len,
                                 const tilus_jit_options *options, void **bytes,
                                 size_t *size);

/* Returns the program text that this library has built in under `name`, with what it imports:
 * "matmul" is kernels/matmul.tilus; `tilus-llc --help` lists the names. `*size` bytes and a NUL, in
 * static storage; NULL when there is none. Thread safe. */
TILUS_API const char *tilus_template_text(const char *name, size_t *size);

/* A tilus_matmul_compiler (tilus/matmul.h): compiles a program of the template of matrix
 * products, kernels/matmul.tilus as this library was built with it, to an artefact without
 * machine code. `cache` is a tilus_cache, or NULL for none. TILUS_ERROR_ARGUMENT where
 * `parameters` are not "NAME=VALUE ..", or a pointer but `cache` and `message` is NULL,
 * TILUS_ERROR_PROGRAM where they fit no program; _MEMORY. Thread safe. */
TILUS_API tilus_status tilus_matmul_compile(void *cache, const char *program,
                                            const char *parameters, const char *target,
                                            void **bytes, size_t *size, char *message,
                                            size_t message_size);

/* A tilus_bigint_compiler (tilus/bigint.h), for the templates of products of big integers, kernels/bigint.tilus and
 * kernels/bigint_ntt.tilus: otherwise as tilus_matmul_compile, and it fails as that does. Thread safe. */
TILUS_API tilus_status tilus_bigint_compile(void *cache, const char *program,
                                            const char *parameters, const char *target,
                                            void **bytes, size_t *size, char *message,
                                            size_t message_size);

/* A tilus_attention_compiler (tilus/attention.h), for the templates of attention,
 * kernels/attention_sm90.tilus, kernels/attention_backward.tilus, kernels/attention_decode.tilus and
 * kernels/mla.tilus: otherwise as tilus_matmul_compile, and it fails as that does. Thread safe. */
TILUS_API tilus_status tilus_attention_compile(void *cache, const char *program,
                                               const char *parameters, const char *target,
                                               void **bytes, size_t *size, char *message,
                                               size_t message_size);

/* ---- the CPU engine ------------------------------------------------- */

typedef struct tilus_cpu_options {
    size_t struct_size;         /* sizeof(tilus_cpu_options) */
    const char *cpu;            /* the target whose code runs; one of tilus_target_name() */
    unsigned opt_level;         /* 0..3 */
    unsigned host_threads;      /* that run blocks, at once when > 1; programs with
                                   `lock` have their blocks run in order all the same */
    /* As of tilus_interpret_options; it is called by the host threads, one at a time. */
    tilus_write *print;
    void *printer;
    /* As of tilus_interpret_options; it is called by the host threads, several at once,
       so that a smaller number may come after a larger one. */
    void (*progress)(void *watcher, int64_t done, int64_t total);
    void *watcher;
    bool check_races;           /* also find races between the threads of a block, reads of
                                   shared memory that nobody wrote, misaligned accesses */
} tilus_cpu_options;

typedef struct tilus_cpu_times {
    size_t struct_size;         /* sizeof(tilus_cpu_times) */
    double compile_seconds;
    double run_seconds;
} tilus_cpu_times;

/* Compiles `program` (without @) for this machine, as it would for a GPU, and runs it
 * over its whole grid; arguments as of tilus_interpret. Faults that it finds (an
 * access outside of a buffer, threads that wait for each other for ever, an assertion)
 * are errors that name the op's line; while it runs it handles SIGSEGV, SIGBUS and
 * SIGFPE of the threads it uses. Run the default pipeline first. `times` may be NULL.
 * Thread safe for different modules. */
TILUS_API tilus_status tilus_run_on_cpu(tilus_module *module, const char *program,
                                        const tilus_arg *args, size_t arg_count,
                                        const tilus_buffer *buffers, size_t buffer_count,
                                        const tilus_cpu_options *options,
                                        tilus_cpu_times *times);

/* Returns the CPU engine as tilus_rt_options.engine (tilus/runtime.h): launches on a software
 * device compile the text that the artefact carries, once, and run it on this machine. Faults
 * are TILUS_ERROR_PROGRAM, with the op's line. Static storage. Thread safe. */
TILUS_API const struct tilus_engine *tilus_cpu_engine(void);

#ifdef __cplusplus
}
#endif

#endif
