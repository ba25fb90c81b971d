/* What the peers in C have in common: the command line, the window and the result, as in src/lib.rs.
 *
 *   PROGRAM KIND sink|source|echo|ping ADDR:PORT SIZE SECONDS block|spin
 *
 * Who listens prints `ready`; every role ends with one line of JSON on standard output. Bytes and
 * CPU time are counted over the same window, which opens WARM_UP seconds after the first message.
 */
#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define WARM_UP 0.3
#define GRACE 0.2
#define DRAIN 0.5
#define PATIENCE_MS 10000
#define SOCKET_BUFFER_BYTES (4 << 20)
/* What the last message begins with where each has a connection of its own. */
#define LAST 1

struct order {
    const char *kind;
    const char *role;
    char host[64];
    int port;
    size_t size;
    double seconds;
    bool is_spinning;
};

static inline _Noreturn void stop(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static inline struct order read_order(int count, char **words) {
    struct order order = {0};
    if (count != 7)
        stop("the command line is", "KIND sink|source|echo|ping ADDR:PORT SIZE SECONDS block|spin");
    order.kind = words[1];
    order.role = words[2];
    const char *colon = strrchr(words[3], ':');
    if (colon == NULL || (size_t)(colon - words[3]) >= sizeof order.host)
        stop(words[3], "is no address with a port");
    memcpy(order.host, words[3], (size_t)(colon - words[3]));
    order.port = atoi(colon + 1);
    order.size = strtoul(words[4], NULL, 10);
    order.seconds = atof(words[5]);
    order.is_spinning = strcmp(words[6], "spin") == 0;
    if (order.port <= 0 || order.size < 1 || order.seconds < 0)
        stop(words[3], "port, SIZE or SECONDS cannot be read");
    return order;
}

static inline bool is_role(const struct order *order, const char *role) {
    return strcmp(order->role, role) == 0;
}

static inline bool is_kind(const struct order *order, const char *kind) {
    return strcmp(order->kind, kind) == 0;
}

static inline void say_ready(void) {
    puts("ready");
    fflush(stdout);
}

static inline double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline double cpu_s(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Counts from the first message on and remembers what the window was. */
struct window {
    double seconds, started, opened, closed, last;
    double cpu_opened, cpu_closed;
    uint64_t bytes, messages;
    uint64_t bytes_opened, messages_opened, bytes_closed, messages_closed;
};

static inline void window_close(struct window *w, double now) {
    w->closed = now;
    w->cpu_closed = cpu_s();
    w->bytes_closed = w->bytes;
    w->messages_closed = w->messages;
}

/* Closes a window that was nearly full at its last message: the other end closed its own and left a
 * moment before. */
static inline void window_end(struct window *w) {
    if (w->opened != 0 && w->closed == 0 && w->last - w->opened >= 0.9 * w->seconds)
        window_close(w, w->last);
}

/* Counts one message; true as long as the window is not over. */
static inline bool window_count(struct window *w, size_t bytes) {
    double now = now_s();
    if (w->started == 0)
        w->started = now;
    if (w->opened == 0 && now - w->started >= WARM_UP) {
        w->opened = now;
        w->cpu_opened = cpu_s();
        w->bytes_opened = w->bytes;
        w->messages_opened = w->messages;
    }
    if (w->opened != 0 && w->closed == 0 && now - w->opened >= w->seconds)
        window_close(w, now);
    w->last = now;
    w->bytes += bytes;
    w->messages++;
    return w->closed == 0;
}

static inline bool window_is_past_grace(const struct window *w) {
    return w->closed != 0 && now_s() - w->started >= WARM_UP + w->seconds + GRACE;
}

/* Whether a sink may leave: it takes what comes for a while after its window, so that a source that
 * waits for room gets to the end of its own. */
static inline bool window_is_drained(const struct window *w) {
    return w->closed != 0 && now_s() - w->closed >= DRAIN;
}

static inline void window_report(const struct window *w, const char *role) {
    if (w->closed == 0)
        stop(role, "the window never closed");
    printf("{\"role\":\"%s\",\"seconds\":%.6f,\"bytes\":%llu,\"messages\":%llu,\"lost\":null,"
           "\"cpu_s\":%.6f}\n",
           role, w->closed - w->opened, (unsigned long long)(w->bytes_closed - w->bytes_opened),
           (unsigned long long)(w->messages_closed - w->messages_opened),
           w->cpu_closed - w->cpu_opened);
    fflush(stdout);
}

/* Round trips, reported as one way: half of each. The warm-up is a fifth of the window. */
struct round_trips {
    double *one_way_us;
    size_t count, room;
    double started, seconds, cpu_before;
};

/* Books a message that left at `sent` and is back now; true while there is more to measure. */
static inline bool round_trips_book(struct round_trips *r, double sent) {
    double now = now_s();
    if (r->started == 0)
        r->started = sent;
    double since = now - r->started;
    if (since >= r->seconds / 5) {
        if (r->cpu_before == 0)
            r->cpu_before = cpu_s();
        if (r->count == r->room) {
            r->room = r->room == 0 ? 1 << 16 : r->room * 2;
            r->one_way_us = realloc(r->one_way_us, r->room * sizeof *r->one_way_us);
            if (r->one_way_us == NULL)
                stop("ping", "no memory");
        }
        r->one_way_us[r->count++] = (now - sent) * 1e6 / 2;
    }
    return since < r->seconds * 1.2;
}

static inline int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double at(const struct round_trips *r, double share) {
    size_t rank = (size_t)(share * (double)r->count);
    if ((double)rank < share * (double)r->count)
        rank++;
    return r->one_way_us[rank > 0 ? rank - 1 : 0];
}

/* The report of a sink whose messages say when they were due; how late they came is booked as if it
 * were half of a round trip. */
static inline void window_report_late(const struct window *w, struct round_trips *late) {
    if (w->closed == 0 || late->count == 0)
        stop("sink", "the window never closed");
    qsort(late->one_way_us, late->count, sizeof *late->one_way_us, by_size);
    printf("{\"role\":\"sink\",\"seconds\":%.6f,\"bytes\":%llu,\"messages\":%llu,\"lost\":null,"
           "\"cpu_s\":%.6f,\"p50_us\":%.3f,\"p99_us\":%.3f}\n",
           w->closed - w->opened, (unsigned long long)(w->bytes_closed - w->bytes_opened),
           (unsigned long long)(w->messages_closed - w->messages_opened),
           w->cpu_closed - w->cpu_opened, at(late, 0.5), at(late, 0.99));
    fflush(stdout);
}

static inline void round_trips_report(struct round_trips *r, const char *wait) {
    if (r->count == 0)
        stop("ping", "no answer came after the warm-up");
    qsort(r->one_way_us, r->count, sizeof *r->one_way_us, by_size);
    printf("{\"role\":\"ping\",\"wait\":\"%s\",\"count\":%zu,\"p50_us\":%.3f,\"p99_us\":%.3f,"
           "\"p999_us\":%.3f,\"max_us\":%.3f,\"cpu_s\":%.6f}\n",
           wait, r->count, at(r, 0.5), at(r, 0.99), at(r, 0.999), at(r, 1.0),
           cpu_s() - r->cpu_before);
    fflush(stdout);
}

#endif
