//! An automatic rate that is known in advance: a live source loses no first second to start-up, and one that was told too much falls
//! back.

use crate::bottleneck::{Source, Transfer, at_ms, bottleneck, ms};
use segstream_base::Bandwidth;
use segstream_blocks::congestion::{Algorithm, bbr, cubic, prague};
use segstream_proto::rate::Rate;

const CONTROLLERS: [&Algorithm; 3] = [&bbr::ALGORITHM, &cubic::ALGORITHM, &prague::ALGORITHM];

/// A source over a bottleneck of so many Mbit/s, whose round trip of 40 ms set-up has measured.
fn transfer(rate: Rate, megabits: u64, source: Source) -> Transfer {
    let mut transfer = Transfer::new(rate, &bottleneck(megabits), source, 10_000);
    transfer.run_to(at_ms(1));
    transfer.sender.half.on_rtt_sample(transfer.now, ms(40));
    transfer
}

fn megabits(megabits: u64) -> Bandwidth {
    Bandwidth::from_megabits_per_second(megabits)
}

#[test]
fn a_live_source_whose_rate_is_known_is_carried_from_the_first_segments_on() {
    // 10 kB each 10 ms are 8 Mbit/s. Known are 9, for headers and for what is sent again.
    for congestion in CONTROLLERS {
        let judged = |rate: Rate| {
            let mut transfer = transfer(rate.under(congestion), 20, Source::Every(ms(10)));
            transfer.run_to(at_ms(250));
            transfer.verdicts.len()
        };
        let (known, unknown) = (judged(Rate::AUTO.starting_at(megabits(9))), judged(Rate::AUTO));
        // A grant takes a round trip, a segment and its verdict another and its own 10 ms: of 25 five are then on their way.
        assert!(known >= 14, "{congestion:?}: {known}");
        assert!(known > unknown, "{congestion:?}: {known} and {unknown}");
    }
}

#[test]
fn a_rate_that_was_too_much_falls_back_and_the_link_is_full() {
    for congestion in CONTROLLERS {
        let run = |rate: Rate| {
            let mut transfer = transfer(rate.under(congestion), 2, Source::Greedy);
            transfer.run_to(at_ms(2000));
            let dropped = transfer.dropped();
            (dropped, transfer.goodput_over(ms(10_000)) / 2e6)
        };
        let (known, unknown) = (run(Rate::AUTO.starting_at(megabits(20))), run(Rate::AUTO));
        // 20 Mbit/s over 40 ms are 83 packets, of which a queue of 64 KiB takes most.
        assert!(known.0 <= unknown.0 + 83, "{congestion:?}: {known:?} and {unknown:?}");
        assert!(known.1 > 0.8, "{congestion:?}: {known:?}");
    }
}

#[test]
fn no_more_is_in_flight_than_the_rate_implies_before_anything_is_acknowledged() {
    for congestion in CONTROLLERS {
        let mut transfer = transfer(Rate::AUTO.starting_at(megabits(8)).under(congestion), 20, Source::Greedy);
        let mut most = 0;
        for millis in 2..75 {
            transfer.run_to(at_ms(millis));
            most = most.max(transfer.sender.half.in_flight());
        }
        // 8 Mbit/s over 40 ms are 40,000 bytes; what Prague's cap has on top of its window, and state beside.
        assert!((30_000..50_000).contains(&most), "{congestion:?}: {most}");
    }
}
