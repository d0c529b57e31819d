/* Measures launches on a device, in two ways.
 *
 * graph: a CUDA graph of many launches, which take one copy of the data after the other.
 *     Where the copies are much larger than the L2 cache, each launch finds its data in
 *     memory, and what it costs to launch is hidden, as it is in a server. It is measured
 *     from rest, or under load: a device that takes all the power it may for more than some
 *     40 ms lowers its clocks, so replays from rest come in bursts with idle time between.
 * events: between two events on a stream, after the L2 cache was filled with something
 *     else by reading it. (Writing would leave lines that are written back in the
 *     meantime.) What it costs to launch is in it.
 *
 * Functions return false after a failure, which stands on stderr. */
#ifndef TILUS_TOOLS_MEASURE_H
#define TILUS_TOOLS_MEASURE_H

#include "common/driver.h"

#include <stdint.h>

enum {
    MEASURE_REPLAYS = 50,       /* at most */
    MEASURE_BURSTS = 10,        /* of MEASURE_RESTED, at most; of each one replay at least counts */
    MEASURE_REST_MS = 100,      /* without work, before each burst */
    MEASURE_BURST_MS = 20,      /* after which no replay of a burst begins */
    MEASURE_LOAD_MS = 500,      /* of replays, before those of MEASURE_LOADED */
};

/* A device whose primary context is current, with what measuring takes. */
typedef struct Measure {
    Driver driver;
    CUdevice device;
    CUcontext context;          /* NULL until it is current */
    CUstream stream;
    CUevent start, end;
    size_t l2;                  /* bytes of the cache */
    int64_t began, ended;       /* measure_graph_below's last replays, ns of the host */
} Measure;

/* Enqueues one launch, on copy `copy` of its data, on the stream of the Measure. */
typedef bool MeasureLaunch(void *data, unsigned copy);

/* Launches to measure, each on the next of `copies` copies of the data. */
typedef struct MeasureWork {
    MeasureLaunch *launch;
    void *data;
    unsigned copies;            /* at least 1 */
} MeasureWork;

/* Opens the device that the driver counts as `ordinal`; the runtime has initialized the
 * driver. `user` begins messages. measure_close takes what is open also after a failure,
 * and does nothing on {0}. */
bool measure_open(Measure *m, const char *user, int ordinal);
void measure_close(Measure *m);

typedef enum MeasureState { MEASURE_RESTED, MEASURE_LOADED } MeasureState;

/* MeasureTimes holds microseconds a launch, of each replay or of each launch between events, in the
 * order of time. */
typedef struct MeasureTimes {
    double us[MEASURE_REPLAYS];
    unsigned count;             /* MEASURE_BURSTS at least */
    unsigned launches;          /* in a replay */
} MeasureTimes;

/* Measures a graph, which takes each copy equally often, and a millisecond or more. */
bool measure_graph(Measure *m, const MeasureWork *work, MeasureState state, MeasureTimes *times);

/* The median of these times, from a rest as long as the replays before took. Where already the
 * first two are more than 1.25 times `best`, or ten more 1.05 times, the least of them, and no
 * more are made: `*whole` is false. A `best` of 0 is none. */
bool measure_graph_below(Measure *m, const MeasureWork *work, double best, double *us,
                         bool *whole);

/* Measures launches between events, each after `flush` was enqueued. */
bool measure_events(Measure *m, const MeasureWork *work, const MeasureWork *flush,
                    MeasureTimes *times);

typedef struct Summary {
    double median, low, high;   /* low and high: the 10th and the 90th percentile */
} Summary;

/* Sorts the times. */
Summary measure_summary(MeasureTimes *times);

#endif
