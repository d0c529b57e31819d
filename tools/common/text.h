/* Numbers for people. */
#ifndef TILUS_TOOLS_TEXT_H
#define TILUS_TOOLS_TEXT_H

#include <stdint.h>

enum { TEXT_SIZE = 32 };

/* Each writes to `text`, TEXT_SIZE bytes, and returns it. Bytes: "17 B", "1.5 KiB";
 * seconds: "3 s", "5 min", "2 h", "4 d". */
const char *text_size(char *text, uint64_t bytes);
const char *text_duration(char *text, int64_t seconds);

#endif
