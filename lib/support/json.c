/* Texts as JSON (RFC 8259, 7 and 8.1). */
#include "support/json.h"

#include "support/utf8.h"

void write_json_string(const Writer *out, const char *text)
{
    writer_char(out, '"');
    for (size_t length; *text; text += length ? length : 1) {
        unsigned char c = (unsigned char)*text;
        length = utf8_length(text, 4);      /* which ends at the NUL */
        if (!length)
            writer_add(out, "\\ufffd");
        else if (c == '"' || c == '\\')
            writer_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            writer_printf(out, "\\u%04x", c);
        else
            writer_add_n(out, text, length);
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
