/* Differences of texts, line by line. */
#ifndef TILUS_SUPPORT_DIFF_H
#define TILUS_SUPPORT_DIFF_H

#include "support/arena.h"
#include "support/writer.h"

/* Writes the lines in which `after` differs from `before`, as `diff -u` does, without the two
 * lines that name files: hunks with three lines around changes. Nothing where they are equal.
 * Where the texts differ over too many lines, all those lines are replaced. `scratch` is left
 * as it was. */
void diff_write(const Writer *out, Arena *scratch, const char *before, const char *after);

#endif
