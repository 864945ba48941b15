/* UDT as an end: a stream of bytes, and messages for segments.
 *
 * Built by build.rs, started by segstream-peers.
 *
 * Invariant: who serves ends the connection when it has what it wants, and that is how the other side learns it.
 */
#include "end.h"
#include <udt/udt.h>

enum { BUFFER_BYTES = 100000000, UDP_BUFFER_BYTES = 4 << 20, FLOW_PACKETS = 100000 };

static void check(int result, const char *what)
{
    if (result == UDT::ERROR)
        fail("%s: %s", what, UDT::getlasterror().getErrorMessage());
}

static void set(UDTSOCKET socket, UDT::SOCKOPT option, int value)
{
    check(UDT::setsockopt(socket, 0, option, &value, sizeof value), "UDT::setsockopt");
}

static bool is_messages()
{
    return options.workload == SCHEDULE;
}

static UDTSOCKET open_socket()
{
    UDTSOCKET socket = UDT::socket(AF_INET, is_messages() ? SOCK_DGRAM : SOCK_STREAM, 0);
    if (options.datagram_bytes)
        set(socket, UDT_MSS, (int)options.datagram_bytes + 28);
    set(socket, UDT_FC, FLOW_PACKETS);
    set(socket, UDT_SNDBUF, BUFFER_BYTES);
    set(socket, UDT_RCVBUF, BUFFER_BYTES);
    set(socket, UDP_SNDBUF, UDP_BUFFER_BYTES);
    set(socket, UDP_RCVBUF, UDP_BUFFER_BYTES);
    set(socket, UDT_RCVTIMEO, CALL_MS);
    set(socket, UDT_SNDTIMEO, CALL_MS);
    linger linger = {1, 1};
    check(UDT::setsockopt(socket, 0, UDT_LINGER, &linger, sizeof linger), "UDT_LINGER");
    return socket;
}

static UDTSOCKET connected()
{
    UDTSOCKET socket = open_socket();
    sockaddr_in name;
    int length = sizeof name;
    if (!options.serves) {
        check(UDT::connect(socket, (sockaddr *)&options.address, sizeof options.address), "the connection is not made");
        return socket;
    }
    check(UDT::bind(socket, (sockaddr *)&options.address, sizeof options.address), "the address cannot be bound");
    check(UDT::listen(socket, 1), "UDT::listen");
    check(UDT::getsockname(socket, (sockaddr *)&name, &length), "UDT::getsockname");
    listening(ntohs(name.sin_port));
    UDTSOCKET accepted = UDT::accept(socket, (sockaddr *)&name, &length);
    if (accepted == UDT::INVALID_SOCK)
        fail("nobody has connected: %s", UDT::getlasterror().getErrorMessage());
    return accepted;
}

/* Its receiving and sending calls say 0 after their time, and as an error in some versions. */
static bool is_timeout(int result)
{
    return result == 0 || UDT::getlasterror().getErrorCode() == UDT::ERRORINFO::ETIMEOUT || UDT::getlasterror().getErrorCode() == 6003;
}

/* What comes by then: its length, 0 if nothing came, less when the connection has ended. */
static int receive(UDTSOCKET socket, char *buffer, int length, double end)
{
    for (;;) {
        int received = is_messages() ? UDT::recvmsg(socket, buffer, length) : UDT::recv(socket, buffer, length, 0);
        if (received > 0)
            return received;
        if (!is_timeout(received))
            return -1;
        if (UDT::getsockstate(socket) != CONNECTED)
            return -1;
        if (now_s() >= end)
            return 0;
    }
}

/* Whether all could be given by then. */
static bool send_all(UDTSOCKET socket, const char *bytes, int length, double end)
{
    while (length > 0) {
        int sent = is_messages() ? UDT::sendmsg(socket, bytes, length, -1, false) : UDT::send(socket, bytes, length, 0);
        if (sent > 0) {
            bytes += sent;
            length -= sent;
        } else if (!is_timeout(sent) || UDT::getsockstate(socket) != CONNECTED || now_s() >= end) {
            return false;
        }
    }
    return true;
}

static void sink(UDTSOCKET socket)
{
    char *buffer = segment_of(1 << 20);
    int received = receive(socket, buffer, 1 << 20, now_s() + STALL_S);
    measure();
    while (received > 0) {
        outcome.bytes += (uint64_t)received;
        if (!goes_on(outcome.bytes))
            break;
        received = receive(socket, buffer, 1 << 20, options.seconds > 0 ? outcome.began + options.seconds : now_s() + STALL_S);
    }
    if (options.seconds == 0 && outcome.bytes < options.bytes)
        fail("%" PRIu64 " of %" PRIu64 " bytes have come", outcome.bytes, options.bytes);
    print_outcome();
}

static void source(UDTSOCKET socket)
{
    char *segment = segment_of(options.segment_bytes), word;
    measure();
    while (goes_on(outcome.bytes)) {
        int length = next_write(outcome.bytes);
        if (!send_all(socket, segment, length, options.seconds > 0 ? outcome.began + options.seconds + GRACE_S : now_s() + STALL_S)) {
            if (options.seconds == 0)
                fail("the other side takes nothing after %" PRIu64 " bytes", outcome.bytes);
            break;
        }
        outcome.bytes += (uint64_t)length;
    }
    if (options.seconds == 0)
        receive(socket, &word, 1, now_s() + STALL_S);
    print_outcome();
}

static void ping_pong(UDTSOCKET socket)
{
    char ping[PING_BYTES];
    ping[0] = 1;
    measure();
    while (ping[0] != LAST) {
        double began = now_s();
        if (!options.serves) {
            memset(ping, 7, PING_BYTES);
            ping[0] = next_ping();
            if (!send_all(socket, ping, PING_BYTES, began + STALL_S))
                fail("round trip %" PRIu64 " cannot be sent", outcome.complete);
        }
        for (int have = 0, more; have < PING_BYTES; have += more) {
            more = receive(socket, ping + have, PING_BYTES - have, began + STALL_S);
            if (more <= 0)
                fail("round trip %" PRIu64 " is not complete", outcome.complete);
        }
        if (options.serves && outcome.complete == 0)
            measure();
        if (options.serves && !send_all(socket, ping, PING_BYTES, began + STALL_S))
            fail("round trip %" PRIu64 " cannot be answered", outcome.complete);
        rounded(began);
    }
    print_outcome();
    if (options.serves)
        receive(socket, ping, PING_BYTES, now_s() + 2);
}

static void collect(UDTSOCKET socket)
{
    char *segment = segment_of(options.segment_bytes);
    double end = now_s() + STALL_S + (double)options.count * options.interval_us / 1e6;
    while (outcome.complete < options.count) {
        int received = receive(socket, segment, (int)options.segment_bytes, end);
        if (received < HEAD_BYTES)
            break;
        if (outcome.began == 0)
            measure();
        end = arrived(segment, (uint64_t)received);
        if (now_s() >= end)
            break;
    }
    if (outcome.began == 0)
        measure();
    print_outcome();
}

static void emit(UDTSOCKET socket)
{
    char *segment = segment_of(options.segment_bytes);
    uint64_t began_ns = now_ns();
    double end = now_s() + (double)options.count * options.interval_us / 1e6 + PATIENCE_S + GRACE_S;
    measure();
    for (uint64_t number = 0; number < options.count; number++) {
        uint64_t due_ns = began_ns + (uint64_t)((double)number * options.interval_us * 1e3);
        sleep_until((double)due_ns / 1e9);
        stamp(segment, due_ns, number);
        if (!send_all(socket, segment, (int)options.segment_bytes, end))
            break;
        outcome.complete++;
        outcome.bytes += options.segment_bytes;
    }
    receive(socket, segment, (int)options.segment_bytes, end);
    print_outcome();
}

int main(int count, char **words)
{
    begin(count, words, "4.11");
    check(UDT::startup(), "UDT::startup");
    UDTSOCKET socket = connected();
    switch (options.workload) {
    case THROUGHPUT: options.serves ? sink(socket) : source(socket); break;
    case PING_PONG: ping_pong(socket); break;
    case SCHEDULE: options.serves ? collect(socket) : emit(socket); break;
    }
    UDT::close(socket);
    UDT::cleanup();
    return 0;
}
