/* Programs of the matmul template for the CPU engine. */
#define _GNU_SOURCE
#include "common/cpu_module.h"

#include <stdlib.h>
#include <string.h>

enum { DEFINES_MAX = 64 };

/* Cuts "A=1 B=2" in place. */
static size_t split(char *text, tilus_define defines[static DEFINES_MAX])
{
    size_t count = 0;
    for (char *word; count < DEFINES_MAX && (word = strsep(&text, " "));) {
        char *value = strchr(word, '=');
        if (!value)
            continue;
        *value = '\0';
        defines[count++] = (tilus_define){word, value + 1};
    }
    return count;
}

tilus_module *cpu_module_parse(tilus_diag *diag, const char *text, size_t size,
                               const char *parameters, const char *target)
{
    tilus_define defines[DEFINES_MAX];
    const tilus_pass_options passes = {.struct_size = sizeof passes, .target = target};
    char *words = strdup(parameters);
    if (!words)
        return NULL;
    size_t count = split(words, defines);
    tilus_module *module = tilus_parse(diag, "matmul.tilus", text, size, 1, defines, count);
    free(words);
    if (module && tilus_run_passes(module, NULL, &passes))
        return module;
    tilus_module_free(module);
    return NULL;
}

const char *cpu_module_reason(const tilus_diag *diag, tilus_status status)
{
    for (size_t i = 0; diag && i < tilus_diag_count(diag); i++)
        if (tilus_diag_severity(diag, i) == TILUS_SEVERITY_ERROR)
            return tilus_diag_text(diag, i);
    return tilus_status_name(status);
}
