/* Public API: the compiler that the matmul library asks for kernels that it does not find. */
#define _GNU_SOURCE
#include "api/defines.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* kernels/matmul.tilus, which the build writes as a source. */
extern const char matmul_template[];
extern const size_t matmul_template_size;

const char *tilus_template_text(const char *name, size_t *size)
{
    bool found = !strcmp(name, "matmul");
    *size = found ? matmul_template_size : 0;
    return found ? matmul_template : NULL;
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
static void report(const tilus_diag *diag, char *message, size_t size)
{
    for (size_t i = 0; i < tilus_diag_count(diag); i++)
        if (tilus_diag_severity(diag, i) == TILUS_SEVERITY_ERROR) {
            snprintf(message, size, "matmul.tilus:%u:%u: %s", tilus_diag_line(diag, i),
                     tilus_diag_column(diag, i), tilus_diag_text(diag, i));
            return;
        }
    snprintf(message, size, "out of memory");
}

tilus_status tilus_matmul_compile(void *cache, const char *program, const char *parameters,
                                  const char *target, void **bytes, size_t *size,
                                  char *message, size_t message_size)
{
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
            .struct_size = sizeof options, .file = "matmul.tilus", .defines = defines,
            .define_count = (size_t)count, .program = program, .target = target,
            .opt_level = 3, .cache = cache};
        status = tilus_jit(diag, matmul_template, matmul_template_size, &options, bytes, size);
        if (status != TILUS_OK)
            report(diag, message, message_size);
    }
    tilus_diag_free(diag);
    free(text);
    return status;
}
