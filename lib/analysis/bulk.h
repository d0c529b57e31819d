/* What a copy_async_bulk needs beyond its op's own rules: its bytes follow each other in
 * both memories and begin at multiples of BULK_ALIGN there. */
#ifndef TILUS_ANALYSIS_BULK_H
#define TILUS_ANALYSIS_BULK_H

#include "ir/ir.h"

/* Proves it; false after an error that says what is missing. */
bool bulk_check(Module *m, const Op *op);

#endif
