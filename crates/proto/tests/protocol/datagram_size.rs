//! The size of datagrams is found on paths that drop what is too large.

use crate::network::Network;
use segstream_base::halves::Verdict;
use segstream_base::{Bandwidth, Duration, Instant, StreamId, Tolerance};
use segstream_proto::config::{Config, DatagramSize};
use segstream_proto::endpoint::ConnectionId;
use segstream_proto::rate::Rate;
use segstream_wire::{Contract, Kind};
use std::cell::Cell;
use std::rc::Rc;

const SEGMENT_BYTES: usize = 64 << 10;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn discovering(megabits: u64) -> Config {
    Config { datagram_bytes: DatagramSize::Discover, ..Config::default() }.with_rate(Bandwidth::from_megabits_per_second(megabits))
}

/// There is always one more segment to send, over a path that drops what is larger than `carries`.
struct Transfer {
    network: Network,
    id: ConnectionId,
    carries: Rc<Cell<usize>>,
    sent: u64,
}

impl Transfer {
    fn new(client: Config, contract: Contract) -> Self {
        let server = Config { accept: true, ..client.clone() };
        let mut network = Network::new(client, server, ms(1));
        let id = network.connect(vec![contract]);
        let carries = Rc::new(Cell::new(usize::MAX));
        let most = Rc::clone(&carries);
        network.drops = Box::new(move |_, datagram| datagram.len() > most.get());
        Self { network, id, carries, sent: 0 }
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.network.now() + span;
        while self.network.now() < end {
            let now = self.network.now();
            if let Some(connection) = self.network.a_mut().connection_mut(self.id) {
                let bytes = bytes::Bytes::from(vec![self.sent as u8 | 1; SEGMENT_BYTES]);
                while connection.send(now, StreamId(0), bytes.clone(), now, None).is_ok() {
                    self.sent += 1;
                }
            }
            self.network.run_until(now.since(Instant::ZERO) + ms(5));
        }
    }

    /// The largest datagram the path is known to carry, and the largest in use.
    fn sizes(&self) -> (usize, usize) {
        let connection = self.network.a().connection(self.id).unwrap();
        (connection.path_datagram_bytes(), connection.datagram_bytes())
    }

    /// Closes, and checks that every segment has a verdict, and one of `verdicts`.
    fn finish(&mut self, verdicts: &[Verdict]) {
        let now = self.network.now();
        self.network.a_mut().connection_mut(self.id).unwrap().close(now, 0, "");
        self.network.run_until(now.since(Instant::ZERO) + Duration::from_secs(20));
        let judged = self.network.judged();
        assert_eq!(judged.len() as u64, self.sent);
        assert!(judged.iter().all(|(.., verdict)| verdicts.contains(verdict)), "{judged:?}");
        assert_eq!(self.network.received.len() as u64, self.sent);
    }
}

#[test]
fn the_size_a_path_carries_is_found_while_data_flows() {
    let cases = [
        (2_200, usize::MAX, 65_507..=65_507),
        (2_200, 9_000, 8_992..=9_000),
        (300, 65_507, 8_972..=8_972),
        (300, 1_472, 1_472..=1_472),
        (20, 65_507, 1_472..=1_472),
        (20, 1_300, 1_292..=1_300),
        (20, 1_200, 1_200..=1_200),
    ];
    for (megabits, carries, found) in cases {
        let mut transfer = Transfer::new(discovering(megabits), Contract::default());
        transfer.carries.set(carries);
        // A try takes about a round trip, and a report's period at lower rates.
        transfer.run_for(ms(if megabits > 20 { 400 } else { 2_000 }));
        let (path, in_use) = transfer.sizes();
        assert!(found.contains(&path), "{path} of {carries} at {megabits} Mbit/s");
        assert_eq!(in_use, path);
        transfer.finish(&[Verdict::Complete]);
    }
}

#[test]
fn a_path_that_narrows_loses_nothing() {
    for (rate, narrow) in [(300, 1_400), (300, 1_200), (2_200, 1_472)] {
        let mut transfer = Transfer::new(discovering(rate), Contract::default());
        transfer.run_for(ms(200));
        assert!(transfer.sizes().0 >= 8_972);
        transfer.carries.set(narrow);
        transfer.run_for(ms(600));
        let (path, in_use) = transfer.sizes();
        assert!((narrow - 8..=narrow).contains(&path) && in_use == path, "{path} of {narrow}");
        transfer.finish(&[Verdict::Complete]);
        let whole = |bytes: &[u8]| bytes.len() == SEGMENT_BYTES && bytes.iter().all(|&byte| byte == bytes[0] && byte != 0);
        assert!(transfer.network.received.iter().all(|received| whole(&received.bytes)));
    }
}

#[test]
fn a_path_that_narrows_breaks_no_partial_promise() {
    let contract = Contract { tolerance: Tolerance::new(64, 8, 2).unwrap(), ..Contract::default() };
    let mut transfer = Transfer::new(discovering(300), contract);
    transfer.run_for(ms(200));
    assert_eq!(transfer.sizes().0, 8_972);
    transfer.carries.set(1_300);
    transfer.run_for(ms(600));
    assert!((1_292..=1_300).contains(&transfer.sizes().0), "{:?}", transfer.sizes());
    transfer.finish(&[Verdict::Complete, Verdict::WithinTolerance]);
}

#[test]
fn a_peer_that_confirms_no_probe_gets_datagrams_that_every_path_carries() {
    let mut transfer = Transfer::new(discovering(300), Contract::default());
    let largest = Rc::new(Cell::new(0));
    let seen = Rc::clone(&largest);
    transfer.network.drops = Box::new(move |_, datagram| {
        let kind = datagram[0] & 0x0f;
        if kind != Kind::Challenge as u8 {
            seen.set(seen.get().max(datagram.len()));
        }
        kind == Kind::Response as u8
    });
    transfer.run_for(ms(600));
    assert_eq!((transfer.sizes(), largest.get()), ((1_200, 1_200), 1_200));
    transfer.finish(&[Verdict::Complete]);
}

#[test]
fn datagrams_of_a_fixed_size_ask_nothing() {
    let fixed = Config { datagram_bytes: DatagramSize::Fixed(1_300), ..discovering(300) };
    let mut transfer = Transfer::new(fixed, Contract::default());
    let challenges = Rc::new(Cell::new(0));
    let seen = Rc::clone(&challenges);
    transfer.network.drops = Box::new(move |_, datagram| {
        assert!(datagram.len() <= 1_300);
        seen.set(seen.get() + u32::from(datagram[0] & 0x0f == Kind::Challenge as u8));
        false
    });
    transfer.run_for(ms(200));
    assert_eq!((transfer.sizes(), challenges.get()), ((1_300, 1_300), 0));
}

#[test]
fn a_rate_in_bursts_keeps_the_size_its_bursts_count_in() {
    let peak = Bandwidth::from_megabits_per_second(300);
    let bursts = segstream_blocks::burst::RateSpec::new(peak, 100, 20).unwrap();
    let mut transfer = Transfer::new(Config { rate: Rate::Fixed(bursts), ..discovering(1) }, Contract::default());
    transfer.run_for(ms(200));
    assert_eq!(transfer.sizes(), (1_200, 1_200));
}

/// The automatic rate every 5 ms of the first 400 ms, over a path that carries 1200 bytes.
fn rates(datagram_bytes: DatagramSize) -> Vec<u64> {
    let (floor, peak) = (Bandwidth::from_bits_per_second(64_000), Bandwidth::from_megabits_per_second(100));
    let automatic = Config { rate: Rate::between(floor, peak), datagram_bytes, ..Config::default() };
    let mut transfer = Transfer::new(automatic, Contract::default());
    transfer.carries.set(1_200);
    let rate = |transfer: &Transfer| transfer.network.a().connection(transfer.id).unwrap().rate().unwrap().bits_per_second();
    let rates = (0..80).map(|_| {
        transfer.run_for(ms(5));
        rate(&transfer)
    });
    rates.collect()
}

#[test]
fn probes_that_are_lost_do_not_lower_the_automatic_rate() {
    let (fixed, found) = (rates(DatagramSize::Fixed(1_200)), rates(DatagramSize::Discover));
    for (fixed, found) in fixed.iter().zip(&found) {
        assert!(found * 20 >= fixed * 19, "{found} instead of {fixed}");
    }
}
