/* SRT as an end: file mode as a stream of bytes or with messages, and live mode.
 *
 * Built by build.rs, started by segstream-peers. In live mode a message is a packet of at most 1456 bytes, so a segment is
 * many of them, each with the head of its segment; it is complete when all have come. With --filter its packet filter sends
 * XOR sums of rows and columns of packets, which take four bytes of each packet's room.
 *
 * Invariant: who serves ends the connection when it has what it wants, and that is how the other side learns it.
 */
#include "end.h"
#include <srt/srt.h>

enum { BUFFER_BYTES = 48000000, UDP_BUFFER_BYTES = 4 << 20, FLOW_PACKETS = 65536, LIVE_BYTES = 1456, FILTER_BYTES = 4 };

static void check(int result, const char *what)
{
    if (result == SRT_ERROR)
        fail("%s: %s", what, srt_getlasterror_str());
}

static void set(SRTSOCKET socket, SRT_SOCKOPT option, int value)
{
    check(srt_setsockflag(socket, option, &value, sizeof value), "srt_setsockflag");
}

static int payload_bytes(void)
{
    uint64_t bytes = options.datagram_bytes ? options.datagram_bytes - 16 : LIVE_BYTES;
    return (int)(bytes < LIVE_BYTES ? bytes : LIVE_BYTES) - (options.filter_columns ? FILTER_BYTES : 0);
}

static SRTSOCKET open_socket(void)
{
    SRTSOCKET socket = srt_create_socket();
    set(socket, SRTO_TRANSTYPE, options.latency_ms ? SRTT_LIVE : SRTT_FILE);
    if (options.latency_ms) {
        int64_t unlimited = -1;
        set(socket, SRTO_LATENCY, (int)options.latency_ms);
        set(socket, SRTO_PAYLOADSIZE, payload_bytes());
        if (options.filter_columns) {
            char filter[64];
            int length = snprintf(filter, sizeof filter, "fec,cols:%" PRIu64 ",rows:%" PRIu64, options.filter_columns, options.filter_rows);
            check(srt_setsockflag(socket, SRTO_PACKETFILTER, filter, length), "SRTO_PACKETFILTER");
        }
        check(srt_setsockflag(socket, SRTO_MAXBW, &unlimited, sizeof unlimited), "SRTO_MAXBW");
    } else {
        set(socket, SRTO_MESSAGEAPI, options.workload != THROUGHPUT);
        struct linger linger = {1, 1};
        check(srt_setsockflag(socket, SRTO_LINGER, &linger, sizeof linger), "SRTO_LINGER");
    }
    if (options.datagram_bytes)
        set(socket, SRTO_MSS, (int)options.datagram_bytes + 28);
    set(socket, SRTO_FC, FLOW_PACKETS);
    set(socket, SRTO_SNDBUF, BUFFER_BYTES);
    set(socket, SRTO_RCVBUF, BUFFER_BYTES);
    set(socket, SRTO_UDP_SNDBUF, UDP_BUFFER_BYTES);
    set(socket, SRTO_UDP_RCVBUF, UDP_BUFFER_BYTES);
    set(socket, SRTO_RCVTIMEO, CALL_MS);
    set(socket, SRTO_SNDTIMEO, CALL_MS);
    if (!strcmp(options.transport, "srt-aes")) {
        set(socket, SRTO_PBKEYLEN, 16);
        check(srt_setsockflag(socket, SRTO_PASSPHRASE, "a passphrase of the bench", 25), "SRTO_PASSPHRASE");
    }
    return socket;
}

static SRTSOCKET connected(void)
{
    SRTSOCKET socket = open_socket();
    struct sockaddr_in name;
    int length = sizeof name;
    if (!options.serves) {
        set(socket, SRTO_CONNTIMEO, (int)(STALL_S * 1000));
        check(srt_connect(socket, (struct sockaddr *)&options.address, sizeof options.address), "the connection is not made");
        return socket;
    }
    check(srt_bind(socket, (struct sockaddr *)&options.address, sizeof options.address), "the address cannot be bound");
    check(srt_listen(socket, 1), "srt_listen");
    check(srt_getsockname(socket, (struct sockaddr *)&name, &length), "srt_getsockname");
    listening(ntohs(name.sin_port));
    double end = now_s() + STALL_S;
    for (;;) {
        SRTSOCKET accepted = srt_accept(socket, NULL, NULL);
        if (accepted != SRT_INVALID_SOCK)
            return accepted;
        if (srt_getlasterror(NULL) != SRT_ETIMEOUT && srt_getlasterror(NULL) != SRT_EASYNCRCV)
            fail("nobody has connected: %s", srt_getlasterror_str());
        if (now_s() > end)
            fail("nobody has connected for %.0f s", STALL_S);
    }
}

static int is_timeout(void)
{
    int error = srt_getlasterror(NULL);
    return error == SRT_ETIMEOUT || error == SRT_EASYNCRCV || error == SRT_EASYNCSND;
}

/* What comes by then: its length, 0 if nothing came, less when the connection has ended. */
static int receive(SRTSOCKET socket, char *buffer, int length, double end)
{
    for (;;) {
        int received = srt_recv(socket, buffer, length);
        if (received > 0)
            return received;
        if (received == 0 || !is_timeout())
            return -1;
        if (now_s() >= end)
            return 0;
    }
}

/* Whether all could be given by then. */
static int send_all(SRTSOCKET socket, const char *bytes, int length, double end)
{
    while (length > 0) {
        /* Messages without expiry, in order; the time of a packet in live mode is that of this call. */
        int sent = options.latency_ms || options.workload != THROUGHPUT ? srt_sendmsg(socket, bytes, length, -1, 1)
                                                                          : srt_send(socket, bytes, length);
        if (sent > 0) {
            bytes += sent;
            length -= sent;
        } else if (!is_timeout() || now_s() >= end) {
            return 0;
        }
    }
    return 1;
}

/* Waits until the other side has ended the connection. In live mode a buffer must hold a whole packet. */
static void wait_for_the_end(SRTSOCKET socket, double end)
{
    char packet[LIVE_BYTES];
    receive(socket, packet, sizeof packet, end);
}

static void sink(SRTSOCKET socket)
{
    char *buffer = segment_of(1 << 20);
    int received = receive(socket, buffer, 1 << 20, now_s() + STALL_S);
    measure();
    while (received > 0) {
        outcome.bytes += (uint64_t)received;
        if (!goes_on(outcome.bytes))
            break;
        /* What live mode has given up never comes. */
        double end = options.seconds > 0 ? outcome.began + options.seconds : now_s() + (options.latency_ms ? 2 : STALL_S);
        received = receive(socket, buffer, 1 << 20, end);
    }
    if (options.seconds == 0 && outcome.bytes < options.bytes && !options.latency_ms)
        fail("%" PRIu64 " of %" PRIu64 " bytes have come", outcome.bytes, options.bytes);
    print_outcome();
}

static void source(SRTSOCKET socket)
{
    char *segment = segment_of(options.segment_bytes);
    if (options.latency_ms)
        options.segment_bytes = (uint64_t)payload_bytes();
    measure();
    while (goes_on(outcome.bytes)) {
        int length = next_write(outcome.bytes);
        if (!send_all(socket, segment, length, now_s() + STALL_S)) {
            if (options.seconds == 0)
                fail("the other side takes nothing after %" PRIu64 " bytes: %s", outcome.bytes, srt_getlasterror_str());
            break;
        }
        outcome.bytes += (uint64_t)length;
    }
    if (options.seconds == 0)
        wait_for_the_end(socket, now_s() + STALL_S);
    print_outcome();
}

static void ping_pong(SRTSOCKET socket)
{
    char ping[LIVE_BYTES];
    ping[0] = 1;
    measure();
    while (ping[0] != LAST) {
        double began = now_s();
        if (!options.serves) {
            memset(ping, 7, PING_BYTES);
            ping[0] = next_ping();
            if (!send_all(socket, ping, PING_BYTES, began + STALL_S))
                fail("round trip %" PRIu64 " cannot be sent: %s", outcome.complete, srt_getlasterror_str());
        }
        if (receive(socket, ping, sizeof ping, began + STALL_S) != PING_BYTES)
            fail("round trip %" PRIu64 " is not complete", outcome.complete);
        if (options.serves && outcome.complete == 0)
            measure();
        if (options.serves && !send_all(socket, ping, PING_BYTES, began + STALL_S))
            fail("round trip %" PRIu64 " cannot be answered", outcome.complete);
        rounded(began);
    }
    print_outcome();
    /* The last answer is still under way. */
    if (options.serves)
        wait_for_the_end(socket, now_s() + 2);
}

static void collect(SRTSOCKET socket)
{
    int piece_bytes = options.latency_ms ? payload_bytes() : (int)options.segment_bytes;
    char *piece = segment_of((uint64_t)piece_bytes);
    uint64_t *bytes = (uint64_t *)calloc(options.count, sizeof(uint64_t));
    double end = now_s() + STALL_S + (double)options.count * options.interval_us / 1e6;
    while (bytes && outcome.complete < options.count) {
        int received = receive(socket, piece, piece_bytes, end);
        if (received <= 0)
            break;
        if (outcome.began == 0)
            measure();
        uint64_t number;
        memcpy(&number, piece + 8, 8);
        if (received < HEAD_BYTES || number >= options.count)
            fail("something that is no part of a segment has come");
        bytes[number] += (uint64_t)(options.latency_ms ? received - HEAD_BYTES : received);
        if (bytes[number] == options.segment_bytes)
            end = arrived(piece, options.segment_bytes);
        if (now_s() >= end)
            break;
    }
    if (outcome.began == 0)
        measure();
    print_outcome();
}

static void emit(SRTSOCKET socket)
{
    char *segment = segment_of(options.segment_bytes + HEAD_BYTES);
    uint64_t began_ns = now_ns(), piece = options.latency_ms ? (uint64_t)payload_bytes() - HEAD_BYTES : options.segment_bytes;
    double end = now_s() + (double)options.count * options.interval_us / 1e6 + PATIENCE_S + GRACE_S;
    measure();
    for (uint64_t number = 0; number < options.count; number++) {
        uint64_t due_ns = began_ns + (uint64_t)((double)number * options.interval_us * 1e3);
        sleep_until((double)due_ns / 1e9);
        stamp(segment, due_ns, number);
        for (uint64_t at = 0; at < options.segment_bytes; at += piece) {
            uint64_t left = options.segment_bytes - at, length = left < piece ? left : piece;
            if (!send_all(socket, segment, (int)(options.latency_ms ? length + HEAD_BYTES : length), end))
                goto ended;
        }
        outcome.complete++;
        outcome.bytes += options.segment_bytes;
    }
ended:
    wait_for_the_end(socket, end);
    print_outcome();
}

int main(int count, char **words)
{
    char version[32];
    unsigned number = srt_getversion();
    snprintf(version, sizeof version, "%u.%u.%u", number >> 16, number >> 8 & 255, number & 255);
    begin(count, words, version);
    check(srt_startup(), "srt_startup");
    srt_setloglevel(0);
    SRTSOCKET socket = connected();
    switch (options.workload) {
    case THROUGHPUT: options.serves ? sink(socket) : source(socket); break;
    case PING_PONG: ping_pong(socket); break;
    case SCHEDULE: options.serves ? collect(socket) : emit(socket); break;
    }
    srt_close(socket);
    srt_cleanup();
    return 0;
}
