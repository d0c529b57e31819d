/* Numbers for people. */
#include "common/text.h"

#include <stdbool.h>
#include <stdio.h>

const char *text_size(char *text, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double scaled = (double)bytes / 1024;
    unsigned unit = 0;
    if (bytes < 1024) {
        snprintf(text, TEXT_SIZE, "%u B", (unsigned)bytes);
        return text;
    }
    for (; scaled >= 1024; unit++)
        scaled /= 1024;
    snprintf(text, TEXT_SIZE, "%.1f %s", scaled, units[unit]);
    return text;
}

const char *text_duration(char *text, int64_t seconds)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    unsigned unit = 0;
    if (seconds < 0)        /* by a clock that was set since */
        seconds = 0;
    while (unit < 3 && seconds < units[unit].seconds)
        unit++;
    snprintf(text, TEXT_SIZE, "%lld %s", (long long)(seconds / units[unit].seconds),
             units[unit].name);
    return text;
}

void text_print(FILE *out, const char *text, size_t size)
{
    unsigned char before = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        bool control = c < ' ' || c == 127 || (before == 0xc2 && c < 0xa0);
        fputc(control ? '?' : c, out);
        before = c;
    }
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                                              : -1;
}

void text_percent_decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        bool coded = *from == '%' && hex_digit(from[1]) >= 0 && hex_digit(from[2]) >= 0;
        *to = coded ? (char)(hex_digit(from[1]) * 16 + hex_digit(from[2])) : *from;
        from += coded ? 3 : 1;
    }
    *to = '\0';
}
