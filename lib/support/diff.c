/* Differences of texts: the longest common subsequence of what lies between the lines that
 * both begin and end with, by dynamic programming. */
#include "support/diff.h"

#include <string.h>

enum {
    CONTEXT = 3,                /* lines around changes */
    CELLS_MAX = 1 << 22         /* of the table */
};

typedef struct Lines {
    const char **start;         /* count + 1 of them */
    uint32_t count;
} Lines;

typedef struct Diff {
    const Writer *out;
    Lines a, b;
    uint32_t head, tail;        /* lines that both begin and end with */
    uint32_t columns;           /* of the table */
    uint32_t *common;           /* [i][j]: of the rest from a's line i and b's line j on; NULL:
                                   nothing is taken to be common */
} Diff;

/* An edit of lines: a's from[0] .. to[0] become b's from[1] .. to[1]. */
typedef struct Edit {
    uint32_t from[2], to[2];
} Edit;

static Lines split_lines(Arena *arena, const char *text)
{
    Lines lines = {NULL, 0};
    for (const char *p = text; *p; p++)
        lines.count += *p == '\n' || !p[1];
    lines.start = arena_array(arena, const char *, lines.count + 1);
    for (uint32_t i = 0; i < lines.count; i++) {
        lines.start[i] = text;
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    lines.start[lines.count] = text;
    return lines;
}

static size_t line_length(const Lines *l, uint32_t i)
{
    return (size_t)(l->start[i + 1] - l->start[i]);
}

static bool is_same(const Diff *d, uint32_t i, uint32_t j)
{
    size_t length = line_length(&d->a, i);
    return length == line_length(&d->b, j) && !memcmp(d->a.start[i], d->b.start[j], length);
}

static void find_ends(Diff *d)
{
    uint32_t least = d->a.count < d->b.count ? d->a.count : d->b.count;
    while (d->head < least && is_same(d, d->head, d->head))
        d->head++;
    while (d->tail < least - d->head &&
           is_same(d, d->a.count - 1 - d->tail, d->b.count - 1 - d->tail))
        d->tail++;
}

static void fill_table(Diff *d, Arena *arena)
{
    uint32_t rows = d->a.count - d->head - d->tail, columns = d->b.count - d->head - d->tail;
    if ((uint64_t)(rows + 1) * (columns + 1) > CELLS_MAX)
        return;
    d->columns = columns + 1;
    d->common = arena_array(arena, uint32_t, (size_t)(rows + 1) * d->columns);
    for (uint32_t i = rows; i-- > 0;)
        for (uint32_t j = columns; j-- > 0;) {
            uint32_t *at = &d->common[i * d->columns + j];
            uint32_t below = at[d->columns], right = at[1];
            *at = is_same(d, d->head + i, d->head + j) ? at[d->columns + 1] + 1
                  : below > right                      ? below
                                                       : right;
        }
}

static bool is_at_end(const Diff *d, uint32_t i, uint32_t j)
{
    return i == d->a.count - d->tail && j == d->b.count - d->tail;
}

/* Returns true when a's line i and b's line j belong together. */
static bool is_kept(const Diff *d, uint32_t i, uint32_t j)
{
    return d->common && i < d->a.count - d->tail && j < d->b.count - d->tail && is_same(d, i, j);
}

/* Moves past one line that is in one text only. */
static void skip_line(const Diff *d, uint32_t *i, uint32_t *j)
{
    bool a = *i < d->a.count - d->tail, b = *j < d->b.count - d->tail;
    const uint32_t *at = d->common && a && b
                             ? &d->common[(*i - d->head) * d->columns + (*j - d->head)] : NULL;
    if (a && (!b || !at || at[d->columns] >= at[1]))
        ++*i;
    else
        ++*j;
}

/* Takes the next edit from lines `*i` and `*j` on; false at the end. */
static bool next_edit(const Diff *d, uint32_t *i, uint32_t *j, Edit *edit)
{
    while (is_kept(d, *i, *j))
        ++*i, ++*j;
    if (is_at_end(d, *i, *j))
        return false;
    *edit = (Edit){{*i, *j}, {0, 0}};
    while (!is_at_end(d, *i, *j) && !is_kept(d, *i, *j))
        skip_line(d, i, j);
    edit->to[0] = *i;
    edit->to[1] = *j;
    return true;
}

/* ---- writing -------------------------------------------------------------------------- */

static void write_lines(const Diff *d, char mark, const Lines *l, uint32_t from, uint32_t to)
{
    for (; from < to; from++) {
        size_t length = line_length(l, from);
        writer_char(d->out, mark);
        writer_add_n(d->out, l->start[from], length);
        if (!length || l->start[from][length - 1] != '\n')
            writer_char(d->out, '\n');
    }
}

/* Writes "12,3": where lines begin, and how many they are. */
static void write_range(const Diff *d, char mark, uint32_t from, uint32_t to)
{
    writer_printf(d->out, "%c%u,%u", mark, from + (to > from), to - from);
}

/* Writes edits that lie close together as one hunk. */
static void write_hunk(const Diff *d, const Edit *edits, uint32_t count)
{
    const Edit *last = &edits[count - 1];
    uint32_t lead = edits->from[0] < CONTEXT ? edits->from[0] : CONTEXT;
    uint32_t left = d->a.count - last->to[0], trail = left < CONTEXT ? left : CONTEXT;
    writer_add(d->out, "@@ ");
    write_range(d, '-', edits->from[0] - lead, last->to[0] + trail);
    writer_char(d->out, ' ');
    write_range(d, '+', edits->from[1] - lead, last->to[1] + trail);
    writer_add(d->out, " @@\n");
    uint32_t at = edits->from[0] - lead;
    for (uint32_t i = 0; i < count; i++) {
        write_lines(d, ' ', &d->a, at, edits[i].from[0]);
        write_lines(d, '-', &d->a, edits[i].from[0], edits[i].to[0]);
        write_lines(d, '+', &d->b, edits[i].from[1], edits[i].to[1]);
        at = edits[i].to[0];
    }
    write_lines(d, ' ', &d->a, at, at + trail);
}

static void write_edits(const Diff *d, const Edit *edits, uint32_t count)
{
    for (uint32_t i = 0, n; i < count; i += n) {
        n = 1;
        while (i + n < count && edits[i + n].from[0] - edits[i + n - 1].to[0] <= 2 * CONTEXT)
            n++;
        write_hunk(d, edits + i, n);
    }
}

void diff_write(const Writer *out, Arena *scratch, const char *before, const char *after)
{
    ArenaMark mark = arena_mark(scratch);
    Diff d = {.out = out, .a = split_lines(scratch, before), .b = split_lines(scratch, after)};
    Edit *edits = NULL, edit;
    uint32_t count = 0, capacity = 0;
    find_ends(&d);
    fill_table(&d, scratch);
    for (uint32_t i = d.head, j = d.head; next_edit(&d, &i, &j, &edit);)
        arena_push(scratch, edits, count, capacity, edit);
    write_edits(&d, edits, count);
    arena_reset(scratch, mark);
}
