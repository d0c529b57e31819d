/* tilus-llc: program text to PTX, cubin, LLVM IR or artefacts. */
#include "tool.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    LlcSettings s;
    int status;
    if (!settings_parse(&s, argc, argv, &status))
        return status;
    if (s.version) {
        printf("tilus %s (%s), LLVM %s\n", tilus_version(), tilus_git_revision(),
               tilus_llvm_version());
        status = EXIT_OK;
    } else if (s.list_targets) {
        for (size_t i = 0; tilus_target_name(i); i++)
            puts(tilus_target_name(i));
        status = EXIT_OK;
    } else if (s.line.passes.print_pipeline) {
        puts(s.pipeline);
        status = EXIT_OK;
    } else if (s.cast_plans && !s.line.inputs.count) {
        status = print_all_cast_plans(&s);
    } else {
        status = compile_input(&s);
    }
    settings_free(&s);
    return status;
}
