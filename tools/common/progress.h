/* Draws progress on a terminal: one line that is drawn again, from two seconds on.
 *
 *   tilus-run: engine interp: 12 of 512 blocks, 3.2 blocks/s, 2 min 36 s left
 */
#ifndef TILUS_TOOLS_PROGRESS_H
#define TILUS_TOOLS_PROGRESS_H

#include <stdint.h>

typedef struct Progress Progress;

/* Begins to watch something that `tool` does, that `what` names, and that is counted in
 * `steps`; the texts live as long. NULL when stderr is no terminal; the other functions take
 * that, and do nothing. */
Progress *progress_begin(const char *tool, const char *what, const char *steps);

/* `done` of `total` steps are done. `progress` is a Progress. From any thread. */
void progress_update(void *progress, int64_t done, int64_t total);

/* Takes the line away until it is drawn again, because something else is printed. */
void progress_hide(Progress *p);

/* Takes the line away for good and frees `p`. */
void progress_end(Progress *p);

#endif
