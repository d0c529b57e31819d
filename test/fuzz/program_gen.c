/* Random programs: the frame, and which statement comes next. */
#include "gen.h"

#include "support/bits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- text --------------------------------------------------------------- */

void gen_line(Gen *g, const char *format, ...)
{
    va_list args;
    text_indent(&g->body, 2 * g->indent);
    va_start(args, format);
    text_add(&g->body, arena_vprintf(g->arena, format, args));
    va_end(args);
    text_char(&g->body, '\n');
}

const char *gen_name(Gen *g, const char *prefix)
{
    return arena_printf(g->arena, "%%%s%u", prefix, g->names++);
}

/* The body holds both, between bytes that no program has. */
enum { EITHER_GIVEN = 1, EITHER_OPEN, EITHER_END };

const char *gen_either(Gen *g, const char *given, const char *left_open)
{
    if (!g->is_open || choose_rarely(g->choices, 4))
        return given;
    return arena_printf(g->arena, "%c%s%c%s%c", EITHER_GIVEN, given, EITHER_OPEN, left_open,
                        EITHER_END);
}

/* The text with what `kind`, EITHER_GIVEN or EITHER_OPEN, says. */
static const char *resolve(Gen *g, const char *text, char kind)
{
    char *out = arena_alloc(g->arena, strlen(text) + 1), *end = out, inside = kind;
    for (; *text; text++)
        if (*text > EITHER_END)
            *end = *text, end += inside == kind;
        else
            inside = *text == EITHER_END ? kind : *text;
    *end = '\0';
    return out;
}

void gen_numbers(Text *text, unsigned count, const int64_t *numbers)
{
    for (unsigned i = 0; i < count; i++)
        text_printf(text, "%s%lld", i ? ", " : "", (long long)numbers[i]);
}

void gen_spend(Gen *g, const Layout *layout)
{
    g->budget -= layout->threads * layout->slots * g->repeat;
}

/* ---- arguments and grid ------------------------------------------------- */

/* A scalar argument whose facts hold. */
static void add_scalar(Gen *g, unsigned number)
{
    static const char *const types[] = {"i32", "i32", "i64", "u32"};
    unsigned type = (unsigned)choose(g->choices, 4);
    int64_t value = choose_between(g->choices, 0, 40);
    if (type != 3 && choose_rarely(g->choices, 8))
        value = -value;
    const char *name = arena_printf(g->arena, "%%n%u", number);
    text_printf(&g->arguments, "%s%s: %s", number ? ", " : "", name, types[type]);
    int64_t divisor = choose_between(g->choices, 1, 8);
    bool divides = value % divisor == 0 && divisor > 1, ranges = choose(g->choices, 2);
    if (divides || ranges)
        text_add(&g->arguments, " {");
    if (divides)
        text_printf(&g->arguments, "divisible = %lld%s", (long long)divisor,
                    ranges ? ", " : "");
    if (ranges) {
        int64_t below = choose_between(g->choices, 0, value < 0 ? 3 : value);
        text_printf(&g->arguments, "range = [%lld, %lld]", (long long)(value - below),
                    (long long)(value + choose_between(g->choices, 0, 8)));
    }
    if (divides || ranges)
        text_char(&g->arguments, '}');
    gen_scalar_add(g, name, value, value);
    tilus_arg argument = {.integer = value};
    arena_push(g->arena, g->args, g->arg_count, g->arg_capacity, argument);
}

/* A scalar argument of floats, which some programs have. */
static void add_float(Gen *g)
{
    static const char *const types[] = {"f32", "f16", "bf16"};
    static const double values[] = {1.5, -0.0, 1e-5, 0.1, -3, 1e9, (double)INFINITY, (double)NAN};
    if (choose(g->choices, 2))
        return;
    g->float_name = "%f0";
    text_printf(&g->arguments, ", %s: %s", g->float_name, types[choose(g->choices, 3)]);
    tilus_arg argument = {.real = values[choose(g->choices, sizeof values / sizeof *values)]};
    arena_push(g->arena, g->args, g->arg_count, g->arg_capacity, argument);
}

static void choose_grid(Gen *g)
{
    int64_t blocks = 1;
    g->grid_rank = 1 + (unsigned)choose(g->choices, 3);
    bool one = g->is_tight && choose(g->choices, g->options.rings ? 2 : 6);
    for (unsigned d = 0; d < g->grid_rank; d++) {
        g->grid[d] = one || blocks > 3 ? 1 : choose_between(g->choices, 1, 3);
        blocks *= g->grid[d];
    }
    g->repeat = blocks;
}

/* "<%n0, 2>" */
static const char *grid_text(Gen *g)
{
    Text text;
    text_init(&text, g->arena);
    for (unsigned d = 0; d < g->grid_rank; d++)
        text_printf(&text, "%s%s", d ? ", " : "", gen_extent(g, g->grid[d]));
    return text_string(&text);
}

static void add_block_indices(Gen *g)
{
    static const char *const names[] = {"%b0", "%b1", "%b2"};
    text_indent(&g->views, 2);
    for (unsigned d = 0; d < g->grid_rank; d++) {
        gen_scalar_add(g, names[d], 0, g->grid[d] - 1);
        text_printf(&g->views, "%s%s", d ? ", " : "", names[d]);
    }
    text_add(&g->views, " = block_indices\n");
}

/* ---- statements --------------------------------------------------------- */

static void compute(Gen *g)
{
    gen_elementwise(g, gen_pick(g));
}

static void load(Gen *g)
{
    unsigned rank = 1 + (unsigned)choose(g->choices, 3);
    static const uint8_t slots[] = {1, 1, 2, 2, 3, 4, 6, 8};
    DType t = gen_dtype(g);
    gen_load(g, t, gen_layout(g, rank, slots[choose(g->choices, sizeof slots)], true));
}

static void share(Gen *g)
{
    gen_new_shared(g, gen_pick(g));
}

/* Weights of a statement in most programs, and in tight ones, which access shared
 * memory and are rarely more than check-hazards understands. */
static const struct Statement {
    unsigned weight, tight;
    void (*emit)(Gen *g);
} statements[] = {
    {10, 2, compute}, {3, 1, load}, {2, 1, gen_fill}, {4, 1, gen_cast}, {3, 0, gen_reinterpret},
    {2, 0, gen_reduce}, {2, 0, gen_along}, {2, 0, gen_compare}, {2, 0, gen_repeat}, {3, 2, share},
    {4, 6, gen_load_object}, {2, 5, gen_store_object},
    {1, 1, gen_atomic_shared}, {1, 0, gen_atomic_global},
    {2, 0, gen_gather}, {1, 0, gen_scatter}, {2, 2, gen_index_shared}, {1, 1, gen_histogram},
    {3, 3, gen_copy}, {1, 2, gen_copy_ring}, {1, 0, gen_dot}, {2, 0, gen_assert},
    {3, 2, gen_for}, {3, 1, gen_if}, {1, 0, gen_exit}, {1, 0, gen_print},
    {1, 3, gen_synchronize}, {4, 0, gen_rearrange}, {2, 0, gen_dequantize},
    {2, 1, gen_scalar_statement}, {2, 1, gen_load_scalar}, {2, 2, gen_alias},
    {1, 0, gen_part_of_input}, {2, 1, gen_while}, {3, 2, gen_pipelined},
    {2, 1, gen_thread_group}, {1, 0, gen_workspace}, {2, 0, gen_chain}, {2, 0, gen_form},
    {2, 0, gen_lookup}, {2, 2, gen_bulk}, {1, 0, gen_bulk_store}, {1, 0, gen_launch_dependents},
    {1, 0, gen_wait_dependencies}, {2, 0, gen_setmaxnreg}, {3, 12, gen_stride}, {4, 2, gen_cluster},
    {2, 1, gen_wgmma}, {6, 3, gen_grid}, {1, 0, gen_grid_pace},
};

static unsigned weight_of(const Gen *g, const struct Statement *s)
{
    return g->is_tight ? s->tight : s->weight;
}

void gen_statement(Gen *g)
{
    enum { COUNT = sizeof statements / sizeof *statements };
    uint64_t total = 0;
    if (g->budget <= 0)
        return;
    for (unsigned i = 0; i < COUNT; i++)
        total += weight_of(g, &statements[i]);
    uint64_t at = choose(g->choices, total);
    const struct Statement *s = statements;
    for (; at >= weight_of(g, s); s++)
        at -= weight_of(g, s);
    s->emit(g);
}

/* ---- memory ------------------------------------------------------------- */

/* Any bits, small numbers, or many zeros. */
static tilus_buffer fill_buffer(Gen *g, const Buffer *b)
{
    unsigned bits = dtype_bits(b->dtype), kind = (unsigned)choose(g->choices, 3);
    uint8_t *bytes = arena_alloc(g->arena, (size_t)b->bytes + 8);
    for (int64_t i = 0; i < b->bytes; i++)
        bytes[i] = (uint8_t)choices_random(g->choices);
    for (int64_t i = 0; kind && i < b->bytes * 8 / bits; i++) {
        double number = (double)choose_between(g->choices, -4, 4);
        if (kind == 1 || choose(g->choices, 2))
            bits_set(bytes, (size_t)i, bits, dtype_encode(b->dtype, kind == 1 ? number : 0));
    }
    return (tilus_buffer){bytes, (size_t)b->bytes};
}

static void fill_buffers(Gen *g)
{
    tilus_buffer *buffers = arena_array(g->arena, tilus_buffer, g->buffer_count);
    DType *dtypes = arena_array(g->arena, DType, g->buffer_count);
    for (uint32_t i = 0; i < g->buffer_count; i++) {
        buffers[i] = fill_buffer(g, &g->buffers[i]);
        dtypes[i] = g->buffers[i].dtype;
    }
    g->out->buffers = buffers;
    g->out->dtypes = dtypes;
    g->out->buffer_count = g->buffer_count;
}

/* ---- programs ----------------------------------------------------------- */

/* Rings and little else: one or two. */
static void generate_rings(Gen *g)
{
    load(g);
    for (uint64_t n = choose_between(g->choices, 1, 2); n-- > 0;)
        gen_bulk(g);
    gen_end_region(g, 0);
}

static void generate_body(Gen *g)
{
    Object inner = {.name = "what ended"};
    arena_push(g->arena, g->objects, g->object_count, g->object_capacity, inner);
    if (g->options.rings) {
        generate_rings(g);
        return;
    }
    if (!g->is_tight)
        load(g);
    if (g->min_blocks && choose(g->choices, 2))
        gen_thread_group(g);
    load(g);
    for (uint64_t n = choose_between(g->choices, 2, g->is_tight ? 9 : 16); n-- > 0;)
        gen_statement(g);
    gen_end_region(g, 0);
}

static const char *min_blocks_text(Gen *g)
{
    return g->min_blocks ? arena_printf(g->arena, " min_blocks(%u)", g->min_blocks) : "";
}

/* Tight programs lose some barriers, or most. */
static void choose_kind(Gen *g)
{
    static const uint8_t tight[] = {3, 6, 12, 24};
    g->is_tight = g->options.rings   ? true
                  : g->options.tight ? choose(g->choices, 8) != 0
                                     : choose_rarely(g->choices, 4);
    g->budget = g->is_tight ? 12000 : 24000;
    g->drops_one_in = g->is_tight ? tight[choose(g->choices, sizeof tight)] : 5;
}

GenProgram program_generate(Choices *choices, const GenOptions *options, Arena *arena)
{
    static const uint8_t warps[] = {1, 1, 1, 1, 2, 2, 3, 4, 8};
    enum { TIGHT_WARPS = 6, MORE_THAN_ONE = 4 };    /* of these numbers, the first; from there */
    GenProgram out = {0};
    Gen g = {.arena = arena, .choices = choices, .options = *options, .out = &out, .indent = 1,
             .groups_exact = true, .may_exit = true};
    layout_table_init(&g.layouts, arena);
    text_init(&g.arguments, arena);
    text_init(&g.views, arena);
    text_init(&g.body, arena);
    choose_kind(&g);
    g.warps = g.block_warps =
        options->rings ? warps[choose_between(choices, MORE_THAN_ONE, sizeof warps - 2)]
                       : warps[choose(choices, g.is_tight ? TIGHT_WARPS : sizeof warps)];
    gen_min_blocks(&g);
    g.contract = choose_rarely(choices, 3);
    g.is_open = choose_rarely(choices, 4);
    for (unsigned i = 0, n = (unsigned)choose_between(choices, 1, 3); i < n; i++)
        add_scalar(&g, i);
    g.argument_scalars = g.scalar_count;
    add_float(&g);
    choose_grid(&g);
    const char *grid = grid_text(&g);
    add_block_indices(&g);
    gen_choose_cluster(&g);
    gen_choose_cooperative(&g);
    generate_body(&g);
    fill_buffers(&g);
    const char *text = arena_printf(
        arena, "tilus 1\nprogram @%s<%s>(%s) warps(%u)%s%s%s%s {\n%s%s}\n", GEN_PROGRAM_NAME, grid,
        text_string(&g.arguments), g.warps, min_blocks_text(&g), gen_cluster_text(&g),
        g.cooperative ? " cooperative" : "", g.contract ? " contract" : "",
        text_string(&g.views), text_string(&g.body));
    out.text = resolve(&g, text, EITHER_GIVEN);
    out.open_text = g.is_open ? resolve(&g, text, EITHER_OPEN) : NULL;
    out.args = g.args;
    out.arg_count = g.arg_count;
    return out;
}
