/* What a copy_async_bulk needs beyond its op's own rules: its bytes follow each other in
 * both memories and begin at multiples of BULK_ALIGN there. */
#ifndef TILUS_SELECT_BULK_H
#define TILUS_SELECT_BULK_H

#include "ir/ir.h"

/* Proves it; false after an error that says what is missing. */
bool bulk_check(Module *m, const Op *op);

/* Whether the async proxy must be kept behind writes of the program's threads: some op
 * other than a bulk copy writes the copy's source or target, or bytes that may be theirs.
 * Their reads need no fence: what a thread has read is in its registers when it arrives.
 * Programs write a copy's source through the copy's own pointer only (docs/language.md). */
bool bulk_needs_fence(const Op *op);

#endif
