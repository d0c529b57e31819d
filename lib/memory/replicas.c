/* A search backwards from the value, for an op that may give replicas different
 * bits: a view, under whose result threads share an element that they did not
 * share under its operand.
 *
 *     %y = view %x : u8[2] @ replicate(32).local(2)      of %x : u16[32] @ spatial(32)
 */
#include "memory/replicas.h"

#include "ir/lookup.h"
#include "ir/tile.h"

typedef struct Search {
    Arena *arena;
    Value **met;            /* values to come and those done */
    unsigned count;
    uint32_t capacity;
} Search;

static void search_add(Search *s, Value *v)
{
    if (v->type->kind != TYPE_REG || layout_replicas(v->type->layout) == 1)
        return;
    for (unsigned i = 0; i < s->count; i++)
        if (s->met[i] == v)
            return;
    arena_push(s->arena, s->met, s->count, s->capacity, v);
}

/* The least thread that holds what `thread` holds. */
static int64_t least_holder(const Layout *l, int64_t thread)
{
    int64_t index[LIMIT_RANK], least, slot;
    layout_index(l, thread, 0, index);
    layout_place(l, index, &least, &slot);
    return least;
}

/* Returns true when threads that share elements under `to` do so under `from`. */
static bool replicas_stay(const Layout *from, const Layout *to)
{
    for (int64_t t = 0; t < to->threads; t++)
        if (least_holder(from, t) != least_holder(from, least_holder(to, t)))
            return false;
    return true;
}

static bool add_operands(Search *s, const Op *op, const Layout *to)
{
    bool computed = op->code == OP_dot || op->code == OP_reduce ||
                    op->code == OP_convert_layout;
    if (op_info[op->code].effect != EFFECT_PURE || (!op->operand_count &&
                                                   op_info[op->code].result != RESULT_REG))
        return false;
    for (unsigned i = 0; i < op->operand_count; i++) {
        Value *v = op->operands[i];
        if (v->type->kind != TYPE_REG)
            return false;
        if (!computed && v->type->layout != to && !replicas_stay(v->type->layout, to))
            return false;
        search_add(s, v);
    }
    return true;
}

static void add_yielded(Search *s, const Op *op, unsigned i)
{
    for (unsigned r = 0; r < op->region_count; r++)
        search_add(s, region_yield(op->regions[r])->operands[i]);
}

/* Returns true when threads read rows of their own, which the program may have made
 * differ. */
static bool table_has_copies(const Op *op)
{
    LookupTable table;
    return lookup_table(op->operands[1]->type, &table) && table.has_copies;
}

/* Adds what `v` comes from; false when its replicas may differ. */
static bool add_sources(Search *s, const Value *v)
{
    const Op *op = v->def ? v->def : v->region ? v->region->parent : NULL;
    if (!op)
        return false;
    if (op->code == OP_lookup_shared) {
        search_add(s, op->operands[0]);
        return !table_has_copies(op);
    }
    /* Replicas of a load's or atomic op's result agree where those of its index do. */
    Effect effect = op_info[op->code].effect;
    if (op_index(op))
        search_add(s, op_index(op));
    if (effect == EFFECT_READS || effect == EFFECT_WRITES)
        return true;
    if (op->code == OP_for) {
        unsigned i = v->def ? v->index : v->index - 1;
        search_add(s, op->operands[i]);
        add_yielded(s, op, i);
        return true;
    }
    if (op->code == OP_if) {
        add_yielded(s, op, v->index);
        return true;
    }
    return add_operands(s, op, v->type->layout);
}

bool replicas_are_equal(Module *m, Value *v)
{
    ArenaMark mark = arena_mark(&m->scratch);
    Search s = {.arena = &m->scratch};
    bool equal = true;
    search_add(&s, v);
    for (unsigned i = 0; i < s.count && equal; i++)
        equal = add_sources(&s, s.met[i]);
    arena_reset(&m->scratch, mark);
    return equal;
}
