//! XT Fig. 4: delay over user throughput, Bernoulli arrivals.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: all but the flagship's second setting have the window of XT 3.2; the handshake has a picture of its own.
//! Source: XT 4, Fig. 4; XT Tables 1 and 3.

use super::delay::{self, Drawn};
use super::over_throughput::{self, RATES, X, everyone};
use super::tandem::{FIVE, HANDSHAKES, READINGS, SEGSTREAM, SIX, WINDOW, Who, bernoulli};
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Figure, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, TandemPoint};

#[path = "claims.rs"]
mod claims;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "xt/fig4",
    title: "Delay over user throughput",
    source: "XT 4, Figure 4; XT Tables 1 and 3",
    summary: "Mean delay of a message over the user throughput, with Bernoulli arrivals and a window of 60 packets. A sender that has a \
              queue sends at the rate of its server, half a packet a slot, and with the external packets that is more than LINK1 serves: \
              what is lost is lost there. Whoever discards what comes out of order sends a window again for each loss, overfills LINK1 \
              with it and does not recover: such points have no steady state and are drawn at the top.\n\n\
              Segstream has less delay than all six at every throughput, with the same window: it is told of each gap, sends again what \
              is missing alone, and does not stop at the end of a window. It pays with reports: two a message where there is \
              little to send.",
    parameters: &[
        ("arrivals", "Bernoulli (stated)"),
        ("user throughput", "0.02 to 0.15 messages/slot (chosen)"),
        ("window", "60 packets (stated); Segstream also with 120, the best of Table 4's"),
        (
            "external traffic",
            "0.1 packets/slot (stated), in front of a message's packet that comes in the same slot (inferred from Table 4)",
        ),
        ("room of LINK1", "13 packets: 10 waiting (stated) and 3 in service, in transmission, and leaving (chosen)"),
        ("WTIMER", "200 slots (chosen; see sensitivity)"),
        ("sent again", "not twice within 50 slots where all from RSEQ on is sent again, 29 where only what is missing is (chosen)"),
        ("Segstream", "unpaced: the server of XTP1 sets the pace (chosen)"),
    ],
    tandem: points,
    figures,
    tables,
    claims: &[
        Claim {
            id: "XT-C1",
            text: "At low throughput all six have almost the same delay (XT 4, Figure 4)",
            check: claims::the_same_at_low_throughput,
        },
        Claim {
            id: "XT-C2",
            text: "Schemes 1.1 and 2.1 are the same: to a receiver that discards, everything is sent again (XT 4)",
            check: claims::discarding_makes_senders_equal,
        },
        Claim {
            id: "XT-C3",
            text: "At growing throughput 2.3 has the smallest delay and 1.1 and 2.1 the largest (XT 4, Figure 4)",
            check: claims::smallest_and_largest,
        },
        Claim {
            id: "XT-C4",
            text: "With a go-back-N sender the aggressive receiver is better at low throughput and worse beyond a crossing (XT 4, Figure 4)",
            check: claims::crossing,
        },
        Claim { id: "XT-C5", text: "2.2 is better than 1.2, and 2.3 than 1.3 (XT 4, Figure 4)", check: claims::selective_is_better },
        Claim {
            id: "XT-C6",
            text: "1.1 and 2.1 are much worse than 1.3, although as many packets are sent again (XT 4, Figure 4)",
            check: claims::discarding_is_much_worse,
        },
    ],
    standings: |measured| delay::standings(measured, &SEGSTREAM.name(), &SIX, "messages/slot"),
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// Where the readings of LINK1 are compared: at a throughput that all sustain, and at those that are high.
const READ_AT: [f64; 6] = [0.08, 0.11, 0.12, 0.13, 0.14, 0.15];

/// The flagship with the best window of those of Table 4.
const BEST: (&str, u32) = ("segstream W 120", 120);

fn points() -> Vec<TandemPoint> {
    let mut points = over_throughput::all_points(bernoulli);
    points.extend(over_throughput::points(BEST.0, SEGSTREAM, BEST.1, bernoulli));
    for reading in READINGS {
        for who in FIVE {
            points.extend(READ_AT.map(|rate| TandemPoint {
                curve: reading.curve(who),
                x: rate,
                scenario: reading.over(&who.over(WINDOW, bernoulli(rate))),
            }));
        }
    }
    points.extend(HANDSHAKES.into_iter().flat_map(|who| over_throughput::points(&who.name(), who, WINDOW, bernoulli)));
    points
}

fn figures(measured: &Measured) -> Vec<Figure> {
    let mut all = over_throughput::drawn();
    all.push(over_throughput::variant(BEST.0, "Segstream, window 120"));
    let after: Vec<Drawn> = HANDSHAKES.into_iter().chain([SIX[4], SIX[5]]).map(|who| (who.name(), who.label(), who.look())).collect();
    let title = "Delay over user throughput, Bernoulli arrivals, window 60";
    let second = "Repair after a handshake alone, and at once, window 60";
    vec![
        delay::figure(measured, ("xt-fig4", title), X, (15.0, 80.0), &all),
        delay::figure(measured, ("xt-fig4-handshake", second), X, (15.0, 80.0), &after),
    ]
}

fn tables(measured: &Measured) -> Vec<TextTable> {
    let mut curves: Vec<(String, String)> = everyone().map(|who| (who.name(), who.number().to_owned())).collect();
    curves.push((BEST.0.to_owned(), "Segstream, W 120".to_owned()));
    curves.extend(HANDSHAKES.map(|who| (who.name(), who.label())));
    vec![
        over_throughput::delays(measured, "Mean delay of a message in slots", &curves),
        over_throughput::costs(measured, 0.02, &curves),
        over_throughput::costs(measured, 0.12, &curves),
        claims::by_reading(measured),
    ]
}
