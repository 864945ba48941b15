//! The honest sender beside an attack, in a process of its own: a live transfer at a fixed rate.
//!
//! Started by [`crate::process`] as `segstream-siege sender`. Invariant: it sends until it is asked to end, and its
//! last report is of the whole transfer.

use crate::client::{Client, Transfer};
use crate::labels::Labels;
use crate::messages::{Hello, Report, Request};
use crate::requests::{Requests, say};
use crate::resource_usage::ResourceUsage;
use crate::victim::any;
use segstream_base::Bandwidth;

/// The length of a segment.
const SEGMENT_BYTES: usize = 64 * 1024;

/// Sends until it is asked to end.
///
/// # Errors
/// What the library says.
pub fn run(megabits: u64) -> anyhow::Result<()> {
    let mut client = Client::bind(any(), Bandwidth::from_megabits_per_second(megabits))?;
    let requests = Requests::listen(client.waker());
    say(&Hello { address: client.address(), key: client.key().to_owned() })?;
    let to = loop {
        match requests.next() {
            Some(Request::SendTo(to)) => break to,
            Some(Request::End) => return Ok(()),
            Some(_) => say(&Report::default())?,
            None => std::thread::sleep(std::time::Duration::from_millis(2)),
        }
    };
    say(&Report::default())?;
    let mut ending = false;
    let transfer = client.transfer(to, SEGMENT_BYTES, |transfer, labels| {
        while let Some(request) = requests.next() {
            if matches!(request, Request::End) {
                ending = true;
                break;
            }
            say(&report(transfer, labels))?;
        }
        Ok(!ending)
    })?;
    // Why a second time: the verdicts of the last segments came after the close was requested.
    say(&report(&transfer, &client.labels))
}

fn report(transfer: &Transfer, labels: &Labels) -> Report {
    Report {
        spent: ResourceUsage::read(),
        connected: u64::from(transfer.connected),
        verdicts_complete: transfer.complete,
        verdicts_other: transfer.other + (transfer.sent - transfer.complete - transfer.other) * u64::from(transfer.ended.is_some()),
        ended: transfer.ended.as_ref().map(ToString::to_string),
        samples: labels.samples(),
        ..Report::default()
    }
}
