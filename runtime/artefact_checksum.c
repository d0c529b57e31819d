/* CRC-32 with the polynomial of IEEE 802.3, lowest bit first. */
#include "artefact_format.h"

typedef struct Crc {
    uint32_t table[256];        /* what each byte does to a checksum */
    uint32_t value;
} Crc;

static void crc_init(Crc *crc)
{
    const uint32_t polynomial = UINT32_C(0xedb88320);
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t c = byte;
        for (unsigned bit = 0; bit < 8; bit++)
            c = c >> 1 ^ (c & 1 ? polynomial : 0);
        crc->table[byte] = c;
    }
    crc->value = UINT32_MAX;
}

static void crc_add(Crc *crc, const unsigned char *bytes, size_t size)
{
    uint32_t c = crc->value;
    for (size_t i = 0; i < size; i++)
        c = c >> 8 ^ crc->table[(c ^ bytes[i]) & 0xff];
    crc->value = c;
}

uint32_t artefact_checksum(const unsigned char *bytes, size_t size)
{
    enum { AFTER = ARTEFACT_AT_CHECKSUM + 4 };
    Crc crc;
    crc_init(&crc);
    crc_add(&crc, bytes, ARTEFACT_AT_CHECKSUM);
    crc_add(&crc, bytes + AFTER, size - AFTER);
    return ~crc.value;
}
