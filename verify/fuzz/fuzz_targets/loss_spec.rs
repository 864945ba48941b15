//! libFuzzer's entry to [`segstream_fuzz::loss_spec`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| segstream_fuzz::loss_spec::check(data));
