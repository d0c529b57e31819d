/* The lexer: program text to tokens. */
#include "syntax/lexer.h"

#include "support/numeral.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void lexer_init(Lexer *lx, const SourceText *s, uint32_t frame)
{
    *lx = (Lexer){.at = s->text, .end = s->text + s->len, .line_start = s->text,
                  .line = s->first_line, .frame = frame, .begins_line = true};
}

/* Locale-free character classes. */
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static char peek(const Lexer *lx, size_t ahead)
{
    return (size_t)(lx->end - lx->at) > ahead ? lx->at[ahead] : '\0';
}

static void skip_space_and_comments(Lexer *lx)
{
    for (; lx->at < lx->end; lx->at++) {
        if (peek(lx, 0) == '/' && peek(lx, 1) == '/')
            while (lx->at < lx->end && *lx->at != '\n')
                lx->at++;
        if (lx->at == lx->end)
            return;
        if (*lx->at == '\n') {
            lx->line++;
            lx->line_start = lx->at + 1;
            lx->begins_line = true;
        } else if (*lx->at != ' ' && *lx->at != '\t' && *lx->at != '\r') {
            return;
        }
    }
}

static void lex_name(Lexer *lx)
{
    while (is_name_char(peek(lx, 0)))
        lx->at++;
}

static void lex_integer(Lexer *lx, Token *t)
{
    bool hex = *lx->at == '0' && (peek(lx, 1) == 'x' || peek(lx, 1) == 'X');
    const char *digits = hex ? lx->at + 2 : lx->at;
    uint64_t base = hex ? 16 : 10;
    bool overflow = false;
    for (lx->at = digits; is_name_char(peek(lx, 0)); lx->at++) {
        char c = *lx->at;
        uint64_t digit = is_digit(c) ? (uint64_t)(c - '0') : (uint64_t)((c | 32) - 'a') + 10;
        if (c == '_' || digit >= base)
            t->problem = "a malformed number";
        overflow |= __builtin_mul_overflow(t->integer, base, &t->integer) ||
                    __builtin_add_overflow(t->integer, digit, &t->integer);
    }
    if (hex && lx->at == digits)
        t->problem = "a malformed number";
    else if (overflow && !t->problem)
        t->problem = "an integer over 64 bits";
    t->kind = t->problem ? TOKEN_BAD : TOKEN_INTEGER;
}

/* Digits with a fraction or an exponent; `0 ..` and `0..` are integers before
 * a range. Returns false if this is no such number. */
static bool lex_number(Lexer *lx, Token *t)
{
    size_t n = 0;
    while (is_digit(peek(lx, n)))
        n++;
    bool real = false;
    if (peek(lx, n) == '.' && is_digit(peek(lx, n + 1))) {
        for (real = true, n++; is_digit(peek(lx, n)); n++)
            ;
    }
    if (peek(lx, n) == 'e' || peek(lx, n) == 'E') {
        size_t sign = peek(lx, n + 1) == '-' || peek(lx, n + 1) == '+';
        if (is_digit(peek(lx, n + 1 + sign)))
            for (real = true, n += 1 + sign; is_digit(peek(lx, n)); n++)
                ;
    }
    if (!real)
        return false;
    char copy[64];
    if (is_name_char(peek(lx, n))) {
        while (is_name_char(peek(lx, n)))
            n++;
        t->kind = TOKEN_BAD;
        t->problem = "a malformed number";
    } else if (n >= sizeof copy) {
        t->kind = TOKEN_BAD;
        t->problem = "a number of more than 63 characters";
    } else {
        memcpy(copy, lx->at, n);
        copy[n] = '\0';
        t->number = numeral_read(copy, NULL);
        t->problem = isinf(t->number) ? "a number over those of f64, which end at 1.8e+308" : NULL;
        t->kind = t->problem ? TOKEN_BAD : TOKEN_NUMBER;
    }
    lx->at += n;
    return true;
}

/* Reads up to the closing quote on the same line; no character escapes it. */
static void lex_text(Lexer *lx, Token *t)
{
    t->start = ++lx->at;
    while (lx->at < lx->end && *lx->at != '"' && *lx->at != '\n')
        lx->at++;
    t->len = (uint32_t)(lx->at - t->start);
    t->kind = TOKEN_TEXT;
    if (peek(lx, 0) == '"') {
        lx->at++;
    } else {
        t->kind = TOKEN_BAD;
        t->problem = "a text without its closing quote";
    }
}

/* Says what is wrong with a character; of operators of other languages, the word for it. */
static const char *character_problem(char c)
{
    switch (c) {
    case '%': return "a % without a name: the remainder is `mod`";
    case '&': return "a character that begins nothing: the operator is `and`";
    case '|': return "a character that begins nothing: the operator is `or`";
    case '!': return "a character that begins nothing: the operator is `not`";
    default: return "a character that begins nothing";
    }
}

static void lex_punct(Lexer *lx, Token *t)
{
    static const char *const two[] = {"<=", ">=", "==", "!=", "..", "<<", ">>", "->"};
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (peek(lx, 0) == two[i][0] && peek(lx, 1) == two[i][1]) {
            lx->at += 2;
            return;
        }
    if (*lx->at == '\0' || !strchr("()[]{}<>=,:@.+-*/?", *lx->at)) {
        t->kind = TOKEN_BAD;
        t->problem = character_problem(*lx->at);
    }
    lx->at++;
}

Token lexer_next(Lexer *lx)
{
    skip_space_and_comments(lx);
    Token t = {.kind = TOKEN_PUNCT, .start = lx->at, .begins_line = lx->begins_line};
    const char *from = lx->at;
    lx->begins_line = false;
    if (lx->at == lx->end) {
        t.kind = TOKEN_END;
    } else if (*lx->at == '%' && is_name_char(peek(lx, 1))) {
        t.kind = TOKEN_VALUE;
        t.start = ++lx->at;
        lex_name(lx);
    } else if (is_digit(*lx->at)) {
        if (!lex_number(lx, &t))
            lex_integer(lx, &t);
    } else if (is_name_char(*lx->at)) {
        t.kind = TOKEN_NAME;
        lex_name(lx);
    } else if (*lx->at == '"') {
        lex_text(lx, &t);
    } else {
        lex_punct(lx, &t);
    }
    if (t.start == from || t.kind == TOKEN_VALUE)
        t.len = (uint32_t)(lx->at - t.start);
    t.loc = (Loc){lx->line, (uint32_t)(from - lx->line_start) + 1,
                  lx->at > from ? (uint32_t)(lx->at - from) : 1, lx->frame};
    return t;
}

bool token_is(const Token *t, const char *text)
{
    return (t->kind == TOKEN_PUNCT || t->kind == TOKEN_NAME) && strlen(text) == t->len &&
           !memcmp(t->start, text, t->len);
}

bool token_equal(const Token *a, const Token *b)
{
    return a->kind == b->kind && a->len == b->len && !memcmp(a->start, b->start, a->len);
}
