/* Access to compactly stored elements, byte by byte: an element of up to 64
 * bits spans at most nine bytes, and its neighbors in the first and the last
 * of them must survive. */
#include "support/bits.h"

#include <assert.h>

/* One past the last byte of the `bits` bits that begin at bit `shift`. */
static size_t end_byte(unsigned shift, unsigned bits) { return (shift + bits + 7) / 8; }

uint64_t bits_get(const void *data, size_t i, unsigned bits)
{
    assert(bits >= 1 && bits <= 64);
    const unsigned char *p = (const unsigned char *)data + i / 8 * bits + i % 8 * bits / 8;
    unsigned shift = i % 8 * bits % 8;
    uint64_t code = (uint64_t)p[0] >> shift;
    for (size_t byte = 1; byte < end_byte(shift, bits); byte++)
        code |= (uint64_t)p[byte] << (8 * byte - shift);
    return code & bits_mask(bits);
}

void bits_set(void *data, size_t i, unsigned bits, uint64_t code)
{
    assert(bits >= 1 && bits <= 64);
    unsigned char *p = (unsigned char *)data + i / 8 * bits + i % 8 * bits / 8;
    unsigned shift = i % 8 * bits % 8;
    uint64_t mask = bits_mask(bits);
    code &= mask;
    p[0] = (unsigned char)((p[0] & ~(mask << shift)) | code << shift);
    for (size_t byte = 1; byte < end_byte(shift, bits); byte++) {
        unsigned below = 8 * (unsigned)byte - shift;    /* bits in earlier bytes */
        p[byte] = (unsigned char)((p[byte] & ~(mask >> below)) | code >> below);
    }
}
