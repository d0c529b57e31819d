/* Terms: what an operand of an expression may be while the text is read. Scalars stay
 * expressions (types/expr.h); tensors become ops, one for each operator:
 *
 *     %p = exp2(%s * 0.5 - %m)        %0 = allocate_register 0.5 : f32[16, 8]
 *                                     %1 = mul %s, %0
 *                                     %2 = broadcast %m : f32[16, 8]
 *                                     %3 = sub %1, %2
 *                                     %p = exp2 %3
 *
 * Functions return false after an error, or where an operand's definition was broken. */
#ifndef TILUS_SYNTAX_TERM_H
#define TILUS_SYNTAX_TERM_H

#include "ir/op_attrs.h"
#include "syntax/parser.h"

typedef struct Real Real;

typedef enum TermKind {
    TERM_INTEGER,   /* a scalar expression, also a constant */
    TERM_NUMBER,    /* a constant that is no i64: 0.5, 2.0, -inf, 2^64 - 1, -0, f32(2) */
    TERM_REAL,      /* a scalar of floats */
    TERM_VALUE      /* a tensor, a pointer or mbarriers */
} TermKind;

struct Term {
    TermKind kind;
    Loc loc;
    const Expr *expr;       /* INTEGER */
    Constant number;        /* NUMBER */
    bool whole;             /* NUMBER: written as an integer: 2^64 - 1, -0 */
    DType dtype;            /* NUMBER: that T(..) gave it, of which it is a number; or none */
    const Real *real;       /* REAL */
    Value *value;           /* VALUE */
    bool product;           /* VALUE: of a `mul` that this term alone uses */
};

struct Sink {
    const char *word;       /* that ends the text: "yield", "return" */
    const Region *region;   /* in which it must stand */
    Loc loc;                /* of the word */
    bool filled;
    bool passed;            /* something after the word was reported */
    Term terms[LIMIT_NAMES];
    unsigned count;
};

/* Reads with `sink` in place; names that are bound meanwhile are forgotten. */
bool parse_sink_text(Parser *p, Sink *sink, bool (*read)(Parser *p));

Term term_of_expr(Loc loc, const Expr *e);
Term term_of_number(Loc loc, Constant n);
/* A constant written as an integer that i64 does not hold, or -0. */
Term term_of_whole(Loc loc, Constant n);
Term term_of_value(Loc loc, Value *v);
/* A scalar as an expression, another value as itself. */
Term term_of_any(Parser *p, Loc loc, Value *v);

/* The integer that a constant is where scalars stand: 0 for -0, which is a number for the sake of
 * tensors, and 5 for i8(5); other terms as they are. */
Term term_as_scalar(Parser *p, const Term *t);

/* Reports that there is no such number as would be in `a`; where it is not taken, 0 stands for it. */
bool term_undefined(Parser *p, Loc loc, Term *a, const char *why);

/* Returns true, and the number, of a constant. */
bool term_constant(const Term *t, Constant *out);
/* "the number 0.5", "a shared tensor, f16[16, 8] shared", for messages. */
const char *term_text(Parser *p, const Term *t);

/* An operator: of scalars, of tensors, or of both. */
typedef struct Operator {
    const char *spelling;
    ScalarOp scalar;        /* of shifts, what a shift by a constant is */
    OpCode tensor;          /* OP_COUNT: none */
    Predicate predicate;    /* of OP_compare */
    bool shift;
} Operator;

/* The binary operator at the token, or NULL. */
const Operator *term_operator(const Parser *p);
unsigned operator_precedence(const Operator *o);
/* The operator of calls ceil_div, min and max, or NULL. */
const Operator *term_call_operator(const Parser *p);

/* `a` op `right`, into `a`. */
bool term_combine(Parser *p, const Operator *o, Loc loc, Term *a, const Term *b);
bool term_negate(Parser *p, Loc loc, Term *a);
bool term_not(Parser *p, Loc loc, Term *a);

/* ---- constants of an element type (term_typed.c) -------------------------------- */

/* T(n), which is a number of `t`: what `cast` makes of it. */
Term term_of_typed(Loc loc, DType t, Constant n);
/* `a` op `b` of constants, one of a type, which the other one gets. */
bool typed_combine(Parser *p, const Operator *o, Loc loc, Term *a, const Term *b);
bool typed_negate(Parser *p, Loc loc, Term *a);

/* ---- ops ------------------------------------------------------------------------ */

/* Returns true of ops whose operands are register tensors of one shape, element by element. */
bool op_is_elementwise(OpCode code);

/* An element-wise op of terms, of which one at least is a tensor. */
bool term_elementwise(Parser *p, OpCode code, Loc loc, const Term *terms, unsigned count,
                      Term *out);

/* Makes the operands of an element-wise op tensors of one shape: dimensions of extent 1 are
 * repeated, and constants and scalars get the element type of the others. */
bool term_unify(Parser *p, OpCode code, Loc loc, const Term *terms, unsigned count,
                Value **operands);

/* Inserts an op of `operands`; its one result, without a name, becomes `out`. */
bool term_build(Parser *p, OpCode code, Loc loc, Value *const *operands, unsigned count,
                const Attr *attrs, unsigned attr_count, const Type *type, Term *out);

/* Returns true of ops on register tensors alone, which may be written as calls: exp2(%x). */
bool op_is_callable(OpCode code);

/* Returns true where ops may be built; else an error at `loc`: "`what` cannot stand in a grid". */
bool term_can_build(Parser *p, Loc loc, const char *what);

/* A term, and after a colon its type, which a constant outside of expressions needs:
 * 0.0 : f32[16, 8]. */
bool parse_typed_term(Parser *p, Term *out);

/* The type after the colon of a term: a register tensor's, or a scalar's. */
const Type *parse_term_type(Parser *p, const Term *t);
/* Checks that `v`, the value of a term, has the type that was written, or gives it the
 * layout that was left open; NULL: none was. */
bool term_check_type(Parser *p, const Term *t, Value *v, const Type *type);

/* The scalar expression that a term is; NULL after an error. */
const Expr *term_scalar(Parser *p, const Term *t);

/* The term as a value of the type `like`, which a constant needs; of a scalar without one,
 * i64. NULL after an error. */
Value *term_value(Parser *p, const Term *t, const Type *like);

/* ---- scalars of floats and integers beside tensors (term_real.c) --------------- */

Term term_of_float(Parser *p, Loc loc, Value *v);
/* T(e) of an integer scalar. */
Term term_of_cast(Parser *p, Loc loc, const Expr *e, DType t);
/* The argument that `real` is, or NULL. */
Value *real_argument(const Real *real);
DType real_dtype(const Real *real);
/* "%eps" or "the expression", for messages. */
const char *real_text(Parser *p, const Real *real);
/* An element-wise op of scalars of floats and constants. */
bool real_combine(Parser *p, OpCode code, Loc loc, const Term *terms, unsigned count, Term *out);
/* A tensor of `type`, filled; NULL after an error. */
Value *real_value(Parser *p, Loc loc, const Real *real, const Type *type);
Value *integer_value(Parser *p, Loc loc, const Expr *e, const Type *type);

#endif
