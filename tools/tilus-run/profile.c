/* --profile: what lines did on the interpreter; on a GPU, how to ask Nsight Compute. */
#include "measured.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- lines ---------------------------------------------------------- */

/* The text of line `number` (from 1), without the blanks that it begins with. */
static const char *find_line(const Run *run, unsigned number, int *len)
{
    const char *line = run->text;
    for (unsigned i = 1; i < number && line; i++) {
        line = strchr(line, '\n');
        line += line != NULL;
    }
    if (!line || number == 0)
        line = "";
    line += strspn(line, " \t");
    *len = (int)strcspn(line, "\r\n");
    return line;
}

static void print_size(uint64_t bits)
{
    if (bits)
        printf(" %14" PRIu64, (bits + 7) / 8);
    else
        printf(" %14s", "");
}

static void print_line(const Run *run, const tilus_line_profile *p)
{
    enum { TEXT_MAX = 60 };
    int len;
    const char *text = find_line(run, p->line, &len);
    printf("profile: %5u %12" PRIu64, p->line, p->ops);
    print_size(p->global_read);
    print_size(p->global_written);
    print_size(p->shared_read);
    print_size(p->shared_written);
    printf("  %.*s\n", len < TEXT_MAX ? len : TEXT_MAX, text);
}

void profile_print(void *data, const tilus_line_profile *lines, size_t count)
{
    printf("profile: %5s %12s %14s %14s %14s %14s\n", "", "", "bytes read", "bytes written",
           "bytes read", "bytes written");
    printf("profile: %5s %12s %14s %14s %14s %14s  text\n", "line", "ops", "global", "global",
           "shared", "shared");
    for (size_t i = 0; i < count; i++)
        print_line(data, &lines[i]);
    measured_keep_lines(data, lines, count);
}

/* ---- a command ------------------------------------------------------ */

static bool is_profile(const char *word)
{
    word += *word == '-';
    word += *word == '-';
    return strcmp(word, "profile") == 0 || strncmp(word, "profile=", 8) == 0;
}

/* A word as a shell reads it back. */
static void print_word(const char *word)
{
    static const char plain[] = "@%+=:,./_-";
    bool quote = !*word;
    for (const char *p = word; *p; p++)
        quote |= !isalnum((unsigned char)*p) && !strchr(plain, *p);
    if (!quote) {
        printf(" %s", word);
        return;
    }
    fputs(" '", stdout);
    for (const char *p = word; *p; p++)
        fputs(*p == '\'' ? "'\\''" : (char[]){*p, 0}, stdout);
    putchar('\'');
}

void profile_print_command(const Run *run)
{
    printf("profile: ncu --set full --kernel-name %s --launch-count 1", run->info->name);
    for (int i = 0; i < run->argc; i++)
        if (i == 0 || !is_profile(run->argv[i]))
            print_word(run->argv[i]);
    putchar('\n');
}
