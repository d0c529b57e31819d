/* Nodes of a plan that is being made: equal ones are made once. */
#include "cast/internal.h"

#include <assert.h>
#include <string.h>

/* The node that computes `op`, or -1. */
static int find_node(const Planner *p, CastOp op)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const CastOp *o = &p->ops[i];
        if (o->code == op.code && o->imm == op.imm && !memcmp(o->in, op.in, sizeof op.in))
            return (int)i;
    }
    return -1;
}

unsigned node_of(Planner *p, CastOp op)
{
    int found = find_node(p, op);
    for (unsigned i = 0; i < cast_op_info[op.code].inputs; i++)
        assert(op.in[i] < p->count && "operands come before their users");
    if (found >= 0)
        return (unsigned)found;
    assert(p->count <= UINT16_MAX);
    arena_push(p->arena, p->ops, p->count, p->capacity, op);
    return p->count - 1;
}

unsigned node_constant(Planner *p, uint32_t value)
{
    return node_of(p, (CastOp){.code = CAST_constant, .imm = value});
}

unsigned node_number(Planner *p, DType t, double value)
{
    uint32_t code = (uint32_t)dtype_encode(t, value);
    return node_constant(p, dtype_bits(t) == 16 ? code * 0x10001 : code);
}

unsigned node_op(Planner *p, CastOpCode code, unsigned a, unsigned b, unsigned c)
{
    return node_of(p, (CastOp){code, 0, {(uint16_t)a, (uint16_t)b, (uint16_t)c}});
}

unsigned node_shift(Planner *p, CastOpCode code, unsigned a, unsigned by)
{
    assert(by < 32);
    return by ? node_of(p, (CastOp){code, by, {(uint16_t)a}}) : a;
}

unsigned node_prmt(Planner *p, unsigned a, unsigned b, uint32_t selector)
{
    return node_op(p, CAST_prmt, a, b, node_constant(p, selector));
}

unsigned node_lop3(Planner *p, unsigned table, unsigned a, unsigned b, unsigned c)
{
    return node_of(p, (CastOp){CAST_lop3, table, {(uint16_t)a, (uint16_t)b, (uint16_t)c}});
}

CastOpCode arithmetic_op(DType t, Arithmetic what)
{
    static const CastOpCode f16[] = {
        CAST_f16_add, CAST_f16_sub, CAST_f16_mul, CAST_f16_fma, CAST_f16_max,
        CAST_f16_min, CAST_f16_max_nan, CAST_f16_min_nan};
    static const CastOpCode bf16[] = {
        CAST_bf16_add, CAST_bf16_sub, CAST_bf16_mul, CAST_bf16_fma, CAST_bf16_max,
        CAST_bf16_min, CAST_bf16_max_nan, CAST_bf16_min_nan};
    static const CastOpCode f32[] = {
        CAST_f32_add, CAST_f32_sub, CAST_f32_mul, CAST_f32_fma, CAST_f32_max,
        CAST_f32_min, CAST_f32_max_nan, CAST_f32_min_nan};
    return t == DTYPE_f16 ? f16[what] : t == DTYPE_bf16 ? bf16[what] : f32[what];
}
