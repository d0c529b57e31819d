/* A tile of a memory tensor while an op reads or writes it. */
#ifndef TILUS_INTERP_TILE_H
#define TILUS_INTERP_TILE_H

#include "interp/state.h"
#include "ir/tile.h"

/* A tile of a view. Each dimension: where in the view it begins, and the extent
 * and stride of the view's dimension it spans. */
typedef struct Tile {
    const Op *op;
    const View *view;
    bool write;
    unsigned rank;
    unsigned dim[LIMIT_RANK];
    int64_t offset[LIMIT_RANK], extent[LIMIT_RANK], stride[LIMIT_RANK];
    int64_t base;           /* the first element, in the dimensions that it does not span */
    const Tensor *index;    /* in dimension `indexed` of the view; NULL: none */
    unsigned indexed;
    int64_t outside_index;  /* in one of those, when outside_dim is one */
    unsigned outside_dim;   /* the view's rank: all are inside */
} Tile;

/* Evaluates the tile's offsets. */
bool tile_begin(Interp *in, const Op *op, const MemoryTile *t, bool write, Tile *tile);

/* The place in a tile of the element in `slot` of `thread`: an index for each
 * dimension. */
static inline const int32_t *tensor_place(const Tensor *t, int64_t thread, int64_t slot)
{
    return t->map->index + (thread * t->slots + slot) * t->map->layout->rank;
}

/* Where the element at `place` of the tile lies: sets `*bit` and gives the
 * view's rank, or gives the view's dimension in which it is outside and sets
 * `*index`, its index there. In an indexed dimension it lies at `row`. */
unsigned tile_locate(const Tile *tile, const int32_t *place, int64_t row, int64_t *bit,
                     int64_t *index);

/* The index in the indexed dimension that `thread` holds for its element in `slot` of a
 * register tile with layout `l`; 0 without an index. */
int64_t tile_row(const Tile *tile, const Layout *l, int64_t thread, int64_t slot);
/* The row-major number of the index's element for the element at `place` of the tile, and
 * such an element, as the first thread that holds it says. */
int64_t tile_index_number(const Tile *tile, const int32_t *place);
int64_t tile_index_element(const Tile *tile, int64_t number);

/* The bits that an element of `width` bits from `bit` on occupies of memory's
 * byte `byte`. */
unsigned byte_mask(int64_t bit, unsigned width, int64_t byte);

/* A note of where the tensor comes from. */
bool view_note_origin(Interp *in, const View *view);

/* Turns the view of a shared tensor to the tensor of the block with this rank, which must have
 * allocated it. */
bool view_turn_to_rank(Interp *in, const Op *op, View *view, int64_t rank);

/* Report an element outside a shared tensor; bytes outside the argument's
 * memory, where elements inside a view may lie; and bits never written. */
bool tile_report_outside(Interp *in, const Tile *tile, unsigned dim, int64_t index);
bool tile_check_buffer(Interp *in, const Tile *tile, int64_t first, int64_t last);
bool tile_check_written(Interp *in, const Tile *tile, int64_t bit, int64_t first,
                        int64_t last);

/* `thread` reads the element at `bit`, inside the view; false after an error. */
bool tile_load(Interp *in, const Tile *tile, int64_t thread, int64_t bit, uint64_t *code);

#endif
