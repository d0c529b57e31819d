/* Requests by name, and the life of the server. */
#define _GNU_SOURCE
#include "lsp.h"

#include "common/options.h"
#include "target/target.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *string_member(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

Document *server_document(const Server *s, const char *uri)
{
    Document *d = s->documents;
    while (d && uri && strcmp(d->uri, uri))
        d = d->next;
    return uri ? d : NULL;
}

const Document *server_file(const Server *s, const char *canonical)
{
    const Document *d = s->documents;
    while (d && !(d->canonical && !strcmp(d->canonical, canonical)))
        d = d->next;
    return d;
}

/* Forgets the results of a text. */
static void forget(Document *d)
{
    analysis_free(d->analysis);
    d->analysis = NULL;
    d->changed = true;
}

/* Forgets results of texts that import files, after an open text changed. */
static void forget_importers(Server *s)
{
    for (Document *d = s->documents; d; d = d->next) {
        bool imports = false;
        for (size_t i = 0; i < d->names.token_count && !imports; i++)
            imports = token_is(&d->names.tokens[i].t, "import");
        if (imports)
            forget(d);
    }
}

/* ---- configuration ------------------------------------------------------------------- */

static void free_define(tilus_define *d)
{
    free((char *)d->name);
    free((char *)d->value);
}

void configuration_free(Configuration *c)
{
    free(c->target);
    for (size_t i = 0; i < c->define_count; i++)
        free_define(&c->defines[i]);
    for (size_t i = 0; i < c->import_path_count; i++)
        free(c->import_paths[i]);
    free(c->defines);
    free(c->import_paths);
    *c = (Configuration){0};
}

/* Has the editor show that a setting is wrong, and what holds in its place. */
static void show_warning(const Server *s, const char *text)
{
    enum { WARNING = 2 };
    json_t *params = json_pack("{s:i,s:o}", "type", WARNING, "message", text_json(text, strlen(text)));
    wire_send(s->out, json_pack("{s:s,s:s,s:o}", "jsonrpc", "2.0", "method", "window/showMessage",
                                "params", params));
}

static void set_target(const Server *s, Configuration *c, const json_t *value)
{
    const char *target = json_string_value(value);
    char text[256];
    if (target && target_find(target)) {
        free(c->target);
        c->target = lsp_strndup(target, strlen(target));
        return;
    }
    int n = snprintf(text, sizeof text, "tilus: the setting `target` stays %s; it is one of", c->target);
    for (size_t i = 0; target_at(i) && n > 0 && (size_t)n < sizeof text; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s %s", i ? "," : "", target_at(i)->name);
    show_warning(s, text);
}

static void set_milliseconds(const Server *s, Configuration *c, const json_t *value)
{
    char text[128];
    if (json_is_integer(value) && limit_allows(LIMIT_ID_MILLISECONDS, json_integer_value(value))) {
        c->milliseconds = json_integer_value(value);
        return;
    }
    snprintf(text, sizeof text, "tilus: the setting `milliseconds` stays %lld; it is a number of 0 .. %d",
             (long long)c->milliseconds, INT_MAX);
    show_warning(s, text);
}

/* {"BM": 64, "W": "f6e3m2"} */
static void set_defines(Configuration *c, json_t *defines)
{
    const char *name;
    json_t *value;
    for (size_t i = 0; i < c->define_count; i++)
        free_define(&c->defines[i]);
    c->define_count = 0;
    json_object_foreach(defines, name, value) {
        char *text = json_is_string(value) ? strdup(json_string_value(value))
                                           : json_dumps(value, JSON_ENCODE_ANY);
        if (!text)
            continue;
        const tilus_define d = {lsp_strndup(name, strlen(name)), text};
        LSP_PUSH(c->defines, c->define_count, c->define_capacity, d);
    }
}

static void set_import_paths(Configuration *c, const json_t *paths)
{
    for (size_t i = 0; i < c->import_path_count; i++)
        free(c->import_paths[i]);
    c->import_path_count = 0;
    for (size_t i = 0; i < json_array_size(paths); i++) {
        const char *path = json_string_value(json_array_get(paths, i));
        if (path)
            LSP_PUSH(c->import_paths, c->import_path_count, c->import_path_capacity,
                     lsp_strndup(path, strlen(path)));
    }
}

/* Takes {"target": .., "defines": {..}, "importPaths": [..], "milliseconds": ..}; what it lacks, or
 * has wrong, stays. */
static void configure(Server *s, const json_t *settings)
{
    const json_t *target = json_object_get(settings, "target");
    json_t *defines = json_object_get(settings, "defines");
    json_t *paths = json_object_get(settings, "importPaths");
    const json_t *limit = json_object_get(settings, "milliseconds");
    if (target && !json_is_null(target))
        set_target(s, &s->configuration, target);
    if (json_is_object(defines))
        set_defines(&s->configuration, defines);
    if (json_is_array(paths))
        set_import_paths(&s->configuration, paths);
    if (limit && !json_is_null(limit))
        set_milliseconds(s, &s->configuration, limit);
    for (Document *d = s->documents; d; d = d->next)
        forget(d);
}

/* ---- notifications ---------------------------------------------------------------------- */

static void publish(const Server *s, const Document *d, json_t *diagnostics)
{
    json_t *params = json_pack("{s:o,s:I,s:o}", "uri", text_json(d->uri, strlen(d->uri)), "version",
                               d->version, "diagnostics", diagnostics);
    wire_send(s->out, json_pack("{s:s,s:s,s:o}", "jsonrpc", "2.0", "method",
                                "textDocument/publishDiagnostics", "params", params));
}

/* Publishes the messages of each text that changed; where `yields`, up to a message that comes. */
static void publish_changed(Server *s, bool yields)
{
    s->publishing = yields;
    s->stopped = false;
    for (Document *d = s->documents; d && !s->stopped; d = d->next) {
        if (!d->changed)
            continue;
        const Analysis *a = analysis_of(s, d);
        if (s->stopped) {
            forget(d);
        } else {
            d->changed = false;
            publish(s, d, analysis_diagnostics(a));
        }
    }
    s->publishing = false;
}

/* Takes the document out of the list and frees it; its messages go. */
static void close_document(Server *s, Document *closed)
{
    Document **link = &s->documents;
    while (*link != closed)
        link = &(*link)->next;
    *link = closed->next;
    publish(s, closed, json_array());
    document_free(closed);
    forget_importers(s);
}

static void did_open(Server *s, const json_t *params)
{
    const json_t *item = json_object_get(params, "textDocument");
    const char *uri = string_member(item, "uri");
    const json_t *text = json_object_get(item, "text");
    if (!uri || !json_is_string(text))
        return;
    Document *known = server_document(s, uri);
    if (known)
        close_document(s, known);
    Document *d = document_new(uri, json_string_value(text), json_string_length(text),
                               json_integer_value(json_object_get(item, "version")));
    d->next = s->documents;
    s->documents = d;
    forget_importers(s);
}

/* Applies one change: the whole text, or a range of it. */
static void apply_change(Document *d, const json_t *change)
{
    size_t begin = 0, end = d->len;
    const json_t *range = json_object_get(change, "range"), *text = json_object_get(change, "text");
    if (!json_is_string(text))
        return;
    if (json_is_object(range) &&
        (!document_offset(d, json_object_get(range, "start"), &begin) ||
         !document_offset(d, json_object_get(range, "end"), &end) || begin > end))
        return;
    document_replace(d, begin, end, json_string_value(text), json_string_length(text));
}

static void did_change(Server *s, const json_t *params)
{
    const json_t *item = json_object_get(params, "textDocument");
    const json_t *changes = json_object_get(params, "contentChanges");
    Document *d = server_document(s, string_member(item, "uri"));
    for (size_t i = 0; d && i < json_array_size(changes); i++)
        apply_change(d, json_array_get(changes, i));
    if (d && json_is_integer(json_object_get(item, "version")))
        d->version = json_integer_value(json_object_get(item, "version"));
    forget_importers(s);
}

static void did_close(Server *s, const json_t *params)
{
    Document *d = server_document(s, string_member(json_object_get(params, "textDocument"), "uri"));
    if (d)
        close_document(s, d);
}

/* A saved file may be one that others import. */
static void did_save(Server *s, const json_t *params)
{
    (void)params;
    configure(s, NULL);
}

static void did_change_configuration(Server *s, const json_t *params)
{
    const json_t *settings = json_object_get(params, "settings");
    const json_t *own = json_object_get(settings, "tilus");
    configure(s, own ? own : settings);
}

static void on_exit_notice(Server *s, const json_t *params)
{
    (void)params;
    s->ended = true;
}

static void ignore(Server *s, const json_t *params)
{
    (void)s, (void)params;
}

static const struct Notification {
    const char *method;
    void (*take)(Server *s, const json_t *params);
} notifications[] = {
    {"initialized", ignore},
    {"exit", on_exit_notice},
    {"textDocument/didOpen", did_open},
    {"textDocument/didChange", did_change},
    {"textDocument/didClose", did_close},
    {"textDocument/didSave", did_save},
    {"workspace/didChangeWatchedFiles", did_save},
    {"workspace/didChangeConfiguration", did_change_configuration},
};

/* ---- requests ----------------------------------------------------------------------------- */

static json_t *request_initialize(Request *r)
{
    configure(r->server, json_object_get(r->params, "initializationOptions"));
    r->server->initialized = true;
    json_t *capabilities = json_pack(
        "{s:s,s:{s:b,s:i,s:b},s:b,s:b,s:b,s:b,s:b,s:{s:b},s:{s:[s,s,s,s,s]},s:b,s:b,s:{s:[s]}}",
        "positionEncoding", "utf-16", "textDocumentSync", "openClose", 1, "change", 2, "save", 1,
        "hoverProvider", 1, "definitionProvider", 1, "referencesProvider", 1,
        "documentHighlightProvider", 1, "documentSymbolProvider", 1, "renameProvider",
        "prepareProvider", 1, "completionProvider", "triggerCharacters", "%", "@", ":", "{", "=",
        "documentFormattingProvider", 1, "inlayHintProvider", 1, "codeActionProvider",
        "codeActionKinds", "quickfix");
    return json_pack("{s:o,s:{s:s,s:s}}", "capabilities", capabilities, "serverInfo", "name",
                     "tilus-lsp", "version", tilus_version());
}

static json_t *request_shutdown(Request *r)
{
    r->server->shut_down = true;
    return json_null();
}

static const struct Method {
    const char *name;
    json_t *(*answer)(Request *r);
    bool has_document, has_position;
} methods[] = {
    {"initialize", request_initialize, false, false},
    {"shutdown", request_shutdown, false, false},
    {"textDocument/hover", request_hover, true, true},
    {"textDocument/definition", request_definition, true, true},
    {"textDocument/references", request_references, true, true},
    {"textDocument/documentHighlight", request_highlight, true, true},
    {"textDocument/documentSymbol", request_symbols, true, false},
    {"textDocument/prepareRename", request_prepare_rename, true, true},
    {"textDocument/rename", request_rename, true, true},
    {"textDocument/completion", request_completion, true, true},
    {"textDocument/formatting", request_formatting, true, false},
    {"textDocument/inlayHint", request_hints, true, false},
    {"textDocument/codeAction", request_actions, true, false},
};

/* Finds the document and the position that the request names; false after an error. */
static bool fill_request(Request *r, const struct Method *m)
{
    const json_t *document = json_object_get(r->params, "textDocument");
    r->document = server_document(r->server, string_member(document, "uri"));
    if (m->has_document && !r->document)
        r->error = "the document is not open";
    else if (m->has_position &&
             !document_offset(r->document, json_object_get(r->params, "position"), &r->offset))
        r->error = "the position does not lie in the document";
    else if (m->has_position)
        r->token = names_token_at(&r->document->names, r->offset);
    return !r->error;
}

static void answer_request(Server *s, const struct Method *m, const json_t *id,
                           const json_t *params)
{
    Request r = {.server = s, .params = params};
    if (!s->initialized && m->answer != request_initialize) {
        wire_error(s->out, id, ERROR_NOT_INITIALIZED, "the server is not initialized");
        return;
    }
    if (s->shut_down || (s->initialized && m->answer == request_initialize)) {
        wire_error(s->out, id, ERROR_INVALID_REQUEST,
                   s->shut_down ? "the server is shut down" : "the server is initialized already");
        return;
    }
    if (!fill_request(&r, m)) {
        wire_error(s->out, id, ERROR_PARAMETERS, r.error);
        return;
    }
    json_t *result = m->answer(&r);
    if (r.error) {
        json_decref(result);
        wire_error(s->out, id, ERROR_REQUEST_FAILED, r.error);
    } else {
        wire_answer(s->out, id, result);
    }
}

static void take_request(Server *s, const char *method, const json_t *id, const json_t *params)
{
    for (size_t i = 0; i < COUNT(methods); i++)
        if (!strcmp(methods[i].name, method)) {
            answer_request(s, &methods[i], id, params);
            return;
        }
    wire_error(s->out, id, ERROR_NO_METHOD, "there is no such method");
}

static void take_notification(Server *s, const char *method, const json_t *params)
{
    bool ends = !strcmp(method, "exit");
    for (size_t i = 0; i < COUNT(notifications); i++)
        if (!strcmp(notifications[i].method, method) && (s->initialized || ends) &&
            (!s->shut_down || ends))
            notifications[i].take(s, params);
}

static void take_message(Server *s, const json_t *message)
{
    const char *method = string_member(message, "method");
    const json_t *id = json_object_get(message, "id");
    bool is_answer = !method && (json_object_get(message, "result") ||
                                 json_object_get(message, "error"));
    bool wrong_id = id && !json_is_integer(id) && !json_is_string(id) && !json_is_null(id);
    if (is_answer)
        return;
    if (!method || wrong_id)
        wire_error(s->out, wrong_id ? NULL : id, ERROR_INVALID_REQUEST,
                   "a message is an object with a method, and an id that is a number or text");
    else if (id)
        take_request(s, method, id, json_object_get(message, "params"));
    else
        take_notification(s, method, json_object_get(message, "params"));
}

/* Reads one message; false at the end. Messages of a text are published when none waits. */
static bool serve(Server *s)
{
    json_t *message = NULL;
    const char *why = NULL;
    WireResult got = wire_read(s->in, &message, &why);
    if (got == WIRE_BROKEN)
        wire_error(s->out, NULL, ERROR_PARSE, why);
    if (got == WIRE_MESSAGE)
        take_message(s, message);
    json_decref(message);
    bool last = got == WIRE_END || s->ended;
    if (last || !wire_waits(s->in))
        publish_changed(s, !last);
    return got != WIRE_END && !s->ended;
}

int server_run(Server *s)
{
    while (serve(s)) {
    }
    while (s->documents) {
        Document *d = s->documents;
        s->documents = d->next;
        document_free(d);
    }
    return s->shut_down ? EXIT_OK : EXIT_DIAGNOSTICS;
}
