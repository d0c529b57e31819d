/* Public API: program text to an artefact in memory, through the cache. */
#define _GNU_SOURCE
#include "api/build.h"
#include "cache/cache.h"
#include "support/diag.h"
#include "support/sized.h"
#include "tilus/artefact.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One call. */
typedef struct Jit {
    Diag *diag;
    const char *text;
    size_t len;
    const tilus_jit_options *options;
    const char *target;
    void **bytes;
    size_t *size;
} Jit;

/* The text's name in messages. */
static const char *file_name(const Jit *jit)
{
    return jit->options->file ? jit->options->file : "<text>";
}

/* ---- the key ---------------------------------------------------------------------- */

/* Everything that an artefact depends on. tilus-cache shows target, program and defines. */
static CacheKey make_key(const Jit *jit, const char *text, size_t len)
{
    const tilus_jit_options *o = jit->options;
    const Diag *d = jit->diag;
    char numbers[128];
    CacheKey key = {0};
    snprintf(numbers, sizeof numbers, "-O%u%s, artefact %d, limits %lld %lld %lld", o->opt_level,
             o->debug_lines ? " -g" : "", TILUS_ARTEFACT_VERSION,
             (long long)diag_limit(d, LIMIT_ID_OPTIMIZED),
             (long long)diag_limit(d, LIMIT_ID_UNROLLED),
             (long long)diag_limit(d, LIMIT_ID_OPERATIONS));
    cache_key_add_text(&key, "target", jit->target);
    if (o->program)
        cache_key_add_text(&key, "program", o->program);
    for (size_t i = 0; i < o->define_count; i++) {
        cache_key_add_text(&key, "define", o->defines[i].name);
        cache_key_add_text(&key, "value", o->defines[i].value);
    }
    cache_key_add_text(&key, "features", o->features ? o->features : "");
    cache_key_add_text(&key, "options", numbers);
    if (o->debug_lines)     /* PTX then names the file */
        cache_key_add_text(&key, "file", file_name(jit));
    cache_key_add_text(&key, "compiler", build_identity());
    cache_key_add_text(&key, "LLVM", tilus_llvm_version());
    cache_key_add(&key, "text", text, len);
    return key;
}

/* ---- compiling -------------------------------------------------------------------- */

/* Reports an error that belongs to no place in the text. */
__attribute__((format(printf, 2, 3)))
static void report(const Jit *jit, const char *format, ...)
{
    char message[256];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (!setjmp(jit->diag->oom.jump))
        diag_error(jit->diag, (Loc){0}, "%s", message);
}

/* Why something has failed that reports its errors. */
static tilus_status failure(const Jit *jit)
{
    return tilus_diag_errors(jit->diag) ? TILUS_ERROR_PROGRAM : TILUS_ERROR_MEMORY;
}

/* "W=u4 BK=64", malloc'ed. */
static char *print_defines(const tilus_jit_options *o)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (size_t i = 0; i < o->define_count; i++)
        fprintf(out, "%s%s=%s", i ? " " : "", o->defines[i].name, o->defines[i].value);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static tilus_status compile_module(const Jit *jit, tilus_module *m)
{
    const tilus_jit_options *o = jit->options;
    const tilus_pass_options passes = {.struct_size = sizeof passes, .verify_each = true,
                                       .target = jit->target};
    const tilus_compile_options options = {
        .struct_size = sizeof options, .cpu = jit->target, .features = o->features,
        .opt_level = o->opt_level, .debug_lines = o->debug_lines, .program = o->program,
    };
    if (!tilus_run_passes(m, NULL, &passes))
        return failure(jit);
    char *parameters = print_defines(o);
    const tilus_artefact_options extra = {.struct_size = sizeof extra, .parameters = parameters};
    tilus_status status = TILUS_ERROR_MEMORY;
    if (parameters)
        status = tilus_compile_artefact(m, &options, &extra, NULL, jit->bytes, jit->size);
    free(parameters);
    return status;
}

static tilus_module *parse(const Jit *jit)
{
    const tilus_jit_options *o = jit->options;
    for (size_t i = 0; i < o->import_path_count; i++)
        if (!tilus_add_import_path(jit->diag, o->import_paths[i]))
            return NULL;
    return tilus_parse(jit->diag, file_name(jit), jit->text, jit->len, 1, o->defines,
                       o->define_count);
}

static tilus_status compile(const Jit *jit)
{
    tilus_module *m = parse(jit);
    tilus_status status = m ? compile_module(jit, m) : failure(jit);
    tilus_module_free(m);
    return status;
}

/* ---- the call --------------------------------------------------------------------- */

/* The target that is meant; NULL after an error. */
static const char *choose_target(const Jit *jit)
{
    const tilus_jit_options *o = jit->options;
    const char *target = o->target ? o->target : tilus_target_for(o->capability);
    if (!target)
        report(jit, "no target for a device of compute capability %d.%d; the oldest is %s",
               o->capability / 10, o->capability % 10, tilus_target_name(0));
    return target;
}

/* The key of a text that imports files holds theirs, which are known once it is parsed. */
static tilus_status compile_imports(const Jit *jit, Cache *cache)
{
    tilus_module *m = parse(jit);
    if (!m)
        return failure(jit);
    if (setjmp(jit->diag->oom.jump)) {
        tilus_module_free(m);
        return TILUS_ERROR_MEMORY;
    }
    const char *texts = diag_texts(jit->diag);
    CacheKey key = make_key(jit, texts, strlen(texts));
    tilus_status status = TILUS_OK;
    if (!cache_get(cache, &key, jit->bytes, jit->size)) {
        status = compile_module(jit, m);
        if (status == TILUS_OK)
            cache_put(cache, &key, *jit->bytes, *jit->size);
    }
    cache_key_free(&key);
    tilus_module_free(m);
    return status;
}

/* Through the cache: what it does not have is compiled, and kept. */
static tilus_status compile_cached(const Jit *jit)
{
    Cache *cache = jit->options->cache;
    if (!cache)
        return compile(jit);
    if (memmem(jit->text, jit->len, "import", strlen("import")))
        return compile_imports(jit, cache);
    CacheKey key = make_key(jit, jit->text, jit->len);
    tilus_status status = TILUS_OK;
    if (!cache_get(cache, &key, jit->bytes, jit->size)) {
        status = compile(jit);
        if (status == TILUS_OK)
            cache_put(cache, &key, *jit->bytes, *jit->size);
    }
    cache_key_free(&key);
    return status;
}

tilus_status tilus_jit(tilus_diag *diag, const char *text, size_t len,
                       const tilus_jit_options *options, void **bytes, size_t *size)
{
    tilus_jit_options known;
    char message[256];
    Jit jit = {diag, text, len, &known, NULL, bytes, size};
    if (!bytes || !size)
        return TILUS_ERROR_ARGUMENT;
    *bytes = NULL;
    *size = 0;
    if (!diag || !text)
        return TILUS_ERROR_ARGUMENT;
    if (!SIZED_COPY(tilus_jit_options, &known, options, "options",
                    ((Report){message, sizeof message}))) {
        report(&jit, "%s", message);
        return TILUS_ERROR_ARGUMENT;
    }
    jit.target = choose_target(&jit);
    if (!jit.target)
        return tilus_diag_errors(diag) ? TILUS_ERROR_UNSUPPORTED : TILUS_ERROR_MEMORY;
    return compile_cached(&jit);
}
