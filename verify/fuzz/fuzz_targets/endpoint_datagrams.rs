//! libFuzzer's entry to [`segstream_fuzz::endpoint_datagrams`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| segstream_fuzz::endpoint_datagrams::check(data));
