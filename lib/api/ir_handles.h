/* Handles of include/tilus/ir.h: objects of the IR under public names, and their modules. */
#ifndef TILUS_API_IR_HANDLES_H
#define TILUS_API_IR_HANDLES_H

#include "ir/ir.h"
#include "tilus/ir.h"

/* Each pair converts a public handle to the object, and back; NULL stays NULL. */
#define IR_HANDLE(T, handle, from, to)                                        \
    static inline T *from(const handle *h) { return (T *)h; }                 \
    static inline handle *to(const T *x) { return (handle *)x; }
IR_HANDLE(Program, tilus_program, program_of, program_handle)
IR_HANDLE(Region, tilus_block, region_of, region_handle)
IR_HANDLE(Op, tilus_op, op_of, op_handle)
IR_HANDLE(Value, tilus_value, value_of, value_handle)
IR_HANDLE(Type, tilus_type, type_of, type_handle)
IR_HANDLE(Layout, tilus_layout, layout_of, layout_handle)
IR_HANDLE(Expr, tilus_expr, expr_of, expr_handle)
#undef IR_HANDLE

/* The program of what is in it; NULL for what was erased, and for NULL. */
Program *ir_region_program(const Region *r);
Program *ir_op_program(const Op *op);
Program *ir_value_program(const Value *v);

/* The module of an op, also of one in a region that was erased; NULL for others. */
Module *ir_op_module(const Op *op);

/* Returns true when the object is of `m`, whatever the pointer. */
bool ir_has_type(const Module *m, const Type *t);
bool ir_has_layout(const Module *m, const Layout *l);

/* Returns true when each is an expression of `m`, of live values; false after an error. */
bool ir_check_exprs(Module *m, Loc loc, const char *what, const Expr *const *exprs,
                    size_t count);

/* Gives up what a call left in the module when memory or time ran out: the scratch arena, where
 * names of values lie, too, and what values and ops were marked with. */
void ir_abandon(Module *m);

/* Sets `result` to `call`, or to `failure` when memory runs out in it. Other entries of the
 * library may lie around: their guard is back when the call is over. */
#define IR_CALL(m, result, failure, call)                                     \
    do {                                                                      \
        OutOfMemory outer_ = (m)->diag->oom;                                  \
        if (setjmp((m)->diag->oom.jump) == 0) {                               \
            result = (call);                                                  \
        } else {                                                              \
            ir_abandon(m);                                                    \
            result = (failure);                                               \
        }                                                                     \
        (m)->diag->oom = outer_;                                              \
    } while (0)

#endif
