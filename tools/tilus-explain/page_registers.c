/* Registers over the program on the page. */
#include "tool.h"

#include <stdio.h>

/* Picture: ops from left to right, words upwards. */
enum { PICTURE_WIDTH = 900, PICTURE_HEIGHT = 160 };

static json_int_t word_at(const json_t *words, size_t i)
{
    return json_integer_value(json_array_get(words, i));
}

/* The position of the greatest number. */
static size_t find_most(const json_t *words)
{
    size_t most = 0;
    for (size_t i = 1; i < json_array_size(words); i++)
        if (word_at(words, i) > word_at(words, most))
            most = i;
    return most;
}

static void draw_words(FILE *out, const json_t *words, double most)
{
    size_t count = json_array_size(words);
    fprintf(out, "<div class=\"scroll\"><svg role=\"img\" aria-label=\"registers over the program\" "
            "viewBox=\"0 0 %d %d\" width=\"%d\"><path class=\"life\" d=\"M0 %d", PICTURE_WIDTH,
            PICTURE_HEIGHT, PICTURE_WIDTH, PICTURE_HEIGHT);
    for (size_t i = 0; i < count; i++)      /* a step is drawn where the number changes */
        if (i == 0 || word_at(words, i) != word_at(words, i - 1))
            fprintf(out, "H%.1fV%.1f", (double)i * PICTURE_WIDTH / (double)count,
                    PICTURE_HEIGHT - (double)word_at(words, i) * PICTURE_HEIGHT / most);
    fprintf(out, "H%dV%dZ\"/></svg></div>\n", PICTURE_WIDTH, PICTURE_HEIGHT);
}

static void write_program(FILE *out, const json_t *program)
{
    const json_t *registers = json_object_get(program, "registers");
    const json_t *words = json_object_get(registers, "words");
    size_t most = find_most(words);
    if (!json_array_size(words) || !word_at(words, most))
        return;
    fputs("<h3>@", out);
    page_escape(out, doc_string(program, "name"));
    fprintf(out, ": at most %lld, behind line %lld</h3>\n", (long long)word_at(words, most),
            (long long)word_at(json_object_get(registers, "lines"), most));
    draw_words(out, words, (double)word_at(words, most));
}

void page_registers(FILE *out, const json_t *doc)
{
    size_t i;
    const json_t *program;
    fputs("<section id=\"registers\">\n<h2>Registers</h2>\n<p class=\"faint\">Registers of a thread "
          "for the tensors that live behind each op, the program's ops to the right. Addresses and "
          "counters come on top.</p>\n", out);
    json_array_foreach(json_object_get(doc, "programs"), i, program)
        write_program(out, program);
    fputs("</section>\n", out);
}
