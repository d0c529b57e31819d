/* Remarks: their sentences, as lines, YAML and JSON. */
#include "support/remark.h"

#include "support/json.h"
#include "support/text.h"
#include "support/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <regex.h>
#include <string.h>

const RemarkInfo remark_info[REMARK_COUNT] = {
#define REMARK_ROW(pass, name, kind, text, meaning, cure) \
    [REMARK_##name] = {pass, #name, TILUS_REMARK_##kind, text, meaning, cure},
#include "support/remarks.def"
};

RemarkId remark_find(const char *name)
{
    RemarkId id = 0;
    while (id < REMARK_COUNT && strcmp(remark_info[id].name, name))
        id++;
    return id;
}

static const char *const option_names[] = {"-Rpass", "-Rpass-missed"};

/* ---- requests ------------------------------------------------------------------ */

/* An expression is compiled for each use: it holds memory of its own, which no
 * jump out of an arena must leave behind. */
static bool matches(const char *wanted, const char *pass)
{
    regex_t regex;
    if (!wanted || regcomp(&regex, wanted, REG_EXTENDED | REG_NOSUB))
        return false;
    bool found = regexec(&regex, pass, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

bool remarks_check(const Remarks *remarks, Diag *diag)
{
    for (int kind = TILUS_REMARK_PASSED; kind <= TILUS_REMARK_MISSED; kind++) {
        regex_t regex;
        char why[128];
        int error = remarks->wanted[kind]
                        ? regcomp(&regex, remarks->wanted[kind], REG_EXTENDED | REG_NOSUB) : 0;
        if (error) {
            regerror(error, &regex, why, sizeof why);
            return diag_error(diag, (Loc){0}, "%s=%s is no regular expression: %s",
                              option_names[kind], remarks->wanted[kind], why);
        }
        if (remarks->wanted[kind])
            regfree(&regex);
    }
    return true;
}

bool remarks_wanted(const Remarks *remarks)
{
    return remarks && (remarks->wanted[TILUS_REMARK_PASSED] ||
                       remarks->wanted[TILUS_REMARK_MISSED] || remarks->file.write ||
                       remarks->take);
}

/* ---- rows ------------------------------------------------------------------------ */

/* Reads the type of an argument, and the space after it. */
static tilus_remark_type take_type(const char **at)
{
    static const char *const words[] = {[TILUS_REMARK_INTEGER] = "int ",
                                        [TILUS_REMARK_REAL] = "real ",
                                        [TILUS_REMARK_TEXT] = "text "};
    int type = TILUS_REMARK_INTEGER;
    while (type < TILUS_REMARK_TEXT && strncmp(*at, words[type], strlen(words[type])))
        type++;
    *at += strlen(words[type]);
    return (tilus_remark_type)type;
}

bool remark_next_piece(const char **at, RemarkPiece *piece)
{
    const char *p = *at;
    *piece = (RemarkPiece){.kind = PIECE_WORDS, .start = p, .len = strcspn(p, "{")};
    *at = p + piece->len;
    if (piece->len || !*p)
        return *p != '\0';
    p++;
    piece->hidden = *p == '-';
    p += piece->hidden;
    piece->kind = p[0] == 's' && p[1] == ' ' ? PIECE_PLURAL : PIECE_VALUE;
    if (piece->kind == PIECE_VALUE)
        piece->type = take_type(&p);
    else
        p += 2;
    piece->start = p;
    piece->len = strcspn(p, "}");
    *at = p + piece->len + 1;
    return true;
}

/* ---- sentences ------------------------------------------------------------------- */

static void add_value(Text *text, const tilus_remark_argument *a)
{
    if (a->type == TILUS_REMARK_INTEGER)
        text_printf(text, "%" PRId64, a->integer);
    else if (a->type == TILUS_REMARK_REAL)
        text_printf(text, "%.3f", a->real);
    else
        text_add(text, a->text);
}

/* Returns "s" unless the argument that the piece names is 1. */
static const char *plural(const RemarkPiece *piece, const tilus_remark *r)
{
    for (size_t i = 0; i < r->argument_count; i++)
        if (strlen(r->arguments[i].name) == piece->len &&
            !memcmp(r->arguments[i].name, piece->start, piece->len))
            return r->arguments[i].integer == 1 ? "" : "s";
    assert(!"a plural of an argument of the row");
    return "";
}

static const char *sentence(Arena *arena, const RemarkInfo *info, const tilus_remark *r)
{
    Text text;
    RemarkPiece piece;
    const tilus_remark_argument *next = r->arguments;
    text_init(&text, arena);
    for (const char *at = info->text; remark_next_piece(&at, &piece);) {
        if (piece.kind == PIECE_WORDS)
            text_add_n(&text, piece.start, piece.len);
        else if (piece.kind == PIECE_PLURAL)
            text_add(&text, plural(&piece, r));
        else if (!piece.hidden)
            add_value(&text, next);
        next += piece.kind == PIECE_VALUE;
    }
    return text_string(&text);
}

/* Copies the values with the names that their row gives them. */
static void name_arguments(Arena *arena, const RemarkInfo *info, tilus_remark_argument *all,
                           const tilus_remark_argument *values, size_t count)
{
    RemarkPiece piece;
    size_t i = 0;
    for (const char *at = info->text; remark_next_piece(&at, &piece);) {
        if (piece.kind != PIECE_VALUE)
            continue;
        assert(i < count && values[i].type == piece.type);
        all[i] = values[i];
        all[i++].name = arena_strndup(arena, piece.start, piece.len);
    }
    assert(i == count);
    (void)count;
}

/* ---- forms ------------------------------------------------------------------------ */

/* Returns true when YAML takes all characters of `text` between single quotes, on one line. */
static bool is_plain(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    return utf8_valid(text, strlen(text));
}

/* Writes `text` in single quotes, where YAML gives only the quote itself a meaning; other
 * characters need the escapes of double quotes, of which JSON's are some. */
static void write_quoted(const Writer *file, const char *text)
{
    if (!is_plain(text)) {
        write_json_string(file, text);
        return;
    }
    writer_char(file, '\'');
    for (; *text; text++)
        writer_add_n(file, *text == '\'' ? "''" : text, *text == '\'' ? 2 : 1);
    writer_char(file, '\'');
}

static void write_member(const Writer *file, const char *key, const char *value)
{
    writer_printf(file, "  - %s: ", key);
    write_quoted(file, value);
    writer_char(file, '\n');
}

static void write_value(const Writer *file, Arena *arena, const tilus_remark_argument *a)
{
    Text text;
    text_init(&text, arena);
    add_value(&text, a);
    write_member(file, a->name, text_string(&text));
}

/* Writes the words and the values of the sentence, and then the values that are not in it. */
static void write_arguments(const Writer *file, Arena *arena, const RemarkInfo *info,
                            const tilus_remark *r)
{
    Text words;
    RemarkPiece piece;
    writer_add(file, "Args:\n");
    text_init(&words, arena);
    const tilus_remark_argument *next = r->arguments;
    for (const char *at = info->text; remark_next_piece(&at, &piece);) {
        if (piece.kind == PIECE_WORDS)
            text_add_n(&words, piece.start, piece.len);
        else if (piece.kind == PIECE_PLURAL)
            text_add(&words, plural(&piece, r));
        bool ends = piece.kind == PIECE_VALUE && !piece.hidden;
        if (words.len && (ends || !*at))
            write_member(file, "String", text_string(&words));
        if (ends) {
            write_value(file, arena, next);
            text_init(&words, arena);
        }
        next += piece.kind == PIECE_VALUE;
    }
}

static void write_hidden(const Writer *file, Arena *arena, const RemarkInfo *info,
                         const tilus_remark *r)
{
    RemarkPiece piece;
    const tilus_remark_argument *next = r->arguments;
    for (const char *at = info->text; remark_next_piece(&at, &piece);) {
        if (piece.kind == PIECE_VALUE && piece.hidden)
            write_value(file, arena, next);
        next += piece.kind == PIECE_VALUE;
    }
}

/* Writes a document as LLVM's remark library does (llvm/lib/Remarks, YAMLRemarkSerializer). */
static void write_yaml(const Writer *file, Arena *arena, const RemarkInfo *info,
                       const tilus_remark *r)
{
    writer_printf(file, "--- !%s\nPass: %s\nName: %s\nDebugLoc: { File: ",
                  r->kind == TILUS_REMARK_PASSED ? "Passed" : "Missed", r->pass, r->name);
    write_quoted(file, r->file);
    writer_printf(file, ", Line: %u, Column: %u }\nFunction: %s\n", r->line, r->column,
                  r->program);
    write_arguments(file, arena, info, r);
    write_hidden(file, arena, info, r);
    writer_add(file, "...\n");
}

static void write_json_argument(const Writer *file, const tilus_remark_argument *a, bool first)
{
    write_json_key(file, a->name, first);
    if (a->type == TILUS_REMARK_INTEGER)
        writer_printf(file, "%" PRId64, a->integer);
    else if (a->type == TILUS_REMARK_REAL)
        writer_printf(file, "%.3f", a->real);
    else
        write_json_string(file, a->text);
}

/* Writes an object on a line. */
static void write_json(const Writer *file, const tilus_remark *r)
{
    writer_printf(file, "{\"kind\": \"%s\", \"pass\": \"%s\", \"name\": \"%s\", \"file\": ",
                  r->kind == TILUS_REMARK_PASSED ? "passed" : "missed", r->pass, r->name);
    write_json_string(file, r->file);
    writer_printf(file, ", \"line\": %u, \"column\": %u, \"program\": ", r->line, r->column);
    write_json_string(file, r->program);
    writer_add(file, ", \"text\": ");
    write_json_string(file, r->text);
    writer_add(file, ", \"args\": {");
    for (size_t i = 0; i < r->argument_count; i++)
        write_json_argument(file, &r->arguments[i], i == 0);
    writer_add(file, "}}\n");
}

static void write_line(const Writer *out, const tilus_remark *r)
{
    writer_add(out, r->file);
    writer_printf(out, ":%u:%u: remark: ", r->line, r->column);
    writer_add(out, r->text);
    writer_printf(out, " [%s=%s]\n", option_names[r->kind], r->pass);
}

static void emit(const Remarks *remarks, const RemarkInfo *info, Diag *diag, Loc loc,
                 const tilus_remark_argument *values, size_t count)
{
    bool print = remarks && matches(remarks->wanted[info->kind], info->pass);
    if (!print && !(remarks && (remarks->file.write || remarks->take)))
        return;
    ArenaMark mark = arena_mark(&diag->arena);
    tilus_remark_argument all[REMARK_ARGUMENTS_MAX];
    const char *file = diag_source(diag, loc)->file;
    name_arguments(&diag->arena, info, all, values, count);
    tilus_remark r = {.struct_size = sizeof r, .kind = info->kind, .pass = info->pass,
                      .name = info->name, .program = remarks->program ? remarks->program : "",
                      .file = file ? file : "", .line = loc.line, .column = loc.column,
                      .arguments = all, .argument_count = count};
    r.text = sentence(&diag->arena, info, &r);
    if (print)
        write_line(&remarks->out, &r);
    if (remarks->file.write && remarks->format == TILUS_REMARKS_YAML)
        write_yaml(&remarks->file, &diag->arena, info, &r);
    else if (remarks->file.write)
        write_json(&remarks->file, &r);
    if (remarks->take)
        remarks->take(remarks->taker, &r);
    arena_reset(&diag->arena, mark);
}

void remark_emit(const Remarks *remarks, RemarkId id, Diag *diag, Loc loc,
                 const tilus_remark_argument *values, size_t count)
{
    emit(remarks, &remark_info[id], diag, loc, values, count);
}

void remark_emit_own(const Remarks *remarks, const char *pass, tilus_remark_kind kind, Diag *diag,
                     Loc loc, const char *text)
{
    const RemarkInfo info = {pass, "OwnRemark", kind, "{text Text}", NULL, NULL};
    const tilus_remark_argument value = remark_text(text);
    emit(remarks, &info, diag, loc, &value, 1);
}
