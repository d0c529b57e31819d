/* Reading programs, blocks and ops. */
#include "api/ir_handles.h"

#include <string.h>

/* ---- programs ---------------------------------------------------------- */

tilus_program *tilus_program_at(tilus_module *module, size_t i)
{
    const Program *p = module ? module->programs : NULL;
    while (p && i--)
        p = p->next;
    return program_handle(p);
}

tilus_program *tilus_program_find(tilus_module *module, const char *name)
{
    return module && name ? program_handle(module_find_program(module, name)) : NULL;
}

tilus_module *tilus_program_module(const tilus_program *program)
{
    return program ? program_of(program)->module : NULL;
}

const char *tilus_program_symbol(const tilus_program *program)
{
    return program ? program_of(program)->name : NULL;
}

tilus_block *tilus_program_body(const tilus_program *program)
{
    return program ? region_handle(program_of(program)->body) : NULL;
}

unsigned tilus_program_warps(const tilus_program *program)
{
    return program ? program_of(program)->warps : 0;
}

size_t tilus_program_parameter_count(const tilus_program *program)
{
    return program ? program_of(program)->arg_count : 0;
}

tilus_value *tilus_program_parameter(const tilus_program *program, size_t i)
{
    return i < tilus_program_parameter_count(program) ? value_handle(program_of(program)->args[i])
                                                      : NULL;
}

size_t tilus_program_grid_rank(const tilus_program *program)
{
    return program ? program_of(program)->grid_rank : 0;
}

const tilus_expr *tilus_program_grid(const tilus_program *program, size_t i)
{
    return i < tilus_program_grid_rank(program) ? expr_handle(program_of(program)->grid[i])
                                                : NULL;
}

/* ---- blocks ------------------------------------------------------------- */

tilus_op *tilus_block_parent(const tilus_block *block)
{
    return block ? op_handle(region_of(block)->parent) : NULL;
}

tilus_program *tilus_block_program(const tilus_block *block)
{
    return block ? program_handle(region_of(block)->program) : NULL;
}

tilus_op *tilus_block_first(const tilus_block *block)
{
    return block ? op_handle(region_of(block)->first) : NULL;
}

tilus_op *tilus_block_last(const tilus_block *block)
{
    return block ? op_handle(region_of(block)->last) : NULL;
}

size_t tilus_block_argument_count(const tilus_block *block)
{
    return block ? region_of(block)->arg_count : 0;
}

tilus_value *tilus_block_argument(const tilus_block *block, size_t i)
{
    return i < tilus_block_argument_count(block) ? value_handle(region_of(block)->args[i]) : NULL;
}

int64_t tilus_block_threads(const tilus_block *block)
{
    return ir_region_program(region_of(block)) ? region_threads(region_of(block)).count : 0;
}

typedef struct Walk {
    tilus_walk (*visit)(tilus_op *op, void *data);
    void *data;
    Module *m;
    uint64_t number;
} Walk;

static bool walk_region(Region *r, const Walk *w);

static bool walk_op(Op *op, const Walk *w)
{
    op->walk = w->number;
    tilus_walk how = w->visit(op_handle(op), w->data);
    for (unsigned i = 0; how == TILUS_WALK_ON && op->parent && i < op->region_count; i++)
        if (!walk_region(op->regions[i], w))
            return false;
    return how != TILUS_WALK_STOP;
}

/* Goes on after the op, or after the place where it was; ends in a region that is erased. */
static bool walk_region(Region *r, const Walk *w)
{
    const Program *p = ir_region_program(r);
    for (Op *op = r->first, *next; op && ir_region_program(r) == p; op = next) {
        WalkCursor at = {.op = op, .outer = w->m->cursors};
        w->m->cursors = &at;
        bool on = op->walk == w->number || walk_op(op, w);
        w->m->cursors = at.outer;
        if (!on)
            return false;
        next = at.gone ? at.next : op->next;
    }
    return true;
}

bool tilus_block_walk(tilus_block *block, tilus_walk (*visit)(tilus_op *op, void *data),
                      void *data)
{
    Module *m = block ? region_of(block)->program->module : NULL;
    return !m || walk_region(region_of(block), &(Walk){visit, data, m, ++m->walks});
}

/* ---- ops ------------------------------------------------------------------ */

const char *tilus_op_name(const tilus_op *op)
{
    return op ? op_info[op_of(op)->code].name : NULL;
}

unsigned tilus_op_code(const tilus_op *op)
{
    return op ? op_of(op)->code : TILUS_NO_CODE;
}

unsigned tilus_op_find_code(const char *name)
{
    OpCode code = name ? op_find(name, strlen(name)) : OP_COUNT;
    return code == OP_COUNT ? TILUS_NO_CODE : code;
}

const char *tilus_op_code_name(unsigned code)
{
    return code < OP_COUNT ? op_info[code].name : NULL;
}

tilus_effect tilus_op_effect(const tilus_op *op)
{
    static const tilus_effect effects[] = {
        [EFFECT_PURE] = TILUS_EFFECT_PURE, [EFFECT_ALLOC] = TILUS_EFFECT_ALLOCATES,
        [EFFECT_READS] = TILUS_EFFECT_READS, [EFFECT_WRITES] = TILUS_EFFECT_WRITES,
        [EFFECT_BARRIER] = TILUS_EFFECT_BARRIER, [EFFECT_EXITS] = TILUS_EFFECT_EXITS,
        [EFFECT_CONTROL] = TILUS_EFFECT_CONTROL};
    return op ? effects[op_info[op_of(op)->code].effect] : TILUS_EFFECT_PURE;
}

tilus_op *tilus_op_next(const tilus_op *op)
{
    return op ? op_handle(op_of(op)->next) : NULL;
}

tilus_op *tilus_op_previous(const tilus_op *op)
{
    return op ? op_handle(op_of(op)->prev) : NULL;
}

tilus_block *tilus_op_block(const tilus_op *op)
{
    return op ? region_handle(op_of(op)->parent) : NULL;
}

tilus_op *tilus_op_parent(const tilus_op *op)
{
    return tilus_block_parent(tilus_op_block(op));
}

tilus_program *tilus_op_program(const tilus_op *op)
{
    return program_handle(ir_op_program(op_of(op)));
}

size_t tilus_op_operand_count(const tilus_op *op)
{
    return op ? op_of(op)->operand_count : 0;
}

tilus_value *tilus_op_operand(const tilus_op *op, size_t i)
{
    return i < tilus_op_operand_count(op) ? value_handle(op_of(op)->operands[i]) : NULL;
}

size_t tilus_op_result_count(const tilus_op *op)
{
    return op ? op_of(op)->result_count : 0;
}

tilus_value *tilus_op_result(const tilus_op *op, size_t i)
{
    return i < tilus_op_result_count(op) ? value_handle(op_of(op)->results[i]) : NULL;
}

size_t tilus_op_region_count(const tilus_op *op)
{
    return op ? op_of(op)->region_count : 0;
}

tilus_block *tilus_op_region(const tilus_op *op, size_t i)
{
    return i < tilus_op_region_count(op) ? region_handle(op_of(op)->regions[i]) : NULL;
}

const char *tilus_op_file(const tilus_op *op)
{
    const Module *m = ir_op_module(op_of(op));
    return m ? diag_source(m->diag, op_of(op)->loc)->file : NULL;
}

unsigned tilus_op_line(const tilus_op *op) { return op ? op_of(op)->loc.line : 0; }
unsigned tilus_op_column(const tilus_op *op) { return op ? op_of(op)->loc.column : 0; }
