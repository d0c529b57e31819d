/* Public API: the compilers that the libraries of matrix products, of big integers and of
 * attention ask for kernels that they do not find. */
#define _GNU_SOURCE
#include "api/defines.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files of kernels/, which the build writes as sources. */
#define TEMPLATES(TEMPLATE)                                                                   \
    TEMPLATE(matmul) TEMPLATE(bigint) TEMPLATE(bigint_ntt) TEMPLATE(attention_sm90)           \
    TEMPLATE(attention_backward) TEMPLATE(attention_decode) TEMPLATE(mla)
#define TEMPLATE(name)                                                                        \
    extern const char name##_template[];                                                      \
    extern const size_t name##_template_size;
TEMPLATES(TEMPLATE)
#undef TEMPLATE

const char *tilus_template_text(const char *name, size_t *size)
{
    const struct {
        const char *name, *text;
        size_t size;
    } templates[] = {
#define TEMPLATE(name) {#name, name##_template, name##_template_size},
        TEMPLATES(TEMPLATE)
#undef TEMPLATE
    };
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++)
        if (!strcmp(name, templates[i].name)) {
            *size = templates[i].size;
            return templates[i].text;
        }
    *size = 0;
    return NULL;
}

int defines_split(char *text, tilus_define defines[static DEFINES_MAX])
{
    int count = 0;
    for (char *word = strsep(&text, " "); word; word = strsep(&text, " ")) {
        char *value = strchr(word, '=');
        if (!*word)
            continue;
        if (!value || value == word || count == DEFINES_MAX)
            return -1;
        *value = 0;
        defines[count++] = (tilus_define){word, value + 1};
    }
    return count;
}

/* The first error, "matmul.tilus:12:8: ..". */
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

/* A program of a template; `name` is of tilus_template_text. */
typedef struct Template {
    const char *name, *file;
    long long optimized;        /* the limit of that name; 0: its default */
} Template;

static tilus_status compile(const Template *t, void *cache, const char *program,
                            const char *parameters, const char *target, void **bytes,
                            size_t *size, char *message, size_t message_size)
{
    size_t length;
    const char *source = tilus_template_text(t->name, &length);
    tilus_define defines[DEFINES_MAX];
    tilus_status status = TILUS_ERROR_MEMORY;
    char *text = strdup(parameters);
    tilus_diag *diag = tilus_diag_new();
    int count = text ? defines_split(text, defines) : 0;
    *bytes = NULL;
    *size = 0;
    snprintf(message, message_size, "out of memory");
    if (count < 0) {
        status = TILUS_ERROR_ARGUMENT;
        snprintf(message, message_size, "\"%s\" is not NAME=VALUE ..", parameters);
    } else if (text && diag) {
        const tilus_jit_options options = {
            .struct_size = sizeof options, .file = t->file, .defines = defines,
            .define_count = (size_t)count, .program = program, .target = target,
            .opt_level = 3, .cache = cache};
        if (t->optimized)
            tilus_set_limit(diag, "optimized", t->optimized);
        status = tilus_jit(diag, source, length, &options, bytes, size);
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
    const Template matmul = {"matmul", "matmul.tilus", 0};
    return compile(&matmul, cache, program, parameters, target, bytes, size, message,
                   message_size);
}

/* The passes of transforms are long straight-line code, which LLVM takes a second for. */
tilus_status tilus_bigint_compile(void *cache, const char *program, const char *parameters,
                                  const char *target, void **bytes, size_t *size,
                                  char *message, size_t message_size)
{
    const Template product = {"bigint", "bigint.tilus", 0};
    const Template transform = {"bigint_ntt", "bigint_ntt.tilus", 1 << 20};
    bool is_product = !strcmp(program, "product") || !strcmp(program, "carry");
    return compile(is_product ? &product : &transform, cache, program, parameters, target, bytes,
                   size, message, message_size);
}

tilus_status tilus_attention_compile(void *cache, const char *program, const char *parameters,
                                     const char *target, void **bytes, size_t *size,
                                     char *message, size_t message_size)
{
    const Template templates[] = {{"attention_sm90", "attention_sm90.tilus", 0},
                                  {"attention_backward", "attention_backward.tilus", 0},
                                  {"mla", "mla.tilus", 0},
                                  {"attention_decode", "attention_decode.tilus", 0}};
    int i = !strcmp(program, "attention") ? 0 : !strncmp(program, "attention_", 10) ? 1
            : !strcmp(program, "mla") ? 2 : 3;
    return compile(&templates[i], cache, program, parameters, target, bytes, size, message,
                   message_size);
}
