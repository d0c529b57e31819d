/* Candidates, and the command that judges them. */
#define _GNU_SOURCE
#include "reduce.h"

#include "common/file.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ---- the program ------------------------------------------------------------- */

Module *text_parse(const char *text)
{
    tilus_diag *diag = tilus_diag_new();
    Module *m = diag ? tilus_parse(diag, "text", text, strlen(text), 1, NULL, 0) : NULL;
    if (!m)
        tilus_diag_free(diag);
    return m;
}

void text_release(Module *m)
{
    Diag *diag = m->diag;
    tilus_module_free(m);
    tilus_diag_free((tilus_diag *)diag);
}

static bool is_valid(const char *text)
{
    Module *m = text_parse(text);
    if (m)
        text_release(m);
    return m != NULL;
}

/* ---- the command --------------------------------------------------------------- */

/* The test with each {} replaced by the path, silent; the caller frees it. */
static char *expand_command(const Reduction *r)
{
    char *command = NULL;
    size_t size;
    FILE *out = open_memstream(&command, &size);
    if (!out)
        return NULL;
    const char *at = r->test, *braces = strstr(at, "{}");
    fputs("{ ", out);
    for (; braces; at = braces + 2, braces = strstr(at, "{}"))
        fprintf(out, "%.*s'%s'", (int)(braces - at), at, r->path);
    fprintf(out, "%s\n} </dev/null >/dev/null 2>&1", at);
    fclose(out);
    return command;
}

/* Runs the command on what the file holds. A keyboard's interrupt ends the reduction
 * with the best text so far. */
static bool run_command(Reduction *r)
{
    char *command = expand_command(r);
    int status = command ? system(command) : -1;
    free(command);
    r->tests++;
    r->stopped |= status == -1 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) ||
                  (r->max_tests && r->tests >= r->max_tests);
    return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool is_interesting(Reduction *r, const char *text)
{
    if (!file_write(TOOL, r->path, text, strlen(text))) {
        r->stopped = true;
        return false;
    }
    return run_command(r);
}

/* ---- candidates ----------------------------------------------------------------- */

bool reduction_holds(Reduction *r)
{
    return is_interesting(r, r->best);
}

bool reduction_try(Reduction *r, char *text)
{
    if (!text || r->stopped || strcmp(text, r->best) == 0 ||
        (r->is_program && !is_valid(text)) || !is_interesting(r, text)) {
        free(text);
        return false;
    }
    free(r->best);
    r->best = text;
    if (r->output && !file_write(TOOL, r->output, text, strlen(text)))
        r->stopped = true;
    return true;
}
