/* A compiler's user: program text in, PTX out. */
#include <stdio.h>
#include <string.h>
#include <tilus/tilus.h>

static const char text[] =
    "tilus 1\n"
    "program @twice<1>(%p: ptr<f32>) warps(1) {\n"
    "  %g = view_global %p : f32[32]\n"
    "  %x = load_global %g[0] : f32[32] @ spatial(32)\n"
    "  %y = add %x, %x\n"
    "  store_global %y, %g[0]\n"
    "}\n";

int main(void)
{
    int result = 1;
    char *ptx = NULL;
    tilus_diag *diag = tilus_diag_new();
    tilus_module *module = tilus_parse(diag, "twice.tilus", text, strlen(text), 1, NULL, 0);
    const tilus_pass_options passes = {.struct_size = sizeof passes, .verify_each = true};
    if (module && tilus_run_passes(module, NULL, &passes)) {
        const tilus_compile_options options = {.struct_size = sizeof options,
                                               .cpu = "sm_80", .opt_level = 3};
        ptx = tilus_compile(module, &options, NULL);
    }
    if (ptx) {
        fputs(ptx, stdout);
        result = 0;
    }
    tilus_diag_write(diag, NULL, NULL);
    tilus_free(ptx);
    tilus_module_free(module);
    tilus_diag_free(diag);
    return result;
}
