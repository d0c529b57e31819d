/* Work in equal parts on several threads. */
#ifndef TILUS_SUPPORT_PARALLEL_H
#define TILUS_SUPPORT_PARALLEL_H

#include <stddef.h>

/* Calls `work` once for each i < count, in any order, on up to `threads` threads, of which the
 * caller's is one; 0: as many as the process may run on. Returns when all have ended. Where no
 * thread can be made there are fewer. */
void parallel_for(unsigned threads, size_t count, void (*work)(void *data, size_t i), void *data);

#endif
