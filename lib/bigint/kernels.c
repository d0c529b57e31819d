/* The table of kernels. */
#include "bigint/internal.h"

#include <stdio.h>
#include <string.h>

const char *const bigint_targets[BIGINT_TARGETS] = {"sm_80", "sm_90a"};

const char *bigint_target(int capability)
{
    return bigint_targets[capability == 90];
}

static const struct {
    const char *name;
    size_t count;
    const char *arguments[BIGINT_ARGUMENTS_MAX];    /* that launches give it, in order */
} programs[] = {
    [BIGINT_PRODUCT] = {"product", 8,
                        {"a", "b", "c", "overflows", "firsts", "batch", "na", "nb"}},
    [BIGINT_CARRY] = {"carry", 5, {"c", "overflows", "firsts", "batch", "nc"}},
    [BIGINT_SPREAD] = {"spread", 5, {"a", "x", "batch", "n", "l"}},
    [BIGINT_FORWARD] = {"forward", 5, {"x", "table", "points", "inner", "unit"}},
    [BIGINT_BACKWARD] = {"backward", 7,
                         {"x", "y", "table", "points", "inner", "unit", "scale"}},
    [BIGINT_GATHER] = {"gather", 7, {"x", "c", "overflows", "firsts", "batch", "n", "l"}},
};

static const struct {
    int bytes;                  /* of the product, M * B */
    const char *parameters;
} tiles[BIGINT_TILES + 1] = {
    {512, "M=16 B=32 CHUNKS=17"}, {1024, "M=16 B=64"}, {2048, "M=32 B=64 WARPS_M=2 CHUNKS=17"},
    {4096, "M=64 B=64 WARPS_M=4 CHUNKS=33"},
    {8192, "M=64 B=128 WARPS_M=2 WARPS_N=2 CHUNKS=17"},
    [BIGINT_SQUARE] = {BIGINT_SMALL, "M=16 B=64 SQUARE=1"}
};

int bigint_tile_bytes(int tile)
{
    return tiles[tile].bytes;
}

static const char *const radices[BIGINT_RADICES] = {
    "R1=8 R2=8", "R1=8 R2=16", "R1=16 R2=16", "R1=16 R2=32"
};

static void pass_row(int i, Kernel *k)
{
    int radix = i / 2, last = i % 2;
    snprintf(k->name, sizeof k->name, "bigint_%s_%d%s", programs[k->number].name,
             1 << (BIGINT_RADIX_MIN + radix), last ? "_last" : "");
    snprintf(k->parameters, sizeof k->parameters, "%s LAST=%d", radices[radix], last);
}

static void byte_row(int i, int first, BigintProgram program, Kernel *k)
{
    int loose = (i - first) % 2, small = (i - first) / 2;
    k->number = program;
    snprintf(k->name, sizeof k->name, "bigint_%s%s%s", programs[program].name,
             small ? "_small" : "", loose ? "_loose" : "");
    snprintf(k->parameters, sizeof k->parameters, "PART=%d DIVISOR=%d",
             small ? BIGINT_SMALL : BIGINT_PART, loose ? 1 : 16);
}

static void product_row(int i, Kernel *k)
{
    int tile = i / 2, loose = i % 2;
    k->number = BIGINT_PRODUCT;
    snprintf(k->name, sizeof k->name, "bigint_%s_%d%s",
             tile == BIGINT_SQUARE ? "square" : "product", tiles[tile].bytes,
             loose ? "_loose" : "");
    snprintf(k->parameters, sizeof k->parameters, "%s DIVISOR=%d", tiles[tile].parameters,
             loose ? 1 : 16);
}

/* Writes the number of the program, the parameters, and the name without a target. */
static void write_row(int i, Kernel *k)
{
    if (i < BIGINT_K_CARRY) {
        product_row(i, k);
    } else if (i < BIGINT_K_SPREAD) {
        byte_row(i, BIGINT_K_CARRY, BIGINT_CARRY, k);
    } else if (i < BIGINT_K_GATHER) {
        byte_row(i, BIGINT_K_SPREAD, BIGINT_SPREAD, k);
    } else if (i < BIGINT_K_FORWARD) {
        byte_row(i, BIGINT_K_GATHER, BIGINT_GATHER, k);
    } else {
        bool back = i >= BIGINT_K_BACKWARD;
        k->number = back ? BIGINT_BACKWARD : BIGINT_FORWARD;
        pass_row(i - (back ? BIGINT_K_BACKWARD : BIGINT_K_FORWARD), k);
    }
}

void bigint_kernel(int i, const char *target, Kernel *k)
{
    *k = (Kernel){.target = target};
    write_row(i, k);
    k->program = programs[k->number].name;
    size_t length = strlen(k->name);
    snprintf(k->name + length, sizeof k->name - length, "_%s", target);
}

tilus_status bigint_check(Kernel *kernel, const tilus_kernel_info *info)
{
    size_t count = programs[kernel->number].count;
    bool same = argument_order_find(programs[kernel->number].arguments, count, info,
                                    &kernel->order) && kernel->order.count == count;
    for (size_t i = 0; same && i < count; i++)
        same = kernel->order.numbers[i] == i;
    if (same)
        return TILUS_OK;
    return library_fail(TILUS_ERROR_ARTEFACT, "the artefact %s takes other arguments than this "
                        "library gives: it is of another version", kernel->name);
}
