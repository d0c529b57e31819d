/* tilus-opt: reads program text, runs passes, prints the result. */
#include "tool.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    OptSettings s;
    int status;
    if (!settings_parse(&s, argc, argv, &status))
        return status;
    if (s.version)
        status = print_version();
    else if (s.list_ops)
        status = print_ops();
    else if (s.list_types)
        status = print_types();
    else if (s.list_passes)
        status = print_passes();
    else if (s.list_remarks)
        status = print_remarks();
    else if (s.line.passes.print_pipeline)
        status = print_pipeline(&s);
    else if (s.list_limits)
        status = print_limits();
    else if (s.list_warnings)
        status = print_warnings();
    else if (s.layout)
        status = print_layout(&s);
    else
        status = process_input(&s);
    settings_free(&s);
    return status;
}
