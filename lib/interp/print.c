/* print: what lib/ir/print_op.h spells, for the caller's function. */
#include "interp/tile.h"
#include "ir/op_attrs.h"
#include "ir/print_op.h"
#include "ir/tile.h"
#include "support/numeral.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void say(const Interp *in, const char *text)
{
    const tilus_interpret_options *options = in->options;
    if (options && options->print)
        options->print(options->printer, text, strlen(text));
}

/* The head, `rest` after it, and the block. */
static void say_head(Interp *in, const Op *op, const char *rest)
{
    ArenaMark mark = arena_mark(in->arena);
    Text text;
    text_init(&text, in->arena);
    print_head(&text, op);
    text_printf(&text, "%s, %s\n", rest, interp_running_name(in));
    say(in, text_string(&text));
    arena_reset(in->arena, mark);
}

/* Before element number `e`. */
static void say_separator(const Interp *in, const PrintShape *s, int64_t e)
{
    char text[PRINT_TEXT_SIZE];
    unsigned dims = 0;
    while (dims < s->rank && e % s->span[s->rank - dims - 1] == 0)
        dims++;
    if (e)
        print_separator(text, s, dims);
    else
        print_open(text, s);
    say(in, text);
}

/* The value of an integer's or bool's code. */
static int64_t integer_value(DType t, uint64_t code)
{
    unsigned unused = 64 - dtype_bits(t);
    if (dtype_info[t].kind == DKIND_INT)
        return (int64_t)(code << unused) >> unused;
    return dtype_info[t].kind == DKIND_BOOL ? code != 0 : (int64_t)code;
}

enum { LONGEST = 32 };

/* The number that a code stands for. */
static void value_text(char text[LONGEST], DType t, uint64_t code)
{
    double number = dtype_is_float(t) ? dtype_decode(t, code) : 0;
    number = isnan(number) ? fabs((double)NAN) : number;
    if (dtype_is_float(t))
        numeral_format(text, LONGEST, print_format(t), number);
    else
        snprintf(text, LONGEST, print_format(t), (long long)integer_value(t, code));
}

static void say_element(const Interp *in, const PrintShape *s, int64_t e, uint64_t code)
{
    char text[LONGEST];
    say_separator(in, s, e);
    value_text(text, s->dtype, code);
    say(in, text);
    if (e + 1 < s->count)
        return;
    char close[PRINT_TEXT_SIZE];
    print_close(close, s);
    say(in, close);
}

/* ---- what is printed --------------------------------------------------- */

static bool print_number(Interp *in, const Op *op)
{
    char text[LONGEST];
    const Value *v = value_float_scalar(op);
    int64_t value;
    if (v)
        value_text(text, v->type->dtype, (uint64_t)value_binding(v)->integer);
    else if (interp_evaluate(in, op, op_expr(op, ATTR_VALUE), &value))
        snprintf(text, sizeof text, "%lld", (long long)value);
    else
        return false;
    say_head(in, op, text);
    return true;
}

static bool print_register(Interp *in, const Op *op)
{
    const Tensor *t = value_tensor(op->operands[0]);
    PrintShape s = print_shape(op);
    if (!interp_operands_defined(in, op))
        return false;
    say_head(in, op, "");
    for (int64_t e = 0; e < s.count; e++) {
        Place place = t->map->place[e];
        say_element(in, &s, e, tensor_get(t, place.thread, place.slot));
    }
    return true;
}

/* The code of the tile's element number `e`: zero outside a global view. Thread 0
 * reads. */
static bool read_element(Interp *in, const Tile *tile, const PrintShape *s, int64_t e,
                         uint64_t *code)
{
    int32_t place[LIMIT_RANK];
    int64_t bit, index = 0;
    for (unsigned d = 0; d < s->rank; d++)
        place[d] = (int32_t)(e % s->span[d] / (s->span[d] / s->extents[d]));
    unsigned outside = tile_locate(tile, place, 0, &bit, &index);
    *code = 0;
    if (outside == tile->view->rank)
        return tile_load(in, tile, 0, bit, code);
    return !tile->view->memory->shared || tile_report_outside(in, tile, outside, index);
}

static bool print_memory(Interp *in, const Op *op)
{
    PrintShape s = print_shape(op);
    ArenaMark mark = arena_mark(in->arena);
    MemoryTile t = print_tile(in->program->module, op);
    Tile tile;
    if (!tile_begin(in, op, &t, false, &tile))
        return false;
    arena_reset(in->arena, mark);
    if (!race_begin(in, op))
        return false;
    say_head(in, op, "");
    for (int64_t e = 0; e < s.count; e++) {
        uint64_t code;
        if (!read_element(in, &tile, &s, e, &code))
            return false;
        say_element(in, &s, e, code);
    }
    return true;
}

bool interp_print(Interp *in, const Op *op)
{
    bool first = !in->block[0] && !in->block[1] && !in->block[2];
    if (!first && print_first_block(op))
        return true;
    if (!op->operand_count)
        return print_number(in, op);
    return op->operands[0]->type->kind == TYPE_REG ? print_register(in, op)
                                                   : print_memory(in, op);
}
