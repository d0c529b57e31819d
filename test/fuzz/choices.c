/* Decisions of a generator. */
#include "choices.h"

Choices choices_from_seed(uint64_t seed)
{
    return choices_from_bytes(NULL, 0, seed);
}

Choices choices_from_bytes(const uint8_t *bytes, size_t size, uint64_t seed)
{
    return (Choices){.bytes = bytes, .size = size, .state = seed};
}

/* splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
 * generators", 2014): near seeds give unlike sequences. */
uint64_t choices_random(Choices *c)
{
    uint64_t z = c->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t choose(Choices *c, uint64_t n)
{
    uint64_t number = 0;
    if (n < 2)
        return 0;
    if (c->used == c->size)
        return (choices_random(c) >> 32) % n;
    for (uint64_t limit = 1; limit < n && c->used < c->size; limit <<= 8)
        number = number << 8 | c->bytes[c->used++];
    return number % n;
}

int64_t choose_between(Choices *c, int64_t min, int64_t max)
{
    return min + (int64_t)choose(c, (uint64_t)(max - min) + 1);
}
