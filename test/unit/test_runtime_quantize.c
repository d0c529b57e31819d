/* Arrays and quantized matrices against a scalar reference by tilus_encode and tilus_decode. */
#include "tilus/types.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MESSAGE = 256 };

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = *state ^ *state >> 33;
    return x * UINT64_C(0xff51afd7ed558ccd) >> 16;
}

static void *allocate(size_t size)
{
    void *memory = malloc(size + 1);
    assert_non_null(memory);
    return memory;
}

/* ---- the reference ------------------------------------------------------ */

typedef struct Matrix {
    tilus_quantization how;
    void *values;
    size_t values_size;
    tilus_quantized out;
} Matrix;

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t group_of(const tilus_quantization *how)
{
    return how->group ? min(how->group, how->k) : how->k;
}

static int64_t groups_of(const tilus_quantization *how)
{
    return (how->k + group_of(how) - 1) / group_of(how);
}

static const char *scales_of(const tilus_quantization *how)
{
    return how->scales ? how->scales : "f16";
}

static size_t element(const tilus_quantization *how, int64_t n, int64_t k)
{
    return (size_t)(how->transposed ? n * how->k + k : k * how->n + n);
}

static size_t scale_number(const tilus_quantization *how, int64_t n, int64_t g)
{
    return (size_t)(how->transposed ? n * groups_of(how) + g : g * how->n + n);
}

static float value_at(const Matrix *m, int64_t n, int64_t k)
{
    unsigned bits = tilus_type_bits(m->how.values);
    return (float)tilus_decode(m->how.values,
                               tilus_get_bits(m->values, element(&m->how, n, k), bits));
}

typedef struct Scaling {
    uint64_t scale_code, zero_code;
    double scale, zero;
} Scaling;

static double within(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static Scaling reference_scaling(const tilus_quantization *how, double low, double high)
{
    const char *scales = scales_of(how);
    double most = tilus_type_max(how->weights), least = tilus_type_min(how->weights);
    double largest = tilus_type_max(scales), scale = 0;
    if (how->zeros)
        scale = (high - low) / (most - least);
    else
        scale = fmax(most > 0 ? high / most : 0, least < 0 ? low / least : 0);
    Scaling s = {.scale_code = tilus_encode(scales, fmin(scale > 0 ? scale : 1, largest))};
    s.scale_code += s.scale_code == 0;
    s.scale = tilus_decode(scales, s.scale_code);
    if (!how->zeros)
        return s;
    const char *type = how->zeros == TILUS_ZEROS_INTEGER ? how->weights : scales;
    largest = tilus_type_max(type);
    s.zero_code = tilus_encode(type, within(least - low / s.scale, tilus_type_min(type), largest));
    s.zero = tilus_decode(type, s.zero_code);
    return s;
}

static uint64_t reference_code(const tilus_quantization *how, const Scaling *s, float value)
{
    volatile float q = value / (float)s->scale;
    if (how->zeros)
        q += (float)s->zero;
    return tilus_encode(how->weights, within((double)q, tilus_type_min(how->weights),
                                             tilus_type_max(how->weights)));
}

static double reference_error(const Matrix *m, const Scaling *s, int64_t n, int64_t first,
                              int64_t end)
{
    double sums[8] = {0}, sum = 0;
    for (int64_t k = first; k < end; k++) {
        float value = value_at(m, n, k);
        volatile float weight =
            (float)tilus_decode(m->how.weights, reference_code(&m->how, s, value));
        weight -= (float)s->zero;
        weight *= (float)s->scale;
        volatile float error = value - weight;
        volatile double square = (double)error * (double)error;
        sums[(k - first) % 8] += square;
    }
    for (int i = 0; i < 8; i++)
        sum += sums[i];
    return sum;
}

static Scaling reference_group(const Matrix *m, int64_t n, int64_t first, int64_t end)
{
    const tilus_quantization *how = &m->how;
    double low = 0, high = 0, least = INFINITY;
    for (int64_t k = first; k < end; k++) {
        low = fmin(low, (double)value_at(m, n, k));
        high = fmax(high, (double)value_at(m, n, k));
    }
    if (how->range == TILUS_RANGE_ABSMAX) {
        high = fmax(high, -low);
        low = -high;
    }
    Scaling best = reference_scaling(how, low, high);
    double clip_least = how->clip_least > 0 ? how->clip_least : 0.5;
    for (unsigned j = 0; how->clip_steps && j <= how->clip_steps; j++) {
        double factor = 1 - j * (1 - clip_least) / how->clip_steps;
        Scaling s = reference_scaling(how, low * factor, high * factor);
        double error = reference_error(m, &s, n, first, end);
        if (error < least)
            best = s;
        least = fmin(error, least);
    }
    return best;
}

static void check_group(const Matrix *m, int64_t n, int64_t g, const char *name)
{
    const tilus_quantization *how = &m->how;
    int64_t first = g * group_of(how), end = min(first + group_of(how), how->k);
    Scaling s = reference_group(m, n, first, end);
    size_t at = scale_number(how, n, g);
    unsigned bits = tilus_type_bits(how->weights);
    if (tilus_get_bits(m->out.scales, at, 16) != s.scale_code)
        fail_msg("%s: scale [%d, %d] is %#x, not %#x", name, (int)n, (int)g,
                 (int)tilus_get_bits(m->out.scales, at, 16), (int)s.scale_code);
    if (how->zeros == TILUS_ZEROS_INTEGER)
        assert_int_equal(((uint8_t *)m->out.zeros)[at], (uint8_t)(int)s.zero);
    if (how->zeros == TILUS_ZEROS_FLOAT)
        assert_int_equal(tilus_get_bits(m->out.zeros, at, 16), s.zero_code);
    for (int64_t k = first; k < end; k++) {
        uint64_t code = tilus_get_bits(m->out.codes, element(how, n, k), bits);
        uint64_t wanted = reference_code(how, &s, value_at(m, n, k));
        if (code != wanted)
            fail_msg("%s: code [%d, %d] of %.9g is %#x, not %#x", name, (int)n, (int)k,
                     (double)value_at(m, n, k), (int)code, (int)wanted);
    }
}

/* ---- matrices ----------------------------------------------------------- */

/* Most values are about 1, some groups zero, some values large, small or subnormal. */
static double random_value(uint64_t *state)
{
    double unit = (double)(int64_t)(draw(state) % 2000001 - 1000000) / 1e6;
    switch (draw(state) % 64) {
    case 0: return 0;
    case 1: return -0.0;
    case 2: return unit * 3e-6;
    case 3: return unit * 6e4;
    default: return unit;
    }
}

static void fill_values(Matrix *m, uint64_t *state)
{
    unsigned bits = tilus_type_bits(m->how.values);
    for (int64_t n = 0; n < m->how.n; n++)
        for (int64_t k = 0; k < m->how.k; k++) {
            bool empty = (n + k / 32) % 7 == 3;
            tilus_set_bits(m->values, element(&m->how, n, k), bits,
                           empty ? 0 : tilus_encode(m->how.values, random_value(state)));
        }
}

static Matrix new_matrix(tilus_quantization how, uint64_t seed)
{
    char message[MESSAGE];
    Matrix m = {.how = how, .out = {.struct_size = sizeof m.out}};
    m.how.struct_size = sizeof m.how;
    m.values_size = (size_t)(how.n * how.k) * tilus_type_bits(how.values) / 8;
    m.values = allocate(m.values_size);
    if (tilus_quantized_sizes(&m.how, &m.out, message, sizeof message) != TILUS_OK)
        fail_msg("%s", message);
    m.out.codes = allocate(m.out.codes_size);
    m.out.scales = allocate(m.out.scales_size);
    m.out.zeros = how.zeros ? allocate(m.out.zeros_size) : NULL;
    memset(m.out.codes, 0xa5, m.out.codes_size + 1);
    fill_values(&m, &seed);
    return m;
}

static void free_matrix(Matrix *m)
{
    free(m->values);
    free(m->out.codes);
    free(m->out.scales);
    free(m->out.zeros);
}

static void quantize(const Matrix *m)
{
    char message[MESSAGE];
    if (tilus_quantize(&m->how, m->values, m->values_size, &m->out, message, sizeof message) !=
        TILUS_OK)
        fail_msg("%s", message);
}

static void check_matrix(tilus_quantization how, uint64_t seed)
{
    char name[MESSAGE];
    snprintf(name, sizeof name, "%s of %s, scales %s, [%d, %d]%s, group %d, zeros %d, range %d, "
             "clip %u", how.weights, how.values, scales_of(&how), (int)how.n, (int)how.k,
             how.transposed ? " transposed" : "", (int)how.group, (int)how.zeros, (int)how.range,
             how.clip_steps);
    Matrix m = new_matrix(how, seed);
    quantize(&m);
    for (int64_t n = 0; n < how.n; n++)
        for (int64_t g = 0; g < groups_of(&how); g++)
            check_group(&m, n, g, name);
    size_t used = (size_t)(how.n * how.k) * tilus_type_bits(how.weights) % 8;
    if (used && ((uint8_t *)m.out.codes)[m.out.codes_size - 1] >> used)
        fail_msg("%s: the last bits are not 0", name);
    assert_int_equal(((uint8_t *)m.out.codes)[m.out.codes_size], 0xa5);
    free_matrix(&m);
}

static bool is_weight(const char *type)
{
    return tilus_type_bits(type) <= 8 && strcmp(type, "bool") != 0 && strcmp(type, "ue8m0") != 0;
}

static const char *const values_types[] = {"f16", "bf16", "f32"};
static const int64_t groups[] = {0, 16, 32, 48, 64, 128, 96};

static void every_type_group_and_zero_is_as_the_reference(void **state)
{
    (void)state;
    unsigned turn = 0;
    for (size_t i = 0; tilus_type_name(i); i++)
        for (unsigned g = 0; is_weight(tilus_type_name(i)) && g < COUNT(groups); g++)
            for (int zeros = 0; zeros < 3; zeros++, turn++) {
                const char *type = tilus_type_name(i);
                if (zeros == TILUS_ZEROS_INTEGER && tilus_type_is_float(type))
                    continue;
                check_matrix((tilus_quantization){
                    .values = values_types[turn % 3], .weights = type,
                    .scales = turn % 4 == 1 ? "bf16" : NULL, .n = turn % 5 + 1,
                    .k = turn % 2 ? 160 : 131 + turn % 3, .group = groups[g],
                    .zeros = (tilus_zeros)zeros, .range = (tilus_range)(turn / 2 % 2),
                    .clip_steps = turn % 7 ? 0 : 3, .clip_least = turn % 14 ? 0 : 0.3,
                    .threads = turn % 3, .transposed = turn / 4 % 2}, turn);
            }
}

/* Panels of columns, blocks of rows, bytes that threads share. */
static void large_matrices_are_as_the_reference(void **state)
{
    (void)state;
    static const char *const weights[] = {"u3", "f6e3m2", "i5"};
    for (int64_t turn = 0; turn < 12; turn++)
        check_matrix((tilus_quantization){
            .values = values_types[turn % 3], .weights = weights[turn % 3], .n = 64 + turn * 7,
            .k = 301 + turn % 2 * 19, .group = turn % 4 ? 128 : 0, .transposed = turn / 2 % 2,
            .zeros = turn % 3 == 1 ? TILUS_ZEROS_NONE : TILUS_ZEROS_INTEGER, .threads = 5},
            (uint64_t)turn);
    check_matrix((tilus_quantization){.values = "f16", .weights = "u1", .n = 3, .k = 70001,
                                      .threads = 2}, 1);
    check_matrix((tilus_quantization){.values = "f32", .weights = "f3e1m1", .n = 2,
                                      .k = 70001, .transposed = 1, .threads = 2}, 2);
}

/* ---- scales ------------------------------------------------------------- */

typedef struct ScaleCase {
    const char *weights, *scales;
    float value;
    double scale;
    uint64_t code;
} ScaleCase;

static void scales_neither_vanish_nor_overflow(void **state)
{
    (void)state;
    static const ScaleCase cases[] = {
        {"i8", "f16", 1e-20f, 0x1p-24, 0},      /* the least positive f16 */
        {"i8", "f16", 1e30f, 65504, 127},
        {"i8", "bf16", FLT_MAX, 0x1.02p121, 127},
        {"u4", "f16", 0, 1, 0},
        {"u4", "f16", -3, 1, 0},                /* no code is negative */
        {"i1", "f16", -3, 3, 1},
        {"i1", "f16", 3, 1, 0},
        {"f8e7m0", "bf16", 1, 0x1p-64, 0x7f},
        {"f8e7m0", "f16", 1, 0x1p-24, 0x57},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const ScaleCase *c = &cases[i];
        const tilus_quantization how = {.struct_size = sizeof how, .values = "f32",
                                        .weights = c->weights, .scales = c->scales, .n = 1,
                                        .k = 1};
        uint8_t code = 0xff;
        uint16_t scale = 0;
        const tilus_quantized out = {.struct_size = sizeof out, .codes = &code, .codes_size = 1,
                                     .scales = &scale, .scales_size = 2};
        assert_int_equal(tilus_quantize(&how, &c->value, 4, &out, NULL, 0), TILUS_OK);
        if (tilus_decode(c->scales, scale) != c->scale || code != c->code)
            fail_msg("%s of %g: scale %a, code %#x", c->weights, (double)c->value,
                     tilus_decode(c->scales, scale), code);
    }
}

static double error_of(const Matrix *m)
{
    double sum = 0;
    for (int64_t n = 0; n < m->how.n; n++)
        for (int64_t k = 0; k < m->how.k; k++) {
            size_t at = scale_number(&m->how, n, k / group_of(&m->how));
            double code = tilus_decode(m->how.weights, tilus_get_bits(
                m->out.codes, element(&m->how, n, k), tilus_type_bits(m->how.weights)));
            double error = code * tilus_decode("f16", tilus_get_bits(m->out.scales, at, 16)) -
                           (double)value_at(m, n, k);
            sum += error * error;
        }
    return sum;
}

static void clipping_lowers_the_error(void **state)
{
    (void)state;
    for (int clip = 0; clip < 3; clip++) {
        double errors[2];
        for (unsigned steps = 0; steps < 2; steps++) {
            Matrix m = new_matrix((tilus_quantization){
                .values = "f32", .weights = clip == 0 ? "i2" : clip == 1 ? "i4" : "f4e2m1",
                .n = 4, .k = 512, .group = 128, .clip_steps = steps * 20}, 7);
            for (int64_t i = 0; i < 4 * 512; i++)       /* a sum of three: heavier in the middle */
                ((float *)m.values)[i] = (float)(sin((double)i) + sin(2.3 * (double)i) +
                                                 sin(3.7 * (double)i));
            quantize(&m);
            errors[steps] = error_of(&m);
            free_matrix(&m);
        }
        assert_true(errors[1] < 0.98 * errors[0]);
    }
}

/* ---- refusals ----------------------------------------------------------- */

typedef struct Refusal {
    tilus_quantization how;
    const char *message;
} Refusal;

#define HOW(...) {.struct_size = sizeof(tilus_quantization), .values = "f16", .weights = "u4", \
                  .n = 4, .k = 64, __VA_ARGS__}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const Refusal refusals[] = {
    {HOW(.struct_size = 0), "struct_size is 0, not sizeof(tilus_quantization)"},
    {HOW(.values = "f64"), "values is 'f64', not f16, bf16 or f32"},
    {HOW(.values = NULL), "values is ''"},
    {HOW(.weights = "u16"), "weights is 'u16', not u1 to u8"},
    {HOW(.weights = "ue8m0"), "weights is 'ue8m0'"},
    {HOW(.scales = "f32"), "scales is 'f32', not f16 or bf16"},
    {HOW(.n = 0), "n is 0, not 1 to 1048576"},
    {HOW(.k = INT64_MAX), "k is 9223372036854775807, not 1 to 8388608"},
    {HOW(.group = 40), "group is 40, not 0 or a multiple of 16"},
    {HOW(.group = -32), "group is -32"},
    {HOW(.zeros = (tilus_zeros)3), "zeros is 3, not 0, 1 or 2"},
    {HOW(.weights = "f4e2m1", .zeros = TILUS_ZEROS_INTEGER), "but weights are f4e2m1"},
    {HOW(.range = (tilus_range)2), "range is 2, not 0 or 1"},
    {HOW(.clip_least = 1), "clip_least is 1, not above 0 and below 1"},
    {HOW(.clip_least = NAN), "clip_least is nan"},
    {HOW(.clip_steps = 1001), "clip_steps is 1001, not at most 1000"},
    {HOW(.transposed = 2), "transposed is 2, not 0 or 1"},
};
#pragma GCC diagnostic pop

static void assert_message(const char *message, const char *wanted)
{
    if (!strstr(message, wanted))
        fail_msg("'%s' lacks '%s'", message, wanted);
}

static void wrong_descriptions_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        char message[MESSAGE] = "";
        tilus_quantized out = {.struct_size = sizeof out};
        assert_int_equal(tilus_quantized_sizes(&refusals[i].how, &out, message, sizeof message),
                         TILUS_ERROR_ARGUMENT);
        assert_message(message, refusals[i].message);
        assert_int_equal(tilus_quantize(&refusals[i].how, "", 1, &out, NULL, 0),
                         TILUS_ERROR_ARGUMENT);
    }
    assert_int_equal(tilus_quantize(NULL, "", 1, NULL, NULL, 0), TILUS_ERROR_ARGUMENT);
}

static void refuse(const Matrix *m, size_t values_size, const tilus_quantized *out,
                   const char *wanted)
{
    char message[MESSAGE] = "";
    assert_int_equal(tilus_quantize(&m->how, m->values, values_size, out, message,
                                    sizeof message), TILUS_ERROR_ARGUMENT);
    assert_message(message, wanted);
}

static void wrong_sizes_and_values_are_refused(void **state)
{
    (void)state;
    Matrix m = new_matrix((tilus_quantization){.values = "f32", .weights = "u4", .n = 3, .k = 70,
                                               .zeros = TILUS_ZEROS_INTEGER}, 1);
    tilus_quantized out = m.out;
    refuse(&m, m.values_size - 1, &out, "values_size is 839, not the matrix's 840 bytes");
    out.codes_size++;
    refuse(&m, m.values_size, &out, "codes has 106 bytes, not 105");
    out = m.out;
    out.scales = NULL;
    refuse(&m, m.values_size, &out, "scales has 0 bytes, not 6");
    out = m.out;
    out.zeros = NULL;
    refuse(&m, m.values_size, &out, "zeros has 0 bytes, not 3");
    ((float *)m.values)[3 * 60 + 1] = NAN;
    ((float *)m.values)[3 * 68 + 2] = INFINITY;
    refuse(&m, m.values_size, &m.out, "values: element [60, 1] is infinite or NaN");
    ((float *)m.values)[3 * 60 + 1] = 0;
    m.how.transposed = 1;
    refuse(&m, m.values_size, &m.out, "values: element [2, 66] is infinite or NaN");
    free_matrix(&m);
}

/* ---- arrays ------------------------------------------------------------- */

static const char *const number_types[] = {"f16", "bf16", "f32", "f64"};

/* Draws any code, and more often one of a value that small types hold. */
static uint64_t random_number(const char *type, uint64_t *state)
{
    uint64_t random = draw(state);
    if (random % 8 == 0)
        return draw(state) << 32 ^ draw(state);
    if (random % 8 == 1)
        return tilus_encode(type, (double)(int64_t)(draw(state) % 1025 - 512) / 8);
    return tilus_encode(type, ldexp((double)(int64_t)(draw(state) % 2001 - 1000),
                                    (int)(draw(state) % 40) - 30));
}

static void check_encode(const char *type, const char *from, size_t count, uint64_t seed)
{
    char message[MESSAGE];
    unsigned bits = tilus_type_bits(type), from_bits = tilus_type_bits(from);
    size_t size = tilus_packed_bytes(type, count);
    uint8_t *values = allocate(count * from_bits / 8), *codes = allocate(size);
    memset(codes, 0xa5, size + 1);
    for (size_t i = 0; i < count; i++) {
        bool tame = i / 256 % 2;
        tilus_set_bits(values, i, from_bits, tame ? tilus_encode(from, (double)(i % 9) - 4)
                                                  : random_number(from, &seed));
    }
    if (tilus_encode_array(type, from, values, count, codes, size, 2, message, sizeof message))
        fail_msg("%s", message);
    for (size_t i = 0; i < count; i++) {
        double value = tilus_decode(from, tilus_get_bits(values, i, from_bits));
        if (tilus_get_bits(codes, i, bits) != tilus_encode(type, value))
            fail_msg("%s of %s: %a is %#llx, not %#llx", type, from, value,
                     (unsigned long long)tilus_get_bits(codes, i, bits),
                     (unsigned long long)tilus_encode(type, value));
    }
    if (count * bits % 8)
        assert_int_equal(codes[size - 1] >> count * bits % 8, 0);
    assert_int_equal(codes[size], 0xa5);
    free(values);
    free(codes);
}

static void check_decode(const char *type, const char *to, size_t count, uint64_t seed)
{
    char message[MESSAGE];
    unsigned bits = tilus_type_bits(type), to_bits = tilus_type_bits(to);
    size_t size = tilus_packed_bytes(type, count);
    uint8_t *values = allocate(count * to_bits / 8), *codes = allocate(size);
    for (size_t i = 0; i < size; i++)
        codes[i] = (uint8_t)draw(&seed);
    if (tilus_decode_array(type, codes, size, count, to, values, 2, message, sizeof message))
        fail_msg("%s", message);
    for (size_t i = 0; i < count; i++) {
        uint64_t wanted = tilus_encode(to, tilus_decode(type, tilus_get_bits(codes, i, bits)));
        if (tilus_get_bits(values, i, to_bits) != wanted)
            fail_msg("%s to %s: element %zu is %#llx, not %#llx", type, to, i,
                     (unsigned long long)tilus_get_bits(values, i, to_bits),
                     (unsigned long long)wanted);
    }
    free(values);
    free(codes);
}

static void arrays_of_every_type_are_as_single_elements(void **state)
{
    (void)state;
    for (size_t i = 0; tilus_type_name(i); i++)
        for (unsigned t = 0; t < COUNT(number_types); t++) {
            check_encode(tilus_type_name(i), number_types[t], 1043, i);
            check_decode(tilus_type_name(i), number_types[t], 333, i);
        }
    check_encode("f6e3m2", "f32", 200001, 1);
    check_decode("u3", "f16", 200001, 2);
}

static void wrong_arrays_are_refused(void **state)
{
    (void)state;
    char message[MESSAGE];
    uint8_t codes[8] = {1};
    float values[8] = {1};
    assert_int_equal(tilus_encode_array("u9", "f32", values, 8, codes, 8, 0, message,
                                        sizeof message), TILUS_ERROR_ARGUMENT);
    assert_message(message, "type is 'u9', which is none");
    assert_int_equal(tilus_encode_array("u4", "i8", values, 8, codes, 4, 0, message,
                                        sizeof message), TILUS_ERROR_ARGUMENT);
    assert_message(message, "from is 'i8', not f16, bf16, f32 or f64");
    assert_int_equal(tilus_decode_array("u4", codes, 5, 8, "f32", values, 0, message,
                                        sizeof message), TILUS_ERROR_ARGUMENT);
    assert_message(message, "codes_size is 5, not the 4 bytes of 8 elements of u4");
    assert_int_equal(tilus_decode_array("u4", NULL, 4, 8, "f32", values, 0, message,
                                        sizeof message), TILUS_ERROR_ARGUMENT);
    assert_message(message, "codes is NULL");
    assert_int_equal(tilus_decode_array("f64", codes, 0, SIZE_MAX, "f32", values, 0, NULL, 0),
                     TILUS_ERROR_ARGUMENT);
    assert_int_equal(tilus_decode_array("u4", NULL, 0, 0, "f32", NULL, 0, NULL, 0), TILUS_OK);
    assert_int_equal(codes[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_group_and_zero_is_as_the_reference),
        cmocka_unit_test(large_matrices_are_as_the_reference),
        cmocka_unit_test(scales_neither_vanish_nor_overflow),
        cmocka_unit_test(clipping_lowers_the_error),
        cmocka_unit_test(wrong_descriptions_are_refused),
        cmocka_unit_test(wrong_sizes_and_values_are_refused),
        cmocka_unit_test(arrays_of_every_type_are_as_single_elements),
        cmocka_unit_test(wrong_arrays_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
