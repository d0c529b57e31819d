/* The driver: binds values, runs the blocks of the grid, dispatches ops. */
#include "interp/interp.h"

#include "interp/state.h"
#include "ir/part.h"
#include "ir/text.h"
#include "ir/verify.h"

#include <assert.h>
#include <string.h>

typedef bool (*InterpOp)(Interp *in, const Op *op);

static const InterpOp interp_ops[OP_COUNT] = {
#define OP(id, ...) [OP_##id] = interp_##id,
#include "ir/ops.def"
};

/* ---- register tensors ----------------------------------------------- */

uint64_t words_get(const uint32_t *words, uint64_t bit, unsigned width)
{
    const uint32_t *w = words + bit / 32;
    unsigned shift = bit % 32;
    uint64_t code = w[0] >> shift;
    if (shift + width > 32)
        code |= (uint64_t)w[1] << (32 - shift);
    if (shift + width > 64)
        code |= (uint64_t)w[2] << (64 - shift);
    return width < 64 ? code & ((UINT64_C(1) << width) - 1) : code;
}

void words_set(uint32_t *words, uint64_t bit, unsigned width, uint64_t code)
{
    for (unsigned done = 0; done < width;) {
        unsigned shift = (bit + done) % 32;
        unsigned part = width - done < 32 - shift ? width - done : 32 - shift;
        uint32_t mask = (uint32_t)(((UINT64_C(1) << part) - 1) << shift);
        uint32_t *w = &words[(bit + done) / 32];
        *w = (*w & ~mask) | ((uint32_t)(code >> done << shift) & mask);
        done += part;
    }
}

/* Fills the tables; threads descend so that the least one stays in `place`. */
static void fill_map(LayoutMap *map)
{
    const Layout *l = map->layout;
    for (int64_t thread = l->threads; thread-- > 0;)
        for (int64_t slot = 0; slot < l->slots; slot++) {
            int64_t index[LIMIT_RANK], at = thread * l->slots + slot, linear = 0;
            layout_index(l, thread, slot, index);
            for (unsigned d = 0; d < l->rank; d++) {
                map->index[at * l->rank + d] = (int32_t)index[d];
                linear = linear * l->shape[d] + index[d];
            }
            map->linear[at] = (uint32_t)linear;
            map->place[linear] = (Place){(uint16_t)thread, (uint16_t)slot};
        }
}

static const LayoutMap *layout_map(Interp *in, const Layout *l)
{
    for (const LayoutMap *known = in->maps; known; known = known->next)
        if (known->layout == l)
            return known;
    size_t places = (size_t)(l->threads * l->slots);
    LayoutMap *map = arena_new(in->arena, LayoutMap);
    *map = (LayoutMap){.layout = l, .elements = 1, .next = in->maps};
    for (unsigned d = 0; d < l->rank; d++)
        map->elements *= l->shape[d];
    map->index = arena_array(in->arena, int32_t, places * l->rank);
    map->linear = arena_array(in->arena, uint32_t, places);
    map->place = arena_array(in->arena, Place, (size_t)map->elements);
    fill_map(map);
    return in->maps = map;
}

static void tensor_init(Interp *in, Tensor *t, const Type *type)
{
    *t = (Tensor){.dtype = type->dtype, .bits = dtype_bits(type->dtype),
                  .threads = type->layout->threads, .slots = type->layout->slots,
                  .words = type_thread_words(type), .map = layout_map(in, type->layout)};
    t->data = arena_array(in->arena, uint32_t, (size_t)(t->threads * t->words));
}

/* ---- memory --------------------------------------------------------- */

Memory *memory_new(Interp *in, void *data, int64_t size)
{
    Memory *memory = arena_new(in->arena, Memory);
    *memory = (Memory){.data = data, .size = size};
    size_t pages = (size_t)(size / HISTORY_PAGE + (size % HISTORY_PAGE != 0));
    memory->pages = arena_array(in->arena, ByteHistory *, pages);
    return memory;
}

static Memory *shared_new(Interp *in, const Type *t)
{
    int64_t size = (type_shared_bits(t) + 7) / 8;
    Memory *memory = memory_new(in, arena_alloc(in->arena, (size_t)size), size);
    memory->shared = true;
    memory->defined = arena_alloc(in->arena, (size_t)size);
    return memory;
}

/* `of_rank`: the memories of the cluster's blocks, of which this is one. */
static void shared_init(Interp *in, View *view, const Value *v, Memory *memory,
                        Memory **of_rank)
{
    const Type *t = v->type;
    int64_t row_major = 1;
    view->memory = memory;
    memory->of_rank = of_rank;
    view->name = v->name ? arena_printf(in->arena, "shared tensor %%%s", v->name)
                         : "a shared tensor";
    view->origin = v->def;
    view->rank = t->rank;
    view->bits = dtype_bits(t->dtype);
    view->swizzle = t->swizzle;
    for (unsigned d = t->rank; d-- > 0;) {
        view->extent[d] = type_extent(t, d);
        view->stride[d] = t->strides ? t->strides[d]->constant : row_major;
        row_major *= view->extent[d];
    }
}

/* "%tile, a part of %ring" */
static const char *part_name(Interp *in, const Value *v)
{
    Module *m = in->program->module;
    return arena_printf(in->arena, "%s, a part of %s", v->name ? value_text(m, v) : "a tensor",
                        value_text(m, memory_root(v)));
}

/* ---- values --------------------------------------------------------- */

/* Arguments and workspaces are one for all blocks. */
static bool has_ranks(const Value *v)
{
    return !v->program && !(v->def && v->def->code == OP_allocate_global);
}

static void bind_shared(Interp *in, const Value *v, Binding *b)
{
    Memory **of_rank = arena_array(in->arena, Memory *, in->blocks);
    for (unsigned i = 0; i < in->blocks; i++)
        shared_init(in, &b[i].view, v, of_rank[i] = shared_new(in, v->type), of_rank);
}

static void bind_rank(Interp *in, const Value *v, Binding *b)
{
    if (v->type->kind == TYPE_REG)
        tensor_init(in, &b->tensor, v->type);
    else if (part_op(v))
        b->view.name = part_name(in, v);
}

static void bind_value(Interp *in, Value *v)
{
    unsigned count = has_ranks(v) ? in->blocks : 1;
    Binding *b = arena_array(in->arena, Binding, count);
    v->data = b;
    if (count > 1)
        arena_push(in->arena, in->values, in->value_count, in->value_capacity, v);
    if (v->type->kind == TYPE_SHARED && v->def && v->def->code == OP_allocate_shared)
        bind_shared(in, v, b);
    else if (v->type->kind == TYPE_MBARRIER)
        mbarriers_bind(in, v);
    for (unsigned i = 0; i < count; i++)
        bind_rank(in, v, &b[i]);
}

static bool bind_op(Op *op, void *data)
{
    Interp *in = data;
    for (unsigned i = 0; i < op->result_count; i++)
        bind_value(in, op->results[i]);
    for (unsigned r = 0; r < op->region_count; r++)
        for (unsigned i = 0; i < op->regions[r]->arg_count; i++)
            bind_value(in, op->regions[r]->args[i]);
    return true;
}

/* The value of an integer, the code of a float. */
static int64_t scalar_argument(const Type *t, tilus_arg arg)
{
    if (dtype_is_float(t->dtype))
        return (int64_t)dtype_encode(t->dtype, arg.real);
    switch (t->dtype) {
    case DTYPE_i32: return (int32_t)arg.integer;
    case DTYPE_u32: return (uint32_t)arg.integer;
    default: return arg.integer;
    }
}

/* Pointers to one buffer share its history, whatever their number. */
static void bind_arguments(Interp *in, const tilus_arg *args, const tilus_buffer *buffers,
                           size_t buffer_count)
{
    Program *p = in->program;
    Memory **memories = arena_array(in->arena, Memory *, buffer_count);
    for (size_t i = 0; i < buffer_count; i++)
        memories[i] = memory_new(in, buffers[i].data, (int64_t)buffers[i].size);
    for (unsigned i = 0; i < p->arg_count; i++) {
        Value *v = p->args[i];
        bind_value(in, v);
        Binding *b = value_binding(v);
        if (v->type->kind == TYPE_PTR) {
            assert(args[i].pointer < buffer_count);
            b->view.memory = memories[args[i].pointer];
            b->view.name = arena_printf(in->arena, "argument %%%s", v->name);
        } else {
            b->integer = scalar_argument(v->type, args[i]);
        }
    }
}

void value_assign(const Value *to, const Value *from)
{
    Binding *x = value_binding(to);
    const Binding *y = value_binding(from);
    if (to->type->kind != TYPE_REG) {
        *x = *y;
        return;
    }
    memcpy(x->tensor.data, y->tensor.data,
           (size_t)(x->tensor.threads * x->tensor.words) * sizeof *x->tensor.data);
    x->tensor.undefined = y->tensor.undefined;
    x->tensor.product = y->tensor.product;
}

/* ---- for the op families -------------------------------------------- */

static int64_t lookup(const Value *v, void *data)
{
    (void)data;
    return value_binding(v)->integer;
}

bool interp_evaluate(Interp *in, const Op *op, const Expr *e, int64_t *out)
{
    const char *why = expr_evaluate(e, lookup, NULL, out);
    if (!why)
        return true;
    Text text;
    text_init(&text, in->arena);
    print_expr(&text, e);
    return diag_error(in->diag, op->loc, "%s in %s", why, text_string(&text));
}

bool interp_operands_defined(Interp *in, const Op *op)
{
    for (unsigned i = 0; i < op->operand_count; i++) {
        const Value *v = op->operands[i];
        if (v->type->kind != TYPE_REG || !value_tensor(v)->undefined)
            continue;
        diag_error(in->diag, op->loc, "%s reads an element that was never written",
                   op_info[op->code].name);
        return diag_note(in->diag, value_tensor(v)->undefined->loc,
                         "allocated here without a value");
    }
    return true;
}

bool interp_fill_slots(Interp *in, const Op *op, SlotCode *code)
{
    Tensor *to = value_tensor(op->results[0]);
    if (!interp_operands_defined(in, op))
        return false;
    to->undefined = NULL;
    for (int64_t thread = 0; thread < to->threads; thread++)
        for (int64_t slot = 0; slot < to->slots; slot++)
            tensor_set(to, thread, slot, code(in, op, thread, slot));
    return true;
}

double interp_value(Interp *in, DType t, uint64_t code)
{
    if (dtype_bits(t) > 16)
        return dtype_decode(t, code);
    if (!in->decoded[t]) {
        uint64_t codes = UINT64_C(1) << dtype_bits(t);
        in->decoded[t] = arena_array(in->arena, double, codes);
        for (uint64_t c = 0; c < codes; c++)
            in->decoded[t][c] = dtype_decode(t, c);
    }
    return in->decoded[t][code];
}

const char *interp_block_name(Interp *in, uint64_t block)
{
    Text text;
    text_init(&text, in->arena);
    for (unsigned d = 0; d < in->program->grid_rank; d++) {
        uint64_t extent = (uint64_t)in->grid[d];
        text_printf(&text, "%s%llu", d ? ", " : "block (",
                    (unsigned long long)(block % extent));
        block /= extent;
    }
    text_char(&text, ')');
    return text_string(&text);
}

/* ---- clusters ------------------------------------------------------- */

uint64_t interp_block_number(const Interp *in, uint64_t cluster, unsigned rank)
{
    uint64_t number = 0, row = 1;
    for (unsigned d = 0; d < 3; d++) {
        unsigned extent = in->together[d];
        uint64_t clusters = (uint64_t)in->grid[d] / extent;
        number += (cluster % clusters * extent + rank % extent) * row;
        row *= (uint64_t)in->grid[d];
        cluster /= clusters;
        rank /= extent;
    }
    return number;
}

const char *interp_running_name(Interp *in)
{
    return interp_block_name(in, interp_block_number(in, in->block_count - 1, in->rank));
}

void interp_turn_to(Interp *in, unsigned rank)
{
    uint64_t block = interp_block_number(in, in->block_count - 1, rank);
    for (uint32_t i = 0; i < in->value_count; i++)
        in->values[i]->data = value_binding(in->values[i]) - in->rank + rank;
    in->rank = rank;
    in->first_owner = rank * in->program->warps;
    for (unsigned d = 0; d < 3; d++) {
        in->block[d] = (int64_t)(block % (uint64_t)in->grid[d]);
        block /= (uint64_t)in->grid[d];
    }
}

bool interp_rank(Interp *in, const Op *op, AttrKind kind, bool mask, int64_t *out)
{
    const Expr *e = op_expr(op, kind);
    if (!e) {
        *out = mask ? INT64_C(1) << in->rank : in->rank;
        return true;
    }
    int64_t least = mask, most = mask ? (INT64_C(1) << in->blocks) - 1 : in->blocks - 1;
    if (!interp_evaluate(in, op, e, out))
        return false;
    return (*out >= least && *out <= most) ||
           diag_error(in->diag, op->loc, "%s of %s is %lld in a cluster of %u blocks",
                      attr_info[kind].spelling, op_info[op->code].name, (long long)*out,
                      in->blocks);
}

Meeting *meeting_new(Interp *in)
{
    Meeting *m = arena_new(in->arena, Meeting);
    *m = (Meeting){.waits = arena_array(in->arena, uint64_t, in->blocks)};
    return m;
}

bool interp_meet(Interp *in, Meeting *m)
{
    uint64_t *waits = &m->waits[in->rank];
    if (!*waits) {
        *waits = m->met + 1;
        m->meeting++;
    }
    if (m->meeting == in->blocks) {
        race_meeting(in);
        m->meeting = 0;
        m->met++;
    }
    in->blocked = *waits > m->met;
    if (!in->blocked)
        *waits = 0;
    return !in->blocked;
}

/* ---- running -------------------------------------------------------- */

bool interp_op(Interp *in, const Op *op)
{
    return interp_ops[op->code](in, op);
}

/* Runs the blocks of the next cluster. */
static bool run_cluster(Interp *in)
{
    in->exited = false;
    in->meeting->met = in->meeting->meeting = 0;
    memset(in->meeting->waits, 0, in->blocks * sizeof *in->meeting->waits);
    memset(in->groups, 0, in->blocks * sizeof *in->groups);
    race_block(in);
    arena_push(in->arena, in->block_starts, in->block_count, in->block_capacity,
               in->block_start);
    order_begin_cluster(in);
    return task_run_cluster(in) && copies_ended(in, NULL, NULL) &&
           products_ended(in, NULL, NULL) && stores_end_cluster(in);
}

/* Cuts the grid into clusters. */
static bool check_clusters(const Interp *in)
{
    for (unsigned d = 0; d < 3; d++)
        if (in->grid[d] % in->program->cluster[d])
            return diag_error(in->diag, in->program->loc, "the grid's extent of dimension %u is "
                              "%lld, not a multiple of the cluster's %u", d, (long long)in->grid[d],
                              in->program->cluster[d]);
    return true;
}

/* Finds which blocks run together. */
static bool find_together(Interp *in)
{
    const Program *p = in->program;
    int64_t most = LIMIT_TOGETHER / p->warps, blocks = 1;
    for (unsigned d = 0; d < 3; d++) {
        in->together[d] = p->cooperative && in->grid[d] ? (unsigned)in->grid[d] : p->cluster[d];
        blocks = blocks <= most ? blocks * in->together[d] : blocks;
    }
    in->blocks = (unsigned)blocks;
    return blocks <= most ||
           diag_error(in->diag, p->loc, "the interpreter runs at most %d warps together, this grid "
                      "of a cooperative program has more than %lld blocks of %u", LIMIT_TOGETHER,
                      (long long)most, p->warps);
}

static void tell_progress(const Interp *in, int64_t done, int64_t blocks)
{
    if (in->options && in->options->progress)
        in->options->progress(in->options->watcher, done, blocks);
}

static bool run_grid(Interp *in)
{
    int64_t blocks;
    if (__builtin_mul_overflow(in->grid[0], in->grid[1], &blocks) ||
        __builtin_mul_overflow(blocks, in->grid[2], &blocks) || blocks > INT32_MAX)
        return diag_error(in->diag, in->program->loc,
                          "the interpreter runs at most %d blocks", INT32_MAX);
    if (!check_clusters(in))
        return false;
    tell_progress(in, 0, blocks);
    for (int64_t block = 0; block < blocks; block += in->blocks) {
        if (!run_cluster(in))
            return false;
        tell_progress(in, block + in->blocks, blocks);
    }
    return true;
}

/* Ops are members of op_numbers by address. */
static bool same_op(const void *a, const void *b)
{
    return *(const Op *const *)a == *(const Op *const *)b;
}

bool interp_program(Program *p, const int64_t grid[3], const tilus_arg *args,
                    const tilus_buffer *buffers, size_t buffer_count,
                    const tilus_interpret_options *options)
{
    Module *m = p->module;
    if (!verify_chosen(p, "interpretation"))
        return false;
    Interp *in = arena_new(&m->scratch, Interp);
    *in = (Interp){.program = p, .arena = &m->scratch, .diag = m->diag, .options = options};
    memcpy(in->grid, grid, sizeof in->grid);
    if (!find_together(in))
        return false;
    in->warp_count = in->owner_count = in->blocks * p->warps;
    in->meeting = meeting_new(in);
    in->groups = arena_alloc(in->arena, in->blocks * sizeof *in->groups);
    intern_init(&in->op_numbers, in->arena, same_op);
    bind_arguments(in, args, buffers, buffer_count);
    region_walk(p->body, bind_op, in);
    race_open(in);
    order_open(in);
    profile_open(in);
    bool ok = run_grid(in);
    if (ok)
        profile_report(in);
    interp_discard(p);
    return ok;
}

void interp_discard(Program *p)
{
    program_clear_data(p);
    arena_reset(&p->module->scratch, (ArenaMark){0});
}
