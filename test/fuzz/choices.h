/* Where a generator's decisions come from: bytes that somebody gives, such as
 * libFuzzer's input, and once they are used up a pseudo-random sequence. Equal
 * bytes and seeds give equal decisions. */
#ifndef TILUS_FUZZ_CHOICES_H
#define TILUS_FUZZ_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Choices {
    const uint8_t *bytes;   /* not owned; may be NULL when there are none */
    size_t size, used;
    uint64_t state;         /* of the sequence behind them */
} Choices;

/* The sequence alone, or `size` bytes before it. */
Choices choices_from_seed(uint64_t seed);
Choices choices_from_bytes(const uint8_t *bytes, size_t size, uint64_t seed);

/* The next 64 bits of the sequence; no byte is taken. */
uint64_t choices_random(Choices *c);

/* A number below `n`, which is from 1 to 2^32. Small numbers take one byte. */
uint64_t choose(Choices *c, uint64_t n);

/* A number from `min` to `max`, which is at least `min`, less than 2^32 away. */
int64_t choose_between(Choices *c, int64_t min, int64_t max);

/* True once in `n` times. */
static inline bool choose_rarely(Choices *c, unsigned n)
{
    return choose(c, n) == n - 1;
}

#endif
