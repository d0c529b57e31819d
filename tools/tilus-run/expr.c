/* Integer expressions over the scalar arguments: counts such as m*k/2. */
#include "run.h"

#include "support/kernel_info.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 100 };       /* of parentheses and signs */

typedef struct Parser {
    const Run *run;
    const char *at;
    const char *error;          /* NULL: none yet */
    unsigned depth;
} Parser;

static int64_t parse_sum(Parser *p);

static int64_t fail(Parser *p, const char *error)
{
    if (!p->error)
        p->error = error;
    return 0;
}

static bool accept(Parser *p, char c)
{
    p->at += strspn(p->at, " \t");
    bool there = *p->at == c;
    p->at += there;
    return there;
}

/* Reads a magnitude, of a negative number up to 2^63. */
static int64_t parse_number(Parser *p, bool negative)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(p->at, &end, 10);
    p->at = end;
    if (errno || value > (uint64_t)INT64_MAX + negative)
        return fail(p, "number too large");
    return (int64_t)(negative ? 0 - value : value);
}

static int64_t parse_name(Parser *p)
{
    size_t len = 0;
    while (isalnum((unsigned char)p->at[len]) || p->at[len] == '_')
        len++;
    for (size_t i = 0; i < p->run->info->arg_count; i++) {
        const tilus_arg_info *info = &p->run->info->args[i];
        if (strlen(info->name) != len || memcmp(info->name, p->at, len) != 0)
            continue;
        if (info->kind == TILUS_ARG_POINTER)
            return fail(p, "a pointer is no number");
        if (!kernel_arg_is_integer(info->kind))
            return fail(p, "a scalar of floats is no integer");
        if (!p->run->known[i])
            return fail(p, "a scalar is used that no --arg before it gives");
        p->at += len;
        return p->run->args[i].integer;
    }
    return fail(p, "a name is used that is no argument of the program");
}

static int64_t parse_primary(Parser *p)
{
    if (p->error || ++p->depth > DEPTH_MAX)
        return fail(p, "too many parentheses");
    int64_t value = 0;
    if (accept(p, '(')) {
        value = parse_sum(p);
        if (!accept(p, ')'))
            fail(p, "missing ')'");
    } else if (accept(p, '-')) {
        if (isdigit((unsigned char)*p->at))
            value = parse_number(p, true);
        else if (__builtin_sub_overflow(0, parse_primary(p), &value))
            fail(p, "overflow of 64 bits");
    } else if (isdigit((unsigned char)*p->at)) {
        value = parse_number(p, false);
    } else if (isalpha((unsigned char)*p->at) || *p->at == '_') {
        value = parse_name(p);
    } else {
        fail(p, "a number or a scalar's name is missing");
    }
    p->depth--;
    return value;
}

static int64_t divide(Parser *p, int64_t a, int64_t b)
{
    if (b == 0)
        return fail(p, "division by zero");
    if (a == INT64_MIN && b == -1)
        return fail(p, "overflow of 64 bits");
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t parse_product(Parser *p)
{
    int64_t value = parse_primary(p);
    while (!p->error) {
        if (accept(p, '/'))
            value = divide(p, value, parse_primary(p));
        else if (!accept(p, '*'))
            break;
        else if (__builtin_mul_overflow(value, parse_primary(p), &value))
            fail(p, "overflow of 64 bits");
    }
    return value;
}

static int64_t parse_sum(Parser *p)
{
    int64_t value = parse_product(p);
    while (!p->error) {
        bool minus = accept(p, '-');
        if (!minus && !accept(p, '+'))
            break;
        int64_t next = parse_product(p);
        if (minus ? __builtin_sub_overflow(value, next, &value)
                  : __builtin_add_overflow(value, next, &value))
            fail(p, "overflow of 64 bits");
    }
    return value;
}

const char *run_evaluate(const Run *run, const char **text, int64_t *value)
{
    Parser p = {run, *text, NULL, 0};
    *value = parse_sum(&p);
    *text = p.at;
    return p.error;
}
