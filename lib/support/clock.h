/* The monotonic clock, for durations and deadlines. */
#ifndef TILUS_CLOCK_H
#define TILUS_CLOCK_H

#include <stdint.h>

/* Time since an arbitrary moment; never goes back. */
int64_t clock_nanoseconds(void);
double clock_seconds(void);

#endif
