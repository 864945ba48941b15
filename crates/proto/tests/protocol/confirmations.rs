//! Confirmations: the receiving application tells up to where a stream is safe, and the sending one hears it, whatever is lost and
//! after the end of the stream.

use crate::network::Network;
use segstream_base::{Duration, Instant, SegmentNumber, StreamId};
use segstream_proto::config::Config;
use segstream_proto::connection::{Connection, ConnectionEvent};
use segstream_proto::endpoint::ConnectionId;
use segstream_proto::error::ConfirmError;
use segstream_proto::sender::Durable;
use segstream_wire::Limits;
use segstream_wire::contract::{Contract, Order};

const LIVE_MAX: u32 = 8;

struct Ends {
    network: Network,
    id: ConnectionId,
}

impl Ends {
    fn new(confirms: bool, loss: f64) -> Self {
        let limits = Limits { streams: LIVE_MAX, ..Config::default().limits };
        let b = Config { limits, accept: true, confirms, ..Config::default() };
        let mut network = Network::new(Config::default(), b, Duration::from_millis(20));
        network.loss = loss;
        let id = network.connect(Vec::new());
        network.run_until(Duration::from_secs(2));
        assert!(network.events_a.contains(&(id, ConnectionEvent::Connected)));
        Self { network, id }
    }

    fn sender(&mut self) -> &mut Connection {
        let id = self.id;
        self.network.a_mut().connection_mut(id).unwrap()
    }

    fn receiver(&mut self) -> &mut Connection {
        let id = self.network.b().connections().next().unwrap();
        self.network.b_mut().connection_mut(id).unwrap()
    }

    fn stream_of(&mut self, segments: u8, contract: Contract, finish: bool) -> StreamId {
        let now = self.network.now();
        let sender = self.sender();
        let stream = sender.open_stream(now, contract).unwrap();
        for segment in 0..segments {
            sender.send(now, stream, vec![segment; 3000].into(), now, None).unwrap();
        }
        if finish {
            sender.finish_stream(now, stream);
        }
        stream
    }

    fn wait(&mut self, time: Duration) {
        let until = (self.network.now() + time).since(Instant::ZERO);
        self.network.run_until(until);
    }

    fn confirm(&mut self, stream: StreamId, segments: u64) -> Result<(), ConfirmError> {
        let now = self.network.now();
        self.receiver().confirm(now, stream, SegmentNumber(segments))
    }

    fn durable(&mut self, stream: StreamId) -> Option<(u64, bool)> {
        self.sender().durable(stream).map(|durable| (durable.segments.0, durable.last))
    }

    fn heard(&self, of: StreamId) -> Vec<u64> {
        let heard = self.network.events_a.iter().filter_map(|(_, event)| match event {
            ConnectionEvent::Durable(stream, durable) if *stream == of => Some(durable.segments.0),
            _ => None,
        });
        heard.collect()
    }
}

#[test]
fn a_verdict_confirms_nothing_and_a_confirmation_is_heard_within_round_trips() {
    let mut ends = Ends::new(true, 0.0);
    let stream = ends.stream_of(4, Contract::default(), false);
    ends.wait(Duration::from_secs(1));
    assert_eq!((ends.network.judged().len(), ends.durable(stream)), (4, Some((0, false))));
    assert_eq!(ends.receiver().taken(stream), Some(SegmentNumber(4)));
    ends.confirm(stream, 3).unwrap();
    ends.wait(Duration::from_millis(60));
    assert_eq!((ends.durable(stream), ends.heard(stream)), (Some((3, false)), vec![3]));
    // Nothing retreats, and what is not news is not told.
    ends.confirm(stream, 1).unwrap();
    ends.wait(Duration::from_secs(1));
    assert_eq!(ends.heard(stream), [3]);
}

#[test]
fn no_more_is_confirmed_than_was_taken() {
    let mut ends = Ends::new(true, 0.0);
    let stream = ends.stream_of(2, Contract { order: Order::AsAccepted, ..Contract::default() }, false);
    ends.wait(Duration::from_secs(1));
    let refused = ConfirmError::NotTaken { segments: SegmentNumber(3), taken: SegmentNumber(2) };
    assert_eq!(ends.confirm(stream, 3), Err(refused));
    assert_eq!(ends.confirm(StreamId(9), 1), Err(ConfirmError::Unknown(StreamId(9))));
    ends.network.taking = false;
    let other = ends.stream_of(2, Contract::default(), false);
    ends.wait(Duration::from_secs(1));
    assert!(matches!(ends.confirm(other, 1), Err(ConfirmError::NotTaken { taken: SegmentNumber(0), .. })));
}

#[test]
fn nothing_is_confirmed_to_a_peer_unless_both_ends_know_it() {
    let mut ends = Ends::new(false, 0.0);
    let stream = ends.stream_of(2, Contract::default(), true);
    ends.wait(Duration::from_secs(1));
    assert_eq!(ends.confirm(stream, 2), Err(ConfirmError::NotAgreed));
    assert!(!ends.sender().peer_confirms() && ends.sender().durable(stream).is_none());
    // Its streams retire as ever.
    for _ in 0..3 * LIVE_MAX {
        ends.stream_of(1, Contract::default(), true);
        ends.wait(Duration::from_millis(500));
    }
}

#[test]
fn every_confirmation_is_heard_whatever_is_lost() {
    let mut ends = Ends::new(true, 0.3);
    let stream = ends.stream_of(60, Contract::default(), false);
    for segments in 1..=60 {
        while ends.receiver().taken(stream).is_none_or(|taken| taken < SegmentNumber(segments)) {
            ends.wait(Duration::from_millis(10));
        }
        ends.confirm(stream, segments).unwrap();
        ends.wait(Duration::from_millis(30));
    }
    ends.wait(Duration::from_secs(3));
    let heard = ends.heard(stream);
    assert_eq!((ends.durable(stream), heard.last()), (Some((60, false)), Some(&60)));
    assert!(heard.is_sorted(), "{heard:?}");
}

#[test]
fn a_stream_stays_until_its_end_is_confirmed_and_no_longer() {
    for loss in [0.0, 0.2] {
        let mut ends = Ends::new(true, loss);
        let all: Vec<StreamId> = (0..LIVE_MAX).map(|_| ends.stream_of(2, Contract::default(), true)).collect();
        ends.wait(Duration::from_secs(5));
        let now = ends.network.now();
        assert!(ends.sender().open_stream(now, Contract::default()).is_err(), "all of them are live, though all is judged");
        ends.confirm(all[3], 2).unwrap();
        ends.wait(Duration::from_secs(3));
        let next = ends.stream_of(1, Contract::default(), true);
        assert_eq!((ends.durable(all[3]), ends.durable(all[2])), (None, Some((0, false))), "the one that is confirmed has made room");
        assert_eq!(ends.heard(all[3]), [2]);
        // One that will not be confirmed makes room too, and the sender hears that.
        ends.confirm(all[5], 1).unwrap();
        ends.receiver().confirm_no_more(now, all[5]);
        ends.wait(Duration::from_secs(3));
        let told = ConnectionEvent::Durable(all[5], Durable { segments: SegmentNumber(1), last: true });
        assert!(ends.network.events_a.contains(&(ends.id, told)));
        ends.stream_of(1, Contract::default(), true);
        assert_eq!(ends.durable(next), Some((0, false)));
    }
}

#[test]
fn a_connection_that_has_heard_all_is_quiet() {
    let mut ends = Ends::new(true, 0.1);
    let stream = ends.stream_of(3, Contract::default(), false);
    ends.wait(Duration::from_secs(2));
    ends.confirm(stream, 3).unwrap();
    ends.wait(Duration::from_secs(4));
    let reports = |ends: &mut Ends| ends.receiver().receiver_counters().report_shipments;
    let before = reports(&mut ends);
    ends.wait(Duration::from_secs(2));
    // One may answer a keep-alive.
    let since = reports(&mut ends) - before;
    assert!(since <= 1, "{since} reports in two seconds");
}

#[test]
fn streams_one_after_another_leave_no_more_than_the_live_ones_behind() {
    let mut ends = Ends::new(true, 0.05);
    for _ in 0..300 {
        let stream = ends.stream_of(1, Contract::default(), true);
        while ends.receiver().taken(stream).is_none_or(|taken| taken < SegmentNumber(1)) {
            ends.wait(Duration::from_millis(20));
        }
        ends.confirm(stream, 1).unwrap();
        while ends.durable(stream) != Some((1, false)) {
            ends.wait(Duration::from_millis(20));
        }
        let kept = (ends.sender().streams_kept().0, ends.receiver().streams_kept().1);
        assert!(kept.0 <= LIVE_MAX as usize && kept.1 <= LIVE_MAX as usize, "{kept:?} streams are kept");
        ends.wait(Duration::from_millis(200));
    }
}
