/* Synchronization: what check-hazards compared, why pairs of accesses do not race, and what orders
 * them. The text as it is written is judged: passes may share bytes and unroll loops, not make
 * races. */
#include "tool.h"

#include "ir/op_access.h"
#include "memory/rings.h"
#include "passes/check_hazards.h"
#include "tilus/ir.h"

#include <setjmp.h>
#include <stdlib.h>

/* A program while it is described. */
typedef struct Graph {
    Explain *e;
    const Hazards *found;
    json_t *nodes;
    const Op **ops;             /* of the nodes */
    size_t count, capacity;
    ThreadRange threads;        /* that run what is met */
} Graph;

/* ---- nodes ------------------------------------------------------------------------------ */

static json_t *node_number(const Graph *g, const Op *op)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->ops[i] == op)
            return json_integer((json_int_t)i);
    return json_null();
}

static const char *sync_word(const Op *op)
{
    static const char *const words[] = {
        [SYNC_NONE] = "access",       [SYNC_BARRIER] = "barrier", [SYNC_CLUSTER] = "barrier",
        [SYNC_GRID] = "barrier",
        [SYNC_COMMIT] = "commit",     [SYNC_WAIT] = "wait",       [SYNC_INIT] = "init",
        [SYNC_ARRIVE] = "arrive",     [SYNC_ACQUIRE] = "acquire", [SYNC_RELEASE] = "release",
        [SYNC_LAUNCH] = "launch",     [SYNC_LAUNCH_WAIT] = "wait"};
    return words[op_sync(op)];
}

/* The way in which accesses of an op end, or those that it commits or waits for do. */
static const char *completion_word(const Op *op)
{
    static const char *const words[COMPLETION_COUNT] = {
        [COMPLETION_NOW] = "now",     [COMPLETION_PRODUCT] = "products",
        [COMPLETION_GROUP] = "group", [COMPLETION_BULK_GROUP] = "bulk group",
        [COMPLETION_MBARRIER] = "mbarrier"};
    SyncKind kind = op_sync(op);
    return words[kind == SYNC_COMMIT || kind == SYNC_WAIT ? op_info[op->code].sync.completion
                                                           : op_completion(op)];
}

static json_t *describe_phase(const Graph *g, const Op *op)
{
    RingPhase phase;
    Explain *e = g->e;
    if (!rings_phase(g->found->rings, op, &phase))
        return json_null();
    json_t *object = json_object();
    doc_put(e, object, "array", doc_text_or_null(phase.array->name));
    doc_put(e, object, "count", json_integer(phase.count));
    doc_put(e, object, "arrivals", json_integer(phase.arrivals));
    doc_put(e, object, "lag", phase.known ? json_integer(phase.lag) : json_null());
    return object;
}

static json_t *list_accesses(const Graph *g, const Op *op)
{
    static const char *const modes[] = {"reads", "writes", "atomic"};
    OpAccess accesses[ACCESSES_MAX];
    unsigned count = op_accesses(op, accesses);
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++) {
        json_t *one = json_object();
        doc_put(g->e, one, "memory", doc_text_or_null(accesses[i].tile.memory->name));
        doc_put(g->e, one, "mode", doc_text(modes[accesses[i].mode]));
        doc_add(g->e, list, one);
    }
    return list;
}

static json_t *describe_node(const Graph *g, const Op *op)
{
    Explain *e = g->e;
    json_t *node = json_object();
    const char *file = tilus_op_file((const tilus_op *)op);
    doc_put(e, node, "op", doc_text(op_info[op->code].name));
    doc_put(e, node, "file", doc_text(file ? file : ""));
    doc_put(e, node, "line", json_integer(op->loc.line));
    doc_put(e, node, "kind", doc_text(sync_word(op)));
    doc_put(e, node, "completion", doc_text(completion_word(op)));
    doc_put(e, node, "accesses", list_accesses(g, op));
    doc_put(e, node, "phase", describe_phase(g, op));
    doc_put(e, node, "first_thread", json_integer(g->threads.begin));
    doc_put(e, node, "threads", json_integer(g->threads.count));
    return node;
}

static bool reserve_node(Graph *g)
{
    if (g->count < g->capacity)
        return true;
    size_t capacity = 2 * g->capacity + 64;
    const Op **ops = realloc(g->ops, capacity * sizeof *ops);
    if (!ops)
        return !(g->e->no_memory = true);
    g->ops = ops;
    g->capacity = capacity;
    return true;
}

static bool add_node(Op *op, void *graph)
{
    Graph *g = graph;
    OpAccess accesses[ACCESSES_MAX];
    if (op_sync(op) == SYNC_NONE && !op_accesses(op, accesses))
        return true;
    if (!reserve_node(g))
        return false;
    g->threads = region_threads(op->parent);
    g->ops[g->count++] = op;
    doc_add(g->e, g->nodes, describe_node(g, op));
    return true;
}

/* ---- edges -------------------------------------------------------------------------------- */

static void list_orders(const Graph *g, json_t *object)
{
    Explain *e = g->e;
    json_t *list = json_array();
    for (unsigned i = 0; i < g->found->order_count; i++) {
        json_t *order = json_object();
        doc_put(e, order, "access", node_number(g, g->found->orders[i].access));
        doc_put(e, order, "by", node_number(g, g->found->orders[i].by));
        doc_add(e, list, order);
    }
    doc_put(e, object, "orders", list);
}

static json_t *describe_pair(const Graph *g, const Op *first, const Op *second,
                             const Value *memory)
{
    json_t *pair = json_object();
    doc_put(g->e, pair, "first", node_number(g, first));
    doc_put(g->e, pair, "second", second ? node_number(g, second) : json_null());
    doc_put(g->e, pair, "memory", doc_text_or_null(memory ? memory->name : NULL));
    return pair;
}

static void list_proofs(const Graph *g, json_t *object)
{
    static const char *const words[] = {
        [PROOF_APART] = "apart", [PROOF_ITERATIONS] = "iterations",
        [PROOF_MBARRIERS] = "mbarriers", [PROOF_ORDER] = "order", [PROOF_BLOCKS] = "blocks"};
    json_t *list = json_array();
    for (unsigned i = 0; i < g->found->proof_count; i++) {
        const Proof *p = &g->found->proofs[i];
        json_t *pair = describe_pair(g, p->first, p->second, p->memory);
        doc_put(g->e, pair, "proof", doc_text(words[p->kind]));
        doc_add(g->e, list, pair);
    }
    doc_put(g->e, object, "proofs", list);
}

static void list_found(const Graph *g, Module *m, json_t *object)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < g->found->count; i++) {
        const Hazard *h = &g->found->found[i];
        json_t *pair = describe_pair(g, h->first, h->second, h->memory);
        doc_put(g->e, pair, "race", json_boolean(h->proved));
        doc_put(g->e, pair, "text", doc_text(hazard_text(m, h)));
        doc_add(g->e, list, pair);
    }
    doc_put(g->e, object, "found", list);
}

/* ---- programs ------------------------------------------------------------------------------ */

static json_t *describe_program(Explain *e, Program *p)
{
    Hazards found = hazards_explained(p);
    Graph g = {.e = e, .found = &found};
    json_t *object = json_object();
    g.nodes = json_array();
    doc_put(e, object, "name", doc_text(p->name));
    doc_put(e, object, "pairs", json_integer(found.pairs));
    doc_put(e, object, "nodes", g.nodes);
    region_walk(p->body, add_node, &g);
    list_orders(&g, object);
    list_proofs(&g, object);
    list_found(&g, p->module, object);
    free(g.ops);
    return object;
}

/* The analysis jumps to the module's guard when memory runs out. */
static bool describe_programs(Explain *e, Module *m)
{
    json_t *programs = doc_put(e, e->doc, "hazards", json_array());
    if (!programs || setjmp(m->diag->oom.jump))
        return !(e->no_memory = true);
    for (Program *p = m->programs; p; p = p->next) {
        ArenaMark mark = arena_mark(&m->scratch);
        doc_add(e, programs, describe_program(e, p));
        arena_reset(&m->scratch, mark);
    }
    return true;
}

/* Gives the remarks of check-hazards, whose errors `diag` keeps. */
static bool check(Explain *e, tilus_module *m)
{
    tilus_pass_options options = e->settings->line.passes.options;
    options.remark = explain_take_remark;
    options.remark_data = e;
    tilus_run_passes(m, "check-hazards", &options);
    return !e->no_memory;
}

bool explain_hazards(Explain *e)
{
    const CommandLine *line = &e->settings->line;
    tilus_diag *diag = tilus_diag_new();
    if (!diag)
        return !(e->no_memory = true);
    limits_set(TOOL, &line->passes.limits, diag);
    import_paths_set(&line->passes.import_paths, diag);
    tilus_module *m = tilus_parse(diag, explain_input_name(e->settings), e->text, e->text_size, 1,
                                  line->defines, line->define_count);
    bool ok = true;
    if (m && tilus_run_passes(m, "infer-layouts,canonicalize", &line->passes.options))
        ok = describe_programs(e, m) && check(e, m);
    tilus_module_free(m);
    tilus_diag_free(diag);
    return ok && !e->no_memory;
}
