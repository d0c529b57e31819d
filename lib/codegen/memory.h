/* A load, store or atomic op of a register tile while it is lowered. */
#ifndef TILUS_CODEGEN_MEMORY_H
#define TILUS_CODEGEN_MEMORY_H

#include "codegen/internal.h"
#include "ir/tile.h"
#include "select/plan.h"

#include <string.h>

typedef struct MemoryAccess MemoryAccess;

/* Moves the unit that begins at `slot` between memory and `words`, without any
 * check. */
typedef void UnitMover(const MemoryAccess *a, int64_t slot, LLVMValueRef *words);

struct MemoryAccess {
    Codegen *cg;
    const Op *op;
    const Access *plan;
    UnitMover *move;
    const Type *tile;
    unsigned bits;                      /* of an element */
    const Lowered *memory;
    Swizzle swizzle;                    /* of the memory's type */
    bool global;
    MemoryTile place;                   /* the tile's; its index says where slots lie */
    uint32_t wrapping;                  /* tile_wrapping_dims */
    LLVMValueRef index[LIMIT_RANK];     /* in the view, of the tile's first element, and
                                           once located of this thread's: i64 */
    LLVMValueRef linear;                /* the number of that element in its memory: i64 */
};

/* a + b and a * b in i64, without neutral terms: most strides are 1. */
LLVMValueRef add_i64(Codegen *cg, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef mul_i64(Codegen *cg, LLVMValueRef a, LLVMValueRef b);
/* Builds 0 <= index < extent, of i64s. */
LLVMValueRef index_inside(Codegen *cg, LLVMValueRef index, LLVMValueRef extent);
/* Returns the dimensions of the tile's memory in which an offset may be so large that a sum of it
 * and an index of the tile wraps. */
uint32_t tile_wrapping_dims(const MemoryTile *t);
/* Builds the index offset + add in dimension `d`, i64s; without nsw in `wrapping` dimensions,
 * as the sum may wrap, to a number below 0, which a check then finds outside. */
LLVMValueRef add_offset(Codegen *cg, uint32_t wrapping, unsigned d, LLVMValueRef offset,
                        LLVMValueRef add);
/* Builds the element in `slot` of a register tensor of indices, an i64. */
LLVMValueRef emit_index(Codegen *cg, const Value *index, int64_t slot);
/* Builds row * stride + linear, of which any row is defined: those outside are not accessed. */
LLVMValueRef add_row(Codegen *cg, LLVMValueRef linear, LLVMValueRef row, LLVMValueRef stride);
/* The integer, or vector of i32, that moves `bytes` bytes, a power of two up to 16. */
LLVMTypeRef chunk_type(Codegen *cg, unsigned bytes);

/* Begins the access of an op with a register tile, whose units `move` moves, to this block's memory or to
 * that of the rank that the op names; a->memory is NULL after an error. */
void access_open(Codegen *cg, const Op *op, const Access *plan, UnitMover *move,
                 MemoryAccess *a);
/* Locates the slot 0 of the thread that runs, by the tile's layout. */
void access_locate_thread(MemoryAccess *a);
/* Moves the units of a located access one by one, those inside its view. */
void access_move_units(const MemoryAccess *a, LLVMValueRef *words);

/* Locates this thread's slot 0: index[d] (i64) is its place in dimension `d` of
 * the tile. Once for an access. */
void access_locate(MemoryAccess *a, LLVMValueRef *index);

/* Builds the digit thread / weight mod extent, an i32. */
LLVMValueRef emit_thread_digit(Codegen *cg, ThreadDigit digit);
/* Builds the number that the thread's digits make, an i32. */
LLVMValueRef emit_thread_number(Codegen *cg, const ThreadDigits *digits);
/* The share of `thread` (an i32) of the index in `dim` of a tile with layout
 * `l`, an i64. */
LLVMValueRef emit_thread_index(Codegen *cg, const Layout *l, unsigned dim, LLVMValueRef thread);

/* Makes the thread's index a new value for the rest of the region, so that what follows from it is
 * computed again and no registers hold it until then. False after an error. */
bool renew_thread(Codegen *cg, Loc at);

/* The element in `slot`: its first bit, counted from the base; an i64. */
LLVMValueRef access_slot_bit(const MemoryAccess *a, int64_t slot);
/* The address of the byte where the element in `slot`, the first of a unit,
 * begins. */
LLVMValueRef access_unit_pointer(const MemoryAccess *a, int64_t slot);
/* The address of byte `byte` (an i64) of the tensor. */
LLVMValueRef access_pointer(const MemoryAccess *a, LLVMValueRef byte);
/* Builds the place of the element with number `linear` (an i64): swizzle_element. */
LLVMValueRef access_swizzle(const MemoryAccess *a, LLVMValueRef linear);
/* The address of the byte where the element `linear + rest` of a swizzled tensor
 * begins. What `rest` adds above the swizzle's bits stays a constant offset. */
LLVMValueRef access_swizzled_pointer(const MemoryAccess *a, LLVMValueRef linear, int64_t rest);

/* Elements that begin at any bit (emit_bits.c): between memory and the bits of
 * `slot` in `words`. */
void load_bits(const MemoryAccess *a, int64_t slot, LLVMValueRef *words);
void store_bits(const MemoryAccess *a, int64_t slot, LLVMValueRef *words);
/* Loads one element at `bit` (an i64), as the low bits of an i32; reads cg, op, bits, memory
 * and global of `a`. */
LLVMValueRef load_bits_at(const MemoryAccess *a, LLVMValueRef bit);
void store_bits_at(const MemoryAccess *a, LLVMValueRef bit, LLVMValueRef v);

/* Moves the whole tile by ldmatrix or stmatrix (emit_matrix.c); false after an
 * error. */
bool move_matrices(MemoryAccess *a, LLVMValueRef *words);

#endif
