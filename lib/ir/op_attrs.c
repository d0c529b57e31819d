/* Queries of attributes, and the table of instructions. */
#include "ir/op_attrs.h"

#include "ir/tile.h"
#include "support/text.h"

#include <assert.h>

const ViaInfo via_info[VIA_COUNT] = {
    [VIA_units] = {"", OP_COUNT, 0, false},
#define VIA(id, spelling, op, matrices, transposed)                           \
    [VIA_##id] = {spelling, OP_##op, matrices, transposed},
#include "ir/via.def"
};

Via via_find(const char *word)
{
    return attr_word_find(ATTR_VIA, word);
}

/* The number of the attribute's word; `otherwise` when the op has none. */
static unsigned op_word(const Op *op, AttrKind kind, unsigned otherwise)
{
    const Attr *attr = op_attr(op, kind);
    assert(!attr || attr->word <= attr_info[kind].word_count);
    return attr ? attr->word : otherwise;
}

const char *attr_word_text(const Attr *attr)
{
    const AttrInfo *info = &attr_info[attr->kind];
    assert(info->value == ATTR_VALUE_WORD);
    return attr->word < info->word_count ? info->words[attr->word] : attr->text;
}

const char *attr_words_text(Arena *arena, AttrKind kind)
{
    const AttrInfo *info = &attr_info[kind];
    Text text;
    text_init(&text, arena);
    for (unsigned i = 0; i < info->word_count; i++)
        if (*info->words[i])
            text_printf(&text, "%s%s", !text.len ? "" : i + 1 < info->word_count ? ", " : " or ",
                        info->words[i]);
    return text_string(&text);
}

Via op_via(const Op *op)
{
    return op_word(op, ATTR_VIA, VIA_units);
}

Drain op_drain(const Op *op)
{
    return op_word(op, ATTR_DRAIN, DRAIN_NONE);
}

Reduction store_reduction(const Op *op)
{
    return op_word(op, ATTR_REDUCE, REDUCTION_NONE);
}

bool bulk_wait_reads(const Op *op)
{
    return op_word(op, ATTR_READ, FLAG_FALSE) == FLAG_TRUE;
}

int64_t mbarrier_arrivals(const Op *op)
{
    return op_attr(op, ATTR_ARRIVALS)->integer;
}

bool workspace_is_zeroed(const Op *op)
{
    return op_word(op, ATTR_ZEROED, FLAG_FALSE) == FLAG_TRUE;
}

const Value *grid_state(const Value *v)
{
    const Op *def = v->def;
    if (def && def->code == OP_view_global)
        return def->operands[0];
    return def && def->code == OP_allocate_global && workspace_is_zeroed(def) ? v : NULL;
}

bool cast_is_finite(const Op *op)
{
    return op_word(op, ATTR_FINITE, FLAG_FALSE) == FLAG_TRUE;
}

unsigned iota_dim(const Op *op)
{
    const Attr *dim = op_attr(op, ATTR_DIM);
    return dim ? (unsigned)dim->integer : 0;
}

/* The index of the last element that an iota counts; 0 for other ops. */
static int64_t last_index(const Op *op)
{
    return op->code == OP_iota ? type_extent(op->results[0]->type, iota_dim(op)) - 1 : 0;
}

bool value_holds(const Op *op, int64_t value)
{
    DType t = op->results[0]->type->dtype;
    int64_t least = 0, most = t == DTYPE_bool ? 1 : INT64_MAX;  /* u64: as far as i64 goes */
    dtype_integer_range(t, &least, &most);
    return value >= least && value <= most - last_index(op);
}

const char *value_misfit_text(Arena *arena, const Op *op, int64_t value)
{
    DType t = op->results[0]->type->dtype;
    Text range;
    text_init(&range, arena);
    constant_print_range(&range, t);
    if (op->code != OP_iota)
        return arena_printf(arena, "%s of %lld, the numbers of %s are %s", op_info[op->code].name,
                            (long long)value, dtype_name(t), text_string(&range));
    return arena_printf(arena, "iota counts %lld elements from %lld on, the numbers of %s are %s",
                        (long long)last_index(op) + 1, (long long)value, dtype_name(t),
                        text_string(&range));
}

const Value *value_float_scalar(const Op *op)
{
    const Expr *e = op_expr(op, ATTR_VALUE);
    bool single = e && e->kind == EXPR_VALUE && dtype_is_float(e->value->type->dtype);
    return single ? e->value : NULL;
}

bool semaphore_holds(const Op *op, int64_t value)
{
    return op_memory_operand(op)->type->dtype == DTYPE_i32 ? value == (int32_t)value
                                                           : value == (uint32_t)value;
}

bool mbarrier_has(const Op *op, int64_t element)
{
    return element >= 0 && element < type_extent(op->operands[op->operand_count - 1]->type, 0);
}

bool cluster_has_rank(const Program *p, int64_t rank)
{
    return rank >= 0 && rank < program_blocks(p);
}

bool cluster_has_ranks(const Program *p, int64_t mask)
{
    return mask > 0 && mask >> program_blocks(p) == 0;
}

ReduceKind reduce_kind(const Op *op)
{
    return op_word(op, ATTR_KIND, REDUCE_NONE);
}

unsigned op_dim(const Op *op)
{
    return (unsigned)op_attr(op, ATTR_DIM)->integer;
}

bool scan_is_exclusive(const Op *op)
{
    return op_word(op, ATTR_EXCLUSIVE, FLAG_FALSE) == FLAG_TRUE;
}

Blocks print_blocks(const Op *op)
{
    return op_word(op, ATTR_BLOCKS, BLOCKS_FIRST);
}

Predicate compare_predicate(const Op *op)
{
    return op_word(op, ATTR_PREDICATE, PREDICATE_NONE);
}

AtomicOrder atomic_order(const Op *op)
{
    return op_word(op, ATTR_ORDER, ORDER_RELAXED);
}

AtomicScope op_scope(const Op *op)
{
    return op_word(op, ATTR_SCOPE, SCOPE_GPU);
}

Evict access_evict(const Op *op)
{
    return op_word(op, ATTR_EVICT, EVICT_NORMAL);
}

unsigned access_prefetch(const Op *op)
{
    const Attr *bytes = op_attr(op, ATTR_PREFETCH);
    return bytes ? (unsigned)bytes->integer : 0;
}

uint32_t reduce_dims(const Op *op)
{
    const Attr *dims = op_attr(op, ATTR_DIMS);
    uint32_t mask = 0;
    for (unsigned i = 0; dims && i < dims->count; i++)
        mask |= UINT32_C(1) << dims->ints[i];
    return mask;
}
