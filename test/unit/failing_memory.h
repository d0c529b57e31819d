/* Allocations that fail when a test says so. A test that is linked with failing_memory.c,
 * and with --wrap for malloc, calloc and strdup, decides which call of ours fails; those
 * of other libraries are not touched. */
#ifndef TILUS_TEST_FAILING_MEMORY_H
#define TILUS_TEST_FAILING_MEMORY_H

/* So many calls succeed, then all fail; -1: any number. Counts down. */
extern _Atomic long allocations_left;

#endif
