/* Tunings, as users hand them to the matmul library: any bytes are read or refused with a
 * message; what is read is written and read again the same, and look-ups in it give
 * configurations that fit. */
#include "target.h"

#include "matmul/table.h"

#include <stdlib.h>
#include <string.h>

static bool is_same(const MatmulTuning *a, const MatmulTuning *b)
{
    return strcmp(a->template, b->template) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->driver, b->driver) == 0 && a->m == b->m &&
           memcmp(&a->spec, &b->spec, sizeof a->spec) == 0 &&
           memcmp(&a->config, &b->config, sizeof a->config) == 0;
}

static void check_written(const MatmulTunings *tunings)
{
    char message[256];
    MatmulTunings again;
    char *text = matmul_tunings_write(tunings);
    if (!text)
        return;
    if (!matmul_tunings_read(text, &again, message, sizeof message))
        target_fail("what was written is refused: %s", message);
    if (again.count != tunings->count)
        target_fail("%zu tunings became %zu", tunings->count, again.count);
    for (size_t i = 0; i < again.count; i++)
        if (!is_same(&tunings->items[i], &again.items[i]))
            target_fail("tuning %zu was read as something else", i + 1);
    free(again.items);
    free(text);
}

static void check_choices(const char *json, const MatmulTunings *tunings)
{
    enum { MOST = 4 };
    char message[256];
    MatmulTable *table;
    if (!matmul_table_open(json, &table, message, sizeof message))
        return;
    for (size_t i = 0; i < tunings->count && i < MOST; i++) {
        const MatmulTuning *t = &tunings->items[i];
        MatmulDevice device = matmul_device(t->device, 90, 132, 232448);
        MatmulChoice choice;
        int rows = matmul_table_rows(table, &t->spec, &device);
        if (rows && !matmul_table_config(table, &t->spec, rows, t->m, &device, &choice))
            target_fail("%d rows of units, and no configuration", rows);
        if (rows && !matmul_config_fits(&t->spec, &choice.config, &device))
            target_fail("the choice does not fit");
    }
    matmul_table_free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char message[256] = "";
    char *text = malloc(size + 1);
    MatmulTunings tunings;
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (matmul_tunings_read(text, &tunings, message, sizeof message)) {
        check_written(&tunings);
        check_choices(text, &tunings);
        free(tunings.items);
    } else if (!*message) {
        target_fail("refused without a reason");
    }
    free(text);
    return 0;
}
