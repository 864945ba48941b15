//! The statistics of a connection by name, its rate and its class.
//!
//! Called by C programs. Invariant: the names are those of JSON and of Rust (`docs/OBSERVING.md`), so that a new one needs no new function.

use crate::arguments::{self, Out};
use crate::endpoint::{State, segstream_endpoint, with};
use crate::failure::{Failure, guarded};
use crate::status::segstream_status;
use segstream::vocabulary::{QUANTITIES, Value};
use segstream::{Bandwidth, Class, Rate};
use std::ffi::c_char;

/// Tells one quantity of a connection, such as "rtt_ms_smoothed" or "units_retransmitted". Times are in seconds and rates in bytes per
/// second, as in metrics; totals are counts. Not a number if it is not known yet.
///
/// # Safety
///
/// `endpoint` is a handle; `name` is a text; `value` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_statistic(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    name: *const c_char,
    value: *mut f64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (name, out) = unsafe { (arguments::text(name, "name")?, Out::new(value, "value")?) };
        let unknown = || Failure::argument(format!("there is no quantity \"{name}\"; docs/OBSERVING.md lists them"));
        let quantity = QUANTITIES.iter().find(|quantity| quantity.name == name).ok_or_else(unknown)?;
        // Safety: as this function's caller promises.
        let statistics = unsafe { with(endpoint, |state| Ok(state.connection(connection)?.statistics()?)) }?;
        out.set(match quantity.value {
            Value::Total(of) => of(&statistics) as f64,
            Value::Now(of) => of(&statistics).unwrap_or(f64::NAN),
            _ => return Err(Failure::argument(format!("{name} is a word or a histogram and no number"))),
        });
        Ok(())
    })
}

/// Sets the rate of our direction in bit/s of whole IP packets, in force at once; 0 for congestion-controlled.
///
/// # Safety
///
/// `endpoint` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_set_rate(endpoint: *mut segstream_endpoint, connection: u64, rate_bps: u64) -> segstream_status {
    let rate = if rate_bps == 0 { Rate::AUTO } else { Rate::smooth(Bandwidth::from_bits_per_second(rate_bps)) };
    let set = |state: &mut State| Ok(state.connection(connection)?.set_rate(rate)?);
    // Safety: as this function's caller promises.
    guarded(|| unsafe { with(endpoint, set) })
}

/// Changes the class of our direction: error control 4, flow control 2, rate control 1. It is in force when SEGSTREAM_EVENT_RECLASSED says
/// so.
///
/// # Safety
///
/// `endpoint` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_set_class(endpoint: *mut segstream_endpoint, connection: u64, class: u32) -> segstream_status {
    let set = |state: &mut State| {
        let known = u8::try_from(class).ok().and_then(Class::new);
        let class = known.ok_or_else(|| Failure::argument(format!("class {class} is none; give 0 to 7")))?;
        Ok(state.connection(connection)?.set_class(class)?)
    };
    // Safety: as this function's caller promises.
    guarded(|| unsafe { with(endpoint, set) })
}

/// Tells the rate in force in our direction, in bit/s of whole IP packets; 0 if nothing is paced.
///
/// # Safety
///
/// `endpoint` is a handle; `rate_bps` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_rate(endpoint: *mut segstream_endpoint, connection: u64, rate_bps: *mut u64) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let out = unsafe { Out::new(rate_bps, "rate_bps") }?;
        // Safety: as this function's caller promises.
        let rate = unsafe { with(endpoint, |state| Ok(state.connection(connection)?.rate()?)) }?;
        out.set(rate.map_or(0, Bandwidth::bits_per_second));
        Ok(())
    })
}
