/* Compiling in a child process, by scripts in place of tilus-llc that answer, crash, hang and
 * print without end. */
#define _GNU_SOURCE
#include "tilus/artefact.h"
#include "tilus/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/tilus-child-XXXXXX";
static void *artefact;          /* in the file `artefact` of the folder, too */
static size_t artefact_size;

static void write_file(const char *name, const void *bytes, size_t size, int mode)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(path, mode), 0);
}

/* Returns the path of a shell script, which lives until the next call of this thread. */
static const char *script(const char *name, const char *body)
{
    static _Thread_local char path[256];
    char text[1024];
    int size = snprintf(text, sizeof text, "#!/bin/sh\ncd %s\n%s\n", folder, body);
    write_file(name, text, (size_t)size, 0755);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int set_up(void **state)
{
    static const tilus_code one = {TILUS_CODE_CONSTANT, 1};
    const tilus_kernel_info info = {.name = "k", .grid_rank = 1, .grid_length = {1},
                                    .grid = {&one}, .threads = 32};
    const tilus_artefact a = {.info = &info, .target = "sm_80", .ptx_version = 80, .ptx = "//",
                              .source = "", .parameters = "", .compiler = ""};
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(tilus_artefact_write(&a, &artefact, &artefact_size), TILUS_OK);
    write_file("artefact", artefact, artefact_size, 0644);
    return 0;
}

static int tear_down(void **state)
{
    char command[300];
    (void)state;
    free(artefact);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static size_t count_files(void)
{
    size_t count = 0;
    DIR *files = opendir("/proc/self/fd");
    while (readdir(files))
        count++;
    closedir(files);
    return count;
}

/* Compiles a text; the result has no other child and no other file than before. */
static tilus_status compile(const char *compiler, uint64_t milliseconds, const char *text,
                            char **diagnostics)
{
    const tilus_child_options options = {.struct_size = sizeof options, .compiler = compiler,
                                         .milliseconds = milliseconds};
    const tilus_child_source source = {.struct_size = sizeof source, .text = text,
                                       .text_size = strlen(text), .target = "sm_80"};
    size_t files = count_files(), size;
    void *bytes;
    tilus_status status = tilus_child_compile(&options, &source, &bytes, &size, diagnostics);
    assert_int_equal(count_files(), files);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(bytes != NULL, status == TILUS_OK);
    if (status == TILUS_OK) {
        assert_int_equal(size, artefact_size);
        assert_memory_equal(bytes, artefact, size);
    }
    free(bytes);
    return status;
}

static void assert_ends(const char *body, uint64_t milliseconds, tilus_status expected,
                        const char *words)
{
    char *text;
    tilus_status status = compile(script("llc", body), milliseconds, "text", &text);
    assert_string_equal(tilus_status_name(status), tilus_status_name(expected));
    assert_non_null(text);
    if (!strstr(text, words))
        fail_msg("\"%s\" lacks \"%s\"", text, words);
    free(text);
}

static void test_an_artefact_comes_back_with_warnings(void **state)
{
    (void)state;
    assert_ends("echo 'x:1:2: warning: w' >&2; cat artefact", 0, TILUS_OK, "x:1:2: warning: w");
}

static void test_exit_codes_are_statuses(void **state)
{
    (void)state;
    assert_ends("echo 'x:1:2: error: e' >&2; exit 1", 0, TILUS_ERROR_PROGRAM, "x:1:2: error: e");
    assert_ends("echo 'no such option' >&2; exit 2", 0, TILUS_ERROR_ARGUMENT, "no such option");
    assert_ends("exit 1", 0, TILUS_ERROR_CHILD, "/llc ended with exit code 1");
    assert_ends("echo no >&2; exit 77", 0, TILUS_ERROR_CHILD, "no\nerror: ");
    assert_ends("echo hello", 0, TILUS_ERROR_CHILD, "wrote no artefact, but 6 bytes: ");
    assert_ends("head -c 100 artefact", 0, TILUS_ERROR_CHILD, "wrote no artefact, but 100 bytes");
}

static void test_a_crash_names_its_signal(void **state)
{
    (void)state;
    assert_ends("kill -SEGV $$", 0, TILUS_ERROR_CHILD, "signal 11 (SIGSEGV: Segmentation fault)");
    assert_ends("echo 'LLVM ERROR: out of memory' >&2; cat artefact; kill -ABRT $$", 0,
                TILUS_ERROR_CHILD, "LLVM ERROR: out of memory\nerror: ");
}

static void test_a_child_that_hangs_is_ended(void **state)
{
    (void)state;
    assert_ends("exec sleep 1000", 50, TILUS_ERROR_CHILD, "took more than 50 ms, and was ended");
    assert_ends("exec >&- 2>&-; exec sleep 1000", 50, TILUS_ERROR_CHILD, "took more than 50 ms");
    assert_ends("while :; do echo a line >&2; done", 1000, TILUS_ERROR_CHILD, "a line\na line\n");
}

/* A grandchild has the pipes, and ends with its group. */
static void test_a_grandchild_does_not_delay(void **state)
{
    (void)state;
    time_t start = time(NULL);
    assert_ends("sleep 1000 & echo $! > pid; cat artefact", 0, TILUS_OK, "");
    assert_true(time(NULL) - start < 100);
    int pid = 0;
    char path[256];
    snprintf(path, sizeof path, "%s/pid", folder);
    FILE *in = fopen(path, "r");
    assert_int_equal(fscanf(in, "%d", &pid), 1);
    fclose(in);
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    for (int tries = 0; tries < 1000; tries++) {
        char parent = 'Z';
        in = fopen(path, "r");      /* whoever adopts it has to reap it */
        if (in && fscanf(in, "%*d %*s %c", &parent) != 1)
            parent = 'Z';
        if (in)
            fclose(in);
        if (!in || parent == 'Z')
            return;
        usleep(10000);
    }
    fail_msg("process %d runs on", pid);
}

static void test_megabytes_do_not_block(void **state)
{
    enum { SIZE = 3 << 20 };
    char *text = malloc(SIZE + 1), *diagnostics;
    (void)state;
    memset(text, 'x', SIZE);
    text[SIZE] = 0;
    const char *both = script("both", "head -c 3000000 /dev/zero | tr '\\0' e >&2; cat artefact; "
                                      "cat > copy");
    assert_int_equal(compile(both, 0, text, &diagnostics), TILUS_OK);
    assert_non_null(strstr(diagnostics, "bytes more)"));
    assert_true(strlen(diagnostics) < SIZE);
    free(diagnostics);
    struct stat info;
    char path[256];
    snprintf(path, sizeof path, "%s/copy", folder);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, SIZE);
    const char *early = script("early", "exec <&-; cat artefact");
    assert_int_equal(compile(early, 0, text, NULL), TILUS_OK);
    free(text);
}

/* Returns false where a child that cannot start counts as started: qemu-user 7.2 makes a
 * fork of the vfork in which the error would come back. */
static bool tells_of_failed_starts(void)
{
    pid_t child;
    char *const words[] = {"/nowhere/program", NULL};
    if (posix_spawn(&child, words[0], NULL, NULL, words, NULL) != 0)
        return true;
    assert_int_equal(waitpid(child, NULL, 0), child);
    return false;
}

static void test_what_cannot_start_is_named(void **state)
{
    char *text;
    (void)state;
    if (!tells_of_failed_starts())
        skip();
    assert_int_equal(compile("/nowhere/tilus-llc", 0, "", &text), TILUS_ERROR_CHILD);
    assert_non_null(strstr(text, "/nowhere/tilus-llc: No such file or directory"));
    free(text);
    setenv("TILUS_LLC", "/nowhere/else", 1);
    assert_int_equal(compile(NULL, 0, "", &text), TILUS_ERROR_CHILD);
    assert_non_null(strstr(text, "/nowhere/else: No such file"));
    free(text);
    setenv("TILUS_LLC", "", 1);
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(compile(NULL, 0, "", &text), TILUS_ERROR_CHILD);
    assert_non_null(strstr(text, "tilus-llc: No such file"));
    free(text);
    unsetenv("TILUS_LLC");
    setenv("PATH", "/usr/bin:/bin", 1);
}

static void test_structs_are_checked(void **state)
{
    const tilus_child_source none = {.struct_size = sizeof none, .target = "sm_80"};
    const tilus_child_source nowhere = {.struct_size = sizeof nowhere, .text = ""};
    const tilus_child_source unsized = {.text = "", .target = "sm_80"};
    static const char *const paths[] = {"a", ""};
    const tilus_child_source empty = {.struct_size = sizeof empty, .text = "", .target = "sm_80",
                                      .import_paths = paths, .import_path_count = 2};
    const tilus_child_source pathless = {.struct_size = sizeof pathless, .text = "",
                                         .target = "sm_80", .import_path_count = 1};
    const struct { const tilus_child_source *source; const char *words; } rows[] = {
        {&none, "source: text and file are NULL"}, {&nowhere, "source: target is NULL"},
        {&unsized, "source: struct_size is 0, not sizeof(tilus_child_source)"},
        {&empty, "source: import_paths[1] of 2 is empty, not a path"},
        {&pathless, "source: import_paths[0] of 1 is NULL, not a path"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *bytes;
        size_t size;
        char *text;
        assert_int_equal(tilus_child_compile(NULL, rows[i].source, &bytes, &size, &text),
                         TILUS_ERROR_ARGUMENT);
        assert_null(bytes);
        assert_non_null(strstr(text, rows[i].words));
        free(text);
    }
}

static void test_the_command_line(void **state)
{
    static const char *const paths[] = {"a b", "c"};
    char *text;
    void *bytes;
    size_t size;
    (void)state;
    const char *echo = script("echo", "for w in \"$@\"; do echo \"[$w]\" >&2; done; exit 1");
    const tilus_child_options options = {.struct_size = sizeof options, .compiler = echo,
                                         .cache_directory = "d"};
    tilus_child_source source = {.struct_size = sizeof source, .text = "", .file = "n.tilus",
                                 .import_paths = paths, .import_path_count = 2, .program = "p",
                                 .parameters = " A=1  B=u4 ", .target = "sm_90a"};
    assert_int_equal(tilus_child_compile(&options, &source, &bytes, &size, &text), TILUS_ERROR_PROGRAM);
    assert_string_equal(text, "[--filetype=artefact]\n[--cubin=never]\n[-o]\n[-]\n[-mcpu=sm_90a]\n"
                        "[--program=p]\n[--cache=d]\n[-DA=1]\n[-DB=u4]\n[-Ia b]\n[-Ic]\n"
                        "[--input-name=n.tilus]\n[-]\n");
    free(text);
    source = (tilus_child_source){.struct_size = sizeof source, .file = "-f", .target = "sm_80"};
    assert_int_equal(tilus_child_compile(&options, &source, &bytes, &size, &text), TILUS_ERROR_PROGRAM);
    assert_non_null(strstr(text, "[--]\n[-f]\n"));
    free(text);
}

static void test_the_compiler_of_products(void **state)
{
    char message[64];
    void *bytes;
    size_t size;
    (void)state;
    tilus_child_options options = {
        .struct_size = sizeof options,
        .compiler = script("products", "case \"$*\" in *'-DW=u4 --template=matmul') cat artefact;; "
                           "*) echo 'm:1:2: warning: w\nm:3:4: error: e\nm:5:6: error: f' >&2; exit 1;; esac")};
    assert_int_equal(tilus_compile_in_child(&options, "k", "W=u4", "sm_80", &bytes, &size, message,
                                            sizeof message), TILUS_OK);
    assert_int_equal(size, artefact_size);
    free(bytes);
    assert_int_equal(tilus_compile_in_child(&options, "k", "W=x", "sm_80", &bytes, &size, message,
                                            sizeof message), TILUS_ERROR_PROGRAM);
    assert_string_equal(message, "m:3:4: error: e");
    assert_null(bytes);
    options.struct_size = 0;
    assert_int_equal(tilus_compile_in_child(&options, "k", "", "sm_80", &bytes, &size, message,
                                            sizeof message), TILUS_ERROR_ARGUMENT);
    assert_non_null(strstr(message, "struct_size is 0"));
}

/* Open files, blocked and ignored signals of the server are not the child's. */
static void test_a_child_inherits_little(void **state)
{
    sigset_t all, before;
    (void)state;
    int fd = open("/dev/null", O_RDONLY);       /* without O_CLOEXEC */
    assert_true(fd >= 0);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    signal(SIGPIPE, SIG_IGN);
    assert_ends("grep -q 'SigBlk:.*000000$' /proc/self/status && grep -q 'SigIgn:.*0000$' "
                "/proc/self/status && cat artefact", 0, TILUS_OK, "");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    signal(SIGPIPE, SIG_DFL);
    char body[64];
    snprintf(body, sizeof body, "test -e /proc/$$/fd/%d || cat artefact", fd);
    assert_ends(body, 0, TILUS_OK, "");
    close(fd);
}

/* A server that reaps its children by itself leaves the exit code unknown. */
static void test_a_reaped_child_is_known_by_its_artefact(void **state)
{
    (void)state;
    signal(SIGCHLD, SIG_IGN);
    assert_ends("cat artefact", 0, TILUS_OK, "");
    assert_ends("kill -SEGV $$", 0, TILUS_ERROR_CHILD, "wrote no artefact");
    signal(SIGCHLD, SIG_DFL);
}

/* Standard streams of a server may be closed, and then pipes have their numbers. */
static void test_closed_standard_streams(void **state)
{
    const char *cat = script("cat", "cat artefact");
    int saved[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
    for (int i = 0; i < 3; i++)
        close(i);
    tilus_status status = compile(cat, 0, "text", NULL);
    for (int i = 0; i < 3; i++) {
        dup2(saved[i], i);
        close(saved[i]);
    }
    assert_int_equal(status, TILUS_OK);
}

/* Compiles where the process may have no more than `most` of a resource; returns what the child said. */
static char *compile_with(int resource, rlim_t most)
{
    const char *cat = script("cat", "cat artefact");
    struct rlimit before, limit;
    char *text;
    getrlimit(resource, &before);
    limit = before;
    limit.rlim_cur = most;
    setrlimit(resource, &limit);
    tilus_status status = compile(cat, 0, "text", &text);
    setrlimit(resource, &before);
    assert_int_equal(status, TILUS_ERROR_CHILD);
    return text;
}

/* Names what the process lacks, not the program; SIGXFSZ would end the test. */
static void test_limits_of_the_process(void **state)
{
    (void)state;
    char *text = compile_with(RLIMIT_FSIZE, 3);
    assert_non_null(strstr(text, "cat was not started: File too large: the text is over"));
    free(text);
    text = compile_with(RLIMIT_NOFILE, 4);
    assert_non_null(strstr(text, "cat was not started: Too many open files\n"));
    free(text);
}

enum { THREADS = 4, ROUNDS = 5 };

static void *compile_often(void *compilers)
{
    const char *const *names = compilers;
    intptr_t wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const tilus_child_options options = {.struct_size = sizeof options, .compiler = names[i % 2]};
        const tilus_child_source source = {.struct_size = sizeof source, .text = "x",
                                           .text_size = 1, .target = "sm_80"};
        void *bytes;
        size_t size;
        tilus_status status = tilus_child_compile(&options, &source, &bytes, &size, NULL);
        wrong += status != (i % 2 ? TILUS_ERROR_CHILD : TILUS_OK);
        free(bytes);
    }
    return (void *)wrong;
}

static void test_threads(void **state)
{
    char good[256];
    (void)state;
    strcpy(good, script("good", "cat artefact"));
    const char *compilers[] = {good, script("bad", "kill -KILL $$")};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, compile_often, compilers), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_artefact_comes_back_with_warnings),
        cmocka_unit_test(test_exit_codes_are_statuses),
        cmocka_unit_test(test_a_crash_names_its_signal),
        cmocka_unit_test(test_a_child_that_hangs_is_ended),
        cmocka_unit_test(test_a_grandchild_does_not_delay),
        cmocka_unit_test(test_megabytes_do_not_block),
        cmocka_unit_test(test_what_cannot_start_is_named),
        cmocka_unit_test(test_structs_are_checked),
        cmocka_unit_test(test_the_command_line),
        cmocka_unit_test(test_the_compiler_of_products),
        cmocka_unit_test(test_a_child_inherits_little),
        cmocka_unit_test(test_a_reaped_child_is_known_by_its_artefact),
        cmocka_unit_test(test_closed_standard_streams),
        cmocka_unit_test(test_limits_of_the_process),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
