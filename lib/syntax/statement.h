/* A statement while it is read, shared by the parsers of ops. */
#ifndef TILUS_SYNTAX_STATEMENT_H
#define TILUS_SYNTAX_STATEMENT_H

#include "syntax/term.h"

/* The parts of one statement, read before its op can be built. A statement lies on the
 * module's scratch arena: statements nest, and a stack may be small. */
typedef struct Statement {
    Loc loc;
    Token names[LIMIT_NAMES];       /* to the left of `=` */
    unsigned name_count;
    Token index, carried[LIMIT_NAMES];  /* of loops: names inside */
    Term terms[LIMIT_NAMES];        /* operands as they were read */
    Value *operands[LIMIT_NAMES];
    unsigned operand_count;
    Value *place;                   /* a register tensor among offsets, or NULL */
    Attr attrs[ATTR_COUNT];
    unsigned attr_count;
    const Type *types[LIMIT_NAMES]; /* after the colon, or following from the op */
    unsigned type_count;
    bool broken;                    /* uses a value whose definition was broken */
    bool nested;                    /* an operand of an expression, without names */
    bool call;                      /* operands in parentheses: permute(%x) */
} Statement;

static inline void statement_add(Statement *s, Attr attr)
{
    s->attrs[s->attr_count++] = attr;
}

static inline void statement_add_expr(Statement *s, AttrKind kind, const Expr *e)
{
    statement_add(s, (Attr){.kind = kind, .expr = e});
}

/* The functions below return false after an error. */

/* ", did you mean `load_global`?" where an op's name is like the token, else "" (parse_op.c). */
const char *nearest_op_text(Parser *p, const Token *t);
/* Returns true where a line begins that does not go on with the statement before: with names and `=`,
 * an op, a call or `}` (parse_region.c). */
bool parser_at_statement(Parser *p);
/* Reads %a, %b = (parse_op.c). */
bool parse_result_names(Parser *p, Statement *s);
/* Keeps names of a broken statement, which are not visible yet, from giving errors where used. */
void define_broken(Parser *p, const Token *name);
void define_broken_results(Parser *p, const Statement *s);
/* Binds the term, and its type after a colon, to the statement's one name. */
bool bind_term(Parser *p, Statement *s, const Term *t);
/* Binds the values of the sink to the statement's names. */
bool bind_terms(Parser *p, const Statement *s, const Sink *sink);
/* Gives `op` its results, of s->types and by s->names. */
bool define_results(Parser *p, const Statement *s, Op *op);
/* Reads T, T after the colon. */
bool parse_result_types(Parser *p, Statement *s, OpCode code);
/* Sets the types that follow when none were written. Operands are checked already.
 * `op` is NULL for structured ops, whose types follow from the operands alone. */
bool infer_result_types(Parser *p, Statement *s, OpCode code, const Op *op);

/* Parse the rest of a statement from the op's name on: of an op without regions
 * (parse_op.c), and of each op that has some (parse_control.c). */
bool parse_plain_op(Parser *p, Statement *s, OpCode code);
bool parse_for(Parser *p, Statement *s);
bool parse_while(Parser *p, Statement *s);
bool parse_if(Parser *p, Statement *s);
bool parse_thread_group(Parser *p, Statement *s);

#endif
