/* One thread and one poll(): an event loop of the program's own drives both ends. Segments are lent, not copied; the receiver gets a
 * handle, not a copy.
 *
 *   cc -std=c11 02_event_loop.c $(pkg-config --cflags --libs segstream) && ./a.out
 */
#include "check.h"

#include <poll.h>
#include <string.h>

enum { SEGMENTS = 50, BYTES = 100 * 1000 };

static uint8_t lent[SEGMENTS][BYTES];
static unsigned submitted, judged, received, released;

static void on_released(void *context)
{
    (void)context;
    released++;
}

/* Submits as many segments as there is room for. */
static void submit(segstream_endpoint *sender, uint64_t connection)
{
    segstream_send_options options = {0};

    options.try_only = 1;
    while (submitted < SEGMENTS) {
        memset(lent[submitted], (int)submitted, BYTES);
        segstream_status status =
            segstream_send_owned(sender, connection, 0, lent[submitted], BYTES, on_released, NULL, &options, NULL);
        if (status == SEGSTREAM_BLOCKED) {
            released--; /* It was released at once, and will be sent when there is room. */
            return;
        }
        must(status, "segstream_send_owned");
        submitted++;
    }
    MUST(segstream_finish_stream(sender, connection, 0));
}

static void take_segments(segstream_endpoint *receiver, uint64_t connection, uint32_t stream)
{
    segstream_segment *segment;

    while (segstream_recv_segment(receiver, connection, stream, &segment, 0) == SEGSTREAM_OK) {
        segstream_received told;
        MUST(segstream_segment_received(segment, &told));
        const uint8_t *bytes = segstream_segment_bytes(segment);
        if (told.bytes != BYTES || bytes[0] != (uint8_t)told.segment || bytes[BYTES - 1] != (uint8_t)told.segment) {
            fprintf(stderr, "segment %llu is not what was sent\n", (unsigned long long)told.segment);
            exit(1);
        }
        segstream_segment_free(segment);
        received++;
    }
}

static void handle_events(segstream_endpoint *endpoint, bool sends)
{
    segstream_event event;

    MUST(segstream_process(endpoint));
    while (segstream_wait(endpoint, &event, 0) == SEGSTREAM_OK) {
        switch (event.kind) {
        case SEGSTREAM_EVENT_CONNECTED:
        case SEGSTREAM_EVENT_WRITABLE:
            if (sends && submitted < SEGMENTS) {
                double rtt;
                submit(endpoint, event.connection);
                MUST(segstream_statistic(endpoint, event.connection, "rtt_ms_min", &rtt));
            }
            break;
        case SEGSTREAM_EVENT_READABLE:
            take_segments(endpoint, event.connection, event.stream);
            break;
        case SEGSTREAM_EVENT_JUDGED:
            judged += (unsigned)(event.segment_end - event.segment);
            break;
        case SEGSTREAM_EVENT_CLOSED:
            fprintf(stderr, "closed: %s\n", segstream_last_error());
            exit(1);
        default:
            break;
        }
    }
}

/* Milliseconds for poll(), rounded down so that a rate is kept; -1 for no timeout. */
static int shorter(int64_t first_us, int64_t second_us)
{
    int64_t both = first_us < 0 ? second_us : second_us < 0 || first_us < second_us ? first_us : second_us;
    return both < 0 ? -1 : (int)(both / 1000);
}

int main(void)
{
    segstream_options *options;
    segstream_endpoint *receiver, *sender;
    segstream_contract contract;
    char address[64], fingerprint[64];
    uint64_t connection;

    options = patient_options();
    MUST(segstream_bind(options, "127.0.0.1:0", &sender));
    MUST(segstream_options_set(options, "allow_anyone", 1));
    MUST(segstream_listen(options, "127.0.0.1:0", &receiver));
    segstream_options_free(options);
    MUST(segstream_local_address(receiver, address, sizeof address));
    MUST(segstream_fingerprint(receiver, fingerprint, sizeof fingerprint));
    MUST(segstream_contract_init(&contract, sizeof contract));
    contract.window_units = 1024; /* Ten segments, so that the send buffer fills. */
    MUST(segstream_begin_connect(sender, address, fingerprint, &contract, 1, &connection));

    while (judged < SEGMENTS || received < SEGMENTS) {
        struct pollfd watched[2] = {{segstream_fd(receiver), POLLIN, 0}, {segstream_fd(sender), POLLIN, 0}};
        int timeout = shorter(segstream_timeout(receiver), segstream_timeout(sender));
        if (timeout < 0 || timeout > 60000) {
            fprintf(stderr, "nothing would ever happen again\n");
            return 1;
        }
        poll(watched, 2, timeout);
        handle_events(sender, true);
        handle_events(receiver, false);
    }
    segstream_endpoint_free(sender);
    segstream_endpoint_free(receiver);
    printf("%u judged, %u received, %u released\n", judged, received, released);
    return released == SEGMENTS ? 0 : 1;
}
