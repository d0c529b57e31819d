/* The parser's state and its parts. The parser reads, instantiates (param,
 * layout, when) and builds; it reports all it can and resumes at the next
 * line. Rules that it cannot check while reading are left to the verifier.
 *
 *   parser.c        module, parameters, programs, recovery
 *   parse_expr.c    scalar expressions
 *   parse_type.c    types
 *   parse_form.c    storage orders and deferred scales
 *   parse_layout.c  layouts
 *   parse_op.c      statements: ops, for, while, if, when
 *
 * Each parse_* returns false (or NULL) after reporting an error. */
#ifndef TILUS_SYNTAX_PARSER_H
#define TILUS_SYNTAX_PARSER_H

#include "ir/builder.h"
#include "ir/text.h"
#include "syntax/lexer.h"
#include "syntax/syntax.h"

typedef enum BindingKind {
    BINDING_NONE, BINDING_INTEGER, BINDING_TYPE, BINDING_LAYOUT
} BindingKind;

/* A spelling and its meaning: BM (in `binding`), %acc (in `value`). */
typedef struct Symbol {
    const char *name;       /* NUL-terminated, in the module's arena */
    uint32_t len;
    BindingKind binding;
    Loc loc;                /* of the binding */
    int64_t integer;
    DType dtype;
    const Layout *layout;
    Value *value;           /* visible now, or NULL */
    const Program *program; /* of this name, or NULL */
} Symbol;

/* An entry of the scope stack: the symbol's value before. */
typedef struct Shadow {
    Symbol *symbol;
    Value *before;
} Shadow;

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
    unsigned regions;       /* that are open, those of `when` too */
    unsigned nesting;       /* open parentheses and unary operators */
    bool end_reported;      /* "unexpected end" is said once */
    bool values_reported;   /* too many: the same */
} Parser;

/* ---- tokens (parser.c) ---------------------------------------------- */

void parser_advance(Parser *p);
static inline bool parser_at(const Parser *p, const char *text) { return token_is(&p->token, text); }
/* Takes the token if it is `text`. */
bool parser_accept(Parser *p, const char *text);
/* As accept, but an error names the token found: "expected `)` after ..., got". */
bool parser_expect(Parser *p, const char *text, const char *where);
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
/* Makes %name visible in the current scope; a visible namesake is an error. */
bool parser_define(Parser *p, const Token *name, Value *v);
/* The visible value of a TOKEN_VALUE, which is taken; NULL after an error. A
 * value whose definition was broken has type NULL: its users stay silent. */
Value *parse_value_use(Parser *p);
uint32_t scope_mark(const Parser *p);
void scope_reset(Parser *p, uint32_t mark);

/* ---- expressions (parse_expr.c) ------------------------------------- */

/* An expression of operators that bind at least as tightly as `precedence`
 * (1: any; PRECEDENCE_SUM: no bare comparison, as between < and >). */
enum { PRECEDENCE_ANY = 1, PRECEDENCE_SUM = 5 };
const Expr *parse_expr(Parser *p, unsigned precedence);
/* Returns true where an operator between two operands stands. */
bool parser_at_infix(const Parser *p);
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

/* ---- statements (parse_op.c) ---------------------------------------- */

/* `{` statements `}` into `region`; ends it with a yield unless it is a
 * program's body. */
bool parse_region_body(Parser *p, Region *region);
/* when COND { .. } else { .. } around the text that `items` reads. */
bool parse_when(Parser *p, bool (*items)(Parser *p));

#endif
