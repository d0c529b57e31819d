/* Places of register tensors' elements in memory: the tiles that loads and stores move, and
 * views of other tensors' bits. */
#include "launch.h"

#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/part.h"
#include "tilus/ir.h"

#include <setjmp.h>
#include <string.h>

typedef struct Search {
    Explain *e;
    Arguments arguments;
    json_t *values;             /* of the program */
} Search;

/* ---- values of the document -------------------------------------------------------------- */

static bool is_value(const json_t *entry, const Value *v)
{
    return doc_integer(entry, "line") == v->def->loc.line &&
           doc_integer(entry, "column") == v->def->loc.column &&
           !strcmp(doc_string(entry, "name"), v->name ? v->name : "") &&
           !strcmp(doc_string(entry, "kind"), "register");
}

/* The entry of a register tensor and its number; NULL where it has none. */
static json_t *find_value(const Search *s, const Value *v, size_t *number)
{
    size_t i, count = json_array_size(s->values);
    bool is_register = v->def && v->type->kind == TYPE_REG;
    for (i = 0; is_register && i < count; i++)
        if (is_value(json_array_get(s->values, i), v))
            break;
    *number = i;
    return is_register ? json_array_get(s->values, i) : NULL;
}

/* ---- places -------------------------------------------------------------------------------- */

/* Adds the first iterations of the loops around a region, from the outside in. */
static void add_loops(Place *p, const Region *r)
{
    const Op *op = r->parent;
    int64_t lower;
    if (!op)
        return;
    add_loops(p, op->parent);
    if (op->code != OP_for || p->depth == PLACE_LOOPS ||
        !place_evaluate(p, op_expr(op, ATTR_LOWER), &lower))
        return;
    p->loops[p->depth].index = for_index(op);
    p->loops[p->depth++].number = lower;
}

static json_t *number_of(const Place *p, const Expr *e)
{
    int64_t number;
    return e && place_evaluate(p, e, &number) ? json_integer(number) : json_null();
}

static void put_offsets(const Search *s, json_t *tile, const MemoryTile *t, const Op *op)
{
    static const int64_t first_block[3];
    Explain *e = s->e;
    Place place = {.arguments = &s->arguments, .block = first_block};
    json_t *offsets = json_array(), *first = json_array(), *strides = json_array();
    add_loops(&place, op->parent);
    for (unsigned d = 0; d < t->offsets->count; d++) {
        char *text = tilus_expr_print(e->module, (const tilus_expr *)t->offsets->exprs[d]);
        doc_add(e, offsets, text ? doc_text(text) : NULL);
        doc_add(e, first, number_of(&place, t->offsets->exprs[d]));
        doc_add(e, strides, number_of(&place, type_stride(e->module, t->memory->type, d)));
        tilus_free(text);
    }
    doc_put(e, tile, "offsets", offsets);
    doc_put(e, tile, "first", first);
    doc_put(e, tile, "strides", strides);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

static json_t *describe_tile(const Search *s, const MemoryTile *t, const OpAccess *access,
                             const Op *op)
{
    static const char *const modes[] = {"reads", "writes", "changes"};
    Explain *e = s->e;
    json_t *tile = json_object(), *dims = json_array();
    for (unsigned d = 0; d < t->rank; d++)
        doc_add(e, dims, json_integer(memory_tile_dim(t, d)));
    doc_put(e, tile, "mode", doc_text(modes[access->mode]));
    doc_put(e, tile, "memory", doc_text_or_null(t->memory->name));
    doc_put(e, tile, "kind",
            doc_text(t->memory->type->kind == TYPE_SHARED ? "shared" : "global"));
    doc_put(e, tile, "line", json_integer(op->loc.line));
    doc_put(e, tile, "bits", json_integer(dtype_bits(t->memory->type->dtype)));
    doc_put(e, tile, "dims", dims);
    put_offsets(s, tile, t, op);
    return tile;
}

/* The register tensor that a load or store moves; NULL for other ops. */
static const Value *moved_value(const Op *op)
{
    if (op->result_count && op->results[0]->type->kind == TYPE_REG)
        return op->results[0];
    for (unsigned i = 0; i < op->operand_count && !op->result_count; i++)
        if (op->operands[i]->type->kind == TYPE_REG)
            return op->operands[i];
    return NULL;
}

/* Unrolled copies of an op have one entry, whose first tiles stand for all. */
static void add_tile(const Search *s, json_t *entry, json_t *tile)
{
    size_t i;
    const json_t *other;
    json_t *tiles = json_object_get(entry, "tiles");
    json_array_foreach(tiles, i, other)
        if (json_equal(json_object_get(other, "line"), json_object_get(tile, "line"))) {
            json_decref(tile);
            return;
        }
    if (!tiles)
        tiles = doc_put(s->e, entry, "tiles", json_array());
    doc_add(s->e, tiles, tile);
}

/* Takes what the op moves between registers and a tile of memory whose elements follow from its
 * offsets alone. A part of a shared tensor begins where its root does not. */
static void take_access(const Search *s, const Op *op)
{
    OpAccess access[ACCESSES_MAX];
    size_t number;
    const Value *v = moved_value(op);
    json_t *entry = v && op_accesses(op, access) == 1 ? find_value(s, v, &number) : NULL;
    if (!entry || access[0].data_dependent || !access[0].tile.offsets || access[0].tile.index)
        return;
    const MemoryTile *t = &access[0].tile;
    bool is_whole = t->memory->type->kind == TYPE_GLOBAL || memory_root(t->memory) == t->memory;
    if (is_whole && t->rank == json_array_size(json_object_get(entry, "shape")))
        add_tile(s, entry, describe_tile(s, t, &access[0], op));
}

static void take_view(const Search *s, const Op *op)
{
    size_t number, of;
    json_t *entry = find_value(s, op->results[0], &number);
    if (entry && find_value(s, op->operands[0], &of))
        doc_put(s->e, entry, "view_of", json_integer((json_int_t)of));
}

static bool visit(Op *op, void *search)
{
    if (op->code == OP_view)
        take_view(search, op);
    else
        take_access(search, op);
    return true;
}

/* Strides jump to the module's guard when memory runs out. */
static bool describe_program(Search *s, const char *name)
{
    Module *m = s->e->module;
    if (setjmp(m->diag->oom.jump))
        return !(s->e->no_memory = true);
    region_walk(module_find_program(m, name)->body, visit, s);
    return !s->e->no_memory;
}

bool explain_tiles(Explain *e)
{
    size_t i;
    const json_t *program;
    json_array_foreach(json_object_get(e->doc, "programs"), i, program) {
        Search s = {.e = e, .values = json_object_get(program, "values")};
        bool ok = arguments_open(e, doc_string(program, "name"), &s.arguments) &&
                  describe_program(&s, doc_string(program, "name"));
        arguments_close(&s.arguments);
        if (!ok)
            return false;
    }
    return true;
}
