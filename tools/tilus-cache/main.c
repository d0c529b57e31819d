/* tilus-cache: looks at the directory of compiled programs, and cleans it. */
#define _GNU_SOURCE
#include "cache/cache.h"
#include "common/file.h"
#include "common/options.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define TOOL "tilus-cache"

typedef struct Settings {
    const char *command, *directory, *size;
    StringList words;
    uint64_t limit;             /* bytes, of --size or the environment */
} Settings;

/* One command; an exit code. */
typedef int Command(const Settings *s, Cache *cache, const CacheFiles *files);

static int fail(Cache *cache, const char *verb, const char *what)
{
    fprintf(stderr, "%s: error: cannot %s %s in '%s': %s\n", TOOL, verb, what, cache->path,
            strerror(errno));
    return EXIT_DIAGNOSTICS;
}

static void print_bytes(uint64_t bytes)
{
    char text[TEXT_SIZE];
    fputs(text_size(text, bytes), stdout);
}

/* ---- list ------------------------------------------------------------------------- */

static void print_age(int64_t used)
{
    char text[TEXT_SIZE];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("%10s", text_duration(text, now.tv_sec - used / 1000000000));
}

static void print_value(const char *before, const CachePart *part)
{
    fputs(before, stdout);
    text_print(stdout, part->value, part->value_size);
}

static bool is_part(const CachePart *part, const char *label)
{
    return strlen(label) == part->label_size && !memcmp(part->label, label, part->label_size);
}

/* Prints the values that name the program: "  sm_90a  @matmul  W=u4  BK=64". */
static void print_entry(const EntryView *entry)
{
    CachePart part;
    for (size_t at = 0; cache_key_next(entry->key, entry->key_size, &at, &part);) {
        if (is_part(&part, "target") || is_part(&part, "define"))
            print_value("  ", &part);
        else if (is_part(&part, "program") && part.value_size)
            print_value("  @", &part);
        else if (is_part(&part, "value"))
            print_value("=", &part);
    }
}

static void list_file(Cache *cache, const CacheFile *file)
{
    char size[TEXT_SIZE];
    EntryView entry;
    void *bytes = NULL;
    bool damaged;
    printf("%.12s  %10s ", file->temporary ? "(unfinished)" : file->name,
           text_size(size, file->size));
    print_age(file->used);
    const char *wrong = file->temporary ? NULL
                      : cache_read(cache, file->name, &bytes, &entry, &damaged);
    if (wrong)
        printf("  %s", wrong);
    if (bytes)
        print_entry(&entry);
    putchar('\n');
    free(bytes);
}

static int list(const Settings *s, Cache *cache, const CacheFiles *files)
{
    if (files->count)
        printf("%-12s  %10s %10s  %s\n", "name", "size", "used", "what");
    for (size_t i = files->count; i-- > 0;)
        list_file(cache, &files->items[i]);
    printf("%zu entr%s, ", files->entries, files->entries == 1 ? "y" : "ies");
    print_bytes(files->bytes);
    fputs(" of ", stdout);
    print_bytes(s->limit);
    printf(", in '%s'\n", cache->path);
    return EXIT_OK;
}

/* ---- verify ----------------------------------------------------------------------- */

/* Counts of entries: damaged or unreadable ones, and those that remain so. */
typedef struct Bad {
    size_t found, left;
} Bad;

/* Calls `mend` for each bad entry. What another process removes meanwhile is none. */
static Bad visit_bad(Cache *cache, const CacheFiles *files, bool (*mend)(Cache *cache,
                     const char *name, const char *wrong, bool damaged))
{
    Bad bad = {0};
    for (size_t i = 0; i < files->count; i++) {
        const CacheFile *file = &files->items[i];
        EntryView entry;
        void *bytes;
        bool damaged;
        const char *wrong = file->temporary ? NULL
                          : cache_read(cache, file->name, &bytes, &entry, &damaged);
        if (file->temporary || (wrong && !damaged && errno == ENOENT))
            continue;
        if (wrong) {
            bad.found++;
            bad.left += !mend(cache, file->name, wrong, damaged);
        } else {
            free(bytes);
        }
    }
    return bad;
}

static bool tell_bad(Cache *cache, const char *name, const char *wrong, bool damaged)
{
    (void)cache;
    printf("%s %s: %s\n", damaged ? "damaged" : "unreadable", name, wrong);
    return false;
}

static int verify(const Settings *s, Cache *cache, const CacheFiles *files)
{
    (void)s;
    size_t bad = visit_bad(cache, files, tell_bad).found;
    printf("%zu of %zu entr%s good\n", files->entries - bad, files->entries,
           files->entries == 1 ? "y is" : "ies are");
    return bad ? EXIT_DIAGNOSTICS : EXIT_OK;
}

/* ---- prune and clear -------------------------------------------------------------- */

static bool remove_bad(Cache *cache, const char *name, const char *wrong, bool damaged)
{
    tell_bad(cache, name, wrong, damaged);
    if (damaged && cache_remove(cache, name))
        return true;
    if (damaged)
        fail(cache, "remove", name);
    return false;
}

static int prune(const Settings *s, Cache *cache, const CacheFiles *files)
{
    CacheRemoved removed;
    Bad bad = visit_bad(cache, files, remove_bad);
    if (!cache_sweep(cache, s->limit, &removed))
        return fail(cache, "list", "the files");
    printf("removed %zu damaged, %zu unfinished, %zu least recently used; ",
           bad.found - bad.left, removed.temporaries, removed.entries);
    print_bytes(cache->bytes);
    puts(" are left");
    return bad.left || cache->bytes > s->limit ? EXIT_DIAGNOSTICS : EXIT_OK;
}

static int clear(const Settings *s, Cache *cache, const CacheFiles *files)
{
    (void)s;
    int status = EXIT_OK;
    size_t removed = 0;
    for (size_t i = 0; i < files->count; i++) {
        if (cache_remove(cache, files->items[i].name))
            removed++;
        else
            status = fail(cache, "remove", files->items[i].name);
    }
    printf("removed %zu file%s\n", removed, removed == 1 ? "" : "s");
    return status;
}

/* ---- the command line ------------------------------------------------------------- */

static const struct {
    const char *name;
    Command *run;
} commands[] = {{"list", list}, {"verify", verify}, {"prune", prune}, {"clear", clear}};

static Command *find_command(const Settings *s)
{
    for (size_t i = 0; s->words.count == 1 && i < COUNT(commands); i++)
        if (strcmp(s->words.items[0], commands[i].name) == 0)
            return commands[i].run;
    if (s->words.count)
        fprintf(stderr, "%s: error: give one of list, verify, prune, clear; got '%s'\n", TOOL,
                s->words.items[s->words.count - 1]);
    else
        fprintf(stderr, "%s: error: a command is missing: give one of list, verify, prune, clear\n",
                TOOL);
    return NULL;
}

static bool read_size(Settings *s)
{
    const char *text = s->size ? s->size : getenv("TILUS_CACHE_SIZE");
    s->limit = CACHE_LIMIT;
    if (!text || !*text || cache_parse_size(text, &s->limit))
        return true;
    fprintf(stderr, "%s: error: %s takes a number of bytes, more than 0, like 500M; got "
            "'%s'\n", TOOL, s->size ? "option '--size'" : "TILUS_CACHE_SIZE", text);
    return false;
}

static bool parse_settings(Settings *s, int argc, char **argv, int *status)
{
    static const ToolInfo tool = {
        TOOL, "look at the cache of compiled programs, and clean it",
        "list|verify|prune|clear [options]",
        "  list    print the entries, those used last first\n"
        "  verify  read every entry; those that are damaged are named, and the status is 1\n"
        "  prune   remove damaged entries, what dead writers left, and, down to the size,\n"
        "          the entries that were used longest ago\n"
        "  clear   remove all entries\n"
        "Each works while others use the cache. It is in TILUS_CACHE_DIR,\n"
        "$XDG_CACHE_HOME/tilus or $HOME/.cache/tilus.\n"};
    const Option table[] = {
        {"dir", "directory", "the cache's directory", OPTION_STRING, &s->directory, NULL},
        {"size", "bytes", "what entries may have: 1048576, 64K, 10M, 2G (default "
         "TILUS_CACHE_SIZE or 1G)", OPTION_STRING, &s->size, NULL},
    };
    if (!options_parse(&tool, table, COUNT(table), argc, argv, &s->words, status))
        return false;
    *status = EXIT_USAGE;
    return read_size(s);
}

static int report_no_memory(void)
{
    fprintf(stderr, "%s: error: out of memory\n", TOOL);
    return EXIT_DIAGNOSTICS;
}

/* `user`, unless NULL, is a bool: something was said. */
static void print_warning(void *user, const char *message)
{
    if (user)
        *(bool *)user = true;
    fprintf(stderr, "%s: error: %s\n", TOOL, message);
}

static int run_in(const Settings *s, Command *command, const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0 && errno == ENOENT) {
        printf("0 entries: there is no '%s'\n", path);
        return EXIT_OK;
    }
    CacheFiles files;
    bool warned = false;
    Cache *cache = cache_open(path, false, s->limit, print_warning, &warned);
    if (!cache)
        return warned ? EXIT_DIAGNOSTICS : report_no_memory();
    int status = cache_list(cache, &files) ? command(s, cache, &files)
                                           : fail(cache, "list", "the files");
    if (!file_close(TOOL, "-", stdout))
        status = EXIT_DIAGNOSTICS;
    cache_files_free(&files);
    cache_close(cache);
    return status;
}

int main(int argc, char **argv)
{
    Settings s = {0};
    int status;
    Command *command = NULL;
    if (parse_settings(&s, argc, argv, &status) && (command = find_command(&s))) {
        errno = 0;
        char *path = cache_directory(s.directory);
        if (path)
            status = run_in(&s, command, path);
        else if (errno == ENOMEM)
            status = report_no_memory();
        else
            print_warning(NULL, "no cache: none of TILUS_CACHE_DIR, XDG_CACHE_HOME and HOME "
                                "is set");
        free(path);
    }
    string_list_free(&s.words);
    return status;
}
