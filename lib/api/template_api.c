/* Public API: templates that are built in, and the compilers which the libraries of matrix
 * products, of big integers and of attention ask for kernels that they do not find. */
#define _GNU_SOURCE
#include "api/defines.h"
#include "support/report.h"
#include "support/templates.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- templates ---------------------------------------------------------- */

/* The build writes the texts as sources. */
#define TEMPLATE(name, optimized)                                                             \
    extern const char name##_template[];                                                      \
    extern const size_t name##_template_size;
#include "support/templates.def"

typedef struct Template {
    const char *name, *file, *text;
    const size_t *size;
    long long optimized;
} Template;

static const Template templates[] = {
#define TEMPLATE(name, optimized)                                                             \
    {#name, #name ".tilus", name##_template, &name##_template_size, optimized},
#include "support/templates.def"
};

static const Template *find_template(const char *name)
{
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++)
        if (!strcmp(name, templates[i].name))
            return &templates[i];
    return NULL;
}

const char *tilus_template_text(const char *name, size_t *size)
{
    const Template *t = find_template(name);
    *size = t ? *t->size : 0;
    return t ? t->text : NULL;
}

/* ---- compilers ---------------------------------------------------------- */

/* A request of a library for a kernel. */
typedef struct Request {
    void *cache;
    const char *program, *parameters, *target;
} Request;

/* Writes the first error, "matmul.tilus:12:8: ..". */
static void report(const tilus_diag *diag, const char *file, char *message, size_t size)
{
    for (size_t i = 0; i < tilus_diag_count(diag); i++)
        if (tilus_diag_severity(diag, i) == TILUS_SEVERITY_ERROR) {
            snprintf(message, size, "%s:%u:%u: %s", file, tilus_diag_line(diag, i),
                     tilus_diag_column(diag, i), tilus_diag_text(diag, i));
            return;
        }
    snprintf(message, size, "out of memory");
}

static tilus_status compile_with(tilus_diag *diag, const Template *t, const Request *r,
                                 const tilus_define *defines, int count, void **bytes,
                                 size_t *size)
{
    const tilus_jit_options options = {
        .struct_size = sizeof options, .file = t->file, .defines = defines,
        .define_count = (size_t)count, .program = r->program, .target = r->target,
        .opt_level = 3, .cache = r->cache};
    if (t->optimized)
        tilus_set_limit(diag, "optimized", t->optimized);
    return tilus_jit(diag, t->text, *t->size, &options, bytes, size);
}

/* Clears the places of a result. Returns false, after a report, where one of them is NULL, or a word
 * of the request. */
static bool check_request(const Request *r, void **bytes, size_t *size, Report why)
{
    const char *missing = !bytes ? "bytes" : !size ? "size" : !r->program ? "program"
                          : !r->parameters ? "parameters" : !r->target ? "target" : NULL;
    if (bytes)
        *bytes = NULL;
    if (size)
        *size = 0;
    return !missing || report_fault(why, "%s is NULL", missing);
}

/* Compiles a program of a template of a library. */
static tilus_status compile(const char *library, const Request *r, void **bytes, size_t *size,
                            char *message, size_t message_size)
{
    tilus_define defines[DEFINES_MAX];
    tilus_status status = TILUS_ERROR_MEMORY;
    message_size = message ? message_size : 0;
    if (!check_request(r, bytes, size, (Report){message, message_size}))
        return TILUS_ERROR_ARGUMENT;
    const Template *t = find_template(template_of(library, r->program));
    char *text = strdup(r->parameters);
    tilus_diag *diag = tilus_diag_new();
    int count = text ? defines_split(text, defines) : 0;
    snprintf(message, message_size, "out of memory");
    if (count < 0) {
        status = TILUS_ERROR_ARGUMENT;
        snprintf(message, message_size, "\"%s\" is not NAME=VALUE ..", r->parameters);
    } else if (text && diag) {
        status = compile_with(diag, t, r, defines, count, bytes, size);
        if (status != TILUS_OK)
            report(diag, t->file, message, message_size);
    }
    tilus_diag_free(diag);
    free(text);
    return status;
}

tilus_status tilus_matmul_compile(void *cache, const char *program, const char *parameters,
                                  const char *target, void **bytes, size_t *size,
                                  char *message, size_t message_size)
{
    const Request request = {cache, program, parameters, target};
    return compile("matmul", &request, bytes, size, message, message_size);
}

tilus_status tilus_bigint_compile(void *cache, const char *program, const char *parameters,
                                  const char *target, void **bytes, size_t *size,
                                  char *message, size_t message_size)
{
    const Request request = {cache, program, parameters, target};
    return compile("bigint", &request, bytes, size, message, message_size);
}

tilus_status tilus_attention_compile(void *cache, const char *program, const char *parameters,
                                     const char *target, void **bytes, size_t *size,
                                     char *message, size_t message_size)
{
    const Request request = {cache, program, parameters, target};
    return compile("attention", &request, bytes, size, message, message_size);
}
