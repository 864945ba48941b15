/* Two ends in one program: a thread receives what this one sends, with a tolerance, into a buffer of its own, and confirms it.
 *
 *   cc -std=c11 01_hello.c $(pkg-config --cflags --libs segstream) -pthread && ./a.out
 */
#include "check.h"

#include <pthread.h>
#include <string.h>

enum { SEGMENTS = 20, BYTES = 64 * 1024, HOLES_MAX = 64 };

static void *receive(void *argument)
{
    segstream_endpoint *endpoint = argument;
    uint64_t connection;
    uint32_t stream;
    static uint8_t buffer[BYTES];
    segstream_run holes[HOLES_MAX];
    segstream_received received;
    segstream_status status;
    size_t count = 0;

    MUST(segstream_accept(endpoint, &connection, 60000));
    MUST(segstream_accept_stream(endpoint, connection, &stream, 60000));
    while ((status = segstream_recv(endpoint, connection, stream, buffer, sizeof buffer, holes, HOLES_MAX, &received, 60000)) ==
           SEGSTREAM_OK) {
        if (received.bytes != BYTES || buffer[0] != (uint8_t)received.segment || received.holes != 0) {
            fprintf(stderr, "segment %llu is not what was sent\n", (unsigned long long)received.segment);
            exit(1);
        }
        count++;
        /* What a program would do when the segment is on its disk. */
        MUST(segstream_confirm(endpoint, connection, stream, received.segment + 1));
    }
    if (status != SEGSTREAM_END) {
        must(status, "segstream_recv");
    }
    printf("received %zu segments\n", count);
    MUST(segstream_endpoint_close(endpoint));
    return NULL;
}

int main(void)
{
    segstream_options *options;
    segstream_endpoint *receiver, *sender;
    segstream_contract contract;
    segstream_durable durable;
    char address[64], fingerprint[64], ours[64];
    uint64_t connection;
    pthread_t thread;

    /* The sender's key, which the receiver serves. */
    options = patient_options();
    MUST(segstream_bind(options, "127.0.0.1:0", &sender));
    MUST(segstream_fingerprint(sender, ours, sizeof ours));

    MUST(segstream_options_set_text(options, "allow", ours));
    MUST(segstream_options_set(options, "confirms", 1));
    MUST(segstream_options_set_text(options, "coding", "auto:latency=80ms,budget=10%"));
    MUST(segstream_listen(options, "127.0.0.1:0", &receiver));
    segstream_options_free(options);
    MUST(segstream_local_address(receiver, address, sizeof address));
    MUST(segstream_fingerprint(receiver, fingerprint, sizeof fingerprint));
    if (pthread_create(&thread, NULL, receive, receiver) != 0) {
        return 1;
    }

    /* Of 64 units of 1 KiB two may be missing, no two side by side. */
    MUST(segstream_contract_init(&contract, sizeof contract));
    contract.tolerance_w = 64;
    contract.tolerance_e = 2;
    contract.tolerance_b = 1;
    MUST(segstream_connect(sender, address, fingerprint, &contract, 1, &connection));
    for (int at = 0; at < SEGMENTS; at++) {
        static uint8_t bytes[BYTES];
        uint64_t segment;
        segstream_judged judged;

        memset(bytes, at, sizeof bytes);
        MUST(segstream_send(sender, connection, 0, bytes, sizeof bytes, NULL, &segment));
        MUST(segstream_segment_verdict(sender, connection, 0, segment, &judged, NULL, 0, 60000));
        if (judged.verdict != SEGSTREAM_VERDICT_COMPLETE) {
            return 1;
        }
    }
    MUST(segstream_confirmed(sender, connection, 0, SEGMENTS, &durable, 60000));
    if (durable.segments != SEGMENTS) {
        return 1;
    }
    MUST(segstream_close(sender, connection, 0, "done"));
    pthread_join(thread, NULL);
    MUST(segstream_release(sender, connection));
    segstream_endpoint_free(sender);
    puts("sent, judged and confirmed");
    return 0;
}
