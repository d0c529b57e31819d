/* Registers a pass of its own, loads the plugin that argv[1] names, runs passes of both. */
#include <stdio.h>
#include <string.h>
#include <tilus/pass.h>

static const char text[] =
    "tilus 1\n"
    "program @f<1>(%p: ptr<f32>) warps(1) {\n"
    "  %g = view_global %p : f32[32]\n"
    "  %x = load_global %g[0] : f32[32] @ spatial(32)\n"
    "  %n = neg %x\n"
    "  %y = abs %n\n"
    "  store_global %y, %g[0]\n"
    "}\n";

static tilus_walk count(tilus_op *op, void *data)
{
    (void)op;
    ++*(unsigned *)data;
    return TILUS_WALK_ON;
}

static bool count_ops(tilus_program *program, void *user)
{
    unsigned ops = 0;
    tilus_block_walk(tilus_program_body(program), count, &ops);
    printf("%s: @%s has %u ops\n", (const char *)user, tilus_program_symbol(program), ops);
    return true;
}

int main(int argc, char **argv)
{
    char why[256] = "";
    const tilus_pass pass = {.struct_size = sizeof pass, .name = "count-ops",
                             .summary = "print how many ops there are",
                             .run_on_program = count_ops, .user = "count-ops"};
    if (argc != 2 || !tilus_register_pass(&pass, why, sizeof why) ||
        !tilus_load_plugin(argv[1], why, sizeof why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    tilus_diag *diag = tilus_diag_new();
    tilus_module *module = tilus_parse(diag, "f.tilus", text, strlen(text), 1, NULL, 0);
    bool ok = module && tilus_run_passes(module, "count-ops,simplify-abs,dce,count-ops", NULL);
    char *printed = ok ? tilus_print(module) : NULL;
    if (printed)
        fputs(printed, stdout);
    tilus_diag_write(diag, NULL, NULL);
    tilus_free(printed);
    tilus_module_free(module);
    tilus_diag_free(diag);
    return !ok;
}
