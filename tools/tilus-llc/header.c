/* A C header with an artefact in it, and functions whose arguments are the program's. It
 * is C99 and C++11; what it calls is tilus/runtime.h's. */
#define _GNU_SOURCE
#include "tool.h"

#include "common/signature.h"
#include "support/kernel_info.h"
#include "tilus/artefact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A header under construction. */
typedef struct Header {
    FILE *out;
    const tilus_artefact *artefact;
    const tilus_kernel_info *info;
    char *prefix;               /* what the names of all that it declares begin with */
    char **names;               /* of the arguments, in C */
} Header;

/* ---- names ------------------------------------------------------------ */

/* Names that an argument cannot have: words of C and C++, and names in these functions. */
static const char *const taken_names[] = {
    "alignas", "alignof", "and", "and_eq", "args", "asm", "auto", "bitand", "bitor", "bool",
    "break", "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await",
    "co_return", "co_yield", "compl", "concept", "const", "const_cast", "consteval",
    "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for",
    "friend", "goto", "if", "inline", "int", "kernel", "linux", "long", "mutable",
    "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq",
    "private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict",
    "return", "short", "signed", "size", "sizeof", "static", "static_assert", "static_cast",
    "stream", "struct", "switch", "template", "this", "thread_local", "throw", "true", "try",
    "typedef", "typeid", "typename", "typeof", "union", "unix", "unsigned", "using",
    "virtual", "void", "volatile", "wchar_t", "while", "workspace", "workspace_size", "xor",
    "xor_eq", "I", "NULL", "assert", "errno", "stderr", "stdin", "stdout", "int32_t",
    "int64_t", "size_t", "tilus_arg", "tilus_kernel",
    "tilus_launch", "tilus_status", "tilus_stream", "tilus_workspace_size", "uint32_t",
    "uint64_t"};

static bool is_taken(const Header *h, const char *name, size_t earlier)
{
    for (size_t i = 0; i < sizeof taken_names / sizeof *taken_names; i++)
        if (!strcmp(taken_names[i], name))
            return true;
    for (size_t i = 0; i < earlier; i++)
        if (!strcmp(h->names[i], name))
            return true;
    return false;
}

static bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_small(char c) { return c >= 'a' && c <= 'z'; }

/* A number, a name that belongs to C ("_Bool"), or one that a macro is likely to have
 * ("INT32_MAX", "EOF"). */
static bool is_foreign(const char *name)
{
    bool capitals = false, small = false;
    for (const char *p = name; *p; p++) {
        capitals |= is_capital(*p);
        small |= is_small(*p);
    }
    return *name == '_' || (*name >= '0' && *name <= '9') || (capitals && !small && name[1]);
}

/* The i-th argument's name: its own, after "arg_" where that cannot be one of C, and with
 * as many "_" after it as make it one that is free. */
static char *name_argument(const Header *h, size_t i)
{
    const char *name = h->info->args[i].name, *before = is_foreign(name) ? "arg_" : "";
    size_t len = strlen(before) + strlen(name);
    size_t size = len + i + sizeof taken_names / sizeof *taken_names + 1;
    char *copy = malloc(size);
    if (!copy)
        return NULL;
    snprintf(copy, size, "%s%s", before, name);
    for (; is_taken(h, copy, i); len++)
        strcpy(copy + len, "_");
    return copy;
}

/* The program's name, unless it might make one of the library's: of @tilus, tilus_launch. */
static bool make_names(Header *h)
{
    const char *name = h->info->name;
    if (asprintf(&h->prefix, "%s%s", strncmp(name, "tilus", 5) ? "" : "kernel_", name) < 0)
        h->prefix = NULL;
    h->names = calloc(h->info->arg_count + 1, sizeof *h->names);
    for (size_t i = 0; h->names && i < h->info->arg_count; i++)
        if (!(h->names[i] = name_argument(h, i)))
            return false;
    return h->prefix && h->names;
}

static void free_names(Header *h)
{
    for (size_t i = 0; h->names && i < h->info->arg_count; i++)
        free(h->names[i]);
    free(h->names);
    free(h->prefix);
}

/* ---- text ------------------------------------------------------------- */

/* A comment's text; nothing in it ends the comment, or looks like the start of one. */
static void print_comment(const Header *h, const char *text)
{
    for (; *text; text++) {
        bool bound = !strncmp(text, "*/", 2) || !strncmp(text, "/*", 2);
        fputc((unsigned char)*text < ' ' || *text == '\\' || bound ? ' ' : *text, h->out);
    }
}

static void print_opening(const Header *h)
{
    fprintf(h->out, "/* @%s", h->info->name);
    signature_print_grid(h->out, h->info);
    fprintf(h->out, " for %s", h->artefact->target);
    if (*h->artefact->parameters) {
        fputs(", ", h->out);
        print_comment(h, h->artefact->parameters);
    }
    fputs(".\n * Made by ", h->out);
    print_comment(h, h->artefact->compiler);
    fprintf(h->out, "; do not edit.\n *\n");
    for (size_t i = 0; i < h->info->arg_count; i++) {
        fprintf(h->out, " *   %s: ", h->names[i]);
        signature_print_arg(h->out, &h->info->args[i]);
        fputc('\n', h->out);
    }
    fprintf(h->out, " *\n * Pointers are addresses of device memory. */\n"
            "#ifndef TILUS_KERNEL_%s_H\n#define TILUS_KERNEL_%s_H\n\n"
            "#include <tilus/runtime.h>\n\n#include <stdint.h>\n\n", h->prefix, h->prefix);
}

static void print_bytes(const Header *h, const unsigned char *bytes, size_t size)
{
    enum { LINE = 20 };
    fprintf(h->out, "/* The artefact, as of %s.tilusk. */\n"
            "static const unsigned char %s_artefact[%zu] = {", h->info->name, h->prefix, size);
    for (size_t i = 0; i < size; i++)
        fprintf(h->out, "%s%u,", i % LINE ? "" : "\n    ", bytes[i]);
    fputs("\n};\n\n", h->out);
}

static void print_create(const Header *h)
{
    const char *name = h->prefix;
    fprintf(h->out, "/* Makes the kernel, which the caller prepares by tilus_kernel_prepare and "
            "releases by\n * tilus_kernel_unload. */\n"
            "static inline tilus_status %s_create(tilus_rt *rt, tilus_kernel **kernel)\n{\n"
            "    return tilus_kernel_load(rt, %s_artefact, sizeof %s_artefact, kernel);\n}\n\n",
            name, name, name);
}

/* ", uint64_t a, int32_t m" */
static void print_parameters(const Header *h)
{
    static const char *const types[] = {
        [TILUS_ARG_POINTER] = "uint64_t", [TILUS_ARG_I32] = "int32_t",
        [TILUS_ARG_U32] = "uint32_t", [TILUS_ARG_I64] = "int64_t", [TILUS_ARG_F16] = "float",
        [TILUS_ARG_BF16] = "float", [TILUS_ARG_F32] = "float"};
    for (size_t i = 0; i < h->info->arg_count; i++)
        fprintf(h->out, ",\n    %s %s", types[h->info->args[i].kind], h->names[i]);
}

/* The member of tilus_arg that an argument of `kind` is. */
static const char *argument_member(tilus_arg_kind kind)
{
    return kind == TILUS_ARG_POINTER    ? "pointer"
           : kernel_arg_is_float(kind) ? "real"
                                        : "integer";
}

/* The array `args`, if there are any. */
static void print_args(const Header *h)
{
    if (h->info->arg_count)
        fprintf(h->out, "    tilus_arg args[%zu];\n", h->info->arg_count);
    for (size_t i = 0; i < h->info->arg_count; i++)
        fprintf(h->out, "    args[%zu].%s = %s;\n", i, argument_member(h->info->args[i].kind),
                h->names[i]);
}

static void print_workspace(const Header *h)
{
    const char *args = h->info->arg_count ? "args" : "NULL";
    if (!h->info->workspace_count)
        return;
    fprintf(h->out, "/* Bytes of workspace that a launch with these arguments needs. */\n"
            "static inline tilus_status %s_workspace_size(const tilus_kernel *kernel",
            h->prefix);
    print_parameters(h);
    fputs(",\n    size_t *size)\n{\n", h->out);
    print_args(h);
    fprintf(h->out, "    return tilus_workspace_size(kernel, %s, %zu, size);\n}\n\n", args,
            h->info->arg_count);
}

static void print_launch(const Header *h)
{
    const char *args = h->info->arg_count ? "args" : "NULL";
    bool lends = h->info->workspace_count > 0;
    fprintf(h->out, "/* Checks the arguments and enqueues the launch, as tilus_launch does. */\n"
            "static inline tilus_status %s_launch(tilus_kernel *kernel, tilus_stream stream",
            h->prefix);
    print_parameters(h);
    fprintf(h->out, "%s)\n{\n", lends ? ",\n    uint64_t workspace, size_t workspace_size" : "");
    print_args(h);
    fprintf(h->out, "    return tilus_launch(kernel, stream, %s, %zu, %s);\n}\n\n", args,
            h->info->arg_count, lends ? "workspace, workspace_size" : "0, 0");
}

static bool print_header(Header *h, const void *bytes, size_t size)
{
    if (!make_names(h))
        return false;
    print_opening(h);
    print_bytes(h, bytes, size);
    print_create(h);
    print_workspace(h);
    print_launch(h);
    fputs("#endif\n", h->out);
    return true;
}

char *header_make(const void *bytes, size_t size)
{
    char *text = NULL;
    size_t text_size;
    tilus_artefact *a;
    if (tilus_artefact_read(bytes, size, &a, NULL, 0) != TILUS_OK)
        return NULL;
    Header h = {.out = open_memstream(&text, &text_size), .artefact = a, .info = a->info};
    bool ok = h.out && print_header(&h, bytes, size);
    free_names(&h);
    free(a);
    if (h.out && fclose(h.out) != 0)
        ok = false;
    if (ok)
        return text;
    free(text);
    return NULL;
}
