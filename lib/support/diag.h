/* Diagnostics: the user's mistakes, certain and probable ones, located in the program text.
 *
 * Errors are values: `diag_error` records a message and returns false, so
 * that reporting and failing are one statement. Messages start in lower case,
 * end without a period and give both values. Nothing is printed here. */
#ifndef TILUS_SUPPORT_DIAG_H
#define TILUS_SUPPORT_DIAG_H

#include "support/arena.h"
#include "support/limits.h"
#include "support/writer.h"
#include "support/warnings.h"

#include <stdbool.h>

/* A place in the program text. line 0 means "nowhere in the text". */
typedef struct Loc {
    uint32_t line;      /* from 1, in the whole file */
    uint32_t column;    /* from 1, in bytes */
    uint32_t length;    /* bytes to underline, at least 1 */
    uint32_t frame;     /* of Diag.frames: the text, and how it came to be read; 0: the main one */
} Loc;

/* A text: the one that is parsed, or a file that it imports, without a byte-order mark. */
typedef struct SourceText {
    const char *file;
    const char *text;       /* NUL-terminated copy */
    size_t len;
    uint32_t first_line;    /* line number of text[0] in the file */
} SourceText;

/* Copies the file's name and its text. */
SourceText source_keep(Arena *arena, const char *file, const char *text, size_t len,
                       uint32_t first_line);

/* Why a text is read: an import, or a call of a function, which reads its body once more. */
typedef struct SourceFrame {
    const SourceText *source;
    Loc from;               /* the import or call, in a frame with a smaller number */
    const char *what;       /* "in the call of @silu" */
    const char *function;   /* that is called; NULL: an import */
    uint32_t line;          /* on which the function is defined */
    uint32_t first;         /* the frame of its first call; 0: this one is it */
    bool is_piece;          /* a type or layout alone, which is no part of the texts */
} SourceFrame;

typedef enum Severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE } Severity;

typedef struct Message {
    Severity severity;
    Loc loc;
    const char *text;
    WarningId group;        /* of a warning, also of one that is an error; else WARNING_COUNT */
} Message;

/* Callbacks of an editor's server that compiles; each may be NULL. */
typedef struct DiagHost {
    /* The text of the file with this canonical path, in place of the disk's, and its bytes, both of
     * which the compile copies; NULL: it has none. */
    const char *(*open_text)(void *data, const char *path, size_t *len);
    bool (*is_stopped)(void *data);     /* asked by diag_check_time; true: the compile ends */
    void *data;
} DiagHost;

/* Texts and messages of a parse. Owns copies of both; one thread at a time. */
typedef struct tilus_diag Diag;

struct tilus_diag {
    OutOfMemory oom;
    Arena arena;
    SourceText source;          /* the main text */
    SourceFrame *frames;          /* frames[0] stands for the main text */
    uint32_t frame_count, frame_capacity;
    const char **import_paths;  /* directories of files that are imported */
    uint32_t import_path_count, import_path_capacity;
    Message *messages;
    uint32_t count, capacity;
    uint32_t errors, warnings;  /* reported, including those past the limit */
    bool dropping;          /* the last error or warning was not kept, nor are its notes */
    WarningSet groups;      /* of warnings, as the user set them */
    int64_t limits[LIMIT_ID_COUNT];
    int64_t deadline;       /* of a compile, in nanoseconds of CLOCK_MONOTONIC; 0: none */
    DiagHost host;
};

/* Prepares an empty Diag, and frees what it owns. */
void diag_init(Diag *d);
void diag_free(Diag *d);

/* Sets the text that later locations refer to; copies both strings. */
void diag_set_source(Diag *d, const char *file, const char *text, size_t len,
                     uint32_t first_line);

/* Adds a directory in which imported files are looked for; copies the string. */
void diag_add_import_path(Diag *d, const char *directory);

/* Adds a frame and returns its number. The texts of `frame` live as long as `d`. */
uint32_t diag_add_frame(Diag *d, const SourceFrame *frame);
/* The text of a place, and the place in the main text from which it is read. */
const SourceText *diag_source(const Diag *d, Loc loc);
Loc diag_root(const Diag *d, Loc loc);

/* The main text, with each imported file after it under a comment that names it. */
const char *diag_texts(Diag *d);

/* A row of limits.def. `most`: the largest value it can be set to; 0: it cannot be set. */
typedef struct LimitInfo {
    const char *name, *what;
    int64_t value, most;
} LimitInfo;

extern const LimitInfo limit_info[LIMIT_ID_COUNT];

/* The limit that holds for this text. Setting one fails, and reports nothing, when its
 * row does not allow `value`. */
static inline int64_t diag_limit(const Diag *d, LimitId id) { return d->limits[id]; }
bool diag_set_limit(Diag *d, LimitId id, int64_t value);
bool limit_allows(LimitId id, int64_t value);

/* Ends a compile that is past its deadline: an error at `loc`, and a jump to the guard of the API
 * entry, as when memory runs out; and one that its host stops, without an error. Called about once
 * an op where a compile takes long, but never below foreign frames, nor while something is
 * freed. */
void diag_check_time(Diag *d, Loc loc);

/* Record a message and return false. A note belongs to the error or warning before it; those
 * that are not in the main text get notes that lead there, from call to call. */
bool diag_error(Diag *d, Loc loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool diag_note(Diag *d, Loc loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Records a warning, whose text ends with the flag of its group, "[-Wpipeline]". It fails
 * nothing, and returns true: the text is right, but something in it does not do what it
 * seems meant to. Where the user made the group's warnings errors, it is an error, and
 * returns false; where the group is off, it and its notes are dropped. A warning that was
 * recorded already is not repeated, as for copies of an op. */
bool diag_warning(Diag *d, WarningId group, Loc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Returns true when a warning of the group has a note at `loc`: where the note's cure is one
 * for many warnings, one of them is enough. */
bool diag_is_noted(const Diag *d, WarningId group, Loc loc);

/* Returns true when warnings of the group are recorded. */
static inline bool diag_warns(const Diag *d, WarningId group)
{
    return d->groups.on >> group & 1;
}

/* The line of text, without its newline, or NULL if there is none. */
const char *source_line(const SourceText *s, uint32_t line, size_t *len);

/* Writes "file:line:col: error: text", the source line and a caret, for each message. */
void diag_write(const Diag *d, const Writer *out);

#endif
