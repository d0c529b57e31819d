/* Compiles in child processes what is right and what is wrong, and a program of the matrix
 * products, which it writes to the file that is named. LLVM is not in this process. */
#include <stdio.h>
#include <string.h>
#include <tilus/child.h>

#if !TILUS_VERSION_AT_LEAST(0, 2, 0) || TILUS_VERSION_AT_LEAST(99, 0, 0)
#error "the version is not what it says"
#endif

static void compile(const char *text)
{
    tilus_child_source source = {.struct_size = sizeof source, .text = text,
                                 .file = "hello.tilus", .target = "sm_80"};
    void *bytes;
    size_t size;
    char *diagnostics;
    source.text_size = strlen(text);
    tilus_status status = tilus_child_compile(NULL, &source, &bytes, &size, &diagnostics);
    printf("%s: %s\n%s", tilus_status_name(status), size ? "an artefact" : "nothing",
           diagnostics);
    tilus_free(diagnostics);
    tilus_free(bytes);
}

int main(int argc, char **argv)
{
    char message[512] = "";
    void *bytes;
    size_t size;
    FILE *out = argc == 2 ? fopen(argv[1], "wb") : NULL;
    compile("tilus 1\nprogram @hello<1>() warps(1) {\n  %i = block_indices\n}\n");
    compile("tilus 1\nnonsense\n");
    tilus_status status = tilus_compile_in_child(NULL, "pack", "W=u4", "sm_80", &bytes, &size,
                                                 message, sizeof message);
    printf("%s %s\n", tilus_status_name(status), message);
    if (!out || fwrite(bytes, 1, size, out) != size || fclose(out) != 0)
        return 1;
    tilus_free(bytes);
    return 0;
}
