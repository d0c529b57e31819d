/* The tables of ops and attributes, modules, types, and basic surgery. */
#include "ir/ir.h"

#include "support/register_share.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables --------------------------------------------------------- */

const AttrInfo attr_info[ATTR_COUNT] = {
#define EXPR ATTR_VALUE_EXPR
#define EXPRS ATTR_VALUE_EXPRS
#define NUMBER ATTR_VALUE_NUMBER
#define TEXT ATTR_VALUE_TEXT
#define INT ATTR_VALUE_INT
#define INTS ATTR_VALUE_INTS
#define WORD ATTR_VALUE_WORD
#define ATTR(id, spelling, value) [ATTR_##id] = {spelling, value},
#include "ir/attrs.def"
#undef EXPR
#undef EXPRS
#undef NUMBER
#undef TEXT
#undef INT
#undef INTS
#undef WORD
};

#define BIT(a) (UINT64_C(1) << ATTR_##a)
#define A0 0
#define A1(a) BIT(a)
#define A2(a, b) (BIT(a) | BIT(b))
#define A3(a, b, c) (BIT(a) | BIT(b) | BIT(c))
#define A4(a, b, c, d) (A2(a, b) | A2(c, d))
#define A5(a, b, c, d, e) (A3(a, b, c) | A2(d, e))
#define A6(a, b, c, d, e, f) (A3(a, b, c) | A3(d, e, f))
#define K0 0, 0, {0}
#define K1(a) 1, 1, {OPERAND_##a}
#define K2(a, b) 2, 2, {OPERAND_##a, OPERAND_##b}
#define K3(a, b, c) 3, 3, {OPERAND_##a, OPERAND_##b, OPERAND_##c}
#define K2_3(a, b, c) 2, 3, {OPERAND_##a, OPERAND_##b, OPERAND_##c}
#define KN 0, OPERANDS_ANY, {0}
#define R(n) {MODE_READ, ACCESS_AT_OFFSETS, n}
#define W(n) {MODE_WRITE, ACCESS_AT_OFFSETS, n}
#define ATOMIC(n) {MODE_ATOMIC, ACCESS_AT_OFFSETS, n}
#define S(n) {MODE_READ, ACCESS_AT_SOURCE, n}
#define LOOKUP(n) {MODE_READ, ACCESS_AT_DATA, n}
#define NOW COMPLETION_NOW, 0
#define GROUP COMPLETION_GROUP, 0
#define MBARRIER(n) COMPLETION_MBARRIER, n
#define M0 {0}
#define M(threads, completion, ...)                                           \
    {ACCESS_BY_##threads, completion, COUNT(__VA_ARGS__), {__VA_ARGS__}}
#define COUNT(...) sizeof((AccessRow[]){__VA_ARGS__}) / sizeof(AccessRow)
#define SYNC_ROW_NONE {SYNC_NONE, COMPLETION_NOW}
#define SYNC_ROW_BARRIER {SYNC_BARRIER, COMPLETION_NOW}
#define SYNC_ROW_COMMIT(c) {SYNC_COMMIT, COMPLETION_##c}
#define SYNC_ROW_WAIT(c) {SYNC_WAIT, COMPLETION_##c}
#define SYNC_ROW_INIT(c) {SYNC_INIT, COMPLETION_##c}
#define SYNC_ROW_ARRIVE(c) {SYNC_ARRIVE, COMPLETION_##c}
#define SYNC_ROW_ACQUIRE {SYNC_ACQUIRE, COMPLETION_NOW}
#define SYNC_ROW_RELEASE {SYNC_RELEASE, COMPLETION_NOW}
#define SYNC_ROW_LAUNCH {SYNC_LAUNCH, COMPLETION_NOW}
#define SYNC_ROW_LAUNCH_WAIT {SYNC_LAUNCH_WAIT, COMPLETION_NOW}
#define OP(id, out, operands, attrs, effect, memory, sync, type, summary)     \
    [OP_##id] = {#id, RESULT_##out, operands, attrs, EFFECT_##effect, memory, \
                 SYNC_ROW_##sync, RULE_##type, summary},

const OpInfo op_info[OP_COUNT] = {
#include "ir/ops.def"
};

#undef R
#undef W
#undef S
#undef M

OpCode op_find(const char *name, size_t len)
{
    for (OpCode code = 0; code < OP_COUNT; code++)
        if (strlen(op_info[code].name) == len && !memcmp(op_info[code].name, name, len))
            return code;
    return OP_COUNT;
}

const ViaInfo via_info[VIA_COUNT] = {
    [VIA_units] = {"", OP_COUNT, 0, false},
#define VIA(id, spelling, op, matrices, transposed)                           \
    [VIA_##id] = {spelling, OP_##op, matrices, transposed},
#include "ir/via.def"
};

Via via_find(const char *word)
{
    for (Via via = VIA_units + 1; via < VIA_COUNT; via++)
        if (!strcmp(via_info[via].spelling, word))
            return via;
    return VIA_COUNT;
}

/* ---- modules -------------------------------------------------------- */

static bool scaling_equal(const Scaling *a, const Scaling *b)
{
    return a == b || (a && b && a->dim == b->dim && a->count == b->count &&
                      !memcmp(a->exponents, b->exponents, a->count * sizeof *a->exponents));
}

static bool type_equal(const void *x, const void *y)
{
    const Type *a = x, *b = y;
    if (a->packed != b->packed || !scaling_equal(a->scaling, b->scaling))
        return false;
    if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank ||
        a->layout != b->layout || !a->strides != !b->strides ||
        a->swizzle.bits != b->swizzle.bits || a->swizzle.base != b->swizzle.base ||
        a->swizzle.shift != b->swizzle.shift || a->swizzle_open != b->swizzle_open)
        return false;
    for (unsigned d = 0; d < a->rank; d++)
        if (a->extents[d] != b->extents[d] || (a->strides && a->strides[d] != b->strides[d]))
            return false;
    return true;
}

Module *module_new(Diag *diag)
{
    Module *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->diag = diag;
    arena_init(&m->arena, &diag->oom);
    arena_init(&m->scratch, &diag->oom);
    expr_table_init(&m->exprs, &m->arena);
    layout_table_init(&m->layouts, &m->arena);
    intern_init(&m->types, &m->arena, type_equal);
    return m;
}

void module_free(Module *m)
{
    if (!m)
        return;
    arena_free(&m->scratch);
    arena_free(&m->arena);
    free(m);
}

Loc module_loc(const Module *m)
{
    return m->programs ? m->programs->loc : (Loc){0};
}

Program *module_find_program(const Module *m, const char *name)
{
    Program *p = m->programs;
    while (p && strcmp(p->name, name) != 0)
        p = p->next;
    return p;
}

/* ---- types ---------------------------------------------------------- */

static const Type *intern_type(Module *m, const Type *key)
{
    uint64_t hash = hash_u64((uint64_t)key->kind, (uint64_t)key->dtype);
    hash = hash_u64(hash, (uint64_t)(uintptr_t)key->layout);
    hash = hash_bytes(hash, &key->swizzle, sizeof key->swizzle);
    hash = hash_u64(hash, (uint64_t)key->packed << 1 | key->swizzle_open);
    if (key->scaling)
        hash = hash_bytes(hash, key->scaling->exponents,
                          key->scaling->count * sizeof *key->scaling->exponents);
    for (unsigned d = 0; d < key->rank; d++) {
        hash = hash_u64(hash, key->extents[d]->hash);
        hash = hash_u64(hash, key->strides ? key->strides[d]->hash : 1);
    }
    const Type *known = intern_find(&m->types, hash, key);
    if (known)
        return known;
    Type *fresh = arena_copy(&m->arena, key, sizeof *key);
    if (key->strides)
        fresh->strides = arena_copy(&m->arena, key->strides, key->rank * sizeof *key->strides);
    intern_add(&m->types, hash, fresh);
    return fresh;
}

const Type *type_scalar(Module *m, DType dtype)
{
    return intern_type(m, &(Type){.kind = TYPE_SCALAR, .dtype = dtype});
}

const Type *type_ptr(Module *m, DType dtype)
{
    return intern_type(m, &(Type){.kind = TYPE_PTR, .dtype = dtype});
}

const Type *type_reg(Module *m, DType dtype, const Layout *layout)
{
    Type t = {.kind = TYPE_REG, .dtype = dtype, .rank = layout->rank, .layout = layout};
    for (unsigned d = 0; d < t.rank; d++)
        t.extents[d] = expr_constant(&m->exprs, layout->shape[d]);
    return intern_type(m, &t);
}

const Type *type_reg_open(Module *m, DType dtype, unsigned rank, const Expr *const *extents)
{
    Type t = {.kind = TYPE_REG, .dtype = dtype, .rank = rank};
    memcpy(t.extents, extents, rank * sizeof *extents);
    return intern_type(m, &t);
}

const Type *type_like(Module *m, const Type *t, DType dtype)
{
    Type like = *t;
    assert(t->kind == TYPE_REG);
    like.dtype = dtype;
    like.packed = DTYPE_none;
    like.scaling = NULL;
    return intern_type(m, &like);
}

const Type *type_with_layout(Module *m, const Type *t, const Layout *layout)
{
    Type other = *t;
    assert(t->kind == TYPE_REG);
    other.layout = layout;
    return intern_type(m, &other);
}

const Type *type_packed(Module *m, const Type *t, DType to)
{
    Type packed = *t;
    assert(t->kind == TYPE_REG);
    packed.packed = to;
    return intern_type(m, &packed);
}

/* The least divisor of `count` that is a period of the exponents. */
static unsigned least_period(unsigned count, const int16_t *exponents)
{
    for (unsigned period = 1; period < count; period++) {
        unsigned i = period;
        while (count % period == 0 && i < count && exponents[i] == exponents[i - period])
            i++;
        if (i == count)
            return period;
    }
    return count;
}

const Type *type_scaled(Module *m, const Type *t, unsigned dim, unsigned count,
                        const int16_t *exponents)
{
    Type scaled = *t;
    assert(t->kind == TYPE_REG && count >= 1 && count <= SCALING_COUNT_LIMIT);
    unsigned period = least_period(count, exponents);
    size_t bytes = period * sizeof *exponents;
    scaled.scaling = NULL;
    if (period == 1 && exponents[0] == 0)
        return intern_type(m, &scaled);
    Scaling *s = arena_alloc(&m->arena, sizeof *s + bytes);
    *s = (Scaling){.dim = period == 1 ? 0 : dim, .count = period};
    memcpy(s->exponents, exponents, bytes);
    scaled.scaling = s;
    return intern_type(m, &scaled);
}

/* The row-major stride of dimension `d`; NULL if a constant overflows. */
static const Expr *row_major_stride(Module *m, const Type *t, unsigned d)
{
    const Expr *stride = expr_constant(&m->exprs, 1);
    for (unsigned i = t->rank; stride && --i > d;) {
        const char *why;
        stride = expr_is_constant(stride) && stride->constant == 1
                     ? t->extents[i]
                     : expr_make(&m->exprs, SCALAR_mul, t->extents[i], stride, &why);
    }
    return stride;
}

const Type *type_memory(Module *m, TypeKind kind, DType dtype, unsigned rank,
                        const Expr *const *extents, const Expr *const *strides)
{
    Type t = {.kind = kind, .dtype = dtype, .rank = rank};
    memcpy(t.extents, extents, rank * sizeof *extents);
    bool row_major = true;
    for (unsigned d = 0; strides && d < rank && row_major; d++)
        row_major = strides[d] == row_major_stride(m, &t, d);
    t.strides = row_major ? NULL : strides;
    return intern_type(m, &t);
}

const Type *type_swizzled(Module *m, const Type *t, Swizzle swizzle)
{
    Type swizzled = *t;
    assert(t->kind == TYPE_SHARED);
    swizzled.swizzle = swizzle.bits ? swizzle : (Swizzle){0};
    swizzled.swizzle_open = false;
    return intern_type(m, &swizzled);
}

const Type *type_swizzle_open(Module *m, const Type *t)
{
    Type open = *t;
    assert(t->kind == TYPE_SHARED);
    open.swizzle = (Swizzle){0};
    open.swizzle_open = true;
    return intern_type(m, &open);
}

const Type *type_mbarrier(Module *m, int64_t count)
{
    return intern_type(m, &(Type){.kind = TYPE_MBARRIER, .dtype = DTYPE_u64, .rank = 1,
                                  .extents = {expr_constant(&m->exprs, count)}});
}

const Expr *type_stride(Module *m, const Type *t, unsigned d)
{
    return t->strides ? t->strides[d] : row_major_stride(m, t, d);
}

int64_t type_extent(const Type *t, unsigned d)
{
    assert(d < t->rank && expr_is_constant(t->extents[d]));
    return t->extents[d]->constant;
}

int64_t type_thread_bits(const Type *t)
{
    return t->layout->slots * dtype_bits(t->dtype);
}

int64_t type_thread_words(const Type *t)
{
    return (type_thread_bits(t) + 31) / 32;
}

int64_t type_shared_bits(const Type *t)
{
    int64_t last = 0, row_major = 1, bits;
    for (unsigned d = t->rank; d-- > 0;) {
        int64_t extent = type_extent(t, d), reach;
        int64_t stride = t->strides ? t->strides[d]->constant : row_major;
        if (__builtin_mul_overflow(extent - 1, stride, &reach) ||
            __builtin_add_overflow(last, reach, &last) ||
            __builtin_mul_overflow(row_major, extent, &row_major))
            return -1;
    }
    if (__builtin_add_overflow(last, 1, &last) ||
        __builtin_mul_overflow(last, (int64_t)dtype_bits(t->dtype), &bits))
        return -1;
    return bits;
}

/* ---- ops ------------------------------------------------------------ */

const Attr *op_attr(const Op *op, AttrKind kind)
{
    for (unsigned i = 0; i < op->attr_count; i++)
        if (op->attrs[i].kind == kind)
            return &op->attrs[i];
    return NULL;
}

void op_set_attr(Module *m, Op *op, Attr attr)
{
    for (unsigned i = 0; i < op->attr_count; i++)
        if (op->attrs[i].kind == attr.kind) {
            op->attrs[i] = attr;
            return;
        }
    Attr *longer = arena_array(&m->arena, Attr, op->attr_count + 1);
    for (unsigned i = 0; i < op->attr_count; i++)
        longer[i] = op->attrs[i];
    longer[op->attr_count++] = attr;
    op->attrs = longer;
}

void op_remove_attr(Op *op, AttrKind kind)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < op->attr_count; i++)
        if (op->attrs[i].kind != kind)
            op->attrs[kept++] = op->attrs[i];
    op->attr_count = kept;
}

const Expr *op_expr(const Op *op, AttrKind kind)
{
    const Attr *a = op_attr(op, kind);
    return a ? a->expr : NULL;
}

static bool is_tensor_kind(OperandKind kind)
{
    return kind == OPERAND_SHARED || kind == OPERAND_GLOBAL || kind == OPERAND_MEMORY ||
           kind == OPERAND_TENSOR;
}

unsigned op_memory_number(const Op *op)
{
    const OpInfo *info = &op_info[op->code];
    for (unsigned i = OPERANDS_MAX; i-- > 0;)
        if (i < op->operand_count && is_tensor_kind(info->operands[i]))
            return i;
    return op->operand_count - 1;
}

Value *op_memory_operand(const Op *op)
{
    return op->operands[op_memory_number(op)];
}

const Type *op_tile_type(const Op *op)
{
    return op->result_count ? op->results[0]->type : op->operands[0]->type;
}

/* Sets the shape: that of attribute SHAPE, or of the tile; a semaphore is one element. */
static MemoryTile with_shape(const Op *op, MemoryTile t)
{
    const Attr *shape = op_attr(op, ATTR_SHAPE);
    const Type *type = shape ? NULL : op_tile_type(op);
    t.rank = shape ? shape->count : op_attr(op, ATTR_STATE) ? 0 : type->rank;
    for (unsigned d = 0; d < t.rank; d++)
        t.extents[d] = shape                                  ? shape->ints[d]
                       : expr_is_constant(type->extents[d]) ? type_extent(type, d)
                                                            : 0;
    return t;
}

MemoryTile op_memory_tile(const Op *op)
{
    return with_shape(op, (MemoryTile){.memory = op_memory_operand(op),
                                       .offsets = op_attr(op, ATTR_OFFSETS),
                                       .dims = op_attr(op, ATTR_DIMS)});
}

MemoryTile op_source_tile(const Op *op)
{
    return with_shape(op, (MemoryTile){.memory = op->operands[0],
                                       .offsets = op_attr(op, ATTR_SOURCE_OFFSETS),
                                       .dims = op_attr(op, ATTR_SOURCE_DIMS)});
}

unsigned memory_tile_dim(const MemoryTile *t, unsigned d)
{
    return t->dims ? (unsigned)t->dims->ints[d] : t->memory->type->rank - t->rank + d;
}

int memory_tile_find(const MemoryTile *t, unsigned d)
{
    for (unsigned i = 0; i < t->rank; i++)
        if (memory_tile_dim(t, i) == d)
            return (int)i;
    return -1;
}

unsigned op_tile_dim(const Op *op, unsigned d)
{
    const Attr *dims = op_attr(op, ATTR_DIMS);
    if (dims)
        return (unsigned)dims->ints[d];
    return op_memory_operand(op)->type->rank - op_tile_type(op)->rank + d;
}

/* Which of `count` words the attribute has: its number, `otherwise` when the op
 * has none, `count` when it is no such word. */
static unsigned word_number(const Op *op, AttrKind kind, const char *const *words,
                            unsigned count, unsigned otherwise)
{
    const Attr *attr = op_attr(op, kind);
    unsigned i = 0;
    while (attr && i < count && strcmp(attr->word, words[i]) != 0)
        i++;
    return attr ? i : otherwise;
}

int64_t bulk_elements(const Op *op)
{
    MemoryTile t = op_memory_tile(op);
    int64_t elements = 1;
    for (unsigned d = 0; d < t.rank; d++)
        elements *= t.extents[d];
    return elements;
}

int64_t bulk_bytes(const Op *op)
{
    int64_t bits = bulk_elements(op) * dtype_bits(op->operands[0]->type->dtype);
    return bits % 8 ? -1 : bits / 8;
}

int64_t mbarrier_arrivals(const Op *op)
{
    return op_attr(op, ATTR_ARRIVALS)->integer;
}

bool workspace_is_zeroed(const Op *op)
{
    const Attr *zeroed = op_attr(op, ATTR_ZEROED);
    return zeroed && !strcmp(zeroed->word, "true");
}

bool cast_is_finite(const Op *op)
{
    const Attr *finite = op_attr(op, ATTR_FINITE);
    return finite && !strcmp(finite->word, "true");
}

bool semaphore_holds(const Op *op, int64_t value)
{
    return op_memory_operand(op)->type->dtype == DTYPE_i32 ? value == (int32_t)value
                                                           : value == (uint32_t)value;
}

ReduceKind reduce_kind(const Op *op)
{
    static const char *const words[REDUCE_NONE] = {"sum", "max", "min"};
    return word_number(op, ATTR_KIND, words, REDUCE_NONE, REDUCE_NONE);
}

Predicate compare_predicate(const Op *op)
{
    static const char *const words[PREDICATE_NONE] = {"eq", "ne", "lt", "le", "gt", "ge"};
    return word_number(op, ATTR_PREDICATE, words, PREDICATE_NONE, PREDICATE_NONE);
}

AtomicOrder atomic_order(const Op *op)
{
    static const char *const words[ORDER_NONE] = {"relaxed", "acquire", "release", "acq_rel"};
    return word_number(op, ATTR_ORDER, words, ORDER_NONE, ORDER_RELAXED);
}

AtomicScope atomic_scope(const Op *op)
{
    static const char *const words[SCOPE_NONE] = {"block", "gpu", "system"};
    return word_number(op, ATTR_SCOPE, words, SCOPE_NONE, SCOPE_GPU);
}

Evict access_evict(const Op *op)
{
    static const char *const words[EVICT_NONE] = {"normal", "first", "last"};
    return word_number(op, ATTR_EVICT, words, EVICT_NONE, EVICT_NORMAL);
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

int64_t for_stages(const Op *op)
{
    const Expr *stages = op_expr(op, ATTR_PIPELINED);
    return stages ? stages->constant : 0;
}

Value *for_index(const Op *op)
{
    return op->regions[0]->args[0];
}

Value *for_carried(const Op *op, unsigned i)
{
    return op->regions[0]->args[1 + i];
}

bool op_is_loop(const Op *op)
{
    return op->code == OP_for || op->code == OP_while;
}

/* Arguments of a loop's body before the carried values. */
static unsigned index_count(const Op *op)
{
    return op->code == OP_for ? 1 : 0;
}

Value *loop_carried(const Op *op, unsigned i)
{
    return op->regions[0]->args[index_count(op) + i];
}

int loop_carried_number(const Value *argument)
{
    return (int)argument->index - (int)index_count(argument->region->parent);
}

Op *region_yield(const Region *r)
{
    return r->last && r->last->code == OP_yield ? r->last : NULL;
}

const Op *region_thread_group(const Region *r)
{
    const Op *op = r->parent;
    while (op && op->code != OP_thread_group)
        op = op->parent->parent;
    return op;
}

int64_t program_registers(const Program *p)
{
    enum { MOST = 256 };
    if (!p->min_blocks)
        return 0;
    int64_t share = register_share(p->min_blocks * p->warps);
    return share < MOST ? share : MOST;
}

/* A group counts from the first thread of the one around it. */
ThreadRange region_threads(const Region *r)
{
    const Op *group = region_thread_group(r);
    if (!group)
        return (ThreadRange){0, program_threads(r->program)};
    int64_t begin = op_expr(group, ATTR_BEGIN)->constant;
    for (const Op *outer = region_thread_group(group->parent); outer;
         outer = region_thread_group(outer->parent))
        begin += op_expr(outer, ATTR_BEGIN)->constant;
    return (ThreadRange){begin, op_expr(group, ATTR_THREADS)->constant};
}

unsigned region_depth(const Region *r)
{
    unsigned depth = 1;
    for (; r->parent; r = r->parent->parent)
        depth++;
    return depth;
}

static bool find_deepest(Op *op, void *data)
{
    unsigned depth = op->region_count ? region_depth(op->regions[0]) : 0;
    unsigned *most = data;
    *most = depth > *most ? depth : *most;
    return true;
}

unsigned op_depth(Op *op)
{
    unsigned most = region_depth(op->parent);
    find_deepest(op, &most);
    for (unsigned i = 0; i < op->region_count; i++)
        region_walk(op->regions[i], find_deepest, &most);
    return most;
}

bool region_walk(Region *r, bool (*visit)(Op *op, void *data), void *data)
{
    for (Op *op = r->first, *next; op; op = next) {
        next = op->next;
        if (!visit(op, data))
            return false;
        for (unsigned i = 0; op->parent && i < op->region_count; i++)
            if (!region_walk(op->regions[i], visit, data))
                return false;
    }
    return true;
}

static void clear_values(Value **values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        values[i]->data = NULL;
}

static bool clear_op(Op *op, void *data)
{
    (void)data;
    op->mark = 0;
    clear_values(op->results, op->result_count);
    for (unsigned i = 0; i < op->region_count; i++)
        clear_values(op->regions[i]->args, op->regions[i]->arg_count);
    return true;
}

void program_clear_data(Program *p)
{
    clear_values(p->args, p->arg_count);
    region_walk(p->body, clear_op, NULL);
}

void op_remove(Op *op)
{
    Region *r = op->parent;
    *(op->prev ? &op->prev->next : &r->first) = op->next;
    *(op->next ? &op->next->prev : &r->last) = op->prev;
    op->parent = NULL;
    op->prev = op->next = NULL;
}

void op_insert(Region *r, Op *op, Op *before)
{
    assert(!op->parent);
    op->parent = r;
    op->next = before;
    op->prev = before ? before->prev : r->last;
    *(op->prev ? &op->prev->next : &r->first) = op;
    *(before ? &before->prev : &r->last) = op;
}

static void drop_value(Value **values, unsigned *count, unsigned i)
{
    for (unsigned j = i; j + 1 < *count; j++) {
        values[j] = values[j + 1];
        values[j]->index = j;
    }
    --*count;
}

static void drop_operand(Op *op, unsigned i)
{
    for (unsigned j = i; j + 1 < op->operand_count; j++)
        op->operands[j] = op->operands[j + 1];
    op->operand_count--;
}

void op_drop_carried(Op *op, unsigned i)
{
    drop_value(op->results, &op->result_count, i);
    if (op_is_loop(op)) {
        drop_operand(op, i);
        drop_value(op->regions[0]->args, &op->regions[0]->arg_count, index_count(op) + i);
    }
    for (unsigned r = 0; r < op->region_count; r++)
        drop_operand(region_yield(op->regions[r]), i);
}
