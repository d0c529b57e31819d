/* Texts as JSON (RFC 8259, 7). */
#include "support/json.h"

void write_json_string(const Writer *out, const char *text)
{
    writer_char(out, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            writer_printf(out, "\\%c", c);
        else if (c < 0x20)
            writer_printf(out, "\\u%04x", c);
        else
            writer_char(out, *text);
    }
    writer_char(out, '"');
}

void write_json_key(const Writer *out, const char *name, bool first)
{
    if (!first)
        writer_add(out, ", ");
    write_json_string(out, name);
    writer_add(out, ": ");
}
