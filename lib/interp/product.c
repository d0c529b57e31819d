/* dot_async and dot_wait. The sums are computed when the product is issued. Until the wait
 * of its group, every write of its shared operands is a race (race.c), so the sums do not
 * depend on when these are really read; that nobody looks at them before is for types.
 *
 *     dot_async   ........................   dot_wait   synchronize
 *     |-- conflicts with writes of any thread ------------------|
 */
#include "interp/groups.h"
#include "interp/tile.h"

#include "ir/op_access.h"
#include "ir/op_attrs.h"
#include "ir/product.h"
#include "ir/text.h"
#include "support/bits.h"

#include <string.h>

enum { OPERANDS = 2 };      /* a and b */

/* A product in flight. Each of its warps waits for its own groups. */
struct Product {
    const Op *op;
    View views[OPERANDS];       /* of operands in shared memory */
    unsigned view_count;
    Member member;
    uint64_t number;            /* counted from 1 */
    Product *next;
};

/* ---- operands in shared memory ------------------------------------------------ */

static int64_t bit_of(const View *v, int64_t offset)
{
    return swizzle_element(v->swizzle, v->first + offset) * v->bits;
}

/* Elements from the first of a side to its i-th. */
static int64_t side_offset(const View *v, MatrixSide side, int64_t i)
{
    int64_t inner = v->extent[side.last];
    return side.first == side.last ? i * v->stride[side.first]
                                   : i / inner * v->stride[side.first] +
                                     i % inner * v->stride[side.last];
}

typedef bool Visit(Interp *in, const View *view, const Op *op, int64_t bit);

static bool each_element(Interp *in, const View *view, const Op *op, Visit *visit)
{
    MatrixSide rows = {0, view->rank - 2}, columns = {view->rank - 1, view->rank - 1};
    int64_t count = view->extent[0] * (view->rank == 3 ? view->extent[1] : 1);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < view->extent[columns.last]; j++)
            if (!visit(in, view, op,
                       bit_of(view, side_offset(view, rows, i) + side_offset(view, columns, j))))
                return false;
    return true;
}

static bool check_element(Interp *in, const View *view, const Op *op, int64_t bit)
{
    Tile tile = {.op = op, .view = view};
    int64_t first = bit / 8, last = (bit + view->bits - 1) / 8;
    return race_copy_check(in, view, false, first, last) &&
           tile_check_written(in, &tile, bit, first, last);
}

static bool start_element(Interp *in, const View *view, const Op *op, int64_t bit)
{
    (void)op;
    race_copy_start(in, view, false, bit / 8, (bit + view->bits - 1) / 8);
    return true;
}

static bool end_element(Interp *in, const View *view, const Op *op, int64_t bit)
{
    (void)op;
    race_copy_read_ends(in, view, bit / 8, (bit + view->bits - 1) / 8);
    return true;
}

/* ---- sums ------------------------------------------------------------------------ */

/* The code of element (i, j) of a register tensor. */
static uint64_t element_code(const Value *v, int64_t i, int64_t j)
{
    const Tensor *t = value_tensor(v);
    Place p = t->map->place[i * t->map->layout->shape[1] + j];
    return tensor_get(t, p.thread, p.slot);
}

static uint64_t shared_code(const View *view, int64_t offset)
{
    return bits_get(view->memory->data, (size_t)(bit_of(view, offset) / view->bits), view->bits);
}

/* An integer's code, sign-extended. */
static int64_t integer_of(DType t, uint64_t code)
{
    uint64_t sign = dtype_info[t].kind == DKIND_INT ? UINT64_C(1) << (dtype_bits(t) - 1) : 0;
    return (int64_t)((code ^ sign) - sign);
}

typedef struct Matrix {
    int64_t rows, columns;
    double *reals;              /* row-major; of integers the values, which doubles hold */
} Matrix;

static double real_of(Interp *in, DType t, uint64_t code)
{
    return dtype_is_float(t) ? interp_value(in, t, code) : (double)integer_of(t, code);
}

/* Reads an operand. */
static Matrix read_matrix(Interp *in, const Op *op, unsigned number)
{
    const Value *v = op->operands[number];
    MatrixSide rows = product_side(op, op->results[0]->type, number, number == 1);
    MatrixSide columns = product_side(op, op->results[0]->type, number, number == 0);
    Matrix x = {side_extent(v->type, rows), side_extent(v->type, columns), NULL};
    const View *view = v->type->kind == TYPE_SHARED ? &value_binding(v)->view : NULL;
    x.reals = arena_array(in->arena, double, (size_t)(x.rows * x.columns));
    for (int64_t i = 0; i < x.rows; i++)
        for (int64_t j = 0; j < x.columns; j++)
            x.reals[i * x.columns + j] = real_of(
                in, v->type->dtype, view ? shared_code(view, side_offset(view, rows, i) +
                                                             side_offset(view, columns, j))
                                         : element_code(v, i, j));
    return x;
}

/* c + a * b, or c - a * b: the products' sum in ascending k, then c, rounded once, as in
 * `dot`; integers wrap. Without c the products alone. */
static uint64_t sum_code(const Op *op, DType t, double products, bool has_c, uint64_t c)
{
    const Attr *negate = op_attr(op, ATTR_NEGATE);
    double sum = negate && negate->word == FLAG_TRUE ? -products : products;
    if (dtype_is_float(t))
        return dtype_encode(t, has_c ? sum + dtype_decode(t, c) : sum);
    uint64_t mask = UINT64_MAX >> (64 - dtype_bits(t));
    return ((uint64_t)(int64_t)sum + (has_c ? c : 0)) & mask;
}

static uint64_t *compute_sums(Interp *in, const Op *op)
{
    Matrix a = read_matrix(in, op, 0), b = read_matrix(in, op, 1);
    const Value *c = op->operand_count == 3 ? op->operands[2] : NULL;
    DType t = op->results[0]->type->dtype;
    uint64_t *codes = arena_array(in->arena, uint64_t, (size_t)(a.rows * b.columns));
    double *row = arena_array(in->arena, double, (size_t)b.columns);
    for (int64_t i = 0; i < a.rows; i++) {
        for (int64_t j = 0; j < b.columns; j++)
            row[j] = dtype_is_float(t) ? -0.0 : 0.0;
        for (int64_t k = 0; k < a.columns; k++)
            for (int64_t j = 0; j < b.columns; j++)
                row[j] += a.reals[i * a.columns + k] * b.reals[k * b.columns + j];
        for (int64_t j = 0; j < b.columns; j++)
            codes[i * b.columns + j] = sum_code(op, t, row[j], c, c ? element_code(c, i, j) : 0);
    }
    return codes;
}

static void write_sums(Interp *in, const Op *op)
{
    Tensor *to = value_tensor(op->results[0]);
    for (unsigned i = 0; i < OPERANDS; i++)     /* tables of values outlive the mark */
        interp_value(in, op->operands[i]->type->dtype, 0);
    ArenaMark mark = arena_mark(in->arena);
    const uint64_t *codes = compute_sums(in, op);
    to->undefined = NULL;
    for (int64_t thread = 0; thread < to->threads; thread++)
        for (int64_t slot = 0; slot < to->slots; slot++)
            tensor_set(to, thread, slot, codes[to->map->linear[thread * to->slots + slot]]);
    arena_reset(in->arena, mark);
}

/* ---- groups -------------------------------------------------------------------------- */

static Product *new_product(Interp *in, const Op *op)
{
    Product *p = in->free_products, **end = &in->products;
    if (p)
        in->free_products = p->next;
    else
        p = arena_new(in->arena, Product);
    *p = (Product){.op = op, .member = group_member(in, op), .number = ++in->product_count};
    for (unsigned i = 0; i < OPERANDS; i++)
        if (op->operands[i]->type->kind == TYPE_SHARED)
            p->views[p->view_count++] = value_binding(op->operands[i])->view;
    while (*end)
        end = &(*end)->next;
    *end = p;
    return p;
}

static int64_t view_elements(const View *v)
{
    return v->extent[0] * v->extent[1] * (v->rank == 3 ? v->extent[2] : 1);
}

bool interp_dot_async(Interp *in, const Op *op)
{
    if (!interp_operands_defined(in, op) || !race_begin(in, op))
        return false;
    Product *p = new_product(in, op);
    for (unsigned i = 0; i < p->view_count; i++)
        if (!each_element(in, &p->views[i], op, check_element))
            return false;
    for (unsigned i = 0; i < p->view_count; i++)
        each_element(in, &p->views[i], op, start_element);
    for (unsigned i = 0; i < p->view_count; i++)
        profile_moved(in, op, &p->views[i], false, view_elements(&p->views[i]));
    write_sums(in, op);
    value_tensor(op->results[0])->product = p->number;
    if (op_commits_product(op))
        group_commit(in, COMPLETION_PRODUCT);
    return true;
}

static bool retire(Interp *in, const Product *p)
{
    if (!race_begin(in, p->op))
        return false;
    for (unsigned i = 0; i < p->view_count; i++)
        each_element(in, &p->views[i], p->op, end_element);
    return true;
}

static bool wait_for_groups(Interp *in, int64_t pending)
{
    for (Product **at = &in->products; *at;) {
        Product *p = *at;
        if (!group_wait(in, &p->member, pending)) {
            at = &p->next;
            continue;
        }
        if (!retire(in, p))
            return false;
        *at = p->next;
        p->next = in->free_products;
        in->free_products = p;
    }
    return true;
}

/* Checks that no product in flight adds to a tensor that `op` gives as complete. */
static bool check_complete(Interp *in, const Op *op, unsigned i)
{
    uint64_t number = value_tensor(op->operands[i])->product;
    const Product *p = in->products;
    while (p && p->number != number)
        p = p->next;
    if (!p || op->results[i]->type->pending)
        return true;
    diag_error(in->diag, op->loc, "dot_wait gives %s as complete while a product of it is in "
               "flight: pending = %lld waits for older groups only",
               value_text(in->program->module, op->operands[i]),
               (long long)op_wait_pending(op));
    return diag_note(in->diag, p->op->loc, "the product begins here");
}

bool interp_dot_wait(Interp *in, const Op *op)
{
    if (!interp_operands_defined(in, op) || !wait_for_groups(in, op_wait_pending(op)))
        return false;
    for (unsigned i = 0; i < op->operand_count; i++) {
        if (!check_complete(in, op, i))
            return false;
        value_assign(op->results[i], op->operands[i]);
    }
    return true;
}

/* ---- the end ---------------------------------------------------------------------------- */

static bool reads_memory(const Product *p, const Memory *memory)
{
    for (unsigned i = 0; i < p->view_count; i++)
        if (p->views[i].memory == memory)
            return true;
    return false;
}

bool products_ended(Interp *in, const Memory *memory, const Op *op)
{
    const Product *p = in->products;
    while (p && memory && !reads_memory(p, memory))
        p = p->next;
    if (!p)
        return true;
    if (!op)
        return diag_error(in->diag, p->op->loc, "%s ends while this dot_async is in flight: no "
                          "dot_wait waits for it",
                          interp_block_name(in, interp_block_number(in, in->block_count - 1,
                                                                    p->member.rank)));
    diag_error(in->diag, op->loc, "%s is allocated again while a dot_async reads it",
               value_text(in->program->module, op->results[0]));
    return diag_note(in->diag, p->op->loc, "no dot_wait waits for it");
}
