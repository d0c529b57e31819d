/* Words for what check-hazards finds. */
#ifndef TILUS_PASSES_CHECK_HAZARDS_H
#define TILUS_PASSES_CHECK_HAZARDS_H

#include "memory/hazards.h"

/* Says what races or may race, without a place; in the scratch arena. */
const char *hazard_text(Module *m, const Hazard *h);

#endif
