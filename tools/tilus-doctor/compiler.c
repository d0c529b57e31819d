/* The compiler: its versions, and whether it compiles and runs a small program. */
#include "doctor.h"

#include "common/file.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 32 };

static const char text[] = "program @probe<1>(%a: ptr<i32> {align = 16}) warps(1) {\n"
                           "  %g = view_global %a : i32[32]\n"
                           "  %x = load_global %g[0] : i32[32] @ spatial(32)\n"
                           "  %y = add %x, %x\n"
                           "  store_global %y, %g[0]\n"
                           "}\n";

/* The caller frees the PTX. */
static bool compile(tilus_module *m, const char *target, char **ptx)
{
    const tilus_compile_options options = {.struct_size = sizeof options,
                                        .cpu = target, .opt_level = 3};
    *ptx = tilus_compile(m, &options, NULL);
    return *ptx != NULL;
}

/* Runs the program on the CPU engine, which must double the numbers. */
static bool run(tilus_module *m, const char *target)
{
    int32_t data[ELEMENTS];
    bool right = true;
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = i;
    const tilus_arg arg = {.pointer = 0};
    const tilus_buffer buffer = {data, sizeof data};
    const tilus_cpu_options options = {.struct_size = sizeof options,
                                       .cpu = target, .host_threads = 1};
    if (tilus_run_on_cpu(m, "probe", &arg, 1, &buffer, 1, &options, NULL) != TILUS_OK)
        return false;
    for (int i = 0; i < ELEMENTS; i++)
        right &= data[i] == 2 * i;
    return right;
}

/* Compiles and, when `runs` is not NULL, also runs the program; prints what goes wrong. */
static bool try_target(const char *target, char **ptx, bool *runs)
{
    const tilus_pass_options passes = {.struct_size = sizeof passes,
                                       .verify_each = true, .target = target};
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = diag ? tilus_parse(diag, "probe", text, strlen(text), 1, NULL, 0) : NULL;
    bool ok = m && tilus_run_passes(m, NULL, &passes) && compile(m, target, ptx);
    if (ok && runs && !(*runs = run(m, target)))
        doctor_row("CPU engine", "the probe does not give what it should");
    if (diag && tilus_diag_count(diag))
        tilus_diag_write(diag, file_take, stdout);
    tilus_module_free(m);
    tilus_diag_free(diag);
    return ok;
}

static unsigned read_ptx_version(const char *ptx)
{
    unsigned major = 0, minor = 0;
    const char *line = strstr(ptx, "\n.version ");
    if (line)
        sscanf(line, "\n.version %u.%u", &major, &minor);
    return 10 * major + minor;
}

void doctor_check_compiler(Doctor *d)
{
    char list[512] = "";
    size_t used = 0;
    const char *target;
    doctor_row("compiler", "tilus %s (%s), LLVM %s", tilus_version(), tilus_git_revision(),
               tilus_llvm_version());
    d->compiles = true;
    for (size_t i = 0; (target = tilus_target_name(i)) && i < DOCTOR_TARGETS; i++) {
        char *ptx = NULL;
        bool ok = try_target(target, &ptx, i == 0 ? &d->runs_on_cpu : NULL);
        d->compiles &= ok;
        d->ptx[i] = ok ? read_ptx_version(ptx) : 0;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s (%s%u.%u)",
                                     i ? ", " : "", target, ok ? "PTX " : "fails, ",
                                     d->ptx[i] / 10, d->ptx[i] % 10);
        free(ptx);
    }
    doctor_row("targets", "%s", list);
}
