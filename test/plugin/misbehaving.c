/* A plugin for tests of the pass runner: passes that fail, break the program, or crash.
 * PLUGIN_API is its number of the interface. */
#include "tilus/pass.h"

#include <signal.h>
#include <string.h>

#ifndef PLUGIN_API
#define PLUGIN_API TILUS_PLUGIN_API
#endif

static tilus_op *find(tilus_program *program, const char *name)
{
    tilus_op *op = tilus_block_first(tilus_program_body(program));
    while (op && strcmp(tilus_op_name(op), name) != 0)
        op = tilus_op_next(op);
    return op;
}

/* Gives an error where the program adds. */
static bool refuse_add(tilus_program *program, void *user)
{
    (void)user;
    tilus_op *op = find(program, "add");
    if (op)
        tilus_op_error(op, "sums are not for this machine");
    return !op;
}

/* Fails without an error. */
static bool fail(tilus_program *program, void *user)
{
    (void)program, (void)user;
    return false;
}

/* Moves a store before what it stores is computed: a use before its definition. */
static bool break_order(tilus_program *program, void *user)
{
    tilus_op *store = find(program, "store_global"), *load = find(program, "load_global");
    (void)user;
    return !store || tilus_op_move_before(store, load);
}

/* Tries to erase what is used. */
static bool erase_used(tilus_program *program, void *user)
{
    (void)user;
    return tilus_op_erase(find(program, "load_global"));
}

/* Runs once on the module, and changes nothing; fails where there are fewer programs than the
 * option `least`. */
static bool count_programs(tilus_module *module, void *user)
{
    (void)user;
    tilus_pass_count(module, "programs", tilus_program_count(module));
    return (int64_t)tilus_program_count(module) >= tilus_pass_option_value(module, "least") &&
           tilus_pass_option_value(module, "none") == 0;
}

static bool crash(tilus_program *program, void *user)
{
    (void)program, (void)user;
    raise(SIGSEGV);
    return true;
}

/* A pass may not run others on its own module. */
static bool recurse(tilus_module *module, void *user)
{
    (void)user;
    return tilus_run_passes(module, "dce", NULL);
}

static const tilus_pass_option options[] = {
    {sizeof(tilus_pass_option), NULL, "quiet", "nothing", 0, 1, 0},
    {sizeof(tilus_pass_option), NULL, "least", "fail with fewer programs", 0, 100, 1}};

#define PROGRAM_PASS(name, run) {sizeof(tilus_pass), name, "a test", run, NULL, NULL, false, NULL, 0}
#define MODULE_PASS(name, run) \
    {sizeof(tilus_pass), name, "a test", NULL, run, NULL, false, options, 2}

static bool register_passes(char *message, size_t size)
{
    static const tilus_pass passes[] = {
        PROGRAM_PASS("refuse-add", refuse_add), PROGRAM_PASS("fail", fail),
        PROGRAM_PASS("break-order", break_order), PROGRAM_PASS("erase-used", erase_used),
        PROGRAM_PASS("crash", crash), MODULE_PASS("count-programs", count_programs),
        MODULE_PASS("recurse", recurse)};
    if (tilus_load_plugin("/nowhere.so", message, size) || !strstr(message, "loads no other one"))
        return false;       /* rather than wait for its own load */
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (!tilus_register_pass(&passes[i], message, size))
            return false;
    return true;
}

const tilus_plugin *tilus_plugin_info(void)
{
    static const tilus_plugin plugin = {sizeof plugin, PLUGIN_API, "misbehaving", "1.0",
                                        register_passes};
    return &plugin;
}
