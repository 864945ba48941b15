//! The contract of a stream as a structure of C.
//!
//! Called by C programs before they open streams.
//!
//! Invariant: the structure says how large the program thinks it is, so that fields can be added at its end.

use crate::arguments::{self, Out};
use crate::failure::{Failure, guarded};
use crate::status::segstream_status;
use segstream::{Contract, InterleaveChoice, Order, Tolerance, ToleranceError};
use std::ffi::c_char;
use std::time::Duration;

/// Whatever the tolerance leaves in the order in which units leave: chosen from it.
const INTERLEAVE_AUTO: u32 = u32::MAX;

/// The contract of a stream. Fill it with segstream_contract_init(), then change what shall be otherwise.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct segstream_contract {
    /// sizeof(segstream_contract), as segstream_contract_init() writes it.
    pub struct_bytes: usize,
    /// The size of a unit in bytes, 1 to 1123; a little more fits in most cases. Default 1024.
    pub unit_bytes: u32,
    /// W of the tolerance (W, E, B): the units of a segment are counted in windows of W. Default: the whole segment, as with any W above its units.
    pub tolerance_w: u32,
    /// E of the tolerance: how many units of a window may be missing. Default 0.
    pub tolerance_e: u32,
    /// B of the tolerance: how many units in a row may be missing. Default 0.
    pub tolerance_b: u32,
    /// How many units at the beginning of every segment must arrive. Default 0.
    pub importance: u32,
    /// 0: segments are delivered in order; 1: as they are accepted. Default 0.
    pub as_accepted: u32,
    /// A segment older than this is abandoned; 0 for never. In microseconds. Default 0.
    pub lifetime_us: u64,
    /// 0: units leave in order; UINT32_MAX: interleaved as the tolerance allows; else in blocks of so many. Default UINT32_MAX.
    pub interleave: u32,
    /// The receiver's buffer in units. Default 16384.
    pub window_units: u32,
    /// The most segments in the window. Default 16384.
    pub window_segments: u32,
    /// The share among streams that have data waiting, 1 to 255. Default 1.
    pub weight: u32,
    /// A text of at most 512 bytes for the peer's application; NULL for none. It is copied when the stream is opened.
    pub label: *const c_char,
}

impl segstream_contract {
    fn of(contract: &Contract, label: *const c_char) -> Self {
        Self {
            struct_bytes: size_of::<Self>(),
            unit_bytes: contract.unit_bytes,
            tolerance_w: contract.tolerance.window(),
            tolerance_e: contract.tolerance.errors(),
            tolerance_b: contract.tolerance.burst(),
            importance: contract.importance,
            as_accepted: u32::from(contract.order == Order::AsAccepted),
            lifetime_us: u64::try_from(contract.lifetime.as_micros()).unwrap_or(u64::MAX),
            interleave: match contract.interleave {
                InterleaveChoice::Auto => INTERLEAVE_AUTO,
                InterleaveChoice::Off => 0,
                InterleaveChoice::Depth(depth) => depth,
            },
            window_units: contract.window_units,
            window_segments: contract.window_segments,
            weight: u32::from(contract.weight),
            label,
        }
    }

    /// The contract as Rust has it.
    ///
    /// # Safety
    ///
    /// `label` is NULL or a text.
    unsafe fn read(&self) -> Result<Contract, Failure> {
        if self.struct_bytes != size_of::<Self>() {
            let told = self.struct_bytes;
            return Err(Failure::argument(format!("a contract says that it has {told} bytes; fill it with segstream_contract_init first")));
        }
        let label = if self.label.is_null() {
            String::new()
        } else {
            // Safety: as this function's caller promises.
            unsafe { arguments::text(self.label, "label") }?.to_owned()
        };
        Ok(Contract {
            unit_bytes: self.unit_bytes,
            tolerance: tolerance(self.tolerance_w, self.tolerance_e, self.tolerance_b)?,
            importance: self.importance,
            order: match self.as_accepted {
                0 => Order::InOrder,
                1 => Order::AsAccepted,
                other => return Err(Failure::argument(format!("as_accepted cannot be {other}; give 0 or 1"))),
            },
            lifetime: Duration::from_micros(self.lifetime_us),
            interleave: match self.interleave {
                INTERLEAVE_AUTO => InterleaveChoice::Auto,
                0 => InterleaveChoice::Off,
                depth => InterleaveChoice::Depth(depth),
            },
            window_units: self.window_units,
            window_segments: self.window_segments,
            weight: u8::try_from(self.weight).map_err(|_| Failure::argument(format!("weight cannot be {}; give 1 to 255", self.weight)))?,
            label,
        })
    }
}

/// A tolerance (W, E, B).
pub(crate) fn tolerance(w: u32, e: u32, b: u32) -> Result<Tolerance, Failure> {
    Tolerance::new(w, e, b).map_err(|wrong: ToleranceError| Failure::argument(wrong.to_string()))
}

/// The contracts of an array.
///
/// # Safety
///
/// `contracts` points to `count` contracts, whose labels are NULL or texts.
pub(crate) unsafe fn read_all(contracts: *const segstream_contract, count: usize) -> Result<Vec<Contract>, Failure> {
    if count > 0 && contracts.is_null() {
        return Err(Failure::argument("contracts is NULL, but its count is not 0"));
    }
    // Why one after the other: a wrong count must not make an allocation of that size.
    // Safety: as this function's caller promises.
    (0..count).map(|at| unsafe { (*contracts.add(at)).read() }).collect()
}

/// Writes a contract of a stream to C, with the label left out: the caller gets it in a buffer.
pub(crate) fn without_label(contract: &Contract) -> segstream_contract {
    segstream_contract::of(contract, std::ptr::null())
}

/// Fills a contract with the usual values: a reliable stream. `struct_bytes` is sizeof(segstream_contract).
///
/// # Safety
///
/// `contract` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_contract_init(contract: *mut segstream_contract, struct_bytes: usize) -> segstream_status {
    guarded(|| {
        if struct_bytes != size_of::<segstream_contract>() {
            let text = format!("the program's contract has {struct_bytes} bytes, this library's {}", size_of::<segstream_contract>());
            return Err(Failure::argument(format!("{text}; build the program with the header of the library that it runs with")));
        }
        // Safety: as this function's caller promises.
        let out = unsafe { Out::new(contract, "contract") }?;
        out.set(segstream_contract::of(&Contract::default(), std::ptr::null()));
        Ok(())
    })
}
