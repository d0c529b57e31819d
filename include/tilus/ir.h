/* Reading and rewriting the IR of a module: programs, blocks, ops, values, types, layouts
 * (docs/ir-api.md explains them with examples).
 *
 *   module -- program -- block (its body) -- op -- value (a result)
 *                                             `-- block (of for, while, if, thread_group) -- ...
 *
 * Handles belong to the module, which is freed as a whole; that of an erased op stays safe to
 * pass, and is refused. Types, layouts and expressions are unique in their module: equal ones
 * are one pointer. A module and its handles belong to one thread at a time.
 *
 * Functions that read take any handle, NULL too, for which they return NULL, 0 or false.
 * Functions that build or change return false or NULL after an error, which the module's diag
 * then holds with the place in the program text, and have changed nothing; without one where
 * the handle is NULL or an erased op's, and when memory runs out. What an op needs by itself,
 * the number and kinds of its operands and results, its attributes, is checked at once;
 * tilus_verify checks the rest, as that definitions come before uses and types fit. Passes,
 * engines and compiling verify a module that was changed and not verified since.
 *
 * A string that is returned as `char *` is the caller's, who frees it with tilus_free. */
#ifndef TILUS_IR_H
#define TILUS_IR_H

#include "tilus/tilus.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tilus_program tilus_program;
typedef struct tilus_block tilus_block;     /* ops in order: a program's body, an op's region */
typedef struct tilus_op tilus_op;
typedef struct tilus_value tilus_value;     /* an op's result, a block's argument, a parameter */
typedef struct tilus_type tilus_type;
typedef struct tilus_layout tilus_layout;
typedef struct tilus_expr tilus_expr;       /* of integers and scalar values: %n * 16 + 1 */

/* ---- programs ---------------------------------------------------------- */

/* The i-th of tilus_program_count(module) programs, NULL past the last; and the one of this
 * name, without @, or NULL. */
TILUS_API tilus_program *tilus_program_at(tilus_module *module, size_t i);
TILUS_API tilus_program *tilus_program_find(tilus_module *module, const char *name);

/* Its module; its name without @; its body; how many warps run a block. */
TILUS_API tilus_module *tilus_program_module(const tilus_program *program);
TILUS_API const char *tilus_program_symbol(const tilus_program *program);
TILUS_API tilus_block *tilus_program_body(const tilus_program *program);
TILUS_API unsigned tilus_program_warps(const tilus_program *program);

/* Its parameters, and the extents of its grid, of 1 to 3 dimensions; NULL past the last. */
TILUS_API size_t tilus_program_parameter_count(const tilus_program *program);
TILUS_API tilus_value *tilus_program_parameter(const tilus_program *program, size_t i);
TILUS_API size_t tilus_program_grid_rank(const tilus_program *program);
TILUS_API const tilus_expr *tilus_program_grid(const tilus_program *program, size_t i);

/* ---- blocks ---------------------------------------------------------------- */

/* The op that it is a region of, NULL for a program's body; its program. */
TILUS_API tilus_op *tilus_block_parent(const tilus_block *block);
TILUS_API tilus_program *tilus_block_program(const tilus_block *block);

/* Its first and last op, NULL when it is empty. The last one of a region is a `yield`. */
TILUS_API tilus_op *tilus_block_first(const tilus_block *block);
TILUS_API tilus_op *tilus_block_last(const tilus_block *block);

/* Its arguments: of `for` the index and the carried values, of `while` these. */
TILUS_API size_t tilus_block_argument_count(const tilus_block *block);
TILUS_API tilus_value *tilus_block_argument(const tilus_block *block, size_t i);

/* How many threads run its ops: the block's of the launch, or a thread_group's. */
TILUS_API int64_t tilus_block_threads(const tilus_block *block);

typedef enum tilus_walk {
    TILUS_WALK_ON,
    TILUS_WALK_SKIP,        /* not into the op's regions */
    TILUS_WALK_STOP
} tilus_walk;

/* Calls visit(op, data) for each op of the block, and of regions in it, in order, an op before
 * its regions, once. The visitor may change anything, and erase or move that op and others;
 * ops that it puts before that op are not visited. It is not left by an exception or longjmp.
 * False when a visit returned TILUS_WALK_STOP. */
TILUS_API bool tilus_block_walk(tilus_block *block,
                                tilus_walk (*visit)(tilus_op *op, void *data), void *data);

/* ---- ops ------------------------------------------------------------------- */

/* Its name, "load_global", and its number among the ops, which another version of the library
 * may number otherwise; static storage. */
TILUS_API const char *tilus_op_name(const tilus_op *op);
TILUS_API unsigned tilus_op_code(const tilus_op *op);

/* The number of the op called `name`, and the name of number `code`; TILUS_NO_CODE, and NULL,
 * when there is none. Thread safe. */
#define TILUS_NO_CODE (~0u)
TILUS_API unsigned tilus_op_find_code(const char *name);
TILUS_API const char *tilus_op_code_name(unsigned code);

/* Effects of an op on what other ops see. */
typedef enum tilus_effect {
    TILUS_EFFECT_PURE,      /* it may be copied, merged, erased */
    TILUS_EFFECT_ALLOCATES, /* it may be erased, never merged */
    TILUS_EFFECT_READS,     /* it may be erased, not moved across writes and barriers */
    TILUS_EFFECT_WRITES,
    TILUS_EFFECT_BARRIER,
    TILUS_EFFECT_EXITS,     /* it may end the block */
    TILUS_EFFECT_CONTROL    /* it has regions, or ends one */
} tilus_effect;
TILUS_API tilus_effect tilus_op_effect(const tilus_op *op);

/* Its neighbors in its block, NULL at the ends; its block, NULL once it is erased; the op
 * around it, NULL in a program's body; its program. */
TILUS_API tilus_op *tilus_op_next(const tilus_op *op);
TILUS_API tilus_op *tilus_op_previous(const tilus_op *op);
TILUS_API tilus_block *tilus_op_block(const tilus_op *op);
TILUS_API tilus_op *tilus_op_parent(const tilus_op *op);
TILUS_API tilus_program *tilus_op_program(const tilus_op *op);

/* Its operands, results and regions; NULL past the last. */
TILUS_API size_t tilus_op_operand_count(const tilus_op *op);
TILUS_API tilus_value *tilus_op_operand(const tilus_op *op, size_t i);
TILUS_API size_t tilus_op_result_count(const tilus_op *op);
TILUS_API tilus_value *tilus_op_result(const tilus_op *op, size_t i);
TILUS_API size_t tilus_op_region_count(const tilus_op *op);
TILUS_API tilus_block *tilus_op_region(const tilus_op *op, size_t i);

/* The place in the text that it is from: a file, NULL when it has no name, a line and a column
 * from 1. An op that is built has the place of the op beside which it was built. */
TILUS_API const char *tilus_op_file(const tilus_op *op);
TILUS_API unsigned tilus_op_line(const tilus_op *op);
TILUS_API unsigned tilus_op_column(const tilus_op *op);

/* ---- attributes ------------------------------------------------------------- */

typedef enum tilus_attr_kind {
    TILUS_ATTR_INTEGER,     /* `integer` */
    TILUS_ATTR_INTEGERS,    /* `integers`, `count` of them */
    TILUS_ATTR_EXPR,        /* `expr`; of unroll NULL: all iterations */
    TILUS_ATTR_EXPRS,       /* `exprs`, `count` of them */
    TILUS_ATTR_NUMBER,      /* `number`, integers above 2^53 rounded */
    TILUS_ATTR_WORD,        /* `text`, one of the attribute's words: "max", "true" */
    TILUS_ATTR_TEXT         /* `text`, one line of UTF-8 without quotes */
} tilus_attr_kind;

/* An attribute of an op. Its name is that of the op reference (tilus-opt --list-ops) in small
 * letters: "offsets", "kind", "upper". Members that the kind does not name are 0. */
typedef struct tilus_attr {
    const char *name;
    tilus_attr_kind kind;
    int64_t integer;
    const int64_t *integers;
    const tilus_expr *expr;
    const tilus_expr *const *exprs;
    size_t count;
    double number;
    const char *text;
} tilus_attr;

/* The i-th attribute, and the one called `name`, which stay until the op is changed; false
 * when there is none. */
TILUS_API size_t tilus_op_attr_count(const tilus_op *op);
TILUS_API bool tilus_op_attr_at(const tilus_op *op, size_t i, tilus_attr *attr);
TILUS_API bool tilus_op_attr(const tilus_op *op, const char *name, tilus_attr *attr);

/* Adds an attribute, or replaces the one of its name; copies what it points to. An error: an
 * attribute that the op does not have, of another kind, with more entries than a tensor may
 * have dimensions, a word that it does not know, a text with quotes, of several lines or not of
 * UTF-8, an expression of another module or of floats. */
TILUS_API bool tilus_op_set_attr(tilus_op *op, const tilus_attr *attr);

/* Takes the attribute away; true when there was none. An error: the op needs it. */
TILUS_API bool tilus_op_remove_attr(tilus_op *op, const char *name);

/* ---- values ----------------------------------------------------------------- */

/* Its type; its name without %, or NULL; its number among the results, arguments or
 * parameters. */
TILUS_API const tilus_type *tilus_value_type(const tilus_value *value);
TILUS_API const char *tilus_value_name(const tilus_value *value);
TILUS_API size_t tilus_value_index(const tilus_value *value);

/* The op whose result it is, the block whose argument, the program whose parameter; two of
 * them are NULL. */
TILUS_API tilus_op *tilus_value_definition(const tilus_value *value);
TILUS_API tilus_block *tilus_value_block(const tilus_value *value);
TILUS_API tilus_program *tilus_value_program(const tilus_value *value);

/* Facts that a parameter promises: the range and a divisor of an integer, the alignment of a
 * pointer in bytes. Of other values those that always hold. */
TILUS_API int64_t tilus_value_least(const tilus_value *value);
TILUS_API int64_t tilus_value_most(const tilus_value *value);
TILUS_API int64_t tilus_value_divisor(const tilus_value *value);
TILUS_API int64_t tilus_value_alignment(const tilus_value *value);

/* The number that fills a register tensor, when the value is an `allocate_register` of one;
 * false else. */
TILUS_API bool tilus_value_constant(const tilus_value *value, double *number);

/* Counts the ops that use the value: as operand, in expressions of attributes, in the extents
 * of a result; or calls visit(op, data) for each, in order, which may change that op, until it
 * returns false; false then. Both walk the program. */
TILUS_API size_t tilus_value_user_count(const tilus_value *value);
TILUS_API bool tilus_value_walk_users(tilus_value *value,
                                      bool (*visit)(tilus_op *user, void *data), void *data);

/* ---- expressions ------------------------------------------------------------- */

typedef enum tilus_expr_kind {
    TILUS_EXPR_CONSTANT,
    TILUS_EXPR_VALUE,
    TILUS_EXPR_OPERATION
} tilus_expr_kind;

/* Its kind. */
TILUS_API tilus_expr_kind tilus_expr_kind_of(const tilus_expr *expr);
/* The constant, 0 for another kind; the value, or NULL. */
TILUS_API int64_t tilus_expr_integer(const tilus_expr *expr);
TILUS_API tilus_value *tilus_expr_value(const tilus_expr *expr);
/* The operator's name: or, and, not, eq, ne, lt, le, gt, ge, add, sub, mul, div, mod, neg,
 * ceil_div, min, max; NULL for another kind. Its operands, 1 or 2; NULL past the last. */
TILUS_API const char *tilus_expr_operator(const tilus_expr *expr);
TILUS_API const tilus_expr *tilus_expr_operand(const tilus_expr *expr, size_t i);

/* The expression of an integer, and of a scalar value, which is of the value's module. An
 * error: a value that is no scalar. Floats stand only alone, as the value of splat and print. */
TILUS_API const tilus_expr *tilus_expr_of_integer(tilus_module *module, int64_t integer);
TILUS_API const tilus_expr *tilus_expr_of_value(tilus_value *value);
/* `name` applied to `a`, and to `b` where it takes two; constants fold. An error: another
 * name or number of operands, an overflow of 64 bits, a division by zero, an expression that
 * is too large, one of another module. */
TILUS_API const tilus_expr *tilus_expr_apply(tilus_module *module, const char *name,
                                             const tilus_expr *a, const tilus_expr *b);
/* As program text, with names of values where they have one. */
TILUS_API char *tilus_expr_print(tilus_module *module, const tilus_expr *expr);

/* ---- types ------------------------------------------------------------------- */

typedef enum tilus_kind {
    TILUS_KIND_SCALAR,      /* i32 */
    TILUS_KIND_POINTER,     /* ptr<f16> */
    TILUS_KIND_REGISTER,    /* f16[16, 8] @ spatial(8, 4).local(2, 2) */
    TILUS_KIND_SHARED,      /* f16[64, 64] shared */
    TILUS_KIND_GLOBAL,      /* f16[%m, 64] global */
    TILUS_KIND_MBARRIER     /* mbarrier[2] */
} tilus_kind;

/* Its kind. */
TILUS_API tilus_kind tilus_type_kind(const tilus_type *type);
/* The element type, "f6e3m2"; of mbarriers "u64". Static storage. */
TILUS_API const char *tilus_type_element(const tilus_type *type);
/* How many dimensions it has, 0 for scalars and pointers; an extent, -1 when it is not
 * constant or there is no such dimension; an extent or stride, in elements, as expression, NULL
 * when there is no such dimension. A stride is NULL where the tensor is row-major, too. */
TILUS_API size_t tilus_type_rank(const tilus_type *type);
TILUS_API int64_t tilus_type_extent(const tilus_type *type, size_t dimension);
TILUS_API const tilus_expr *tilus_type_extent_expr(const tilus_type *type, size_t dimension);
TILUS_API const tilus_expr *tilus_type_stride_expr(const tilus_type *type, size_t dimension);
/* Returns the number of its elements; -1 when an extent is not constant or they are 2^63 or
 * more. */
TILUS_API int64_t tilus_type_elements(const tilus_type *type);
/* The layout of a register tensor, or NULL; true when infer-layouts has yet to choose the
 * layout or the swizzle. */
TILUS_API const tilus_layout *tilus_type_layout(const tilus_type *type);
TILUS_API bool tilus_type_is_open(const tilus_type *type);
/* Storage of a register tensor: the T of storage order packed(T), or NULL; true for sums of
 * products that may be in flight; the exponent of the deferred scale at an index of `rank`
 * entries, 0 without. */
TILUS_API const char *tilus_type_storage_order(const tilus_type *type);
TILUS_API bool tilus_type_is_pending(const tilus_type *type);
TILUS_API int tilus_type_exponent(const tilus_type *type, const int64_t *index);
/* The numbers of a shared tensor's swizzle(BITS, BASE, SHIFT); false without one. */
TILUS_API bool tilus_type_swizzle(const tilus_type *type, unsigned *bits, unsigned *base,
                                  unsigned *shift);

/* A type of this kind as program text has it: "f16[16, 8] @ spatial(8, 4).local(2, 2)". An
 * error: what the parser refuses, at <type>:line:column, and names of values. */
TILUS_API const tilus_type *tilus_type_parse(tilus_module *module, tilus_kind kind,
                                             const char *text);
/* A shared or global tensor, row-major where `strides` is NULL. An error: another kind,
 * an element type or rank that there is not, expressions of another module, extents and strides
 * of a shared tensor that are not constant, extents below 1. */
TILUS_API const tilus_type *tilus_type_memory(tilus_module *module, tilus_kind kind,
                                              const char *element, size_t rank,
                                              const tilus_expr *const *extents,
                                              const tilus_expr *const *strides);
/* The register tensor's type with another element type, in plain order, complete and not
 * scaled; and with another layout, NULL: left open. An error: a type of another kind or
 * module, an unknown element type, a layout of another shape. */
TILUS_API const tilus_type *tilus_type_with_element(tilus_module *module, const tilus_type *type,
                                                    const char *element);
TILUS_API const tilus_type *tilus_type_with_layout(tilus_module *module, const tilus_type *type,
                                                   const tilus_layout *layout);
/* As program text. */
TILUS_API char *tilus_type_print(tilus_module *module, const tilus_type *type);

/* ---- layouts ------------------------------------------------------------------ */

/* How many dimensions it has; an extent, 0 past the last; the threads that hold the tile; how
 * many elements, slots, each holds; how many threads hold each element. */
TILUS_API size_t tilus_layout_rank(const tilus_layout *layout);
TILUS_API int64_t tilus_layout_extent(const tilus_layout *layout, size_t dimension);
TILUS_API int64_t tilus_layout_threads(const tilus_layout *layout);
TILUS_API int64_t tilus_layout_slots(const tilus_layout *layout);
TILUS_API int64_t tilus_layout_replicas(const tilus_layout *layout);

/* Gives the index, of `rank` entries, of the element in `slot` of `thread`; false when there is
 * no such thread or slot. */
TILUS_API bool tilus_layout_element(const tilus_layout *layout, int64_t thread, int64_t slot,
                                    int64_t *index);
/* The inverse: the slot that holds the element, and the first thread that does; false when
 * there is no such element. */
TILUS_API bool tilus_layout_place(const tilus_layout *layout, const int64_t *index,
                                  int64_t *thread, int64_t *slot);
/* How many consecutive slots walk along the dimension by steps of one, from multiples of that
 * number on; at least 1, 0 when there is no such dimension. */
TILUS_API int64_t tilus_layout_run(const tilus_layout *layout, size_t dimension);

/* Each of these gives a layout of the module. An error: what the algebra refuses, in its
 * words; layouts of another module. Layouts of a module are equal when their pointers are.
 *
 * Parsed text: "local(2, 1).spatial(8, 4)". f.g: each element of f is a tile that g lays out.
 * The f with f.g = h, and the g. */
TILUS_API const tilus_layout *tilus_layout_parse(tilus_module *module, const char *text);
TILUS_API const tilus_layout *tilus_layout_compose(tilus_module *module, const tilus_layout *f,
                                                   const tilus_layout *g);
TILUS_API const tilus_layout *tilus_layout_divide(tilus_module *module, const tilus_layout *h,
                                                  const tilus_layout *g);
TILUS_API const tilus_layout *tilus_layout_divide_left(tilus_module *module,
                                                       const tilus_layout *h,
                                                       const tilus_layout *f);
/* f's dimensions, then g's. Dimension d of the result is dimension order[d]. Under another
 * shape of as many elements. After a reduction over the dimensions of the bit mask, which get
 * extent 1; and without these dimensions. A tile of `shape` that begins at a multiple of it. */
TILUS_API const tilus_layout *tilus_layout_concat(tilus_module *module, const tilus_layout *f,
                                                  const tilus_layout *g);
TILUS_API const tilus_layout *tilus_layout_permute(tilus_module *module,
                                                   const tilus_layout *layout,
                                                   const int64_t *order, size_t count);
TILUS_API const tilus_layout *tilus_layout_reshape(tilus_module *module,
                                                   const tilus_layout *layout,
                                                   const int64_t *shape, size_t rank);
TILUS_API const tilus_layout *tilus_layout_reduce(tilus_module *module,
                                                  const tilus_layout *layout, uint32_t dimensions);
TILUS_API const tilus_layout *tilus_layout_drop(tilus_module *module, const tilus_layout *layout,
                                                uint32_t dimensions);
TILUS_API const tilus_layout *tilus_layout_slice(tilus_module *module, const tilus_layout *layout,
                                                 const int64_t *shape, size_t rank);
/* As program text. NULL when memory runs out. */
TILUS_API char *tilus_layout_print(const tilus_layout *layout);

/* ---- building ------------------------------------------------------------------ */

/* An op to be built, at one place: before or after an op, or at the end of a block, before the
 * `yield` that ends a region. */
typedef struct tilus_op_description {
    size_t struct_size;                     /* sizeof(tilus_op_description) */
    const char *name;                       /* "abs" */
    tilus_value *const *operands;
    size_t operand_count;
    const tilus_type *const *results;       /* a type for each */
    size_t result_count;
    const tilus_attr *attrs;
    size_t attr_count;
    tilus_op *before, *after;               /* one of these three */
    tilus_block *in;
} tilus_op_description;

/* Builds it. The regions of for, while, if and thread_group are made with their arguments (for:
 * the index, i64, then those of the operands' types) and a `yield`: of `for` and `while` of
 * the carried values, of `if` without values, to be set with tilus_op_set_operands. An error:
 * an unknown name, a `yield`, an operand of another module or that was erased; a wrong number
 * or kind of operands or results; an attribute as of tilus_op_set_attr, or one that the op
 * needs; not one place, or one after a yield; regions nested deeper than
 * tilus_limit_at's "nesting". */
TILUS_API tilus_op *tilus_op_build(const tilus_op_description *description);

/* Builds an `allocate_register` of `number` before an op, and returns its result. An error:
 * a type that is no register tensor; tilus_verify finds a number that the type does not hold. */
TILUS_API tilus_value *tilus_value_build_constant(tilus_op *before, const tilus_type *type,
                                                  double number);

/* ---- changing ------------------------------------------------------------------- */

/* Sets operand `i`; and all operands of a `yield`, which may have any number. An error: no such
 * operand, an operand of another module or kind, another op. */
TILUS_API bool tilus_op_set_operand(tilus_op *op, size_t i, tilus_value *value);
TILUS_API bool tilus_op_set_operands(tilus_op *op, tilus_value *const *operands, size_t count);

/* Gives a result, or an argument of a block, another type of its kind. An error: a
 * parameter, another kind or module. */
TILUS_API bool tilus_value_set_type(tilus_value *value, const tilus_type *type);
/* Names a value, without %; NULL: it is numbered. The printer makes equal names different. An
 * error: what is no name. */
TILUS_API bool tilus_value_set_name(tilus_value *value, const char *name);

/* Makes all users of `from`, except the op `except` (or NULL), use `to`. The program's grid
 * keeps its parameters. An error: values of two types or programs. */
TILUS_API bool tilus_value_replace_uses(tilus_value *from, tilus_value *to,
                                        const tilus_op *except);

/* Erases an op with its regions. An error: a value of it is used elsewhere; a `yield`. */
TILUS_API bool tilus_op_erase(tilus_op *op);
/* Makes the users of each result use values[i] instead, and erases the op: one for each
 * result. */
TILUS_API bool tilus_op_replace(tilus_op *op, tilus_value *const *values, size_t count);

/* Moves an op with its regions before or after another one of the same program. An error: a
 * `yield`, a place after a yield or inside of the op itself, regions nested too deep. */
TILUS_API bool tilus_op_move_before(tilus_op *op, tilus_op *place);
TILUS_API bool tilus_op_move_after(tilus_op *op, tilus_op *place);

/* Copies an op with its regions before another one of the same program; copies of shared
 * tensors lose their attribute `offset`. Errors as of a move. */
TILUS_API tilus_op *tilus_op_clone(tilus_op *op, tilus_op *before);

/* ---- verifying and reporting ------------------------------------------------------ */

/* Checks all rules of the language that the verifier knows: it is true when the module could
 * be text that tilus_parse takes. Errors are in the module's diag. */
TILUS_API bool tilus_verify(tilus_module *module);

/* Adds a message at the op's place to the module's diag. An error fails the pass that gives
 * it, a note belongs to the message before it. A remark goes where tilus_pass_options sends
 * those of the pass that runs, as of what it chose, or of what it missed; outside of passes it
 * is dropped. */
TILUS_API void tilus_op_error(tilus_op *op, const char *text);
TILUS_API void tilus_op_note(tilus_op *op, const char *text);
TILUS_API void tilus_op_remark(tilus_op *op, const char *text);
TILUS_API void tilus_op_remark_missed(tilus_op *op, const char *text);

#ifdef __cplusplus
}
#endif

#endif
