/* Links the archives of all three libraries, as C and as C++, beside functions of names
 * that the libraries use inside. */
#include <stdio.h>
#include <string.h>
#include <tilus/matmul.h>
#include <tilus/tilus.h>

static int calls;

#ifdef __cplusplus
extern "C" {
#endif
void fail(void);
void broken(void);
void log_line(void);
void remark(void);
#ifdef __cplusplus
}
#endif

void fail(void) { calls++; }
void broken(void) { calls++; }
void log_line(void) { calls++; }
void remark(void) { calls++; }

static const char wrong[] = "tilus 1\nprogram @p<1>() warps(1) {\n  %x = nothing\n}\n";

int main(void)
{
    fail();
    broken();
    log_line();
    remark();

    tilus_diag *diag = tilus_diag_new();
    tilus_module *module = tilus_parse(diag, "wrong.tilus", wrong, strlen(wrong), 1, NULL, 0);
    printf("parsed: %s\n", module ? "yes" : "no");
    tilus_diag_free(diag);

    tilus_matmul_options options;
    tilus_matmul *matmul;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.tunings = "no JSON";
    printf("matmul: %s\n", tilus_status_name(tilus_matmul_open(NULL, &options, &matmul)));
    printf("own functions: %d calls\n", calls);
    return 0;
}
