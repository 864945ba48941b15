//! libFuzzer's entry to [`segstream_fuzz::path_spec`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| segstream_fuzz::path_spec::check(data));
