/* Letters and digits of ASCII, where <ctype.h> follows the process's locale: a Turkish one has
 * another lower case of I. */
#ifndef TILUS_SUPPORT_ASCII_H
#define TILUS_SUPPORT_ASCII_H

#include <stdbool.h>

static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline bool ascii_is_alphanumeric(char c)
{
    return ascii_is_digit(c) || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z');
}

#endif
