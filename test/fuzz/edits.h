/* Program text that is nearly right: some words of a program deleted, repeated,
 * exchanged, or replaced by others of the language. */
#ifndef TILUS_FUZZ_EDITS_H
#define TILUS_FUZZ_EDITS_H

#include "choices.h"

#include "support/arena.h"

/* `text` after `count` edits, on the arena. */
const char *text_edit(const char *text, unsigned count, Choices *choices, Arena *arena);

#endif
