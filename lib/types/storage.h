/* Storage orders: where the bits of a thread's codes lie.
 *
 * Plain order, which files use, has bit b of element e at bit e * bits + b of the
 * thread's words. packed(T) is the order from which casts to T take the fewest
 * operations: it puts bits where plans want them, so that most words of the result
 * are one `lop3`. It is a permutation of the bits of each *group* of elements, which
 * fills whole words; signs of integers are stored inverted, too, which
 * makes them offset binary. Most orders are recorded in types/orders.def, which
 * test/cast_orders.c writes.
 *
 * An order is part of the disk format of packed weights: it depends on the types
 * alone, never on the target, and changing one is a new format
 * (CAST_STORAGE_VERSION). Pure functions; thread safe. */
#ifndef TILUS_TYPES_STORAGE_H
#define TILUS_TYPES_STORAGE_H

#include "types/dtype.h"

enum {
    CAST_STORAGE_VERSION = 2,
    CAST_GROUP_MAX = 32,            /* elements of a group */
    CAST_GROUP_BITS_MAX = 256,
};

typedef struct CastStorage {
    unsigned elements, words;       /* of a group */
    bool flips;                     /* the upper bit of each code is stored inverted */
    uint16_t order[CAST_GROUP_BITS_MAX];    /* bit b of element e is bit
                                               order[e * bits + b] of the group's words */
    DType to;                       /* plans to this type find the places of a half where
                                       their codes go in `low`; none: they search them */
    uint8_t low[CAST_GROUP_MAX];    /* that of the lowest bit of each element */
} CastStorage;

/* Elements of a group of type `from`, of at most 8 bits: 32 of u1, u3, u5 and u7,
 * 16 of u2 and u6, 8 of u4, 4 of u8; 8 of floats of 8 bits. */
unsigned cast_group(DType from);

/* Returns true when packed(to) exists of `from`: integers and floats of 1 to 8 bits, for
 * casts to f16 and bf16. */
bool cast_has_storage(DType from, DType to);

/* packed(to) of `from`; requires cast_has_storage. */
void cast_storage(DType from, DType to, CastStorage *storage);

/* Move one group between plain order and `storage`: `in` and `out` have
 * storage->words words and must not overlap. */
void cast_pack_group(const CastStorage *storage, const uint32_t *in, uint32_t *out);
void cast_unpack_group(const CastStorage *storage, const uint32_t *in, uint32_t *out);

#endif
