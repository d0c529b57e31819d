/* Register layouts: which thread holds which element of a tile.
 *
 * One representation for all (Tilus language paper, section 5): each
 * dimension of `shape` is split into modes, outermost first; the modes of all
 * dimensions, concatenated, are numbered 0, 1, ... . `spatial` lists the modes
 * that number the threads, `local` those that number a thread's slots, both
 * most significant first. A spatial entry may instead be a replica: it numbers
 * threads but belongs to no dimension, so those threads hold the same element.
 *
 *     local(2, 1).spatial(8, 4).local(1, 2)           mma.m16n8k16, operand c
 *     shape [16, 8]   modes 2 8 | 4 2   spatial [1, 2]   local [0, 3]
 *
 *     thread t, slot i  ->  ((i / 2) * 8 + t / 4,  (t % 4) * 2 + i % 2)
 *
 * Layouts are interned in a LayoutTable in canonical form, so that equal
 * functions are equal pointers. Canonical: no mode of extent 1; two modes that
 * are neighbors in one dimension and follow each other in one list are one
 * mode; neighboring replicas are one replica. Immutable once made. */
#ifndef TILUS_TYPES_LAYOUT_H
#define TILUS_TYPES_LAYOUT_H

#include "support/intern.h"
#include "support/limits.h"
#include "support/text.h"

#include <stdbool.h>
#include <stdint.h>

/* Every mode is at least 2, so a layout of a legal size (2^10 threads, 2^16
 * slots) has at most 26 digits; the rest is room for lists before they are
 * brought into canonical form. */
enum { LAYOUT_MODES = LIMIT_MODES };

typedef struct LayoutMode {
    int64_t extent;
    uint8_t dim;
} LayoutMode;

/* An entry of the spatial or local list: a mode, or a replica (mode < 0). */
typedef struct LayoutDigit {
    int64_t extent;
    int16_t mode;
} LayoutDigit;

typedef struct Layout {
    unsigned rank;
    int64_t shape[LIMIT_RANK];
    unsigned mode_count, spatial_count, local_count;
    LayoutMode modes[LAYOUT_MODES];         /* grouped by dim, outermost first */
    LayoutDigit spatial[LAYOUT_MODES];
    LayoutDigit local[LAYOUT_MODES];
    int64_t threads;                        /* product of spatial extents */
    int64_t slots;                          /* product of local extents */
} Layout;

typedef struct LayoutTable {
    Arena *arena;
    InternSet set;
} LayoutTable;

void layout_table_init(LayoutTable *table, Arena *arena);

/* Makers return the interned layout, or NULL with `*why` set to the reason in
 * words (on the table's arena): an extent below 1, too many modes, a size past
 * LIMIT_THREADS threads or LIMIT_ELEMENTS_A_THREAD slots, bad mode numbers. */

/* local(...), spatial(...): slots or threads in row-major order. */
const Layout *layout_local(LayoutTable *t, unsigned rank, const int64_t *shape, const char **why);
const Layout *layout_spatial(LayoutTable *t, unsigned rank, const int64_t *shape, const char **why);

/* column_local(...), column_spatial(...): the first dimension varies fastest. */
const Layout *layout_column_local(LayoutTable *t, unsigned rank, const int64_t *shape, const char **why);
const Layout *layout_column_spatial(LayoutTable *t, unsigned rank, const int64_t *shape, const char **why);

/* `n` threads that hold the same single element, of rank `rank`. */
const Layout *layout_replicate(LayoutTable *t, unsigned rank, int64_t n, const char **why);

/* The product f.g (Tilus VM paper, section 4.2): each element of f is a tile
 * laid out by g. Ranks must be equal. Associative; layout_local over a shape
 * of ones is the identity. */
const Layout *layout_product(LayoutTable *t, const Layout *f, const Layout *g, const char **why);

/* Right division h / g: the f with f.g = h, or NULL with the reason (`*why`). */
const Layout *layout_divide(LayoutTable *t, const Layout *h, const Layout *g, const char **why);

/* Left division f \ h: the g with f.g = h, or NULL with the reason. */
const Layout *layout_divide_left(LayoutTable *t, const Layout *h, const Layout *f,
                                 const char **why);

/* `l` without the `count` dimensions `dims`: layout_reduce, after which they
 * vanish from the shape, too (Tilus VM paper, appendix B.2). At least one
 * dimension must stay. */
const Layout *layout_drop(LayoutTable *t, const Layout *l, unsigned count, const int64_t *dims,
                          const char **why);

/* Dimension d of the result is dimension order[d] of `l`; `order` has an entry
 * for each dimension. */
const Layout *layout_permute(LayoutTable *t, const Layout *l, unsigned count,
                             const int64_t *order, const char **why);

/* `l` under another shape of as many elements, which keep their row-major numbers.
 * So dimensions of extent 1 come and go, neighbors become one, and one splits where
 * its modes do; other splits are refused. */
const Layout *layout_reshape(LayoutTable *t, const Layout *l, unsigned rank,
                             const int64_t *shape, const char **why);

/* f's dimensions, then g's: for each element of f a tile that g lays out, as
 * in the product of f with ones after its shape and g with ones before. */
const Layout *layout_concat(LayoutTable *t, const Layout *f, const Layout *g,
                            const char **why);

/* The layout in which the threads of `l` hold a tile of `shape` (one extent
 * for each dimension) that begins at a multiple of `shape`: their slots in
 * that tile, in order. Refused where a thread would have none, or where the
 * tile's border cuts a mode unevenly. */
const Layout *layout_slice(LayoutTable *t, const Layout *l, unsigned count,
                           const int64_t *shape, const char **why);

/* The layout given by its four attributes: dims' modes are consecutive in
 * mode_shape and multiply to shape[d]; spatial_modes[i] >= 0 names a mode and
 * < 0 means a replica of -spatial_modes[i] threads. Each mode of extent > 1
 * stands once in spatial_modes or local_modes. */
const Layout *layout_from_modes(LayoutTable *t, unsigned rank, const int64_t *shape,
                                unsigned mode_count, const int64_t *mode_shape,
                                unsigned spatial_count, const int64_t *spatial_modes,
                                unsigned local_count, const int64_t *local_modes,
                                const char **why);

/* The layout after a reduction over the dimensions of the bit mask `dims`, which
 * get extent 1: threads that differed there hold the same element now, slots
 * that differed there are one. */
const Layout *layout_reduce(LayoutTable *t, const Layout *l, uint32_t dims, const char **why);

/* The layout of the groups into which extents of `l` are cut, `shape` of them, which
 * divides l's: each thread holds the groups of the elements that it holds in `l`.
 * Refused where groups cut a mode unevenly. */
const Layout *layout_group(LayoutTable *t, const Layout *l, const int64_t *shape,
                           const char **why);

/* Returns true when each thread holds in `from` the elements that it holds in `to`, where
 * each element of `from` repeats to as many, side by side, as fill the extents of `to`, in
 * a slot that does not depend on the thread. Otherwise names a thread whose `from` lacks
 * the element of slot 0 in `to`. Ranks and threads are equal, and layout_group gives a
 * layout of from's shape. */
bool layout_broadcasts(const Layout *from, const Layout *to, int64_t *thread);

/* The slot in `from` of the element in `slot` of `to`, when layout_broadcasts. */
int64_t layout_broadcast_slot(const Layout *from, const Layout *to, int64_t slot);

/* The index of the element in `slot` of `thread`; index[rank] is written. */
void layout_index(const Layout *l, int64_t thread, int64_t slot, int64_t *index);

/* The inverse of layout_index: the element's slot, and the least thread that holds it. */
void layout_place(const Layout *l, const int64_t *index, int64_t *thread, int64_t *slot);

/* The weight of the digit of mode `mode`, in the thread's number if `*spatial`, else in the
 * slot's. */
int64_t layout_mode_weight(const Layout *l, unsigned mode, bool *spatial);

/* The number of threads that hold each element (1 without replicas). */
int64_t layout_replicas(const Layout *l);

/* Consecutive slots that walk along dimension `dim` by steps of one: for each
 * slot s that is a multiple of the result r, slots s .. s + r - 1 hold
 * elements whose index in `dim` grows by one, starting at a multiple of r, and
 * is equal in the other dimensions. At least 1. */
int64_t layout_run(const Layout *l, unsigned dim);

/* Appends the layout as a product of primitives when there is one, otherwise
 * as register_layout(shape = [..], mode_shape = [..], spatial_modes = [..],
 * local_modes = [..]). Parsing the text gives the same layout. */
void layout_print(Text *text, const Layout *l);

/* Append a drawing: the thread and the slot of each element. Two
 * dimensions are a grid, more are a grid for each index of the others; meant
 * for at most LAYOUT_DRAWN elements. */
enum { LAYOUT_DRAWN = 1 << 16 };
void layout_draw_text(Text *text, const Layout *l);
void layout_draw_svg(Text *text, const Layout *l);

#endif
