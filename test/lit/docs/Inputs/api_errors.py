"""api_errors.py DOCUMENT OUT.c: writes a C program that makes the mistakes of the tables
| mistake | message | cure | in DOCUMENT, each in a product that is right but for it, and compares what
tilus_rt_error() says then."""
import json
import re
import sys
from pathlib import Path

FRAME = r"""
#include "tilus/matmul.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <string.h>

enum { N = 256, K = 256 };
static unsigned char codes[N * K / 2], packed[1 << 20];
static unsigned short zero_points[N * 2], factors[N * 2];

/* Goes from the runtime to a product, up to the first failure. */
static tilus_status try(int mistake, tilus_rt **rt, tilus_matmul **matmul,
                        tilus_matmul_plan **plan, tilus_kernel **kernel)
{
    static tilus_cache *cache;
    const void *artefact = NULL;
    tilus_rt_options runtime = {.struct_size = sizeof runtime};
    tilus_matmul_options options = {.struct_size = sizeof options,
                                    .compile = tilus_matmul_compile};
    tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = "u4", .n = N,
                                    .k = K, .group = 128};
    tilus_matmul_weights weights = {.struct_size = sizeof weights, .codes = codes,
                                    .scales = factors};
    tilus_matmul_call call = {.struct_size = sizeof call, .m = 1, .a = 4096, .c = 8192,
                              .weights = 16384, .workspace = 32768, .workspace_size = 1 << 20};
    options.compile_data = cache = cache ? cache : tilus_cache_open(NULL);
    switch (mistake) {
CASES
    }
    char message[256];
    tilus_status status = tilus_rt_open(&runtime, rt, message, sizeof message);
    if (status == TILUS_OK && artefact)
        return tilus_kernel_load(*rt, artefact, strlen(artefact), kernel);
    if (status == TILUS_OK)
        status = tilus_matmul_open(*rt, &options, matmul);
    if (status == TILUS_OK)
        status = tilus_matmul_plan_create(*matmul, &problem, 0, plan);
    if (status == TILUS_OK)
        status = tilus_matmul_pack(*plan, &weights, packed);
    if (status == TILUS_OK)
        status = tilus_matmul_prepare(*plan, 1);
    return status == TILUS_OK ? tilus_matmul_run(*plan, NULL, &call) : status;
}

int main(void)
{
    static const char *const expected[] = {
EXPECTED
    };
    int faults = 0, count = sizeof expected / sizeof *expected;
    for (int i = 0; i <= count; i++) {
        tilus_rt *rt = NULL;
        tilus_matmul *matmul = NULL;
        tilus_matmul_plan *plan = NULL;
        tilus_kernel *kernel = NULL;
        tilus_status status = try(i, &rt, &matmul, &plan, &kernel);
        const char *text = status == TILUS_OK ? "" : tilus_rt_error();
        if (i == count ? status != TILUS_OK : status == TILUS_OK || !strstr(text, expected[i])) {
            printf("row %d: %s: %s\nexpected: %s\n", i, tilus_status_name(status), text,
                   i < count ? expected[i] : "a product without a mistake");
            faults++;
        }
        tilus_matmul_plan_free(plan);
        tilus_matmul_close(matmul);
        tilus_rt_close(rt);
    }
    printf("%d mistakes\n", count);
    return faults != 0;
}
"""

text = Path(sys.argv[1]).read_text()
tables = re.findall(r"^\| mistake \| message \| cure \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)
rows = [re.match(r"\| `(.*?)` \| ``(.*?)`` \|", row).groups()
        for table in tables for row in table.splitlines()]
if not rows:
    sys.exit("no mistakes")
cases = "".join(f"    case {i}: {mistake}; break;\n" for i, (mistake, _) in enumerate(rows))
expected = "".join(f"        {json.dumps(message.strip())},\n" for _, message in rows)
Path(sys.argv[2]).write_text(FRAME.replace("CASES", cases).replace("EXPECTED", expected))
