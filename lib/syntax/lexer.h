/* The lexer: program text to tokens. Never fails: a byte that begins no token
 * becomes a TOKEN_BAD, which the parser reports. */
#ifndef TILUS_SYNTAX_LEXER_H
#define TILUS_SYNTAX_LEXER_H

#include "support/diag.h"

typedef enum TokenKind {
    TOKEN_END,
    TOKEN_NAME,     /* BM, load_global, i6 */
    TOKEN_VALUE,    /* %acc; start and len leave the % out */
    TOKEN_INTEGER,  /* 42, 0x2a */
    TOKEN_NUMBER,   /* 0.5, 1e-3 */
    TOKEN_TEXT,     /* "a message"; start and len leave the quotes out */
    TOKEN_PUNCT,    /* ( ) [ ] { } < > <= >= == != << >> -> = , : @ . .. + - * / ? */
    TOKEN_BAD
} TokenKind;

typedef struct Token {
    TokenKind kind;
    const char *start;
    uint32_t len;
    Loc loc;
    bool begins_line;       /* the first token of its line */
    uint64_t integer;       /* TOKEN_INTEGER */
    double number;          /* TOKEN_NUMBER */
    const char *problem;    /* TOKEN_BAD: what is wrong, in words */
} Token;

/* A position in the text; plain data, so that a copy is a bookmark. */
typedef struct Lexer {
    const char *at, *end, *line_start;
    uint32_t line;
    uint32_t frame;         /* of the tokens' places */
    bool begins_line;
} Lexer;

void lexer_init(Lexer *lx, const SourceText *s, uint32_t frame);
Token lexer_next(Lexer *lx);

/* Returns true when the token is the punctuation or name `text`. */
bool token_is(const Token *t, const char *text);
/* Returns true when both are spelled alike. */
bool token_equal(const Token *a, const Token *b);

#endif
