/* Philox 4x32-10, a counter-based generator of random numbers (Salmon et al., "Parallel random
 * numbers: as easy as 1, 2, 3", SC'11; Random123's philox4x32, R = 10).
 *
 * The word of number n under a seed is word n mod 4 of the block whose counter is n / 4, as
 * cuRAND's curand() gives it first after curand_init(seed, 0, n): the counter's low 64 bits
 * are n / 4, its high 64 bits, cuRAND's subsequence, are 0; the key is the seed, its low
 * half first. */
#ifndef TILUS_SUPPORT_PHILOX_H
#define TILUS_SUPPORT_PHILOX_H

#include <stdint.h>

enum { PHILOX_WORDS = 4, PHILOX_KEYS = 2, PHILOX_ROUNDS = 10 };

/* The multipliers of words 0 and 2, and what is added to the two halves of the key between
 * rounds. */
#define PHILOX_MULTIPLIERS {UINT32_C(0xD2511F53), UINT32_C(0xCD9E8D57)}
#define PHILOX_WEYL {UINT32_C(0x9E3779B9), UINT32_C(0xBB67AE85)}

/* Computes the block of random words of one counter. */
void philox_block(const uint32_t counter[PHILOX_WORDS], const uint32_t key[PHILOX_KEYS],
                  uint32_t out[PHILOX_WORDS]);

/* Returns the word of number `number` under `seed`. */
uint32_t philox_word(uint64_t seed, uint64_t number);

#endif
