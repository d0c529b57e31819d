/* Packing on the host against @pack of the template on the CPU engine, byte for byte; parts
 * of packed weights against packed parts. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "matmul_engine.h"
#include "matmul_library.h"
#include "sweep.h"

#include <math.h>
#include <time.h>

/* The plain weights. */
typedef struct Form {
    const char *weights, *activations;
    int64_t n, k, group;
    tilus_zeros zeros;
    int rows;
    bool transposed;
    const char *product;
    bool gated;
} Form;

/* Opens the library with a device that multiplies 8 bits. */
static int open_hopper(void **state)
{
    set_up_matmul(state);
    fake->capability = 90;
    fake->shared_memory = 232448;
    matmul = open_matmul(&rt, NULL);
    return 0;
}

static tilus_matmul_plan *plan_of_form(const Form *f)
{
    tilus_matmul_plan *plan = plan_of(matmul, (tilus_matmul_problem){
        .weights = f->weights, .activations = f->activations, .n = f->n, .k = f->k,
        .group = f->group, .zeros = f->zeros, .product = f->product,
        .gated = f->gated});
    use_rows(plan, f->rows);
    return plan;
}

static unsigned char *pack_on_host(const tilus_matmul_plan *plan, const Plain *plain,
                                   bool transposed)
{
    const tilus_matmul_weights weights = weights_of(plain, transposed);
    size_t size = tilus_matmul_packed_size(plan);
    unsigned char *packed = malloc(size);
    fill_random(packed, size);      /* it writes all bytes */
    assert_ok(tilus_matmul_pack(plan, &weights, packed));
    return packed;
}

static unsigned char *pack_on_engine(const tilus_matmul_plan *plan, const Plain *plain,
                                     bool transposed)
{
    const tilus_matmul_weights weights = weights_of(plain, transposed);
    size_t size = tilus_matmul_packed_size(plan);
    unsigned char *packed = device_block(size);
    const Region regions[] = {{packed, size}, {plain->codes, plain->code_bytes},
                              {plain->scales, plain->scale_bytes},
                              {plain->zeros, plain->zero_bytes}};
    const KernelLaunch l = pack_launch(plan, &weights, (uintptr_t)packed);
    packed_put_identity(plan, packed);
    run_on_cpu(&l, regions, COUNT(regions));
    return packed;
}

static void assert_same_bytes(const Form *f, const unsigned char *a, const unsigned char *b,
                              size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (a[i] != b[i])
            fail_msg("%s for %s, [%d, %d], group %d, zeros %d, rows %d, %s: byte %zu of %zu "
                     "is %02x, not %02x", f->weights, f->activations, (int)f->n, (int)f->k,
                     (int)f->group, (int)f->zeros, f->rows,
                     f->transposed ? "[n, k]" : "[k, n]", i, size, a[i], b[i]);
}

static void check_form(const Form *f)
{
    tilus_matmul_plan *plan = plan_of_form(f);
    Plain plain = plain_random(plan);
    unsigned char *host = pack_on_host(plan, &plain, f->transposed);
    unsigned char *engine = pack_on_engine(plan, &plain, f->transposed);
    assert_same_bytes(f, host, engine, plan->packed.size);
    free(host);
    free(engine);
    plain_free(&plain);
    tilus_matmul_plan_free(plan);
}

/* ---- every form --------------------------------------------------------- */

static const char *const activations[] = {"f16", "bf16"};
static const int64_t groups[] = {128, 0, 32, 192, 96, 384};
static const int all_rows[] = {32, 64, 128};

/* Returns true when weights may be of the i-th type. */
static bool is_weight(size_t i)
{
    char message[256];
    MatmulSpec spec;
    const tilus_matmul_problem problem = {.weights = tilus_type_name(i), .n = 1, .k = 1};
    return matmul_spec(&problem, &spec, message, sizeof message);
}

static bool has_zeros(const char *type, tilus_zeros zeros)
{
    return zeros != TILUS_ZEROS_INTEGER || !tilus_type_is_float(type);
}

/* Every type for both products, from both orders; groups, zero points and rows take turns. */
static void packs_every_type(void **state)
{
    (void)state;
    size_t turn = 0, types = 0;
    for (size_t i = 0; tilus_type_name(i); i++) {
        if (!is_weight(i))
            continue;
        types++;
        for (int variant = 0; variant < 4; variant++, turn++) {
            Form f = {.weights = tilus_type_name(i), .activations = activations[variant / 2],
                      .n = 1 + 67 * variant % 97, .k = 131 + 59 * variant,
                      .group = groups[turn % COUNT(groups)],
                      .zeros = (tilus_zeros)(turn / 4 % 3), .rows = all_rows[turn % 3],
                      .transposed = variant % 2};
            if (!has_zeros(f.weights, f.zeros))
                f.zeros = TILUS_ZEROS_FLOAT;
            if (sweep_takes(turn))
                check_form(&f);
        }
    }
    assert_int_equal(types, 43);
}

/* All groups with all zero points from both orders. */
static void packs_every_group(void **state)
{
    (void)state;
    static const char *const types[] = {"u4", "i3", "f6e3m2"};
    size_t turn = 0;
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t g = 0; g < COUNT(groups); g++)
            for (int rest = 0; rest < 6; rest++, turn++) {
                const Form f = {.weights = types[t], .activations = activations[rest % 2],
                                .n = 70, .k = 299, .group = groups[g],
                                .zeros = (tilus_zeros)(rest / 2), .rows = all_rows[rest % 3],
                                .transposed = (rest + (int)g) % 2};
                if (sweep_takes(turn) && has_zeros(f.weights, f.zeros))
                    check_form(&f);
            }
}

/* Bit planes of every width, for products of 8 bits. */
static void packs_planes(void **state)
{
    (void)state;
    static const char *const types[][2] = {
        {"u1", "i8"}, {"i2", "i8"}, {"u3", "f8e4m3"}, {"f4e2m1", "f8e4m3"}, {"f5e1m3", "i8"},
        {"f6e3m2", "f8e4m3"}, {"u7", "i8"}, {"f8e4m3", "f8e4m3"}};
    for (size_t t = 0; t < COUNT(types); t++)
        for (int transposed = 0; transposed < 2; transposed++) {
            const Form f = {.weights = types[t][0], .activations = "f16", .n = 70, .k = 299,
                            .group = groups[t % COUNT(groups)], .rows = all_rows[t % 3],
                            .transposed = transposed, .product = types[t][1]};
            check_form(&f);
        }
}

/* Groups of several packed blocks are groups of 128, repeated. */
static void repeats_scales(void **state)
{
    (void)state;
    enum { N = 40, K = 700, REPEATS = 2, WIDE = 3, NARROW = 6 };
    for (int transposed = 0; transposed < 2; transposed++) {
        Form f = {.weights = "i4", .activations = "f16", .n = N, .k = K, .group = 256,
                  .zeros = TILUS_ZEROS_INTEGER, .rows = 32, .transposed = transposed};
        tilus_matmul_plan *wide = plan_of_form(&f);
        f.group = 128;
        tilus_matmul_plan *narrow = plan_of_form(&f);
        Plain plain = plain_random(wide), repeated = plain_random(narrow);
        assert_int_equal(plain.scale_bytes, 2 * N * WIDE);
        memcpy(repeated.codes, plain.codes, plain.code_bytes);
        for (int row = 0; row < N; row++)
            for (int g = 0; g < NARROW; g++) {
                int to = transposed ? row * NARROW + g : g * N + row;
                int from = transposed ? row * WIDE + g / REPEATS : g / REPEATS * N + row;
                memcpy(repeated.scales + 2 * to, plain.scales + 2 * from, 2);
                repeated.zeros[to] = plain.zeros[from];
            }
        unsigned char *a = pack_on_host(wide, &plain, transposed);
        unsigned char *b = pack_on_host(narrow, &repeated, transposed);
        assert_same_bytes(&f, a, b, wide->packed.size - TILUS_MATMUL_IDENTITY);
        free(a);
        free(b);
        plain_free(&plain);
        plain_free(&repeated);
        tilus_matmul_plan_free(wide);
        tilus_matmul_plan_free(narrow);
    }
}

/* Floats with one exponent bit give the bytes that integers give of the same numbers, in other
 * packed blocks: sign and magnitude to two's complement. */
static void packs_floats_as_integers(void **state)
{
    (void)state;
    static const char *const types[][2] = {{"f3e1m1", "i3"}, {"f4e1m2", "i4"},
                                           {"f5e1m3", "i5"}, {"f6e1m4", "i6"},
                                           {"f7e1m5", "i7"}, {"f8e1m6", "i8"}};
    for (size_t t = 0; t < COUNT(types); t++)
        for (int transposed = 0; transposed < 2; transposed++) {
            Form f = {.weights = types[t][0], .activations = activations[t % 2], .n = 70,
                      .k = 299, .group = 64, .zeros = TILUS_ZEROS_FLOAT, .rows = 64,
                      .transposed = transposed};
            tilus_matmul_plan *floats = plan_of_form(&f);
            f.weights = types[t][1];
            tilus_matmul_plan *integers = plan_of_form(&f);
            Plain plain = plain_random(floats);
            unsigned char *a = pack_on_host(floats, &plain, transposed);
            unsigned bits = dtype_bits(integers->spec.weights), half = 1u << (bits - 1);
            for (size_t i = 0; i < (size_t)(f.n * f.k); i++) {
                uint64_t code = bits_get(plain.codes, i, bits);
                uint64_t number = code & half ? 2 * half - (code - half) : code;
                bits_set(plain.codes, i, bits, number & (2 * half - 1));
            }
            unsigned char *b = pack_on_host(integers, &plain, transposed);
            assert_same_bytes(&f, a, b, floats->packed.size - TILUS_MATMUL_IDENTITY);
            free(a);
            free(b);
            plain_free(&plain);
            tilus_matmul_plan_free(floats);
            tilus_matmul_plan_free(integers);
        }
}

/* ---- gates -------------------------------------------------------------- */

/* Gated products pack on the engine as on the host. */
static void packs_gates(void **state)
{
    (void)state;
    static const char *const types[] = {"u4", "i3", "f6e3m2", "f5e1m3"};
    size_t turn = 0;
    for (size_t t = 0; t < COUNT(types); t++)
        for (int transposed = 0; transposed < 2; transposed++)
            for (size_t g = 0; g < COUNT(groups); g++, turn++) {
                const Form f = {.weights = types[t], .activations = "f16", .n = 144, .k = 300,
                                .group = groups[g], .zeros = (t + g) % 2 ? TILUS_ZEROS_FLOAT : TILUS_ZEROS_NONE,
                                .rows = all_rows[(t + g) % 3], .transposed = transposed, .gated = true};
                if (sweep_takes(turn))
                    check_form(&f);
            }
}

static void packs_planes_of_gates(void **state)
{
    (void)state;
    const Form f = {.weights = "u7", .activations = "f16", .n = 144, .k = 300, .group = 128, .rows = 64,
                    .product = "i8", .gated = true};
    check_form(&f);
}

/* Rows of a gate and of what it multiplies lie in turns of 8, as rows of a plain matrix in that order. */
static void gates_lie_beside_what_they_multiply(void **state)
{
    (void)state;
    enum { N = 48, K = 256, GROUPS = 2 };
    const Form f = {.weights = "u8", .activations = "f16", .n = N, .k = K, .group = 128,
                    .zeros = TILUS_ZEROS_INTEGER, .rows = 32, .gated = true};
    Form by_turns = f;
    by_turns.gated = false;
    tilus_matmul_plan *gated = plan_of_form(&f), *plan = plan_of_form(&by_turns);
    Plain plain = plain_random(gated), turned = plain_random(plan);
    for (int i = 0; i < N; i++) {
        int from = i / 16 * 8 + i % 8 + (i / 8 % 2 ? N / 2 : 0);
        memcpy(turned.codes + i * K, plain.codes + from * K, K);
        memcpy(turned.scales + i * 2 * GROUPS, plain.scales + from * 2 * GROUPS, 2 * GROUPS);
        memcpy(turned.zeros + i * GROUPS, plain.zeros + from * GROUPS, GROUPS);
    }
    unsigned char *a = pack_on_host(gated, &plain, true), *b = pack_on_host(plan, &turned, true);
    assert_same_bytes(&f, a, b, gated->packed.size - TILUS_MATMUL_IDENTITY);
    free(a);
    free(b);
    plain_free(&plain);
    plain_free(&turned);
    tilus_matmul_plan_free(gated);
    tilus_matmul_plan_free(plan);
}

/* ---- parts -------------------------------------------------------------- */

/* Returns the row of the whole that is row `n` of a part: of gates and of what they multiply each has
 * a share. */
static int64_t row_of_part(const MatmulSpec *whole, const MatmulSpec *part, int64_t n_first, int64_t n)
{
    if (!whole->gated)
        return n_first + n;
    return n < part->n / 2 ? n_first / 2 + n : whole->n / 2 + n_first / 2 + n - part->n / 2;
}

/* A part of plain weights [n, k]. */
static Plain cut(const tilus_matmul_plan *whole, const Plain *plain,
                 const tilus_matmul_plan *part, int64_t n_first, int64_t k_first)
{
    const MatmulSpec *w = &whole->spec, *p = &part->spec;
    unsigned bits = dtype_bits(w->weights);
    size_t zero_bytes = packed_zero_bytes(w);
    int64_t groups_whole = packed_groups(w), groups_part = packed_groups(p);
    int64_t group_first = w->group ? k_first / (w->group * w->repeats) : 0;
    Plain to = plain_random(part);
    for (int64_t n = 0; n < p->n; n++) {
        int64_t row = row_of_part(w, p, n_first, n);
        size_t from = (size_t)(row * w->k + k_first);
        for (int64_t k = 0; k < p->k; k++)
            bits_set(to.codes, (size_t)(n * p->k + k), bits,
                     bits_get(plain->codes, from + (size_t)k, bits));
        for (int64_t g = 0; g < groups_part; g++) {
            size_t i = (size_t)(n * groups_part + g);
            size_t at = (size_t)(row * groups_whole + group_first + g);
            memcpy(to.scales + 2 * i, plain->scales + 2 * at, 2);
            memcpy(to.zeros + zero_bytes * i, plain->zeros + zero_bytes * at, zero_bytes);
        }
    }
    return to;
}

static void check_part(const Form *f, int64_t n_first, int64_t n, int64_t k_first, int64_t k)
{
    Form small = *f;
    small.n = n;
    small.k = k;
    tilus_matmul_plan *whole = plan_of_form(f), *part = plan_of_form(&small);
    Plain plain = plain_random(whole);
    Plain piece = cut(whole, &plain, part, n_first, k_first);
    unsigned char *packed = pack_on_host(whole, &plain, true);
    unsigned char *expected = pack_on_host(part, &piece, true);
    unsigned char *got = malloc(part->packed.size);
    fill_random(got, part->packed.size);
    assert_ok(tilus_matmul_shard(whole, packed, part, n_first, k_first, got));
    assert_same_bytes(&small, got, expected, part->packed.size);
    free(packed);
    free(expected);
    free(got);
    plain_free(&plain);
    plain_free(&piece);
    tilus_matmul_plan_free(whole);
    tilus_matmul_plan_free(part);
}

static void parts_are_packed_parts(void **state)
{
    (void)state;
    static const char *const types[] = {"u4", "i3", "f5e2m2", "f5e1m3"};
    static const int64_t part_groups[] = {0, 32, 128, 256};
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t g = 0; g < COUNT(part_groups); g++)
            for (int zeros = 0; zeros < 3; zeros++) {
                const Form f = {.weights = types[t], .activations = "f16", .n = 150, .k = 1100,
                                .group = part_groups[g], .zeros = (tilus_zeros)zeros,
                                .rows = 32};
                if (!has_zeros(f.weights, f.zeros))
                    continue;
                check_part(&f, 0, 150, 0, 1100);
                check_part(&f, 32, 64, 0, 1100);
                check_part(&f, 96, 54, 256, 844);
                check_part(&f, 0, 32, 512, 256);
            }
}

/* The last group reaches beyond the packed blocks of k. */
static void parts_of_long_groups_are_packed_parts(void **state)
{
    (void)state;
    static const int64_t long_groups[] = {320, 352, 512, 1024, 4096};
    for (size_t g = 0; g < COUNT(long_groups); g++) {
        const Form f = {.weights = "u4", .activations = "f16", .n = 150, .k = 1100,
                        .group = long_groups[g], .zeros = TILUS_ZEROS_INTEGER, .rows = 32};
        check_part(&f, 32, 64, 0, 1100);
    }
    const Form f = {.weights = "i3", .activations = "f16", .n = 40, .k = 640, .group = 512,
                    .rows = 32};
    check_part(&f, 0, 32, 512, 128);
    check_part(&f, 0, 40, 0, 512);
}

/* Groups that are no multiples of 128 begin at the edge of a packed block each few groups. */
static void parts_of_odd_groups_are_packed_parts(void **state)
{
    (void)state;
    for (int zeros = 0; zeros < 3; zeros++) {
        const Form f = {.weights = "u4", .activations = "f16", .n = 70, .k = 1100, .group = 96,
                        .zeros = (tilus_zeros)zeros, .rows = 32};
        check_part(&f, 32, 32, 384, 384);
        check_part(&f, 0, 70, 768, 332);
        check_part(&f, 0, 70, 0, 1100);
    }
}

static void parts_of_gates_are_packed_parts(void **state)
{
    (void)state;
    const Form f = {.weights = "u4", .activations = "f16", .n = 160, .k = 1100, .group = 128,
                    .zeros = TILUS_ZEROS_INTEGER, .rows = 32, .gated = true};
    check_part(&f, 0, 160, 0, 1100);
    check_part(&f, 32, 64, 0, 1100);
    check_part(&f, 96, 64, 256, 844);
}

static void refuses_parts_that_are_none(void **state)
{
    (void)state;
    const Form whole_form = {.weights = "u4", .activations = "f16", .n = 150, .k = 1100,
                             .group = 256, .rows = 32};
    const struct {
        Form form;
        int64_t n_first, k_first;
        const char *message;
    } cases[] = {
        {{"u4", "f16", 64, 1100, 256, 0, 32, 0, NULL, false}, 96, 0,
         "n_first is 96: 64 from there on are not in the whole's 150"},
        {{"u4", "f16", 64, 1100, 256, 0, 32, 0, NULL, false}, -32, 0, "n_first is -32"},
        {{"u4", "f16", 64, 1100, 256, 0, 32, 0, NULL, false}, 16, 0, "n_first is 16, not a multiple of 32"},
        {{"u4", "f16", 60, 1100, 256, 0, 32, 0, NULL, false}, 32, 0,
         "the part's n is 60, which is no multiple of 32"},
        {{"u4", "f16", 64, 256, 256, 0, 32, 0, NULL, false}, 0, 128,
         "k_first is 128, not a multiple of 256"},
        {{"u4", "f16", 64, 128, 256, 0, 32, 0, NULL, false}, 0, 256, "the part's k is 128"},
        {{"u4", "f16", 64, 1100, 192, 0, 32, 0, NULL, false}, 0, 0,
         "the part has groups of 192, the whole of 256"},
        {{"u4", "f16", 64, 1100, 128, 0, 32, 0, NULL, false}, 0, 0,
         "the part has groups of 128, the whole of 256"},
        {{"u4", "f16", 64, 1100, 256, 0, 64, 0, NULL, false}, 0, 0, "tiles of 64 rows, the whole of 32"},
        {{"u3", "f16", 64, 1100, 256, 0, 32, 0, NULL, false}, 0, 0, "the part is of u3 for f16"},
        {{"u4", "bf16", 64, 1100, 256, 0, 32, 0, NULL, false}, 0, 0, "the part is of u4 for bf16"},
        {{"f4e1m2", "f16", 64, 1100, 256, 0, 32, 0, NULL, false}, 0, 0, "the part is of f4e1m2 for f16"},
        {{"u4", "f16", 64, 1100, 256, 1, 32, 0, NULL, false}, 0, 0, "zeros 1; the whole"},
        {{"u4", "f16", 64, 1100, 256, 0, 32, 0, NULL, true}, 0, 0, "the part is gated, the whole is not"},
    };
    tilus_matmul_plan *whole = plan_of_form(&whole_form);
    unsigned char *packed = calloc(1, whole->packed.size), *to = calloc(1, whole->packed.size);
    packed_put_identity(whole, packed);
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_matmul_plan *part = plan_of_form(&cases[i].form);
        tilus_status status = tilus_matmul_shard(whole, packed, part, cases[i].n_first,
                                                 cases[i].k_first, to);
        assert_fails(status, TILUS_ERROR_ARGUMENT, cases[i].message);
        tilus_matmul_plan_free(part);
    }
    assert_fails(tilus_matmul_shard(whole, NULL, whole, 0, 0, to), TILUS_ERROR_ARGUMENT,
                 "packed is NULL");
    assert_fails(tilus_matmul_shard(whole, packed, whole, 0, 0, NULL), TILUS_ERROR_ARGUMENT,
                 "packed_part is NULL");
    free(packed);
    free(to);
    tilus_matmul_plan_free(whole);
}

/* ---- mistakes, and speed ------------------------------------------------ */

static void refuses_weights_that_are_missing(void **state)
{
    (void)state;
    const Form f = {.weights = "u4", .activations = "f16", .n = 8, .k = 128, .group = 128,
                    .zeros = TILUS_ZEROS_INTEGER, .rows = 32};
    tilus_matmul_plan *plan = plan_of_form(&f);
    Plain plain = plain_random(plan);
    unsigned char *packed = malloc(plan->packed.size);
    tilus_matmul_weights w = weights_of(&plain, true);
    assert_fails(tilus_matmul_pack(plan, &w, NULL), TILUS_ERROR_ARGUMENT, "packed is NULL");
    assert_fails(tilus_matmul_pack(plan, NULL, packed), TILUS_ERROR_ARGUMENT,
                 "weights is NULL");
    w.zeros = NULL;
    assert_fails(tilus_matmul_pack(plan, &w, packed), TILUS_ERROR_ARGUMENT, "zeros is NULL");
    w.scales = NULL;
    assert_fails(tilus_matmul_pack(plan, &w, packed), TILUS_ERROR_ARGUMENT, "scales is NULL");
    w.codes = NULL;
    assert_fails(tilus_matmul_pack(plan, &w, packed), TILUS_ERROR_ARGUMENT, "codes is NULL");
    free(packed);
    plain_free(&plain);
    tilus_matmul_plan_free(plan);
}

typedef struct Wrong {
    Form form;
    bool transposed;
    bool zero;          /* the number is a zero point, else a scale */
    size_t at;
    unsigned code;
    const char *message;
} Wrong;

/* Scales and zero points without a finite value, or outside of the weights' type, are named by
 * their place in the caller's arrays, [n, groups] or [groups, n]. */
static void refuses_numbers_of_no_product(void **state)
{
    (void)state;
#define FORM(w, a, z) {.weights = w, .activations = a, .n = 40, .k = 384, .group = 128, .zeros = z, .rows = 32}
    static const Wrong wrongs[] = {
        {FORM("u4", "f16", TILUS_ZEROS_INTEGER), true, true, 3 * 5 + 1, 16,
         "weights: zero point [5, 1] is 16, not 0 to 15 of u4"},
        {FORM("u4", "f16", TILUS_ZEROS_INTEGER), false, true, 40 * 2 + 7, 255,
         "weights: zero point [2, 7] is 255, not 0 to 15 of u4"},
        {FORM("i3", "bf16", TILUS_ZEROS_INTEGER), true, true, 0, 4,
         "weights: zero point [0, 0] is 4, not -4 to 3 of i3"},
        {FORM("i3", "bf16", TILUS_ZEROS_INTEGER), true, true, 119, 0xfb,
         "weights: zero point [39, 2] is -5, not -4 to 3 of i3"},
        {FORM("i8", "f16", TILUS_ZEROS_INTEGER), true, true, 0, 0x80, NULL},
        {FORM("u8", "f16", TILUS_ZEROS_INTEGER), true, true, 0, 0xff, NULL},
        {FORM("u4", "f16", TILUS_ZEROS_FLOAT), true, true, 4, 0x7c00,
         "weights: zero point [1, 1] is inf, not a finite number"},
        {FORM("u4", "f16", TILUS_ZEROS_NONE), true, false, 119, 0x7c00,
         "weights: scale [39, 2] is inf, not a finite number"},
        {FORM("u4", "f16", TILUS_ZEROS_NONE), false, false, 41, 0xfc00,
         "weights: scale [1, 1] is -inf, not a finite number"},
        {FORM("f6e3m2", "bf16", TILUS_ZEROS_NONE), true, false, 3, 0x7fc0,
         "weights: scale [1, 0] is nan, not a finite number"},
        {FORM("u4", "f16", TILUS_ZEROS_NONE), true, false, 3, 0x7bff, NULL},
    };
#undef FORM
    for (size_t i = 0; i < COUNT(wrongs); i++) {
        const Wrong *w = &wrongs[i];
        tilus_matmul_plan *plan = plan_of_form(&w->form);
        Plain plain = plain_random(plan);
        unsigned char *packed = malloc(plan->packed.size);
        const tilus_matmul_weights weights = weights_of(&plain, w->transposed);
        bool byte = w->zero && w->form.zeros == TILUS_ZEROS_INTEGER;
        memset(packed, 0x5a, plan->packed.size);
        bits_set(w->zero ? plain.zeros : plain.scales, w->at, byte ? 8 : 16, w->code);
        if (w->message) {
            assert_fails(tilus_matmul_pack(plan, &weights, packed), TILUS_ERROR_ARGUMENT, w->message);
            assert_int_equal(packed[0], 0x5a);
        } else {
            assert_ok(tilus_matmul_pack(plan, &weights, packed));
        }
        free(packed);
        plain_free(&plain);
        tilus_matmul_plan_free(plan);
    }
}

static void refuses_scales_of_8_bits_without_a_value(void **state)
{
    (void)state;
    enum { N = 8, K = 256, GROUPS = K / 16 };
    tilus_matmul_plan *plan = plan_of(matmul, (tilus_matmul_problem){
        .weights = "f4e2m1", .scales = "f8e4m3", .n = N, .k = K, .group = 16});
    unsigned char codes[N * K / 2] = {0}, scales[N * GROUPS], *packed = malloc(plan->packed.size);
    float factor = 0.5F;
    memset(scales, 0x38, sizeof scales);
    const tilus_matmul_weights weights = {sizeof weights, codes, scales, .transposed = true,
                                          .factor = &factor};
    assert_ok(tilus_matmul_pack(plan, &weights, packed));
    scales[GROUPS + 2] = 0xff;
    assert_fails(tilus_matmul_pack(plan, &weights, packed), TILUS_ERROR_ARGUMENT,
                 "weights: scale [1, 2] is ");
    scales[GROUPS + 2] = 0xfe;
    factor = INFINITY;
    assert_fails(tilus_matmul_pack(plan, &weights, packed), TILUS_ERROR_ARGUMENT,
                 "weights: factor is inf, not a finite number");
    free(packed);
    tilus_matmul_plan_free(plan);
}

/* `test_matmul_pack --time` packs large matrices and says how long it took. */
static int print_times(void)
{
    static const char *const types[] = {"u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8"};
    void *state = NULL;
    open_library(&state);
    for (size_t i = 0; i < COUNT(types); i++)
        for (int transposed = 0; transposed < 2; transposed++) {
            const Form f = {.weights = types[i], .activations = "f16", .n = 8192, .k = 8192,
                            .group = 128, .zeros = TILUS_ZEROS_INTEGER, .rows = 64};
            struct timespec begin, end;
            tilus_matmul_plan *plan = plan_of_form(&f);
            Plain plain = plain_random(plan);
            const tilus_matmul_weights weights = weights_of(&plain, transposed);
            unsigned char *packed = device_block(plan->packed.size);
            clock_gettime(CLOCK_MONOTONIC, &begin);
            assert_ok(tilus_matmul_pack(plan, &weights, packed));
            clock_gettime(CLOCK_MONOTONIC, &end);
            printf("%s 8192 x 8192 from %s: %.2f s\n", types[i],
                   transposed ? "[n, k]" : "[k, n]", (double)(end.tv_sec - begin.tv_sec) +
                   1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
            free(packed);
            plain_free(&plain);
            tilus_matmul_plan_free(plan);
        }
    return close_library(&state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packs_every_type, open_library, close_library),
        cmocka_unit_test_setup_teardown(packs_every_group, open_library, close_library),
        cmocka_unit_test_setup_teardown(packs_planes_of_gates, open_hopper, close_library),
        cmocka_unit_test_setup_teardown(packs_planes, open_hopper, close_library),
        cmocka_unit_test_setup_teardown(repeats_scales, open_library, close_library),
        cmocka_unit_test_setup_teardown(packs_floats_as_integers, open_library, close_library),
        cmocka_unit_test_setup_teardown(packs_gates, open_library, close_library),
        cmocka_unit_test_setup_teardown(gates_lie_beside_what_they_multiply, open_library, close_library),
        cmocka_unit_test_setup_teardown(parts_of_gates_are_packed_parts, open_library, close_library),
        cmocka_unit_test_setup_teardown(parts_are_packed_parts, open_library, close_library),
        cmocka_unit_test_setup_teardown(parts_of_long_groups_are_packed_parts, open_library,
                                        close_library),
        cmocka_unit_test_setup_teardown(parts_of_odd_groups_are_packed_parts, open_library,
                                        close_library),
        cmocka_unit_test_setup_teardown(refuses_parts_that_are_none, open_library,
                                        close_library),
        cmocka_unit_test_setup_teardown(refuses_numbers_of_no_product, open_library, close_library),
        cmocka_unit_test_setup_teardown(refuses_scales_of_8_bits_without_a_value, open_library,
                                        close_library),
        cmocka_unit_test_setup_teardown(refuses_weights_that_are_missing, open_library,
                                        close_library),
    };
    if (argc == 2 && !strcmp(argv[1], "--time"))
        return print_times();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
