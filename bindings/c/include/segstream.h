/*
 * Segstream: segments over UDP with exactly the loss an application can live with.
 *
 * Written by cbindgen from bindings/c/src; change it there.
 *
 * Rules that hold for every function:
 *
 * - What a function returns in a pointer to a pointer belongs to the caller, who gives it to the matching `_free` function once.
 *   `_free` functions take NULL. Everything else a function is given belongs to the caller still, unless the function says otherwise,
 *   and is not used after it has returned.
 * - A handle may move between threads, but is in one call at a time: a second call at once returns SEGSTREAM_IN_USE. Only a waker may be
 *   used at any time from any thread. A handle is not used after `_free`, nor in a child process after fork().
 * - A status above 0 is no error: nothing was lost, call again. A status below 0 is an error; segstream_last_error() is a sentence that
 *   says whose fault it is and what to do. Results behind pointers are written only with SEGSTREAM_OK, unless the function says
 *   otherwise.
 * - A timeout is in milliseconds: negative for no timeout, zero to serve the network once and return.
 * - Text is UTF-8 and ends with a zero byte. Text that a function returns as `const char *` belongs to the library.
 * - Only segstream_send_owned() calls back, and only on a thread that is in a call of the same endpoint, or frees it.
 */


#ifndef SEGSTREAM_H
#define SEGSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * What a function returns. Above 0: nothing was lost, call again. Below 0: an error, and segstream_last_error() says more.
 */
typedef enum segstream_status {
    /**
     * Done.
     */
    SEGSTREAM_OK = 0,
    /**
     * There is nothing more to come: the stream has ended, or no more verdicts will come.
     */
    SEGSTREAM_END = 1,
    /**
     * The timeout has passed.
     */
    SEGSTREAM_TIMED_OUT = 2,
    /**
     * A waker has ended the call.
     */
    SEGSTREAM_WOKEN = 3,
    /**
     * The send buffer is full, or as many streams are live as the peer allows.
     */
    SEGSTREAM_BLOCKED = 4,
    /**
     * The buffer or the array is too small. What it was for is kept for the next call.
     */
    SEGSTREAM_BUFFER_TOO_SMALL = 5,
    /**
     * An argument is wrong: the program's fault.
     */
    SEGSTREAM_INVALID_ARGUMENT = -1,
    /**
     * There is no such connection, stream or segment, or it has ended and everything of it was taken.
     */
    SEGSTREAM_UNKNOWN = -2,
    /**
     * The connection has ended other than by a graceful close.
     */
    SEGSTREAM_CLOSED = -3,
    /**
     * The connection is closing and accepts nothing new.
     */
    SEGSTREAM_CLOSING = -4,
    /**
     * The peer has refused the stream.
     */
    SEGSTREAM_REFUSED = -5,
    /**
     * A limit of this endpoint is reached.
     */
    SEGSTREAM_LIMIT = -6,
    /**
     * The operating system reports an error.
     */
    SEGSTREAM_SYSTEM = -7,
    /**
     * A key or a certificate cannot be used.
     */
    SEGSTREAM_IDENTITY = -8,
    /**
     * The handle is in another call, of another thread or of a callback.
     */
    SEGSTREAM_IN_USE = -9,
    /**
     * A fault of this library. Free the handle; nothing else can be done with it.
     */
    SEGSTREAM_FAULT = -10,
} segstream_status;

/**
 * Why a connection has ended.
 */
typedef enum segstream_close_kind {
    /**
     * For another reason; segstream_last_error() is a sentence.
     */
    SEGSTREAM_CLOSE_OTHER = 0,
    /**
     * This end closed it gracefully.
     */
    SEGSTREAM_CLOSE_HERE = 1,
    /**
     * The peer closed it gracefully.
     */
    SEGSTREAM_CLOSE_BY_PEER = 2,
    /**
     * The peer aborted it.
     */
    SEGSTREAM_CLOSE_ABORTED_BY_PEER = 3,
    /**
     * This end aborted it.
     */
    SEGSTREAM_CLOSE_ABORTED_HERE = 4,
    /**
     * Nothing came from the peer for the idle timeout.
     */
    SEGSTREAM_CLOSE_TIMED_OUT = 5,
    /**
     * Nobody answered.
     */
    SEGSTREAM_CLOSE_NO_ANSWER = 6,
    /**
     * The peer refused it.
     */
    SEGSTREAM_CLOSE_REJECTED = 7,
    /**
     * The path carries almost nothing of a fixed rate.
     */
    SEGSTREAM_CLOSE_PATH_OVERLOADED = 8,
    /**
     * The peer is not who it should be, or not one to be served.
     */
    SEGSTREAM_CLOSE_HANDSHAKE_FAILED = 9,
    /**
     * The peer has lost the connection.
     */
    SEGSTREAM_CLOSE_RESET_BY_PEER = 10,
} segstream_close_kind;

/**
 * What has happened.
 */
typedef enum segstream_event_kind {
    /**
     * Something that this header has no name for; ignore it.
     */
    SEGSTREAM_EVENT_OTHER = 0,
    /**
     * The connection is established.
     */
    SEGSTREAM_EVENT_CONNECTED = 1,
    /**
     * The peer has opened `stream`.
     */
    SEGSTREAM_EVENT_STREAM_OPENED = 2,
    /**
     * `stream` of the peer has segments, or units if it is read unit by unit: take all of them.
     */
    SEGSTREAM_EVENT_READABLE = 3,
    /**
     * `stream` of the peer has ended, and all of its segments were taken.
     */
    SEGSTREAM_EVENT_ENDED = 4,
    /**
     * Segments of ours, from `segment` to the one before `segment_end`, have the verdict `verdict`. segstream_segment_verdict() would
     * have told the same and the holes; it does not do so after this event.
     */
    SEGSTREAM_EVENT_JUDGED = 5,
    /**
     * `stream` of ours has room in its send buffer again.
     */
    SEGSTREAM_EVENT_WRITABLE = 6,
    /**
     * The peer has refused `stream` of ours.
     */
    SEGSTREAM_EVENT_REFUSED = 7,
    /**
     * Another stream can be opened.
     */
    SEGSTREAM_EVENT_STREAMS_AVAILABLE = 8,
    /**
     * The rate of our direction is `rate_bps` now; an encoder should follow it.
     */
    SEGSTREAM_EVENT_RATE_CHANGED = 9,
    /**
     * The peer is closing.
     */
    SEGSTREAM_EVENT_PEER_CLOSING = 10,
    /**
     * The connection has ended because of `reason`; segstream_last_error() is a sentence. Release it.
     */
    SEGSTREAM_EVENT_CLOSED = 11,
    /**
     * The peer's application has confirmed all segments of `stream` below `segment_end`, or will confirm no more: segstream_confirmed()
     * tells.
     */
    SEGSTREAM_EVENT_DURABLE = 12,
    /**
     * A new class is in force in our direction.
     */
    SEGSTREAM_EVENT_RECLASSED = 13,
} segstream_event_kind;

/**
 * The outcome of a segment.
 */
typedef enum segstream_verdict {
    /**
     * Every unit arrived.
     */
    SEGSTREAM_VERDICT_COMPLETE = 0,
    /**
     * Units are missing, and the tolerance allows every hole.
     */
    SEGSTREAM_VERDICT_WITHIN_TOLERANCE = 1,
    /**
     * The tolerance was not met.
     */
    SEGSTREAM_VERDICT_EXPIRED = 2,
    /**
     * The connection ended before the receiver's verdict was known. Only a sender is told this.
     */
    SEGSTREAM_VERDICT_UNKNOWN = 3,
} segstream_verdict;

/**
 * An endpoint: a socket with its connections.
 */
typedef struct segstream_endpoint segstream_endpoint;

/**
 * The settings of an endpoint.
 */
typedef struct segstream_options segstream_options;

/**
 * A received segment.
 */
typedef struct segstream_segment segstream_segment;

/**
 * Ends the waiting call of an endpoint.
 */
typedef struct segstream_waker segstream_waker;

/**
 * What of a stream the peer's application has confirmed.
 */
typedef struct segstream_durable {
    /**
     * All segments below this one.
     */
    uint64_t segments;
    /**
     * 1 if no more will be confirmed.
     */
    uint32_t last;
} segstream_durable;

/**
 * The contract of a stream. Fill it with segstream_contract_init(), then change what shall be otherwise.
 */
typedef struct segstream_contract {
    /**
     * sizeof(segstream_contract), as segstream_contract_init() writes it.
     */
    size_t struct_bytes;
    /**
     * The size of a unit in bytes, 1 to 1123; a little more fits in most cases. Default 1024.
     */
    uint32_t unit_bytes;
    /**
     * W of the tolerance (W, E, B): the units of a segment are counted in windows of W. Default: the whole segment, as with any W above its units.
     */
    uint32_t tolerance_w;
    /**
     * E of the tolerance: how many units of a window may be missing. Default 0.
     */
    uint32_t tolerance_e;
    /**
     * B of the tolerance: how many units in a row may be missing. Default 0.
     */
    uint32_t tolerance_b;
    /**
     * How many units at the beginning of every segment must arrive. Default 0.
     */
    uint32_t importance;
    /**
     * 0: segments are delivered in order; 1: as they are accepted. Default 0.
     */
    uint32_t as_accepted;
    /**
     * A segment older than this is abandoned; 0 for never. In microseconds. Default 0.
     */
    uint64_t lifetime_us;
    /**
     * 0: units leave in order; UINT32_MAX: interleaved as the tolerance allows; else in blocks of so many. Default UINT32_MAX.
     */
    uint32_t interleave;
    /**
     * The receiver's buffer in units. Default 16384.
     */
    uint32_t window_units;
    /**
     * The most segments in the window. Default 16384.
     */
    uint32_t window_segments;
    /**
     * The share among streams that have data waiting, 1 to 255. Default 1.
     */
    uint32_t weight;
    /**
     * A text of at most 512 bytes for the peer's application; NULL for none. It is copied when the stream is opened.
     */
    const char *label;
} segstream_contract;

/**
 * Why a connection has ended, and the peer's code.
 */
typedef struct segstream_close_reason {
    /**
     * Why.
     */
    enum segstream_close_kind kind;
    /**
     * The peer's code, if the peer closed or aborted it.
     */
    uint64_t code;
} segstream_close_reason;

/**
 * An event. What its kind does not name is zero.
 */
typedef struct segstream_event {
    /**
     * What has happened.
     */
    enum segstream_event_kind kind;
    /**
     * On which stream.
     */
    uint32_t stream;
    /**
     * On which connection. An incoming one gets its number with its first event.
     */
    uint64_t connection;
    /**
     * The first segment of those judged.
     */
    uint64_t segment;
    /**
     * The one behind the last, or behind the last that is confirmed.
     */
    uint64_t segment_end;
    /**
     * The rate in bit/s, in whole IP packets.
     */
    uint64_t rate_bps;
    /**
     * The verdict.
     */
    enum segstream_verdict verdict;
    /**
     * Why the connection has ended.
     */
    struct segstream_close_reason reason;
} segstream_event;

/**
 * A run of units: the first, and the one behind the last.
 */
typedef struct segstream_run {
    /**
     * The first unit.
     */
    uint32_t start;
    /**
     * The unit behind the last.
     */
    uint32_t end;
} segstream_run;

/**
 * What is told of a received segment.
 */
typedef struct segstream_received {
    /**
     * The segment.
     */
    uint64_t segment;
    /**
     * Its length in bytes, zeros where units are missing.
     */
    size_t bytes;
    /**
     * Its units.
     */
    uint32_t units;
    /**
     * The size of a unit in bytes.
     */
    uint32_t unit_bytes;
    /**
     * How many runs of units are missing.
     */
    size_t holes;
    /**
     * The verdict.
     */
    enum segstream_verdict verdict;
    /**
     * The source's time in nanoseconds, on its own clock.
     */
    uint64_t source_time_ns;
    /**
     * When the first unit or repair unit arrived, in nanoseconds since this endpoint was made; UINT64_MAX if none did.
     */
    uint64_t first_arrival_ns;
    /**
     * When the segment was judged, on the same clock.
     */
    uint64_t judged_at_ns;
} segstream_received;

/**
 * Units of a segment that have arrived, or a segment that is judged.
 */
typedef struct segstream_units {
    /**
     * The segment.
     */
    uint64_t segment;
    /**
     * Which units.
     */
    struct segstream_run run;
    /**
     * Where the first of them begins in the segment, in bytes.
     */
    uint64_t offset;
    /**
     * Their length in bytes.
     */
    size_t bytes;
    /**
     * 1 if the segment is judged and all of its units were told: the next segstream_recv() of the stream returns it at once. Its run is
     * empty then.
     */
    uint32_t judged;
} segstream_units;

/**
 * How a segment is sent, if not with the usual values. NULL in place of it, and zeros in it, are the usual values.
 */
typedef struct segstream_send_options {
    /**
     * The source's time in nanoseconds, on any clock of its own; 0 for now.
     */
    uint64_t source_time_ns;
    /**
     * A tolerance of the segment's own, if W is not 0.
     */
    uint32_t tolerance_w;
    /**
     * E of it.
     */
    uint32_t tolerance_e;
    /**
     * B of it.
     */
    uint32_t tolerance_b;
    /**
     * 0: wait while the send buffer is full, and serve the network once. 1: SEGSTREAM_BLOCKED if it is full, and leave the network to
     * the next call that serves it; for many short segments, which then share datagrams.
     */
    uint32_t try_only;
} segstream_send_options;

/**
 * The function that releases bytes of segstream_send_owned().
 */
typedef void (*segstream_release_bytes)(void *context);

/**
 * The verdict on a segment of ours.
 */
typedef struct segstream_judged {
    /**
     * The segment.
     */
    uint64_t segment;
    /**
     * The verdict.
     */
    enum segstream_verdict verdict;
    /**
     * How many runs of units are missing.
     */
    size_t holes;
    /**
     * How many units are missing.
     */
    uint32_t missing_units;
} segstream_judged;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Tells the peer that all segments of one of its streams below `segments` are safe with this application: on disk, processed, or whatever
 * the two mean by it. The setting "confirms" must be on. Lower numbers than before change nothing.
 *
 * `endpoint` is a handle.
 */
enum segstream_status segstream_confirm(struct segstream_endpoint *endpoint,
                                        uint64_t connection,
                                        uint32_t stream,
                                        uint64_t segments);

/**
 * Tells the peer that no more of one of its streams will be confirmed, so that the stream can end.
 *
 * `endpoint` is a handle.
 */
enum segstream_status segstream_confirm_no_more(struct segstream_endpoint *endpoint,
                                                uint64_t connection,
                                                uint32_t stream);

/**
 * Waits until the peer's application has confirmed all segments of a stream of ours below `segments`, or will confirm no more; with
 * `segments` 0 it tells what is confirmed already. SEGSTREAM_INVALID_ARGUMENT if the peer confirms nothing.
 *
 * `endpoint` is a handle; `durable` is NULL or valid for writing.
 */
enum segstream_status segstream_confirmed(struct segstream_endpoint *endpoint,
                                          uint64_t connection,
                                          uint32_t stream,
                                          uint64_t segments,
                                          struct segstream_durable *durable,
                                          int64_t timeout_ms);

/**
 * Makes a connection with these first streams, numbered from 0, and waits until it is established, at most for the setting
 * connect_timeout_ms. `trust` is the fingerprint of the peer's key, or "name:HOST" for a peer that is certified by that name, or
 * "anyone"; NULL trusts nobody, which is right in plain mode only.
 *
 * `endpoint` is a handle; `address` is a text; `trust` is NULL or a text; `contracts` points to `contracts_count` contracts, whose labels
 * are NULL or texts; `connection` is NULL or valid for writing.
 */
enum segstream_status segstream_connect(struct segstream_endpoint *endpoint,
                                        const char *address,
                                        const char *trust,
                                        const struct segstream_contract *contracts,
                                        size_t contracts_count,
                                        uint64_t *connection);

/**
 * Begins a connection as segstream_connect() does, and does not wait: SEGSTREAM_EVENT_CONNECTED or SEGSTREAM_EVENT_CLOSED follows.
 *
 * As of segstream_connect().
 */
enum segstream_status segstream_begin_connect(struct segstream_endpoint *endpoint,
                                              const char *address,
                                              const char *trust,
                                              const struct segstream_contract *contracts,
                                              size_t contracts_count,
                                              uint64_t *connection);

/**
 * Waits for the next incoming connection.
 *
 * `endpoint` is a handle; `connection` is NULL or valid for writing.
 */
enum segstream_status segstream_accept(struct segstream_endpoint *endpoint, uint64_t *connection, int64_t timeout_ms);

/**
 * Waits for the next stream that the peer opens. SEGSTREAM_END if the connection was closed gracefully.
 *
 * `endpoint` is a handle; `stream` is NULL or valid for writing.
 */
enum segstream_status segstream_accept_stream(struct segstream_endpoint *endpoint,
                                              uint64_t connection,
                                              uint32_t *stream,
                                              int64_t timeout_ms);

/**
 * Opens a stream of ours. SEGSTREAM_BLOCKED while as many are live as the peer allows.
 *
 * `endpoint` is a handle; `contract` points to a contract, whose label is NULL or a text; `stream` is NULL or valid for writing.
 */
enum segstream_status segstream_open_stream(struct segstream_endpoint *endpoint,
                                            uint64_t connection,
                                            const struct segstream_contract *contract,
                                            uint32_t *stream);

/**
 * Finishes a stream of ours: no more segments will be sent on it.
 *
 * `endpoint` is a handle.
 */
enum segstream_status segstream_finish_stream(struct segstream_endpoint *endpoint,
                                              uint64_t connection,
                                              uint32_t stream);

/**
 * Writes the contract of a stream of the peer, with the window as granted and `label` NULL, and its label with a zero byte into the buffer
 * `label`. 513 bytes are enough; with a buffer of 0 bytes the label is left out.
 *
 * `endpoint` is a handle; `contract` is NULL or valid for writing; `label` is valid for writing `label_bytes` bytes.
 */
enum segstream_status segstream_receiving_contract(struct segstream_endpoint *endpoint,
                                                   uint64_t connection,
                                                   uint32_t stream,
                                                   struct segstream_contract *contract,
                                                   char *label,
                                                   size_t label_bytes);

/**
 * Writes the peer's address with its zero byte. 64 bytes are enough.
 *
 * `endpoint` is a handle; `buffer` is valid for writing `buffer_bytes` bytes.
 */
enum segstream_status segstream_remote_address(struct segstream_endpoint *endpoint,
                                               uint64_t connection,
                                               char *buffer,
                                               size_t buffer_bytes);

/**
 * Writes the fingerprint of the peer's key with its zero byte; an empty text in plain mode. 64 bytes are enough.
 *
 * As of segstream_remote_address().
 */
enum segstream_status segstream_peer_fingerprint(struct segstream_endpoint *endpoint,
                                                 uint64_t connection,
                                                 char *buffer,
                                                 size_t buffer_bytes);

/**
 * Closes a connection gracefully: waits until every segment accepted at both ends is judged and the peer has confirmed the end. What the peer
 * sends meanwhile is discarded. `detail` is a sentence for the peer, NULL for none; `code` is 0 when all is well. The connection is
 * still to be released.
 *
 * `endpoint` is a handle; `detail` is NULL or a text.
 */
enum segstream_status segstream_close(struct segstream_endpoint *endpoint,
                                      uint64_t connection,
                                      uint64_t code,
                                      const char *detail);

/**
 * Begins a graceful close; SEGSTREAM_EVENT_CLOSED is the event of its end.
 *
 * As of segstream_close().
 */
enum segstream_status segstream_begin_close(struct segstream_endpoint *endpoint,
                                            uint64_t connection,
                                            uint64_t code,
                                            const char *detail);

/**
 * Aborts a connection at once; segments without a verdict are SEGSTREAM_VERDICT_UNKNOWN.
 *
 * As of segstream_close().
 */
enum segstream_status segstream_abort(struct segstream_endpoint *endpoint,
                                      uint64_t connection,
                                      uint64_t code,
                                      const char *detail);

/**
 * Waits until the connection has ended, and tells why and with which code of the peer. What arrives can still be received.
 * segstream_last_error() is the reason as a sentence, although this returns SEGSTREAM_OK.
 *
 * `endpoint` is a handle; `reason` is NULL or valid for writing.
 */
enum segstream_status segstream_closed(struct segstream_endpoint *endpoint,
                                       uint64_t connection,
                                       struct segstream_close_reason *reason,
                                       int64_t timeout_ms);

/**
 * Releases a connection; its number names nothing from now on. One that has not ended is closed gracefully while the network is served.
 * A connection counts towards the limit of its endpoint until this is called.
 *
 * `endpoint` is a handle.
 */
enum segstream_status segstream_release(struct segstream_endpoint *endpoint,
                                        uint64_t connection);

/**
 * Fills a contract with the usual values: a reliable stream. `struct_bytes` is sizeof(segstream_contract).
 *
 * `contract` is NULL or valid for writing.
 */
enum segstream_status segstream_contract_init(struct segstream_contract *contract, size_t struct_bytes);

/**
 * Makes an endpoint that only makes connections. An address with port 0 takes any free port. `options` may be NULL.
 *
 * `options` is NULL or comes from segstream_options_new(); `address` is a text; `endpoint` is NULL or valid for writing.
 */
enum segstream_status segstream_bind(const struct segstream_options *options,
                                     const char *address,
                                     struct segstream_endpoint **endpoint);

/**
 * Makes an endpoint that makes and accepts connections. The options say whom it serves: "allow", "allow_anyone" or "insecure".
 *
 * As of segstream_bind().
 */
enum segstream_status segstream_listen(const struct segstream_options *options,
                                       const char *address,
                                       struct segstream_endpoint **endpoint);

/**
 * Frees an endpoint. Connections whose segments are all judged and read are closed gracefully, which takes three seconds at most; the
 * others are aborted.
 *
 * `endpoint` is NULL, or comes from segstream_bind() or segstream_listen(), was not freed, and is in no call.
 */
void segstream_endpoint_free(struct segstream_endpoint *endpoint);

/**
 * Closes every connection gracefully, waits until all have ended, and frees the endpoint, whatever it returns.
 *
 * As of segstream_endpoint_free().
 */
enum segstream_status segstream_endpoint_close(struct segstream_endpoint *endpoint);

/**
 * Accepts no connection from now on; those that were accepted go on.
 *
 * `endpoint` is a handle.
 */
enum segstream_status segstream_stop_accepting(struct segstream_endpoint *endpoint);

/**
 * Writes the address in use, such as 127.0.0.1:9000, with its zero byte. 64 bytes are enough.
 *
 * `endpoint` is a handle; `buffer` is valid for writing `buffer_bytes` bytes.
 */
enum segstream_status segstream_local_address(const struct segstream_endpoint *endpoint,
                                              char *buffer,
                                              size_t buffer_bytes);

/**
 * Writes the fingerprint of this end's key, SHA256:..., with its zero byte; an empty text in plain mode. 64 bytes are enough.
 *
 * As of segstream_local_address().
 */
enum segstream_status segstream_fingerprint(const struct segstream_endpoint *endpoint,
                                            char *buffer,
                                            size_t buffer_bytes);

/**
 * The file descriptor to watch for reading; -1 if the setting "background" is on or `endpoint` is NULL. It belongs to the endpoint: it
 * must not be read or closed, and is not valid after the endpoint was freed.
 *
 * `endpoint` is NULL or a handle.
 */
int32_t segstream_fd(const struct segstream_endpoint *endpoint);

/**
 * After how many microseconds to call segstream_process() even if nothing has arrived; 0 for at once, -1 if only an arrival makes work.
 * Ask again after every call of this endpoint. A loop whose clock ticks in milliseconds rounds down to keep a high rate.
 *
 * `endpoint` is NULL or a handle.
 */
int64_t segstream_timeout(const struct segstream_endpoint *endpoint);

/**
 * Serves the network once without sleeping: takes what has arrived, sends what is due. Events are kept for segstream_wait().
 *
 * `endpoint` is a handle.
 */
enum segstream_status segstream_process(struct segstream_endpoint *endpoint);

/**
 * Serves the network until there is an event. With a timeout of 0 it serves it once: SEGSTREAM_TIMED_OUT says that there is no event.
 * With SEGSTREAM_EVENT_CLOSED, segstream_last_error() is the reason as a sentence, although this returns SEGSTREAM_OK.
 *
 * `endpoint` is a handle; `event` is NULL or valid for writing.
 */
enum segstream_status segstream_wait(struct segstream_endpoint *endpoint,
                                     struct segstream_event *event,
                                     int64_t timeout_ms);

/**
 * Makes settings with the values that are usual: encrypted, congestion-controlled, serving nobody. Free them with
 * segstream_options_free(), which may be done as soon as the endpoint exists.
 *
 * `options` is NULL or valid for writing.
 */
enum segstream_status segstream_options_new(struct segstream_options **options);

/**
 * Frees settings.
 *
 * `options` is NULL, or comes from segstream_options_new() and was not freed.
 */
void segstream_options_free(struct segstream_options *options);

/**
 * Sets a number. The names, what they count, and what they are otherwise:
 *
 * ```text
 * rate_bps                a fixed rate in bit/s of whole IP packets        congestion-controlled
 * datagram_bytes          1200 to 65507                                    found on the path
 * class                   error control 4, flow control 2, rate control 1  7
 * careful_resume          0 or 1                                           1
 * circuit_breaker         0 or 1                                           1
 * unlimited               0 or 1: allow classes 0 and 4                    0
 * offload                 0 or 1: GSO and GRO                              1
 * idle_timeout_ms         at least 1000                                    10000
 * connect_timeout_ms      at least 1                                       10000
 * streams                 live streams of a peer on one connection         256
 * confirms                0 or 1: this end confirms what it receives       0
 * stream_window_bytes     the largest receive buffer of one stream         64 MiB
 * connection_window_bytes  those of one connection together                256 MiB
 * memory_bytes            what all peers together are granted              8 GiB
 * memory_bytes_per_peer   what the connections of one key are granted      4 GiB
 * connections             of this endpoint                                 1024
 * connections_per_peer    of those that peers begin                        256
 * setups                  of peers that are not authenticated yet          256
 * setups_per_host         of those from one address                        16
 * handshakes_per_second   that peers can start                             500
 * reorder                 the first reordering threshold, 0 to 256         3
 * socket_buffer_bytes     of the system's buffers, each                    8 MiB
 * allow_anyone            0 or 1: serve every peer                         0
 * insecure                0 or 1: plain mode, for laboratories             0
 * background              0 or 1: a thread of the library drives it        0
 * ```
 *
 * `options` comes from segstream_options_new(), is not freed, and is in no other call; `name` is a text.
 */
enum segstream_status segstream_options_set(struct segstream_options *options, const char *name, uint64_t value);

/**
 * Sets a text. The names:
 *
 * ```text
 * identity_file   the file with this end's key (PKCS#8 in PEM), which is made if it is not there    a fresh key
 * allow           the fingerprint of a peer to serve, SHA256:...; add others by further calls         nobody
 * congestion      auto, reno, cubic, bbr or prague                                                  auto
 * coding          repair units: off, hedged or auto:latency=80ms,budget=10%                         hedged
 * authorities     a file of root certificates (PEM), for peers trusted by name                      none
 * key_log         a file for the secrets of connections: whoever has it can read them               none
 * qlog            a folder for a qlog of each connection, complete when the endpoint is freed       none
 * loss_log        a new file for the losses of the peers' streams, complete as qlog                 none
 * polling         blocking, brief or adaptive                                                       brief
 * ```
 *
 * `options` comes from segstream_options_new(), is not freed, and is in no other call; `name` and `value` are texts.
 */
enum segstream_status segstream_options_set_text(struct segstream_options *options,
                                                 const char *name,
                                                 const char *value);

/**
 * Waits for the next judged segment of a stream of the peer, and copies it and its holes into the caller's buffers. If one of them is too
 * small, `received` says what is needed, SEGSTREAM_BUFFER_TOO_SMALL is returned, and the next call gets the same segment.
 * SEGSTREAM_END if the stream has ended.
 *
 * `endpoint` is a handle; `buffer` is valid for writing `buffer_bytes` bytes and `holes` for `holes_max` runs; `received` is NULL or valid
 * for writing.
 */
enum segstream_status segstream_recv(struct segstream_endpoint *endpoint,
                                     uint64_t connection,
                                     uint32_t stream,
                                     void *buffer,
                                     size_t buffer_bytes,
                                     struct segstream_run *holes,
                                     size_t holes_max,
                                     struct segstream_received *received,
                                     int64_t timeout_ms);

/**
 * Waits for the next judged segment of a stream of the peer, and returns it as a handle without a copy; free it with
 * segstream_segment_free(). SEGSTREAM_END if the stream has ended.
 *
 * `endpoint` is a handle; `segment` is NULL or valid for writing.
 */
enum segstream_status segstream_recv_segment(struct segstream_endpoint *endpoint,
                                             uint64_t connection,
                                             uint32_t stream,
                                             struct segstream_segment **segment,
                                             int64_t timeout_ms);

/**
 * Waits for the next units of a stream of the peer, and copies them into the caller's buffer. From the first call on the stream is read
 * unit by unit. If the buffer is too small, `units` says what is needed, SEGSTREAM_BUFFER_TOO_SMALL is returned, and the next call gets
 * the same units. SEGSTREAM_END if the stream has ended. A judged segment that segstream_recv() does not take is dropped by the next
 * call.
 *
 * `endpoint` is a handle; `buffer` is valid for writing `buffer_bytes` bytes; `units` is NULL or valid for writing.
 */
enum segstream_status segstream_next_units(struct segstream_endpoint *endpoint,
                                           uint64_t connection,
                                           uint32_t stream,
                                           void *buffer,
                                           size_t buffer_bytes,
                                           struct segstream_units *units,
                                           int64_t timeout_ms);

/**
 * Discards what arrives on a stream of the peer from now on, so that its window does not close.
 *
 * `endpoint` is a handle.
 */
enum segstream_status segstream_discard(struct segstream_endpoint *endpoint, uint64_t connection, uint32_t stream);

/**
 * What is told of a segment.
 *
 * `segment` comes from segstream_recv_segment() and is not freed; `received` is NULL or valid for writing.
 */
enum segstream_status segstream_segment_received(const struct segstream_segment *segment,
                                                 struct segstream_received *received);

/**
 * The bytes of a segment, valid until it is freed; NULL if it is NULL.
 *
 * `segment` is NULL, or comes from segstream_recv_segment() and is not freed.
 */
const void *segstream_segment_bytes(const struct segstream_segment *segment);

/**
 * The holes of a segment, as many as segstream_received.holes says, in ascending order and valid until it is freed; NULL if it is NULL.
 *
 * `segment` is NULL, or comes from segstream_recv_segment() and is not freed.
 */
const struct segstream_run *segstream_segment_holes(const struct segstream_segment *segment);

/**
 * Frees a segment, on any thread.
 *
 * `segment` is NULL, or comes from segstream_recv_segment() and was not freed.
 */
void segstream_segment_free(struct segstream_segment *segment);

/**
 * Sends a whole segment: copies the bytes once, and waits while the send buffer is full. `options` may be NULL; `segment` gets its number
 * and may be NULL.
 *
 * `endpoint` is a handle; `bytes` is valid for reading `count` bytes; `options` and `segment` are NULL or valid.
 */
enum segstream_status segstream_send(struct segstream_endpoint *endpoint,
                                     uint64_t connection,
                                     uint32_t stream,
                                     const void *bytes,
                                     size_t count,
                                     const struct segstream_send_options *options,
                                     uint64_t *segment);

/**
 * Sends a whole segment without a copy in memory: the bytes are lent, and `release(context)` is called once when the library needs them no
 * longer: after the verdict, or before this returns if it fails, whatever the reason. It is called on a thread that is in a call of this
 * endpoint, or frees it; with the setting "background" also on the library's thread. It must not call the endpoint.
 *
 * As of segstream_send(); the bytes stay as they are until they are released; `release` may be called with `context` on such a thread.
 */
enum segstream_status segstream_send_owned(struct segstream_endpoint *endpoint,
                                           uint64_t connection,
                                           uint32_t stream,
                                           const void *bytes,
                                           size_t count,
                                           segstream_release_bytes release,
                                           void *context,
                                           const struct segstream_send_options *options,
                                           uint64_t *segment);

/**
 * Opens a segment whose length is not known yet; its first units leave before its last ones exist. Only one of a stream can be open.
 * Waits while the send buffer is full.
 *
 * `endpoint` is a handle; `segment` is NULL or valid for writing.
 */
enum segstream_status segstream_open_segment(struct segstream_endpoint *endpoint,
                                             uint64_t connection,
                                             uint32_t stream,
                                             uint64_t *segment);

/**
 * Appends bytes to the open segment of a stream. With `try_only` 0 it waits while the send buffer is full; with 1 it returns
 * SEGSTREAM_BLOCKED then. SEGSTREAM_END if the segment was judged or abandoned meanwhile, and the bytes were not accepted.
 *
 * `endpoint` is a handle; `bytes` is valid for reading `count` bytes.
 */
enum segstream_status segstream_append(struct segstream_endpoint *endpoint,
                                       uint64_t connection,
                                       uint32_t stream,
                                       uint64_t segment,
                                       const void *bytes,
                                       size_t count,
                                       uint32_t try_only);

/**
 * Ends the open segment of a stream at its present length.
 *
 * `endpoint` is a handle.
 */
enum segstream_status segstream_finish_segment(struct segstream_endpoint *endpoint,
                                               uint64_t connection,
                                               uint32_t stream,
                                               uint64_t segment);

/**
 * Whether a stream of ours replaces the oldest waiting segment when its send buffer is full (1) or waits (0). For live media.
 *
 * `endpoint` is a handle.
 */
enum segstream_status segstream_set_drop_oldest(struct segstream_endpoint *endpoint,
                                                uint64_t connection,
                                                uint32_t stream,
                                                uint32_t drops_oldest);

/**
 * Waits for the verdict on a segment; each is told once. The holes go into `holes`, which has room for `holes_max` runs; if it has too
 * little, `judged` says how many there are, SEGSTREAM_BUFFER_TOO_SMALL is returned, and the next call tells the verdict again.
 *
 * `endpoint` is a handle; `judged` is NULL or valid for writing; `holes` is valid for writing `holes_max` runs.
 */
enum segstream_status segstream_segment_verdict(struct segstream_endpoint *endpoint,
                                                uint64_t connection,
                                                uint32_t stream,
                                                uint64_t segment,
                                                struct segstream_judged *judged,
                                                struct segstream_run *holes,
                                                size_t holes_max,
                                                int64_t timeout_ms);

/**
 * Waits for the next verdict of a stream, in the order in which they come. SEGSTREAM_END if no more will come. Otherwise as
 * segstream_segment_verdict().
 *
 * As of segstream_segment_verdict().
 */
enum segstream_status segstream_next_verdict(struct segstream_endpoint *endpoint,
                                             uint64_t connection,
                                             uint32_t stream,
                                             struct segstream_judged *judged,
                                             struct segstream_run *holes,
                                             size_t holes_max,
                                             int64_t timeout_ms);

/**
 * Tells one quantity of a connection, such as "rtt_ms_smoothed" or "units_retransmitted". Times are in seconds and rates in bytes per
 * second, as in metrics; totals are counts. Not a number if it is not known yet.
 *
 * `endpoint` is a handle; `name` is a text; `value` is NULL or valid for writing.
 */
enum segstream_status segstream_statistic(struct segstream_endpoint *endpoint,
                                          uint64_t connection,
                                          const char *name,
                                          double *value);

/**
 * Sets the rate of our direction in bit/s of whole IP packets, in force at once; 0 for congestion-controlled.
 *
 * `endpoint` is a handle.
 */
enum segstream_status segstream_set_rate(struct segstream_endpoint *endpoint, uint64_t connection, uint64_t rate_bps);

/**
 * Changes the class of our direction: error control 4, flow control 2, rate control 1. It is in force when SEGSTREAM_EVENT_RECLASSED says
 * so.
 *
 * `endpoint` is a handle.
 */
enum segstream_status segstream_set_class(struct segstream_endpoint *endpoint,
                                          uint64_t connection,
                                          uint32_t class_);

/**
 * Tells the rate in force in our direction, in bit/s of whole IP packets; 0 if nothing is paced.
 *
 * `endpoint` is a handle; `rate_bps` is NULL or valid for writing.
 */
enum segstream_status segstream_rate(struct segstream_endpoint *endpoint, uint64_t connection, uint64_t *rate_bps);

/**
 * A few words for a status; "unknown status" for a number that is none.
 */
const char *segstream_status_text(int32_t status);

/**
 * The sentence to the last status of this thread that was not SEGSTREAM_OK; empty if there was none. It is valid until the next call of
 * this thread.
 */
const char *segstream_last_error(void);

/**
 * The version of the library, such as "0.1.0".
 */
const char *segstream_version(void);

/**
 * Makes a waker of an endpoint. Free it with segstream_waker_free().
 *
 * `endpoint` is a handle; `waker` is NULL or valid for writing.
 */
enum segstream_status segstream_waker_new(struct segstream_endpoint *endpoint, struct segstream_waker **waker);

/**
 * Ends the call of the endpoint that waits, or else its next one that would: it returns SEGSTREAM_WOKEN, segstream_wait()
 * SEGSTREAM_TIMED_OUT.
 *
 * `waker` comes from segstream_waker_new() and is not freed.
 */
enum segstream_status segstream_wake(const struct segstream_waker *waker);

/**
 * Frees a waker.
 *
 * `waker` is NULL, or comes from segstream_waker_new() and was not freed.
 */
void segstream_waker_free(struct segstream_waker *waker);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SEGSTREAM_H */
