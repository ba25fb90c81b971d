/* ZeroMQ over TCP: PUSH to PULL, and PAIR to PAIR for a ping.
 *
 * Settings: socket buffers of 4 MiB, one I/O thread (more do not help a single connection), messages
 * sent without a copy; the high-water marks are ZeroMQ's own (1000 messages). A kind other than tcp
 * is refused.
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
    if (is_listening)
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

int main(int count, char **words) {
    struct order order = read_order(count, words);
    void *context = zmq_ctx_new();
    if (!is_kind(&order, "tcp"))
        stop(order.kind, "is no kind; it is tcp");
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
