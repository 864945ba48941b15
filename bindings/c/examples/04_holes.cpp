// C++17: handles that free themselves, errors as exceptions, an open segment, units as they arrive, and holes as ranges.
//
//   c++ -std=c++17 04_holes.cpp $(pkg-config --cflags --libs segstream) -pthread && ./a.out
#include "segstream.h"

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void must(segstream_status status)
{
    if (status != SEGSTREAM_OK) {
        throw std::runtime_error(segstream_last_error());
    }
}

struct free_handle {
    void operator()(segstream_endpoint *endpoint) const { segstream_endpoint_free(endpoint); }
    void operator()(segstream_options *options) const { segstream_options_free(options); }
};
using endpoint_handle = std::unique_ptr<segstream_endpoint, free_handle>;

endpoint_handle make_endpoint(bool listens)
{
    segstream_options *options = nullptr;
    must(segstream_options_new(&options));
    std::unique_ptr<segstream_options, free_handle> freed(options);
    must(segstream_options_set(options, "insecure", 1));
    must(segstream_options_set(options, "background", 1));
    must(segstream_options_set(options, "connect_timeout_ms", 60000));
    must(segstream_options_set(options, "idle_timeout_ms", 60000));
    segstream_endpoint *endpoint = nullptr;
    must(listens ? segstream_listen(options, "127.0.0.1:0", &endpoint) : segstream_bind(options, "127.0.0.1:0", &endpoint));
    return endpoint_handle(endpoint);
}

std::string address_of(const endpoint_handle &endpoint)
{
    char address[64];
    must(segstream_local_address(endpoint.get(), address, sizeof address));
    return address;
}

// Appends each kilobyte by itself, so that its units leave before the segment is whole.
void send_open(segstream_endpoint *sender, std::uint64_t connection)
{
    std::uint64_t segment = 0;
    must(segstream_open_segment(sender, connection, 0, &segment));
    for (int at = 0; at < 64; at++) {
        const std::vector<std::uint8_t> unit(1024, static_cast<std::uint8_t>(at));
        must(segstream_append(sender, connection, 0, segment, unit.data(), unit.size(), 0));
    }
    must(segstream_finish_segment(sender, connection, 0, segment));
}

std::size_t read_units(segstream_endpoint *receiver, std::uint64_t connection)
{
    std::vector<std::uint8_t> whole(64 * 1024), units_bytes(10);
    std::size_t told = 0;
    for (;;) {
        segstream_units units{};
        segstream_status status =
            segstream_next_units(receiver, connection, 0, units_bytes.data(), units_bytes.size(), &units, 60000);
        if (status == SEGSTREAM_BUFFER_TOO_SMALL) {
            units_bytes.resize(units.bytes);
            continue;
        }
        must(status);
        if (units.judged == 1) {
            break;
        }
        told += units.run.end - units.run.start;
    }
    segstream_received received{};
    std::vector<segstream_run> holes(1);
    segstream_status status;
    while ((status = segstream_recv(receiver, connection, 0, whole.data(), whole.size(), holes.data(), holes.size(), &received, 0)) ==
           SEGSTREAM_BUFFER_TOO_SMALL) {
        whole.resize(received.bytes);
        holes.resize(received.holes);
    }
    must(status);
    std::size_t missing = 0;
    for (std::size_t at = 0; at < received.holes; at++) {
        missing += holes[at].end - holes[at].start;
    }
    if (told + missing != received.units) {
        throw std::runtime_error("units are neither told nor missing");
    }
    return told;
}

} // namespace

int main()
try {
    endpoint_handle receiver = make_endpoint(true);
    endpoint_handle sender = make_endpoint(false);
    segstream_contract contract{};
    must(segstream_contract_init(&contract, sizeof contract));
    contract.tolerance_w = 64;
    contract.tolerance_e = 8;
    contract.tolerance_b = 2;
    contract.label = "numbers";
    std::uint64_t outgoing = 0, incoming = 0;
    must(segstream_connect(sender.get(), address_of(receiver).c_str(), nullptr, &contract, 1, &outgoing));
    must(segstream_accept(receiver.get(), &incoming, 60000));
    std::uint32_t stream = 0;
    must(segstream_accept_stream(receiver.get(), incoming, &stream, 60000));
    char label[513];
    segstream_contract granted{};
    must(segstream_receiving_contract(receiver.get(), incoming, stream, &granted, label, sizeof label));
    if (std::string(label) != "numbers" || granted.tolerance_e != 8) {
        throw std::runtime_error("the contract has changed on its way");
    }
    std::thread sending([&] { send_open(sender.get(), outgoing); });
    const std::size_t told = read_units(receiver.get(), incoming);
    sending.join();
    std::printf("%zu of 64 units arrived, one after the other\n", told);
    must(segstream_close(sender.get(), outgoing, 0, nullptr));
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
