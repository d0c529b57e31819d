/* The verifier: the rules of the language beyond syntax. Reports every
 * mistake to the module's diag; each message names both values. */
#ifndef TILUS_IR_VERIFY_H
#define TILUS_IR_VERIFY_H

#include "ir/ir.h"
#include "ir/tile.h"

bool verify_module(Module *m);

/* The number and kinds of `op`'s operands, against its row in ops.def. The
 * parser asks before it infers result types. */
bool verify_operands(Module *m, const Op *op);

/* Checks that each register tensor that `op` takes, or gives, spreads over exactly the
 * threads that run `op` (verify_threads.c). */
bool verify_operand_threads(Module *m, const Op *op);
bool verify_result_threads(Module *m, const Op *op);

/* The name of the kind in messages: "register tensor". */
const char *verify_kind_text(TypeKind kind);

/* The type that a `reduce` with checked operands gives; NULL after an error in
 * its attributes. */
const Type *verify_reduce_type(Module *m, const Op *op);

/* Checks the attribute VIA of a cast or dequantize. */
bool verify_conversion(Module *m, const Op *op);

/* Checks that `op` takes, and may give, its tensors in storage orders and with deferred
 * scales (verify_form.c). */
bool verify_forms(Module *m, const Op *op);

/* Checks that the deferred scales of a dot's operands, of fitting shapes, multiply to those
 * of its sums. */
bool verify_dot_forms(Module *m, const Op *op);

/* The type that a `decode` with a checked operand gives; NULL after an error. */
const Type *verify_decode_type(Module *m, const Op *op);

/* The type that a `permute` with checked operands gives; NULL after an error in
 * its attributes. */
const Type *verify_permute_type(Module *m, const Op *op);

/* The type that a `concat` or `interleave` with checked operands gives; NULL after an error
 * in its attributes. */
const Type *verify_join_type(Module *m, const Op *op);

/* Checks the tile of a load, store or slice: as many offsets as the tensor has
 * dimensions, dimensions of the tile that exist; and constant offsets that
 * keep the tile inside a tensor of constant extents. */
bool verify_tile(Module *m, const Op *op, const MemoryTile *t);
bool verify_constant_bounds(Module *m, const Op *op, const MemoryTile *t);

/* The extents and strides of a global tensor's type. */
bool verify_extents(Module *m, const Op *op, const Type *t);

/* Checks that `op` names one mbarrier of its operand (verify_mbarrier.c). */
bool verify_mbarrier_element(Module *m, const Op *op);

/* Checks the ops `setmaxnreg` of a program against each other
 * (verify_registers.c). */
bool verify_registers(Module *m, Program *p);

/* ---- open layouts (verify_open.c) ------------------------------------------ */

typedef bool (*OpVerifier)(Module *m, const Op *op);

/* Calls `verifier`. When one of the op's layouts is open, the verifier sees all of them
 * open: only rules that hold for every choice are checked. The pass infer-layouts
 * verifies the rest. */
bool verify_rules(Module *m, Op *op, OpVerifier verifier);

/* Returns true of an element-wise op that is defined for tensors of `t`. */
bool verify_op_defined(OpCode code, DType t);

/* Returns true when types are equal, as far as both are chosen. */
bool verify_types_agree(Module *m, const Type *a, const Type *b);

/* Checks that every layout and swizzle of `p` is chosen; else an error at the first
 * value without one, in the way of `user`: "compiling". */
bool verify_chosen(Program *p, const char *user);

/* A function for each op, found by name from ops.def: the rules beyond its row. */
#define OP(id, ...) bool verify_##id(Module *m, const Op *op);
#include "ir/ops.def"

#endif
