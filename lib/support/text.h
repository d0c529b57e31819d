/* Text: a growing string on an arena, for printers and messages. */
#ifndef TILUS_SUPPORT_TEXT_H
#define TILUS_SUPPORT_TEXT_H

#include "support/arena.h"

#include <stdbool.h>

typedef struct Text {
    Arena *arena;
    char *data;         /* NUL-terminated once anything was added */
    uint32_t len;
    uint32_t capacity;
} Text;

void text_init(Text *t, Arena *arena);
void text_char(Text *t, char c);
void text_add(Text *t, const char *s);
void text_add_n(Text *t, const char *s, size_t len);
void text_printf(Text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_indent(Text *t, unsigned spaces);

/* Adds `len` bytes of user text with everything that is not printable ASCII
 * escaped as \xHH, so that a message can quote any input. */
void text_add_escaped(Text *t, const char *s, size_t len);

/* The text so far, "" when nothing was added; owned by the arena. */
const char *text_string(const Text *t);

#endif
