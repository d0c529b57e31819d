/* An artefact as a table. */
#include "tool.h"

#include "common/signature.h"
#include "common/text.h"

#include <stdio.h>
#include <string.h>

enum { LABEL = 14 };            /* columns of the first column */

static void print_text(const char *label, const char *text)
{
    printf("%-*s", LABEL, label);
    text_print(stdout, text, strlen(text));
    putchar('\n');
}

/* The label of something that has a name: "  %name", and at least a space. */
static void print_name(const char *name)
{
    int width = printf("  %%%s", name ? name : "?");
    printf("%*s", width < LABEL ? LABEL - width : 1, "");
}

static void print_program(const tilus_kernel_info *info)
{
    printf("%-*s@%s", LABEL, "program", info->name);
    signature_print_grid(stdout, info);
    putchar('\n');
    for (size_t i = 0; i < info->arg_count; i++) {
        print_name(info->args[i].name);
        signature_print_arg(stdout, &info->args[i]);
        putchar('\n');
    }
}

static void print_memory(const tilus_kernel_info *info)
{
    printf("%-*s%u threads, %zu bytes of shared memory\n", LABEL, "block", info->threads,
           info->shared_bytes);
    printf("%-*s", LABEL, "workspace");
    if (info->workspace_count)
        printf("%zu tensor%s\n", info->workspace_count, info->workspace_count == 1 ? "" : "s");
    else
        puts("none");
    for (size_t i = 0; i < info->workspace_count; i++) {
        print_name(info->workspace[i].name);
        signature_print_tensor(stdout, info, &info->workspace[i]);
        putchar('\n');
    }
}

static void print_maps(const tilus_kernel_info *info)
{
    printf("%-*s", LABEL, "tensor maps");
    if (info->map_count)
        printf("%zu\n", info->map_count);
    else
        puts("none");
    for (size_t i = 0; i < info->map_count; i++) {
        print_name(info->args[info->maps[i].argument].name);
        signature_print_map(stdout, info, &info->maps[i]);
        putchar('\n');
    }
}

static void print_cluster(const tilus_kernel_info *info)
{
    const unsigned *extent = info->cluster;
    if (extent[0])
        printf("%-*s%u x %u x %u blocks\n", LABEL, "cluster", extent[0], extent[1], extent[2]);
    else
        print_text("cluster", "none");
}

void show_table(const tilus_artefact *a, const File *file)
{
    print_program(a->info);
    print_memory(a->info);
    print_maps(a->info);
    print_cluster(a->info);
    print_text("cooperative", a->info->cooperative ? "all blocks run at the same time" : "no");
    print_text("overlaps", a->info->overlaps ? "launches before it, until it waits" : "none");
    print_text("target", a->target);
    printf("%-*sversion %u.%u, %zu bytes\n", LABEL, "PTX", a->ptx_version / 10,
           a->ptx_version % 10, strlen(a->ptx));
    if (a->cubin)
        printf("%-*s%zu bytes\n", LABEL, "cubin", a->cubin_size);
    else
        print_text("cubin", "none");
    printf("%-*s%zu bytes\n", LABEL, "source", strlen(a->source));
    print_text("parameters", *a->parameters ? a->parameters : "none");
    print_text("compiler", *a->compiler ? a->compiler : "unknown");
    printf("%-*sformat %u, %zu bytes\n", LABEL, "file", file->format, file->size);
}
