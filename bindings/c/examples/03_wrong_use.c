/* Wrong use gets a status and a sentence, never a crash: what a program should do about each is in the sentence. */
#include "check.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

static void expect(segstream_status got, segstream_status wanted, const char *part)
{
    if (got != wanted || strstr(segstream_last_error(), part) == NULL) {
        fprintf(stderr, "got %s (%s), expected %s and a sentence with \"%s\"\n", segstream_status_text(got), segstream_last_error(),
                segstream_status_text(wanted), part);
        exit(1);
    }
}

struct waiting {
    segstream_endpoint *endpoint;
    segstream_status status;
};

static void *wait_for_nobody(void *argument)
{
    struct waiting *waiting = argument;
    uint64_t connection;

    /* The other thread may be in a call first. */
    do {
        waiting->status = segstream_accept(waiting->endpoint, &connection, -1);
    } while (waiting->status == SEGSTREAM_IN_USE);
    return NULL;
}

int main(void)
{
    segstream_options *options;
    segstream_endpoint *endpoint = NULL, *none = NULL;
    segstream_contract contract, broken;
    segstream_waker *waker;
    segstream_event event;
    segstream_received received;
    pthread_t thread;
    uint64_t connection = 0, segment = 0;
    uint32_t stream = 0;
    char small[4];

    expect(segstream_bind(NULL, NULL, &endpoint), SEGSTREAM_INVALID_ARGUMENT, "address is NULL");
    expect(segstream_bind(NULL, "127.0.0.1:0", NULL), SEGSTREAM_INVALID_ARGUMENT, "endpoint is NULL");
    expect(segstream_bind(NULL, "somewhere", &endpoint), SEGSTREAM_INVALID_ARGUMENT, "no address");
    expect(segstream_bind(NULL, "\xff\xfe", &endpoint), SEGSTREAM_INVALID_ARGUMENT, "UTF-8");
    expect(segstream_listen(NULL, "127.0.0.1:0", &endpoint), SEGSTREAM_INVALID_ARGUMENT, "serve nobody");
    expect(segstream_bind(NULL, "192.0.2.1:1", &endpoint), SEGSTREAM_SYSTEM, "192.0.2.1");

    MUST(segstream_options_new(&options));
    expect(segstream_options_set(options, "speed", 1), SEGSTREAM_INVALID_ARGUMENT, "no setting");
    expect(segstream_options_set(options, "class", 8), SEGSTREAM_INVALID_ARGUMENT, "0 to 7");
    expect(segstream_options_set(options, "polling", 8), SEGSTREAM_INVALID_ARGUMENT, "text");
    expect(segstream_options_set_text(options, "coding", "always"), SEGSTREAM_INVALID_ARGUMENT, "hedged");
    expect(segstream_options_set_text(options, "authorities", "/nowhere"), SEGSTREAM_IDENTITY, "/nowhere");
    expect(segstream_options_set_text(options, "allow", "me"), SEGSTREAM_INVALID_ARGUMENT, "fingerprint");
    MUST(segstream_options_set(options, "insecure", 1));
    MUST(segstream_listen(options, "127.0.0.1:0", &endpoint));
    segstream_options_free(options);

    expect(segstream_local_address(endpoint, small, sizeof small), SEGSTREAM_BUFFER_TOO_SMALL, "buffer");
    expect(segstream_connect(endpoint, "127.0.0.1:1", "me", NULL, 0, &connection), SEGSTREAM_INVALID_ARGUMENT, "fingerprint");
    expect(segstream_connect(endpoint, "127.0.0.1:1", NULL, NULL, 1, &connection), SEGSTREAM_INVALID_ARGUMENT, "contracts");
    memset(&broken, 0, sizeof broken);
    expect(segstream_connect(endpoint, "127.0.0.1:1", NULL, &broken, 1, &connection), SEGSTREAM_INVALID_ARGUMENT, "segstream_contract_init");
    MUST(segstream_contract_init(&contract, sizeof contract));
    contract.tolerance_w = 4;
    contract.tolerance_e = 5;
    expect(segstream_connect(endpoint, "127.0.0.1:1", NULL, &contract, 1, &connection), SEGSTREAM_INVALID_ARGUMENT, "5");
    expect(segstream_contract_init(&contract, 3), SEGSTREAM_INVALID_ARGUMENT, "3 bytes");

    expect(segstream_send(endpoint, 7, 0, "x", 1, NULL, &segment), SEGSTREAM_UNKNOWN, "connection 7");
    expect(segstream_open_stream(endpoint, 7, NULL, &stream), SEGSTREAM_INVALID_ARGUMENT, "contracts");
    expect(segstream_recv(endpoint, 7, 0, NULL, 10, NULL, 0, &received, 0), SEGSTREAM_INVALID_ARGUMENT, "buffer is NULL");
    expect(segstream_recv(endpoint, 7, 0, NULL, 0, NULL, 0, &received, 0), SEGSTREAM_UNKNOWN, "connection 7");
    expect(segstream_release(endpoint, 7), SEGSTREAM_UNKNOWN, "connection 7");
    expect(segstream_wait(endpoint, &event, 0), SEGSTREAM_TIMED_OUT, "call again");
    expect(segstream_accept(endpoint, &connection, 10), SEGSTREAM_TIMED_OUT, "timeout");

    /* A connection that is there, and streams and segments that are not. */
    MUST(segstream_contract_init(&contract, sizeof contract));
    MUST(segstream_begin_connect(endpoint, "127.0.0.1:1", NULL, &contract, 1, &connection));
    expect(segstream_append(endpoint, connection, 0, 9, "x", 1, 1), SEGSTREAM_UNKNOWN, "open segment");
    expect(segstream_send(endpoint, connection, 3, "x", 1, NULL, &segment), SEGSTREAM_UNKNOWN, "stream");
    MUST(segstream_release(endpoint, connection));
    expect(segstream_send(endpoint, connection, 0, "x", 1, NULL, &segment), SEGSTREAM_UNKNOWN, "released");

    /* A second call at once, and a waker that ends the first. */
    struct waiting waiting = {endpoint, SEGSTREAM_OK};
    MUST(segstream_waker_new(endpoint, &waker));
    if (pthread_create(&thread, NULL, wait_for_nobody, &waiting) != 0) {
        return 1;
    }
    for (;;) {
        segstream_status status = segstream_process(endpoint);
        if (status != SEGSTREAM_OK) {
            expect(status, SEGSTREAM_IN_USE, "another call");
            break;
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    MUST(segstream_wake(waker));
    pthread_join(thread, NULL);
    if (waiting.status != SEGSTREAM_WOKEN) {
        return 1;
    }
    segstream_endpoint_free(endpoint);
    MUST(segstream_wake(waker));
    segstream_waker_free(waker);

    expect(segstream_process(none), SEGSTREAM_INVALID_ARGUMENT, "endpoint is NULL");
    segstream_endpoint_free(NULL);
    segstream_segment_free(NULL);
    puts("every mistake was told");
    return 0;
}
