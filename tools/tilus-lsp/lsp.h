/* tilus-lsp's parts. One thread reads messages and answers them one after the other, so that every
 * answer is of the newest text that came before the request.
 *
 *   wire.c      messages: Content-Length, JSON
 *   server.c    requests by name, the life of the server
 *   document.c  open texts, positions in UTF-16, edits
 *   names.c     tokens and questions about names; names_bind.c: what each name means
 *   files.c     open texts and what they import; names that go from one to the other
 *   analysis.c  the compiler: messages, types of values, remarks
 *   hover.c, navigate.c, rename.c, complete.c, format.c, hints.c, actions.c   a request each
 *
 * Memory that runs out ends the process with a message. */
#ifndef TILUS_LSP_H
#define TILUS_LSP_H

#include "support/diag.h"
#include "syntax/lexer.h"
#include "tilus/tilus.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* ---- memory (document.c) ---------------------------------------------------- */

void *lsp_alloc(size_t size);
char *lsp_strndup(const char *s, size_t len);
/* Makes room for one more element; `*items` is an array of `size` bytes each. */
void lsp_grow(void *items, size_t count, size_t *capacity, size_t size);
#define LSP_PUSH(items, count, capacity, value)                                   \
    (lsp_grow(&(items), (count), &(capacity), sizeof *(items)), (items)[(count)++] = (value))

/* A growing string; `data` is NUL-terminated once anything was added. */
typedef struct Buffer {
    char *data;
    size_t len, capacity;
} Buffer;

void buffer_add_n(Buffer *b, const char *s, size_t len);
void buffer_add(Buffer *b, const char *s);
void buffer_printf(Buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string of the buffer, which is freed. Bytes that are not UTF-8 become `?`. */
json_t *buffer_json(Buffer *b);
json_t *text_json(const char *s, size_t len);

/* ---- names (names.c) ---------------------------------------------------------- */

typedef enum NameKind {
    NAME_PARAM, NAME_LAYOUT, NAME_FUNCTION, NAME_PROGRAM, NAME_VALUE
} NameKind;

/* A name and its bindings in one scope, which are renamed together. */
typedef struct Name {
    NameKind kind;
    const char *text;           /* without % and @; in the document's text */
    uint32_t len;
    size_t definition;          /* the token of its first binding */
    size_t from, to;            /* bytes of the text where it is visible */
    size_t scope;               /* number of the scope */
    size_t next;                /* of the same bucket, while it is visible; NO_NAME: none */
} Name;

enum { NAME_BUCKETS = 1024 };
#define NO_NAME SIZE_MAX

typedef struct NamedToken {
    Token t;
    size_t offset;              /* of its first byte, % and quotes too */
    size_t name;                /* its Name, or NO_NAME */
    unsigned char unbound;      /* class of a name that is used and that no text here binds, or 0 */
    bool defines;
} NamedToken;

/* A program, function, layout or parameter: tokens [first, end). */
typedef struct Item {
    NameKind kind;
    size_t first, end, name_token;
} Item;

typedef struct Names {
    NamedToken *tokens;         /* without TOKEN_END */
    size_t token_count, token_capacity;
    Name *names;
    size_t count, capacity;
    Item *items;
    size_t item_count, item_capacity;
} Names;

/* The classes of names do not meet: %a, @a, a. */
enum { CLASS_VALUE, CLASS_FUNCTION, CLASS_PARAM };

static inline unsigned name_class(NameKind kind)
{
    return kind == NAME_VALUE                              ? CLASS_VALUE
           : kind == NAME_FUNCTION || kind == NAME_PROGRAM ? CLASS_FUNCTION
                                                           : CLASS_PARAM;
}

/* Reads the tokens and names of a text, which outlives them. */
void names_read(Names *n, const char *text, size_t len);
/* Gives the tokens their names (names_bind.c). */
void names_bind(Names *n, size_t text_len);
void names_free(Names *n);
/* The token at a byte of the text, or the one that ends there; NULL: none. */
const NamedToken *names_token_at(const Names *n, size_t offset);
/* The file's own name of this class, for which other files have it, too; or NULL. */
const Name *names_find_global(const Names *n, const char *text, size_t len, unsigned class);
/* The program or function around a byte, or NULL. */
const Item *names_item_at(const Names *n, size_t offset);
/* Bytes of a token in the text, % and quotes too. */
static inline size_t named_token_end(const NamedToken *t) { return t->offset + t->t.loc.length; }

/* ---- documents (document.c) ---------------------------------------------------- */

typedef struct Analysis Analysis;

typedef struct Document {
    struct Document *next;
    char *uri, *path;
    char *canonical;            /* path; NULL: there is no such file */
    char *text;                 /* NUL-terminated, UTF-8 */
    size_t len;
    json_int_t version;
    bool changed;               /* its messages are not published yet */
    size_t *lines;              /* where each line begins */
    size_t line_count, line_capacity;
    Names names;
    Analysis *analysis;         /* of this text; NULL: none yet */
} Document;

/* The path of a file:// URI, or a copy of the URI; and the URI of a path. */
char *uri_to_path(const char *uri);
char *path_to_uri(const char *path);

Document *document_new(const char *uri, const char *text, size_t len, json_int_t version);
void document_free(Document *d);
/* Replaces bytes [begin, end) of the text. */
void document_replace(Document *d, size_t begin, size_t end, const char *text, size_t len);
/* The byte of a position of the protocol, which is brought into the text; false: not a position. */
bool document_offset(const Document *d, const json_t *position, size_t *offset);
json_t *document_position(const Document *d, size_t offset);
json_t *document_range(const Document *d, size_t begin, size_t end);
json_t *document_token_range(const Document *d, const NamedToken *t);
size_t document_line_of(const Document *d, size_t offset);     /* from 0 */
/* The end of a line's text, without its newline. */
size_t document_line_end(const Document *d, size_t line);
/* The byte at which a place in the main text lies. */
size_t document_loc_offset(const Document *d, Loc loc);

/* ---- configuration and server (server.c) --------------------------------------- */

typedef struct Configuration {
    char *target;               /* or NULL: any */
    tilus_define *defines;
    size_t define_count, define_capacity;
    char **import_paths;
    size_t import_path_count, import_path_capacity;
    json_int_t milliseconds;    /* of a compile, which is cut there */
} Configuration;

typedef struct Server {
    FILE *in, *out;
    Document *documents;
    Configuration configuration;
    bool initialized, shut_down, ended;
    bool publishing;            /* a compile gives way to messages that wait ... */
    bool stopped;               /* ... and has done so */
    unsigned asked;             /* questions whether one waits */
} Server;

Document *server_document(const Server *s, const char *uri);
/* The open text of the file with this canonical path, or NULL. */
const Document *server_file(const Server *s, const char *canonical);
/* Reads and answers messages until `exit` or the end of the input; the exit status. */
int server_run(Server *s);
void configuration_free(Configuration *c);

/* ---- messages (wire.c) ----------------------------------------------------------- */

enum {
    ERROR_PARSE = -32700, ERROR_INVALID_REQUEST = -32600, ERROR_NO_METHOD = -32601,
    ERROR_PARAMETERS = -32602, ERROR_NOT_INITIALIZED = -32002, ERROR_REQUEST_FAILED = -32803
};

typedef enum WireResult { WIRE_MESSAGE, WIRE_BROKEN, WIRE_END } WireResult;

/* Reads one message; WIRE_BROKEN: `why` says what is wrong with it, and it is passed over. */
WireResult wire_read(FILE *in, json_t **message, const char **why);
/* Returns true when bytes wait to be read. */
bool wire_waits(FILE *in);
/* Each takes over what it sends. `id` may be NULL (null). */
void wire_send(FILE *out, json_t *message);
void wire_answer(FILE *out, const json_t *id, json_t *result);
void wire_error(FILE *out, const json_t *id, int code, const char *message);

/* ---- the compiler's results (analysis.c) ----------------------------------------- */

/* The type of a value at one binding; functions give one for each call. */
typedef struct ValueNote {
    size_t offset;              /* of the token that binds it */
    const struct Value *value;
    const char *type;           /* after infer-layouts */
    const char *layout;         /* of a register tensor, else NULL */
    const struct Layout *drawn; /* small enough to be drawn, else NULL */
    bool open;                  /* the text left its layout or swizzle open */
} ValueNote;

typedef struct RemarkNote {
    unsigned line;              /* from 1 */
    bool missed;
    char *text, *program;
    const char *cure;           /* of a missed one whose text names none, else NULL */
} RemarkNote;

struct Analysis {
    tilus_diag *diag;
    tilus_module *module;
    bool cut;                   /* by its limit of time, which the last error says */
    ValueNote *values;          /* by offset */
    size_t value_count, value_capacity;
    RemarkNote *remarks;
    size_t remark_count, remark_capacity;
    const Document *document;
};

/* The analysis of the document's text, made where there is none yet. One that s->stopped is not
 * whole. */
Analysis *analysis_of(Server *s, Document *d);
void analysis_free(Analysis *a);
/* The first note at a byte, and how many follow it there; NULL: none. */
const ValueNote *analysis_values(const Analysis *a, size_t offset, size_t *count);
/* Appends the drawing of a layout, if memory suffices. */
void analysis_draw(Analysis *a, const struct Layout *l, Buffer *out);
/* The drawing of a layout that the text names, which the caller frees; NULL where it has errors. */
char *analysis_draw_name(Server *s, const Document *d, const char *layout);
/* The diagnostics of the protocol. */
json_t *analysis_diagnostics(const Analysis *a);

/* ---- requests: the result, or NULL after *error was set --------------------------- */

typedef struct Request {
    Server *server;
    Document *document;         /* of params.textDocument, or NULL */
    const json_t *params;
    size_t offset;              /* of params.position, where there is one */
    const NamedToken *token;    /* there, or NULL */
    const char *error;
    char error_text[256];
} Request;

json_t *request_hover(Request *r);
json_t *request_definition(Request *r);
json_t *request_references(Request *r);
json_t *request_highlight(Request *r);
json_t *request_symbols(Request *r);
json_t *request_prepare_rename(Request *r);
json_t *request_rename(Request *r);
json_t *request_completion(Request *r);
json_t *request_formatting(Request *r);
json_t *request_hints(Request *r);
json_t *request_actions(Request *r);

/* The name that a token means, or NULL. */
static inline const Name *request_name(const Request *r)
{
    return r->token && r->token->name != NO_NAME ? &r->document->names.names[r->token->name]
                                                 : NULL;
}

/* ---- files (files.c) -------------------------------------------------------------- */

#define NO_FILE SIZE_MAX

typedef struct File {
    const Document *document;   /* NULL: as it is on the disk */
    char *path;                 /* canonical */
    char *text;                 /* of a file on the disk, else NULL ... */
    Names own;                  /* ... and its names */
    size_t *imports;            /* numbers of files */
    size_t import_count, import_capacity;
} File;

/* Open texts first, then what they import. */
typedef struct Files {
    File *items;
    size_t count, capacity;
} Files;

static inline const Names *file_names(const File *f)
{
    return f->document ? &f->document->names : &f->own;
}

/* A parameter, layout, function or program, and the file that defines it. */
typedef struct Global {
    size_t file;
    const char *text;
    size_t len;
    unsigned class;
} Global;

void files_read(Files *f, const Server *s);
void files_free(Files *f);
/* The number of an open text. */
size_t files_find(const Files *f, const Document *d);
/* Marks the file and what it imports, directly or not; the caller frees the marks. */
bool *files_of_program(const Files *f, size_t root);
/* Marks the files of all programs of open texts that the file is part of. */
bool *files_with(const Files *f, size_t file);
/* Finds what the name of the request's token is in all files; false where it is none, or not
 * found. */
bool files_resolve(const Files *f, const Request *r, Global *g);
const Name *files_name(const Files *f, const Global *g);
/* Returns true when the file is part of a program, too, in which another file defines the name. */
bool files_other_definition(const Files *f, const Global *g, size_t file);
/* Returns true when the token of a file that is marked by files_with means that name. */
bool file_uses(const File *file, const Global *g, const NamedToken *t);
/* The place of a token. */
json_t *file_location(const File *file, const NamedToken *t);

#endif
