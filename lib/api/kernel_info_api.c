/* Public API: what a launcher must know of a program. */
#include "codegen/codegen.h"
#include "ir/op_attrs.h"
#include "ir/structure.h"
#include "ir/verify.h"
#include "memory/workspace.h"
#include "select/bulk.h"
#include "tilus/tilus.h"

/* Postfix code under construction. */
typedef struct CodeList {
    Arena *arena;
    tilus_code *codes;
    uint32_t count, capacity;
} CodeList;

static void add_code(CodeList *list, tilus_code_kind kind, int64_t value)
{
    tilus_code code = {kind, value};
    arena_push(list->arena, list->codes, list->count, list->capacity, code);
}

static void add_expr(CodeList *list, const Expr *e)
{
    if (e->kind == EXPR_CONSTANT) {
        add_code(list, TILUS_CODE_CONSTANT, e->constant);
    } else if (e->kind == EXPR_VALUE) {
        add_code(list, TILUS_CODE_ARGUMENT, e->value->index);
    } else {
        add_expr(list, e->a);
        if (e->b)
            add_expr(list, e->b);
        add_code(list, TILUS_CODE_OPERATOR, e->op);
    }
}

static tilus_arg_kind arg_kind(const Type *t)
{
    return t->kind == TYPE_PTR       ? TILUS_ARG_POINTER
           : t->dtype == DTYPE_i32 ? TILUS_ARG_I32
           : t->dtype == DTYPE_u32 ? TILUS_ARG_U32
           : t->dtype == DTYPE_i64 ? TILUS_ARG_I64
           : t->dtype == DTYPE_f16 ? TILUS_ARG_F16
           : t->dtype == DTYPE_bf16 ? TILUS_ARG_BF16
                                    : TILUS_ARG_F32;
}

static const tilus_arg_info *describe_args(Module *m, const Program *p)
{
    tilus_arg_info *args = arena_array(&m->arena, tilus_arg_info, p->arg_count + 1);
    for (unsigned i = 0; i < p->arg_count; i++) {
        const Value *v = p->args[i];
        args[i] = (tilus_arg_info){
            .name = v->name, .kind = arg_kind(v->type), .dtype = dtype_name(v->type->dtype),
            .divisible = v->facts.divisible, .min = v->facts.min, .max = v->facts.max,
            .align = v->facts.align};
    }
    return args;
}

static const tilus_code *describe_expr(Module *m, const Expr *e, size_t *length)
{
    CodeList list = {.arena = &m->arena};
    add_expr(&list, e);
    *length = list.count;
    return list.codes;
}

static tilus_workspace_tensor describe_tensor(Module *m, const Op *op)
{
    const Type *t = op->results[0]->type;
    size_t *lengths = arena_array(&m->arena, size_t, t->rank);
    const tilus_code **extents = arena_array(&m->arena, const tilus_code *, t->rank);
    for (unsigned d = 0; d < t->rank; d++)
        extents[d] = describe_expr(m, t->extents[d], &lengths[d]);
    return (tilus_workspace_tensor){
        .name = op->results[0]->name, .bits = dtype_bits(t->dtype),
        .zeroed = workspace_is_zeroed(op), .rank = t->rank, .extent_length = lengths,
        .extents = extents};
}

static void describe_workspace(Module *m, Program *p, tilus_kernel_info *info)
{
    Workspace w = workspace_of(p, &m->arena);
    tilus_workspace_tensor *tensors = arena_array(&m->arena, tilus_workspace_tensor, w.count);
    for (unsigned i = 0; i < w.count; i++)
        tensors[i] = describe_tensor(m, w.ops[i]);
    info->workspace = tensors;
    info->workspace_count = w.count;
}

/* ---- tensor maps ------------------------------------------------------ */

/* The stride in bytes; over the arguments, as the stride is. */
static const Expr *stride_bytes(Module *m, const TensorMap *map, unsigned d)
{
    const char *why;
    const Expr *bytes = expr_make(&m->exprs, SCALAR_mul, map->strides[d],
                                  expr_constant(&m->exprs, dtype_bits(map->dtype) / 8), &why);
    return bytes ? bytes : expr_constant(&m->exprs, INT64_MAX);     /* which no launch takes */
}

static tilus_tensor_map describe_map(Module *m, const TensorMap *map)
{
    enum { PROMOTION = 256 };
    size_t *lengths = arena_array(&m->arena, size_t, 2 * map->rank);
    const tilus_code **codes = arena_array(&m->arena, const tilus_code *, 2 * map->rank);
    tilus_tensor_map out = {
        .argument = map->pointer->index, .rank = map->rank, .extent_length = lengths,
        .extents = codes, .stride_length = lengths + map->rank, .strides = codes + map->rank,
        .swizzle = map->swizzle, .promotion = PROMOTION};
    tensor_map_type(map->dtype, &out.type);
    for (unsigned d = 0; d < map->rank; d++) {
        out.box[d] = (unsigned)map->box[d];
        codes[d] = describe_expr(m, map->extents[d], &lengths[d]);
        if (d + 1 < map->rank)
            codes[map->rank + d] = describe_expr(m, stride_bytes(m, map, d),
                                                 &lengths[map->rank + d]);
    }
    return out;
}

static void describe_maps(Module *m, Program *p, tilus_kernel_info *info)
{
    TensorMaps maps = bulk_maps(p, &m->arena);
    tilus_tensor_map *described = arena_array(&m->arena, tilus_tensor_map, maps.count);
    for (uint32_t i = 0; i < maps.count; i++)
        described[i] = describe_map(m, &maps.of[i]);
    info->maps = described;
    info->map_count = maps.count;
}

/* ---- the whole --------------------------------------------------------- */

/* `wait_dependencies` stands in the body, not in a region of it. */
static bool waits_for_launches(const Program *p)
{
    const Op *op = p->body->first;
    while (op && op->code != OP_wait_dependencies)
        op = op->next;
    return op != NULL;
}

const tilus_kernel_info *tilus_module_kernel_info(tilus_module *module, const char *program)
{
    Program *p = module_find_program(module, program);
    if (!p)
        return NULL;
    if (setjmp(module->diag->oom.jump))
        return NULL;
    if (!verify_edited(module) || !verify_chosen(p, "a launch"))
        return NULL;
    bulk_settle(p);
    tilus_kernel_info *info = arena_new(&module->arena, tilus_kernel_info);
    *info = (tilus_kernel_info){.name = p->name, .arg_count = p->arg_count,
                                .args = describe_args(module, p), .grid_rank = p->grid_rank,
                                .threads = (unsigned)program_threads(p),
                                .shared_bytes = (size_t)codegen_shared_bytes(p),
                                .overlaps = waits_for_launches(p),
                                .cooperative = p->cooperative};
    for (unsigned d = 0; d < 3 && p->cluster_rank; d++)
        info->cluster[d] = p->cluster[d];
    for (unsigned d = 0; d < p->grid_rank; d++)
        info->grid[d] = describe_expr(module, p->grid[d], &info->grid_length[d]);
    describe_workspace(module, p, info);
    describe_maps(module, p, info);
    return info;
}
