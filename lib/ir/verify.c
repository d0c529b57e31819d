/* The verifier. The rows of ops.def are checked for every op alike; then each
 * op's own rules, in `verify_<op>`. */
#include "ir/verify.h"

#include "ir/op_attrs.h"
#include "ir/text.h"

#include <math.h>
#include <string.h>

/* ---- helpers ---------------------------------------------------------- */

static const char *operand_kind_text(OperandKind kind)
{
    static const char *const names[] = {"register tensor", "shared tensor", "global tensor",
                                        "pointer", "shared or global tensor",
                                        "register, shared or global tensor", "group of mbarriers"};
    return names[kind];
}

const char *verify_kind_text(TypeKind kind)
{
    static const char *const names[] = {"scalar", "pointer", "register tensor", "shared tensor",
                                        "global tensor", "group of mbarriers"};
    return names[kind];
}

static bool kind_matches(OperandKind kind, TypeKind type)
{
    return (kind == OPERAND_REG && type == TYPE_REG) ||
           (kind == OPERAND_SHARED && type == TYPE_SHARED) ||
           (kind == OPERAND_GLOBAL && type == TYPE_GLOBAL) ||
           (kind == OPERAND_PTR && type == TYPE_PTR) ||
           (kind == OPERAND_MEMORY && (type == TYPE_SHARED || type == TYPE_GLOBAL)) ||
           (kind == OPERAND_MBARRIER && type == TYPE_MBARRIER) ||
           (kind == OPERAND_TENSOR && type != TYPE_SCALAR && type != TYPE_PTR &&
            type != TYPE_MBARRIER);
}

static bool note_definition(Module *m, const Value *v)
{
    return diag_note(m->diag, v->loc, "%s is defined here", value_text(m, v));
}

/* ---- rules of every op -------------------------------------------------- */

static bool verify_operand_count(Module *m, const Op *op)
{
    const OpInfo *info = &op_info[op->code];
    int index = op_attr(op, ATTR_INDEXED) != NULL, count = (int)op->operand_count - index;
    int least = info->operand_least, most = info->operand_count;
    if (count >= least && (count <= most || most == OPERANDS_ANY))
        return true;
    if (most == OPERANDS_ANY)
        return diag_error(m->diag, op->loc, "%s takes at least %d operands, got %d", info->name,
                          least, count);
    if (least < most)
        return diag_error(m->diag, op->loc, "%s takes %d to %d operands, got %d", info->name,
                          least, most, count);
    return diag_error(m->diag, op->loc, "%s takes %d operand%s, got %d", info->name, most,
                      most == 1 ? "" : "s", count);
}

bool verify_operands(Module *m, const Op *op)
{
    const OpInfo *info = &op_info[op->code];
    bool any = info->operand_count == OPERANDS_ANY, ok = true;
    if (any && !info->operand_least)
        return true;
    if (!verify_operand_count(m, op))
        return false;
    for (unsigned i = 0; i < op->operand_count; i++) {
        const Value *v = op->operands[i];
        OperandKind kind = any                            ? info->operands[0]
                           : (int)i < info->operand_count ? info->operands[i]
                                                          : OPERAND_REG;
        if (kind_matches(kind, v->type->kind))
            continue;
        diag_error(m->diag, op->loc, "operand %u of %s is a %s, %s is a %s: %s", i + 1,
                   info->name, operand_kind_text(kind), value_text(m, v),
                   verify_kind_text(v->type->kind), type_text(m, v->type));
        ok = note_definition(m, v);
    }
    return ok;
}

/* Checks a word against the attribute's list. */
static bool verify_word(Module *m, const Op *op, const Attr *attr)
{
    const AttrInfo *info = &attr_info[attr->kind];
    if (!attr_in_dictionary(attr->kind) || info->value != ATTR_VALUE_WORD ||
        attr->word < info->word_count)
        return true;
    if (attr->kind == ATTR_VIA)
        return diag_error(m->diag, op->loc, "%s cannot go via %s", op_info[op->code].name,
                          attr_word_text(attr));
    return diag_error(m->diag, op->loc, "%s is %s, got %s", info->spelling,
                      attr_words_text(&m->arena, attr->kind), attr_word_text(attr));
}

static bool verify_attrs(Module *m, const Op *op)
{
    const OpInfo *info = &op_info[op->code];
    for (unsigned i = 0; i < op->attr_count; i++) {
        if (!(info->attrs & op_attr_bit(op->attrs[i].kind)))
            return diag_error(m->diag, op->loc, "%s has no attribute %s", info->name,
                              attr_info[op->attrs[i].kind].spelling);
        if (!verify_word(m, op, &op->attrs[i]))
            return false;
    }
    return true;
}

static bool verify_result_count(Module *m, const Op *op)
{
    unsigned expected[] = {
        [RESULT_NONE] = 0, [RESULT_REG] = 1, [RESULT_SHARED] = 1, [RESULT_GLOBAL] = 1,
        [RESULT_SCALAR] = 1, [RESULT_INDICES] = op->parent->program->grid_rank,
        [RESULT_CARRIED] = op->result_count, [RESULT_OPTIONAL] = op->result_count ? 1 : 0,
        [RESULT_TENSOR] = 1, [RESULT_MBARRIER] = 1, [RESULT_EACH] = op->operand_count};
    unsigned count = expected[op_info[op->code].result];
    if (op->result_count == count)
        return true;
    return diag_error(m->diag, op->loc, "%s gives %u results here, got %u",
                      op_info[op->code].name, count, op->result_count);
}

/* ---- each op's own rules ------------------------------------------------ */

bool verify_block_indices(Module *m, const Op *op)
{
    for (unsigned i = 0; i < op->result_count; i++)
        if (op->results[i]->type != type_scalar(m, DTYPE_i32))
            return diag_error(m->diag, op->loc, "a block index is i32, got %s",
                              type_text(m, op->results[i]->type));
    return true;
}

bool verify_scalar(Module *m, const Op *op)
{
    const Type *t = op->results[0]->type;
    const Expr *value = op_expr(op, ATTR_VALUE);
    int64_t least, most;
    if (!value)
        return diag_error(m->diag, op->loc, "scalar needs an expression");
    if (t->kind != TYPE_SCALAR || (t->dtype != DTYPE_i32 && t->dtype != DTYPE_u32 &&
                                   t->dtype != DTYPE_i64))
        return diag_error(m->diag, op->loc, "scalar gives i32, u32 or i64, got %s",
                          type_text(m, t));
    dtype_integer_range(t->dtype, &least, &most);
    if (expr_is_constant(value) && (value->constant < least || value->constant > most))
        return diag_error(m->diag, op->loc, "scalar gives %lld, which %s does not hold",
                          (long long)value->constant, dtype_name(t->dtype));
    return true;
}

bool verify_synchronize(Module *m, const Op *op)
{
    (void)m, (void)op;
    return true;
}

bool verify_cluster_rank(Module *m, const Op *op)
{
    return op->parent->program->cluster_rank > 0 ||
           diag_error(m->diag, op->loc, "cluster_rank in a program without cluster(..)");
}

/* The rank of a block as an attribute of `op`, where there is one. */
static bool verify_rank(Module *m, const Op *op)
{
    const Expr *rank = op_expr(op, ATTR_RANK);
    const Program *p = op->parent->program;
    if (!rank)
        return true;
    if (!p->cluster_rank)
        return diag_error(m->diag, op->loc, "%s with a rank in a program without cluster(..)",
                          op_info[op->code].name);
    if (expr_is_constant(rank) && !cluster_has_rank(p, rank->constant))
        return diag_error(m->diag, op->loc, "rank %lld in a cluster of %u blocks",
                          (long long)rank->constant, program_blocks(p));
    return true;
}

/* A mask of ranks likewise. */
static bool verify_multicast(Module *m, const Op *op)
{
    const Expr *mask = op_expr(op, ATTR_MULTICAST);
    const Program *p = op->parent->program;
    int64_t most = (INT64_C(1) << program_blocks(p)) - 1;
    if (!mask)
        return true;
    if (!p->cluster_rank)
        return diag_error(m->diag, op->loc, "%s with a multicast in a program without cluster(..)",
                          op_info[op->code].name);
    if (expr_is_constant(mask) && !cluster_has_ranks(p, mask->constant))
        return diag_error(m->diag, op->loc, "multicast %lld in a cluster of %u blocks, it must be "
                          "1 to %lld", (long long)mask->constant, program_blocks(p),
                          (long long)most);
    return true;
}

bool verify_cluster_synchronize(Module *m, const Op *op)
{
    const Op *group = region_thread_group(op->parent);
    if (!op->parent->program->cluster_rank)
        return diag_error(m->diag, op->loc, "cluster_synchronize in a program without "
                          "cluster(..)");
    if (!group)
        return true;
    diag_error(m->diag, op->loc, "cluster_synchronize waits for all threads of each block, a "
               "thread_group runs on %lld of them",
               (long long)region_threads(op->parent).count);
    return diag_note(m->diag, group->loc, "the thread_group begins here");
}

bool verify_view(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    if (type_is_open(from))
        return true;
    if (from->layout->threads != to->layout->threads)
        return diag_error(m->diag, op->loc, "view from %lld threads to %lld: %s as %s",
                          (long long)from->layout->threads, (long long)to->layout->threads,
                          type_text(m, from), type_text(m, to));
    if (type_thread_bits(from) != type_thread_bits(to))
        return diag_error(m->diag, op->loc, "view of %lld bits a thread as %lld: %s as %s",
                          (long long)type_thread_bits(from), (long long)type_thread_bits(to),
                          type_text(m, from), type_text(m, to));
    return true;
}

/* The conversion that attribute VIA of a cast or dequantize names. */
bool verify_conversion(Module *m, const Op *op)
{
    Via via = op_via(op);
    return via == VIA_units || via_info[via].op == OP_cast ||
           diag_error(m->diag, op->loc, "%s cannot go via %s", op_info[op->code].name,
                      via_info[via].spelling);
}

bool verify_cast(Module *m, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    if (!verify_conversion(m, op))
        return false;
    if (type_packed(m, type_like(m, from, to->dtype), to->packed) == to)
        return true;
    return diag_error(m->diag, op->loc, "cast keeps the %s, got %s from %s",
                      type_is_open(to) ? "shape" : "layout", type_text(m, to),
                      type_text(m, from));
}

static const char *extents_text(Module *m, const Type *t)
{
    Text text;
    text_init(&text, &m->arena);
    for (unsigned d = 0; d < t->rank; d++)
        text_printf(&text, "%s%lld", d ? ", " : "[", (long long)type_extent(t, d));
    text_char(&text, ']');
    return text_string(&text);
}

static void add_difference(Text *text, const char *name, int64_t x, const char *first, int64_t y,
                           const char *second)
{
    if (x != y)
        text_printf(text, "%s%s is %lld in the %s operand and %lld in the %s",
                    text->len ? "; " : "", name, (long long)x, first, (long long)y, second);
}

/* Says what differs of a[.., m, k], b[.., k, n] and c[.., m, n], of one rank; "": nothing. */
static const char *dot_difference(Module *m, const Type *a, const Type *b, const Type *c)
{
    unsigned row = c->rank - 2, column = c->rank - 1;
    Text text;
    text_init(&text, &m->scratch);
    for (unsigned d = 0; d < row; d++)
        if (a->extents[d] != c->extents[d] || b->extents[d] != c->extents[d])
            text_printf(&text, "%sdimension %u has extents %lld, %lld and %lld",
                        text.len ? "; " : "", d, (long long)type_extent(a, d),
                        (long long)type_extent(b, d), (long long)type_extent(c, d));
    add_difference(&text, "k", type_extent(a, column), "first", type_extent(b, row), "second");
    add_difference(&text, "m", type_extent(a, row), "first", type_extent(c, row), "third");
    add_difference(&text, "n", type_extent(b, column), "second", type_extent(c, column), "third");
    return text_string(&text);
}

/* Returns true for f16 and bf16: neither holds the other's numbers, so which one to cast is
 * not for the compiler to choose. */
static bool mixes_halves(DType a, DType b)
{
    return (a == DTYPE_f16 && b == DTYPE_bf16) || (a == DTYPE_bf16 && b == DTYPE_f16);
}

bool verify_dot(Module *m, const Op *op)
{
    const Type *a = op->operands[0]->type, *b = op->operands[1]->type, *c = op->operands[2]->type;
    const Type *d = op->results[0]->type;
    if (c->rank < 2 || a->rank != c->rank || b->rank != c->rank)
        return diag_error(m->diag, op->loc, "dot takes tiles of one rank, at least 2, got ranks "
                          "%u, %u and %u", a->rank, b->rank, c->rank);
    const char *difference = dot_difference(m, a, b, c);
    if (*difference)
        return diag_error(m->diag, op->loc, "dot of %s and %s onto %s: %s", extents_text(m, a),
                          extents_text(m, b), extents_text(m, c), difference);
    if (mixes_halves(a->dtype, b->dtype))
        return diag_error(m->diag, op->loc, "dot of %s and %s needs a cast: no tensor core "
                          "multiplies one by the other", dtype_name(a->dtype),
                          dtype_name(b->dtype));
    const ViaInfo *via = &via_info[op_via(op)];
    if (op_via(op) != VIA_units && via->op != OP_dot)
        return diag_error(m->diag, op->loc, "dot cannot go via %s", via->spelling);
    if (c != d)
        return diag_error(m->diag, op->loc, "dot onto %s gives that type, got %s",
                          type_text(m, c), type_text(m, d));
    return verify_dot_forms(m, op);
}

static const OpVerifier verifiers[OP_COUNT] = {
#define OP(id, ...) [OP_##id] = verify_##id,
#include "ir/ops.def"
};

/* ---- definitions before uses -------------------------------------------- */

/* While a program is verified, Value.data of each visible value points here. */
static char visible;

static bool check_visible(Value *v, void *data)
{
    const Op *op = data;
    if (v->data == &visible)
        return true;
    Module *m = op->parent->program->module;
    diag_error(m->diag, op->loc, "%s uses %s, which is not defined before it",
               op_info[op->code].name, value_text(m, v));
    return diag_note(m->diag, v->loc, "it is defined here");
}

static bool check_expr_uses(Op *op, const Expr *e)
{
    return !e || expr_visit_values(e, check_visible, op);
}

static void make_visible(Value *const *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        values[i]->data = &visible;
}

/* The condition of a `while` may use the carried values. */
static bool verify_uses(Op *op)
{
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!check_visible(op->operands[i], op))
            return false;
    if (op->code == OP_while)
        make_visible(op->regions[0]->args, op->regions[0]->arg_count);
    for (unsigned i = 0; i < op->attr_count; i++) {
        const Attr *a = &op->attrs[i];
        if (!check_expr_uses(op, a->expr))
            return false;
        for (unsigned j = 0; a->exprs && j < a->count; j++)
            if (!check_expr_uses(op, a->exprs[j]))
                return false;
    }
    for (unsigned i = 0; i < op->result_count; i++) {
        const Type *t = op->results[i]->type;
        for (unsigned d = 0; d < t->rank; d++)
            if (!check_expr_uses(op, t->extents[d]) ||
                !check_expr_uses(op, t->strides ? t->strides[d] : NULL))
                return false;
    }
    return true;
}

static bool verify_region(Module *m, Region *r);

static bool verify_regions(Module *m, const Op *op)
{
    bool ok = true;
    if (op->region_count && region_depth(op->parent) >= LIMIT_NESTING)
        return diag_error(m->diag, op->loc, "nested deeper than %d", LIMIT_NESTING);
    for (unsigned i = 0; i < op->region_count; i++)
        ok = verify_region(m, op->regions[i]) && ok;
    return ok;
}

static bool verify_op(Module *m, Op *op)
{
    bool ok = verify_uses(op) && verify_operands(m, op) && verify_operand_threads(m, op) &&
              verify_attrs(m, op) && verify_rank(m, op) && verify_multicast(m, op) &&
              verify_result_count(m, op) && verify_forms(m, op) &&
              verify_rules(m, op, verifiers[op->code]);
    ok = verify_result_threads(m, op) && ok;
    if (ok || op->code != OP_thread_group)
        ok = verify_regions(m, op) && ok;
    make_visible(op->results, op->result_count);
    return ok;
}

static bool verify_region(Module *m, Region *r)
{
    bool ok = true;
    make_visible(r->args, r->arg_count);
    for (Op *op = r->first; op; op = op->next) {
        diag_check_time(m->diag, op->loc);
        ok = verify_op(m, op) && ok;
    }
    for (Op *op = r->first; op; op = op->next)
        for (unsigned i = 0; i < op->result_count; i++)
            op->results[i]->data = NULL;
    for (unsigned i = 0; i < r->arg_count; i++)
        r->args[i]->data = NULL;
    return ok;
}

/* ---- programs ------------------------------------------------------------ */

static bool verify_scalar_facts(Module *m, const Value *v)
{
    const Facts *f = &v->facts;
    int64_t least = v->type->dtype == DTYPE_i32 ? INT32_MIN : v->type->dtype == DTYPE_u32 ? 0
                                                                                     : INT64_MIN;
    int64_t most = v->type->dtype == DTYPE_i32   ? INT32_MAX
                   : v->type->dtype == DTYPE_u32 ? (int64_t)UINT32_MAX
                                                 : INT64_MAX;
    if (f->divisible < 1)
        return diag_error(m->diag, v->loc, "%%%s is divisible by %lld, it must be at least 1",
                          v->name, (long long)f->divisible);
    if (f->min > f->max || f->min < least || f->max > most)
        return diag_error(m->diag, v->loc, "the range [%lld, %lld] of %%%s is empty or leaves %s",
                          (long long)f->min, (long long)f->max, v->name,
                          dtype_name(v->type->dtype));
    return true;
}

static bool verify_argument(Module *m, const Value *v)
{
    DType t = v->type->dtype;
    if (v->type->kind == TYPE_SCALAR && (t == DTYPE_f16 || t == DTYPE_bf16 || t == DTYPE_f32))
        return true;
    if (v->type->kind == TYPE_SCALAR)
        return t == DTYPE_i32 || t == DTYPE_u32 || t == DTYPE_i64
                   ? verify_scalar_facts(m, v)
                   : diag_error(m->diag, v->loc, "%%%s is %s, a scalar argument is i32, u32, "
                                "i64, f16, bf16 or f32", v->name, dtype_name(t));
    int64_t align = v->facts.align;
    if (align < dtype_align(t) || align & (align - 1))
        return diag_error(m->diag, v->loc, "%%%s is aligned to %lld, it must be a power of two "
                          "from %u", v->name, (long long)align, dtype_align(t));
    return true;
}

static bool verify_grid(Module *m, const Program *p)
{
    static const int64_t limits[3] = {LIMIT_GRID_X, LIMIT_GRID_YZ, LIMIT_GRID_YZ};
    for (unsigned d = 0; d < p->grid_rank; d++) {
        const Expr *e = p->grid[d];
        if (expr_is_constant(e) && (e->constant < 0 || e->constant > limits[d]))
            return diag_error(m->diag, p->loc, "the grid's extent of dimension %u is %lld, it must "
                              "be 0 to %lld", d, (long long)e->constant, (long long)limits[d]);
    }
    return true;
}

static bool verify_program(Module *m, Program *p)
{
    bool ok = verify_grid(m, p);
    for (unsigned i = 0; i < p->arg_count; i++) {
        ok = verify_argument(m, p->args[i]) && ok;
        p->args[i]->data = &visible;
    }
    ok = verify_region(m, p->body) && ok && verify_registers(m, p);
    for (unsigned i = 0; i < p->arg_count; i++)
        p->args[i]->data = NULL;
    return ok;
}

bool verify_module(Module *m)
{
    bool ok = true;
    for (Program *p = m->programs; p; p = p->next)
        ok = verify_program(m, p) && ok;
    return ok;
}
