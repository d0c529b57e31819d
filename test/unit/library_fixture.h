/* A runtime with a software device that the CPU engine runs, for the libraries of kernels. Include
 * after cmocka. */
#ifndef TILUS_TEST_LIBRARY_FIXTURE_H
#define TILUS_TEST_LIBRARY_FIXTURE_H

#include "api/defines.h"
#include "support/templates.h"
#include "tilus/runtime.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static tilus_rt *rt;

static inline void assert_ok(tilus_status status)
{
    if (status != TILUS_OK)
        fail_msg("%s: %s", tilus_status_name(status), tilus_rt_error());
}

/* Opens `rt` with one device of that name. */
static inline void open_rt_of(const char *device)
{
    const tilus_rt_options options = {.struct_size = sizeof options,
                                      .devices = tilus_find_device(device), .device_count = 1,
                                      .engine = tilus_cpu_engine()};
    char message[256];
    if (tilus_rt_open(&options, &rt, message, sizeof message) != TILUS_OK)
        fail_msg("%s", message);
}

static inline void open_rt(void)
{
    open_rt_of("h200");
}

/* Compiles for the library of that name, "attention", as tilus_attention_compile does, but without
 * optimizations, which take most of its time. */
static inline tilus_status compile_plainly(void *library, const char *program,
                                           const char *parameters, const char *target,
                                           void **bytes, size_t *size, char *message,
                                           size_t message_size)
{
    tilus_define defines[DEFINES_MAX];
    size_t length;
    const char *text = tilus_template_text(template_of(library, program), &length);
    char *words = strdup(parameters);
    tilus_diag *diag = tilus_diag_new();
    assert_true(words && diag);
    const tilus_jit_options options = {.struct_size = sizeof options, .defines = defines,
                                       .define_count = (size_t)defines_split(words, defines),
                                       .program = program, .target = target};
    tilus_status status = tilus_jit(diag, text, length, &options, bytes, size);
    if (status != TILUS_OK && tilus_diag_count(diag))
        snprintf(message, message_size, "%s", tilus_diag_text(diag, 0));
    tilus_diag_free(diag);
    free(words);
    return status;
}

#endif
