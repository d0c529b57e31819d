/* Reading the header of a reproducer. */
#define _GNU_SOURCE
#include "common/reproducer.h"

#include "common/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Moves the next word of `*line` to `out` without its quotes; returns what
 * follows its NUL, or NULL when the line has no more. */
static char *take_word(const char **line, char *out)
{
    const char *p = *line + strspn(*line, " ");
    bool quoted = false;
    if (!*p)
        return NULL;
    for (; *p && (quoted || *p != ' '); p++) {
        if (*p == '\'')
            quoted = !quoted;
        else if (*p == '\\' && !quoted && p[1])
            *out++ = *++p;
        else
            *out++ = *p;
    }
    *line = p;
    *out++ = '\0';
    return out;
}

/* The command line of `text`, NUL-terminated there; NULL if it is not one of
 * `tool`. */
static const char *header_of(char *text, const char *tool)
{
    static const char mark[] = "// ";
    size_t n = strlen(tool);
    text[strcspn(text, "\r\n")] = '\0';
    if (strncmp(text, mark, sizeof mark - 1))
        return NULL;
    text += sizeof mark - 1;
    return !strncmp(text, tool, n) && (text[n] == ' ' || !text[n]) ? text + n : NULL;
}

/* argv[0], the words of `header`, the rest of argv. One allocation holds the
 * array and, after it, the words, which are no longer than the header. */
static char **join(const char *header, int argc, char **argv, int *count)
{
    size_t most = strlen(header) / 2 + 1 + (size_t)argc + 1;
    char **all = malloc(most * sizeof *all + strlen(header) + 1), *word, *next;
    if (!all)
        return NULL;
    *count = 0;
    all[(*count)++] = argv[0];
    for (word = (char *)(all + most); (next = take_word(&header, word)); word = next)
        all[(*count)++] = word;
    for (int i = 1; i < argc; i++)
        all[(*count)++] = argv[i];
    all[*count] = NULL;
    return all;
}

char **reproducer_arguments(const char *tool, const StringList *inputs, int argc, char **argv,
                            int *count)
{
    char *text, **all = NULL;
    size_t size;
    if (inputs->count != 1 || !strcmp(inputs->items[0], "-")) {
        fprintf(stderr, "%s: error: --run-reproducer needs one file\n", tool);
        return NULL;
    }
    if (!file_read(tool, inputs->items[0], TEXT_SIZE_MAX, &text, &size))
        return NULL;
    const char *header = header_of(text, tool);
    if (!header)
        fprintf(stderr,
                "%s: error: '%s' is no reproducer: its first line is not '// %s ...'\n", tool,
                inputs->items[0], tool);
    else if (!(all = join(header, argc, argv, count)))
        fprintf(stderr, "%s: error: out of memory\n", tool);
    free(text);
    return all;
}
