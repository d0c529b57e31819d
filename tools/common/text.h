/* Numbers and foreign texts for people. */
#ifndef TILUS_TOOLS_TEXT_H
#define TILUS_TOOLS_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TEXT_SIZE = 32 };

/* Each writes to `text`, TEXT_SIZE bytes, and returns it. Bytes: "17 B", "1.5 KiB";
 * seconds: "3 s", "5 min", "2 h", "4 d". */
const char *text_size(char *text, uint64_t bytes);
const char *text_duration(char *text, int64_t seconds);

/* Prints a text of anybody's. Control characters, which might steer a terminal, become
 * "?": those of ASCII, and those that UTF-8 spells C2 80 to C2 9F. */
void text_print(FILE *out, const char *text, size_t size);

/* Decodes a percent-encoded text, "caf%C3%A9", in place (RFC 3986, section 2.1). A percent sign
 * without two hexadecimal digits stays. */
void text_percent_decode(char *text);

#endif
