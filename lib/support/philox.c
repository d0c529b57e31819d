/* Philox 4x32-10. */
#include "support/philox.h"

#include <string.h>

static void philox_round(uint32_t w[PHILOX_WORDS], const uint32_t key[PHILOX_KEYS])
{
    static const uint32_t multipliers[] = PHILOX_MULTIPLIERS;
    uint64_t a = (uint64_t)multipliers[0] * w[0], b = (uint64_t)multipliers[1] * w[2];
    w[0] = (uint32_t)(b >> 32) ^ w[1] ^ key[0];
    w[1] = (uint32_t)b;
    w[2] = (uint32_t)(a >> 32) ^ w[3] ^ key[1];
    w[3] = (uint32_t)a;
}

void philox_block(const uint32_t counter[PHILOX_WORDS], const uint32_t key[PHILOX_KEYS],
                  uint32_t out[PHILOX_WORDS])
{
    static const uint32_t weyl[] = PHILOX_WEYL;
    uint32_t k[PHILOX_KEYS] = {key[0], key[1]};
    memcpy(out, counter, PHILOX_WORDS * sizeof *out);
    for (unsigned round = 0; round < PHILOX_ROUNDS; round++) {
        philox_round(out, k);
        k[0] += weyl[0];
        k[1] += weyl[1];
    }
}

uint32_t philox_word(uint64_t seed, uint64_t number)
{
    uint64_t block = number / PHILOX_WORDS;
    const uint32_t counter[PHILOX_WORDS] = {(uint32_t)block, (uint32_t)(block >> 32)};
    const uint32_t key[PHILOX_KEYS] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t words[PHILOX_WORDS];
    philox_block(counter, key, words);
    return words[number % PHILOX_WORDS];
}
