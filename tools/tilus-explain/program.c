/* Programs: their launch, ops, values and layouts, as the passes left them. */
#define _GNU_SOURCE
#include "tool.h"

#include "tilus/ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ops and values of one program; copies that unrolling made are one entry, which counts them. */
typedef struct Listing {
    Explain *e;
    json_t *ops, *values;
    json_t *known;              /* entries by a text that tells them apart, borrowed values */
} Listing;

/* ---- layouts ------------------------------------------------------------------------- */

static json_t *list_digits(Explain *e, const LayoutDigit *digits, unsigned count)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++) {
        json_t *digit = json_object();
        doc_put(e, digit, "extent", json_integer(digits[i].extent));
        doc_put(e, digit, "mode", digits[i].mode < 0 ? json_null() : json_integer(digits[i].mode));
        doc_add(e, list, digit);
    }
    return list;
}

static json_t *list_modes(Explain *e, const Layout *l)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < l->mode_count; i++) {
        json_t *mode = json_object();
        doc_put(e, mode, "extent", json_integer(l->modes[i].extent));
        doc_put(e, mode, "dim", json_integer(l->modes[i].dim));
        doc_add(e, list, mode);
    }
    return list;
}

static json_t *describe_layout(Explain *e, const Layout *l)
{
    json_t *object = json_object(), *shape = json_array();
    char *text = tilus_layout_print((const tilus_layout *)l);
    for (unsigned i = 0; i < l->rank; i++)
        doc_add(e, shape, json_integer(l->shape[i]));
    doc_put(e, object, "text", text ? doc_text(text) : NULL);
    doc_put(e, object, "shape", shape);
    doc_put(e, object, "modes", list_modes(e, l));
    doc_put(e, object, "spatial", list_digits(e, l->spatial, l->spatial_count));
    doc_put(e, object, "local", list_digits(e, l->local, l->local_count));
    doc_put(e, object, "threads", json_integer(l->threads));
    doc_put(e, object, "slots", json_integer(l->slots));
    tilus_free(text);
    return object;
}

static bool reserve_layout(Explain *e, size_t count)
{
    if (count < e->layout_capacity)
        return true;
    size_t capacity = 2 * count + 16;
    const Layout **list = realloc(e->layout_list, capacity * sizeof *list);
    if (!list)
        return !(e->no_memory = true);
    e->layout_list = list;
    e->layout_capacity = capacity;
    return true;
}

/* The number of a layout in the document's list: equal layouts are one pointer. */
static json_t *layout_number(Explain *e, const Layout *l)
{
    size_t i = 0, count = json_array_size(e->layouts);
    while (i < count && e->layout_list[i] != l)
        i++;
    if (i == count && reserve_layout(e, count)) {
        e->layout_list[count] = l;
        doc_add(e, e->layouts, describe_layout(e, l));
    }
    return json_integer((json_int_t)i);
}

/* ---- values ---------------------------------------------------------------------------- */

static json_t *list_extents(Explain *e, const tilus_type *type)
{
    json_t *list = json_array();
    for (size_t i = 0; i < tilus_type_rank(type); i++) {
        int64_t extent = tilus_type_extent(type, i);
        doc_add(e, list, extent < 0 ? json_null() : json_integer(extent));
    }
    return list;
}

static void put_swizzle(Explain *e, json_t *object, const tilus_type *type)
{
    unsigned bits, base, shift;
    if (!tilus_type_swizzle(type, &bits, &base, &shift))
        return;
    json_t *swizzle = json_object();
    doc_put(e, swizzle, "bits", json_integer(bits));
    doc_put(e, swizzle, "base", json_integer(base));
    doc_put(e, swizzle, "shift", json_integer(shift));
    doc_put(e, object, "swizzle", swizzle);
}

/* The strides of a shared tensor, in elements, where it is not row-major. */
static void put_strides(Explain *e, json_t *object, const tilus_type *type)
{
    if (tilus_type_kind(type) != TILUS_KIND_SHARED || !tilus_type_stride_expr(type, 0))
        return;
    json_t *strides = json_array();
    for (size_t i = 0; i < tilus_type_rank(type); i++)
        doc_add(e, strides, json_integer(tilus_expr_integer(tilus_type_stride_expr(type, i))));
    doc_put(e, object, "strides", strides);
}

static json_t *describe_value(Explain *e, const tilus_op *op, const tilus_value *v,
                              const char *text)
{
    static const char *const kinds[] = {"scalar", "pointer", "register", "shared", "global",
                                        "mbarrier"};
    const tilus_type *type = tilus_value_type(v);
    const tilus_layout *layout = tilus_type_layout(type);
    const char *element = tilus_type_element(type);
    json_t *object = json_object();
    doc_put(e, object, "name", doc_text_or_null(tilus_value_name(v)));
    doc_put(e, object, "file", doc_text(tilus_op_file(op) ? tilus_op_file(op) : ""));
    doc_put(e, object, "line", json_integer(tilus_op_line(op)));
    doc_put(e, object, "column", json_integer(tilus_op_column(op)));
    doc_put(e, object, "kind", doc_text(kinds[tilus_type_kind(type)]));
    doc_put(e, object, "type", doc_text(text));
    doc_put(e, object, "element", doc_text(element));
    doc_put(e, object, "bits", json_integer(tilus_type_bits(element)));
    doc_put(e, object, "shape", list_extents(e, type));
    doc_put(e, object, "layout",
            layout ? layout_number(e, (const Layout *)layout) : json_null());
    doc_put(e, object, "copies", json_integer(1));
    put_swizzle(e, object, type);
    put_strides(e, object, type);
    return object;
}

/* Counts one more copy of the entry under `key`; false where there is none yet. */
static bool count_copy(Listing *l, const char *key)
{
    json_t *entry = json_object_get(l->known, key);
    if (entry)
        doc_put(l->e, entry, "copies", json_integer(doc_integer(entry, "copies") + 1));
    return entry != NULL;
}

/* Adds an entry to a list, and to those that are known. */
static void add_entry(Listing *l, json_t *list, const char *key, json_t *entry)
{
    doc_add(l->e, list, entry);
    l->e->no_memory |= json_object_set_nocheck(l->known, key, entry) != 0;
}

/* The key of a result of `op` of the type with this text, freed by the caller; NULL without
 * memory. */
static char *value_key(Listing *l, const tilus_op *op, const char *type)
{
    char *key = NULL;
    if (type && asprintf(&key, "%%%u:%u:%s:%s", tilus_op_line(op), tilus_op_column(op),
                         tilus_op_file(op) ? tilus_op_file(op) : "", type) >= 0)
        return key;
    l->e->no_memory = true;
    return NULL;
}

static void add_value(Listing *l, const tilus_op *op, const tilus_value *v)
{
    const tilus_type *type = tilus_value_type(v);
    if (tilus_type_kind(type) == TILUS_KIND_SCALAR || tilus_type_kind(type) == TILUS_KIND_POINTER)
        return;
    char *text = tilus_type_print(l->e->module, type), *key = value_key(l, op, text);
    if (key && !count_copy(l, key))
        add_entry(l, l->values, key, describe_value(l->e, op, v, text));
    free(key);
    tilus_free(text);
}

/* ---- fragments ------------------------------------------------------------------------- */

/* Says which part of a register tensor one instruction takes or gives, its last two dimensions. */
static void put_fragment(Listing *l, const tilus_value *v, const char *instruction, int rows,
                         int columns)
{
    const tilus_op *op = v ? tilus_value_definition(v) : NULL;
    if (!op || tilus_type_kind(tilus_value_type(v)) != TILUS_KIND_REGISTER)
        return;
    char *text = tilus_type_print(l->e->module, tilus_value_type(v)), *key = value_key(l, op, text);
    json_t *entry = key ? json_object_get(l->known, key) : NULL, *fragment = json_object();
    doc_put(l->e, fragment, "instruction", doc_text(instruction));
    doc_put(l->e, fragment, "rows", json_integer(rows));
    doc_put(l->e, fragment, "columns", json_integer(columns));
    if (entry)
        doc_put(l->e, entry, "fragment", fragment);
    else
        json_decref(fragment);
    free(key);
    tilus_free(text);
}

/* Puts the fragments of a product's factors and sums, as its `via`, mma.m16n8k16 say, has them. */
static void put_fragments(Listing *l, const tilus_op *op)
{
    int m, n, k;
    tilus_attr a;
    for (size_t i = 0; tilus_op_attr_at(op, i, &a); i++) {
        const char *shape = a.kind == TILUS_ATTR_WORD ? strstr(a.text, "mma.m") : NULL;
        if (strcmp(a.name, "via") || !shape || sscanf(shape, "mma.m%dn%dk%d", &m, &n, &k) != 3)
            continue;
        put_fragment(l, tilus_op_operand(op, 0), a.text, m, k);
        put_fragment(l, tilus_op_operand(op, 1), a.text, k, n);
        put_fragment(l, tilus_op_operand(op, 2), a.text, m, n);
        put_fragment(l, tilus_op_result(op, 0), a.text, m, n);
    }
}

/* ---- ops ------------------------------------------------------------------------------- */

static json_t *list_integers(Explain *e, const tilus_attr *a)
{
    json_t *list = json_array();
    for (size_t i = 0; i < a->count; i++)
        doc_add(e, list, json_integer(a->integers[i]));
    return list;
}

/* An attribute's value; NULL for expressions, which differ from copy to copy. */
static json_t *attribute_value(Explain *e, const tilus_attr *a)
{
    switch (a->kind) {
    case TILUS_ATTR_INTEGER: return json_integer(a->integer);
    case TILUS_ATTR_INTEGERS: return list_integers(e, a);
    case TILUS_ATTR_NUMBER: return json_real(a->number);
    case TILUS_ATTR_WORD:
    case TILUS_ATTR_TEXT: return doc_text(a->text);
    case TILUS_ATTR_EXPR:
    case TILUS_ATTR_EXPRS: break;
    }
    return NULL;
}

static json_t *list_attributes(Explain *e, const tilus_op *op)
{
    json_t *attributes = json_object();
    tilus_attr a;
    for (size_t i = 0; tilus_op_attr_at(op, i, &a); i++) {
        json_t *value = attribute_value(e, &a);
        bool is_expression = a.kind == TILUS_ATTR_EXPR || a.kind == TILUS_ATTR_EXPRS;
        if (!is_expression)     /* a NaN or infinity has no JSON */
            doc_put(e, attributes, a.name, value || a.kind != TILUS_ATTR_NUMBER ? value
                                                                               : json_null());
    }
    return attributes;
}

static json_t *describe_op(Explain *e, const tilus_op *op)
{
    json_t *object = json_object();
    doc_put(e, object, "op", doc_text(tilus_op_name(op)));
    doc_put(e, object, "file", doc_text(tilus_op_file(op) ? tilus_op_file(op) : ""));
    doc_put(e, object, "line", json_integer(tilus_op_line(op)));
    doc_put(e, object, "column", json_integer(tilus_op_column(op)));
    doc_put(e, object, "attributes", list_attributes(e, op));
    return object;
}

static void add_op(Listing *l, const tilus_op *op)
{
    json_t *entry = describe_op(l->e, op);
    char *key = json_dumps(entry, JSON_SORT_KEYS | JSON_COMPACT);
    l->e->no_memory |= !key;
    doc_put(l->e, entry, "copies", json_integer(1));
    if (!key || count_copy(l, key))
        json_decref(entry);
    else
        add_entry(l, l->ops, key, entry);
    free(key);
}

static tilus_walk visit(tilus_op *op, void *listing)
{
    Listing *l = listing;
    if (strcmp(tilus_op_name(op), "yield") != 0)
        add_op(l, op);
    for (size_t i = 0; i < tilus_op_result_count(op); i++)
        add_value(l, op, tilus_op_result(op, i));
    put_fragments(l, op);
    return l->e->no_memory ? TILUS_WALK_STOP : TILUS_WALK_ON;
}

/* ---- programs ---------------------------------------------------------------------------- */

static json_t *describe_argument(Explain *e, const tilus_arg_info *a)
{
    json_t *object = json_object();
    doc_put(e, object, "name", doc_text(a->name));
    doc_put(e, object, "type", doc_text(a->dtype));
    doc_put(e, object, "pointer", json_boolean(a->kind == TILUS_ARG_POINTER));
    doc_put(e, object, "divisible", json_integer(a->divisible));
    doc_put(e, object, "least", json_integer(a->min));
    doc_put(e, object, "most", json_integer(a->max));
    doc_put(e, object, "align", json_integer(a->align));
    return object;
}

static json_t *list_grid(Explain *e, const tilus_program *p)
{
    json_t *grid = json_array();
    for (size_t i = 0; i < tilus_program_grid_rank(p); i++) {
        char *text = tilus_expr_print(e->module, tilus_program_grid(p, i));
        doc_add(e, grid, text ? doc_text(text) : NULL);
        tilus_free(text);
    }
    return grid;
}

static void put_launch(Explain *e, json_t *object, const tilus_kernel_info *info)
{
    json_t *arguments = json_array(), *cluster = json_array();
    for (size_t i = 0; i < info->arg_count; i++)
        doc_add(e, arguments, describe_argument(e, &info->args[i]));
    for (size_t i = 0; i < 3; i++)
        doc_add(e, cluster, json_integer(info->cluster[i]));
    doc_put(e, object, "arguments", arguments);
    doc_put(e, object, "threads", json_integer(info->threads));
    doc_put(e, object, "shared_bytes", json_integer((json_int_t)info->shared_bytes));
    doc_put(e, object, "cluster", cluster);
    doc_put(e, object, "cooperative", json_boolean(info->cooperative));
}

static bool describe_program(Explain *e, json_t *programs, tilus_program *p)
{
    const char *name = tilus_program_symbol(p);
    const tilus_kernel_info *info = tilus_module_kernel_info(e->module, name);
    json_t *object = json_object();
    Listing l = {.e = e, .known = json_object()};
    doc_add(e, programs, object);
    if (!info || e->no_memory) {
        json_decref(l.known);
        return false;
    }
    doc_put(e, object, "name", doc_text(name));
    doc_put(e, object, "grid", list_grid(e, p));
    put_launch(e, object, info);
    l.ops = doc_put(e, object, "ops", json_array());
    l.values = doc_put(e, object, "values", json_array());
    if (!e->no_memory)
        tilus_block_walk(tilus_program_body(p), visit, &l);
    json_decref(l.known);
    return !e->no_memory && explain_shared(e, name, object) &&
           explain_registers(e, name, object);
}

bool explain_programs(Explain *e)
{
    json_t *programs = doc_put(e, e->doc, "programs", json_array());
    bool ok = programs != NULL;
    for (size_t i = 0; ok && i < tilus_program_count(e->module); i++)
        ok = describe_program(e, programs, tilus_program_at(e->module, i));
    return ok;
}
