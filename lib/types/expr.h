/* Scalar expressions: trees over i64, hash-consed so that equality is pointer
 * equality. Leaves are constants and scalar SSA values. */
#ifndef TILUS_TYPES_EXPR_H
#define TILUS_TYPES_EXPR_H

#include "support/intern.h"
#include "support/scalar.h"
#include "support/text.h"

typedef struct Value Value;

typedef enum ExprKind { EXPR_CONSTANT, EXPR_VALUE, EXPR_OP } ExprKind;

typedef struct Expr {
    ExprKind kind;
    ScalarOp op;                /* EXPR_OP */
    uint32_t depth;             /* 1 for leaves */
    uint32_t nodes;             /* of the tree, whose equal parts are one; UINT32_MAX: or more */
    uint64_t hash;
    int64_t constant;           /* EXPR_CONSTANT */
    Value *value;               /* EXPR_VALUE */
    const struct Expr *a, *b;   /* EXPR_OP; b is NULL for unary operators */
} Expr;

typedef struct ExprTable {
    Arena *arena;
    InternSet set;
} ExprTable;

void expr_table_init(ExprTable *table, Arena *arena);

const Expr *expr_constant(ExprTable *t, int64_t value);
const Expr *expr_value(ExprTable *t, Value *value);

/* `op` applied to a and b; constants fold. NULL with `*why` set when folding
 * fails (overflow, division by zero) or the tree is deeper than
 * LIMIT_DEPTH. */
const Expr *expr_make(ExprTable *t, ScalarOp op, const Expr *a, const Expr *b, const char **why);

static inline bool expr_is_constant(const Expr *e) { return e->kind == EXPR_CONSTANT; }

/* Calls visit(value, data) for each EXPR_VALUE leaf; stops when it returns
 * false, and returns false then. */
bool expr_visit_values(const Expr *e, bool (*visit)(Value *v, void *data), void *data);

/* The expression with each value leaf mapped through `map` (which may return
 * NULL to keep it). Never fails for a map that gives values; a fold that
 * overflows leaves that operator unfolded. */
typedef const Expr *(*ExprMap)(Value *v, void *data);
const Expr *expr_substitute(ExprTable *t, const Expr *e, ExprMap map, void *data);

/* Evaluates with `lookup` giving each value's number. Returns NULL and sets
 * `*out`, or the reason in words. */
typedef int64_t (*ExprLookup)(const Value *v, void *data);
const char *expr_evaluate(const Expr *e, ExprLookup lookup, void *data, int64_t *out);

#endif
