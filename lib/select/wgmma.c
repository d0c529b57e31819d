/* Plans of dot_async: which instructions, in which order, of which registers and bytes. */
#include "select/wgmma.h"

#include "ir/op_access.h"
#include "ir/part.h"
#include "ir/product.h"
#include "ir/text.h"
#include "scalar/facts.h"
#include "select/fit.h"
#include "select/order.h"
#include "select/plan.h"
#include "support/remark.h"
#include "support/scalar.h"
#include "target/target.h"

#include <stdio.h>
#include <string.h>

const Wgmma wgmma_table[WGMMA_COUNT] = {
#define ANY false
#define INTEGERS true
#define WGMMA(a, b, c, k, counts, scales, major, ptx, text)                   \
    {{DTYPE_##a, DTYPE_##b, DTYPE_##c}, k, counts, scales, major, ptx, text},
#include "select/wgmma.def"
#undef ANY
#undef INTEGERS
};

const Wgmma *wgmma_find(const DType types[MMA_OPERANDS])
{
    for (const Wgmma *row = wgmma_table; row < wgmma_table + WGMMA_COUNT; row++)
        if (!memcmp(row->types, types, sizeof row->types))
            return row;
    return NULL;
}

bool wgmma_has_n(const Wgmma *row, int64_t n)
{
    enum { INTEGERS_BY_8 = 32 };
    return n >= WGMMA_N && n <= WGMMA_N_MOST && n % WGMMA_N == 0 &&
           (!row->integers || n <= INTEGERS_BY_8 || n % (2 * WGMMA_N) == 0);
}

/* ---- layouts ------------------------------------------------------------------ */

enum { WARPS = 4 };             /* of a warpgroup */

/* The makers do not fail: all of it are small constants. */
static const Layout *over_lanes(LayoutTable *t, int64_t run)
{
    static const int64_t lanes[] = {8, 4};
    const int64_t elements[] = {1, run};
    const char *why;
    return layout_product(t, layout_spatial(t, 2, lanes, &why),
                          layout_local(t, 2, elements, &why), &why);
}

static const Layout *over_warps(LayoutTable *t, const Layout *pieces, int64_t run)
{
    static const int64_t warps[] = {WARPS, 1};
    const char *why;
    const Layout *l = layout_product(t, layout_spatial(t, 2, warps, &why), pieces, &why);
    return layout_product(t, l, over_lanes(t, run), &why);
}

const Layout *wgmma_tile(LayoutTable *t)
{
    static const int64_t halves[] = {2, 1};
    const char *why;
    return over_warps(t, layout_local(t, 2, halves, &why), 2);
}

const Layout *wgmma_step(LayoutTable *t, const Wgmma *row)
{
    static const int64_t quarters[] = {2, 2};
    const char *why;
    return over_warps(t, layout_column_local(t, 2, quarters, &why),
                      32 / (int64_t)dtype_bits(row->types[MMA_A]));
}

const Layout *wgmma_piece(LayoutTable *t, const Wgmma *row)
{
    return over_lanes(t, 32 / (int64_t)dtype_bits(row->types[MMA_A]));
}

static const char *layout_text(Module *m, const Layout *l)
{
    Text text;
    text_init(&text, &m->scratch);
    layout_print(&text, l);
    return text_string(&text);
}

/* ---- matrices in shared memory ---------------------------------------------------- */

enum { ROWS = 8, UNIT_BYTES = 16, STEP_BYTES = 32 };

/* The swizzle of rows of 32, 64 or 128 bytes; of 0 bits where there is none of that width. */
static Swizzle swizzle_of_rows(int64_t row_bytes, int64_t bytes)
{
    Swizzle s = {.shift = 3};
    while (INT64_C(1) << s.base < UNIT_BYTES / bytes)
        s.base++;
    for (uint8_t bits = 1; bits <= 3; bits++)
        if (row_bytes == (int64_t)UNIT_BYTES << bits)
            s.bits = bits;
    return s.bits ? s : (Swizzle){0};
}

static bool swizzle_equal(Swizzle a, Swizzle b)
{
    return a.bits == b.bits && a.base == b.base && a.shift == b.shift;
}

static int64_t matrix_extent(const Op *op, unsigned i, bool k)
{
    return side_extent(op->operands[i]->type, product_side(op, op->results[0]->type, i, k));
}

/* Says which types wgmma reads beside the one that it does not. */
static bool refuse_matrix(Module *m, const Op *op, unsigned i, const char *why)
{
    const Value *v = op->operands[i];
    int64_t bytes = dtype_bits(v->type->dtype) / 8, mn = matrix_extent(op, i, false);
    int64_t row = STEP_BYTES;
    while (row < 128 && row < matrix_extent(op, i, true) * bytes)
        row *= 2;
    Swizzle s = swizzle_of_rows(row, bytes);
    diag_error(m->diag, op->loc, "wgmma cannot read operand %c, %s: %s", "ab"[i],
               type_text(m, v->type), why);
    return diag_note(m->diag, v->loc, "%s is made here; wgmma reads rows of 128, 64 or 32 bytes "
                     "along k, as %s[%lld, %lld] shared swizzle(%d, %d, %d)%s", value_text(m, v),
                     dtype_name(v->type->dtype), (long long)mn, (long long)(row / bytes), s.bits,
                     s.base, s.shift, i ? ", permuted" : "");
}

/* Checks that the slices on the way to the allocation begin at whole patterns or, along the
 * row, at whole steps. */
static bool check_begin(Module *m, const Op *op, unsigned i, int64_t row_bytes)
{
    const Value *memory = op->operands[i];
    int64_t bytes = dtype_bits(memory->type->dtype) / 8, limit = ROWS * row_bytes;
    for (const Op *part; (part = part_op(memory)); memory = part->operands[0]) {
        const Attr *offsets = op_attr(part, ATTR_OFFSETS);
        for (unsigned d = 0; offsets && d < offsets->count; d++) {
            const Expr *stride = type_stride(m, part->operands[0]->type, d);
            int64_t of_stride = facts_alignment(stride, limit);
            int64_t known = bytes * of_stride * facts_alignment(offsets->exprs[d],
                                                                limit / of_stride);
            int64_t needed = stride->constant == 1 ? STEP_BYTES : limit;
            if (known < needed)
                return refuse_matrix(m, op, i, arena_printf(
                    &m->scratch, "it begins at multiples of %lld bytes by offset %s, and must at "
                    "multiples of %lld", (long long)known, expr_text(m, offsets->exprs[d]),
                    (long long)needed));
        }
    }
    return true;
}

/* Describes a matrix with `along` elements in each of its rows of `row_bytes` bytes. */
static bool check_rows(Module *m, const Op *op, unsigned i, int64_t along, int64_t row_bytes)
{
    const Type *t = op->operands[i]->type;
    int64_t bytes = dtype_bits(t->dtype) / 8;
    Swizzle needed = swizzle_of_rows(row_bytes, bytes);
    if (!needed.bits)
        return refuse_matrix(m, op, i, arena_printf(
            &m->scratch, "its rows are %lld bytes apart", (long long)row_bytes));
    if (!swizzle_equal(t->swizzle, needed))
        return refuse_matrix(m, op, i, arena_printf(
            &m->scratch, "rows of %lld bytes need swizzle(%d, %d, %d)", (long long)row_bytes,
            needed.bits, needed.base, needed.shift));
    if (along * bytes > row_bytes)
        return refuse_matrix(m, op, i, arena_printf(
            &m->scratch, "%lld elements do not fit into a row of %lld bytes", (long long)along,
            (long long)row_bytes));
    return check_begin(m, op, i, row_bytes);
}

/* Plans blocks of rows, each after the one before. */
static bool plan_blocks(Module *m, const Op *op, unsigned i, MatrixSide along, WgmmaMatrix *x)
{
    const Type *t = op->operands[i]->type;
    int64_t bytes = dtype_bits(t->dtype) / 8, row_bytes = x->stride / ROWS;
    x->block_steps = INT64_MAX;
    if (along.first == along.last)
        return true;
    x->block_bytes = bytes * type_stride(m, t, along.first)->constant;
    if (type_extent(t, along.last) * bytes != row_bytes || x->block_bytes % x->stride)
        return refuse_matrix(m, op, i, arena_printf(
            &m->scratch, "blocks are of whole rows of %lld bytes, and multiples of %lld bytes "
            "apart, not of %lld and %lld", (long long)row_bytes, (long long)x->stride,
            (long long)(type_extent(t, along.last) * bytes), (long long)x->block_bytes));
    if (x->mn_major) {
        x->leading = x->block_bytes;
        x->mn_bytes = x->block_bytes / type_extent(t, along.last);
    } else {
        x->block_steps = row_bytes / STEP_BYTES;
    }
    return true;
}

/* Plans operand i, [m, k] of a, [k, n] of b, in shared memory. */
static bool plan_matrix(Module *m, const Op *op, unsigned i, WgmmaPlan *plan)
{
    const Type *t = op->operands[i]->type;
    MatrixSide mn = product_side(op, op->results[0]->type, i, false);
    MatrixSide k = product_side(op, op->results[0]->type, i, true);
    int64_t bytes = dtype_bits(t->dtype) / 8;
    int64_t of_mn = type_stride(m, t, mn.last)->constant;
    int64_t of_k = type_stride(m, t, k.last)->constant;
    WgmmaMatrix *x = &plan->matrices[i];
    x->mn_major = of_k != 1;
    MatrixSide along = x->mn_major ? mn : k, across = x->mn_major ? k : mn;
    int64_t row_bytes = bytes * (x->mn_major ? of_k : of_mn);
    if (x->mn_major && of_mn != 1)
        return refuse_matrix(m, op, i, "neither its rows nor its columns are contiguous");
    if (x->mn_major && !plan->row->major)
        return refuse_matrix(m, op, i, "elements that are not 16 bits wide must be contiguous "
                             "along k");
    if (across.first != across.last)
        return refuse_matrix(m, op, i, "two dimensions may be those along which it is contiguous");
    if (!check_rows(m, op, i, type_extent(t, along.last), row_bytes))
        return false;
    x->mode = 4u - t->swizzle.bits;
    x->leading = UNIT_BYTES;        /* not used with these swizzles (1, as CUTLASS has it) */
    x->stride = ROWS * row_bytes;
    x->k_bytes = x->mn_major ? plan->row->k * row_bytes : STEP_BYTES;
    x->mn_bytes = x->mn_major ? bytes : row_bytes;
    return plan_blocks(m, op, i, along, x);
}

/* ---- tiles of the sums ---------------------------------------------------------------- */

static bool refuse_layout(Module *m, const Op *op, const Value *v, const Layout *unit,
                          const char *why)
{
    diag_error(m->diag, op->loc, "%s does not fit wgmma: %s", type_text(m, v->type), why);
    return diag_note(m->diag, v->loc, "layouts of %s that fit are L.%s, L a layout over "
                     "warpgroups", value_text(m, v), layout_text(m, unit));
}

/* Fills `at` with the first tile of warpgroup `w`, and says whether slot `slot` of it lies
 * there as that of warpgroup 0 does. */
static bool lies_alike(const Layout *q, int64_t w, int64_t slot, int64_t at[2])
{
    int64_t base[2], mine[2], first[2];
    layout_index(q, 0, 0, base);
    layout_index(q, 0, slot, first);
    layout_index(q, w, 0, at);
    layout_index(q, w, slot, mine);
    return mine[0] - at[0] == first[0] - base[0] && mine[1] - at[1] == first[1] - base[1];
}

static bool all_lie_alike(const Layout *q)
{
    int64_t at[2];
    for (int64_t w = 0; w < q->threads; w++)
        for (int64_t slot = 0; slot < q->slots; slot++)
            if (!lies_alike(q, w, slot, at))
                return false;
    return true;
}

/* The slot of warpgroup `w` that holds tile (i, j), or -1. */
static int64_t find_slot(const Layout *q, int64_t w, int64_t i, int64_t j)
{
    int64_t at[2];
    for (int64_t slot = 0; slot < q->slots; slot++) {
        layout_index(q, w, slot, at);
        if (at[0] == i && at[1] == j)
            return slot;
    }
    return -1;
}

/* The tiles side by side from (i, j) on that warpgroup 0 holds. */
static int64_t run_length(const Layout *q, int64_t i, int64_t j)
{
    int64_t count = 0;
    while (find_slot(q, 0, i, j + count) >= 0)
        count++;
    return count;
}

/* The greatest number of tiles in one instruction that all runs of warpgroup 0 are made of; 0:
 * there is none. A run begins where no tile is to the left. */
static int64_t tiles_of_unit(const Layout *q, const Wgmma *row, int64_t wanted)
{
    int64_t common = 0, at[2];
    for (int64_t slot = 0; slot < q->slots; slot++) {
        layout_index(q, 0, slot, at);
        if (find_slot(q, 0, at[0], at[1] - 1) < 0)
            common = gcd_i64(common, run_length(q, at[0], at[1]));
    }
    int64_t tiles = WGMMA_N_MOST / WGMMA_N;
    while (tiles && (common % tiles || !wgmma_has_n(row, WGMMA_N * tiles) ||
                     (wanted && tiles != wanted / WGMMA_N)))
        tiles--;
    return tiles;
}

static void add_unit(Module *m, WgmmaPlan *plan, const int64_t base[2], const int64_t at[2])
{
    int64_t tiles = plan->n / WGMMA_N;
    WgmmaUnit *u = &plan->units[plan->unit_count++];
    *u = (WgmmaUnit){.row = WGMMA_M * (at[0] - base[0]), .column = WGMMA_N * (at[1] - base[1]),
                     .slots = arena_array(&m->scratch, int64_t, (size_t)tiles)};
    for (int64_t j = 0; j < tiles; j++)
        u->slots[j] = find_slot(plan->tiles, 0, at[0], at[1] + j);
}

/* Cuts the tiles of warpgroup 0 into units, row by row. */
static void cut_units(Module *m, WgmmaPlan *plan)
{
    const Layout *q = plan->tiles;
    int64_t base[2], tiles = plan->n / WGMMA_N, begun;
    layout_index(q, 0, 0, base);
    plan->units = arena_array(&m->scratch, WgmmaUnit, (size_t)(q->slots / tiles));
    for (int64_t i = 0; i < q->shape[0]; i++)
        for (begun = 0; begun < q->shape[1];) {
            bool here = find_slot(q, 0, i, begun) >= 0;
            if (here)
                add_unit(m, plan, base, (int64_t[]){i, begun});
            begun += here ? tiles : 1;
        }
}

/* Plans the sums: n and the units. `wanted` is the n that the text names, or 0. */
static bool plan_sums(Module *m, const Op *op, int64_t wanted, WgmmaPlan *plan)
{
    const Value *sums = op->results[0];
    const Layout *tile = wgmma_tile(&m->layouts);
    const char *why;
    plan->tiles = layout_divide(&m->layouts, sums->type->layout, tile, &why);
    if (!plan->tiles)
        return refuse_layout(m, op, sums, tile, why);
    if (!all_lie_alike(plan->tiles))
        return refuse_layout(m, op, sums, tile, "warpgroups hold tiles in different order");
    plan->n = WGMMA_N * tiles_of_unit(plan->tiles, plan->row, wanted);
    if (!plan->n)
        return wanted ? diag_error(m->diag, op->loc, "via = %s does not fit: the columns of %s "
                                   "cannot be cut so", via_info[op_via(op)].spelling,
                                   type_text(m, sums->type))
                      : refuse_layout(m, op, sums, tile, "no n of an instruction divides its "
                                      "columns");
    cut_units(m, plan);
    return true;
}

/* ---- a in registers ------------------------------------------------------------------------ */

/* The slot in which warp `w` has word `word` of step `k` of the 64 rows from tile `tile` on, or
 * -1: words of a row and of the row 8 below it, then those half a step further. */
static int64_t find_word(const WgmmaPlan *plan, int64_t w, int64_t tile, int64_t k, int64_t word)
{
    enum { ROWS_OF_WARP = 2, HALVES = 2 };
    int64_t row = (tile * WARPS + w % WARPS) * ROWS_OF_WARP + word % ROWS_OF_WARP;
    return find_slot(plan->a_pieces, w, row, k * HALVES + word / ROWS_OF_WARP);
}

static bool refuse_words(Module *m, const Op *op, const WgmmaPlan *plan, int64_t w)
{
    return refuse_layout(m, op, op->operands[0], wgmma_step(&m->layouts, plan->row),
                         arena_printf(&m->scratch, "warp %lld lacks rows of a that its sums need, "
                                      "or has them in another order", (long long)w));
}

/* Finds the slots of the words of a that unit `u` needs, the same in all warps. */
static bool find_words(Module *m, const Op *op, WgmmaPlan *plan, WgmmaUnit *u)
{
    int64_t count = plan->steps * WGMMA_A_PIECES, at[2];
    u->a_slots = arena_array(&m->scratch, int64_t, (size_t)count);
    for (int64_t w = 0; w < plan->a_pieces->threads; w++)
        for (int64_t i = 0; i < count; i++) {
            layout_index(plan->tiles, w / WARPS, 0, at);
            int64_t slot = find_word(plan, w, at[0] + u->row / WGMMA_M, i / WGMMA_A_PIECES,
                                     i % WGMMA_A_PIECES);
            if (slot < 0 || (w && slot != u->a_slots[i]))
                return refuse_words(m, op, plan, w);
            u->a_slots[i] = slot;
        }
    return true;
}

static bool plan_registers(Module *m, const Op *op, WgmmaPlan *plan)
{
    const Value *a = op->operands[0];
    const char *why;
    plan->in_registers = true;
    plan->a_pieces = layout_divide(&m->layouts, a->type->layout,
                                   wgmma_piece(&m->layouts, plan->row), &why);
    if (!plan->a_pieces)
        return refuse_layout(m, op, a, wgmma_step(&m->layouts, plan->row), why);
    for (int64_t i = 0; i < plan->unit_count; i++)
        if (!find_words(m, op, plan, &plan->units[i]))
            return false;
    return true;
}

/* ---- fences ------------------------------------------------------------------------ */

/* The dot_async right before `op`, ignoring pure ops, or NULL. */
static const Op *product_before(const Op *op)
{
    do
        op = op->prev;
    while (op && op_info[op->code].effect == EFFECT_PURE);
    return op && op_completion(op) == COMPLETION_PRODUCT ? op : NULL;
}

/* Returns true when an op before `op`, in its region, makes `v`. */
static bool is_made_before(const Value *v, const Op *op)
{
    while (op && op != v->def)
        op = op->prev;
    return op;
}

const Op *wgmma_fence_op(const Op *op)
{
    const Op *before = product_before(op), *first;
    if (!before || op_commits_product(before) || op->operand_count < 3 ||
        op->operands[2] != before->results[0])
        return op;
    first = wgmma_fence_op(before);
    return op->operands[0]->type->kind != TYPE_REG || is_made_before(op->operands[0], first)
               ? first : op;
}

const Op *wgmma_fence_user(const Op *op, const Op *last)
{
    while (!op_commits_product(last)) {
        do
            last = last->next;
        while (last && op_info[last->code].effect == EFFECT_PURE);
        if (!last || op_completion(last) != COMPLETION_PRODUCT || wgmma_fence_op(last) != op)
            return NULL;
        if (last->operands[0]->type->kind == TYPE_REG)
            return last;
    }
    return NULL;
}

/* Sums go from one instruction to the next of the same shape without a fence; registers that
 * other instructions write need one (PTX ISA, 9.7.15.7.1), that of the group's first product
 * where they are there before it, though that one may need none itself. */
static bool needs_fence(const Op *op, const WgmmaPlan *plan)
{
    const Op *before = product_before(op);
    if (plan->in_registers)
        return wgmma_fence_op(op) == op;
    return !before || op->operand_count < 3 || op->operands[2] != before->results[0] ||
           (wgmma_fence_op(op) == op && wgmma_fence_user(op, op));
}

typedef struct WriterSearch {
    const Op *product;
    bool found;
} WriterSearch;

static bool writes_operand(const OpAccess *access, const Op *product)
{
    const Value *root = memory_root(access->tile.memory);
    for (unsigned i = 0; i < 2; i++)
        if (product->operands[i]->type->kind == TYPE_SHARED &&
            memory_may_meet(root, memory_root(product->operands[i])))
            return true;
    return false;
}

/* Looks for a write of an operand by threads, which the async proxy does not see at once. */
static bool find_writer(Op *op, void *data)
{
    WriterSearch *s = data;
    OpAccess accesses[ACCESSES_MAX];
    unsigned count = op_always_follows(op, s->product) ? 0 : op_accesses(op, accesses);
    for (unsigned i = 0; i < count; i++)
        s->found |= accesses[i].mode != MODE_READ &&
                    !completion_is_async_proxy(accesses[i].completion) &&
                    writes_operand(&accesses[i], s->product);
    return !s->found;
}

static bool has_writers(const Op *op)
{
    WriterSearch s = {op, false};
    region_walk(op->parent->program->body, find_writer, &s);
    return s.found;
}

/* A product right before has had the fence already. */
static bool needs_async_fence(const Op *op)
{
    const Op *before = product_before(op);
    return has_writers(op) && !(before && has_writers(before));
}

/* ---- plans ------------------------------------------------------------------------- */

static bool refuse_types(Module *m, const Op *op)
{
    Text text;
    text_init(&text, &m->scratch);
    for (const Wgmma *row = wgmma_table; row < wgmma_table + WGMMA_COUNT; row++)
        text_printf(&text, "%s (%s, %s, %s)", row == wgmma_table ? "" : ",",
                    dtype_name(row->types[0]), dtype_name(row->types[1]),
                    dtype_name(row->types[2]));
    diag_error(m->diag, op->loc, "wgmma has no product of %s and %s summed in %s",
               dtype_name(op->operands[0]->type->dtype), dtype_name(op->operands[1]->type->dtype),
               dtype_name(op->results[0]->type->dtype));
    return diag_note(m->diag, op->loc, "types (a, b, sums) that it has are%s", text_string(&text));
}

/* The row of the operands' types, or NULL. */
static const Wgmma *find_row(const Op *op)
{
    const DType types[] = {op->operands[0]->type->dtype, op->operands[1]->type->dtype,
                           op->results[0]->type->dtype};
    return wgmma_find(types);
}

static Via via_of(const Wgmma *row, int64_t n)
{
    char spelling[64];
    snprintf(spelling, sizeof spelling, "wgmma.m64n%lldk%lld", (long long)n, (long long)row->k);
    return via_find(spelling);
}

/* The n that the text names; 0: none. False after an error. */
static bool find_wanted(Module *m, const Op *op, const Wgmma *row, int64_t *n)
{
    *n = 0;
    if (op_via(op) == VIA_units)
        return true;
    for (int64_t one = WGMMA_N; one <= WGMMA_N_MOST; one += WGMMA_N)
        if (wgmma_has_n(row, one) && via_of(row, one) == op_via(op))
            *n = one;
    return *n || diag_error(m->diag, op->loc, "via = %s does not fit: there is no such instruction "
                            "of %s", via_info[op_via(op)].spelling, row->text);
}

static bool check_extents(Module *m, const Op *op, WgmmaPlan *plan)
{
    int64_t k = matrix_extent(op, 1, true), rows = type_extent(op->results[0]->type, 0);
    plan->steps = k / plan->row->k;
    if (k % plan->row->k)
        return diag_error(m->diag, op->loc, "k of dot_async is %lld, wgmma of %s takes multiples "
                          "of %lld", (long long)k, plan->row->text, (long long)plan->row->k);
    return rows % WGMMA_M == 0 ||
           diag_error(m->diag, op->loc, "m of dot_async is %lld, wgmma takes multiples of %d",
                      (long long)rows, WGMMA_M);
}

static bool plan_operands(Module *m, const Op *op, WgmmaPlan *plan)
{
    bool shared = op->operands[0]->type->kind == TYPE_SHARED;
    return plan_matrix(m, op, 1, plan) &&
           (shared ? plan_matrix(m, op, 0, plan) : plan_registers(m, op, plan));
}

/* Checks that an instruction reads whole rows of a matrix along m or n, or the only ones. */
static bool check_major(Module *m, const Op *op, const WgmmaPlan *plan)
{
    int64_t read[] = {WGMMA_M, plan->n};
    for (unsigned i = plan->in_registers ? 1 : 0; i < 2; i++) {
        MatrixSide mn = product_side(op, op->results[0]->type, i, false);
        int64_t row = type_extent(op->operands[i]->type, mn.last);
        bool is_whole = mn.first == mn.last ? read[i] == row : read[i] % row == 0;
        if (plan->matrices[i].mn_major && !is_whole)
            return refuse_matrix(m, op, i, arena_printf(
                &m->scratch, "one instruction has %lld along %c, and rows are %lld: it must have "
                "whole ones, and several as blocks", (long long)read[i], "mn"[i], (long long)row));
    }
    return true;
}

bool wgmma_plan(Module *m, const Op *op, unsigned sm, WgmmaPlan *plan)
{
    int64_t wanted;
    *plan = (WgmmaPlan){.row = find_row(op)};
    if (sm && sm != WGMMA_SM)
        return diag_error(m->diag, op->loc, "dot_async needs sm_%da, the target is %s", WGMMA_SM,
                          target_name_of(sm));
    if (!plan->row)
        return refuse_types(m, op);
    if (!find_wanted(m, op, plan->row, &wanted) || !check_extents(m, op, plan) ||
        !plan_sums(m, op, wanted, plan) || !plan_operands(m, op, plan) ||
        !check_major(m, op, plan))
        return false;
    plan->via = via_of(plan->row, plan->n);
    plan->fence = needs_fence(op, plan);
    plan->async_fence = needs_async_fence(op);
    return true;
}

/* ---- the planner ------------------------------------------------------------------- */

static bool plan_product(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    return wgmma_plan(m, op, sm, &plan->wgmma);
}

static void write_product(Module *m, Op *op, const Plan *plan)
{
    op_set_attr(m, op, (Attr){.kind = ATTR_VIA, .word = plan->wgmma.via});
}

static const char *matrix_text(Module *m, const WgmmaPlan *plan, unsigned i)
{
    const WgmmaMatrix *x = &plan->matrices[i];
    if (!i && plan->in_registers)
        return "a in registers";
    return arena_printf(&m->arena, "%c by rows of %lld bytes along %s", "ab"[i],
                        (long long)(x->stride / ROWS), !x->mn_major ? "k" : i ? "n" : "m");
}

static void remark_product(Module *m, const Op *op, const Plan *p)
{
    const WgmmaPlan *plan = &p->wgmma;
    const char *fences = arena_printf(
        &m->arena, "%s%s", plan->fence ? "" : ", without a fence",
        plan->async_fence ? ", behind a fence: threads write its operands" : "");
    REMARK(m, op, WarpgroupDotChosen, R(op_info[op->code].name), R(via_info[plan->via].spelling),
           R(plan->row->text), R(plan->unit_count * plan->steps), R(matrix_text(m, plan, 0)),
           R(matrix_text(m, plan, 1)), R(fences));
}

const Planner planner_wgmma = {
    .family = PLAN_wgmma, .plan = plan_product, .write = write_product, .remark = remark_product,
};

/* ---- layouts that fit --------------------------------------------------------------- */

/* The sums' tiles over warpgroups: over rows first, the rest over columns. */
static const Layout *arrange_tiles(Module *m, const Op *op)
{
    LayoutTable *t = &m->layouts;
    int64_t groups = region_threads(op->parent).count / WARPGROUP;
    int64_t tiles[] = {type_extent(op->results[0]->type, 0) / WGMMA_M,
                       type_extent(op->results[0]->type, 1) / WGMMA_N};
    int64_t shares[] = {gcd_i64(tiles[0], groups), 0};
    const char *why;
    shares[1] = groups / shares[0];
    if (tiles[1] % shares[1])
        return NULL;
    const int64_t left[] = {tiles[0] / shares[0], tiles[1] / shares[1]};
    return layout_product(t, layout_spatial(t, 2, shares, &why), layout_local(t, 2, left, &why),
                          &why);
}

/* The layout of a that belongs to the sums' tiles. */
static const Layout *derive_steps(Module *m, const Op *op, const Wgmma *row, const Layout *tiles)
{
    enum { COLUMNS = 1 << 1 };
    LayoutTable *t = &m->layouts;
    const int64_t steps[] = {1, type_extent(op->operands[0]->type, 1) / row->k};
    const char *why;
    const Layout *rows = layout_reduce(t, tiles, COLUMNS, &why);
    const Layout *l = rows ? layout_product(t, rows, layout_local(t, 2, steps, &why), &why) : NULL;
    return l ? layout_product(t, l, wgmma_step(t, row), &why) : NULL;
}

bool fit_wgmma(Module *m, const Op *op, const Layout **sums, const Layout **a)
{
    const Wgmma *row = find_row(op);
    const Type *d = op->results[0]->type;
    const char *why;
    if (!row || type_extent(d, 0) % WGMMA_M || type_extent(d, 1) % WGMMA_N ||
        matrix_extent(op, 1, true) % row->k)
        return false;
    const Layout *tile = wgmma_tile(&m->layouts);
    const Layout *tiles = *sums ? layout_divide(&m->layouts, *sums, tile, &why)
                                : arrange_tiles(m, op);
    if (!tiles)
        return false;
    *sums = *sums ? *sums : layout_product(&m->layouts, tiles, tile, &why);
    if (op->operands[0]->type->kind == TYPE_REG && !*a)
        *a = derive_steps(m, op, row, tiles);
    return *sums && (op->operands[0]->type->kind != TYPE_REG || *a);
}
