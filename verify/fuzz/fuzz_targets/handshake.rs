//! libFuzzer's entry to [`segstream_fuzz::handshake`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| segstream_fuzz::handshake::check(data));
