/* A stream of text that somebody takes: where the library prints. */
#ifndef TILUS_SUPPORT_WRITER_H
#define TILUS_SUPPORT_WRITER_H

#include "tilus/kernel.h"

typedef struct Writer {
    tilus_write *write;     /* NULL: standard error takes the text */
    void *data;
} Writer;

void writer_add(const Writer *out, const char *text);
void writer_add_n(const Writer *out, const char *text, size_t length);
void writer_char(const Writer *out, char c);

/* Formats at most WRITER_LINE_MAX bytes; what is longer is cut. Longer texts go by writer_add. */
enum { WRITER_LINE_MAX = 1023 };
void writer_printf(const Writer *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
