/* The workspace: parts that a block has to itself, chains of blocks that hand a
 * tensor on by a semaphore, what blocks of a cooperative program read of each other behind barriers
 * of the grid, and paces. */
#include "gen.h"

/* A workspace tensor, `shape` behind the dimensions `lead` that the text has
 * already; its name. */
static const char *allocate(Gen *g, DType dtype, const char *lead, unsigned rank,
                            const int64_t *shape, bool zeroed)
{
    const char *name = gen_name(g, "w");
    text_printf(&g->views, "  %s = allocate_global%s : %s[%s", name,
                zeroed ? " {zeroed = true}" : "", dtype_name(dtype), lead);
    for (unsigned d = 0; d < rank; d++)
        text_printf(&g->views, "%s%s", d ? ", " : "", gen_exact(g, shape[d]));
    text_add(&g->views, "]\n");
    return name;
}

/* A part for each block; it begins as zero, or with a value. */
void gen_workspace(Gen *g)
{
    unsigned reg = gen_pick(g);
    const Reg r = g->regs[reg];
    Object o = {.dtype = r.dtype, .rank = r.layout->rank, .lead = ""};
    bool zeroed = choose_rarely(g->choices, 3);
    Text extents, lead;
    text_init(&extents, g->arena);
    text_init(&lead, g->arena);
    int64_t bits = dtype_bits(r.dtype);
    for (unsigned d = 0; d < o.rank; d++)
        bits *= o.shape[d] = r.layout->shape[d];
    if (bits % 8)
        return;
    for (unsigned d = 0; d < g->grid_rank; d++) {
        text_printf(&extents, "%s, ", gen_exact(g, g->grid[d]));
        text_printf(&lead, "%%b%u, ", d);
    }
    o.name = allocate(g, o.dtype, text_string(&extents), o.rank, o.shape, zeroed);
    o.lead = text_string(&lead);
    if (!zeroed) {
        gen_line(g, "store_global %s, %s[%s%s]", gen_use(g, reg), o.name, o.lead,
                 gen_zeros(g, o.rank));
        gen_spend(g, r.layout);
        o.dirty = DIRTY_WRITE;
    }
    gen_add_object(g, o);
}

/* "(%b0 + 2 * %b1)": the block's number in the order in which blocks start. */
static const char *block_number(Gen *g)
{
    Text text;
    int64_t step = 1;
    text_init(&text, g->arena);
    for (unsigned d = 0; d < g->grid_rank; d++) {
        text_printf(&text, d ? " + %lld * %%b%u" : "(", (long long)step, d);
        if (!d)
            text_add(&text, "%b0");
        step *= g->grid[d];
    }
    text_char(&text, ')');
    return text_string(&text);
}

/* The value that the block before this one handed on; the first one begins with its own. */
static unsigned take_over(Gen *g, unsigned own, const char *memory, const char *number)
{
    const Reg r = g->regs[own];
    const char *type = gen_type_text(g, r.dtype, r.layout), *before = gen_name(g, "v");
    Reg taken = {.name = gen_name(g, "v"), .dtype = r.dtype, .layout = r.layout};
    gen_line(g, "%s = if %s > 0 {", taken.name, number);
    gen_line(g, "  %s = load_global %s[%s] : %s", before, memory,
             gen_zeros(g, r.layout->rank), type);
    gen_line(g, "  yield %s", before);
    gen_line(g, "} else {");
    gen_line(g, "  yield %s", gen_use(g, own));
    gen_line(g, "}");
    gen_spend(g, r.layout);
    arena_push(g->arena, g->regs, g->reg_count, g->reg_capacity, taken);
    return g->reg_count - 1;
}

/* Attributes that may stand behind a semaphore's value: its scope. */
static const char *scope_text(Gen *g)
{
    static const char *const texts[] = {"", " {scope = gpu}", " {scope = system}"};
    return texts[choose(g->choices, 3)];
}

static int64_t count_blocks(const Gen *g)
{
    int64_t blocks = 1;
    for (unsigned d = 0; d < g->grid_rank; d++)
        blocks *= g->grid[d];
    return blocks;
}

/* Whose turn it is: the block's number, or in some cooperative programs that from the last one on. */
static const char *turn_number(Gen *g)
{
    const char *number = block_number(g);
    return g->turns_back
               ? arena_printf(g->arena, "(%lld - %s)", (long long)count_blocks(g) - 1, number)
               : number;
}

/* Blocks add to a tensor one after another. All must come here, so none may end
 * before, and no branch may stand around. */
void gen_chain(Gen *g)
{
    if (g->depth || g->exits || g->cluster_blocks > 1)
        return;
    unsigned own = gen_pick(g);
    const Reg r = g->regs[own];
    bool may_exit = g->may_exit;
    const char *number = turn_number(g), *type = choose(g->choices, 2) ? "i32" : "u32";
    const char *memory = allocate(g, r.dtype, "", r.layout->rank, r.layout->shape, false);
    const char *turn = allocate(g, dtype_find(type, 3), "", 1, (int64_t[]){1}, true);
    gen_line(g, "lock %s[0], %s%s", turn, number, scope_text(g));
    unsigned sum = take_over(g, own, memory, number);
    gen_synchronize(g);
    g->may_exit = false;
    g->chained = true;
    if (choose(g->choices, 2))
        gen_statement(g);
    g->chained = false;
    g->may_exit = may_exit;
    sum = gen_elementwise(g, sum);
    gen_line(g, "store_global %s, %s[%s]", gen_use(g, sum), memory,
             gen_zeros(g, r.layout->rank));
    gen_line(g, "release %s[0], %s + 1%s", turn, number, scope_text(g));
}

/* ---- cooperative programs ---------------------------------------------------- */

void gen_choose_cooperative(Gen *g)
{
    g->cooperative = !g->cluster_blocks && choose_rarely(g->choices, g->is_tight ? 8 : 4);
    g->turns_back = g->cooperative && choose(g->choices, 2);
    g->may_exit = g->may_exit && !g->cooperative;
}

/* The value in another block's part of `memory`, once all have stored theirs; its text. */
static const char *exchange(Gen *g, const char *memory, const char *own, const Reg *r)
{
    const char *number = block_number(g), *zeros = gen_zeros(g, r->layout->rank);
    const char *other = gen_name(g, "v");
    gen_line(g, "store_global %s, %s[%s, %s]", own, memory, number, zeros);
    gen_line(g, "grid_synchronize");
    gen_line(g, "%s = load_global %s[(%s + %s) mod %lld, %s] : %s", other, memory, number,
             gen_scalar_within(g, 0, 7).text, (long long)count_blocks(g), zeros,
             gen_type_text(g, r->dtype, r->layout));
    gen_spend(g, r->layout);
    gen_spend(g, r->layout);
    return other;
}

/* Rounds in which each block hands a value on: before the next one all have read. */
static void exchange_in_rounds(Gen *g, const char *memory, unsigned own, const Reg *r)
{
    Reg last = {.name = gen_name(g, "v"), .dtype = r->dtype, .layout = r->layout};
    const char *carried = gen_name(g, "v");
    int64_t rounds = choose_between(g->choices, 1, 3);
    gen_line(g, "%s = for %s in 0 .. %s iter(%s = %s) {", last.name, gen_name(g, "i"),
             gen_exact(g, rounds), carried, gen_use(g, own));
    g->indent++;
    const char *other = exchange(g, memory, carried, r);
    gen_line(g, "grid_synchronize");
    gen_line(g, "yield %s", other);
    g->indent--;
    gen_line(g, "}");
    g->budget -= rounds * count_blocks(g);
    arena_push(g->arena, g->regs, g->reg_count, g->reg_capacity, last);
}

/* Blocks read what others have stored. All must come here, so no branch and no loop may stand around,
 * and no block may wait for another one's turn; a group of threads may stand around. */
void gen_grid(Gen *g)
{
    if (!g->cooperative || g->chained || g->depth != g->group_depth)
        return;
    unsigned own = gen_pick(g);
    const Reg r = g->regs[own];
    int64_t bits = dtype_bits(r.dtype);
    for (unsigned d = 0; d < r.layout->rank; d++)
        bits *= r.layout->shape[d];
    if (bits % 8)
        return;
    const char *lead = arena_printf(g->arena, "%lld, ", (long long)count_blocks(g));
    const char *memory = allocate(g, r.dtype, lead, r.layout->rank, r.layout->shape, false);
    if (choose(g->choices, 2)) {
        exchange_in_rounds(g, memory, own, &r);
        return;
    }
    Reg other = {.name = exchange(g, memory, gen_use(g, own), &r), .dtype = r.dtype,
                 .layout = r.layout};
    arena_push(g->arena, g->regs, g->reg_count, g->reg_capacity, other);
}

/* Writes a pace, which orders nothing, and may come more often in some blocks than in others. */
void gen_grid_pace(Gen *g)
{
    const char *state = gen_name(g, "w");
    text_printf(&g->views, "  %s = allocate_global {zeroed = true} : u32[1]\n", state);
    gen_line(g, "grid_pace %s, %s {of = %s}", state, gen_scalar_within(g, 0, 2).text, gen_exact(g, 3));
}
