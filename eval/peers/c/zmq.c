/* ZeroMQ over TCP: PUSH to PULL, and PAIR to PAIR for a ping.
 *
 *   flows   SIZE sockets to PULL, messages of 1000 bytes in turns, 5,000 a second in all, each of
 *           which begins with the time at which it was due (as bin/flows.rs)
 *   pub     PUB to SIZE sockets of one process, messages of 60 KiB, 50 Mbit/s to each
 *
 * Settings: socket buffers of 4 MiB, one I/O thread (more do not help a single connection), messages
 * sent without a copy; the high-water marks are ZeroMQ's own (1000 messages).
 */
#include <errno.h>
#include <zmq.h>

#include "peer.h"

static void check(int code, const char *what) {
    if (code < 0)
        stop(what, zmq_strerror(errno));
}

static void *open_socket(void *context, int type, const struct order *order, bool is_listening) {
    char endpoint[96];
    void *socket = zmq_socket(context, type);
    if (socket == NULL)
        stop("zmq_socket", zmq_strerror(errno));
    int buffer = SOCKET_BUFFER_BYTES, linger = 0, patience = PATIENCE_MS;
    check(zmq_setsockopt(socket, ZMQ_SNDBUF, &buffer, sizeof buffer), "ZMQ_SNDBUF");
    check(zmq_setsockopt(socket, ZMQ_RCVBUF, &buffer, sizeof buffer), "ZMQ_RCVBUF");
    check(zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger), "ZMQ_LINGER");
    check(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience, sizeof patience), "ZMQ_RCVTIMEO");
    check(zmq_setsockopt(socket, ZMQ_SNDTIMEO, &patience, sizeof patience), "ZMQ_SNDTIMEO");
    snprintf(endpoint, sizeof endpoint, "tcp://%s:%d", order->host, order->port);
    check(is_listening ? zmq_bind(socket, endpoint) : zmq_connect(socket, endpoint), endpoint);
    if (is_listening && type != ZMQ_PUB)
        say_ready();
    return socket;
}

/* What was sent shares one body, so there is nothing to free. */
static void keep(void *data, void *hint) {
    (void)data;
    (void)hint;
}

static void sink(void *context, const struct order *order) {
    struct window window = {.seconds = order->seconds};
    void *socket = open_socket(context, ZMQ_PULL, order, true);
    zmq_msg_t message;
    while (!window_is_drained(&window)) {
        check(zmq_msg_init(&message), "zmq_msg_init");
        if (zmq_msg_recv(&message, socket, 0) < 0)
            break;
        window_count(&window, zmq_msg_size(&message));
        zmq_msg_close(&message);
    }
    window_report(&window, "sink");
}

static void source(void *context, const struct order *order) {
    struct window window = {.seconds = order->seconds};
    void *socket = open_socket(context, ZMQ_PUSH, order, false);
    int short_wait = 1000;
    void *body = calloc(1, order->size);
    if (body == NULL)
        stop("source", "no memory");
    while (!window_is_past_grace(&window)) {
        zmq_msg_t message;
        check(zmq_msg_init_data(&message, body, order->size, keep, NULL), "zmq_msg_init_data");
        /* The sink leaves when its window is over, and then nobody takes what is queued. */
        if (zmq_msg_send(&message, socket, 0) < 0) {
            zmq_msg_close(&message);
            break;
        }
        window_count(&window, order->size);
        if (window.messages == 1)
            check(zmq_setsockopt(socket, ZMQ_SNDTIMEO, &short_wait, sizeof short_wait), "ZMQ_SNDTIMEO");
    }
    window_end(&window);
    window_report(&window, "source");
}

static int receive(void *socket, void *body, const struct order *order) {
    int len;
    do
        len = zmq_recv(socket, body, order->size, order->is_spinning ? ZMQ_DONTWAIT : 0);
    while (len < 0 && order->is_spinning && errno == EAGAIN);
    return len;
}

static void echo(void *context, const struct order *order) {
    void *socket = open_socket(context, ZMQ_PAIR, order, true);
    void *body = calloc(1, order->size);
    if (body == NULL)
        stop("echo", "no memory");
    while (receive(socket, body, order) >= 0)
        check(zmq_send(socket, body, order->size, 0), "zmq_send");
}

static void ping(void *context, const struct order *order) {
    struct round_trips trips = {.seconds = order->seconds};
    void *socket = open_socket(context, ZMQ_PAIR, order, false);
    void *body = calloc(1, order->size);
    double sent;
    if (body == NULL)
        stop("ping", "no memory");
    do {
        sent = now_s();
        check(zmq_send(socket, body, order->size, 0), "zmq_send");
        check(receive(socket, body, order), "zmq_recv");
    } while (round_trips_book(&trips, sent));
    round_trips_report(&trips, order->is_spinning ? "spin" : "block");
}

#define FLOW_BYTES 1000
#define PUB_BYTES (60 << 10)

/* Waits until `due`, seconds on the monotonic clock. */
static void wait_until(double due) {
    double left = due - now_s();
    struct timespec rest = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
    if (left > 0)
        nanosleep(&rest, NULL);
}

/* Sends messages of `size` over `count` sockets in turns, one each `step` seconds. */
static void paced(void **sockets, size_t count, size_t size, double step, const struct order *order) {
    struct window window = {.seconds = order->seconds};
    char *body = calloc(1, size);
    /* Sockets connect on their own, and nobody says when all have. */
    double begun = now_s() + 0.2 + 1e-3 * (double)order->size;
    for (uint64_t sent = 0; body != NULL && !window_is_past_grace(&window); sent++) {
        double due = begun + (double)sent * step;
        wait_until(due);
        memcpy(body, &due, sizeof due);
        if (zmq_send(sockets[sent % count], body, size, 0) < 0)
            break;
        window_count(&window, size);
    }
    window_end(&window);
    window_report(&window, "source");
}

static void **open_many(void *context, int type, const struct order *order) {
    void **sockets = calloc(order->size, sizeof *sockets);
    if (sockets == NULL)
        stop("sockets", "no memory");
    for (size_t i = 0; i < order->size; i++)
        sockets[i] = open_socket(context, type, order, false);
    return sockets;
}

static void flows_sink(void *context, const struct order *order) {
    struct window window = {.seconds = order->seconds};
    struct round_trips late = {.seconds = 1e9};
    void *socket = open_socket(context, ZMQ_PULL, order, true);
    char body[FLOW_BYTES];
    double due;
    do {
        check(zmq_recv(socket, body, sizeof body, 0), "zmq_recv");
        memcpy(&due, body, sizeof due);
        late.started = -1e9;
        if (window.opened != 0)
            round_trips_book(&late, 2 * due - now_s());
    } while (window_count(&window, sizeof body));
    window_report_late(&window, &late);
}

static void pub_sink(void *context, const struct order *order) {
    struct window window = {.seconds = order->seconds};
    void **sockets = open_many(context, ZMQ_SUB, order);
    zmq_pollitem_t *items = calloc(order->size, sizeof *items);
    char *body = malloc(PUB_BYTES);
    if (items == NULL || body == NULL)
        stop("sink", "no memory");
    for (size_t i = 0; i < order->size; i++) {
        items[i] = (zmq_pollitem_t){.socket = sockets[i], .events = ZMQ_POLLIN};
        check(zmq_setsockopt(sockets[i], ZMQ_SUBSCRIBE, "", 0), "ZMQ_SUBSCRIBE");
    }
    say_ready();
    for (bool is_open = true; is_open;) {
        if (zmq_poll(items, (int)order->size, PATIENCE_MS) <= 0)
            stop("sink", "nothing came");
        for (size_t i = 0; i < order->size; i++)
            if (items[i].revents & ZMQ_POLLIN) {
                check(zmq_recv(sockets[i], body, PUB_BYTES, 0), "zmq_recv");
                is_open = window_count(&window, PUB_BYTES) && is_open;
            }
    }
    window_report(&window, "sink");
}

/* Runs `flows` or `pub`; false for another kind. */
static bool many(void *context, const struct order *order) {
    bool is_sink = is_role(order, "sink");
    check(zmq_ctx_set(context, ZMQ_MAX_SOCKETS, (int)order->size + 8), "ZMQ_MAX_SOCKETS");
    if (is_kind(order, "flows") && is_sink)
        flows_sink(context, order);
    else if (is_kind(order, "flows"))
        paced(open_many(context, ZMQ_PUSH, order), order->size, FLOW_BYTES, 200e-6, order);
    else if (is_kind(order, "pub") && is_sink)
        pub_sink(context, order);
    else if (is_kind(order, "pub")) {
        void *socket = open_socket(context, ZMQ_PUB, order, true);
        paced(&socket, 1, PUB_BYTES, PUB_BYTES * 8 / 50e6, order);
    } else
        return false;
    return true;
}

int main(int count, char **words) {
    struct order order = read_order(count, words);
    void *context = zmq_ctx_new();
    if (many(context, &order))
        return 0;
    if (!is_kind(&order, "tcp"))
        stop(order.kind, "is no kind; they are tcp, flows and pub");
    if (is_role(&order, "sink"))
        sink(context, &order);
    else if (is_role(&order, "source"))
        source(context, &order);
    else if (is_role(&order, "echo"))
        echo(context, &order);
    else if (is_role(&order, "ping"))
        ping(context, &order);
    else
        stop(order.role, "is no role (sink, source, echo or ping)");
    /* The result is out: no need to wait for the library's threads. */
    return 0;
}
