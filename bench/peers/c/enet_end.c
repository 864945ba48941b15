/* ENet as an end: reliable packets on one channel.
 *
 * Built by build.rs, started by segstream-peers. A write of throughput and a segment are a packet each, which ENet cuts.
 *
 * Invariant: who serves ends the connection when it has what it wants, and that is how the other side learns it.
 */
#include "end.h"
#include <enet/enet.h>

enum { QUEUED_BYTES_MAX = 4 << 20, SOCKET_BUFFER_BYTES = 4 << 20 };

static ENetHost *host;
static ENetPeer *peer;
/* Given and not yet acknowledged. */
static uint64_t queued_bytes;

/* A packet that has come by then; nothing if none has, or the connection has ended. */
static ENetPacket *receive(double end)
{
    ENetEvent event;
    while (peer) {
        double left = (end - now_s()) * 1000;
        enet_uint32 wait = left <= 0 ? 0 : left > CALL_MS ? CALL_MS : (enet_uint32)left + 1;
        if (enet_host_service(host, &event, wait) < 0)
            fail("enet_host_service has failed");
        if (event.type == ENET_EVENT_TYPE_RECEIVE)
            return event.packet;
        if (event.type == ENET_EVENT_TYPE_DISCONNECT)
            peer = NULL;
        if (event.type == ENET_EVENT_TYPE_NONE && left <= 0)
            break;
    }
    return NULL;
}

static void freed(ENetPacket *packet)
{
    queued_bytes -= packet->dataLength;
}

static int send_packet(const char *bytes, size_t length)
{
    ENetPacket *packet = enet_packet_create(bytes, length, ENET_PACKET_FLAG_RELIABLE);
    if (!packet || !peer)
        return 0;
    packet->freeCallback = freed;
    queued_bytes += length;
    if (enet_peer_send(peer, 0, packet) < 0)
        fail("enet_peer_send has failed");
    enet_host_flush(host);
    return 1;
}

/* Whether there is room for more by then. */
static int has_room(double end)
{
    while (queued_bytes >= QUEUED_BYTES_MAX && peer && now_s() < end) {
        ENetPacket *packet = receive(now_s() + 0.001);
        if (packet)
            enet_packet_destroy(packet);
    }
    return peer && queued_bytes < QUEUED_BYTES_MAX;
}

static void connected(void)
{
    ENetAddress address = {options.address.sin_addr.s_addr, ntohs(options.address.sin_port)};
    ENetEvent event;
    double end = now_s() + STALL_S;
    host = enet_host_create(options.serves ? &address : NULL, 1, 1, 0, 0);
    if (!host)
        fail("the address cannot be bound");
    if (options.datagram_bytes)
        host->mtu = (enet_uint32)options.datagram_bytes;
    enet_socket_set_option(host->socket, ENET_SOCKOPT_RCVBUF, SOCKET_BUFFER_BYTES);
    enet_socket_set_option(host->socket, ENET_SOCKOPT_SNDBUF, SOCKET_BUFFER_BYTES);
    if (options.serves)
        listening(host->address.port);
    else if (!enet_host_connect(host, &address, 1, 0))
        fail("enet_host_connect has failed");
    while (!peer) {
        if (now_s() > end)
            fail("the connection is not made in %.0f s", STALL_S);
        if (enet_host_service(host, &event, CALL_MS) > 0 && event.type == ENET_EVENT_TYPE_CONNECT)
            peer = event.peer;
    }
    enet_peer_throttle_configure(peer, ENET_PEER_PACKET_THROTTLE_INTERVAL, ENET_PEER_PACKET_THROTTLE_SCALE, 0);
}

static void sink(void)
{
    ENetPacket *packet = receive(now_s() + STALL_S);
    measure();
    while (packet) {
        outcome.bytes += packet->dataLength;
        enet_packet_destroy(packet);
        if (!goes_on(outcome.bytes))
            break;
        packet = receive(options.seconds > 0 ? outcome.began + options.seconds : now_s() + STALL_S);
    }
    if (options.seconds == 0 && outcome.bytes < options.bytes)
        fail("%" PRIu64 " of %" PRIu64 " bytes have come", outcome.bytes, options.bytes);
    print_outcome();
}

static void source(void)
{
    char *segment = segment_of(options.segment_bytes);
    measure();
    while (goes_on(outcome.bytes)) {
        int length = next_write(outcome.bytes);
        if (!has_room(options.seconds > 0 ? outcome.began + options.seconds + GRACE_S : now_s() + STALL_S) ||
            !send_packet(segment, (size_t)length)) {
            if (options.seconds == 0)
                fail("the other side takes nothing after %" PRIu64 " bytes", outcome.bytes);
            break;
        }
        outcome.bytes += (uint64_t)length;
    }
    if (options.seconds == 0)
        receive(now_s() + STALL_S);
    print_outcome();
}

static void ping_pong(void)
{
    char ping[PING_BYTES];
    ping[0] = 1;
    measure();
    while (ping[0] != LAST) {
        double began = now_s();
        if (!options.serves) {
            memset(ping, 7, PING_BYTES);
            ping[0] = next_ping();
            send_packet(ping, sizeof ping);
        }
        ENetPacket *packet = receive(began + STALL_S);
        if (!packet || packet->dataLength != PING_BYTES)
            fail("round trip %" PRIu64 " is not complete", outcome.complete);
        ping[0] = (char)packet->data[0];
        if (options.serves && outcome.complete == 0)
            measure();
        if (options.serves)
            send_packet((const char *)packet->data, packet->dataLength);
        enet_packet_destroy(packet);
        rounded(began);
    }
    print_outcome();
    if (options.serves)
        receive(now_s() + 1);
}

static void collect(void)
{
    double end = now_s() + STALL_S + (double)options.count * options.interval_us / 1e6;
    ENetPacket *packet;
    while (outcome.complete < options.count && now_s() < end && (packet = receive(end))) {
        if (outcome.began == 0)
            measure();
        if (packet->dataLength < HEAD_BYTES)
            fail("something that is no segment has come");
        end = arrived((const char *)packet->data, packet->dataLength);
        enet_packet_destroy(packet);
    }
    if (outcome.began == 0)
        measure();
    print_outcome();
}

static void emit(void)
{
    char *segment = segment_of(options.segment_bytes);
    uint64_t began_ns = now_ns();
    double end = now_s() + (double)options.count * options.interval_us / 1e6 + PATIENCE_S + GRACE_S;
    measure();
    for (uint64_t number = 0; number < options.count; number++) {
        uint64_t due_ns = began_ns + (uint64_t)((double)number * options.interval_us * 1e3);
        while (peer && now_ns() < due_ns)
            receive((double)due_ns / 1e9);
        stamp(segment, due_ns, number);
        if (now_s() >= end || !send_packet(segment, options.segment_bytes))
            break;
        outcome.complete++;
        outcome.bytes += options.segment_bytes;
    }
    receive(end);
    print_outcome();
}

int main(int count, char **words)
{
    char version[32];
    ENetVersion number = enet_linked_version();
    snprintf(version, sizeof version, "%u.%u.%u", ENET_VERSION_GET_MAJOR(number), ENET_VERSION_GET_MINOR(number),
             ENET_VERSION_GET_PATCH(number));
    begin(count, words, version);
    if (enet_initialize() < 0)
        fail("enet_initialize has failed");
    connected();
    switch (options.workload) {
    case THROUGHPUT: options.serves ? sink() : source(); break;
    case PING_PONG: ping_pong(); break;
    case SCHEDULE: options.serves ? collect() : emit(); break;
    }
    if (peer)
        enet_peer_disconnect_now(peer, 0);
    enet_host_destroy(host);
    return 0;
}
