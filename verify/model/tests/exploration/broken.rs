//! The models can fail: each kind of property is found broken where it must be.

use segstream_base::codec::Writer;
use segstream_base::{Duration, ShipmentNumber};
use segstream_model::exploration::{Bounds, Instance, Sometimes, explore};
use segstream_model::tap;
use segstream_model::window::Window;
use segstream_model::world::{Side, World};
use segstream_proto::session::Plain;
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Report, ReportFrame};

const BOUNDS: Bounds = Bounds { losses: 1, copies: 0, holds: 0, attacker_copies: 0, horizon: Duration::from_micros(1500) };

/// A network that grants one segment more than B does, under a new seal.
fn grants_more(from: Side, datagram: &mut Vec<u8>) {
    let Some(mut report) = tap::report(datagram, Plain::SEAL_BYTES).filter(|_| from == Side::B) else { return };
    for frame in &mut report.frames {
        if let ReportFrame::Grant { segments, units, .. } = frame {
            (*segments, *units) = (*segments + 1, *units + 1);
        }
    }
    reseal(datagram, &report);
}

fn reseal(datagram: &mut Vec<u8>, report: &Report) {
    let number = u64::from(u32::from_be_bytes(datagram[HEADER_BYTES - 4..HEADER_BYTES].try_into().unwrap()));
    assert!(Plain::open(ShipmentNumber(number), datagram).is_some(), "the number is the last field of the header");
    let mut body = vec![0; report.encoded_len()];
    let mut writer = Writer::new(&mut body);
    report.encode(&mut writer);
    writer.finish().unwrap();
    datagram.truncate(HEADER_BYTES);
    datagram.extend_from_slice(&body);
    datagram.resize(datagram.len() + Plain::SEAL_BYTES, 0);
    Plain::seal(ShipmentNumber(number), datagram);
}

/// A network that carries nothing whole from B any more.
#[allow(clippy::ptr_arg, reason = "other forgers change the length")]
fn spoils(from: Side, datagram: &mut Vec<u8>) {
    if from == Side::B {
        datagram.last_mut().into_iter().for_each(|byte| *byte ^= 1);
    }
}

/// A claim with another goal or another rule in its place.
struct Instead {
    claim: Window,
    rule: fn(&World) -> Option<String>,
    goal: fn(&World) -> bool,
}

impl Instance for Instead {
    const NAME: &'static str = "a claim that does not hold";
    const SOMETIMES: &'static [Sometimes] =
        &[("a segment expires", |world| world.heard(Side::A).judged.iter().any(|judged| !judged.2.is_met()))];

    fn bounds(&self) -> Bounds {
        self.claim.bounds
    }

    fn begin(&self) -> World {
        self.claim.begin()
    }

    fn script(&self, side: Side) -> usize {
        self.claim.script(side)
    }

    fn act(&self, world: &mut World, side: Side, index: usize) -> bool {
        self.claim.act(world, side, index)
    }

    fn fault(&self, world: &World) -> Option<String> {
        (self.rule)(world)
    }

    fn is_reached(&self, world: &World) -> bool {
        (self.goal)(world)
    }
}

#[test]
fn a_network_that_grants_more_than_the_receiver_overruns_it() {
    let found = explore(Window { segments: 4, bounds: BOUNDS, forger: Some(grants_more) });
    assert!(found.faults[0].contains("B is overrun"), "{found}");
}

#[test]
fn a_network_that_spoils_every_report_leads_nowhere() {
    let found = explore(Window { segments: 3, bounds: BOUNDS, forger: Some(spoils) });
    assert!(found.faults.len() == 1 && found.faults[0].contains("leads nowhere"), "{found}");
}

#[test]
fn a_rule_that_one_loss_breaks_is_found_broken_by_a_history_with_that_loss() {
    let bounds = Bounds { horizon: Duration::from_millis(3), ..BOUNDS };
    let claim = Window { segments: 2, bounds, forger: None };
    let again = |world: &World| {
        let repaired = world.connection(Side::A).is_some_and(|connection| connection.sender_counters().segments_repaired > 0);
        repaired.then(|| "something is repaired".to_owned())
    };
    let found = explore(Instead { claim, rule: again, goal: |_| true });
    assert!(found.faults[0].contains("something is repaired") && found.faults[0].contains("Lose DT"), "{found}");
    let bounds = Bounds { losses: 0, ..bounds };
    let found = explore(Instead { claim: Window { bounds, ..claim }, rule: again, goal: |_| true });
    assert!(found.faults.is_empty(), "nothing is repaired where nothing is lost: {found}");
}

#[test]
fn a_goal_that_is_never_reached_and_a_state_that_is_never_reached_are_told() {
    let claim = Window { segments: 2, bounds: Bounds { losses: 0, ..BOUNDS }, forger: None };
    let found = explore(Instead { claim, rule: |_| None, goal: |world| world.heard(Side::A).judged.len() > 2 });
    assert!(found.faults.len() == 1 && found.faults[0].contains("leads nowhere"), "{found}");
    assert_eq!(found.unseen, ["a segment expires"]);
}
