/* Recording and printing of diagnostics; the limits of a text. */
#include "support/diag.h"

#include "support/clock.h"
#include "support/text.h"

#include <string.h>

const LimitInfo limit_info[LIMIT_ID_COUNT] = {
#define LIMIT(id, value, name, most, what) [LIMIT_ID_##id] = {name, what, value, most},
#include "support/limits.def"
};

void diag_init(Diag *d)
{
    memset(d, 0, sizeof *d);
    arena_init(&d->arena, &d->oom);
    d->source.first_line = 1;
    d->groups = warning_defaults();
    for (LimitId id = 0; id < LIMIT_ID_COUNT; id++)
        d->limits[id] = limit_info[id].value;
}

void diag_free(Diag *d)
{
    arena_free(&d->arena);
}

/* Keeps the text without a byte-order mark: columns count from its end. */
SourceText source_keep(Arena *arena, const char *file, const char *text, size_t len,
                       uint32_t first_line)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t skipped = len >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    return (SourceText){arena_strdup(arena, file),
                        arena_strndup(arena, text + skipped, len - skipped), len - skipped,
                        first_line};
}

void diag_set_source(Diag *d, const char *file, const char *text, size_t len,
                     uint32_t first_line)
{
    d->source = source_keep(&d->arena, file, text, len, first_line);
}

void diag_add_import_path(Diag *d, const char *directory)
{
    arena_push(&d->arena, d->import_paths, d->import_path_count, d->import_path_capacity,
               arena_strdup(&d->arena, directory));
}

uint32_t diag_add_frame(Diag *d, const SourceFrame *frame)
{
    if (!d->frame_count)
        arena_push(&d->arena, d->frames, d->frame_count, d->frame_capacity,
                   ((SourceFrame){.source = &d->source}));
    arena_push(&d->arena, d->frames, d->frame_count, d->frame_capacity, *frame);
    return d->frame_count - 1;
}

const SourceText *diag_source(const Diag *d, Loc loc)
{
    return loc.frame ? d->frames[loc.frame].source : &d->source;
}

Loc diag_root(const Diag *d, Loc loc)
{
    while (loc.frame)
        loc = d->frames[loc.frame].from;
    return loc;
}

/* Returns true when frame `i` is the first of its text. */
static bool is_first_frame(const Diag *d, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (d->frames[j].source == d->frames[i].source)
            return false;
    return true;
}

const char *diag_texts(Diag *d)
{
    Text text;
    text_init(&text, &d->arena);
    text_add(&text, d->source.text);
    for (uint32_t i = 1; i < d->frame_count; i++)
        if (is_first_frame(d, i) && !d->frames[i].is_piece)
            text_printf(&text, "\n// ---- %s\n%s", d->frames[i].source->file,
                        d->frames[i].source->text);
    return text_string(&text);
}

/* ---- limits --------------------------------------------------------- */

enum { NANOSECONDS = 1000000 };     /* of a millisecond */

bool limit_allows(LimitId id, int64_t value)
{
    return value >= (id == LIMIT_ID_MILLISECONDS ? 0 : 1) && value <= limit_info[id].most;
}

bool diag_set_limit(Diag *d, LimitId id, int64_t value)
{
    if (!limit_allows(id, value))
        return false;
    d->limits[id] = value;
    if (id == LIMIT_ID_MILLISECONDS)
        d->deadline = value ? clock_nanoseconds() + value * NANOSECONDS : 0;
    return true;
}

void diag_check_time(Diag *d, Loc loc)
{
    bool late = d->deadline && clock_nanoseconds() >= d->deadline;
    if (!late && !(d->host.is_stopped && d->host.is_stopped(d->host.data)))
        return;
    d->deadline = 0;    /* the compile ends now, without another interruption */
    d->host.is_stopped = NULL;
    if (late)
        diag_error(d, loc, "the compile has come so far in %lld ms, its limit",
                   (long long)diag_limit(d, LIMIT_ID_MILLISECONDS));
    longjmp(d->oom.jump, 1);
}

/* ---- messages ------------------------------------------------------- */

/* Returns true when the warning was recorded before, at the same place. */
static bool is_repeated(const Diag *d, const Message *m)
{
    for (uint32_t i = 0; i < d->count; i++) {
        const Message *old = &d->messages[i];
        if (old->severity == m->severity && old->loc.line == m->loc.line &&
            old->loc.column == m->loc.column && old->loc.frame == m->loc.frame &&
            !strcmp(old->text, m->text))
            return true;
    }
    return false;
}

/* Counts an error or warning, and returns true when it is kept. Both have the limit of
 * errors, each by itself. */
static bool admit(Diag *d, const Message *m)
{
    if (m->group != WARNING_COUNT && is_repeated(d, m))
        return false;
    uint32_t *count = m->severity == SEVERITY_ERROR ? &d->errors : &d->warnings;
    return ++*count <= diag_limit(d, LIMIT_ID_ERRORS);
}

/* Appends the flag that is to blame: " [-Werror=pipeline]". */
static void add_flag(Text *text, Severity severity, WarningId group)
{
    if (group != WARNING_COUNT)
        text_printf(text, " [-W%s%s]", severity == SEVERITY_ERROR ? "error=" : "",
                    warning_info[group].name);
}

static void keep_message(Diag *d, Message message)
{
    arena_push(&d->arena, d->messages, d->count, d->capacity, message);
}

static void keep_frame(Diag *d, const SourceFrame *frame)
{
    keep_message(d, (Message){SEVERITY_NOTE, frame->from, frame->what, WARNING_COUNT});
}

/* Notes the calls and imports from which the text at `loc` is read: of a long way both ends. */
static void note_frames(Diag *d, Loc loc)
{
    enum { SHOWN = 8 };
    unsigned depth = 0, i = 0;
    for (Loc at = loc; at.frame; at = d->frames[at.frame].from)
        depth++;
    for (; loc.frame; loc = d->frames[loc.frame].from, i++)
        if ((i < SHOWN || i + SHOWN >= depth) && !d->frames[loc.frame].is_piece)
            keep_frame(d, &d->frames[loc.frame]);
}

static void record(Diag *d, Message message, const char *format, va_list args)
{
    const char *raw = arena_vprintf(&d->arena, format, args);
    Text text;
    text_init(&text, &d->arena);
    text_add_escaped(&text, raw, strlen(raw));
    add_flag(&text, message.severity, message.group);
    message.text = text_string(&text);
    if (message.severity != SEVERITY_NOTE)
        d->dropping = !admit(d, &message);
    if (d->dropping)
        return;
    keep_message(d, message);
    if (message.severity != SEVERITY_NOTE)
        note_frames(d, message.loc);
}

#define RECORD(severity, group)                                               \
    do {                                                                      \
        va_list args;                                                         \
        va_start(args, format);                                               \
        record(d, (Message){severity, loc, NULL, group}, format, args);       \
        va_end(args);                                                         \
    } while (0)

bool diag_error(Diag *d, Loc loc, const char *format, ...)
{
    RECORD(SEVERITY_ERROR, WARNING_COUNT);
    return false;
}

bool diag_note(Diag *d, Loc loc, const char *format, ...)
{
    RECORD(SEVERITY_NOTE, WARNING_COUNT);
    return false;
}

bool diag_warning(Diag *d, WarningId group, Loc loc, const char *format, ...)
{
    bool fatal = d->groups.fatal >> group & 1;
    if (!diag_warns(d, group)) {
        d->dropping = true;
        return true;
    }
    RECORD(fatal ? SEVERITY_ERROR : SEVERITY_WARNING, group);
    return !fatal;
}

bool diag_is_noted(const Diag *d, WarningId group, Loc loc)
{
    WarningId noted = WARNING_COUNT;    /* the group of the message that notes belong to */
    for (uint32_t i = 0; i < d->count; i++) {
        const Message *m = &d->messages[i];
        noted = m->severity == SEVERITY_NOTE ? noted : m->group;
        if (m->severity == SEVERITY_NOTE && noted == group && m->loc.line == loc.line &&
            m->loc.column == loc.column && m->loc.frame == loc.frame)
            return true;
    }
    return false;
}

const char *source_line(const SourceText *s, uint32_t line, size_t *len)
{
    if (!s->text || line < s->first_line)
        return NULL;
    const char *p = s->text, *end = s->text + s->len;
    for (uint32_t i = s->first_line; i < line; i++) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (!p)
            return NULL;
        p++;
    }
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    *len = (size_t)((newline ? newline : end) - p);
    return p;
}

/* Writes the source line and a caret under it. Long lines are cut to a window
 * around the caret, tabs become one space, bytes that are not ASCII a `?` each,
 * so that columns stay bytes; a carriage return before the line feed is none of them. */
static void write_line(const Diag *d, Loc loc, const Writer *out)
{
    enum { WINDOW = 160, LEAD = 60 };
    size_t len;
    const char *line = source_line(diag_source(d, loc), loc.line, &len);
    size_t caret = loc.column ? loc.column - 1 : 0;
    if (!line || caret > len)
        return;
    if (len > caret && line[len - 1] == '\r')
        len--;
    size_t from = caret > WINDOW - LEAD ? caret - LEAD : 0;
    size_t to = len - from > WINDOW ? from + WINDOW : len;
    for (size_t i = from; i < to; i++)
        writer_char(out, line[i] == '\t' ? ' ' : line[i] < 0x20 || line[i] >= 0x7f ? '?' : line[i]);
    writer_printf(out, "\n%*s^", (int)(caret - from), "");
    for (size_t i = 1; i < loc.length && caret + i < to; i++)
        writer_char(out, '~');
    writer_char(out, '\n');
}

static void write_dropped(const Diag *d, uint32_t count, const char *name, const Writer *out)
{
    int64_t kept = diag_limit(d, LIMIT_ID_ERRORS);
    if (count > kept)
        writer_printf(out, "%lld more %s were not kept\n", (long long)(count - kept), name);
}

static void write_message(const Diag *d, const Message *m, const Writer *out)
{
    static const char *const names[] = {"error", "warning", "note"};
    const char *file = diag_source(d, m->loc)->file;
    if (file) {
        writer_add(out, file);
        writer_char(out, ':');
    }
    if (m->loc.line)
        writer_printf(out, "%u:%u:", m->loc.line, m->loc.column);
    writer_printf(out, "%s%s: ", file || m->loc.line ? " " : "", names[m->severity]);
    writer_add(out, m->text);
    writer_char(out, '\n');
    if (m->loc.line)
        write_line(d, m->loc, out);
}

void diag_write(const Diag *d, const Writer *out)
{
    for (uint32_t i = 0; i < d->count; i++)
        write_message(d, &d->messages[i], out);
    write_dropped(d, d->errors, "errors", out);
    write_dropped(d, d->warnings, "warnings", out);
}
