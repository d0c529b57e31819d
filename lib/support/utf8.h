/* UTF-8: program text, and what artefacts hold of it. */
#ifndef TILUS_SUPPORT_UTF8_H
#define TILUS_SUPPORT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the well-formed sequence at s, of which `left` bytes may be read, or 0;
 * NUL counts as malformed. */
size_t utf8_length(const char *s, size_t left);

/* Returns true when s[0..len) is well-formed UTF-8 without NUL. */
bool utf8_valid(const char *s, size_t len);

#endif
