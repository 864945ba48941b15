//! Our black box.
//!
//! Called by `comparison`.

use crate::Outcome;
use crate::cases::{Case, Losses};
use anyhow::{Context as _, Result};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_path::{Aqm, Fate, LossPlace, LossSpec, Path, PathConfig, QueueLimit};

/// Sends the packets of a run.
pub(crate) fn run(case: &Case, run: u32, schedule: &[(u64, u32)]) -> Result<Outcome> {
    let config = PathConfig {
        bandwidth: Some(Bandwidth::from_bits_per_second(case.rate_bps)),
        delay: Duration::from_nanos(case.delay_ns),
        queue: QueueLimit::Packets(case.queue_packets),
        aqm: case.aqm.replace("none", "droptail").parse::<Aqm>().context("a case has an AQM that is none")?,
        loss: loss(case.loss)?,
        // ns-3 loses at the receiving device.
        loss_at: LossPlace::After,
        ..PathConfig::default()
    };
    let mut path = Path::new(&config, Seed(u64::from(run)), "ns3").context("a case has a path that is none")?;
    let send = |(at, bytes): &(u64, u32)| match path.send(Instant::from_nanos(*at), Bytes::new(u64::from(*bytes))).fate {
        Fate::Delivered { at } => Some(at.as_nanos()),
        Fate::Lost | Fate::Dropped => None,
    };
    Ok(schedule.iter().map(send).collect())
}

fn loss(losses: Losses) -> Result<LossSpec> {
    let text = match losses {
        Losses::None => "none".to_owned(),
        Losses::List(numbers) => format!("list:{}", numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
        Losses::Independent(probability) => format!("random:{probability}"),
    };
    text.parse().with_context(|| format!("{text} is no loss"))
}
