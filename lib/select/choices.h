/* Written choices (the attributes of select/plan.h) whose proofs depend on the program around
 * their ops: that their checks are enough, and their widths aligned. A pass that loses such
 * a proof drops the choice, and the next select_plan chooses anew. */
#ifndef TILUS_SELECT_CHOICES_H
#define TILUS_SELECT_CHOICES_H

#include "ir/ir.h"

/* Returns true when every choice that is written in `p` is proved. */
bool choices_hold(Program *p);

/* Drops each written choice that is not proved where its op stands. */
void choices_drop(Program *p);

#endif
