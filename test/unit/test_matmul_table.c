/* Tunings and the choices by them. */
#include "matmul/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static MatmulSpec spec_of(const char *weights, tilus_zeros zeros, int64_t n, int64_t k)
{
    char message[256];
    MatmulSpec s;
    const tilus_matmul_problem p = {.weights = weights, .n = n, .k = k, .group = 128,
                                    .zeros = zeros};
    assert_true(matmul_spec(&p, &s, message, sizeof message));
    return s;
}

static MatmulDevice device_of(const char *name)
{
    return matmul_device(name, 90, 132, 232448);
}

/* The problem of a tuning. */
typedef struct Problem {
    const char *weights;
    int group;
    const char *zeros;
    int n, k;
    const char *device;
} Problem;

static char *json_of_problem(const char *hash, Problem p, int m, int rows, int warps,
                             double us)
{
    char *text = malloc(1024);
    snprintf(text, 1024,
             "{\"template\": \"%s\", \"device\": \"%s\", \"driver\": \"1\", "
             "\"weights\": \"%s\", \"activations\": \"f16\", \"scales\": \"f16\", "
             "\"result\": \"f16\", \"group\": %d, \"zeros\": \"%s\", \"n\": %d, "
             "\"k\": %d, \"m\": %d, \"rows\": %d, \"warps_n\": 1, \"warps_k\": %d, "
             "\"stage_k_tiles\": 1, \"prearranged_a\": 2, \"scale_weights\": 0, "
             "\"stages\": 2, \"columns\": %d, \"tiles\": %d, \"per_sm\": 1, "
             "\"zeros_by_mma\": 0, \"register_reallocation\": 0, \"us\": %g}",
             hash, p.device, p.weights, p.group, p.zeros, p.n, p.k, m, rows, warps,
             m < 8 ? m : 8, m <= 8 ? 1 : 2, us);
    return text;
}

/* A tuning of u4, n = 512, k = 1024, on "Test". */
static char *json_of(const char *hash, const char *zeros, int m, int rows, int warps,
                     double us)
{
    const Problem p = {"u4", 128, zeros, 512, 1024, "Test"};
    return json_of_problem(hash, p, m, rows, warps, us);
}

/* A tuning of other weights, for m = 8 and packed blocks of 64 rows. */
static char *json_of_type(const char *weights, int group, int warps)
{
    const Problem p = {weights, group, "none", 512, 1024, "Test"};
    return json_of_problem(matmul_template_hash(), p, 8, 64, warps, 5);
}

/* A table of entries, which are freed. */
static MatmulTable *table_of(char *const *entries, size_t count)
{
    char text[8192] = "{\"tilus-tune\": 1, \"tunings\": [", message[256] = "";
    MatmulTable *table;
    for (size_t i = 0; i < count; i++) {
        strcat(text, i ? "," : "");
        strcat(text, entries[i]);
        free(entries[i]);
    }
    strcat(text, "]}");
    if (!matmul_table_open(text, &table, message, sizeof message))
        fail_msg("%s", message);
    return table;
}

static MatmulChoice choose(const MatmulTable *table, const MatmulSpec *s, int rows, int64_t m,
                           const char *device)
{
    MatmulDevice d = device_of(device);
    MatmulChoice choice;
    assert_true(matmul_table_config(table, s, rows, m, &d, &choice));
    return choice;
}

/* ---- look-ups --------------------------------------------------------- */

static void test_exact(void **state)
{
    (void)state;
    MatmulTable *t = table_of((char *[]){json_of(matmul_template_hash(), "none", 8, 64, 8, 5),
                                         json_of(matmul_template_hash(), "none", 8, 64, 2, 4),
                                         json_of(matmul_template_hash(), "none", 8, 32, 4, 3)},
                              3);
    MatmulSpec s = spec_of("u4", TILUS_ZEROS_NONE, 512, 1024);
    MatmulChoice c = choose(t, &s, 64, 7, "Test");
    assert_int_equal(c.source, MATMUL_FROM_USER);
    assert_true(c.exact);
    assert_int_equal(c.config.warps_k, 2);        /* the faster one */
    assert_int_equal(choose(t, &s, 128, 8, "Test").source, MATMUL_FROM_MODEL);
    assert_int_equal(choose(t, &s, 64, 8, "Other").source, MATMUL_FROM_MODEL);
    assert_int_equal(choose(t, &s, 64, 16, "Test").source, MATMUL_FROM_MODEL);
    s.n = 513;
    assert_int_equal(choose(t, &s, 64, 8, "Test").source, MATMUL_FROM_MODEL);
    matmul_table_free(t);
}

/* Bucket, template and zero points, in this order. */
static void test_preferences(void **state)
{
    (void)state;
    const char *hash = matmul_template_hash();
    MatmulTable *t = table_of((char *[]){json_of("other", "none", 4, 64, 8, 1),
                                         json_of(hash, "integer", 4, 64, 4, 2),
                                         json_of(hash, "none", 8, 64, 2, 3)}, 3);
    MatmulSpec s = spec_of("u4", TILUS_ZEROS_NONE, 512, 1024);
    MatmulChoice c = choose(t, &s, 64, 4, "Test");
    assert_int_equal(c.config.warps_k, 4);
    assert_false(c.exact);
    c = choose(t, &s, 64, 2, "Test");           /* that of the next larger bucket ... */
    assert_int_equal(c.config.warps_k, 4);
    assert_int_equal(c.config.columns, 2);      /* ... with columns of its own */
    matmul_table_free(t);
    t = table_of((char *[]){json_of(hash, "none", 1, 64, 8, 1)}, 1);
    c = choose(t, &s, 64, 8, "Test");           /* else of the smaller */
    assert_int_equal(c.config.warps_k, 8);
    assert_int_equal(c.config.columns, 8);
    matmul_table_free(t);
}

/* The warps that are chosen for weights of a type, 0 when the model chooses. */
static int warps_for(const MatmulTable *t, const char *weights, int group)
{
    MatmulSpec s;
    char message[256];
    const tilus_matmul_problem p = {.weights = weights, .n = 512, .k = 1024, .group = group};
    assert_true(matmul_spec(&p, &s, message, sizeof message));
    MatmulChoice c = choose(t, &s, 64, 8, "Test");
    assert_false(c.exact);
    return c.source == MATMUL_FROM_USER ? c.config.warps_k : 0;
}

/* Types without tunings: as many bits, a bit less, a bit more; integers for integers, and
 * for floats that are packed as such. */
static void test_other_types(void **state)
{
    (void)state;
    MatmulTable *t = table_of((char *[]){json_of_type("u4", 128, 2),
                                         json_of_type("f4e2m1", 128, 4),
                                         json_of_type("u6", 128, 8)}, 3);
    assert_int_equal(warps_for(t, "i4", 128), 2);
    assert_int_equal(warps_for(t, "f4e1m2", 128), 2);   /* packed as i4 */
    assert_int_equal(warps_for(t, "f4e3m0", 128), 4);
    assert_int_equal(warps_for(t, "f5e1m3", 128), 2);
    assert_int_equal(warps_for(t, "u5", 128), 2);
    assert_int_equal(warps_for(t, "f5e2m2", 128), 4);
    assert_int_equal(warps_for(t, "i3", 128), 2);
    assert_int_equal(warps_for(t, "f6e3m2", 128), 8);
    assert_int_equal(warps_for(t, "u7", 128), 8);
    assert_int_equal(warps_for(t, "u8", 128), 0);
    assert_int_equal(warps_for(t, "u2", 128), 0);
    matmul_table_free(t);
}

static void test_other_groups(void **state)
{
    (void)state;
    MatmulTable *t = table_of((char *[]){json_of_type("u4", 128, 2),
                                         json_of_type("u4", 32, 8)}, 2);
    assert_int_equal(warps_for(t, "u4", 256), 2);
    assert_int_equal(warps_for(t, "u4", 0), 2);
    assert_int_equal(warps_for(t, "i4", 32), 8);
    matmul_table_free(t);
    t = table_of((char *[]){json_of_type("u4", 128, 2)}, 1);
    assert_int_equal(warps_for(t, "u4", 64), 2);
    matmul_table_free(t);
}

/* Times of another problem are those of its distance from the read floor. */
static void test_expected_time(void **state)
{
    (void)state;
    MatmulTable *t = table_of((char *[]){json_of_type("u4", 128, 2)}, 1);
    MatmulDevice d = device_of("Test");
    MatmulSpec u4 = spec_of("u4", TILUS_ZEROS_NONE, 512, 1024);
    MatmulSpec u5 = spec_of("u5", TILUS_ZEROS_NONE, 512, 1024);
    double expected = 5 * (matmul_floor(&u5, 8, &d) / matmul_floor(&u4, 8, &d));
    assert_true(expected > 5);
    assert_true(choose(t, &u5, 64, 8, "Test").us == expected);
    assert_true(choose(t, &u4, 64, 8, "Test").us == 5);
    assert_true(choose(t, &u4, 64, 8, "Test").exact);
    matmul_table_free(t);
}

/* Fewer bytes take no less time where multiplications bind. */
static void test_expected_time_of_many_rows(void **state)
{
    (void)state;
    const Problem u4 = {"u4", 128, "none", 512, 1024, "Test"};
    MatmulTable *t = table_of((char *[]){json_of_problem(matmul_template_hash(), u4, 32, 64, 4, 5)}, 1);
    MatmulSpec u3 = spec_of("u3", TILUS_ZEROS_NONE, 512, 1024);
    MatmulSpec u5 = spec_of("u5", TILUS_ZEROS_NONE, 512, 1024);
    assert_true(choose(t, &u3, 64, 32, "Test").us == 5);
    assert_true(choose(t, &u5, 64, 32, "Test").us > 5);
    matmul_table_free(t);
}

/* The user's tunings of another type are not better than those built in of the same one. */
static void test_user_of_other_type(void **state)
{
    (void)state;
    const Problem u3 = {"u3", 128, "integer", 57344, 8192, "NVIDIA H200"};
    MatmulTable *t = table_of((char *[]){json_of_problem(matmul_template_hash(), u3, 1, 64, 4,
                                                         50)}, 1);
    MatmulSpec s = spec_of("u4", TILUS_ZEROS_INTEGER, 57344, 8192);
    assert_int_equal(choose(t, &s, 64, 1, "NVIDIA H200").source, MATMUL_FROM_BUILT_IN);
    s = spec_of("u3", TILUS_ZEROS_INTEGER, 57344, 8192);
    assert_int_equal(choose(t, &s, 64, 1, "NVIDIA H200").source, MATMUL_FROM_USER);
    matmul_table_free(t);
}

/* Tunings that the device has no room for are passed over. */
static void test_passed_over(void **state)
{
    (void)state;
    MatmulTable *t = table_of((char *[]){json_of(matmul_template_hash(), "none", 8, 64, 8, 5)},
                              1);
    MatmulSpec s = spec_of("u4", TILUS_ZEROS_NONE, 512, 1024);
    MatmulDevice d = device_of("Test");
    MatmulChoice c;
    d.shared_block = 48 << 10;
    d.shared_sm = 49 << 10;
    assert_true(matmul_table_config(t, &s, 64, 8, &d, &c));
    assert_int_equal(c.source, MATMUL_FROM_MODEL);
    d.shared_block = 100;
    assert_false(matmul_table_config(t, &s, 64, 4, &d, &c));
    assert_int_equal(matmul_table_rows(t, &s, &d), 0);
    matmul_table_free(t);
}

/* The rows for u4 where packed blocks of 32 rows take 9 us in each bucket up to 8, those of 128 take
 * 10; at m = 16 they take `at_16` and 9, at m = 64 `at_64` (0: not tuned) and 20. */
static int rows_with(double at_16, double at_64)
{
    const char *hash = matmul_template_hash();
    char *entries[12];
    size_t count = 0;
    for (int m = 1; m <= 16; m *= 2) {
        entries[count++] = json_of(hash, "none", m, 32, 4, m == 16 ? at_16 : 9);
        entries[count++] = json_of(hash, "none", m, 128, 4, m == 16 ? 9 : 10);
    }
    if (at_64 > 0) {
        entries[count++] = json_of(hash, "none", 64, 32, 4, at_64);
        entries[count++] = json_of(hash, "none", 64, 128, 4, 20);
    }
    MatmulTable *t = table_of(entries, count);
    MatmulSpec s = spec_of("u4", TILUS_ZEROS_NONE, 512, 1024);
    MatmulDevice d = device_of("Test");
    int rows = matmul_table_rows(t, &s, &d);
    matmul_table_free(t);
    return rows;
}

/* Much in one bucket counts, even where a sum of times would not show it; large m count
 * less. */
static void test_rows_of_buckets(void **state)
{
    (void)state;
    assert_int_equal(rows_with(10, 0), 32);
    assert_int_equal(rows_with(12.8, 0), 128);      /* 48.8 us in all, where 128 has 49 */
    assert_int_equal(rows_with(10, 28), 32);        /* of 20 */
    assert_int_equal(rows_with(10, 40), 128);
}

/* Tunings of the same zero points go before others, also if they are slower. */
static void test_exact_zeros(void **state)
{
    (void)state;
    const char *hash = matmul_template_hash();
    MatmulTable *t = table_of((char *[]){json_of(hash, "integer", 8, 64, 4, 2),
                                         json_of(hash, "none", 8, 64, 2, 3)}, 2);
    MatmulSpec s = spec_of("u4", TILUS_ZEROS_NONE, 512, 1024);
    MatmulChoice c = choose(t, &s, 64, 8, "Test");
    assert_true(c.exact && c.config.warps_k == 2);
    s = spec_of("u4", TILUS_ZEROS_INTEGER, 512, 1024);
    c = choose(t, &s, 64, 8, "Test");
    assert_true(c.exact && c.config.warps_k == 4);
    s = spec_of("u4", TILUS_ZEROS_FLOAT, 512, 1024);
    assert_false(choose(t, &s, 64, 8, "Test").exact);
    matmul_table_free(t);
}

static void test_rows(void **state)
{
    (void)state;
    const char *hash = matmul_template_hash();
    MatmulSpec s = spec_of("u4", TILUS_ZEROS_NONE, 512, 1024);
    MatmulDevice d = device_of("Test");
    /* Where one number of rows was tuned, the model's hopes for others do not count. */
    MatmulTable *t = table_of((char *[]){json_of(hash, "none", 8, 128, 4, 1000)}, 1);
    assert_int_equal(matmul_table_rows(t, &s, &d), 128);
    matmul_table_free(t);
    /* Nor do the times of other types; where there are no others, they do. */
    t = table_of((char *[]){json_of(hash, "none", 8, 128, 4, 1000),
                            json_of_type("i4", 128, 4)}, 2);
    assert_int_equal(matmul_table_rows(t, &s, &d), 128);
    s = spec_of("i4", TILUS_ZEROS_NONE, 512, 1024);
    assert_int_equal(matmul_table_rows(t, &s, &d), 64);
    s = spec_of("f5e2m2", TILUS_ZEROS_NONE, 512, 1024);
    assert_int_equal(matmul_table_rows(t, &s, &d), 64);
    matmul_table_free(t);
}

/* Buckets that were not tuned do not count where others were: what stands in for them, such as
 * m = 1 for m = 8, may fit with some rows only. */
static void test_rows_of_tuned_buckets(void **state)
{
    (void)state;
    const char *hash = matmul_template_hash();
    char *wide = json_of(hash, "none", 1, 32, 4, 9), *stages = strstr(wide, "\"stages\": 2");
    assert_non_null(stages);
    stages[strlen("\"stages\": ")] = '8';
    MatmulTable *t = table_of((char *[]){wide, json_of(hash, "none", 1, 128, 4, 10)}, 2);
    MatmulSpec s = spec_of("u4", TILUS_ZEROS_NONE, 512, 1024);
    MatmulDevice d = device_of("Test");
    d.shared_block = 100 << 10;
    d.shared_sm = 101 << 10;
    MatmulChoice c;
    assert_true(matmul_table_config(t, &s, 32, 1, &d, &c) && c.source == MATMUL_FROM_USER);
    assert_true(matmul_table_config(t, &s, 32, 8, &d, &c) && c.source == MATMUL_FROM_MODEL);
    assert_true(matmul_table_config(t, &s, 128, 8, &d, &c) && c.source == MATMUL_FROM_USER);
    assert_int_equal(matmul_table_rows(t, &s, &d), 32);
    matmul_table_free(t);
}

/* The shapes that are built in, of both tables, and any other: always an answer. */
static void test_built_in(void **state)
{
    (void)state;
    MatmulTable *t;
    char message[256];
    assert_true(matmul_table_open(NULL, &t, message, sizeof message));
    MatmulSpec s = spec_of("u4", TILUS_ZEROS_INTEGER, 57344, 8192);
    MatmulChoice c = choose(t, &s, 64, 1, "NVIDIA H200");
    assert_int_equal(c.source, MATMUL_FROM_BUILT_IN);
    assert_int_equal(c.config.columns, 1);
    c = choose(t, &s, 32, 16, "NVIDIA H100 80GB HBM3");
    assert_int_equal(c.source, MATMUL_FROM_BUILT_IN);
    assert_int_equal(c.config.tiles, 2);
    for (DType w = 1; w < DTYPE_COUNT; w++) {
        if (dtype_bits(w) > 8 || w == DTYPE_bool || w == DTYPE_ue8m0)
            continue;
        s = spec_of(dtype_name(w), TILUS_ZEROS_NONE, 3000, 1000);
        MatmulDevice d = device_of("Other");
        int rows = matmul_table_rows(t, &s, &d);
        assert_int_not_equal(rows, 0);
        for (int64_t m = 1; m <= 65536; m *= 2)
            assert_int_equal(choose(t, &s, rows, m, "Other").source, MATMUL_FROM_MODEL);
    }
    matmul_table_free(t);
}

/* The model alone takes nothing whose times it does not know. */
static void test_untimed_choices(void **state)
{
    (void)state;
    MatmulTable *t = table_of(NULL, 0);
    MatmulSpec s = spec_of("u4", TILUS_ZEROS_INTEGER, 8192, 8192);
    for (int64_t m = 1; m <= 4096; m *= 2) {
        MatmulChoice c = choose(t, &s, 0, m, "Other");
        assert_true(!c.config.zeros_by_mma || matmul_by_wgmma(&c.config));
        assert_true(!c.config.register_reallocation || matmul_by_wgmma(&c.config));
    }
    matmul_table_free(t);
}

/* On Hopper the model takes products by wgmma for many rows, also before built-in tunings of
 * mma; for 17 to 64 rows where it says that they are faster, and below never. */
static void test_wgmma_by_model(void **state)
{
    (void)state;
    static const char *const types[] = {"u1", "i3", "u4", "f6e3m2", "u8"};
    MatmulTable *t = table_of(NULL, 0);
    for (size_t i = 0; i < COUNT(types); i++)
        for (int64_t m = 16; m <= 65536; m *= 2) {
            MatmulSpec s = spec_of(types[i], TILUS_ZEROS_NONE, 57344, 8192);
            const MatmulDevice h200 = device_of("NVIDIA H200");
            int rows = matmul_table_rows(t, &s, &h200);
            MatmulChoice c = choose(t, &s, rows, m, "NVIDIA H200");
            assert_true(m == 32 || m == 64 || matmul_by_wgmma(&c.config) == (m > 64));
        }
    MatmulSpec s = spec_of("u8", TILUS_ZEROS_INTEGER, 8192, 57344);
    MatmulChoice c = choose(t, &s, 64, 256, "NVIDIA H200");
    assert_true(matmul_by_wgmma(&c.config));
    matmul_table_free(t);
}

/* ---- texts ------------------------------------------------------------ */

static void test_round_trip(void **state)
{
    (void)state;
    char text[2048], message[256];
    char *entry = json_of("h\\u00fc", "float", 16, 64, 4, 12.25);
    snprintf(text, sizeof text, "{\"tilus-tune\": 1, \"tunings\": [%s]}", entry);
    free(entry);
    MatmulTunings first, second;
    assert_true(matmul_tunings_read(text, &first, message, sizeof message));
    char *written = matmul_tunings_write(&first);
    assert_non_null(written);
    assert_true(matmul_tunings_read(written, &second, message, sizeof message));
    assert_int_equal(second.count, 1);
    assert_memory_equal(&first.items->spec, &second.items->spec, sizeof first.items->spec);
    assert_memory_equal(&first.items->config, &second.items->config,
                        sizeof first.items->config);
    assert_string_equal(first.items->template, second.items->template);
    assert_true(second.items->us == 12.25);
    free(written);
    free(first.items);
    free(second.items);
}

/* The entry with one text of it replaced. */
static bool read_changed(const char *from, const char *to, MatmulTunings *out,
                         char message[static 256])
{
    char text[2048];
    char *entry = json_of("hash", "none", 8, 64, 4, 5);
    char *place = strstr(entry, from);
    assert_non_null(place);
    snprintf(text, sizeof text, "{\"tilus-tune\": 1, \"tunings\": [%.*s%s%s]}",
             (int)(place - entry), entry, to, place + strlen(from));
    free(entry);
    return matmul_tunings_read(text, out, message, 256);
}

/* Tunings of a program that had fewer fields, and of one that has all. */
static void test_fields_that_came_later(void **state)
{
    (void)state;
    MatmulTunings out;
    char message[256] = "";
    assert_true(read_changed("\"zeros_by_mma\": 0, \"register_reallocation\": 0, ", "", &out,
                             message));
    assert_int_equal(out.items->config.zeros_by_mma, 0);
    assert_int_equal(out.items->config.register_reallocation, 0);
    free(out.items);
    assert_true(read_changed("\"zeros_by_mma\": 0", "\"zeros_by_mma\": 1", &out, message));
    assert_int_equal(out.items->config.zeros_by_mma, 1);
    free(out.items);
}

/* Tunings of an earlier program, whose fields had other names. */
static void test_earlier_names(void **state)
{
    (void)state;
    static const char json[] =
        "{\"tilus-tune\": 1, \"tunings\": [{\"template\": \"hash\", \"device\": \"Test\", "
        "\"driver\": \"1\", \"weights\": \"u4\", \"activations\": \"f16\", "
        "\"scales\": \"f16\", \"result\": \"f16\", \"group\": 128, \"zeros\": \"integer\", "
        "\"n\": 512, \"k\": 2048, \"m\": 32, \"rows\": 64, \"rwarps\": 2, \"kwarps\": 4, "
        "\"deep\": 2, \"stages\": 3, \"columns\": 8, \"tiles\": 4, \"prepared\": 2, "
        "\"scaled\": 0, \"per_sm\": 1, \"lifted\": 1, \"lending\": 1, \"us\": 9.5}]}";
    const MatmulConfig expected = {64, 2, 4, 2, 3, 8, 4, 2, 0, 1, 1, 1};
    MatmulTunings out;
    char message[256] = "";
    if (!matmul_tunings_read(json, &out, message, sizeof message))
        fail_msg("%s", message);
    assert_memory_equal(&out.items->config, &expected, sizeof expected);
    free(out.items);
}

static void assert_refused(const char *from, const char *to, const char *expected)
{
    char message[256] = "";
    MatmulTunings out;
    assert_false(read_changed(from, to, &out, message));
    assert_null(out.items);
    if (!strstr(message, expected))
        fail_msg("'%s' is not in '%s'", expected, message);
}

static void test_refused(void **state)
{
    (void)state;
    assert_refused("\"rows\": 64", "\"rows\": 48",
                   "tuning 1: no configuration of the template has rows 48, warps_n 1");
    assert_refused("\"stages\": 2", "\"stages\": 40", "stage_k_tiles 1, stages 40, columns 8");
    assert_refused("\"warps_k\": 4", "\"warps\": 4", "tuning 1: \"warps_k\" is missing");
    assert_refused("\"warps_k\": 4", "\"warps_k\": 4.0", "\"warps_k\" is missing, or no integer");
    assert_refused("\"warps_k\": 4", "\"warps_k\": -4", "\"warps_k\" is -4, not 0 to 65536");
    assert_refused("\"m\": 8", "\"m\": 7", "\"m\" is 7, not a power of two");
    assert_refused("\"columns\": 8", "\"columns\": 4",
                   "\"columns\" is 4, fewer than the rows, 8, and not 8");
    assert_refused("\"prearranged_a\": 2", "\"prearranged_a\": 4",
                   "\"prearranged_a\" is 4, not 1, 2 or 3");
    assert_refused("\"prearranged_a\": 2", "\"prearranged_a\": 8", "\"prearranged_a\" is 8");
    assert_refused("\"u4\"", "\"u44\"", "tuning 1: weights is \"u44\"");
    assert_refused("\"none\"", "\"some\"", "\"zeros\" is \"some\"");
    assert_refused("\"us\": 5", "\"us\": 0", "\"us\" is missing, or no number above 0");
    assert_refused("\"hash\"", "\"012345678901234567890123456789\"",
                   "\"template\" has 30 bytes");
    assert_refused("\"n\": 512", "\"n\": 2000000", "n is 2000000, not 1 to 1048576");
    assert_refused("\"n\": 512", "\"n\": 512, \"n\": 513", "line 1, column ");
    assert_refused("}", "", "line 1, column ");
}

static void test_refused_text(void **state)
{
    (void)state;
    const char *const cases[][2] = {
        {"", "line 1, column 0: "},
        {"{\n \"tilus-tune\": 1,,\n}", "line 2, column 18"},
        {"[]", "not tunings"},
        {"{\"tunings\": []}", "not tunings"},
        {"{\"tilus-tune\": 2, \"tunings\": []}", "format 2, this library reads 1"},
        {"{\"tilus-tune\": 1, \"tunings\": [3]}", "tuning 1: not an object"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char message[256] = "";
        MatmulTable *table;
        assert_false(matmul_table_open(cases[i][0], &table, message, sizeof message));
        assert_null(table);
        if (!strstr(message, cases[i][1]))
            fail_msg("'%s' is not in '%s'", cases[i][1], message);
    }
}

/* Groups of 16 take what was measured of others, with scales on weights: floats in two blocks a
 * multiprocessor, none in packed blocks of 128 rows. */
static void test_groups_of_16(void **state)
{
    (void)state;
    char message[256];
    MatmulTable *t;
    MatmulChoice c;
    const MatmulDevice d = device_of("NVIDIA H200");
    assert_true(matmul_table_open(NULL, &t, message, sizeof message));
    MatmulSpec s = spec_of("u4", TILUS_ZEROS_INTEGER, 57344, 8192);
    s.group = 16;
    assert_int_equal(matmul_table_rows(t, &s, &d), 64);
    s = spec_of("f4e2m1", TILUS_ZEROS_NONE, 57344, 8192);
    assert_true(matmul_table_config(t, &s, 64, 1, &d, &c));
    assert_true(!c.config.scale_weights && c.config.per_sm == 1 && c.config.stages == 3);
    s.group = 16;
    assert_true(matmul_table_config(t, &s, 64, 1, &d, &c));
    assert_true(c.config.scale_weights && c.config.per_sm == 2 && c.config.stages == 2);
    matmul_table_free(t);
}

/* Groups of 32 have tunings of their own; those do not stand in for groups of 16. */
static void test_groups_of_32(void **state)
{
    (void)state;
    char message[256];
    MatmulTable *t;
    MatmulChoice of_32, of_16, of_128;
    const MatmulDevice d = device_of("NVIDIA H200");
    assert_true(matmul_table_open(NULL, &t, message, sizeof message));
    MatmulSpec s = spec_of("f4e2m1", TILUS_ZEROS_NONE, 57344, 8192);
    assert_true(matmul_table_config(t, &s, 64, 16, &d, &of_128));
    s.group = 32;
    assert_true(matmul_table_config(t, &s, 64, 16, &d, &of_32));
    s.group = 16;
    assert_true(matmul_table_config(t, &s, 64, 16, &d, &of_16));
    assert_int_equal(of_32.config.warps_k, 2);
    assert_int_equal(of_128.config.warps_k, 1);
    assert_int_equal(of_16.config.warps_k, 1);
    matmul_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_of_16),
        cmocka_unit_test(test_groups_of_32),
        cmocka_unit_test(test_exact),       cmocka_unit_test(test_preferences),
        cmocka_unit_test(test_other_types), cmocka_unit_test(test_other_groups),
        cmocka_unit_test(test_expected_time), cmocka_unit_test(test_expected_time_of_many_rows),
        cmocka_unit_test(test_user_of_other_type),
        cmocka_unit_test(test_passed_over), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rows_of_buckets),
        cmocka_unit_test(test_rows_of_tuned_buckets), cmocka_unit_test(test_exact_zeros),
        cmocka_unit_test(test_built_in),    cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_refused_text),
        cmocka_unit_test(test_untimed_choices),
        cmocka_unit_test(test_wgmma_by_model),
        cmocka_unit_test(test_fields_that_came_later),
        cmocka_unit_test(test_earlier_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
