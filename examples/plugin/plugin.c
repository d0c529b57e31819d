/* Two passes as a plugin: `simplify-abs` rewrites magnitudes, `report-bytes` tells how many
 * bytes of global memory a block of each program moves. */
#include <stdio.h>
#include <string.h>
#include <tilus/pass.h>

/* ---- simplify-abs: abs(neg x) is abs(x), abs(abs x) too ------------------ */

static tilus_op *definition(tilus_op *op, const char *name)
{
    tilus_op *def = tilus_value_definition(tilus_op_operand(op, 0));
    return def && !strcmp(tilus_op_name(def), name) ? def : NULL;
}

/* Negation of unsigned integers changes their magnitude. */
static bool is_signed(const tilus_op *op)
{
    return tilus_type_element(tilus_value_type(tilus_op_operand(op, 0)))[0] != 'u';
}

static tilus_walk simplify(tilus_op *op, void *data)
{
    tilus_program *program = data;
    if (strcmp(tilus_op_name(op), "abs") != 0)
        return TILUS_WALK_ON;
    tilus_op *inner = definition(op, "abs"), *neg = definition(op, "neg");
    tilus_value *result = tilus_op_result(inner, 0);
    if (inner && !tilus_op_replace(op, &result, 1))
        return TILUS_WALK_STOP;
    if (!inner && neg && is_signed(op)) {
        tilus_op_remark(op, "abs of neg: the neg does nothing");
        if (!tilus_op_set_operand(op, 0, tilus_op_operand(neg, 0)))
            return TILUS_WALK_STOP;
    }
    if (inner || (neg && is_signed(op)))
        tilus_pass_count(tilus_program_module(program), "rewritten", 1);
    return TILUS_WALK_ON;
}

static bool simplify_abs(tilus_program *program, void *user)
{
    (void)user;
    return tilus_block_walk(tilus_program_body(program), simplify, program);
}

/* ---- report-bytes: loads and stores, times the loops around them --------- */

/* Iterations of the loops around `op`; 0 when bounds are not constant. */
static int64_t iterations(const tilus_op *op)
{
    int64_t product = 1;
    for (op = tilus_op_parent(op); op; op = tilus_op_parent(op)) {
        tilus_attr lower, upper, step = {.integer = 1};
        if (strcmp(tilus_op_name(op), "for") != 0)
            continue;
        tilus_op_attr(op, "lower", &lower);
        tilus_op_attr(op, "upper", &upper);
        int64_t by = tilus_op_attr(op, "step", &step) ? tilus_expr_integer(step.expr) : 1;
        bool constant = tilus_expr_kind_of(lower.expr) == TILUS_EXPR_CONSTANT &&
                        tilus_expr_kind_of(upper.expr) == TILUS_EXPR_CONSTANT && by > 0;
        int64_t span = tilus_expr_integer(upper.expr) - tilus_expr_integer(lower.expr);
        product *= constant && span > 0 ? (span + by - 1) / by : 0;
    }
    return product;
}

typedef struct Bytes {
    int64_t read, written;
    bool more;
} Bytes;

static tilus_walk add_bytes(tilus_op *op, void *data)
{
    Bytes *bytes = data;
    bool load = !strcmp(tilus_op_name(op), "load_global");
    if (!load && strcmp(tilus_op_name(op), "store_global") != 0)
        return TILUS_WALK_ON;
    const tilus_type *t = tilus_value_type(load ? tilus_op_result(op, 0) : tilus_op_operand(op, 0));
    int64_t times = iterations(op);
    *(load ? &bytes->read : &bytes->written) +=
        times * ((tilus_type_elements(t) * tilus_type_bits(tilus_type_element(t)) + 7) / 8);
    bytes->more |= times == 0;
    return TILUS_WALK_ON;
}

static bool report_bytes(tilus_program *program, void *user)
{
    Bytes bytes = {0};
    (void)user;
    tilus_block_walk(tilus_program_body(program), add_bytes, &bytes);
    fprintf(stderr, "@%s: a block reads %lld and writes %lld bytes%s\n",
            tilus_program_symbol(program), (long long)bytes.read, (long long)bytes.written,
            bytes.more ? ", and more in loops of no constant length" : "");
    return true;
}

/* ---- the plugin ------------------------------------------------------------ */

static bool register_passes(char *message, size_t size)
{
    static const tilus_pass passes[] = {
        {.struct_size = sizeof(tilus_pass), .name = "simplify-abs",
         .summary = "remove what a magnitude makes superfluous", .run_on_program = simplify_abs,
         .takes_open_layouts = true},
        {.struct_size = sizeof(tilus_pass), .name = "report-bytes",
         .summary = "print the bytes that a block of each program moves",
         .run_on_program = report_bytes, .takes_open_layouts = true}};
    return tilus_register_pass(&passes[0], message, size) &&
           tilus_register_pass(&passes[1], message, size);
}

const tilus_plugin *tilus_plugin_info(void)
{
    static const tilus_plugin plugin = {sizeof plugin, TILUS_PLUGIN_API, "example", "1.0",
                                        register_passes};
    return &plugin;
}
