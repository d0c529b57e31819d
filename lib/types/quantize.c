/* Public API of libtilus_rt: quantized matrices (tilus/types.h says what they are).
 *
 * Threads take blocks of the matrix: some rows of [n, k], all of k; or of [k, n] a group of k and
 * some columns, which are turned so that the groups of either lie along k. A group is converted
 * to f32, its range found, its scale and zero point chosen, its codes found in bytes, and these
 * stored without gaps. */
#include "support/bits.h"
#include "support/integer.h"
#include "support/parallel.h"
#include "support/report.h"
#include "support/sized.h"
#include "tilus/types.h"
#include "types/convert.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_MAX = 1 << 20, K_MAX = 1 << 23,
    GROUP_STEP = 16, CLIP_STEPS_MAX = 1000,
    BLOCK = 1 << 16,            /* elements of a block of rows, about */
    COLUMNS = 256,              /* of a block of [k, n], at most ... */
    TURNED = 1 << 21,           /* ... and elements, where it has more than one column */
    TURN = 16,                  /* rows that are turned at once */
    SUMS = 8,                   /* of squared errors */
};

/* A checked description of a matrix, with what follows from it. */
typedef struct Quantizer {
    tilus_quantization how;
    DType values, weights, scales;
    size_t n, k, group, groups;
    unsigned bits, zero_bytes;
    double least, most;         /* of the weights' type */
    Encoder encoder;
    float table[256];           /* the weights' values */
    size_t columns;             /* of a block of [k, n] */
    const char *from;
    tilus_quantized out;
    atomic_size_t wrong;        /* the first element that is not finite; SIZE_MAX: none */
    atomic_bool no_memory;
} Quantizer;

/* ---- checks ------------------------------------------------------------- */

static DType find(const char *type)
{
    return type ? dtype_find(type, strlen(type)) : DTYPE_none;
}

static bool is_weight(DType t)
{
    Encoder encoder;
    return dtype_bits(t) <= 8 && encoder_of(t, &encoder);
}

static bool check_types(Quantizer *q, Report why)
{
    const tilus_quantization *how = &q->how;
    q->values = find(how->values);
    q->weights = find(how->weights);
    q->scales = how->scales ? find(how->scales) : DTYPE_f16;
    if (q->values != DTYPE_f16 && q->values != DTYPE_bf16 && q->values != DTYPE_f32)
        return report_fault(why, "quantization: values is '%s', not f16, bf16 or f32",
                            how->values ? how->values : "");
    if (!is_weight(q->weights))
        return report_fault(why, "quantization: weights is '%s', not u1 to u8, i1 to i8 or f3e1m1 "
                            "to f8e7m0", how->weights ? how->weights : "");
    if (q->scales != DTYPE_f16 && q->scales != DTYPE_bf16)
        return report_fault(why, "quantization: scales is '%s', not f16 or bf16", how->scales);
    if ((unsigned)how->zeros > TILUS_ZEROS_FLOAT)
        return report_fault(why, "quantization: zeros is %d, not 0, 1 or 2", (int)how->zeros);
    if (how->zeros == TILUS_ZEROS_INTEGER && dtype_is_float(q->weights))
        return report_fault(why, "quantization: zeros is TILUS_ZEROS_INTEGER, but weights are %s",
                            how->weights);
    return true;
}

static bool check_extents(const tilus_quantization *how, Report why)
{
    if (how->n < 1 || how->n > N_MAX)
        return report_fault(why, "quantization: n is %" PRId64 ", not 1 to %d", how->n, N_MAX);
    if (how->k < 1 || how->k > K_MAX)
        return report_fault(why, "quantization: k is %" PRId64 ", not 1 to %d", how->k, K_MAX);
    if (how->group < 0 || how->group > K_MAX || how->group % GROUP_STEP)
        return report_fault(why, "quantization: group is %" PRId64 ", not 0 or a multiple of %d",
                            how->group, GROUP_STEP);
    if (how->transposed != 0 && how->transposed != 1)
        return report_fault(why, "quantization: transposed is %" PRId64 ", not 0 or 1",
                            how->transposed);
    return true;
}

static bool check_choices(tilus_quantization *how, Report why)
{
    if (how->range != TILUS_RANGE_MINMAX && how->range != TILUS_RANGE_ABSMAX)
        return report_fault(why, "quantization: range is %d, not 0 or 1", (int)how->range);
    if (how->clip_steps > CLIP_STEPS_MAX)
        return report_fault(why, "quantization: clip_steps is %u, not at most %d",
                            how->clip_steps, CLIP_STEPS_MAX);
    if (!(how->clip_least >= 0 && how->clip_least < 1))
        return report_fault(why, "quantization: clip_least is %g, not above 0 and below 1",
                            how->clip_least);
    if (how->clip_least == 0)
        how->clip_least = 0.5;
    return true;
}

static void fill(Quantizer *q)
{
    const tilus_quantization *how = &q->how;
    q->n = (size_t)how->n;
    q->k = (size_t)how->k;
    q->group = how->group && how->group < how->k ? (size_t)how->group : q->k;
    q->groups = (q->k + q->group - 1) / q->group;
    q->bits = dtype_bits(q->weights);
    q->zero_bytes = (unsigned)how->zeros;       /* none, 1 or 2 */
    q->least = dtype_min(q->weights);
    q->most = dtype_max(q->weights);
    encoder_of(q->weights, &q->encoder);
    for (uint64_t code = 0; code >> q->bits == 0; code++)
        q->table[code] = (float)dtype_decode(q->weights, code);
    size_t columns = TURNED / q->group;
    q->columns = columns < 1 ? 1 : columns < 8 ? columns : columns < COLUMNS ? columns / 8 * 8
                                                                             : COLUMNS;
    atomic_init(&q->wrong, SIZE_MAX);
    atomic_init(&q->no_memory, false);
}

static bool open_quantizer(Quantizer *q, const tilus_quantization *how, Report why)
{
    if (!how)
        return report_fault(why, "quantization is NULL");
    if (!SIZED_COPY(tilus_quantization, &q->how, how, "quantization", why) ||
        !check_types(q, why) || !check_extents(&q->how, why) || !check_choices(&q->how, why))
        return false;
    fill(q);
    return true;
}

static void measure(const Quantizer *q, tilus_quantized *sizes)
{
    sizes->codes_size = tilus_packed_bytes(dtype_name(q->weights), q->n * q->k);
    sizes->scales_size = 2 * q->n * q->groups;
    sizes->zeros_size = q->zero_bytes * q->n * q->groups;
}

/* ---- the scale and the zero point --------------------------------------- */

typedef struct Scaling {
    uint64_t scale_code, zero_code;
    float scale, zero;
} Scaling;

/* Rounds to the scales' type, but not to infinity. */
static uint64_t round_to_scales(const Quantizer *q, double value)
{
    double most = dtype_max(q->scales);
    return dtype_encode(q->scales, value > most ? most : value < -most ? -most : value);
}

static double scale_of(const Quantizer *q, double low, double high)
{
    if (q->how.zeros != TILUS_ZEROS_NONE)
        return (high - low) / (q->most - q->least);
    double above = q->most > 0 ? high / q->most : 0, below = q->least < 0 ? low / q->least : 0;
    return above > below ? above : below;
}

static Scaling choose_scaling(const Quantizer *q, double low, double high)
{
    double scale = scale_of(q, low, high);
    Scaling s = {.scale_code = round_to_scales(q, scale > 0 ? scale : 1)};
    if (s.scale_code == 0)
        s.scale_code = 1;
    scale = dtype_decode(q->scales, s.scale_code);
    s.scale = (float)scale;
    if (q->how.zeros == TILUS_ZEROS_INTEGER) {
        s.zero_code = dtype_encode(q->weights, q->least - low / scale);
        s.zero = q->table[s.zero_code];
    } else if (q->how.zeros == TILUS_ZEROS_FLOAT) {
        s.zero_code = round_to_scales(q, q->least - low / scale);
        s.zero = (float)dtype_decode(q->scales, s.zero_code);
    }
    return s;
}

static void store_scaling(const Quantizer *q, const Scaling *s, size_t at)
{
    uint16_t scale = (uint16_t)s->scale_code, zero = (uint16_t)s->zero_code;
    memcpy((char *)q->out.scales + 2 * at, &scale, 2);
    if (q->zero_bytes == 1)
        ((int8_t *)q->out.zeros)[at] = (int8_t)(int)s->zero;
    else if (q->zero_bytes == 2)
        memcpy((char *)q->out.zeros + 2 * at, &zero, 2);
}

/* ---- groups ------------------------------------------------------------- */

static void find_codes(const Quantizer *q, const Scaling *s, const float *values, size_t count,
                       uint8_t *codes)
{
    quantize_codes(&q->encoder, values, count, s->scale, q->zero_bytes > 0, s->zero, codes);
}

static double squared_error(const Quantizer *q, const Scaling *s, const float *values,
                            const uint8_t *codes, size_t count)
{
    double sums[SUMS] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++) {
        float centered = q->table[codes[i]] - s->zero;
        float weight = centered * s->scale;
        float error = values[i] - weight;
        double square = (double)error * (double)error;
        sums[i % SUMS] += square;
    }
    for (int i = 0; i < SUMS; i++)
        sum += sums[i];
    return sum;
}

/* Quantizes a group for each range; `codes` are those of the last one tried. */
static Scaling choose_clipped(const Quantizer *q, double low, double high, const float *values,
                              size_t count, uint8_t *codes)
{
    unsigned steps = q->how.clip_steps;
    Scaling best = choose_scaling(q, low, high);
    double least = -1;
    for (unsigned j = 0; j <= steps; j++) {
        double factor = 1 - j * (1 - q->how.clip_least) / steps;
        Scaling s = choose_scaling(q, low * factor, high * factor);
        find_codes(q, &s, values, count, codes);
        double error = squared_error(q, &s, values, codes, count);
        if (least >= 0 && error >= least)
            continue;
        least = error;
        best = s;
    }
    return best;
}

/* Remembers the first element that is not finite: the least number of all. */
static void find_wrong(Quantizer *q, const float *values, size_t count, size_t first, size_t stride)
{
    for (size_t i = 0; i < count; i++)
        if (find_extremes(values + i, 1).magnitude >= F32_INFINITY_BITS) {
            size_t at = first + i * stride, known = atomic_load(&q->wrong);
            while (at < known && !atomic_compare_exchange_weak(&q->wrong, &known, at))
                continue;
            return;
        }
}

/* Quantizes a group of `count` values, whose elements in the matrix are `first`, first +
 * stride, .. , and whose scale is number `at`. */
static void quantize_group(Quantizer *q, const float *values, size_t count, size_t first,
                           size_t stride, size_t at, uint8_t *codes)
{
    Extremes e = find_extremes(values, count);
    if (e.magnitude >= F32_INFINITY_BITS) {
        find_wrong(q, values, count, first, stride);
        return;
    }
    double low = (double)e.low, high = (double)e.high;
    if (q->how.range == TILUS_RANGE_ABSMAX) {
        high = high > -low ? high : -low;
        low = -high;
    }
    Scaling s = q->how.clip_steps ? choose_clipped(q, low, high, values, count, codes)
                                  : choose_scaling(q, low, high);
    find_codes(q, &s, values, count, codes);
    store_scaling(q, &s, at);
}

/* ---- blocks ------------------------------------------------------------- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t group_size(const Quantizer *q, size_t group)
{
    return least(q->k - group * q->group, q->group);
}

/* Allocates values and codes of `count` elements; free with free(). */
static float *new_buffers(Quantizer *q, size_t count, uint8_t **codes)
{
    float *values = malloc(count * (sizeof *values + 1));
    if (!values)
        atomic_store(&q->no_memory, true);
    else
        *codes = (uint8_t *)(values + count);
    return values;
}

static size_t rows_of_block(const Quantizer *q)
{
    return BLOCK / q->k + 1;
}

static void quantize_row(Quantizer *q, size_t row, float *values, uint8_t *codes)
{
    size_t bytes = dtype_bits(q->values) / 8;
    for (size_t g = 0; g < q->groups; g++) {
        size_t first = row * q->k + g * q->group, count = group_size(q, g);
        convert_to_f32(q->values, q->from + first * bytes, count, values);
        quantize_group(q, values, count, first, 1, row * q->groups + g, codes);
        store_codes(codes, count, q->bits, q->out.codes, first);
    }
}

static void quantize_rows(void *quantizer, size_t block)
{
    Quantizer *q = quantizer;
    size_t rows = rows_of_block(q);
    uint8_t *codes;
    float *values = new_buffers(q, q->group, &codes);
    for (size_t row = block * rows; values && row < least(q->n, (block + 1) * rows); row++)
        quantize_row(q, row, values, codes);
    free(values);
}

/* A block of [k, n]: `size` of k by `columns`, from these on. */
typedef struct Panel {
    size_t group, k, n, size, columns;
} Panel;

/* Turns values to [columns, size]. */
static void turn_values(const Quantizer *q, const Panel *p, float *values)
{
    float rows[TURN][COLUMNS];
    size_t bytes = dtype_bits(q->values) / 8;
    for (size_t i = 0; i < p->size; i += TURN) {
        size_t count = least(p->size - i, TURN);
        for (size_t r = 0; r < count; r++)
            convert_to_f32(q->values, q->from + ((p->k + i + r) * q->n + p->n) * bytes,
                           p->columns, rows[r]);
        for (size_t c = 0; c < p->columns; c++)
            for (size_t r = 0; r < count; r++)
                values[c * p->size + i + r] = rows[r][c];
    }
}

static void store_turned(const Quantizer *q, const Panel *p, const uint8_t *codes)
{
    uint8_t rows[TURN][COLUMNS];
    for (size_t i = 0; i < p->size; i += TURN) {
        size_t count = least(p->size - i, TURN);
        for (size_t c = 0; c < p->columns; c++)
            for (size_t r = 0; r < count; r++)
                rows[r][c] = codes[c * p->size + i + r];
        for (size_t r = 0; r < count; r++)
            store_codes(rows[r], p->columns, q->bits, q->out.codes,
                        (p->k + i + r) * q->n + p->n);
    }
}

static size_t panels_across(const Quantizer *q)
{
    return (q->n + q->columns - 1) / q->columns;
}

static void quantize_panel(void *quantizer, size_t number)
{
    Quantizer *q = quantizer;
    size_t group = number / panels_across(q), n = number % panels_across(q) * q->columns;
    const Panel p = {.group = group, .k = group * q->group, .n = n, .size = group_size(q, group),
                     .columns = least(q->n - n, q->columns)};
    uint8_t *codes;
    float *values = new_buffers(q, p.size * p.columns, &codes);
    if (!values)
        return;
    turn_values(q, &p, values);
    for (size_t c = 0; c < p.columns; c++)
        quantize_group(q, values + c * p.size, p.size, p.k * q->n + p.n + c, q->n,
                       group * q->n + p.n + c, codes + c * p.size);
    store_turned(q, &p, codes);
    free(values);
}

/* ---- all of it ---------------------------------------------------------- */

static bool check_memory(const Quantizer *q, const void *values, size_t size,
                         const tilus_quantized *out, Report why)
{
    tilus_quantized sizes;
    size_t wanted = q->n * q->k * (dtype_bits(q->values) / 8);
    measure(q, &sizes);
    if (!values || size != wanted)
        return values ? report_fault(why, "values_size is %zu, not the matrix's %zu bytes", size,
                                     wanted)
                      : report_fault(why, "values is NULL");
    if (!out->codes || out->codes_size != sizes.codes_size)
        return report_fault(why, "quantized: codes has %zu bytes, not %zu",
                            out->codes ? out->codes_size : 0, sizes.codes_size);
    if (!out->scales || out->scales_size != sizes.scales_size)
        return report_fault(why, "quantized: scales has %zu bytes, not %zu",
                            out->scales ? out->scales_size : 0, sizes.scales_size);
    if ((out->zeros ? out->zeros_size : 0) != sizes.zeros_size)
        return report_fault(why, "quantized: zeros has %zu bytes, not %zu",
                            out->zeros ? out->zeros_size : 0, sizes.zeros_size);
    return true;
}

/* Fills with zeros where threads share bytes of codes. */
static void clear_codes(const Quantizer *q)
{
    size_t row = q->how.transposed ? q->k : q->n;
    if (row * q->bits % 8 || (!q->how.transposed && q->columns % 8))
        memset(q->out.codes, 0, q->out.codes_size);
}

static tilus_status quantize_all(Quantizer *q, Report why)
{
    clear_codes(q);
    if (q->how.transposed)
        parallel_for(q->how.threads, (q->n + rows_of_block(q) - 1) / rows_of_block(q),
                     quantize_rows, q);
    else
        parallel_for(q->how.threads, q->groups * panels_across(q), quantize_panel, q);
    size_t wrong = atomic_load(&q->wrong), across = q->how.transposed ? q->k : q->n;
    if (atomic_load(&q->no_memory)) {
        report_fault(why, "out of memory");
        return TILUS_ERROR_MEMORY;
    }
    if (wrong == SIZE_MAX)
        return TILUS_OK;
    report_fault(why, "values: element [%zu, %zu] is infinite or NaN, not a finite number",
                 wrong / across, wrong % across);
    return TILUS_ERROR_ARGUMENT;
}

tilus_status tilus_quantized_sizes(const tilus_quantization *how, tilus_quantized *out,
                                   char *message, size_t message_size)
{
    Quantizer q;
    tilus_quantized known;
    Report why = {message, message_size};
    if (!out) {
        report_fault(why, "quantized is NULL");
        return TILUS_ERROR_ARGUMENT;
    }
    if (!open_quantizer(&q, how, why) ||
        !SIZED_COPY(tilus_quantized, &known, out, "quantized", why))
        return TILUS_ERROR_ARGUMENT;
    measure(&q, &known);
    return SIZED_FILL(tilus_quantized, out, &known, "quantized", why) ? TILUS_OK
                                                                      : TILUS_ERROR_ARGUMENT;
}

tilus_status tilus_quantize(const tilus_quantization *how, const void *values,
                            size_t values_size, const tilus_quantized *out, char *message,
                            size_t message_size)
{
    Quantizer q;
    Report why = {message, message_size};
    if (!out) {
        report_fault(why, "quantized is NULL");
        return TILUS_ERROR_ARGUMENT;
    }
    if (!open_quantizer(&q, how, why) ||
        !SIZED_COPY(tilus_quantized, &q.out, out, "quantized", why) ||
        !check_memory(&q, values, values_size, &q.out, why))
        return TILUS_ERROR_ARGUMENT;
    q.from = values;
    return quantize_all(&q, why);
}
