//! Calls of the C interface in any order, with any values: two endpoints on loopback, in plain mode, and a program
//! that calls whatever comes.
//!
//! What only a program can know it keeps to: pointers are valid for as much as it says or NULL, and a handle is not used after it was
//! freed. Everything else comes from the input: connections and streams that are not there, contracts that contradict themselves, buffers
//! that are too small, calls in any order.
//!
//! Invariant checked: every call returns a status of the header and never SEGSTREAM_FAULT; nothing is written behind a buffer; bytes that
//! were lent are released once.

#![allow(unsafe_code)]

use segstream_c::confirming::*;
use segstream_c::connection::*;
use segstream_c::contract::*;
use segstream_c::endpoint::*;
use segstream_c::event_loop::*;
use segstream_c::events::*;
use segstream_c::options::*;
use segstream_c::receiving::*;
use segstream_c::segment::*;
use segstream_c::sending::*;
use segstream_c::statistics::*;
use segstream_c::status::segstream_status;
use segstream_c::status::segstream_status::*;
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most calls of one input.
const CALLS_MAX: usize = 200;
/// What is sent.
static BYTES: [u8; 70_000] = [7; 70_000];
/// The longest sleep, and all sleeps of one input together. Why: what is tried in a second is what counts.
const MOMENT_US: i64 = 30_000;
const SLEEPS_US: i64 = 60_000;
/// What stands behind a buffer.
const CANARY: u8 = 0xa5;

/// Reads the input; zeros when it is over.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((byte, rest)) => {
                self.0 = rest;
                *byte
            }
            None => 0,
        }
    }

    fn number(&mut self) -> u64 {
        // Small ones mostly: they name what is there.
        match self.byte() {
            small @ 0..=199 => u64::from(small % 8),
            200..=230 => u64::from(self.byte()) << 8 | u64::from(self.byte()),
            _ => u64::from_le_bytes([self.byte(), self.byte(), 0, self.byte(), 0, 0, self.byte(), self.byte()]),
        }
    }

    fn small(&mut self) -> u32 {
        self.number() as u32
    }
}

/// The program's memory of what it has lent and received.
#[derive(Default)]
struct Memory {
    given: usize,
    released: AtomicUsize,
    received: usize,
}

unsafe extern "C" fn on_release(context: *mut c_void) {
    // Safety: the context is the count of the input that is being checked, which outlives both endpoints.
    unsafe { (*context.cast::<AtomicUsize>()).fetch_add(1, Ordering::Relaxed) };
}

/// A status that may be returned.
fn told(status: segstream_status) -> segstream_status {
    assert_ne!(status, SEGSTREAM_FAULT, "{:?}", last());
    // Safety: texts of statuses are of the library, and stay.
    let text = unsafe { CStr::from_ptr(segstream_c::status::segstream_status_text(status as i32)) };
    assert_ne!(text, c"unknown status");
    status
}

fn last() -> String {
    // Safety: the text of this thread, which makes no other call meanwhile.
    unsafe { CStr::from_ptr(segstream_c::status::segstream_last_error()) }.to_string_lossy().into_owned()
}

fn endpoint(listens: bool) -> *mut segstream_endpoint {
    let (mut options, mut endpoint) = (null_mut(), null_mut());
    // Safety: the pointers are to places here, and the options are freed once, after their last use.
    unsafe {
        told(segstream_options_new(&mut options));
        told(segstream_options_set(options, c"insecure".as_ptr(), 1));
        told(segstream_options_set(options, c"socket_buffer_bytes".as_ptr(), 65_536));
        told(segstream_options_set(options, c"confirms".as_ptr(), u64::from(listens)));
        let make = if listens { segstream_listen } else { segstream_bind };
        let made = told(make(options, c"127.0.0.1:0".as_ptr(), &mut endpoint));
        segstream_options_free(options);
        assert_eq!(made, SEGSTREAM_OK, "{}", last());
    }
    endpoint
}

fn contract(input: &mut Input<'_>) -> segstream_contract {
    let mut contract = std::mem::MaybeUninit::uninit();
    // Safety: the place is here, and a contract is written to it.
    let mut contract = unsafe {
        told(segstream_contract_init(contract.as_mut_ptr(), size_of::<segstream_contract>()));
        contract.assume_init()
    };
    for _ in 0..input.byte() % 4 {
        match input.byte() % 12 {
            0 => contract.struct_bytes = input.number() as usize,
            1 => contract.unit_bytes = input.small(),
            2 => contract.tolerance_w = input.small(),
            3 => contract.tolerance_e = input.small(),
            4 => contract.tolerance_b = input.small(),
            5 => contract.importance = input.small(),
            6 => contract.as_accepted = input.small(),
            7 => contract.lifetime_us = input.number(),
            8 => contract.interleave = input.small(),
            9 => contract.window_units = input.small().min(4096),
            10 => contract.window_segments = input.small(),
            _ => contract.weight = input.small(),
        }
    }
    contract.label = if input.byte() % 4 == 0 { c"a label".as_ptr() } else { null() };
    contract
}

/// A buffer with something behind it that must stay.
struct Buffer(Vec<u8>, usize);

impl Buffer {
    fn of(bytes: usize) -> Self {
        Self([vec![0; bytes], vec![CANARY; 16]].concat(), bytes)
    }

    fn pointer(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        assert!(self.0[self.1..].iter().all(|byte| *byte == CANARY), "something was written behind a buffer");
    }
}

/// One call.
fn call(input: &mut Input<'_>, endpoints: [*mut segstream_endpoint; 2], address: &CStr, memory: &mut Memory) {
    let of = endpoints[usize::from(input.byte() % 2)];
    let (connection, stream) = (input.number(), input.small());
    // Safety: handles are freed after the last call; every pointer is NULL with a length of 0, or to a place here of the length that is said.
    unsafe {
        match input.byte() % 26 {
            0 | 1 => {
                let contracts = [contract(input), contract(input)];
                let mut number = 0;
                let count = usize::from(input.byte() % 3);
                told(segstream_begin_connect(endpoints[1], address.as_ptr(), null(), contracts.as_ptr(), count, &mut number));
            }
            2 => told_nothing(segstream_open_stream(of, connection, &contract(input), &mut 0)),
            3..=5 => {
                let count = (input.number() as usize).min(BYTES.len());
                let options = segstream_send_options {
                    source_time_ns: input.number(),
                    tolerance_w: input.small(),
                    tolerance_e: input.small(),
                    tolerance_b: input.small(),
                    try_only: 1,
                };
                told_nothing(segstream_send(of, connection, stream, BYTES.as_ptr().cast(), count, &options, null_mut()));
            }
            6 | 7 => lend(input, of, connection, stream, memory),
            8 => told_nothing(segstream_append(of, connection, stream, input.number(), BYTES.as_ptr().cast(), 1000, 1)),
            9 => told_nothing(segstream_finish_stream(of, connection, stream)),
            10 | 11 => memory.received += usize::from(receive(input, of, connection, stream)),
            12 => {
                let mut segment = null_mut();
                if told(segstream_recv_segment(of, connection, stream, &mut segment, 0)) == SEGSTREAM_OK {
                    read_whole(segment);
                    memory.received += 1;
                }
            }
            13 => {
                let mut buffer = Buffer::of(input.number() as usize % 3000);
                let mut units = segstream_units::default();
                told_nothing(segstream_next_units(of, connection, stream, buffer.pointer().cast(), buffer.1, &mut units, 0));
            }
            14 => {
                let mut judged = std::mem::MaybeUninit::uninit();
                told_nothing(segstream_next_verdict(of, connection, stream, judged.as_mut_ptr(), null_mut(), 0, 0));
            }
            15 => {
                let mut judged = std::mem::MaybeUninit::uninit();
                let segment = input.number();
                told_nothing(segstream_segment_verdict(of, connection, stream, segment, judged.as_mut_ptr(), null_mut(), 0, 0));
            }
            16 => told_nothing(segstream_begin_close(of, connection, input.number(), null())),
            17 => told_nothing(segstream_abort(of, connection, input.number(), c"over".as_ptr())),
            18 => told_nothing(segstream_release(of, connection)),
            19 => told_nothing(segstream_set_rate(of, connection, input.number())),
            20 => told_nothing(segstream_statistic(of, connection, c"units_sent".as_ptr(), &mut 0.0)),
            21 => told_nothing(segstream_discard(of, connection, stream)),
            22..=24 => confirm(input, of, connection, stream),
            _ => told_nothing(segstream_set_class(of, connection, input.small())),
        }
    }
}

/// Confirms, or asks what is confirmed.
///
/// # Safety
///
/// `of` is a handle.
unsafe fn confirm(input: &mut Input<'_>, of: *mut segstream_endpoint, connection: u64, stream: u32) {
    let segments = input.number();
    let mut durable = segstream_durable::default();
    // Safety: as this function's caller promises; the place is here.
    unsafe {
        match input.byte() % 3 {
            0 => told_nothing(segstream_confirm(of, connection, stream, segments)),
            1 => told_nothing(segstream_confirm_no_more(of, connection, stream)),
            _ => told_nothing(segstream_confirmed(of, connection, stream, segments, &mut durable, 0)),
        }
    }
}

/// Sends bytes that are lent.
///
/// # Safety
///
/// `of` is a handle, and `memory` stays where it is until the handle is freed.
unsafe fn lend(input: &mut Input<'_>, of: *mut segstream_endpoint, connection: u64, stream: u32, memory: &mut Memory) {
    let count = (input.number() as usize).min(BYTES.len());
    let options = segstream_send_options { try_only: 1, ..segstream_send_options::default() };
    let context = std::ptr::from_ref(&memory.released).cast_mut().cast();
    memory.given += 1;
    let (bytes, release) = (BYTES.as_ptr().cast(), Some(on_release as unsafe extern "C" fn(*mut c_void)));
    // Safety: as this function's caller promises; the bytes are constant.
    told_nothing(unsafe { segstream_send_owned(of, connection, stream, bytes, count, release, context, &options, null_mut()) });
}

fn told_nothing(status: segstream_status) {
    told(status);
}

/// Receives into buffers of any size; whether a segment came.
///
/// # Safety
///
/// `of` is a handle.
unsafe fn receive(input: &mut Input<'_>, of: *mut segstream_endpoint, connection: u64, stream: u32) -> bool {
    let mut buffer = Buffer::of(input.number() as usize % 80_000);
    let mut received = std::mem::MaybeUninit::uninit();
    let pointer = if buffer.1 == 0 { null_mut() } else { buffer.pointer().cast() };
    // Safety: as this function's caller promises; the buffers are here and have these lengths.
    let status = told(unsafe { segstream_recv(of, connection, stream, pointer, buffer.1, null_mut(), 0, received.as_mut_ptr(), 0) });
    if status == SEGSTREAM_OK || status == SEGSTREAM_BUFFER_TOO_SMALL {
        // Safety: with these statuses it is written.
        let received: segstream_received = unsafe { received.assume_init() };
        assert_eq!(status == SEGSTREAM_OK, received.bytes <= buffer.1 && received.holes == 0);
    }
    status == SEGSTREAM_OK
}

/// Reads all of a segment, and frees it.
///
/// # Safety
///
/// `segment` is a handle, which is not used any more.
unsafe fn read_whole(segment: *mut segstream_segment) {
    let mut received = std::mem::MaybeUninit::uninit();
    // Safety: as this function's caller promises; the place is here, and the bytes and holes are as many as are told.
    unsafe {
        told(segstream_segment_received(segment, received.as_mut_ptr()));
        let received = received.assume_init();
        let bytes = std::slice::from_raw_parts(segstream_segment_bytes(segment).cast::<u8>(), received.bytes);
        assert!(bytes.iter().all(|byte| *byte == 7 || *byte == 0));
        let holes = std::slice::from_raw_parts(segstream_segment_holes(segment), received.holes);
        assert!(holes.iter().all(|hole| hole.start < hole.end && hole.end <= received.units));
        segstream_segment_free(segment);
    }
}

/// Serves both endpoints, and hears what has happened. Where both have nothing to do it sleeps, if that is for a moment only and `asleep_us`
/// allows it.
fn serve(endpoints: [*mut segstream_endpoint; 2], asleep_us: &mut i64) {
    // Safety: handles are freed after the last call.
    let timeouts = endpoints.map(|endpoint| unsafe { segstream_timeout(endpoint) });
    let least = timeouts.into_iter().filter(|timeout| *timeout >= 0).min().unwrap_or(0);
    if (1..=MOMENT_US).contains(&least) && *asleep_us + least <= SLEEPS_US {
        *asleep_us += least;
        std::thread::sleep(std::time::Duration::from_micros(least as u64));
    }
    for endpoint in endpoints {
        let mut event = std::mem::MaybeUninit::uninit();
        // Safety: handles are freed after the last call; the place is here.
        unsafe {
            told(segstream_process(endpoint));
            assert!(segstream_fd(endpoint) >= 0 && segstream_timeout(endpoint) >= -1);
            while told(segstream_wait(endpoint, event.as_mut_ptr(), 0)) == SEGSTREAM_OK {
                assert_ne!(event.assume_init_ref().connection, 0);
            }
        }
    }
}

/// Checks one input.
pub fn check(bytes: &[u8]) {
    run(bytes);
}

/// Makes the calls of one input; returns how many segments came.
fn run(bytes: &[u8]) -> usize {
    let mut memory = Box::new(Memory::default());
    let endpoints = [endpoint(true), endpoint(false)];
    let mut address = [0; 64];
    // Safety: the buffer is here, and what is written ends with a zero.
    let address = unsafe {
        told(segstream_local_address(endpoints[0], address.as_mut_ptr(), address.len()));
        CStr::from_ptr(address.as_ptr()).to_owned()
    };
    let (mut input, mut asleep_us) = (Input(bytes), 0);
    for _ in 0..CALLS_MAX {
        if input.0.is_empty() {
            break;
        }
        call(&mut input, endpoints, &address, &mut memory);
        if input.byte() % 2 == 0 {
            serve(endpoints, &mut asleep_us);
        }
    }
    for endpoint in endpoints {
        // Safety: each handle is freed here, once.
        unsafe {
            // Why aborted first: nobody serves the other end of a graceful close.
            (1..32).for_each(|connection| told_nothing(segstream_abort(endpoint, connection, 0, null())));
            segstream_endpoint_free(endpoint);
        }
    }
    assert_eq!(memory.given, memory.released.load(Ordering::Relaxed), "bytes that were lent are released once");
    memory.received
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_reach_what_they_are_for() {
        assert_eq!(run(include_bytes!("../corpus/c_calls/send_and_receive")), 1);
        assert_eq!(run(include_bytes!("../corpus/c_calls/lend_and_close")), 2);
        check(include_bytes!("../corpus/c_calls/abort_with_lent"));
        check(&[0xff; 600]);
    }
}
