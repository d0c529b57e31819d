/* Text: a growing string on an arena. */
#include "support/text.h"

#include <string.h>

void text_init(Text *t, Arena *arena)
{
    *t = (Text){.arena = arena};
}

static void reserve(Text *t, size_t extra)
{
    if (t->len + extra < t->capacity)
        return;
    size_t capacity = t->capacity ? t->capacity : 64;
    while (capacity <= t->len + extra)
        capacity *= 2;
    /* A text past 4 GiB counts as memory that has run out. */
    char *bigger = arena_alloc(t->arena, capacity <= UINT32_MAX ? capacity : SIZE_MAX);
    if (t->len)
        memcpy(bigger, t->data, t->len);
    t->data = bigger;
    t->capacity = (uint32_t)capacity;
}

void text_add_n(Text *t, const char *s, size_t len)
{
    reserve(t, len);
    if (len)
        memcpy(t->data + t->len, s, len);
    t->len += (uint32_t)len;
    t->data[t->len] = '\0';
}

void text_add(Text *t, const char *s)
{
    text_add_n(t, s, strlen(s));
}

void text_char(Text *t, char c)
{
    text_add_n(t, &c, 1);
}

void text_printf(Text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_add(t, arena_vprintf(t->arena, format, args));
    va_end(args);
}

void text_indent(Text *t, unsigned spaces)
{
    while (spaces--)
        text_char(t, ' ');
}

void text_add_escaped(Text *t, const char *s, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c < 0x7f) {
            text_char(t, (char)c);
        } else {
            char escaped[] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
            text_add_n(t, escaped, sizeof escaped);
        }
    }
}

const char *text_string(const Text *t)
{
    return t->len ? t->data : "";
}
