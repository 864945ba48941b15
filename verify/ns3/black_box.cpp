// The black box in ns-3: UDP over one point-to-point link, with a loss model or a queue discipline. It reads when packets leave from a
// file, and writes for each when it has arrived, or -. Called by `segstream-ns3`, which compares that with our path.
//
//   black_box SCHEDULE OUTCOME --rate=10000000 --delay=20000000 --queue=100 --loss=none|list:5,17|iid:0.01 --aqm=none|codel|pie|red --seed=1
//
// A line of SCHEDULE is `nanoseconds bytes`; bytes are those on the wire: payload, UDP 8, IP 20, PPP 2.
#include "ns3/core-module.h"
#include "ns3/error-model.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace {

constexpr std::uint32_t HEADERS = 8 + 20 + 2;
constexpr std::uint16_t PORT = 9;

struct Packets {
    std::vector<std::int64_t> leaves, arrived;
    std::vector<std::uint32_t> bytes;
};

Packets ReadSchedule(const std::string &name)
{
    Packets packets;
    std::ifstream file(name);
    std::int64_t at;
    std::uint32_t bytes;
    while (file >> at >> bytes) {
        NS_ABORT_MSG_IF(bytes < HEADERS + 4, "a packet of " << bytes << " bytes has no room for its number");
        packets.leaves.push_back(at);
        packets.bytes.push_back(bytes);
        packets.arrived.push_back(-1);
    }
    return packets;
}

void Send(Ptr<Socket> socket, const Packets *packets, std::uint32_t number)
{
    std::vector<std::uint8_t> payload(packets->bytes[number] - HEADERS);
    for (int at = 0; at < 4; at++) {
        payload[at] = static_cast<std::uint8_t>(number >> (8 * at));
    }
    socket->Send(Create<Packet>(payload.data(), static_cast<std::uint32_t>(payload.size())));
}

void Receive(Packets *packets, Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv()) {
        std::uint8_t head[4];
        packet->CopyData(head, 4);
        packets->arrived[head[0] | head[1] << 8 | head[2] << 16 | head[3] << 24] = Simulator::Now().GetNanoSeconds();
    }
}

Ptr<ErrorModel> LossModel(const std::string &spec)
{
    const auto colon = spec.find(':');
    const std::string kind = spec.substr(0, colon), rest = colon == std::string::npos ? "" : spec.substr(colon + 1);
    if (kind == "iid") {
        auto model = CreateObject<RateErrorModel>();
        model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        model->SetRate(std::stod(rest));
        model->AssignStreams(1);
        return model;
    }
    NS_ABORT_MSG_IF(kind != "list", "there is no loss " << spec);
    // Its numbers count the packets that reach the receiver's device, from 0.
    auto model = CreateObject<ReceiveListErrorModel>();
    std::list<std::uint32_t> lost;
    std::stringstream numbers(rest);
    for (std::string number; std::getline(numbers, number, ',');) {
        lost.push_back(static_cast<std::uint32_t>(std::stoul(number)));
    }
    model->SetList(lost);
    return model;
}

} // namespace

int main(int argc, char *argv[])
{
    std::string schedule, outcome, loss = "none", aqm = "none", queue = "100";
    std::uint64_t rate = 10000000;
    std::int64_t delay = 20000000;
    std::uint32_t seed = 1;
    CommandLine line;
    line.AddNonOption("schedule", "when packets leave", schedule);
    line.AddNonOption("outcome", "when they have arrived", outcome);
    line.AddValue("rate", "bit/s", rate);
    line.AddValue("delay", "ns", delay);
    line.AddValue("queue", "packets", queue);
    line.AddValue("loss", "which packets are lost", loss);
    line.AddValue("aqm", "the queue discipline", aqm);
    line.AddValue("seed", "of random numbers", seed);
    line.Parse(argc, argv);
    RngSeedManager::SetSeed(seed);
    Time::SetResolution(Time::NS);
    Packets packets = ReadSchedule(schedule);

    NodeContainer nodes(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delay)));
    // Behind a queue discipline the device's own queue is as short as it can be.
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue((aqm == "none" ? queue : "1") + "p"));
    NetDeviceContainer devices = link.Install(nodes);
    if (loss != "none") {
        devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(LossModel(loss)));
    }
    InternetStackHelper().Install(nodes);
    TrafficControlHelper discipline;
    if (aqm == "codel") {
        discipline.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue(queue + "p"), "UseEcn", BooleanValue(false));
    } else if (aqm == "pie") {
        // The parameters of RFC 8033; ns-3 measures the delay by timestamps unless told otherwise.
        discipline.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", StringValue(queue + "p"), "UseEcn", BooleanValue(false), "QueueDelayReference",
                                    TimeValue(MilliSeconds(15)), "Tupdate", TimeValue(MilliSeconds(15)), "MaxBurstAllowance",
                                    TimeValue(MilliSeconds(150)));
    }
    if (aqm == "red") {
        // The algorithm of the paper, gentle: without `Wait`, which is later and drops half as often.
        discipline.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", StringValue(queue + "p"), "MinTh", DoubleValue(5), "MaxTh", DoubleValue(15),
                                    "LInterm", DoubleValue(10), "QW", DoubleValue(0.002), "Gentle", BooleanValue(true), "Wait",
                                    BooleanValue(false), "MeanPktSize", UintegerValue(1500), "LinkBandwidth", DataRateValue(DataRate(rate)),
                                    "LinkDelay", TimeValue(NanoSeconds(delay)));
    }
    if (aqm != "none") {
        discipline.Install(devices.Get(0));
    }
    Ipv4AddressHelper addresses("10.1.1.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    if (aqm == "none") {
        // Assigning addresses has installed the usual discipline in front of the device.
        TrafficControlHelper().Uninstall(devices);
    }
    auto receiver = Socket::CreateSocket(nodes.Get(1), UdpSocketFactory::GetTypeId());
    receiver->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
    receiver->SetRecvCallback(MakeBoundCallback(&Receive, &packets));
    auto sender = Socket::CreateSocket(nodes.Get(0), UdpSocketFactory::GetTypeId());
    sender->Connect(InetSocketAddress(interfaces.GetAddress(1), PORT));
    for (std::uint32_t number = 0; number < packets.leaves.size(); number++) {
        Simulator::Schedule(NanoSeconds(packets.leaves[number]), &Send, sender, &packets, number);
    }
    Simulator::Stop(NanoSeconds(packets.leaves.back()) + Seconds(60));
    Simulator::Run();
    Simulator::Destroy();

    std::ofstream file(outcome);
    for (const std::int64_t arrived : packets.arrived) {
        if (arrived < 0) {
            file << "-\n";
        } else {
            file << arrived << '\n';
        }
    }
    return file.good() ? 0 : 1;
}
