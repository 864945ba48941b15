//! libFuzzer's entry to [`segstream_fuzz::c_calls`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| segstream_fuzz::c_calls::check(data));
