/* A program's signature, printed. */
#include "common/signature.h"

#include <inttypes.h>

/* The operators that codes name by their place here. */
static const struct {
    const char *spelling;
    unsigned precedence;        /* 0: call form */
    unsigned operands;
} operators[] = {
#define SCALAR_OP(id, spelling, precedence, operands) {spelling, precedence, operands},
#include "support/scalar_ops.def"
};

/* An expression: codes[0..end), or the end of them. */
typedef struct Codes {
    FILE *out;
    const tilus_kernel_info *info;
    const tilus_code *codes;
} Codes;

/* Returns the start of the expression that ends before `end`. */
static size_t begin_of(const Codes *c, size_t end)
{
    for (size_t needed = 1; needed > 0; end--) {
        tilus_code code = c->codes[end - 1];
        needed += code.kind == TILUS_CODE_OPERATOR ? operators[code.value].operands : 0;
        needed--;
    }
    return end;
}

static void print_in(const Codes *c, size_t end, unsigned precedence);

static void print_binary(const Codes *c, size_t end, const char *spelling, unsigned own)
{
    print_in(c, begin_of(c, end), own);
    fprintf(c->out, " %s ", spelling);
    print_in(c, end, own + 1);
}

static void print_call(const Codes *c, size_t end, const char *spelling)
{
    fprintf(c->out, "%s(", spelling);
    print_in(c, begin_of(c, end), 0);
    fputs(", ", c->out);
    print_in(c, end, 0);
    fputs(")", c->out);
}

/* Operator `op`, whose operands end before `end`. */
static void print_operator(const Codes *c, size_t end, int64_t op, unsigned precedence)
{
    const char *spelling = operators[op].spelling;
    unsigned own = operators[op].precedence;
    if (!own) {
        print_call(c, end, spelling);
        return;
    }
    fputs(own < precedence ? "(" : "", c->out);
    if (operators[op].operands == 1) {
        fprintf(c->out, "%s%s", spelling, *spelling == '-' ? "" : " ");
        print_in(c, end, own);
    } else {
        print_binary(c, end, spelling, own);
    }
    fputs(own < precedence ? ")" : "", c->out);
}

/* Prints an expression, with parentheses when it binds less tightly than `precedence`. */
static void print_in(const Codes *c, size_t end, unsigned precedence)
{
    tilus_code code = c->codes[end - 1];
    if (code.kind == TILUS_CODE_CONSTANT)
        fprintf(c->out, "%" PRId64, code.value);
    else if (code.kind == TILUS_CODE_ARGUMENT)
        fprintf(c->out, "%%%s", c->info->args[code.value].name);
    else
        print_operator(c, end - 1, code.value, precedence);
}

void signature_print_expr(FILE *out, const tilus_kernel_info *info, const tilus_code *codes,
                          size_t length)
{
    const Codes c = {out, info, codes};
    print_in(&c, length, 0);
}

void signature_print_grid(FILE *out, const tilus_kernel_info *info)
{
    for (unsigned d = 0; d < info->grid_rank; d++) {
        fputs(d ? ", " : "<", out);
        signature_print_expr(out, info, info->grid[d], info->grid_length[d]);
    }
    fputs(">", out);
}

/* Returns true when the range is narrower than the type's. */
static bool has_range(const tilus_arg_info *a)
{
    switch (a->kind) {
    case TILUS_ARG_I32: return a->min != INT32_MIN || a->max != INT32_MAX;
    case TILUS_ARG_U32: return a->min != 0 || a->max != UINT32_MAX;
    case TILUS_ARG_I64: return a->min != INT64_MIN || a->max != INT64_MAX;
    case TILUS_ARG_POINTER:
    case TILUS_ARG_F16:
    case TILUS_ARG_BF16:
    case TILUS_ARG_F32: break;
    }
    return false;
}

void signature_print_arg(FILE *out, const tilus_arg_info *a)
{
    const char *separator = " {";
    if (a->kind == TILUS_ARG_POINTER) {
        fprintf(out, "ptr<%s> {align = %" PRId64 "}", a->dtype, a->align);
        return;
    }
    fputs(a->dtype, out);
    if (a->divisible != 1) {
        fprintf(out, "%sdivisible = %" PRId64, separator, a->divisible);
        separator = ", ";
    }
    if (has_range(a)) {
        fprintf(out, "%srange = [%" PRId64 ", %" PRId64 "]", separator, a->min, a->max);
        separator = ", ";
    }
    fputs(*separator == ',' ? "}" : "", out);
}

void signature_print_tensor(FILE *out, const tilus_kernel_info *info,
                            const tilus_workspace_tensor *t)
{
    fprintf(out, "%u bit%s", t->bits, t->bits == 1 ? "" : "s");
    for (unsigned d = 0; d < t->rank; d++) {
        fputs(d ? ", " : "[", out);
        signature_print_expr(out, info, t->extents[d], t->extent_length[d]);
    }
    fprintf(out, "]%s", t->zeroed ? ", zeroed" : "");
}

static const char *const map_types[] = {
    [TILUS_MAP_U8] = "8-bit", [TILUS_MAP_U16] = "16-bit", [TILUS_MAP_U32] = "u32",
    [TILUS_MAP_I32] = "i32", [TILUS_MAP_U64] = "u64", [TILUS_MAP_I64] = "i64",
    [TILUS_MAP_F16] = "f16", [TILUS_MAP_F32] = "f32", [TILUS_MAP_F64] = "f64",
    [TILUS_MAP_BF16] = "bf16"};

const char *signature_map_type(const tilus_tensor_map *map)
{
    return map_types[map->type];
}

void signature_print_map(FILE *out, const tilus_kernel_info *info, const tilus_tensor_map *map)
{
    fputs(signature_map_type(map), out);
    for (unsigned d = 0; d < map->rank; d++) {
        fputs(d ? ", " : "[", out);
        signature_print_expr(out, info, map->extents[d], map->extent_length[d]);
    }
    fputs("] strides", out);
    for (unsigned d = 0; d + 1 < map->rank; d++) {
        fputs(d ? ", " : "(", out);
        signature_print_expr(out, info, map->strides[d], map->stride_length[d]);
    }
    fputs(map->rank > 1 ? ") box" : "() box", out);
    for (unsigned d = 0; d < map->rank; d++)
        fprintf(out, "%s%u", d ? ", " : "(", map->box[d]);
    fprintf(out, ") swizzle %u, promotion %u bytes", map->swizzle, map->promotion);
}
