/* Numbers as text in the locale "C", which a thread has for one call. */
#define _POSIX_C_SOURCE 200809L     /* uselocale */
#include "support/numeral.h"

#include <locale.h>
#include <stdlib.h>

typedef struct Visit {
    locale_t plain, before;
} Visit;

/* The locale "C" costs no memory in glibc and musl. Where it cannot be had, the thread's stays. */
static Visit enter(void)
{
    Visit v = {.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    if (v.plain)
        v.before = uselocale(v.plain);
    return v;
}

static void leave(Visit v)
{
    if (!v.plain)
        return;
    uselocale(v.before);
    freelocale(v.plain);
}

double numeral_read(const char *text, char **end)
{
    Visit v = enter();
    double value = strtod(text, end);
    leave(v);
    return value;
}

int numeral_vformat(char *text, size_t size, const char *format, va_list args)
{
    Visit v = enter();
    int length = vsnprintf(text, size, format, args);
    leave(v);
    return length;
}

int numeral_format(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = numeral_vformat(text, size, format, args);
    va_end(args);
    return length;
}

int numeral_print(FILE *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Visit v = enter();
    int length = vfprintf(out, format, args);
    leave(v);
    va_end(args);
    return length;
}
