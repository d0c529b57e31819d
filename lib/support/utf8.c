/* UTF-8 (Unicode 15, table 3-7). */
#include "support/utf8.h"

size_t utf8_length(const char *text, size_t left)
{
    static const unsigned char second_min[256] = {[0xe0] = 0xa0, [0xf0] = 0x90};
    static const unsigned char second_max[256] = {[0xed] = 0x9f, [0xf4] = 0x8f};
    const unsigned char *s = (const unsigned char *)text;
    unsigned char c = s[0];
    size_t n = c < 0x80 ? c != 0 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (s[i] < 0x80 || s[i] > 0xbf)
            return 0;
    if (n > 1 && ((second_min[c] && s[1] < second_min[c]) ||
                  (second_max[c] && s[1] > second_max[c])))
        return 0;
    return n;
}

bool utf8_valid(const char *s, size_t len)
{
    for (size_t at = 0, n; at < len; at += n)
        if (!(n = utf8_length(s + at, len - at)))
            return false;
    return true;
}
