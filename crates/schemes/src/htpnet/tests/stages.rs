//! The processes on processors of their own: any order in which they run is right.

use crate::htpnet::{Config, Ends, Forward, Message, Unit, pipeline};
use proptest::prelude::*;
use segstream_base::random::{Random, Seed};
use segstream_base::stage::{Stage, StageId};
use segstream_base::{Duration, Instant, Run};
use std::collections::{BTreeMap, VecDeque};

const HOST_IN: StageId = StageId(10);
const FORWARD: StageId = StageId(11);
const BACK: StageId = StageId(12);
const HOST_OUT: StageId = StageId(13);

/// Stages that run in a random order, with a queue from each to each.
struct Board {
    stages: Vec<Box<dyn Stage<Message = Message> + Send>>,
    queues: BTreeMap<(StageId, StageId), VecDeque<Message>>,
    random: Random,
    loss: f64,
    now: Instant,
    /// Slots of the sender that are in use.
    used: u64,
    delivered: Vec<(u64, u32)>,
    sent: u64,
    ended: bool,
}

impl Board {
    fn put(&mut self, from: StageId, out: Vec<(StageId, Message)>) {
        for (to, message) in out {
            match to {
                HOST_IN => self.used -= u64::from(matches!(message, Message::Release { .. })),
                FORWARD => {
                    let is_data = matches!(&message, Message::Forward { packet: Forward::Data(_), .. });
                    self.sent += u64::from(is_data);
                    // Both of Tx1 and Tx2 have one way to the network.
                    if !(is_data && self.random.chance(self.loss)) {
                        self.queues.entry((FORWARD, StageId(3))).or_default().push_back(message);
                    }
                }
                BACK => self.queues.entry((BACK, StageId(1))).or_default().push_back(message),
                HOST_OUT => match message {
                    Message::Deliver { unit, seq } => {
                        self.delivered.push((seq, unit.slot));
                        self.queues.entry((HOST_OUT, StageId(3))).or_default().push_back(Message::Consumed(1));
                    }
                    Message::Ended(_) => self.ended = true,
                    _ => {}
                },
                _ => self.queues.entry((from, to)).or_default().push_back(message),
            }
        }
    }

    /// One step of one stage, whichever comes; `false` when none has anything to do now.
    fn step(&mut self) -> bool {
        let waiting: Vec<_> = self.queues.iter().filter(|(_, queue)| !queue.is_empty()).map(|(key, _)| *key).collect();
        let due: Vec<_> = (0..self.stages.len()).filter(|id| self.stages[*id].poll_timeout().is_some_and(|at| at <= self.now)).collect();
        if waiting.is_empty() && due.is_empty() {
            return false;
        }
        let choice = self.random.below((waiting.len() + due.len()) as u64) as usize;
        let mut out = Vec::new();
        let id = if let Some((_, to)) = waiting.get(choice) {
            let message = self.queues.get_mut(&waiting[choice]).and_then(VecDeque::pop_front).unwrap();
            self.stages[to.0].handle(self.now, message, &mut out);
            to.0
        } else {
            let id = due[choice - waiting.len()];
            self.stages[id].handle_timeout(self.now, &mut out);
            id
        };
        self.put(StageId(id), out);
        true
    }
}

fn run(seed: u64, loss: f64, packets: u32) -> Board {
    let config = Config { packet_bytes: 114, window: 64, ..Config::default() };
    let ends = Ends { host_in: HOST_IN, network_forward: FORWARD, network_back: BACK, host_out: HOST_OUT };
    let pipeline = pipeline(&config, Instant::ZERO, StageId(0), ends).unwrap();
    let names: Vec<_> = pipeline.stages.iter().map(|stage| stage.name()).collect();
    assert_eq!(names, ["Tx1", "Tx2", "PTIF", "Rx1", "Rx2"]);
    let mut board = Board {
        stages: pipeline.stages,
        queues: BTreeMap::new(),
        random: Seed(seed).stream("board"),
        loss,
        now: Instant::ZERO,
        used: u64::from(packets),
        delivered: Vec::new(),
        sent: 0,
        ended: false,
    };
    let offered = board.queues.entry((HOST_IN, pipeline.tx1)).or_default();
    for slot in 0..packets {
        offered.push_back(Message::Offer(Unit { segment: slot, packet: 0, last: true, bytes: 100, slot }));
    }
    offered.push_back(Message::Finish(packets));
    while !board.ended {
        // Each processor gets a turn or not, so messages wait for many exchanges.
        for _ in 0..board.random.below(30) {
            board.step();
        }
        board.now += Duration::from_micros(200);
        assert!(board.now < Instant::ZERO + Duration::from_secs(600), "{} delivered", board.delivered.len());
    }
    board
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_order_of_the_processes_makes_a_packet_look_lost(seed in any::<u64>(), packets in 1u32..400) {
        let board = run(seed, 0.0, packets);
        prop_assert_eq!(board.sent, u64::from(packets), "nothing was lost, so nothing is repeated");
        prop_assert_eq!(board.delivered, (0..packets).map(|slot| (u64::from(slot), slot)).collect::<Vec<_>>());
        prop_assert_eq!(board.used, 0, "every slot is free again");
    }

    #[test]
    fn lost_packets_are_repeated_once_each_in_any_order_of_the_processes(seed in any::<u64>(), loss in 0.0f64..0.3) {
        let board = run(seed, loss, 200);
        prop_assert_eq!(board.delivered.len(), 200);
        prop_assert!(board.delivered.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0));
    }
}

#[test]
fn a_report_tells_of_all_that_came_before_its_exchange_and_of_nothing_behind() {
    use crate::htpnet::{Data, Routes, Rx1, TransmitterState};
    let config = Config::default();
    let id = StageId;
    let routes = Routes { tx1: id(0), tx2: id(1), ptif: id(2), rx1: id(3), rx2: id(4), host: HOST_OUT, network: BACK };
    let mut rx1 = Rx1::new(&config, routes);
    let data = |seq| Forward::Data(Data { connection: 1, seq, segment: u32::from(seq), packet: 0, last: true, room: 9, bytes: 9 });
    let state = TransmitterState { connection: 1, sync: 0, time: 0, lseq: 4, class: config.class, rate: 0 };
    // The queue of Rx1: its processor comes to them late, and the marker keeps its place.
    let queue = [data(0), data(1), data(3), Forward::State(state), data(2), data(4)];
    let mut out = Vec::new();
    for packet in queue {
        rx1.handle(Instant::ZERO, Message::Forward { packet, slot: 0 }, &mut out);
    }
    let statuses: Vec<_> = out
        .iter()
        .filter_map(|(to, message)| match message {
            Message::Status(status) if *to == id(4) => Some((status.next, status.bitmap.one_runs(0, 99).collect::<Vec<_>>())),
            _ => None,
        })
        .collect();
    assert_eq!(statuses, [(2, Vec::from_iter(Run::new(1, 2)))], "0 and 1 in sequence, 2 missing, 3 received");
}
