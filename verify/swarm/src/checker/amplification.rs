//! No endpoint is an amplifier towards an address that was never validated.
//!
//! One of the checkers. Source: RFC 9000 8.1: to an address that has not shown that it receives what is sent to it, no
//! more than three times the bytes that came from it. An address has shown it once its own host has answered, with
//! anything but a request: every answer carries something that was sent there. Requests of our own are not counted:
//! our application chose the address.
//!
//! Invariant: what attackers make counts as coming from the address they name, and never proves it; what they have only
//! brought, sooner than the path would, proves it as its maker would.
//! Limit: a host that crashes keeps what it has exchanged and what was proved to it: its peers may hold cookies and address tokens, which
//! outlive the crash (spec 6.7, 6.13), and the checker does not look into requests.

use super::{Checker, must};
use crate::event::{Event, Place};
use segstream_base::Instant;
use segstream_wire::Kind;
use std::collections::BTreeMap;

/// At most this many times the received bytes may be sent.
const TIMES: u64 = 3;

#[derive(Debug, Default)]
struct Traffic {
    came: u64,
    left: u64,
    proven: bool,
}

/// What each host and each address have exchanged.
#[derive(Debug, Default)]
pub(super) struct Amplification {
    traffic: BTreeMap<(usize, Place), Traffic>,
}

impl Checker for Amplification {
    fn name(&self) -> &'static str {
        "amplification"
    }

    fn observe(&mut self, _now: Instant, event: &Event) -> Result<(), String> {
        match event {
            Event::Arrived { host, from, kind, bytes, genuine, .. } => {
                let traffic = self.traffic.entry((*host, *from)).or_default();
                traffic.came += bytes;
                traffic.proven |= *genuine && *kind != Some(Kind::Request);
            }
            Event::Sent { host, to, kind, bytes, .. } if *kind != Some(Kind::Request) => {
                let traffic = self.traffic.entry((*host, *to)).or_default();
                if !traffic.proven {
                    traffic.left += bytes;
                    let (came, left) = (traffic.came, traffic.left);
                    must!(left <= TIMES * came, "h{host} has sent {left} bytes to {to}, from where {came} came and nothing proved it");
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Fate;

    fn arrives(checker: &mut Amplification, kind: Kind, bytes: u64, genuine: bool) {
        let event = Event::Arrived { host: 0, from: Place::Host(1), kind: Some(kind), bytes, genuine, hostile: !genuine };
        assert_eq!(checker.observe(Instant::ZERO, &event), Ok(()));
    }

    fn leaves(checker: &mut Amplification, kind: Kind, bytes: u64) -> Result<(), String> {
        let event = Event::Sent { host: 0, to: Place::Host(1), kind: Some(kind), bytes, content: 0, fate: Fate::Lost };
        checker.observe(Instant::ZERO, &event)
    }

    #[test]
    fn more_than_three_times_what_came_is_refused_until_the_address_is_proven() {
        let mut checker = Amplification::default();
        arrives(&mut checker, Kind::Request, 100, true);
        assert_eq!(leaves(&mut checker, Kind::Confirm, 300), Ok(()));
        arrives(&mut checker, Kind::Data, 1, false);
        assert!(leaves(&mut checker, Kind::Confirm, 4).is_err());
        arrives(&mut checker, Kind::State, 50, true);
        assert_eq!(leaves(&mut checker, Kind::Data, 100_000), Ok(()));
    }

    #[test]
    fn what_came_before_a_crash_counts_after_it_and_no_more_than_that() {
        let mut checker = Amplification::default();
        arrives(&mut checker, Kind::Request, 100, true);
        assert_eq!(leaves(&mut checker, Kind::Confirm, 200), Ok(()));
        checker.observe(Instant::ZERO, &Event::Crashed(0)).unwrap();
        assert_eq!(leaves(&mut checker, Kind::Confirm, 100), Ok(()));
        assert!(leaves(&mut checker, Kind::Confirm, 1).is_err());
        assert_eq!(leaves(&mut checker, Kind::Request, 1000), Ok(()), "its own application chose the address");
    }
}
