#include "ir/lookup.h"

bool lookup_table(const Type *t, LookupTable *table)
{
    enum { RANK_MOST = 6 };
    if (t->rank > RANK_MOST)
        return false;
    table->group = t->rank <= 2 ? 1 : t->rank <= 4 ? 2 : 4;
    table->has_row = table->group > 1;
    table->has_copies = t->rank == table->group + table->has_row + 1;
    table->copies = table->has_copies ? type_extent(t, table->group) : 1;
    return true;
}

const Layout *lookup_layout(Module *m, int64_t threads, int64_t entries, const char **why)
{
    const Layout *all = layout_replicate(&m->layouts, 1, threads, why);
    const Layout *own = layout_local(&m->layouts, 1, &entries, why);
    return all && own ? layout_product(&m->layouts, all, own, why) : NULL;
}
