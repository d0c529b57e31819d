/* The texts that a `print` writes, which the interpreter and compiled code share.
 *
 *     acc: f32[2, 3], block (0, 1)          a head, then " (", the block's indices, ")"
 *     [[1, 2, 3],                           before an element: what begins there
 *      [4, 5, 6]]                           after the last one: as many brackets
 *
 *     k: 42, block (0, 1)                   of a number */
#ifndef TILUS_IR_PRINT_OP_H
#define TILUS_IR_PRINT_OP_H

#include "ir/ir.h"
#include "ir/tile.h"
#include "support/text.h"

/* A tensor's elements as they are printed, in row-major order. */
typedef struct PrintShape {
    unsigned rank;
    int64_t extents[LIMIT_RANK];
    int64_t span[LIMIT_RANK];       /* elements of the dimension and those inside it */
    int64_t count;
    DType dtype;
} PrintShape;

/* The shape of the printed tensor or tile of a print with an operand. */
PrintShape print_shape(const Op *op);

/* The tile of memory that `op` prints. One without offsets begins at zeros, made
 * in the module's scratch arena. */
MemoryTile print_tile(Module *m, const Op *op);

/* Returns true when only the block with indices 0 prints. */
bool print_first_block(const Op *op);

/* The label, and the type of a tensor, which the block follows. */
void print_head(Text *out, const Op *op);

/* A text between elements, and its size at most, NUL included. */
enum { PRINT_TEXT_SIZE = 3 * LIMIT_RANK + 4 };

/* The text before the first element; before another one, with which the inner
 * `dims` dimensions begin anew; after the last one. */
void print_open(char text[PRINT_TEXT_SIZE], const PrintShape *s);
void print_separator(char text[PRINT_TEXT_SIZE], const PrintShape *s, unsigned dims);
void print_close(char text[PRINT_TEXT_SIZE], const PrintShape *s);

/* The printf format of an element: of a double, which is exact and, when it is a
 * NaN, positive; or of a long long, unsigned or not. Its digits tell the codes of
 * the type apart. */
const char *print_format(DType t);

/* Register tensors go through shared memory, PRINT_CHUNK elements at a time: bytes
 * of one element there, and of what `op` needs. */
enum { PRINT_CHUNK = 256 };
unsigned print_bytes(DType t);
int64_t print_scratch(const Op *op);

#endif
