//! What earlier transfers found of the capacity of their paths: a file beside that of known peers, with a line
//! `address bits-per-second round-trip-in-microseconds seconds-since-1970` for each.
//!
//! Called when a transfer begins and when it has ended.
//!
//! Invariant: whatever is in the file, a transfer begins and ends; a line that cannot be read or is too old is as if it was not there,
//! and goes when the file is written next. A line is used once (RFC 9959 3.5).
//!
//! Limit: of two transfers that end at the same time one may lose its line.

use segstream::SavedCapacity;
use segstream_base::{Bandwidth, Duration, Instant};
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the file.
pub(super) const KNOWN_CAPACITIES: &str = "known_capacities";
/// Lines that are kept, those of last.
const LINES_MAX: usize = 256;

/// A line: when it was measured, in seconds since 1970, and the rest of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    address: String,
    rate: Bandwidth,
    rtt: Duration,
    at: u64,
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let address = words.next()?.to_owned();
        let mut number = || words.next()?.parse::<u64>().ok();
        let (rate, micros, at) = (number()?, number()?, number()?);
        // Why bounded: a time of so many microseconds has to fit nanoseconds.
        let rtt = Duration::from_micros(micros.min(60_000_000));
        Some(Self { address, rate: Bandwidth::from_bits_per_second(rate), rtt, at })
    }
}

/// Takes what is known of `address` out of `file`, for an endpoint whose clock shows `now`.
pub(super) fn take(file: &Path, address: &str, now: Instant) -> Option<SavedCapacity> {
    let time = seconds_since_1970();
    let mut lines = load(file, time);
    let line = lines.iter().position(|line| line.address == address).map(|at| lines.remove(at))?;
    // Why nothing is resumed otherwise: what cannot be taken out would be used again after it was wrong.
    write(file, &lines).ok()?;
    let age = Duration::from_secs(time.saturating_sub(line.at));
    Some(SavedCapacity { rate: line.rate, rtt: line.rtt, expires: now + SavedCapacity::LIFETIME.saturating_sub(age) })
}

/// Stores what a transfer to `address` has found.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn store(file: &Path, address: &str, capacity: &SavedCapacity) -> io::Result<()> {
    let time = seconds_since_1970();
    let mut lines = load(file, time);
    lines.retain(|line| line.address != address);
    lines.push(Line { address: address.to_owned(), rate: capacity.rate, rtt: capacity.rtt, at: time });
    write(file, &lines)
}

/// The lines that can be used at `time`.
fn load(file: &Path, time: u64) -> Vec<Line> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lifetime = SavedCapacity::LIFETIME.as_nanos() / 1_000_000_000;
    // Why not from the future: such a line would never grow old.
    text.lines().filter_map(Line::parse).filter(|line| line.at <= time && time - line.at < lifetime).collect()
}

/// Writes a temporary file and renames it, so that nobody reads half of it.
fn write(file: &Path, lines: &[Line]) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    for Line { address, rate, rtt, at } in &lines[lines.len().saturating_sub(LINES_MAX)..] {
        writeln!(new, "{address} {} {} {at}", rate.bits_per_second(), rtt.as_micros())?;
    }
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_taken_once_and_what_is_old_or_broken_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/known_capacities");
        let now = Instant::ZERO + Duration::from_secs(7);
        assert_eq!(take(&file, "a:1", now), None);
        let rtt = Duration::from_millis(40);
        let capacity = SavedCapacity { rate: Bandwidth::from_megabits_per_second(20), rtt, expires: now };
        store(&file, "a:1", &capacity).unwrap();
        store(&file, "b:1", &capacity).unwrap();
        let found = take(&file, "a:1", now).unwrap();
        assert_eq!((found.rate, found.rtt), (capacity.rate, rtt));
        let left = found.expires.since(now);
        assert!(left > SavedCapacity::LIFETIME.saturating_sub(Duration::from_secs(60)) && left <= SavedCapacity::LIFETIME, "{left}");
        assert_eq!(take(&file, "a:1", now), None);
        let time = seconds_since_1970();
        let old = time - 3601;
        fs::write(
            &file,
            format!("c:1 1000 40000 {old}\nd:1 1000 40000 {}\ne:1 x\n\nf:1 {max} {max} {time}\n", time + 3600, max = u64::MAX),
        )
        .unwrap();
        assert_eq!(["c:1", "d:1", "e:1"].map(|address| take(&file, address, now)), [None; 3]);
        assert!(take(&file, "f:1", now).is_some());
        assert_eq!(fs::read_to_string(&file).unwrap(), "");
    }
}
