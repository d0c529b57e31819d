/* What the written choices of loads, stores and asynchronous copies promise: that
 * their checks are enough, and that their tiles have units or chunks of the written
 * width. The proofs lean on the program around each op, which passes change. */
#ifndef TILUS_SELECT_PROMISE_H
#define TILUS_SELECT_PROMISE_H

#include "ir/ir.h"

/* Whether every choice that is written in `p` is proved. */
bool promises_hold(Program *p);

/* Makes each choice that is not proved where its op stands now one that is: with
 * more checks, and, where these are not enough, with the widest instructions that are
 * proved. */
void promises_repair(Program *p);

#endif
