/* Code that the libFuzzer targets share. A target is a file fuzz_*.c; built by clang with
 * TILUS_FUZZ it fuzzes, else it runs the files it is given (replay.c). */
#ifndef TILUS_FUZZ_TARGET_H
#define TILUS_FUZZ_TARGET_H

#include "choices.h"

#include "support/arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Calls `body` with the decisions that an input stands for: its first eight bytes are
 * the seed of the sequence that goes on where the others end. The arena is released
 * afterwards; an input for which memory runs out counts as done. Returns 0. */
int target_run(void (*body)(Choices *choices, Arena *arena), const uint8_t *data, size_t size);

/* A finding: says what is wrong on stderr, and aborts. */
_Noreturn void target_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
