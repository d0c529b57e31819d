/* The parser's state and its parts. The parser reads, instantiates (param,
 * layout, when) and builds; it reports all it can and resumes at the next
 * line. Rules that it cannot check while reading are left to the verifier.
 *
 *   parser.c        module, parameters, programs, recovery
 *   parse_expr.c    expressions; term.c: operators on scalars and tensors
 *   parse_choice.c  COND ? A : B
 *   parse_type.c    types
 *   parse_form.c    storage orders and deferred scales
 *   parse_layout.c  layouts
 *   parse_region.c  statements one after another, `when`
 *   parse_op.c      ops; parse_control.c: for, while, if, thread_group
 *   parse_function.c  functions and their calls; import.c: imported files
 *
 * Each parse_* returns false (or NULL) after reporting an error. */
#ifndef TILUS_SYNTAX_PARSER_H
#define TILUS_SYNTAX_PARSER_H

#include "ir/builder.h"
#include "ir/text.h"
#include "syntax/lexer.h"
#include "syntax/syntax.h"

typedef enum BindingKind {
    BINDING_NONE, BINDING_INTEGER, BINDING_NUMBER, BINDING_TYPE, BINDING_LAYOUT
} BindingKind;

/* A spelling and its meaning: BM (in `binding`), %acc (in `value`). */
typedef struct Symbol {
    const char *name;       /* NUL-terminated, in the module's arena */
    uint32_t len;
    BindingKind binding;
    Loc loc;                /* of the binding */
    int64_t integer;
    Constant number;
    bool whole;             /* NUMBER: as of a term */
    DType dtype;            /* NUMBER: of a constant that T(..) made, or none */
    const Layout *layout;
    uint32_t binding_scope; /* of parameters of functions; 0: of the file */
    Value *value;           /* visible in `scope`, or NULL */
    const Region *region;   /* in which the value was bound; NULL: an argument */
    uint32_t scope;         /* Parser.scope_id then */
    struct Function *function;  /* of this name, or NULL */
    const Program *program; /* of this name, or NULL */
} Symbol;

/* An entry of the scope stack: the symbol's value before. */
typedef struct Shadow {
    Symbol *symbol;
    Value *before;
    const Region *region;
    uint32_t scope;
} Shadow;

typedef struct Term Term;   /* syntax/term.h */

/* Where the values go that end a text which is read in place: a `when` that gives a value, the
 * body of a function. */
typedef struct Sink Sink;

typedef struct Parser {
    Module *m;
    Diag *diag;
    Lexer lexer;
    Token token;            /* the current one */
    InternSet symbols;
    Shadow *scope;
    uint32_t scope_count, scope_capacity;
    const Define *defines;
    bool *define_used;
    size_t define_count;
    Program *program;       /* being read, or NULL */
    Region *region;
    uint32_t scope_id;      /* of the call whose body is read: names of others are not seen */
    uint32_t call_count;
    struct Call *call;      /* that call, or NULL */
    struct Import *imports; /* files, in the order of their ends; syntax/import.c */
    Sink *sink;             /* of the text being read, or NULL */
    const char *no_ops;     /* where expressions may not become ops: "in a condition"; or NULL */
    unsigned untaken;       /* sides of constant choices that are read and not taken: what is
                               computed there may not exist */
    unsigned regions;       /* that are open, those of `when` too */
    unsigned nesting;       /* open parentheses and unary operators */
    bool end_reported;      /* "unexpected end" is said once */
    bool values_reported;   /* too many: the same */
} Parser;

/* A place in the text to come back to. */
typedef struct Bookmark {
    Lexer lexer;
    Token token;
} Bookmark;

static inline Bookmark parser_bookmark(const Parser *p) { return (Bookmark){p->lexer, p->token}; }

static inline void parser_go_to(Parser *p, Bookmark place)
{
    p->lexer = place.lexer;
    p->token = place.token;
}

/* ---- tokens (parser.c) ---------------------------------------------- */

void parser_advance(Parser *p);
static inline bool parser_at(const Parser *p, const char *text) { return token_is(&p->token, text); }
/* Takes the token if it is `text`. */
bool parser_accept(Parser *p, const char *text);
/* As accept, but an error names the token found: "expected `)` after ..., got". */
bool parser_expect(Parser *p, const char *text, const char *where);
/* Takes the } of `what`, which began at `begin`: a note says so where the text ends before it. */
bool parser_expect_end(Parser *p, const char *where, const char *what, Loc begin);
/* Reports "expected WHAT, got TOKEN" at the token. */
bool parser_expected(Parser *p, const char *what);
/* The spelling of a token for messages, quoted. */
const char *token_text(Parser *p, const Token *t);
/* Adds one to p->regions or p->nesting, which the caller takes back; false after an
 * error past the limit. */
bool parser_enter(Parser *p, unsigned *levels);
/* Skips the rest of a broken statement that began at `start`: over whole
 * {...}, always past its first token, to the next line; outside of programs to
 * the next line that begins an item. */
void parser_skip_statement(Parser *p, const char *start);
/* Skips {...}; the token is the opening brace. */
bool parser_skip_braces(Parser *p);

/* ---- names (parser.c) ----------------------------------------------- */

Symbol *parser_symbol(Parser *p, const Token *t);
/* Returns true of words that expressions, types and layouts have. */
bool parser_is_reserved(const Token *t);
/* Returns true of these, of ops, and of words of items and statements: of all that name no
 * parameter and no layout. */
bool parser_is_word(const Token *t);

/* What the symbol means where the parser stands. */
static inline Value *symbol_value(const Parser *p, const Symbol *s)
{
    return s->scope == p->scope_id ? s->value : NULL;
}

static inline BindingKind symbol_binding(const Parser *p, const Symbol *s)
{
    return !s->binding_scope || s->binding_scope == p->scope_id ? s->binding : BINDING_NONE;
}

/* How a name may be bound where it is visible already. */
typedef enum Rebinding {
    REBIND_NOT,         /* arguments, indices of loops */
    REBIND_REGION,      /* results: again in the same region, as a new value */
    REBIND_OUTER        /* carried values: what is outside of the loop */
} Rebinding;

/* Makes %name visible in `region` (NULL: an argument of a program), after an error, too, so that
 * what follows is read with the value that is meant. */
bool parser_define(Parser *p, const Token *name, Value *v, const Region *region, Rebinding how);
/* The visible value of a TOKEN_VALUE, which is taken; NULL after an error. A
 * value whose definition was broken has type NULL: its users stay silent. */
Value *parse_value_use(Parser *p);
uint32_t scope_mark(const Parser *p);
void scope_reset(Parser *p, uint32_t mark);

/* ---- expressions (parse_expr.c) ------------------------------------- */

/* An expression of operators that bind at least as tightly as `precedence`
 * (PRECEDENCE_ANY: any, and COND ? A : B; PRECEDENCE_OR: any operator; PRECEDENCE_SUM: no bare
 * comparison, as between < and >). */
enum { PRECEDENCE_ANY, PRECEDENCE_OR, PRECEDENCE_SUM = 5 };
bool parse_term(Parser *p, unsigned precedence, Term *out);
/* The operators after the term `a`, into it. */
bool parse_term_rest(Parser *p, unsigned precedence, Term *a);
/* COND ? A : B, of which `t` is COND and becomes the result; the parser stands at the `?`
 * (parse_choice.c). */
bool parse_choice(Parser *p, Term *t);
/* (a, b, ..): at most `capacity` terms. */
bool parse_terms(Parser *p, Term *terms, unsigned capacity, unsigned *count);
/* A scalar expression. */
const Expr *parse_expr(Parser *p, unsigned precedence);
/* Reports `not` at the token, which needs parentheses between < and >. */
bool parser_check_angle(Parser *p);
/* Returns true where an operator between two operands stands; where that or a comma does; and at a
 * name before `(`. */
bool parser_at_infix(const Parser *p);
bool parser_at_more(const Parser *p);
bool parser_at_call(const Parser *p);
/* Returns true when nothing is between the token and the name before it, as in `dot(`. */
bool parser_touches(const Parser *p);
/* Returns true when the token after the current one is `text`. */
bool parser_before(const Parser *p, const char *text);
/* An expression that must be a constant; `what` names it in the error. */
bool parse_constant(Parser *p, const char *what, int64_t *out);
/* `open` expr, expr, ... `close`; at most LIMIT_RANK. */
bool parse_expr_list(Parser *p, const char *open, const char *close,
                     const Expr **exprs, unsigned *count);
bool parse_constant_list(Parser *p, const char *open, const char *close, const char *what,
                         int64_t *values, unsigned capacity, unsigned *count);

/* ---- types (parse_type.c) ------------------------------------------- */

/* A type's name or a type parameter; DTYPE_none after an error. */
DType parse_dtype(Parser *p);
/* Returns true at one that no operand in parentheses follows: no cast. */
bool parser_at_bare_type(Parser *p);
/* A type where `kind` is implied: after `:` of an op, or of an argument
 * (TYPE_SCALAR: scalar or pointer). */
const Type *parse_type(Parser *p, TypeKind kind);
/* A register tensor's type, or only its element type, which `operand` (NULL: a
 * broken one) completes. */
const Type *parse_element_type(Parser *p, const Type *operand);
/* The type of a slice of an `operand` tensor (NULL: a broken one), or only its
 * element type and extents: strides, swizzle and layout follow. `dims`: as in
 * slice_type. */
const Type *parse_slice_type(Parser *p, const Type *operand, const Attr *dims);
/* The type of a reshape of an `operand` register tensor (NULL: a broken one), whose layout
 * follows where the text leaves it out. */
const Type *parse_reshape_type(Parser *p, const Type *operand);

/* ---- forms of register tensors (parse_form.c) ----------------------- */

/* The form of a register tensor: storage order, or exponents of deferred scales. */
typedef struct Form {
    Loc loc;
    DType packed;                   /* or DTYPE_none */
    bool along;                     /* a dimension, `dim`, was written */
    int64_t dim;
    unsigned count;                 /* of exponents, 0: none */
    int16_t exponents[SCALING_COUNT_LIMIT];
} Form;

/* Reads the form of a tensor of `dtype`, which may be empty. */
bool parse_form(Parser *p, DType dtype, Form *f);
/* The REG type `t` in that form; NULL after an error. */
const Type *apply_form(Parser *p, const Type *t, const Form *f);

/* ---- layouts (parse_layout.c) --------------------------------------- */

/* A layout expression; `rank` is for a layout of replicate(n) alone. */
const Layout *parse_layout(Parser *p, unsigned rank);
/* Returns true when the token is a word of layouts: a primitive or a function. */
bool parse_is_layout_word(const Token *t);

/* ---- files (source.c, import.c) -------------------------------------- */

/* Checks a text's size and bytes; `loc`: where it was asked for. */
bool source_check(Diag *d, const SourceText *s, Loc loc);
/* Makes the first token of a text the current one. */
void parser_enter_source(Parser *p, const SourceText *s, uint32_t frame);
/* import "file" */
bool parse_import(Parser *p);
/* The items of a file or of `when`, and `tilus 1` before them (parser.c). */
bool parse_items(Parser *p);
bool parse_version(Parser *p);

/* ---- functions (parse_function.c) -------------------------------------- */

typedef struct Function Function;

/* function @name<parameters>(values) -> types { .. } */
bool parse_function(Parser *p);
/* Reads a call, @name<..>(..), and the function's body in its place. */
bool parse_call(Parser *p, Sink *results);
/* The same with one result, in an expression. */
bool parse_call_leaf(Parser *p, Term *out);
/* Notes where the function is defined; returns false. */
bool function_note(Parser *p, const Function *f);

/* ---- statements (parse_op.c) ---------------------------------------- */

/* `{` statements `}` into `region`; ends it with a yield unless it is a
 * program's body. */
bool parse_region_body(Parser *p, Region *region);
/* `{` statements `}` into the region that is read already, to the sink's end. */
bool parse_sink_body(Parser *p);
/* An op with one result, or a call, as an operand of an expression. */
bool parse_op_leaf(Parser *p, Term *out);
/* when COND { .. } else { .. } around the text that `items` reads. */
bool parse_when(Parser *p, bool (*items)(Parser *p));

#endif
