/* Tunings as JSON:
 *
 *   {"tilus-tune": 1, "tunings": [
 *   {"template": "8c6f..", "device": "NVIDIA H200", "driver": "13.0", "weights": "u4",
 *    "activations": "f16", "scales": "f16", "result": "f16", "group": 128,
 *    "zeros": "integer", "n": 57344, "k": 8192, "m": 1, "rows": 64, "warps_n": 1,
 *    "warps_k": 4, "stage_k_tiles": 2, "stages": 2, "columns": 1, "tiles": 1,
 *    "prearranged_a": 2, "scale_weights": 0, "per_sm": 2, "zeros_by_mma": 0,
 *    "register_reallocation": 0, "us": 58.31}
 *   ]}
 */
#define _POSIX_C_SOURCE 200809L
#include "matmul/table.h"

#include "support/numeral.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1 };

static const char *const zeros_names[] = {"none", "integer", "float"};

/* ---- reading ---------------------------------------------------------- */

typedef struct Reader {
    const json_t *entry;
    size_t index;               /* of the entry, from 1 */
    char *message;
    size_t size;
} Reader;

static bool __attribute__((format(printf, 2, 3))) fail(const Reader *r, const char *format,
                                                         ...)
{
    int n = snprintf(r->message, r->size, "tuning %zu: ", r->index);
    va_list args;
    va_start(args, format);
    if (n > 0 && (size_t)n < r->size)
        numeral_vformat(r->message + n, r->size - (size_t)n, format, args);
    va_end(args);
    return false;
}

/* Returns a field's text; NULL after a failure. */
static const char *read_text(const Reader *r, const char *field)
{
    const char *text = json_string_value(json_object_get(r->entry, field));
    if (!text)
        fail(r, "\"%s\" is missing, or no string", field);
    return text;
}

static bool copy_text(const Reader *r, const char *field, char *to, size_t size)
{
    const char *text = read_text(r, field);
    if (!text)
        return false;
    if (strlen(text) >= size)
        return fail(r, "\"%s\" has %zu bytes, more than %zu", field, strlen(text), size - 1);
    memcpy(to, text, strlen(text) + 1);
    return true;
}

static bool read_number(const Reader *r, const char *field, int64_t least, int64_t most,
                        int64_t *out)
{
    const json_t *value = json_object_get(r->entry, field);
    if (!json_is_integer(value))
        return fail(r, "\"%s\" is missing, or no integer", field);
    *out = json_integer_value(value);
    if (*out >= least && *out <= most)
        return true;
    return fail(r, "\"%s\" is %lld, not %lld to %lld", field, (long long)*out,
                (long long)least, (long long)most);
}

static bool read_int(const Reader *r, const char *field, int most, int *out)
{
    int64_t value = 0;
    bool ok = read_number(r, field, 0, most, &value);
    *out = (int)value;
    return ok;
}

static bool read_zeros(const Reader *r, tilus_zeros *out)
{
    const char *text = read_text(r, "zeros");
    if (!text)
        return false;
    for (*out = TILUS_ZEROS_NONE; *out <= TILUS_ZEROS_FLOAT; (*out)++)
        if (strcmp(text, zeros_names[*out]) == 0)
            return true;
    return fail(r, "\"zeros\" is \"%s\", not none, integer or float", text);
}

static bool read_problem(const Reader *r, MatmulSpec *spec)
{
    tilus_matmul_problem p = {0};
    char message[256];
    if (!(p.weights = read_text(r, "weights")) ||
        !(p.activations = read_text(r, "activations")) ||
        !(p.scales = read_text(r, "scales")) || !(p.result = read_text(r, "result")) ||
        !read_zeros(r, &p.zeros) || !read_number(r, "group", 0, INT32_MAX, &p.group) ||
        !read_number(r, "n", 1, INT32_MAX, &p.n) || !read_number(r, "k", 1, INT32_MAX, &p.k))
        return false;
    return matmul_spec(&p, spec, message, sizeof message) || fail(r, "%s", message);
}

enum { MOST = 65536 };          /* of m, and of a configuration's numbers */

/* Returns the name under which the entry has the field, today's where it has neither. */
static const char *find_field_name(const Reader *r, int field)
{
    const char *name = matmul_field_name(field), *was = matmul_field_earlier_name(field);
    bool earlier = !json_object_get(r->entry, name) && json_object_get(r->entry, was);
    return earlier ? was : name;
}

/* Reads a configuration. Tunings of earlier programs lack the last fields, which are 0. */
static bool read_fields(const Reader *r, MatmulConfig *c)
{
    enum { FIELDS_ALWAYS = 10 };
    for (int i = 0; i < MATMUL_FIELDS; i++) {
        const char *name = find_field_name(r, i);
        bool is_there = i < FIELDS_ALWAYS || json_object_get(r->entry, name);
        *matmul_field(c, i) = 0;
        if (is_there && !read_int(r, name, MOST, matmul_field(c, i)))
            return false;
    }
    matmul_config_renew(c);
    return true;
}

/* Checks what the configuration is for: products of up to 8 rows have them all at once, and how A
 * is arranged in blocks the plan decides. */
static bool check_use(const Reader *r, const MatmulTuning *t)
{
    enum { TILE = 8 };
    const MatmulConfig *c = &t->config;
    if (c->columns < TILE && c->columns < t->m)
        return fail(r, "\"columns\" is %d, fewer than the rows, %lld, and not %d", c->columns,
                    (long long)t->m, TILE);
    return c->prearranged_a < MATMUL_ARRANGED_IN_BLOCKS ||
           fail(r, "\"prearranged_a\" is %d, not 1, 2 or 3", c->prearranged_a);
}

/* Reads m and a configuration, which need not fit a device's shared memory and registers. */
static bool read_config(const Reader *r, MatmulTuning *t)
{
    enum { CLUSTER = 8 };       /* multiprocessors, for blocks of the largest */
    static const MatmulDevice any = {"", 90, CLUSTER, INT64_MAX / 2, INT64_MAX / 2, 1};
    char text[MATMUL_CONFIG_MAX];
    if (!read_number(r, "m", 1, MOST, &t->m) || !read_fields(r, &t->config))
        return false;
    if (matmul_bucket(t->m) != t->m)
        return fail(r, "\"m\" is %lld, not a power of two", (long long)t->m);
    if (!check_use(r, t))
        return false;
    return matmul_config_fits(&t->spec, &t->config, &any) ||
           fail(r, "no configuration of the template has %s",
                matmul_config_print(&t->config, text));
}

static bool read_entry(const Reader *r, MatmulTuning *t)
{
    if (!json_is_object(r->entry))
        return fail(r, "not an object");
    if (!copy_text(r, "template", t->template, sizeof t->template) ||
        !copy_text(r, "device", t->device, sizeof t->device) ||
        !copy_text(r, "driver", t->driver, sizeof t->driver) || !read_problem(r, &t->spec) ||
        !read_config(r, t))
        return false;
    t->us = json_number_value(json_object_get(r->entry, "us"));
    return t->us > 0 || fail(r, "\"us\" is missing, or no number above 0");
}

static bool read_entries(const json_t *list, MatmulTunings *out, char *message, size_t size)
{
    size_t count = json_array_size(list);
    out->items = calloc(count + 1, sizeof *out->items);
    if (!out->items) {
        snprintf(message, size, "%s", "");
        return false;
    }
    for (; out->count < count; out->count++) {
        Reader r = {json_array_get(list, out->count), out->count + 1, message, size};
        if (!read_entry(&r, &out->items[out->count]))
            return false;
    }
    return true;
}

static bool read_root(const json_t *root, MatmulTunings *out, char *message, size_t size)
{
    const json_t *format = json_object_get(root, "tilus-tune");
    const json_t *list = json_object_get(root, "tunings");
    if (!json_is_integer(format) || !json_is_array(list)) {
        snprintf(message, size, "not tunings: no \"tilus-tune\" with a number and \"tunings\" "
                 "with a list");
        return false;
    }
    if (json_integer_value(format) != FORMAT) {
        snprintf(message, size, "tunings of format %lld, this library reads %d",
                 (long long)json_integer_value(format), FORMAT);
        return false;
    }
    return read_entries(list, out, message, size);
}

bool matmul_tunings_read(const char *json, MatmulTunings *out, char *message, size_t size)
{
    json_error_t error;
    *out = (MatmulTunings){0};
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        bool memory = json_error_code(&error) == json_error_out_of_memory;
        if (memory)
            snprintf(message, size, "%s", "");
        else
            snprintf(message, size, "line %d, column %d: %s", error.line, error.column, error.text);
        return false;
    }
    bool ok = read_root(root, out, message, size);
    json_decref(root);
    if (!ok) {
        free(out->items);
        *out = (MatmulTunings){0};
    }
    return ok;
}

/* ---- writing ---------------------------------------------------------- */

static json_t *make_entry(const MatmulTuning *t)
{
    const MatmulSpec *s = &t->spec;
    json_t *entry = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:s, s:I, s:I, s:I}",
        "template", t->template, "device", t->device, "driver", t->driver,
        "weights", dtype_name(s->weights), "activations", dtype_name(s->activations),
        "scales", dtype_name(s->scales), "result", dtype_name(s->result),
        "group", (json_int_t)(s->group * s->repeats), "zeros", zeros_names[s->zeros],
        "n", (json_int_t)s->n, "k", (json_int_t)s->k, "m", (json_int_t)t->m);
    bool ok = entry;
    for (int i = 0; ok && i < MATMUL_FIELDS; i++)
        ok = json_object_set_new(entry, matmul_field_name(i),
                                 json_integer(matmul_field_value(&t->config, i))) == 0;
    if (ok && json_object_set_new(entry, "us", json_real(t->us)) == 0)
        return entry;
    json_decref(entry);
    return NULL;
}

static bool write_entry(FILE *f, const MatmulTuning *t)
{
    enum { DIGITS = 6 };
    json_t *entry = make_entry(t);
    bool ok = entry && json_dumpf(entry, f, JSON_REAL_PRECISION(DIGITS)) == 0;
    json_decref(entry);
    return ok;
}

char *matmul_tunings_write(const MatmulTunings *tunings)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    bool ok = fprintf(f, "{\"tilus-tune\": %d, \"tunings\": [", FORMAT) > 0;
    for (size_t i = 0; ok && i < tunings->count; i++)
        ok = fputs(i ? ",\n" : "\n", f) >= 0 && write_entry(f, &tunings->items[i]);
    ok &= fputs("\n]}\n", f) >= 0;
    if (fclose(f) == 0 && ok)
        return text;
    free(text);
    return NULL;
}
