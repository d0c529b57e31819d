/* An artefact as JSON, for scripts. */
#include "tool.h"

#include "common/signature.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* UTF-8 stays as it is. */
static void print_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < ' ')
            printf("\\u%04x", (unsigned)*text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void print_field(const char *name, const char *text)
{
    printf("  \"%s\": ", name);
    print_string(text);
    puts(",");
}

static void print_args(const tilus_kernel_info *info)
{
    static const char *const kinds[] = {
        [TILUS_ARG_POINTER] = "pointer", [TILUS_ARG_I32] = "i32", [TILUS_ARG_U32] = "u32",
        [TILUS_ARG_I64] = "i64", [TILUS_ARG_F16] = "f16", [TILUS_ARG_BF16] = "bf16",
        [TILUS_ARG_F32] = "f32"};
    fputs("  \"args\": [", stdout);
    for (size_t i = 0; i < info->arg_count; i++) {
        const tilus_arg_info *a = &info->args[i];
        printf("%s    {\"name\": \"%s\", \"kind\": \"%s\", \"type\": \"%s\", ", i ? ",\n" : "\n",
               a->name, kinds[a->kind], a->dtype);
        if (a->kind == TILUS_ARG_POINTER)
            printf("\"align\": %" PRId64 "}", a->align);
        else
            printf("\"divisible\": %" PRId64 ", \"min\": %" PRId64 ", \"max\": %" PRId64 "}",
                   a->divisible, a->min, a->max);
    }
    puts(info->arg_count ? "\n  ]," : "],");
}

/* Expressions, as strings; nothing in them needs an escape. */
static void print_extents(const tilus_kernel_info *info, unsigned rank,
                          const tilus_code *const *codes, const size_t *lengths)
{
    fputs("[", stdout);
    for (unsigned d = 0; d < rank; d++) {
        fputs(d ? ", \"" : "\"", stdout);
        signature_print_expr(stdout, info, codes[d], lengths[d]);
        fputs("\"", stdout);
    }
    fputs("]", stdout);
}

static void print_workspace(const tilus_kernel_info *info)
{
    fputs("  \"workspace\": [", stdout);
    for (size_t i = 0; i < info->workspace_count; i++) {
        const tilus_workspace_tensor *t = &info->workspace[i];
        const char *quote = t->name ? "\"" : "";
        printf("%s    {\"name\": %s%s%s, \"bits\": %u, \"zeroed\": %s, \"extents\": ",
               i ? ",\n" : "\n", quote, t->name ? t->name : "null", quote, t->bits,
               t->zeroed ? "true" : "false");
        print_extents(info, t->rank, t->extents, t->extent_length);
        putchar('}');
    }
    puts(info->workspace_count ? "\n  ]," : "],");
}

static void print_maps(const tilus_kernel_info *info)
{
    fputs("  \"maps\": [", stdout);
    for (size_t i = 0; i < info->map_count; i++) {
        const tilus_tensor_map *t = &info->maps[i];
        printf("%s    {\"argument\": \"%s\", \"type\": \"%s\", \"extents\": ", i ? ",\n" : "\n",
               info->args[t->argument].name, signature_map_type(t));
        print_extents(info, t->rank, t->extents, t->extent_length);
        fputs(", \"strides\": ", stdout);
        print_extents(info, t->rank - 1, t->strides, t->stride_length);
        for (unsigned d = 0; d < t->rank; d++)
            printf("%s%u", d ? ", " : ", \"box\": [", t->box[d]);
        printf("], \"swizzle\": %u, \"promotion\": %u}", t->swizzle, t->promotion);
    }
    puts(info->map_count ? "\n  ]," : "],");
}

void show_json(const tilus_artefact *a, const File *file)
{
    const tilus_kernel_info *info = a->info;
    puts("{");
    print_field("program", info->name);
    fputs("  \"grid\": ", stdout);
    print_extents(info, info->grid_rank, info->grid, info->grid_length);
    puts(",");
    print_args(info);
    printf("  \"threads\": %u,\n  \"shared_bytes\": %zu,\n", info->threads, info->shared_bytes);
    print_workspace(info);
    print_maps(info);
    printf("  \"cluster\": [%u, %u, %u],\n", info->cluster[0], info->cluster[1],
           info->cluster[2]);
    printf("  \"cooperative\": %s,\n", info->cooperative ? "true" : "false");
    printf("  \"overlaps\": %s,\n", info->overlaps ? "true" : "false");
    print_field("target", a->target);
    printf("  \"ptx_version\": %u,\n  \"ptx_bytes\": %zu,\n  \"cubin_bytes\": %zu,\n",
           a->ptx_version, strlen(a->ptx), a->cubin_size);
    printf("  \"source_bytes\": %zu,\n", strlen(a->source));
    print_field("parameters", a->parameters);
    print_field("compiler", a->compiler);
    printf("  \"format\": %u,\n  \"file_bytes\": %zu\n}\n", file->format, file->size);
}
