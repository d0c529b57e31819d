/* Cast plans on the page: the bits of each word, the highest one first. */
#define _GNU_SOURCE
#include "tool.h"

#include <stdio.h>
#include <string.h>

/* The words of a field: "3[5:0]" are bits 5 to 0 of element 3. */
static void write_label(FILE *out, const json_t *field)
{
    const char *kind = doc_string(field, "kind");
    long long element = (long long)doc_integer(field, "element");
    long long low = (long long)doc_integer(field, "low");
    long long high = low + (long long)doc_integer(field, "width") - 1;
    if (!strcmp(kind, "constant"))
        fputs(doc_string(field, "value"), out);
    else if (!strcmp(kind, "code") && high == low)
        fprintf(out, "%lld[%lld]", element, low);
    else if (!strcmp(kind, "code"))
        fprintf(out, "%lld[%lld:%lld]", element, high, low);
    else if (!strcmp(kind, "element"))
        fprintf(out, "f(%lld)", element);
    else
        fputs(!strcmp(kind, "mixed") ? "several" : "zero or table", out);
}

static void write_field(FILE *out, const json_t *field)
{
    enum { COLORS = 8 };
    bool has_element = json_is_integer(json_object_get(field, "element"));
    fprintf(out, "<td colspan=\"%lld\" class=\"", (long long)doc_integer(field, "width"));
    if (has_element)
        fprintf(out, "e%lld", (long long)doc_integer(field, "element") % COLORS);
    else
        fputs(!strcmp(doc_string(field, "kind"), "constant") ? "constant" : "several", out);
    fputs("\" title=\"", out);
    write_label(out, field);
    fputs("\">", out);
    write_label(out, field);
    fputs("</td>", out);
}

/* The place of a word in the result, or "". */
static void write_out(FILE *out, const json_t *cast, const json_t *word)
{
    size_t i;
    const json_t *number;
    fputs("<td>", out);
    json_array_foreach(json_object_get(cast, "out"), i, number)
        if (json_equal(number, json_object_get(word, "number")))
            fprintf(out, "out%zu ", i);
    fputs("</td>", out);
}

/* The numbers of the bits, each as wide as any other. */
static void write_scale(FILE *out)
{
    fputs("<tr><th></th>", out);
    for (int bit = 31; bit >= 0; bit--)
        fprintf(out, "<th scope=\"col\">%d</th>", bit);
    fputs("<th></th></tr>\n", out);
}

static void write_cast(FILE *out, const json_t *cast)
{
    size_t i, j;
    const json_t *word, *field;
    const char *family = doc_string(cast, "family"), *packed = doc_string(cast, "packed");
    fprintf(out, "<details><summary>line %lld: %s%s%s%s to %s, %lld elements: %s",
            (long long)doc_integer(cast, "line"), doc_string(cast, "from"),
            *packed ? " packed(" : "", packed, *packed ? ")" : "", doc_string(cast, "to"),
            (long long)doc_integer(cast, "elements"), *family ? family : "element by element");
    if (!*family) {
        fputs("</summary></details>\n", out);
        return;
    }
    fprintf(out, ", %lld operations</summary>\n<div class=\"scroll\"><table class=\"bits\">\n",
            (long long)doc_integer(cast, "operations"));
    write_scale(out);
    json_array_foreach(json_object_get(cast, "words"), i, word) {
        fputs("<tr>", out);
        page_code_cell(out, "", doc_string(word, "text"));
        json_array_foreach(json_object_get(word, "fields"), j, field)
            write_field(out, field);
        write_out(out, cast, word);
        fputs("</tr>\n", out);
    }
    fputs("</table></div></details>\n", out);
}

void page_casts(FILE *out, const json_t *doc)
{
    size_t i;
    const json_t *cast;
    fputs("<section id=\"casts\">\n<h2>Cast plans</h2>\n<p class=\"faint\">A word of 32 bits a "
          "row, the highest bit first: 3[5:0] are bits 5 to 0 of element 3, f(3) depends on several "
          "bits of element 3.</p>\n", out);
    json_array_foreach(json_object_get(doc, "casts"), i, cast)
        write_cast(out, cast);
    fputs("<details><summary>Operations an element, and the plans as text</summary><pre>", out);
    page_escape(out, doc_string(doc, "cast_plans"));
    fputs("</pre></details>\n</section>\n", out);
}
