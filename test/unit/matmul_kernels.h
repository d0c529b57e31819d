/* Artefacts for the matmul library that only the fake driver takes, from a compiler that
 * needs no LLVM. Include after cmocka. */
#ifndef TILUS_TEST_MATMUL_KERNELS_H
#define TILUS_TEST_MATMUL_KERNELS_H

#include "matmul_fixture.h"

#include <stdio.h>

enum { ARGUMENTS_MAX = 18 };

/* Arguments of each program: pointers, then 32-bit integers; and its grid, as postfix code. */
typedef struct FakeProgram {
    const char *name, *arguments[ARGUMENTS_MAX + 1];
    size_t pointers;
    size_t x;                   /* the grid's first extent is this argument ... */
    tilus_code y[6];            /* ... and its second this; MC and TILES stand for -1, -2 */
    size_t y_length;
} FakeProgram;

static const FakeProgram fake_programs[] = {
    {"prepare", {"a", "prearranged", "m", "k", "stride", "slices"}, 2, 5,
     {A(2), C(-1), OP(ceil_div), C(-2), OP(mul)}, 5},
    {"matmul", {"weights", "scales", "zeros", "a", "prearranged", "flags", "partials", "bias",
                "residual", "c", "m", "n", "k", "stride", "slices", "blocks", "share", "extra"},
     10, 15, {A(10), C(-1), OP(ceil_div)}, 3},
    {"pack", {"plain", "plain_scales", "plain_zeros", "weights", "scales", "zeros", "n", "k",
              "slices"}, 6, 8, {A(6), C(64), OP(ceil_div)}, 3},
    {"unpack", {"weights", "scales", "zeros", "to", "n", "k", "slices", "blocks"}, 4, 7,
     {A(4), C(64), OP(ceil_div)}, 3},
};

/* Compiles by writing down what was asked for. Calls are counted; `refuse` says why it does
 * not. */
typedef struct FakeCompiler {
    atomic_int calls;
    const char *refuse;
    const char *program;        /* what artefacts say they are of; NULL: what is right */
    const char *parameters;
    char *last;                 /* gets the parameters of the last one, MATMUL_TEXT_MAX bytes,
                                   of one thread; NULL: nobody asks */
    const char *argument;       /* what kernels call their first argument; NULL: what is right */
} FakeCompiler;

static inline int number_of(const char *parameters, const char *name)
{
    const char *at = strstr(parameters, name);
    return at ? atoi(at + strlen(name)) : 1;
}

static inline tilus_status write_artefact(const FakeProgram *p, const FakeCompiler *c,
                                          const char *name, const char *parameters,
                                          const char *target, void **bytes, size_t *size)
{
    int tiles = number_of(parameters, " TILES=");
    const tilus_code x = A((int64_t)p->x);
    tilus_code y[6];
    tilus_arg_info args[ARGUMENTS_MAX];
    char text[1024];
    size_t count = 0, at = (size_t)snprintf(text, sizeof text, ".entry %s(", name);
    for (; p->arguments[count]; count++) {
        bool pointer = count < p->pointers;
        const char *argument = c->argument && !count ? c->argument : p->arguments[count];
        args[count] = (tilus_arg_info){
            argument, pointer ? TILUS_ARG_POINTER : TILUS_ARG_I32, pointer ? "u32" : "i32", 1,
            INT32_MIN, INT32_MAX, pointer ? 16 : 1};
        at += (size_t)snprintf(text + at, sizeof text - at, ".param .u%d %s ",
                               pointer ? 64 : 32, argument);
    }
    memcpy(y, p->y, sizeof y);
    for (size_t i = 0; i < p->y_length; i++)
        if (y[i].kind == TILUS_CODE_CONSTANT && y[i].value < 0)
            y[i].value = y[i].value == -1 ? 8 * tiles : tiles;
    const tilus_kernel_info info = {.name = name, .arg_count = count, .args = args,
                                    .grid_rank = 2, .grid_length = {1, p->y_length},
                                    .grid = {&x, y}, .threads = 32};
    const tilus_artefact artefact = {.info = &info, .target = target, .ptx_version = 80,
                                     .ptx = text, .parameters = parameters};
    return tilus_artefact_write(&artefact, bytes, size);
}

static inline tilus_status fake_compile(void *data, const char *program,
                                        const char *parameters, const char *target,
                                        void **bytes, size_t *size, char *message,
                                        size_t message_size)
{
    FakeCompiler *c = data;
    c->calls++;
    if (c->last)
        snprintf(c->last, MATMUL_TEXT_MAX, "%s", parameters);
    snprintf(message, message_size, "out of memory");
    if (c->refuse) {
        snprintf(message, message_size, "%s", c->refuse);
        return TILUS_ERROR_PROGRAM;
    }
    for (size_t i = 0; i < COUNT(fake_programs); i++)
        if (!strcmp(fake_programs[i].name, program))
            return write_artefact(&fake_programs[i], c, c->program ? c->program : program,
                                  c->parameters ? c->parameters : parameters, target, bytes,
                                  size);
    return TILUS_ERROR_INTERNAL;
}

/* A call whose addresses are good, and that nobody reads or writes. */
static inline tilus_matmul_call call_for(const tilus_matmul_plan *plan, int64_t m)
{
    return (tilus_matmul_call){
        .struct_size = sizeof(tilus_matmul_call),
        .m = m, .a = 0x10000, .weights = 0x20000, .bias = plan->spec.bias ? 0x30000 : 0,
        .residual = plan->spec.residual ? 0x40000 : 0, .c = 0x50000, .workspace = 0x100000,
        .workspace_size = tilus_matmul_workspace_size(plan, m)};
}

#endif
