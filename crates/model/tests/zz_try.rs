use segstream_base::Duration;
use segstream_model::exploration::{Bounds, explore};
use segstream_model::moved::{Deed, Moved};
use segstream_model::world::Thief;
#[test]
fn try_all() {
    const SM: &[Deed] = &[Deed::Submits, Deed::MovesTo(7)];
    const S: &[Deed] = &[Deed::Submits];
    const M: &[Deed] = &[Deed::MovesTo(7)];
    for (name, a, b, thief, losses, thefts, ms) in [
        ("move alone,relay 2,10", M, &[][..], Thief::Relays, 0, 2, 10),
        ("move alone,relay 2,loss 1,5", M, &[][..], Thief::Relays, 1, 2, 5),
        ("move alone,theft 1,loss 1,400", M, &[][..], Thief::Silent, 1, 1, 700),
        ("move,theft,loss,3", SM, &[][..], Thief::Silent, 1, 1, 3),
        ("move,sent to,relay,10", M, S, Thief::Relays, 0, 1, 10),
        ("relay 2,loss,3", S, &[][..], Thief::Relays, 1, 2, 3),
        ("move,relay 2,3", SM, &[][..], Thief::Relays, 0, 2, 3),
        ("move,loss,300", SM, &[][..], Thief::Silent, 1, 0, 300),
    ] {
        let start = std::time::Instant::now();
        let bounds = Bounds { losses, copies: 0, holds: 0, thefts, horizon: Duration::from_millis(ms) };
        let found = explore(Moved { deeds: [a, b], thief, keyed: true, bounds });
        println!("{name}: {:?} {found}", start.elapsed());
    }
}
