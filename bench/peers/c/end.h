/* What the ends in C and C++ share: what they are told, their clocks, and the lines of JSON they say.
 *
 * Included by srt_end.c, udt_end.cpp and enet_end.c, which the Rust program starts as
 *
 *     PROGRAM TRANSPORT serve|run ADDRESS WORKLOAD name=number ...
 *
 * after it has checked all of it. `PROGRAM version` prints the version of the library.
 *
 * Invariant: only lines of JSON go to standard output; everything is static, so that each end is one translation unit.
 */
#ifndef SEGSTREAM_PEERS_END_H
#define SEGSTREAM_PEERS_END_H

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

enum { HEAD_BYTES = 16, PING_BYTES = 64, CALL_MS = 100 };

/* How long nothing may happen, and how much longer than the serving side the running side goes on. */
static const double STALL_S = 30.0, GRACE_S = 2.0;

/* How long segments that were due are waited for. */
static const double PATIENCE_S = 10.0;

/* The first byte of the last ping. */
static const char LAST = 0;

enum workload { THROUGHPUT, PING_PONG, SCHEDULE };

static struct {
    const char *transport;
    int serves;
    struct sockaddr_in address;
    enum workload workload;
    uint64_t bytes, segment_bytes, datagram_bytes, count, warm_up, rate, latency_ms, filter_columns, filter_rows;
    double seconds, interval_us;
} options;

static struct {
    uint64_t bytes, complete, measured, room;
    double began, cpu_began, ended, cpu_ended;
    double *values;
    const char *note;
} outcome = {0, 0, 0, 0, 0, 0, 0, 0, NULL, ""};

__attribute__((noreturn, format(printf, 1, 2))) static inline void fail(const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fprintf(stderr, "segstream-peers: %s\n", text);
    for (char *at = text; *at; at++) {
        if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ')
            *at = '\'';
    }
    printf("{\"error\":\"%s\"}\n", text);
    fflush(stdout);
    exit(1);
}

/* Nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share. */
static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline double now_s(void)
{
    return (double)now_ns() / 1e9;
}

static inline double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static inline void sleep_until(double at)
{
    double left = at - now_s();
    if (left > 0) {
        struct timespec time = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        nanosleep(&time, NULL);
    }
}

static inline double number_of(int count, char **words, const char *name)
{
    size_t length = strlen(name);
    for (int at = 5; at < count; at++) {
        if (!strncmp(words[at], name, length) && words[at][length] == '=')
            return atof(words[at] + length + 1);
    }
    fail("%s= is missing; this program is started by segstream-peers", name);
}

/* Reads the command line, or prints the version and ends. */
static inline void begin(int count, char **words, const char *version)
{
    if (count == 2 && !strcmp(words[1], "version")) {
        puts(version);
        exit(0);
    }
    if (count < 6)
        fail("this program is started by segstream-peers");
    options.transport = words[1];
    options.serves = !strcmp(words[2], "serve");
    options.address.sin_family = AF_INET;
    if (inet_pton(AF_INET, words[3], &options.address.sin_addr) != 1)
        fail("%s is no address", words[3]);
    options.address.sin_port = htons((uint16_t)number_of(count, words, "port"));
    options.workload = !strcmp(words[4], "throughput") ? THROUGHPUT : !strcmp(words[4], "ping-pong") ? PING_PONG : SCHEDULE;
    options.bytes = (uint64_t)number_of(count, words, "bytes");
    options.segment_bytes = (uint64_t)number_of(count, words, "segment_bytes");
    options.datagram_bytes = (uint64_t)number_of(count, words, "datagram_bytes");
    options.count = (uint64_t)number_of(count, words, "count");
    options.warm_up = (uint64_t)number_of(count, words, "warm_up");
    options.rate = (uint64_t)number_of(count, words, "rate");
    options.latency_ms = (uint64_t)number_of(count, words, "latency_ms");
    options.filter_columns = (uint64_t)number_of(count, words, "filter_columns");
    options.filter_rows = (uint64_t)number_of(count, words, "filter_rows");
    options.seconds = number_of(count, words, "seconds");
    options.interval_us = number_of(count, words, "interval_us");
}

static inline void listening(int port)
{
    char address[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &options.address.sin_addr, address, sizeof address);
    printf("{\"listening\":\"%s:%d\",\"trust\":\"\"}\n", address, port);
    fflush(stdout);
}

/* From now on is measured. */
static inline void measure(void)
{
    outcome.began = now_s();
    outcome.cpu_began = cpu_s();
}

static inline double elapsed(void)
{
    return now_s() - outcome.began;
}

/* Keeps a delay or a round trip. */
static inline void keep(double value)
{
    if (outcome.measured == outcome.room) {
        outcome.room = outcome.room * 2 + 1024;
        outcome.values = (double *)realloc(outcome.values, outcome.room * sizeof(double));
        if (!outcome.values)
            fail("no memory for %" PRIu64 " values", outcome.room);
    }
    outcome.values[outcome.measured++] = value;
}

/* The first byte of the next ping. */
static inline char next_ping(void)
{
    int is_last = options.seconds > 0 ? elapsed() >= options.seconds : outcome.complete + 1 >= options.count;
    return is_last ? LAST : 1;
}

/* A round trip that began then is complete; at the side that serves, it is answered. */
static inline void rounded(double began)
{
    if (!options.serves && outcome.complete >= options.warm_up)
        keep((now_s() - began) * 1e6);
    outcome.complete++;
    outcome.bytes += PING_BYTES;
}

/* Whether a throughput of this many bytes goes on, at this side. */
static inline int goes_on(uint64_t bytes)
{
    if (options.seconds > 0)
        return elapsed() < options.seconds + (options.serves ? 0 : GRACE_S);
    return bytes < options.bytes;
}

/* The size of the next write of throughput, after its pace allows it. */
static inline int next_write(uint64_t bytes)
{
    if (options.rate > 0)
        sleep_until(outcome.began + (double)bytes * 8 / (double)options.rate);
    uint64_t left = options.seconds > 0 ? options.segment_bytes : options.bytes - bytes;
    return (int)(left < options.segment_bytes ? left : options.segment_bytes);
}

/* Writes the head of a segment: when it is due and its number. */
static inline void stamp(char *segment, uint64_t due_ns, uint64_t number)
{
    memcpy(segment, &due_ns, 8);
    memcpy(segment + 8, &number, 8);
}

/* A segment is complete now. Returns when all the others are given up, in seconds. */
static inline double arrived(const char *head, uint64_t bytes)
{
    uint64_t due_ns, number;
    memcpy(&due_ns, head, 8);
    memcpy(&number, head + 8, 8);
    outcome.bytes += bytes;
    outcome.complete++;
    outcome.ended = now_s();
    outcome.cpu_ended = cpu_s();
    if (number >= options.warm_up)
        keep((double)(now_ns() - due_ns) / 1e6);
    double left = number < options.count ? (double)(options.count - number - 1) * options.interval_us / 1e6 : 0;
    return (double)due_ns / 1e9 + left + PATIENCE_S;
}

static inline void print_values(const char *name, int are_there)
{
    printf(",\"%s\":", name);
    if (!are_there) {
        printf("null");
        return;
    }
    printf("[");
    for (uint64_t at = 0; at < outcome.measured; at++)
        printf(at ? ",%.3f" : "%.3f", outcome.values[at]);
    printf("]");
}

/* Takes the time and prints the last line. */
static inline void print_outcome(void)
{
    int schedules = options.workload == SCHEDULE && options.serves;
    /* What is waited for behind the last segment does not count. */
    if (!schedules) {
        outcome.ended = now_s();
        outcome.cpu_ended = cpu_s();
    }
    int is_something = outcome.ended > outcome.began;
    double seconds = is_something ? outcome.ended - outcome.began : 0, cpu = is_something ? outcome.cpu_ended - outcome.cpu_began : 0;
    uint64_t complete = outcome.complete, incomplete = 0;
    if (options.workload == THROUGHPUT)
        complete = outcome.bytes / options.segment_bytes;
    if (schedules && options.count > complete)
        incomplete = options.count - complete;
    printf("{\"bytes\":%" PRIu64 ",\"seconds\":%.6f,\"cpu_seconds\":%.6f", outcome.bytes, seconds, cpu);
    print_values("round_trips_us", options.workload == PING_PONG && !options.serves);
    print_values("delays_ms", schedules);
    printf(",\"complete\":%" PRIu64 ",\"incomplete\":%" PRIu64 ",\"wire_bytes\":null,\"note\":\"%s\"}\n", complete, incomplete, outcome.note);
    fflush(stdout);
}

/* The bytes of a segment. */
static inline char *segment_of(uint64_t bytes)
{
    char *segment = (char *)malloc(bytes);
    if (!segment)
        fail("no memory for a segment of %" PRIu64 " bytes", bytes);
    memset(segment, 7, bytes);
    return segment;
}

#endif
