/* Streams of text. */
#include "support/writer.h"

#include "support/numeral.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void writer_add_n(const Writer *out, const char *text, size_t length)
{
    if (out->write)
        out->write(out->data, text, length);
    else
        fwrite(text, 1, length, stderr);
}

void writer_add(const Writer *out, const char *text)
{
    writer_add_n(out, text, strlen(text));
}

void writer_char(const Writer *out, char c)
{
    writer_add_n(out, &c, 1);
}

void writer_printf(const Writer *out, const char *format, ...)
{
    char line[WRITER_LINE_MAX + 1];
    va_list args;
    va_start(args, format);
    int length = numeral_vformat(line, sizeof line, format, args);
    va_end(args);
    writer_add_n(out, line, length < WRITER_LINE_MAX ? (size_t)length : WRITER_LINE_MAX);
}
