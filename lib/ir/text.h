/* Text of types and expressions: canonical, as the printer writes it. */
#ifndef TILUS_IR_TEXT_H
#define TILUS_IR_TEXT_H

#include "ir/ir.h"
#include "support/text.h"

/* Each appends to `out`, which must not lie on the module's scratch arena. */
void print_type(Text *out, const Type *t);
void print_expr(Text *out, const Expr *e);
/* Prints `e`, in parentheses when it binds less tightly than `precedence` (scalar_ops.def). */
void print_expr_within(Text *out, const Expr *e, unsigned precedence);
/* Expressions separated by commas. */
void print_exprs(Text *out, const Expr *const *exprs, unsigned count);
/* `%name`; where the printer has not chosen a name the constant that `scalar` gives, "load_scalar(..)" of
 * another op, else `%?`. */
void print_value_name(Text *out, const Value *v);

/* "%x"; of a value without a name "the result of cast": for messages. */
const char *value_text(Module *m, const Value *v);
/* A type, or an expression, as text in the module's arena, for messages. */
const char *type_text(Module *m, const Type *t);
const char *expr_text(Module *m, const Expr *e);

#endif
