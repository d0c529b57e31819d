/* Problems, and the template's parameters for them. */
#include "matmul/config.h"

#include "support/numeral.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- problems --------------------------------------------------------- */

enum { N_MAX = 1 << 20, K_MAX = 1 << 23, GROUP_STEP = 16, EXPERTS_MAX = 1024, TOP_MAX = 65536 };

typedef struct Message {
    char *data;
    size_t size;
} Message;

static bool __attribute__((format(printf, 2, 3))) fail(Message to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    numeral_vformat(to.data, to.size, format, args);
    va_end(args);
    return false;
}

static DType find_type(const char *name)
{
    return dtype_find(name, strlen(name));
}

/* `type` is the one that `name` spells, NULL being `usual`; it is in `allowed`. */
static bool choose(DType *type, const char *field, const char *name, DType usual,
                   const DType *allowed, const char *list, Message message)
{
    *type = name ? find_type(name) : usual;
    for (; *allowed != DTYPE_none; allowed++)
        if (*type == *allowed)
            return true;
    return fail(message, "%s is \"%s\", which is none of %s", field, name, list);
}

/* Chooses the type in which weights are packed. Neighbors of floats with one exponent bit are
 * all equally far apart: such floats are sign and magnitude of integers, which take one mask a
 * pair, where floats of most widths take two. Other types are packed as they are. */
static void choose_stored(MatmulSpec *s)
{
    const DTypeInfo *info = &dtype_info[s->weights];
    s->stored = s->codes = s->weights;
    bool linear = info->kind == DKIND_FLOAT && info->exponent == 1;
    if (linear) {
        const char signed_name[] = {'i', (char)('0' + info->bits), '\0'};
        s->stored = find_type(signed_name);
        s->fraction = (int)info->mantissa - 1;
    }
    if (dtype_info[s->stored].kind == DKIND_INT) {
        const char unsigned_name[] = {'u', (char)('0' + info->bits), '\0'};
        s->codes = find_type(unsigned_name);
        s->offset = 1 << (info->bits - 1);
    }
}

static bool check_weights(MatmulSpec *s, const char *name, Message message)
{
    if (!name)
        return fail(message, "weights is NULL, and has no default");
    s->weights = find_type(name);
    const DTypeInfo *info = &dtype_info[s->weights];
    if (s->weights == DTYPE_none || info->bits > 8 || info->kind == DKIND_BOOL ||
        info->special == SPECIAL_E8M0)
        return fail(message, "weights is \"%s\", which is none of u1 to u8, i1 to i8 and the "
                    "floats f3e1m1 to f8e7m0", name);
    choose_stored(s);
    return true;
}

static bool check_types(MatmulSpec *s, const tilus_matmul_problem *p, Message message)
{
    static const DType activations[] = {DTYPE_f16, DTYPE_bf16, DTYPE_f8e4m3, DTYPE_f8e5m2,
                                        DTYPE_i8, DTYPE_none};
    static const DType scales[] = {DTYPE_f16, DTYPE_bf16, DTYPE_f8e4m3, DTYPE_none};
    static const DType results[] = {DTYPE_f16, DTYPE_bf16, DTYPE_f32, DTYPE_none};
    if (!check_weights(s, p->weights, message) ||
        !choose(&s->activations, "activations", p->activations, DTYPE_f16, activations,
                "f16, bf16, f8e4m3, f8e5m2 and i8", message))
        return false;
    DType usual = s->activations == DTYPE_bf16 ? DTYPE_bf16 : DTYPE_f16;
    return choose(&s->scales, "scales", p->scales, usual, scales, "f16, bf16 and f8e4m3",
                  message) &&
           choose(&s->result, "result", p->result, matmul_has_factor(s) ? usual : s->scales,
                  results, "f16, bf16 and f32", message);
}

/* Returns true where products of f8e4m3 take the weights: their codes, at the right place of a
 * byte, are numbers of f8e4m3, times a power of two. */
static bool fits_f8e4m3(DType weights)
{
    enum { LINEAR_BITS = 4, EXPONENT = 4, MANTISSA = 3 };
    const DTypeInfo *w = &dtype_info[weights];
    return w->kind == DKIND_UINT ? w->bits <= LINEAR_BITS
                                 : w->kind == DKIND_FLOAT && w->exponent <= EXPONENT &&
                                       w->mantissa <= MANTISSA;
}

static DType unsigned_type(DType type)
{
    const char name[] = {'u', (char)('0' + dtype_bits(type)), '\0'};
    return find_type(name);
}

/* Returns true where products of 8 bits have a byte for any code less any zero point: below 128 in
 * i8, or 16 in f8e4m3, as sign and magnitude. */
static bool has_centred_bytes(const MatmulSpec *s)
{
    enum { BITS_I8 = 7, BITS_F8E4M3 = 4 };
    unsigned most = s->product == DTYPE_i8 ? BITS_I8 : BITS_F8E4M3;
    return dtype_is_integer(s->weights) && dtype_bits(s->weights) <= most;
}

/* Chooses bytes of weights less their zero points: codes at the bottom, of signed integers as of unsigned
 * ones. */
static void choose_centred_bytes(MatmulSpec *s)
{
    enum { LEAST = -9 };
    s->codes = unsigned_type(s->stored);
    s->deferred_scale = s->product == DTYPE_i8 ? 0 : LEAST;
}

/* Chooses where bytes of weights have codes: unsigned integers at the bottom, others at the top,
 * from where magnitudes of floats go down to the exponent of f8e4m3. Codes of unsigned integers
 * are subnormals of f8e4m3, or just above them, which are as far apart. */
static void choose_bytes(MatmulSpec *s)
{
    enum { BYTE = 8, EXPONENT = 4, BIAS = 7, LEAST = -9 };
    bool eight = s->product == DTYPE_f8e4m3;
    s->stored = eight ? s->weights : s->stored;
    s->fraction = eight ? 0 : s->fraction;
    const DTypeInfo *w = &dtype_info[s->stored];
    s->codes = unsigned_type(s->stored);
    s->offset = 0;
    s->place = w->kind == DKIND_UINT ? 0 : BYTE - (int)w->bits;
    s->down = w->kind == DKIND_FLOAT ? EXPONENT - (int)w->exponent : 0;
    s->deferred_scale = !eight                   ? s->place
                        : w->kind == DKIND_UINT ? LEAST
                                                 : (1 << (w->exponent - 1)) - 1 - BIAS;
}

/* Checks the product that the user asks for: 8 bits. */
static bool check_product(MatmulSpec *s, const tilus_matmul_problem *p, Message message)
{
    static const DType products[] = {DTYPE_f8e4m3, DTYPE_i8, DTYPE_none};
    if (!p->product)
        return true;
    if (!choose(&s->product, "product", p->product, DTYPE_none, products, "f8e4m3 and i8", message))
        return false;
    if (s->activations != DTYPE_f16 && s->activations != DTYPE_bf16 && s->activations != s->product)
        return fail(message, "activations is \"%s\", which products of %s do not take: f16, bf16 "
                    "or %s", p->activations, p->product, p->product);
    if (s->product == DTYPE_f8e4m3 && !fits_f8e4m3(s->weights))
        return fail(message, "weights is \"%s\", which is none of those that products of f8e4m3 "
                    "take: u1 to u4, and floats of up to 4 exponent and 3 mantissa bits",
                    p->weights);
    if (s->product == DTYPE_i8 && dtype_is_float(s->stored))
        return fail(message, "weights is \"%s\", which is none of those that products of i8 take: "
                    "integers, and floats with one exponent bit", p->weights);
    if (matmul_has_factor(s))
        return fail(message, "scales is \"%s\", which products of %s do not take: f16 or bf16",
                    p->scales, p->product);
    if (matmul_scales_weights_only(s))
        return fail(message, "group is %" PRId64 ", which products of %s do not take: multiples of 32",
                    p->group, p->product);
    const char *field = p->experts           ? "experts"
                        : p->multiply        ? "multiply"
                        : p->batch_invariant ? "batch_invariant"
                                             : NULL;
    if (s->zeros == TILUS_ZEROS_FLOAT || (s->zeros == TILUS_ZEROS_INTEGER && !has_centred_bytes(s)))
        return fail(message, "zeros is given, but products of %s take integer zero points alone, of %s",
                    p->product, s->product == DTYPE_i8 ? "u1 to u7 and i1 to i7" : "u1 to u4");
    return !field || fail(message, "%s is given, but products of %s do not take it", field,
                          p->product);
}

/* The product's type, and how far sums are scaled up there so that the small powers of two
 * that decoded weights lack stay normal in A: 2^-24 of integers beside A's 2^3, of floats
 * the distance between the biases of the exponents. bf16 has room for 2^60. Where A's range is
 * wide, A is multiplied by at most 1. */
static void choose_product(MatmulSpec *s, bool wide_range)
{
    enum { ROOM = 3 };
    if (matmul_is_a8(s)) {
        if (s->zeros == TILUS_ZEROS_NONE)
            choose_bytes(s);
        else
            choose_centred_bytes(s);
        return;
    }
    const DTypeInfo *w = &dtype_info[s->stored];
    bool wide = dtype_is_float(s->stored) && dtype_max(s->stored) > dtype_max(DTYPE_f16);
    s->product = s->activations == DTYPE_bf16 || wide ? DTYPE_bf16 : DTYPE_f16;
    int bias = w->exponent ? (1 << (w->exponent - 1)) - 1 : 0;
    s->deferred_scale = s->product == DTYPE_bf16    ? -60
                           : dtype_is_float(s->stored) ? ROOM + bias - 15
                                                       : ROOM - 24;
    s->wide_range = wide_range && s->product == DTYPE_f16;
    if (s->wide_range)
        s->deferred_scale -= ROOM;
}

/* Returns the greatest part of a group of which packed blocks have a whole number: 0, 16, 32, 64
 * or 128. */
static int packed_group(int64_t group)
{
    int part = group ? MATMUL_PACKED_K : 0;
    while (part > 0 && group % part)
        part /= 2;
    return part;
}

static bool check_sizes(MatmulSpec *s, const tilus_matmul_problem *p, Message message)
{
    if (p->n < 1 || p->n > N_MAX)
        return fail(message, "n is %lld, not 1 to %d", (long long)p->n, N_MAX);
    if (p->k < 1 || p->k > K_MAX)
        return fail(message, "k is %lld, not 1 to %d", (long long)p->k, K_MAX);
    if (p->group < 0 || p->group % GROUP_STEP)
        return fail(message, "group is %lld, not 0 or a multiple of %d", (long long)p->group,
                    GROUP_STEP);
    if (p->group > K_MAX)
        return fail(message, "group is %lld, not at most %d", (long long)p->group, K_MAX);
    if (p->a_stride != 0 && (p->a_stride < p->k || p->a_stride > MATMUL_STRIDE_MAX))
        return fail(message, "a_stride is %lld, not 0 or k, %lld, to %d", (long long)p->a_stride,
                    (long long)p->k, MATMUL_STRIDE_MAX);
    s->n = p->n;
    s->k = p->k;
    s->a_stride = p->a_stride;
    s->group = packed_group(p->group);
    s->repeats = s->group ? p->group / s->group : 1;
    return true;
}

static bool check_options(MatmulSpec *s, const tilus_matmul_problem *p, Message message)
{
    if ((unsigned)p->zeros > TILUS_ZEROS_FLOAT)
        return fail(message, "zeros is %d, not a tilus_zeros", (int)p->zeros);
    if (p->zeros == TILUS_ZEROS_INTEGER && dtype_is_float(s->weights))
        return fail(message, "zeros is TILUS_ZEROS_INTEGER, but weights is \"%s\", whose zero "
                    "points are floats", p->weights);
    if (matmul_has_factor(s) && (p->zeros || p->group == 0))
        return fail(message, "scales is \"%s\", but %s", p->scales,
                    p->group ? "zeros is not TILUS_ZEROS_NONE" : "group is 0");
    if ((unsigned)p->function > TILUS_EPILOGUE_GELU)
        return fail(message, "function is %d, not a tilus_epilogue", (int)p->function);
    s->zeros = p->zeros;
    if (p->multiply && (!p->residual || p->combine))
        return fail(message, "multiply is given, but %s", p->combine ? "combine is, too"
                                                                     : "residual is not");
    if (p->gated && (p->multiply || p->combine))
        return fail(message, "gated is given, but %s is, too", p->combine ? "combine" : "multiply");
    if (p->gated && p->n % (2 * MATMUL_GATED_ROWS))
        return fail(message, "n is %lld, with gated not a multiple of %d", (long long)p->n,
                    2 * MATMUL_GATED_ROWS);
    for (size_t i = 0; i < sizeof p->reserved; i++)
        if (p->reserved[i])
            return fail(message, "reserved[%zu] is %d, not 0", i, p->reserved[i]);
    s->function = p->function;
    s->bias = p->bias;
    s->residual = p->residual;
    s->multiply = p->multiply;
    s->gated = p->gated;
    return true;
}

static bool check_prologue(MatmulSpec *s, const tilus_matmul_problem *p, Message message)
{
    if ((unsigned)p->prologue > TILUS_PROLOGUE_RMS_NORM)
        return fail(message, "prologue is %d, not a tilus_prologue", (int)p->prologue);
    if (!(p->eps >= 0 && p->eps <= FLT_MAX))
        return fail(message, "eps is %g, not a number from 0 on that f32 has", p->eps);
    if (p->prologue == TILUS_PROLOGUE_NONE)
        return p->eps == 0 || fail(message, "eps is %g, but there is no prologue", p->eps);
    if (s->activations != DTYPE_f16 && s->activations != DTYPE_bf16)
        return fail(message, "prologue is given, but activations is \"%s\", neither f16 nor bf16",
                    p->activations);
    if (p->experts)
        return fail(message, "prologue is given, but experts are, too");
    s->prologue = p->prologue;
    s->eps = p->eps;
    return true;
}

static bool check_experts(MatmulSpec *s, const tilus_matmul_problem *p, Message message)
{
    if (p->experts < 0 || p->experts > EXPERTS_MAX)
        return fail(message, "experts is %lld, not 0 to %d", (long long)p->experts,
                    EXPERTS_MAX);
    if (p->top < 0 || p->top > TOP_MAX)
        return fail(message, "top is %lld, not 0 to %d", (long long)p->top, TOP_MAX);
    const char *field = p->top ? "top" : p->gather ? "gather" : p->scatter ? "scatter" : "combine";
    if (p->experts == 0 && (p->top || p->gather || p->scatter || p->combine))
        return fail(message, "%s is given, but experts is 0", field);
    if (p->early_routing && !p->combine)
        return fail(message, "early_routing is given, but combine is not");
    if (p->scatter && p->combine)
        return fail(message, "scatter and combine are both given");
    s->experts = p->experts;
    s->top = p->experts && !p->top ? 1 : p->top;
    s->gather = p->gather;
    s->scatter = p->scatter || p->combine;
    s->combine = p->combine;
    s->early_routing = p->early_routing;
    s->batch_invariant = p->batch_invariant;
    return true;
}

bool matmul_spec(const tilus_matmul_problem *problem, MatmulSpec *spec, char *message,
                 size_t size)
{
    Message to = {message, size};
    *spec = (MatmulSpec){0};
    if (!check_types(spec, problem, to) || !check_sizes(spec, problem, to) ||
        !check_options(spec, problem, to) || !check_prologue(spec, problem, to) ||
        !check_experts(spec, problem, to) || !check_product(spec, problem, to))
        return false;
    choose_product(spec, problem->wide_range);
    if (matmul_scales_weights_only(spec) && !matmul_centred_fits(spec))
        return fail(to, "group is %lld, but scales of less than 32 act on weights, and %s does not "
                    "hold a %s less its zero point", (long long)problem->group,
                    dtype_name(spec->product), dtype_name(spec->weights));
    return true;
}

bool matmul_is_a8(const MatmulSpec *s)
{
    return s->product != DTYPE_none && dtype_bits(s->product) == 8;
}

bool matmul_scales_weights_only(const MatmulSpec *s)
{
    enum { LEAST_ON_SUMS = 32 };    /* neighbors along k of the four lanes that have a row */
    return s->group && s->group < LEAST_ON_SUMS;
}

int matmul_rows_most(const MatmulSpec *s)
{
    enum { ROWS = 128, ROWS_SCALED = 64 };
    return matmul_scales_weights_only(s) ? ROWS_SCALED : ROWS;
}

bool matmul_has_factor(const MatmulSpec *s)
{
    return dtype_bits(s->scales) == 8;
}

bool matmul_has_a_scales(const MatmulSpec *s)
{
    return matmul_is_a8(s) && s->activations == s->product;
}

int64_t matmul_columns_of_c(const MatmulSpec *s, int64_t columns)
{
    return s->gated ? columns / 2 : columns;
}

int64_t matmul_row_of_b(const MatmulSpec *s, int64_t row)
{
    enum { HALF = MATMUL_GATED_ROWS, PIECE = 2 * HALF };
    if (!s->gated || row >= s->n)
        return row;
    return row / PIECE * HALF + row % HALF + (row % PIECE < HALF ? 0 : s->n / 2);
}

unsigned matmul_stored_code(const MatmulSpec *s, unsigned code)
{
    if (s->stored == s->weights)
        return code;
    return (unsigned)dtype_encode(s->stored,
                                  ldexp(dtype_decode(s->weights, code), s->fraction));
}

/* Refuses f8e5m2 in f16: its least and largest weights are 114688 apart. */
bool matmul_centred_fits(const MatmulSpec *s)
{
    double most = fmax(dtype_max(s->weights), -dtype_min(s->weights));
    return s->zeros != TILUS_ZEROS_FLOAT || 2 * most <= dtype_max(s->product);
}

/* ---- fields ------------------------------------------------------------ */

static const struct {
    const char *name, *was;
    size_t offset;
} fields[MATMUL_FIELDS] = {
#define FIELD(name, was) {#name, #was, offsetof(MatmulConfig, name)},
    MATMUL_CONFIG(FIELD)
#undef FIELD
};

const char *matmul_field_name(int field)
{
    return fields[field].name;
}

const char *matmul_field_earlier_name(int field)
{
    return fields[field].was;
}

int *matmul_field(MatmulConfig *config, int field)
{
    return (int *)((char *)config + fields[field].offset);
}

int matmul_field_value(const MatmulConfig *config, int field)
{
    return *(const int *)((const char *)config + fields[field].offset);
}

const char *matmul_config_print(const MatmulConfig *config,
                                char text[static MATMUL_CONFIG_MAX])
{
    size_t at = 0;
    for (int i = 0; i < MATMUL_FIELDS && at < MATMUL_CONFIG_MAX; i++)
        at += (size_t)snprintf(text + at, MATMUL_CONFIG_MAX - at, "%s%s %d", i ? ", " : "",
                               fields[i].name, matmul_field_value(config, i));
    return text;
}

/* ---- parameters and names --------------------------------------------- */

enum { PARAMETERS_MAX = 40 };     /* products of experts have up to 38 */

/* A value of -D. `tag` leads it in names; NULL: what others imply, and names lack. */
typedef struct Parameter {
    const char *key, *tag;
    DType type;             /* DTYPE_none: a number */
    int number;
    bool names_zero;        /* names have the number where it is 0, too */
} Parameter;

typedef struct ParameterList {
    Parameter items[PARAMETERS_MAX];
    int count;
} ParameterList;

static void add_type(ParameterList *list, bool wanted, const char *key, const char *tag,
                     DType type)
{
    assert(list->count < PARAMETERS_MAX);
    if (wanted)
        list->items[list->count++] = (Parameter){key, tag, type, 0, false};
}

static void add_number(ParameterList *list, bool wanted, const char *key, const char *tag,
                       int number)
{
    assert(list->count < PARAMETERS_MAX);
    if (wanted)
        list->items[list->count++] = (Parameter){key, tag, DTYPE_none, number, false};
}

/* Returns ZERO_SHIFT: f16 has 11 bits times its least number in equal steps, bf16 8. */
static int zero_shift(const MatmulSpec *s)
{
    return s->product == DTYPE_bf16 ? 0 : 3;
}

/* Returns A_SUM_SCALE: sums of A are multiplied by zero points whose codes are T's subnormals,
 * times T's least number. Four lanes add up the same products, by wgmma all of k of them differ. */
static int sum_scale(const MatmulSpec *s, const MatmulConfig *c)
{
    enum { LEAST_F16 = -24, LEAST_BF16 = -133, LANES = 2 };
    return s->deferred_scale - (s->product == DTYPE_bf16 ? LEAST_BF16 : LEAST_F16) -
           (matmul_by_wgmma(c) ? zero_shift(s) : LANES);
}

int matmul_experts_room(const MatmulSpec *s)
{
    enum { LEAST = 32 };
    int room = LEAST;
    while (room < s->experts)
        room *= 2;
    return room;
}

/* Returns DEFERRED_SCALE of a product: where scales act on weights it is 0, except for floats with scales
 * of f8e4m3, which @dequantized multiplies by 64 and by numbers that lack the distance of the biases. */
static int product_scale(const MatmulSpec *s, const MatmulConfig *c)
{
    enum { BIAS_F16 = 15, SIX_BITS = 6 };
    unsigned exponent = dtype_info[s->stored].exponent;
    int distance = BIAS_F16 - (exponent ? (1 << (exponent - 1)) - 1 : BIAS_F16);
    bool scaled = matmul_has_factor(s) && s->product == DTYPE_f16 && distance > SIX_BITS;
    return matmul_has_digits(s, c) ? 0 : !c->scale_weights ? s->deferred_scale : scaled ? SIX_BITS - distance : 0;
}

/* Adds DEFERRED_SCALE, which names have where it is not the usual one: 0, too, which is that of
 * f8e5m2 in a wide range. */
static void add_deferred_scale(ParameterList *list, bool wanted, const MatmulSpec *s,
                               const MatmulConfig *c, bool product)
{
    bool named = s->wide_range && !c->scale_weights;
    add_number(list, wanted, "DEFERRED_SCALE", named ? "wide" : NULL,
               product            ? product_scale(s, c)
               : c->scale_weights ? 0
                                  : s->deferred_scale);
    if (wanted)
        list->items[list->count - 1].names_zero = named;
}

/* Returns RESIDUAL: 1 where it is added, 2 where it multiplies. A product that leaves its rows to @combine leaves the
 * residual, too. */
static int residual_kind(const MatmulSpec *s, const MatmulConfig *c)
{
    return s->residual && (!s->combine || matmul_combines(c)) ? 1 + s->multiply : 0;
}

static void add_epilogue(ParameterList *list, bool wanted, const MatmulSpec *s, const MatmulConfig *c)
{
    add_number(list, wanted, "BIAS", "bias", s->bias);
    add_number(list, wanted, "RESIDUAL", "residual", residual_kind(s, c));
    add_number(list, wanted, "FUNCTION", "function", (int)s->function);
    add_number(list, wanted && s->gated, "GATED", "gated", 1);
}

/* Adds how the product by mma shares its work out, and how its operands come to it. */
static void add_mainloop(ParameterList *list, bool wanted, const MatmulSpec *s, const MatmulConfig *c)
{
    add_number(list, wanted, "WARPS_N", "x", c->warps_n);
    add_number(list, wanted, "WARPS_K", "w", c->warps_k);
    add_number(list, wanted, "STAGE_K_TILES", "e", c->stage_k_tiles);
    add_number(list, wanted, "BLOCKS", "b", c->per_sm > 1 ? c->per_sm : 1);
    add_number(list, wanted, "REGISTERS", "n", matmul_registers_reallocated(c));
    add_number(list, wanted && c->register_reallocation, "COPIER_REGISTERS", NULL,
               MATMUL_COPIER_REGISTERS);
    add_number(list, wanted, "STAGES", "s", c->stages);
    add_number(list, wanted, "PREARRANGED_A", "p", matmul_combines(c) ? MATMUL_ARRANGED_IN_BLOCKS : c->prearranged_a);
    add_number(list, wanted && matmul_arranges_in_blocks(c), "A_SLICES", "a",
               wanted ? (int)matmul_arranged_slices(s, c) : 0);
    add_number(list, wanted && matmul_has_digits(s, c), "DIGITS", "digits", 1);
    add_number(list, wanted && matmul_arranges_in_blocks(c) && s->experts, "FEW", NULL, MATMUL_FEW_ROWS);
    add_number(list, wanted && matmul_fuses_prologue(s, c), "A_NORM", "norm", 1);
}

/* Adds how threads share a row of A. */
static void add_normed(ParameterList *list, bool wanted, const MatmulSpec *s)
{
    add_number(list, wanted, "NORMED", NULL, 1);
    add_number(list, wanted, "WARPS_K", "w", matmul_normed_warps(s));
    add_number(list, wanted, "A_SLICES", "a", matmul_normed_slices(s));
}

/* Adds how blocks share the rows of a token. */
static void add_combined(ParameterList *list, bool wanted, const MatmulSpec *s, const MatmulConfig *c)
{
    add_number(list, wanted, "SPLITS", "cluster", wanted ? matmul_splits(c) : 0);
    add_number(list, wanted, "CHOICES", "rows", wanted ? matmul_choices(s, c) : 0);
    add_number(list, wanted, "EARLY", "early", s->early_routing);
}

static const DType unpacked_types[MATMUL_UNPACKS] = {DTYPE_f16, DTYPE_bf16, DTYPE_f32};

MatmulProgram matmul_unpack_program(DType type)
{
    int i = 0;
    while (i < MATMUL_UNPACKS && unpacked_types[i] != type)
        i++;
    return i < MATMUL_UNPACKS ? MATMUL_UNPACK_F16 + i : MATMUL_PROGRAMS;
}

static bool is_unpack(MatmulProgram program)
{
    return program >= MATMUL_UNPACK_F16 && program <= MATMUL_UNPACK_F32;
}

/* Lists the parameters that a program depends on. @prepare depends on the powers of two that
 * decoding leaves to A, and on whether zero points or an offset act on sums of it. All programs
 * get W and U, as the verifier checks the whole template. FRACTION is left out where it is 0,
 * so that names of artefacts stay. */
static ParameterList list_parameters(const MatmulSpec *s, const MatmulConfig *c,
                                     MatmulProgram program)
{
    ParameterList l = {.count = 0};
    bool pack = program == MATMUL_PACK || program == MATMUL_PACK_ACROSS;
    bool unpack = is_unpack(program);
    bool experts = program == MATMUL_PREPARE_EXPERTS || program == MATMUL_PRODUCT_EXPERTS ||
                   program == MATMUL_PRODUCT_COMBINED;
    bool normed = program == MATMUL_PREPARE_NORMED;
    bool prepare = program == MATMUL_PREPARE || program == MATMUL_PREPARE_EXPERTS || normed;
    bool combined = program == MATMUL_PRODUCT_COMBINED;
    bool product = program == MATMUL_PRODUCT || program == MATMUL_PRODUCT_EXPERTS || combined;
    bool in_blocks = product && matmul_arranges_in_blocks(c);
    bool zeros_by_mma = matmul_zeros_by_mma(s, c), converts = pack && s->stored != s->weights;
    bool only = !prepare && !product && matmul_scales_weights_only(s);
    bool offset = !prepare && (!pack || s->zeros == TILUS_ZEROS_INTEGER);
    int zero = prepare ? s->zeros != TILUS_ZEROS_NONE || s->offset : (int)s->zeros;
    add_type(&l, true, "W", "", prepare ? s->codes : s->stored);
    add_type(&l, true, "U", NULL, s->codes);
    add_type(&l, converts, "F", "", s->weights);
    add_type(&l, prepare || product, "A", "", s->activations);
    add_type(&l, true, "T", "", s->product);
    add_type(&l, !prepare, "S", "", s->scales);
    add_type(&l, product, "C", "", s->result);
    add_type(&l, unpack, "O", "", unpack ? unpacked_types[program - MATMUL_UNPACK_F16] : DTYPE_none);
    add_number(&l, !prepare, "OFFSET", NULL, offset ? s->offset : 0);
    add_number(&l, s->fraction && !prepare, "FRACTION", pack ? NULL : "q", s->fraction);
    add_number(&l, true, "GROUP", "g", s->group);
    add_number(&l, true, "ZERO", "z", zero);
    add_number(&l, pack, "REPEATS", "x", (int)s->repeats);
    add_number(&l, prepare || product, "SCALE_WEIGHTS", "l", c->scale_weights);
    add_number(&l, only, "SCALE_WEIGHTS", NULL, 1);
    add_number(&l, only, "DEFERRED_SCALE", NULL, 0);
    add_deferred_scale(&l, prepare || product, s, c, product);
    add_number(&l, prepare || product, "ZEROS_BY_MMA", "i", zeros_by_mma);
    add_number(&l, (prepare || in_blocks) && zeros_by_mma, "A_SUM_SCALE", NULL,
               sum_scale(s, c));
    add_number(&l, !prepare, "ROWS", "r", c->rows);
    add_mainloop(&l, product, s, c);
    add_number(&l, prepare || product, "COLUMNS", "c", c->columns);
    add_number(&l, prepare || product, "TILES", "t", c->tiles);
    add_epilogue(&l, product, s, c);
    add_number(&l, (pack || unpack) && s->gated, "GATED", "gated", 1);
    add_number(&l, !pack, "DIVISOR", "d",
               matmul_divisor(s, unpack ? 0 : s->a_stride));
    add_normed(&l, normed, s);
    add_number(&l, experts && prepare, "PREARRANGED_A", NULL, 1);
    add_number(&l, experts, "EXPERTS", "experts", matmul_experts_room(s));
    add_number(&l, experts && (prepare || in_blocks), "GATHER", "gather", s->gather);
    add_number(&l, experts && product && !combined, "SCATTER", "scatter", s->scatter);
    add_combined(&l, combined, s, c);
    add_number(&l, pack, "TRANSPOSED", "across", program == MATMUL_PACK_ACROSS);
    add_number(&l, pack && matmul_is_a8(s), "A8", NULL, 1);
    return l;
}

/* Lists the parameters of @arrange and @arrange_normed, which depend on the powers of two that decoding leaves to A and on
 * the order of k, and of @matmul_wgmma. */
static ParameterList list_wgmma(const MatmulSpec *s, const MatmulConfig *c, MatmulProgram program)
{
    ParameterList l = {.count = 0};
    bool last = program == MATMUL_WGMMA_LAST;
    bool experts = program == MATMUL_ARRANGE_EXPERTS || program == MATMUL_WGMMA_EXPERTS || last;
    bool parts = program == MATMUL_PARTS;
    bool product = program == MATMUL_WGMMA || parts || program == MATMUL_WGMMA_EXPERTS || last;
    bool normed = program == MATMUL_ARRANGE_NORMED;
    bool zeros_by_mma = matmul_zeros_by_mma(s, c);
    add_type(&l, true, "W", "", product ? s->stored : s->codes);
    add_type(&l, true, "U", NULL, s->codes);
    add_type(&l, true, "A", "", s->activations);
    add_type(&l, true, "T", "", s->product);
    add_type(&l, product, "S", "", s->scales);
    add_type(&l, product, "C", "", s->result);
    add_number(&l, product, "OFFSET", NULL, s->offset);
    add_number(&l, s->fraction && product, "FRACTION", "q", s->fraction);
    add_number(&l, product || matmul_reorders_k(s), "GROUP", "g", s->group);
    add_number(&l, product || normed, "ZERO", "z", (int)s->zeros);
    add_number(&l, true, "SCALE_WEIGHTS", "l", c->scale_weights);
    add_number(&l, zeros_by_mma, "ZEROS_BY_MMA", "i", 1);
    add_number(&l, zeros_by_mma && product, "ZERO_SHIFT", NULL, zero_shift(s));
    add_number(&l, zeros_by_mma && !product, "A_SUM_SCALE", NULL, sum_scale(s, c));
    add_deferred_scale(&l, true, s, c, product);
    add_number(&l, product, "ROWS", "r", c->rows);
    add_number(&l, product, "BM", "m", 8 * c->tiles);
    add_number(&l, product && matmul_has_single_fragments(c), "TILE_N", "n", c->warps_n * c->rows);
    add_number(&l, product && matmul_has_single_fragments(c), "A_STAGES", NULL, matmul_a_stages(c));
    add_number(&l, product && matmul_cluster(s, c) > 1, "CLUSTER", "cluster", matmul_cluster(s, c));
    add_number(&l, parts, "PARTS", "parts", matmul_parts(c));
    add_number(&l, product, "STAGES", "s", c->stages);
    add_number(&l, product && matmul_split(s), "SPLIT", "k", matmul_split(s));
    add_number(&l, product, "M_STEP", NULL, product ? matmul_stored_rows(s, c) : 0);
    add_epilogue(&l, product, s, c);
    add_number(&l, product, "BULK_STORE", "u", matmul_stores_by_copies(s));
    add_number(&l, !product, "DIVISOR", "d", matmul_divisor(s, s->a_stride));
    add_number(&l, experts, "EXPERTS", "experts", matmul_experts_room(s));
    add_number(&l, experts && !product, "GATHER", "gather", s->gather);
    add_number(&l, experts && product, "SCATTER", "scatter", s->scatter);
    add_number(&l, last, "LAST", "last", 1);
    add_normed(&l, normed, s);
    add_number(&l, !normed, "WGMMA", NULL, 1);
    return l;
}

/* Lists the parameters of @matmul_a8. */
static ParameterList list_a8(const MatmulSpec *s, const MatmulConfig *c)
{
    enum { ROWS_TOGETHER = 16 };        /* rows of tiles */
    ParameterList l = {.count = 0};
    bool integers = s->product == DTYPE_i8;
    bool centred = s->zeros != TILUS_ZEROS_NONE;
    bool as_u8 = integers && !centred && dtype_info[s->stored].kind == DKIND_UINT;
    add_type(&l, true, "W", "", s->stored);
    add_type(&l, true, "U", NULL, s->codes);
    add_type(&l, true, "O", NULL, as_u8 ? DTYPE_u8 : s->product);
    add_type(&l, true, "P", "", s->product);
    add_type(&l, true, "S", "", s->scales);
    add_type(&l, true, "C", "", s->result);
    add_number(&l, true, "INTEGERS", NULL, integers);
    add_number(&l, true, "PLACE", NULL, s->place);
    add_number(&l, true, "DOWN", NULL, s->down);
    add_number(&l, true, "DEFERRED_SCALE", NULL, s->deferred_scale + s->fraction);
    add_number(&l, s->fraction, "FRACTION", "q", s->fraction);
    add_number(&l, centred, "OFFSET", NULL, s->offset);
    add_number(&l, true, "GROUP", "g", s->group);
    add_number(&l, centred, "ZERO", "z", (int)s->zeros);
    add_number(&l, true, "ROWS", "r", c->rows);
    add_number(&l, true, "BM", "m", 8 * c->tiles);
    add_number(&l, true, "STAGES", "s", c->stages);
    add_number(&l, true, "M_STEP", NULL, matmul_stored_rows(s, c));
    add_number(&l, true, "M_GROUP", NULL, ROWS_TOGETHER);
    add_epilogue(&l, true, s, c);
    add_number(&l, true, "BULK_STORE", "u", matmul_stores_by_copies(s));
    add_number(&l, true, "A8", NULL, 1);
    return l;
}

/* Lists the parameters of @quantize and @copy_rows. */
static ParameterList list_rows(const MatmulSpec *s)
{
    ParameterList l = {.count = 0};
    add_type(&l, true, "A", "", s->activations);
    add_type(&l, true, "P", "", s->product);
    add_number(&l, true, "INTEGERS", NULL, s->product == DTYPE_i8);
    add_number(&l, true, "DIVISOR", "d", matmul_divisor(s, s->a_stride));
    add_number(&l, true, "A8", NULL, 1);
    return l;
}

static ParameterList list_find_tiles(const MatmulSpec *s, const MatmulConfig *c)
{
    ParameterList l = {.count = 0};
    add_number(&l, true, "BM", "m", 8 * c->tiles);
    add_number(&l, true, "EXPERTS", "experts", matmul_experts_room(s));
    add_number(&l, true, "WGMMA", NULL, 1);
    return l;
}

static ParameterList list_sort(const MatmulSpec *s, MatmulProgram program)
{
    ParameterList l = {.count = 0};
    add_number(&l, true, "N", "n", program == MATMUL_SORT_FEW ? MATMUL_SORT_ROWS_FEW : MATMUL_SORT_ROWS);
    add_number(&l, program != MATMUL_COUNT_ROWS, "ONE_BLOCK", "one", program != MATMUL_SORT_MANY);
    add_number(&l, true, "EXPERTS", "experts", matmul_experts_room(s));
    add_number(&l, true, "SORT", NULL, 1);
    return l;
}

static ParameterList list_combine(const MatmulSpec *s)
{
    ParameterList l = {.count = 0};
    add_type(&l, true, "C", "", s->result);
    add_number(&l, true, "RESIDUAL", "residual", s->residual);
    add_number(&l, true, "N_DIVISOR", "d",
               matmul_stores_by_copies(s) ? 128 / (int)dtype_bits(s->result) : 1);
    add_number(&l, true, "COMBINE", NULL, 1);
    return l;
}

/* Returns NORM_COLUMNS: a power of two that holds a row, where that is not too long. */
static int norm_columns(const MatmulSpec *s)
{
    enum { LEAST = 1024, MOST = 16384 };
    int columns = LEAST;
    while (columns < s->k && columns < MOST)
        columns *= 2;
    return columns;
}

static ParameterList list_norm(const MatmulSpec *s)
{
    ParameterList l = {.count = 0};
    add_type(&l, true, "A", "", s->activations);
    add_number(&l, true, "NORM_COLUMNS", "k", norm_columns(s));
    add_number(&l, true, "DIVISOR", "d", matmul_divisor(s, s->a_stride));
    return l;
}

static ParameterList list_any(const MatmulSpec *s, const MatmulConfig *c, MatmulProgram program)
{
    if (program == MATMUL_COMBINE)
        return list_combine(s);
    if (program == MATMUL_FIND_TILES)
        return list_find_tiles(s, c);
    if (program >= MATMUL_SORT_FEW && program <= MATMUL_SORT_MANY)
        return list_sort(s, program);
    if (program == MATMUL_A8)
        return list_a8(s, c);
    if (program == MATMUL_NORM)
        return list_norm(s);
    if (program == MATMUL_QUANTIZE || program == MATMUL_COPY_ROWS)
        return list_rows(s);
    bool wgmma = program == MATMUL_ARRANGE || program == MATMUL_WGMMA || program == MATMUL_PARTS ||
                 program == MATMUL_ARRANGE_NORMED || program == MATMUL_ARRANGE_EXPERTS || program == MATMUL_WGMMA_EXPERTS ||
                 program == MATMUL_WGMMA_LAST;
    return wgmma ? list_wgmma(s, c, program) : list_parameters(s, c, program);
}

const char *matmul_program_name(MatmulProgram program)
{
    static const char *const names[MATMUL_PROGRAMS] = {
        [MATMUL_PACK] = "pack",       [MATMUL_PACK_ACROSS] = "pack",
        [MATMUL_PREPARE] = "prepare", [MATMUL_PRODUCT] = "matmul",
        [MATMUL_ARRANGE] = "arrange", [MATMUL_WGMMA] = "matmul_wgmma",
        [MATMUL_PARTS] = "matmul_parts",
        [MATMUL_UNPACK_F16] = "unpack", [MATMUL_UNPACK_BF16] = "unpack",
        [MATMUL_UNPACK_F32] = "unpack", [MATMUL_COMBINE] = "combine",
        [MATMUL_NORM] = "norm_rows",  [MATMUL_PREPARE_NORMED] = "prepare_normed",
        [MATMUL_ARRANGE_NORMED] = "arrange_normed",
        [MATMUL_PREPARE_EXPERTS] = "prepare_experts",
        [MATMUL_PRODUCT_EXPERTS] = "matmul_experts",
        [MATMUL_PRODUCT_COMBINED] = "matmul_combined",
        [MATMUL_FIND_TILES] = "find_tiles", [MATMUL_ARRANGE_EXPERTS] = "arrange_experts",
        [MATMUL_WGMMA_EXPERTS] = "matmul_wgmma_experts", [MATMUL_WGMMA_LAST] = "matmul_wgmma_experts",
        [MATMUL_SORT_FEW] = "sort_rows", [MATMUL_SORT] = "sort_rows",
        [MATMUL_COUNT_ROWS] = "count_rows", [MATMUL_SORT_MANY] = "sort_rows",
        [MATMUL_QUANTIZE] = "quantize", [MATMUL_COPY_ROWS] = "copy_rows", [MATMUL_A8] = "matmul_a8",
    };
    return names[program];
}

void matmul_parameters(const MatmulSpec *spec, const MatmulConfig *config,
                       MatmulProgram program, char text[static MATMUL_TEXT_MAX])
{
    ParameterList list = list_any(spec, config, program);
    size_t at = 0;
    for (int i = 0; i < list.count; i++) {
        const Parameter *p = &list.items[i];
        const char *gap = i ? " " : "";
        int n = p->type ? snprintf(text + at, MATMUL_TEXT_MAX - at, "%s%s=%s", gap, p->key,
                                   dtype_name(p->type))
                        : snprintf(text + at, MATMUL_TEXT_MAX - at, "%s%s=%d", gap, p->key,
                                   p->number);
        at += (size_t)n;
        assert(at < MATMUL_TEXT_MAX);
    }
}

void matmul_name(const MatmulSpec *spec, const MatmulConfig *config, MatmulProgram program,
                 const char *target, char name[static MATMUL_NAME_MAX])
{
    ParameterList list = list_any(spec, config, program);
    size_t at = (size_t)snprintf(name, MATMUL_NAME_MAX, "%s", matmul_program_name(program));
    for (int i = 0; i < list.count; i++) {
        const Parameter *p = &list.items[i];
        if (!p->tag || (!p->type && p->number == 0 && !p->names_zero))
            continue;
        size_t left = MATMUL_NAME_MAX - at;
        int n = p->type ? snprintf(name + at, left, "-%s", dtype_name(p->type))
                        : snprintf(name + at, left, "-%s%d", p->tag, p->number);
        at += (size_t)n;
        assert(at < MATMUL_NAME_MAX);
    }
    snprintf(name + at, MATMUL_NAME_MAX - at, "-%.16s", target);
}
