/* A launch with given arguments: its blocks, and the bytes of tensors that it touches. */
#define _GNU_SOURCE
#include "launch.h"

#include "ir/op_access.h"
#include "ir/part.h"
#include "tilus/ir.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A global tensor that the program views. */
typedef struct Tensor {
    const Op *view;
    bool is_read, is_written;
} Tensor;

typedef struct Traffic {
    const Arguments *arguments;
    Tensor *tensors;
    size_t count, capacity;
    bool no_memory;
} Traffic;

/* ---- arguments ---------------------------------------------------------------------- */

static bool is_integer(tilus_arg_kind kind)
{
    return kind == TILUS_ARG_I32 || kind == TILUS_ARG_U32 || kind == TILUS_ARG_I64;
}

/* The argument that `text` ("m=16" or "%m=16") names, or SIZE_MAX. */
static size_t find_argument(const tilus_kernel_info *info, const char *text)
{
    text += *text == '%';
    size_t n = strcspn(text, "=");
    for (size_t i = 0; i < info->arg_count; i++)
        if (strlen(info->args[i].name) == n && !memcmp(info->args[i].name, text, n))
            return i;
    return SIZE_MAX;
}

static bool read_argument(Arguments *a, size_t i, const char *text)
{
    char *end;
    const char *value = strchr(text, '=') + 1;
    errno = 0;
    a->values[i].integer = strtoll(value, &end, 10);
    if (!errno && end != value && !*end)
        return a->known[i] = true;
    fprintf(stderr, TOOL ": error: --arg %s: not an integer\n", text);
    return false;
}

/* Reads those of --arg that the program has. */
static bool read_arguments(const Explain *e, Arguments *a)
{
    const StringList *list = &e->settings->args;
    for (size_t i = 0; i < list->count; i++) {
        size_t number = find_argument(a->info, list->items[i]);
        if (number != SIZE_MAX && is_integer(a->info->args[number].kind) &&
            !read_argument(a, number, list->items[i]))
            return false;
    }
    return true;
}

/* Returns true when the i-th program has an integer argument that `text` names. */
static bool has_argument(const Explain *e, size_t i, const char *text)
{
    const tilus_kernel_info *info = tilus_module_kernel_info(e->module,
                                                             tilus_program_name(e->module, i));
    size_t number = find_argument(info, text);
    return number != SIZE_MAX && is_integer(info->args[number].kind);
}

/* Checks that each NAME of --arg is an integer argument of some program. */
static bool check_names(const Explain *e)
{
    const StringList *list = &e->settings->args;
    for (size_t i = 0; i < list->count; i++) {
        bool found = false;
        for (size_t p = 0; p < tilus_program_count(e->module); p++)
            found |= has_argument(e, p, list->items[i]);
        if (found && strchr(list->items[i], '='))
            continue;
        fprintf(stderr, TOOL ": error: --arg %s: expected NAME=INTEGER of an argument\n",
                list->items[i]);
        return false;
    }
    return true;
}

/* ---- bytes --------------------------------------------------------------------------- */

/* The bytes of a tensor; -1 where its extents do not follow from the arguments. */
static int64_t tensor_bytes(const Arguments *a, const Type *t)
{
    int64_t count = 1, extent;
    const Place place = {.arguments = a};
    for (unsigned i = 0; i < t->rank; i++)
        if (!place_evaluate(&place, t->extents[i], &extent) || extent < 0 ||
            __builtin_mul_overflow(count, extent, &count))
            return -1;
    int64_t bits;
    return __builtin_mul_overflow(count, tilus_type_bits(tilus_type_element((const tilus_type *)t)),
                                  &bits) ? -1 : bits / 8 + (bits % 8 != 0);
}

static Tensor *find_tensor(Traffic *t, const Op *view)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->tensors[i].view == view)
            return &t->tensors[i];
    if (t->count == t->capacity) {
        size_t capacity = 2 * t->capacity + 16;
        Tensor *more = realloc(t->tensors, capacity * sizeof *more);
        if (!more)
            return NULL;
        t->tensors = more;
        t->capacity = capacity;
    }
    t->tensors[t->count] = (Tensor){.view = view};
    return &t->tensors[t->count++];
}

static bool add_accesses(Op *op, void *traffic)
{
    Traffic *t = traffic;
    OpAccess accesses[ACCESSES_MAX];
    unsigned count = op_accesses(op, accesses);
    for (unsigned i = 0; i < count; i++) {
        const Value *root = memory_root(accesses[i].tile.memory);
        if (root->type->kind != TYPE_GLOBAL || !root->def || root->def->code != OP_view_global)
            continue;
        Tensor *tensor = find_tensor(t, root->def);
        if (!tensor)
            return !(t->no_memory = true);
        tensor->is_read |= accesses[i].mode != MODE_WRITE;
        tensor->is_written |= accesses[i].mode != MODE_READ;
    }
    return true;
}

static json_t *describe_tensor(Explain *e, const Tensor *t, int64_t bytes)
{
    const Value *v = t->view->results[0];
    json_t *object = json_object();
    doc_put(e, object, "name", doc_text_or_null(v->name));
    doc_put(e, object, "line", json_integer(t->view->loc.line));
    doc_put(e, object, "bytes", bytes < 0 ? json_null() : json_integer(bytes));
    doc_put(e, object, "read", json_boolean(t->is_read));
    doc_put(e, object, "written", json_boolean(t->is_written));
    return object;
}

/* Sums bytes: of tensors that are read, and of those that are written, each once. */
static void put_traffic(Explain *e, json_t *launch, const Traffic *t)
{
    int64_t sum = 0;
    bool complete = true;
    json_t *tensors = json_array();
    for (size_t i = 0; i < t->count; i++) {
        const Tensor *one = &t->tensors[i];
        int64_t bytes = tensor_bytes(t->arguments, one->view->results[0]->type);
        doc_add(e, tensors, describe_tensor(e, one, bytes));
        complete &= bytes >= 0;
        for (int times = one->is_read + one->is_written; bytes > 0 && times > 0; times--)
            complete &= !__builtin_add_overflow(sum, bytes, &sum);
    }
    doc_put(e, launch, "tensors", tensors);
    doc_put(e, launch, "bytes", complete ? json_integer(sum) : json_null());
}

/* ---- blocks ---------------------------------------------------------------------------- */

/* Says how many times the device's multiprocessors are filled, where ptxas gave an occupancy. */
static void put_waves(Explain *e, json_t *launch, const json_t *program, double blocks)
{
    const tilus_device_description *d = tilus_find_device(e->settings->device);
    json_int_t each = doc_integer(json_object_get(program, "occupancy"), "blocks");
    doc_put(e, launch, "device", doc_text_or_null(d ? d->name : NULL));
    doc_put(e, launch, "waves", d && each ? json_real(ceil(blocks / (d->multiprocessors * each)))
                                          : json_null());
}

/* Puts the grid, if the arguments keep their facts; null and why they do not, if not: false. */
static bool put_grid(Explain *e, json_t *launch, const json_t *program, const Arguments *a,
                     int64_t grid[3])
{
    char why[512] = "";
    bool complete = true;
    for (size_t i = 0; i < a->info->arg_count; i++)
        complete &= a->known[i] || !is_integer(a->info->args[i].kind);
    if (!complete)
        snprintf(why, sizeof why, "arguments are missing");
    bool ok = complete && tilus_kernel_check(a->info, a->values, a->info->arg_count, grid, why,
                                             sizeof why) == TILUS_OK;
    json_t *extents = ok ? json_array() : json_null();
    for (size_t i = 0; ok && i < 3; i++)
        doc_add(e, extents, json_integer(grid[i]));
    doc_put(e, launch, "grid", extents);
    doc_put(e, launch, "refused", ok ? json_null() : doc_text(why));
    if (ok)
        put_waves(e, launch, program, (double)grid[0] * (double)grid[1] * (double)grid[2]);
    return ok;
}

/* ---- all programs ------------------------------------------------------------------------- */

static json_t *list_given(Explain *e, const Arguments *a)
{
    json_t *given = json_object();
    for (size_t i = 0; i < a->info->arg_count; i++)
        if (a->known[i])
            doc_put(e, given, a->info->args[i].name, json_integer(a->values[i].integer));
    return given;
}

static bool describe_launch(Explain *e, json_t *program, const Arguments *a)
{
    Module *m = e->module;
    Traffic t = {.arguments = a};
    int64_t grid[3];
    json_t *launch = doc_put(e, program, "launch", json_object());
    if (!launch)
        return false;
    region_walk(module_find_program(m, a->info->name)->body, add_accesses, &t);
    e->no_memory |= t.no_memory;
    doc_put(e, launch, "arguments", list_given(e, a));
    bool ok = put_grid(e, launch, program, a, grid);
    put_traffic(e, launch, &t);
    launch_operations(e, launch, a, ok ? grid : NULL);
    launch_floor(e, launch);
    free(t.tensors);
    return !e->no_memory;
}

bool arguments_open(Explain *e, const char *program, Arguments *a)
{
    *a = (Arguments){.info = tilus_module_kernel_info(e->module, program)};
    a->values = calloc(a->info->arg_count + 1, sizeof *a->values);
    a->known = calloc(a->info->arg_count + 1, sizeof *a->known);
    e->no_memory |= !a->values || !a->known;
    return !e->no_memory && read_arguments(e, a);
}

void arguments_close(Arguments *a)
{
    free(a->values);
    free(a->known);
}

static bool explain_program(Explain *e, json_t *program)
{
    Arguments a;
    bool ok = arguments_open(e, doc_string(program, "name"), &a) && describe_launch(e, program, &a);
    arguments_close(&a);
    return ok;
}

bool explain_launch(Explain *e)
{
    size_t i;
    json_t *program;
    if (!e->settings->args.count)
        return true;
    if (!check_names(e))
        return false;
    json_array_foreach(json_object_get(e->doc, "programs"), i, program)
        if (!explain_program(e, program))
            return false;
    return true;
}
