/* Messages of JSON-RPC 2.0, each after a header with its length. */
#define _GNU_SOURCE
#include "lsp.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEADER_MOST = 1024, BODY_MOST = 64 << 20 };

/* Reads a line without its end; false at the end of the input. A line past the limit is cut. */
static bool read_line(FILE *in, char *line)
{
    size_t len = 0;
    int c;
    while ((c = fgetc(in)) != EOF && c != '\n')
        if (len < HEADER_MOST)
            line[len++] = (char)c;
    if (len && line[len - 1] == '\r')
        len--;
    line[len] = '\0';
    return c != EOF;
}

/* Reads a header up to its empty line. *length: -1 where it gives none, or no right one. */
static bool read_header(FILE *in, long long *length)
{
    static const char key[] = "Content-Length:";
    char line[HEADER_MOST + 1];
    *length = -1;
    while (read_line(in, line)) {
        if (!*line)
            return true;
        if (strncasecmp(line, key, sizeof key - 1))
            continue;
        char *end;
        const char *digits = line + sizeof key - 1;
        while (*digits == ' ')
            digits++;
        errno = 0;
        *length = strtoll(digits, &end, 10);
        if (errno || !isdigit((unsigned char)*digits) || *end)
            *length = -1;
    }
    return false;
}

/* Passes over a body that is too long; false at the end of the input. */
static bool skip_body(FILE *in, long long length)
{
    while (length > 0 && fgetc(in) != EOF)
        length--;
    return length == 0;
}

/* Reads the code unit of the escape \uXXXX at `at`; -1 where there is none. */
static int escaped_unit(const char *at, const char *end)
{
    int unit = 0;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int c = at[i] | 0x20;
        if (!isxdigit((unsigned char)at[i]))
            return -1;
        unit = unit * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return unit;
}

/* Replaces each escaped surrogate without its other half by U+FFFD, also of one unit: texts of
 * UTF-16 may have such, UTF-8 has not, and the JSON library refuses the message. */
static void replace_lone_surrogates(char *body, size_t length)
{
    const char *end = body + length;
    for (char *at = body; (at = memchr(at, '\\', (size_t)(end - at)));) {
        int unit = escaped_unit(at, end);
        int next = unit >= 0 ? escaped_unit(at + 6, end) : -1;
        bool pair = unit >= 0xd800 && unit < 0xdc00 && next >= 0xdc00 && next < 0xe000;
        if (unit >= 0xd800 && unit < 0xe000 && !pair)
            memcpy(at, "\\ufffd", 6);
        ptrdiff_t escape = pair ? 12 : unit >= 0 ? 6 : 2;
        if (end - at <= escape)
            return;
        at += escape;
    }
}

static WireResult read_body(FILE *in, size_t length, json_t **message, const char **why)
{
    char *body = lsp_alloc(length + 1);
    size_t got = fread(body, 1, length, in);
    replace_lone_surrogates(body, got);
    *message = got == length ? json_loadb(body, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                             : NULL;
    free(body);
    *why = "the body is not JSON in UTF-8";
    return got < length ? WIRE_END : *message ? WIRE_MESSAGE : WIRE_BROKEN;
}

WireResult wire_read(FILE *in, json_t **message, const char **why)
{
    long long length;
    if (!read_header(in, &length))
        return WIRE_END;
    if (length >= 0 && length <= BODY_MOST)
        return read_body(in, (size_t)length, message, why);
    *why = length < 0 ? "a header without a Content-Length" : "a body of more than 64 MiB";
    return skip_body(in, length < 0 ? 0 : length) ? WIRE_BROKEN : WIRE_END;
}

bool wire_waits(FILE *in)
{
    struct pollfd p = {.fd = fileno(in), .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

void wire_send(FILE *out, json_t *message)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);
    if (!text)
        return;
    fprintf(out, "Content-Length: %zu\r\n\r\n%s", strlen(text), text);
    fflush(out);
    free(text);
}

static json_t *answer_to(const json_t *id)
{
    json_t *answer = json_pack("{s:s}", "jsonrpc", "2.0");
    json_object_set_new(answer, "id", id ? json_deep_copy(id) : json_null());
    return answer;
}

void wire_answer(FILE *out, const json_t *id, json_t *result)
{
    json_t *answer = answer_to(id);
    json_object_set_new(answer, "result", result ? result : json_null());
    wire_send(out, answer);
}

void wire_error(FILE *out, const json_t *id, int code, const char *message)
{
    json_t *answer = answer_to(id);
    json_object_set_new(answer, "error", json_pack("{s:i,s:o}", "code", code, "message",
                                                   text_json(message, strlen(message))));
    wire_send(out, answer);
}
