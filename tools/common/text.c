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
