/* The process that compiles: a request a line on standard input, its answer on standard
 * output. What crashes it costs one candidate.
 *
 *     NAME  PROGRAM  TARGET  PARAMETERS       (with tabs between them)
 *     ok SIZE          and the artefact's bytes, or
 *     failed SIZE      and why
 *
 * TILUS_TUNE_FAULT makes candidates bad whose name contains a text, for tests: "crash:TEXT",
 * "hang:TEXT", "wrong:TEXT" (of unsigned weights: each is one too small). The CPU engine has
 * more, for kernels whose parameters contain the text: "kill:TEXT" and "term:TEXT" send that
 * signal to the process at each launch, "slow:TEXT" has them take much longer. */
#define _GNU_SOURCE
#include "tune.h"

#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Request {
    char *name, *program, *target, *parameters;
} Request;

static bool read_request(char *line, Request *r)
{
    line[strcspn(line, "\n")] = '\0';
    r->name = strsep(&line, "\t");
    r->program = strsep(&line, "\t");
    r->target = strsep(&line, "\t");
    r->parameters = strsep(&line, "\t");
    return r->parameters && !line;
}

bool tune_has_fault(const char *name, const char *kind)
{
    const char *fault = getenv("TILUS_TUNE_FAULT");
    size_t len = strlen(kind);
    return fault && strncmp(fault, kind, len) == 0 && strstr(name, fault + len);
}

/* Injects a wrong result: codes of unsigned weights count as one too large. */
static void spoil(Request *r)
{
    static const char none[] = "OFFSET=0";
    char *place = strstr(r->parameters, none);
    if (place)
        place[strlen(none) - 1] = '1';
}

static bool answer(const char *word, const void *bytes, size_t size)
{
    return printf("%s %zu\n", word, size) > 0 && fwrite(bytes, 1, size, stdout) == size &&
           fflush(stdout) == 0;
}

static bool serve(Request *r, tilus_cache *cache)
{
    char message[1024] = "";
    void *bytes;
    size_t size;
    if (tune_has_fault(r->name, "crash:"))
        abort();
    while (tune_has_fault(r->name, "hang:"))
        sleep(1);
    if (tune_has_fault(r->name, "wrong:"))
        spoil(r);
    tilus_status status = tilus_matmul_compile(cache, r->program, r->parameters, r->target,
                                               &bytes, &size, message, sizeof message);
    bool ok = status == TILUS_OK ? answer("ok", bytes, size)
                                 : answer("failed", message, strlen(message));
    free(bytes);
    return ok;
}

/* Answers requests until standard input ends. */
int tune_worker(void)
{
    char *line = NULL;
    size_t capacity = 0;
    Request request;
    tilus_cache *cache = tilus_cache_open(NULL);
    bool ok = true;
    while (ok && getline(&line, &capacity, stdin) > 0)
        ok = read_request(line, &request) && serve(&request, cache);
    free(line);
    tilus_cache_close(cache);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
