/* The trials: the matrix of all types, groups and zero points, and others beside the matrix. */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names -------------------------------------------------------------------- */

static const char *const zero_names[] = {"no zeros", "integer zeros", "float zeros"};
static const char *const function_names[] = {"", ", silu", ", gelu"};

/* Names a trial of the matrix: "u4 x f16, group 128, no zeros". */
static void name_problem(const tilus_matmul_problem *p, char name[static NAME_MAX_BYTES])
{
    char group[24] = "k";
    if (p->group)
        snprintf(group, sizeof group, "%" PRId64, p->group);
    snprintf(name, NAME_MAX_BYTES, "%s x %s, group %s, %s", p->weights, p->activations, group,
             zero_names[p->zeros]);
}

/* Names a trial beside the matrix: "epilogues: u4 x f16 to f32, 70 x 256, group 128, no zeros,
 * silu". */
static void name_other(const char *what, const tilus_matmul_problem *p,
                       char name[static NAME_MAX_BYTES])
{
    MatmulSpec s;
    char message[8], problem[NAME_MAX_BYTES];
    matmul_spec(p, &s, message, sizeof message);
    name_problem(p, problem);
    const char *rest = strchr(problem, ',');
    char experts[32] = "";
    if (p->experts)
        snprintf(experts, sizeof experts, ", %" PRId64 " experts", p->experts);
    snprintf(name, NAME_MAX_BYTES, "%s: %s x %s%s%s to %s, %" PRId64 " x %" PRId64 "%s%s%s%s%s%s",
             what, p->weights, p->activations, p->product ? " as " : "",
             p->product ? p->product : "", dtype_name(s.result), p->n, p->k, rest,
             function_names[p->function], p->gated ? ", gated" : "", p->bias ? ", bias" : "",
             p->residual ? ", residual" : "", experts);
}

void trial_case_name(const Trial *trial, size_t size, char name[static NAME_MAX_BYTES])
{
    snprintf(name, NAME_MAX_BYTES, "%.*s, m = %" PRId64, NAME_MAX_BYTES - 16, trial->name,
             trial->sizes[size]);
}

/* ---- the matrix --------------------------------------------------------------- */

static Trial *add_trial(Trials *t)
{
    if (t->count == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 1024;
        Trial *items = realloc(t->items, capacity * sizeof *items);
        if (!items)
            return NULL;
        t->items = items;
        t->capacity = capacity;
    }
    t->items[t->count] = (Trial){0};
    return &t->items[t->count++];
}

static void use_shape(Trial *trial, const Shape *shape)
{
    trial->problem.n = shape->n;
    trial->problem.k = shape->k;
    trial->problem.n_tile = shape->configs->rows;
    trial->configs = shape->configs->rows ? shape->configs : NULL;
}

/* Returns true when the library takes the problem. Weights that f16 cannot hold have scales of
 * bf16, which bring them to ordinary sizes. */
static bool is_problem(tilus_matmul_problem *p)
{
    MatmulSpec spec;
    char message[8];
    if (!matmul_spec(p, &spec, message, sizeof message))
        return false;
    p->scales = dtype_name(spec.product == DTYPE_bf16 ? DTYPE_bf16 : spec.scales);
    return true;
}

static bool add_problem(Trials *trials, tilus_matmul_problem problem)
{
    size_t number = trials->count;
    problem.n = problem.k = MATMUL_PACKED_K;
    if (!is_problem(&problem))
        return true;
    Trial *t = add_trial(trials);
    if (!t)
        return false;
    t->problem = problem;
    use_shape(t, &shapes[number % shape_count]);
    memcpy(t->sizes, shape_sizes, sizeof t->sizes);
    t->size_count = SIZES;
    t->transposed = number / shape_count % 2;
    name_problem(&t->problem, t->name);
    return true;
}

/* Adds every type that the library takes. */
static bool add_matrix(Trials *trials)
{
    static const char *const activations[] = {"f16", "bf16"};
    static const int64_t groups[] = {32, 64, 128, 0};
    bool ok = true;
    for (DType type = DTYPE_none + 1; type < DTYPE_COUNT; type++)
        for (size_t a = 0; a < COUNT(activations); a++)
            for (int zeros = TILUS_ZEROS_NONE; zeros <= TILUS_ZEROS_FLOAT; zeros++)
                for (size_t g = 0; g < COUNT(groups); g++)
                    ok = ok && add_problem(trials, (tilus_matmul_problem){
                        .weights = dtype_name(type), .activations = activations[a],
                        .group = groups[g], .zeros = (tilus_zeros)zeros});
    return ok;
}

/* ---- what is beside it -------------------------------------------------------- */

#define NONE    TILUS_ZEROS_NONE
#define INTEGER TILUS_ZEROS_INTEGER
#define FLOAT   TILUS_ZEROS_FLOAT
#define PLAIN   TILUS_EPILOGUE_NONE
#define SILU    TILUS_EPILOGUE_SILU
#define GELU    TILUS_EPILOGUE_GELU

/* Configurations by wgmma, for the buckets of shape_sizes: scales on sums and on weights. */
static const MatmulConfig on_sums[SIZES] = {
    {32, 8, 1, 1, 2, 8, 2, 3, 0, 1, 0, 1}, {32, 8, 1, 1, 3, 8, 2, 3, 0, 1, 0, 1},
    {32, 8, 1, 1, 4, 8, 2, 3, 0, 1, 0, 1}, {32, 8, 1, 1, 3, 8, 8, 3, 0, 1, 0, 1},
    {32, 8, 1, 1, 4, 8, 8, 3, 0, 1, 0, 1}};
static const MatmulConfig on_weights[SIZES] = {
    {64, 4, 1, 1, 2, 8, 2, 3, 1, 1, 0, 1}, {64, 4, 1, 1, 3, 8, 2, 3, 1, 1, 0, 1},
    {64, 4, 1, 1, 4, 8, 4, 3, 1, 1, 0, 1}, {64, 4, 1, 1, 3, 8, 8, 3, 1, 1, 0, 1},
    {64, 4, 1, 1, 2, 8, 16, 3, 1, 1, 0, 1}};

/* Configurations by wgmma with single fragments, for buckets of 256, 512, .. rows. */
static const MatmulConfig on_fragments[SIZES] = {
    {64, 2, 1, 1, 4, 8, 32, 3, 1, 1, 0, 1}, {64, 2, 1, 1, 3, 8, 24, 3, 1, 1, 0, 1},
    {64, 2, 1, 1, 2, 8, 32, 3, 1, 1, 0, 1}, {64, 2, 1, 1, 4, 8, 24, 3, 1, 1, 0, 1},
    {64, 2, 1, 1, 3, 8, 32, 3, 1, 1, 0, 1}};

/* Configurations of clusters whose blocks have parts of k, for both. */
static const MatmulConfig sums_in_parts[SIZES] = {
    {32, 8, 5, 1, 4, 8, 2, 3, 0, 1, 0, 1}, {32, 8, 4, 1, 6, 8, 2, 3, 0, 1, 0, 1},
    {32, 8, 2, 1, 4, 8, 2, 3, 0, 1, 0, 1}, {32, 8, 3, 1, 5, 8, 6, 3, 0, 1, 0, 1},
    {32, 8, 5, 1, 4, 8, 8, 3, 0, 1, 0, 1}};
static const MatmulConfig weights_in_parts[SIZES] = {
    {64, 4, 2, 1, 4, 8, 2, 3, 1, 1, 0, 1}, {64, 2, 3, 1, 2, 8, 2, 3, 1, 1, 0, 1},
    {64, 2, 2, 1, 3, 8, 4, 3, 1, 1, 0, 1}, {64, 4, 3, 1, 4, 8, 8, 3, 1, 1, 0, 1},
    {64, 2, 3, 1, 4, 8, 16, 3, 1, 1, 0, 1}};
static const MatmulConfig many_in_parts[SIZES] = {
    {64, 2, 3, 1, 4, 8, 32, 3, 1, 1, 0, 1}, {64, 2, 2, 1, 3, 8, 24, 3, 1, 1, 0, 1},
    {64, 2, 2, 1, 2, 8, 32, 3, 1, 1, 0, 1}, {64, 2, 3, 1, 4, 8, 24, 3, 1, 1, 0, 1},
    {64, 2, 2, 1, 3, 8, 32, 3, 1, 1, 0, 1}};

static const struct Other {
    const char *what;
    Trial trial;
} others[] = {
#define A(w, a, g, z) .problem = {.weights = w, .activations = a, .n = 264, .k = 512,         \
                                  .group = g, .zeros = z}, .sizes = {2, 3, 16, 33, 128}
    {"activations", {A("u4", "i8", 128, NONE)}},
    {"activations", {A("i4", "i8", 32, INTEGER)}},
    {"activations", {A("u8", "i8", 64, FLOAT)}},
    {"activations", {A("i2", "i8", 0, NONE)}},
    {"activations", {A("f4e2m1", "i8", 128, FLOAT)}},
    {"activations", {A("u4", "f8e4m3", 128, INTEGER)}},
    {"activations", {A("i6", "f8e4m3", 32, NONE)}},
    {"activations", {A("f8e4m3", "f8e4m3", 64, NONE)}},
    {"activations", {A("f6e3m2", "f8e5m2", 128, FLOAT)}},
    {"activations", {A("u1", "f8e5m2", 0, INTEGER)}},
#undef A
#define R(w, a, s, c) .problem = {.weights = w, .activations = a, .scales = s, .result = c,   \
                                  .n = 267, .k = 384, .group = 128, .zeros = INTEGER},        \
                      .sizes = {2, 16, 33}
    {"results", {R("u4", "f16", "f16", "f32")}},
    {"results", {R("u4", "f16", "f16", "bf16")}},
    {"results", {R("i5", "f16", "bf16", "f16")}},
    {"results", {R("u8", "bf16", "bf16", "f32")}},
    {"results", {R("u3", "bf16", "f16", "f16")}},
    {"results", {R("i8", "i8", "f16", "f32")}},
#undef R
#define E(c, f, b, r) .problem = {.weights = "u4", .activations = "f16", .result = c,         \
                                  .n = 270, .k = 512, .group = 128, .function = f,            \
                                  .bias = b, .residual = r}, .sizes = {1, 16, 33}
    {"epilogues", {E("f16", PLAIN, true, false)}},
    {"epilogues", {E("f16", PLAIN, false, true)}},
    {"epilogues", {E("f32", PLAIN, true, true)}},
    {"epilogues", {E("f16", SILU, false, false)}},
    {"epilogues", {E("f32", SILU, true, false)}},
    {"epilogues", {E("bf16", SILU, true, true)}},
    {"epilogues", {E("f16", GELU, false, true)}},
    {"epilogues", {E("f32", GELU, false, false)}},
    {"epilogues", {E("f16", GELU, true, true)}},
#undef E
#define O(w, n_, k_, g, z, stride) .problem = {.weights = w, .activations = "f16", .n = n_,   \
                                               .k = k_, .group = g, .zeros = z},              \
                                   .a_stride = stride, .sizes = {1, 3, 16, 33}
    {"odd sizes", {O("u4", 65, 250, 128, NONE, 307)}},
    {"odd sizes", {O("i3", 1, 1, 32, INTEGER, 0), .transposed = true}},
    {"odd sizes", {O("f6e3m2", 300, 515, 64, FLOAT, 515)}},
    {"odd sizes", {O("u8", 129, 1000, 0, NONE, 1008), .transposed = true}},
    {"odd sizes", {O("u2", 33, 392, 256, INTEGER, 0), .transposed = true}},
    {"large groups", {O("u4", 136, 768, 256, INTEGER, 0)}},
    {"large groups", {O("i7", 264, 768, 384, NONE, 896), .transposed = true}},
    {"large groups", {O("f5e2m2", 200, 900, 512, FLOAT, 0), .transposed = true}},
#undef O
#define P(w, a, g, z, n_by_k) .problem = {.weights = w, .activations = a, .n = 300, .k = 450, \
                                          .group = g, .zeros = z}, .transposed = n_by_k,      \
                              .packing = PACK_DEVICE, .sizes = {3}
    {"packing on the device", {P("u1", "f16", 128, INTEGER, false)}},
    {"packing on the device", {P("i2", "bf16", 32, FLOAT, true)}},
    {"packing on the device", {P("u3", "f16", 64, INTEGER, false)}},
    {"packing on the device", {P("f4e2m1", "f16", 128, FLOAT, true)}},
    {"packing on the device", {P("i5", "f16", 0, INTEGER, false)}},
    {"packing on the device", {P("f6e5m0", "bf16", 256, NONE, true)}},
    {"packing on the device", {P("u7", "f16", 128, FLOAT, false)}},
    {"packing on the device", {P("i8", "f16", 64, INTEGER, true)}},
    {"packing on the device", {P("u4", "f16", 384, INTEGER, false)}},
    {"packing on the device", {P("f8e5m2", "f16", 0, FLOAT, true)}},
    {"packing on the device", {P("f3e1m1", "f16", 128, NONE, true)}},
    {"packing on the device", {P("f5e1m3", "bf16", 64, FLOAT, false)}},
#undef P
#define S(w, g, z, n_, n0, nw, k_, k0, kw) .problem = {.weights = w, .activations = "f16",    \
                                 .n = n_, .k = k_, .group = g, .zeros = z, .n_tile = 64},     \
                           .packing = PACK_PART, .n_first = n0, .n_whole = nw, .k_first = k0, \
                           .k_whole = kw, .sizes = {1, 16}
    {"parts", {S("u4", 128, INTEGER, 192, 64, 392, 768, 0, 768)}},
    {"parts", {S("i6", 64, INTEGER, 392, 0, 392, 384, 128, 768)}},
    {"parts", {S("f5e2m2", 256, FLOAT, 136, 256, 392, 512, 256, 768), .transposed = true}},
    {"parts", {S("u1", 0, FLOAT, 128, 128, 300, 512, 0, 512), .transposed = true}},
    {"parts", {S("f6e1m4", 128, FLOAT, 136, 64, 200, 384, 0, 384)}},
#undef S
#define M(w, a, c, z, b, d) .problem = {.weights = w, .activations = a, .result = c, .n = 136,   \
                                     .k = 256, .group = 128, .zeros = z, .bias = b},          \
                         .sizes = {257, 4096}, .dense = d
    {"many rows by cuBLAS", {M("u4", "f16", "f16", INTEGER, false, true)}},
    {"many rows by cuBLAS", {M("i3", "bf16", "bf16", NONE, false, true)}},
    {"many rows by cuBLAS", {M("f6e3m2", "f16", "f32", FLOAT, false, true)}},
    {"many rows by cuBLAS", {M("u8", "f16", "f16", NONE, false, true)}},
    {"many rows by cuBLAS", {M("f7e6m0", "bf16", "bf16", NONE, false, true)}},
    {"many rows by cuBLAS", {M("f7e1m5", "f16", "f16", FLOAT, false, true)}},
    {"many rows", {M("u4", "f16", "f16", INTEGER, true, false)}},
    {"many rows", {M("f8e5m2", "f16", "f16", FLOAT, false, false)}},
    {"many rows", {M("i8", "bf16", "bf16", NONE, true, false)}},
#undef M
#define SUMS(w, a, g, n_, c) .problem = {.weights = w, .activations = a, .n = n_, .k = 640,      \
                                      .group = g, .n_tile = 32},                                 \
                          .configs = c, .sizes = {3, 16, 33, 128}
#define WEIGHTS(w, a, g, z, n_, f, c) .problem = {.weights = w, .activations = a, .n = n_, .k = 384, \
                                               .group = g, .zeros = z, .function = f,            \
                                               .bias = f != PLAIN, .residual = f != PLAIN,       \
                                               .n_tile = 64},                                    \
                                   .configs = c, .sizes = {3, 16, 33, 128}
    {"by wgmma", {SUMS("f4e2m1", "f16", 128, 520, on_sums)}},
    {"by wgmma", {SUMS("f6e3m2", "bf16", 0, 264, on_sums)}},
    {"by wgmma", {SUMS("f8e4m3", "f16", 256, 267, on_sums)}},
    {"by wgmma", {SUMS("f5e2m2", "i8", 128, 264, on_sums)}},
    {"by wgmma", {WEIGHTS("u1", "f16", 128, INTEGER, 264, PLAIN, on_weights)}},
    {"by wgmma", {WEIGHTS("u2", "bf16", 64, FLOAT, 520, PLAIN, on_weights)}},
    {"by wgmma", {WEIGHTS("i3", "f16", 128, NONE, 264, SILU, on_weights)}},
    {"by wgmma", {WEIGHTS("u4", "f16", 32, INTEGER, 264, PLAIN, on_weights)}},
    {"by wgmma", {WEIGHTS("i5", "f16", 0, INTEGER, 267, GELU, on_weights)}},
    {"by wgmma", {WEIGHTS("u6", "f8e4m3", 128, NONE, 264, PLAIN, on_weights)}},
    {"by wgmma", {WEIGHTS("i7", "bf16", 0, NONE, 264, PLAIN, on_weights)}},
    {"by wgmma", {WEIGHTS("u8", "f16", 384, INTEGER, 264, SILU, on_weights)}},
    {"by wgmma", {WEIGHTS("f3e1m1", "f16", 128, FLOAT, 264, PLAIN, on_weights)}},
    {"by wgmma", {WEIGHTS("f8e5m2", "f16", 64, NONE, 267, PLAIN, on_weights)}},
    {"by wgmma", {WEIGHTS("u4", "bf16", 128, NONE, 264, PLAIN, on_weights), .a_stride = 648}},
    {"by wgmma", {WEIGHTS("u5", "f16", 128, NONE, 264, PLAIN, on_weights), .a_stride = 645}},
    {"parts of k", {SUMS("u4", "f16", 128, 520, sums_in_parts)}},
    {"parts of k", {SUMS("f8e4m3", "bf16", 0, 267, sums_in_parts)}},
    {"parts of k", {WEIGHTS("u1", "f16", 128, INTEGER, 264, PLAIN, weights_in_parts)}},
    {"parts of k", {WEIGHTS("i3", "bf16", 64, FLOAT, 520, SILU, weights_in_parts)}},
    {"parts of k", {WEIGHTS("u4", "f16", 128, NONE, 264, PLAIN, weights_in_parts), .a_stride = 648}},
    {"parts of k", {WEIGHTS("f4e2m1", "f16", 16, NONE, 264, GELU, weights_in_parts)}},
    {"parts of k", {WEIGHTS("u7", "f16", 0, INTEGER, 267, PLAIN, weights_in_parts)}},
    {"parts of k", {WEIGHTS("u8", "f8e4m3", 32, NONE, 264, PLAIN, weights_in_parts)}},
#undef SUMS
#undef WEIGHTS
#define SINGLE(w, a, g, z, n_, f, c) .problem = {.weights = w, .activations = a, .n = n_, .k = 384, \
                                              .group = g, .zeros = z, .function = f,           \
                                              .bias = f != PLAIN, .residual = f != PLAIN,      \
                                              .n_tile = 64},                                   \
                                  .configs = c, .sizes = {129, 200, 257, 1000}
    {"single fragments", {SINGLE("u1", "f16", 128, INTEGER, 264, PLAIN, on_fragments)}},
    {"single fragments", {SINGLE("u2", "bf16", 64, FLOAT, 392, PLAIN, on_fragments)}},
    {"single fragments", {SINGLE("i3", "f16", 128, NONE, 136, SILU, on_fragments)}},
    {"single fragments", {SINGLE("u4", "f16", 32, INTEGER, 264, PLAIN, on_fragments)}},
    {"single fragments", {SINGLE("u4", "f16", 128, NONE, 264, PLAIN, on_fragments)}},
    {"single fragments", {SINGLE("i4", "f16", 128, NONE, 264, PLAIN, on_fragments)}},
    {"single fragments", {SINGLE("u6", "f16", 128, NONE, 264, PLAIN, on_fragments), .a_stride = 392}},
    {"single fragments", {SINGLE("f4e2m1", "f16", 16, NONE, 264, PLAIN, on_fragments)}},
    {"single fragments", {SINGLE("i5", "f16", 0, INTEGER, 267, GELU, on_fragments)}},
    {"single fragments", {SINGLE("u6", "f8e4m3", 128, INTEGER, 264, PLAIN, on_fragments)}},
    {"single fragments", {SINGLE("f6e3m2", "bf16", 0, NONE, 264, PLAIN, on_fragments)}},
    {"single fragments", {SINGLE("i7", "bf16", 0, NONE, 264, PLAIN, on_fragments)}},
    {"single fragments", {SINGLE("u8", "f16", 384, INTEGER, 264, SILU, on_fragments)}},
    {"single fragments", {SINGLE("f3e1m1", "f16", 128, FLOAT, 264, PLAIN, on_fragments)}},
    {"single fragments", {SINGLE("f8e4m3", "f16", 128, NONE, 264, PLAIN, on_fragments)}},
    {"single fragments", {SINGLE("f8e5m2", "f16", 64, NONE, 267, PLAIN, on_fragments)}},
    {"parts of k", {SINGLE("u2", "f16", 128, FLOAT, 264, PLAIN, many_in_parts)}},
    {"parts of k", {SINGLE("i4", "bf16", 32, INTEGER, 392, SILU, many_in_parts)}},
    {"parts of k", {SINGLE("f6e3m2", "f16", 0, NONE, 267, PLAIN, many_in_parts)}},
    {"parts of k", {SINGLE("u8", "f16", 128, NONE, 264, GELU, many_in_parts)}},
#undef SINGLE
#define BYTES(w, a, p, g, n_, k_) .problem = {.weights = w, .activations = a, .product = p, \
                                              .n = n_, .k = k_, .group = g}, .sizes = {1, 16, 33, 128}
    {"of bytes", {BYTES("u1", "f16", "i8", 128, 264, 384)}},
    {"of bytes", {BYTES("i2", "i8", "i8", 0, 264, 640)}},
    {"of bytes", {BYTES("u3", "f16", "f8e4m3", 64, 267, 384), .transposed = true}},
    {"of bytes", {BYTES("u4", "f16", "f8e4m3", 128, 520, 640)}},
    {"of bytes", {BYTES("i4", "bf16", "i8", 256, 264, 600), .transposed = true}},
    {"of bytes", {BYTES("f4e2m1", "f8e4m3", "f8e4m3", 32, 264, 384)}},
    {"of bytes", {BYTES("f4e1m2", "i8", "i8", 128, 264, 384), .packing = PACK_DEVICE}},
    {"of bytes", {BYTES("i5", "f16", "i8", 64, 136, 397), .a_stride = 405}},
    {"of bytes", {BYTES("f6e3m2", "f8e4m3", "f8e4m3", 0, 264, 250), .packing = PACK_DEVICE}},
    {"of bytes", {BYTES("u7", "i8", "i8", 128, 264, 384), .packing = PACK_DEVICE}},
    {"of bytes", {BYTES("u8", "f16", "i8", 32, 264, 384), .transposed = true}},
    {"of bytes", {BYTES("i8", "i8", "i8", 128, 264, 384), .a_stride = 416}},
    {"of bytes", {BYTES("f7e4m2", "bf16", "f8e4m3", 128, 264, 384), .transposed = true,
                  .packing = PACK_DEVICE}},
    {"of bytes", {BYTES("f8e4m3", "f8e4m3", "f8e4m3", 0, 264, 384)}},
#undef BYTES
#define B(w, a, p, f, c) .problem = {.weights = w, .activations = a, .product = p, .result = c, \
                                     .n = 264, .k = 256, .group = 128, .function = f,           \
                                     .bias = true, .residual = true}, .sizes = {5, 70}
    {"of bytes", {B("u4", "f16", "f8e4m3", SILU, "f16")}},
    {"of bytes", {B("i4", "i8", "i8", GELU, "f32")}},
    {"of bytes", {B("u2", "bf16", "i8", PLAIN, "bf16")}},
#undef B
#define Z(w, a, p, g, n_, k_) .problem = {.weights = w, .activations = a, .product = p, .n = n_,    \
                                          .k = k_, .group = g, .zeros = INTEGER}, .sizes = {1, 16, 33, 128}
    {"of bytes", {Z("u4", "f16", "i8", 128, 264, 640)}},
    {"of bytes", {Z("u4", "f16", "f8e4m3", 128, 264, 640), .transposed = true}},
    {"of bytes", {Z("i4", "i8", "i8", 32, 264, 384), .packing = PACK_DEVICE}},
    {"of bytes", {Z("u7", "bf16", "i8", 64, 136, 397), .a_stride = 405}},
    {"of bytes", {Z("u3", "f8e4m3", "f8e4m3", 0, 267, 384), .packing = PACK_DEVICE}},
    {"of bytes", {Z("i7", "i8", "i8", 256, 264, 600), .transposed = true}},
    {"of bytes", {Z("u1", "f16", "i8", 0, 264, 384)}},
    {"of bytes", {Z("u2", "bf16", "f8e4m3", 32, 264, 500)}},
#undef Z
    {"odd groups", {.problem = {.weights = "u4", .activations = "f16", .n = 267, .k = 640, .group = 96,
                                .zeros = INTEGER}, .sizes = {1, 16, 33}}},
    {"odd groups", {.problem = {.weights = "f6e3m2", .activations = "bf16", .n = 100, .k = 600,
                                .group = 160, .zeros = FLOAT}, .sizes = {3, 16},
                    .packing = PACK_DEVICE, .transposed = true}},
    {"odd groups", {.problem = {.weights = "u8", .activations = "f16", .n = 264, .k = 500,
                                .group = 192, .n_tile = 64}, .sizes = {16, 128},
                    .configs = on_weights}},
    {"odd groups", {.problem = {.weights = "u2", .activations = "f16", .product = "i8", .n = 264,
                                .k = 500, .group = 96}, .sizes = {16, 70}}},
#define G(w, a, g, z, k_) .problem = {.weights = w, .activations = a, .n = 264, .k = k_, .group = g, \
                                      .zeros = z}, .sizes = {1, 3, 16, 33, 128}
    {"odd groups", {G("u4", "f16", 16, INTEGER, 512)}},
    {"odd groups", {G("f4e2m1", "f16", 16, NONE, 512), .configs = on_weights}},
    {"odd groups", {G("i3", "bf16", 16, FLOAT, 509), .packing = PACK_DEVICE}},
    {"odd groups", {G("f6e3m2", "f16", 48, FLOAT, 512), .transposed = true}},
    {"odd groups", {G("u1", "f16", 80, INTEGER, 640)}},
    {"odd groups", {G("f8e4m3", "f8e5m2", 112, NONE, 640), .packing = PACK_DEVICE}},
    {"odd groups", {G("i8", "f16", 16, NONE, 384), .configs = on_weights, .transposed = true}},
#undef G
#define F(w, a, g, k_, f, b, r) .problem = {.weights = w, .activations = a, .scales = "f8e4m3", .n = 264, \
                                            .k = k_, .group = g, .function = f, .bias = b,               \
                                            .residual = r}, .sizes = {1, 3, 16, 33, 128}
    {"nvfp4", {F("f4e2m1", "f16", 16, 512, PLAIN, false, false)}},
    {"nvfp4", {F("f4e2m1", "bf16", 16, 512, SILU, true, true), .transposed = true}},
    {"nvfp4", {F("f4e2m1", "f16", 16, 500, GELU, true, true), .packing = PACK_DEVICE}},
    {"nvfp4", {F("f4e2m1", "bf16", 16, 384, PLAIN, true, false), .configs = on_weights}},
    {"nvfp4", {F("f4e2m1", "f16", 16, 384, SILU, false, false), .configs = on_weights}},
    {"scales of 8 bits", {F("f8e4m3", "f16", 16, 384, PLAIN, false, false)}},
    {"scales of 8 bits", {F("f6e3m2", "f16", 32, 256, PLAIN, false, false), .configs = on_weights}},
    {"scales of 8 bits", {F("f5e1m3", "f16", 16, 256, PLAIN, false, false), .packing = PACK_DEVICE}},
    {"scales of 8 bits", {F("i4", "f16", 128, 512, PLAIN, false, false)}},
    {"scales of 8 bits", {F("u3", "f16", 32, 640, SILU, true, false), .transposed = true,
                          .packing = PACK_DEVICE}},
    {"scales of 8 bits", {F("f6e2m3", "bf16", 128, 640, PLAIN, false, false), .configs = on_sums}},
    {"scales of 8 bits", {F("i8", "f16", 48, 450, PLAIN, false, true)}},
#undef F
#define X(w, a, g, z, e, f, b) .problem = {.weights = w, .activations = a, .n = 264,                    \
                                              .k = 384, .group = g, .zeros = z, .experts = e,        \
                                              .function = f, .bias = b, .residual = b},              \
                                  .sizes = {1, 16, 33, 128, 600}
    {"experts", {X("u4", "f16", 128, NONE, 8, PLAIN, false)}},
    {"experts", {X("u4", "f16", 16, INTEGER, 4, PLAIN, false)}},
    {"experts", {X("f4e2m1", "bf16", 32, NONE, 5, PLAIN, true)}},
    {"experts", {X("i3", "f16", 64, FLOAT, 4, SILU, false), .transposed = true}},
    {"experts", {X("u8", "bf16", 128, INTEGER, 2, GELU, true)}},
#define FEW(w, a, g, z, k_, e, f, b) .problem = {.weights = w, .activations = a, .n = 264, .k = k_,       \
                                                 .group = g, .zeros = z, .experts = e, .top = e ? 8 : 0,   \
                                                 .function = f, .bias = b, .residual = b}, .sizes = {e ? 8 : 1}
    {"few rows", {FEW("u4", "f16", 128, NONE, 1024, 40, PLAIN, false)}},
    {"few rows", {FEW("u4", "f16", 32, INTEGER, 768, 4, SILU, true)}},
    {"few rows", {FEW("f4e2m1", "bf16", 32, NONE, 1440, 5, PLAIN, true)}},
    {"few rows", {FEW("i3", "f16", 64, FLOAT, 1152, 4, SILU, false), .transposed = true}},
    {"few rows", {FEW("u8", "bf16", 64, INTEGER, 2048, 2, GELU, true)}},
    {"one row", {FEW("u4", "f16", 128, INTEGER, 1280, 0, PLAIN, true)}},
    {"one row", {FEW("u3", "bf16", 64, NONE, 1152, 0, SILU, false)}},
    {"one row", {FEW("i6", "f16", 32, FLOAT, 2432, 0, PLAIN, false), .packing = PACK_DEVICE}},
    {"one row", {FEW("u1", "f16", 0, INTEGER, 1664, 0, GELU, true)}},
    {"nvfp4", {.problem = {.weights = "f4e2m1", .activations = "f16", .scales = "f8e4m3", .n = 200,
                           .k = 384, .group = 16, .n_tile = 64}, .sizes = {1, 33},
               .packing = PACK_PART, .n_first = 64, .n_whole = 264, .k_first = 128, .k_whole = 512}},
#define GATED(w, a, g, z, n_, f, b) .problem = {.weights = w, .activations = a, .n = n_, .k = 512,     \
                                                .group = g, .zeros = z, .function = f, .bias = b,      \
                                                .residual = b, .gated = true}
    {"gates", {GATED("u4", "f16", 128, NONE, 336, SILU, false), .sizes = {1, 3, 16, 33, 128}}},
    {"gates", {GATED("f4e2m1", "bf16", 32, NONE, 336, SILU, true), .sizes = {1, 3, 16, 33, 128}}},
    {"gates", {GATED("i5", "f16", 0, INTEGER, 336, GELU, true), .sizes = {1, 3, 16, 33, 128}}},
    {"gates", {GATED("u1", "f16", 64, FLOAT, 336, PLAIN, false), .sizes = {1, 3, 16, 33, 128}}},
    {"gates", {GATED("u6", "bf16", 128, INTEGER, 336, SILU, true), .sizes = {1, 3, 16, 33, 128}}},
    {"gates", {GATED("u8", "f16", 128, NONE, 336, SILU, false), .sizes = {1, 3, 16, 33, 128},
               .transposed = true}},
    {"gates", {GATED("u4", "f16", 128, INTEGER, 528, SILU, true), .sizes = {3, 16, 33, 128},
               .configs = on_weights}},
    {"gates", {GATED("f6e3m2", "f16", 0, NONE, 272, GELU, false), .sizes = {3, 16, 33, 128},
               .configs = on_sums}},
    {"gates", {GATED("u4", "f16", 128, NONE, 784, SILU, false), .sizes = {129, 257, 1000},
               .configs = on_fragments}},
    {"gates", {GATED("u7", "bf16", 128, NONE, 272, SILU, true), .sizes = {129, 257, 1000},
               .configs = on_fragments}},
    {"gates", {GATED("u4", "f16", 48, FLOAT, 400, SILU, false), .sizes = {3}, .packing = PACK_DEVICE}},
    {"gates", {GATED("f4e2m1", "f16", 0, FLOAT, 272, SILU, true), .sizes = {3}, .packing = PACK_DEVICE,
               .transposed = true}},
#undef GATED
    {"gates", {.problem = {.weights = "u4", .activations = "f16", .n = 256, .k = 384, .group = 128,
                           .zeros = INTEGER, .function = SILU, .bias = true, .gated = true, .n_tile = 64},
               .sizes = {1, 16}, .packing = PACK_PART, .n_first = 64, .n_whole = 528, .k_first = 128,
               .k_whole = 512}},
    {"gates", {.problem = {.weights = "f4e2m1", .activations = "f16", .scales = "f8e4m3", .n = 272, .k = 384,
                           .group = 16, .function = SILU, .gated = true}, .sizes = {1, 33, 300}}},
    {"gates", {.problem = {.weights = "u4", .activations = "f16", .n = 272, .k = 384, .group = 128,
                           .function = SILU, .gated = true, .batch_invariant = true}, .sizes = {3, 70, 300}}},
    {"gates", {.problem = {.weights = "u3", .activations = "bf16", .n = 272, .k = 384, .group = 128,
                           .function = GELU, .residual = true, .gated = true, .experts = 5},
               .sizes = {33, 600}}},
    {"gates", {.problem = {.weights = "u6", .activations = "f16", .n = 272, .k = 384, .group = 128,
                           .function = SILU, .gated = true}, .sizes = {1, 33, 257}, .a_stride = 405}},
#define GATED(w, a, p, c, x) .problem = {.weights = w, .activations = a, .product = p, .result = c, .n = 272, \
                                         .k = 384, .group = 128, .function = SILU, .bias = true,            \
                                         .gated = true, .experts = x}, .sizes = {1, 16, 33, 128, 600}
    {"gates", {GATED("u4", "f16", "f8e4m3", "f16", 0)}},
    {"gates", {GATED("i6", "i8", "i8", "f32", 0), .packing = PACK_DEVICE}},
    {"gates", {GATED("u4", "f16", NULL, "f16", 8)}},
    {"gates", {GATED("f4e2m1", "bf16", NULL, "f32", 5)}},
#undef GATED
    {"experts", {X("u4", "f16", 0, INTEGER, 3, PLAIN, false)}},
    {"experts", {X("f6e2m3", "bf16", 0, NONE, 4, SILU, true), .transposed = true}},
#undef X
#define IDS(w, a, g, z, e, t, f) .problem = {.weights = w, .activations = a, .n = 272, .k = 384, .group = g, .zeros = z, \
                                             .function = f, .experts = e, .top = t, .gather = true
#define TOKENS(t) .sizes = {t, 2 * t, 4 * t, 40 * t, 260 * t}
    {"gathered", {IDS("u4", "f16", 128, NONE, 8, 4, SILU), .gated = true}, TOKENS(4)}},
    {"gathered", {IDS("u3", "bf16", 64, FLOAT, 5, 3, PLAIN), .bias = true}, TOKENS(3)}},
    {"scattered", {IDS("f4e2m1", "f16", 32, NONE, 6, 2, PLAIN), .scatter = true}, TOKENS(2)}},
    {"scattered", {IDS("u8", "bf16", 128, INTEGER, 4, 4, GELU), .scatter = true, .residual = true}, TOKENS(4)}},
    {"combined", {IDS("u4", "f16", 128, NONE, 16, 8, PLAIN), .combine = true}, TOKENS(8)}},
    {"combined", {IDS("i4", "bf16", 32, FLOAT, 8, 4, PLAIN), .combine = true, .residual = true}, TOKENS(4)}},
    {"combined", {IDS("f4e2m1", "bf16", 32, NONE, 32, 4, PLAIN), .combine = true, .bias = true}, TOKENS(4)}},
    {"combined", {IDS("u8", "f16", 64, INTEGER, 6, 2, SILU), .combine = true, .residual = true}, TOKENS(2)}},
    {"combined", {IDS("u6", "f16", 0, NONE, 4, 3, PLAIN), .combine = true}, TOKENS(3)}},
    {"combined", {IDS("u2", "f16", 128, INTEGER, 64, 8, PLAIN), .combine = true, .residual = true, .bias = true}, TOKENS(8)}},
#undef IDS
#undef TOKENS
    {"one row", {FEW("u2", "f16", 64, INTEGER, 2048, 0, PLAIN, true), .packing = PACK_DEVICE}},
    {"one row", {FEW("u1", "bf16", 128, FLOAT, 2048, 0, SILU, false), .packing = PACK_DEVICE}},
    {"one row", {FEW("i8", "f16", 0, NONE, 1100, 0, GELU, false), .packing = PACK_DEVICE}},
    {"one row", {FEW("i4", "bf16", 32, FLOAT, 2200, 0, PLAIN, true), .packing = PACK_DEVICE}},
    {"few rows", {FEW("i2", "bf16", 128, NONE, 2048, 3, PLAIN, false)}},
#undef FEW
    {"one row", {.problem = {.weights = "i4", .activations = "i8", .scales = "f8e4m3", .n = 264, .k = 1100,
                             .group = 32, .bias = true}, .sizes = {1}, .packing = PACK_DEVICE}},
};

/* Some by the library's choice, some by those of a shape. */
static bool add_others(Trials *trials)
{
    for (size_t i = 0; i < COUNT(others); i++) {
        Trial *t = add_trial(trials);
        if (!t)
            return false;
        *t = others[i].trial;
        while (t->size_count < SIZES && t->sizes[t->size_count])
            t->size_count++;
        const Shape *shape = &shapes[i % shape_count];
        bool tuned = t->packing == PACK_HOST && !t->dense && !t->problem.experts;
        if (!t->configs && tuned && shape->configs->rows) {
            t->configs = shape->configs;
            t->problem.n_tile = shape->configs->rows;
        }
        name_other(others[i].what, &t->problem, t->name);
    }
    return true;
}

bool trials_make(Trials *trials)
{
    *trials = (Trials){0};
    if (add_matrix(trials) && add_others(trials))
        return true;
    free(trials->items);
    return false;
}

/* ---- configurations ----------------------------------------------------------- */

/* Returns the shape's configuration for the bucket of m; of tiles for more rows than those of shape_sizes the first one is for
 * the bucket behind these. */
static const MatmulConfig *config_for(const Trial *trial, int64_t m)
{
    int64_t first = matmul_bucket(shape_sizes[SIZES - 1] + 1);
    for (size_t i = 0; i < SIZES && trial->configs; i++) {
        bool many = 8 * trial->configs[i].tiles > shape_sizes[SIZES - 1];
        if ((many ? first << i : matmul_bucket(shape_sizes[i])) == matmul_bucket(m))
            return &trial->configs[i];
    }
    return NULL;
}

/* Tunings come before everything else, but one that no GPU could run is an error. */
static void add_tunings(MatmulTunings *tunings, const Trial *trial, const MatmulDevice *device)
{
    MatmulSpec spec;
    char message[8];
    if (!matmul_spec(&trial->problem, &spec, message, sizeof message))
        return;
    for (size_t i = 0; i < trial->size_count; i++) {
        int64_t m = trial->sizes[i];
        const MatmulConfig *config = config_for(trial, m);
        if (!config || matmul_is_a8(&spec) || !matmul_config_fits(&spec, config, device))
            continue;
        MatmulTuning *t = &tunings->items[tunings->count++];
        *t = (MatmulTuning){.spec = spec, .m = matmul_bucket(m), .config = *config, .us = 1};
        snprintf(t->template, sizeof t->template, "%s", matmul_template_hash());
        snprintf(t->device, sizeof t->device, "%s", device->name);
    }
}

char *trials_tunings(const Trials *trials, const MatmulDevice *device)
{
    MatmulTunings tunings = {calloc(trials->count * SIZES + 1, sizeof *tunings.items), 0};
    if (!tunings.items)
        return NULL;
    for (size_t i = 0; i < trials->count; i++)
        add_tunings(&tunings, &trials->items[i], device);
    char *text = matmul_tunings_write(&tunings);
    free(tunings.items);
    return text;
}
