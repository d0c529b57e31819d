/* Texts that are read: their size and their bytes. */
#include "syntax/parser.h"

#include "support/utf8.h"

bool source_check(Diag *d, const SourceText *s, Loc loc)
{
    uint32_t line = s->first_line;
    int64_t most = diag_limit(d, LIMIT_ID_INPUT);
    if (s->len > (size_t)most)
        return diag_error(d, loc, "a text of %zu bytes, the limit is %lld", s->len,
                          (long long)most);
    for (size_t i = 0, line_start = 0, n; i < s->len; i += n) {
        unsigned byte = (unsigned char)s->text[i];
        Loc at = {line, (uint32_t)(i - line_start) + 1, 1, loc.frame};
        n = utf8_length(s->text + i, s->len - i);
        if (!n)
            return diag_error(d, at, byte ? "byte 0x%02x is not UTF-8" : "a NUL byte (0x%02x)",
                              byte);
        if (byte == '\n') {
            line++;
            line_start = i + 1;
        }
    }
    return true;
}

void parser_enter_source(Parser *p, const SourceText *s, uint32_t frame)
{
    lexer_init(&p->lexer, s, frame);
    parser_advance(p);
}
