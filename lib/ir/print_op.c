#include "ir/print_op.h"

#include "ir/op_attrs.h"
#include "ir/tile.h"

#include <string.h>

PrintShape print_shape(const Op *op)
{
    const Type *t = op->operands[0]->type;
    const Attr *shape = op_attr(op, ATTR_SHAPE);
    PrintShape s = {.rank = shape ? shape->count : t->rank, .count = 1, .dtype = t->dtype};
    for (unsigned d = s.rank; d-- > 0;) {
        s.extents[d] = shape ? shape->ints[d] : type_extent(t, d);
        s.count *= s.extents[d];
        s.span[d] = s.count;
    }
    return s;
}

MemoryTile print_tile(Module *m, const Op *op)
{
    return memory_tile_with_offsets(m, op_memory_tile(op));
}

bool print_first_block(const Op *op)
{
    return print_blocks(op) == BLOCKS_FIRST;
}

void print_head(Text *out, const Op *op)
{
    text_printf(out, "%s: ", op_attr(op, ATTR_LABEL)->text);
    if (!op->operand_count)
        return;
    PrintShape s = print_shape(op);
    text_printf(out, "%s[", dtype_name(s.dtype));
    for (unsigned d = 0; d < s.rank; d++)
        text_printf(out, "%s%lld", d ? ", " : "", (long long)s.extents[d]);
    text_char(out, ']');
}

/* Adds `times` characters at `text`; returns their end. */
static char *repeat(char *text, char c, unsigned times)
{
    memset(text, c, times);
    text[times] = '\0';
    return text + times;
}

void print_open(char text[PRINT_TEXT_SIZE], const PrintShape *s)
{
    repeat(text, '[', s->rank);
}

void print_separator(char text[PRINT_TEXT_SIZE], const PrintShape *s, unsigned dims)
{
    if (!dims) {
        strcpy(text, ", ");
        return;
    }
    text = repeat(text, ']', dims);
    text = repeat(text, ',', 1);
    text = repeat(text, '\n', 1);
    text = repeat(text, ' ', s->rank - dims);
    repeat(text, '[', dims);
}

void print_close(char text[PRINT_TEXT_SIZE], const PrintShape *s)
{
    repeat(repeat(text, ']', s->rank), '\n', 1);
}

const char *print_format(DType t)
{
    switch (dtype_info[t].kind) {
    case DKIND_FLOAT: return dtype_bits(t) == 64 ? "%.17g" : "%.9g";
    case DKIND_INT: return "%lld";
    default: return "%llu";
    }
}

unsigned print_bytes(DType t)
{
    return dtype_bits(t) > 32 ? 8 : 4;
}

int64_t print_scratch(const Op *op)
{
    if (!op->operand_count || op->operands[0]->type->kind != TYPE_REG)
        return 0;
    PrintShape s = print_shape(op);
    return (s.count < PRINT_CHUNK ? s.count : PRINT_CHUNK) * print_bytes(s.dtype);
}
