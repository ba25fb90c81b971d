/* SRT: live mode (messages, in time or not at all) and file mode (a reliable stream); setup is live
 * mode with a connection for each message there and back.
 *
 * Settings: flight window of 32768 packets, SRT buffers of 32 MiB, socket buffers of 4 MiB, no bound
 * of the rate (SRTO_MAXBW -1), full packets (SRTO_PAYLOADSIZE 1456). Live mode without time-stamped
 * delivery and without dropping what is late, so that a saturated sender loses nothing on purpose; a
 * ping is no faster with time-stamped delivery at a latency of 0.
 */
#include <arpa/inet.h>
#include <srt/srt.h>
#include <unistd.h>

#include "peer.h"

#define PAYLOAD_MAX 1456
#define BUFFER_BYTES (32 << 20)

static void check(int code, const char *what) {
    if (code == SRT_ERROR)
        stop(what, srt_getlasterror_str());
}

static void set_int(SRTSOCKET s, SRT_SOCKOPT option, int value, const char *name) {
    check(srt_setsockflag(s, option, &value, sizeof value), name);
}

static void set_bool(SRTSOCKET s, SRT_SOCKOPT option, bool value, const char *name) {
    check(srt_setsockflag(s, option, &value, sizeof value), name);
}

static SRTSOCKET new_socket(const struct order *order) {
    SRTSOCKET s = srt_create_socket();
    bool is_live = !is_kind(order, "file");
    bool is_bulk = is_role(order, "sink") || is_role(order, "source");
    int64_t unlimited = -1;
    int type = is_live ? SRTT_LIVE : SRTT_FILE;
    check(s, "srt_create_socket");
    check(srt_setsockflag(s, SRTO_TRANSTYPE, &type, sizeof type), "SRTO_TRANSTYPE");
    set_int(s, SRTO_FC, 32768, "SRTO_FC");
    set_int(s, SRTO_SNDBUF, BUFFER_BYTES, "SRTO_SNDBUF");
    set_int(s, SRTO_RCVBUF, BUFFER_BYTES, "SRTO_RCVBUF");
    set_int(s, SRTO_UDP_SNDBUF, SOCKET_BUFFER_BYTES, "SRTO_UDP_SNDBUF");
    set_int(s, SRTO_UDP_RCVBUF, SOCKET_BUFFER_BYTES, "SRTO_UDP_RCVBUF");
    set_int(s, SRTO_RCVTIMEO, PATIENCE_MS, "SRTO_RCVTIMEO");
    set_int(s, SRTO_SNDTIMEO, PATIENCE_MS, "SRTO_SNDTIMEO");
    check(srt_setsockflag(s, SRTO_MAXBW, &unlimited, sizeof unlimited), "SRTO_MAXBW");
    if (is_live) {
        set_int(s, SRTO_PAYLOADSIZE, PAYLOAD_MAX, "SRTO_PAYLOADSIZE");
        set_bool(s, SRTO_TSBPDMODE, false, "SRTO_TSBPDMODE");
        set_bool(s, SRTO_TLPKTDROP, false, "SRTO_TLPKTDROP");
        set_int(s, SRTO_LATENCY, 0, "SRTO_LATENCY");
        /* With periodic reports of loss nobody sends the last message again on his own, and a ping
         * whose only message is lost would wait for good. */
        set_bool(s, SRTO_NAKREPORT, is_bulk, "SRTO_NAKREPORT");
    }
    return s;
}

static struct sockaddr_in address_of(const struct order *order) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)order->port)};
    if (inet_pton(AF_INET, order->host, &address.sin_addr) != 1)
        stop(order->host, "is no IPv4 address");
    return address;
}

static SRTSOCKET new_listener(const struct order *order) {
    struct sockaddr_in address = address_of(order);
    SRTSOCKET listener = new_socket(order);
    check(srt_bind(listener, (struct sockaddr *)&address, sizeof address), "srt_bind");
    check(srt_listen(listener, 16), "srt_listen");
    say_ready();
    return listener;
}

static SRTSOCKET next_caller(SRTSOCKET listener) {
    SRTSOCKET s = srt_accept(listener, NULL, NULL);
    check(s, "srt_accept");
    return s;
}

static SRTSOCKET answer(const struct order *order) {
    return next_caller(new_listener(order));
}

static SRTSOCKET call(const struct order *order) {
    struct sockaddr_in address = address_of(order);
    SRTSOCKET s = new_socket(order);
    check(srt_connect(s, (struct sockaddr *)&address, sizeof address), "srt_connect");
    return s;
}

static char *new_message(const struct order *order) {
    char *message = calloc(1, order->size > PAYLOAD_MAX ? order->size : PAYLOAD_MAX);
    if (message == NULL)
        stop(order->role, "no memory");
    return message;
}

static void sink(const struct order *order) {
    struct window window = {.seconds = order->seconds};
    char *message = new_message(order);
    SRTSOCKET s = answer(order);
    while (!window_is_drained(&window)) {
        int len = srt_recv(s, message, (int)order->size);
        if (len == SRT_ERROR)
            break;
        window_count(&window, (size_t)len);
    }
    window_report(&window, "sink");
    srt_close(s);
}

static void source(const struct order *order) {
    struct window window = {.seconds = order->seconds};
    char *message = new_message(order);
    SRTSOCKET s = call(order);
    while (!window_is_past_grace(&window)) {
        int len = srt_send(s, message, (int)order->size);
        /* The sink leaves when its window is over. */
        if (len == SRT_ERROR)
            break;
        window_count(&window, (size_t)len);
    }
    window_end(&window);
    window_report(&window, "source");
}

/* A stream may cut a message in two; live mode never does, and asks for room for its longest. False
 * when the other end has left. */
static bool receive_whole(SRTSOCKET s, char *message, const struct order *order) {
    int room = !is_kind(order, "file") ? PAYLOAD_MAX : (int)order->size;
    for (size_t filled = 0; filled < order->size;) {
        int len = srt_recv(s, message + filled, room - (int)filled);
        if (len == SRT_ERROR || len == 0)
            return false;
        filled += (size_t)len;
    }
    return true;
}

static void echo(const struct order *order) {
    char *message = new_message(order);
    SRTSOCKET s = answer(order);
    while (receive_whole(s, message, order))
        if (srt_send(s, message, (int)order->size) == SRT_ERROR)
            break;
}

static void ping(const struct order *order) {
    struct round_trips trips = {.seconds = order->seconds};
    char *message = new_message(order);
    SRTSOCKET s = call(order);
    double sent;
    do {
        sent = now_s();
        check(srt_send(s, message, (int)order->size), "srt_send");
        if (!receive_whole(s, message, order))
            stop("srt_recv", srt_getlasterror_str());
    } while (round_trips_book(&trips, sent));
    round_trips_report(&trips, "block");
}

static void setup_echo(const struct order *order) {
    char *message = new_message(order);
    SRTSOCKET listener = new_listener(order);
    while (message[0] != LAST) {
        SRTSOCKET s = next_caller(listener);
        char rest[PAYLOAD_MAX];
        if (receive_whole(s, message, order) && srt_send(s, message, (int)order->size) > 0)
            /* The other end closes once it has the answer. */
            srt_recv(s, rest, sizeof rest);
        srt_close(s);
    }
}

static void setup_ping(const struct order *order) {
    struct round_trips trips = {.seconds = order->seconds};
    char *message = new_message(order);
    bool is_more = true, is_last;
    do {
        double sent = now_s();
        is_last = !is_more;
        message[0] = is_last ? LAST : 7;
        SRTSOCKET s = call(order);
        check(srt_send(s, message, (int)order->size), "srt_send");
        if (!receive_whole(s, message, order))
            stop("srt_recv", srt_getlasterror_str());
        is_more = round_trips_book(&trips, sent);
        srt_close(s);
    } while (!is_last && order->seconds > 0);
    round_trips_report(&trips, "block");
}

int main(int count, char **words) {
    struct order order = read_order(count, words);
    bool is_setup = is_kind(&order, "setup");
    if (!is_setup && !is_kind(&order, "live") && !is_kind(&order, "file"))
        stop(order.kind, "is no kind; they are live, file and setup");
    if (!is_kind(&order, "file") && order.size > PAYLOAD_MAX)
        stop("SIZE", "live mode takes messages of at most 1456 bytes");
    if (order.is_spinning)
        stop("spin", "SRT cannot be told to spin");
    srt_startup();
    if (is_setup && is_role(&order, "echo"))
        setup_echo(&order);
    else if (is_setup && is_role(&order, "ping"))
        setup_ping(&order);
    else if (is_setup)
        stop(order.role, "is no role of setup (echo or ping)");
    else if (is_role(&order, "sink"))
        sink(&order);
    else if (is_role(&order, "source"))
        source(&order);
    else if (is_role(&order, "echo"))
        echo(&order);
    else if (is_role(&order, "ping"))
        ping(&order);
    else
        stop(order.role, "is no role (sink, source, echo or ping)");
    /* The result is out: no need to wait for the library's threads. */
    fflush(stdout);
    _exit(0);
}
