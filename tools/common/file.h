/* Whole files: what tools read and write. Failures are printed to stderr as
 * "tool: error: cannot read 'path': reason". */
#ifndef TILUS_TOOLS_FILE_H
#define TILUS_TOOLS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The longest file a tool reads, bytes. */
#define FILE_SIZE_MAX ((size_t)1 << 36)
/* The longest program text, bytes; the compiler's limit `input` is lower. */
#define TEXT_SIZE_MAX ((size_t)1 << 31)

/* Reads all of `path` ("-": standard input) into `*data`, `*size` bytes and a
 * NUL after them; the caller frees it with free(). More than `limit` bytes is
 * a failure. On failure `*data` is NULL. */
bool file_read(const char *tool, const char *path, size_t limit, char **data, size_t *size);

/* Writes `size` bytes to `path` ("-": standard output). A regular file appears
 * whole or not at all: the bytes go to a temporary file beside it, which then
 * takes its name. An existing file keeps its mode. */
bool file_write(const char *tool, const char *path, const void *data, size_t size);

/* A file that is written by descriptor and appears likewise: a symbolic link stays one, and
 * devices and pipes are written in place. */
typedef struct FileOutput {
    int file;                   /* -1: not open */
    char *target, *temporary;   /* the temporary file's name, and which it takes; NULL: in place */
} FileOutput;

/* Opens `path`, which is no "-"; on failure the output is not open. The caller closes or cancels
 * it. */
bool file_output_open(const char *tool, const char *path, FileOutput *out);

/* Gives the finished file its name; the output is not open any more. */
bool file_output_close(const char *tool, const char *path, FileOutput *out);

/* Removes what was written; an output that is not open is left alone. */
void file_output_cancel(FileOutput *out);

/* Opens `path` ("-": standard output) for text that is written bit by bit; NULL
 * on failure. file_close, which takes NULL too, closes it, false when something
 * could not be written. */
FILE *file_open(const char *tool, const char *path);
bool file_close(const char *tool, const char *path, FILE *file);

/* A tilus_write to the FILE that is its data. */
void file_take(void *file, const char *text, size_t length);

/* Makes the process, when it exits, end with EXIT_DIAGNOSTICS and a message if standard output
 * took less than was printed (a full device), whatever its status was. */
void file_watch_output(const char *tool);

/* Returns true unless `output` is the regular file `input`, which writing would replace; then it
 * has said so. Either may be "-". */
bool file_check_output(const char *tool, const char *input, const char *output);

#endif
