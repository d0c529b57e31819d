/* tilus_pack_weights against kernels/pack.tilus on the interpreter, and back. */
#define _GNU_SOURCE
#include "support/bits.h"
#include "tilus/tilus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* TILE of kernels/pack.tilus for tiles of 64 x 64 and four warps. */
static const char tile[] =
    "spatial(1, 4).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)";

static uint32_t random_u32(void)
{
    static uint32_t state = 2463534242u;
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

#define PACKING(...) ((tilus_packing){sizeof(tilus_packing), __VA_ARGS__})

/* A matrix in both forms. */
typedef struct Matrix {
    tilus_packing packing;
    unsigned bits;
    unsigned char *codes, *packed;
    size_t code_bytes, packed_bytes;
} Matrix;

static Matrix matrix_new(tilus_packing packing, unsigned bits)
{
    Matrix m = {.packing = packing, .bits = bits};
    tilus_diag *diag = tilus_diag_new();
    m.code_bytes = (size_t)(packing.k * packing.n * bits + 7) / 8;
    m.packed_bytes = tilus_packed_size(diag, &packing);
    tilus_diag_write(diag, NULL, NULL);
    assert_int_not_equal(m.packed_bytes, 0);
    m.codes = calloc(1, m.code_bytes + 8);
    m.packed = malloc(m.packed_bytes);
    for (size_t i = 0; i < (size_t)(packing.k * packing.n); i++)
        bits_set(m.codes, i, bits, random_u32());
    tilus_diag_free(diag);
    return m;
}

static void matrix_free(Matrix *m)
{
    free(m->codes);
    free(m->packed);
}

static void pack(Matrix *m)
{
    tilus_diag *diag = tilus_diag_new();
    bool ok = tilus_pack_weights(diag, &m->packing, m->codes, m->code_bytes, m->packed,
                                 m->packed_bytes);
    tilus_diag_write(diag, NULL, NULL);
    assert_true(ok);
    tilus_diag_free(diag);
}

static char *read_kernel(size_t *len)
{
    FILE *f = fopen(TILUS_KERNELS "/pack.tilus", "rb");
    assert_non_null(f);
    char *text = malloc(1 << 16);
    *len = fread(text, 1, 1 << 16, f);
    fclose(f);
    return text;
}

/* The bytes that @pack of the kernel writes for the same matrix. */
static void interpret(const Matrix *m, unsigned char *packed)
{
    tilus_define defines[] = {{"W", m->packing.type},
                              {"T", m->packing.order ? m->packing.order : "f16"},
                              {"ORDERED", m->packing.order ? "1" : "0"},
                              {"TRANSPOSED", m->packing.transposed ? "1" : "0"}};
    tilus_buffer buffers[] = {{m->codes, m->code_bytes}, {packed, m->packed_bytes}};
    tilus_arg args[] = {{.pointer = 0}, {.pointer = 1}, {.integer = m->packing.k},
                        {.integer = m->packing.n}};
    size_t len;
    char *text = read_kernel(&len);
    tilus_diag *diag = tilus_diag_new();
    tilus_module *module = tilus_parse(diag, "pack.tilus", text, len, 1, defines, COUNT(defines));
    assert_non_null(module);
    tilus_status status = tilus_interpret(module, "pack", args, COUNT(args), buffers,
                                          COUNT(buffers), NULL);
    tilus_diag_write(diag, NULL, NULL);
    assert_int_equal(status, TILUS_OK);
    tilus_module_free(module);
    tilus_diag_free(diag);
    free(text);
}

static const struct {
    const char *type;
    unsigned bits;
} types[] = {{"u1", 1}, {"i2", 2}, {"u3", 3}, {"i4", 4},     {"u4", 4},     {"i5", 5},
             {"u6", 6}, {"i7", 7}, {"u8", 8}, {"f4e2m1", 4}, {"f6e3m2", 6}, {"f8e4m3", 8}};

static void equals_the_kernel(void **state)
{
    (void)state;
    static const char *const orders[] = {"f16", "bf16", NULL};
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t o = 0; o < COUNT(orders); o++)
            for (int transposed = 0; transposed < 2; transposed++) {
                tilus_packing packing = PACKING(types[t].type, orders[o], tile, 100, 71,
                                                transposed);
                Matrix m = matrix_new(packing, types[t].bits);
                unsigned char *expected = malloc(m.packed_bytes);
                memset(expected, 0xa5, m.packed_bytes);
                interpret(&m, expected);
                pack(&m);
                assert_memory_equal(m.packed, expected, m.packed_bytes);
                free(expected);
                matrix_free(&m);
            }
}

static void goes_back(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT(types); t++) {
        tilus_packing packing = PACKING(types[t].type, "f16", tile, 65, 63, false);
        Matrix m = matrix_new(packing, types[t].bits);
        unsigned char *codes = malloc(m.code_bytes);
        tilus_diag *diag = tilus_diag_new();
        memset(codes, 0xff, m.code_bytes);
        pack(&m);
        assert_true(tilus_unpack_weights(diag, &packing, m.packed, m.packed_bytes, codes,
                                         m.code_bytes));
        assert_memory_equal(codes, m.codes, m.code_bytes);
        tilus_diag_free(diag);
        free(codes);
        matrix_free(&m);
    }
}

static void check_error(tilus_packing packing, const char *expected)
{
    tilus_diag *diag = tilus_diag_new();
    assert_int_equal(tilus_packed_size(diag, &packing), 0);
    assert_int_equal(tilus_diag_errors(diag), 1);
    assert_string_equal(tilus_diag_text(diag, 0), expected);
    tilus_diag_free(diag);
}

static void refuses(void **state)
{
    (void)state;
    check_error(PACKING("u9", "f16", tile, 64, 64, false),
                "weights are of a type of 1 to 8 bits, got u9");
    check_error(PACKING("f16", "f16", tile, 64, 64, false),
                "weights are of a type of 1 to 8 bits, got f16");
    check_error(PACKING("u4", "f15", tile, 64, 64, false), "unknown type f15");
    check_error(PACKING("u4", "f32", tile, 64, 64, false),
                "u4 has no storage order packed(f32)");
    check_error(PACKING("u1", "f16", "spatial(4, 8).local(2, 8)", 64, 64, false),
                "packed(f16) of u1 takes a multiple of 32 elements a thread, here are 16");
    check_error(PACKING("u4", NULL, "spatial(32).local(8)", 64, 64, false),
                "the layout of a tile has rank 2, got 1");
    check_error(PACKING("u4", NULL, "replicate(2).spatial(4, 8).local(2, 4)", 64, 64,
                                false), "2 threads hold each element of the tile, it must be 1");
    check_error(PACKING("u4", NULL, "spatial(4, 8).local(1, 4)", 64, 64, false),
                "4 elements of u4 a thread fill no whole words");
    check_error(PACKING("u4", "f16", "spatial(4, 8)local", 64, 64, false),
                "expected the end of the layout, got `local`");
    check_error(PACKING("u4", "f16", tile, 0, 64, false), "a matrix of 0 x 64 codes");
    check_error(PACKING("u4", "f16", tile, INT64_MAX, 64, false),
                "9223372036854775807 x 64 codes have more than 2^63 bits");
}

static void leaves_the_target_alone_after_errors(void **state)
{
    (void)state;
    tilus_packing packing = PACKING("u4", "f16", tile, 64, 64, false);
    Matrix m = matrix_new(packing, 4);
    tilus_diag *diag = tilus_diag_new();
    memset(m.packed, 0x5a, m.packed_bytes);
    assert_false(tilus_pack_weights(diag, &packing, m.codes, m.code_bytes - 1, m.packed,
                                    m.packed_bytes));
    assert_string_equal(tilus_diag_text(diag, 0), "the codes are 2048 bytes, got 2047");
    tilus_diag_free(diag);
    diag = tilus_diag_new();
    assert_false(tilus_pack_weights(diag, &packing, m.codes, m.code_bytes, m.packed,
                                    m.packed_bytes + 4));
    assert_string_equal(tilus_diag_text(diag, 0), "the packed matrix is 2048 bytes, got 2052");
    for (size_t i = 0; i < m.packed_bytes; i++)
        assert_int_equal(m.packed[i], 0x5a);
    tilus_diag_free(diag);
    matrix_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_kernel),
        cmocka_unit_test(goes_back),
        cmocka_unit_test(refuses),
        cmocka_unit_test(leaves_the_target_alone_after_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
